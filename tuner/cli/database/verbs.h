/* SPDX-License-Identifier: MIT */
/* verbs - what `dittune db` does to a store, one row each
 *
 * To add one: a function, here or in a file of its own, and a row in verbs.c.
 */
#ifndef DT_TUNER_CLI_DATABASE_VERBS_H
#define DT_TUNER_CLI_DATABASE_VERBS_H

#include "base/json.h"
#include "tuner/cli/options.h"

struct dt_verb {
    const char *name, *arguments;
    int least, most; /* how many words follow it */
    bool chooses;    /* of entries, by ids and --filter */
    const char *doc;
    /* words: those after the verb */
    dt_status (*run)(const struct dt_options *options, const char *directory,
                     const char *const *words, int count);
};

extern const struct dt_verb dt_verbs[];
extern const int dt_verb_count;

dt_status dt_verb_show(const struct dt_options *options, const char *directory,
                       const char *const *words, int count) DT_MUST_CHECK;
/* What a verb that chooses entries was told. */
struct dt_choice {
    const char *const *words; /* beginnings of ids; count 0: all */
    int count;
    const char *filter; /* NULL: none */
};
/* The beginning fits the id of the line. */
bool dt_choice_of_id(const struct dt_choice *choice, uint64_t id);
/* The filter fits the entry's title or key. */
bool dt_choice_of_entry(const struct dt_choice *choice, const json_t *entry);
/* DT_EUSAGE: nothing was chosen; the sentence says by what. */
dt_status dt_choice_none(const struct dt_choice *choice) DT_MUST_CHECK;
/* The ids of the lines that are chosen, to be freed by the caller; what is no entry is only chosen without a filter. */
dt_status dt_choice_ids(const struct dt_choice *choice, const char *directory, uint64_t **ids,
                        size_t *count) DT_MUST_CHECK;

#endif
