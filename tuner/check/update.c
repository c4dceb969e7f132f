/* SPDX-License-Identifier: MIT */
/* What a check writes into the store. Always: that the plan lost, which a later win or tie takes back. With --update: replaces a plan that lost, with the figures of this comparison; stamps one that did not lose
 * with the time, and if it won, with today's soft fingerprint. The figures and the gain of a plan that won stay those
 * of its session, so that many small losses of gain still add up to one that --max-gain-loss sees. */
#include "tuner/check/check.h"

#include "base/clock.h"
#include "db/store.h"
#include "space/json/json.h"
#include "stats/front.h"
#include "tuner/session/session.h"

#define STOP_SECONDS 0.6 /* to stop the groups */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Ratio of entrant b over entrant a, at the level of one comparison. */
static struct dt_ratio ratio_of(const struct dt_check_entry *entry, int b, int a)
{
    return dt_judge_ratio_through(entry->values[0], entry->values[a], entry->values[b],
                                  &entry->sets, dt_stats_set_level(dt_sets_quiet(&entry->sets)));
}

/* The entrant of the plan, if it ran; -1: none. */
static int entrant_at(const struct dt_check_entry *entry, const struct dt_point *point)
{
    for (int i = 0; i < entry->count - entry->twin; i++)
        if (!entry->entrants[i].out &&
            dt_point_equal(entry->target->space, &entry->entrants[i].point, point))
            return i;
    return -1;
}

/* It ran, keeps the entry's latency limit, and is no default whose output is wrong. */
static bool fits(const struct dt_check_entry *entry, int i)
{
    const struct dt_entrant *entrant = &entry->entrants[i];
    double limit = (double)entry->job.max_latency_ns * 1e-9;
    return !entrant->out && entrant->result.samples.n > 0 &&
           !dt_target_wrong(entry->target, &entrant->point, entrant->result.verified_error) &&
           !(limit > 0 && entrant->result.summary.median > limit);
}

/* The entrant that replaces the tuned plan; -1: none. Not a default that breaks the entry's latency limit. */
static int successor(const struct dt_check_entry *entry)
{
    int fallback =
        entrant_at(entry, &entry->target->fallback) - 1; /* index as a rival; < 0: none */
    if (fallback >= 0 && (entry->judge.rivals[fallback].out || !fits(entry, fallback + 1)))
        fallback = -1;
    int rival = dt_check_successor(&entry->judge, &entry->sets, fallback >= 0 ? fallback : -1);
    return rival >= 0 ? rival + 1 : -1;
}

static struct dt_measured figures_of(const struct dt_check_entry *entry, int i)
{
    return dt_measured_of(&entry->entrants[i].result, entry->target);
}

/* The figures of the winner, or of the entrant of that plan, whether it ran or not. */
static struct dt_measured role_figures(const struct dt_check_entry *entry,
                                       const struct dt_point *point, int winner)
{
    const struct dt_space *space = entry->target->space;
    if (dt_point_equal(space, &entry->entrants[winner].point, point))
        return figures_of(entry, winner);
    for (int i = 0; i < entry->count; i++)
        if (dt_point_equal(space, &entry->entrants[i].point, point))
            return figures_of(entry, i);
    return (struct dt_measured){.known = false};
}

/* The winner, then the previous best plans. */
static void fill_top(const struct dt_check_entry *entry, int winner, struct dt_stored_entry *now)
{
    now->top[now->top_count++] = figures_of(entry, winner);
    for (int i = 0; i < entry->count - entry->twin && now->top_count < DT_TOP_MOST; i++)
        if (i != winner && !entry->entrants[i].out && entry->entrants[i].role != DT_ENTRANT_TUNED)
            now->top[now->top_count++] = figures_of(entry, i);
}

/* Only plans that ran here: times of the session are not compared with today's. */
static void fill_front(const struct dt_check_entry *entry, struct dt_stored_entry *now)
{
    struct dt_front_point points[DT_ENTRANTS];
    int n = 0;
    for (int i = 0; i < entry->count - entry->twin; i++) {
        const struct dt_result *result = &entry->entrants[i].result;
        if (fits(entry, i))
            points[n++] =
                (struct dt_front_point){entry->target->objective->value(
                                            result->summary.median, result->batch, result->devices),
                                        result->peak_bytes, i};
    }
    n = dt_front(points, n);
    for (int k = 0; k < n; k++)
        now->pareto[now->pareto_count++] =
            dt_front_figures(&entry->entrants[points[k].index].result, entry->target);
}

static enum dt_verdict verdict_of(const struct dt_check_entry *entry, int winner, int fallback,
                                  const struct dt_ratio *ratio)
{
    if (winner == fallback)
        return DT_VERDICT_DEFAULT;
    if (fallback < 0)
        return DT_VERDICT_UNOPPOSED;
    return dt_judge_beats(ratio, entry->judge.margin) ? DT_VERDICT_FASTER : DT_VERDICT_TIE;
}

