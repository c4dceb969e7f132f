/* SPDX-License-Identifier: MIT */
/* Groups on several hosts: where their ranks are, whether the hosts are alike, and which of them are left. */
#include "tuner/measure/rig_int.h"

#include "base/clock.h"
#include "stats/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_NS (20 * DT_NS_PER_SECOND) /* for a host to start one rank, also over a slow link */
#define COUNT    "DITTUNE_HOSTS="
/* Times, and bytes: a slow link is judged by the middle size, as the large one would take too long. */
enum { LINK_TIMES = 5, LINK_SMALL = 64, LINK_MIDDLE = 1 << 17, LINK_LARGE = 1 << 20 };

/* The hosts that the plans of the group are spread over, a parameter that is set in its environment (space/dit/dit.c). */
static int hosts_of(const struct dt_launch *launch)
{
    for (int i = 0; launch->environment != NULL && launch->environment[i] != NULL; i++)
        if (strncmp(launch->environment[i], COUNT, strlen(COUNT)) == 0)
            return atoi(launch->environment[i] + strlen(COUNT));
    return 1;
}

dt_status dt_rig_hosts_place(const struct dt_rig *rig, struct dt_launch *launch,
                             struct dt_failure *failure)
{
    const struct dt_hosts *hosts = &rig->hosts.left;
    if (rig->target->hardware.hosts.count == 0)
        return DT_OK;
    int slots = dt_hosts_least_slots(hosts);
    int used = rig->target->foreign ? (launch->ranks + slots - 1) / slots : hosts_of(launch);
    if (used > hosts->count) {
        *failure = (struct dt_failure){.outcome = DT_TRIAL_INFEASIBLE};
        snprintf(failure->cause, sizeof failure->cause,
                 "the plan needs %d hosts, and %d of %d are left: the others did not answer", used,
                 hosts->count, rig->target->hardware.hosts.count);
        return dt_fail(DT_FAILED, "%s", failure->cause);
    }
    launch->hosts = hosts;
    launch->per_host = rig->target->foreign ? slots : (launch->ranks + used - 1) / used;
    launch->per_host = launch->per_host < launch->ranks ? launch->per_host : launch->ranks;
    launch->own_ranks = 0;
    launch->rank_program = rig->target->worker.rank_program;
    launch->oversubscribed = launch->per_host > dt_hosts_least_slots(hosts);
    return DT_OK;
}

static const char *text_of(const json_t *rank, const char *name)
{
    const char *text = json_string_value(json_object_get(rank, name));
    return text != NULL ? text : "";
}

static dt_status compare(const struct dt_rig *rig, const json_t *first, const json_t *other)
{
    const char *a = text_of(first, "host"), *b = text_of(other, "host");
    const char *one = text_of(first, "version"), *two = text_of(other, "version");
    const char *here = text_of(first, "processor"), *there = text_of(other, "processor");
    if (strcmp(one, two) != 0)
        return dt_fail(DT_EUSAGE,
                       "host %.60s has dittune %.40s, host %.60s has %.40s: install the same "
                       "version on all hosts",
                       a, one, b, two);
    if (strcmp(here, there) != 0 && !rig->target->hardware.mixed_hosts)
        return dt_fail(DT_EUSAGE,
                       "the hosts differ: %.60s has %.60s, %.60s has %.60s; leave one out, or give "
                       "--mixed-hosts",
                       a, here, b, there);
    return DT_OK;
}

dt_status dt_rig_hosts_check(const struct dt_rig *rig, const struct dt_group *group)
{
    const json_t *ranks = json_object_get(dt_group_ready(group), "ranks");
    const json_t *first = json_array_get(ranks, 0);
    for (size_t i = 1; rig->hosts.left.count > 1 && i < json_array_size(ranks); i++)
        DT_TRY(compare(rig, first, json_array_get(ranks, i)));
    return DT_OK;
}

/* The host starts a rank, and says so in time; otherwise *failure says what happened. */
static dt_status answers(const struct dt_rig *rig, const struct dt_host *host, bool *answered,
                         struct dt_failure *failure)
{
    const struct dt_target *target = rig->target;
    struct dt_hosts alone = {.at = {*host}, .count = 1, .launcher = rig->hosts.left.launcher};
    const struct dt_launch launch = {.program = target->worker.program,
                                     .arguments = target->worker.arguments,
                                     .by = target->worker.launcher,
                                     .rank_program = target->worker.rank_program,
                                     .ranks = 1,
                                     .per_host = 1,
                                     .hosts = &alone,
                                     .unrecorded = true};
    struct dt_group *group = NULL;
    dt_status status =
        dt_group_start(&launch, target->workload, dt_clock_ns() + PROBE_NS, &group, failure);
    *answered = status == DT_OK;
    dt_group_stop(group, DT_NS_PER_SECOND);
    return status == DT_FAILED ? DT_OK : status;
}

