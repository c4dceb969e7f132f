/* SPDX-License-Identifier: MIT */
/* verbs - the verbs of `dittune db`, one row each
 *
 * To add one: a function, here or in a file of its own, and a row in verbs.c.
 */
#ifndef DT_TUNER_CLI_DATABASE_VERBS_H
#define DT_TUNER_CLI_DATABASE_VERBS_H

#include "db/stored.h"
#include "db/upkeep/upkeep.h"
#include "tuner/cli/options.h"

/* Selection of entries on the command line. */
struct dt_choice {
    const char *const *words; /* those after the verb: beginnings of ids; count 0: all */
    int count;
    const char *filter, *engine, *model, *pipeline; /* NULL: any */
};

struct dt_verb_call {
    const struct dt_options *options;
    const char *directory;
    struct dt_choice choice;
    struct dt_upkeep *upkeep; /* tells the user; set by dt_verb_run */
};

struct dt_verb {
    const char *name, *arguments;
    int least, most; /* number of words after it */
    bool chooses;    /* takes ids, --filter, --engine, --model and --pipeline */
    bool reports;    /* prints what upkeep tells, as lines or as JSON; else only warnings */
    const char *doc;
    dt_status (*run)(const struct dt_verb_call *call);
};
extern const struct dt_verb dt_verbs[];
extern const int dt_verb_count;

/* Prints the report also when the verb failed; returns the verb's status. */
dt_status dt_verb_run(const struct dt_verb *verb, struct dt_verb_call call) DT_MUST_CHECK;

dt_status dt_verb_show(const struct dt_verb_call *call) DT_MUST_CHECK;

/* It selects by more than ids. */
bool dt_choice_by_entry(const struct dt_choice *choice);
/* The line's id begins with one of the words. */
bool dt_choice_of_id(const struct dt_choice *choice, uint64_t id);
/* The entry's title or key matches the filter, and its engine and model are the chosen ones. */
bool dt_choice_of_entry(const struct dt_choice *choice, const struct dt_stored_entry *entry);
/* DT_EUSAGE for an empty selection; the sentence names what was chosen by. */
dt_status dt_choice_none(const struct dt_choice *choice) DT_MUST_CHECK;
/* The ids of the chosen lines, owned by the caller; lines that are no entries
 * are chosen only by ids. */
dt_status dt_choice_ids(const struct dt_choice *choice, const char *directory, uint64_t **ids,
                        size_t *count) DT_MUST_CHECK;

#endif
