/* SPDX-License-Identifier: MIT */
/* timing - the time of a step, from what a command prints
 *
 *     dt_timing_init(&timing, "regex:step took ([0-9.]+)", "ms");
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
    char kind;     /* 'w'all, 'r'egex, 'j'son */
    regex_t regex; /* of 'r' */
    char *path;    /* of 'j': "metrics.steps[2]", owned */
    struct dt_timing_unit unit;
    const char *unit_text; /* borrowed */
};

/* What a command printed, and how long it took from start to end. */
struct dt_child_output {
    struct dt_text out, err; /* standard output and error, owned */
    bool cut;                /* they were too long: only the end is there */
    int64_t wall_ns;
    int64_t peak_bytes; /* of the largest of its processes */
    bool exited_badly;  /* with a code that is not accepted, or by a signal */
    int from[2];        /* where the two are read while anything has them open; -1: ended */
};

/* The times of a run: of each step where the command prints them. */
struct dt_times {
    int64_t *ns; /* [count], owned */
    int count;
    int64_t wall_ns, peak_bytes; /* of the run */
};
void dt_times_fini(struct dt_times *times);

#define DT_TIMES_MOST 512 /* of a run: of more every second, third.. is taken */

/* how: "wall" (from start to end), "regex:EXPRESSION" (POSIX extended; the number is its first group), "json:PATH" (of the last
 * line of output that is a JSON object, or else of the whole output). unit: "s", "ms", "us", "ns", or a rate such as "it/s"; a second group that is
 * a unit has precedence. DT_EUSAGE when either is
 * neither of these. */
dt_status dt_timing_init(struct dt_timing *timing, const char *how, const char *unit) DT_MUST_CHECK;
void dt_timing_fini(struct dt_timing *timing);

/* The times, in their order: of each match of a regex, within one line (lines end with a line feed or a carriage return), or of each item of a
 * JSON list. tick is called a few times a second. DT_FAILED, with the last lines of the output, when there is none or one is not above
 * zero; the errors of tick. */
dt_status dt_timing_take(const struct dt_timing *timing, struct dt_child_output *output,
                         dt_status (*tick)(void *context), void *context,
                         struct dt_times *times) DT_MUST_CHECK;

/* The last lines of the output, those of standard error if it has any, cut to the size of out. */
void dt_timing_tail(struct dt_child_output *output, char out[], size_t room);

#endif
