/* SPDX-License-Identifier: MIT */
#include "tuner/cli/planned/given.h"

#include "base/array.h"
#include "db/engines/engines.h"
#include "db/snapshot.h"
#include "db/stored.h"
#include "model/task.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { ID_LEAST = 4, ID_MOST = 16 };

void dt_given_fini(struct dt_given *given)
{
    json_decref(given->plan);
    given->plan = NULL;
}

/* ---- words of the user */

/* A word of the engine's choice, as compile=on. */
static dt_status read_choice(const char *name, const char *word, const json_t *choices,
                             json_t *plan)
{
    const json_t *values = json_object_get(json_object_get(choices, name), "values");
    if (dt_json_lists(values, word)) {
        json_object_set_new(plan, name, json_string(word));
        return DT_OK;
    }
    dt_auto_text known = {0};
    const json_t *value;
    size_t i;
    json_array_foreach(values, i, value)
        dt_text_add(&known, "%s%s", i > 0 ? ", " : "", json_string_value(value));
    return dt_fail(DT_EUSAGE, "--given: %s is '%.60s', expected one of %s", name, word,
                   dt_text_at(&known));
}

/* A word of --given: a degree above 0, a word of the engine's, or the time in seconds. */
static dt_status read_word(char *word, const json_t *choices, json_t *plan, double *seconds)
{
#define DT_PREDICT_DEGREE(name) #name,
    static const char *const names[] = {DT_PREDICT_DEGREE_ROWS NULL};
#undef DT_PREDICT_DEGREE
#define DT_PREDICT_DEGREE(name) " " #name
    char *equals = strchr(word, '='), *end;
    if (equals == NULL) {
        double value = strtod(word, &end);
        double unit = strcmp(end, "ms") == 0    ? 1e-3
                      : strcmp(end, "s") == 0   ? 1
                      : strcmp(end, "min") == 0 ? 60
                                                : 0;
        if (strpbrk(word, "xX") != NULL || !(value * unit >= 1e-6 && value * unit < 1e9))
            return dt_fail(DT_EUSAGE,
                           "--given: '%.60s' is no time of 1e-6 s to 1e9 s in ms, s or min, as "
                           "6.71s",
                           word);
        if (*seconds > 0)
            return dt_fail(DT_EUSAGE, "--given: there are two times, and '%.60s' is the second",
                           word);
        *seconds = value * unit;
        return DT_OK;
    }
    *equals = '\0';
    long degree = strtol(equals + 1, &end, 10);
    if (dt_json_has(plan, word))
        return dt_fail(DT_EUSAGE, "--given: %s is there twice", word);
    if (dt_json_has(choices, word))
        return read_choice(word, equals + 1, choices, plan);
    if (dt_text_index(word, names) < 0) {
        dt_auto_text others = {0};
        const char *name;
        json_t *choice;
        json_object_foreach((json_t *)choices, name, choice) dt_text_add(&others, " %s", name);
        return dt_fail(DT_EUSAGE,
                       "--given: '%.60s' is no degree: expected one of" DT_PREDICT_DEGREE_ROWS
                       ", or a setting of the engine:%s",
                       word, others.size > 0 ? dt_text_at(&others) : " it has none");
    }
#undef DT_PREDICT_DEGREE
    if (end == equals + 1 || *end != '\0' || degree < 1 || degree > DT_MACHINE_DEVICES_MOST)
        return dt_fail(DT_EUSAGE, "--given: %s is '%.60s', expected 1 to %d", word, equals + 1,
                       DT_MACHINE_DEVICES_MOST);
    json_object_set_new(plan, word, json_integer(degree));
    return DT_OK;
}

