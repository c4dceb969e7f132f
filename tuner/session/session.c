/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include <string.h>

static const struct dt_point *point_of(const struct dt_session *session, enum dt_entrant_role role)
{
    if (role == DT_ENTRANT_DEFAULT)
        return &session->target->fallback;
    if (role == DT_ENTRANT_BASELINE)
        return &session->target->baseline;
    if (role == DT_ENTRANT_DOCUMENTED)
        return session->target->documented.known ? &session->target->documented.point : NULL;
    return session->has_against ? &session->against : NULL;
}

bool dt_session_compared(const struct dt_session *session)
{
    return session->finals.sets.count > 1;
}

bool dt_session_against_default(const struct dt_session *session)
{
    return session->finals.entrant_count > 0 &&
           dt_verdict_default(session, &session->finals.entrants[0]);
}

bool dt_session_over_documented(const struct dt_session *session)
{
    const struct dt_session_finals *finals = &session->finals;
    return finals->opponent >= 0 && finals->opponent < finals->entrant_count &&
           dt_target_documented(session->target, &finals->entrants[finals->opponent].point) &&
           !dt_verdict_default(session, &finals->entrants[finals->opponent]);
}

struct dt_ratio dt_session_ratio(const struct dt_session *session, int entrant)
{
    const struct dt_session_finals *finals = &session->finals;
    int opponent = finals->opponent == entrant || finals->opponent < 0 ? 0 : finals->opponent;
    return dt_entrants_ratio(session->target, finals->entrants, (int[2]){opponent, entrant},
                             finals->entrant_count, &finals->sets);
}

const struct dt_entrant *dt_session_entrant(const struct dt_session *session,
                                            enum dt_entrant_role role)
{
    const struct dt_point *point = point_of(session, role);
    for (int i = 0;
         i < session->finals.entrant_count && point != NULL && dt_session_compared(session); i++)
        if (dt_point_equal(session->target->space, &session->finals.entrants[i].point, point))
            return &session->finals.entrants[i];
    return NULL;
}

const struct dt_entrant *dt_session_candidate(const struct dt_session *session)
{
    for (int i = 0; i < session->finals.entrant_count; i++)
        if (i != session->finals.best && session->finals.entrants[i].role == DT_ENTRANT_CANDIDATE &&
            session->finals.entrants[i].ratio.pairs > 0)
            return &session->finals.entrants[i];
    return NULL;
}

const struct dt_result *dt_session_uncompared(const struct dt_session *session)
{
    const struct dt_result *best = dt_session_best(session), *leader = dt_session_leader(session);
    if (session->finals.best >= 0 || best == NULL || leader == NULL ||
        dt_point_equal(session->target->space, &best->point, &leader->point))
        return NULL;
    for (int i = 0; i < session->finals.entrant_count; i++)
        if (session->finals.entrants[i].ratio.pairs > 0 &&
            dt_point_equal(session->target->space, &session->finals.entrants[i].result.point,
                           &leader->point))
            return NULL;
    return leader;
}

const struct dt_result *dt_session_role(const struct dt_session *session, enum dt_entrant_role role)
{
    const struct dt_entrant *entrant = dt_session_entrant(session, role);
    const struct dt_point *point = point_of(session, role);
    return entrant != NULL ? &entrant->result
           : point != NULL ? dt_session_trial(session, point)
                           : NULL;
}

/* Without a final comparison the default stays, unless it is no choice. */
const struct dt_result *dt_session_best(const struct dt_session *session)
{
    if (session->finals.best >= 0)
        return &session->finals.entrants[session->finals.best].result;
    const struct dt_result *fallback = dt_session_role(session, DT_ENTRANT_DEFAULT);
    const struct dt_result *leader = dt_session_leader(session);
    bool stays = fallback != NULL && fallback->samples.n > 0 &&
                 (leader == NULL || !dt_target_breaks(session->target, &fallback->point) ||
                  dt_session_eligible(session, fallback));
    return stays ? fallback : leader;
}

static bool has_samples(const struct dt_session *session, int i)
{
    const struct dt_result *trial = &session->trials[i];
    return dt_session_counts(session, i) && !trial->undone && trial->samples.n > 0 &&
           (trial->outcome == DT_TRIAL_OK || trial->outcome == DT_TRIAL_SLOW);
}

/* The best result with so many replicas of so many ranks at the batch; NULL: none. */
static const struct dt_result *best_of(const struct dt_session *session, int replicas, int ranks,
                                       int batch)
{
    const struct dt_result *best = NULL;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (has_samples(session, i) && trial->replicas == replicas && trial->batch == batch &&
            dt_target_ranks(session->target, &trial->point) == ranks &&
            (best == NULL || dt_session_value(session, trial) < dt_session_value(session, best)))
            best = trial;
    }
    return best;
}

/* The smallest batch above this one that was measured; 0: there is none. */
static int next_batch(const struct dt_session *session, int batch)
{
    int next = 0;
    for (int i = 0; i < session->count; i++)
        if (has_samples(session, i) && session->trials[i].batch > batch &&
            (next == 0 || session->trials[i].batch < next))
            next = session->trials[i].batch;
    return next;
}

static bool makes_more(const struct dt_target *target, const struct dt_result *a,
                       const struct dt_result *b)
{
    return dt_result_images_per_second(a, target) > dt_result_images_per_second(b, target);
}

