/* SPDX-License-Identifier: MIT */
/* The entry with the query's id is tried first, and its checked answer is cached beside it, so that the next equal
 * query needs no parsing or checking. Otherwise the heads of all lines are read. */
#include "db/lookup/answer_int.h"

#include "base/array.h"
#include "db/snapshot.h"
#include "space/dit/dit.h"
#include "space/json/json.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A cached answer to one text of a query; an entry's answers form a list that only grows at its front. */
struct kept {
    struct kept *next;
    struct dt_found *found;
    size_t size;
    char text[];
};

enum { KEPT_MAX = 16 };

struct note {
    struct dt_snapshot_note base;
    struct dt_head head;
    bool unreadable;
    _Atomic(struct kept *) kept;
    atomic_int count;
};

static void free_note(struct dt_snapshot_note *base)
{
    struct note *note = (struct note *)base;
    struct kept *next;
    for (struct kept *kept = atomic_load(&note->kept); kept != NULL; kept = next) {
        next = kept->next;
        dt_found_free(kept->found);
        free(kept);
    }
    dt_head_fini(&note->head);
    free(note);
}

dt_status dt_lookup_no_memory(void)
{
    return dt_fail(DT_ENOMEM, "out of memory while looking up a plan");
}

/* The note of a line; makes one if missing. */
static dt_status note_of(const struct dt_snapshot *snapshot, long line, struct note **out)
{
    const struct dt_snapshot_note *there = dt_snapshot_note(snapshot, line);
    if (there == NULL) {
        size_t size;
        const char *text = dt_snapshot_line(snapshot, line, &size);
        struct note *made = calloc(1, sizeof *made);
        if (made == NULL)
            return dt_lookup_no_memory();
        made->base.free = free_note;
        dt_status status = dt_head_read(text, size, &made->head);
        if (status == DT_ENOMEM) {
            free(made);
            return status;
        }
        made->unreadable = status != DT_OK;
        there = dt_snapshot_keep(snapshot, line, &made->base);
    }
    *out = (struct note *)there;
    return DT_OK;
}

static const struct dt_found *find_kept(struct note *note, const struct dt_asked *asked)
{
    const struct kept *kept = atomic_load_explicit(&note->kept, memory_order_acquire);
    for (; kept != NULL; kept = kept->next)
        if (kept->size == asked->text_size && memcmp(kept->text, asked->text, kept->size) == 0)
            return kept->found;
    return NULL;
}

/* Caches found, unless memory runs out or the cache is full: then the caller keeps ownership. */
static bool keep(struct note *note, const struct dt_asked *asked, struct dt_found *found)
{
    if (atomic_load(&note->count) >= KEPT_MAX)
        return false;
    struct kept *kept = malloc(sizeof *kept + asked->text_size);
    if (kept == NULL)
        return false;
    atomic_fetch_add(&note->count, 1);
    kept->found = found;
    kept->size = asked->text_size;
    memcpy(kept->text, asked->text, asked->text_size);
    kept->next = atomic_load(&note->kept);
    while (!atomic_compare_exchange_weak(&note->kept, &kept->next, kept))
        continue;
    return true;
}

/* DT_EINFEASIBLE: its plan is not feasible here, or the line is no entry; refusals has the reason. */
static dt_status answer_with(const struct dt_snapshot *snapshot, const struct dt_query *query,
                             const struct dt_match *match, struct dt_refusals *refusals,
                             struct dt_found **found)
{
    const json_t *entry;
    struct dt_fitted fitted = {0};
    dt_status status = dt_snapshot_entry(snapshot, match->line, &entry);
    if (status == DT_OK)
        status = dt_plan_fit(query, match, entry, &fitted);
    if (status == DT_EINFEASIBLE || status == DT_ECORRUPT) {
        dt_refuse(refusals, match, dt_message());
        return DT_EINFEASIBLE;
    }
    DT_TRY(status);
    return dt_answer_of_entry(query, match, entry, &fitted, refusals, found);
}

dt_status dt_lookup_head(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                         long line, const struct dt_head **head)
{
    size_t size;
    const char *text = dt_snapshot_line(snapshot, line, &size);
    struct note *note = NULL;
    *head = NULL;
    if (dt_snapshot_note(snapshot, line) == NULL && !dt_head_may_match(text, size, asked))
        return DT_OK;
    DT_TRY(note_of(snapshot, line, &note));
    *head = note->unreadable ? NULL : &note->head;
    return DT_OK;
}

