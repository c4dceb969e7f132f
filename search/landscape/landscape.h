/* SPDX-License-Identifier: MIT */
/* landscape - recorded {plan -> samples}: a search can be replayed on it without a machine
 *
 *     dt_landscape_open("table.json.gz", NULL, &landscape);
 *     dt_landscape_trial(landscape, &point, &trial);      -- what the machine would have answered
 *     dt_landscape_free(landscape);
 *
 * Its space holds exactly the recorded plans, those that failed included. Files may be gzipped; what is in them is told
 * by their content. To read another kind of file: write search/landscape/read_<name>.c and add a row to the table in
 * open.c; formats of other modules are given to dt_landscape_open.
 */
#ifndef DT_SEARCH_LANDSCAPE_LANDSCAPE_H
#define DT_SEARCH_LANDSCAPE_LANDSCAPE_H

#include "base/rng.h"
#include "search/trial.h"

struct dt_entry {
    enum dt_outcome outcome;
    double
        value; /* mean of the repetitions in the table's unit, smaller is better; NAN: it failed */
    double cost;        /* seconds the trial took, all in all */
    int64_t peak_bytes; /* 0: unknown */
    int64_t first;      /* of its repetitions among the samples */
    int count;          /* of them; 0: only the mean is known */
    const char *key;    /* its values, comma-joined in the table's order of parameters */
};

/* What an axis' values were in the file: two tables agree on a plan when these are equal, name by name. */
struct dt_original {
    double number; /* NAN: text */
    const char *text;
};

struct dt_landscape {
    char title[256], device[128]; /* "": not told */
    char unit[16];                /* of values: "ms"; "" where the file has no word for it */
    double seconds;               /* of a step of value 1; 0: a value is no time */
    struct dt_space *space;       /* sealed; its k-th point is entries[k] */
    struct dt_entry *entries;     /* [count] */
    int64_t count, failed;
    double *samples; /* repetitions, in the unit of values up to a factor an entry */
    struct dt_original *originals[DT_AXES_MAX]; /* of each axis' values */
    struct dt_text texts;                       /* keys and originals */
    int64_t start;                              /* the recorded default plan; -1: there is none */
    double optimum, slowest;                    /* of the values */
};

struct dt_reader; /* search/landscape/table.h */

/* more: readers that are asked first, NULL-ended; NULL: none. Limits: 256 MiB of text, 16 million JSON values, a million
 * plans. DT_EIO, DT_EUSAGE: unknown or broken content, or no plan in it was ever measured. */
dt_status dt_landscape_open(const char *path, const struct dt_reader *const more[],
                            struct dt_landscape **landscape) DT_MUST_CHECK;
void dt_landscape_free(struct dt_landscape *landscape);

/* What running the plan gives: the recorded outcome and mean, cost as it was. The point must be in the space. */
void dt_landscape_trial(const struct dt_landscape *landscape, const struct dt_point *point,
                        struct dt_trial *trial);

/* As above, but measured again: the mean of a bootstrap draw (Efron 1979) of the recorded repetitions. The draw depends on
 * seed and plan alone, not on when it is asked for. */
void dt_landscape_trial_noisy(const struct dt_landscape *landscape, const struct dt_point *point,
                              uint64_t seed, struct dt_trial *trial);

/* For each entry of the landscape the value that the source has for the same plan: NAN where it has none, INFINITY where
 * it failed. values: [landscape->count]. *found: how many there are. DT_EUSAGE: parameters differ, or no plan is in both. */
dt_status dt_landscape_map(const struct dt_landscape *landscape, const struct dt_landscape *source,
                           double values[], int64_t *found) DT_MUST_CHECK;

#endif
