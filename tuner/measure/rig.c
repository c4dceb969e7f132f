/* SPDX-License-Identifier: MIT */
#include "tuner/measure/rig_int.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/proc.h"
#include "base/rng.h"
#include "space/json/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RELEASE_SECONDS 5
#define LEAST_GRACE_NS  (DT_NS_PER_SECOND / 20)
#define PROJECTIONS     16
#define RERUNS          3 /* of steps interrupted by a pause */
#define RUN_TIMES                                                                                  \
    3 /* heartbeats extend the limit of steps at most to so many times: the cold step tells how long they take */

void dt_rig_init(struct dt_rig *rig, const struct dt_target *target, uint64_t seed)
{
    *rig = (struct dt_rig){
        .target = target,
        .verify = {.projections = PROJECTIONS, .seed = seed},
        .hosts.left = target->hardware.hosts,
        .costs = {.start_ns = target->worker.asked_ns, .started = target->worker.asked_ns > 0}};
}

static void close_slot(struct dt_rig_slot *slot, int64_t grace_ns)
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
            close_slot(&rig->slots[i], left > LEAST_GRACE_NS ? left : LEAST_GRACE_NS);
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

/* The slot of a group that is alive; DT_RIG_GROUPS: there is none. */
static int find_slot(const struct dt_rig *rig, int ranks, const char *environment)
{
    int i = 0;
    for (; i < DT_RIG_GROUPS; i++) {
        const struct dt_rig_slot *slot = &rig->slots[i];
        if (dt_group_alive(slot->group) && slot->ranks == ranks && slot->apart == rig->apart &&
            strcmp(dt_text_at(&slot->environment), environment) == 0)
            break;
    }
    return i;
}

bool dt_rig_is_loaded(const struct dt_rig *rig, const struct dt_point *point)
{
    struct dt_text environment = {0};
    dt_rig_environment(rig->target->space, point, &environment);
    int at = find_slot(rig, dt_rig_ranks(rig->target, point), dt_text_at(&environment));
    dt_text_fini(&environment);
    return at < DT_RIG_GROUPS;
}