static dt_status read_words(const char *text, const char *engine, struct dt_given *given)
{
    json_auto_t *choices = NULL;
    char words[256], *next = words, *word;
    if (strlen(text) >= sizeof words)
        return dt_fail(DT_EUSAGE, "--given has %zu bytes, at most %zu", strlen(text),
                       sizeof words - 1);
    snprintf(words, sizeof words, "%s", text);
    DT_TRY(dt_engine_choices(engine, &choices));
    given->plan = json_object();
    while ((word = strsep(&next, " ")) != NULL)
        if (word[0] != '\0')
            DT_TRY(read_word(word, choices, given->plan, &given->seconds));
    return given->seconds > 0
               ? DT_OK
               : dt_fail(DT_EUSAGE,
                         "--given '%.200s' has no time of a request: expected '6.71s' of one "
                         "device, 'ulysses=2 4.38s', the id of an entry, or store",
                         text);
}

/* ---- an entry of the store */

static const char *text_or(const json_t *object, const char *name, const char *otherwise)
{
    const char *text = dt_json_text_at(object, name);
    return text[0] != '\0' ? text : otherwise;
}

static bool is_model(const char *name, const struct dt_card *card)
{
    struct dt_card known;
    return strcasecmp(name, card->name) == 0 ||
           (dt_card_known(name, &known) && strcmp(known.name, card->name) == 0);
}

static bool is_device(const char *name, const struct dt_machine_card *machine)
{
    struct dt_machine_card known;
    return strcasecmp(name, machine->device) == 0 ||
           (dt_machine_card_of(name, &known) && strcmp(known.name, machine->name) == 0);
}

/* The entry's job, where the model can have it. */
static bool read_job(const struct dt_stored_entry *entry, struct dt_predict_job *job)
{
    struct dt_task task;
    dt_task_read(json_object_get(entry->key, "job"), &task);
    const struct dt_task_value *at = task.at, *text = &at[DT_TASK_text_tokens];
    struct dt_frames size = job->card->usual;
    if (at[DT_TASK_width].given && at[DT_TASK_height].given)
        size = (struct dt_frames){at[DT_TASK_width].count, at[DT_TASK_height].count, size.frames};
    if (at[DT_TASK_frames].given)
        size.frames = at[DT_TASK_frames].count;
    if (dt_card_check_size(job->card, size) != DT_OK)
        return false;
    job->size = size;
    job->text_tokens = text->given ? text->lengths.at[0] : job->card->text_tokens;
    job->guided = job->card->guidance == DT_GUIDANCE_CFG &&
                  !(at[DT_TASK_guidance].given && at[DT_TASK_guidance].scale <= 1);
    if (at[DT_TASK_steps].given)
        job->steps = (int)at[DT_TASK_steps].count;
    else if (entry->image.steps > 0)
        job->steps = entry->image.steps;
    return true;
}

/* Why it scales nothing that is asked; NULL: it does, and *given is set. text:
 * room for the reason. */
static const char *read_entry(const json_t *json, const struct dt_given_asked *asked,
                              const char *family, struct dt_given *given, struct dt_text *text)
{
    struct dt_stored_entry entry;
    dt_record_read(&dt_record_stored_entry, json, &entry);
    const json_t *hard = entry.fingerprint.hard, *job = json_object_get(entry.key, "job");
    const char *model = text_or(job, "model", text_or(entry.key, "model", "an unnamed model"));
    const char *engine = text_or(hard, "engine", "an unnamed engine");
    const char *device = text_or(hard, "device", "cores");
    const char *dtype = text_or(hard, "dtype", "bfloat16");
    given->job = *asked->job;
    if (!is_model(model, asked->job->card) || strcmp(engine, family) != 0 ||
        !is_device(device, asked->job->machine)) {
        dt_text_add(text, "it is of %.80s on %.40s and %.60s, not of %s on %s and %s", model,
                    engine, device, asked->job->card->name, family, asked->job->machine->device);
        return dt_text_at(text);
    }
    if (!(entry.figures.median_ns > 0) || entry.plan == NULL)
        return "it has no measured time";
    if (strcmp(dtype, "bfloat16") != 0 && strcmp(dtype, "float16") != 0) {
        dt_text_add(text, "it was measured in %.20s, and predictions are of 16 bits", dtype);
        return dt_text_at(text);
    }
    if (entry.figures.batch > 1)
        return "its plan computes several images at once, and predictions are of one";
    if (!read_job(&entry, &given->job))
        return "the model cannot have its size";
    given->of_step = strcmp(entry.image.unit != NULL ? entry.image.unit : "step", "image") != 0;
    given->seconds = (double)entry.figures.median_ns * 1e-9;
    json_decref(given->plan);
    given->plan = json_incref(entry.plan);
    return NULL;
}

