/* SPDX-License-Identifier: MIT */
#include "space/json/json.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"
#include "tuner/measure/measure.h"

#include <string.h>

enum { LIST_MOST = 4000000 };

static json_t *parameters_json(const struct dt_space *space)
{
    json_t *list = json_array();
    for (int a = 0; a < dt_space_axes(space); a++) {
        const struct dt_axis *axis = dt_space_axis(space, a);
        json_t *values = json_array();
        for (int i = 0; i < axis->count; i++)
            json_array_append_new(values, dt_value_json(axis, axis->values[i]));
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:i, s:o, s:s?, s:s*}", "name", axis->name,
                                        "role", dt_role_text(axis->role), "size", axis->count,
                                        "values", values, "doc", axis->doc, "when", axis->when));
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

/* Plans are printed one by one, since there may be millions. */
static dt_status print_plans(const struct dt_space *space, bool json)
{
    struct dt_text text = {0};
    dt_status status = DT_OK;
    for (int64_t k = 0; status == DT_OK && k < dt_space_count(space); k++) {
        struct dt_point point;
        dt_space_at(space, k, &point);
        if (json) {
            json_auto_t *plan = dt_point_json(space, &point);
            dt_text_add(&text, k > 0 ? ", " : "");
            status = dt_json_shown(plan, &text);
        } else {
            dt_point_text(space, &point, &text);
            dt_text_add(&text, "\n");
        }
        if (text.size > 1 << 16)
            status = json ? dt_print_exact(&text) : dt_print_text(&text);
    }
    dt_status printed = json ? dt_print_exact(&text) : dt_print_text(&text);
    return status < 0 ? status : printed;
}

static void describe_space(const char *title, const struct dt_space *space, struct dt_text *out)
{
    dt_text_add(out, "%s\n", title);
    if (dt_space_count(space) >= 0)
        dt_text_add(out, "%lld feasible plan%s among %.0f\n\nparameters:\n",
                    (long long)dt_space_count(space), dt_space_count(space) == 1 ? "" : "s",
                    dt_space_cartesian(space));
    else
        dt_text_add(out,
                    "about %.2g feasible plans among %.3g: too many to count, they can only be "
                    "drawn\n\nparameters:\n",
                    dt_space_estimate(space), dt_space_cartesian(space));
    for (int a = 0; a < dt_space_axes(space); a++) {
        const struct dt_axis *axis = dt_space_axis(space, a);
        dt_text_add(out, "  %-10s %3d:", axis->name, axis->count);
        for (int i = 0; i < axis->count; i++) {
            dt_text_add(out, " ");
            dt_axis_text(axis, axis->values[i], out);
        }
        dt_text_add(out, axis->when != NULL ? "  when " : "");
        dt_text_show(axis->when != NULL ? axis->when : "", out);
        dt_text_add(out, "\n");
    }
    dt_text_add(out, "\nrules (plans each removes alone):\n");
    for (int i = 0; i < dt_space_rules(space); i++) {
        struct dt_rule_info rule = dt_space_rule(space, i);
        if (rule.removes >= 0)
            dt_text_add(out, "  %9lld", (long long)rule.removes);
        else
            dt_text_add(out, "  %9s", "?");
        dt_text_add(out, "  ");
        dt_text_show(rule.expr, out);
        if (strcmp(rule.expr, rule.sentence) != 0) {
            dt_text_add(out, ": ");
            dt_text_show(rule.sentence, out);
        }
        dt_text_add(out, "%s\n",
                    rule.removes == 0                                   ? "  (removes nothing)"
                    : (double)rule.removes >= dt_space_cartesian(space) ? "  (removes every plan)"
                                                                        : "");
    }
}

static json_t *space_json(const char *title, const struct dt_space *space)
{
    double cartesian = dt_space_cartesian(space);
    int64_t count = dt_space_count(space);
    return json_pack("{s:s, s:o, s:o, s:f, s:b, s:I, s:o, s:o}", "title", title, "cartesian",
                     cartesian < 9e15 ? json_integer((json_int_t)cartesian) : json_real(cartesian),
                     "feasible", count >= 0 ? json_integer(count) : json_null(), "estimate",
                     dt_space_estimate(space), "listed", (int)dt_space_listed(space), "bytes",
                     (json_int_t)dt_space_bytes(space), "parameters", parameters_json(space),
                     "rules", rules_json(space));
}

/* {..., "plans": [...]}: the object without its last brace, then the plans. */
static dt_status print_both(json_t *object, const struct dt_space *space)
{
    dt_auto_text text = {0};
    dt_status status = dt_json_shown(object, &text);
    json_decref(object);
    DT_TRY(status);
    text.bytes[--text.size] = '\0';
    dt_text_add(&text, ", \"plans\": [");
    DT_TRY(dt_print_exact(&text));
    DT_TRY(print_plans(space, true));
    dt_text_add(&text, "]}\n");
    return dt_print_exact(&text);
}

static dt_status print_space(const struct dt_options *options, const char *title,
                             const struct dt_space *space)
{
    struct dt_text text = {0};
    if (options->print.list && (!dt_space_listed(space) || dt_space_count(space) > LIST_MOST))
        return dt_fail(DT_EUSAGE, "about %.2g plans are too many to list, at most %d are",
                       dt_space_estimate(space), LIST_MOST);
    if (!options->print.json && options->print.list)
        return print_plans(space, false);
    if (options->print.list)
        return print_both(space_json(title, space), space);
    describe_space(title, space, &text);
    return dt_print_either(options, DT_OK, space_json(title, space), &text);
}

static dt_status print_file(const struct dt_options *options)
{
    DT_CLEANUP(dt_space_free_at) struct dt_space *space = NULL;
    DT_TRY(dt_space_read(options->space, &space));
    DT_TRY(print_space(options, options->space, space));
    return dt_space_count(space) == 0 ? dt_space_none(space) : DT_OK;
}

dt_status dt_command_space(const struct dt_options *options)
{
    struct dt_job job;
    struct dt_described machine;
    DT_CLEANUP(dt_target_free_at) struct dt_target *target = NULL;
    if (options->space != NULL)
        return print_file(options);
    DT_TRY(dt_options_job(options, NULL, &job));
    DT_TRY(dt_options_machine(options, &machine, &job));
    DT_TRY(dt_target_new(&job, &target));
    dt_auto_text title = {0};
    dt_text_add(&title, "%s, at most %d device%s", target->identity.title, target->hardware.devices,
                target->hardware.devices == 1 ? "" : "s");
    DT_TRY(print_space(options, options->print.json ? target->identity.title : dt_text_at(&title),
                       target->space));
    return dt_target_check(target);
}
