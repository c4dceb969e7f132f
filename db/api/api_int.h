/* SPDX-License-Identifier: MIT */
/* What the files of the public library share. Handles are the objects of db by another name, but for a store, which
 * remembers its file. */
#ifndef DT_DB_API_API_INT_H
#define DT_DB_API_API_INT_H

#include "base/status.h"
#include "db/api/dittune.h"
#include "db/lookup/lookup.h"

/* Where a sentence goes. */
struct dt_api_message {
    char *text;
    size_t room;
};

/* The code that the caller gets for status. The sentence of an error is copied to where it goes, as much as fits, never a
 * part of a character. */
int32_t dt_api_done(dt_status status, struct dt_api_message to);

/* The same for a sentence of the library itself. */
int32_t dt_api_refuse(int32_t code, const char *sentence, struct dt_api_message to);

/* Before the first object of Jansson: it draws the seed of its tables once a process, whichever thread comes first. */
void dt_api_begin(void);

/* Compact text of value, for the caller to free. */
int32_t dt_api_text(const json_t *value, char **text, struct dt_api_message to);

/* $variable/rest, else $HOME/otherwise/rest, appended; a relative $variable is ignored, as the XDG rules want. */
dt_status dt_api_path(const char *variable, const char *otherwise, const char *rest,
                      struct dt_text *path) DT_MUST_CHECK;

static inline const struct dt_answer *dt_api_answer(const struct dittune_answer *answer)
{
    return (const struct dt_answer *)answer;
}

#endif
