/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include "base/clock.h"
#include "base/figures.h"
#include "tuner/session/history.h"

#include <stdarg.h>
#include <stdlib.h>

/* No plan was measured. */
static dt_status unmeasured_status(const struct dt_session *session, const struct dt_result *failed)
{
    struct dt_text need = {0};
    dt_status status;
    dt_session_need(session, "; ", &need);
    if (failed == NULL)
        status = dt_fail(DT_EPROVISIONAL,
                         "the time for trials (%.0f %% of the budget) ended before one plan was "
                         "measured%s",
                         100 * DT_TRIALS_SHARE, dt_text_at(&need));
    else
        status = dt_fail(DT_EALLFAILED, "every trial failed; the first: %s: %s%s",
                         dt_outcome_text(failed->outcome), failed->cause,
                         failed->outcome == DT_TRIAL_HUNG ? dt_text_at(&need) : "");
    dt_text_fini(&need);
    return status;
}

static dt_status undecided_status(const struct dt_session *session)
{
    struct dt_text why = {0};
    dt_session_undecided(session, &why);
    dt_text_add(&why, ": the result is provisional");
    dt_session_need(session, "; ", &why);
    dt_status status = dt_fail(DT_EPROVISIONAL, "%s", dt_text_at(&why));
    dt_text_fini(&why);
    return status;
}

static dt_status verdict_status(struct dt_session *session)
{
    const struct dt_result *failed = NULL, *limited = NULL;
    int broken = 0, all_failed, tried = dt_session_tried_count(session, &all_failed);
    bool any = false;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        any = any || trial->outcome == DT_TRIAL_OK || trial->outcome == DT_TRIAL_SLOW;
        broken += trial->outcome == DT_TRIAL_LIMIT && dt_session_counts(session, i);
        if (limited == NULL && trial->outcome == DT_TRIAL_LIMIT)
            limited = trial;
        if (failed == NULL && trial->outcome != DT_TRIAL_INTERRUPTED)
            failed = trial;
    }
    if (session->limit_broken && broken > 0 && broken < tried && !any)
        return dt_fail(DT_EINFEASIBLE,
                       "%d of the %d plans tried break a --limit, and the others failed; the "
                       "first: %s",
                       broken, tried, limited->cause);
    if (session->limit_broken && limited != NULL)
        return dt_fail(DT_EINFEASIBLE,
                       "none of the %d plan%s tried keeps each --limit; the first: %s", tried,
                       tried == 1 ? "" : "s", limited->cause);
    if (!any)
        return unmeasured_status(session, failed);
    if (session->limit_broken)
        return dt_fail(DT_EINFEASIBLE, "none of the %d plan%s tried keeps --max-latency, %s", tried,
                       tried == 1 ? "" : "s",
                       dt_figure_of((double)session->job->max_latency_ns * 1e-9).text);
    return dt_session_provisional(session) ? undecided_status(session) : DT_OK;
}

/* Time that the final comparison did not need goes back to trials. A plan that looks better is compared, too. */
static dt_status try_more(struct dt_session *session)
{
    int64_t until = dt_finals_latest(session);
    dt_status status = DT_OK;
    while (status == DT_OK && dt_clock_ns() < until) {
        int tried = session->count;
        const struct dt_result *found = dt_finals_promising(session, 1);
        if (found != NULL) {
            struct dt_point point = found->point;
            status = dt_finals_run(session, &point);
        } else {
            status = dt_session_enough(session) ? dt_explore_more(session, until) : DT_OK;
            if (session->count == tried)
                break;
        }
        until = dt_finals_latest(session);
    }
    return status;
}

static dt_status run_phases(struct dt_session *session)
{
    DT_TRY(dt_resume_trials(session));
    DT_TRY(dt_trials_links(session));
    DT_TRY(dt_resume_recheck(session));
    if (!session->resume.searched) {
        dt_explore_starts(session);
        DT_TRY(dt_trials_known(session));
        dt_explore_starts(session);
        DT_TRY(dt_explore(session));
        DT_TRY(dt_trials_disturbed(session));
        DT_TRY(dt_trials_last(session));
        DT_TRY(dt_history_searched(session));
    } else {
        dt_store_now(session, INT64_MAX);
    }
    bool limited = session->job->max_latency_ns > 0;
    for (int i = 0; i < session->count; i++)
        limited = limited || session->trials[i].outcome == DT_TRIAL_LIMIT;
    session->limit_broken = limited && dt_session_leader(session) == NULL;
    if (dt_session_leader(session) == NULL)
        return DT_OK;
    DT_TRY(dt_finals_run(session, NULL));
    return try_more(session);
}

