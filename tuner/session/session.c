/* SPDX-License-Identifier: MIT */
#include "tuner/session/session.h"

#include "base/clock.h"
#include "tuner/session/finals.h"
#include "tuner/session/history.h"
#include "tuner/session/verdict.h"
#include "tuner/trial/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shares of the time: trials end at 60 %, the shoot-out at 75 %, the final comparison at the end less the time to
 * stop the last groups. */
#define SEARCH_SHARE 0.60
#define FIRST_SHARE                                                                                \
    0.35 /* of the time: the most the first trial may take; one that hangs must not end the session */
#define HOPELESS 1.25
#define KNOWN_SHARE                                                                                \
    0.08 /* the default and the baseline take no further look beyond this share of the time */
#define RACING_SHARE 0.04 /* nor does any other plan beyond this */
#define TRIAL_STEPS  13   /* of a usual trial: two of verification, two of warm-up, a first look */
#define HALF_WIDTH   0.01
#define SOAK_SECONDS                                                                               \
    3 /* of warm-up in a session's first trial, and at most this share of the time */
#define SOAK_SHARE    0.02
#define START_SECONDS 0.1 /* to start a group, shared by the plans it runs */

const char *dt_verdict_text(enum dt_verdict verdict)
{
    static const char *const texts[] = {"none",    "faster",      "tie",
                                        "default", "provisional", "unopposed"};
    return texts[verdict];
}

static const struct dt_result *trial_at(const struct dt_session *session,
                                        const struct dt_point *point)
{
    for (int i = 0; i < session->count; i++)
        if (dt_point_equal(session->target->space, &session->trials[i].point, point))
            return &session->trials[i];
    return NULL;
}

/* The best eligible trial so far, or NULL. */
static const struct dt_result *leader(const struct dt_session *session)
{
    const struct dt_result *best = NULL;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (dt_session_eligible(session, trial) &&
            (best == NULL || dt_session_value(session, trial) < dt_session_value(session, best)))
            best = trial;
    }
    return best;
}

