/* SPDX-License-Identifier: MIT */
/* libdittune. Handles are the objects of db under other names. */
#define dittune_db      dt_snapshot
#define dittune_machine dt_machine
#define dittune_query   dt_query
#define dittune_answer  dt_answer
#include "db/api/dittune.h"

#include "base/clock.h"
#include "base/status.h"
#include "db/engines/engines.h"
#include "db/lookup/lookup.h"
#include "db/snapshot.h"
#include "db/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- codes, messages, texts */

uint32_t dittune_version(void)
{
    return DITTUNE_VERSION_NUM;
}

/* Buffer for a message. */
struct api_message {
    char *text;
    size_t room;
};

static const struct code {
    int32_t code;
    dt_status status;
} codes[] = {
    {DITTUNE_OK, DT_OK},
    {DITTUNE_FAILED, DT_FAILED},
    {DITTUNE_USAGE, DT_EUSAGE},
    {DITTUNE_INFEASIBLE, DT_EINFEASIBLE},
    {DITTUNE_CORRUPT, DT_ECORRUPT},
    {DITTUNE_NOMEM, DT_ENOMEM},
    {DITTUNE_UNSUPPORTED, DT_EUNSUP},
    {DITTUNE_IO, DT_EIO},
};

const char *dittune_status_text(int32_t status)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == status)
            return dt_status_text(codes[i].status);
    return "unknown";
}

const char *dittune_tier_text(int32_t tier)
{
    _Static_assert((int)DITTUNE_NONE == (int)DT_TIER_NONE &&
                       (int)DITTUNE_HEURISTIC == (int)DT_TIER_HEURISTIC &&
                       (int)DITTUNE_PROXY == (int)DT_TIER_PROXY &&
                       (int)DITTUNE_SCALED == (int)DT_TIER_SCALED &&
                       (int)DITTUNE_NEAR == (int)DT_TIER_NEAR &&
                       (int)DITTUNE_EXACT == (int)DT_TIER_EXACT,
                   "the tiers of the ABI are those of db/lookup");
    return tier >= DITTUNE_NONE && tier <= DITTUNE_EXACT ? dt_tier_text((enum dt_tier)tier)
                                                         : "unknown";
}

void dittune_text_free(char *text)
{
    free(text);
}

/* The code, with a sentence of the library itself, cut at a character. */
static int32_t api_refuse(int32_t code, const char *sentence, struct api_message to)
{
    if (to.text == NULL || to.room == 0)
        return code;
    size_t size = strlen(sentence);
    if (size >= to.room) {
        size = to.room - 1;
        while (size > 0 && ((unsigned char)sentence[size] & 0xc0) == 0x80)
            size--;
    }
    memcpy(to.text, sentence, size);
    to.text[size] = '\0';
    return code;
}

/* The code of a status, with the sentence of an error. */
static int32_t api_done(dt_status status, struct api_message to)
{
    if (status >= 0)
        return DITTUNE_OK;
    int32_t code = DITTUNE_FAILED;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].status == status)
            code = codes[i].code;
    return api_refuse(code, dt_message(), to);
}

/* Call before the first object of Jansson: seeds its hash tables once per
 * process, from any thread. */
static void api_begin(void)
{
    json_object_seed(0);
}

/* Compact text of value, owned by the caller. */
static int32_t api_text(const json_t *value, char **text, struct api_message to)
{
    dt_auto_text written = {0};
    dt_status status = dt_json_text(value, &written);
    if (status != DT_OK)
        return api_done(status, to);
    char *taken = dt_text_take(&written);
    if (taken == NULL)
        return api_refuse(DITTUNE_NOMEM, "out of memory while writing JSON", to);
    *text = taken;
    return DITTUNE_OK;
}

/* ---- a store */

static dt_status db_open(const char *list, struct dt_snapshot **db)
{
    struct dt_stores stores;
    DT_TRY(dt_stores_read(list, NULL, &stores));
    return dt_snapshot_open_stores(&stores, db);
}

int32_t dittune_db_open(const char *stores, struct dittune_db **db, char *message, size_t room)
{
    const struct api_message to = {message, room};
    if (db == NULL)
        return api_refuse(DITTUNE_USAGE, "there is nowhere to put the store: db is NULL", to);
    api_begin();
    return api_done(db_open(stores, db), to);
}

