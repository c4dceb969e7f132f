/* SPDX-License-Identifier: MIT */
#include "tuner/runner/load.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define GRAIN 0.05 /* core seconds by which ticks may be off at both ends of a window */

static double time_before(const struct dt_load_reading *before,
                          const struct dt_load_program *program)
{
    for (int i = 0; i < before->count; i++)
        if (before->programs[i].pid == program->pid &&
            strcmp(before->programs[i].name, program->name) == 0)
            return before->programs[i].seconds;
    return 0;
}

static void name_busiest(const struct dt_load_reading *before, const struct dt_load_reading *after,
                         struct dt_load *load)
{
    double most = 0;
    for (int i = 0; i < after->count; i++) {
        double seconds = after->programs[i].seconds - time_before(before, &after->programs[i]);
        if (seconds > most) {
            most = seconds;
            snprintf(load->name, sizeof load->name, "%s", after->programs[i].name);
        }
    }
}

struct dt_load dt_load_between(const struct dt_load_reading *before,
                               const struct dt_load_reading *after)
{
    struct dt_load load = {.ours = NAN, .others = NAN};
    double seconds = after->at - before->at;
    if (!before->known || !after->known || !(seconds > 0))
        return load;
    load.ours = (after->ours - before->ours) / seconds;
    double others = after->busy - before->busy - (after->ours - before->ours) +
                    (after->stolen - before->stolen);
    load.others = fmax(0, (others - GRAIN) / seconds);
    if (load.others > 0)
        name_busiest(before, after, &load);
    return load;
}
