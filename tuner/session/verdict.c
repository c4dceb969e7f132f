/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include <math.h>

#define SHOT_TIE_MOST 1.01 /* a shoot-out candidate that is slower by more does not tie */

bool dt_session_eligible(const struct dt_session *session, const struct dt_result *result)
{
    double most = (double)session->max_latency_ns * 1e-9;
    return result->outcome == DT_TRIAL_OK && result->samples.n > 0 && !result->undone &&
           !dt_target_wrong(session->target, &result->point, result->facts.verified_error) &&
           (most <= 0 || dt_result_slowest(result) <= most);
}

double dt_session_value(const struct dt_session *session, const struct dt_result *result)
{
    return dt_result_trial(result, session->target).value;
}

bool dt_verdict_default(const struct dt_session *session, const struct dt_entrant *entrant)
{
    return dt_point_equal(session->target->space, &entrant->point, &session->target->fallback);
}

bool dt_verdict_needs_twin(const struct dt_session *session, const struct dt_entrant *first)
{
    return dt_verdict_default(session, first) ||
           dt_target_documented(session->target, &first->point);
}

int dt_verdict_candidates(const struct dt_session *session,
                          const struct dt_result *top[DT_CANDIDATES])
{
    int n = 0;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (!dt_session_eligible(session, trial) ||
            dt_point_equal(session->target->space, &trial->point, &session->target->fallback) ||
            dt_target_documented(session->target, &trial->point))
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

/* Order of two plans that tie: fewer ranks, then less memory in all, then fewer values that
 * differ from the default. */
static bool is_simpler(const struct dt_session *session, const struct dt_result *a,
                       const struct dt_result *b)
{
    if (a->ranks != b->ranks)
        return a->ranks < b->ranks;
    if (a->facts.peak_bytes != b->facts.peak_bytes)
        return a->facts.peak_bytes < b->facts.peak_bytes;
    return odd_values(session, &a->point) < odd_values(session, &b->point);
}

/* b is slower than a by less than so few sets can resolve. */
static bool is_tied(const struct dt_entrant *a, const struct dt_entrant *b)
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
        if (may_win(&entrants[i]) && is_tied(&entrants[best], &entrants[i]) &&
            is_simpler(session, &entrants[i].result, &entrants[chosen].result))
            chosen = i;
    for (int i = 1; i < n && best >= 0; i++)
        if (i != chosen && may_win(&entrants[i]) && is_tied(&entrants[best], &entrants[i]))
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
    const struct dt_entrant *first = session->finals.entrants;
    struct dt_noise noise = dt_session_noise(session);
    dt_noise_note(&noise, out);
    if (noise.pairs > 0 || session->finals.entrant_count == 0 ||
        !dt_verdict_needs_twin(session, first) || !dt_session_enough(session))
        return;
    const char *of = dt_verdict_default(session, first) ? "default" : "documented plan";
    if (twin == NULL || twin->result.outcome == DT_TRIAL_INTERRUPTED)
        dt_text_add(out, "there was no time for a second copy of the %s", of);
    else
        dt_text_add(out, "the second copy of the %s failed (%s)", of,
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
    return result->outcome == DT_TRIAL_MEMORY &&
           !dt_target_exceeds(session->target, result->ranks, result->facts.peak_bytes, NULL);
}

static int count_attempts(const struct dt_session *session, const struct dt_point *point)
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
    return !dt_session_lacks_memory(session, result) || count_attempts(session, &result->point) > 1;
}

/* ---- the final comparison */

static bool is_usable(const struct dt_session *session, const struct dt_entrant *entrant)
{
    return !entrant->out && dt_session_eligible(session, &entrant->result);
}

/* Index of the documented plan among the entrants, where it is not the default; -1:
 * it is not one of them. */
static int documented_entrant(const struct dt_session *session)
{
    const struct dt_session_finals *finals = &session->finals;
    for (int i = 0; i < finals->entrant_count; i++)
        if (!dt_entrant_twin(&finals->entrants[i]) &&
            dt_target_documented(session->target, &finals->entrants[i].point) &&
            !dt_verdict_default(session, &finals->entrants[i]))
            return i;
    return -1;
}

/* Index of the plan of the search that challenges default and documented plan; -1: none. */
static int challenger_of(const struct dt_session *session)
{
    const struct dt_session_finals *finals = &session->finals;
    for (int i = 1; i < finals->entrant_count; i++)
        if (finals->entrants[i].role == DT_ENTRANT_CANDIDATE)
            return i;
    return -1;
}

bool dt_verdict_default_usable(const struct dt_session *session)
{
    return dt_session_against_default(session) && is_usable(session, &session->finals.entrants[0]);
}

/* Index of the better of default and documented plan. -1: neither can be used, or the default
 * failed in a way that may be temporary, which decides nothing. */
static int opponent_of(const struct dt_session *session)
{
    const struct dt_session_finals *finals = &session->finals;
    int documented = documented_entrant(session);
    if (finals->entrant_count == 0 ||
        (finals->entrants[0].out && !dt_verdict_cannot_run(session, &finals->entrants[0].result)))
        return -1;
    if (documented >= 0 && !is_usable(session, &finals->entrants[documented]))
        documented = -1;
    return dt_judge_opponent(dt_verdict_default_usable(session) ? 0 : -1, documented,
                             documented >= 0 ? finals->entrants[documented].ratio.ratio : NAN);
}

/* The entrant was compared with the default, where that can be used, and with the opponent in
 * enough sets, or is excluded after its failures. */
