/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/figures.h"
#include "db/outline.h"
#include "space/json/json.h"
#include "tuner/session/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one session */

enum { LOST_MOST = 64, LOST_OUT = 2, DAY_SECONDS = 24 * 3600 };
/* times the budget of the session that is resumed: the search has more time, too */
#define MORE_TIME     1.01
#define RECHECK_SHARE 0.03 /* of the whole budget: the time to measure the default again */
/* a larger change of the default is reported, unless its intervals overlap */
#define RECHECK_MARGIN 0.05
#define CUT_SHARE      0.9 /* of its budget: a session that ended later was not cut short */

/* Sessions of a store, the newest first. */
struct sessions {
    struct dt_journals runs;
    struct dt_outline outline; /* the current one; key NULL: there are no more */
    int unusable;              /* journals so far that cannot be used */
    char why[512];             /* the reason of the newest one */
};

static bool is_kind(const json_t *record, const char *kind)
{
    return strcmp(dt_json_text_at(record, "kind"), kind) == 0;
}

static dt_status outline_check(const struct dt_journals *runs, const struct dt_outline *outline)
{
    if (outline->id[0] != '\0' && strcmp(runs->id, outline->id) != 0)
        return dt_fail(DT_ECORRUPT, "the journal %s is that of session %s: give it its name",
                       runs->path, outline->id);
    if (outline->version != DT_JOURNAL_VERSION)
        return dt_fail(DT_ECORRUPT,
                       "the records of journal %s have version %d, and this program reads %d",
                       runs->path, outline->version, DT_JOURNAL_VERSION);
    return DT_OK;
}

static bool sessions_next(struct sessions *sessions)
{
    struct dt_outline *outline = &sessions->outline;
    for (dt_outline_fini(outline); dt_journals_next(&sessions->runs); dt_outline_fini(outline)) {
        dt_status status = dt_outline_read(sessions->runs.path, outline);
        if (status == DT_OK)
            status = outline_check(&sessions->runs, outline);
        if (status == DT_OK && outline->key != NULL)
            return true;
        if (status < 0 && sessions->unusable++ == 0)
            snprintf(sessions->why, sizeof sessions->why, "%s", dt_message());
        sessions->runs.status = status == DT_ENOMEM ? status : DT_OK;
    }
    return false;
}

static dt_status sessions_end(struct sessions *sessions)
{
    dt_outline_fini(&sessions->outline);
    return dt_journals_end(&sessions->runs);
}

/* Goes to the last session of the same work that is not this one, and whose journal has all of those before it. */
static bool sessions_find(struct sessions *sessions, const struct dt_session *session)
{
    const struct dt_outline *outline = &sessions->outline;
    while (sessions_next(sessions))
        if (json_equal(outline->key, session->target->identity.key) && !outline->copying &&
            strcmp(outline->id, session->store.id) != 0)
            return true;
    return false;
}

static bool is_same_machine(const struct dt_session *session, const json_t *machine)
{
    return json_equal(json_object_get(machine, "hard"), session->fingerprint.hard) &&
           json_equal(json_object_get(machine, "soft"), session->fingerprint.soft);
}

/* The session goes on with that one. */
static void resume_set(struct dt_session *session, const struct dt_outline *outline)
{
    int64_t spent = outline->before_ns + outline->spent_ns;
    int64_t budget = session->clock.deadline_ns - session->clock.began_ns;
    snprintf(session->resume.id, sizeof session->resume.id, "%s", outline->id);
    session->resume.spent_ns = spent;
    session->resume.more_time = (double)budget > MORE_TIME * (double)outline->budget_ns;
    session->clock.began_ns -= spent;
    session->clock.deadline_ns -= spent;
}

