/* SPDX-License-Identifier: MIT */
/* Values for an engine's expressions: the workload's from the entry's key, the plan's by name, and
 * derived ones. A value may be unknown; expressions that need it are then not decided, and a note
 * says so. Choices are parameters whose values are words, such as the attention back end: inside, a
 * value is the index of its word; the first is what the engine does by itself. */
#include "db/engines/engines_int.h"
#include "model/network.h"
#include "model/plan.h"
#include "model/task.h"
#include "space/json/json.h"

#include <string.h>

static int name_index(const struct dt_engine *engine, const char *name)
{
    for (int i = 0; i < engine->count; i++)
        if (strcmp(engine->names[i], name) == 0)
            return i;
    return -1;
}

static void value_put(const struct dt_engine *engine, struct dt_values *values, const char *name,
                      int64_t value)
{
    int i = name_index(engine, name);
    values->at[i] = value;
    values->known[i] = true;
}

/* A preset's shape, when the key's model is one: a name only, no file of that name is opened. */
static void put_network(const struct dt_engine *engine, struct dt_values *values, const char *model)
{
    const char *const *presets = dt_network_presets();
    for (int i = 0; presets[i] != NULL; i++) {
        struct dt_network network;
        if (strcmp(presets[i], model) != 0 || dt_network_load(model, &network) != DT_OK)
            continue;
        value_put(engine, values, "heads", network.heads);
        value_put(engine, values, "depth", network.depth);
        value_put(engine, values, "hidden", network.hidden);
        value_put(engine, values, "joint_text_tokens", 0);
        int64_t height = values->at[name_index(engine, "latent_height")];
        int64_t width = values->at[name_index(engine, "latent_width")];
        if (values->known[name_index(engine, "latent_height")])
            value_put(engine, values, "tokens", (height / network.patch) * (width / network.patch));
    }
}

static int64_t task_count(const struct dt_task *task, enum dt_task_field field, int64_t otherwise)
{
    return task->at[field].given ? task->at[field].count : otherwise;
}

static void put_texts(const struct dt_engine *engine, struct dt_values *values, const json_t *job,
                      const struct dt_task *task, const struct dt_card *card)
{
    const struct dt_task_value *text = &task->at[DT_TASK_text_tokens];
    bool damaged = !text->given && json_object_get(job, "text_tokens") != NULL;
    value_put(engine, values, "joint_text_tokens", 0);
    if (!card->joint)
        return;
    if (damaged || dt_card_lengths(card, &text->lengths, &values->texts) != DT_OK)
        values->texts = (struct dt_lengths){.count = 1, .at = {1}}; /* divided by no plan */
    value_put(engine, values, "joint_text_tokens", values->texts.at[values->texts.count - 1]);
}

/* Weights of the transformer, in 2 or 4 bytes a parameter. */
static int64_t weights_mib(const struct dt_card *card, bool half)
{
    return card->parameters.transformer > 0
               ? card->parameters.transformer / (1 << 20) * (half ? 2 : 4)
               : 0;
}

/* A published model: its shape by its card, the size by the job, else the model's usual one. */
static void put_card(const struct dt_engine *engine, struct dt_values *values, const json_t *key,
                     const struct dt_card *card)
{
    const json_t *job = json_object_get(key, "job");
    struct dt_task task;
    dt_task_read(job, &task);
    struct dt_frames size = {.width = task_count(&task, DT_TASK_width, card->usual.width),
                             .height = task_count(&task, DT_TASK_height, card->usual.height),
                             .frames = task_count(&task, DT_TASK_frames, card->usual.frames)};
    value_put(engine, values, "heads", card->heads);
    value_put(engine, values, "kv_heads", card->kv_heads);
    value_put(engine, values, "depth", card->depth);
    value_put(engine, values, "hidden", (int64_t)card->heads * card->head_size);
    value_put(engine, values, "weights_mib",
              weights_mib(card, values->at[name_index(engine, "half")]));
    put_texts(engine, values, job, &task, card);
    if (task.at[DT_TASK_steps].given)
        value_put(engine, values, "job_steps", task.at[DT_TASK_steps].count);
    value_put(engine, values, "guidance", card->guidance == DT_GUIDANCE_CFG ? card->passes : 0);
    if (dt_card_check_size(card, size) == DT_OK) {
        value_put(engine, values, "tokens", dt_card_tokens(card, size));
        value_put(engine, values, "height", size.height);
        value_put(engine, values, "width", size.width);
        value_put(engine, values, "video_frames", size.frames);
        value_put(engine, values, "latent_height", size.height / card->vae_space);
        value_put(engine, values, "latent_width", size.width / card->vae_space);
    }
}

