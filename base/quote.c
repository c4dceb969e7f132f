/* SPDX-License-Identifier: MIT */
/* Quoting for a POSIX shell. Between single quotes sh takes every byte but the quote itself
 * literally; control bytes could affect a terminal that shows the line, so they are written in
 * octal, which printf of every sh knows. */
#include "base/quote.h"

#include <stdbool.h>
#include <string.h>

/* A word with = would be an assignment in first position, so only options may
 * contain it unquoted. */
static bool is_bare(const char *word)
{
    static const char bare[] =
        "=abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,@%+";
    const char *letters = word[0] == '-' ? bare : bare + 1;
    return word[0] != '\0' && word[strspn(word, letters)] == '\0';
}

/* Number of bytes at text to write in octal: of a character that is not shown, other than
 * the line feed; 0: none. */
static size_t control_length(const char *text)
{
    size_t size = dt_text_character(text, strnlen(text, 4));
    if (text[0] == '\n' || dt_text_shown(text) > 0)
        return 0;
    return size > 0 ? size : 1;
}

static size_t add_controls(const char *text, struct dt_text *out)
{
    size_t size = 0, more;
    dt_text_add(out, "\"$(printf '");
    while (text[size] != '\0' && (more = control_length(text + size)) > 0)
        for (size_t end = size + more; size < end; size++)
            dt_text_add(out, "\\%03o", (unsigned)(unsigned char)text[size]);
    dt_text_add(out, "')\"");
    return size;
}

static size_t add_quoted(const char *text, struct dt_text *out)
{
    size_t size = 0;
    dt_text_add(out, "'");
    while (text[size] != '\0' && control_length(text + size) == 0) {
        size_t character = text[size] == '\n' ? 1 : dt_text_shown(text + size);
        if (text[size] == '\'')
            dt_text_add(out, "'\\''");
        else
            dt_text_add_bytes(out, text + size, character);
        size += character;
    }
    dt_text_add(out, "'");
    return size;
}

void dt_quote_arguments(const char *const words[], struct dt_text *out)
{
    for (int i = 0; words != NULL && words[i] != NULL; i++) {
        dt_text_add(out, i == 0 ? " -- " : " ");
        dt_quote(words[i], out);
    }
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
        word += control_length(word) > 0 ? add_controls(word, out) : add_quoted(word, out);
}

void dt_quote_csv(const char *text, struct dt_text *out)
{
    dt_auto_text words = {0};
    dt_text_show(text, &words);
    dt_text_add(out, "\"%s", text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL ? "'" : "");
    for (const char *at = dt_text_at(&words); *at != '\0'; at++)
        dt_text_add(out, *at == '"' ? "\"\"" : "%c", *at);
    dt_text_add(out, "\"");
}
