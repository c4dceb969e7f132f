/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/figures.h"
#include "db/outline.h"
#include "tuner/session/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one session */

enum { LOST_MOST = 64, LOST_OUT = 2, DAY_SECONDS = 24 * 3600 };
/* times the budget of the session that is resumed: the search has more time, too */
#define MORE_TIME 1.01
#define CUT_SHARE 0.9 /* share of its budget: a session that ended later was not cut short */

/* Sessions of a store, the newest first. */
struct sessions {
    struct dt_journals runs;
    struct dt_outline outline; /* the current one; key NULL: there are no more */
    int unusable;              /* journals so far that cannot be used */
    char why[512];             /* the reason of the newest one */
};

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

/* Goes to the last session of the same work that is not this one, and whose journal has
 * all of those before it. */
static bool sessions_find(struct sessions *sessions, const struct dt_tuning *tuning)
{
    const struct dt_outline *outline = &sessions->outline;
    while (sessions_next(sessions))
        if (dt_resume_same_work(outline, tuning->target) && !outline->copying &&
            strcmp(outline->id, tuning->session->id) != 0)
            return true;
    return false;
}

/* The session goes on with that one. */
static void resume_set(struct dt_tuning *tuning, const struct dt_outline *outline)
{
    int64_t spent = outline->before_ns + outline->spent_ns;
    int64_t budget = tuning->clock.deadline_ns - tuning->clock.began_ns;
    snprintf(tuning->resume.id, sizeof tuning->resume.id, "%s", outline->id);
    tuning->resume.spent_ns = spent;
    tuning->resume.more_time = (double)budget > MORE_TIME * (double)outline->budget_ns;
    tuning->clock.began_ns -= spent;
    tuning->clock.deadline_ns -= spent;
}

dt_status dt_resume_find(struct dt_tuning *tuning)
{
    struct sessions sessions = {.runs.directory = tuning->opts.directory};
    const struct dt_outline *outline = &sessions.outline;
    const char *why = NULL;
    bool found = sessions_find(&sessions, tuning);
    if (sessions.runs.status == DT_OK && sessions.unusable > 0)
        dt_tuning_note(tuning, "%d newer journal%s left out: %s", sessions.unusable,
                       sessions.unusable == 1 ? " is" : "s are", sessions.why);
    if (!found)
        why = "there is none of this work";
    else if (dt_outline_decided(outline))
        why = "the last one of this work came to its end";
    else if (outline->trials == 0)
        why = "the last one of this work measured nothing";
    else if (!dt_resume_same_machine(outline, tuning->session))
        why = "since the last one of this work the machine or its software has changed";
    else
        resume_set(tuning, outline);
    DT_TRY(sessions_end(&sessions));
    if (why == NULL)
        return dt_log_add(tuning->log,
                          &(struct dt_log_record){.kind = DT_LOG_RESUMED,
                                                  .taken = {.of = tuning->resume.id,
                                                            .spent_ns = tuning->resume.spent_ns}});
    dt_tuning_note(tuning, "no session to resume: %s; a new one begins", why);
    return DT_OK;
}

/* It ended before its time, and not by a decision. */
static bool is_cut_short(const struct dt_outline *outline)
{
    bool early = (double)outline->spent_ns < CUT_SHARE * (double)outline->budget_ns;
    return !outline->ended || (early && !dt_outline_decided(outline));
}

void dt_resume_offer(const struct dt_tuning *tuning)
{
    const struct dt_figure since =
        dt_figure_stamp(dt_clock_wall_ns() - DAY_SECONDS * DT_NS_PER_SECOND);
    struct sessions sessions = {.runs = {.directory = tuning->opts.directory, .since = since.text}};
    DT_CLEANUP(dt_outline_fini) struct dt_outline last = {.trials = 0};
    if (sessions_find(&sessions, tuning)) {
        last = sessions.outline;
        sessions.outline = (struct dt_outline){.key = NULL};
    }
    if (sessions_end(&sessions) == DT_OK && last.trials > 0 && is_cut_short(&last))
        dt_tuning_note(tuning,
                       "session %s of this work was cut short after %d trial%s: --resume goes on "
                       "with it",
                       last.id, last.trials, last.trials == 1 ? "" : "s");
}