static void put_key(const struct dt_engine *engine, struct dt_values *values, const json_t *key,
                    const struct dt_card *card)
{
    enum { PIXELS = 8 }; /* pixels of the image for one of the latent (model/network.h) */
    const json_t *height = json_object_get(key, "height"), *width = json_object_get(key, "width");
    const json_t *guidance = json_object_get(key, "guidance");
    const char *dtype = json_string_value(json_object_get(key, "dtype"));
    const char *model = json_string_value(json_object_get(key, "model"));
    if (json_is_integer(height) && json_is_integer(width)) {
        int64_t rows = json_integer_value(height), columns = json_integer_value(width);
        if (rows > 0 && rows < 1 << 20 && columns > 0 && columns < 1 << 20) {
            value_put(engine, values, "latent_height", rows);
            value_put(engine, values, "latent_width", columns);
            value_put(engine, values, "height", PIXELS * rows);
            value_put(engine, values, "width", PIXELS * columns);
        }
    }
    if (json_is_boolean(guidance))
        value_put(engine, values, "guidance", json_is_true(guidance) ? 2 : 0);
    if (dtype != NULL)
        value_put(engine, values, "bfloat16", strcmp(dtype, "bfloat16") == 0);
    value_put(engine, values, "half", dtype == NULL || strcmp(dtype, "float32") != 0);
    if (json_is_integer(json_object_get(key, "devices")))
        value_put(engine, values, "devices", dt_json_integer_at(key, "devices"));
    if (model != NULL)
        put_network(engine, values, model);
    const char *published =
        json_string_value(json_object_get(json_object_get(key, "job"), "model"));
    if (card != NULL)
        values->card = *card;
    if (card != NULL || (published != NULL && dt_card_known(published, &values->card)))
        put_card(engine, values, key, &values->card);
}

static bool expr_decidable(const struct dt_expr *expr, const struct dt_values *values, int *unknown)
{
    struct dt_names names = dt_expr_names(expr);
    for (int i = 0; i < DT_ENGINE_NAMES; i++)
        if ((names.bits[i / 64] >> (i % 64) & 1) != 0 && !values->known[i]) {
            *unknown = i;
            return false;
        }
    return true;
}

dt_status dt_values_eval(const struct dt_engine *engine, const char *text,
                         const struct dt_values *values, int64_t *result)
{
    DT_CLEANUP(dt_expr_free_at) struct dt_expr *expr = NULL;
    int unknown = 0;
    DT_TRY(dt_engine_compile(engine, text, &expr));
    if (expr_decidable(expr, values, &unknown))
        return dt_expr_eval(expr, values->at, result);
    return dt_fail(DT_EUSAGE, "%s %s: '%s' needs '%s', which is unknown for the plan's workload",
                   engine->name, engine->version, text, engine->names[unknown]);
}

dt_status dt_values_when(const struct dt_engine *engine, const json_t *row,
                         const struct dt_values *values, bool *holds)
{
    const char *text = json_string_value(json_object_get(row, "when"));
    DT_CLEANUP(dt_expr_free_at) struct dt_expr *expr = NULL;
    int64_t result = text == NULL;
    int unknown;
    if (text != NULL)
        DT_TRY(dt_engine_compile(engine, text, &expr));
    if (expr != NULL && expr_decidable(expr, values, &unknown))
        DT_TRY(dt_expr_eval(expr, values->at, &result));
    *holds = result != 0;
    return DT_OK;
}

