/* SPDX-License-Identifier: MIT */
/* One group serves all plans of its class. What groups need, and on which hosts their
 * ranks are, comes first; then the groups themselves, the verification of outputs, and the
 * plans that callers hold. */
#include "tuner/measure/rig.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/host.h"
#include "base/proc.h"
#include "base/rng.h"
#include "stats/stats.h"
#include "tuner/machine/machine.h"
#include "tuner/measure/target_int.h"
#include "tuner/runner/load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- classes: which plans share a group, and what groups need: memory, and
 * the time to load one */

/* Lines of an axis that sets several variables, or none of them. */
static void list_variables(const struct dt_axis *axis, int64_t value, struct dt_text *out)
{
    for (const char *name = axis->variable; value != 0 && *name != '\0';) {
        size_t size = strcspn(name, ",");
        dt_text_add(out, "%.*s=%lld\n", (int)size, name, (long long)(value * axis->unit));
        name += size + (name[size] == ',');
    }
}

/* The environment-only parameters, one "NAME=value" a line. With the ranks and replicas they are
 * the class of a point's group. */
static void class_environment(const struct dt_space *space, const struct dt_point *point,
                              struct dt_text *out)
{
    for (int a = 0; a < dt_space_axes(space); a++) {
        const struct dt_axis *axis = dt_space_axis(space, a);
        if (!dt_axis_starts(axis) || !dt_point_has(space, point, a))
            continue;
        const char *name = axis->variable != NULL ? axis->variable : axis->name;
        if (axis->unit > 0 && axis->variable != NULL)
            list_variables(axis, axis->values[point->index[a]], out);
        else {
            dt_text_add(out, "%s=", name);
            dt_axis_plain(axis, axis->values[point->index[a]], out);
            dt_text_add(out, "\n");
        }
    }
}

/* The share of the devices that a replica has. */
static int devices_share(const struct dt_target *target, int replicas)
{
    int share = target->hardware.devices / replicas;
    return share > 1 ? share : 1;
}

/* Plans that the worker switches in place share a group of the most ranks, of which a
 * replica has its share. */
static int class_ranks(const struct dt_target *target, const struct dt_point *point)
{
    int ranks = dt_target_ranks(target, point), replicas = dt_target_replicas(target, point);
    int most = target->worker.switched, share = devices_share(target, replicas);
    most = replicas > 1 && most > share ? share : most;
    return ranks < most ? most : ranks;
}

uint64_t dt_rig_class(const void *target, const struct dt_point *point)
{
    const struct dt_target *mine = target;
    dt_auto_text text = {0};
    dt_text_add(&text, "ranks=%d\n", class_ranks(mine, point));
    if (dt_target_replicas(mine, point) > 1)
        dt_text_add(&text, "replicas=%d\n", dt_target_replicas(mine, point));
    class_environment(mine->space, point, &text);
    return dt_rng_stream(dt_text_at(&text));
}

bool dt_rig_same_group(const struct dt_target *target, const struct dt_point *a,
                       const struct dt_point *b)
{
    return dt_rig_class(target, a) == dt_rig_class(target, b);
}

/* The share of a device's memory, or of all cores': each GPU has one rank of a group, the cores'
 * memory has all of them, of all replicas. */
static double memory_of_group(const struct dt_target *target, int ranks, int64_t peak_bytes)
{
    return (double)peak_bytes * (dt_target_gpus(target) != NULL ? 1 : ranks);
}

/* The axis of a role, its number of values, and 1 where there is none. */
static int role_values(const struct dt_target *target, enum dt_role role, int *axis)
{
    *axis = dt_space_role(target->space, role);
    return *axis >= 0 ? dt_space_axis(target->space, *axis)->count : 1;
}

/* Memory of one group for each rank count of the space, with each count of replicas that fits;
 * *count: how many there are. */
static double memory_of_ranks(const struct dt_rig *rig, int *count)
{
    const struct dt_target *target = rig->target;
    int ranks_axis, replicas_axis;
    int values = role_values(target, DT_ROLE_RANKS, &ranks_axis);
    int most = role_values(target, DT_ROLE_REPLICAS, &replicas_axis);
    struct dt_point point = target->fallback;
    double memory = 0;
    *count = 0;
    for (int k = 0; k < most; k++) {
        bool switched = false;
        if (replicas_axis >= 0)
            point.index[replicas_axis] = (int32_t)k;
        for (int i = 0; i < values; i++) {
            if (ranks_axis >= 0)
                point.index[ranks_axis] = (int32_t)i;
            int ranks = class_ranks(target, &point), replicas = dt_target_replicas(target, &point);
            int all = dt_target_ranks(target, &point) * replicas;
            bool in_place = dt_target_ranks(target, &point) < ranks ||
                            (target->worker.switched > 0 && ranks <= target->worker.switched);
            bool again = in_place && switched;
            if (again || ((target->limited || replicas > 1) && all > target->hardware.devices))
                continue;
            switched = switched || in_place;
            memory += memory_of_group(target, ranks * replicas, rig->peak_bytes);
            (*count)++;
        }
    }
    return memory;
}

struct dt_rig_classes dt_rig_classes(const struct dt_rig *rig)
{
    const struct dt_space *space = rig->target->space;
    double limit = (double)dt_target_memory(rig->target), environments = 1;
    int ranks;
    double memory = memory_of_ranks(rig, &ranks);
    for (int a = 0; a < dt_space_axes(space); a++)
        if (dt_axis_starts(dt_space_axis(space, a)))
            environments *= dt_space_axis(space, a)->count;
    double room = limit > 0 && memory > 0 ? floor(limit * ranks / memory) : DT_RIG_GROUPS;
    return (struct dt_rig_classes){.count = environments * ranks,
                                   .stay = environments * ranks <= DT_RIG_GROUPS &&
                                           (!(limit > 0) || environments * memory <= limit),
                                   .room = (int)fmin(fmax(room, 1), DT_RIG_GROUPS)};
}

/* Seconds of a group's start and first prepare. */
static double first_seconds(const struct dt_rig_costs *costs)
{
    return costs->loads > 0 ? (double)costs->load_ns * 1e-9 / costs->loads : 0;
}