/* ---- the records of that session */

/* The content of its journal, by a first reading. Records are numbered from 0; -1: there
 * is none of the kind. */
struct take {
    struct dt_tuning *tuning;
    struct dt_point begun; /* a trial that has not ended yet */
    bool open;
    bool compared;                   /* a complete final comparison was read */
    bool stopped;                    /* its search stopped by itself */
    struct dt_point lost[LOST_MOST]; /* plans that ran when a session ended; once for each time */
    int lost_count, left_out, damaged;
    int search, searched, shootout,
        final; /* the records that are taken over, where the search need not go on */
};

/* Called with each record, and its number. */
typedef dt_status take_record(struct take *take, struct dt_log_record *record, int number_of_it);

static void take_lost(struct take *take, const struct dt_point *point)
{
    if (take->lost_count < LOST_MOST)
        take->lost[take->lost_count++] = *point;
}

/* A comparison that a signal ended has an unfinished set: the sets before it are in a record of
 * their own. What follows a complete final comparison is compared again, also after one whose first
 * entrant was excluded. */
static void look_at_comparison(struct take *take, const struct dt_log_record *record, int at)
{
    const struct dt_compared *compared = &record->compared;
    bool final = dt_compared_is_final(compared);
    bool complete = record->kind == DT_LOG_COMPARISON && compared->complete;
    if (!take->compared && (complete || record->kind == DT_LOG_SETS))
        *(final ? &take->final : &take->shootout) = at;
    bool first_out = compared->count > 0 && compared->entrants[0].out;
    take->compared = take->compared || (complete && final && !first_out);
}

static dt_status look_at(struct take *take, struct dt_log_record *record, int at)
{
    switch (record->kind) {
    case DT_LOG_TRIAL:
        take->open = false;
        break;
    case DT_LOG_BEGIN:
        take->open = true;
        take->begun = record->plan;
        break;
    case DT_LOG_LOST:
        take_lost(take, &record->plan);
        break;
    case DT_LOG_SEARCH:
        take->search = at;
        break;
    case DT_LOG_SEARCHED:
        take->searched = at;
        take->stopped = record->searched.stopped;
        break;
    case DT_LOG_SETS:
    case DT_LOG_COMPARISON:
        look_at_comparison(take, record, at);
        break;
    default:
        break;
    }
    return DT_OK;
}

/* The copy of the comparison goes on. */
static dt_status take_comparison(struct take *take, struct dt_log_record *record)
{
    struct dt_tuning *tuning = take->tuning;
    struct dt_compared *to =
        dt_compared_is_final(&record->compared) ? &tuning->resume.final : &tuning->resume.shootout;
    struct dt_log_record copy;
    DT_TRY(dt_log_copy(record, tuning->target, &tuning->session->clocks, &copy));
    *to = copy.compared;
    to->complete = record->kind == DT_LOG_COMPARISON;
    return dt_log_add(tuning->log, record);
}

static dt_status take_search_end(struct take *take, struct dt_log_record *record)
{
    struct dt_tuning_search *search = &take->tuning->search;
    if (record->kind == DT_LOG_SEARCH) {
        snprintf(search->name, sizeof search->name, "%s", record->search.name);
        snprintf(search->why, sizeof search->why, "%s", record->search.why);
    } else {
        snprintf(search->note, sizeof search->note, "%s", record->searched.note);
        search->stopped = record->searched.stopped;
        take->tuning->resume.searched = true;
    }
    return dt_log_add(take->tuning->log, record);
}

