/* SPDX-License-Identifier: MIT */
/* Values for an engine's expressions: the workload's from the entry's key, the plan's by name, and derived ones. A
 * value may be unknown; expressions that need it are then not decided, and a note says so. */
#include "db/engines/engines_int.h"
#include "model/network.h"

#include <string.h>

static int index_of(const struct dt_engine *engine, const char *name)
{
    for (int i = 0; i < engine->count; i++)
        if (strcmp(engine->names[i], name) == 0)
            return i;
    return -1;
}

static void put(const struct dt_engine *engine, struct dt_values *values, const char *name,
                int64_t value)
{
    int i = index_of(engine, name);
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
        put(engine, values, "heads", network.heads);
        put(engine, values, "depth", network.depth);
        put(engine, values, "hidden", network.hidden);
        put(engine, values, "joint_text_tokens", 0);
        int64_t height = values->at[index_of(engine, "latent_height")];
        int64_t width = values->at[index_of(engine, "latent_width")];
        if (values->known[index_of(engine, "latent_height")])
            put(engine, values, "tokens", (height / network.patch) * (width / network.patch));
    }
}

static int64_t job_number(const json_t *key, const char *name, int64_t otherwise)
{
    const json_t *value = json_object_get(json_object_get(key, "job"), name);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

/* A published model: its shape by its card, the size by the job, else the model's usual one. */
static void put_card(const struct dt_engine *engine, struct dt_values *values, const json_t *key,
                     const struct dt_card *card)
{
    struct dt_frames size = {.width = job_number(key, "width", card->usual.width),
                             .height = job_number(key, "height", card->usual.height),
                             .frames = job_number(key, "frames", card->usual.frames)};
    put(engine, values, "heads", card->heads);
    put(engine, values, "depth", card->depth);
    put(engine, values, "hidden", (int64_t)card->heads * card->head_size);
    put(engine, values, "joint_text_tokens", card->joint ? card->text_tokens : 0);
    put(engine, values, "guidance", card->guidance == DT_GUIDANCE_CFG);
    if (dt_card_check_size(card, size) == DT_OK) {
        put(engine, values, "tokens", dt_card_tokens(card, size));
        put(engine, values, "height", size.height);
        put(engine, values, "width", size.width);
        put(engine, values, "latent_height", size.height / card->vae_space);
        put(engine, values, "latent_width", size.width / card->vae_space);
    }
}

static void put_key(const struct dt_engine *engine, struct dt_values *values, const json_t *key,
                    const struct dt_card *card)
{
    enum { PIXELS = 8 }; /* of the image for one of the latent, as model/network.h has it */
    const json_t *height = json_object_get(key, "height"), *width = json_object_get(key, "width");
    const json_t *guidance = json_object_get(key, "guidance");
    const char *dtype = json_string_value(json_object_get(key, "dtype"));
    const char *model = json_string_value(json_object_get(key, "model"));
    if (json_is_integer(height) && json_is_integer(width)) {
        int64_t rows = json_integer_value(height), columns = json_integer_value(width);
        if (rows > 0 && rows < 1 << 20 && columns > 0 && columns < 1 << 20) {
            put(engine, values, "latent_height", rows);
            put(engine, values, "latent_width", columns);
            put(engine, values, "height", PIXELS * rows);
            put(engine, values, "width", PIXELS * columns);
        }
    }
    if (json_is_boolean(guidance))
        put(engine, values, "guidance", json_is_true(guidance));
    if (dtype != NULL)
        put(engine, values, "bfloat16", strcmp(dtype, "bfloat16") == 0);
    if (json_is_integer(json_object_get(key, "devices")))
        put(engine, values, "devices", json_integer_value(json_object_get(key, "devices")));
    if (model != NULL)
        put_network(engine, values, model);
    const char *published =
        json_string_value(json_object_get(json_object_get(key, "job"), "model"));
    if (card != NULL)
        values->card = *card;
    if (card != NULL || (published != NULL && dt_card_known(published, &values->card)))
        put_card(engine, values, key, &values->card);
}

static bool decidable(const struct dt_expr *expr, const struct dt_values *values, int *unknown)
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
    struct dt_expr *expr = NULL;
    int unknown = 0;
    DT_TRY(dt_engine_compile(engine, text, &expr));
    dt_status status;
    if (decidable(expr, values, &unknown))
        status = dt_expr_eval(expr, values->at, result);
    else
        status =
            dt_fail(DT_EUSAGE, "%s %s: '%s' needs '%s', which is unknown for the plan's workload",
                    engine->name, engine->version, text, engine->names[unknown]);
    dt_expr_free(expr);
    return status;
}