const char *dt_choice_word(const struct dt_engine *engine, const char *name, size_t size,
                           const struct dt_values *values)
{
    for (int i = 0; i < engine->choice_count; i++) {
        const char *known = engine->names[engine->choices[i].name];
        if (strlen(known) == size && memcmp(known, name, size) == 0)
            return engine->choices[i].labels[values->at[engine->choices[i].name]];
    }
    return NULL;
}

static dt_status refuse_word(const struct dt_engine *engine, const struct dt_engine_choice *choice,
                             const char *word)
{
    dt_auto_text list = {0};
    for (int i = 0; i < choice->count; i++)
        dt_text_add(&list, "%s%s", i > 0 ? ", " : "", choice->labels[i]);
    DT_TRY(dt_text_status(&list));
    return dt_fail(DT_EINFEASIBLE,
                   "%s %s does not take this plan: %s=%.80s is none of its values: %s",
                   engine->name, engine->version, engine->names[choice->name],
                   word != NULL ? word : "", dt_text_at(&list));
}

/* A setting of dittune's own network that has the choice's name: no word of the engine, which
 * then chooses by itself. */
static bool word_is_own(const char *name, const char *word)
{
    for (int i = 0; word != NULL && i < dt_param_count; i++)
        if (dt_params[i].labels != NULL && strcmp(dt_params[i].name, name) == 0 &&
            dt_text_index(word, dt_params[i].labels) >= 0)
            return true;
    return false;
}

bool dt_choices_take(const struct dt_engine *engine, const char *name, const json_t *value)
{
    const struct dt_engine_choice *choice = dt_choice_named(engine, name);
    return choice != NULL && json_is_string(value) &&
           dt_choice_find(choice, json_string_value(value)) >= 0;
}

static dt_status choices_put(const struct dt_engine *engine, const json_t *plan,
                             struct dt_values *values)
{
    for (int i = 0; i < engine->choice_count; i++) {
        const struct dt_engine_choice *choice = &engine->choices[i];
        const char *name = engine->names[choice->name];
        const json_t *given = json_object_get(plan, name);
        const char *word = json_string_value(given);
        int at = word != NULL ? dt_choice_find(choice, word) : -1;
        if (at < 0 && given != NULL && !word_is_own(name, word))
            return refuse_word(engine, choice, word);
        values->at[choice->name] = at < 0 ? 0 : at;
        values->known[choice->name] = true;
        values->open[i] = at < 0;
    }
    return DT_OK;
}

/* A parameter: the plan's value, else the file's default. */
static dt_status put_parameter(const struct dt_engine *engine, const json_t *plan, int i,
                               struct dt_values *values)
{
    const char *name = engine->names[i];
    const json_t *value = json_object_get(plan, name);
    if (value == NULL) {
        const json_t *parameters = json_object_get(engine->root, "parameters");
        DT_TRY(dt_values_eval(engine, json_string_value(json_object_get(parameters, name)), values,
                              &values->at[i]));
    } else if (json_is_integer(value)) {
        values->at[i] = json_integer_value(value);
    } else if (json_is_boolean(value)) {
        values->at[i] = json_is_true(value);
    } else {
        return dt_fail(DT_EUSAGE, "the plan's '%s' is not a whole number: %s %s takes none else",
                       name, engine->name, engine->version);
    }
    values->known[i] = true;
    return DT_OK;
}

static dt_status put_counts(const struct dt_engine *engine, struct dt_values *values)
{
    static const char *const counts[] = {"processes", "starts"};
    for (int i = 0; i < 2; i++) {
        int64_t count;
        const char *text = json_string_value(json_object_get(engine->root, counts[i]));
        DT_TRY(dt_values_eval(engine, text, values, &count));
        value_put(engine, values, counts[i], count);
    }
    /* the fewest that take the processes, as many on each */
    int64_t hosts = 1, processes = values->at[engine->count - 2];
    while (hosts < values->hosts && (processes > hosts * values->slots || processes % hosts != 0))
        hosts++;
    value_put(engine, values, "hosts", hosts);
    return DT_OK;
}

