/* SPDX-License-Identifier: MIT */
/* The entries that were tuned on an engine, found by its name and the parts of a job that were asked for: a look-up
 * need not start the engine's worker to learn its workload. A part that was not asked for may have any value, as long as
 * all entries that could answer agree on it: a look-up never chooses among jobs. */
#include "db/lookup/answer_int.h"

#include "db/engines/engines.h"
#include "db/snapshot.h"
#include "model/task.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN_MOST 8 /* values in a sentence */

enum place { OF_JOB, OF_HARD, OF_KEY };

/* What may distinguish entries. */
static const struct trait {
    const char *name, *option;
    enum place place;
} traits[] = {
#define DT_FIELD(name, option, kind, before, after, whose, values, help) {#name, option, OF_JOB},
#include "model/task.def"
#undef DT_FIELD
    {"dtype", "dtype", OF_HARD},    {"mode", "mode", OF_HARD},  {"objective", "objective", OF_KEY},
    {"command", "command", OF_JOB}, {"time", "time", OF_JOB},   {"unit", "unit", OF_JOB},
    {"limits", "limits", OF_JOB},   {"shell", "shell", OF_JOB}, {"prepare", "prepare", OF_JOB},
    {"folder", "folder", OF_JOB},
};
enum { TRAITS = sizeof traits / sizeof traits[0] };

/* Lines that may answer, and their heads. */
struct candidates {
    struct candidate {
        const struct dt_head *head;
        long line;
    } * at;
    size_t count;
};

static void add_value(const json_t *value, struct dt_text *out)
{
    if (json_is_string(value))
        dt_text_add(out, "%s", json_string_value(value));
    else if (json_is_number(value))
        dt_text_add(out, "%.15g", json_number_value(value));
}

/* "": it has none. Width and height are one, width x height as on the command line; the data type is that of the hard fingerprint. */
static void add_trait(const struct trait *trait, const json_t *key, const json_t *hard,
                      struct dt_text *out)
{
    const json_t *job = json_object_get(key, "job");
    const json_t *from = trait->place == OF_JOB ? job : trait->place == OF_HARD ? hard : key;
    if (strcmp(trait->option, "size") != 0) {
        if (trait->place != OF_JOB || strcmp(trait->name, "dtype") != 0)
            add_value(json_object_get(from, trait->name), out);
        return;
    }
    if (strcmp(trait->name, "height") == 0 || json_object_get(job, "width") == NULL ||
        json_object_get(job, "height") == NULL)
        return;
    add_value(json_object_get(job, "width"), out);
    dt_text_add(out, "x");
    add_value(json_object_get(job, "height"), out);
}

static void add_stored(const struct trait *trait, const struct dt_head *head, struct dt_text *out)
{
    add_trait(trait, head->key, json_object_get(head->fingerprint, "hard"), out);
}

static void add_asked(const struct trait *trait, const struct dt_asked *asked, struct dt_text *out)
{
    bool any = (strcmp(trait->name, "dtype") == 0 && asked->any.dtype) ||
               (strcmp(trait->name, "mode") == 0 && asked->any.mode);
    if (!any)
        add_trait(trait, asked->key, asked->hard, out);
}

/* Appends the different values of the candidates, "28, 50", and counts them. */
static dt_status list_values(const struct trait *trait, const struct candidates *candidates,
                             struct dt_text *out, int *count)
{
    struct dt_text value = {0}, other = {0};
    *count = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        bool seen = false;
        dt_text_clear(&value);
        add_stored(trait, candidates->at[i].head, &value);
        for (size_t j = 0; j < i && !seen; j++) {
            dt_text_clear(&other);
            add_stored(trait, candidates->at[j].head, &other);
            seen = strcmp(dt_text_at(&value), dt_text_at(&other)) == 0;
        }
        if (!seen && ++*count <= SHOWN_MOST)
            dt_text_add(out, "%s%s", *count > 1 ? ", " : "",
                        value.size > 0 ? dt_text_at(&value) : "none");
    }
    if (*count > SHOWN_MOST)
        dt_text_add(out, " and %d more", *count - SHOWN_MOST);
    bool failed = value.failed || other.failed || out->failed;
    dt_text_fini(&value);
    dt_text_fini(&other);
    return failed ? dt_lookup_no_memory() : DT_OK;
}

/* Tuned with settings that change the output: an answer only to who asks for such. */
static bool is_lossy(const json_t *key)
{
    return json_object_get(json_object_get(key, "job"), "lossy") != NULL;
}

