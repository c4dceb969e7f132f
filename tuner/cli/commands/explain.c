/* SPDX-License-Identifier: MIT */
#include "space/json/json.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"
#include "tuner/measure/measure.h"

static dt_status explain(const struct dt_options *options, const struct dt_target *target,
                         const char *plan)
{
    int64_t values[DT_AXES_MAX];
    struct dt_explanation explanation = {0};
    struct dt_point point;
    DT_TRY(dt_space_parse(target->space, plan, values));
    DT_TRY(dt_space_explain(target->space, values, &explanation));
    bool feasible = json_is_true(json_object_get(explanation.json, "feasible"));
    dt_status status = DT_OK;
    if (options->print.json) {
        status = dt_print_json(json_incref(explanation.json));
    } else {
        struct dt_text text = {0};
        dt_text_add(&text, "%s", dt_text_at(&explanation.text));
        if (feasible && dt_target_plan(target, plan, &point) == DT_OK &&
            dt_target_oversubscribed(target, &point))
            dt_text_add(&text,
                        "but it has %d ranks on %d %ss: 'dittune run' runs it, tuning leaves it "
                        "out unless --oversubscribe\n",
                        dt_target_ranks(target, &point), target->hardware.cores,
                        target->hardware.unit);
        status = dt_print_text(&text);
    }
    dt_explanation_fini(&explanation);
    if (status < 0 || feasible)
        return status;
    return dt_fail(DT_EINFEASIBLE, "%s", ""); /* printed already */
}

dt_status dt_command_explain(const struct dt_options *options)
{
    struct dt_text plan = {0};
    struct dt_target *target = NULL;
    for (int i = 0; i < options->words.rest_count; i++)
        dt_text_add(&plan, "%s%s", i > 0 ? " " : "", options->words.rest[i]);
    struct dt_job job;
    dt_status status = dt_options_job(options, dt_text_at(&plan), &job);
    if (status == DT_OK)
        status = dt_target_new(&job, &target);
    if (status == DT_OK)
        status = explain(options, target, dt_text_at(&plan));
    dt_target_free(target);
    dt_text_fini(&plan);
    return status;
}