dt_status dt_values_read(const struct dt_engine *engine, const struct dt_export_request *request,
                         struct dt_values *values)
{
    enum { MEMORY_UNKNOWN = 1 << 30 }; /* MiB: all fits */
    const char *name;
    json_t *value;
    *values = (struct dt_values){.program = request->program,
                                 .checkpoint = request->checkpoint,
                                 .hosts = request->hosts,
                                 .slots = request->slots};
    value_put(engine, values, "gpus", 1);
    value_put(engine, values, "replica", 0);
    value_put(engine, values, "throughput", 0);
    value_put(engine, values, "device_mib", MEMORY_UNKNOWN);
    if (request->compute != 0)
        value_put(engine, values, "compute", request->compute);
    put_key(engine, values, request->key, request->card);
    if (json_object_get(engine->root, "models") != NULL && request->checkpoint != NULL &&
        strcmp(request->checkpoint, values->card.name) == 0)
        values->checkpoint = NULL; /* the program reads weights in its own format */
    json_object_foreach((json_t *)request->constants, name, value)
    {
        int i = name_index(engine, name);
        if (i >= 0 && i < engine->first && json_is_integer(value))
            value_put(engine, values, name, json_integer_value(value));
    }
    for (int i = engine->first; i < engine->first + engine->parameters; i++)
        DT_TRY(put_parameter(engine, request->plan, i, values));
    DT_TRY(choices_put(engine, request->plan, values));
    return put_counts(engine, values);
}

bool dt_row_counts(const json_t *classes, const struct dt_values *values)
{
    const json_t *class;
    size_t i;
    json_array_foreach(classes, i, class)
    {
        if (strcmp(json_string_value(class), values->card.transformer) == 0)
            return true;
    }
    return classes == NULL;
}

void dt_values_replica(const struct dt_engine *engine, struct dt_values *values, int replica)
{
    value_put(engine, values, "replica", replica);
}

/* The rule does not hold with one of the texts; at: the numbers with which it does not. */
static bool rule_fails(const struct dt_engine *engine, const struct dt_engine_rule *rule,
                       const struct dt_values *values, int64_t at[DT_ENGINE_NAMES])
{
    int text = name_index(engine, "joint_text_tokens"), i = 0;
    int64_t result;
    memcpy(at, values->at, sizeof values->at);
    do {
        if (values->texts.count > 0)
            at[text] = values->texts.at[i];
        result = 0;
        if (dt_expr_eval(rule->expr, at, &result) != DT_OK || result == 0)
            return true;
    } while (++i < values->texts.count);
    return false;
}

static bool rule_breaks(const struct dt_engine *engine, const struct dt_engine_rule *rule,
                        const struct dt_values *values, int64_t at[DT_ENGINE_NAMES])
{
    int unknown;
    return dt_row_counts(rule->classes, values) && expr_decidable(rule->expr, values, &unknown) &&
           rule_fails(engine, rule, values, at);
}

/* The rule is about the device. */
static bool is_of_device(const struct dt_engine *engine, const struct dt_engine_rule *rule)
{
    int name = name_index(engine, "compute");
    return (dt_expr_names(rule->expr).bits[name / 64] >> (name % 64) & 1) != 0;
}

void dt_values_barred(const struct dt_engine *engine, const struct dt_values *values,
                      struct dt_text *why)
{
    int64_t at[DT_ENGINE_NAMES];
    for (int i = 0; i < engine->rule_count; i++) {
        const struct dt_engine_rule *rule = &engine->rules[i];
        if (is_of_device(engine, rule) && rule_breaks(engine, rule, values, at) &&
            strstr(dt_text_at(why), rule->sentence) == NULL)
            dt_text_add(why, "%s%s", why->size > 0 ? "; " : "", rule->sentence);
    }
}