void dt_session_note(const struct dt_session *session, const char *format, ...)
{
    char sentence[2048];
    va_list args;
    if (session->watch == NULL)
        return;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    dt_text_mend(sentence); /* it may be cut within a character */
    session->watch->note(session->watch->context, sentence);
}

dt_status dt_session_open(struct dt_session *session, const struct dt_session_opts *opts)
{
    const struct dt_target *target = opts->target;
    *session =
        (struct dt_session){.opts = *opts,
                            .job = opts->job,
                            .target = target,
                            .clock = {.began_ns = opts->began_ns, .deadline_ns = opts->deadline_ns},
                            .finals.best = -1};
    DT_TRY(dt_target_check(target));
    session->has_against = opts->against != NULL;
    if (session->has_against)
        DT_TRY(dt_target_plan(target, opts->against, &session->against));
    dt_status status = dt_belief_init(&session->search.belief, target, opts->prior);
    if (status < 0)
        dt_belief_fini(&session->search.belief);
    return status;
}

dt_status dt_session_run(struct dt_session *session)
{
    int64_t all = session->clock.deadline_ns - session->clock.began_ns;
    session->clock.search_deadline_ns =
        session->clock.began_ns + (int64_t)(DT_TRIALS_SHARE * (double)all);
    session->finals.best = -1;
    dt_rig_init(&session->rig, session->target, (uint64_t)session->job->seed);
    session->rig.end_ns = session->clock.deadline_ns - DT_NS_PER_SECOND / 2;
    dt_status status = run_phases(session);
    dt_search_free(session->search.running);
    session->search.running = NULL;
    dt_verdict_end(session);
    int64_t left = session->clock.deadline_ns - dt_clock_ns(), grace = 10 * DT_NS_PER_SECOND;
    dt_rig_fini(&session->rig,
                left < grace ? (left > DT_NS_PER_SECOND / 5 ? left : DT_NS_PER_SECOND / 5) : grace);
    session->clock.elapsed_seconds = (double)(dt_clock_ns() - session->clock.began_ns) * 1e-9;
    if (dt_session_provisional(session) || session->verdict == DT_VERDICT_NONE)
        dt_doubts_budget(session);
    struct dt_error ended = {DT_OK, ""};
    dt_error_keep(&ended, status < 0 ? status : verdict_status(session));
    DT_TRY(dt_store_end(session));
    return dt_error_raise(&ended);
}

void dt_session_drop_compared(struct dt_compared *compared)
{
    for (int i = 0; compared->entrants != NULL && i < compared->count; i++)
        dt_entrant_fini(&compared->entrants[i]);
    free(compared->entrants);
    *compared = (struct dt_compared){.entrants = NULL};
}

void dt_session_fini(struct dt_session *session)
{
    dt_belief_fini(&session->search.belief);
    for (int i = 0; i < session->count; i++)
        dt_result_fini(&session->trials[i]);
    dt_session_drop_compared(&session->resume.shootout);
    dt_session_drop_compared(&session->resume.final);
    free(session->trials);
    free(session->tried.slots);
    json_decref(session->fingerprint.hard);
    json_decref(session->fingerprint.soft);
    session->fingerprint = (struct dt_fingerprint){.known = false};
    dt_verdict_drop(&session->finals);
    dt_verdict_drop(&session->earlier);
    dt_journal_close(session->store.journal);
    session->store.journal = NULL;
    session->trials = NULL;
    session->tried = (struct dt_session_tried){.slots = NULL};
    session->count = 0;
}

static const struct dt_point *point_of(const struct dt_session *session, enum dt_entrant_role role)
{
    if (role == DT_ENTRANT_DEFAULT)
        return &session->target->fallback;
    if (role == DT_ENTRANT_BASELINE)
        return &session->target->baseline;
    return session->has_against ? &session->against : NULL;
}

bool dt_session_compared(const struct dt_session *session)
{
    return session->finals.sets.count > 1;
}

bool dt_session_against_default(const struct dt_session *session)
{
    return session->finals.entrant_count > 0 &&
           dt_point_equal(session->target->space, &session->finals.entrants[0].point,
                          &session->target->fallback);
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
