/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include "base/array.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve_bytes(struct dt_text *text, size_t more)
{
    if (text->failed)
        return false;
    if (text->size + more + 1 <= text->room)
        return true;
    size_t room = 2 * (text->size + more) + 64;
    text->failed = DT_RESIZE(text->bytes, room) < 0;
    text->room = text->failed ? text->room : room;
    return !text->failed;
}

void dt_text_add_list(struct dt_text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    if (size >= 0 && reserve_bytes(text, (size_t)size)) {
        vsnprintf(text->bytes + text->size, (size_t)size + 1, format, again);
        text->size += (size_t)size;
    }
    va_end(again);
}

void dt_text_add(struct dt_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dt_text_add_list(text, format, args);
    va_end(args);
}

void dt_text_add_bytes(struct dt_text *text, const void *bytes, size_t size)
{
    if (!reserve_bytes(text, size))
        return;
    if (size > 0)
        memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = '\0';
}

void dt_text_reserve(struct dt_text *text, size_t more)
{
    (void)reserve_bytes(text, more);
}

void dt_text_clear(struct dt_text *text)
{
    text->size = 0;
    if (text->bytes != NULL)
        text->bytes[0] = '\0';
}

const char *dt_text_at(const struct dt_text *text)
{
    return text->bytes != NULL ? text->bytes : "";
}

dt_status dt_text_status(const struct dt_text *text)
{
    return text->failed ? dt_fail(DT_ENOMEM, "out of memory while writing text") : DT_OK;
}

char *dt_text_take(struct dt_text *text)
{
    if (!text->failed && text->bytes == NULL)
        reserve_bytes(text, 0);
    char *bytes = text->failed ? NULL : text->bytes;
    if (bytes != NULL)
        bytes[text->size] = '\0';
    if (text->failed)
        free(text->bytes);
    *text = (struct dt_text){0};
    return bytes;
}

void dt_text_fini(struct dt_text *text)
{
    free(text->bytes);
    *text = (struct dt_text){0};
}

int dt_text_real(double number, char text[DT_TEXT_REAL])
{
    int digits = 1;
    do
        snprintf(text, DT_TEXT_REAL, "%.*g", digits, number);
    while (strtod(text, NULL) != number && ++digits <= 17);
    char *point = strchr(text, localeconv()->decimal_point[0]);
    if (point != NULL)
        *point = '.';
    return digits;
}

size_t dt_text_character(const void *bytes, size_t size)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = bytes;
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n <= 1)
        return n;
    if (p[0] > 0xf4 || n > size)
        return 0;
    unsigned code = p[0] & (0x7fU >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3fU);
    }
    return code < least[n] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ? 0 : n;
}

bool dt_text_whole(const char *text)
{
    size_t size = 1;
    for (; *text != '\0' && size > 0; text += size)
        size = dt_text_character(text, strnlen(text, 4));
    return size > 0;
}

/* Number of bytes at p that begin a character that was cut off. */
static size_t cut_character(const unsigned char *p)
{
    size_t n = p[0] < 0xc2 || p[0] > 0xf4 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4, i = 1;
    while (i < n && (p[i] & 0xc0) == 0x80)
        i++;
    return i < n ? i : 0;
}

void dt_text_mend(char *text)
{
    const unsigned char *from = (const unsigned char *)text, *end = from + strlen(text);
    char *to = text;
    while (from < end) {
        size_t size = dt_text_character(from, (size_t)(end - from)), cut = cut_character(from);
        if (size == 0 && cut == 0)
            *to++ = '?';
        else
            memmove(to, from, size);
        to += size;
        from += size > 0 ? size : cut > 0 ? cut : 1;
    }
    *to = '\0';
}

unsigned dt_text_code(const char *text, size_t size)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned code = size <= 1 ? p[0] : p[0] & (0x7fU >> size);
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (p[i] & 0x3fU);
    return code;
}

static bool is_shown(unsigned code)
{
    static const unsigned hidden[][2] = {{0, 0x1f},        {0x7f, 0x9f},     {0x61c, 0x61c},
                                         {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2066, 0x2069},
                                         {0xfffe, 0xffff}};
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (code >= hidden[i][0] && code <= hidden[i][1])
            return false;
    return true;
}

/* Bytes of the character at the NUL-terminated text; 1 for an invalid byte. */
static size_t size_of(const char *text)
{
    size_t size = dt_text_character(text, strnlen(text, 4));
    return size > 0 ? size : 1;
}

size_t dt_text_shown(const char *text)
{
    if (strncmp(text, "##[", 3) == 0)
        return 0;
    size_t size = dt_text_character(text, strnlen(text, 4));
    return size > 0 && is_shown(dt_text_code(text, size)) ? size : 0;
}

static size_t clean_length(char *text, const char *keep)
{
    char *to = text;
    for (const char *from = text; *from != '\0';) {
        size_t size = size_of(from);
        if (dt_text_shown(from) == 0 && strchr(keep, *from) == NULL)
            *to++ = '?';
        else
            to = (char *)memmove(to, from, size) + size;
        from += size;
    }
    *to = '\0';
    return (size_t)(to - text);
}

void dt_text_clean(char *text)
{
    (void)clean_length(text, "");
}

void dt_text_clean_lines(struct dt_text *text)
{
    if (text->bytes != NULL)
        text->size = clean_length(text->bytes, "\n\t");
}

int dt_text_index(const char *word, const char *const words[])
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], word) == 0)
            return i;
    return -1;
}

static void show_escaped(const char *text, bool json, struct dt_text *out)
{
    while (*text != '\0') {
        size_t run = 0, size;
        while (text[run] != '\0' && (size = dt_text_shown(text + run)) > 0)
            run += size;
        dt_text_add_bytes(out, text, run);
        text += run;
        if (*text == '\0')
            return;
        size = size_of(text);
        unsigned code = dt_text_code(text, size);
        dt_text_add(out, code < 0x100 && !json ? "\\x%02x" : "\\u%04x", code);
        text += size;
    }
}

void dt_text_show(const char *text, struct dt_text *out)
{
    show_escaped(text, false, out);
}

void dt_text_show_json(const char *text, struct dt_text *out)
{
    show_escaped(text, true, out);
}