static bool rules_break(const struct dt_engine *engine, const struct dt_values *values)
{
    int64_t at[DT_ENGINE_NAMES];
    for (int i = 0; i < engine->rule_count; i++)
        if (rule_breaks(engine, &engine->rules[i], values, at))
            return true;
    return false;
}

/* A degree above 1 that the engine does not take for the model, as an index; -1: there is none. An
 * engine that the card does not list takes all. */
static int foreign_degree(const struct dt_engine *engine, const struct dt_values *values)
{
    const struct dt_card_engine *row = dt_card_engine(&values->card, engine->name, engine->version);
    for (int i = 0; row != NULL && i < engine->degree_count; i++) {
        const char *degree = engine->names[engine->degrees[i]];
        if (values->at[engine->degrees[i]] > 1 && !dt_card_takes(row, degree))
            return engine->degrees[i];
    }
    return -1;
}

#define REPLICAS_MOST 1024 /* lines of one export, each of a replica */

static int64_t replicas_count(const struct dt_engine *engine, const struct dt_values *values)
{
    int at = name_index(engine, "replicas");
    return at >= 0 ? values->at[at] : 1;
}

int64_t dt_values_ranks(const struct dt_engine *engine, const struct dt_values *values)
{
    enum { MOST = 1 << 20 };
    int64_t ranks = values->at[name_index(engine, "ranks")];
    int64_t replicas = replicas_count(engine, values);
    return ranks >= 1 && ranks <= MOST && replicas >= 1 && replicas <= MOST ? ranks * replicas : 0;
}

/* The processes are as many as the ranks of all replicas. */
static bool ranks_add_up(const struct dt_engine *engine, const struct dt_values *values)
{
    enum { MOST = 1 << 20 };
    int64_t processes = values->at[engine->count - 2], starts = values->at[engine->count - 1];
    return processes >= 1 && processes <= MOST && starts >= 1 && starts <= REPLICAS_MOST &&
           processes * starts == dt_values_ranks(engine, values);
}

/* No rule forbids it, its degrees are the model's, and its processes as many as its
 * ranks. Sets no sentence. */
static bool plan_fits(const struct dt_engine *engine, const struct dt_values *values)
{
    int64_t processes = values->at[engine->count - 2];
    int64_t hosts = values->at[name_index(engine, "hosts")];
    return !rules_break(engine, values) && foreign_degree(engine, values) < 0 &&
           ranks_add_up(engine, values) &&
           /* without hosts that were named there is one, which takes all */
           (values->hosts == 0 || (processes % hosts == 0 && processes <= hosts * values->slots));
}

/* The words of the choices from i on. */
static bool choices_settle(const struct dt_engine *engine, int i, struct dt_values *values)
{
    if (i == engine->choice_count)
        return plan_fits(engine, values);
    const struct dt_engine_choice *choice = &engine->choices[i];
    int64_t own = values->at[choice->name];
    for (int at = 0; at < (values->open[i] ? choice->count : 1); at++) {
        if (at > 0 && (choice->settings[at] != 0 ||
                       json_object_get(choice->lossy, choice->labels[at]) != NULL))
            continue;
        values->at[choice->name] = values->open[i] ? at : own;
        if (choices_settle(engine, i + 1, values))
            return true;
    }
    values->at[choice->name] = own;
    return false;
}

/* Each rule that the plan breaks names a choice that is open. */
static bool choices_may_settle(const struct dt_engine *engine, const struct dt_values *values)
{
    int64_t at[DT_ENGINE_NAMES];
    for (int r = 0; r < engine->rule_count; r++) {
        struct dt_names names = dt_expr_names(engine->rules[r].expr);
        bool open = false;
        for (int i = 0; i < engine->choice_count; i++) {
            int name = engine->choices[i].name;
            open |= values->open[i] && (names.bits[name / 64] >> (name % 64) & 1) != 0;
        }
        if (!open && rule_breaks(engine, &engine->rules[r], values, at))
            return false;
    }
    return true;
}

