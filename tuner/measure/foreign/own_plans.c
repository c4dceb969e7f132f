/* SPDX-License-Identifier: MIT */
/* The plans of a worker's own space that every other is compared with: its default, the one that
 * its engine's documentation names, and the one of the fewest ranks. */
#include "tuner/measure/record/result_json.h"
#include "tuner/measure/target_int.h"

#include "base/json.h"
#include "space/expr/expr.h"

#include <stdio.h>
#include <string.h>

/* ---- values that hello writes as expressions, as in {"cfg": "1 + (guidance
 * && devices % 2 == 0)"} */

#define NAMES_MOST 96

/* Constants and parameters of a hello, borrowed, with their values: of a parameter of texts
 * the index of its value. */
struct names {
    const char *name[NAMES_MOST];
    int64_t at[NAMES_MOST];
    int count;
};

static void name_add(struct names *names, const char *name, int64_t value)
{
    if (names->count == NAMES_MOST)
        return; /* an expression with it is refused, as it is unknown there */
    names->name[names->count] = name;
    names->at[names->count++] = value;
}

static void name_set(struct names *names, const char *name, int64_t value)
{
    for (int i = 0; i < names->count; i++)
        names->at[i] = strcmp(names->name[i], name) == 0 ? value : names->at[i];
}

static bool name_known(const struct names *names, const char *name)
{
    for (int i = 0; i < names->count; i++)
        if (strcmp(names->name[i], name) == 0)
            return true;
    return false;
}

/* Index of a text among a parameter's values; -1: it has no such text. */
static int64_t text_index(const json_t *parameter, const json_t *text)
{
    json_t *value;
    size_t i;
    json_array_foreach(json_object_get(parameter, "values"), i, value)
    {
        if (json_is_string(text) && json_equal(value, text))
            return (int64_t)i;
    }
    return -1;
}

static int64_t default_value(const json_t *parameter)
{
    const json_t *value = json_object_get(parameter, "default");
    if (value == NULL)
        value = json_array_get(json_object_get(parameter, "values"), 0);
    return json_is_string(value) ? text_index(parameter, value) : json_integer_value(value);
}

static void names_read(const json_t *hello, struct names *names)
{
    json_t *row, *value;
    const char *name;
    size_t i;
    names->count = 0;
    json_object_foreach(json_object_get(hello, "constants"), name, value)
        name_add(names, name, json_integer_value(value));
    json_array_foreach(json_object_get(hello, "parameters"), i, row)
        name_add(names, dt_json_text_at(row, "name"), default_value(row));
}

/* DT_DONE: it cannot be computed, as with a division by zero. */
static dt_status expression_value(const char *expression, const struct names *names, int64_t *value)
{
    struct dt_expr *expr DT_CLEANUP(dt_expr_free_at) = NULL;
    DT_TRY(dt_expr_new(expression, names->name, names->count, &expr));
    return dt_expr_eval(expr, names->at, value) == DT_OK ? DT_OK : DT_DONE;
}

/* The value that hello gives a parameter: one of its own texts, or a number or an expression, which
 * for texts is an index. *chosen: a new reference. DT_DONE: there is no such value. */
static dt_status value_choose(const json_t *parameter, const json_t *value, const char *what,
                              struct names *names, json_t **chosen)
{
    const char *name = dt_json_text_at(parameter, "name");
    json_t *values = json_object_get(parameter, "values");
    bool texts = json_is_string(json_array_get(values, 0));
    int64_t number = texts ? text_index(parameter, value) : -1;
    dt_status status = DT_OK;
    if (json_is_integer(value))
        number = json_integer_value(value);
    else if (number < 0 && json_is_string(value))
        status = expression_value(json_string_value(value), names, &number);
    else if (number < 0)
        return dt_fail(DT_EUSAGE, "%s: '%.80s' has no expression", what, name);
    if (status != DT_OK)
        return status;
    name_set(names, name, number);
    *chosen = texts ? json_incref(json_array_get(values, (size_t)number)) : json_integer(number);
    return *chosen != NULL ? DT_OK : DT_DONE;
}

