/* SPDX-License-Identifier: MIT */
/* Functions that fill a space before it is sealed. */
#include "base/array.h"
#include "space/diagram/diagram.h"
#include "space/space_int.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dt_status no_memory(void)
{
    return dt_fail(DT_ENOMEM, "out of memory while building a space of plans");
}

dt_status dt_space_new(struct dt_space **space)
{
    struct dt_space *made = calloc(1, sizeof *made);
    if (made == NULL)
        return no_memory();
    *space = made;
    return DT_OK;
}

static void free_axis(struct dt_axis *axis)
{
    for (int i = 0; axis->labels != NULL && i < axis->count; i++)
        free((char *)axis->labels[i]);
    free((void *)axis->labels);
    free((void *)axis->values);
    free((char *)axis->name);
    free((char *)axis->doc);
    free((char *)axis->variable);
    free((char *)axis->when);
}

void dt_space_free(struct dt_space *space)
{
    if (space == NULL)
        return;
    for (int i = 0; i < space->axis_count; i++) {
        free_axis(&space->axes[i]);
        dt_expr_free(space->when[i]);
    }
    for (int i = 0; i < space->constants.count; i++)
        free(space->constants.names[i]);
    for (int i = 0; i < space->derived_count; i++)
        free(space->derived[i].name);
    for (int i = 0; i < space->rule_count; i++) {
        free(space->rules[i].text);
        free(space->rules[i].sentence);
        dt_cases_free(space->rules[i].cases);
        dt_expr_free(space->rules[i].expr);
    }
    for (int i = 0; i < space->owned_count; i++)
        space->owned[i].free(space->owned[i].context);
    free(space->rules);
    free(space->rows);
    free(space->relaxation.kept);
    dt_diagram_free(space->diagram);
    free(space);
}

/* A name must be a word of the rules' language, short, and unused. */
static dt_status check_name(const struct dt_space *space, const char *name)
{
    static const char *const words[] = {"in",  "min",  "max",   "and",  "or",
                                        "not", "true", "false", "True", "False"};
    size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.-");
    bool begins = n > 0 && (name[0] < '0' || name[0] > '9') && name[0] != '.' && name[0] != '-';
    if (!begins || n != strlen(name) || n > 63 || name[n - 1] == '.' || name[n - 1] == '-')
        return dt_fail(DT_EUSAGE,
                       "'%.80s' is not a name: letters, digits, '_', '-' and '.', at most 63, "
                       "begun by a letter or '_' and not ended by '-' or '.'",
                       name);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(name, words[i]) == 0)
            return dt_fail(DT_EUSAGE, "'%s' cannot be a name, it is a word of the rules", name);
    bool taken = dt_space_find(space, name) >= 0;
    for (int i = 0; i < space->constants.count; i++)
        taken = taken || strcmp(space->constants.names[i], name) == 0;
    for (int i = 0; i < space->derived_count; i++)
        taken = taken || strcmp(space->derived[i].name, name) == 0;
    return taken ? dt_fail(DT_EUSAGE, "the name '%s' is given twice", name) : DT_OK;
}