bool dt_values_legal(const struct dt_engine *engine, struct dt_values *values)
{
    return plan_fits(engine, values) ||
           (choices_may_settle(engine, values) && choices_settle(engine, 0, values));
}

/* Another value of one parameter of a plan. */
struct change {
    const struct dt_engine *engine;
    const struct dt_values *values;
    int parameter;
};

/* Sets the number of ranks that follows from the value; false: no number. */
static bool change_ranks(const struct change *change, int64_t value, int64_t *ranks)
{
    struct dt_values tried = *change->values;
    const char *text = json_string_value(
        json_object_get(json_object_get(change->engine->root, "parameters"), "ranks"));
    tried.at[change->parameter] = value;
    *ranks = value;
    return change->parameter == name_index(change->engine, "ranks") ||
           dt_values_eval(change->engine, text, &tried, ranks) == DT_OK;
}

/* With it, and as many ranks as then follow, no more than there are devices, the
 * whole plan is legal. */
static bool change_fits(const void *context, int64_t value)
{
    const struct change *change = context;
    const struct dt_engine *engine = change->engine;
    struct dt_values tried = *change->values;
    int at = name_index(engine, "ranks"), devices = name_index(engine, "devices");
    int64_t before = tried.at[at];
    if (!change_ranks(change, value, &tried.at[at]))
        return false;
    tried.at[change->parameter] = value;
    bool many = tried.known[devices] && tried.at[at] > tried.at[devices] && tried.at[at] > before;
    return !many && put_counts(engine, &tried) == DT_OK && dt_values_legal(engine, &tried);
}

/* The value, and the ranks where they become others: 4, or "4 ranks=4". */
static json_t *change_json(const struct change *change, int64_t value)
{
    int64_t ranks, before = change->values->at[name_index(change->engine, "ranks")];
    bool same = !change_ranks(change, value, &ranks) || ranks == before ||
                change->parameter == name_index(change->engine, "ranks");
    return same ? json_integer(value)
                : json_sprintf("%lld ranks=%lld", (long long)value, (long long)ranks);
}

/* The values of the first parameter of the rule that has such, nearest to its own, with which the
 * whole plan is legal. */
static void nearest_add(const struct dt_engine *engine, const struct dt_expr *expr,
                        const struct dt_values *values, struct dt_text *out)
{
    enum { REACH = 1024 };
    struct dt_names names = dt_expr_names(expr);
    int found = 0;
    for (int i = engine->first; i < engine->first + engine->parameters && found == 0; i++) {
        if ((names.bits[i / 64] >> (i % 64) & 1) == 0)
            continue;
        int64_t list[2 * REACH + 1], near[2], own = values->at[i];
        const struct change change = {engine, values, i};
        const struct dt_near_wanted wanted = {own, change_fits, &change};
        int count = 0;
        for (int64_t value = own - REACH; value <= own + REACH; value++)
            if (value > 0 || (value == 0 && own <= 0))
                list[count++] = value;
        found = dt_near_values(list, count, &wanted, near);
        json_t *rows = json_array();
        for (int k = 0; k < found; k++)
            json_array_append_new(rows, change_json(&change, near[k]));
        json_auto_t *object = found > 0 ? json_pack("{s:O}", engine->names[i], rows) : NULL;
        dt_near_text(object, out);
        json_decref(rows);
    }
}

/* The sentence has every rule that the plan breaks. */
static dt_status plan_refuse(const struct dt_engine *engine, const struct dt_values *values)
{
    const struct dt_engine_rule *first = NULL;
    dt_auto_text why = {0};
    int64_t at[DT_ENGINE_NAMES];
    for (int i = 0; i < engine->rule_count; i++) {
        const struct dt_engine_rule *rule = &engine->rules[i];
        if (!rule_breaks(engine, rule, values, at))
            continue;
        dt_text_add(&why, "%s%s (", first != NULL ? "; " : "", rule->sentence);
        dt_expr_explain(rule->expr, at, &why);
        dt_text_add(&why, ")");
        first = first != NULL ? first : rule;
    }
    nearest_add(engine, first->expr, values, &why);
    DT_TRY(dt_text_status(&why));
    return dt_fail(DT_EINFEASIBLE, "%s %s does not take this plan: %s", engine->name,
                   engine->version, dt_text_at(&why));
}

