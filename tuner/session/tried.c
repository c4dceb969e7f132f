/* SPDX-License-Identifier: MIT */
/* Sessions may have ten thousands of trials, and look one up several times for each new one: a hash table with open addressing,
 * at most half full. */
#include "tuner/session/session.h"

#include "base/array.h"
#include "tuner/session/session_int.h"

#include <stdlib.h>

enum { ROOM_LEAST = 64 };

/* Fowler, Noll and Vo's hash (FNV-1a) of the values' places. */
static uint64_t hash(const struct dt_space *space, const struct dt_point *point)
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
    int at = (int)(hash(session->target->space, point) & (uint64_t)(tried->room - 1));
    while (tried->slots[at] != 0 &&
           !dt_point_equal(session->target->space, &session->trials[tried->slots[at] - 1].point,
                           point))
        at = (at + 1) & (tried->room - 1);
    return &tried->slots[at];
}

/* Of several attempts the last one counts that was not interrupted. */
static void enter(struct dt_session *session, int i)
{
    int *slot = slot_of(session, &session->trials[i].point);
    if (*slot == 0 || session->trials[i].outcome != DT_TRIAL_INTERRUPTED)
        *slot = i + 1;
}

static dt_status grow(struct dt_session *session)
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
        enter(session, i);
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

/* Of the trials that count: the best one was made again, and is slower. */
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

void dt_session_undo(struct dt_session *session, const struct dt_point *point)
{
    int slot = session->tried.room > 0 ? *slot_of(session, point) : 0;
    if (slot > 0)
        session->trials[slot - 1].undone = true;
    find_leader(session);
}

dt_status dt_session_keep(struct dt_session *session, const struct dt_result *result)
{
    const struct dt_result *leader = dt_session_leader(session);
    bool leads =
        dt_session_eligible(session, result) &&
        (leader == NULL || dt_session_value(session, result) < dt_session_value(session, leader));
    struct dt_point led = leader != NULL ? leader->point : result->point; /* trials may move */
    if (2 * (session->count + 1) > session->tried.room)
        DT_TRY(grow(session));
    DT_TRY(DT_GROW(session->trials, session->count, 1));
    session->trials[session->count++] = *result;
    enter(session, session->count - 1);
    if (leads)
        session->tried.leader = session->count;
    else if (leader != NULL && dt_point_equal(session->target->space, &led, &result->point))
        find_leader(session);
    return DT_OK;
}

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

static void add_skipped(const char *what, struct dt_text *out)
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
        add_skipped("the final comparison", out);
        return;
    }
    if (session->finals.shot_count == 0 && dt_verdict_candidates(session, top) > 1)
        add_skipped("the shoot-out of the best trials", out);
    if (baseline_dropped(session))
        add_skipped("the one-rank plan in the final comparison", out);
    if (!dt_session_enough(session))
        add_skipped("sets of the final comparison", out);
}
