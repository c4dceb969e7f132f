/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include "base/clock.h"
#include "base/figures.h"
#include "space/json/json.h"
#include "tuner/session/history.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { LOST_MOST = 64, LOST_OUT = 2, DAY_SECONDS = 24 * 3600, VERSION = 1 };
/* times the budget of the session that is resumed: the search has more time, too */
#define MORE_TIME     1.01
#define RECHECK_SHARE 0.03 /* of the whole budget: the time to measure the default again */
/* a larger change of the default is reported, unless its intervals overlap */
#define RECHECK_MARGIN 0.05
#define CUT_SHARE      0.9 /* of its budget: a session that ended later was not cut short */

/* What a journal says of its session as a whole. */
struct outline {
    const struct dt_session *session; /* the new one */
    char id[64], verdict[32];         /* verdict "": it did not come to its end */
    bool same_work, same_machine;
    struct dt_spent spent;
    int64_t before_ns; /* spent before it, where it was resumed itself */
    int64_t budget_ns;
    int trials;
    bool copying; /* it was resumed itself, and ended before it had all of that session */
    int version;  /* of its records; another than ours cannot be taken over */
};

/* Journals that cannot be used, to be named in one note. */
struct unusable {
    int count;
    char newest[512]; /* the reason of the newest one */
};

static bool is_kind(const json_t *record, const char *kind)
{
    return strcmp(dt_json_text_at(record, "kind"), kind) == 0;
}

static void read_outline(const json_t *record, void *context)
{
    struct outline *outline = context;
    const struct dt_session *session = outline->session;
    int version = (int)json_integer_value(json_object_get(record, "v"));
    outline->version = version != VERSION ? version : outline->version;
    if (is_kind(record, "session")) {
        const json_t *print = json_object_get(record, "fingerprint");
        outline->same_work =
            json_equal(json_object_get(record, "key"), session->target->identity.key);
        outline->same_machine =
            json_equal(json_object_get(print, "hard"), session->fingerprint.hard) &&
            json_equal(json_object_get(print, "soft"), session->fingerprint.soft);
        snprintf(outline->id, sizeof outline->id, "%s", dt_json_text_at(record, "run"));
        outline->budget_ns = json_integer_value(json_object_get(record, "budget_ns"));
    }
    if (is_kind(record, "resumed"))
        outline->before_ns = json_integer_value(json_object_get(record, "spent_ns"));
    if (is_kind(record, "end"))
        snprintf(outline->verdict, sizeof outline->verdict, "%s",
                 dt_json_text_at(record, "verdict"));
    outline->copying =
        is_kind(record, "resumed") || (outline->copying && !is_kind(record, "taken"));
    outline->trials += is_kind(record, "trial");
    dt_spent_add(&outline->spent, record);
}

static bool decided(const struct outline *outline)
{
    static const char *const open[] = {"", "provisional", "inconclusive", "none"};
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        if (strcmp(outline->verdict, open[i]) == 0)
            return false;
    return true;
}

static int is_journal(const struct dirent *file)
{
    size_t size = strlen(file->d_name);
    return size > 6 && strcmp(file->d_name + size - 6, ".jsonl") == 0;
}

static void path_of(const char *directory, const char *name, struct dt_text *path)
{
    dt_text_clear(path);
    dt_text_add(path, "%s/runs/%s", directory, name);
}

/* A journal of the store is a file of its own: a link may lead to one that its owner did not put there. */
static dt_status read_journal(const char *path, struct outline *outline)
{
    struct stat info;
    int bad;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
        return dt_fail(DT_EIO, "cannot read the journal %s: it is a symbolic link", path);
    DT_TRY(dt_journal_read(path, read_outline, outline, &bad));
    if (outline->version != VERSION)
        return dt_fail(DT_ECORRUPT,
                       "the records of journal %s have version %d, and this program reads %d", path,
                       outline->version, VERSION);
    return DT_OK;
}

/* The last journal of the same work that is not the session's own, and has all of those before it. since: the beginning of its name; older ones are not read. */
static bool last_of_work(const struct dt_session *session, const char *directory, const char *since,
                         struct outline *outline, struct unusable *unusable)
{
    struct dt_text path = {0};
    struct dirent **files = NULL;
    bool found = false;
    path_of(directory, "", &path);
    int count = scandir(dt_text_at(&path), &files, is_journal, alphasort);
    for (int i = count - 1; i >= 0; i--) {
        if (!found && strcmp(files[i]->d_name, since) >= 0) {
            *outline = (struct outline){.session = session, .version = VERSION};
            path_of(directory, files[i]->d_name, &path);
            dt_status status = read_journal(dt_text_at(&path), outline);
            found = status == DT_OK && outline->same_work && !outline->copying &&
                    strcmp(outline->id, session->store.id) != 0;
            if (status < 0 && unusable->count++ == 0)
                snprintf(unusable->newest, sizeof unusable->newest, "%s", dt_message());
        }
        free(files[i]);
    }
    free(files);
    dt_text_fini(&path);
    return found;
}

