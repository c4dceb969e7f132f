/* SPDX-License-Identifier: MIT */
/* Compares the space in which a plan was tuned with that of a question: the plan is carried over
 * where its parameters are the same ones, and stays unless it breaks a rule (fit.c). */
#include "base/json.h"
#include "db/lookup/lookup_int.h"

#include <string.h>

#define CHANGES_MOST 4 /* in a sentence */

static void value_add(const struct dt_axis *axis, int value, struct dt_text *out)
{
    dt_axis_plain(axis, axis->values[value], out);
}

/* For axes with values of one kind; decimals may have other digits. */
static bool same_value(const struct dt_axis *axis, int value, const struct dt_axis *other, int its)
{
    int64_t a = axis->values[value], b = other->values[its];
    if (axis->labels != NULL && other->labels != NULL)
        return strcmp(axis->labels[value], other->labels[its]) == 0;
    return axis->digits == other->digits ? a == b
                                         : dt_axis_number(axis, a) == dt_axis_number(other, b);
}

/* Index of the value in the other axis, which has values of the same kind; -1: it has none. */
static int find_value(const struct dt_axis *axis, int value, const struct dt_axis *other)
{
    for (int i = 0; i < other->count; i++)
        if (same_value(axis, value, other, i))
            return i;
    return -1;
}

static bool same_text(const char *a, const char *b)
{
    return (a == NULL && b == NULL) || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static dt_status default_differs(const struct dt_axis *was, const struct dt_axis *now)
{
    dt_auto_text text = {0};
    value_add(was, was->fallback, &text);
    dt_text_add(&text, ", and is ");
    value_add(now, now->fallback, &text);
    dt_status status =
        dt_fail(DT_EINFEASIBLE, "the default of %s was %s", was->name, dt_text_at(&text));
    return status;
}

static dt_status axis_check(const struct dt_axis *was, const struct dt_axis *now)
{
    if ((was->labels == NULL) != (now->labels == NULL) || was->truth != now->truth)
        return dt_fail(DT_EINFEASIBLE, "the values of %s were of another kind", was->name);
    if (was->role != now->role || !same_text(was->variable, now->variable))
        return dt_fail(DT_EINFEASIBLE, "%s had the role %s%s%s, and has the role %s%s%s", was->name,
                       dt_role_text(was->role), was->variable != NULL ? " of " : "",
                       was->variable != NULL ? was->variable : "", dt_role_text(now->role),
                       now->variable != NULL ? " of " : "",
                       now->variable != NULL ? now->variable : "");
    if (!same_text(was->when, now->when))
        return dt_fail(DT_EINFEASIBLE, "%s existed %s%s, and exists %s%s", was->name,
                       was->when != NULL ? "when " : "always", was->when != NULL ? was->when : "",
                       now->when != NULL ? "when " : "always", now->when != NULL ? now->when : "");
    int same = find_value(was, was->fallback, now);
    return same == now->fallback ? DT_OK : default_differs(was, now);
}

dt_status dt_space_carries(const struct dt_space *was, const struct dt_space *now)
{
    for (int i = 0; i < dt_space_axes(was); i++) {
        const struct dt_axis *axis = dt_space_axis(was, i);
        int at = dt_space_find(now, axis->name);
        if (at < 0)
            return dt_fail(DT_EINFEASIBLE, "it was tuned with the parameter %s, which is gone",
                           axis->name);
        DT_TRY(axis_check(axis, dt_space_axis(now, at)));
    }
    for (int i = 0; i < dt_space_axes(now); i++)
        if (dt_space_find(was, dt_space_axis(now, i)->name) < 0)
            return dt_fail(DT_EINFEASIBLE, "it was tuned without the parameter %s",
                           dt_space_axis(now, i)->name);
    return DT_OK;
}

struct changes {
    struct dt_text *out;
    int count;
};

/* The beginning of a change that is still named. */
static bool change_begin(struct changes *changes, const char *word)
{
    bool named = changes->count++ < CHANGES_MOST;
    if (named)
        dt_text_add(changes->out, "%s%s ", changes->count > 1 ? ", " : "", word);
    return named;
}

/* Values of `axis` that `other` has not. */
static void values_add(const struct dt_axis *axis, const struct dt_axis *other, const char *word,
                       struct changes *changes)
{
    for (int i = 0; i < axis->count; i++) {
        if (find_value(axis, i, other) >= 0 || !change_begin(changes, word))
            continue;
        dt_text_add(changes->out, "%s=", axis->name);
        value_add(axis, i, changes->out);
    }
}

/* The values that both axes have, in another order. */
static void order_add(const struct dt_axis *was, const struct dt_axis *now, struct changes *changes)
{
    int last = -1;
    bool moved = false;
    for (int i = 0; i < was->count; i++) {
        int at = find_value(was, i, now);
        moved = moved || (at >= 0 && at < last);
        last = at > last ? at : last;
    }
    if (moved && change_begin(changes, "with another order of"))
        dt_text_add(changes->out, "%s", was->name);
}

static bool has_rule(const struct dt_space *space, const char *code)
{
    bool found = false;
    for (int i = 0; i < dt_space_rules(space) && !found; i++) {
        dt_auto_text text = {0};
        dt_space_rule_code(space, i, &text);
        found = strcmp(dt_text_at(&text), code) == 0;
    }
    return found;
}

/* The cases of all lists of a space, by their texts. */
static json_t *cases_of(const struct dt_space *space)
{
    json_t *cases = json_object();
    for (int rule = 0; rule < dt_space_rules(space); rule++)
        for (int i = 0; i < dt_space_cases(space, rule); i++) {
            dt_auto_text text = {0};
            dt_space_case(space, rule, i, &text);
            json_object_set_new(cases, dt_text_at(&text), json_true());
        }
    return cases;
}

/* Rules of `space` that `other` has not; of lists of cases, the cases. */
static void rules_add(const struct dt_space *space, const struct dt_space *other, const char *word,
                      struct changes *changes)
{
    json_auto_t *cases = cases_of(other);
    for (int rule = 0; rule < dt_space_rules(space); rule++) {
        dt_auto_text text = {0};
        dt_space_rule_code(space, rule, &text);
        bool known = has_rule(other, dt_text_at(&text));
        int count = json_object_size(cases) > 0 ? dt_space_cases(space, rule) : 0;
        if (!known && count == 0 && change_begin(changes, word))
            dt_text_add(changes->out, "the rule %.80s", dt_space_rule_text(space, rule));
        for (int i = 0; !known && i < count; i++) {
            dt_text_clear(&text);
            dt_space_case(space, rule, i, &text);
            if (json_object_get(cases, dt_text_at(&text)) == NULL && change_begin(changes, word))
                dt_text_add(changes->out, "the case %s", dt_text_at(&text));
        }
    }
}

void dt_space_changes(const struct dt_space *was, const struct dt_space *now, struct dt_text *out)
{
    struct changes changes = {.out = out};
    for (int i = 0; i < dt_space_axes(was); i++) {
        const struct dt_axis *axis = dt_space_axis(was, i);
        int at = dt_space_find(now, axis->name);
        if (at < 0 || (axis->labels == NULL) != (dt_space_axis(now, at)->labels == NULL))
            continue;
        values_add(dt_space_axis(now, at), axis, "without", &changes);
        values_add(axis, dt_space_axis(now, at), "with", &changes);
        order_add(axis, dt_space_axis(now, at), &changes);
    }
    rules_add(now, was, "without", &changes);
    rules_add(was, now, "with", &changes);
    if (changes.count > CHANGES_MOST)
        dt_text_add(out, " and %d more", changes.count - CHANGES_MOST);
}
