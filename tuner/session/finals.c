/* SPDX-License-Identifier: MIT */
/* The shoot-out chooses the winner, the final comparison judges it on samples the choice has not seen: the figure of
 * the winner is then free of the winner's curse (docs/measuring.md). */
#include "tuner/session/finals.h"

#include "base/clock.h"

#include <math.h>
#include <string.h>

#define SHOOTOUT_SHARE 0.75
#define CANDIDATES     3
#define TIE_MOST                                                                                   \
    1.01 /* eight rounds cannot tell more apart than this; a plan slower by more is no tie */
#define STOP_SECONDS  0.6 /* to stop the last groups */
#define START_SECONDS 0.5 /* to start fresh ones */
#define SETUP_STEPS   5   /* of a plan before its first round */
#define MARGIN        1.3

static double value_of(const struct dt_session *session, const struct dt_result *result)
{
    return dt_result_trial(result, session->target).value;
}

/* The best eligible trials that are not the default, best first. */
static int top_candidates(const struct dt_session *session, const struct dt_result *top[], int room)
{
    int n = 0;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (!dt_session_eligible(session, trial) ||
            dt_point_equal(session->target->space, &trial->point, &session->target->fallback))
            continue;
        int at = n < room ? n++ : room;
        while (at > 0 && value_of(session, trial) < value_of(session, top[at - 1])) {
            if (at < room)
                top[at] = top[at - 1];
            at--;
        }
        if (at < room)
            top[at] = trial;
    }
    return n;
}

static int odd_values(const struct dt_session *session, const struct dt_point *point)
{
    int n = 0;
    for (int a = 0; a < dt_space_axes(session->target->space); a++)
        n += point->index[a] != session->target->fallback.index[a];
    return n;
}

/* Of two plans that tie: fewer ranks, then less memory in all, then fewer values that differ from the default. */
static bool simpler(const struct dt_session *session, const struct dt_result *a,
                    const struct dt_result *b)
{
    if (a->ranks != b->ranks)
        return a->ranks < b->ranks;
    if (a->peak_bytes != b->peak_bytes)
        return a->peak_bytes < b->peak_bytes;
    return odd_values(session, &a->point) < odd_values(session, &b->point);
}

/* The interval of b's value over a's, pair by pair, holds 1. */
static bool tied(const struct dt_session *session, const struct dt_entrant *a,
                 const struct dt_entrant *b, int rounds)
{
    double logs[64];
    int pairs = 0;
    const struct dt_objective *objective = session->target->objective;
    for (int i = 0; i < rounds && i < 64; i++) {
        double x = objective->value(a->visits[i], a->result.batch, a->result.devices);
        double y = objective->value(b->visits[i], b->result.batch, b->result.devices);
        if (isfinite(x) && isfinite(y))
            logs[pairs++] = log(y / x);
    }
    struct dt_ratio ratio = dt_stats_ratio(logs, pairs, 0.95);
    return !(ratio.interval.low > 1) && ratio.ratio <= TIE_MOST;
}

/* The winner of a shoot-out: the least ratio, and among those it ties with the simplest. */
static int choose(struct dt_session *session, struct dt_entrant entrants[], int n, int rounds)
{
    int best = -1, chosen;
    for (int i = 1; i < n; i++)
        if (entrants[i].ratio.pairs > 0 &&
            (best < 0 || entrants[i].ratio.ratio < entrants[best].ratio.ratio))
            best = i;
    chosen = best;
    session->tie_count = 0;
    for (int i = 1; i < n && best >= 0; i++) {
        if (i == best || entrants[i].ratio.pairs == 0 ||
            !tied(session, &entrants[best], &entrants[i], rounds))
            continue;
        if (simpler(session, &entrants[i].result, &entrants[chosen].result))
            chosen = i;
    }
    for (int i = 1; i < n && best >= 0; i++)
        if (i != chosen && entrants[i].ratio.pairs > 0 &&
            (i == best || tied(session, &entrants[best], &entrants[i], rounds)))
            session->ties[session->tie_count++] = entrants[i].point;
    return chosen;
}

/* A plan that failed its trial is not worth a place. */
static bool runs(const struct dt_session *session, const struct dt_point *point)
{
    for (int i = 0; i < session->count; i++)
        if (dt_point_equal(session->target->space, &session->trials[i].point, point))
            return session->trials[i].outcome == DT_TRIAL_OK;
    return false;
}

double dt_finals_seconds(const struct dt_session *session, int more)
{
    const struct dt_result *known[] = {dt_session_role(session, "default"),
                                       dt_session_role(session, "baseline"),
                                       dt_session_role(session, "against")};
    double sum = 0;
    for (int i = 0; i < 3; i++)
        if (known[i] != NULL && known[i]->n > 0 && (i == 0 || known[i] != known[0]))
            sum += known[i]->summary.median;
    if (known[0] != NULL && known[0]->n > 0)
        sum += more * known[0]->summary.median;
    return START_SECONDS + MARGIN * (SETUP_STEPS + 2 * dt_look_samples[0]) * sum;
}