int32_t dittune_db_parse(const char *text, size_t size, struct dittune_db **db, char *message,
                         size_t room)
{
    const struct api_message to = {message, room};
    if (db == NULL || (text == NULL && size > 0))
        return api_refuse(DITTUNE_USAGE, "text or db is NULL", to);
    api_begin();
    return api_done(dt_snapshot_parse(text != NULL ? text : "", size, "the store", db), to);
}

void dittune_db_close(struct dittune_db *db)
{
    dt_snapshot_close(db);
}

size_t dittune_db_count(const struct dittune_db *db)
{
    return db != NULL ? dt_snapshot_count(db) : 0;
}

int32_t dittune_db_is_fallback(const struct dittune_db *db)
{
    return db != NULL && dt_snapshot_fallback(db) != NULL;
}

int32_t dittune_db_is_outdated(const struct dittune_db *db)
{
    return db != NULL && dt_snapshot_is_outdated(db);
}

int32_t dittune_lookup(const struct dittune_db *db, const struct dittune_query *query,
                       struct dittune_answer **answer, char *message, size_t room)
{
    const struct api_message to = {message, room};
    if (db == NULL || query == NULL || answer == NULL)
        return api_refuse(DITTUNE_USAGE, "db, query or answer is NULL", to);
    return api_done(dt_lookup(db, query, answer), to);
}

int32_t dittune_jobs(const struct dittune_db *db, const struct dittune_query *query, char **text,
                     char *message, size_t room)
{
    const struct api_message to = {message, room};
    json_auto_t *jobs = NULL;
    if (db == NULL || query == NULL || text == NULL)
        return api_refuse(DITTUNE_USAGE, "db, query or text is NULL", to);
    api_begin();
    dt_status status = dt_lookup_jobs(db, query, &jobs);
    return status == DT_OK ? api_text(jobs, text, to) : api_done(status, to);
}

/* ---- a machine and a question */

static dt_status machine_open(const char *path, struct dt_machine **machine)
{
    const char *given = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    dt_auto_text cache = {0};
    if (path != NULL)
        return dt_machine_load(path, machine);
    if (given != NULL && given[0] == '/') /* the XDG rule: a relative one is ignored */
        dt_text_add(&cache, "%s/dittune/machine.json", given);
    else if (home != NULL && home[0] != '\0')
        dt_text_add(&cache, "%s/.cache/dittune/machine.json", home);
    else
        return dt_fail(DT_EUSAGE, "neither $XDG_CACHE_HOME nor $HOME is set: give the path");
    DT_TRY(dt_text_status(&cache));
    return dt_machine_load(dt_text_at(&cache), machine);
}

int32_t dittune_machine_open(const char *path, struct dittune_machine **machine, char *message,
                             size_t room)
{
    const struct api_message to = {message, room};
    if (machine == NULL)
        return api_refuse(DITTUNE_USAGE, "machine is NULL", to);
    api_begin();
    return api_done(machine_open(path, machine), to);
}

int32_t dittune_machine_parse(const char *text, size_t size, struct dittune_machine **machine,
                              char *message, size_t room)
{
    const struct api_message to = {message, room};
    if (machine == NULL || text == NULL)
        return api_refuse(DITTUNE_USAGE, "text or machine is NULL", to);
    api_begin();
    return api_done(dt_machine_parse(text, size, "the machine description", machine), to);
}

void dittune_machine_free(struct dittune_machine *machine)
{
    dt_machine_free(machine);
}

int32_t dittune_query_new(const struct dittune_machine *machine, struct dittune_query **query,
                          char *message, size_t room)
{
    const struct api_message to = {message, room};
    if (machine == NULL || query == NULL)
        return api_refuse(DITTUNE_USAGE, "machine or query is NULL", to);
    return api_done(dt_query_new(machine, query), to);
}

