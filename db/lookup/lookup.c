/* SPDX-License-Identifier: MIT */
/* Which plan answers a question: from the top, the bottom of this file first.
 *
 * The entries that were tuned on an engine come first, where one was named. Then the entry with the
 * question's id: its checked answer is cached beside it, so that the next equal question needs no
 * parsing or checking. Otherwise the head of each line is read and compared with the question field
 * by field: fields in which a plan may be transferred make the tier, all others, unknown ones too,
 * must be equal. The matches are tried in their order until the plan of one, fitted where it must
 * be, keeps the question's rules and limits (fit.c). */
#include "db/lookup/lookup_int.h"

#include "base/array.h"
#include "base/quote.h"
#include "db/engines/engines.h"
#include "db/snapshot.h"
#include "space/dit/dit.h"
#include "space/json/json.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define DISTANCE_MAX (1 + 1e-9) /* a factor 2, with a tolerance for rounding */
#define CACHED_MAX   16         /* answers of an entry */
#define SHOWN_MOST   8          /* values in a sentence */
#define REFUSED_MOST 2          /* refusals in a sentence */

/* ---- what is cached beside a line: its head, and answers */

struct note {
    struct dt_snapshot_note base;
    struct dt_head head;
    bool unreadable;
    _Atomic(struct dt_found *) cached; /* a list that only grows at its front */
    atomic_int count;
};

static void note_free(struct dt_snapshot_note *base)
{
    struct note *note = (struct note *)base;
    struct dt_found *next;
    for (struct dt_found *found = atomic_load(&note->cached); found != NULL; found = next) {
        next = found->next;
        dt_found_free(found);
    }
    dt_head_fini(&note->head);
    free(note);
}

/* The note of a line; makes one if missing. */
static dt_status note_of(const struct dt_snapshot *snapshot, long line, struct note **out)
{
    const struct dt_snapshot_note *there = dt_snapshot_note(snapshot, line);
    if (there == NULL) {
        size_t size;
        const char *text = dt_snapshot_line(snapshot, line, &size);
        struct note *note = calloc(1, sizeof *note);
        if (note == NULL)
            return dt_no_memory(DT_LOOKING_UP);
        note->base.free = note_free;
        dt_status status = dt_head_read(text, size, &note->head);
        if (status == DT_ENOMEM) {
            free(note);
            return status;
        }
        note->unreadable = status != DT_OK;
        there = dt_snapshot_keep(snapshot, line, &note->base);
    }
    *out = (struct note *)there;
    return DT_OK;
}

static json_t *basis_of(const struct dt_asked *asked)
{
    json_t *shared = atomic_load_explicit(&asked->shared, memory_order_acquire);
    return shared != NULL ? shared : asked->basis;
}

static const struct dt_found *cached_find(struct note *note, const struct dt_asked *asked)
{
    const struct dt_found *first = atomic_load_explicit(&note->cached, memory_order_acquire);
    const struct dt_found *found = first;
    const json_t *basis = basis_of(asked);
    while (found != NULL && found->basis != basis)
        found = found->next;
    if (found != NULL)
        return found;
    for (found = first; found != NULL; found = found->next)
        if (json_equal(found->basis, basis)) {
            /* Equal bases are compared once: from then on the question shares that of the answer,
             * which it holds until it is unsealed, so that the address is no other's. */
            json_t *none = NULL;
            if (!atomic_compare_exchange_strong((_Atomic(json_t *) *)&asked->shared, &none,
                                                json_incref(found->basis)))
                json_decref(found->basis);
            return found;
        }
    return NULL;
}

/* false: there are enough, and the caller still owns found. */
static bool cached_add(struct note *note, const struct dt_asked *asked, struct dt_found *found)
{
    if (atomic_load(&note->count) >= CACHED_MAX)
        return false;
    atomic_fetch_add(&note->count, 1);
    found->basis = json_incref(basis_of(asked));
    found->next = atomic_load(&note->cached);
    while (!atomic_compare_exchange_weak(&note->cached, &found->next, found))
        continue;
    return true;
}

/* ---- how an entry differs from the question */

struct carried {
    const char *field;
    unsigned miss;
};

