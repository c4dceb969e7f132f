/* SPDX-License-Identifier: MIT */
#include "tuner/measure/measure.h"
#include "tuner/session/history.h"
#include "tuner/session/record.h"

#include <stdlib.h>
#include <string.h>

/* Like dt_measure_processes: a single process, or the first failed one, is the result. */
static dt_status join(struct dt_replay_run *run, struct dt_result *result)
{
    struct dt_result *last = &run->parts[run->count - 1];
    if (run->count > 1 && last->outcome == DT_TRIAL_OK) {
        dt_result_init(result, run->target, &last->point);
        return dt_processes_join(run->parts, run->count, result);
    }
    *result = *last;
    *last = (struct dt_result){0};
    return DT_OK;
}

static void forget_plan(struct dt_replay_run *run)
{
    for (int i = 0; i < run->count; i++)
        dt_result_fini(&run->parts[i]);
    run->count = 0;
    dt_result_fini(&run->one);
    run->one = (struct dt_result){0};
    dt_clocks_fini(&run->clocks);
    dt_target_free(run->target);
    run->target = NULL;
}

dt_status dt_replay_run_end(struct dt_replay_run *run)
{
    struct dt_result result = {0};
    if (run->target == NULL && run->any)
        return DT_OK; /* the last step was left out */
    if (run->count == 0)
        return dt_fail(DT_EUSAGE, "the file ends before the plan was measured");
    dt_status status = join(run, &result);
    bool left_out = run->sweep.values.count > 0 && result.outcome != DT_TRIAL_OK;
    if (status == DT_OK && !left_out) /* its reason follows in a separate record */
        status = dt_result_status(&result);
    if (status == DT_OK && !left_out) {
        run->any = true;
        run->measured(run->context, &result, &run->one, run->target);
    }
    dt_result_fini(&result);
    forget_plan(run);
    return status;
}

/* The facts about a sweep that each of its records has. */
static void read_sweep(struct dt_replay_run *run, const json_t *record, int64_t value)
{
    const char *sweep = json_string_value(json_object_get(record, "sweep"));
    struct dt_ints *values = &run->sweep.values;
    if (sweep == NULL || values->count == DT_LIST_MAX)
        return;
    run->sweep.ranks = strcmp(sweep, "ranks") == 0;
    values->values[values->count++] = (int)value;
}

/* It may have a record of kind "run" before this one, when it was measured and failed. */
static dt_status read_left_out(struct dt_replay_run *run, const json_t *record, const char *what)
{
    const char *reason;
    int64_t value;
    if (run->target != NULL && run->count > 0)
        DT_TRY(dt_replay_run_end(run));
    forget_plan(run);
    DT_TRY(dt_json_int(record, what, "value", 0, INT32_MAX, &value));
    DT_TRY(dt_json_string(record, what, "reason", &reason));
    read_sweep(run, record, value);
    run->any = true;
    run->left_out(run->context, &run->sweep, (int)value, reason);
    return DT_OK;
}

static dt_status read_run(struct dt_replay_run *run, const json_t *record, const char *what)
{
    int64_t value;
    if (run->target != NULL)
        DT_TRY(dt_replay_run_end(run));
    DT_TRY(dt_json_int(record, what, "value", 0, INT32_MAX, &value));
    if (run->parts == NULL)
        run->parts = calloc(DT_PROCESSES_MOST, sizeof *run->parts);
    if (run->parts == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    read_sweep(run, record, value);
    return dt_raw_read_target(record, what, &run->target);
}

static dt_status read_measurement(struct dt_replay_run *run, const json_t *record, const char *what)
{
    const char *text;
    enum dt_entrant_role role;
    DT_TRY(dt_json_string(record, what, "role", &text));
    DT_TRY(dt_entrant_role_find(what, text, &role));
    bool plan = role == DT_ENTRANT_PLAN;
    if (run->target == NULL || (plan ? run->count == DT_PROCESSES_MOST : run->one.report.steps > 0))
        return dt_fail(DT_EUSAGE, "%s: one measurement too many", what);
    struct dt_result *result = plan ? &run->parts[run->count++] : &run->one;
    DT_TRY(dt_raw_read_result(record, what, run->target, result));
    result->throttling.clocks = &run->clocks;
    if (result->report.request_count == 0 && result->outcome == DT_TRIAL_OK)
        return dt_fail(DT_EUSAGE, "%s: the outcome is ok, but there are no 'requests'", what);
    if (result->report.request_count > 0)
        DT_TRY(dt_raw_finish_trial(record, what, result));
    return dt_clocks_learn(&run->clocks, result);
}

dt_status dt_replay_run_record(struct dt_replay_run *run, const json_t *record, const char *what)
{
    const char *kind;
    DT_TRY(dt_json_string(record, what, "kind", &kind));
    if (strcmp(kind, "run") == 0)
        return read_run(run, record, what);
    if (strcmp(kind, "left_out") == 0)
        return read_left_out(run, record, what);
    return strcmp(kind, "trial") == 0 ? read_measurement(run, record, what) : DT_OK;
}

void dt_replay_run_fini(struct dt_replay_run *run)
{
    forget_plan(run);
    free(run->parts);
    *run = (struct dt_replay_run){0};
}
