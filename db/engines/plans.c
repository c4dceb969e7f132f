/* SPDX-License-Identifier: MIT */
/* Every plan of an engine's version for a model: all values of its degrees whose product is at most
 * the devices, kept where the rules hold, and each with words that lower its memory; those nearest
 * to another plan; the engine's own choice; and how it runs them. */
#include "db/engines/engines_int.h"
#include "model/plan.h"
#include "model/predict.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct walk {
    const struct dt_engine *engine;
    struct dt_export_request request;
    const json_t *barred; /* degrees that stay at 1 */
    const json_t *words;  /* that plans have where the rules take them; NULL: none */
    json_t *plan, *plans;
};

/* plan: changed by the walk; plans: the walk adds those that the engine takes. */
static struct walk walk_of(const struct dt_engine *engine, const char *name, const json_t *key,
                           const struct dt_plans_wanted *wanted, json_t *plan, json_t *plans)
{
    return (struct walk){.engine = engine,
                         .request = {.engine = name,
                                     .plan = plan,
                                     .key = key,
                                     .card = wanted->card,
                                     .hosts = wanted->hosts,
                                     .slots = wanted->slots,
                                     .compute = wanted->compute},
                         .barred = wanted->lossy ? NULL : json_object_get(engine->root, "lossy"),
                         .words = wanted->words,
                         .plan = plan,
                         .plans = plans};
}

/* No rule forbids the plan, and it is known how the engine starts on as many hosts. */
static dt_status plan_starts(const struct dt_engine *engine, struct dt_values *values, bool *starts)
{
    int64_t hosts;
    DT_TRY(dt_values_eval(engine, "hosts", values, &hosts));
    *starts = (hosts == 1 || dt_engine_spans(engine)) && dt_values_legal(engine, values);
    return DT_OK;
}

/* Adds the plan with these words of the walk's, where the engine takes it. */
static dt_status plan_try(struct walk *walk, const json_t *words, bool *taken)
{
    json_auto_t *plan = dt_json_copy(walk->plan);
    struct dt_export_request request = walk->request;
    struct dt_values values;
    request.plan = plan;
    if (words != NULL && json_object_update_missing(plan, (json_t *)words) != 0)
        return dt_no_memory("for an engine");
    DT_TRY(dt_values_read(walk->engine, &request, &values));
    DT_TRY(plan_starts(walk->engine, &values, taken));
    if (!*taken)
        return DT_OK;
    DT_TRY(dt_choices_add(walk->engine, &values, plan));
    return dt_engine_note(walk->plans, json_incref(plan));
}

static dt_status plan_keep(struct walk *walk)
{
    bool taken = false;
    if (walk->words != NULL)
        DT_TRY(plan_try(walk, walk->words, &taken));
    return taken ? DT_OK : plan_try(walk, NULL, &taken);
}

/* The plan, and where the engine lowers the memory of one device by itself, the plan with
 * each word that does not. */
static dt_status plans_keep(struct walk *walk)
{
    DT_TRY(plan_keep(walk));
    for (int i = 0; i < walk->engine->choice_count; i++) {
        const struct dt_engine_choice *choice = &walk->engine->choices[i];
        const char *name = walk->engine->names[choice->name];
        for (int at = 1; at < choice->count && choice->alone != 0; at++) {
            if (choice->settings[at] != 0)
                continue;
            if (json_object_set_new(walk->plan, name, json_string(choice->labels[at])) != 0)
                return dt_no_memory("for an engine");
            DT_TRY(plan_keep(walk));
            json_object_del(walk->plan, name);
        }
    }
    return DT_OK;
}