static const struct carried key_carried[] = {{"model", DT_MISS_NAME},
                                             {"height", DT_MISS_SIZE},
                                             {"width", DT_MISS_SIZE},
                                             {"batch", DT_MISS_BATCH},
                                             {"max_bytes", DT_MISS_LIMITS},
                                             {"max_latency_ns", DT_MISS_LIMITS},
                                             {"reserve_bytes", DT_MISS_LIMITS},
                                             {"devices", DT_MISS_DEVICES},
                                             {"worker", DT_MISS_ENGINE},
                                             {"space", DT_MISS_SPACE},
                                             {NULL, 0}},
                            hard_carried[] = {{"engine", DT_MISS_ENGINE},
                                              {"mode", DT_MISS_ENGINE},
                                              {"device", DT_MISS_MACHINE},
                                              {"cores", DT_MISS_MACHINE},
                                              {DT_HARD_CPU, DT_MISS_MACHINE},
                                              {"gpus", DT_MISS_MACHINE},
                                              {"compute", DT_MISS_MACHINE},
                                              {"memory_gib", DT_MISS_MACHINE},
                                              {"topology", DT_MISS_MACHINE},
                                              {"devices", DT_MISS_UNSEEN},
                                              {NULL, 0}};

static unsigned miss_of(const char *field, const struct carried *table)
{
    for (; table->field != NULL; table++)
        if (strcmp(table->field, field) == 0)
            return table->miss;
    return 0;
}

/* A field missing on one side is a difference, too; those of skip (ends with NULL) are not
 * compared. */
static bool fields_match(const json_t *stored, const json_t *asked, const struct carried *table,
                         const char *const skip[], unsigned *misses)
{
    const json_t *sides[] = {stored, asked};
    for (int side = 0; side < 2; side++) {
        const char *field;
        json_t *value;
        json_object_foreach((json_t *)sides[side], field, value)
        {
            const json_t *other = json_object_get(sides[1 - side], field);
            if (dt_text_index(field, skip) >= 0 || (other != NULL && json_equal(value, other)))
                continue;
            unsigned miss = miss_of(field, table);
            if (miss == 0)
                return false;
            *misses |= miss;
        }
    }
    return true;
}

/* any_job: whatever the job is. */
static bool keys_match(const struct dt_asked *asked, const json_t *key, bool any_job,
                       unsigned *misses)
{
    static const char *const tuned[] = {"worker", "workload", "space", "job", "engine", NULL};
    const char *skip[3] = {NULL};
    int skipped = 0;
    if (asked->any.space)
        skip[skipped++] = "space";
    if (any_job)
        skip[skipped++] = "job";
    return fields_match(key, asked->key, key_carried, asked->any.worker ? tuned : skip, misses);
}

static bool hards_match(const struct dt_asked *asked, const json_t *hard, unsigned *misses)
{
    const char *skip[5] = {NULL};
    int skipped = 0;
    if (!dt_json_has(hard, DT_HARD_CPU) || !dt_json_has(asked->hard, DT_HARD_CPU))
        skip[skipped++] = DT_HARD_CPU;
    if (asked->any.engine)
        skip[skipped++] = "engine";
    if (asked->any.mode)
        skip[skipped++] = "mode";
    if (asked->any.dtype)
        skip[skipped++] = "dtype";
    if (strcmp(dt_json_text_at(hard, "devices"), DT_DEVICES_UNKNOWN) == 0)
        *misses |= DT_MISS_UNSEEN; /* they may be others today */
    return json_is_object(hard) && fields_match(hard, asked->hard, hard_carried, skip, misses);
}

static enum dt_tier tier_of(unsigned misses)
{
    if (misses & DT_MISS_MACHINE)
        return DT_TIER_NONE;
    if (misses & (DT_MISS_ENGINE | DT_MISS_UNSEEN))
        return DT_TIER_PROXY;
    if (misses & DT_MISS_DEVICES)
        return DT_TIER_SCALED;
    return misses != 0 ? DT_TIER_NEAR : DT_TIER_EXACT;
}

/* 2 artanh((m - 1) / (m + 1)) = ln m, with m within a factor sqrt(2) of 1; frexp is in the C
 * library itself. */
double dt_lookup_log2(double x)
{
    int exponent;
    double m = frexp(x, &exponent);
    if (m < 0.70710678118654752) {
        m *= 2;
        exponent--;
    }
    double z = (m - 1) / (m + 1), sum = 0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * z * z + 1.0 / k;
    return exponent + 2.8853900817779268 * z * sum; /* 2 / ln 2 */
}

/* log2 of the tokens' ratio; false when the entry has no valid size. */
static bool size_distance(const struct dt_asked *asked, const json_t *key, double *distance)
{
    double height = json_number_value(json_object_get(key, "height"));
    double width = json_number_value(json_object_get(key, "width"));
    if (!(height >= 1) || !(width >= 1))
        return false;
    *distance =
        dt_lookup_log2((double)asked->workload.height * asked->workload.width / (height * width));
    return true;
}