/* Picks one challenger of the default among the top candidates; false when there is none. */
static dt_status shootout(struct dt_session *session, struct dt_point *challenger, bool *found)
{
    const struct dt_result *top[CANDIDATES];
    int n = top_candidates(session, top, CANDIDATES), rounds = 0;
    *found = n > 0;
    if (n > 0)
        *challenger = top[0]->point;
    double left = (double)(session->deadline_ns - dt_clock_ns()) * 1e-9 - STOP_SECONDS;
    if (n < 2 || left < 2 * dt_finals_seconds(session, 1)) /* the final comparison comes first */
        return DT_OK;
    struct dt_entrant entrants[CANDIDATES + 1];
    const struct dt_point *anchor =
        runs(session, &session->target->fallback) ? &session->target->fallback : &top[0]->point;
    entrants[0] = (struct dt_entrant){.role = "default", .point = *anchor};
    for (int i = 0; i < n; i++)
        entrants[i + 1] = (struct dt_entrant){.role = "candidate", .point = top[i]->point};
    int64_t all = session->deadline_ns - session->began_ns;
    struct dt_compare how = {.deadline_ns =
                                 session->began_ns + (int64_t)(SHOOTOUT_SHARE * (double)all),
                             .looks = 1,
                             .seed = (uint64_t)session->options->seed,
                             .progress = dt_progress_round,
                             .context = &session->progress};
    session->progress.comparison = "shoot-out";
    dt_status status = dt_compare_run(&session->rig, entrants, n + 1, &how, &rounds);
    int chosen = status == DT_OK ? choose(session, entrants, n + 1, rounds) : -1;
    if (chosen > 0)
        *challenger = entrants[chosen].point;
    for (int i = 0; i <= n; i++)
        dt_entrant_fini(&entrants[i]);
    return status;
}

static void enter(struct dt_session *session, const char *role, const struct dt_point *point,
                  bool decisive)
{
    for (int i = 0; i < session->entrant_count; i++)
        if (dt_point_equal(session->target->space, &session->entrants[i].point, point))
            return;
    session->entrants[session->entrant_count++] =
        (struct dt_entrant){.role = role, .point = *point, .decisive = decisive};
}

static int fastest_eligible(const struct dt_session *session)
{
    int best = -1;
    for (int i = 0; i < session->entrant_count; i++) {
        const struct dt_result *result = &session->entrants[i].result;
        if (!session->entrants[i].out && dt_session_eligible(session, result) &&
            (best < 0 ||
             value_of(session, result) < value_of(session, &session->entrants[best].result)))
            best = i;
    }
    return best;
}

static void decide(struct dt_session *session, bool challenged)
{
    const struct dt_entrant *fallback = &session->entrants[0], *challenger = &session->entrants[1];
    bool stands =
        dt_point_equal(session->target->space, &fallback->point, &session->target->fallback);
    session->verdict = DT_VERDICT_PROVISIONAL;
    session->best = -1;
    if (session->rounds < dt_look_samples[0])
        return;
    if (!stands || fallback->out || !dt_session_eligible(session, &fallback->result)) {
        session->best = fastest_eligible(session);
        session->verdict = session->best >= 0 ? DT_VERDICT_UNOPPOSED : DT_VERDICT_PROVISIONAL;
        session->limit_broken = session->best < 0 && session->options->max_latency_ns > 0;
    } else if (challenged && !challenger->out &&
               dt_session_eligible(session, &challenger->result) && dt_entrant_faster(challenger)) {
        session->best = 1;
        session->verdict = DT_VERDICT_FASTER;
    } else {
        session->best = 0;
        bool rivals = challenged && !challenger->out && !dt_entrant_slower(challenger) &&
                      dt_session_eligible(session, &challenger->result);
        session->verdict = rivals ? DT_VERDICT_TIE : DT_VERDICT_DEFAULT;
    }
}

/* The plan all others are compared with failed before anything could be decided. */
static bool first_fell(const struct dt_session *session)
{
    return session->entrant_count > 1 && session->entrants[0].out &&
           session->rounds < dt_look_samples[0];
}

dt_status dt_finals_run(struct dt_session *session)
{
    struct dt_point challenger;
    bool challenged = false;
    DT_TRY(shootout(session, &challenger, &challenged));
    if (runs(session, &session->target->fallback))
        enter(session, "default", &session->target->fallback, false);
    if (challenged)
        enter(session, "candidate", &challenger, true);
    if (runs(session, &session->target->baseline))
        enter(session, "baseline", &session->target->baseline, false);
    if (session->has_against && runs(session, &session->against))
        enter(session, "against", &session->against, false);
    struct dt_compare how = {.deadline_ns = session->deadline_ns - (int64_t)(STOP_SECONDS * 1e9),
                             .looks = DT_LOOKS,
                             .seed = (uint64_t)session->options->seed + 1,
                             .progress = dt_progress_round,
                             .context = &session->progress};
    session->progress.comparison = "final comparison";
    dt_status status = dt_compare_run(&session->rig, session->entrants, session->entrant_count,
                                      &how, &session->rounds);
    while (status == DT_OK && first_fell(session)) {
        for (int i = 0; i < session->entrant_count; i++)
            dt_entrant_fini(&session->entrants[i]);
        session->entrant_count--;
        memmove(&session->entrants[0], &session->entrants[1],
                (size_t)session->entrant_count * sizeof session->entrants[0]);
        status = dt_compare_run(&session->rig, session->entrants, session->entrant_count, &how,
                                &session->rounds);
    }
    if (status == DT_OK || status == DT_EINTR)
        decide(session, challenged);
    return status;
}