dt_status dt_resume_find(struct dt_session *session)
{
    struct sessions sessions = {.runs.directory = session->opts.directory};
    const struct dt_outline *outline = &sessions.outline;
    const char *why = NULL;
    bool found = sessions_find(&sessions, session);
    if (sessions.runs.status == DT_OK && sessions.unusable > 0)
        dt_session_note(session, "%d newer journal%s left out: %s", sessions.unusable,
                        sessions.unusable == 1 ? " is" : "s are", sessions.why);
    if (!found)
        why = "there is none of this work";
    else if (dt_outline_decided(outline))
        why = "the last one of this work came to its end";
    else if (outline->trials == 0)
        why = "the last one of this work measured nothing";
    else if (!is_same_machine(session, outline->fingerprint))
        why = "since the last one of this work the machine or its software has changed";
    else
        resume_set(session, outline);
    DT_TRY(sessions_end(&sessions));
    if (why == NULL)
        return dt_history_resumed(session);
    dt_session_note(session, "no session to resume: %s; a new one begins", why);
    return DT_OK;
}

/* It ended before its time, and not by a decision. */
static bool is_cut_short(const struct dt_outline *outline)
{
    bool early = (double)outline->spent_ns < CUT_SHARE * (double)outline->budget_ns;
    return !outline->ended || (early && !dt_outline_decided(outline));
}

void dt_resume_offer(const struct dt_session *session)
{
    const struct dt_figure since =
        dt_figure_stamp(dt_clock_wall_ns() - DAY_SECONDS * DT_NS_PER_SECOND);
    struct sessions sessions = {
        .runs = {.directory = session->opts.directory, .since = since.text}};
    struct dt_outline last = {.trials = 0};
    if (sessions_find(&sessions, session)) {
        last = sessions.outline;
        sessions.outline = (struct dt_outline){.key = NULL};
    }
    if (sessions_end(&sessions) == DT_OK && last.trials > 0 && is_cut_short(&last))
        dt_session_note(session,
                        "session %s of this work was cut short after %d trial%s: --resume goes on "
                        "with it",
                        last.id, last.trials, last.trials == 1 ? "" : "s");
    dt_outline_fini(&last);
}

/* What is taken over while the journal is read. */
struct take {
    struct dt_session *session;
    struct dt_point begun; /* a trial that has not ended yet */
    bool open;
    bool compared;                   /* a complete final comparison was read */
    struct dt_point lost[LOST_MOST]; /* plans that ran when a session ended; once for each time */
    int lost_count, left_out, damaged;
    /* the last records of these kinds, owned; NULL: there is none */
    json_t *search, *searched, *shootout, *final;
};

/* Applies and copies a record; one of a plan that is not in the space any more is left out. */
static dt_status take_over(struct take *take, const json_t *record)
{
    dt_status status = dt_session_apply(take->session, record, "the journal");
    if (status == DT_OK)
        status = dt_history_copy(take->session, record);
    take->left_out += status == DT_EUSAGE && is_kind(record, "trial");
    return status == DT_EUSAGE ? DT_OK : status;
}

static void take_lost(struct take *take, const struct dt_point *point)
{
    if (take->lost_count < LOST_MOST)
        take->lost[take->lost_count++] = *point;
}

static void set_record(json_t **at, const json_t *record)
{
    json_decref(*at);
    *at = json_incref((json_t *)record);
}

/* A final comparison whose first entrant was not excluded: after such an exclusion the session compares the others. */
static bool is_final(const json_t *record)
{
    const json_t *first = json_array_get(json_object_get(record, "entrants"), 0);
    return strcmp(dt_json_text_at(record, "name"), "final comparison") == 0 &&
           !json_is_true(json_object_get(first, "out"));
}

/* A comparison that a signal ended has an unfinished set: the sets before it are in a record of their own. What follows a complete final
 * comparison is compared again. */
static void take_kind(struct take *take, const json_t *record)
{
    const char *name = dt_json_text_at(record, "name");
    bool complete =
        is_kind(record, "comparison") && json_is_true(json_object_get(record, "complete"));
    if (is_kind(record, "search"))
        set_record(&take->search, record);
    if (is_kind(record, "searched"))
        set_record(&take->searched, record);
    if (!take->compared && (complete || is_kind(record, "sets")))
        set_record(strcmp(name, "shoot-out") == 0 ? &take->shootout : &take->final, record);
    take->compared = take->compared || (complete && is_final(record));
}