/* The asked batch nearest to the plan's own, the smaller of two. */
static bool batch_distance(const struct dt_asked *asked, const json_t *plan, struct dt_match *match,
                           double *distance)
{
    double own = json_number_value(json_object_get(plan, "batch"));
    if (!(own >= 1))
        return false;
    double least = HUGE_VAL;
    for (int i = 0; i < asked->batch_count; i++) {
        double apart = fabs(dt_lookup_log2(asked->batches[i] / own));
        if (apart < least) {
            least = apart;
            match->batch = asked->batches[i];
        }
    }
    *distance = least;
    return true;
}

static bool distance_set(const struct dt_asked *asked, const struct dt_head *head,
                         struct dt_match *match)
{
    double size = 0, batch = 0, devices = 0;
    if ((match->misses & DT_MISS_SIZE) && !size_distance(asked, head->key, &size))
        return false;
    if ((match->misses & DT_MISS_BATCH) && !batch_distance(asked, head->plan, match, &batch))
        return false;
    if (size * size + batch * batch > DISTANCE_MAX * DISTANCE_MAX)
        return false;
    json_int_t count = dt_json_integer_at(head->key, "devices");
    if (count < 1 || count > 1 << 20)
        return false;
    match->devices = (int)count;
    if (match->misses & DT_MISS_DEVICES)
        devices = dt_lookup_log2(asked->devices / (double)count);
    double length = sqrt(size * size + batch * batch + devices * devices);
    match->distance = (double)(int64_t)(1e9 * length + 0.5) / 1e9;
    return true;
}

/* false: it cannot answer the question. */
static bool match_of(const struct dt_asked *asked, const struct dt_head *head, long line,
                     struct dt_match *match)
{
    struct dt_match is = {.line = line, .provisional = head->provisional};
    const json_t *hard = json_object_get(head->fingerprint, "hard");
    if (!keys_match(asked, head->key, false, &is.misses) || !hards_match(asked, hard, &is.misses) ||
        !distance_set(asked, head, &is))
        return false;
    is.tier = tier_of(is.misses);
    is.stored_ns = dt_stored_ns(head->fingerprint);
    json_auto_t *reasons = dt_stale_reasons(asked, head->fingerprint);
    is.stale = json_array_size(reasons) > 0;
    *match = is;
    return true;
}

static void wanted_add(struct dt_sought *wanted, const char *name, const json_t *value)
{
    size_t room = sizeof wanted->at / sizeof wanted->at[0];
    if ((size_t)wanted->count == room) {
        wanted->others = true; /* parsing decides */
        return;
    }
    wanted->at[wanted->count].name = name;
    wanted->at[wanted->count].size = strlen(name);
    wanted->at[wanted->count++].value = value;
}

/* Keys of entries that may answer, or are named because of their job. */
static struct dt_sought wanted_of(const struct dt_asked *asked)
{
    struct dt_sought wanted = {.others = asked->any.worker};
    const char *field;
    json_t *value;
    if (asked->any.worker)
        wanted_add(&wanted, "worker", NULL);
    else
        json_object_foreach(asked->key, field, value)
        {
            if (miss_of(field, key_carried) == 0 && strcmp(field, "job") != 0)
                wanted_add(&wanted, field, value);
        }
    wanted.must = wanted.count;
    for (const struct carried *row = key_carried; !wanted.others && row->field != NULL; row++)
        wanted_add(&wanted, row->field, NULL);
    if (!wanted.others)
        wanted_add(&wanted, "job", NULL);
    if (!asked->foreign)
        wanted.cells = (double)asked->workload.height * asked->workload.width;
    return wanted;
}

/* The head of a line; NULL: unreadable, or it cannot answer. Borrowed from the snapshot. */
static dt_status head_of(const struct dt_snapshot *snapshot, const struct dt_sought *wanted,
                         long line, const struct dt_head **head)
{
    struct note *note = NULL;
    *head = NULL;
    if (dt_snapshot_note(snapshot, line) == NULL) {
        size_t size;
        const char *text = dt_snapshot_line(snapshot, line, &size);
        if (!dt_head_may_match(text, size, wanted))
            return DT_OK;
    }
    DT_TRY(note_of(snapshot, line, &note));
    *head = note->unreadable ? NULL : &note->head;
    return DT_OK;
}

