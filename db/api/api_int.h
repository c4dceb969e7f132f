/* SPDX-License-Identifier: MIT */
/* Shared by the files of the public library. Handles are the objects of db under other names, except a store, which
 * also has its file. */
#ifndef DT_DB_API_API_INT_H
#define DT_DB_API_API_INT_H

#include "base/status.h"
#include "db/api/dittune.h"
#include "db/lookup/lookup.h"

/* Buffer for a message. */
struct dt_api_message {
    char *text;
    size_t room;
};

/* Converts status to the caller's code. Copies the sentence of an error to the buffer, cut at a whole character. */
int32_t dt_api_done(dt_status status, struct dt_api_message to);

/* Like dt_api_done, for a sentence of the library itself. */
int32_t dt_api_refuse(int32_t code, const char *sentence, struct dt_api_message to);

/* Call before the first object of Jansson: seeds its hash tables once per process, from any thread. */
void dt_api_begin(void);

/* Compact text of value, owned by the caller. */
int32_t dt_api_text(const json_t *value, char **text, struct dt_api_message to);

/* $variable/rest, else $HOME/otherwise/rest, appended; a relative $variable is ignored, as the XDG rules require. */
dt_status dt_api_path(const char *variable, const char *otherwise, const char *rest,
                      struct dt_text *path) DT_MUST_CHECK;

static inline const struct dt_answer *dt_api_answer(const struct dittune_answer *answer)
{
    return (const struct dt_answer *)answer;
}

#endif
