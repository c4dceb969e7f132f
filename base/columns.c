/* SPDX-License-Identifier: MIT */
#include "base/columns.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define COLUMNS_MOST 10000

/* Blocks of characters that are two columns wide (Unicode 15, East_Asian_Width W
 * and F; whole blocks). */
static const struct {
    uint32_t first, last;
} wide[] = {{0x1100, 0x115f},
            {0x2e80, 0xa4cf},
            {0xac00, 0xd7a3},
            {0xf900, 0xfaff},
            {0xfe30, 0xfe6f},
            {0xff00, 0xff60},
            {0xffe0, 0xffe6},
            {0x1f300, 0x1f64f},
            {0x1f900, 0x1f9ff},
            {0x20000, 0x3fffd},
            {0, 0}};

/* Columns of the character at text; *bytes is its size. An invalid byte counts as one character. */
static int width_at(const char *text, size_t size, size_t *bytes)
{
    *bytes = dt_text_character(text, size);
    if (*bytes == 0)
        *bytes = 1;
    unsigned code = dt_text_code(text, *bytes);
    for (int i = 0; wide[i].last != 0; i++)
        if (code >= wide[i].first && code <= wide[i].last)
            return 2;
    return 1;
}

size_t dt_columns_cut(const char *text, size_t size, int columns)
{
    size_t at = 0, bytes;
    while (at < size) {
        columns -= width_at(text + at, size - at, &bytes);
        if (columns < 0)
            break;
        at += bytes;
    }
    return at;
}

int dt_columns_of(const char *text, size_t size)
{
    int columns = 0;
    size_t bytes;
    for (size_t at = 0; at < size; at += bytes)
        columns += width_at(text + at, size - at, &bytes);
    return columns;
}

int dt_columns_terminal(int fd)
{
    const char *said = getenv("COLUMNS");
    long columns = said != NULL ? strtol(said, NULL, 10) : 0;
    struct winsize window;
    if (columns < 1 && ioctl(fd, TIOCGWINSZ, &window) == 0)
        columns = window.ws_col;
    return columns >= 1 && columns <= COLUMNS_MOST ? (int)columns : DT_COLUMNS_USUAL;
}

/* Bytes of the line up to the blank where it is broken. */
static size_t break_at(const char *line, size_t size, int columns)
{
    size_t fits = dt_columns_cut(line, size, columns), first = strspn(line, " "), at = fits;
    while (at > first && line[at] != ' ')
        at--;
    if (at <= first) /* a single word */
        for (at = fits > first ? fits : first; at < size && line[at] != ' ';)
            at++;
    return at;
}

static void wrap_line(const char *line, size_t size, int columns, int indent, struct dt_text *out)
{
    int room = columns;
    while (dt_columns_of(line, size) > room) {
        size_t end = break_at(line, size, room), next = end;
        while (next < size && line[next] == ' ')
            next++;
        if (next == size)
            break;
        dt_text_add_bytes(out, line, end);
        dt_text_add(out, "\n%*s", indent, "");
        line += next;
        size -= next;
        room = columns - indent;
    }
    dt_text_add_bytes(out, line, size);
}

void dt_columns_wrap(const char *text, int columns, int indent, struct dt_text *out)
{
    while (*text != '\0') {
        size_t size = strcspn(text, "\n");
        wrap_line(text, size, columns, indent, out);
        text += size;
        if (*text == '\n')
            dt_text_add(out, "%c", *text++);
    }
}