/* Order of trying two matches. Ties are broken by decided, nearest, the earlier store, not stale,
 * newest, and finally by line, so that the order is total. */
static int match_order(const void *one, const void *other)
{
    const struct dt_match *a = one, *b = other;
    if (a->tier != b->tier)
        return a->tier > b->tier ? -1 : 1;
    if (a->provisional != b->provisional)
        return a->provisional ? 1 : -1;
    if ((a->misses ^ b->misses) & DT_MISS_ENGINE) /* other machines: prefer the requested engine */
        return a->misses & DT_MISS_ENGINE ? 1 : -1;
    if (a->distance != b->distance)
        return a->distance < b->distance ? -1 : 1;
    if (a->store != b->store)
        return a->store < b->store ? -1 : 1;
    if (a->stale != b->stale)
        return a->stale ? 1 : -1;
    if (a->stored_ns != b->stored_ns)
        return a->stored_ns > b->stored_ns ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

struct matches {
    struct dt_match *at; /* owned */
    size_t count;
};

static dt_status matches_add(struct matches *matches, const struct dt_match *match)
{
    DT_TRY(DT_GROW(matches->at, matches->count, 1));
    matches->at[matches->count++] = *match;
    return DT_OK;
}

/* Best first. */
static void matches_sort(const struct dt_snapshot *snapshot, struct matches *matches)
{
    for (size_t i = 0; i < matches->count; i++)
        matches->at[i].store = dt_snapshot_store(snapshot, matches->at[i].line);
    if (matches->count > 1)
        qsort(matches->at, matches->count, sizeof matches->at[0], match_order);
}

/* ---- the answer of the best match */

/* DT_EINFEASIBLE: its plan is not feasible here, or the line is no entry; refusals has the
 * reason. */
static dt_status answer_with(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                             const struct dt_match *match, struct dt_refusals *refusals,
                             struct dt_found **found)
{
    const json_t *entry;
    struct dt_fitted fitted = {0};
    dt_status status = dt_snapshot_entry(snapshot, match->line, &entry);
    if (status == DT_OK)
        status = dt_plan_fit(asked, match, entry, &fitted);
    if (status == DT_EINFEASIBLE || status == DT_ECORRUPT) {
        if (refusals->count++ < REFUSED_MOST)
            dt_text_add(&refusals->text, "%sthe %s match: %s", refusals->text.size > 0 ? "; " : "",
                        dt_tier_text(match->tier), dt_message());
        return DT_EINFEASIBLE;
    }
    DT_TRY(status);
    DT_TRY(dt_answer_of_entry(asked, match, entry, &fitted, refusals, found));
    (*found)->answer.store = dt_snapshot_folder(snapshot, match->store);
    return DT_OK;
}

/* The default rule's plan to *plan, or NULL: of a foreign worker, or where none is feasible. */
static dt_status plan_by_rule(const struct dt_asked *asked, json_t **plan)
{
    struct dt_point point;
    if (asked->foreign)
        return DT_OK;
    dt_status status = dt_dit_default(asked->rules, &point);
    if (status == DT_EINFEASIBLE)
        return DT_OK;
    DT_TRY(status);
    *plan = dt_point_json(asked->rules, &point);
    return *plan != NULL ? DT_OK : dt_no_memory(DT_LOOKING_UP);
}

/* The best plan of other hardware, as a hint if it is feasible here; matches of tier none come
 * last, nearest first. */
static dt_status hint_of(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                         const struct matches *list, json_t **hint)
{
    for (size_t i = 0; i < list->count; i++) {
        const json_t *entry;
        struct dt_fitted fitted = {0};
        dt_auto_text reason = {0};
        if (list->at[i].tier != DT_TIER_NONE)
            continue;
        dt_status status = dt_snapshot_entry(snapshot, list->at[i].line, &entry);
        if (status == DT_OK)
            status = dt_plan_fit(asked, &list->at[i], entry, &fitted);
        if (status == DT_EINFEASIBLE || status == DT_ECORRUPT)
            continue;
        DT_TRY(status);
        const json_t *hard = json_object_get(json_object_get(entry, "fingerprint"), "hard");
        dt_reason_add(asked, &list->at[i], entry, &fitted, &reason);
        *hint = json_pack("{s:o, s:O?, s:s}", "plan", fitted.plan, "device",
                          json_object_get(hard, "device"), "reason", dt_text_at(&reason));
        return *hint != NULL ? DT_OK : dt_no_memory(DT_LOOKING_UP);
    }
    return DT_OK;
}

/* The first match whose plan can be used, else an answer without an entry. */
static dt_status answer_from(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                             const struct matches *list, struct dt_refusals *refusals,
                             struct dt_found **found)
{
    json_t *plan = NULL, *hint = NULL;
    for (size_t i = 0; i < list->count && list->at[i].tier != DT_TIER_NONE; i++) {
        dt_status status = answer_with(snapshot, asked, &list->at[i], refusals, found);
        if (status != DT_EINFEASIBLE)
            return status;
    }
    dt_status status = plan_by_rule(asked, &plan);
    if (status == DT_OK)
        status = hint_of(snapshot, asked, list, &hint);
    if (status == DT_OK)
        return dt_answer_without(asked, plan, hint, refusals, found);
    json_decref(plan);
    return status;
}

/* ---- the entries tuned on an engine
 *
 * They are found by the engine's name and the parts of a job that were asked for: a look-up need
 * not start the engine's worker to learn its workload. A part that was not asked for may have any
 * value, as long as all entries that could answer agree on it: a look-up never chooses among
 * jobs. */

/* The differences between entries: the fields of a task, then others, which are compared as JSON.
 * Width and height are one, at the width's place; the data type is that of the hard fingerprint. */
enum place { OF_TASK, OF_HARD, OF_KEY, OF_JOB };
static const struct trait {
    const char *name, *option;
    enum place place;
} traits[] = {
#define DT_FIELD(name, option, kind, before, after, whose, values, help) {#name, option, OF_TASK},
#include "model/task.def"
    {"dtype", "dtype", OF_HARD},    {"mode", "mode", OF_HARD},  {"objective", "objective", OF_KEY},
    {"command", "command", OF_JOB}, {"time", "time", OF_JOB},   {"unit", "unit", OF_JOB},
    {"limits", "limits", OF_JOB},   {"shell", "shell", OF_JOB}, {"prepare", "prepare", OF_JOB},
    {"folder", "folder", OF_JOB},
};
enum { TRAITS = sizeof traits / sizeof traits[0] };

/* A line that may answer, or the question. */
struct candidate {
    long line;
    const struct dt_head *head;
    const json_t *key, *hard;
    struct dt_task task;
};
struct candidates {
    struct candidate *at;
    size_t count;
};

static bool has_trait(const struct candidate *one, int trait)
{
    const struct dt_task_value *values = one->task.at;
    if (trait == DT_TASK_width)
        return values[DT_TASK_width].given && values[DT_TASK_height].given;
    return trait < DT_TASK_FIELDS && trait != DT_TASK_height && values[trait].given;
}

static const json_t *trait_of(const struct candidate *one, int trait)
{
    const json_t *job = json_object_get(one->key, "job");
    enum place place = traits[trait].place;
    return json_object_get(place == OF_JOB   ? job
                           : place == OF_KEY ? one->key
                                             : one->hard,
                           traits[trait].name);
}

static bool trait_same(const struct candidate *a, const struct candidate *b, int trait)
{
    if (trait >= DT_TASK_FIELDS) {
        const json_t *mine = trait_of(a, trait), *its = trait_of(b, trait);
        return mine == its || (mine != NULL && its != NULL && json_equal(mine, its));
    }
    bool given = has_trait(a, trait);
    if (given != has_trait(b, trait))
        return false;
    return !given || (dt_task_same(&a->task, &b->task, (enum dt_task_field)trait) &&
                      (trait != DT_TASK_width || dt_task_same(&a->task, &b->task, DT_TASK_height)));
}

/* "28", "1024x768", "none"; in quotes where it has blanks. */
static void trait_add(const struct candidate *one, int trait, struct dt_text *out)
{
    size_t before = out->size;
    if (trait >= DT_TASK_FIELDS && trait_of(one, trait) != NULL)
        dt_json_plain(trait_of(one, trait), out);
    if (has_trait(one, trait) && one->task.at[trait].text != NULL)
        dt_quote(one->task.at[trait].text, out);
    else if (has_trait(one, trait))
        dt_task_spell(&one->task, (enum dt_task_field)trait, out);
    if (has_trait(one, trait) && trait == DT_TASK_width)
        dt_text_add(out, "x%lld", (long long)one->task.at[DT_TASK_height].count);
    if (out->size == before)
        dt_text_add(out, "none");
}

/* Appends the different values of the candidates, "28, 50", and counts them. */
static int traits_list(const struct candidates *list, int trait, struct dt_text *out)
{
    int count = 0;
    for (size_t i = 0; i < list->count; i++) {
        bool seen = false;
        for (size_t j = 0; j < i && !seen; j++)
            seen = trait_same(&list->at[i], &list->at[j], trait);
        if (seen || ++count > SHOWN_MOST)
            continue;
        dt_text_add(out, "%s", count > 1 ? ", " : "");
        trait_add(&list->at[i], trait, out);
    }
    if (count > SHOWN_MOST)
        dt_text_add(out, " and %d more", count - SHOWN_MOST);
    return count;
}

/* false: a number of the job is none, or below 0: the entry is damaged. */
static bool job_read(const json_t *job, struct dt_task *task)
{
    dt_task_read(job, task);
    for (enum dt_task_field i = 0; i < DT_TASK_FIELDS; i++) {
        const json_t *value = json_object_get(job, dt_task_rows[i].name);
        if (value != NULL && dt_task_rows[i].kind >= DT_TASK_SCALE &&
            (!json_is_number(value) || json_number_value(value) < 0))
            return false;
    }
    return true;
}

/* Lines of the engine. Plans tuned with settings that change the output answer only who asks for
 * such. */
static dt_status candidates_gather(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                                   struct candidates *list)
{
    const struct dt_sought wanted = wanted_of(asked);
    const json_t *engine = json_object_get(asked->hard, "engine");
    for (long i = 0; i < (long)dt_snapshot_count(snapshot); i++) {
        const struct dt_head *head = NULL;
        struct candidate one = {.line = i};
        DT_TRY(head_of(snapshot, &wanted, i, &head));
        if (head == NULL)
            continue;
        const json_t *job = json_object_get(head->key, "job");
        one.head = head;
        one.key = head->key;
        one.hard = json_object_get(head->fingerprint, "hard");
        if (json_object_get(head->key, "worker") == NULL ||
            !json_equal(json_object_get(one.hard, "engine"), engine) ||
            (json_object_get(job, "lossy") != NULL) != asked->lossy || !job_read(job, &one.task))
            continue;
        DT_TRY(DT_GROW(list->at, list->count, 1));
        list->at[list->count++] = one;
    }
    return DT_OK;
}

static bool is_asked(const struct dt_asked *asked, const struct candidate *question, int trait)
{
    if (trait < DT_TASK_FIELDS)
        return has_trait(question, trait);
    if (traits[trait].place == OF_HARD)
        return strcmp(traits[trait].name, "mode") == 0 ? !asked->any.mode : !asked->any.dtype;
    return trait_of(question, trait) != NULL;
}

/* Keeps the candidates that have what was asked for. When none has, refusals says what there is. */
static void candidates_narrow(const struct dt_asked *asked, int trait, struct candidates *list,
                              struct dt_refusals *refusals)
{
    const struct candidate question = {.key = asked->key, .hard = asked->hard, .task = asked->task};
    dt_auto_text values = {0}, classes = {0};
    size_t left = 0;
    if (list->count == 0 || !is_asked(asked, &question, trait))
        return;
    traits_list(list, trait, &values);
    if (trait == DT_TASK_model)
        traits_list(list, DT_TASK_pipeline_class, &classes);
    for (size_t i = 0; i < list->count; i++)
        if (trait_same(&list->at[i], &question, trait))
            list->at[left++] = list->at[i];
    list->count = left;
    if (left == 0) {
        dt_text_add(&refusals->text, "none was tuned with %s ", traits[trait].option);
        trait_add(&question, trait, &refusals->text);
        dt_text_add(&refusals->text, ", only with %s", dt_text_at(&values));
        if (strcmp(dt_text_at(&values), "none") == 0 && classes.size > 0)
            dt_text_add(&refusals->text, ": they are of pipelines (--pipeline-class %s)",
                        dt_text_at(&classes));
    }
    refusals->text.failed = refusals->text.failed || values.failed;
}

/* DT_EUSAGE when the candidates differ in what was not asked for. */
static dt_status candidates_agree(const struct dt_asked *asked, const struct candidates *list)
{
    for (int trait = 0; trait < TRAITS; trait++) {
        dt_auto_text values = {0};
        int count = traits_list(list, trait, &values);
        dt_status status = dt_text_status(&values);
        if (status == DT_OK && count > 1)
            status = dt_fail(
                DT_EUSAGE, "the plans stored for %s were tuned with %s %s: choose one (--%s)",
                asked->title, traits[trait].option, dt_text_at(&values), traits[trait].option);
        DT_TRY(status);
    }
    return DT_OK;
}

/* The matches of the candidates. Those of other machines, which give only hints, do not stay among
 * the candidates. */
static dt_status candidates_match(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                                  struct candidates *list, struct matches *matches)
{
    size_t here = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct dt_match match;
        if (!match_of(asked, list->at[i].head, list->at[i].line, &match))
            continue;
        DT_TRY(matches_add(matches, &match));
        if (match.tier != DT_TIER_NONE)
            list->at[here++] = list->at[i];
    }
    list->count = here;
    matches_sort(snapshot, matches);
    return DT_OK;
}