static dt_status take_record(struct take *take, const json_t *record)
{
    struct dt_point point;
    bool begins = is_kind(record, "begin"), lost = is_kind(record, "lost");
    bool trial = is_kind(record, "trial");
    const char *outcome = dt_json_text_at(record, "outcome");
    take->open = take->open && !trial;
    if (is_kind(record, "undone") ||
        (trial && strcmp(outcome, dt_outcome_text(DT_TRIAL_INTERRUPTED)) != 0))
        return take_over(take, record);
    take_kind(take, record);
    if (!(begins || lost) ||
        dt_target_stored(take->session->target, json_object_get(record, "plan"), &point) != DT_OK)
        return DT_OK;
    if (lost)
        take_lost(take, &point);
    take->open = take->open || begins;
    take->begun = begins ? point : take->begun;
    return DT_OK;
}

/* The plan ran when a session ended, more than once: it is not tried again. */
static dt_status leave_out(struct dt_session *session, const struct dt_point *point)
{
    struct dt_result result;
    dt_result_init(&result, session->target, point);
    result.outcome = DT_TRIAL_INFEASIBLE; /* a crash would be tried again */
    snprintf(result.cause, sizeof result.cause,
             "%d sessions ended while this plan ran, so it is left out", LOST_OUT);
    dt_status status = dt_session_keep(session, &result);
    if (status < 0)
        dt_result_fini(&result);
    return status < 0 ? status
                      : dt_history_result(session, "trial", &session->trials[session->count - 1]);
}

static dt_status judge_lost(struct take *take)
{
    struct dt_session *session = take->session;
    for (int i = 0; i < take->lost_count; i++) {
        int times = 1;
        for (int k = 0; k < i; k++)
            times += dt_point_equal(session->target->space, &take->lost[k], &take->lost[i]);
        if (dt_session_trial(session, &take->lost[i]) != NULL)
            continue;
        DT_TRY(dt_history_plan(session, "lost", &take->lost[i]));
        if (times >= LOST_OUT)
            DT_TRY(leave_out(session, &take->lost[i]));
    }
    return DT_OK;
}

