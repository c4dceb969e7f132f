/* SPDX-License-Identifier: MIT */
/* piece - what a word of a command is made of: text, {NAME} and {CONDITION?TEXT} */
#ifndef DT_WORKER_COMMAND_PIECE_H
#define DT_WORKER_COMMAND_PIECE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* A byte of text, a placeholder {NAME}, or a switch {CONDITION?TEXT}. */
struct dt_piece {
    size_t size; /* bytes of the command */
    char literal;
    char name[80];       /* of a placeholder; "": it is none */
    char condition[200]; /* of a switch; "": it is none */
    const char *text;    /* of a switch, in the command */
    size_t text_size;
};

/* What a word goes on with at `text`, before `stop`. nested: it is the text of a switch, where a brace is not doubled. DT_EUSAGE: a brace
 * alone, or a placeholder or switch that cannot be. */
dt_status dt_piece_next(const char *text, const char *stop, bool nested,
                        struct dt_piece *piece) DT_MUST_CHECK;

/* Whether a brace is one of two that stand for themselves; depth: braces that are open. */
bool dt_piece_doubled(const char *at, int depth);

#endif