/* How far its number of tokens is from that which is asked, as a logarithm. */
static double job_distance(const struct dt_predict_job *job, const struct dt_predict_job *asked)
{
    return fabs(log2((double)dt_card_tokens(job->card, job->size) /
                     (double)dt_card_tokens(asked->card, asked->size)));
}

static bool is_named(const char *word, uint64_t id)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016llx", (unsigned long long)id);
    return strncasecmp(hex, word, strlen(word)) == 0;
}

/* An entry that the word names, NULL: any: of several with a time for what is asked the nearest. */
static dt_status find_entry(const struct dt_snapshot *snapshot, const char *word,
                            const struct dt_given_asked *asked, const char *family,
                            struct dt_given *given)
{
    dt_auto_text why = {0};
    int named = 0;
    for (size_t i = 0; i < dt_snapshot_count(snapshot); i++) {
        const json_t *json = NULL;
        uint64_t id = dt_snapshot_id(snapshot, (long)i);
        DT_CLEANUP(dt_given_fini) struct dt_given other = {.plan = NULL};
        if ((word != NULL && !is_named(word, id)) ||
            dt_snapshot_entry(snapshot, (long)i, &json) != DT_OK)
            continue;
        dt_auto_text room = {0};
        const char *reason = read_entry(json, asked, family, &other, &room);
        if (++named == 1 && reason != NULL)
            dt_text_add(&why, "%s", reason);
        if (reason != NULL || (given->plan != NULL && job_distance(&other.job, asked->job) >=
                                                          job_distance(&given->job, asked->job)))
            continue;
        dt_given_fini(given);
        *given = other;
        snprintf(given->entry, sizeof given->entry, "%016llx", (unsigned long long)id);
        other.plan = NULL;
    }
    if (word != NULL && named > 1)
        return dt_fail(DT_EUSAGE, "--given: the ids of %d entries begin with '%s'", named, word);
    if (word != NULL && named == 0)
        return dt_fail(DT_EUSAGE,
                       "--given: no entry of the store has an id that begins with '%s' (dittune "
                       "db show lists them)",
                       word);
    if (word != NULL && given->plan == NULL)
        return dt_fail(DT_EUSAGE, "--given: the entry '%s' scales nothing here: %s", word,
                       dt_text_at(&why));
    return given->plan != NULL
               ? DT_OK
               : dt_fail(DT_EUSAGE,
                         "--given: the store has no entry of %s on %s and %s in 16 bits (dittune "
                         "db show lists what it has)",
                         asked->job->card->name, family, asked->job->machine->device);
}

dt_status dt_given_read(const char *text, const struct dt_given_asked *asked,
                        struct dt_given *given)
{
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *snapshot = NULL;
    json_auto_t *family = NULL;
    size_t size = strlen(text);
    bool any = strcmp(text, "store") == 0;
    bool id = size >= ID_LEAST && size <= ID_MOST && strspn(text, "0123456789abcdefABCDEF") == size;
    *given = (struct dt_given){.job = *asked->job};
    if (!any && !id)
        return read_words(text, asked->engine, given);
    DT_TRY(dt_engine_family(asked->engine, &family));
    DT_TRY(dt_snapshot_open_stores(asked->stores, &snapshot));
    return find_entry(snapshot, any ? NULL : text, asked, json_string_value(family), given);
}
