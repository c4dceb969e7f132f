/* SPDX-License-Identifier: MIT */
/* run - one run of a plan: --prepare, the command, --cleanup, and again where it failed
 *
 *     dt_runs_init(&runs, &options, space);
 *     dt_runs_fill(&runs, space, &point, &plan);          -- the words of a plan
 *     dt_runs_make(&runs, &plan, wire, &tally, &times);   -- a run, to the end of all that it started
 *     dt_times_fini(&times);
 *     dt_run_plan_fini(&plan);
 *     dt_runs_fini(&runs);
 */
#ifndef DT_WORKER_COMMAND_RUN_H
#define DT_WORKER_COMMAND_RUN_H

#include "worker/command/child.h"
#include "worker/command/words.h"

struct dt_verify_rules {
    char kind;        /* 't'ext, 'n'py, 'c'ommand; 0: nothing is compared */
    double tolerance; /* for 'n' */
    struct dt_command_line command;
};

/* In the order in which they run. */
enum dt_run_line { DT_RUN_PREPARE, DT_RUN_COMMAND, DT_RUN_CLEANUP, DT_RUN_LINES };

#define DT_METRICS_MOST 8

/* Options as they are given; NULL: not given. */
struct dt_run_given {
    const char *lines[DT_RUN_LINES]; /* --prepare, --command, --cleanup */
    const char *time, *unit, *timeout, *retries, *accept, *leftovers;
    const char *output, *compare, *tolerance; /* --verify-output .. */
    const char *objective;                    /* "max:NAME" */
    const char *metrics[DT_METRICS_MOST + 1]; /* "NAME=HOW", .., NULL-ended like the next */
    const char *limits[DT_METRICS_MOST + 1];  /* "NAME <= VALUE" */
    bool shell;
    bool served; /* the command is that of --server */
};

/* A number that a run prints or writes. */
struct dt_metric {
    char name[40];
    const char *how; /* borrowed */
    struct dt_timing timing;
};

/* The median over a plan's runs is at most, or at least, the value. */
struct dt_limit {
    const struct dt_metric *metric;
    bool least;
    double value;
};

struct dt_run_setup {
    const struct dt_space *space;
    struct dt_command_line lines[DT_RUN_LINES]; /* without words: not given */
    struct dt_timing timing;                   /* from --time, or from the metric to be maximised */
    const char *time;                          /* the text it was made from; borrowed */
    struct dt_metric metrics[DT_METRICS_MOST]; /* without a name: none */
    struct dt_limit limits[DT_METRICS_MOST];   /* limit_count of them */
    int limit_count;
    int64_t timeout_ns;
    /* how often a run is repeated whose command exits with a code that is not accepted */
    int retries;
    bool leave_nothing;            /* any process that is left behind fails the run */
    bool accepted[256];            /* exit codes */
    struct dt_command_line output; /* one word: the file that is verified; none: nothing is */
    struct dt_verify_rules verify;
    char reference[4096]; /* copy of the default plan's file; "": there is none yet */
};

struct dt_run_plan {
    char **argv[DT_RUN_LINES]; /* owned; NULL: none */
    char **output;             /* one word; NULL: nothing is verified */
    struct dt_point point;
    bool is_default;
    int ranks; /* value of the parameter with that role; 1 where there is none */
    int made;  /* runs so far */
    double *values[DT_METRICS_MOST]; /* for each limit one a run, value_count of them, owned */
    int value_count;
};

/* Sums over several runs, for the answer. */
#define DT_TALLY_MOST 8
struct dt_tally {
    int runs, count;
    struct {
        char say[200]; /* the runs' fate: "failed and were repeated" */
        int runs;
    } said[DT_TALLY_MOST];
};
void dt_tally_add(struct dt_tally *tally, const char *say);

/* "90" or "90s", "500ms", "10m", "1h" of an option, in nanoseconds; DT_EUSAGE: another
 * text, or not above zero. */
dt_status dt_run_time(const char *option, const char *text, int64_t *ns) DT_MUST_CHECK;

/* The options' faults: DT_EUSAGE. */
dt_status dt_runs_init(struct dt_run_setup *runs, const struct dt_run_given *options,
                       const struct dt_space *space) DT_MUST_CHECK;
void dt_runs_fini(struct dt_run_setup *runs);

dt_status dt_runs_fill(const struct dt_run_setup *runs, const struct dt_space *space,
                       const struct dt_point *point, struct dt_run_plan *plan) DT_MUST_CHECK;
void dt_run_plan_fini(struct dt_run_plan *plan);

/* The limits in one spelling, as in "p99 <= 2 (regex:p99 ([0-9.]+))"; nothing: there are none. */
void dt_runs_limits_text(const struct dt_run_setup *runs, struct dt_text *out);

/* DT_WAIT: the plan's runs so far break a limit, with the sentence. */
dt_status dt_runs_limits(const struct dt_run_setup *runs, struct dt_run_plan *plan) DT_MUST_CHECK;

/* A run that fails is repeated as often as asked; *times: of the one that did not, owned by the
 * caller, empty after a failure. When this returns nothing of the run is there: no process, and no
 * memory of a GPU, unless *tally says so. Failures as those of child.h; the sentence begins with
 * the number of the run. */
dt_status dt_runs_make(const struct dt_run_setup *runs, struct dt_run_plan *plan,
                       struct dt_wire *wire, struct dt_tally *tally,
                       struct dt_times *times) DT_MUST_CHECK;

/* A run whose output is compared with that of the default plan, which runs first if it has not run
 * in this process. *error: relative;
 * NAN: not known. DT_DONE: the output is wrong, with the sentence. */
dt_status dt_runs_verified(struct dt_run_setup *runs, struct dt_run_plan *plan,
                           struct dt_wire *wire, struct dt_tally *tally, struct dt_times *times,
                           double *error) DT_MUST_CHECK;

#endif
