/* SPDX-License-Identifier: MIT */
#include "tuner/session/trials.h"

#include "base/clock.h"
#include "tuner/session/history.h"
#include "tuner/session/record.h"
#include "tuner/session/verdict.h"
#include "tuner/trial/measure.h"

#include <math.h>
#include <stdio.h>

#define FIRST_SHARE                                                                                \
    0.35 /* of the time: the most the first trial may take; one that hangs must not end the session */
#define KNOWN_SHARE                                                                                \
    0.08 /* the default and the baseline take no further look beyond this share of the time */
#define RACING_SHARE 0.04 /* nor does any other plan beyond this */
#define HALF_WIDTH   0.01
#define SOAK_SECONDS                                                                               \
    3 /* of warm-up in a session's first trial, and at most this share of the time */
#define SOAK_SHARE     0.02
#define SETTLE_SECONDS 5 /* for the memory of a killed trial to come back */

static void refresh_progress(struct dt_session *session)
{
    session->progress.best = dt_session_leader(session);
    session->progress.fallback = dt_session_trial(session, &session->target->fallback);
    if (session->progress.fallback != NULL && session->progress.fallback->n == 0)
        session->progress.fallback = NULL;
}

/* Longest a trial may take: an eighth of the time, but enough for what the first one needed. */
static int64_t trial_deadline(const struct dt_session *session, double share)
{
    int64_t all = session->deadline_ns - session->began_ns;
    int64_t most = (int64_t)((double)all * share);
    int64_t least = 4LL * session->first_cost_ms * 1000000 > 5 * DT_NS_PER_SECOND
                        ? 4LL * session->first_cost_ms * 1000000
                        : 5 * DT_NS_PER_SECOND;
    int64_t deadline = dt_clock_ns() + (most > least ? most : least);
    return deadline < session->search_deadline_ns ? deadline : session->search_deadline_ns;
}

/* A worker that was killed gives its GPUs' memory back when the driver gets to it. Groups that are parked hold theirs. */
static dt_status settle(struct dt_session *session, const struct dt_result *result)
{
    const struct dt_target *target = session->target;
    bool killed = result->outcome == DT_TRIAL_CRASHED || result->outcome == DT_TRIAL_HUNG;
    if (!killed || !target->backend.cuda || target->backend.shared)
        return DT_OK;
    dt_rig_fresh(&session->rig, DT_NS_PER_SECOND);
    return dt_backend_settle(&target->backend, target->cores,
                             dt_clock_ns() + SETTLE_SECONDS * DT_NS_PER_SECOND);
}

static dt_status keep_trial(struct dt_session *session, const struct dt_result *result)
{
    DT_TRY(dt_session_keep(session, result));
    refresh_progress(session);
    if (dt_session_leader(session) == &session->trials[session->count - 1] &&
        session->unstored_ns == 0)
        session->unstored_ns = dt_clock_ns();
    dt_progress_trial(&session->progress, result);
    return dt_history_trial(session, result);
}

dt_status dt_trials_try(struct dt_session *session, const struct dt_point *point, bool racing,
                        double share)
{
    int64_t all = session->deadline_ns - session->began_ns;
    double rest = racing ? RACING_SHARE : KNOWN_SHARE;
    struct dt_measure how = {.deadline_ns = trial_deadline(session, share),
                             .rest_ns = dt_clock_ns() + (int64_t)(rest * (double)all),
                             .half_width = HALF_WIDTH,
                             .rival = racing ? dt_session_leader(session) : NULL};
    if (session->count == 0) /* the machine's own slow start is nobody's fault */
        how.warm_seconds = fmin(SOAK_SECONDS, SOAK_SHARE * (double)all * 1e-9);
    struct dt_result result;
    if (racing)
        dt_record_now(session, how.deadline_ns - dt_clock_ns());
    dt_progress_now(&session->progress, point, "trial");
    dt_status status = dt_measure_plan(&session->rig, point, &how, &result);
    if (result.outcome == DT_TRIAL_HUNG && dt_clock_ns() >= session->search_deadline_ns) {
        result.outcome = DT_TRIAL_INTERRUPTED;
        snprintf(result.cause, sizeof result.cause, "the time for trials ended first");
    }
    if (status < 0) {
        dt_result_fini(&result);
        return status;
    }
    DT_TRY(keep_trial(session, &result));
    return settle(session, &result);
}

/* The default first; on GPUs the plan of one, which needs no NCCL: whatever becomes of that, there is a result. */
dt_status dt_trials_known(struct dt_session *session)
{
    const struct dt_target *target = session->target;
    int64_t began = dt_clock_ns();
    bool same = dt_point_equal(target->space, &target->baseline, &target->fallback);
    bool one_first = target->backend.cuda && !same;
    const struct dt_point *first = one_first ? &target->baseline : &target->fallback;
    DT_TRY(dt_trials_try(session, first, false, FIRST_SHARE));
    session->first_cost_ms = (int)((dt_clock_ns() - began) / 1000000);
    if (!same)
        DT_TRY(dt_trials_try(session, one_first ? &target->fallback : &target->baseline, false,
                             FIRST_SHARE / 2));
    dt_record_now(session, INT64_MAX);
    if (session->has_against && dt_session_trial(session, &session->against) == NULL)
        DT_TRY(dt_trials_try(session, &session->against, false, FIRST_SHARE / 2));
    return DT_OK;
}