/* only: an answer without an entry when none has the job that was asked for; otherwise *found stays
 * NULL. DT_EUSAGE: several could answer, and differ in what was not asked for; the sentence has the
 * values. */
static dt_status answer_tuned(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                              bool only, struct dt_found **found)
{
    struct candidates list = {0};
    struct matches matches = {0};
    struct dt_refusals refusals = {0};
    dt_status status = candidates_gather(snapshot, asked, &list);
    /* a plan of the built-in network cannot be exported to an engine without a file */
    only = only || (list.count > 0 && !dt_engine_known(dt_json_text_at(asked->hard, "engine")));
    for (int trait = 0; trait < TRAITS && status == DT_OK; trait++)
        candidates_narrow(asked, trait, &list, &refusals);
    if (status == DT_OK && (list.count > 0 || only)) {
        status = candidates_match(snapshot, asked, &list, &matches);
        if (status == DT_OK)
            status = candidates_agree(asked, &list);
        if (status == DT_OK)
            status = answer_from(snapshot, asked, &matches, &refusals, found);
    }
    free(list.at);
    free(matches.at);
    dt_text_fini(&refusals.text);
    return status;
}

/* The fields of a job that a question may have, a new object; NULL: out of memory. */
static json_t *job_fields(const json_t *job)
{
    json_t *fields = json_object();
    for (enum dt_task_field i = 0; i < DT_TASK_FIELDS; i++) {
        json_t *value = json_object_get(job, dt_task_rows[i].name);
        if (value != NULL && json_object_set(fields, dt_task_rows[i].name, value) != 0) {
            json_decref(fields);
            return NULL;
        }
    }
    return fields;
}