/* Reads a comparison and writes it to the journal of this session; what cannot be read is made anew. */
static dt_status take_comparison(struct take *take, const json_t *record,
                                 struct dt_compared *compared)
{
    struct dt_session *session = take->session;
    if (record == NULL)
        return DT_OK;
    *compared = (struct dt_compared){.entrants = calloc(DT_ENTRANTS, sizeof *compared->entrants),
                                     .clocks = &session->rig.clocks};
    if (compared->entrants == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a comparison");
    dt_status status = dt_raw_read_comparison(record, "the journal", session->target, compared);
    compared->name = NULL; /* the record's */
    compared->complete = is_kind(record, "comparison");
    if (status == DT_OK)
        return dt_history_copy(session, record);
    dt_session_drop_compared(compared);
    return status == DT_EUSAGE ? DT_OK : status;
}

/* Takes over the search's end and the comparisons where the search need not go on: it had stopped by itself, or this session has no
 * larger budget. Otherwise the search goes on, and comparisons are made anew. */
static dt_status take_end(struct take *take)
{
    struct dt_session *session = take->session;
    bool stopped = json_is_true(json_object_get(take->searched, "search_stopped"));
    if (take->search == NULL || take->searched == NULL || (session->resume.more_time && !stopped))
        return DT_OK;
    DT_TRY(dt_session_apply(session, take->search, "the journal"));
    snprintf(session->search.note, sizeof session->search.note, "%s",
             dt_json_text_at(take->searched, "search_note"));
    session->search.stopped = stopped;
    session->resume.searched = true;
    DT_TRY(dt_history_copy(session, take->search));
    DT_TRY(dt_history_copy(session, take->searched));
    DT_TRY(take_comparison(take, take->shootout, &session->resume.shootout));
    return take_comparison(take, take->final, &session->resume.final);
}

static void note_resumed(const struct take *take)
{
    const struct dt_session *session = take->session;
    dt_session_note(session, "resumed: %d trial%s of session %s, which spent %s of the budget",
                    session->count, session->count == 1 ? "" : "s", session->resume.id,
                    dt_figure_span_of((double)session->resume.spent_ns * 1e-9).text);
    if (session->resume.final.entrants != NULL)
        dt_session_note(session, "resumed: %d set%s of the final comparison",
                        session->resume.final.sets.count,
                        session->resume.final.sets.count == 1 ? "" : "s");
    if (take->damaged > 0)
        dt_session_note(session, "%d damaged record%s of its journal %s left out", take->damaged,
                        take->damaged == 1 ? "" : "s", take->damaged == 1 ? "is" : "are");
    if (take->left_out > 0)
        dt_session_note(session, "%d of its trials are left out: their plans are not in the space",
                        take->left_out);
}

static dt_status take_all(struct take *take)
{
    if (take->open)
        take_lost(take, &take->begun);
    DT_TRY(judge_lost(take));
    DT_TRY(take_end(take));
    note_resumed(take);
    take->session->store.unstored_ns = dt_clock_ns(); /* it may have been killed before it stored */
    return dt_history_taken(take->session);
}

dt_status dt_resume_trials(struct dt_session *session)
{
    struct dt_text path = {0};
    struct take take = {.session = session};
    if (session->resume.id[0] == '\0')
        return DT_OK;
    dt_journals_path(session->opts.directory, session->resume.id, &path);
    struct dt_journal_reader reader = {.path = dt_text_at(&path)};
    while (dt_journal_next(&reader))
        reader.status = take_record(&take, reader.record);
    take.damaged = reader.damaged - reader.torn; /* a torn last line is what a kill leaves */
    dt_status status = dt_journal_end(&reader);
    if (status == DT_OK)
        status = take_all(&take);
    dt_text_fini(&path);
    json_decref(take.search);
    json_decref(take.searched);
    json_decref(take.shootout);
    json_decref(take.final);
    return status;
}

static void add_estimate(const struct dt_session *session, const struct dt_result *result,
                         struct dt_text *out)
{
    dt_figure_value(session->target->objective->metric, result->summary.median,
                    result->summary.interval.low, result->summary.interval.high, out);
}

/* By more than the margin, and by more than the intervals explain. */
static bool default_differs(const struct dt_summary *before, const struct dt_summary *now)
{
    bool apart =
        before->interval.low > now->interval.high || now->interval.low > before->interval.high;
    return apart && fabs(log(now->median / before->median)) > log1p(RECHECK_MARGIN);
}

static void note_recheck(const struct dt_session *session, const struct dt_result *before,
                         const struct dt_result *now)
{
    struct dt_text text = {0};
    if (now->samples.n == 0) {
        dt_session_note(session, "resumed: the default plan could not be measured again (%s: %s)",
                        dt_outcome_text(now->outcome), now->cause);
        return;
    }
    dt_text_add(&text, "resumed: a step of the default plan takes ");
    add_estimate(session, now, &text);
    dt_text_add(&text, " now, and took ");
    add_estimate(session, before, &text);
    dt_text_add(&text, " before");
    if (default_differs(&before->summary, &now->summary))
        dt_text_add(&text,
                    ": this machine is %.2f times as %s as it was, so the search compares trials "
                    "of unlike times; the final comparison measures its plans side by side. "
                    "Without --resume all plans are measured anew",
                    exp(fabs(log(now->summary.median / before->summary.median))),
                    now->summary.median > before->summary.median ? "slow" : "fast");
    dt_session_note(session, "%s", dt_text_at(&text));
    dt_text_fini(&text);
}

dt_status dt_resume_recheck(struct dt_session *session)
{
    const struct dt_result *before = dt_session_trial(session, &session->target->fallback);
    int64_t now_ns = dt_clock_ns(), all = session->clock.deadline_ns - session->clock.began_ns;
    int64_t rest_ns = (int64_t)(RECHECK_SHARE * (double)all);
    int64_t needed = 2 * session->slowest_ns + rest_ns;
    struct dt_result now;
    if (session->resume.id[0] == '\0' || session->resume.final.complete || before == NULL ||
        before->samples.n == 0 || session->clock.deadline_ns - now_ns < 2 * needed)
        return DT_OK;
    struct dt_measure how = {.deadline_ns = now_ns + needed,
                             .until_ns = now_ns + needed,
                             .rest_ns = now_ns + rest_ns,
                             .half_width = RECHECK_MARGIN / 2};
    dt_status status = dt_measure_plan(&session->rig, &session->target->fallback, &how, &now);
    if (status == DT_OK) {
        note_recheck(session, before, &now);
        status = dt_history_result(session, "recheck", &now);
    }
    dt_result_fini(&now);
    return status;
}

/* ---- lists */

/* The sessions of one list. */
struct members {
    struct dt_outline *at;
    int count;
    int64_t last_work; /* the farthest that was begun */
};

/* The last work that was begun may have been interrupted, others came to their end. */
static bool is_done(const struct members *members, const struct dt_outline *member)
{
    return member->ended && (dt_outline_decided(member) || member->work != members->last_work);
}

static void members_fini(struct members *members)
{
    for (int i = 0; i < members->count; i++)
        dt_outline_fini(&members->at[i]);
    free(members->at);
}

static dt_status members_find(const char *directory, const char *list, struct members *members)
{
    struct sessions sessions = {.runs.directory = directory};
    const struct dt_outline *outline = &sessions.outline;
    *members = (struct members){.count = 0};
    while (sessions_next(&sessions)) {
        if (strcmp(outline->list, list) != 0)
            continue;
        sessions.runs.status = DT_GROW(members->at, members->count, 1);
        if (sessions.runs.status < 0)
            break;
        if (outline->work > members->last_work)
            members->last_work = outline->work;
        members->at[members->count++] = *outline;
        sessions.outline = (struct dt_outline){.key = NULL};
    }
    return sessions_end(&sessions);
}

/* Sessions that began within the newest one's second are told apart by their clock. */
static dt_status newest_find(const char *directory, struct dt_outline *newest)
{
    struct sessions sessions = {.runs.directory = directory};
    const struct dt_outline *outline = &sessions.outline;
    *newest = (struct dt_outline){.key = NULL};
    while (sessions_next(&sessions) &&
           (newest->key == NULL || strncmp(outline->id, newest->id, DT_JOURNALS_TIME) == 0))
        if (newest->key == NULL || outline->began_ns > newest->began_ns) {
            dt_outline_fini(newest);
            *newest = *outline;
            sessions.outline = (struct dt_outline){.key = NULL};
        }
    return sessions_end(&sessions);
}

/* Nothing remains of the list. */
static bool members_at_end(const struct members *members)
{
    for (int i = 0; i < members->count; i++)
        if (members->at[i].work == members->at[i].works - 1 && is_done(members, &members->at[i]))
            return true;
    return false;
}

dt_status dt_list_last(const char *directory, int works, struct dt_list *list)
{
    struct dt_outline newest;
    struct members members = {.count = 0};
    *list = (struct dt_list){.spent_ns = 0};
    dt_status status = newest_find(directory, &newest);
    bool fits = status == DT_OK && newest.works == works && newest.list[0] != '\0';
    if (fits)
        status = members_find(directory, newest.list, &members);
    if (fits && status == DT_OK && !members_at_end(&members)) {
        snprintf(list->id, sizeof list->id, "%s", newest.list);
        for (int i = 0; i < members.count; i++)
            if (is_done(&members, &members.at[i]))
                list->spent_ns += members.at[i].before_ns + members.at[i].spent_ns;
    }
    members_fini(&members);
    dt_outline_fini(&newest);
    return status;
}

dt_status dt_list_done(const char *directory, const struct dt_list *list, int work,
                       const json_t *key, struct dt_replay *replay, bool *found)
{
    struct members members;
    struct dt_text path = {0};
    dt_status status = members_find(directory, list->id, &members);
    *found = false;
    for (int i = 0; status == DT_OK && !*found && i < members.count; i++) {
        const struct dt_outline *member = &members.at[i];
        if (!is_done(&members, member) || member->work != work || !json_equal(member->key, key))
            continue;
        dt_text_clear(&path);
        dt_journals_path(directory, member->id, &path);
        dt_status opened = dt_replay_open(dt_text_at(&path), false, replay);
        *found = opened == DT_OK && replay->ended && replay->damaged == 0;
        if (!*found)
            dt_replay_fini(replay);
        status = opened == DT_ENOMEM ? opened : DT_OK;
    }
    dt_text_fini(&path);
    members_fini(&members);
    return status;
}
