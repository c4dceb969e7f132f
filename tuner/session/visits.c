/* SPDX-License-Identifier: MIT */
/* A slow time that begins and ends between two visits is not seen: it is shorter than VISIT_SECONDS, or VISIT_SHARE of the budget, and a
 * trial. */
#include "tuner/session/session_int.h"

#include "base/clock.h"
#include "search/racing.h"
#include "tuner/session/history.h"

#include <math.h>

#define VISIT_TRIALS  8    /* between two visits, when none of them was dropped */
#define VISIT_SECONDS 20   /* between two visits, */
#define VISIT_SHARE   0.02 /* or this share of the budget */
#define COST_SHARE    0.1  /* of visits, in the time */
#define SLOW_SHARE    0.25 /* while the machine is slower */
#define LEVEL_MARGIN  0.1  /* of noise: a smaller change is none */
#define HALF_WIDTH    0.05

double dt_visits_times(const struct dt_session *session, const struct dt_result *incumbent)
{
    double level = session->pace.level > 0 ? session->pace.level : 1;
    return incumbent != NULL ? level / dt_result_slowdown(incumbent) : 1;
}

/* The best trial before the last visit: at what level later ones were made is not known yet. */
static const struct dt_result *anchor_of(const struct dt_session *session)
{
    const struct dt_result *best = NULL;
    for (int i = 0; i < session->pace.since && i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (dt_session_counts(session, i) && dt_session_eligible(session, trial) &&
            (best == NULL || dt_session_value(session, trial) < dt_session_value(session, best)))
            best = trial;
    }
    return best;
}

static bool any_drop(const struct dt_session *session)
{
    for (int i = session->pace.since; i < session->count; i++)
        if (session->trials[i].outcome == DT_TRIAL_SLOW)
            return true;
    return false;
}

static bool is_due(const struct dt_session *session, const struct dt_result *anchor)
{
    const struct dt_session_pace *pace = &session->pace;
    bool slow = pace->level > 1 + LEVEL_MARGIN;
    double all = (double)(session->clock.deadline_ns - session->clock.began_ns) * 1e-9;
    double passed = (double)(dt_clock_ns() - pace->at_ns) * 1e-9;
    double left = (double)(session->clock.search_deadline_ns - dt_clock_ns()) * 1e-9;
    if (anchor == NULL || session->count == pace->since)
        return false;
    bool stay = dt_rig_classes(&session->rig).stay;
    double cost = pace->cost_seconds > 0 ? pace->cost_seconds
                                         : dt_session_trial_seconds(anchor->summary.median) +
                                               (stay ? 0 : dt_rig_load_seconds(&session->rig));
    return left > 2 * cost && passed >= cost / (slow ? SLOW_SHARE : COST_SHARE) &&
           (slow || passed >= fmin(VISIT_SECONDS, VISIT_SHARE * all)) &&
           (slow || any_drop(session) || session->count - pace->since >= VISIT_TRIALS);
}

/* Beyond noise: the intervals are apart, and the medians by more than the margin. times: by which those of `before` are longer. */
static bool differs(const struct dt_summary *before, const struct dt_summary *now, double times)
{
    bool apart = times * before->interval.low > now->interval.high ||
                 now->interval.low > times * before->interval.high;
    return apart && fabs(log(now->median / (times * before->median))) > log1p(LEVEL_MARGIN);
}

/* Undoes the trials since the visit before, and, of those made while the machine was slower, what may be better than the incumbent. */
static dt_status undo(struct dt_session *session, const struct dt_result *anchor, bool slower,
                      int *count)
{
    double most = DT_RACE_HOPELESS * dt_session_value(session, anchor);
    for (int i = slower ? session->pace.since : session->pace.from; i < session->count; i++) {
        struct dt_result *trial = &session->trials[i];
        if (!dt_session_counts(session, i) || trial == anchor || trial->samples.n == 0 ||
            !dt_trials_may_try(session, &trial->point) ||
            dt_trials_is_known(session, &trial->point) ||
            (i < session->pace.since && !(dt_session_value(session, trial) <= most)))
            continue;
        dt_session_undo(session, &trial->point);
        ++*count;
        DT_TRY(dt_history_plan(session, "undone", &trial->point));
    }
    return DT_OK;
}

/* Compares the visit with the incumbent's trial; a change begins a new level. */
static dt_status take_visit(struct dt_session *session, const struct dt_result *anchor,
                            const struct dt_result *visit)
{
    struct dt_session_pace *pace = &session->pace;
    double times = dt_visits_times(session, anchor), old = times * dt_result_slowdown(anchor);
    int undone = 0;
    if (visit->outcome != DT_TRIAL_OK || visit->samples.n == 0)
        return DT_OK;
    if (differs(&anchor->summary, &visit->summary, times)) {
        double level = dt_result_slowdown(anchor) * visit->summary.median / anchor->summary.median;
        bool slower = level > old;
        DT_TRY(undo(session, anchor, slower, &undone));
        pace->level = level;
        pace->from = slower ? pace->since : session->count;
        dt_session_note(session,
                        "this machine is %.2f times as %s as at the visit before, by its best plan "
                        "so far: %d plan%s tried since %s tried again",
                        fmax(level / old, old / level), slower ? "slow" : "fast", undone,
                        undone == 1 ? "" : "s", undone == 1 ? "is" : "are");
    }
    pace->since = session->count;
    return DT_OK;
}

static dt_status visit(struct dt_session *session, const struct dt_result *anchor)
{
    int64_t now = dt_clock_ns(), end = session->clock.search_deadline_ns;
    struct dt_measure how = {.deadline_ns = end,
                             .until_ns = now + (end - now) / 2,
                             .rest_ns = now,
                             .half_width = HALF_WIDTH};
    struct dt_result result;
    dt_status status = dt_measure_plan(&session->rig, &anchor->point, &how, &result);
    if (status == DT_OK)
        status = take_visit(session, anchor, &result);
    if (status == DT_OK)
        status = dt_history_visit(session, &result);
    session->pace.at_ns = dt_clock_ns();
    session->pace.cost_seconds = result.cost_seconds;
    dt_result_fini(&result);
    return status;
}

dt_status dt_visits_make(struct dt_session *session)
{
    int tried;
    do {
        const struct dt_result *anchor = anchor_of(session);
        if (is_due(session, anchor))
            DT_TRY(visit(session, anchor));
        tried = session->count;
        DT_TRY(dt_trials_undone(session));
    } while (session->count > tried);
    return DT_OK;
}