/* Notes a rule that does not decide: something is not known, or it was seen with other models only,
 * and this plan would break it. */
static dt_status note_unchecked(const struct dt_engine *engine, const struct dt_engine_rule *rule,
                                const struct dt_values *values, json_t *notes)
{
    int64_t at[DT_ENGINE_NAMES];
    int unknown;
    if (!expr_decidable(rule->expr, values, &unknown))
        return dt_row_counts(rule->classes, values) && !is_of_device(engine, rule)
                   ? dt_engine_note(notes, json_sprintf("not checked, as '%s' is not known: %s",
                                                        engine->names[unknown], rule->sentence))
                   : DT_OK;
    if (dt_row_counts(rule->classes, values) || !rule_fails(engine, rule, values, at))
        return DT_OK;
    return dt_engine_note(
        notes,
        json_sprintf("not seen with %s, so not forbidden: %s",
                     values->card.transformer[0] != '\0' ? values->card.transformer : "this model",
                     rule->sentence));
}

/* Rules, degrees and counts; notes: of rules that do not decide; NULL: of a plan that
 * has run on the engine. */
static dt_status plan_check(const struct dt_engine *engine, const struct dt_values *values,
                            json_t *notes)
{
    int degree = foreign_degree(engine, values);
    if (plan_fits(engine, values)) {
        for (int i = 0; notes != NULL && i < engine->rule_count; i++)
            DT_TRY(note_unchecked(engine, &engine->rules[i], values, notes));
        return DT_OK;
    }
    if (rules_break(engine, values))
        return plan_refuse(engine, values);
    if (degree >= 0)
        return dt_fail(DT_EINFEASIBLE,
                       "%s %s does not take this plan: it runs %s without the degree '%s' "
                       "(%s=%lld); %s=1 would do",
                       engine->name, engine->version, values->card.name, engine->names[degree],
                       engine->names[degree], (long long)values->at[degree], engine->names[degree]);
    if (replicas_count(engine, values) < 1 || replicas_count(engine, values) > REPLICAS_MOST)
        return dt_fail(DT_EINFEASIBLE, "replicas=%lld is no plan: there are 1 to %d of them",
                       (long long)replicas_count(engine, values), REPLICAS_MOST);
    if (!ranks_add_up(engine, values))
        return dt_fail(
            DT_EINFEASIBLE,
            "%s %s does not take this plan: its degrees make %lld x %lld processes, and it has "
            "%lld x %lld ranks",
            engine->name, engine->version, (long long)values->at[engine->count - 2],
            (long long)values->at[engine->count - 1],
            (long long)values->at[name_index(engine, "ranks")],
            (long long)replicas_count(engine, values));
    return dt_fail(DT_EINFEASIBLE,
                   "%lld processes cannot be as many on each of at most %d hosts with %d slots",
                   (long long)values->at[engine->count - 2], values->hosts, values->slots);
}

dt_status dt_values_check(const struct dt_engine *engine, struct dt_values *values, json_t *notes)
{
    dt_values_legal(engine, values);
    return plan_check(engine, values, notes);
}

dt_status dt_choices_add(const struct dt_engine *engine, const struct dt_values *values,
                         json_t *plan)
{
    for (int i = 0; i < engine->choice_count; i++) {
        const struct dt_engine_choice *choice = &engine->choices[i];
        int64_t at = values->at[choice->name];
        if (at > 0 && json_object_set_new(plan, engine->names[choice->name],
                                          json_string(choice->labels[at])) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
    }
    return DT_OK;
}