struct dt_extremes dt_session_extremes(const struct dt_session *session)
{
    struct dt_extremes extremes = {.many = NULL};
    int replicas = 1, few = 0, ranks = 1;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        int each = dt_target_ranks(session->target, &trial->point);
        if (!has_samples(session, i))
            continue;
        if (trial->replicas == 1)
            ranks = each > ranks ? each : ranks;
        else if (trial->replicas > replicas || (trial->replicas == replicas && each < few))
            few = each;
        replicas = trial->replicas > replicas ? trial->replicas : replicas;
    }
    if (replicas < 2 || ranks < 2)
        return extremes;
    for (int batch = next_batch(session, 0), last = 0; batch > 0;
         batch = next_batch(session, batch)) {
        const struct dt_result *many = best_of(session, replicas, few, batch),
                               *single = best_of(session, 1, ranks, batch);
        if (many == NULL || single == NULL)
            continue;
        bool first = extremes.many == NULL;
        extremes.many = first ? many : extremes.many;
        extremes.single = first ? single : extremes.single;
        bool ahead = makes_more(session->target, extremes.many, extremes.single);
        if (extremes.after == 0 && ahead != makes_more(session->target, many, single)) {
            extremes.before = last;
            extremes.after = batch;
        }
        last = batch;
    }
    return extremes;
}

/* The default is first; on GPUs the 1-rank plan, which needs no NCCL, so that there is a
 * result even if NCCL fails. */
int dt_trials_first(const struct dt_session *session, const struct dt_point *known[DT_FIRST_MOST])
{
    const struct dt_target *target = session->target;
    bool one_first = target->hardware.backend.cuda;
    const struct dt_point *all[DT_FIRST_MOST] = {one_first ? &target->baseline : &target->fallback,
                                                 one_first ? &target->fallback : &target->baseline,
                                                 point_of(session, DT_ENTRANT_DOCUMENTED),
                                                 point_of(session, DT_ENTRANT_AGAINST)};
    int n = 0;
    for (int i = 0; i < DT_FIRST_MOST; i++) {
        bool twice = all[i] == NULL;
        for (int k = 0; k < n; k++)
            twice = twice || dt_point_equal(target->space, known[k], all[i]);
        if (!twice)
            known[n++] = all[i];
    }
    return n;
}

enum dt_entrant_role dt_trials_role(const struct dt_session *session, const struct dt_point *point)
{
    static const enum dt_entrant_role roles[] = {DT_ENTRANT_DEFAULT, DT_ENTRANT_BASELINE,
                                                 DT_ENTRANT_DOCUMENTED};
    for (int i = 0; i < 3; i++) {
        const struct dt_point *own = point_of(session, roles[i]);
        if (own != NULL && dt_point_equal(session->target->space, point, own))
            return roles[i];
    }
    return DT_ENTRANT_AGAINST;
}

bool dt_trials_is_known(const struct dt_session *session, const struct dt_point *point)
{
    const struct dt_point *known[DT_FIRST_MOST];
    int n = dt_trials_first(session, known);
    for (int i = 0; i < n; i++)
        if (dt_point_equal(session->target->space, known[i], point))
            return true;
    return false;
}

size_t dt_explore_clause(const char *note)
{
    return strcspn(note, ";");
}

/* ---- how much was done */

int dt_session_tried_count(const struct dt_session *session, int *failed)
{
    int tried = 0;
    *failed = 0;
    for (int i = 0; i < session->count; i++) {
        enum dt_outcome outcome = session->trials[i].outcome;
        bool counts = dt_session_counts(session, i) && outcome != DT_TRIAL_INTERRUPTED &&
                      !dt_target_breaks(session->target, &session->trials[i].point);
        tried += counts;
        *failed += counts && outcome != DT_TRIAL_OK && outcome != DT_TRIAL_SLOW;
    }
    return tried;
}

static void skipped_add(const char *what, struct dt_text *out)
{
    dt_text_add(out, "%s%s", out->size > 0 ? "; " : "", what);
}

/* The one-rank plan of the final comparison was dropped, so that the others got their sets. */
static bool baseline_dropped(const struct dt_session *session)
{
    for (int i = 1; i < session->finals.entrant_count; i++)
        if (session->finals.entrants[i].role == DT_ENTRANT_BASELINE &&
            session->finals.entrants[i].out &&
            session->finals.entrants[i].result.outcome == DT_TRIAL_INTERRUPTED)
            return true;
    return false;
}

void dt_session_skipped(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_result *top[DT_CANDIDATES];
    int failed, tried = dt_session_tried_count(session, &failed);
    int64_t plans = session->target->plans;
    if (session->count == 0 || (session->search.stopped && failed == tried))
        return; /* no time would have helped */
    if (!session->search.stopped && plans > tried)
        dt_text_add(out, "%lld of %lld plans", (long long)(plans - tried), (long long)plans);
    else if (!session->search.stopped && plans < 0)
        dt_text_add(out, "all but %d plans", tried);
    if (session->finals.entrant_count == 0 || dt_sets_rounds(&session->finals.sets) == 0) {
        skipped_add("the final comparison", out);
        return;
    }
    if (session->finals.shot_count == 0 && dt_verdict_candidates(session, top) > 1)
        skipped_add("the shoot-out of the best trials", out);
    if (baseline_dropped(session))
        skipped_add("the one-rank plan in the final comparison", out);
    if (!dt_session_enough(session))
        skipped_add("sets of the final comparison", out);
}