int32_t dittune_query_set(struct dittune_query *query, const char *name, const char *value,
                          char *message, size_t room)
{
    const struct api_message to = {message, room};
    if (query == NULL || name == NULL || value == NULL)
        return api_refuse(DITTUNE_USAGE, "query, name or value is NULL", to);
    /* the value of `dittune lookup --engine` */
    return api_done(strcmp(name, "engine") == 0 ? dt_query_set_engine(query, value)
                                                : dt_query_set(query, name, value),
                    to);
}

int32_t dittune_query_seal(struct dittune_query *query, char *message, size_t room)
{
    const struct api_message to = {message, room};
    if (query == NULL)
        return api_refuse(DITTUNE_USAGE, "query is NULL", to);
    return api_done(dt_query_seal(query), to);
}

void dittune_query_free(struct dittune_query *query)
{
    dt_query_free(query);
}

/* ---- an answer */

void dittune_answer_free(struct dittune_answer *answer)
{
    dt_answer_free(answer);
}

int32_t dittune_answer_tier(const struct dittune_answer *answer)
{
    return answer != NULL ? (int32_t)answer->tier : DITTUNE_NONE;
}

int32_t dittune_answer_is_stale(const struct dittune_answer *answer)
{
    return answer != NULL && answer->stale;
}

int32_t dittune_answer_is_provisional(const struct dittune_answer *answer)
{
    return answer != NULL && answer->why_provisional != NULL;
}

double dittune_answer_distance(const struct dittune_answer *answer)
{
    return answer != NULL ? answer->distance : 0;
}

const char *dittune_answer_reason(const struct dittune_answer *answer)
{
    return answer != NULL ? answer->reason : NULL;
}

int64_t dittune_answer_age_seconds(const struct dittune_answer *answer)
{
    if (answer == NULL || answer->age_ns < 0)
        return -1;
    return answer->age_ns / DT_NS_PER_SECOND;
}

const char *dittune_answer_evidence(const struct dittune_answer *answer)
{
    if (answer == NULL)
        return NULL;
    const char *evidence = answer->evidence;
    return evidence != NULL ? evidence : "";
}

int32_t dittune_answer_gain(const struct dittune_answer *answer, double *ratio, double *low,
                            double *high)
{
    if (answer == NULL || ratio == NULL || low == NULL || high == NULL ||
        answer->measured == NULL || !(answer->measured->gain.ratio > 0))
        return 0;
    *ratio = answer->measured->gain.ratio;
    *low = answer->measured->gain.interval.low;
    *high = answer->measured->gain.interval.high;
    return 1;
}

size_t dittune_answer_count(const struct dittune_answer *answer)
{
    return answer != NULL ? json_object_size(answer->plan) : 0;
}

const char *dittune_answer_name(const struct dittune_answer *answer, size_t i)
{
    const char *name;
    json_t *value;
    if (answer == NULL)
        return NULL;
    json_object_foreach((json_t *)answer->plan, name, value)
    {
        if (i-- == 0)
            return name;
    }
    return NULL;
}

static const json_t *plan_value(const struct dittune_answer *answer, const char *name)
{
    if (answer == NULL || name == NULL)
        return NULL;
    return json_object_get(answer->plan, name);
}

int32_t dittune_answer_integer(const struct dittune_answer *answer, const char *name,
                               int64_t *value)
{
    const json_t *found = plan_value(answer, name);
    if (!json_is_integer(found) || value == NULL)
        return DITTUNE_USAGE;
    *value = json_integer_value(found);
    return DITTUNE_OK;
}

int32_t dittune_answer_value(const struct dittune_answer *answer, const char *name, char *value,
                             size_t room)
{
    const json_t *found = plan_value(answer, name);
    dt_auto_text text = {0};
    if (found == NULL || value == NULL)
        return DITTUNE_USAGE;
    dt_json_plain(found, &text);
    if (dt_text_status(&text) != DT_OK)
        return DITTUNE_NOMEM;
    if (text.size >= room)
        return DITTUNE_USAGE;
    memcpy(value, dt_text_at(&text), text.size + 1);
    return DITTUNE_OK;
}