static void refresh_progress(struct dt_session *session)
{
    session->progress.best = leader(session);
    session->progress.fallback = trial_at(session, &session->target->fallback);
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

dt_status dt_session_keep(struct dt_session *session, const struct dt_result *result)
{
    if (session->trials == NULL || session->count == session->room) {
        int room = 2 * session->room + 16;
        struct dt_result *trials = realloc(session->trials, (size_t)room * sizeof *trials);
        if (trials == NULL)
            return dt_fail(DT_ENOMEM, "out of memory");
        session->trials = trials;
        session->room = room;
    }
    session->trials[session->count++] = *result;
    return DT_OK;
}

static dt_status keep_trial(struct dt_session *session, const struct dt_result *result)
{
    DT_TRY(dt_session_keep(session, result));
    refresh_progress(session);
    dt_progress_trial(&session->progress, result);
    return dt_history_trial(session, result);
}

/* One trial; racing: drop it early when it is hopeless beside the best so far. */
static dt_status try_point(struct dt_session *session, const struct dt_point *point, bool racing,
                           double share)
{
    int64_t all = session->deadline_ns - session->began_ns;
    double rest = racing ? RACING_SHARE : KNOWN_SHARE;
    struct dt_measure how = {.deadline_ns = trial_deadline(session, share),
                             .rest_ns = dt_clock_ns() + (int64_t)(rest * (double)all),
                             .half_width = HALF_WIDTH,
                             .hopeless = INFINITY,
                             .good_enough = INFINITY};
    if (session->count == 0) /* the machine's own slow start is nobody's fault */
        how.warm_seconds = fmin(SOAK_SECONDS, SOAK_SHARE * (double)all * 1e-9);
    const struct dt_result *best = leader(session);
    if (racing && best != NULL) {
        how.hopeless = HOPELESS * dt_session_value(session, best);
        how.good_enough = dt_result_trial(best, session->target).high;
        how.good_enough = isfinite(how.good_enough) ? how.good_enough : INFINITY;
    }
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

/* Default, baseline, --against: the plans everything is judged by. */
static dt_status try_known(struct dt_session *session)
{
    const struct dt_target *target = session->target;
    int64_t began = dt_clock_ns();
    DT_TRY(try_point(session, &target->fallback, false, FIRST_SHARE));
    session->first_cost_ms = (int)((dt_clock_ns() - began) / 1000000);
    if (!dt_point_equal(target->space, &target->baseline, &target->fallback))
        DT_TRY(try_point(session, &target->baseline, false, FIRST_SHARE / 2));
    if (session->has_against && trial_at(session, &session->against) == NULL)
        DT_TRY(try_point(session, &session->against, false, FIRST_SHARE / 2));
    return DT_OK;
}

/* The final comparison must have the time for its eight rounds, the search at least a third of its share. */
static void leave_time_for_finals(struct dt_session *session)
{
    int64_t all = session->deadline_ns - session->began_ns;
    int64_t latest = session->deadline_ns - (int64_t)(dt_finals_seconds(session, 2) * 1e9);
    int64_t least = session->began_ns + (int64_t)(SEARCH_SHARE / 3 * (double)all);
    latest = latest > least ? latest : least;
    if (latest < session->search_deadline_ns)
        session->search_deadline_ns = latest;
}

static void choose_search(struct dt_session *session)
{
    const char *asked = session->options->search;
    double left = (double)(session->search_deadline_ns - dt_clock_ns()) * 1e-9;
    const struct dt_result *known = leader(session);
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

static dt_status search(struct dt_session *session)
{
    struct dt_search_opts opts = {.space = session->target->space,
                                  .seed = (uint64_t)session->options->seed,
                                  .start = &session->target->fallback};
    struct dt_search *search = NULL;
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

static dt_status verdict_status(struct dt_session *session)
{
    const struct dt_result *failed = NULL;
    bool any = false;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        any = any || trial->outcome == DT_TRIAL_OK || trial->outcome == DT_TRIAL_SLOW;
        if (failed == NULL && trial->outcome != DT_TRIAL_INTERRUPTED)
            failed = trial;
    }
    if (!any && failed == NULL)
        return dt_fail(DT_EPROVISIONAL,
                       "the time for trials (%.0f %% of the budget) ended before one plan was "
                       "measured: give it more, as in --budget 2m",
                       100 * SEARCH_SHARE);
    if (!any)
        return dt_fail(DT_EALLFAILED, "every trial failed; the first: %s: %s",
                       dt_outcome_text(failed->outcome), failed->cause);
    if (session->limit_broken)
        return dt_fail(DT_EINFEASIBLE, "none of the %d plans tried keeps --max-latency %.4g ms",
                       session->count, (double)session->options->max_latency_ns * 1e-6);
    if (session->verdict == DT_VERDICT_PROVISIONAL)
        return dt_fail(DT_EPROVISIONAL,
                       "the budget ended before the final comparison: the result is provisional");
    return DT_OK;
}

static dt_status run(struct dt_session *session)
{
    DT_TRY(try_known(session));
    leave_time_for_finals(session);
    DT_TRY(search(session));
    session->limit_broken = session->options->max_latency_ns > 0 && leader(session) == NULL;
    if (leader(session) == NULL)
        return DT_OK;
    return dt_finals_run(session);
}

dt_status dt_session_run(struct dt_session *session)
{
    int64_t all = session->deadline_ns - session->began_ns;
    session->search_deadline_ns = session->began_ns + (int64_t)(SEARCH_SHARE * (double)all);
    session->best = -1;
    dt_rig_init(&session->rig, session->target, (uint64_t)session->options->seed);
    session->rig.end_ns = session->deadline_ns - DT_NS_PER_SECOND / 2;
    dt_progress_init(&session->progress, session->target, session->options->quiet,
                     session->deadline_ns);
    session->progress.began_ns = session->began_ns;
    dt_status status = run(session);
    dt_verdict_end(session);
    int64_t left = session->deadline_ns - dt_clock_ns(), grace = 10 * DT_NS_PER_SECOND;
    dt_progress_end(&session->progress);
    dt_rig_fini(&session->rig,
                left < grace ? (left > DT_NS_PER_SECOND / 5 ? left : DT_NS_PER_SECOND / 5) : grace);
    session->elapsed_seconds = (double)(dt_clock_ns() - session->began_ns) * 1e-9;
    return status < 0 ? status : verdict_status(session);
}

void dt_session_fini(struct dt_session *session)
{
    for (int i = 0; i < session->count; i++)
        dt_result_fini(&session->trials[i]);
    free(session->trials);
    for (int i = 0; i < session->entrant_count; i++)
        dt_entrant_fini(&session->entrants[i]);
    session->trials = NULL;
    session->count = session->entrant_count = 0;
}

static const struct dt_point *point_of(const struct dt_session *session, const char *role)
{
    if (strcmp(role, "default") == 0)
        return &session->target->fallback;
    if (strcmp(role, "baseline") == 0)
        return &session->target->baseline;
    return session->has_against ? &session->against : NULL;
}

bool dt_session_against_default(const struct dt_session *session)
{
    return session->entrant_count > 0 &&
           dt_point_equal(session->target->space, &session->entrants[0].point,
                          &session->target->fallback);
}

const struct dt_entrant *dt_session_entrant(const struct dt_session *session, const char *role)
{
    const struct dt_point *point = point_of(session, role);
    for (int i = 0;
         i < session->entrant_count && point != NULL && session->rounds >= dt_look_samples[0]; i++)
        if (dt_point_equal(session->target->space, &session->entrants[i].point, point))
            return &session->entrants[i];
    return NULL;
}

const struct dt_result *dt_session_role(const struct dt_session *session, const char *role)
{
    const struct dt_entrant *entrant = dt_session_entrant(session, role);
    const struct dt_point *point = point_of(session, role);
    return entrant != NULL ? &entrant->result : point != NULL ? trial_at(session, point) : NULL;
}

const struct dt_result *dt_session_best(const struct dt_session *session)
{
    if (session->best >= 0)
        return &session->entrants[session->best].result;
    const struct dt_result *fallback = dt_session_role(session, "default");
    return fallback != NULL && fallback->n > 0 ? fallback : leader(session);
}
