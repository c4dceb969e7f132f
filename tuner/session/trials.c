/* SPDX-License-Identifier: MIT */
#include "tuner/session/trials.h"

#include "base/clock.h"
#include "tuner/session/finals.h"
#include "tuner/session/history.h"
#include "tuner/session/verdict.h"
#include "tuner/trial/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FIRST_SHARE                                                                                \
    0.35 /* of the time: the most the first trial may take; one that hangs must not end the session */
#define KNOWN_SHARE                                                                                \
    0.08 /* the default and the baseline take no further look beyond this share of the time */
#define RACING_SHARE 0.04 /* nor does any other plan beyond this */
#define TRIAL_STEPS  13   /* of a usual trial: two of verification, two of warm-up, a first look */
#define HALF_WIDTH   0.01
#define SOAK_SECONDS                                                                               \
    3 /* of warm-up in a session's first trial, and at most this share of the time */
#define SOAK_SHARE    0.02
#define START_SECONDS 0.1 /* to start a group, shared by the plans it runs */

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

static dt_status keep_trial(struct dt_session *session, const struct dt_result *result)
{
    DT_TRY(dt_session_keep(session, result));
    refresh_progress(session);
    dt_progress_trial(&session->progress, result);
    return dt_history_trial(session, result);
}

/* One trial; racing: against the best so far. */
static dt_status try_point(struct dt_session *session, const struct dt_point *point, bool racing,
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
    return keep_trial(session, &result);
}

dt_status dt_trials_known(struct dt_session *session)
{
    const struct dt_target *target = session->target;
    int64_t began = dt_clock_ns();
    DT_TRY(try_point(session, &target->fallback, false, FIRST_SHARE));
    session->first_cost_ms = (int)((dt_clock_ns() - began) / 1000000);
    if (!dt_point_equal(target->space, &target->baseline, &target->fallback))
        DT_TRY(try_point(session, &target->baseline, false, FIRST_SHARE / 2));
    if (session->has_against && dt_session_trial(session, &session->against) == NULL)
        DT_TRY(try_point(session, &session->against, false, FIRST_SHARE / 2));
    return DT_OK;
}

/* The final comparison must have the time for its eight rounds, the search at least a third of its share. */
static void leave_time_for_finals(struct dt_session *session)
{
    int64_t all = session->deadline_ns - session->began_ns;
    int64_t latest = session->deadline_ns - (int64_t)(dt_finals_seconds(session, 2) * 1e9);
    int64_t least = session->began_ns + (int64_t)(DT_TRIALS_SHARE / 3 * (double)all);
    latest = latest > least ? latest : least;
    if (latest < session->search_deadline_ns)
        session->search_deadline_ns = latest;
}

static void choose_search(struct dt_session *session)
{
    const char *asked = session->options->search;
    double left = (double)(session->search_deadline_ns - dt_clock_ns()) * 1e-9;
    const struct dt_result *known = dt_session_leader(session);
    double one = START_SECONDS + TRIAL_STEPS * (known != NULL ? known->summary.median : 0);
    double all = one * (double)dt_space_count(session->target->space);
    bool fits = all <= left;
    snprintf(session->search, sizeof session->search, "%s",
             strcmp(asked, "auto") != 0 ? asked
             : fits                     ? "exhaustive"
                                        : "random");
    if (strcmp(asked, "auto") != 0)
        snprintf(session->why, sizeof session->why, "asked for");
    else if (left <= 0)
        snprintf(session->why, sizeof session->why, "no time is left for trials");
    else
        snprintf(session->why, sizeof session->why,
                 "%lld plans at %.1f s each %s the %.0f s left for trials",
                 (long long)dt_space_count(session->target->space), one,
                 fits ? "fit into" : "do not fit into", left);
}

dt_status dt_trials_search(struct dt_session *session)
{
    struct dt_search_opts opts = {.space = session->target->space,
                                  .seed = (uint64_t)session->options->seed,
                                  .start = &session->target->fallback};
    struct dt_search *search = NULL;
    leave_time_for_finals(session);
    choose_search(session);
    DT_TRY(dt_search_new(session->search, &opts, &search));
    for (int i = 0; i < session->count; i++) {
        struct dt_trial trial = dt_result_trial(&session->trials[i], session->target);
        dt_search_tell(search, &trial);
    }
    dt_status status = DT_OK;
    dt_progress_note(&session->progress, "search: %s (%s)", session->search, session->why);
    while (status == DT_OK && dt_clock_ns() < session->search_deadline_ns) {
        struct dt_point point;
        status = dt_search_ask(search, &point);
        if (status == DT_OK)
            status = try_point(session, &point, true, 0.12);
        if (status == DT_OK) {
            struct dt_trial trial =
                dt_result_trial(&session->trials[session->count - 1], session->target);
            dt_search_tell(search, &trial);
        }
    }
    dt_search_free(search);
    return status < 0 ? status : DT_OK;
}
