/* SPDX-License-Identifier: MIT */
/* Functions that fill a space before it is sealed. */
#include "base/array.h"
#include "space/diagram/diagram.h"
#include "space/space_int.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A list of cases as a rule: the rows are sorted, so that a case, and all cases with the same
 * beginning, are found by halving. */

void dt_cases_free(struct dt_cases *table)
{
    if (table != NULL)
        free(table->rows);
    free(table);
}

struct dt_cases *dt_cases_copy(const struct dt_cases *table)
{
    size_t bytes = (size_t)table->count * sizeof *table->rows;
    struct dt_cases *copy = malloc(sizeof *copy);
    struct dt_point *rows = malloc(bytes + 1);
    if (copy == NULL || rows == NULL) {
        free(copy);
        free(rows);
        return NULL;
    }
    *copy = *table;
    copy->rows = rows;
    memcpy(rows, table->rows, bytes);
    return copy;
}

/* The first row that begins with the key's first `length` values, or with greater ones. */
static int first_row(const struct dt_cases *table, const struct dt_point *key, int length)
{
    int low = 0, high = table->count;
    while (low < high) {
        int middle = low + (high - low) / 2, i = 0;
        while (i < length && table->rows[middle].index[i] == key->index[i])
            i++;
        if (i < length && table->rows[middle].index[i] < key->index[i])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool begins_with_key(const struct dt_cases *table, int row, const struct dt_point *key,
                            int length)
{
    return row < table->count &&
           memcmp(table->rows[row].index, key->index, (size_t)length * sizeof key->index[0]) == 0;
}

bool dt_cases_has(const struct dt_space *space, const struct dt_cases *table,
                  const int64_t values[])
{
    struct dt_point key = {{0}};
    for (int i = 0; i < table->width; i++)
        key.index[i] = dt_axis_find(&space->axes[table->axes[i]], values[table->axes[i]]);
    return begins_with_key(table, first_row(table, &key, table->width), &key, table->width);
}

bool dt_cases_move(const struct dt_cases *table, int axis, int index, struct dt_point *point)
{
    struct dt_point key = {{0}};
    int at = 0, best = -1, least = DT_AXES_MAX;
    for (int i = 0; i < table->width; i++)
        key.index[i] = point->index[table->axes[i]];
    while (at < table->width && table->axes[at] != axis)
        at++;
    key.index[at] = index;
    for (int row = first_row(table, &key, at + 1); begins_with_key(table, row, &key, at + 1);
         row++) {
        int changes = 0;
        for (int i = at + 1; i < table->width; i++)
            changes += table->rows[row].index[i] != key.index[i];
        best = changes < least ? row : best;
        least = changes < least ? changes : least;
    }
    for (int i = 0; best >= 0 && i < table->width; i++)
        point->index[table->axes[i]] = table->rows[best].index[i];
    return best >= 0;
}

int dt_space_cases(const struct dt_space *space, int rule)
{
    return space->rules[rule].cases != NULL ? space->rules[rule].cases->count : 0;
}

void dt_cases_order(const struct dt_space *space, const struct dt_cases *table, int order[])
{
    for (int i = 0; i < table->width; i++) {
        int at = i;
        const char *name = space->axes[table->axes[i]].name;
        for (; at > 0 && strcmp(space->axes[table->axes[order[at - 1]]].name, name) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

void dt_space_case(const struct dt_space *space, int rule, int i, struct dt_text *out)
{
    const struct dt_cases *table = space->rules[rule].cases;
    int order[DT_AXES_MAX];
    dt_cases_order(space, table, order);
    for (int k = 0; k < table->width; k++) {
        const struct dt_axis *axis = &space->axes[table->axes[order[k]]];
        dt_text_add(out, "%s%s=", k > 0 ? " " : "", axis->name);
        dt_axis_text(axis, axis->values[table->rows[i].index[order[k]]], out);
    }
}

void dt_cases_text(const struct dt_space *space, const struct dt_cases *table,
                   const int64_t values[], struct dt_text *out)
{
    for (int i = 0; i < table->width; i++) {
        const struct dt_axis *axis = &space->axes[table->axes[i]];
        dt_text_add(out, "%s%s=", i > 0 ? " " : "", axis->name);
        dt_axis_text(axis, values[table->axes[i]], out);
    }
}

/* Parameters that exist under a condition on earlier ones: elsewhere such an axis has its default
 * alone, which a rule says, and texts and JSON of a plan have no value of it. */

static bool names_axis(const struct dt_expr *expr, int axis)
{
    struct dt_names names = dt_expr_names(expr);
    return (names.bits[axis / 64] >> (axis % 64) & 1) != 0;
}

/* Names that rules may use. */
struct words {
    const char *names[DT_SCOPE_MAX];
    const char *const *labels[DT_SCOPE_MAX];
    int counts[DT_SCOPE_MAX], digits[DT_SCOPE_MAX];
    struct dt_vocabulary vocabulary;
};

static void collect_words(const struct dt_space *space, struct words *words)
{
    int n = 0;
    *words = (struct words){.counts = {0}};
    for (int i = 0; i < space->axis_count; i++) {
        words->labels[n] = space->axes[i].labels;
        words->counts[n] = space->axes[i].count + space->axes[i].words;
        words->digits[n] = space->axes[i].digits;
        words->names[n++] = space->axes[i].name;
    }
    for (int i = 0; i < space->constants.count; i++)
        words->names[n++] = space->constants.names[i];
    for (int i = 0; i < space->derived_count; i++)
        words->names[n++] = space->derived[i].name;
    words->vocabulary = (struct dt_vocabulary){.names = words->names,
                                               .labels = words->labels,
                                               .counts = words->counts,
                                               .digits = words->digits,
                                               .count = n};
}

/* Compiles an expression of the space's names. */
static dt_status space_expr(const struct dt_space *space, const char *text, bool python,
                            struct dt_expr **expr)
{
    struct words words;
    collect_words(space, &words);
    words.vocabulary.python = python;
    return dt_expr_new_of(text, &words.vocabulary, expr);
}

/* Compiles the `when` of an axis that is added next.
 * The condition, and those of the axes that it names: what depends on an axis that does not
 * exist does not, either. */
static dt_status when_compile(const struct dt_space *space, const char *when, struct dt_expr **out)
{
    DT_CLEANUP(dt_expr_free_at) struct dt_expr *own = NULL;
    dt_auto_text text = {0};
    DT_TRY(space_expr(space, when, false, &own));
    for (int i = 0; i < space->axis_count; i++) /* before it is computed with what does not exist */
        if (space->when[i] != NULL && names_axis(own, i))
            dt_text_add(&text, "%s && ", dt_expr_text(space->when[i]));
    dt_text_add(&text, "(%s)", when);
    DT_TRY(dt_text_status(&text));
    return space_expr(space, dt_text_at(&text), false, out);
}

/* Lets a compiled rule hold where an axis that it names does not exist. */
static bool axis_exists(const struct dt_space *space, int axis, const int64_t values[])
{
    int64_t value;
    return space->when[axis] == NULL ||
           (dt_expr_eval(space->when[axis], values, &value) == DT_OK && value != 0);
}

bool dt_point_has(const struct dt_space *space, const struct dt_point *point, int axis)
{
    int64_t values[DT_AXES_MAX];
    if (space->when[axis] == NULL)
        return true;
    dt_point_values(space, point, values);
    return axis_exists(space, axis, values);
}

bool dt_value_shown(const struct dt_space *space, int axis, const int64_t values[])
{
    const struct dt_axis *row = &space->axes[axis];
    return values[axis] != row->values[row->fallback] || axis_exists(space, axis, values);
}

/* Adds the rules that an axis has its default where it does not exist. */
static dt_status when_rules(struct dt_space *space)
{
    for (int i = 0; i < space->axis_count; i++) {
        const struct dt_axis *axis = &space->axes[i];
        dt_auto_text text = {0}, sentence = {0};
        if (space->when[i] == NULL || axis->count == 1)
            continue;
        dt_text_add(&text, "%s == ", axis->name);
        if (axis->labels != NULL)
            dt_text_add(&text,
                        strchr(axis->labels[axis->fallback], '\'') == NULL ? "'%s'" : "\"%s\"",
                        axis->labels[axis->fallback]);
        else
            dt_axis_plain(axis, axis->values[axis->fallback], &text);
        /* A condition that cannot be computed does not hold. */
        dt_text_add(&text, " || (%s)", dt_expr_text(space->when[i]));
        dt_text_add(&sentence, "%s exists only when %s", axis->name, axis->when);
        DT_TRY(dt_space_add_rule(space, dt_text_at(&text), dt_text_at(&sentence)));
        space->rules[space->listed - 1].of_when = true;
    }
    return DT_OK;
}

static dt_status when_guard(const struct dt_space *space, struct dt_rule *rule)
{
    dt_auto_text text = {0};
    for (int i = 0; !rule->of_when && i < space->axis_count; i++)
        if (space->when[i] != NULL && names_axis(rule->expr, i))
            dt_text_add(&text, "!(%s) || ", dt_expr_text(space->when[i]));
    if (text.size == 0)
        return DT_OK;
    dt_text_add(&text, "(%s)", rule->text);
    struct dt_expr *guarded = NULL;
    DT_TRY(dt_text_status(&text));
    if (rule->python)
        return dt_fail(DT_EUSAGE,
                       "the rule '%.80s' in Python names a parameter with a 'when': write it in "
                       "the language of rules, with 'if'",
                       rule->text);
    DT_TRY(space_expr(space, dt_text_at(&text), false, &guarded));
    dt_expr_free(rule->expr);
    rule->expr = guarded;
    return DT_OK;
}

static const char building[] = "while building a space of plans";

dt_status dt_space_new(struct dt_space **space)
{
    struct dt_space *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_no_memory(building);
    *space = made;
    return DT_OK;
}

static void free_axis(struct dt_axis *axis)
{
    for (int i = 0; axis->labels != NULL && i < axis->count + axis->words; i++)
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
    size_t n = (size_t)(axis->count + axis->words);
    for (size_t i = 0; i < n; i++)
        DT_TRY(check_label(axis, axis->labels[i]));
    dt_auto_free const char **sorted = calloc(n, sizeof *sorted);
    if (sorted == NULL)
        return dt_no_memory(building);
    memcpy((void *)sorted, (const void *)axis->labels, n * sizeof *sorted);
    qsort((void *)sorted, n, sizeof *sorted, by_text);
    for (size_t i = 1; i < n; i++)
        if (strcmp(sorted[i], sorted[i - 1]) == 0)
            return dt_fail(DT_EUSAGE, "parameter '%s': the value '%s' is given twice", axis->name,
                           sorted[i]);
    return DT_OK;
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
    size_t n = (size_t)from->count, all = n + (size_t)from->words;
    int64_t *values = calloc(n, sizeof *values);
    const char **labels = from->labels != NULL ? calloc(all, sizeof *labels) : NULL;
    *to = (struct dt_axis){.role = from->role,
                           .count = from->count,
                           .words = from->words,
                           .fallback = from->fallback,
                           .unit = from->unit,
                           .digits = from->digits,
                           .truth = from->truth};
    to->values = values;
    to->labels = labels;
    if (values == NULL || (from->labels != NULL && labels == NULL))
        return false;
    for (size_t i = 0; i < n; i++)
        values[i] = from->labels != NULL ? (int64_t)i : from->values[i];
    for (size_t i = 0; labels != NULL && i < all; i++)
        if (!copy_text(from->labels[i], &labels[i]))
            return false;
    return copy_text(from->name, &to->name) &&
           copy_text(from->doc != NULL ? from->doc : "", &to->doc) &&
           copy_text(from->variable, &to->variable) && copy_text(from->when, &to->when);
}

static dt_status read_when(const struct dt_space *space, const struct dt_axis *axis,
                           struct dt_expr **when)
{
    dt_status status = when_compile(space, axis->when, when);
    if (status != DT_EUSAGE)
        return status;
    return dt_fail(
        DT_EUSAGE,
        "parameter '%s': its 'when' cannot be read: %.599s; it may name the parameters before "
        "this one, so that none depends on itself",
        axis->name, dt_message());
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
        return dt_no_memory(building);
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
        return dt_no_memory(building);
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
        return dt_no_memory(building);
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
    DT_CLEANUP(dt_cases_free_at) struct dt_cases *copy = dt_cases_copy(table);
    dt_auto_text text = {0}, sentence = {0};
    double all = 1;
    uint32_t axes = 0;
    if (copy == NULL)
        return dt_no_memory(building);
    copy->count = (int)dt_points_sort(copy->rows, copy->count);
    for (int i = 0; i < copy->width; i++) {
        all *= space->axes[copy->axes[i]].count;
        axes |= UINT32_C(1) << copy->axes[i];
        dt_text_add(&text, "%s%s", i > 0 ? ", " : "", space->axes[copy->axes[i]].name);
    }
    dt_text_add(&sentence, "%s must be as in one of the cases", dt_text_at(&text));
    dt_text_add(&text, " in %d cases", copy->count);
    if (copy->count >= all)
        return DT_OK; /* they rule nothing out */
    DT_TRY(add_listed(space, dt_text_at(&text), dt_text_at(&sentence), false));
    space->rules[space->listed - 1].cases = copy;
    space->rules[space->listed - 1].axes = axes;
    copy = NULL;
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
        return dt_no_memory(building);
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

/* Sealing: the rules are compiled, then the diagram is built in the order in which the axes were
 * declared, or, when that gets too wide, in an order chosen to keep it narrow. When that fails,
 * too, the rules with the most combinations are left out of the diagram: its points are then drawn
 * and tested, which is uniform over the feasible points. */

/* The first bound is about a tenth of a second and 50 MiB; the second a second and 300 MiB. */
static const struct dt_bound quick = {.work = 60000000, .edges = 4000000},
                             patient = {.work = 600000000, .edges = 16000000};

static bool has_name(struct dt_names names, int i)
{
    return (names.bits[i / 64] >> (i % 64) & 1) != 0;
}

static void analyse_rule(const struct dt_space *space, struct dt_rule *rule)
{
    struct dt_names names = dt_expr_names(rule->expr);
    int first = space->axis_count + space->constants.count;
    for (int i = 0; i < space->axis_count; i++)
        if (has_name(names, i))
            rule->axes |= UINT32_C(1) << i;
    for (int i = 0; i < space->derived_count; i++) {
        if (has_name(names, first + i)) {
            rule->derived |= UINT32_C(1) << i;
            rule->axes |= space->derived[i].axes;
        }
    }
}

static dt_status compile_rules(struct dt_space *space)
{
    DT_TRY(when_rules(space));
    for (int i = 0; i < space->derived_count; i++)
        if (space->axis_count < DT_AXES_MAX)
            space->derived[i].axes &= (UINT32_C(1) << space->axis_count) - 1;
    for (int i = 0; i < space->rule_count; i++) {
        struct dt_rule *rule = &space->rules[i];
        if (rule->cases != NULL)
            continue;
        DT_TRY(space_expr(space, rule->text, rule->python, &rule->expr));
        DT_TRY(when_guard(space, rule));
        analyse_rule(space, rule);
    }
    return DT_OK;
}

dt_status dt_space_test(const struct dt_space *space, const char *condition,
                        const struct dt_point *point, bool *holds, uint32_t *axes)
{
    DT_CLEANUP(dt_expr_free_at) struct dt_expr *expr = NULL;
    int64_t values[DT_AXES_MAX], scope[DT_SCOPE_MAX], result = 0;
    bool exist = true;
    DT_TRY(space_expr(space, condition, false, &expr));
    for (int i = 0; i < space->axis_count; i++)
        if (has_name(dt_expr_names(expr), i)) {
            *axes |= UINT32_C(1) << i;
            exist = exist && (point == NULL || dt_point_has(space, point, i));
        }
    if (point != NULL) {
        dt_point_values(space, point, values);
        dt_space_scope(space, values, scope);
        *holds = exist && dt_expr_eval(expr, scope, &result) == DT_OK && result != 0;
    }
    return DT_OK;
}

static double count_combinations(const struct dt_space *space, uint32_t axes)
{
    double product = 1;
    for (int i = 0; i < space->axis_count; i++)
        if (axes >> i & 1)
            product *= space->axes[i].count;
    return product;
}

/* Rules of one axis, and cases, cost little. */
static bool is_light(const struct dt_rule *rule)
{
    return rule->cases != NULL || (rule->axes & (rule->axes - 1)) == 0;
}

/* Builds the diagram of the light rules and those with at most `most` combinations. */
static dt_status build_points(struct dt_space *space, double most, const struct dt_bound *bound)
{
    dt_auto_free uint32_t *axes = calloc((size_t)space->rule_count + 1, sizeof *axes);
    int order[DT_AXES_MAX], n = 0;
    if (axes == NULL)
        return dt_no_memory(dt_diagram_enumerating);
    for (int i = 0; i < space->rule_count; i++) {
        space->relaxation.kept[i] =
            is_light(&space->rules[i]) || count_combinations(space, space->rules[i].axes) <= most;
        if (space->relaxation.kept[i])
            axes[n++] = space->rules[i].axes;
    }
    dt_diagram_order(space, axes, n, order);
    return dt_diagram_new(space, order, space->relaxation.kept, bound, &space->diagram);
}

/* Tries fewer and fewer rules; the light ones can always be kept. */
static dt_status relax_space(struct dt_space *space)
{
    dt_status status = DT_EUNSUP;
    space->relaxation.used = true;
    space->count = -1;
    for (double most = 1e8; status == DT_EUNSUP && most >= 10; most /= 50)
        status = build_points(space, most, &quick);
    if (status == DT_EUNSUP)
        status = build_points(space, 0, &patient);
    DT_TRY(status);
    return dt_space_probe(space);
}

static dt_status enumerate_points(struct dt_space *space)
{
    int order[DT_AXES_MAX];
    for (int i = 0; i < space->axis_count; i++)
        order[i] = i;
    for (int i = 0; i < space->rule_count; i++)
        space->relaxation.kept[i] = true;
    dt_status status =
        dt_diagram_new(space, order, space->relaxation.kept, &quick, &space->diagram);
    if (status == DT_EUNSUP)
        status = build_points(space, HUGE_VAL, &patient);
    if (status == DT_EUNSUP)
        return relax_space(space);
    DT_TRY(status);
    space->count = space->diagram->count;
    return dt_space_list(space);
}

dt_status dt_space_compile(struct dt_space *space)
{
    space->count = -1;
    return compile_rules(space);
}

static dt_status seal_space(struct dt_space *space)
{
    DT_TRY(compile_rules(space));
    space->relaxation.kept = calloc((size_t)space->rule_count + 1, sizeof *space->relaxation.kept);
    return space->relaxation.kept != NULL ? enumerate_points(space)
                                          : dt_no_memory(dt_diagram_enumerating);
}

/* *never: the condition of an axis holds for no values of those before it. One that cannot be
 * enumerated may hold. */
static dt_status holds_never(const struct dt_space *space, int axis, bool *never)
{
    DT_CLEANUP(dt_space_free_at) struct dt_space *before = NULL;
    DT_TRY(dt_space_new(&before));
    dt_status status = DT_OK;
    for (int i = 0; status == DT_OK && i < axis; i++)
        status = dt_space_add_axis(before, &space->axes[i]);
    for (int i = 0; status == DT_OK && i < space->rule_count; i++)
        if (space->rules[i].cases != NULL && space->rules[i].axes >> axis == 0)
            status = dt_space_add_cases(before, space->rules[i].cases);
    if (status == DT_OK)
        status = dt_space_add_rule(before, dt_expr_text(space->when[axis]), NULL);
    if (status == DT_OK) {
        before->rules[before->listed - 1].of_when = true;
        status = seal_space(before);
    }
    *never = status == DT_OK && before->count == 0;
    return status == DT_EUNSUP ? DT_OK : status;
}

dt_status dt_space_seal(struct dt_space *space)
{
    bool never = false;
    DT_TRY(seal_space(space));
    for (int i = 0; i < space->axis_count; i++) {
        if (space->when[i] != NULL)
            DT_TRY(holds_never(space, i, &never));
        if (never)
            return dt_fail(DT_EUSAGE,
                           "parameter '%s' never exists: its 'when' holds for no values of the "
                           "parameters before it: %s",
                           space->axes[i].name, space->axes[i].when);
    }
    return DT_OK;
}

bool dt_space_listed(const struct dt_space *space)
{
    return space->count >= 0;
}