dt_status dt_lookup_jobs(const struct dt_snapshot *snapshot, const struct dt_query *query,
                         json_t **jobs)
{
    const struct dt_asked *asked = query->tuned;
    struct candidates list = {0};
    struct matches matches = {0};
    struct dt_refusals refusals = {0};
    json_auto_t *found = json_array();
    if (!query->sealed || asked == NULL)
        return dt_fail(DT_EUSAGE, "the query %s",
                       query->sealed ? "names no engine" : "is not sealed");
    dt_status status =
        found != NULL ? candidates_gather(snapshot, asked, &list) : dt_no_memory(DT_LOOKING_UP);
    for (int trait = 0; trait < TRAITS && status == DT_OK; trait++)
        candidates_narrow(asked, trait, &list, &refusals);
    if (status == DT_OK)
        status = candidates_match(snapshot, asked, &list, &matches);
    for (size_t i = 0; i < matches.count && status == DT_OK; i++) {
        struct note *note;
        if (matches.at[i].tier == DT_TIER_NONE)
            continue;
        status = note_of(snapshot, matches.at[i].line, &note);
        if (status == DT_OK &&
            json_array_append_new(found, job_fields(json_object_get(note->head.key, "job"))) != 0)
            status = dt_no_memory(DT_LOOKING_UP);
    }
    free(list.at);
    free(matches.at);
    dt_text_fini(&refusals.text);
    DT_TRY(status);
    *jobs = json_incref(found);
    return DT_OK;
}

