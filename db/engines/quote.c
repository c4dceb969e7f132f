/* SPDX-License-Identifier: MIT */
/* Quoting for a POSIX shell. Between single quotes sh takes every byte but the quote itself as it is; control bytes could
 * still move the cursor of who looks at the line, so they are spelt in octal, which printf of every sh knows. */
#include "db/engines/engines.h"

#include <stdbool.h>
#include <string.h>

/* A word with = in it would be an assignment where it stands first, so only an option has one bare. */
static bool is_bare(const char *word)
{
    static const char bare[] =
        "=abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+";
    const char *letters = word[0] == '-' ? bare : bare + 1;
    return word[0] != '\0' && word[strspn(word, letters)] == '\0';
}

/* Bytes of the control character at text, 0 when it is none: C0 but the line feed, DEL, and C1 in UTF-8. */
static size_t control(const char *text)
{
    unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];
    if ((first < 0x20 && first != '\n') || first == 0x7f)
        return 1;
    return first == 0xc2 && second >= 0x80 && second <= 0x9f ? 2 : 0;
}

static size_t add_controls(const char *text, struct dt_text *out)
{
    size_t size = 0, more;
    dt_text_add(out, "\"$(printf '");
    while (text[size] != '\0' && (more = control(text + size)) > 0)
        for (size_t end = size + more; size < end; size++)
            dt_text_add(out, "\\%03o", (unsigned)(unsigned char)text[size]);
    dt_text_add(out, "')\"");
    return size;
}

static size_t add_quoted(const char *text, struct dt_text *out)
{
    size_t size = 0;
    dt_text_add(out, "'");
    for (; text[size] != '\0' && control(text + size) == 0; size++)
        if (text[size] == '\'')
            dt_text_add(out, "'\\''");
        else
            dt_text_add_bytes(out, text + size, 1);
    dt_text_add(out, "'");
    return size;
}

void dt_quote(const char *word, struct dt_text *out)
{
    if (is_bare(word)) {
        dt_text_add(out, "%s", word);
        return;
    }
    if (word[0] == '\0')
        dt_text_add(out, "''");
    while (*word != '\0')
        word += control(word) > 0 ? add_controls(word, out) : add_quoted(word, out);
}

void dt_show(const char *text, struct dt_text *out)
{
    for (size_t size; *text != '\0'; text += size) {
        size = control(text);
        if (size == 0 && *text != '\n') {
            dt_text_add_bytes(out, text, 1);
            size = 1;
        } else {
            size = size > 0 ? size : 1;
            dt_text_add(out, "\\x%02x", (unsigned)(unsigned char)text[size - 1]);
        }
    }
}
