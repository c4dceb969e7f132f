/* SPDX-License-Identifier: MIT */
/* timing - the time of a step, or another number, from what a command prints or writes
 *
 *     dt_timing_init(&timing, "regex:step took ([0-9.]+)", "ms", NULL);
 *     dt_timing_take(&timing, &output, &ns);
 */
#ifndef DT_WORKER_COMMAND_TIMING_H
#define DT_WORKER_COMMAND_TIMING_H

#include "base/text.h"

#include <regex.h>
#include <stdint.h>

struct dt_timing_unit {
    double ns;
    bool rate; /* a number of that unit is how many in ns, not how many ns */
};

struct dt_timing {
    char kind;                        /* 'w'all, 'r'egex, 'j'son, 't'qdm */
    regex_t regex;                    /* for 'r', */
    regex_t part_before, part_behind; /* and what makes a number a part of something else */
    char *path; /* for 'j': "metrics.steps[2]", for 't': the bar's name or NULL; owned */
    /* for 'j': the file that the command writes, with placeholders, owned; NULL: its output */
    char *file;
    /* a plain number, to be maximised, and not a time: its name, borrowed; NULL: a time */
    const char *metric;
    char option[64]; /* that it is of, for sentences: "--time" */
    struct dt_timing_unit unit;
    const char *unit_text; /* borrowed */
    bool unit_given;       /* by the user; otherwise it is the default, */
    bool unit_named;       /* which the end of the JSON path may confirm */
};

/* A command's output, and its time from start to end. */
struct dt_child_output {
    struct dt_text out, err;    /* standard output and error, owned */
    const struct dt_text *file; /* the text of dt_timing.file, borrowed; NULL: none is read */
    bool cut;                   /* they were too long: only the end is there */
    int64_t wall_ns;
    int64_t peak_bytes; /* the largest process's */
    bool exited_badly;  /* with a code that is not accepted, or by a signal */
    int ranks;          /* processes that may print their steps side by side; 0: one */
    int from[2];        /* where the two are read while anything has them open; -1: ended */
};

/* The times of a run: of each step where the command prints them. */
struct dt_times {
    int64_t *ns; /* [count], owned */
    int count;
    int64_t wall_ns, peak_bytes; /* the run's */
    char read
        [200]; /* where the first one was read: "time read: 410 ms from '410.000 ms'"; "": nowhere */
    bool too_long; /* together longer than the run, though their unit is known: simulated? */
};
void dt_times_fini(struct dt_times *times);

/* how: "wall" (from start to end), "regex:EXPRESSION" (POSIX extended; the number is its first
 * group), "json:PATH" (of the last object or list of the output), "json:FILE:PATH" (of that in a
 * file), "tqdm" or "tqdm:NAME" (bars). unit: "s" (also NULL), "ms", "us", "ns", "min", "h", or a
 * rate such as "it/s"; a second group that is a unit has precedence. metric: the name of a plain
 * number, which is read by an expression or from JSON. DT_EUSAGE when either is none of these. */
dt_status dt_timing_init(struct dt_timing *timing, const char *how, const char *unit,
                         const char *metric) DT_MUST_CHECK;
void dt_timing_fini(struct dt_timing *timing);

/* The times, in their order: of each match of a regex, within one line (lines end with a
 * line feed or a carriage return), or of each item of a JSON list. tick is called a few
 * times a second. DT_FAILED, with the last lines of the output, when there is none, one is
 * not above zero, or they are together longer than the run and nothing but the default says
 * their unit; the errors of tick. */
dt_status dt_timing_take(const struct dt_timing *timing, struct dt_child_output *output,
                         dt_status (*tick)(void *context), void *context,
                         struct dt_times *times) DT_MUST_CHECK;

/* The median of a metric's numbers. DT_FAILED: there is none, or one is not
 * finite; the errors of tick. */
dt_status dt_timing_median(const struct dt_timing *timing, struct dt_child_output *output,
                           dt_status (*tick)(void *context), void *context,
                           double *median) DT_MUST_CHECK;

/* The median of values, which it sorts; count above 0. */
double dt_timing_middle(double values[], size_t count);

/* The last lines of the output, those of standard error if it has any, cut to the size of out. */
void dt_timing_tail(struct dt_child_output *output, char out[], size_t room);

#endif
