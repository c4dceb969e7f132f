/* SPDX-License-Identifier: MIT */
/* Reads answers into plain values; every shape is checked, and a wrong one is a breach of the protocol. */
#include "base/clock.h"
#include "tuner/runner/group_int.h"
#include "tuner/runner/runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define ROWS_MOST        (1 << 20)
#define OUTPUTS_MOST     65536 /* rows of all ranks */
#define PROJECTIONS_MOST 4096
#define NS_MOST          (24 * 3600 * DT_NS_PER_SECOND) /* of a step, and of a start: a day */

void dt_outputs_fini(struct dt_outputs *output)
{
    free(output->norm);
    free(output->projection);
    *output = (struct dt_outputs){.ranks = 0};
}

void dt_prepared_fini(struct dt_prepared *prepared)
{
    dt_outputs_fini(&prepared->output);
    json_decref(prepared->memory);
    json_decref(prepared->remarks);
    prepared->remarks = NULL;
    prepared->memory = NULL;
}

void dt_run_fini(struct dt_run *run)
{
    dt_outputs_fini(&run->output);
    free(run->ns);
    free(run->clock);
    free(run->device_ns);
    free(run->host_ns);
    json_decref(run->phases);
    json_decref(run->telemetry);
    json_decref(run->remarks);
    free(run->starts);
    run->telemetry = run->remarks = NULL;
    run->starts = NULL;
    run->device_ns = run->host_ns = NULL;
    run->ns = NULL;
    run->clock = NULL;
    run->phases = NULL;
}

static dt_status breach(struct dt_failure *failure, const char *what)
{
    *failure = (struct dt_failure){.outcome = DT_TRIAL_PROTOCOL};
    snprintf(failure->cause, sizeof failure->cause, "the answer's %s", what);
    return dt_fail(DT_FAILED, "%s", failure->cause);
}

/* The largest of an array of integers from low to high; false for anything else. */
static bool largest(const json_t *array, size_t n, json_int_t low, json_int_t high, int64_t *out)
{
    int64_t most = 0;
    if (json_array_size(array) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        json_t *value = json_array_get(array, i);
        if (!json_is_integer(value) || json_integer_value(value) < low ||
            json_integer_value(value) > high)
            return false;
        most = json_integer_value(value) > most ? json_integer_value(value) : most;
    }
    *out = most;
    return true;
}

/* A number, or null for one that is not finite. */
static bool number(const json_t *value, double *out)
{
    *out = json_is_number(value) ? json_number_value(value) : NAN;
    return json_is_number(value) || json_is_null(value);
}

/* The rank's part of `output`, whose shape is known. */
static dt_status read_rank_output(const json_t *verify, size_t rank, struct dt_outputs *output,
                                  struct dt_failure *failure)
{
    json_t *norms = json_object_get(verify, "norm"),
           *table = json_object_get(verify, "projections");
    size_t rows = (size_t)output->rows, count = (size_t)output->projections;
    double *norm = output->norm + rank * rows, *projection = output->projection;
    if (json_array_size(norms) != rows || json_array_size(table) != rows)
        return breach(failure, "verify has not one norm and one row of projections an image");
    for (size_t i = 0; i < rows; i++) {
        json_t *row = json_array_get(table, i);
        if (json_array_size(row) != count || !number(json_array_get(norms, i), &norm[i]))
            return breach(failure,
                          "verify has rows of different length, or a norm that is no number");
        for (size_t k = 0; k < count; k++)
            if (!number(json_array_get(row, k), &projection[(rank * rows + i) * count + k]))
                return breach(failure, "verify has a projection that is no number");
    }
    return DT_OK;
}