int32_t dittune_answer_json(const struct dittune_answer *answer, const char *field, char **text,
                            char *message, size_t room)
{
    const struct api_message to = {message, room};
    if (answer == NULL || text == NULL)
        return api_refuse(DITTUNE_USAGE, "answer or text is NULL", to);
    json_auto_t *whole = dt_answer_json(answer);
    if (whole == NULL)
        return api_refuse(DITTUNE_NOMEM, "out of memory while writing the answer", to);
    const json_t *part = field != NULL ? json_object_get(whole, field) : whole;
    return part != NULL ? api_text(part, text, to)
                        : api_refuse(DITTUNE_USAGE, "an answer has no field of that name", to);
}

/* ---- an export */

struct dittune_export {
    struct dt_export made;
    json_t *unexpressed; /* sentences */
};

int32_t dittune_engines(char **text, char *message, size_t room)
{
    const struct api_message to = {message, room};
    json_auto_t *list = NULL;
    if (text == NULL)
        return api_refuse(DITTUNE_USAGE, "text is NULL", to);
    api_begin();
    dt_status status = dt_engines(&list);
    return status == DT_OK ? api_text(list, text, to) : api_done(status, to);
}

static dt_status sentence_add(const json_t *row, json_t *sentences)
{
    dt_auto_text text = {0};
    const char *why = json_string_value(json_object_get(row, "why"));
    dt_text_add(&text, "%s=", json_string_value(json_object_get(row, "name")));
    DT_TRY(dt_json_text(json_object_get(row, "value"), &text));
    dt_text_add(&text, ": %s", why != NULL ? why : "");
    DT_TRY(dt_text_status(&text));
    return json_array_append_new(sentences, json_string(dt_text_at(&text))) == 0
               ? DT_OK
               : dt_no_memory("while writing what cannot be expressed");
}

/* The export alone is deployed, so it says what the answer says of itself. */
static dt_status stale_add(const struct dt_answer *answer, json_t *notes)
{
    size_t i;
    json_t *reason;
    json_array_foreach((json_t *)answer->stale_reasons, i, reason)
    {
        json_t *note = json_sprintf("the plan is stale: %s", json_string_value(reason));
        if (json_array_append_new(notes, note) != 0)
            return dt_no_memory("while exporting");
    }
    return DT_OK;
}

static dt_status export_make(const struct dt_answer *answer, const char *engine, const char *form,
                             struct dittune_export *into)
{
    struct dt_export_request request = {.engine = engine};
    size_t i;
    json_t *row;
    dt_answer_export(answer, &request);
    if (answer->plan == NULL)
        return dt_fail(DT_EUSAGE, "the answer has no plan to export");
    DT_TRY(dt_form_parse(form, &request.form));
    DT_TRY(dt_export(&request, &into->made));
    DT_TRY(stale_add(answer, into->made.notes));
    into->unexpressed = json_array();
    json_array_foreach(into->made.unexpressed, i, row) DT_TRY(sentence_add(row, into->unexpressed));
    return DT_OK;
}

int32_t dittune_export_new(const struct dittune_answer *answer, const char *engine,
                           const char *form, struct dittune_export **made, char *message,
                           size_t room)
{
    const struct api_message to = {message, room};
    if (answer == NULL || engine == NULL || form == NULL || made == NULL)
        return api_refuse(DITTUNE_USAGE, "answer, engine, form or made is NULL", to);
    struct dittune_export *new = calloc(1, sizeof *new);
    if (new == NULL)
        return api_refuse(DITTUNE_NOMEM, "out of memory while exporting", to);
    dt_status status = export_make(answer, engine, form, new);
    if (status == DT_OK)
        *made = new;
    else
        dittune_export_free(new);
    return api_done(status, to);
}

const char *dittune_export_text(const struct dittune_export *made)
{
    return made != NULL ? dt_text_at(&made->made.text) : NULL;
}

const char *dittune_export_unexpressed(const struct dittune_export *made, size_t i)
{
    return made != NULL ? json_string_value(json_array_get(made->unexpressed, i)) : NULL;
}

const char *dittune_export_note(const struct dittune_export *made, size_t i)
{
    return made != NULL ? json_string_value(json_array_get(made->made.notes, i)) : NULL;
}

void dittune_export_free(struct dittune_export *made)
{
    if (made == NULL)
        return;
    dt_export_fini(&made->made);
    json_decref(made->unexpressed);
    free(made);
}
