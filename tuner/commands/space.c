/* SPDX-License-Identifier: MIT */
#include "tuner/print.h"
#include "tuner/trial/target.h"

static json_t *parameters_json(const struct dt_space *space)
{
    json_t *list = json_array();
    for (int a = 0; a < dt_space_axes(space); a++) {
        const struct dt_axis *axis = dt_space_axis(space, a);
        json_t *values = json_array();
        for (int i = 0; i < axis->count; i++)
            json_array_append_new(values, axis->labels != NULL ? json_string(axis->labels[i])
                                                               : json_integer(axis->values[i]));
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:o, s:s?}", "name", axis->name,
                                              "role", dt_role_text(axis->role), "size", axis->count,
                                              "values", values, "doc", axis->doc));
    }
    return list;
}

static json_t *rules_json(const struct dt_space *space)
{
    json_t *list = json_array();
    for (int i = 0; i < dt_space_rules(space); i++) {
        struct dt_rule_info rule = dt_space_rule(space, i);
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:o}", "if", rule.expr, "say", rule.sentence, "removes",
                            rule.removes >= 0 ? json_integer(rule.removes) : json_null()));
    }
    return list;
}

static json_t *plans_json(const struct dt_space *space)
{
    json_t *list = json_array();
    for (int64_t k = 0; k < dt_space_count(space); k++) {
        struct dt_point point;
        dt_space_at(space, k, &point);
        json_array_append_new(list, dt_point_json(space, &point));
    }
    return list;
}

static void add_values(const struct dt_axis *axis, struct dt_text *out)
{
    for (int i = 0; i < axis->count; i++)
        if (axis->labels != NULL)
            dt_text_add(out, " %s", axis->labels[i]);
        else
            dt_text_add(out, " %lld", (long long)axis->values[i]);
}

static void describe(const struct dt_target *target, bool list, struct dt_text *out)
{
    const struct dt_space *space = target->space;
    if (list)
        for (int64_t k = 0; k < dt_space_count(space); k++) {
            struct dt_point point;
            dt_space_at(space, k, &point);
            dt_point_text(space, &point, out);
            dt_text_add(out, "\n");
        }
    if (list)
        return;
    dt_text_add(out, "%s, at most %d device%s\n%lld feasible plans among %.0f\n\nparameters:\n",
                target->title, target->devices, target->devices == 1 ? "" : "s",
                (long long)dt_space_count(space), dt_space_cartesian(space));
    for (int a = 0; a < dt_space_axes(space); a++) {
        const struct dt_axis *axis = dt_space_axis(space, a);
        dt_text_add(out, "  %-10s %3d:", axis->name, axis->count);
        add_values(axis, out);
        dt_text_add(out, "\n");
    }
    dt_text_add(out, "\nrules (plans each removes alone):\n");
    for (int i = 0; i < dt_space_rules(space); i++) {
        struct dt_rule_info rule = dt_space_rule(space, i);
        dt_text_add(out, "  %9lld  %s: %s\n", (long long)rule.removes, rule.expr, rule.sentence);
    }
}

static dt_status print(const struct dt_options *options, const struct dt_target *target)
{
    struct dt_text text = {0};
    if (!options->json) {
        describe(target, options->list, &text);
        return dt_print_text(&text);
    }
    double cartesian = dt_space_cartesian(target->space);
    json_t *object =
        json_pack("{s:s, s:o, s:I, s:o, s:o}", "title", target->title, "cartesian",
                  cartesian < 9e15 ? json_integer((json_int_t)cartesian) : json_real(cartesian),
                  "feasible", (json_int_t)dt_space_count(target->space), "parameters",
                  parameters_json(target->space), "rules", rules_json(target->space));
    if (object != NULL && options->list)
        json_object_set_new(object, "plans", plans_json(target->space));
    return dt_print_json(object);
}

dt_status dt_command_space(const struct dt_options *options)
{
    struct dt_target_opts opts = {.size = options->sizes.count > 0 ? options->sizes.values[0] : 0,
                                  .for_run = true};
    struct dt_target *target = NULL;
    if (options->sizes.count > 1)
        return dt_fail(DT_EUSAGE, "'dittune space' takes one --size, not %d", options->sizes.count);
    DT_TRY(dt_target_new(options, &opts, &target));
    dt_status status = print(options, target);
    if (status == DT_OK)
        status = dt_target_check(target);
    dt_target_free(target);
    return status;
}