static dt_status gather(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                        struct candidates *candidates)
{
    const json_t *engine = json_object_get(asked->hard, "engine");
    size_t lines = dt_snapshot_count(snapshot);
    candidates->at = calloc(lines + 1, sizeof *candidates->at);
    if (candidates->at == NULL)
        return dt_lookup_no_memory();
    for (size_t i = 0; i < lines; i++) {
        const struct dt_head *head = NULL;
        DT_TRY(dt_lookup_head(snapshot, asked, (long)i, &head));
        const json_t *hard = head != NULL ? json_object_get(head->fingerprint, "hard") : NULL;
        if (head != NULL && json_object_get(head->key, "worker") != NULL &&
            json_equal(json_object_get(hard, "engine"), engine) &&
            is_lossy(head->key) == is_lossy(asked->key))
            candidates->at[candidates->count++] = (struct candidate){head, (long)i};
    }
    return DT_OK;
}

/* Keeps the candidates that have the wanted value. */
static dt_status keep(const struct trait *trait, const char *wanted, struct candidates *candidates)
{
    struct dt_text value = {0};
    size_t kept = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        dt_text_clear(&value);
        add_stored(trait, candidates->at[i].head, &value);
        if (strcmp(dt_text_at(&value), wanted) == 0)
            candidates->at[kept++] = candidates->at[i];
    }
    dt_status status = dt_text_status(&value);
    dt_text_fini(&value);
    candidates->count = kept;
    return status;
}

/* Keeps the candidates that have the value asked for. When none has, refusals says what there is. */
static dt_status narrow(const struct trait *trait, const struct dt_asked *asked,
                        struct candidates *candidates, struct dt_refusals *refusals)
{
    struct dt_text wanted = {0}, values = {0};
    int count;
    add_asked(trait, asked, &wanted);
    dt_status status = dt_text_status(&wanted);
    if (status == DT_OK && wanted.size > 0 && candidates->count > 0) {
        status = list_values(trait, candidates, &values, &count);
        if (status == DT_OK)
            status = keep(trait, dt_text_at(&wanted), candidates);
        if (status == DT_OK && candidates->count == 0)
            dt_text_add(&refusals->text, "none was tuned with %s %s, only with %s", trait->option,
                        dt_text_at(&wanted), dt_text_at(&values));
    }
    dt_text_fini(&wanted);
    dt_text_fini(&values);
    return status;
}

/* DT_EUSAGE when the candidates differ in what was not asked for. */
static dt_status check_one_job(const struct dt_asked *asked, const struct candidates *candidates)
{
    for (int i = 0; i < TRAITS; i++) {
        struct dt_text values = {0};
        int count;
        dt_status status = list_values(&traits[i], candidates, &values, &count);
        if (status == DT_OK && count > 1) {
            status = dt_fail(DT_EUSAGE,
                             "the plans stored for %s were tuned with %s %s: choose one (--%s)",
                             asked->title, traits[i].option, dt_text_at(&values), traits[i].option);
        }
        dt_text_fini(&values);
        DT_TRY(status);
    }
    return DT_OK;
}

/* The matches of the candidates. Those of other machines, which give only hints, stand behind the others and do not
 * count among the candidates. */
static dt_status match(const struct dt_query *query, struct candidates *candidates,
                       struct dt_matches *matches)
{
    size_t here = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        struct dt_match match;
        if (!dt_match_of(query, candidates->at[i].head, &match))
            continue;
        match.line = candidates->at[i].line;
        DT_TRY(dt_matches_add(matches, &match));
        if (match.tier != DT_TIER_NONE)
            candidates->at[here++] = candidates->at[i];
    }
    candidates->count = here;
    dt_matches_order(matches);
    return DT_OK;
}

static dt_status answer(const struct dt_snapshot *snapshot, const struct dt_query *query, bool only,
                        struct candidates *candidates, struct dt_found **found)
{
    struct dt_matches matches = {0};
    struct dt_refusals refusals = {0};
    dt_status status = DT_OK;
    for (int i = 0; i < TRAITS && status == DT_OK; i++)
        status = narrow(&traits[i], &query->asked, candidates, &refusals);
    if (status == DT_OK && (candidates->count > 0 || only)) {
        status = match(query, candidates, &matches);
        if (status == DT_OK)
            status = check_one_job(&query->asked, candidates);
        if (status == DT_OK)
            status = dt_answer_from(snapshot, query, &matches, &refusals, found);
    }
    free(matches.at);
    dt_text_fini(&refusals.text);
    return status;
}

dt_status dt_lookup_tuned(const struct dt_snapshot *snapshot, const struct dt_query *query,
                          bool only, struct dt_found **found)
{
    struct candidates candidates = {0};
    const char *engine = json_string_value(json_object_get(query->asked.hard, "engine"));
    dt_status status = gather(snapshot, &query->asked, &candidates);
    if (status == DT_OK) {
        /* a plan of the built-in network cannot be exported to an engine without a file */
        only = only || (candidates.count > 0 && !dt_engine_known(engine));
        status = answer(snapshot, query, only, &candidates, found);
    }
    free(candidates.at);
    return status;
}