/* ---- the entry with the question's id */

/* A cached answer. *found stays NULL when there is none. */
static dt_status answer_cached(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                               struct dt_found **found)
{
    for (long i = dt_snapshot_find(snapshot, asked->id); i >= 0;
         i = dt_snapshot_next(snapshot, i)) {
        struct note *note = (struct note *)dt_snapshot_note(snapshot, i);
        const struct dt_found *cached = note != NULL ? cached_find(note, asked) : NULL;
        int64_t now = cached != NULL ? dt_asked_now(asked) : 0;
        if (cached != NULL && dt_stale_by_age(now, cached->stored_ns) == cached->aged) {
            *found = dt_answer_lend(cached, asked, now);
            return *found != NULL ? DT_OK : dt_no_memory(DT_LOOKING_UP);
        }
    }
    return DT_OK;
}

/* Caches a new answer beside its line if there is room, and lends it. */
static dt_status cache_and_lend(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                                long line, struct dt_found **found)
{
    struct note *note;
    struct dt_found *fresh = *found;
    int64_t now = dt_asked_now(asked);
    fresh->aged = dt_stale_by_age(now, fresh->stored_ns);
    DT_TRY(note_of(snapshot, line, &note));
    if (cached_find(note, asked) != NULL || !cached_add(note, asked, fresh))
        return DT_OK;
    *found = dt_answer_lend(fresh, asked, now);
    return *found != NULL ? DT_OK : dt_no_memory(DT_LOOKING_UP);
}