/* The search's end and the comparisons are taken over where the search need not go on: it had
 * stopped by itself, or this session has no larger budget. Otherwise the search goes on, and
 * comparisons are made anew. */
static dt_status take_over(struct take *take, struct dt_log_record *record, int at)
{
    struct dt_tuning *tuning = take->tuning;
    bool ended =
        take->search >= 0 && take->searched >= 0 && (!tuning->resume.more_time || take->stopped);
    if (record->kind == DT_LOG_UNDONE || record->kind == DT_LOG_UNVERIFIED)
        return dt_log_add(tuning->log, record);
    for (int i = 0; record->kind == DT_LOG_END && i < record->ended.unverified_count; i++)
        DT_TRY(dt_log_add(tuning->log,
                          &(struct dt_log_record){.kind = DT_LOG_UNVERIFIED,
                                                  .unverified = record->ended.unverified[i]}));
    if (record->kind == DT_LOG_TRIAL)
        return record->result.outcome == DT_TRIAL_INTERRUPTED ? DT_OK
                                                              : dt_log_add(tuning->log, record);
    if (ended && (at == take->search || at == take->searched))
        return take_search_end(take, record);
    return ended && (at == take->shootout || at == take->final) ? take_comparison(take, record)
                                                                : DT_OK;
}

/* Reads the journal, calling visit with each record. One that cannot be read, as of a plan that is
 * not in the space any more, is left out. */
static dt_status take_each(struct take *take, const char *path, take_record *visit)
{
    struct dt_journal_reader reader = {.path = path};
    const struct dt_session *session = take->tuning->session;
    int at = 0;
    take->left_out = 0;
    for (; dt_journal_next(&reader); at++) {
        struct dt_log_record record = {.kind = DT_LOG_KINDS};
        if (strcmp(reader.kind, dt_log_kind_text(DT_LOG_SESSION)) == 0)
            continue;
        dt_status status =
            dt_log_decode(&reader, "the journal", session->target, &session->clocks, &record);
        if (status == DT_OK)
            status = visit(take, &record, at);
        take->left_out += status == DT_EUSAGE && strcmp(reader.kind, "trial") == 0;
        reader.status = status == DT_EUSAGE ? DT_OK : status;
        dt_log_record_fini(&record);
    }
    take->damaged = reader.damaged - reader.torn; /* a torn last line is what a kill leaves */
    return dt_journal_end(&reader);
}

/* The plan ran when a session ended, more than once: it is not tried again. */
static dt_status leave_out(struct dt_tuning *tuning, const struct dt_point *point)
{
    DT_CLEANUP(dt_result_fini) struct dt_result result;
    dt_result_init(&result, tuning->target, point);
    result.outcome = DT_TRIAL_INFEASIBLE; /* a crash would be tried again */
    snprintf(result.cause, sizeof result.cause,
             "%d sessions ended while this plan ran, so it is left out", LOST_OUT);
    return dt_tuning_result(tuning, DT_LOG_TRIAL, &result);
}

static dt_status judge_lost(struct take *take)
{
    struct dt_tuning *tuning = take->tuning;
    if (take->open)
        take_lost(take, &take->begun);
    for (int i = 0; i < take->lost_count; i++) {
        int times = 1;
        for (int k = 0; k < i; k++)
            times += dt_point_equal(tuning->target->space, &take->lost[k], &take->lost[i]);
        if (dt_session_trial(tuning->session, &take->lost[i]) != NULL)
            continue;
        DT_TRY(dt_tuning_plan(tuning, DT_LOG_LOST, &take->lost[i]));
        if (times >= LOST_OUT)
            DT_TRY(leave_out(tuning, &take->lost[i]));
    }
    return DT_OK;
}

