/* SPDX-License-Identifier: MIT */
/* Verifies a plan's output against that of one float32 rank by a few random projections of each image
 * (docs/measuring.md), so neither the controller nor the workers keep outputs. */
#include "tuner/measure/rig_int.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ATTEMPTS 3 /* to run a reference */

/* On GPUs own kernels, launched one by one, are the reference: cuDNN has no float32, and what a graph replays is compared with
 * what is not replayed. The first value of either parameter means so. */
static void choose_plain(const struct dt_space *space, struct dt_point *one)
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
        choose_plain(rig->target->space, &one);
    return one;
}

/* Other data types are compared with float32, computed in a separate group, which is stopped to free its weights. */
static dt_status make_reference(struct dt_rig *rig, const struct dt_point *one, int64_t deadline_ns,
                                struct dt_group **group, struct dt_reference *reference,
                                struct dt_failure *failure)
{
    *group = NULL;
    if (rig->target->reference != NULL)
        return dt_rig_prepare_apart(rig, one, deadline_ns, &reference->prepared, failure);
    return dt_rig_prepare_raw(rig, one, deadline_ns, group, &reference->prepared, failure);
}

static struct dt_reference *find_reference(struct dt_rig *rig, int batch)
{
    for (int i = 0; i < rig->reference_count; i++)
        if (rig->references[i].batch == batch)
            return &rig->references[i];
    return NULL;
}

/* Takes the place of the last one when there are too many. */
static struct dt_reference *new_reference(struct dt_rig *rig, int batch)
{
    if (rig->reference_count < DT_RIG_REFERENCES)
        rig->reference_count++;
    struct dt_reference *reference = &rig->references[rig->reference_count - 1];
    dt_prepared_fini(&reference->prepared);
    *reference = (struct dt_reference){.batch = batch};
    return reference;
}

dt_status dt_verify_reference(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                              const struct dt_reference **out)
{
    int batch = dt_target_batch(rig->target, point);
    struct dt_reference *reference = find_reference(rig, batch);
    if (reference == NULL)
        reference = new_reference(rig, batch);
    if (reference->attempts > 0 &&
        (!reference->failed || !reference->may_pass || reference->attempts >= ATTEMPTS)) {
        *out = reference;
        return DT_OK;
    }
    struct dt_point one = reference_point(rig, point);
    struct dt_group *group = NULL;
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    dt_status status = make_reference(rig, &one, deadline_ns, &group, reference, &failure);
    reference->attempts++;
    if (status == DT_FAILED && dt_outcome_may_pass(failure.outcome) && reference->attempts == 1 &&
        dt_clock_ns() < deadline_ns) { /* one more attempt, since every plan needs it */
        status = make_reference(rig, &one, deadline_ns, &group, reference, &failure);
        reference->attempts++;
    }
    if (status != DT_OK && status != DT_FAILED)
        return status;
    reference->failed = status == DT_FAILED;
    if (status == DT_FAILED) {
        reference->may_pass = dt_outcome_may_pass(failure.outcome);
        snprintf(reference->cause, sizeof reference->cause, "%.190s", failure.cause);
    } else if (dt_group_alive(group)) {
        status = dt_group_release(group, reference->prepared.handle, deadline_ns, &failure);
        if (status < 0 && status != DT_FAILED)
            return status;
    }
    *out = reference;
    return DT_OK;
}

/* Estimate of ||a - b|| / ||b|| of row i of a and row k of b (docs/protocol.md); INFINITY when something is not
 * finite. */
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

/* The largest error of all rows of all ranks against the reference's first rank, and the rank that has it. */
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

void dt_verify_judge(struct dt_rig *rig, const struct dt_outputs *output, const char *when,
                     struct dt_resident *resident)
{
    const struct dt_reference *reference = find_reference(rig, resident->batch);
    const struct dt_outputs *right = reference != NULL ? &reference->prepared.output : NULL;
    char where[32] = "";
    int rank;
    if (output->ranks == 0)
        return;
    if (!all_finite(output)) {
        resident->outcome = DT_TRIAL_WRONG;
        snprintf(resident->cause, sizeof resident->cause, "the output%s is not finite", when);
        return;
    }
    if (right == NULL || reference->failed || right->rows != output->rows ||
        right->projections != output->projections)
        return;
    double error = largest_error(output, right, &rank);
    if (!(error <= resident->verified_error))
        resident->verified_error = error;
    if (error <= resident->tolerance)
        return;
    if (output->ranks > 1)
        snprintf(where, sizeof where, " of rank %d", rank);
    resident->outcome = DT_TRIAL_WRONG;
    snprintf(resident->cause, sizeof resident->cause,
             "the output%s%s differs from the 1-rank plan's by %.2g, allowed %.2g", where, when,
             error, resident->tolerance);
}

void dt_verify_image(struct dt_rig *rig, const struct dt_outputs *image,
                     struct dt_resident *resident)
{
    const struct dt_reference *reference = find_reference(rig, resident->batch);
    const struct dt_outputs *right = reference != NULL ? &reference->prepared.image : NULL;
    int which;
    if (image->ranks == 0 || right == NULL || right->rows != image->rows ||
        right->projections != image->projections)
        return;
    struct dt_outputs first = *image;
    first.ranks = 1;
    resident->image_error = largest_error(&first, right, &which);
    if (right->ranks > 1)
        resident->repeat_error = largest_error(right, right, &which);
}

double dt_verify_tolerance(const struct dt_rig *rig, const struct dt_point *point)
{
    if (dt_target_breaks(rig->target, point))
        return INFINITY; /* its error is told, and judged by the session */
    return is_lossy(rig, point) ? rig->target->lossy_error : rig->target->tolerance;
}