dt_status dt_values_when(const struct dt_engine *engine, const json_t *row,
                         const struct dt_values *values, bool *holds)
{
    const char *text = json_string_value(json_object_get(row, "when"));
    struct dt_expr *expr = NULL;
    int64_t result = 1;
    int unknown;
    dt_status status = DT_OK;
    if (text != NULL) {
        DT_TRY(dt_engine_compile(engine, text, &expr));
        if (decidable(expr, values, &unknown))
            status = dt_expr_eval(expr, values->at, &result);
        else
            result = 0;
        dt_expr_free(expr);
    }
    if (status == DT_OK)
        *holds = result != 0;
    return status;
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

dt_status dt_values_read(const struct dt_engine *engine, const struct dt_export_request *request,
                         struct dt_values *values)
{
    const char *name;
    json_t *value;
    *values = (struct dt_values){.program = request->program, .checkpoint = request->checkpoint};
    put_key(engine, values, request->key, request->card);
    json_object_foreach((json_t *)request->constants, name, value)
    {
        int i = index_of(engine, name);
        if (i >= 0 && i < engine->first && json_is_integer(value))
            put(engine, values, name, json_integer_value(value));
    }
    for (int i = engine->first; i < engine->first + engine->parameters; i++)
        DT_TRY(put_parameter(engine, request->plan, i, values));
    DT_TRY(dt_choices_put(engine, request->plan, values));
    static const char *const counts[] = {"processes", "replicas"};
    for (int i = 0; i < 2; i++) {
        int64_t count;
        const char *text = json_string_value(json_object_get(engine->root, counts[i]));
        DT_TRY(dt_values_eval(engine, text, values, &count));
        put(engine, values, counts[i], count);
    }
    return DT_OK;
}

/* The values of one parameter, nearest to its own, with which the rule holds: " (ulysses=4 or ulysses=8 would do)".
 * Nothing when there is none. */
static void add_nearest(const struct dt_engine *engine, const struct dt_expr *expr,
                        const struct dt_values *values, struct dt_text *out)
{
    enum { REACH = 1024 };
    struct dt_names names = dt_expr_names(expr);
    for (int i = engine->first; i < engine->first + engine->parameters; i++) {
        if ((names.bits[i / 64] >> (i % 64) & 1) == 0)
            continue;
        struct dt_values tried = *values;
        int found = 0;
        for (int sign = -1; sign <= 1; sign += 2)
            for (int64_t step = 1; step <= REACH; step++) {
                int64_t holds = 0;
                tried.at[i] = values->at[i] + sign * step;
                if (tried.at[i] < 0 || (tried.at[i] == 0 && values->at[i] > 0))
                    break;
                if (dt_expr_eval(expr, tried.at, &holds) != DT_OK || holds == 0)
                    continue;
                dt_text_add(out, "%s%s=%lld", found++ > 0 ? " or " : "; ", engine->names[i],
                            (long long)tried.at[i]);
                break;
            }
        if (found > 0) {
            dt_text_add(out, " would do");
            return;
        }
    }
}

static dt_status refuse(const struct dt_engine *engine, const struct dt_engine_rule *rule,
                        const struct dt_values *values)
{
    struct dt_text why = {0}, near = {0};
    dt_expr_explain(rule->expr, values->at, &why);
    add_nearest(engine, rule->expr, values, &near);
    dt_status status = dt_text_status(&why);
    if (status == DT_OK)
        status = dt_fail(DT_EINFEASIBLE, "%s %s does not take this plan: %s (%s)%s", engine->name,
                         engine->version, rule->sentence, dt_text_at(&why), dt_text_at(&near));
    dt_text_fini(&why);
    dt_text_fini(&near);
    return status;
}

/* Every degree above 1 is one that the engine takes for the model; an engine that the card does not list takes all. */
static dt_status check_degrees(const struct dt_engine *engine, const struct dt_values *values)
{
    const struct dt_card_engine *row = dt_card_engine(&values->card, engine->name, engine->version);
    for (int i = 0; row != NULL && i < engine->degree_count; i++) {
        const char *degree = engine->names[engine->degrees[i]];
        int64_t value = values->at[engine->degrees[i]];
        if (value > 1 && strcmp(degree, "dp") != 0 && !dt_card_takes(row, degree))
            return dt_fail(DT_EINFEASIBLE,
                           "%s %s does not take this plan: it runs %s without the degree '%s' "
                           "(%s=%lld); %s=1 would do",
                           engine->name, engine->version, values->card.name, degree, degree,
                           (long long)value, degree);
    }
    return DT_OK;
}

static dt_status note_unchecked(const struct dt_engine_rule *rule, const char *unknown,
                                json_t *notes)
{
    if (notes != NULL &&
        json_array_append_new(notes, json_sprintf("not checked, as '%s' is not known: %s", unknown,
                                                  rule->sentence)) != 0)
        return dt_fail(DT_ENOMEM, "out of memory");
    return DT_OK;
}

/* Rules, degrees and counts; notes: of rules that cannot be decided, or NULL. */
static dt_status check(const struct dt_engine *engine, const struct dt_values *values,
                       json_t *notes)
{
    for (int i = 0; i < engine->rule_count; i++) {
        const struct dt_engine_rule *rule = &engine->rules[i];
        int unknown;
        int64_t holds = 0;
        if (!decidable(rule->expr, values, &unknown))
            DT_TRY(note_unchecked(rule, engine->names[unknown], notes));
        else if (dt_expr_eval(rule->expr, values->at, &holds) != DT_OK || holds == 0)
            return refuse(engine, rule, values);
    }
    DT_TRY(check_degrees(engine, values));
    int64_t ranks = values->at[index_of(engine, "ranks")];
    int64_t processes = values->at[engine->count - 2], replicas = values->at[engine->count - 1];
    enum { MOST = 1 << 20 };
    if (processes < 1 || processes > MOST || replicas < 1 || replicas > MOST ||
        processes * replicas != ranks)
        return dt_fail(DT_EINFEASIBLE,
                       "%s %s does not take this plan: its degrees make %lld x %lld processes, and "
                       "it has %lld "
                       "ranks",
                       engine->name, engine->version, (long long)processes, (long long)replicas,
                       (long long)ranks);
    return DT_OK;
}

static dt_status check_quietly(const struct dt_engine *engine, const struct dt_values *values)
{
    return check(engine, values, NULL);
}

dt_status dt_values_check(const struct dt_engine *engine, struct dt_values *values, json_t *notes)
{
    if (check_quietly(engine, values) == DT_EINFEASIBLE)
        dt_choices_settle(engine, values, check_quietly);
    return check(engine, values, notes);
}
