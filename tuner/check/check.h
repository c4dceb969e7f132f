/* SPDX-License-Identifier: MIT */
/* check - do the stored plans of this machine still win? (docs/check.md)
 *
 * Entries are taken least recently checked first; each is measured again beside its rivals in fresh
 * processes, and judged (judge_rivals.h). The result is one JSON record per entry, the `check`
 * record of the journal; everything printed is made from those records (tuner/cli/report/report.h).
 * Only record.c looks into JSON.
 */
#ifndef DT_TUNER_CHECK_CHECK_H
#define DT_TUNER_CHECK_CHECK_H

#include "db/journal.h"
#include "db/stored.h"
#include "tuner/check/judge_rivals.h"
#include "tuner/machine/machine.h"
#include "tuner/measure/measure.h"

#define DT_CHECK_ROWS      (DT_CHECK_RIVALS + 1) /* with an --against that is no plan here */
#define DT_KIND_successors json_t *              /* [check_successor] */
extern const struct dt_kind dt_kind_successors;

#include "base/record_structs.h"

#include "tuner/check/check.def"

/* The parts of an entry's key and hard fingerprint that a check reads. Texts are borrowed from
 * them, "" where they have none. */
struct dt_check_key {
    const char *worker, *workload;   /* a foreign worker's */
    const json_t *job;               /* the job in that worker's terms; NULL: none */
    bool served, hidden, work_lossy; /* that job's: by a server; --private; with lossy settings */
    const char *model, *network, *dtype; /* the built-in network's, and the hash of its shape */
    int64_t height, width;               /* the latent's */
    bool lossy;
    struct dt_ints batches;
    int64_t devices, max_bytes, max_latency_ns, reserve_bytes;
    const char *objective;
    const char *engine;
    int64_t gpus, hosts, slots; /* 0: cores; one host */
};

/* An entry of the store that is to be checked. */
struct dt_check_item {
    json_t *stored;               /* owned */
    struct dt_stored_entry entry; /* its fields, borrowed from it, as the key */
    struct dt_check_key key;
    int64_t ranks; /* its plan's */
    char title[200];
    int64_t checked_ns; /* wall time of the last check; 0: never */
};

struct dt_check_list {
    struct dt_check_item *items; /* owned, least recently checked first */
    int count;
};

/* Request of a run of checks. Texts are borrowed. */
struct dt_check_opts {
    /* parts that entries lack: the worker, the back end, the network of a file */
    struct dt_job job;
    const char *
        model, /* --model, an engine's or for the line that tunes an entry again; NULL: not given */
        *db;   /* --db for that line; NULL: not given */
    const char *pipeline;         /* entries of this one; NULL: of any, or none */
    const char *directory;        /* the store's */
    const char *filter, *against; /* NULL: all entries; no such plan */
    double threshold;             /* share by which a rival must be faster to win */
    double max_gain_loss;         /* share; 0: no limit */
    double resolution;            /* largest noise floor of a win or a tie; 0: no limit */
    bool until_decided;           /* up to DT_SETS_MOST sets for each entry, while there is time */
    int64_t budget_ns;
    bool ties_fail, update;
    /* (optional) Called before entry `at` (from 0) of `count`. */
    void (*progress)(void *context, const char *title, int at, int count);
    void *context;
};

/* The entries of this machine, measured on its cores or its GPUs, that match the filter, the
 * engine, its model and pipeline. */
dt_status dt_check_select(const struct dt_check_opts *opts,
                          struct dt_check_list *list) DT_MUST_CHECK;
void dt_check_list_fini(struct dt_check_list *list);

/* "dit-s/2, 256 x 256 px, float32, batch 1, 4 devices, latency" from a key; safe to print. */
void dt_check_title(const json_t *key, char title[], size_t room);
/* The title or the key's text contains the filter (NULL: all), ignoring case. */
bool dt_check_passes(const char *filter, const char *title, const json_t *key);

/* The worker of an engine or of a user's own that tuned a stored plan, so that a check of a
 * store needs no --engine. */
#define DT_TUNED_WORDS 64

struct dt_tuned_by {
    char program[DT_PROGRAM_ROOM];
    /* the value of --engine; NULL: a program of the user's */
    const char *engine;
    const char *given;                         /* that program; NULL: --command */
    const char *arguments[DT_TUNED_WORDS + 1]; /* after --, NULL-ended */
    json_t *record; /* owned; texts are borrowed from it; NULL: it is not known */
};

