/* SPDX-License-Identifier: MIT */
/* bars - the time of a step from a progress bar of tqdm */
#ifndef DT_WORKER_COMMAND_BARS_H
#define DT_WORKER_COMMAND_BARS_H

#include "base/text.h"

struct dt_bar_time {
    double seconds; /* of a step, without the first steps; NAN: the text has no complete bar */
    char from[80];  /* "steps 2 to 28 of 28/28 [00:31<00:00]" */
};

/* Of the last complete bar, or of the last whose description begins with name (NULL: any). tick is called a few times a second.
 * DT_FAILED: it was drawn once, or the text is too coarse to tell; the errors of tick. */
dt_status dt_bars_read(const struct dt_text *text, const char *name,
                       dt_status (*tick)(void *context), void *context,
                       struct dt_bar_time *out) DT_MUST_CHECK;

#endif