static bool compared_enough(const struct dt_session *session, int i)
{
    const struct dt_entrant *entrant = &session->finals.entrants[i];
    if (entrant->out)
        return !dt_compare_may_pass(entrant->result.outcome) || entrant->failures >= DT_ATTEMPTS;
    return (!dt_verdict_default_usable(session) || entrant->ratio.sets >= DT_SETS_LEAST) &&
           (i == session->finals.opponent || dt_session_ratio(session, i).sets >= DT_SETS_LEAST);
}

/* The plan that was compared to replace default and documented plan, in enough sets to be judged:
 * the challenger, without one the documented plan. -1: not so, or there is none. */
static int judged_challenger(const struct dt_session *session)
{
    const struct dt_session_finals *finals = &session->finals;
    int challenger = challenger_of(session);
    if (challenger < 0 && dt_verdict_default_usable(session))
        challenger = documented_entrant(session);
    bool stands = challenger > 0 && finals->opponent >= 0 && dt_session_enough(session) &&
                  compared_enough(session, challenger) &&
                  is_usable(session, &finals->entrants[challenger]);
    return stands ? challenger : -1;
}

double dt_session_resolution(const struct dt_session *session)
{
    int challenger = judged_challenger(session);
    double margin = dt_session_noise(session).margin;
    if (challenger < 0 || isnan(margin))
        return margin;
    struct dt_ratio ratio = dt_session_ratio(session, challenger);
    return dt_judge_beats(&ratio, margin) ? margin : fmax(margin, 1 / ratio.interval.low - 1);
}

void dt_verdict_unresolved(const struct dt_session *session, struct dt_text *out)
{
    int challenger = judged_challenger(session);
    double resolution = dt_session_resolution(session);
    if (challenger < 0)
        return;
    struct dt_ratio ratio = dt_session_ratio(session, challenger);
    if (isnan(resolution)) {
        dt_text_add(out, "the noise floor is not known: ");
        dt_session_noise_note(session, out);
    } else if (!dt_judge_beats(&ratio, dt_session_noise(session).margin) &&
               resolution > DT_HIDDEN_GAIN_MOST && !(ratio.ratio > 1 + resolution)) {
        dt_text_add(out, "a gain of up to %.0f %% may hide in the noise", 100 * resolution);
    }
}

/* The fastest of all, where neither default nor documented plan can run here, or both break a
 * limit. A temporary failure of the default decides nothing, nor does a lack of time for it. */
static void decide_unopposed(const struct dt_session *session, struct dt_session_finals *finals)
{
    const struct dt_result *fallback = dt_session_role(session, DT_ENTRANT_DEFAULT);
    if (fallback == NULL ||
        (fallback->outcome != DT_TRIAL_OK && !dt_verdict_cannot_run(session, fallback)))
        return;
    finals->best = fastest_eligible(session);
    finals->verdict = finals->best >= 0 ? DT_VERDICT_UNOPPOSED : DT_VERDICT_PROVISIONAL;
    finals->limit_broken = finals->best < 0 && session->max_latency_ns > 0;
}

/* The entrant is shown faster than the default by more than the noise, or the
 * default cannot be used. */
static bool beats_default(const struct dt_session *session, int entrant)
{
    return !dt_verdict_default_usable(session) ||
           dt_judge_beats(&session->finals.entrants[entrant].ratio,
                          dt_session_noise(session).margin);
}

/* The same of the better of default and documented plan. */
static bool beats_opponent(const struct dt_session *session, int entrant)
{
    struct dt_ratio ratio = dt_session_ratio(session, entrant);
    return dt_judge_beats(&ratio, dt_session_noise(session).margin);
}

/* Nothing was shown faster than the default, or than the documented plan where that is the better
 * one: it beats the default, or a plan does that is not shown faster than it. */
static void decide_known(const struct dt_session *session, int challenger,
                         struct dt_session_finals *finals)
{
    int documented = documented_entrant(session), other = challenger;
    const struct dt_entrant *entrants = finals->entrants;
    bool better =
        documented >= 0 && is_usable(session, &entrants[documented]) &&
        (beats_default(session, documented) ||
         (finals->opponent == documented && challenger > 0 && beats_default(session, challenger)));
    if (other < 0)
        other = documented;
    bool stands =
        other > 0 && is_usable(session, &entrants[other]) && !dt_entrant_slower(&entrants[other]);
    finals->best = better ? documented : 0;
    finals->verdict = better ? DT_VERDICT_DOCUMENTED : stands ? DT_VERDICT_TIE : DT_VERDICT_DEFAULT;
}

void dt_verdict_decide(const struct dt_session *session, struct dt_session_finals *finals)
{
    const struct dt_result *top[DT_CANDIDATES];
    int challenger = challenger_of(session), documented = documented_entrant(session);
    bool challenged = dt_verdict_candidates(session, top) > 0;
    finals->verdict = DT_VERDICT_PROVISIONAL;
    finals->best = -1;
    finals->opponent = opponent_of(session);
    finals->limit_broken = false;
    if (!dt_session_compared(session))
        return;
    if (finals->opponent < 0) {
        decide_unopposed(session, finals);
        return;
    }
    bool enough = dt_session_enough(session) &&
                  (!challenged || challenger < 0 || compared_enough(session, challenger)) &&
                  (documented <= 0 || compared_enough(session, documented));
    finals->best = dt_verdict_default_usable(session) ? 0 : finals->opponent;
    if (!enough)
        finals->verdict = DT_VERDICT_INCONCLUSIVE;
    else if (challenger > 0 && is_usable(session, &finals->entrants[challenger]) &&
             beats_default(session, challenger) && beats_opponent(session, challenger)) {
        finals->best = challenger;
        finals->verdict = DT_VERDICT_FASTER;
    } else
        decide_known(session, challenger, finals);
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
