/* SPDX-License-Identifier: MIT */
#include "tuner/session/verdict.h"

#include <math.h>

#define TIE_MOST                                                                                   \
    1.01 /* a plan slower by more is no tie, where no twin says what eight rounds can tell apart */

bool dt_session_eligible(const struct dt_session *session, const struct dt_result *result)
{
    double most = (double)session->options->max_latency_ns * 1e-9;
    return result->outcome == DT_TRIAL_OK && result->n > 0 &&
           (most <= 0 || result->summary.median <= most);
}

double dt_session_value(const struct dt_session *session, const struct dt_result *result)
{
    return dt_result_trial(result, session->target).value;
}

const struct dt_result *dt_session_leader(const struct dt_session *session)
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

bool dt_verdict_default(const struct dt_session *session, const struct dt_entrant *entrant)
{
    return dt_point_equal(session->target->space, &entrant->point, &session->target->fallback);
}

int dt_verdict_candidates(const struct dt_session *session,
                          const struct dt_result *top[DT_CANDIDATES])
{
    const int room = DT_CANDIDATES;
    int n = 0;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (!dt_session_eligible(session, trial) ||
            dt_point_equal(session->target->space, &trial->point, &session->target->fallback))
            continue;
        int at = n < room ? n++ : room;
        while (at > 0 &&
               dt_session_value(session, trial) < dt_session_value(session, top[at - 1])) {
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
                 const struct dt_entrant *b, int rounds, double tie_most)
{
    double logs[DT_ROUNDS_MOST];
    int pairs = 0;
    const struct dt_objective *objective = session->target->objective;
    for (int i = 0; i < rounds && i < DT_ROUNDS_MOST; i++) {
        double x = objective->value(a->visits[i], a->result.batch, a->result.devices);
        double y = objective->value(b->visits[i], b->result.batch, b->result.devices);
        if (isfinite(x) && isfinite(y))
            logs[pairs++] = log(y / x);
    }
    struct dt_ratio ratio = dt_stats_ratio(logs, pairs, 0.95);
    return !(ratio.interval.low > 1) && ratio.ratio <= tie_most;
}

static double tie_most(const struct dt_entrant *first, const struct dt_entrant *last)
{
    struct dt_noise noise = dt_entrant_twin(last) ? dt_noise_of(first, last) : dt_noise_none();
    return noise.pairs > 0 ? 1 + noise.margin : TIE_MOST;
}

/* The least ratio, and among those it ties with the simplest. */
int dt_verdict_choose(struct dt_session *session, const struct dt_entrant entrants[], int n,
                      int rounds)
{
    double most = tie_most(&entrants[0], &entrants[n - 1]);
    int best = -1, chosen;
    n -= dt_entrant_twin(&entrants[n - 1]);
    for (int i = 1; i < n; i++)
        if (entrants[i].ratio.pairs > 0 &&
            (best < 0 || entrants[i].ratio.ratio < entrants[best].ratio.ratio))
            best = i;
    chosen = best;
    session->tie_count = 0;
    for (int i = 1; i < n && best >= 0; i++) {
        if (i == best || entrants[i].ratio.pairs == 0 ||
            !tied(session, &entrants[best], &entrants[i], rounds, most))
            continue;
        if (simpler(session, &entrants[i].result, &entrants[chosen].result))
            chosen = i;
    }
    for (int i = 1; i < n && best >= 0; i++)
        if (i != chosen && entrants[i].ratio.pairs > 0 &&
            (i == best || tied(session, &entrants[best], &entrants[i], rounds, most)))
            session->ties[session->tie_count++] = entrants[i].point;
    return chosen;
}

static int fastest_eligible(const struct dt_session *session)
{
    int best = -1;
    for (int i = 0; i < session->entrant_count; i++) {
        const struct dt_result *result = &session->entrants[i].result;
        if (dt_entrant_twin(&session->entrants[i]))
            continue; /* the default, which is not fit */
        if (!session->entrants[i].out && dt_session_eligible(session, result) &&
            (best < 0 || dt_session_value(session, result) <
                             dt_session_value(session, &session->entrants[best].result)))
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

void dt_verdict_decide(struct dt_session *session)
{
    const struct dt_entrant *fallback = &session->entrants[0], *challenger = &session->entrants[1];
    const struct dt_result *top[DT_CANDIDATES];
    bool stands = dt_verdict_default(session, fallback);
    bool challenged = dt_verdict_candidates(session, top) > 0;
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

void dt_verdict_end(struct dt_session *session)
{
    if (session->best < 0 && dt_session_best(session) != NULL)
        session->verdict = DT_VERDICT_PROVISIONAL;
}