/* Labels must survive name='label', name="label". */
static dt_status check_label(const struct dt_axis *axis, const char *label)
{
    bool both = strchr(label, '\'') != NULL && strchr(label, '"') != NULL, control = false;
    for (const char *at = label; *at != '\0'; at++)
        control = control || (unsigned char)*at < ' ';
    if (both || control || strlen(label) > 255)
        return dt_fail(DT_EUSAGE,
                       "parameter '%s': '%.80s' cannot be a value, it has more than 255 bytes, a "
                       "control character or quotes of both sorts",
                       axis->name, label);
    return DT_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static dt_status check_labels(const struct dt_axis *axis)
{
    size_t n = (size_t)axis->count;
    for (size_t i = 0; i < n; i++)
        DT_TRY(check_label(axis, axis->labels[i]));
    const char **sorted = calloc(n, sizeof *sorted);
    if (sorted == NULL)
        return no_memory();
    memcpy((void *)sorted, (const void *)axis->labels, n * sizeof *sorted);
    qsort((void *)sorted, n, sizeof *sorted, by_text);
    dt_status status = DT_OK;
    for (size_t i = 1; status == DT_OK && i < n; i++)
        if (strcmp(sorted[i], sorted[i - 1]) == 0)
            status = dt_fail(DT_EUSAGE, "parameter '%s': the value '%s' is given twice", axis->name,
                             sorted[i]);
    free((void *)sorted);
    return status;
}

static dt_status check_values(const struct dt_axis *axis)
{
    if (axis->count < 1 || axis->count > DT_VALUES_MAX)
        return dt_fail(DT_EUSAGE, "parameter '%s' has %d values, expected 1 to %d", axis->name,
                       axis->count, DT_VALUES_MAX);
    if (axis->fallback < 0 || axis->fallback >= axis->count)
        return dt_fail(DT_EUSAGE, "parameter '%s': its default is none of its values", axis->name);
    if (axis->labels != NULL)
        DT_TRY(check_labels(axis));
    for (int i = 1; axis->labels == NULL && i < axis->count; i++)
        if (axis->values[i] <= axis->values[i - 1])
            return dt_fail(DT_EUSAGE, "parameter '%s': its values must ascend, %lld follows %lld",
                           axis->name, (long long)axis->values[i], (long long)axis->values[i - 1]);
    return DT_OK;
}

static bool copy_text(const char *from, const char **to)
{
    *to = from != NULL ? strdup(from) : NULL;
    return from == NULL || *to != NULL;
}

static bool copy_axis(const struct dt_axis *from, struct dt_axis *to)
{
    size_t n = (size_t)from->count;
    int64_t *values = calloc(n, sizeof *values);
    const char **labels = from->labels != NULL ? calloc(n, sizeof *labels) : NULL;
    *to = (struct dt_axis){.role = from->role,
                           .count = from->count,
                           .fallback = from->fallback,
                           .unit = from->unit,
                           .digits = from->digits,
                           .truth = from->truth};
    to->values = values;
    to->labels = labels;
    if (values == NULL || (from->labels != NULL && labels == NULL))
        return false;
    for (size_t i = 0; i < n; i++) {
        values[i] = from->labels != NULL ? (int64_t)i : from->values[i];
        if (labels != NULL && !copy_text(from->labels[i], &labels[i]))
            return false;
    }
    return copy_text(from->name, &to->name) &&
           copy_text(from->doc != NULL ? from->doc : "", &to->doc) &&
           copy_text(from->variable, &to->variable) && copy_text(from->when, &to->when);
}

static dt_status read_when(const struct dt_space *space, const struct dt_axis *axis,
                           struct dt_expr **when)
{
    char why[600];
    dt_status status = dt_when_compile(space, axis->when, when);
    snprintf(why, sizeof why, "%s", dt_message());
    if (status != DT_EUSAGE)
        return status;
    return dt_fail(
        DT_EUSAGE,
        "parameter '%s': its 'when' cannot be read: %s; it may name the parameters before "
        "this one, so that none depends on itself",
        axis->name, why);
}

dt_status dt_space_add_axis(struct dt_space *space, const struct dt_axis *axis)
{
    DT_TRY(check_name(space, axis->name));
    DT_TRY(check_values(axis));
    if (space->axis_count == DT_AXES_MAX)
        return dt_fail(DT_EUSAGE, "parameter '%s' is one more than the %d allowed", axis->name,
                       DT_AXES_MAX);
    struct dt_axis copy;
    struct dt_expr *when = NULL;
    if (axis->when != NULL)
        DT_TRY(read_when(space, axis, &when));
    if (!copy_axis(axis, &copy)) {
        free_axis(&copy);
        dt_expr_free(when);
        return no_memory();
    }
    space->when[space->axis_count] = when;
    space->axes[space->axis_count++] = copy;
    return DT_OK;
}

dt_status dt_space_add_constant(struct dt_space *space, const char *name, int64_t value)
{
    DT_TRY(check_name(space, name));
    if (space->constants.count == DT_CONSTANTS_MAX)
        return dt_fail(DT_EUSAGE, "constant '%s' is one more than the %d allowed", name,
                       DT_CONSTANTS_MAX);
    char *copy = strdup(name);
    if (copy == NULL)
        return no_memory();
    space->constants.names[space->constants.count] = copy;
    space->constants.values[space->constants.count++] = value;
    return DT_OK;
}

static dt_status add_rule(struct dt_space *space, const char *expr, const char *sentence,
                          bool python)
{
    if (space->rule_count == DT_RULES_MAX)
        return dt_fail(DT_EUSAGE, "rule '%.80s' is one more than the %d allowed", expr,
                       DT_RULES_MAX);
    DT_TRY(DT_GROW(space->rules, space->rule_count, 1));
    struct dt_rule *rule = &space->rules[space->rule_count];
    *rule = (struct dt_rule){.text = strdup(expr), .python = python};
    if (sentence != NULL)
        rule->sentence = strdup(sentence);
    if (rule->text == NULL || (sentence != NULL && rule->sentence == NULL)) {
        free(rule->text);
        return no_memory();
    }
    space->rule_count++;
    return DT_OK;
}

/* Rules that only prune come last, so that the others have the numbers 0..listed-1. */
static dt_status add_listed(struct dt_space *space, const char *expr, const char *sentence,
                            bool python)
{
    const char *say = sentence != NULL && sentence[0] != '\0' ? sentence : expr;
    DT_TRY(add_rule(space, expr, say, python));
    int last = space->rule_count - 1;
    struct dt_rule added = space->rules[last];
    memmove(&space->rules[space->listed + 1], &space->rules[space->listed],
            (size_t)(last - space->listed) * sizeof added);
    space->rules[space->listed++] = added;
    return DT_OK;
}

dt_status dt_space_add_rule(struct dt_space *space, const char *expr, const char *sentence)
{
    return add_listed(space, expr, sentence, false);
}

dt_status dt_space_add_python(struct dt_space *space, const char *expr, const char *sentence)
{
    return add_listed(space, expr, sentence, true);
}

dt_status dt_space_add_prune(struct dt_space *space, const char *expr)
{
    return add_rule(space, expr, NULL, false);
}

dt_status dt_space_add_cases(struct dt_space *space, const struct dt_cases *table)
{
    struct dt_cases *copy = dt_cases_copy(table);
    struct dt_text text = {0}, sentence = {0};
    double all = 1;
    uint32_t axes = 0;
    if (copy == NULL)
        return no_memory();
    copy->count = (int)dt_points_sort(copy->rows, copy->count);
    for (int i = 0; i < copy->width; i++) {
        all *= space->axes[copy->axes[i]].count;
        axes |= UINT32_C(1) << copy->axes[i];
        dt_text_add(&text, "%s%s", i > 0 ? ", " : "", space->axes[copy->axes[i]].name);
    }
    dt_text_add(&sentence, "%s must be as in one of the cases", dt_text_at(&text));
    dt_text_add(&text, " in %d cases", copy->count);
    bool rules_out = copy->count < all;
    dt_status status = DT_OK;
    if (rules_out)
        status = add_listed(space, dt_text_at(&text), dt_text_at(&sentence), false);
    dt_text_fini(&text);
    dt_text_fini(&sentence);
    if (status != DT_OK || !rules_out) {
        dt_cases_free(copy);
        return status;
    }
    space->rules[space->listed - 1].cases = copy;
    space->rules[space->listed - 1].axes = axes;
    return DT_OK;
}

dt_status dt_space_add_derived(struct dt_space *space, const char *name, const char *const uses[],
                               dt_derive *function, const void *context)
{
    uint32_t axes = uses == NULL ? UINT32_MAX : 0;
    DT_TRY(check_name(space, name));
    for (int i = 0; uses != NULL && uses[i] != NULL; i++) {
        int axis = dt_space_find(space, uses[i]);
        if (axis < 0)
            return dt_fail(DT_EUSAGE, "'%s' uses '%s', which is not a parameter", name, uses[i]);
        axes |= UINT32_C(1) << axis;
    }
    if (space->derived_count == DT_DERIVED_MAX)
        return dt_fail(DT_EUSAGE, "'%s' is one more derived name than the %d allowed", name,
                       DT_DERIVED_MAX);
    char *copy = strdup(name);
    if (copy == NULL)
        return no_memory();
    space->derived[space->derived_count++] =
        (struct dt_derived){.name = copy, .axes = axes, .function = function, .context = context};
    return DT_OK;
}

void dt_space_set_complete(struct dt_space *space, dt_complete *function, const void *context)
{
    space->complete = function;
    space->complete_context = context;
}

void dt_space_own(struct dt_space *space, void *context, void (*free_context)(void *))
{
    assert(space->owned_count < DT_OWNED_MAX);
    space->owned[space->owned_count++] =
        (struct dt_owned){.context = context, .free = free_context};
}
