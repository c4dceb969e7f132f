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

struct dt_timing {
    char kind;     /* 'w'all, 'r'egex, 'j'son */
    regex_t regex; /* of 'r' */
    char *path;    /* of 'j': "metrics.steps[2]", owned */
    double unit_ns;
};

/* What a command printed, and how long it took from start to end. */
struct dt_child_output {
    struct dt_text out, err; /* standard output and error, owned */
    int64_t wall_ns;
    int64_t peak_bytes; /* of the largest of its processes */
};

/* how: "wall" (from start to end), "regex:EXPRESSION" (POSIX extended; the number is its first group), "json:PATH" (of the last
 * line of output that is a JSON object, or else of the whole output). unit: "s", "ms", "us", "ns". DT_EUSAGE when either is
 * neither of these. */
dt_status dt_timing_init(struct dt_timing *timing, const char *how, const char *unit) DT_MUST_CHECK;
void dt_timing_fini(struct dt_timing *timing);

/* The time; of several (a regex that matches often, a JSON list) the median. DT_FAILED, with the last lines of the output, when
 * there is none or it is not above zero. */
dt_status dt_timing_take(const struct dt_timing *timing, struct dt_child_output *output,
                         int64_t *ns) DT_MUST_CHECK;

/* The last lines of the output, those of standard error if it has any, cut to the size of out. */
void dt_timing_tail(struct dt_child_output *output, char out[], size_t room);

#endif
