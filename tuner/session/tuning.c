/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/figures.h"
#include "db/store.h"
#include "search/bayes/importance.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the budget that would decide */

#define UNSEEN_PLANS   3 /* default, challenger, 1 rank */
#define UNSEEN_MARGIN  1.3
#define ROUGH          1.1 /* safety factor for estimates from few trials */
#define ROUND_SECONDS  10
#define MINUTE_SECONDS 60

/* Seconds of a session that tries the plans it must and a further one, and whose final
 * comparison has the sets to decide. Where no plan ran it is a lower bound, with a comparison of
 * plans that take as long. */
static double estimate_seconds(const struct dt_tuning *tuning)
{
    double known = 0, longest = 0;
    bool ran = false;
    for (int i = 0; i < tuning->session->count; i++) {
        const struct dt_result *trial = &tuning->session->trials[i];
        bool must = dt_trials_is_known(tuning->session, &trial->point);
        ran = ran || trial->samples.n > 0;
        longest = fmax(longest, must || !ran ? trial->facts.cost_seconds : 0);
        known += must ? trial->facts.cost_seconds : 0;
    }
    double sets =
        ran ? dt_finals_seconds(tuning, 2) : UNSEEN_MARGIN * DT_SETS_LEAST * UNSEEN_PLANS * longest;
    double trials = known + longest;
    return ROUGH *
           fmax(trials + sets, fmax(trials / DT_TRIALS_SHARE, sets / (1 - DT_SEARCH_LEAST)));
}

void dt_tuning_estimate(struct dt_tuning *tuning)
{
    double budget = (double)(tuning->clock.deadline_ns - tuning->clock.began_ns) * 1e-9;
    double need = estimate_seconds(tuning);
    bool ended = tuning->clock.elapsed_seconds > 0;
    if (ended && dt_doubts_failed(tuning->session))
        tuning->clock.need_seconds = 0; /* the need that the first trials named would not help */
    if (tuning->clock.need_seconds > 0 ||
        (ended ? !dt_doubts_lack_time(tuning->session, tuning->clock.elapsed_seconds)
               : need <= budget))
        return;
    need = need > budget ? need : 2 * budget;
    if (tuning->opts.list.works > 1) /* --budget is for all of them, */
        need *= (double)tuning->opts.job->budget_ns * 1e-9 / budget;
    need += (double)tuning->target->worker.asked_ns * 1e-9; /* and for the first start */
    double unit = need > DT_NEED_SECONDS_MOST ? MINUTE_SECONDS : ROUND_SECONDS;
    tuning->clock.need_seconds = unit * ceil(need / unit);
}

/* ---- what came of it */

/* No plan was measured. */
static dt_status unmeasured_status(const struct dt_session *session, const struct dt_result *failed)
{
    dt_auto_text need = {0};
    dt_session_need(session, "; ", &need);
    if (failed == NULL)
        return dt_fail(DT_EPROVISIONAL,
                       "the time for trials (%.0f %% of the budget) ended before one plan was "
                       "measured%s",
                       100 * DT_TRIALS_SHARE, dt_text_at(&need));
    return dt_fail(DT_EALLFAILED, "every trial failed; the first: %s: %s%s",
                   dt_outcome_text(failed->outcome), failed->cause,
                   failed->outcome == DT_TRIAL_HUNG ? dt_text_at(&need) : "");
}

static dt_status undecided_status(const struct dt_session *session)
{
    dt_auto_text why = {0};
    dt_session_undecided(session, &why);
    dt_text_add(&why, ": the result is provisional");
    dt_session_need(session, "; ", &why);
    return dt_fail(DT_EPROVISIONAL, "%s", dt_text_at(&why));
}

static dt_status verdict_status(const struct dt_session *session)
{
    const struct dt_result *failed = NULL, *limited = NULL;
    int broken = 0, all_failed, tried = dt_session_tried_count(session, &all_failed);
    bool any = false, limit_broken = dt_session_limit_broken(session);
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        any = any || trial->outcome == DT_TRIAL_OK || trial->outcome == DT_TRIAL_SLOW;
        broken += trial->outcome == DT_TRIAL_LIMIT && dt_session_counts(session, i);
        if (limited == NULL && trial->outcome == DT_TRIAL_LIMIT)
            limited = trial;
        if (failed == NULL && trial->outcome != DT_TRIAL_INTERRUPTED)
            failed = trial;
    }
    if (limit_broken && broken > 0 && broken < tried && !any)
        return dt_fail(DT_EINFEASIBLE,
                       "%d of the %d plans tried break a --limit, and the others failed; the "
                       "first: %s",
                       broken, tried, limited->cause);
    if (limit_broken && limited != NULL)
        return dt_fail(DT_EINFEASIBLE,
                       "none of the %d plan%s tried keeps each --limit; the first: %s", tried,
                       tried == 1 ? "" : "s", limited->cause);
    if (!any)
        return unmeasured_status(session, failed);
    if (limit_broken)
        return dt_fail(DT_EINFEASIBLE, "none of the %d plan%s tried keeps --max-latency, %s", tried,
                       tried == 1 ? "" : "s",
                       dt_figure_of((double)session->max_latency_ns * 1e-9).text);
    return dt_session_provisional(session) ? undecided_status(session) : DT_OK;
}