/* The stored entry with what this comparison says of it. Fields that it does not say, or that are not known here, stay. NULL
 * when memory is short. */
static json_t *changed(const struct dt_check_entry *entry, struct dt_stored_entry *now)
{
    static const char *const kept[] = {"key", "fingerprint", "noise"};
    json_t *said = dt_record_json(&dt_record_stored_entry, now);
    json_t *copy = said != NULL ? json_deep_copy(entry->item->stored) : NULL;
    json_t *fingerprint = json_object_get(copy, "fingerprint");
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        json_object_del(said, kept[i]);
    json_object_del(copy, "resolution"); /* of the plan before */
    json_object_del(copy, "load");
    json_object_update(copy, said);
    json_object_set(fingerprint, "soft", entry->today.soft);
    json_object_set(fingerprint, "info", entry->today.info);
    json_decref(said);
    return copy;
}

/* The winner takes the plan's place. */
static json_t *replaced(const struct dt_check_entry *entry, int winner, const char *journal)
{
    const struct dt_target *target = entry->target;
    int fallback = entrant_at(entry, &target->fallback);
    struct dt_ratio none = {.ratio = NAN, .interval = {NAN, NAN}};
    struct dt_ratio ratio = fallback >= 0 ? ratio_of(entry, winner, fallback) : none;
    struct dt_stored_entry now = {
        .known = true,
        .plan = dt_point_json(target->space, &entry->entrants[winner].point),
        .verdict = dt_verdict_text(verdict_of(entry, winner, fallback, &ratio)),
        .figures = figures_of(entry, winner),
        .fallback = role_figures(entry, &target->fallback, winner),
        .baseline = role_figures(entry, &target->baseline, winner),
        .gain = dt_gain_of(ratio.sets >= DT_SETS_LEAST ? &ratio : NULL),
        .resolution = entry->judge.margin,
        .load = dt_load_of_sets(&entry->sets),
        .journal = journal};
    fill_top(entry, winner, &now);
    fill_front(entry, &now);
    return changed(entry, &now);
}

/* Another program may have changed the entry during the check. */
static dt_status still_there(const struct dt_check_entry *entry, const char *directory, bool *same)
{
    json_t *now = NULL;
    const json_t *stored = entry->item->stored;
    DT_TRY(
        dt_store_get(directory, entry->target->identity.key, entry->target->identity.hard, &now));
    *same = now != NULL &&
            json_equal(json_object_get(now, "plan"), json_object_get(stored, "plan")) &&
            json_equal(json_object_get(now, "journal"), json_object_get(stored, "journal"));
    json_decref(now);
    return DT_OK;
}