dt_status dt_rig_hosts_met(struct dt_rig *rig, const struct dt_launch *launch, dt_status started)
{
    const struct dt_hosts *hosts = &rig->hosts.left;
    struct dt_failure failure;
    bool spans = launch->ranks > launch->per_host || hosts->count == 1;
    rig->hosts.met = rig->hosts.met || (started == DT_OK && spans);
    for (int i = 0; started == DT_FAILED && !rig->hosts.met && i < hosts->count; i++) {
        bool answered;
        DT_TRY(answers(rig, &hosts->at[i], &answered, &failure));
        if (!answered)
            return dt_fail(
                DT_EUSAGE,
                "host %s does not start %s, which every host must have at that place: %s",
                hosts->at[i].name, rig->target->worker.program, failure.cause);
    }
    return started; /* the group's own failure is in the caller's hands */
}

dt_status dt_rig_hosts_look(struct dt_rig *rig, char lost[], size_t room)
{
    struct dt_rig_hosts *hosts = &rig->hosts;
    struct dt_failure failure;
    lost[0] = '\0';
    for (int i = 0; i < hosts->left.count && hosts->left.count > 1; i++) {
        bool answered;
        DT_TRY(answers(rig, &hosts->left.at[i], &answered, &failure));
        hosts->losses[i] += !answered;
        if (hosts->losses[i] < DT_HOST_LOSSES)
            continue;
        snprintf(lost, room, "%s", hosts->left.at[i].name);
        memmove(&hosts->losses[i], &hosts->losses[i + 1],
                (size_t)(DT_HOSTS_MOST - i - 1) * sizeof hosts->losses[0]);
        (void)dt_hosts_drop(&hosts->left, lost);
        i--;
    }
    return DT_OK;
}

static double median_of(const json_t *times)
{
    double seconds[LINK_TIMES] = {0};
    int n = (int)json_array_size(times);
    for (int i = 0; i < n && i < LINK_TIMES; i++)
        seconds[i] = (double)json_integer_value(json_array_get(times, (size_t)i)) * 1e-9;
    return dt_stats_median(seconds, n < LINK_TIMES ? n : LINK_TIMES);
}

static dt_status send_each_way(struct dt_group *group, int bytes, int times, int64_t deadline_ns,
                               double *seconds)
{
    struct dt_failure failure;
    json_t *answer = NULL;
    json_t *request = json_pack("{s:s, s:s, s:i, s:i, s:[i], s:i}", "op", "exchange", "kind",
                                "shift", "group", 2, "stride", 1, "bytes", bytes, "n", times);
    dt_status status = dt_group_call(group, request, "exchanged", deadline_ns, &answer, &failure);
    *seconds = status == DT_OK ? median_of(json_array_get(json_object_get(answer, "ns"), 0)) : 0;
    json_decref(request);
    json_decref(answer);
    return status;
}

/* The large size only where it takes at most half of the time left. */
static dt_status measure_sizes(struct dt_group *group, int64_t deadline_ns,
                               struct dt_host_link *link)
{
    double small, middle, large;
    DT_TRY(send_each_way(group, LINK_SMALL, LINK_TIMES, deadline_ns, &small));
    DT_TRY(send_each_way(group, LINK_MIDDLE, LINK_TIMES / 2, deadline_ns, &middle));
    link->known = small > 0 && middle > small;
    link->seconds = small;
    link->bytes_per_second = link->known ? (LINK_MIDDLE - LINK_SMALL) / (middle - small) : NAN;
    double left = (double)(deadline_ns - dt_clock_ns()) * 1e-9;
    if (middle * ((double)LINK_LARGE / LINK_MIDDLE) * LINK_TIMES > left / 2)
        return DT_OK;
    DT_TRY(send_each_way(group, LINK_LARGE, LINK_TIMES, deadline_ns, &large));
    link->known = small > 0 && large > small;
    link->bytes_per_second = link->known ? (LINK_LARGE - LINK_SMALL) / (large - small) : NAN;
    return DT_OK;
}

/* Two ranks, with per_host of them on a host, send to each other. */
static dt_status measure_link(struct dt_rig *rig, int per_host, int64_t deadline_ns,
                              struct dt_host_link *link)
{
    const struct dt_target *target = rig->target;
    const struct dt_launch launch = {.program = target->worker.program,
                                     .arguments = target->worker.arguments,
                                     .by = target->worker.launcher,
                                     .rank_program = target->worker.rank_program,
                                     .ranks = 2,
                                     .per_host = per_host,
                                     .oversubscribed =
                                         per_host > dt_hosts_least_slots(&rig->hosts.left),
                                     .hosts = &rig->hosts.left,
                                     .unrecorded = true};
    struct dt_group *group = NULL;
    struct dt_failure failure;
    dt_status status = dt_group_start(&launch, target->workload, deadline_ns, &group, &failure);
    if (status == DT_OK)
        status = measure_sizes(group, deadline_ns, link);
    dt_group_stop(group, DT_NS_PER_SECOND);
    return status == DT_FAILED ? DT_OK : status;
}

dt_status dt_rig_hosts_links(struct dt_rig *rig, int64_t deadline_ns, struct dt_host_link *inside,
                             struct dt_host_link *across)
{
    *inside = *across = (struct dt_host_link){.known = false};
    if (rig->hosts.left.count < 2)
        return DT_OK;
    DT_TRY(measure_link(rig, 1, deadline_ns, across));
    return dt_hosts_least_slots(&rig->hosts.left) > 1 ? measure_link(rig, 2, deadline_ns, inside)
                                                      : DT_OK;
}