/* The group whose last use is the longest ago; NULL: there is none. */
static struct dt_rig_slot *oldest_slot(struct dt_rig *rig)
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
    double limit = (double)dt_rig_memory_limit(rig->target);
    while (limit > 0) {
        double need = dt_rig_memory(rig->target, ranks, rig->peak_bytes);
        for (int i = 0; i < DT_RIG_GROUPS; i++)
            if (rig->slots[i].group != NULL)
                need += dt_rig_memory(rig->target, rig->slots[i].ranks, rig->slots[i].peak_bytes);
        struct dt_rig_slot *victim = need > limit ? oldest_slot(rig) : NULL;
        if (victim == NULL)
            return;
        close_slot(victim, DT_NS_PER_SECOND);
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

/* Frees the slots of dead groups unless plans are pinned: a resident plan may still point at its group. NULL: every slot is
 * taken, and plans are pinned. */
static struct dt_rig_slot *free_slot(struct dt_rig *rig, int ranks)
{
    for (int i = 0; i < DT_RIG_GROUPS && !rig->pinned; i++)
        if (rig->slots[i].group != NULL && !dt_group_alive(rig->slots[i].group))
            close_slot(&rig->slots[i], 0);
    if (!rig->pinned)
        make_room(rig, ranks);
    for (int i = 0; i < DT_RIG_GROUPS; i++)
        if (rig->slots[i].group == NULL)
            return &rig->slots[i];
    if (rig->pinned)
        return NULL;
    struct dt_rig_slot *victim = oldest_slot(rig);
    close_slot(victim, DT_NS_PER_SECOND);
    return victim;
}

/* Splits "A=1\nB=2\n" (kept in *text) into a NULL-ended list. */
static void split_lines(char *text, const char *lines[], int room)
{
    int n = 0;
    for (char *line = text; line != NULL && *line != '\0' && n < room - 1;) {
        char *end = strchr(line, '\n');
        if (end != NULL)
            *end++ = '\0';
        lines[n++] = line;
        line = end;
    }
    lines[n] = NULL;
}

/* apart: the reference's workload or job instead of the target's */
static dt_status start_group(struct dt_rig *rig, struct dt_rig_slot *slot, bool apart,
                             int64_t deadline_ns, struct dt_failure *failure)
{
    const struct dt_target *target = rig->target;
    const char *lines[DT_AXES_MAX + 1];
    char *copy = strdup(dt_text_at(&slot->environment));
    if (copy == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    split_lines(copy, lines, DT_AXES_MAX + 1);
    int64_t began = dt_clock_ns(), most = began + target->worker.start_ns;
    struct dt_launch launch = {.program = target->worker.program,
                               .arguments = target->worker.arguments,
                               .assigned = target->worker.assigned,
                               .by = target->worker.launcher,
                               .ranks = target->worker.launcher != DT_LAUNCH_SELF ? slot->ranks : 1,
                               .own_ranks = target->foreign ? 0 : slot->ranks,
                               .oversubscribed = slot->ranks > target->hardware.cores,
                               .per_host = slot->ranks,
                               .until_ns = rig->until_ns < most ? rig->until_ns : most,
                               .environment = lines,
                               .is_private = target->worker.is_private};
    if (apart && target->foreign)
        launch.assigned.job = target->reference;
    const json_t *workload = apart && !target->foreign ? target->reference : target->workload;
    dt_status status = dt_rig_hosts_place(rig, &launch, failure);
    if (status == DT_OK)
        status = dt_group_start(&launch, workload, deadline_ns < most ? deadline_ns : most,
                                &slot->group, failure);
    if (status == DT_FAILED && failure->outcome == DT_TRIAL_HUNG && deadline_ns < most) {
        double had = (double)(dt_clock_ns() - began) * 1e-9;
        failure->early = true;
        if (had < 0.5)
            snprintf(failure->cause, sizeof failure->cause, "no time was left for its start");
        else
            snprintf(failure->cause, sizeof failure->cause,
                     "its share of the budget, %.0f s, ended while it started", had);
    }
    if (status == DT_OK)
        status = dt_rig_hosts_check(rig, slot->group);
    if (launch.hosts != NULL)
        status = dt_rig_hosts_met(rig, &launch, status);
    rig->costs.started++;
    rig->costs.start_ns += dt_clock_ns() - began;
    rig->costs.setup_ns += dt_clock_ns() - began;
    free(copy);
    return status;
}

/* The group of the point's class; starts one when none is alive. */
static dt_status get_group(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                           struct dt_group **group, struct dt_failure *failure)
{
    struct dt_text environment = {0};
    dt_rig_environment(rig->target->space, point, &environment);
    int ranks = dt_rig_ranks(rig->target, point);
    int at = find_slot(rig, ranks, dt_text_at(&environment));
    if (at < DT_RIG_GROUPS) {
        dt_text_fini(&environment);
        *group = rig->slots[at].group;
        return DT_OK;
    }
    struct dt_rig_slot *slot = free_slot(rig, ranks);
    if (slot == NULL) {
        dt_text_fini(&environment);
        *failure = (struct dt_failure){DT_TRIAL_FAILED, false, "too many groups ended"};
        return dt_fail(DT_FAILED, "%s", failure->cause);
    }
    slot->ranks = ranks;
    slot->apart = rig->apart;
    slot->environment = environment;
    dt_status status = start_group(rig, slot, false, deadline_ns, failure);
    if (status != DT_OK) {
        slot->group = NULL;
        close_slot(slot, 0);
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

/* Subtracts a pause from the cold step. */
static void take_pause_out(const struct dt_group *group, struct dt_prepared *prepared)
{
    int64_t paused_ns = dt_group_paused_ns(group);
    if (prepared->cold_ns > paused_ns)
        prepared->cold_ns -= paused_ns;
}

static void note_cost(struct dt_rig *rig, bool first, int64_t took_ns)
{
    struct dt_rig_costs *costs = &rig->costs;
    *(first ? &costs->load_ns : &costs->prepare_ns) += took_ns;
    *(first ? &costs->loads : &costs->prepared) += 1;
}

static uint64_t number_of(const struct dt_rig *rig, const struct dt_point *point)
{
    struct dt_text text = {0};
    dt_point_short(rig->target->space, point, &text);
    uint64_t number = dt_rng_stream(dt_text_at(&text));
    dt_text_fini(&text);
    return number;
}

bool dt_rig_has_prepared(const struct dt_rig *rig, const struct dt_point *point)
{
    uint64_t number = number_of(rig, point);
    for (int i = 0; i < rig->prepared_count; i++)
        if (rig->prepared[i] == number)
            return true;
    return false;
}

static dt_status note_load(struct dt_rig *rig, const struct dt_point *point, bool fresh,
                           int64_t took_ns, int64_t read_before)
{
    int64_t read = dt_proc_storage_bytes();
    rig->load = (struct dt_rig_load){.first = !dt_rig_has_prepared(rig, point),
                                     .fresh = fresh,
                                     .ns = took_ns,
                                     .read_bytes = read < read_before ? -1 : read - read_before};
    if (rig->load.first) {
        DT_TRY(DT_GROW(rig->prepared, rig->prepared_count, 1));
        rig->prepared[rig->prepared_count++] = number_of(rig, point);
    }
    return DT_OK;
}

/* Prepares without verification. A plan that does not fit beside the parked groups gets a second attempt alone. */
dt_status dt_rig_prepare_raw(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                             struct dt_group **group, struct dt_prepared *prepared,
                             struct dt_failure *failure)
{
    json_t *plan = dt_point_json(rig->target->space, point);
    dt_status status = DT_OK;
    for (int attempt = 0; attempt < 2; attempt++) {
        int64_t began = dt_clock_ns(), read = dt_proc_storage_bytes();
        int groups = rig->costs.started;
        status = get_group(rig, point, deadline_ns, group, failure);
        if (status == DT_OK)
            dt_group_extend(*group, rig->until_ns);
        if (status == DT_OK)
            status = dt_group_prepare(*group, plan, &rig->verify,
                                      prepare_deadline(rig, deadline_ns), prepared, failure);
        int64_t took = dt_clock_ns() - began;
        if (status == DT_OK) {
            note_cost(rig, groups < rig->costs.started, took);
            take_pause_out(*group, prepared);
            status = note_load(rig, point, groups < rig->costs.started, took, read);
        }
        if (status == DT_OK) {
            status = dt_rig_observe_memory(rig, *group, prepared);
        }
        if (status == DT_OK)
            note_use(rig, *group, prepared->peak_bytes);
        if (status == DT_OK && took > rig->longest_prepare_ns)
            rig->longest_prepare_ns = took;
        bool others = false;
        for (int i = 0; i < DT_RIG_GROUPS; i++)
            others = others || (rig->slots[i].group != NULL && rig->slots[i].group != *group);
        if (status != DT_FAILED || failure->outcome != DT_TRIAL_MEMORY || !others || rig->pinned)
            break;
        dt_rig_fresh(rig, DT_NS_PER_SECOND);
        *group = NULL;
    }
    json_decref(plan);
    return status;
}

/* Runs one plan in a group with the reference's workload and keeps only the projections of its output. */
dt_status dt_rig_prepare_apart(struct dt_rig *rig, const struct dt_point *point,
                               int64_t deadline_ns, struct dt_prepared *prepared,
                               struct dt_failure *failure)
{
    struct dt_rig_slot slot = {.ranks = dt_target_ranks(rig->target, point)};
    json_t *plan = dt_point_json(rig->target->space, point);
    dt_status status = start_group(rig, &slot, true, deadline_ns, failure);
    if (status == DT_OK) {
        dt_group_extend(slot.group, rig->until_ns);
        status = dt_group_prepare(slot.group, plan, &rig->verify,
                                  prepare_deadline(rig, deadline_ns), prepared, failure);
        close_slot(&slot, DT_NS_PER_SECOND);
    }
    json_decref(plan);
    return status;
}

/* Applies the user's memory limit, which the worker does not know. */
static void judge_memory(const struct dt_rig *rig, struct dt_resident *resident)
{
    int64_t most = rig->target->max_bytes;
    if (most <= 0 || resident->peak_bytes <= most || resident->outcome != DT_TRIAL_OK)
        return;
    struct dt_text cause = {0};
    dt_text_add(&cause, "a rank takes ");
    dt_figure_bytes(resident->peak_bytes, &cause);
    dt_text_add(&cause, " (%lld bytes), more than --max-bytes ", (long long)resident->peak_bytes);
    dt_figure_bytes(most, &cause);
    dt_text_add(&cause, " (%lld)", (long long)most);
    resident->outcome = DT_TRIAL_MEMORY;
    snprintf(resident->cause, sizeof resident->cause, "%s", dt_text_at(&cause));
    dt_text_fini(&cause);
}

dt_status dt_rig_prepare(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                         struct dt_resident *resident)
{
    const struct dt_reference *reference = NULL;
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    struct dt_prepared prepared = {0};
    *resident =
        (struct dt_resident){.verified_error = NAN, .image_error = NAN, .repeat_error = NAN};
    int64_t began = dt_clock_ns(), setup_ns = rig->costs.setup_ns;
    int loads = rig->costs.loads;
    if (dt_target_breaks(rig->target, point) && rig->target->limited &&
        dt_target_ranks(rig->target, point) > rig->target->hardware.devices) {
        resident->outcome = DT_TRIAL_INFEASIBLE;
        snprintf(resident->cause, sizeof resident->cause, "%.190s", rig->target->broken);
        return DT_OK;
    }
    if (!rig->target->image.starts &&
        !rig->target->image.request) /* nothing to compare, and it costs a start */
        DT_TRY(dt_verify_reference(rig, point, deadline_ns, &reference));
    rig->costs.setup_ns = setup_ns + dt_clock_ns() - began;
    rig->costs.reference_loads += rig->costs.loads - loads;
    dt_status status =
        dt_rig_prepare_raw(rig, point, deadline_ns, &resident->group, &prepared, &failure);
    if (status == DT_FAILED) {
        resident->group = NULL;
        resident->outcome = failure.outcome;
        resident->early = failure.early;
        memcpy(resident->cause, failure.cause, sizeof resident->cause);
        return DT_OK;
    }
    DT_TRY(status);
    resident->handle = prepared.handle;
    resident->batch = dt_target_batch(rig->target, point);
    resident->tolerance = dt_verify_tolerance(rig, point);
    resident->verifies_runs = prepared.verifies_runs;
    resident->cold_ns = prepared.cold_ns;
    resident->load = rig->load;
    resident->peak_bytes = prepared.peak_bytes;
    resident->memory = json_incref(prepared.memory);
    resident->remarks = json_incref(prepared.remarks);
    resident->verified_error = prepared.error;
    dt_verify_judge(rig, &prepared.output, "", resident);
    dt_verify_image(rig, &prepared.image, resident);
    judge_memory(rig, resident);
    dt_prepared_fini(&prepared);
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

static void take_failure(const struct dt_failure *failure, struct dt_resident *resident,
                         struct dt_result *result)
{
    result->outcome = resident->outcome = failure->outcome;
    result->report.early = failure->early;
    memcpy(result->cause, failure->cause, sizeof result->cause);
    memcpy(resident->cause, failure->cause, sizeof resident->cause);
    resident->group = dt_group_alive(resident->group) ? resident->group : NULL;
}

dt_status dt_rig_run(struct dt_rig *rig, struct dt_resident *resident, int n, enum dt_mode mode,
                     int64_t deadline_ns, struct dt_result *result)
{
    struct dt_failure failure;
    struct dt_run run = {0};
    int64_t now = dt_clock_ns(), until = now + RUN_TIMES * (deadline_ns - now);
    dt_group_extend(resident->group, until < rig->until_ns ? until : rig->until_ns);
    bool measured = mode == DT_MODE_MEASURE;
    if (measured)
        DT_TRY(dt_rig_observe_begin(rig, resident->group, result->ranks));
    const struct dt_steps steps = {resident->handle, n, mode, NULL, rig->target->image.starts};
    dt_status status = run_steps(resident->group, &steps, deadline_ns, &run, &failure);
    if (measured && (status == DT_OK || status == DT_FAILED)) {
        dt_status ended = dt_rig_observe_end(rig, &run);
        status = ended < 0 ? ended : status;
        if (ended < 0)
            dt_run_fini(&run);
    }
    if (status == DT_FAILED) {
        take_failure(&failure, resident, result);
        return DT_OK;
    }
    DT_TRY(status);
    if (result->report.steps > 0 && run.ranks != result->ranks) {
        result->outcome = resident->outcome = DT_TRIAL_PROTOCOL;
        snprintf(result->cause, sizeof result->cause,
                 "the worker answered with %d ranks, before with %d", run.ranks, result->ranks);
        memcpy(resident->cause, result->cause, sizeof resident->cause);
        dt_run_fini(&run);
        return DT_OK;
    }
    status = dt_result_add(result, &run, measured);
    dt_run_fini(&run);
    return status;
}

dt_status dt_rig_verify_again(struct dt_rig *rig, struct dt_resident *resident, int64_t deadline_ns,
                              struct dt_result *result)
{
    struct dt_failure failure;
    struct dt_run run = {0};
    char when[48];
    if (!resident->verifies_runs || resident->group == NULL || !isfinite(resident->verified_error))
        return DT_OK;
    const struct dt_steps step = {resident->handle, 1, DT_MODE_WARMUP, &rig->verify, false};
    dt_status status = run_steps(resident->group, &step, deadline_ns, &run, &failure);
    if (status == DT_FAILED) {
        take_failure(&failure, resident, result);
        return DT_OK;
    }
    DT_TRY(status);
    snprintf(when, sizeof when, " after %d steps", result->report.steps + 3);
    dt_verify_judge(rig, &run.output, when, resident);
    dt_run_fini(&run);
    result->verified_error = resident->verified_error;
    if (resident->outcome == DT_TRIAL_WRONG) {
        result->outcome = DT_TRIAL_WRONG;
        memcpy(result->cause, resident->cause, sizeof result->cause);
    }
    return DT_OK;
}

void dt_rig_describe(struct dt_resident *resident, struct dt_result *result)
{
    const struct dt_rig_load *load = &resident->load;
    if (result->report.loads == NULL)
        result->report.loads = json_array();
    if (load->ns > 0)
        json_array_append_new(result->report.loads,
                              json_pack("{s:b, s:b, s:I, s:I}", "first", load->first, "fresh",
                                        load->fresh, "ns", (json_int_t)load->ns, "read_bytes",
                                        (json_int_t)load->read_bytes));
    json_decref(result->device.memory);
    result->device.memory = resident->memory;
    resident->memory = NULL;
    if (dt_remarks_add(&result->report.remarks, resident->remarks) < 0)
        result->report.remarks = NULL; /* without memory a remark is lost */
    json_decref(resident->remarks);
    resident->remarks = NULL;
    result->outcome = resident->outcome;
    result->report.early = resident->early;
    memcpy(result->cause, resident->cause, sizeof result->cause);
    result->peak_bytes = resident->peak_bytes;
    result->verified_error = resident->verified_error;
    result->image_error = resident->image_error;
    result->repeat_error = resident->repeat_error;
    result->cold_seconds = resident->cold_ns > 0 ? (double)resident->cold_ns * 1e-9 : NAN;
}

/* A worker that does not release in time is killed; near the end of the session that time is short. */
void dt_rig_release(struct dt_rig *rig, struct dt_resident *resident)
{
    struct dt_failure failure;
    int64_t now = dt_clock_ns(), until = now + RELEASE_SECONDS * DT_NS_PER_SECOND;
    if (rig->end_ns > 0 && until > rig->end_ns)
        until = rig->end_ns > now + LEAST_GRACE_NS ? rig->end_ns : now + LEAST_GRACE_NS;
    if (resident->group != NULL && dt_group_alive(resident->group) &&
        dt_group_release(resident->group, resident->handle, until, &failure) < 0)
        resident->handle = -1; /* the group is dead or silent; it is replaced when next needed */
    resident->group = NULL;
    json_decref(resident->memory); /* in case dt_rig_describe was not called */
    json_decref(resident->remarks);
    resident->memory = resident->remarks = NULL;
}