/* id and crc are the store's. */
static dt_status put(struct dt_check_entry *entry, const char *directory, json_t *copy, bool *done)
{
    bool same = false;
    if (copy == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = still_there(entry, directory, &same);
    json_object_del(copy, "id");
    json_object_del(copy, "crc");
    if (status == DT_OK && same)
        status = dt_store_put(directory, copy);
    if (status == DT_OK && same) {
        *done = true;
        entry->written.best = json_incref(copy);
    } else if (status == DT_OK)
        snprintf(entry->written.note, sizeof entry->written.note,
                 "not updated: another program has stored a plan meanwhile");
    json_decref(copy);
    return status;
}

/* The fastest plan shown to be faster than the first storable one (the default, if it ran); -1: none. */
static int fastest(const struct dt_check_entry *again)
{
    int winner = -1, first = 0;
    double best = 1;
    while (first < again->count && !fits(again, first))
        first++;
    if (first < again->count && dt_sets_quiet(&again->sets) >= DT_SETS_LEAST)
        winner = first;
    for (int i = first + 1; winner >= 0 && i < again->count; i++) {
        struct dt_ratio ratio = ratio_of(again, i, first);
        if (fits(again, i) && dt_judge_faster(&ratio) && ratio.ratio < best) {
            winner = i;
            best = ratio.ratio;
        }
    }
    return winner;
}

/* The tuned plan failed, so there are no ratios to it: compares the plans that ran among themselves. */
static dt_status elect(const struct dt_check_entry *entry, int64_t deadline_ns,
                       struct dt_check_entry *again)
{
    struct dt_rig rig;
    struct dt_compare how = {.deadline_ns = deadline_ns - (int64_t)(STOP_SECONDS * 1e9),
                             .sets = DT_SETS_USUAL,
                             .seed = (uint64_t)dt_clock_wall_ns()};
    for (int i = 1; i < entry->count - entry->twin; i++)
        if (!entry->entrants[i].out)
            again->entrants[again->count++] = (struct dt_entrant){.role = entry->entrants[i].role,
                                                                  .point = entry->entrants[i].point,
                                                                  .decisive = true};
    dt_rig_init(&rig, entry->target, (uint64_t)entry->job.seed);
    rig.end_ns = deadline_ns;
    dt_status status = dt_compare_run(&rig, again->entrants, again->count, &how, &again->sets);
    dt_rig_fini(&rig, DT_NS_PER_SECOND);
    for (int i = 0; i < again->count; i++) {
        const struct dt_entrant *entrant = &again->entrants[i];
        for (int k = 0; k < DT_ROUNDS_MOST; k++)
            again->values[i][k] =
                k < dt_sets_rounds(&again->sets)
                    ? entry->target->objective->value(entrant->visits[k], entrant->result.batch,
                                                      entrant->result.devices)
                    : NAN;
    }
    return status;
}

static dt_status replace_failed(struct dt_check_entry *entry, const char *directory,
                                const char *journal, int64_t deadline_ns)
{
    struct dt_check_entry *again = malloc(sizeof *again);
    if (again == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    *again = *entry; /* borrows everything except its entrants */
    again->count = 0;
    again->twin = false;
    dt_status status = elect(entry, deadline_ns, again);
    int winner = status == DT_OK ? fastest(again) : -1;
    entry->written.successors = dt_check_successors(again);
    if (status == DT_OK && winner >= 0)
        status = put(entry, directory, replaced(again, winner, journal), &entry->written.replaced);
    else if (status == DT_OK)
        snprintf(entry->written.note, sizeof entry->written.note,
                 "not updated: the budget was too short to compare the plans that are left");
    for (int i = 0; i < again->count; i++)
        dt_entrant_fini(&again->entrants[i]);
    free(again);
    return status;
}

/* The entry's copy, and in it an info to write to. */
static json_t *copy_with_info(const struct dt_check_entry *entry, json_t **info)
{
    json_t *copy = json_deep_copy(entry->item->stored);
    json_t *fingerprint = json_object_get(copy, "fingerprint");
    *info = json_object_get(fingerprint, "info");
    if (!json_is_object(*info)) {
        *info = json_object();
        json_object_set_new(fingerprint, "info", *info);
    }
    return copy;
}

static void take_back_loss(json_t *info)
{
    json_object_del(info, "lost_ns");
    json_object_del(info, "lost_to");
}

/* info.t_wall_ns stays the session's: newer results take precedence in merges, and a stamp is no result. A plan that
 * only ties keeps its soft fingerprint, so that changed versions remain visible. */
static json_t *stamped(const struct dt_check_entry *entry)
{
    json_t *info, *copy = copy_with_info(entry, &info);
    if (entry->verdict == DT_CHECK_WINS)
        json_object_set(json_object_get(copy, "fingerprint"), "soft", entry->today.soft);
    take_back_loss(info);
    json_object_set_new(info, "checked_ns", json_integer((json_int_t)dt_clock_wall_ns()));
    return copy;
}

dt_status dt_check_update(struct dt_check_entry *entry, const char *directory, const char *journal,
                          int64_t deadline_ns)
{
    if (entry->verdict == DT_CHECK_WINS || entry->verdict == DT_CHECK_TIES)
        return put(entry, directory, stamped(entry), &entry->written.stamped);
    if (entry->verdict != DT_CHECK_LOSES)
        return DT_OK;
    if (entry->fell)
        return replace_failed(entry, directory, journal, deadline_ns);
    int winner = successor(entry);
    if (winner > 0)
        return put(entry, directory, replaced(entry, winner, journal), &entry->written.replaced);
    snprintf(entry->written.note, sizeof entry->written.note,
             "not updated: no other plan was found to be better");
    return DT_OK;
}

dt_status dt_check_mark(struct dt_check_entry *entry, const char *directory)
{
    bool lost = entry->verdict == DT_CHECK_LOSES;
    bool judged = lost || entry->verdict == DT_CHECK_WINS || entry->verdict == DT_CHECK_TIES;
    const struct dt_stored_info *known = &entry->item->entry.fingerprint.info;
    json_t *info;
    if (!judged || entry->written.replaced || entry->written.stamped ||
        (!lost && !(known->lost_ns > 0)))
        return DT_OK;
    json_t *copy = copy_with_info(entry, &info);
    take_back_loss(info);
    if (lost) {
        json_object_set_new(info, "lost_ns", json_integer((json_int_t)dt_clock_wall_ns()));
        json_object_set_new(info, "lost_to", json_string(entry->reason));
    }
    return put(entry, directory, copy, lost ? &entry->written.marked : &entry->written.cleared);
}