/* *found stays NULL when it is missing or refused. An undamaged file has at most one, several
 * stores may have one each. */
static dt_status answer_exact(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                              struct dt_found **found)
{
    struct matches list = {0};
    dt_status status = answer_cached(snapshot, asked, found);
    if (status != DT_OK || *found != NULL)
        return status;
    for (long i = dt_snapshot_find(snapshot, asked->id); i >= 0 && status == DT_OK;
         i = dt_snapshot_next(snapshot, i)) {
        struct dt_match match;
        struct note *note;
        status = note_of(snapshot, i, &note);
        if (status == DT_OK && !note->unreadable && match_of(asked, &note->head, i, &match) &&
            match.tier == DT_TIER_EXACT)
            status = matches_add(&list, &match);
    }
    matches_sort(snapshot, &list);
    for (size_t i = 0; status == DT_OK && *found == NULL && i < list.count; i++) {
        struct dt_refusals none = {0};
        status = answer_with(snapshot, asked, &list.at[i], &none, found);
        dt_text_fini(&none.text);
        if (status == DT_OK)
            status = cache_and_lend(snapshot, asked, list.at[i].line, found);
        else if (status == DT_EINFEASIBLE)
            status = DT_OK;
    }
    free(list.at);
    return status;
}

/* ---- all entries */

/* An entry of the same worker and workload with another job is no answer, but is named with what
 * differs. */
static void other_job_name(const struct dt_asked *asked, const struct dt_head *head,
                           struct dt_refusals *refusals)
{
    const json_t *job = json_object_get(asked->key, "job");
    dt_auto_text differences = {0};
    unsigned misses = 0;
    if (job == NULL || asked->any.worker || !keys_match(asked, head->key, true, &misses) ||
        (misses & DT_MISS_ENGINE) != 0 || refusals->count++ >= REFUSED_MOST)
        return;
    dt_key_add_differences(json_object_get(head->key, "job"), job, &differences);
    dt_text_add(&refusals->text, "%sone was measured with %s", refusals->text.size > 0 ? "; " : "",
                dt_text_at(&differences));
}

static dt_status answer_any(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                            struct dt_found **found)
{
    const struct dt_sought wanted = wanted_of(asked);
    struct matches list = {0};
    struct dt_refusals refusals = {0};
    dt_status status = DT_OK;
    for (long i = 0; i < (long)dt_snapshot_count(snapshot) && status == DT_OK; i++) {
        const struct dt_head *head;
        struct dt_match match;
        status = head_of(snapshot, &wanted, i, &head);
        if (status != DT_OK || head == NULL)
            continue;
        if (match_of(asked, head, i, &match))
            status = matches_add(&list, &match);
        else
            other_job_name(asked, head, &refusals);
    }
    matches_sort(snapshot, &list);
    if (status == DT_OK)
        status = answer_from(snapshot, asked, &list, &refusals, found);
    free(list.at);
    dt_text_fini(&refusals.text);
    return status;
}

dt_status dt_lookup(const struct dt_snapshot *snapshot, const struct dt_query *query,
                    struct dt_answer **answer)
{
    struct dt_found *found = NULL;
    if (!query->sealed)
        return dt_fail(DT_EUSAGE, "the query is not sealed");
    if (query->tuned != NULL)
        DT_TRY(answer_tuned(snapshot, query->tuned, !query->is_network, &found));
    if (found == NULL)
        DT_TRY(answer_exact(snapshot, &query->asked, &found));
    if (found == NULL)
        DT_TRY(answer_any(snapshot, &query->asked, &found));
    *answer = &found->answer;
    return DT_OK;
}
