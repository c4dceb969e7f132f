/* SPDX-License-Identifier: MIT */
/* Choices: parameters of an engine whose values are words, such as the attention back end. In expressions a word in quotes is
 * compared with the choice; inside, a value is the index of its word. The first is what the engine does by itself. */
#include "db/engines/engines_int.h"
#include "model/plan.h"

#include <string.h>

static dt_status read_one(const char *what, const char *name, const json_t *row,
                          struct dt_engine_choice *choice)
{
    static const char *const known[] = {"values", "lossy", "does", "source", NULL};
    json_t *values = NULL, *value, *lossy = json_object_get(row, "lossy"), *why;
    const char *source, *word;
    size_t i;
    DT_TRY(dt_json_only(row, what, known));
    DT_TRY(dt_json_string(row, what, "source", &source));
    DT_TRY(dt_json_array(row, what, "values", &values));
    if (json_array_size(values) < 2 || json_array_size(values) > DT_ENGINE_LABELS)
        return dt_fail(DT_EUSAGE, "%s: the choice '%s' has not 2 to %d values", what, name,
                       DT_ENGINE_LABELS);
    json_array_foreach(values, i, value)
    {
        if (!json_is_string(value))
            return dt_fail(DT_EUSAGE, "%s: a value of the choice '%s' is not a word", what, name);
        choice->labels[choice->count++] = json_string_value(value);
    }
    choice->lossy = lossy;
    choice->does = json_object_get(row, "does");
    json_object_foreach(choice->does, word, why)
    {
        if (dt_choice_find(choice, word) < 1 || !json_is_string(why))
            return dt_fail(DT_EUSAGE,
                           "%s: '%s' of 'does' is no value of the choice '%s' but the first, with "
                           "what it does",
                           what, word, name);
    }
    json_object_foreach(lossy, word, why)
    {
        int at = dt_choice_find(choice, word);
        if (at < 1 || !json_is_string(why))
            return dt_fail(DT_EUSAGE,
                           "%s: '%s' of 'lossy' is no value of the choice '%s' but the "
                           "first, with its reason",
                           what, word, name);
    }
    return DT_OK;
}

dt_status dt_choices_read(struct dt_engine *engine, const char *what)
{
    const char *name;
    json_t *row;
    json_object_foreach(json_object_get(engine->root, "choices"), name, row)
    {
        if (engine->choice_count == DT_ENGINE_CHOICES || engine->count > DT_ENGINE_NAMES - 3)
            return dt_fail(DT_EUSAGE, "%s: more than %d choices", what, DT_ENGINE_CHOICES);
        struct dt_engine_choice *choice = &engine->choices[engine->choice_count++];
        DT_TRY(read_one(what, name, row, choice));
        choice->name = engine->count;
        engine->labels[engine->count] = choice->labels;
        engine->label_counts[engine->count] = choice->count;
        engine->names[engine->count++] = name;
    }
    return DT_OK;
}

int dt_choice_find(const struct dt_engine_choice *choice, const char *word)
{
    for (int i = 0; i < choice->count; i++)
        if (strcmp(choice->labels[i], word) == 0)
            return i;
    return -1;
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

dt_status dt_engine_compile(const struct dt_engine *engine, const char *text, struct dt_expr **expr)
{
    const struct dt_vocabulary words = {.names = engine->names,
                                        .labels = engine->labels,
                                        .counts = engine->label_counts,
                                        .count = engine->count};
    return dt_expr_new_of(text, &words, expr);
}

static dt_status refuse_word(const struct dt_engine *engine, const struct dt_engine_choice *choice,
                             const char *word)
{
    struct dt_text list = {0};
    for (int i = 0; i < choice->count; i++)
        dt_text_add(&list, "%s%s", i > 0 ? ", " : "", choice->labels[i]);
    dt_status status = dt_text_status(&list);
    if (status == DT_OK)
        status = dt_fail(DT_EINFEASIBLE,
                         "%s %s does not take this plan: %s=%.80s is none of its values: %s",
                         engine->name, engine->version, engine->names[choice->name],
                         word != NULL ? word : "", dt_text_at(&list));
    dt_text_fini(&list);
    return status;
}

/* A setting of dittune's own network that has the choice's name: no word of the engine, which then chooses by itself. */
static bool is_own(const char *name, const char *word)
{
    for (int i = 0; word != NULL && i < dt_param_count; i++)
        for (int k = 0; dt_params[i].labels != NULL && dt_params[i].labels[k] != NULL; k++)
            if (strcmp(dt_params[i].name, name) == 0 && strcmp(dt_params[i].labels[k], word) == 0)
                return true;
    return false;
}

bool dt_choices_take(const struct dt_engine *engine, const char *name, const json_t *value)
{
    for (int i = 0; i < engine->choice_count; i++)
        if (strcmp(engine->names[engine->choices[i].name], name) == 0)
            return json_is_string(value) &&
                   dt_choice_find(&engine->choices[i], json_string_value(value)) >= 0;
    return false;
}

dt_status dt_choices_put(const struct dt_engine *engine, const json_t *plan,
                         struct dt_values *values)
{
    for (int i = 0; i < engine->choice_count; i++) {
        const struct dt_engine_choice *choice = &engine->choices[i];
        const char *name = engine->names[choice->name];
        const json_t *given = json_object_get(plan, name);
        const char *word = json_string_value(given);
        int at = word != NULL ? dt_choice_find(choice, word) : -1;
        if (at < 0 && given != NULL && !is_own(name, word))
            return refuse_word(engine, choice, word);
        values->at[choice->name] = at < 0 ? 0 : at;
        values->known[choice->name] = true;
        values->open[i] = at < 0;
    }
    return DT_OK;
}

/* The words of the choices from i on. */
static bool settle(const struct dt_engine *engine, int i, struct dt_values *values,
                   dt_status (*check)(const struct dt_engine *engine,
                                      const struct dt_values *values))
{
    if (i == engine->choice_count)
        return check(engine, values) == DT_OK;
    const struct dt_engine_choice *choice = &engine->choices[i];
    int64_t own = values->at[choice->name];
    for (int at = 0; at < (values->open[i] ? choice->count : 1); at++) {
        if (at > 0 && json_object_get(choice->lossy, choice->labels[at]) != NULL)
            continue;
        values->at[choice->name] = values->open[i] ? at : own;
        if (settle(engine, i + 1, values, check))
            return true;
    }
    values->at[choice->name] = own;
    return false;
}

bool dt_choices_settle(const struct dt_engine *engine, struct dt_values *values,
                       dt_status (*check)(const struct dt_engine *engine,
                                          const struct dt_values *values))
{
    return settle(engine, 0, values, check);
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

dt_status dt_choices_note(const struct dt_engine *engine, const struct dt_values *values,
                          json_t *notes)
{
    for (int i = 0; i < engine->choice_count; i++) {
        const struct dt_engine_choice *choice = &engine->choices[i];
        const char *name = engine->names[choice->name],
                   *word = choice->labels[values->at[choice->name]];
        const char *why = json_string_value(json_object_get(choice->lossy, word));
        const char *does = json_string_value(json_object_get(choice->does, word));
        if (values->open[i] && values->at[choice->name] > 0 &&
            json_array_append_new(notes, json_sprintf("%s=%s is added, as %s=%s would break a rule",
                                                      name, word, name, choice->labels[0])) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
        if (does != NULL &&
            json_array_append_new(notes, json_sprintf("%s=%s: %s", name, word, does)) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
        if (why != NULL && json_array_append_new(notes, json_sprintf("%s=%s changes the output: %s",
                                                                     name, word, why)) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
    }
    return DT_OK;
}