static void note_resumed(const struct take *take)
{
    const struct dt_tuning *tuning = take->tuning;
    dt_tuning_note(tuning, "resumed: %d trial%s of session %s, which spent %s of the budget",
                   tuning->session->count, tuning->session->count == 1 ? "" : "s",
                   tuning->resume.id,
                   dt_figure_span_of((double)tuning->resume.spent_ns * 1e-9).text);
    if (tuning->resume.final.entrants != NULL)
        dt_tuning_note(tuning, "resumed: %d set%s of the final comparison",
                       tuning->resume.final.sets.count,
                       tuning->resume.final.sets.count == 1 ? "" : "s");
    if (take->damaged > 0)
        dt_tuning_note(tuning, "%d damaged record%s of its journal %s left out", take->damaged,
                       take->damaged == 1 ? "" : "s", take->damaged == 1 ? "is" : "are");
    if (take->left_out > 0)
        dt_tuning_note(tuning, "%d of its trials are left out: their plans are not in the space",
                       take->left_out);
}

static dt_status take_all(struct take *take, const char *path)
{
    struct dt_tuning *tuning = take->tuning;
    DT_TRY(take_each(take, path, look_at));
    DT_TRY(take_each(take, path, take_over));
    DT_TRY(judge_lost(take));
    DT_TRY(dt_clocks_copy(&tuning->session->clocks, &tuning->rig.clocks));
    note_resumed(take);
    tuning->store.unstored_ns = dt_clock_ns(); /* it may have been killed before it stored */
    struct dt_log_record record = {
        .kind = DT_LOG_TAKEN, .taken = {.of = tuning->resume.id, .trials = tuning->session->count}};
    return dt_log_add(tuning->log, &record);
}

dt_status dt_resume_trials(struct dt_tuning *tuning)
{
    dt_auto_text path = {0};
    struct take take = {
        .tuning = tuning, .search = -1, .searched = -1, .shootout = -1, .final = -1};
    if (tuning->resume.id[0] == '\0')
        return DT_OK;
    dt_journals_path(tuning->opts.directory, tuning->resume.id, &path);
    return take_all(&take, dt_text_at(&path));
}

void dt_resume_drop(struct dt_compared *compared)
{
    for (int i = 0; compared->entrants != NULL && i < compared->count; i++)
        dt_entrant_fini(&compared->entrants[i]);
    free(compared->entrants);
    *compared = (struct dt_compared){.entrants = NULL};
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
    DT_CLEANUP(dt_outline_fini) struct dt_outline newest = {.key = NULL};
    DT_CLEANUP(members_fini) struct members members = {.count = 0};
    *list = (struct dt_list){.spent_ns = 0};
    DT_TRY(newest_find(directory, &newest));
    if (newest.works != works || newest.list[0] == '\0')
        return DT_OK;
    DT_TRY(members_find(directory, newest.list, &members));
    if (members_at_end(&members))
        return DT_OK;
    snprintf(list->id, sizeof list->id, "%s", newest.list);
    for (int i = 0; i < members.count; i++)
        if (is_done(&members, &members.at[i]))
            list->spent_ns += members.at[i].before_ns + members.at[i].spent_ns;
    return DT_OK;
}

dt_status dt_list_done(const char *directory, const struct dt_list *list, int work,
                       const struct dt_target *target, struct dt_replay *replay, bool *found)
{
    DT_CLEANUP(members_fini) struct members members = {.count = 0};
    *found = false;
    DT_TRY(members_find(directory, list->id, &members));
    for (int i = 0; !*found && i < members.count; i++) {
        dt_auto_text path = {0};
        const struct dt_outline *member = &members.at[i];
        if (!is_done(&members, member) || member->work != work ||
            !dt_resume_same_work(member, target))
            continue;
        dt_journals_path(directory, member->id, &path);
        dt_status opened = dt_replay_open(dt_text_at(&path), false, replay);
        *found = opened == DT_OK && replay->session->ended && replay->damaged == 0;
        if (!*found)
            dt_replay_fini(replay);
        if (opened == DT_ENOMEM)
            return opened;
    }
    return DT_OK;
}