/* ---- the phases */

/* Time that the final comparison did not need goes back to trials. A plan that looks
 * better is compared, too. */
static dt_status try_more(struct dt_tuning *tuning)
{
    int tried = -1; /* before the search went on */
    for (int64_t until; dt_clock_ns() < (until = dt_finals_latest(tuning));) {
        const struct dt_result *found = dt_finals_promising(tuning, 1);
        if (found != NULL) {
            struct dt_point point = found->point;
            DT_TRY(dt_finals_run(tuning, &point));
        } else if (!dt_session_enough(tuning->session) || tuning->session->count == tried) {
            break;
        } else {
            tried = tuning->session->count;
            DT_TRY(dt_explore_more(tuning, until));
        }
    }
    return DT_OK;
}

static dt_status run_phases(struct dt_tuning *tuning)
{
    DT_TRY(dt_resume_trials(tuning));
    DT_TRY(dt_trials_links(tuning));
    if (!tuning->resume.searched) {
        dt_explore_starts(tuning);
        DT_TRY(dt_trials_known(tuning));
        dt_explore_starts(tuning);
        DT_TRY(dt_explore(tuning));
        DT_TRY(dt_trials_disturbed(tuning));
        DT_TRY(dt_trials_last(tuning));
        DT_TRY(dt_explore_end(tuning));
    } else {
        dt_store_now(tuning, INT64_MAX);
    }
    if (dt_session_leader(tuning->session) == NULL)
        return DT_OK;
    DT_TRY(dt_finals_run(tuning, NULL));
    return try_more(tuning);
}

void dt_tuning_note(const struct dt_tuning *tuning, const char *format, ...)
{
    char sentence[2048];
    va_list args;
    if (tuning->watch == NULL)
        return;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    dt_text_mend(sentence); /* it may be cut within a character */
    tuning->watch->note(tuning->watch->context, sentence);
}

/* ---- the store */

#define UNSTORED_MOST_NS (60 * DT_NS_PER_SECOND)

void dt_store_now(struct dt_tuning *tuning, int64_t wait_ns)
{
    const struct dt_session *session = tuning->session;
    const struct dt_result *best = dt_session_best(session);
    int64_t due_ns = tuning->store.unstored_ns + UNSTORED_MOST_NS;
    struct dt_tuning_store store;
    if (tuning->opts.directory == NULL || tuning->store.unstored_ns == 0 || best == NULL ||
        !dt_session_eligible(session, best) || dt_clock_ns() < due_ns - wait_ns)
        return;
    if (dt_entry_store(session, DT_VERDICT_PROVISIONAL, tuning->opts.directory, NULL, &store) < 0)
        dt_tuning_note(tuning, "the provisional result is not stored: %s", dt_message());
    tuning->store.unstored_ns = 0;
}

/* Nothing is measured any more, so a fit disturbs nobody. */
static void weigh_axes(const struct dt_session *session, struct dt_session_ended *ended)
{
    dt_auto_free struct dt_trial *trials = calloc((size_t)session->count + 1, sizeof *trials);
    int n = 0;
    for (int i = 0; trials != NULL && i < session->count; i++) {
        const struct dt_result *result = &session->trials[i];
        if (!dt_session_counts(session, i) || result->samples.n == 0 ||
            dt_target_breaks(session->target, &result->point))
            continue;
        trials[n] = dt_result_trial(result, session->target);
        trials[n++].value = dt_session_value(session, result);
    }
    ended->weighed =
        n > 0 && dt_importance(session->target->space, trials, n, 0, ended->importance);
}

static dt_status end_record(struct dt_tuning *tuning)
{
    struct dt_log_record record = {
        .kind = DT_LOG_END,
        .ended = {.searched = {tuning->search.note, tuning->search.stopped},
                  .closing = {.known = true,
                              .elapsed_ns = dt_ns_of(tuning->clock.elapsed_seconds),
                              .need_ns = dt_ns_of(tuning->clock.need_seconds),
                              .compared_ns = tuning->rig.compared_ns},
                  .verdict = dt_session_verdict(tuning->session)}};
    if (tuning->opts.directory != NULL)
        weigh_axes(tuning->session, &record.ended);
    return dt_log_add(tuning->log, &record);
}

/* ---- from its begin to its end */