dt_status dt_session_resume(struct dt_session *session, const char *directory)
{
    struct outline last;
    struct unusable unusable = {0};
    const char *why = NULL;
    bool found = last_of_work(session, directory, "", &last, &unusable);
    if (unusable.count > 0)
        dt_session_note(session, "%d newer journal%s left out: %s", unusable.count,
                        unusable.count == 1 ? " is" : "s are", unusable.newest);
    if (!found)
        why = "there is none of this work";
    else if (decided(&last))
        why = "the last one of this work came to its end";
    else if (last.trials == 0)
        why = "the last one of this work measured nothing";
    else if (!last.same_machine)
        why = "since the last one of this work the machine or its software has changed";
    if (why != NULL) {
        dt_session_note(session, "no session to resume: %s; a new one begins", why);
        return DT_OK;
    }
    int64_t spent = last.before_ns + last.spent.ns;
    int64_t budget = session->clock.deadline_ns - session->clock.began_ns;
    snprintf(session->resume.id, sizeof session->resume.id, "%s", last.id);
    session->resume.spent_ns = spent;
    session->resume.more_time = (double)budget > MORE_TIME * (double)last.budget_ns;
    session->clock.began_ns -= spent;
    session->clock.deadline_ns -= spent;
    return dt_history_resumed(session);
}

/* It ended before its time, and not by a decision. */
static bool cut_short(const struct outline *outline)
{
    bool early = (double)outline->spent.ns < CUT_SHARE * (double)outline->budget_ns;
    return outline->verdict[0] == '\0' || (early && !decided(outline));
}

void dt_session_note_open(const struct dt_session *session, const char *directory)
{
    struct outline last;
    struct tm time;
    char since[32] = "";
    time_t yesterday = (time_t)(dt_clock_wall_ns() / DT_NS_PER_SECOND) - DAY_SECONDS;
    if (gmtime_r(&yesterday, &time) != NULL)
        strftime(since, sizeof since, "%Y%m%dT%H%M%SZ", &time);
    struct unusable unusable = {0};
    if (last_of_work(session, directory, since, &last, &unusable) && cut_short(&last) &&
        last.trials > 0)
        dt_session_note(session,
                        "session %s of this work was cut short after %d trial%s: --resume goes on "
                        "with it",
                        last.id, last.trials, last.trials == 1 ? "" : "s");
}

/* What is taken over while the journal is read. */
struct take {
    struct dt_session *session;
    dt_status status;
    struct dt_point begun; /* a trial that has not ended yet */
    bool open;
    bool compared;                   /* a complete final comparison was read */
    struct dt_point lost[LOST_MOST]; /* plans that ran when a session ended; once for each time */
    int lost_count, left_out, damaged;
    /* the last records of these kinds, owned; NULL: there is none */
    json_t *search, *searched, *shootout, *final;
};

static void take_trial(struct take *take, const json_t *record)
{
    struct dt_session *session = take->session;
    struct dt_result result;
    dt_status status = dt_raw_read_result(record, "the journal", session->target, &result);
    result.throttling.clocks = &session->rig.clocks;
    if (status == DT_OK && result.report.request_count > 0)
        status = dt_raw_finish_trial(record, "the journal", &result);
    if (status == DT_OK)
        status = dt_clocks_learn(result.throttling.clocks, &result);
    int64_t took = (int64_t)(result.cost_seconds * 1e9);
    bool keep = status == DT_OK && result.outcome != DT_TRIAL_INTERRUPTED;
    if (keep && result.samples.n > 0 && took > session->slowest_ns)
        session->slowest_ns = took;
    if (keep)
        status = dt_session_keep(session, &result);
    if (!keep || status < 0)
        dt_result_fini(&result);
    if (keep && status == DT_OK)
        status = dt_history_trial(session, &session->trials[session->count - 1]);
    take->left_out += status == DT_EUSAGE; /* a plan that is not in the space any more */
    take->status = status == DT_EUSAGE ? DT_OK : status;
    take->open = false;
}

static void lose(struct take *take, const struct dt_point *point)
{
    if (take->lost_count < LOST_MOST)
        take->lost[take->lost_count++] = *point;
}

