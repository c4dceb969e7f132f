/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include <math.h>

#define SHOT_TIE_MOST 1.01 /* a shoot-out candidate that is slower by more does not tie */

bool dt_session_eligible(const struct dt_session *session, const struct dt_result *result)
{
    double most = (double)session->max_latency_ns * 1e-9;
    return result->outcome == DT_TRIAL_OK && result->samples.n > 0 && !result->undone &&
           !dt_target_wrong(session->target, &result->point, result->facts.verified_error) &&
           (most <= 0 || result->summary.median <= most);
}

double dt_session_value(const struct dt_session *session, const struct dt_result *result)
{
    return dt_result_trial(result, session->target).value;
}

bool dt_verdict_default(const struct dt_session *session, const struct dt_entrant *entrant)
{
    return dt_point_equal(session->target->space, &entrant->point, &session->target->fallback);
}

int dt_verdict_candidates(const struct dt_session *session,
                          const struct dt_result *top[DT_CANDIDATES])
{
    int n = 0;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (!dt_session_eligible(session, trial) ||
            dt_point_equal(session->target->space, &trial->point, &session->target->fallback))
            continue;
        int at = n;
        for (; at > 0 && dt_session_value(session, trial) < dt_session_value(session, top[at - 1]);
             at--)
            if (at < DT_CANDIDATES)
                top[at] = top[at - 1];
        if (at < DT_CANDIDATES)
            top[at] = trial;
        n += n < DT_CANDIDATES;
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

/* Order of two plans that tie: fewer ranks, then less memory in all, then fewer values that differ from the default. */
static bool simpler(const struct dt_session *session, const struct dt_result *a,
                    const struct dt_result *b)
{
    if (a->ranks != b->ranks)
        return a->ranks < b->ranks;
    if (a->facts.peak_bytes != b->facts.peak_bytes)
        return a->facts.peak_bytes < b->facts.peak_bytes;
    return odd_values(session, &a->point) < odd_values(session, &b->point);
}

/* b is slower than a by less than so few sets can resolve. */
static bool tied(const struct dt_entrant *a, const struct dt_entrant *b)
{
    return b->ratio.ratio <= SHOT_TIE_MOST * a->ratio.ratio;
}

/* The entrant was measured beside the default. */
static bool may_win(const struct dt_entrant *entrant)
{
    return entrant->ratio.pairs > 0 && !dt_entrant_twin(entrant);
}

/* Chooses the least ratio, or the simplest plan that ties with it. */
void dt_verdict_choose(const struct dt_session *session, const struct dt_entrant entrants[], int n,
                       struct dt_session_finals *finals)
{
    int best = -1, chosen;
    for (int i = 1; i < n; i++)
        if (may_win(&entrants[i]) &&
            (best < 0 || entrants[i].ratio.ratio < entrants[best].ratio.ratio))
            best = i;
    chosen = best;
    for (int i = 1; i < n && best >= 0; i++)
        if (may_win(&entrants[i]) && tied(&entrants[best], &entrants[i]) &&
            simpler(session, &entrants[i].result, &entrants[chosen].result))
            chosen = i;
    for (int i = 1; i < n && best >= 0; i++)
        if (i != chosen && may_win(&entrants[i]) && tied(&entrants[best], &entrants[i]))
            finals->ties[finals->tie_count++] = entrants[i].point;
    finals->chosen = chosen >= 0 ? chosen + 1 : 0;
    if (chosen >= 0)
        finals->winner = entrants[chosen].point;
}

static int fastest_eligible(const struct dt_session *session)
{
    int best = -1;
    for (int i = 0; i < session->finals.entrant_count; i++) {
        const struct dt_result *result = &session->finals.entrants[i].result;
        if (dt_entrant_twin(&session->finals.entrants[i]))
            continue; /* the default, which is not eligible */
        if (!session->finals.entrants[i].out && dt_session_eligible(session, result) &&
            (best < 0 || dt_session_value(session, result) <
                             dt_session_value(session, &session->finals.entrants[best].result)))
            best = i;
    }
    return best;
}

static const struct dt_entrant *twin_of(const struct dt_session *session)
{
    for (int i = 1; i < session->finals.entrant_count; i++)
        if (dt_entrant_twin(&session->finals.entrants[i]))
            return &session->finals.entrants[i];
    return NULL;
}

struct dt_noise dt_session_noise(const struct dt_session *session)
{
    const struct dt_entrant *twin = twin_of(session);
    return twin != NULL ? dt_noise_of(&session->finals.entrants[0], twin) : dt_noise_none();
}

void dt_session_noise_note(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_entrant *twin = twin_of(session);
    struct dt_noise noise = dt_session_noise(session);
    dt_noise_note(&noise, out);
    if (noise.pairs > 0 || !dt_session_against_default(session) || !dt_session_enough(session))
        return;
    if (twin == NULL || twin->result.outcome == DT_TRIAL_INTERRUPTED)
        dt_text_add(out, "there was no time for a second copy of the default");
    else
        dt_text_add(out, "the second copy of the default failed (%s)",
                    dt_outcome_text(twin->result.outcome));
}

bool dt_session_enough(const struct dt_session *session)
{
    return dt_sets_quiet(&session->finals.sets) >= DT_SETS_LEAST;
}

bool dt_session_provisional(const struct dt_session *session)
{
    return dt_verdict_provisional(session->verdict);
}

bool dt_session_lacks_memory(const struct dt_session *session, const struct dt_result *result)
{
    int64_t most = session->target->max_bytes;
    return result->outcome == DT_TRIAL_MEMORY && !(most > 0 && result->facts.peak_bytes > most);
}

static int attempts(const struct dt_session *session, const struct dt_point *point)
{
    int n = 0;
    for (int i = 0; i < session->count; i++)
        n += session->trials[i].outcome != DT_TRIAL_INTERRUPTED &&
             dt_point_equal(session->target->space, &session->trials[i].point, point);
    return n;
}

bool dt_verdict_cannot_run(const struct dt_session *session, const struct dt_result *result)
{
    const struct dt_result *trial = dt_session_trial(session, &result->point);
    bool ran = trial != NULL && trial->outcome == DT_TRIAL_OK;
    bool may_pass =
        dt_outcome_may_pass(result->outcome) && !dt_target_breaks(session->target, &result->point);
    if (result->outcome == DT_TRIAL_OK || result->outcome == DT_TRIAL_WRONG)
        return result->outcome == DT_TRIAL_WRONG;
    if (ran || may_pass || result->outcome == DT_TRIAL_INTERRUPTED)
        return false;
    return !dt_session_lacks_memory(session, result) || attempts(session, &result->point) > 1;
}

/* The default cannot run here or breaks a limit: the fastest of the others, if there is one. A temporary failure of the
 * default decides nothing, nor does a lack of time for it. */
static void decide_without_default(const struct dt_session *session,
                                   struct dt_session_finals *finals)
{
    const struct dt_result *fallback = dt_session_role(session, DT_ENTRANT_DEFAULT);
    if (fallback == NULL ||
        (fallback->outcome != DT_TRIAL_OK && !dt_verdict_cannot_run(session, fallback)))
        return;
    finals->best = fastest_eligible(session);
    finals->verdict = finals->best >= 0 ? DT_VERDICT_UNOPPOSED : DT_VERDICT_PROVISIONAL;
    finals->limit_broken = finals->best < 0 && session->max_latency_ns > 0;
}

/* The challenger was compared in enough sets, or is excluded after its failures. */
static bool compared_enough(const struct dt_entrant *challenger)
{
    if (challenger->out)
        return !dt_compare_may_pass(challenger->result.outcome) ||
               challenger->failures >= DT_ATTEMPTS;
    return challenger->ratio.sets >= DT_SETS_LEAST;
}

/* The challenger ran beside the default in enough sets to be judged; NULL: not so, or there is none. */
static const struct dt_entrant *judged_challenger(const struct dt_session *session)
{
    const struct dt_entrant *challenger = &session->finals.entrants[1];
    bool stands = session->finals.entrant_count > 1 && dt_session_against_default(session) &&
                  challenger->role == DT_ENTRANT_CANDIDATE && dt_session_enough(session) &&
                  !challenger->out && compared_enough(challenger) &&
                  dt_session_eligible(session, &challenger->result);
    return stands ? challenger : NULL;
}

double dt_session_resolution(const struct dt_session *session)
{
    const struct dt_entrant *challenger = judged_challenger(session);
    double margin = dt_session_noise(session).margin;
    if (challenger == NULL || isnan(margin) || dt_judge_beats(&challenger->ratio, margin))
        return margin;
    return fmax(margin, 1 / challenger->ratio.interval.low - 1);
}

void dt_verdict_unresolved(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_entrant *challenger = judged_challenger(session);
    double resolution = dt_session_resolution(session);
    if (challenger == NULL)
        return;
    if (isnan(resolution)) {
        dt_text_add(out, "the noise floor is not known: ");
        dt_session_noise_note(session, out);
    } else if (!dt_judge_beats(&challenger->ratio, dt_session_noise(session).margin) &&
               resolution > DT_HIDDEN_GAIN_MOST && !(challenger->ratio.ratio > 1 + resolution)) {
        dt_text_add(out, "a gain of up to %.0f %% may hide in the noise", 100 * resolution);
    }
}

static void decide_against_default(const struct dt_session *session, bool challenged,
                                   struct dt_session_finals *finals)
{
    const struct dt_entrant *challenger = &finals->entrants[1];
    double margin = dt_session_noise(session).margin;
    bool stands =
        challenged && !challenger->out && dt_session_eligible(session, &challenger->result);
    finals->best = 0;
    if (!dt_session_enough(session) || (challenged && !compared_enough(challenger)))
        finals->verdict = DT_VERDICT_INCONCLUSIVE;
    else if (stands && dt_judge_beats(&challenger->ratio, margin)) {
        finals->best = 1;
        finals->verdict = DT_VERDICT_FASTER;
    } else
        finals->verdict =
            stands && !dt_entrant_slower(challenger) ? DT_VERDICT_TIE : DT_VERDICT_DEFAULT;
}

void dt_verdict_decide(const struct dt_session *session, struct dt_session_finals *finals)
{
    const struct dt_entrant *first = &finals->entrants[0];
    const struct dt_result *top[DT_CANDIDATES];
    bool challenged = dt_verdict_candidates(session, top) > 0;
    finals->verdict = DT_VERDICT_PROVISIONAL;
    finals->best = -1;
    finals->limit_broken = false;
    if (!dt_session_compared(session))
        return;
    if (dt_verdict_default(session, first) && !first->out &&
        dt_session_eligible(session, &first->result))
        decide_against_default(session, challenged, finals);
    else
        decide_without_default(session, finals);
}

bool dt_verdict_first_fell(const struct dt_session *session)
{
    const struct dt_session_finals *finals = &session->finals;
    bool others = false;
    for (int i = 1; i < finals->entrant_count; i++)
        others = others || !dt_entrant_twin(&finals->entrants[i]);
    return others && finals->entrants[0].out && dt_sets_quiet(&finals->sets) < DT_SETS_LEAST &&
           dt_verdict_cannot_run(session, &finals->entrants[0].result);
}

enum dt_verdict dt_session_verdict(const struct dt_session *session)
{
    dt_auto_text doubt = {0};
    dt_session_doubt(session, &doubt);
    bool decided = session->finals.best >= 0 && doubt.size == 0;
    return !decided && dt_session_best(session) != NULL ? DT_VERDICT_PROVISIONAL : session->verdict;
}

bool dt_session_limit_broken(const struct dt_session *session)
{
    bool limited = session->max_latency_ns > 0;
    for (int i = 0; i < session->count; i++)
        limited = limited || session->trials[i].outcome == DT_TRIAL_LIMIT;
    return session->finals.limit_broken || (limited && dt_session_leader(session) == NULL);
}
