/* SPDX-License-Identifier: MIT */
/* A journal has both clocks. The monotonic one does not count time in which the machine was suspended or the session stopped, but
 * it begins anew with the machine: a process that was frozen and restored elsewhere sees it jump. */
#include "base/clock.h"
#include "tuner/session/history.h"

#define STEP_MOST (7 * 24 * 3600 * DT_NS_PER_SECOND) /* between two records */

static int64_t at(const json_t *record, const char *key)
{
    return json_integer_value(json_object_get(record, key));
}

static bool is_step(int64_t ns)
{
    return ns >= 0 && ns <= STEP_MOST;
}

void dt_spent_add(struct dt_spent *spent, const json_t *record)
{
    int64_t mono_ns = at(record, "t_mono_ns"), wall_ns = at(record, "t_wall_ns");
    int64_t by_mono = (int64_t)((uint64_t)mono_ns - (uint64_t)spent->mono_ns);
    int64_t by_wall = (int64_t)((uint64_t)wall_ns - (uint64_t)spent->wall_ns);
    if (spent->any)
        spent->ns += is_step(by_mono) ? by_mono : is_step(by_wall) ? by_wall : 0;
    spent->mono_ns = mono_ns;
    spent->wall_ns = wall_ns;
    spent->any = true;
}
