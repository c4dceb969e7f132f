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
    1.01 /* a plan slower by more is no tie, where no twin says what eight rounds can tell apart */
#define STOP_SECONDS  0.6 /* to stop the last groups */
#define START_SECONDS 0.5 /* to start fresh ones */
#define SETUP_STEPS   5   /* of a plan before its first round */
#define MARGIN        1.3

/* Entrants: the default, the candidates, perhaps the default's twin. */
struct shootout {
    struct dt_entrant entrants[CANDIDATES + 2];
    int candidates, rounds;
    double tie_most; /* ratio of a plan that may still tie with the best */
};

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

/* The interval of b's value over a's, pair by pair, holds 1, and b is slower by less than is told apart. */
static bool tied(const struct dt_session *session, const struct dt_entrant *a,
                 const struct dt_entrant *b, const struct shootout *shootout)
{
    int rounds = shootout->rounds;
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
    return !(ratio.interval.low > 1) && ratio.ratio <= shootout->tie_most;
}

/* The winner of a shoot-out: the least ratio, and among those it ties with the simplest. */
static int choose(struct dt_session *session, const struct shootout *shootout)
{
    const struct dt_entrant *entrants = shootout->entrants;
    int n = shootout->candidates + 1, best = -1, chosen;
    for (int i = 1; i < n; i++)
        if (entrants[i].ratio.pairs > 0 &&
            (best < 0 || entrants[i].ratio.ratio < entrants[best].ratio.ratio))
            best = i;
    chosen = best;
    session->tie_count = 0;
    for (int i = 1; i < n && best >= 0; i++) {
        if (i == best || entrants[i].ratio.pairs == 0 ||
            !tied(session, &entrants[best], &entrants[i], shootout))
            continue;
        if (simpler(session, &entrants[i].result, &entrants[chosen].result))
            chosen = i;
    }
    for (int i = 1; i < n && best >= 0; i++)
        if (i != chosen && entrants[i].ratio.pairs > 0 &&
            (i == best || tied(session, &entrants[best], &entrants[i], shootout)))
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

/* Eight rounds of plans whose steps add up to `steps` seconds. */
static double comparison_seconds(double steps)
{
    return START_SECONDS + MARGIN * (SETUP_STEPS + 2 * dt_look_samples[0]) * steps;
}

static double default_seconds(const struct dt_session *session)
{
    const struct dt_result *known = dt_session_role(session, "default");
    return known != NULL && known->n > 0 ? known->summary.median : 0;
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
    return comparison_seconds(sum + more * default_seconds(session));
}

static double seconds_until(int64_t ns)
{
    return (double)(ns - dt_clock_ns()) * 1e-9;
}

static bool has_default(const struct dt_session *session, const struct dt_entrant *first)
{
    return dt_point_equal(session->target->space, &first->point, &session->target->fallback);
}

/* Runs the shoot-out of the top plans, with a twin when there is time for it; sets its rounds and ratios. */
static dt_status shoot(struct dt_session *session, struct shootout *shootout)
{
    int64_t all = session->deadline_ns - session->began_ns;
    struct dt_compare how = {.deadline_ns =
                                 session->began_ns + (int64_t)(SHOOTOUT_SHARE * (double)all),
                             .looks = 1,
                             .seed = (uint64_t)session->options->seed,
                             .progress = dt_progress_round,
                             .context = &session->progress};
    struct dt_entrant *entrants = shootout->entrants;
    int n = shootout->candidates + 1;
    bool twin =
        has_default(session, &entrants[0]) &&
        seconds_until(how.deadline_ns) > comparison_seconds((n + 1) * default_seconds(session));
    if (twin)
        entrants[n] = (struct dt_entrant){.role = "twin", .point = entrants[0].point};
    session->progress.comparison = "shoot-out";
    DT_TRY(dt_compare_run(&session->rig, entrants, n + twin, &how, &shootout->rounds));
    struct dt_noise noise = dt_noise_of(&entrants[0], &entrants[n]);
    shootout->tie_most = twin && noise.pairs > 0 ? 1 + noise.margin : TIE_MOST;
    return DT_OK;
}

/* Picks one challenger of the default among the top candidates; false when there is none. */
static dt_status shootout(struct dt_session *session, struct dt_point *challenger, bool *found)
{
    const struct dt_result *top[CANDIDATES];
    int n = top_candidates(session, top, CANDIDATES);
    *found = n > 0;
    if (n > 0)
        *challenger = top[0]->point;
    double left = seconds_until(session->deadline_ns) - STOP_SECONDS;
    if (n < 2 || left < 2 * dt_finals_seconds(session, 2)) /* the final comparison comes first */
        return DT_OK;
    struct shootout shootout = {.candidates = n};
    const struct dt_point *anchor =
        runs(session, &session->target->fallback) ? &session->target->fallback : &top[0]->point;
    shootout.entrants[0] = (struct dt_entrant){.role = "default", .point = *anchor};
    for (int i = 0; i < n; i++)
        shootout.entrants[i + 1] = (struct dt_entrant){.role = "candidate", .point = top[i]->point};
    dt_status status = shoot(session, &shootout);
    int chosen = status == DT_OK ? choose(session, &shootout) : -1;
    if (chosen > 0)
        *challenger = shootout.entrants[chosen].point;
    for (int i = 0; i < CANDIDATES + 2; i++)
        dt_entrant_fini(&shootout.entrants[i]);
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

/* The default once more: what its ratios say is noise. Last, so that it takes no memory that a plan needs. */
static void enter_twin(struct dt_session *session, bool challenged)
{
    if (session->entrant_count == 0 || !has_default(session, &session->entrants[0]))
        return;
    if (seconds_until(session->deadline_ns) - STOP_SECONDS <
        dt_finals_seconds(session, challenged ? 2 : 1))
        return;
    session->entrants[session->entrant_count++] =
        (struct dt_entrant){.role = "twin", .point = session->target->fallback};
}

/* The plan all are compared with fell: the next one takes its place, and its twin goes too. */
static void drop_first(struct dt_session *session)
{
    int kept = 0;
    for (int i = 0; i < session->entrant_count; i++) {
        struct dt_entrant *entrant = &session->entrants[i];
        dt_entrant_fini(entrant);
        if (i > 0 && !dt_entrant_twin(entrant))
            memmove(&session->entrants[kept++], entrant, sizeof *entrant);
    }
    session->entrant_count = kept;
}

static int fastest_eligible(const struct dt_session *session)
{
    int best = -1;
    for (int i = 0; i < session->entrant_count; i++) {
        const struct dt_result *result = &session->entrants[i].result;
        if (dt_entrant_twin(&session->entrants[i]))
            continue; /* the default, which is not fit */
        if (!session->entrants[i].out && dt_session_eligible(session, result) &&
            (best < 0 ||
             value_of(session, result) < value_of(session, &session->entrants[best].result)))
            best = i;
    }
    return best;
}

static const struct dt_entrant *twin_of(const struct dt_session *session)
{
    for (int i = 1; i < session->entrant_count; i++)
        if (dt_entrant_twin(&session->entrants[i]))
            return &session->entrants[i];
    return NULL;
}

struct dt_noise dt_session_noise(const struct dt_session *session)
{
    const struct dt_entrant *twin = twin_of(session);
    return twin != NULL ? dt_noise_of(&session->entrants[0], twin) : dt_noise_none();
}

void dt_session_noise_note(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_entrant *twin = twin_of(session);
    struct dt_noise noise = dt_session_noise(session);
    dt_noise_note(&noise, out);
    if (noise.pairs > 0 || !dt_session_against_default(session) ||
        session->rounds < dt_look_samples[0])
        return;
    if (twin == NULL || twin->result.outcome == DT_TRIAL_INTERRUPTED)
        dt_text_add(out, "there was no time for a second copy of the default");
    else
        dt_text_add(out, "the second copy of the default failed (%s)",
                    dt_outcome_text(twin->result.outcome));
}

static void decide(struct dt_session *session, bool challenged)
{
    const struct dt_entrant *fallback = &session->entrants[0], *challenger = &session->entrants[1];
    bool stands = has_default(session, fallback);
    struct dt_noise noise = dt_session_noise(session);
    session->verdict = DT_VERDICT_PROVISIONAL;
    session->best = -1;
    if (session->rounds < dt_look_samples[0])
        return;
    if (!stands || fallback->out || !dt_session_eligible(session, &fallback->result)) {
        session->best = fastest_eligible(session);
        session->verdict = session->best >= 0 ? DT_VERDICT_UNOPPOSED : DT_VERDICT_PROVISIONAL;
        session->limit_broken = session->best < 0 && session->options->max_latency_ns > 0;
    } else if (challenged && !challenger->out &&
               dt_session_eligible(session, &challenger->result) &&
               dt_judge_beats(&challenger->ratio, noise.margin)) {
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
    enter_twin(session, challenged);
    struct dt_compare how = {.deadline_ns = session->deadline_ns - (int64_t)(STOP_SECONDS * 1e9),
                             .looks = DT_LOOKS,
                             .seed = (uint64_t)session->options->seed + 1,
                             .progress = dt_progress_round,
                             .context = &session->progress};
    session->progress.comparison = "final comparison";
    dt_status status = dt_compare_run(&session->rig, session->entrants, session->entrant_count,
                                      &how, &session->rounds);
    while (status == DT_OK && first_fell(session)) {
        drop_first(session);
        status = dt_compare_run(&session->rig, session->entrants, session->entrant_count, &how,
                                &session->rounds);
    }
    if (status == DT_OK || status == DT_EINTR)
        decide(session, challenged);
    return status;
}
