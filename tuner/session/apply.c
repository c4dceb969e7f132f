/* SPDX-License-Identifier: MIT */
/* The only file that changes a session: by its records, one after the other. */
#include "base/array.h"
#include "tuner/session/session_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- trials by their plans */

enum { ROOM_LEAST = 64 };

/* Fowler, Noll and Vo's hash (FNV-1a) of the values' places. */
static uint64_t point_hash(const struct dt_space *space, const struct dt_point *point)
{
    uint64_t value = 14695981039346656037U;
    for (int axis = 0; axis < dt_space_axes(space); axis++)
        value = (value ^ (uint64_t)point->index[axis]) * 1099511628211U;
    return value ^ value >> 32;
}

/* The slot of the plan, or the free one where it belongs. */
static int *slot_of(const struct dt_session *session, const struct dt_point *point)
{
    const struct dt_session_tried *tried = &session->tried;
    int at = (int)(point_hash(session->target->space, point) & (uint64_t)(tried->room - 1));
    while (tried->slots[at] != 0 &&
           !dt_point_equal(session->target->space, &session->trials[tried->slots[at] - 1].point,
                           point))
        at = (at + 1) & (tried->room - 1);
    return &tried->slots[at];
}

/* Enters a trial: of several attempts the last one counts that was not interrupted. */
static void tried_enter(struct dt_session *session, int i)
{
    int *slot = slot_of(session, &session->trials[i].point);
    if (*slot == 0 || session->trials[i].outcome != DT_TRIAL_INTERRUPTED)
        *slot = i + 1;
}

static dt_status tried_grow(struct dt_session *session)
{
    struct dt_session_tried *tried = &session->tried;
    int room = tried->room > 0 ? 2 * tried->room : ROOM_LEAST;
    int *slots = calloc((size_t)room, sizeof *slots);
    if (slots == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %d trials", room / 2);
    free(tried->slots);
    tried->slots = slots;
    tried->room = room;
    for (int i = 0; i < session->count; i++)
        tried_enter(session, i);
    return DT_OK;
}

const struct dt_result *dt_session_trial(const struct dt_session *session,
                                         const struct dt_point *point)
{
    int slot = session->tried.room > 0 ? *slot_of(session, point) : 0;
    return slot > 0 ? &session->trials[slot - 1] : NULL;
}

bool dt_session_counts(const struct dt_session *session, int i)
{
    return dt_session_trial(session, &session->trials[i].point) == &session->trials[i];
}

const struct dt_result *dt_session_leader(const struct dt_session *session)
{
    return session->tried.leader > 0 ? &session->trials[session->tried.leader - 1] : NULL;
}

/* Finds the leader among the trials that count: the best one was made again, and is slower. */
static void find_leader(struct dt_session *session)
{
    session->tried.leader = 0;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *leader = dt_session_leader(session);
        if (dt_session_counts(session, i) && dt_session_eligible(session, &session->trials[i]) &&
            (leader == NULL ||
             dt_session_value(session, &session->trials[i]) < dt_session_value(session, leader)))
            session->tried.leader = i + 1;
    }
}

/* The session's own, to be changed. */
static struct dt_result *trials_of(struct dt_session *session)
{
    return (struct dt_result *)session->trials;
}

static dt_status trial_keep(struct dt_session *session, const struct dt_result *result)
{
    const struct dt_result *leader = dt_session_leader(session);
    bool leads =
        dt_session_eligible(session, result) &&
        (leader == NULL || dt_session_value(session, result) < dt_session_value(session, leader));
    struct dt_point led = leader != NULL ? leader->point : result->point; /* trials may move */
    if (2 * (session->count + 1) > session->tried.room)
        DT_TRY(tried_grow(session));
    struct dt_result *trials = trials_of(session);
    DT_TRY(DT_GROW(trials, session->count, 1));
    trials[session->count++] = *result;
    session->trials = trials;
    tried_enter(session, session->count - 1);
    int64_t took = (int64_t)(result->facts.cost_seconds * 1e9);
    if (result->samples.n > 0 && took > session->slowest_ns)
        session->slowest_ns = took;
    if (leads)
        session->tried.leader = session->count;
    else if (leader != NULL && dt_point_equal(session->target->space, &led, &result->point))
        find_leader(session);
    return DT_OK;
}

/* ---- records */

static dt_status apply_nothing(struct dt_session *session, struct dt_log_record *record)
{
    (void)session, (void)record;
    return DT_OK;
}