static double start_seconds(const struct dt_rig_costs *costs)
{
    return costs->started > 0 ? (double)costs->start_ns * 1e-9 / costs->started : 0;
}

double dt_rig_prepare_seconds(const struct dt_rig *rig)
{
    const struct dt_rig_costs *costs = &rig->costs;
    return costs->prepared > 0 ? (double)costs->prepare_ns * 1e-9 / costs->prepared
                               : fmax(0, first_seconds(costs) - start_seconds(costs));
}

double dt_rig_load_seconds(const struct dt_rig *rig)
{
    const struct dt_rig_costs *costs = &rig->costs;
    return costs->prepared > 0
               ? fmax(start_seconds(costs), first_seconds(costs) - dt_rig_prepare_seconds(rig))
               : start_seconds(costs);
}

double dt_rig_setup_seconds(const struct dt_rig *rig)
{
    const struct dt_rig_costs *costs = &rig->costs;
    double beyond = dt_rig_load_seconds(rig) - start_seconds(costs);
    return (double)costs->setup_ns * 1e-9 + beyond * (costs->loads - costs->reference_loads);
}

/* ---- hosts: where the ranks of a group are, whether hosts are alike, and which are left */

#define PROBE_NS (20 * DT_NS_PER_SECOND) /* for a host to start one rank, also over a slow link */
#define COUNT    "DITTUNE_HOSTS="
/* Times, and bytes: a slow link is judged by the middle size, as the large one
 * would take too long. */
enum { LINK_TIMES = 5, LINK_SMALL = 64, LINK_MIDDLE = 1 << 17, LINK_LARGE = 1 << 20 };

/* The hosts that the plans of the group are spread over, a parameter that is set in its
 * environment (space/dit/dit.c). */
static int hosts_of(const struct dt_launch *launch)
{
    for (int i = 0; launch->environment != NULL && launch->environment[i] != NULL; i++)
        if (strncmp(launch->environment[i], COUNT, strlen(COUNT)) == 0)
            return atoi(launch->environment[i] + strlen(COUNT));
    return 1;
}

/* Sets where the ranks of a group are started. DT_FAILED: fewer hosts are left than its plans
 * need. */
