/* SPDX-License-Identifier: MIT */
#include "tuner/trial/rig.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define START_SECONDS   60
#define RELEASE_SECONDS 5
#define LEAST_GRACE_NS  (DT_NS_PER_SECOND / 20)
#define PROJECTIONS     16

void dt_rig_init(struct dt_rig *rig, const struct dt_target *target, uint64_t seed)
{
    *rig = (struct dt_rig){.target = target, .verify = {.projections = PROJECTIONS, .seed = seed}};
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
    for (int i = 0; i < rig->reference_count; i++)
        dt_prepared_fini(&rig->references[i].prepared); /* count and causes stay, for the report */
}

/* The environment-only parameters of a point, one "NAME=value" a line. */
static void list_environment(const struct dt_space *space, const struct dt_point *point,
                             struct dt_text *out)
{
    for (int a = 0; a < dt_space_axes(space); a++) {
        const struct dt_axis *axis = dt_space_axis(space, a);
        if (axis->role != DT_ROLE_ENVIRONMENT)
            continue;
        const char *name = axis->variable != NULL ? axis->variable : axis->name;
        if (axis->labels != NULL)
            dt_text_add(out, "%s=%s\n", name, axis->labels[point->index[a]]);
        else
            dt_text_add(out, "%s=%lld\n", name, (long long)axis->values[point->index[a]]);
    }
}

static struct dt_rig_slot *find_slot(struct dt_rig *rig, int ranks, const char *environment)
{
    for (int i = 0; i < DT_RIG_GROUPS; i++) {
        struct dt_rig_slot *slot = &rig->slots[i];
        if (dt_group_alive(slot->group) && slot->ranks == ranks &&
            strcmp(dt_text_at(&slot->environment), environment) == 0)
            return slot;
    }
    return NULL;
}

/* A dead group goes, but not while plans are pinned: a resident may still point at it. NULL: no room while pinned. */
static struct dt_rig_slot *free_slot(struct dt_rig *rig)
{
    for (int i = 0; i < DT_RIG_GROUPS && !rig->pinned; i++)
        if (rig->slots[i].group != NULL && !dt_group_alive(rig->slots[i].group))
            close_slot(&rig->slots[i], 0);
    for (int i = 0; i < DT_RIG_GROUPS; i++)
        if (rig->slots[i].group == NULL)
            return &rig->slots[i];
    if (rig->pinned)
        return NULL;
    struct dt_rig_slot *victim = &rig->slots[rig->started % DT_RIG_GROUPS];
    close_slot(victim, DT_NS_PER_SECOND);
    return victim;
}

/* Cuts "A=1\nB=2\n" (kept in *text) into a NULL-ended list. */
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

