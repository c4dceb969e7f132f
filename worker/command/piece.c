/* SPDX-License-Identifier: MIT */
#include "worker/command/piece.h"

#include <string.h>

bool dt_piece_doubled(const char *at, int depth)
{
    return depth == 0 && (*at == '{' || *at == '}') && at[1] == *at;
}

/* The brace that ends the one at text, which is not doubled; NULL: there is none. */
static const char *find_end(const char *text, const char *end)
{
    int depth = 0;
    for (const char *at = text; at < end; at++) {
        depth += (*at == '{') - (*at == '}');
        if (depth == 0)
            return at;
    }
    return NULL;
}

static dt_status read_switch(const char *text, const char *mark, const char *end,
                             struct dt_piece *piece)
{
    size_t length = (size_t)(mark - text - 1);
    if (length == 0 || length >= sizeof piece->condition)
        return dt_fail(DT_EUSAGE,
                       "the command's switch '%.40s' needs a condition of 1 to %zu characters "
                       "before its '?', as in {eager?--eager}",
                       text, sizeof piece->condition - 1);
    memcpy(piece->condition, text + 1, length);
    piece->text = mark + 1;
    piece->text_size = (size_t)(end - mark - 1);
    return DT_OK;
}

dt_status dt_piece_next(const char *text, const char *stop, bool nested, struct dt_piece *piece)
{
    const char *end = text[0] == '{' ? find_end(text, stop) : NULL;
    *piece = (struct dt_piece){.size = 1, .literal = text[0]};
    if (!nested && dt_piece_doubled(text, 0)) {
        piece->size = 2;
        return DT_OK;
    }
    if (text[0] == '}' || (text[0] == '{' && end == NULL))
        return dt_fail(DT_EUSAGE,
                       "the command has a single '%c' at '%.40s'; write '%c%c' for a brace",
                       text[0], text, text[0], text[0]);
    if (end == NULL)
        return DT_OK;
    size_t length = (size_t)(end - text - 1);
    const char *mark = memchr(text + 1, '?', length);
    piece->size = length + 2;
    if (mark != NULL)
        return read_switch(text, mark, end, piece);
    if (length == 0 || length >= sizeof piece->name)
        return dt_fail(DT_EUSAGE, "the command's placeholder '%.*s' has no name of a parameter",
                       (int)(length < 40 ? length + 2 : 42), text);
    memcpy(piece->name, text + 1, length);
    return DT_OK;
}