dt_status dt_tuning_open(struct dt_tuning *tuning, const struct dt_session_opts *opts)
{
    const struct dt_target *target = opts->target;
    struct dt_log_record record = {.kind = DT_LOG_SESSION,
                                   .begun = {.id = "",
                                             .target = target,
                                             .job = opts->job,
                                             .max_latency_ns = opts->job->max_latency_ns,
                                             .budget_ns = opts->deadline_ns - opts->began_ns,
                                             .has_against = opts->against != NULL}};
    *tuning =
        (struct dt_tuning){.opts = *opts,
                           .target = target,
                           .clock = {.began_ns = opts->began_ns, .deadline_ns = opts->deadline_ns}};
    DT_TRY(dt_target_check(target));
    if (opts->against != NULL)
        DT_TRY(dt_target_plan(target, opts->against, &record.begun.against));
    DT_TRY(dt_log_new(&tuning->log));
    tuning->session = dt_log_session(tuning->log);
    dt_status status = dt_log_add(tuning->log, &record);
    if (status == DT_OK)
        status = dt_belief_init(&tuning->search.belief, target, opts->prior);
    if (status < 0)
        dt_tuning_fini(tuning);
    return status;
}

dt_status dt_tuning_begin(struct dt_tuning *tuning)
{
    const char *directory = tuning->opts.directory;
    struct dt_journal *journal = NULL;
    int64_t now = dt_clock_ns(), share = (tuning->clock.deadline_ns - now) / 4;
    DT_TRY(dt_store_check(directory));
    DT_TRY(dt_journal_open(directory, &journal));
    dt_log_attach(tuning->log, journal);
    struct dt_log_record record = {
        .kind = DT_LOG_SESSION,
        .begun = {.id = dt_journal_id(journal),
                  .target = tuning->target,
                  .job = tuning->opts.job,
                  .list = tuning->opts.list,
                  .wall_ns = dt_clock_wall_ns(),
                  .max_latency_ns = tuning->opts.job->max_latency_ns,
                  .budget_ns = tuning->clock.deadline_ns - tuning->clock.began_ns,
                  .has_against = tuning->session->has_against,
                  .against = tuning->session->against}};
    /* the file of a private command is named by its arguments */
    dt_entry_fingerprint(tuning->target, now + share, tuning->opts.job->wanted.secret == NULL,
                         &record.begun.fingerprint);
    dt_status status = dt_log_add(tuning->log, &record);
    dt_fingerprint_fini(&record.begun.fingerprint);
    DT_TRY(status);
    dt_known_read(tuning, directory);
    if (tuning->opts.resume)
        return dt_resume_find(tuning);
    dt_resume_offer(tuning);
    return DT_OK;
}

dt_status dt_tuning_run(struct dt_tuning *tuning)
{
    const struct dt_session *session = tuning->session;
    int64_t all = tuning->clock.deadline_ns - tuning->clock.began_ns;
    tuning->clock.search_deadline_ns =
        tuning->clock.began_ns + (int64_t)(DT_TRIALS_SHARE * (double)all);
    dt_rig_init(&tuning->rig, tuning->target, (uint64_t)tuning->opts.job->seed);
    tuning->rig.end_ns = tuning->clock.deadline_ns - DT_NS_PER_SECOND / 2;
    struct dt_error ended = {DT_OK, ""};
    dt_error_keep(&ended, run_phases(tuning));
    dt_search_free(tuning->search.running);
    tuning->search.running = NULL;
    for (int i = 0; i < tuning->finals.count; i++)
        dt_entrant_fini(&tuning->finals.entrants[i]);
    tuning->finals.count = 0;
    int64_t left = tuning->clock.deadline_ns - dt_clock_ns(), grace = 10 * DT_NS_PER_SECOND;
    dt_rig_fini(&tuning->rig,
                left < grace ? (left > DT_NS_PER_SECOND / 5 ? left : DT_NS_PER_SECOND / 5) : grace);
    tuning->clock.elapsed_seconds = (double)(dt_clock_ns() - tuning->clock.began_ns) * 1e-9;
    enum dt_verdict verdict = dt_session_verdict(session);
    if (dt_verdict_provisional(verdict) || verdict == DT_VERDICT_NONE)
        dt_tuning_estimate(tuning);
    struct dt_error files = {DT_OK, ""};
    dt_error_keep(&files, end_record(tuning));
    if (tuning->opts.directory != NULL)
        dt_error_keep(&files,
                      dt_entry_store(session, session->verdict, tuning->opts.directory,
                                     files.status == DT_OK ? dt_log_journal(tuning->log) : NULL,
                                     &tuning->store));
    DT_TRY(dt_error_raise(&files));
    if (ended.status >= 0)
        dt_error_keep(&ended, verdict_status(session));
    return dt_error_raise(&ended);
}

void dt_tuning_fini(struct dt_tuning *tuning)
{
    dt_belief_fini(&tuning->search.belief);
    dt_resume_drop(&tuning->resume.shootout);
    dt_resume_drop(&tuning->resume.final);
    dt_log_free(tuning->log);
    tuning->log = NULL;
    tuning->session = NULL;
}