/* NULL stays NULL. */
static const char *text_copy(const char *from, char to[], size_t room)
{
    snprintf(to, room, "%s", from != NULL ? from : "");
    return from != NULL ? to : NULL;
}

static dt_status apply_begun(struct dt_session *session, struct dt_log_record *record)
{
    const struct dt_begun *begun = &record->begun;
    session->target = begun->target;
    snprintf(session->id, sizeof session->id, "%s", begun->id);
    session->began_wall_ns = begun->wall_ns;
    session->budget_ns = begun->budget_ns;
    session->max_latency_ns = begun->max_latency_ns;
    session->has_against = begun->has_against;
    session->against = begun->against;
    session->finals.best = session->next.best = session->before.best = -1;
    session->finals.opponent = -1;
    session->closing = (struct dt_closing){
        .known = true, .elapsed_ns = DT_NO_NS, .need_ns = 0, .compared_ns = DT_NO_NS};
    dt_fingerprint_fini(&session->fingerprint);
    session->fingerprint = dt_fingerprint_copy(&begun->fingerprint);
    struct dt_stored_info *info = &session->fingerprint.info;
    info->host = text_copy(info->host, session->host, sizeof session->host);
    info->boot_id = text_copy(info->boot_id, session->boot_id, sizeof session->boot_id);
    info->lost_to = NULL;
    return DT_OK;
}

/* Ranks whose clocks were not known are judged by this measurement from now on. */
static dt_status apply_clocks(struct dt_session *session, struct dt_log_record *record)
{
    return dt_clocks_learn(&session->clocks, &record->result);
}

static dt_status apply_trial(struct dt_session *session, struct dt_log_record *record)
{
    record->result.throttling.clocks = &session->clocks;
    DT_TRY(dt_clocks_learn(&session->clocks, &record->result));
    DT_TRY(trial_keep(session, &record->result));
    record->result = (struct dt_result){.outcome = DT_TRIAL_OK};
    return DT_OK;
}

static dt_status apply_undone(struct dt_session *session, struct dt_log_record *record)
{
    int slot = session->tried.room > 0 ? *slot_of(session, &record->plan) : 0;
    if (slot > 0)
        trials_of(session)[slot - 1].undone = true;
    find_leader(session);
    return DT_OK;
}

static void unverified_add(struct dt_session *session, const struct dt_unverified *unverified)
{
    if (session->unverified_count < DT_RIG_REFERENCES)
        session->unverified[session->unverified_count++] = *unverified;
}

static dt_status apply_unverified(struct dt_session *session, struct dt_log_record *record)
{
    unverified_add(session, &record->unverified);
    return DT_OK;
}

static dt_status apply_search(struct dt_session *session, struct dt_log_record *record)
{
    const struct dt_searching *from = &record->search;
    struct dt_session_search *search = &session->search;
    snprintf(search->name, sizeof search->name, "%s", from->name);
    snprintf(search->why, sizeof search->why, "%s", from->why);
    snprintf(search->prior, sizeof search->prior, "%s", from->prior);
    memcpy(search->known, from->known, sizeof search->known);
    search->known_count = from->known_count;
    return DT_OK;
}

static void searched_set(struct dt_session_search *search, const struct dt_searched *searched)
{
    snprintf(search->note, sizeof search->note, "%s", searched->note);
    search->stopped = searched->stopped;
}

static dt_status apply_searched(struct dt_session *session, struct dt_log_record *record)
{
    searched_set(&session->search, &record->searched);
    return DT_OK;
}

/* Keeps a shoot-out's findings for its final comparison. */
static void shootout_set(struct dt_session *session, const struct dt_compared *compared)
{
    struct dt_session_finals *next = &session->next;
    *next = (struct dt_session_finals){.best = -1, .opponent = -1};
    if (!compared->complete)
        return;
    if (compared->count > 1)
        dt_verdict_choose(session, compared->entrants, compared->count, next);
    for (int i = 0; i < compared->count && next->shot_count < DT_SHOTS; i++) {
        const struct dt_entrant *entrant = &compared->entrants[i];
        if (!entrant->out && !dt_entrant_twin(entrant) &&
            dt_session_eligible(session, &entrant->result))
            next->shots[next->shot_count++] =
                dt_session_shot(session, &entrant->result, "shoot-out");
    }
}

static void finals_drop(struct dt_session_finals *finals)
{
    for (int i = 0; i < finals->entrant_count; i++)
        dt_entrant_fini(&finals->entrants[i]);
    *finals = (struct dt_session_finals){.best = -1, .opponent = -1};
}