static void set_record(json_t **at, const json_t *record)
{
    json_decref(*at);
    *at = json_incref((json_t *)record);
}

/* It came to its end, with its first entrant: without it the session goes on with the others. */
static bool is_final(const json_t *record)
{
    const json_t *first = json_array_get(json_object_get(record, "entrants"), 0);
    return strcmp(dt_json_text_at(record, "name"), "final comparison") == 0 &&
           !json_is_true(json_object_get(first, "out"));
}

/* A comparison that a signal ended has an unfinished set: the sets before it are in a record of their own. What follows a complete final
 * comparison is compared again. */
static void remember(struct take *take, const json_t *record)
{
    const char *name = dt_json_text_at(record, "name");
    bool whole = is_kind(record, "comparison") && json_is_true(json_object_get(record, "complete"));
    if (is_kind(record, "search"))
        set_record(&take->search, record);
    if (is_kind(record, "searched"))
        set_record(&take->searched, record);
    if (!take->compared && (whole || is_kind(record, "sets")))
        set_record(strcmp(name, "shoot-out") == 0 ? &take->shootout : &take->final, record);
    take->compared = take->compared || (whole && is_final(record));
}

static void take_record(const json_t *record, void *context)
{
    struct take *take = context;
    struct dt_point point;
    bool begins = is_kind(record, "begin"), lost = is_kind(record, "lost");
    bool undone = is_kind(record, "undone");
    if (take->status < 0)
        return;
    if (is_kind(record, "trial"))
        take_trial(take, record);
    remember(take, record);
    if (!(begins || lost || undone) ||
        dt_target_stored(take->session->target, json_object_get(record, "plan"), &point) != DT_OK)
        return;
    if (lost)
        lose(take, &point);
    if (undone)
        dt_session_undo(take->session, &point);
    take->open = take->open || begins;
    take->begun = begins ? point : take->begun;
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
    return status < 0 ? status : dt_history_trial(session, &session->trials[session->count - 1]);
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
                                 struct dt_session_made *made)
{
    struct dt_session *session = take->session;
    struct dt_compared compared = {.clocks = &session->rig.clocks};
    if (record == NULL)
        return DT_OK;
    compared.entrants = calloc(DT_ENTRANTS, sizeof *compared.entrants);
    if (compared.entrants == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a comparison");
    dt_status status = dt_raw_read_comparison(record, "the journal", session->target, &compared);
    *made = (struct dt_session_made){compared.entrants, compared.count, compared.sets,
                                     is_kind(record, "comparison")};
    if (status == DT_OK)
        return dt_history_copy(session, record);
    for (int i = 0; i < made->count; i++)
        dt_entrant_fini(&made->entrants[i]);
    free(made->entrants);
    *made = (struct dt_session_made){.entrants = NULL};
    return status == DT_EUSAGE ? DT_OK : status;
}

/* Its search was over, by itself or by a time that is no longer now: it is as it was, and its comparisons go on. Else they are made
 * anew. */
static dt_status take_end(struct take *take)
{
    struct dt_session *session = take->session;
    bool stopped = json_is_true(json_object_get(take->searched, "search_stopped"));
    if (take->search == NULL || take->searched == NULL || (session->resume.more_time && !stopped))
        return DT_OK;
    DT_TRY(dt_replay_search(session, take->search, "the journal"));
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
    DT_TRY(take->status);
    if (take->open)
        lose(take, &take->begun);
    DT_TRY(judge_lost(take));
    DT_TRY(take_end(take));
    note_resumed(take);
    take->session->store.unstored_ns = dt_clock_ns(); /* it may have been killed before it stored */
    return dt_history_taken(take->session);
}

/* A torn last line is what a kill leaves. */
static void see_damage(int line, bool torn, void *context)
{
    struct take *take = context;
    (void)line;
    take->damaged += !torn;
}

dt_status dt_resume_trials(struct dt_session *session)
{
    struct dt_text path = {0}, name = {0};
    struct take take = {.session = session, .status = DT_OK};
    if (session->resume.id[0] == '\0')
        return DT_OK;
    dt_text_add(&name, "%s.jsonl", session->resume.id);
    path_of(session->store.directory, dt_text_at(&name), &path);
    dt_status status = dt_journal_verify(dt_text_at(&path), take_record, see_damage, &take);
    dt_text_fini(&path);
    dt_text_fini(&name);
    if (status == DT_OK)
        status = take_all(&take);
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
static bool differs(const struct dt_summary *before, const struct dt_summary *now)
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
    if (differs(&before->summary, &now->summary))
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
        status = dt_history_recheck(session, &now);
    }
    dt_result_fini(&now);
    return status;
}