static dt_status hosts_place(const struct dt_rig *rig, struct dt_launch *launch,
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

/* DT_EUSAGE when the hosts of its ranks differ, and may not. */
static dt_status hosts_check(const struct dt_rig *rig, const struct dt_group *group)
{
    const char *a = dt_group_rank_text(group, 0, "host"),
               *one = dt_group_rank_text(group, 0, "version"),
               *here = dt_group_rank_text(group, 0, "processor");
    for (int i = 1; rig->hosts.left.count > 1 && i < dt_group_ranks(group); i++) {
        const char *b = dt_group_rank_text(group, i, "host"),
                   *two = dt_group_rank_text(group, i, "version"),
                   *there = dt_group_rank_text(group, i, "processor");
        if (strcmp(one, two) != 0)
            return dt_fail(DT_EUSAGE,
                           "host %.60s has dittune %.40s, host %.60s has %.40s: install the same "
                           "version on all hosts",
                           a, one, b, two);
        if (strcmp(here, there) != 0 && !rig->target->hardware.mixed_hosts)
            return dt_fail(
                DT_EUSAGE,
                "the hosts differ: %.60s has %.60s, %.60s has %.60s; leave one out, or give "
                "--mixed-hosts",
                a, here, b, there);
    }
    return DT_OK;
}

/* A few ranks on some hosts, which run no plan. */
static struct dt_launch probe_of(const struct dt_rig *rig, int ranks, int per_host,
                                 const struct dt_hosts *hosts)
{
    const struct dt_target_worker *worker = &rig->target->worker;
    return (struct dt_launch){.program = worker->program,
                              .arguments = worker->arguments,
                              .by = worker->launcher,
                              .rank_program = worker->rank_program,
                              .ranks = ranks,
                              .per_host = per_host,
                              .oversubscribed = per_host > dt_hosts_least_slots(hosts),
                              .hosts = hosts,
                              .unrecorded = true};
}

/* The host starts a rank, and says so in time; otherwise *failure says what happened. */
static dt_status host_answers(const struct dt_rig *rig, const struct dt_host *host, bool *answered,
                              struct dt_failure *failure)
{
    struct dt_hosts alone = {.at = {*host}, .count = 1, .launcher = rig->hosts.left.launcher};
    const struct dt_launch launch = probe_of(rig, 1, 1, &alone);
    struct dt_group *group = NULL;
    dt_status status =
        dt_group_start(&launch, rig->target->workload, dt_clock_ns() + PROBE_NS, &group, failure);
    *answered = status == DT_OK;
    dt_group_stop(group, DT_NS_PER_SECOND);
    return status == DT_FAILED ? DT_OK : status;
}

/* How the start of a group ended. While no group on several hosts (or on the only one) was
 * ready, a failure asks each host: DT_EUSAGE names one that starts no rank. */
static dt_status hosts_met(struct dt_rig *rig, const struct dt_launch *launch, dt_status started)
{
    const struct dt_hosts *hosts = &rig->hosts.left;
    struct dt_failure failure;
    bool spans = launch->ranks > launch->per_host || hosts->count == 1;
    rig->hosts.met = rig->hosts.met || (started == DT_OK && spans);
    for (int i = 0; started == DT_FAILED && !rig->hosts.met && i < hosts->count; i++) {
        bool answered;
        DT_TRY(host_answers(rig, &hosts->at[i], &answered, &failure));
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
        DT_TRY(host_answers(rig, &hosts->left.at[i], &answered, &failure));
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

static dt_status link_send(struct dt_group *group, int64_t bytes, int times, int64_t deadline_ns,
                           double *seconds)
{
    struct dt_failure failure;
    long long ns[LINK_TIMES];
    double each[LINK_TIMES];
    const struct dt_exchange_request request = {
        .kind = "shift", .ranks = 2, .stride = 1, .sizes = 1, .times = times, .bytes = &bytes};
    DT_TRY(dt_group_exchange(group, &request, deadline_ns, ns, &failure));
    for (int i = 0; i < times; i++)
        each[i] = (double)ns[i] * 1e-9;
    *seconds = dt_stats_median(each, times);
    return DT_OK;
}

/* The large size only where it takes at most half of the time left. */
static dt_status link_measure_sizes(struct dt_group *group, int64_t deadline_ns,
                                    struct dt_host_link *link)
{
    double small, middle, large;
    DT_TRY(link_send(group, LINK_SMALL, LINK_TIMES, deadline_ns, &small));
    DT_TRY(link_send(group, LINK_MIDDLE, LINK_TIMES / 2, deadline_ns, &middle));
    link->known = small > 0 && middle > small;
    link->seconds = small;
    link->bytes_per_second = link->known ? (LINK_MIDDLE - LINK_SMALL) / (middle - small) : NAN;
    double left = (double)(deadline_ns - dt_clock_ns()) * 1e-9;
    if (middle * ((double)LINK_LARGE / LINK_MIDDLE) * LINK_TIMES > left / 2)
        return DT_OK;
    DT_TRY(link_send(group, LINK_LARGE, LINK_TIMES, deadline_ns, &large));
    link->known = small > 0 && large > small;
    link->bytes_per_second = link->known ? (LINK_LARGE - LINK_SMALL) / (large - small) : NAN;
    return DT_OK;
}

/* Two ranks, with per_host of them on a host, send to each other. */
static dt_status link_measure(struct dt_rig *rig, int per_host, int64_t deadline_ns,
                              struct dt_host_link *link)
{
    const struct dt_launch launch = probe_of(rig, 2, per_host, &rig->hosts.left);
    struct dt_group *group = NULL;
    struct dt_failure failure;
    dt_status status =
        dt_group_start(&launch, rig->target->workload, deadline_ns, &group, &failure);
    if (status == DT_OK)
        status = link_measure_sizes(group, deadline_ns, link);
    dt_group_stop(group, DT_NS_PER_SECOND);
    return status == DT_FAILED ? DT_OK : status;
}

dt_status dt_rig_hosts_links(struct dt_rig *rig, int64_t deadline_ns, struct dt_host_link *inside,
                             struct dt_host_link *across)
{
    *inside = *across = (struct dt_host_link){.known = false};
    if (rig->hosts.left.count < 2)
        return DT_OK;
    DT_TRY(link_measure(rig, 1, deadline_ns, across));
    return dt_hosts_least_slots(&rig->hosts.left) > 1 ? link_measure(rig, 2, deadline_ns, inside)
                                                      : DT_OK;
}

/* ---- GPUs: what the controller reads of those of a foreign worker, where
 * the worker reports none */

/* NULL: cores, or GPUs that the controller does not find. */
static struct dt_observer *observer_of(struct dt_rig *rig)
{
    const struct dt_backend *gpus = dt_target_gpus(rig->target);
    if (rig->observer == NULL && gpus != NULL)
        rig->observer = dt_observer_new(gpus);
    return rig->observer;
}

/* A run gets telemetry by these two. */
static dt_status observe_begin(struct dt_rig *rig, const struct dt_group *group, int ranks)
{
    struct dt_observer *observer = rig->target->foreign && !rig->reports ? observer_of(rig) : NULL;
    return observer != NULL ? dt_observer_begin(observer, group, ranks) : DT_OK;
}

static dt_status observe_end(struct dt_rig *rig, struct dt_run *run)
{
    struct dt_rank_telemetry *telemetry = NULL;
    int ranks = 0;
    if (rig->observer == NULL || !rig->target->foreign)
        return DT_OK;
    DT_TRY(dt_observer_end(rig->observer, &telemetry, &ranks));
    rig->reports = run->telemetry != NULL;
    if (!rig->reports && ranks == run->ranks)
        run->telemetry = telemetry;
    else
        free(telemetry);
    return DT_OK;
}

/* A prepared plan gets the memory of its GPUs, where the worker reports none. */
static dt_status observe_memory(struct dt_rig *rig, const struct dt_group *group,
                                struct dt_prepared *prepared)
{
    struct dt_observer *observer = rig->target->foreign ? observer_of(rig) : NULL;
    struct dt_device_bytes memory = {.known = true};
    if (observer == NULL || prepared->memory.taken.at != NULL)
        return DT_OK;
    dt_status status = dt_observer_memory(observer, group, prepared->ranks, &memory);
    if (status < 0) {
        dt_prepared_fini(prepared);
        return status;
    }
    for (int r = 0, first = prepared->peak_bytes == 0; first && r < memory.taken.count; r++)
        if (memory.taken.at[r] > prepared->peak_bytes)
            prepared->peak_bytes = memory.taken.at[r];
    dt_device_bytes_fill(&prepared->memory, &memory);
    return DT_OK;
}

bool dt_rig_watches_gpus(const struct dt_rig *rig)
{
    const struct dt_backend *gpus = dt_target_gpus(rig->target);
    return gpus != NULL && !gpus->shared && dt_load_wanted();
}

void dt_rig_gpus_begin(struct dt_rig *rig)
{
    const struct dt_backend *gpus = dt_target_gpus(rig->target);
    rig->gpu_use = (struct dt_gpu_use){.count = gpus != NULL && gpus->shared ? 0 : NAN};
}

dt_status dt_rig_watch_gpus(struct dt_rig *rig, enum dt_gpu_company company)
{
    struct dt_observer *observer = dt_rig_watches_gpus(rig) ? observer_of(rig) : NULL;
    return observer != NULL ? dt_observer_others(observer, company, &rig->gpu_use) : DT_OK;
}

/* ---- groups */

#define RELEASE_SECONDS 5
#define LEAST_GRACE_NS  (DT_NS_PER_SECOND / 20)
#define PROJECTIONS     16
#define RERUNS          3 /* runs of steps interrupted by a pause */
/* Heartbeats extend the limit of steps to at most so many times; the cold step shows
 * how long steps take. */
#define RUN_TIMES 3

void dt_rig_init(struct dt_rig *rig, const struct dt_target *target, uint64_t seed)
{
    *rig = (struct dt_rig){
        .target = target,
        .verify = {.projections = PROJECTIONS, .seed = seed},
        .hosts.left = target->hardware.hosts,
        .costs = {.start_ns = target->worker.asked_ns, .started = target->worker.asked_ns > 0}};
}

static void slot_close(struct dt_rig_slot *slot, int64_t grace_ns)
{
    dt_group_stop(slot->group, grace_ns);
    dt_text_fini(&slot->environment);
    *slot = (struct dt_rig_slot){0};
}

void dt_rig_fresh(struct dt_rig *rig, int64_t grace_ns)
{
    int64_t end = dt_clock_ns() + grace_ns;
    for (int i = 0; i < DT_RIG_GROUPS; i++)
        if (rig->slots[i].group != NULL) {
            int64_t left = end - dt_clock_ns();
            slot_close(&rig->slots[i], left > LEAST_GRACE_NS ? left : LEAST_GRACE_NS);
        }
}

void dt_rig_fini(struct dt_rig *rig, int64_t grace_ns)
{
    dt_rig_fresh(rig, grace_ns);
    dt_observer_free(rig->observer);
    rig->observer = NULL;
    dt_clocks_fini(&rig->clocks);
    free(rig->prepared);
    rig->prepared = NULL;
    rig->prepared_count = 0;
    for (int i = 0; i < rig->reference_count; i++)
        /* count and causes are kept for the report */
        dt_prepared_fini(&rig->references[i].prepared);
}

/* One that is alive; NULL: there is none. */
static struct dt_group *group_find(const struct dt_rig *rig, const struct dt_point *point,
                                   const char *environment)
{
    int ranks = class_ranks(rig->target, point), replicas = dt_target_replicas(rig->target, point);
    for (int i = 0; i < DT_RIG_GROUPS; i++) {
        const struct dt_rig_slot *slot = &rig->slots[i];
        if (dt_group_alive(slot->group) && slot->ranks == ranks && slot->replicas == replicas &&
            slot->apart == rig->apart && strcmp(dt_text_at(&slot->environment), environment) == 0)
            return slot->group;
    }
    return NULL;
}

bool dt_rig_is_loaded(const struct dt_rig *rig, const struct dt_point *point)
{
    dt_auto_text environment = {0};
    class_environment(rig->target->space, point, &environment);
    return group_find(rig, point, dt_text_at(&environment)) != NULL;
}

/* The group whose last use is the longest ago; NULL: there is none. */
static struct dt_rig_slot *slot_oldest(struct dt_rig *rig)
{
    struct dt_rig_slot *oldest = NULL;
    for (int i = 0; i < DT_RIG_GROUPS; i++) {
        struct dt_rig_slot *slot = &rig->slots[i];
        if (slot->group != NULL && (oldest == NULL || slot->used < oldest->used))
            oldest = slot;
    }
    return oldest;
}

/* Ends groups, least recently used first, until the others leave enough memory for a new one. */
static void make_room(struct dt_rig *rig, int ranks)
{
    double limit = (double)dt_target_memory(rig->target);
    while (limit > 0) {
        double need = memory_of_group(rig->target, ranks, rig->peak_bytes);
        for (int i = 0; i < DT_RIG_GROUPS; i++)
            if (rig->slots[i].group != NULL)
                need += memory_of_group(rig->target, rig->slots[i].ranks * rig->slots[i].replicas,
                                        rig->slots[i].peak_bytes);
        struct dt_rig_slot *victim = need > limit ? slot_oldest(rig) : NULL;
        if (victim == NULL)
            return;
        slot_close(victim, DT_NS_PER_SECOND);
    }
}

/* Keeps what a plan needed for the eviction of groups. */
static void note_use(struct dt_rig *rig, const struct dt_group *group, int64_t peak_bytes)
{
    for (int i = 0; i < DT_RIG_GROUPS; i++) {
        struct dt_rig_slot *slot = &rig->slots[i];
        if (slot->group != group)
            continue;
        slot->used = rig->costs.loads + rig->costs.prepared;
        slot->peak_bytes = peak_bytes > slot->peak_bytes ? peak_bytes : slot->peak_bytes;
    }
    rig->peak_bytes = peak_bytes > rig->peak_bytes ? peak_bytes : rig->peak_bytes;
}

/* Frees the slots of dead groups unless plans are pinned: a resident plan may still point at its
 * group. NULL: every slot is taken, and plans are pinned. */
static struct dt_rig_slot *slot_take(struct dt_rig *rig, int ranks)
{
    for (int i = 0; i < DT_RIG_GROUPS && !rig->pinned; i++)
        if (rig->slots[i].group != NULL && !dt_group_alive(rig->slots[i].group))
            slot_close(&rig->slots[i], 0);
    if (!rig->pinned)
        make_room(rig, ranks);
    for (int i = 0; i < DT_RIG_GROUPS; i++)
        if (rig->slots[i].group == NULL)
            return &rig->slots[i];
    if (rig->pinned)
        return NULL;
    struct dt_rig_slot *victim = slot_oldest(rig);
    slot_close(victim, DT_NS_PER_SECOND);
    return victim;
}

/* Splits "A=1\nB=2\n" (kept in *text) into a NULL-ended list. */
static void split_lines(char *text, const char *lines[], int room)
{
    int n = 0;
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line != NULL && n < room - 1;
         line = strtok_r(NULL, "\n", &rest))
        lines[n++] = line;
    lines[n] = NULL;
}

/* apart: the reference's workload or job instead of the target's */
static dt_status start_group(struct dt_rig *rig, struct dt_rig_slot *slot, bool apart,
                             int64_t deadline_ns, struct dt_failure *failure)
{
    const struct dt_target *target = rig->target;
    const char *lines[DT_AXES_MAX + 1];
    dt_auto_free char *copy = strdup(dt_text_at(&slot->environment));
    if (copy == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    split_lines(copy, lines, DT_AXES_MAX + 1);
    int64_t began = dt_clock_ns(), most = began + target->worker.start_ns;
    const struct dt_backend *gpus = dt_target_gpus(target);
    struct dt_launch launch = {.program = target->worker.program,
                               .arguments = target->worker.arguments,
                               .assigned = target->worker.assigned,
                               .by = target->worker.launcher,
                               .ranks = target->worker.launcher != DT_LAUNCH_SELF ? slot->ranks : 1,
                               .own_ranks = target->foreign ? 0 : slot->ranks,
                               .replicas = slot->replicas,
                               .oversubscribed =
                                   slot->ranks * slot->replicas > target->hardware.cores,
                               .per_host = slot->ranks,
                               .until_ns = rig->until_ns < most ? rig->until_ns : most,
                               .environment = lines,
                               .is_private = target->worker.is_private};
    if (apart && target->foreign)
        launch.assigned.job = target->reference;
    if (slot->replicas > 1 && launch.assigned.devices > 0)
        launch.assigned.devices = devices_share(target, slot->replicas);
    if (gpus != NULL)
        launch.gpus = gpus->gpus.count < target->hardware.devices ? gpus->gpus.count
                                                                  : target->hardware.devices;
    dt_status status = hosts_place(rig, &launch, failure);
    if (status == DT_OK)
        status = dt_group_start(&launch,
                                apart && !target->foreign ? target->reference : target->workload,
                                deadline_ns < most ? deadline_ns : most, &slot->group, failure);
    if (status == DT_FAILED && failure->outcome == DT_TRIAL_HUNG && deadline_ns < most) {
        double had = (double)(dt_clock_ns() - began) * 1e-9;
        failure->early = true;
        if (had < 0.5)
            snprintf(failure->cause, sizeof failure->cause, "no time was left for its start");
        else
            snprintf(failure->cause, sizeof failure->cause,
                     "its share of the budget, %s, ended while it started",
                     dt_figure_span_of(had).text);
    }
    if (status == DT_OK)
        status = hosts_check(rig, slot->group);
    if (launch.hosts != NULL)
        status = hosts_met(rig, &launch, status);
    rig->costs.started++;
    rig->costs.start_ns += dt_clock_ns() - began;
    rig->costs.setup_ns += dt_clock_ns() - began;
    return status;
}

/* The group of the point's class; starts one when none is alive. */
static dt_status get_group(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                           struct dt_group **group, struct dt_failure *failure)
{
    dt_auto_text environment = {0};
    class_environment(rig->target->space, point, &environment);
    int ranks = class_ranks(rig->target, point), replicas = dt_target_replicas(rig->target, point);
    *group = group_find(rig, point, dt_text_at(&environment));
    if (*group != NULL)
        return DT_OK;
    struct dt_rig_slot *slot = slot_take(rig, ranks * replicas);
    if (slot == NULL) {
        *failure = (struct dt_failure){DT_TRIAL_FAILED, false, "too many groups ended"};
        return dt_fail(DT_FAILED, "%s", failure->cause);
    }
    slot->ranks = ranks;
    slot->replicas = replicas;
    slot->apart = rig->apart;
    slot->environment = environment;
    environment = (struct dt_text){0};
    dt_status status = start_group(rig, slot, false, deadline_ns, failure);
    if (status != DT_OK) {
        slot->group = NULL;
        slot_close(slot, 0);
        return status;
    }
    *group = slot->group;
    return DT_OK;
}

static int64_t prepare_deadline(const struct dt_rig *rig, int64_t deadline_ns)
{
    enum { LEAST_SECONDS = 15, FIRST_SECONDS = 600, OVER_SLOWEST = 20 };
    bool first = rig->longest_prepare_ns == 0; /* nothing is known about this workload yet */
    int64_t most = dt_clock_ns() + (first ? FIRST_SECONDS : LEAST_SECONDS) * DT_NS_PER_SECOND +
                   OVER_SLOWEST * rig->longest_prepare_ns;
    return most < deadline_ns ? most : deadline_ns;
}

static uint64_t point_number(const struct dt_rig *rig, const struct dt_point *point)
{
    dt_auto_text text = {0};
    dt_point_short(rig->target->space, point, &text);
    return dt_rng_stream(dt_text_at(&text));
}

bool dt_rig_has_prepared(const struct dt_rig *rig, const struct dt_point *point)
{
    uint64_t number = point_number(rig, point);
    for (int i = 0; i < rig->prepared_count; i++)
        if (rig->prepared[i] == number)
            return true;
    return false;
}

static dt_status note_load(struct dt_rig *rig, const struct dt_point *point, bool fresh,
                           int64_t took_ns, int64_t read_before)
{
    int64_t read = dt_proc_storage_bytes();
    rig->load = (struct dt_rig_load){.known = true,
                                     .first = !dt_rig_has_prepared(rig, point),
                                     .fresh = fresh,
                                     .ns = took_ns,
                                     .read_bytes = read < read_before ? -1 : read - read_before};
    if (rig->load.first) {
        DT_TRY(DT_GROW(rig->prepared, rig->prepared_count, 1));
        rig->prepared[rig->prepared_count++] = point_number(rig, point);
    }
    return DT_OK;
}

static dt_status prepare_once(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                              struct dt_group **group, struct dt_prepared *prepared,
                              struct dt_failure *failure)
{
    struct dt_rig_costs *costs = &rig->costs;
    int64_t began = dt_clock_ns(), read = dt_proc_storage_bytes();
    int groups = costs->started;
    DT_TRY(get_group(rig, point, deadline_ns, group, failure));
    dt_group_extend(*group, rig->until_ns);
    DT_TRY(dt_rig_group_prepare(rig, *group, point, prepare_deadline(rig, deadline_ns), prepared,
                                failure));
    int64_t took = dt_clock_ns() - began, paused_ns = dt_group_paused_ns(*group);
    bool first = groups < costs->started;
    *(first ? &costs->load_ns : &costs->prepare_ns) += took;
    *(first ? &costs->loads : &costs->prepared) += 1;
    prepared->cold_ns -= prepared->cold_ns > paused_ns ? paused_ns : 0;
    DT_TRY(note_load(rig, point, first, took, read));
    DT_TRY(observe_memory(rig, *group, prepared));
    note_use(rig, *group, prepared->peak_bytes);
    rig->longest_prepare_ns = took > rig->longest_prepare_ns ? took : rig->longest_prepare_ns;
    return DT_OK;
}

/* Prepares without verification. A plan that does not fit beside the parked groups gets a
 * second attempt alone. */
static dt_status prepare_unverified(struct dt_rig *rig, const struct dt_point *point,
                                    int64_t deadline_ns, struct dt_group **group,
                                    struct dt_prepared *prepared, struct dt_failure *failure)
{
    dt_status status = DT_OK;
    for (int attempt = 0; attempt < 2; attempt++) {
        status = prepare_once(rig, point, deadline_ns, group, prepared, failure);
        bool others = false;
        for (int i = 0; i < DT_RIG_GROUPS; i++)
            others = others || (rig->slots[i].group != NULL && rig->slots[i].group != *group);
        if (status != DT_FAILED || failure->outcome != DT_TRIAL_MEMORY || !others || rig->pinned)
            break;
        dt_rig_fresh(rig, DT_NS_PER_SECOND);
        *group = NULL;
    }
    return status;
}

/* Runs one plan in a group with the reference's workload and keeps only the
 * projections of its output. */
static dt_status prepare_apart(struct dt_rig *rig, const struct dt_point *point,
                               int64_t deadline_ns, struct dt_prepared *prepared,
                               struct dt_failure *failure)
{
    struct dt_rig_slot slot = {.ranks = dt_target_ranks(rig->target, point), .replicas = 1};
    DT_TRY(start_group(rig, &slot, true, deadline_ns, failure));
    dt_group_extend(slot.group, rig->until_ns);
    dt_status status = dt_rig_group_prepare(rig, slot.group, point,
                                            prepare_deadline(rig, deadline_ns), prepared, failure);
    slot_close(&slot, DT_NS_PER_SECOND);
    return status;
}

/* ---- verification: a plan's output is compared with that of one float32 rank by a few random
 * projections of each image (docs/measuring-appendix.md), so neither the controller nor the
 * workers keep outputs */

#define ATTEMPTS 3 /* to run a reference */

/* On GPUs own kernels, launched one by one, are the reference: cuDNN has no float32,
 * and what a graph replays is compared with what is not replayed. The first value of
 * either parameter means so. */
static void reference_choose_plain(const struct dt_space *space, struct dt_point *one)
{
    static const char *const names[] = {"attention", "graph"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        int axis = dt_space_find(space, names[i]);
        if (axis >= 0)
            one->index[axis] = 0;
    }
}

/* The baseline at the point's batch. */
static struct dt_point reference_point(const struct dt_rig *rig, const struct dt_point *point)
{
    struct dt_point one = rig->target->baseline;
    int batch = dt_space_role(rig->target->space, DT_ROLE_BATCH);
    if (batch >= 0)
        one.index[batch] = point->index[batch];
    if (!rig->target->foreign)
        reference_choose_plain(rig->target->space, &one);
    return one;
}

/* Other data types are compared with float32, computed in a separate group, which is stopped
 * to free its weights. */
static dt_status reference_make(struct dt_rig *rig, const struct dt_point *one, int64_t deadline_ns,
                                struct dt_group **group, struct dt_reference *reference)
{
    *group = NULL;
    reference->attempts++;
    if (rig->target->reference != NULL)
        return prepare_apart(rig, one, deadline_ns, &reference->prepared, &reference->failure);
    return prepare_unverified(rig, one, deadline_ns, group, &reference->prepared,
                              &reference->failure);
}

static struct dt_reference *reference_find(struct dt_rig *rig, int batch)
{
    for (int i = 0; i < rig->reference_count; i++)
        if (rig->references[i].batch == batch)
            return &rig->references[i];
    return NULL;
}

/* Takes the place of the last one when there are too many. */
static struct dt_reference *reference_add(struct dt_rig *rig, int batch)
{
    if (rig->reference_count < DT_RIG_REFERENCES)
        rig->reference_count++;
    struct dt_reference *reference = &rig->references[rig->reference_count - 1];
    dt_prepared_fini(&reference->prepared);
    *reference = (struct dt_reference){.batch = batch};
    return reference;
}

/* The reference of the point's batch, made at the first request; failed, with its cause, when it
 * cannot be made: plans are then not verified, and the report says so. */
static dt_status reference_get(struct dt_rig *rig, const struct dt_point *point,
                               int64_t deadline_ns, const struct dt_reference **out)
{
    int batch = dt_target_batch(rig->target, point);
    struct dt_reference *reference = reference_find(rig, batch);
    if (reference == NULL)
        reference = reference_add(rig, batch);
    if (reference->attempts > 0 &&
        (!dt_outcome_may_pass(reference->failure.outcome) || reference->attempts >= ATTEMPTS)) {
        *out = reference;
        return DT_OK;
    }
    struct dt_point one = reference_point(rig, point);
    struct dt_group *group = NULL;
    struct dt_failure ignored, *failure = &reference->failure;
    dt_status status = reference_make(rig, &one, deadline_ns, &group, reference);
    if (status == DT_FAILED && dt_outcome_may_pass(failure->outcome) && reference->attempts == 1 &&
        dt_clock_ns() < deadline_ns) /* one more attempt, since every plan needs it */
        status = reference_make(rig, &one, deadline_ns, &group, reference);
    if (status == DT_OK)
        *failure = (struct dt_failure){.outcome = DT_TRIAL_OK};
    if (status == DT_OK && dt_group_alive(group))
        status = dt_group_release(group, reference->prepared.handle, deadline_ns, &ignored);
    *out = reference;
    return status == DT_FAILED ? DT_OK : status;
}

/* Estimate of ||a - b|| / ||b|| of row i of a and row k of b (docs/protocol.md); INFINITY when
 * something is not finite. */
static double row_error(const struct dt_outputs *a, int i, const struct dt_outputs *b, int k)
{
    const double *p = a->projection + (size_t)i * (size_t)a->projections,
                 *r = b->projection + (size_t)k * (size_t)b->projections;
    double sum = 0;
    for (int j = 0; j < a->projections; j++)
        sum += (p[j] - r[j]) * (p[j] - r[j]);
    double error = sqrt(sum / a->projections) / b->norm[k];
    return isfinite(error) && isfinite(a->norm[i]) ? error : INFINITY;
}

/* The largest error of all rows of all ranks against the reference's first rank, and
 * the rank that has it. */
static double largest_error(const struct dt_outputs *a, const struct dt_outputs *b, int *rank)
{
    double worst = 0;
    *rank = 0;
    for (int i = 0; i < a->ranks * a->rows; i++) {
        double error = row_error(a, i, b, i % a->rows);
        if (error > worst) {
            worst = error;
            *rank = i / a->rows;
        }
    }
    return worst;
}

/* The plan has settings that change the output beyond rounding. */
static bool is_lossy(const struct dt_rig *rig, const struct dt_point *point)
{
    for (int a = 0; a < dt_space_axes(rig->target->space); a++)
        if (dt_space_axis(rig->target->space, a)->role == DT_ROLE_LOSSY &&
            point->index[a] != rig->target->baseline.index[a])
            return true;
    return false;
}

static bool all_finite(const struct dt_outputs *output)
{
    int rows = output->ranks * output->rows;
    for (int i = 0; i < rows; i++)
        if (!isfinite(output->norm[i]))
            return false;
    for (int i = 0; i < rows * output->projections; i++)
        if (!isfinite(output->projection[i]))
            return false;
    return true;
}

/* Sets the resident's error to the largest so far, and its outcome when this output is not
 * finite or differs by more than the tolerance. when: after "the output" in that sentence, such
 * as "", or " after 16 steps". */
static void judge_output(struct dt_rig *rig, const struct dt_outputs *output, const char *when,
                         struct dt_resident *resident)
{
    const struct dt_reference *reference = reference_find(rig, resident->batch);
    const struct dt_outputs *right = reference != NULL ? &reference->prepared.output : NULL;
    char where[32] = "";
    int rank;
    if (output->ranks == 0)
        return;
    if (!all_finite(output)) {
        resident->failure.outcome = DT_TRIAL_WRONG;
        snprintf(resident->failure.cause, sizeof resident->failure.cause,
                 "the output%s is not finite", when);
        return;
    }
    if (right == NULL || reference->failure.outcome != DT_TRIAL_OK || right->rows != output->rows ||
        right->projections != output->projections)
        return;
    double error = largest_error(output, right, &rank);
    if (!(error <= resident->facts.verified_error))
        resident->facts.verified_error = error;
    if (error <= resident->tolerance)
        return;
    if (resident->replicas > 1 && output->ranks % resident->replicas == 0)
        snprintf(where, sizeof where, " of replica %d",
                 rank / (output->ranks / resident->replicas));
    else if (output->ranks > 1)
        snprintf(where, sizeof where, " of rank %d", rank);
    resident->failure.outcome = DT_TRIAL_WRONG;
    snprintf(resident->failure.cause, sizeof resident->failure.cause,
             "the output%s%s differs from the 1-rank plan's by %.2g, allowed %.2g", where, when,
             error, resident->tolerance);
}

/* Sets the resident's errors of whole images, which fail no plan: rounding grows over many
 * steps, so two images of one right plan may differ by any amount. image: the plan's; empty
 * where its worker makes none: the errors stay unset. */
static void judge_image(struct dt_rig *rig, const struct dt_outputs *image,
                        struct dt_resident *resident)
{
    const struct dt_reference *reference = reference_find(rig, resident->batch);
    const struct dt_outputs *right = reference != NULL ? &reference->prepared.image : NULL;
    int which;
    if (image->ranks == 0 || right == NULL || right->rows != image->rows ||
        right->projections != image->projections)
        return;
    struct dt_outputs first = *image; /* only the first of a replica's outputs */
    first.ranks = resident->replicas > 1 ? image->ranks : 1;
    resident->facts.image_error = largest_error(&first, right, &which);
    if (right->ranks > 1)
        resident->facts.repeat_error = largest_error(right, right, &which);
}

/* Largest relative error allowed to the plan of a point. That of a default plan that breaks a
 * rule is reported, and judged by the session. */
static double tolerance_of(const struct dt_rig *rig, const struct dt_point *point)
{
    if (dt_target_breaks(rig->target, point))
        return INFINITY;
    return is_lossy(rig, point) ? rig->target->lossy_error : rig->target->tolerance;
}

/* ---- plans */

/* Applies the user's limits of memory, which the worker does not know. */
static void judge_memory(const struct dt_rig *rig, const struct dt_point *point,
                         struct dt_resident *resident)
{
    int ranks = dt_target_ranks(rig->target, point) * resident->replicas;
    dt_auto_text cause = {0};
    if (resident->failure.outcome != DT_TRIAL_OK ||
        !dt_target_exceeds(rig->target, ranks, resident->facts.peak_bytes, &cause))
        return;
    resident->failure.outcome = DT_TRIAL_MEMORY;
    snprintf(resident->failure.cause, sizeof resident->failure.cause, "%s", dt_text_at(&cause));
}

dt_status dt_rig_prepare(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                         struct dt_resident *resident)
{
    const struct dt_reference *reference = NULL;
    struct dt_prepared *prepared = &resident->prepared;
    *resident = (struct dt_resident){.facts = dt_facts_unknown};
    int64_t began = dt_clock_ns(), setup_ns = rig->costs.setup_ns;
    int loads = rig->costs.loads;
    if (dt_target_breaks(rig->target, point) && rig->target->limited &&
        dt_target_ranks(rig->target, point) > rig->target->hardware.devices) {
        resident->failure.outcome = DT_TRIAL_INFEASIBLE;
        snprintf(resident->failure.cause, sizeof resident->failure.cause, "%.190s",
                 rig->target->broken);
        return DT_OK;
    }
    if (!rig->target->image.starts &&
        !rig->target->image.request) /* nothing to compare, and it costs a start */
        DT_TRY(reference_get(rig, point, deadline_ns, &reference));
    rig->costs.setup_ns = setup_ns + dt_clock_ns() - began;
    rig->costs.reference_loads += rig->costs.loads - loads;
    dt_status status =
        prepare_unverified(rig, point, deadline_ns, &resident->group, prepared, &resident->failure);
    if (status == DT_FAILED) {
        resident->group = NULL;
        return DT_OK;
    }
    DT_TRY(status);
    resident->failure = (struct dt_failure){.outcome = DT_TRIAL_OK};
    resident->batch = dt_target_batch(rig->target, point);
    resident->replicas = dt_target_replicas(rig->target, point);
    resident->tolerance = tolerance_of(rig, point);
    resident->load = rig->load;
    resident->facts.cold_seconds = dt_seconds_of(prepared->cold_ns);
    resident->facts.peak_bytes = prepared->peak_bytes;
    resident->facts.verified_error = prepared->error;
    judge_output(rig, &prepared->output, "", resident);
    judge_image(rig, &prepared->image, resident);
    judge_memory(rig, point, resident);
    dt_outputs_fini(&prepared->output);
    dt_outputs_fini(&prepared->image);
    return DT_OK;
}

/* Steps interrupted by a pause are run again. */
static dt_status run_steps(struct dt_group *group, const struct dt_steps *steps,
                           int64_t deadline_ns, struct dt_run *run, struct dt_failure *failure)
{
    for (int again = 0;; again++) {
        dt_status status = dt_group_run(group, steps, deadline_ns, run, failure);
        if (status != DT_OK || dt_group_paused_ns(group) == 0 || again == RERUNS)
            return status;
        dt_run_fini(run);
    }
}

static void result_fail(struct dt_result *result, const struct dt_failure *failure)
{
    result->outcome = failure->outcome;
    result->early = failure->early;
    memcpy(result->cause, failure->cause, sizeof result->cause);
}

/* The failure that a request left in the resident is also the result's. */
static void take_failure(struct dt_resident *resident, struct dt_result *result)
{
    result_fail(result, &resident->failure);
    resident->group = dt_group_alive(resident->group) ? resident->group : NULL;
}

dt_status dt_rig_run(struct dt_rig *rig, struct dt_resident *resident, int n, enum dt_mode mode,
                     int64_t deadline_ns, struct dt_result *result)
{
    struct dt_run DT_CLEANUP(dt_run_fini) run = {0};
    int64_t now = dt_clock_ns(), until = now + RUN_TIMES * (deadline_ns - now);
    dt_group_extend(resident->group, until < rig->until_ns ? until : rig->until_ns);
    bool measured = mode == DT_MODE_MEASURE;
    if (measured)
        DT_TRY(observe_begin(rig, resident->group, result->ranks));
    const struct dt_steps steps = {resident->prepared.handle, n, mode, NULL,
                                   rig->target->image.starts};
    dt_status status = run_steps(resident->group, &steps, deadline_ns, &run, &resident->failure);
    if (measured && (status == DT_OK || status == DT_FAILED))
        DT_TRY(observe_end(rig, &run));
    if (status == DT_FAILED) {
        take_failure(resident, result);
        return DT_OK;
    }
    DT_TRY(status);
    if (result->report.steps > 0 && run.ranks != result->ranks) {
        resident->failure = (struct dt_failure){.outcome = DT_TRIAL_PROTOCOL};
        snprintf(resident->failure.cause, sizeof resident->failure.cause,
                 "the worker answered with %d ranks, before with %d", run.ranks, result->ranks);
        result_fail(result, &resident->failure);
        return DT_OK;
    }
    return dt_result_add(result, &run, measured);
}

dt_status dt_rig_verify_again(struct dt_rig *rig, struct dt_resident *resident, int64_t deadline_ns,
                              struct dt_result *result)
{
    struct dt_run DT_CLEANUP(dt_run_fini) run = {0};
    char when[48];
    if (!resident->prepared.verifies_runs || resident->group == NULL ||
        !isfinite(resident->facts.verified_error))
        return DT_OK;
    const struct dt_steps step = {resident->prepared.handle, 1, DT_MODE_WARMUP, &rig->verify,
                                  false};
    dt_status status = run_steps(resident->group, &step, deadline_ns, &run, &resident->failure);
    if (status == DT_FAILED) {
        take_failure(resident, result);
        return DT_OK;
    }
    DT_TRY(status);
    snprintf(when, sizeof when, " after %d steps", result->report.steps + 3);
    judge_output(rig, &run.output, when, resident);
    result->facts.verified_error = resident->facts.verified_error;
    if (resident->failure.outcome == DT_TRIAL_WRONG)
        result_fail(result, &resident->failure);
    return DT_OK;
}

void dt_rig_describe(struct dt_resident *resident, struct dt_result *result)
{
    if (DT_RESIZE(result->loads, result->load_count + 1) == DT_OK && resident->load.ns > 0)
        result->loads[result->load_count++] = resident->load;
    dt_device_bytes_fini(&result->memory);
    result->memory = resident->prepared.memory;
    resident->prepared.memory = (struct dt_device_bytes){.known = true};
    dt_remarks_add(&result->report.remarks, &resident->prepared.remarks);
    result_fail(result, &resident->failure);
    result->facts = resident->facts;
}

/* A worker that does not release in time is killed; near the end of the
 * session that time is short. */
void dt_rig_release(struct dt_rig *rig, struct dt_resident *resident)
{
    struct dt_failure failure;
    int64_t now = dt_clock_ns(), until = now + RELEASE_SECONDS * DT_NS_PER_SECOND;
    if (rig->end_ns > 0 && until > rig->end_ns)
        until = rig->end_ns > now + LEAST_GRACE_NS ? rig->end_ns : now + LEAST_GRACE_NS;
    if (resident->group != NULL && dt_group_alive(resident->group) &&
        dt_group_release(resident->group, resident->prepared.handle, until, &failure) < 0)
        resident->prepared.handle =
            -1; /* the group is dead or silent; it is replaced when next needed */
    resident->group = NULL;
    dt_prepared_fini(&resident->prepared); /* in case dt_rig_describe was not called */
}