/* The degrees from index i on; room: the largest product that they may have. */
static dt_status degree_walk(struct walk *walk, int i, int64_t room)
{
    if (i == walk->engine->degree_count)
        return plans_keep(walk);
    const char *name = walk->engine->names[walk->engine->degrees[i]];
    int64_t most = json_object_get(walk->barred, name) != NULL ? 1 : room;
    for (int64_t value = 1; value <= most; value++) {
        if (json_object_set_new(walk->plan, name, json_integer(value)) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
        DT_TRY(degree_walk(walk, i + 1, room / value));
    }
    return DT_OK;
}

dt_status dt_engine_plans(const char *engine, const json_t *key, struct dt_plans_wanted wanted,
                          json_t **plans)
{
    DT_CLEANUP(dt_engine_free_at) struct dt_engine *read = NULL;
    json_auto_t *plan = json_object(), *list = json_array();
    DT_TRY(dt_engine_open(engine, &read));
    struct walk walk = walk_of(read, engine, key, &wanted, plan, list);
    DT_TRY(degree_walk(&walk, 0, wanted.devices));
    *plans = json_incref(list);
    return DT_OK;
}

dt_status dt_engine_left_out(const char *engine, const json_t *key, struct dt_plans_wanted wanted,
                             size_t *count, struct dt_text *why)
{
    DT_CLEANUP(dt_engine_free_at) struct dt_engine *read = NULL;
    json_auto_t *here = NULL, *anywhere = NULL;
    struct dt_plans_wanted other = wanted;
    const json_t *plan;
    size_t i;
    other.compute = 0;
    *count = 0;
    DT_TRY(dt_engine_open(engine, &read));
    DT_TRY(dt_engine_plans(engine, key, wanted, &here));
    DT_TRY(dt_engine_plans(engine, key, other, &anywhere));
    json_array_foreach(anywhere, i, plan)
    {
        struct walk walk = walk_of(read, engine, key, &wanted, (json_t *)plan, NULL);
        struct dt_values values;
        DT_TRY(dt_values_read(read, &walk.request, &values));
        dt_values_barred(read, &values, why);
        if (json_array_size(here) == 0 && why->size > 0)
            break; /* the engine does not run there: what more a plan lacks says nothing */
    }
    *count = json_array_size(anywhere) - json_array_size(here);
    return dt_text_status(why);
}

/* The words of choices from i on that lower memory; words: how many the plan has. */
static dt_status settings_walk(struct walk *walk, int i, int words)
{
    if (i == walk->engine->choice_count)
        return words > 0 ? plan_keep(walk) : DT_OK;
    const struct dt_engine_choice *choice = &walk->engine->choices[i];
    const char *name = walk->engine->names[choice->name];
    DT_TRY(settings_walk(walk, i + 1, words));
    for (int at = 1; at < choice->count; at++) {
        if (choice->settings[at] == 0 || dt_json_has(walk->plan, name))
            continue;
        if (json_object_set_new(walk->plan, name, json_string(choice->labels[at])) != 0)
            return dt_no_memory("for an engine");
        DT_TRY(settings_walk(walk, i + 1, words + 1));
        json_object_del(walk->plan, name);
    }
    return DT_OK;
}

dt_status dt_engine_variants(const char *engine, const json_t *key, struct dt_plans_wanted wanted,
                             const json_t *plans, json_t **variants)
{
    DT_CLEANUP(dt_engine_free_at) struct dt_engine *read = NULL;
    json_auto_t *lists = json_array();
    const json_t *each;
    size_t i;
    DT_TRY(dt_engine_open(engine, &read));
    json_array_foreach(plans, i, each)
    {
        json_auto_t *plan = json_is_object(each) ? dt_json_copy(each) : json_object();
        json_t *list = json_array();
        DT_TRY(dt_engine_note(lists, list));
        struct walk walk = walk_of(read, engine, key, &wanted, plan, list);
        if (json_is_object(each))
            DT_TRY(settings_walk(&walk, 0, 0));
    }
    *variants = json_incref(lists);
    return *variants != NULL ? DT_OK : dt_no_memory("for an engine");
}

/* The value of a degree in a plan, 1 where it is not named. */
static int64_t plan_degree(const json_t *plan, const char *name)
{
    const json_t *value = json_object_get(plan, name);
    return json_is_integer(value) && json_integer_value(value) > 0 ? json_integer_value(value) : 1;
}

/* Compares plans: as many ranks first, then as few changes as can be. The integers of an engine's
 * plan are its degrees, and those of `own` that neither it nor dittune has are others'. */
static double plan_distance(const json_t *own, const json_t *plan)
{
    enum { RANK = 64 };
    const char *name;
    json_t *value;
    double mine = 1, ranks = 1, changes = 0;
    json_object_foreach((json_t *)plan, name, value)
    {
        if (!json_is_integer(value))
            continue;
        mine *= (double)plan_degree(own, name);
        ranks *= (double)plan_degree(plan, name);
        changes += plan_degree(own, name) != plan_degree(plan, name);
    }
    json_object_foreach((json_t *)own, name, value)
    {
        if (json_object_get(plan, name) != NULL || dt_param_known(name))
            continue;
        mine *= (double)plan_degree(own, name);
        changes += plan_degree(own, name) != 1;
    }
    mine = json_object_get(own, "ranks") != NULL ? (double)plan_degree(own, "ranks") : mine;
    return RANK * fabs(mine - ranks) + changes;
}

dt_status dt_engine_nearest(const char *engine, const json_t *key, struct dt_plans_wanted wanted,
                            const json_t *own, int most, json_t **nearest)
{
    json_auto_t *plans = NULL;
    json_auto_t *found = json_array();
    json_t *plan;
    size_t i;
    DT_TRY(dt_engine_plans(engine, key, wanted, &plans));
    while (most-- > 0 && json_array_size(plans) > 0) {
        size_t best = 0;
        double least = INFINITY;
        json_array_foreach(plans, i, plan)
        {
            double far = plan_distance(own, plan);
            best = far < least ? i : best;
            least = far < least ? far : least;
        }
        DT_TRY(dt_engine_note(found, json_incref(json_array_get(plans, best))));
        json_array_remove(plans, best);
    }
    *nearest = json_incref(found);
    return *nearest != NULL ? DT_OK : dt_no_memory("for an engine");
}

/* A word of the choice, else the value of the expression, of a choice the word of that index. */
static dt_status value_choose(const struct dt_engine *engine, const char *name, const char *text,
                              const struct dt_values *values, json_t **chosen)
{
    const struct dt_engine_choice *choice = dt_choice_named(engine, name);
    int64_t value = choice != NULL ? dt_choice_find(choice, text) : -1;
    if (value < 0)
        DT_TRY(dt_values_eval(engine, text, values, &value));
    if (choice != NULL && (value < 0 || value >= choice->count))
        return dt_fail(DT_EUSAGE, "%s %s: value %lld of '%s' is not there", engine->name,
                       engine->version, (long long)value, name);
    *chosen = choice != NULL ? json_string(choice->labels[value]) : json_integer(value);
    return DT_OK;
}

/* The rows in their order: each may use the ones before. request->plan is the plan that they are
 * added to: then it has all degrees, and no word that is the engine's own. */
static dt_status plan_choose(const struct dt_engine *engine,
                             const struct dt_export_request *request, const json_t *rows,
                             json_t *plan, struct dt_values *values)
{
    const char *name;
    json_t *text, *chosen = NULL;
    DT_TRY(dt_values_read(engine, request, values));
    json_object_foreach((json_t *)rows, name, text)
    {
        DT_TRY(value_choose(engine, name, json_string_value(text), values, &chosen));
        if (json_object_set_new(plan, name, chosen) != 0)
            return dt_no_memory("for an engine");
        DT_TRY(dt_values_read(engine, request, values));
    }
    for (int i = 0; i < engine->degree_count; i++)
        if (json_object_set_new(plan, engine->names[engine->degrees[i]],
                                json_integer(values->at[engine->degrees[i]])) != 0)
            return dt_no_memory("for an engine");
    for (int i = 0; i < engine->choice_count; i++) {
        values->open[i] = false;
        if (values->at[engine->choices[i].name] == 0)
            json_object_del(plan, engine->names[engine->choices[i].name]);
    }
    return DT_OK;
}

dt_status dt_engine_default(const char *engine, const json_t *key, const struct dt_card *card,
                            json_t **plan)
{
    DT_CLEANUP(dt_engine_free_at) struct dt_engine *read = NULL;
    *plan = NULL;
    DT_TRY(dt_engine_open(engine, &read));
    bool chooses = dt_json_has(read->root, "default");
    json_auto_t *chosen = chooses ? json_object() : NULL;
    const struct dt_export_request request = {.plan = chosen, .key = key, .card = card};
    struct dt_values values;
    if (chooses)
        DT_TRY(
            plan_choose(read, &request, json_object_get(read->root, "default"), chosen, &values));
    *plan = json_incref(chosen);
    return DT_OK;
}

/* The plan that a row of "documented" sets. *plan: NULL where the row is for other models, its
 * condition does not hold, a rule forbids the plan, or it takes more devices. */
static dt_status row_plan(const struct dt_engine *engine, struct dt_export_request request,
                          int64_t devices, const json_t *row, json_t **plan)
{
    json_auto_t *chosen = json_object();
    struct dt_values values;
    bool holds, starts;
    *plan = NULL;
    request.plan = chosen;
    DT_TRY(plan_choose(engine, &request, json_object_get(row, "plan"), chosen, &values));
    DT_TRY(dt_values_when(engine, row, &values, &holds));
    DT_TRY(plan_starts(engine, &values, &starts));
    if (!holds || !dt_row_counts(json_object_get(row, "classes"), &values) || !starts ||
        dt_values_ranks(engine, &values) > devices)
        return DT_OK;
    *plan = json_incref(chosen);
    return DT_OK;
}

dt_status dt_engine_documented(const char *engine, const json_t *key, struct dt_plans_wanted wanted,
                               json_t **documented)
{
    DT_CLEANUP(dt_engine_free_at) struct dt_engine *read = NULL;
    const int64_t bytes = wanted.device_bytes;
    json_auto_t *constants = json_object();
    json_t *row;
    size_t i;
    *documented = NULL;
    DT_TRY(dt_engine_open(engine, &read));
    json_object_set_new(constants, "throughput", json_integer(wanted.throughput));
    json_object_set_new(constants, "devices", json_integer(wanted.devices));
    if (bytes > 0)
        json_object_set_new(constants, "device_mib", json_integer(bytes >> 20));
    const struct dt_export_request request = {.key = key,
                                              .card = wanted.card,
                                              .constants = constants,
                                              .hosts = wanted.hosts,
                                              .slots = wanted.slots,
                                              .compute = wanted.compute};
    json_array_foreach(json_object_get(read->root, "documented"), i, row)
    {
        json_t *plan = NULL;
        DT_TRY(row_plan(read, request, wanted.devices, row, &plan));
        if (plan == NULL)
            continue;
        *documented = json_pack(
            "{s:o, s:O, s:O, s:O}", "plan", plan, "source",
            json_object_get(json_object_get(read->root, "sources"), dt_json_text_at(row, "source")),
            "date", json_object_get(row, "date"), "says", json_object_get(row, "says"));
        return *documented != NULL ? DT_OK : dt_no_memory("for an engine");
    }
    return DT_OK;
}

dt_status dt_engine_choices(const char *engine, json_t **choices)
{
    DT_CLEANUP(dt_engine_free_at) struct dt_engine *read = NULL;
    DT_TRY(dt_engine_open(engine, &read));
    json_t *found = json_object_get(read->root, "choices");
    *choices = found != NULL ? json_incref(found) : json_object();
    return *choices != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

static struct dt_engine_way way_of(const struct dt_engine *engine,
                                   const struct dt_engine_choice *choice, int at, unsigned settings)
{
    struct dt_engine_way way = {.settings = settings};
    snprintf(way.choice, sizeof way.choice, "%s", engine->names[choice->name]);
    snprintf(way.word, sizeof way.word, "%s", choice->labels[at]);
    return way;
}

void dt_engine_ways(const char *engine, struct dt_engine_ways *ways)
{
    char name[64];
    size_t size = strlen(engine) < sizeof name ? strlen(engine) : 0;
    struct dt_error none = {DT_OK, ""};
    struct dt_engine *opened = NULL;
    *ways = (struct dt_engine_ways){.count = 0};
    for (size_t i = 0; i <= size; i++)
        name[i] = i < size ? (char)tolower((unsigned char)engine[i]) : '\0';
    if (dt_error_keep(&none, dt_engine_open(name, &opened)) != DT_OK)
        return;
    const json_t *runs = json_object_get(opened->root, "runs");
    ways->worker = dt_json_has(opened->root, "worker");
    ways->eager = dt_json_lists(runs, "eager");
    ways->wrapped = dt_json_lists(runs, "wrapped");
    ways->shares_encoder = dt_json_lists(runs, "shares_encoder");
    for (int i = 0; i < opened->choice_count; i++) {
        const struct dt_engine_choice *choice = &opened->choices[i];
        if (choice->alone != 0)
            ways->alone = way_of(opened, choice, 0, choice->alone);
        for (int k = 1; k < choice->count; k++)
            if (choice->settings[k] != 0)
                ways->at[ways->count++] = way_of(opened, choice, k, choice->settings[k]);
    }
    dt_engine_free(opened);
}

static bool is_alone(const json_t *plan)
{
#define DT_PREDICT_DEGREE(name) plan_degree(plan, #name) == 1 &&
    return DT_PREDICT_DEGREE_ROWS true;
#undef DT_PREDICT_DEGREE
}

unsigned dt_engine_settings(const struct dt_engine_ways *ways, const json_t *plan)
{
    const char *own = dt_json_text_at(plan, ways->alone.choice);
    bool by_itself = own[0] == '\0' || strcmp(own, ways->alone.word) == 0;
    unsigned settings = by_itself && is_alone(plan) ? ways->alone.settings : 0;
    for (int i = 0; i < ways->count; i++)
        if (strcmp(dt_json_text_at(plan, ways->at[i].choice), ways->at[i].word) == 0)
            settings |= ways->at[i].settings;
    return settings;
}

dt_status dt_engine_options(const char *engine, const json_t *plan, struct dt_text *out)
{
    DT_CLEANUP(dt_engine_free_at) struct dt_engine *read = NULL;
    const json_t *axis, *word;
    size_t i, k;
    DT_TRY(dt_engine_open(engine, &read));
    json_array_foreach(json_object_get(json_object_get(read->root, "worker"), "axes"), i, axis)
    {
        if (plan_degree(plan, dt_json_text_at(axis, "name")) == 1)
            continue;
        json_array_foreach(json_object_get(axis, "for"), k, word)
        {
            const char *option = json_string_value(word);
            if (strncmp(option, "--", 2) == 0 && strstr(dt_text_at(out), option) == NULL)
                dt_text_add(out, " %s", option);
        }
    }
    return dt_text_status(out);
}

bool dt_engine_compiles(const char *word)
{
    return word[0] != '\0' && strcmp(word, "off") != 0 && strcmp(word, "none") != 0;
}

void dt_engine_way(const struct dt_engine_ways *ways, bool compiled, struct dt_predict_job *job)
{
    job->eager = ways->eager && !compiled;
    job->wrapped = ways->wrapped && !compiled;
    job->shares_encoder = ways->shares_encoder;
}

void dt_engine_runs(const char *engine, bool compiled, struct dt_predict_job *job)
{
    struct dt_engine_ways ways;
    dt_engine_ways(engine, &ways);
    dt_engine_way(&ways, compiled, job);
}

/* "sglang, xdit, diffusers" */
static void add_engines(const struct dt_card *card, struct dt_text *out)
{
    for (int i = 0; i < card->engine_count; i++)
        dt_text_add(out, "%s%s", i > 0 ? ", " : "", card->engines[i].engine);
}

dt_status dt_engine_check_model(const char *engine, const struct dt_card *card)
{
    DT_CLEANUP(dt_engine_free_at) struct dt_engine *read = NULL;
    dt_auto_text others = {0}, classes = {0};
    const json_t *each;
    size_t i;
    DT_TRY(dt_engine_open(engine, &read));
    const json_t *only = json_object_get(json_object_get(read->root, "models"), "classes");
    bool known =
        only == NULL || card->transformer[0] == '\0' || dt_json_lists(only, card->transformer);
    bool other = only != NULL && card->engine_count > 0 &&
                 dt_card_engine(card, read->name, read->version) == NULL;
    if (known && !other)
        return DT_OK;
    json_array_foreach(only, i, each)
        dt_text_add(&classes, "%s%s", i > 0 ? ", " : "", json_string_value(each));
    add_engines(card, &others);
    return dt_fail(DT_EUSAGE, "%s does not run %s, only models of its own (%s)%s%s", read->name,
                   card->name, dt_text_at(&classes),
                   others.size > 0 ? "; engines that take it: " : "", dt_text_at(&others));
}