dt_status dt_matches_add(struct dt_matches *matches, const struct dt_match *match)
{
    DT_TRY(DT_GROW(matches->at, matches->count, 1));
    matches->at[matches->count++] = *match;
    return DT_OK;
}

static int by_order(const void *a, const void *b)
{
    return dt_match_order(a, b);
}

void dt_matches_order(struct dt_matches *matches)
{
    if (matches->count > 1)
        qsort(matches->at, matches->count, sizeof matches->at[0], by_order);
}

/* A cached answer beside a line with the query's id. *found stays NULL when there is none. */
static dt_status answer_kept(const struct dt_snapshot *snapshot, const struct dt_query *query,
                             struct dt_found **found)
{
    const struct dt_asked *asked = &query->asked;
    for (long i = dt_snapshot_find(snapshot, asked->id); i >= 0;
         i = dt_snapshot_next(snapshot, i)) {
        struct note *note = (struct note *)dt_snapshot_note(snapshot, i);
        const struct dt_found *kept = note != NULL ? find_kept(note, asked) : NULL;
        if (kept != NULL && dt_stale_by_age(query, kept->stored_ns) == kept->aged) {
            *found = dt_answer_lend(kept, query);
            return *found != NULL ? DT_OK : dt_lookup_no_memory();
        }
    }
    return DT_OK;
}

/* The lines with the query's id and key, best first; an undamaged file has at most one. */
static dt_status gather_exact(const struct dt_snapshot *snapshot, const struct dt_query *query,
                              struct dt_matches *list)
{
    for (long i = dt_snapshot_find(snapshot, query->asked.id); i >= 0;
         i = dt_snapshot_next(snapshot, i)) {
        struct dt_match match;
        struct note *note;
        DT_TRY(note_of(snapshot, i, &note));
        if (note->unreadable || !dt_match_of(query, &note->head, &match) ||
            match.tier != DT_TIER_EXACT)
            continue;
        match.line = i;
        DT_TRY(dt_matches_add(list, &match));
    }
    dt_matches_order(list);
    return DT_OK;
}

/* Caches a new answer beside its line if there is room, and lends it. */
static dt_status keep_and_lend(const struct dt_snapshot *snapshot, const struct dt_query *query,
                               long line, struct dt_found **found)
{
    struct note *note;
    struct dt_found *made = *found;
    made->aged = dt_stale_by_age(query, made->stored_ns);
    DT_TRY(note_of(snapshot, line, &note));
    if (find_kept(note, &query->asked) != NULL || !keep(note, &query->asked, made))
        return DT_OK;
    *found = dt_answer_lend(made, query);
    return *found != NULL ? DT_OK : dt_lookup_no_memory();
}

/* The entry with the query's id. *found stays NULL when it is missing or refused. */
static dt_status answer_exact(const struct dt_snapshot *snapshot, const struct dt_query *query,
                              struct dt_found **found)
{
    struct dt_matches list = {0};
    bool refused = true;
    DT_TRY(answer_kept(snapshot, query, found));
    if (*found != NULL)
        return DT_OK;
    dt_status status = gather_exact(snapshot, query, &list);
    for (size_t i = 0; status == DT_OK && refused && i < list.count; i++) {
        struct dt_refusals none = {0};
        status = answer_with(snapshot, query, &list.at[i], &none, found);
        dt_text_fini(&none.text);
        refused = status == DT_EINFEASIBLE;
        if (status == DT_OK)
            status = keep_and_lend(snapshot, query, list.at[i].line, found);
        else if (refused)
            status = DT_OK;
    }
    free(list.at);
    return status;
}

/* An entry of the same worker and workload with another job is no answer, but is named. */
static void name_other_job(const struct dt_query *query, const struct dt_head *head,
                           struct dt_refusals *refusals)
{
    struct dt_text differences = {0};
    if (dt_match_other_job(query, head, &differences) && refusals->count++ < 2)
        dt_text_add(&refusals->text, "%sone was measured with %s",
                    refusals->text.size > 0 ? "; " : "", dt_text_at(&differences));
    dt_text_fini(&differences);
}

