/* SPDX-License-Identifier: MIT */
/* verbs - what `dittune db` does to a store, one row each
 *
 * To add one: a function, here or in a file of its own, and a row in verbs.c.
 */
#ifndef DT_TUNER_DATABASE_VERBS_H
#define DT_TUNER_DATABASE_VERBS_H

#include "tuner/options.h"

struct dt_verb {
    const char *name, *arguments;
    int least, most; /* how many words follow it */
    const char *doc;
    /* words: those after the verb */
    dt_status (*run)(const struct dt_options *options, const char *directory,
                     const char *const *words, int count);
};

extern const struct dt_verb dt_verbs[];
extern const int dt_verb_count;

dt_status dt_verb_show(const struct dt_options *options, const char *directory,
                       const char *const *words, int count) DT_MUST_CHECK;

#endif
