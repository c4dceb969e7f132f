/* SPDX-License-Identifier: MIT */
#include "tuner/session/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading a session back */

dt_status dt_replay_open(const char *path, bool foreign, struct dt_replay *replay)
{
    struct dt_journal_reader reader = {.path = path, .foreign = foreign};
    *replay = (struct dt_replay){.log = NULL};
    DT_TRY(dt_log_new(&replay->log));
    replay->session = dt_log_session(replay->log);
    while (dt_journal_next(&reader)) {
        if (replay->kind[0] == '\0')
            snprintf(replay->kind, sizeof replay->kind, "%s", reader.kind);
        if (strcmp(replay->kind, dt_log_kind_text(DT_LOG_SESSION)) != 0)
            break;
        reader.status = dt_log_read(replay->log, &reader, path);
    }
    replay->damaged = reader.damaged;
    DT_TRY(dt_journal_end(&reader));
    dt_log_read_end(replay->log);
    return DT_OK;
}

void dt_replay_fini(struct dt_replay *replay)
{
    dt_log_free(replay->log);
    *replay = (struct dt_replay){.log = NULL};
}

const struct dt_target *dt_replay_target(const struct dt_replay *replay)
{
    return replay->session != NULL ? replay->session->target : NULL;
}

/* ---- reading a run back */

/* Like dt_measure_processes: a single process, or the first failed one, is the result. */
static dt_status run_join(struct dt_replay_run *run, struct dt_result *result)
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

static void run_forget_plan(struct dt_replay_run *run)
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
    dt_status status = run_join(run, &result);
    bool left_out = run->sweep.values.count > 0 && result.outcome != DT_TRIAL_OK;
    if (status == DT_OK && !left_out) /* its reason follows in a separate record */
        status = dt_result_status(&result);
    if (status == DT_OK && !left_out) {
        run->any = true;
        run->measured(run->context, &result, &run->one, run->target);
    }
    dt_result_fini(&result);
    run_forget_plan(run);
    return status;
}

/* The facts about a sweep that each of its records has. */
static void sweep_add(struct dt_replay_run *run, const struct dt_run_step *step)
{
    struct dt_ints *values = &run->sweep.values;
    if (!step->sweeps || values->count == DT_LIST_MAX)
        return;
    run->sweep.ranks = step->ranks;
    values->values[values->count++] = step->value;
}

/* It may have a record of kind "run" before this one, when it was measured and failed. */
static dt_status run_leave_out(struct dt_replay_run *run, const struct dt_run_step *step)
{
    if (run->target != NULL && run->count > 0)
        DT_TRY(dt_replay_run_end(run));
    run_forget_plan(run);
    sweep_add(run, step);
    run->any = true;
    run->left_out(run->context, &run->sweep, step->value, step->reason);
    return DT_OK;
}

static dt_status run_begin(struct dt_replay_run *run, struct dt_run_step *step)
{
    if (run->target != NULL)
        DT_TRY(dt_replay_run_end(run));
    if (run->parts == NULL)
        run->parts = calloc(DT_PROCESSES_MOST, sizeof *run->parts);
    if (run->parts == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    sweep_add(run, step);
    run->target = step->read;
    step->read = NULL;
    return DT_OK;
}

static dt_status run_measurement(struct dt_replay_run *run, const char *what,
                                 struct dt_log_record *record)
{
    bool plan = record->role == DT_ENTRANT_PLAN;
    if (record->role == DT_ENTRANT_ROLES)
        return dt_fail(DT_EUSAGE, "%s: 'role' is missing", what);
    if (plan ? run->count == DT_PROCESSES_MOST : run->one.report.steps > 0)
        return dt_fail(DT_EUSAGE, "%s: one measurement too many", what);
    if (record->result.report.request_count == 0 && record->result.outcome == DT_TRIAL_OK)
        return dt_fail(DT_EUSAGE, "%s: the outcome is ok, but there are no 'requests'", what);
    struct dt_result *result = plan ? &run->parts[run->count++] : &run->one;
    *result = record->result;
    record->result = (struct dt_result){.outcome = DT_TRIAL_OK};
    result->throttling.clocks = &run->clocks;
    return dt_clocks_learn(&run->clocks, result);
}

dt_status dt_replay_run_read(struct dt_replay_run *run, const struct dt_journal_reader *reader,
                             const char *what)
{
    DT_CLEANUP(dt_log_record_fini) struct dt_log_record record = {.kind = DT_LOG_KINDS};
    DT_TRY(dt_log_decode(reader, what, run->target, &run->clocks, &record));
    if (record.kind == DT_LOG_RUN)
        return run_begin(run, &record.run);
    if (record.kind == DT_LOG_LEFT_OUT)
        return run_leave_out(run, &record.run);
    return record.kind == DT_LOG_TRIAL ? run_measurement(run, what, &record) : DT_OK;
}

void dt_replay_run_fini(struct dt_replay_run *run)
{
    run_forget_plan(run);
    free(run->parts);
    *run = (struct dt_replay_run){0};
}