/* The best plan's ratio to this one in its comparison. NAN: that one was not compared. */
static double ratio_over(const struct dt_target *target, const struct dt_session_finals *finals,
                         const struct dt_point *plan)
{
    for (int i = 0; i < finals->entrant_count; i++)
        if (!dt_entrant_twin(&finals->entrants[i]) &&
            dt_point_equal(target->space, &finals->entrants[i].point, plan))
            return dt_entrants_ratio(target, finals->entrants, (int[2]){i, finals->best},
                                     finals->entrant_count, &finals->sets)
                .ratio;
    return NAN;
}

/* The earlier comparison's best plan is the faster one, by the ratios of both to a plan of both:
 * ratios to the first entrant tell nothing where that is another plan. */
static bool earlier_faster(const struct dt_target *target, const struct dt_session_finals *earlier,
                           const struct dt_session_finals *later)
{
    for (int i = 0; i < earlier->entrant_count; i++) {
        const struct dt_point *plan = &earlier->entrants[i].point;
        double then = ratio_over(target, earlier, plan), now = ratio_over(target, later, plan);
        if (isfinite(then) && isfinite(now))
            return now > then;
    }
    return false;
}

static bool has_twin(const struct dt_session_finals *finals)
{
    for (int i = 1; i < finals->entrant_count; i++)
        if (dt_entrant_twin(&finals->entrants[i]))
            return true;
    return false;
}

/* Whether the earlier of two final comparisons counts: the later one does, unless the earlier one
 * found a faster plan and the later one none, or one that is slower than it; or the earlier one
 * lacks a twin, which the later one has. */
static bool earlier_stays(const struct dt_target *target, const struct dt_session_finals *earlier,
                          const struct dt_session_finals *later)
{
    bool provisional = dt_verdict_provisional(later->verdict);
    if (earlier->entrant_count == 0 || (has_twin(later) && !has_twin(earlier)))
        return false; /* without a twin nothing is decided */
    if (provisional && !dt_verdict_provisional(earlier->verdict))
        return true;
    if (earlier->verdict == DT_VERDICT_DOCUMENTED)
        return later->verdict != DT_VERDICT_FASTER && later->verdict != DT_VERDICT_DOCUMENTED;
    return earlier->verdict == DT_VERDICT_FASTER &&
           (later->verdict != DT_VERDICT_FASTER || earlier_faster(target, earlier, later));
}

/* The shoot-out that is not followed by a comparison yet belongs to this one: it has its
 * winner, or there was none. */
static bool shootout_fits(const struct dt_session *session, const struct dt_compared *compared)
{
    const struct dt_session_finals *next = &session->next;
    for (int i = 0; next->chosen > 0 && i < compared->count; i++)
        if (dt_point_equal(session->target->space, &compared->entrants[i].point, &next->winner))
            return true;
    return next->chosen == 0 && next->shot_count > 0;
}

/* The later one of two comparisons counts, or the earlier one stays. */
static void finals_settle(struct dt_session *session)
{
    if (earlier_stays(session->target, &session->before, &session->finals)) {
        struct dt_session_finals later = session->finals;
        session->finals = session->before;
        session->before = later;
    }
    finals_drop(&session->before);
    session->verdict = session->finals.verdict;
}

/* A comparison that goes on with one of a resumed session has its sets, too. One after a first
 * entrant that cannot run is the same comparison without it. Both replace what was there; any other
 * one is another comparison. The one whose first entrant fell decides nothing. */
static void final_set(struct dt_session *session, struct dt_compared *compared)
{
    struct dt_session_finals *finals = &session->finals, replaced = *finals;
    bool replaces = compared->goes_on || dt_verdict_first_fell(session);
    bool shot = shootout_fits(session, compared);
    if (!replaces) {
        finals_drop(&session->before);
        session->before = replaced;
        replaced = (struct dt_session_finals){.best = -1, .opponent = -1};
    }
    *finals = shot ? session->next : replaced;
    session->next = (struct dt_session_finals){.best = -1, .opponent = -1};
    finals_drop(&replaced);
    memcpy(finals->entrants, compared->entrants,
           (size_t)compared->count * sizeof finals->entrants[0]);
    finals->entrant_count = compared->count;
    finals->sets = compared->sets;
    for (int i = 0; i < compared->count; i++)
        finals->entrants[i].result.throttling.clocks = &session->clocks;
    compared->count = 0;
    dt_verdict_decide(session, finals);
    if (dt_verdict_first_fell(session)) {
        finals->best = -1;
        session->verdict = finals->verdict = DT_VERDICT_PROVISIONAL;
    } else {
        finals_settle(session);
    }
}