/* verify: one object, or an array of one a rank. Absent or null: output stays empty. */
static dt_status read_output(const json_t *verify, size_t ranks, struct dt_outputs *output,
                             struct dt_failure *failure)
{
    bool many = json_is_array(verify);
    const json_t *first = many ? json_array_get(verify, 0) : verify;
    json_t *table = json_object_get(first, "projections");
    size_t rows = json_array_size(table), count = json_array_size(json_array_get(table, 0));
    if (verify == NULL || json_is_null(verify))
        return DT_OK;
    if (many && json_array_size(verify) != ranks)
        return breach(failure, "verify has not one object a rank");
    ranks = many ? ranks : 1;
    if (rows < 1 || rows > OUTPUTS_MOST / ranks || count < 1 || count > PROJECTIONS_MOST)
        return breach(failure, "verify has not one norm and one row of projections an image");
    output->norm = calloc(ranks * rows, sizeof *output->norm);
    output->projection = calloc(ranks * rows * count, sizeof *output->projection);
    if (output->norm == NULL || output->projection == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    output->ranks = (int)ranks;
    output->rows = (int)rows;
    output->projections = (int)count;
    for (size_t rank = 0; rank < ranks; rank++)
        DT_TRY(
            read_rank_output(many ? json_array_get(verify, rank) : verify, rank, output, failure));
    return DT_OK;
}

static dt_status read_prepared(const json_t *answer, int ranks, struct dt_prepared *prepared,
                               struct dt_failure *failure)
{
    json_t *peak = json_object_get(answer, "peak_bytes"),
           *cold = json_object_get(answer, "cold_ns");
    json_t *handle = json_object_get(answer, "handle"),
           *resident = json_object_get(answer, "resident_bytes");
    prepared->ranks = (int)json_array_size(cold);
    if (!json_is_integer(handle) || json_integer_value(handle) < 0 ||
        json_integer_value(handle) > 1 << 30)
        return breach(failure, "handle is no small integer");
    prepared->handle = (int)json_integer_value(handle);
    if (prepared->ranks < 1 || (ranks > 1 && prepared->ranks != ranks))
        return breach(failure, "cold_ns has not one number a rank");
    if (!largest(cold, (size_t)prepared->ranks, 1, NS_MOST, &prepared->cold_ns))
        return breach(failure,
                      "cold_ns holds something that is not a positive integer, a day at most");
    if (!largest(peak, (size_t)prepared->ranks, 0, INT64_MAX, &prepared->peak_bytes))
        return breach(failure, "peak_bytes has not one integer a rank");
    if (resident != NULL && (!json_is_integer(resident) || json_integer_value(resident) < 0))
        return breach(failure, "resident_bytes is not an integer");
    prepared->resident_bytes = json_integer_value(resident);
    if (!dt_device_answer_memory(answer, (size_t)prepared->ranks, &prepared->memory))
        return breach(failure, "lists of a device's bytes have not one integer a rank");
    json_t *error = json_object_get(answer, "error");
    prepared->error = json_is_number(error) ? json_number_value(error) : NAN;
    if (error != NULL && !json_is_null(error) && !(prepared->error >= 0))
        return breach(failure, "error is not a number of 0 or more");
    if (!dt_remarks_read(answer, &prepared->remarks))
        return breach(failure, "warnings are not a list of what runs did, and of how many");
    prepared->verifies_runs = json_is_true(json_object_get(answer, "verifies_runs"));
    return read_output(json_object_get(answer, "verify"), (size_t)prepared->ranks,
                       &prepared->output, failure);
}

static json_t *describe_verify(const struct dt_verify *verify)
{
    return verify == NULL ? NULL
                          : json_pack("{s:i, s:I}", "projections", verify->projections, "seed",
                                      (json_int_t)verify->seed);
}

dt_status dt_group_prepare(struct dt_group *group, const json_t *plan,
                           const struct dt_verify *verify, int64_t deadline_ns,
                           struct dt_prepared *out, struct dt_failure *failure)
{
    struct dt_prepared prepared = {.handle = -1};
    json_t *answer = NULL;
    json_t *request = json_pack("{s:s, s:O, s:I, s:o}", "op", "prepare", "plan", plan, "seed",
                                (json_int_t)verify->seed, "verify", describe_verify(verify));
    dt_status status = dt_group_call(group, request, "prepared", deadline_ns, &answer, failure);
    json_decref(request);
    DT_TRY(status);
    status = read_prepared(answer, dt_group_ranks(group), &prepared, failure);
    json_decref(answer);
    if (status < 0) {
        dt_prepared_fini(&prepared);
        return status == DT_FAILED ? dt_group_condemn(group, failure) : status;
    }
    *out = prepared;
    return DT_OK;
}

static dt_status read_clock(const json_t *rows, struct dt_run *run, struct dt_failure *failure)
{
    size_t steps = (size_t)run->steps, ranks = (size_t)run->ranks;
    run->clock = calloc(steps * ranks, sizeof *run->clock);
    if (run->clock == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    if (json_array_size(rows) != steps)
        return breach(failure, "clock has not one row a step");
    for (size_t i = 0; i < steps * ranks; i++) {
        json_t *row = json_array_get(rows, i / ranks), *value = json_array_get(row, i % ranks);
        run->clock[i] = json_number_value(value);
        if (json_array_size(row) != ranks || !(run->clock[i] > 0))
            return breach(failure, "clock has a row without one positive number a rank");
    }
    return DT_OK;
}

/* Reads the devices' reports; null counts as absent. */
static dt_status read_told(const json_t *answer, struct dt_run *run, struct dt_failure *failure)
{
    size_t steps = (size_t)run->steps, ranks = (size_t)run->ranks;
    const json_t *ns = json_object_get(answer, "device_ns"),
                 *host = json_object_get(answer, "host_ns"),
                 *telemetry = json_object_get(answer, "telemetry");
    if (ns != NULL && !json_is_null(ns) && !dt_device_answer_ns(ns, steps, ranks, &run->device_ns))
        return breach(failure, "device_ns has not one time a rank in one row a step");
    if (host != NULL && !json_is_null(host) &&
        !dt_device_answer_ns(host, steps, ranks, &run->host_ns))
        return breach(failure, "host_ns has not one time a rank in one row a step");
    if (telemetry != NULL && !json_is_null(telemetry) &&
        !dt_device_answer_telemetry(telemetry, ranks, &run->telemetry))
        return breach(failure, "telemetry is not one object of known fields a rank");
    return DT_OK;
}

/* Steps of each of at most `most` starts, which add up to the rows of ns. */
static dt_status read_starts(const json_t *list, int most, int rows, struct dt_run *run,
                             struct dt_failure *failure)
{
    size_t count = json_array_size(list);
    int left = rows;
    if (count < 1 || count > (size_t)most)
        return breach(failure, "starts has not as many items as starts were asked for");
    run->starts = calloc(count, sizeof *run->starts);
    if (run->starts == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        json_int_t steps = json_integer_value(json_array_get(list, i));
        if (steps < 1 || steps > left)
            return breach(failure, "starts do not add up to the rows of ns");
        left -= (int)steps;
        run->starts[run->start_count++] = (int)steps;
    }
    return left == 0 ? DT_OK : breach(failure, "starts do not add up to the rows of ns");
}

static dt_status read_samples(const json_t *answer, const struct dt_steps *asked,
                              struct dt_run *run, struct dt_failure *failure)
{
    json_t *rows = json_object_get(answer, "ns"), *starts = json_object_get(answer, "starts");
    size_t ranks = json_array_size(json_array_get(rows, 0));
    bool several = asked->starts && starts != NULL;
    if (json_array_size(rows) > ROWS_MOST || ranks < 1 || ranks > 65536)
        return breach(failure, "ns has not one row a step");
    int steps = several ? (int)json_array_size(rows) : asked->count;
    if (json_array_size(rows) != (size_t)steps)
        return breach(failure, "ns has not one row a step");
    if (several)
        DT_TRY(read_starts(starts, asked->count, steps, run, failure));
    if (!dt_remarks_read(answer, &run->remarks))
        return breach(failure, "warnings are not a list of what runs did, and of how many");
    run->ns = calloc((size_t)steps * ranks, sizeof *run->ns);
    if (run->ns == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    run->steps = steps;
    run->ranks = (int)ranks;
    for (size_t i = 0; i < (size_t)steps; i++) {
        int64_t most;
        if (!largest(json_array_get(rows, i), ranks, 1, NS_MOST, &most))
            return breach(failure,
                          "ns has a row without one positive integer, a day at most, a rank");
        for (size_t r = 0; r < ranks; r++)
            run->ns[i * ranks + r] = json_integer_value(json_array_get(json_array_get(rows, i), r));
    }
    json_t *clock = json_object_get(answer, "clock");
    if (clock != NULL && !json_is_null(clock))
        DT_TRY(read_clock(clock, run, failure));
    DT_TRY(read_told(answer, run, failure));
    json_t *phases = json_object_get(answer, "phases");
    if (json_is_object(phases))
        run->phases = json_incref(phases);
    return read_output(json_object_get(answer, "verify"), ranks, &run->output, failure);
}

const char *dt_mode_text(enum dt_mode mode)
{
    return mode == DT_MODE_WARMUP ? "warmup" : "measure";
}

dt_status dt_group_run(struct dt_group *group, const struct dt_steps *steps, int64_t deadline_ns,
                       struct dt_run *out, struct dt_failure *failure)
{
    struct dt_run run = {.steps = 0};
    json_t *answer = NULL;
    json_t *request = json_pack("{s:s, s:i, s:i, s:s, s:o*}", "op", "run", "handle", steps->handle,
                                "n", steps->count, "mode", dt_mode_text(steps->mode), "verify",
                                describe_verify(steps->verify));
    dt_status status = dt_group_call(group, request, "samples", deadline_ns, &answer, failure);
    json_decref(request);
    DT_TRY(status);
    status = read_samples(answer, steps, &run, failure);
    json_decref(answer);
    if (status < 0) {
        dt_run_fini(&run);
        return status == DT_FAILED ? dt_group_condemn(group, failure) : status;
    }
    *out = run;
    return DT_OK;
}