static dt_status gather(const struct dt_snapshot *snapshot, const struct dt_query *query,
                        struct dt_matches *list, struct dt_refusals *refusals)
{
    long count = (long)dt_snapshot_count(snapshot);
    for (long i = 0; i < count; i++) {
        const struct dt_head *head;
        struct dt_match match;
        DT_TRY(dt_lookup_head(snapshot, &query->asked, i, &head));
        if (head == NULL)
            continue;
        if (!dt_match_of(query, head, &match)) {
            name_other_job(query, head, refusals);
            continue;
        }
        match.line = i;
        DT_TRY(dt_matches_add(list, &match));
    }
    dt_matches_order(list);
    return DT_OK;
}

/* The default rule's plan to *plan, or NULL: of a foreign worker, or where none is feasible. */
static dt_status by_rule(const struct dt_query *query, json_t **plan)
{
    struct dt_point point;
    if (query->asked.foreign)
        return DT_OK;
    dt_status status = dt_dit_default(query->asked.rules, &point);
    if (status == DT_EINFEASIBLE)
        return DT_OK;
    DT_TRY(status);
    *plan = dt_point_json(query->asked.rules, &point);
    return *plan != NULL ? DT_OK : dt_lookup_no_memory();
}

/* The best plan of other hardware, as a hint if it is feasible here; matches of tier none come last, nearest first. */
static dt_status hint_of(const struct dt_snapshot *snapshot, const struct dt_query *query,
                         const struct dt_matches *list, json_t **hint)
{
    for (size_t i = 0; i < list->count; i++) {
        const json_t *entry;
        struct dt_fitted fitted = {0};
        struct dt_text reason = {0};
        if (list->at[i].tier != DT_TIER_NONE)
            continue;
        dt_status status = dt_snapshot_entry(snapshot, list->at[i].line, &entry);
        if (status == DT_OK)
            status = dt_plan_fit(query, &list->at[i], entry, &fitted);
        if (status == DT_EINFEASIBLE || status == DT_ECORRUPT)
            continue;
        DT_TRY(status);
        dt_reason_add(query, &list->at[i], entry, &fitted, &reason);
        *hint =
            json_pack("{s:o, s:O?, s:s}", "plan", fitted.plan, "device",
                      json_object_get(
                          json_object_get(json_object_get(entry, "fingerprint"), "hard"), "device"),
                      "reason", dt_text_at(&reason));
        dt_text_fini(&reason);
        return *hint != NULL ? DT_OK : dt_lookup_no_memory();
    }
    return DT_OK;
}

static dt_status answer_without(const struct dt_snapshot *snapshot, const struct dt_query *query,
                                const struct dt_matches *list, const struct dt_refusals *refusals,
                                struct dt_found **found)
{
    json_t *plan = NULL, *hint = NULL;
    dt_status status = by_rule(query, &plan);
    if (status == DT_OK)
        status = hint_of(snapshot, query, list, &hint);
    if (status != DT_OK) {
        json_decref(plan);
        return status;
    }
    return dt_answer_without(query, plan, hint, refusals, found);
}

dt_status dt_answer_from(const struct dt_snapshot *snapshot, const struct dt_query *query,
                         const struct dt_matches *list, struct dt_refusals *refusals,
                         struct dt_found **found)
{
    for (size_t i = 0; i < list->count && list->at[i].tier != DT_TIER_NONE; i++) {
        dt_status status = answer_with(snapshot, query, &list->at[i], refusals, found);
        if (status != DT_EINFEASIBLE)
            return status;
    }
    return answer_without(snapshot, query, list, refusals, found);
}

dt_status dt_lookup(const struct dt_snapshot *snapshot, const struct dt_query *query,
                    struct dt_answer **answer)
{
    struct dt_found *found = NULL;
    struct dt_matches list = {0};
    struct dt_refusals refusals = {0};
    if (!query->sealed)
        return dt_fail(DT_EUSAGE, "the query is not sealed");
    if (query->is_tuned) {
        struct dt_query tuned = *query;
        tuned.asked = query->tuned;
        DT_TRY(dt_lookup_tuned(snapshot, &tuned, !query->is_network, &found));
    }
    if (found == NULL)
        DT_TRY(answer_exact(snapshot, query, &found));
    if (found == NULL) {
        dt_status status = gather(snapshot, query, &list, &refusals);
        if (status == DT_OK)
            status = dt_answer_from(snapshot, query, &list, &refusals, &found);
        free(list.at);
        dt_text_fini(&refusals.text);
        DT_TRY(status);
    }
    *answer = &found->answer;
    return DT_OK;
}
