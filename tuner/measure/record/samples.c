/* SPDX-License-Identifier: MIT */
#include "tuner/measure/record/result_json.h"

#include "tuner/measure/trial.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NS (INT64_C(1) << 53) /* exact as a double: a hundred days */

static dt_status read_row(const json_t *row, const char *what, int step, int ranks, long long ns[])
{
    if ((int)json_array_size(row) != ranks || ranks == 0)
        return dt_fail(DT_EUSAGE, "%s: step %d of 'ns' is not an array of %d ranks", what, step,
                       ranks);
    for (int r = 0; r < ranks; r++) {
        const json_t *value = json_array_get(row, (size_t)r);
        ns[r] = json_integer_value(value);
        if (!json_is_integer(value) || ns[r] < 0 || ns[r] > MOST_NS)
            return dt_fail(DT_EUSAGE, "%s: step %d of 'ns' holds something that is no time", what,
                           step);
    }
    return DT_OK;
}

/* One positive number a rank, or null for a step without clocks. */
static dt_status read_clock(const json_t *record, const char *what, struct dt_run *run)
{
    json_t *rows = NULL;
    size_t steps = (size_t)run->steps, ranks = (size_t)run->ranks;
    if (!dt_json_has(record, "clock") || ranks == 0)
        return DT_OK;
    DT_TRY(dt_json_array(record, what, "clock", &rows));
    run->clock = calloc(steps * ranks + 1, sizeof *run->clock);
    if (run->clock == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    if (json_array_size(rows) != steps)
        return dt_fail(DT_EUSAGE, "%s: 'clock' has not as many rows as 'ns'", what);
    for (size_t i = 0; i < steps * ranks; i++) {
        const json_t *row = json_array_get(rows, i / ranks);
        bool told = !json_is_null(row);
        run->clock[i] = told ? json_number_value(json_array_get(row, i % ranks)) : NAN;
        if (told && (json_array_size(row) != ranks || !(run->clock[i] > 0)))
            return dt_fail(DT_EUSAGE, "%s: step %zu of 'clock' is not one positive number a rank",
                           what, i / ranks);
    }
    return DT_OK;
}

/* Steps of each run of a program, which add up to all. */
static dt_status read_starts(const json_t *record, const char *what, struct dt_run *run)
{
    json_t *list;
    int64_t left = run->steps;
    if (!dt_json_has(record, "starts"))
        return DT_OK;
    DT_TRY(dt_json_array(record, what, "starts", &list));
    run->starts = calloc(json_array_size(list) + 1, sizeof *run->starts);
    if (run->starts == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t steps = json_integer_value(json_array_get(list, i));
        if (steps < 1 || steps > left)
            return dt_fail(DT_EUSAGE, "%s: 'starts' do not add up to the steps of 'ns'", what);
        left -= steps;
        run->starts[run->start_count++] = (int)steps;
    }
    return left == 0 ? DT_OK
                     : dt_fail(DT_EUSAGE, "%s: 'starts' do not add up to the steps of 'ns'", what);
}

static dt_status read_matrix(const json_t *record, const char *what, struct dt_result *result)
{
    json_t *rows;
    DT_TRY(dt_json_array(record, what, "ns", &rows));
    size_t steps = json_array_size(rows), ranks = json_array_size(json_array_get(rows, 0));
    if (steps > INT_MAX || ranks > INT_MAX)
        return dt_fail(DT_EUSAGE, "%s: 'ns' is too large", what);
    struct dt_run run = {.steps = (int)steps, .ranks = (int)ranks};
    if (steps == 0)
        return DT_OK;
    run.ns = calloc(steps * ranks + 1, sizeof *run.ns);
    if (run.ns == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = read_clock(record, what, &run);
    for (int i = 0; status == DT_OK && i < run.steps; i++)
        status = read_row(json_array_get(rows, (size_t)i), what, i, run.ranks,
                          run.ns + (size_t)i * ranks);
    if (status == DT_OK)
        status = read_starts(record, what, &run);
    if (status == DT_OK)
        status = dt_result_add(result, &run, false);
    dt_run_fini(&run);
    return status;
}

/* Steps of each request, after the first `least`; all of them are made. */
static dt_status read_requests(const json_t *record, const char *what, struct dt_result *result)
{
    json_t *list;
    DT_TRY(dt_json_array(record, what, "requests", &list));
    int n = (int)json_array_size(list);
    int64_t left = result->report.steps - result->report.warm_up_steps;
    result->report.requests = calloc((size_t)n + 1, sizeof *result->report.requests);
    if (result->report.requests == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (int i = 0; i < n; i++) {
        const json_t *value = json_array_get(list, (size_t)i);
        int64_t steps = json_integer_value(value);
        if (!json_is_integer(value) || steps < 1 || steps > left)
            return dt_fail(DT_EUSAGE, "%s: 'requests' do not add up to the steps of 'ns'", what);
        left -= steps;
        result->report.requests[i] = (int)steps;
    }
    result->report.request_count = n;
    return left == 0 || n == 0
               ? DT_OK
               : dt_fail(DT_EUSAGE, "%s: 'requests' do not add up to the steps of 'ns'", what);
}

dt_status dt_raw_read_samples(const json_t *record, const char *what, struct dt_result *result)
{
    int64_t least = 0;
    DT_TRY(read_matrix(record, what, result));
    if (dt_json_has(record, "least"))
        DT_TRY(dt_json_int(record, what, "least", 0, result->report.steps, &least));
    result->report.warm_up_steps = (int)least;
    return dt_json_has(record, "requests") ? read_requests(record, what, result) : DT_OK;
}

/* Replays the trial: statistics after each request, then the next look or the same again. */
static dt_status replay_looks(struct dt_result *result)
{
    int all = result->report.steps;
    result->report.steps = result->report.warm_up_steps;
    for (int i = 0; i < result->report.request_count; i++) {
        dt_result_next(result);
        result->report.steps += result->report.requests[i];
        DT_TRY(dt_result_look(result));
    }
    result->report.steps = all;
    return DT_OK;
}

/* looks: at the alpha of the look reached, by one request of all steps when there are no others. */
static dt_status finish(struct dt_result *result, bool looks, double level)
{
    if (looks && result->report.request_count > 0)
        return replay_looks(result);
    if (looks) {
        DT_TRY(dt_result_look(result));
        level = dt_stats_look_level(result->samples.n);
    }
    return dt_result_finish(result, level, dt_result_detects(result), result->report.warm_up_steps);
}

/* Number of steps of each fresh process; they add up to all steps. */
static dt_status read_processes(const json_t *record, const char *what, int all, int steps[],
                                int *n)
{
    json_t *list;
    DT_TRY(dt_json_array(record, what, "process_steps", &list));
    size_t count = json_array_size(list);
    if (count < 1 || count > DT_PROCESSES_MOST)
        return dt_fail(DT_EUSAGE, "%s: %zu 'process_steps', expected 1 to %d", what, count,
                       DT_PROCESSES_MOST);
    int64_t left = all;
    for (size_t i = 0; i < count; i++) {
        int64_t value = json_integer_value(json_array_get(list, i));
        if (value < 1 || value > left)
            return dt_fail(DT_EUSAGE, "%s: 'process_steps' do not add up to the steps of 'ns'",
                           what);
        left -= value;
        steps[i] = (int)value;
    }
    *n = (int)count;
    return left == 0
               ? DT_OK
               : dt_fail(DT_EUSAGE, "%s: 'process_steps' do not add up to the steps of 'ns'", what);
}

/* The steps of *result as those of n processes, each with its own warm-up of `least` steps. */
static dt_status finish_processes(struct dt_result *result, const int steps[], int n, bool looks,
                                  double level)
{
    struct dt_result whole = {.outcome = DT_TRIAL_OK};
    struct dt_result *parts = calloc((size_t)n, sizeof *parts);
    if (parts == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = DT_OK;
    size_t at = 0;
    for (int i = 0; i < n && status == DT_OK; i++) {
        struct dt_run run = {.steps = steps[i],
                             .ranks = result->ranks,
                             .ns = result->report.ns + at,
                             .clock =
                                 result->report.clock != NULL ? result->report.clock + at : NULL};
        at += (size_t)steps[i] * (size_t)result->ranks;
        parts[i].throttling.clocks = result->throttling.clocks;
        status = dt_result_add(&parts[i], &run, false);
        parts[i].report.warm_up_steps =
            result->report.warm_up_steps < steps[i] ? result->report.warm_up_steps : steps[i];
        if (status == DT_OK)
            status = finish(&parts[i], looks, level);
        if (status == DT_OK && result->throttling.clocks != NULL)
            status = dt_clocks_learn(result->throttling.clocks, &parts[i]);
    }
    if (status == DT_OK)
        status = dt_processes_join(parts, n, &whole);
    for (int i = 0; i < n; i++)
        dt_result_fini(&parts[i]);
    free(parts);
    dt_result_fini(result);
    *result = whole;
    return status;
}

dt_status dt_raw_finish_trial(const json_t *record, const char *what, struct dt_result *result)
{
    bool looks = false;
    double level = 0.95;
    int n = 1, steps[DT_PROCESSES_MOST];
    if (dt_json_has(record, "looks"))
        DT_TRY(dt_json_bool(record, what, "looks", &looks));
    if (dt_json_has(record, "level"))
        DT_TRY(dt_json_real(record, what, "level", &level));
    if (!(level > 0 && level < 1))
        return dt_fail(DT_EUSAGE, "%s: 'level' is %g, expected one between 0 and 1", what, level);
    if (dt_json_has(record, "process_steps"))
        DT_TRY(read_processes(record, what, result->report.steps, steps, &n));
    return n > 1 ? finish_processes(result, steps, n, looks, level) : finish(result, looks, level);
}

static dt_status read_visits_ns(const json_t *entrant, const char *what, double visits[])
{
    json_t *list;
    DT_TRY(dt_json_array(entrant, what, "visits_ns", &list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);
        double ns = json_is_null(value) ? NAN : json_number_value(value);
        if (!json_is_null(value) && !(json_is_number(value) && ns > 0))
            return dt_fail(DT_EUSAGE,
                           "%s: visit %zu of 'visits_ns' is neither a time above 0 nor null", what,
                           i);
        if (i < DT_ROUNDS_MOST)
            visits[i] = ns * 1e-9;
    }
    return DT_OK;
}

/* "missed" names the round. */
static bool missed(const json_t *entrant, int round)
{
    const json_t *list = json_object_get(entrant, "missed"), *value;
    size_t i;
    json_array_foreach(list, i, value)
    {
        if (json_integer_value(value) == round)
            return true;
    }
    return false;
}

/* Requests are the visits of the rounds, in order, except missed rounds. */
static dt_status visits_of(const json_t *entrant, const struct dt_result *result, const char *what,
                           double visits[])
{
    int from = result->report.warm_up_steps, round = 0;
    for (int i = 0; i < result->report.request_count && round < DT_ROUNDS_MOST; round++) {
        if (missed(entrant, round))
            continue;
        if (result->report.requests[i] > DT_VISIT_STEPS)
            return dt_fail(DT_EUSAGE, "%s: visit %d has %d steps, more than %d", what, i,
                           result->report.requests[i], DT_VISIT_STEPS);
        visits[round] = dt_visit_seconds(result, from, result->report.requests[i]);
        from += result->report.requests[i++];
    }
    return DT_OK;
}

dt_status dt_raw_read_visits(const json_t *entrant, const char *what, double visits[DT_ROUNDS_MOST])
{
    for (int i = 0; i < DT_ROUNDS_MOST; i++)
        visits[i] = NAN;
    if (!dt_json_has(entrant, "ns"))
        return read_visits_ns(entrant, what, visits);
    struct dt_result result = {0};
    dt_status status = dt_raw_read_samples(entrant, what, &result);
    if (status == DT_OK)
        status = visits_of(entrant, &result, what, visits);
    dt_result_fini(&result);
    return status;
}