/* A check's change of its entry in the store. */
enum dt_check_change {
    DT_CHECK_KEPT,
    DT_CHECK_REPLACED, /* --update: another plan took the place of one that lost */
    DT_CHECK_STAMPED,  /* --update: it did not lose */
    DT_CHECK_MARKED,   /* without: it lost */
    DT_CHECK_CLEARED   /* without: it lost before, and no longer does */
};

struct dt_check_written {
    enum dt_check_change change;
    json_t *best;   /* the updated entry, for the journal; owned */
    char note[400]; /* why nothing was written; "": nothing to say */
};

/* State of one entry's check. */
struct dt_check_entry {
    const struct dt_check_opts *opts;
    const struct dt_check_item *item;
    struct dt_job job;           /* made from the key */
    struct dt_tuned_by tuned_by; /* where no --engine or --worker was given */
    struct dt_target *target;
    enum dt_check_verdict verdict;
    char reason[600];  /* "" for wins and ties */
    char against[400]; /* why --against is not a rival; "": it is, or was not given */
    struct dt_entrant entrants[DT_ENTRANTS]; /* the tuned plan, its rivals, its twin */
    int count;
    bool twin;
    double values[DT_ENTRANTS][DT_ROUNDS_MOST]; /* values of the objective */
    struct dt_check_judge judge;
    struct dt_sets sets; /* sets of fresh processes made so far */
    int64_t seed;        /* seed of the order of the visits */
    bool fell;           /* the tuned plan failed where others ran */
    bool other;          /* the command, or the worker, that was named is that of other entries */
    json_t *today;       /* the machine as it is: soft and info of the fingerprint; owned */
    struct dt_check_entry *left; /* where it failed: comparison of the others; owned */
    struct dt_check_written written;
};

/* Makes the target of the entry's key and adds the plans. When it cannot, it sets
 * verdict and reason (DT_OK). */
dt_status dt_check_open(struct dt_check_entry *entry) DT_MUST_CHECK;
void dt_check_close(struct dt_check_entry *entry);

/* Estimated time of an opened entry, by the stored step times: of the fewest and of the most sets
 * of fresh processes. Loads of more than half a second come in addition. */
struct dt_check_span {
    int64_t least_ns, most_ns;
};
struct dt_check_span dt_check_span(const struct dt_check_entry *entry);

/* ---- arithmetic of the time: no clock */

/* Estimated time where no session has measured it: of plans with these steps in `sets` sets:
 * starts, and visits in the usual number of rounds. */
int64_t dt_check_estimate_ns(const double step_seconds[], int n, int sets);

/* Time limit of the next of `entries`: its even share of the remaining time, or the time of a
 * verdict LOSES (6 sets) if that is more, but at most half of the remaining time, so that one
 * slow entry does not take the time of many. 0: not even the first look fits. The first of a run,
 * the least recently checked, may use all of it, or it might never be checked; the only one does
 * also where its estimate is longer. least_ns, lose_ns: estimates of DT_SETS_LEAST sets, and of
 * those that LOSES needs. */
int64_t dt_check_share_ns(int64_t left_ns, int entries, bool first, int64_t least_ns,
                          int64_t lose_ns);

/* ---- the run */

/* A record as it was written, and its fields, borrowed from it. */
struct dt_checked {
    json_t *json; /* owned */
    struct dt_check_record record;
    bool other; /* an entry of another command, or worker, than the one that was named */
};

/* The whole run: records in the order in which they were made. */
struct dt_check_run {
    const struct dt_check_opts *opts;
    struct dt_journal *journal;
    int comparisons;            /* planned comparisons, for the false-alarm rate of LOSES */
    struct dt_checked *records; /* owned */
    int count;
    int counts[DT_CHECK_UNKNOWN + 1];
    int others;    /* entries of other commands, or workers, that have no records */
    int lost_gain; /* entries whose gain fell by more than --max-gain-loss */
    bool interrupted;
    struct dt_error failed; /* error of the store or the journal: the rest is not checked */
};
/* The records hold the results so far, for any return value. */
dt_status dt_check_run(struct dt_check_run *run) DT_MUST_CHECK;
void dt_check_run_fini(struct dt_check_run *run);

#endif
