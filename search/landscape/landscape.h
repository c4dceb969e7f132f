/* SPDX-License-Identifier: MIT */
/* landscape - recorded {plan -> samples}: a search can be replayed on it without a machine
 *
 *     dt_landscape_open("table.json.gz", NULL, &landscape);
 *     dt_landscape_trial(landscape, &point, &trial);      -- the recorded answer
 *     dt_landscape_free(landscape);
 *
 * Its space holds exactly the recorded plans, including those that failed. Files may be gzipped;
 * their format is detected from the content. To read another kind of file: write
 * search/landscape/read_<name>.c and add a row to the table at the end of landscape.c; formats of
 * other modules are passed to dt_landscape_open.
 */
#ifndef DT_SEARCH_LANDSCAPE_LANDSCAPE_H
#define DT_SEARCH_LANDSCAPE_LANDSCAPE_H

#include "search/trial.h"

struct dt_entry {
    enum dt_outcome outcome;
    /* mean of the repetitions in the table's unit, smaller is better; NAN: it failed */
    double value;
    double cost;        /* total seconds of the trial */
    int64_t peak_bytes; /* 0: unknown */
    int64_t first;      /* index of its first repetition in the samples */
    int count;          /* number of repetitions; 0: only the mean is known */
    const char *key;    /* its values, comma-joined in the table's order of parameters */
};

/* An axis' values as in the file: plans of two tables correspond when these are
 * equal, name by name. */
struct dt_original {
    double number; /* NAN: text */
    const char *text;
};

struct dt_landscape {
    char title[256], device[128]; /* "": unknown */
    char unit[16];            /* unit of the values, such as "ms"; "" when the file names none */
    double seconds;           /* seconds per unit of value; 0: values are not times */
    struct dt_space *space;   /* sealed; its k-th point is entries[k] */
    struct dt_entry *entries; /* [count] */
    int64_t count, failed;
    double *samples; /* repetitions, in the unit of values up to a factor per entry */
    struct dt_original *originals[DT_AXES_MAX]; /* for each axis, its values */
    struct dt_text texts;                       /* keys and originals */
    int64_t start;                              /* the recorded default plan; -1: there is none */
    double optimum, slowest;                    /* the least and the greatest value */
};

struct dt_reader; /* search/landscape/table.h */

/* more: readers tried first, NULL-ended; NULL: none. Limits: 256 MiB of text, 16 million JSON
 * values, a million plans.
 * DT_EIO, DT_EUSAGE: unknown or damaged content, or no measured plan. */
dt_status dt_landscape_open(const char *path, const struct dt_reader *const more[],
                            struct dt_landscape **landscape) DT_MUST_CHECK;
void dt_landscape_free(struct dt_landscape *landscape);

/* Sets the recorded outcome, mean and cost of the plan. The point must be in the space. */
void dt_landscape_trial(const struct dt_landscape *landscape, const struct dt_point *point,
                        struct dt_trial *trial);

/* Like dt_landscape_trial, with a resampled measurement: the mean of a bootstrap draw (Efron 1979)
 * of the recorded repetitions. The draw depends only on seed and plan. */
void dt_landscape_trial_noisy(const struct dt_landscape *landscape, const struct dt_point *point,
                              uint64_t seed, struct dt_trial *trial);

/* For each entry of the landscape, the source's value of the same plan: NAN where it has none,
 * INFINITY where it failed. values: [landscape->count]. *found: number of plans found. DT_EUSAGE:
 * parameters differ, or no plan is in both. */
dt_status dt_landscape_map(const struct dt_landscape *landscape, const struct dt_landscape *source,
                           double values[], int64_t *found) DT_MUST_CHECK;

struct dt_transfer {
    const struct dt_space *space;
    const struct dt_landscape *source;
    int theirs[DT_AXES_MAX];       /* axis of the source, -1: it has none */
    int32_t *indices[DT_AXES_MAX]; /* index of each value in the source's axis, or -1; owned */
};

/* Landscape and space outlive it. originals: the original values of each axis; NULL: the space's
 * own numbers and labels. Free it also after an error. DT_EUSAGE: a parameter of several values is
 * missing on one side. */
dt_status dt_transfer_init(struct dt_transfer *transfer, const struct dt_space *space,
                           const struct dt_original *const originals[],
                           const struct dt_landscape *source) DT_MUST_CHECK;
void dt_transfer_fini(struct dt_transfer *transfer);

/* The source's value: NAN where it has none, INFINITY where it failed. */
double dt_transfer_value(const struct dt_transfer *transfer, const struct dt_point *point);

/* The reverse mapping for one axis: the index of the source plan's value; false: the axis does not
 * have it. A parameter that the source does not have takes its only value. */
bool dt_transfer_back(const struct dt_transfer *transfer, int axis, const struct dt_point *there,
                      int32_t *index);

#endif
