/* SPDX-License-Identifier: MIT */
#include "tuner/runner/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRAIN       0.05 /* core seconds by which ticks may be off at both ends of a window */
#define NAMED_SHARE 0.5  /* share of others' time from which a program is named */

static double time_before(const struct dt_load_reading *before,
                          const struct dt_load_program *program)
{
    for (int i = 0; i < before->count; i++)
        if (before->programs[i].pid == program->pid &&
            strcmp(before->programs[i].name, program->name) == 0)
            return before->programs[i].seconds;
    return 0;
}

/* Seconds of all programs of that name. */
static double time_of(const struct dt_load_reading *before, const struct dt_load_reading *after,
                      const char *name)
{
    double seconds = 0;
    for (int i = 0; i < after->count; i++)
        if (strcmp(after->programs[i].name, name) == 0)
            seconds += after->programs[i].seconds - time_before(before, &after->programs[i]);
    return seconds;
}

/* One that explains half of the time at least: others may be hidden, or have begun
 * and ended meanwhile. */
static void name_busiest(const struct dt_load_reading *before, const struct dt_load_reading *after,
                         double others, struct dt_load *load)
{
    double most = NAMED_SHARE * others;
    for (int i = 0; i < after->count; i++) {
        double seconds = time_of(before, after, after->programs[i].name);
        if (seconds >= most && seconds > 0) {
            most = seconds;
            snprintf(load->name, sizeof load->name, "%s", after->programs[i].name);
        }
    }
}

struct dt_load dt_load_between(const struct dt_load_reading *before,
                               const struct dt_load_reading *after)
{
    struct dt_load load = {.ours = NAN, .others = NAN, .stolen = NAN, .stalled = NAN};
    double seconds = after->at - before->at;
    if (!before->known || !after->known || !(seconds > 0))
        return load;
    load.ours = (after->ours - before->ours) / seconds;
    double others = after->busy - before->busy - (after->ours - before->ours) +
                    (after->stolen - before->stolen);
    load.others = fmax(0, (others - GRAIN) / seconds);
    load.stolen = (after->stolen - before->stolen) / seconds;
    load.stalled = (after->waits.some - before->waits.some) / seconds;
    if (load.others > 0)
        name_busiest(before, after, others, &load);
    load.others = fmax(load.others, (after->waits.all - before->waits.all) / seconds);
    return load;
}

bool dt_load_disturbs(double others, double gpus)
{
    return isnan(gpus) ? others > DT_OTHERS_MOST : gpus > 0;
}

bool dt_load_wanted(void)
{
    const char *wish = getenv("DITTUNE_LOAD");
    return wish == NULL || strcmp(wish, "none") != 0;
}