static dt_status apply_comparison(struct dt_session *session, struct dt_log_record *record)
{
    struct dt_compared *compared = &record->compared;
    if (dt_compared_is_final(compared)) {
        final_set(session, compared);
        return DT_OK;
    }
    shootout_set(session, compared);
    for (int i = 0; i < compared->count; i++)
        dt_entrant_fini(&compared->entrants[i]);
    compared->count = 0;
    return DT_OK;
}

/* No entrant wins where the session's figures decide nothing. */
static void end_judge(struct dt_session *session)
{
    bool fell = session->before.entrant_count > 0; /* and nothing was compared without that plan */
    if (fell)
        finals_settle(session);
    enum dt_verdict verdict = dt_session_verdict(session);
    dt_auto_text doubt = {0};
    dt_session_doubt(session, &doubt);
    if (doubt.size > 0)
        session->finals.best = -1;
    session->verdict = verdict;
}

static dt_status apply_end(struct dt_session *session, struct dt_log_record *record)
{
    const struct dt_session_ended *ended = &record->ended;
    struct dt_session_search *search = &session->search;
    searched_set(search, &ended->searched);
    memcpy(search->importance, ended->importance, sizeof search->importance);
    search->weighed = ended->weighed;
    for (int i = 0; i < ended->unverified_count; i++)
        unverified_add(session, &ended->unverified[i]);
    session->closing = ended->closing;
    session->ended = true;
    end_judge(session);
    return DT_OK;
}

static dt_status (*const appliers[])(struct dt_session *session, struct dt_log_record *record) = {
#define DT_LOG_KIND(NAME, text, codec, apply, doc) apply_##apply,
#include "tuner/session/log.def"
};

dt_status dt_session_apply(struct dt_session *session, struct dt_log_record *record)
{
    return record->kind < DT_LOG_KINDS ? appliers[record->kind](session, record) : DT_OK;
}

void dt_session_fini(struct dt_session *session)
{
    for (int i = 0; i < session->count; i++)
        dt_result_fini(&trials_of(session)[i]);
    free(trials_of(session));
    free(session->tried.slots);
    finals_drop(&session->finals);
    finals_drop(&session->before);
    dt_fingerprint_fini(&session->fingerprint);
    dt_clocks_fini(&session->clocks);
    *session = (struct dt_session){.target = NULL};
}

/* ---- the log */

struct dt_log {
    struct dt_session session;
    struct dt_journal *journal; /* owned; NULL: none */
    struct dt_target *read;     /* owned: the target of a session that is read back */
};

dt_status dt_log_new(struct dt_log **log)
{
    *log = calloc(1, sizeof **log);
    return *log != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory for a session");
}

void dt_log_free(struct dt_log *log)
{
    if (log == NULL)
        return;
    dt_session_fini(&log->session);
    dt_journal_close(log->journal);
    dt_target_free(log->read);
    free(log);
}

const struct dt_session *dt_log_session(const struct dt_log *log)
{
    return &log->session;
}

void dt_log_attach(struct dt_log *log, struct dt_journal *journal)
{
    log->journal = journal;
}

struct dt_journal *dt_log_journal(const struct dt_log *log)
{
    return log->journal;
}

dt_status dt_log_add(struct dt_log *log, struct dt_log_record *record)
{
    const struct dt_target *target =
        record->kind == DT_LOG_SESSION ? record->begun.target : log->session.target;
    struct dt_error failed = {DT_OK, ""};
    dt_error_keep(&failed, dt_log_record_write(log->journal, record, target));
    dt_error_keep(&failed, dt_session_apply(&log->session, record));
    return dt_error_raise(&failed);
}

dt_status dt_log_read(struct dt_log *log, const struct dt_journal_reader *reader, const char *what)
{
    struct dt_session *session = &log->session;
    DT_CLEANUP(dt_log_record_fini) struct dt_log_record record = {.kind = DT_LOG_KINDS};
    enum dt_log_kind kind = dt_log_kind_of(reader->kind);
    if (kind < DT_LOG_KINDS && appliers[kind] == apply_nothing)
        return DT_OK; /* it may have all samples so far */
    DT_TRY(dt_log_decode(reader, what, session->target, &session->clocks, &record));
    DT_TRY(dt_session_apply(session, &record));
    if (record.kind == DT_LOG_SESSION) {
        log->read = record.begun.read;
        record.begun.read = NULL;
    }
    return DT_OK;
}

void dt_log_read_end(struct dt_log *log)
{
    if (log->session.target != NULL && !log->session.ended)
        end_judge(&log->session);
}