static dt_status start_group(struct dt_rig *rig, struct dt_rig_slot *slot, int64_t deadline_ns,
                             struct dt_failure *failure)
{
    const char *lines[DT_AXES_MAX + 1];
    char *copy = strdup(dt_text_at(&slot->environment));
    if (copy == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    split_lines(copy, lines, DT_AXES_MAX + 1);
    int64_t most = dt_clock_ns() + START_SECONDS * DT_NS_PER_SECOND;
    struct dt_launch launch = {.program = rig->target->program,
                               .ranks = rig->target->by_mpirun ? slot->ranks : 1,
                               .oversubscribed = slot->ranks > rig->target->cores,
                               .environment = lines};
    dt_status status =
        dt_group_start(&launch, rig->target->workload, deadline_ns < most ? deadline_ns : most,
                       &slot->group, failure);
    rig->started++;
    free(copy);
    return status;
}

/* The group of the point's class, started when there is none alive. */
static dt_status get_group(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                           struct dt_group **group, struct dt_failure *failure)
{
    struct dt_text environment = {0};
    list_environment(rig->target->space, point, &environment);
    int ranks = dt_target_ranks(rig->target, point);
    struct dt_rig_slot *slot = find_slot(rig, ranks, dt_text_at(&environment));
    if (slot != NULL) {
        dt_text_fini(&environment);
        *group = slot->group;
        return DT_OK;
    }
    slot = free_slot(rig);
    if (slot == NULL) {
        dt_text_fini(&environment);
        *failure = (struct dt_failure){DT_TRIAL_FAILED, "too many groups ended"};
        return dt_fail(DT_FAILED, "%s", failure->cause);
    }
    slot->ranks = ranks;
    slot->environment = environment;
    dt_status status = start_group(rig, slot, deadline_ns, failure);
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
    int64_t most = dt_clock_ns() + 15 * DT_NS_PER_SECOND + 20 * rig->longest_prepare_ns;
    if (rig->longest_prepare_ns == 0)
        most += 585 * DT_NS_PER_SECOND; /* nothing known of this workload yet */
    return most < deadline_ns ? most : deadline_ns;
}

/* Prepares without verification. A plan that does not fit beside the parked groups gets a second try alone. */
static dt_status prepare_raw(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                             struct dt_group **group, struct dt_prepared *prepared,
                             struct dt_failure *failure)
{
    json_t *plan = dt_point_json(rig->target->space, point);
    dt_status status = DT_OK;
    for (int attempt = 0; attempt < 2; attempt++) {
        int64_t began = dt_clock_ns();
        status = get_group(rig, point, deadline_ns, group, failure);
        if (status == DT_OK)
            status = dt_group_prepare(*group, plan, &rig->verify,
                                      prepare_deadline(rig, deadline_ns), prepared, failure);
        int64_t took = dt_clock_ns() - began;
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

/* The baseline at the point's batch. */
static struct dt_point reference_point(const struct dt_rig *rig, const struct dt_point *point)
{
    struct dt_point one = rig->target->baseline;
    int batch = dt_space_role(rig->target->space, DT_ROLE_BATCH);
    if (batch >= 0)
        one.index[batch] = point->index[batch];
    return one;
}

/* Finds or makes the reference of the point's batch; failed, with its cause, when it cannot be had: plans are then not
 * verified, which the report says. */
static dt_status get_reference(struct dt_rig *rig, const struct dt_point *point,
                               int64_t deadline_ns, const struct dt_reference **out)
{
    int batch = dt_target_batch(rig->target, point);
    for (int i = 0; i < rig->reference_count; i++)
        if (rig->references[i].batch == batch) {
            *out = &rig->references[i];
            return DT_OK;
        }
    struct dt_reference *reference = &rig->references[rig->reference_count % DT_RIG_REFERENCES];
    if (rig->reference_count >= DT_RIG_REFERENCES)
        dt_prepared_fini(&reference->prepared);
    *reference = (struct dt_reference){.batch = batch};
    struct dt_point one = reference_point(rig, point);
    struct dt_group *group = NULL;
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    dt_status status = prepare_raw(rig, &one, deadline_ns, &group, &reference->prepared, &failure);
    if (status == DT_FAILED &&
        failure.outcome == DT_TRIAL_CRASHED) /* once more: all depends on it */
        status = prepare_raw(rig, &one, deadline_ns, &group, &reference->prepared, &failure);
    if (status != DT_OK && status != DT_FAILED)
        return status;
    if (rig->reference_count < DT_RIG_REFERENCES)
        rig->reference_count++;
    if (status == DT_FAILED) {
        reference->failed = true;
        snprintf(reference->cause, sizeof reference->cause, "%.190s", failure.cause);
    } else if (dt_group_alive(group)) {
        status = dt_group_release(group, reference->prepared.handle, deadline_ns, &failure);
        if (status < 0 && status != DT_FAILED)
            return status;
    }
    *out = reference;
    return DT_OK;
}

/* Estimate of ||a - b|| / ||b|| of the worst image (docs/protocol.md); INFINITY when something is not finite. */
static double relative_error(const struct dt_prepared *a, const struct dt_prepared *b)
{
    double worst = 0;
    for (int i = 0; i < a->images; i++) {
        double sum = 0;
        for (int k = 0; k < a->projections; k++) {
            double d =
                a->projection[i * a->projections + k] - b->projection[i * a->projections + k];
            sum += d * d;
        }
        double error = sqrt(sum / a->projections) / b->norm[i];
        if (!isfinite(error) || !isfinite(a->norm[i]))
            return INFINITY;
        worst = error > worst ? error : worst;
    }
    return worst;
}

static bool is_lossy(const struct dt_rig *rig, const struct dt_point *point)
{
    for (int a = 0; a < dt_space_axes(rig->target->space); a++)
        if (dt_space_axis(rig->target->space, a)->role == DT_ROLE_LOSSY &&
            point->index[a] != rig->target->baseline.index[a])
            return true;
    return false;
}

static bool all_finite(const struct dt_prepared *prepared)
{
    for (int i = 0; i < prepared->images; i++)
        if (!isfinite(prepared->norm[i]))
            return false;
    for (int i = 0; i < prepared->images * prepared->projections; i++)
        if (!isfinite(prepared->projection[i]))
            return false;
    return true;
}

static void judge(const struct dt_rig *rig, const struct dt_prepared *prepared,
                  const struct dt_reference *reference, struct dt_resident *resident)
{
    if (prepared->images == 0)
        return;
    if (!all_finite(prepared)) {
        resident->outcome = DT_TRIAL_WRONG;
        snprintf(resident->cause, sizeof resident->cause, "the output is not finite");
        return;
    }
    if (reference == NULL || reference->failed || reference->prepared.images != prepared->images ||
        reference->prepared.projections != prepared->projections)
        return;
    resident->verified_error = relative_error(prepared, &reference->prepared);
    if (resident->verified_error <= rig->target->tolerance)
        return;
    resident->outcome = DT_TRIAL_WRONG;
    snprintf(resident->cause, sizeof resident->cause,
             "the output differs from the 1-rank plan's by %.2g, allowed %.2g",
             resident->verified_error, rig->target->tolerance);
}

dt_status dt_rig_prepare(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                         struct dt_resident *resident)
{
    const struct dt_reference *reference = NULL;
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    struct dt_prepared prepared = {0};
    *resident = (struct dt_resident){.verified_error = NAN};
    if (!is_lossy(rig, point))
        DT_TRY(get_reference(rig, point, deadline_ns, &reference));
    dt_status status = prepare_raw(rig, point, deadline_ns, &resident->group, &prepared, &failure);
    if (status == DT_FAILED) {
        resident->group = NULL;
        resident->outcome = failure.outcome;
        memcpy(resident->cause, failure.cause, sizeof resident->cause);
        return DT_OK;
    }
    DT_TRY(status);
    resident->handle = prepared.handle;
    resident->images = prepared.images;
    resident->cold_ns = prepared.cold_ns;
    resident->peak_bytes = prepared.peak_bytes;
    judge(rig, &prepared, reference, resident);
    dt_prepared_fini(&prepared);
    return DT_OK;
}

dt_status dt_rig_run(struct dt_rig *rig, struct dt_resident *resident, int n, const char *mode,
                     int64_t deadline_ns, struct dt_result *result)
{
    struct dt_failure failure;
    struct dt_run run = {0};
    (void)rig;
    dt_status status = dt_group_run(resident->group, &(struct dt_steps){resident->handle, n, mode},
                                    deadline_ns, &run, &failure);
    if (status == DT_FAILED) {
        result->outcome = resident->outcome = failure.outcome;
        memcpy(result->cause, failure.cause, sizeof result->cause);
        memcpy(resident->cause, failure.cause, sizeof resident->cause);
        resident->group = dt_group_alive(resident->group) ? resident->group : NULL;
        return DT_OK;
    }
    DT_TRY(status);
    if (result->steps > 0 && run.ranks != result->ranks) {
        result->outcome = resident->outcome = DT_TRIAL_PROTOCOL;
        snprintf(result->cause, sizeof result->cause,
                 "the worker answered with %d ranks, before with %d", run.ranks, result->ranks);
        memcpy(resident->cause, result->cause, sizeof resident->cause);
        dt_run_fini(&run);
        return DT_OK;
    }
    status = dt_result_add(result, &run, strcmp(mode, "measure") == 0);
    dt_run_fini(&run);
    return status;
}

void dt_rig_describe(const struct dt_resident *resident, struct dt_result *result)
{
    result->outcome = resident->outcome;
    memcpy(result->cause, resident->cause, sizeof result->cause);
    result->peak_bytes = resident->peak_bytes;
    result->verified_error = resident->verified_error;
    result->cold_seconds = resident->cold_ns > 0 ? (double)resident->cold_ns * 1e-9 : NAN;
}

/* A worker that does not release in time is killed; at the end of the session there is little time. */
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
}