dt_status dt_target_settle_defaults(json_t *hello)
{
    static const char what[] = "the worker's hello: 'defaults'";
    json_t *parameters = json_object_get(hello, "parameters"), *value;
    struct names names;
    const char *name;
    names_read(hello, &names);
    json_object_foreach(json_object_get(hello, "defaults"), name, value)
    {
        json_auto_t *chosen = NULL;
        json_t *own = dt_json_named(parameters, name);
        if (own == NULL)
            return dt_fail(DT_EUSAGE, "%s: '%.80s' is no parameter", what, name);
        dt_status status = value_choose(own, value, what, &names, &chosen);
        if (status == DT_DONE) {
            char text[100] = "";
            json_dumpb(value, text, sizeof text - 1, JSON_ENCODE_ANY);
            return dt_fail(DT_EUSAGE, "%s: value %s of '%.80s' is not there", what, text, name);
        }
        DT_TRY(status);
        if (json_object_set(own, "default", chosen) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
    }
    return DT_OK;
}

/* ---- what the engine's documentation tells a careful user to set */

static const char documented_what[] = "the worker's hello: 'documented'";

void dt_documented_words(const json_t *object, struct dt_documented *documented)
{
    snprintf(documented->source, sizeof documented->source, "%s",
             dt_json_text_at(object, "source"));
    snprintf(documented->date, sizeof documented->date, "%s", dt_json_text_at(object, "date"));
    snprintf(documented->says, sizeof documented->says, "%s", dt_json_text_at(object, "says"));
    dt_text_clean(documented->source);
    dt_text_clean(documented->date);
    dt_text_clean(documented->says);
}

/* The same with fewer threads of a rank, where the default has too many for its ranks. */
static bool threads_locate(const struct dt_space *space, bool named, int64_t values[],
                           struct dt_point *point)
{
    int threads = dt_space_role(space, DT_ROLE_THREADS);
    if (named || threads < 0)
        return dt_space_locate(space, values, point) == DT_OK;
    const struct dt_axis *axis = dt_space_axis(space, threads);
    for (int i = axis->fallback; i >= 0; i--) {
        values[threads] = axis->values[i];
        if (dt_space_locate(space, values, point) == DT_OK)
            return true;
    }
    return false;
}

static bool role_named(const struct dt_space *space, const json_t *plan, enum dt_role role)
{
    int axis = dt_space_role(space, role);
    return axis >= 0 && dt_json_has(plan, dt_space_axis(space, axis)->name);
}

/* The plan of these values, and, where `plan` does not name them, of the fewest ranks with which it
 * is feasible, and as many of the default's threads. */
static bool plan_locate(const struct dt_space *space, const json_t *plan, int64_t values[],
                        struct dt_point *point)
{
    int ranks = dt_space_role(space, DT_ROLE_RANKS);
    bool threads = role_named(space, plan, DT_ROLE_THREADS);
    if (ranks < 0 || role_named(space, plan, DT_ROLE_RANKS))
        return threads_locate(space, threads, values, point);
    for (int i = 0; i < dt_space_axis(space, ranks)->count; i++) {
        values[ranks] = dt_space_axis(space, ranks)->values[i];
        if (threads_locate(space, threads, values, point))
            return true;
    }
    return false;
}

/* A parameter that the space does not have is known to the expressions after it, where it has a
 * number. Without it the plan is another one if it is a word, or splits the work: then its name
 * is added to left_out. */
static void value_leave_out(const char *name, const json_t *value, struct names *names,
                            struct dt_text *left_out)
{
    int64_t number = json_integer_value(value);
    bool known = json_is_integer(value) ||
                 (json_is_string(value) &&
                  expression_value(json_string_value(value), names, &number) == DT_OK);
    if (known)
        name_add(names, name, number);
    if (!known || number > 1)
        dt_text_add(left_out, "%s%s", left_out->size > 0 ? ", " : "", name);
}

/* Sets the parameter's value in a plan. DT_DONE: the space does not have the value. */
static dt_status value_set(const struct dt_target *target, const char *name, const json_t *value,
                           struct names *names, int64_t values[], struct dt_text *left_out)
{
    int axis = dt_space_find(target->space, name);
    json_auto_t *chosen = NULL, *added = json_pack("{s:s}", "name", name);
    const json_t *own = dt_json_named(json_object_get(target->worker.hello, "parameters"), name);
    if (axis < 0) {
        value_leave_out(name, value, names, left_out);
        return DT_OK;
    }
    dt_status status =
        value_choose(own != NULL ? own : added, value, documented_what, names, &chosen);
    if (status != DT_OK)
        return status;
    values[axis] = json_integer_value(chosen);
    bool known = !json_is_string(chosen) ||
                 dt_axis_read_text(dt_space_axis(target->space, axis), json_string_value(chosen),
                                   &values[axis]) == DT_OK;
    return known ? DT_OK : DT_DONE;
}

/* A row's plan. DT_DONE: its condition does not hold, or it is no plan of the space. */
static dt_status row_read(const struct dt_target *target, const json_t *row, struct dt_point *point,
                          struct dt_text *left_out)
{
    bool throughput = target->objective != NULL && !target->objective->one_batch;
    int64_t values[DT_AXES_MAX], holds = 1;
    struct names names;
    const char *name;
    json_t *plan, *value;
    dt_status status = DT_OK;
    names_read(target->worker.hello, &names);
    if (!name_known(&names, "throughput"))
        name_add(&names, "throughput", throughput);
    DT_TRY(dt_json_object(row, documented_what, "plan", &plan));
    DT_TRY(dt_space_parse(target->space, "", values));
    json_object_foreach(plan, name, value)
    {
        if (status == DT_OK)
            status = value_set(target, name, value, &names, values, left_out);
    }
    if (status == DT_OK && dt_json_has(row, "when"))
        status = expression_value(dt_json_text_at(row, "when"), &names, &holds);
    if (status != DT_OK)
        return status;
    return holds != 0 && plan_locate(target->space, plan, values, point) ? DT_OK : DT_DONE;
}

/* The first row whose condition holds and whose plan is feasible. */
static dt_status documented_find(struct dt_target *target)
{
    const json_t *rows = json_object_get(target->worker.hello, "documented"), *row;
    struct dt_documented *documented = &target->documented;
    size_t i;
    if (dt_json_has(target->worker.hello, "documented") && !json_is_array(rows))
        return dt_fail(DT_EUSAGE, "%s is not a list of rows, [{\"plan\": {..}, ..}]",
                       documented_what);
    json_array_foreach(rows, i, row)
    {
        dt_auto_text left_out = {0};
        dt_status status = row_read(target, row, &documented->point, &left_out);
        if (status < 0)
            return status;
        if (status != DT_OK)
            continue;
        documented->known = true;
        dt_documented_words(row, documented);
        size_t size = strlen(documented->says);
        if (left_out.size > 0)
            snprintf(documented->says + size, sizeof documented->says - size,
                     "; left out, as it is no parameter here: %s", dt_text_at(&left_out));
        dt_text_mend(documented->says);
        return DT_OK;
    }
    return DT_OK;
}

/* ---- the default, and one rank */

/* More ranks than there are devices: the same with the most ranks that are feasible, as the user
 * gives no more devices. */
static bool locate_fewer(const struct dt_target *target, int ranks, int64_t values[],
                         struct dt_point *point)
{
    const struct dt_space *space = target->space;
    if (!target->limited || values[ranks] <= target->hardware.devices)
        return false;
    for (int i = dt_space_axis(space, ranks)->count; i-- > 0;) {
        values[ranks] = dt_space_axis(space, ranks)->values[i];
        if (dt_space_locate(space, values, point) == DT_OK)
            return true;
    }
    return false;
}

/* No other plan takes the default's place: one that breaks a rule is the default as it is. */
static void find_default(struct dt_target *target, int ranks, int64_t values[])
{
    const struct dt_space *space = target->space;
    if (dt_space_locate(space, values, &target->fallback) == DT_OK)
        return;
    snprintf(target->broken, sizeof target->broken, "%s", dt_message());
    dt_text_mend(target->broken);
    if (ranks >= 0 && locate_fewer(target, ranks, values, &target->fallback)) {
        target->broken[0] = '\0';
        return;
    }
    for (int i = 0; i < dt_space_axes(space); i++)
        target->fallback.index[i] = dt_space_axis(space, i)->fallback;
}

static int count_differences(const struct dt_space *space, const struct dt_point *a,
                             const struct dt_point *b)
{
    int n = 0;
    for (int i = 0; i < dt_space_axes(space); i++)
        n += a->index[i] != b->index[i];
    return n;
}

/* A feasible plan to begin with. */
static struct dt_point any_plan(const struct dt_target *target)
{
    struct dt_rng rng = dt_rng_at(0, "fallback");
    struct dt_point point = target->fallback;
    if (target->broken[0] == '\0')
        return point;
    if (dt_space_listed(target->space))
        dt_space_at(target->space, 0, &point);
    else
        dt_space_draw(target->space, &rng, &point);
    return point;
}

/* The default with the fewest ranks. Where its degrees need more ranks, or it breaks a rule: of the
 * plans with the fewest, the one that differs least from it. */
static struct dt_point find_baseline(const struct dt_target *target, int ranks)
{
    const struct dt_space *space = target->space;
    struct dt_point found = any_plan(target), one = target->fallback;
    if (ranks >= 0)
        one.index[ranks] = 0;
    if (dt_space_feasible(space, &one))
        return one;
    for (int64_t k = 0; dt_space_listed(space) && k < dt_space_count(space); k++) {
        dt_space_at(space, k, &one);
        int more = ranks < 0 ? 0 : one.index[ranks] - found.index[ranks];
        bool nearer = count_differences(space, &one, &target->fallback) <
                      count_differences(space, &found, &target->fallback);
        if (more < 0 || (more == 0 && nearer))
            found = one;
    }
    return found;
}

dt_status dt_target_own_plans(struct dt_target *target)
{
    int64_t values[DT_AXES_MAX];
    int ranks = dt_space_role(target->space, DT_ROLE_RANKS);
    if (dt_space_count(target->space) == 0)
        return DT_OK;
    DT_TRY(dt_space_parse(target->space, "", values));
    find_default(target, ranks, values);
    target->baseline = find_baseline(target, ranks);
    return documented_find(target);
}
