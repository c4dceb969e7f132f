/* SPDX-License-Identifier: MIT */
/* Times are written in nanoseconds, which give the same double again. */
#include "tuner/measure/record/result_json.h"

#include "space/json/json.h"
#include "tuner/measure/trial.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

DT_OBJECT_KIND(point);
DT_LIST_KIND(requests);
DT_LIST_KIND(times);
DT_LIST_KIND(starts);
DT_OBJECT_KIND(remarks);
DT_LIST_KIND(loads);
DT_OBJECT_KIND(phases);
DT_LIST_KIND(exchanges);
DT_LIST_KIND(clock);
DT_LIST_KIND(steps);
DT_LIST_KIND(telemetry);
DT_LIST_KIND(names);
DT_OBJECT_KIND(memory);

#include "base/record_rows.h"

#include "tuner/measure/record/result.def"

/* ns: [steps * ranks]. */
static json_t *matrix_json(const long long *ns, const struct dt_result *result)
{
    json_t *rows = json_array();
    for (int i = 0; i < result->report.steps; i++) {
        json_t *row = json_array();
        for (int r = 0; r < result->ranks; r++)
            json_array_append_new(row, json_integer(*ns++));
        json_array_append_new(rows, row);
    }
    return rows;
}

/* steps x ranks; null for a step without clocks. */
static json_t *clocks_json(const struct dt_result *result)
{
    json_t *rows = json_array();
    for (int i = 0; i < result->report.steps; i++) {
        const double *clock = result->report.clock + (size_t)i * (size_t)result->ranks;
        json_t *row = isfinite(clock[0]) ? json_array() : json_null();
        for (int r = 0; r < result->ranks && json_is_array(row); r++)
            json_array_append_new(row, json_real(clock[r]));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *throttled_steps(const struct dt_result *result)
{
    json_t *steps = json_array();
    for (int i = 0; i < result->report.steps && result->throttling.marks != NULL; i++)
        if (result->throttling.marks[i])
            json_array_append_new(steps, json_integer(i));
    return steps;
}

json_t *dt_raw_result(const struct dt_result *result, const struct dt_target *target)
{
    const struct dt_worker_report *report = &result->report;
    const struct dt_device_report *device = &result->device;
    const struct dt_measurement measurement = {
        .known = true,
        .plan = dt_point_json(target->space, &result->point),
        .outcome = dt_outcome_text(result->outcome),
        .cause = result->cause,
        .cold_ns = dt_ns_of(result->cold_seconds),
        .peak_bytes = result->peak_bytes,
        .verified_error = result->verified_error,
        .image_error = result->image_error,
        .repeat_error = result->repeat_error,
        .others = result->others,
        .gpus = result->gpus,
        .slowdown = result->slowdown > 0 ? result->slowdown : NAN,
        .predicted = result->predicted > 0 ? result->predicted : NAN,
        .cost_ns = dt_ns_of(result->cost_seconds),
        .least = report->warm_up_steps,
        .requests = dt_json_ints(report->requests, report->request_count),
        .ns = matrix_json(report->ns, result),
        .starts = report->starts != NULL ? dt_json_ints(report->starts, report->start_count) : NULL,
        .remarks = json_incref(report->remarks),
        .loads = json_incref(report->loads),
        .flop_peak = report->flop_peak > 0 ? report->flop_peak : NAN,
        .copy_peak = report->copy_peak > 0 ? report->copy_peak : NAN,
        .phases = json_incref(report->phases),
        .exchanges = json_incref(report->exchanges),
        .clock = report->clock != NULL ? clocks_json(result) : NULL,
        .throttled = report->clock != NULL ? throttled_steps(result) : NULL,
        .device = {.known = true,
                   .device_ns = device->ns != NULL ? matrix_json(device->ns, result) : NULL,
                   .host_ns = device->host_ns != NULL ? matrix_json(device->host_ns, result) : NULL,
                   .telemetry = json_incref(device->telemetry),
                   .reasons = json_incref(device->reasons),
                   .memory = json_incref(device->memory)}};
    return dt_record_json(&dt_record_measurement, &measurement);
}

static double seconds_of(int64_t ns)
{
    return ns != DT_NO_NS ? (double)ns * 1e-9 : NAN;
}

static dt_status read_facts(const struct dt_measurement *measurement, const char *what,
                            struct dt_result *result)
{
    struct dt_worker_report *report = &result->report;
    const char *kind;
    DT_TRY(dt_outcome_parse(measurement->outcome, &result->outcome));
    for (size_t i = 0; i < json_array_size(measurement->exchanges); i++)
        DT_TRY(dt_json_string(json_array_get(measurement->exchanges, i), what, "kind", &kind));
    snprintf(result->cause, sizeof result->cause, "%s", measurement->cause);
    result->cold_seconds = seconds_of(measurement->cold_ns);
    result->cost_seconds = seconds_of(measurement->cost_ns);
    result->verified_error = measurement->verified_error;
    result->image_error = measurement->image_error;
    result->repeat_error = measurement->repeat_error;
    result->peak_bytes = measurement->peak_bytes;
    result->others = measurement->others;
    result->gpus = measurement->gpus;
    result->slowdown = measurement->slowdown > 0 ? measurement->slowdown : 0;
    result->predicted = measurement->predicted > 0 ? measurement->predicted : 0;
    report->flop_peak = measurement->flop_peak > 0 ? measurement->flop_peak : 0;
    report->copy_peak = measurement->copy_peak > 0 ? measurement->copy_peak : 0;
    report->phases = json_incref(measurement->phases);
    report->exchanges = json_incref(measurement->exchanges);
    report->loads = json_incref(measurement->loads);
    if (measurement->remarks != NULL && !dt_remarks_read(measurement->remarks, &report->remarks))
        return dt_fail(DT_EUSAGE, "%s: 'remarks' has not the runs and warnings of a program", what);
    return DT_OK;
}

/* Times by other clocks than the samples'. */
static dt_status read_times(const json_t *rows, const char *what, const char *name,
                            const struct dt_result *result, long long **ns)
{
    size_t steps = (size_t)result->report.steps, wrong;
    return rows == NULL || steps == 0 ||
                   (json_array_size(rows) == steps &&
                    dt_times_read(rows, steps, (size_t)result->ranks, 0, ns, &wrong))
               ? DT_OK
               : dt_fail(DT_EUSAGE, "%s: '%s' has not one time a rank of each step of 'ns'", what,
                         name);
}

static dt_status read_device(const struct dt_measured_device *device, const char *what,
                             struct dt_result *result)
{
    struct dt_device_report *report = &result->device;
    const json_t *telemetry = device->telemetry;
    size_t ranks = (size_t)result->ranks;
    DT_TRY(read_times(device->device_ns, what, "device_ns", result, &report->ns));
    DT_TRY(read_times(device->host_ns, what, "host_ns", result, &report->host_ns));
    if (telemetry != NULL &&
        !dt_device_answer_telemetry(telemetry, json_array_size(telemetry), &report->telemetry))
        return dt_fail(DT_EUSAGE, "%s: 'telemetry' is not one object a rank", what);
    if (device->memory != NULL && !dt_device_answer_memory(device->memory, ranks, &report->memory))
        return dt_fail(DT_EUSAGE, "%s: 'memory' has not one integer a rank in each list", what);
    report->reasons = json_incref(device->reasons);
    return DT_OK;
}

dt_status dt_raw_read_result(const json_t *record, const char *what, const struct dt_target *target,
                             struct dt_result *result)
{
    struct dt_measurement measurement;
    struct dt_point point = {{0}};
    *result = (struct dt_result){0};
    DT_TRY(dt_record_require(&dt_record_measurement, record, what));
    dt_record_read(&dt_record_measurement, record, &measurement);
    DT_TRY(dt_point_read(target->space, measurement.plan, &point));
    dt_result_init(result, target, &point);
    DT_TRY(read_facts(&measurement, what, result));
    DT_TRY(dt_raw_read_samples(record, what, result));
    return read_device(&measurement.device, what, result);
}

/* Rounds in which the entrant was not visited. */
static json_t *missed_json(const struct dt_entrant *entrant, int rounds)
{
    json_t *list = json_array();
    for (int k = 0; k < rounds; k++)
        if (!isfinite(entrant->visits[k]))
            json_array_append_new(list, json_integer(k));
    return list;
}

static json_t *entrant_json(const struct dt_entrant *entrant, int rounds,
                            const struct dt_target *target)
{
    json_t *object =
        json_pack("{s:s, s:b, s:b, s:i, s:o, s:o}", "role", dt_entrant_role_text(entrant->role),
                  "decisive", entrant->decisive, "out", entrant->out, "failures", entrant->failures,
                  "out_set", entrant->out_set >= 0 ? json_integer(entrant->out_set) : json_null(),
                  "missed", missed_json(entrant, rounds));
    json_t *result = dt_raw_result(&entrant->result, target);
    json_object_update(object, result);
    json_decref(result);
    return object;
}

static json_t *of_sets_json(const double values[], int sets)
{
    json_t *list = json_array();
    for (int s = 0; s < sets; s++)
        json_array_append_new(list, dt_json_number(values[s]));
    return list;
}

/* Other programs that write records may leave them out: no load was seen then. */
static void read_of_sets(const json_t *record, const char *name, int sets, double values[])
{
    const json_t *list = json_object_get(record, name);
    for (int s = 0; s < sets; s++) {
        const json_t *value = json_array_get(list, (size_t)s);
        values[s] = json_is_number(value) ? json_number_value(value) : NAN;
    }
}

static void read_others(const json_t *record, struct dt_sets *sets)
{
    read_of_sets(record, "others", sets->count, sets->others);
    read_of_sets(record, "stolen", sets->count, sets->stolen);
    read_of_sets(record, "stalled", sets->count, sets->stalled);
    read_of_sets(record, "gpus", sets->count, sets->gpus);
    snprintf(sets->disturber, sizeof sets->disturber, "%s", dt_json_text_at(record, "disturber"));
    dt_text_clean(sets->disturber);
}

json_t *dt_raw_comparison(const struct dt_compared *compared, const struct dt_target *target)
{
    json_t *list = json_array();
    int rounds = dt_sets_rounds(&compared->sets);
    for (int i = 0; i < compared->count; i++)
        json_array_append_new(list, entrant_json(&compared->entrants[i], rounds, target));
    const struct dt_sets *sets = &compared->sets;
    return json_pack(
        "{s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:s*, s:s, s:i, s:[I, I, I], s:b, s:o*, s:o}", "name",
        compared->name, "rounds", rounds, "sets", dt_json_ints(sets->rounds, sets->count), "others",
        of_sets_json(sets->others, sets->count), "stolen", of_sets_json(sets->stolen, sets->count),
        "stalled", of_sets_json(sets->stalled, sets->count), "gpus",
        of_sets_json(sets->gpus, sets->count), "disturber",
        sets->disturber[0] != '\0' ? sets->disturber : NULL, "resident",
        dt_company_text(sets->company), "loads", sets->loads, "longest_ns",
        (json_int_t)sets->setup_ns, (json_int_t)sets->round_ns, (json_int_t)sets->set_ns,
        "complete", compared->complete, "goes_on", compared->goes_on ? json_true() : NULL,
        "entrants", list);
}

static dt_status read_entrant(const json_t *record, const char *what,
                              const struct dt_target *target, struct dt_entrant *entrant)
{
    const char *role;
    int64_t out_set = -1, failures = 0;
    DT_TRY(dt_json_string(record, what, "role", &role));
    DT_TRY(dt_entrant_role_find(what, role, &entrant->role));
    DT_TRY(dt_json_bool(record, what, "decisive", &entrant->decisive));
    DT_TRY(dt_raw_read_result(record, what, target, &entrant->result));
    if (json_is_integer(json_object_get(record, "out_set")))
        DT_TRY(dt_json_int(record, what, "out_set", 0, DT_SETS_MOST, &out_set));
    if (dt_json_has(record, "failures"))
        DT_TRY(dt_json_int(record, what, "failures", 0, DT_SETS_MOST, &failures));
    entrant->point = entrant->result.point;
    entrant->failures = (int)failures;
    entrant->out = entrant->result.outcome != DT_TRIAL_OK;
    if (dt_json_has(record, "out"))
        DT_TRY(dt_json_bool(record, what, "out", &entrant->out));
    if (!entrant->out) /* it failed in the last set, and has another attempt */
        entrant->result.outcome = DT_TRIAL_OK;
    entrant->out_set = (int)out_set;
    return dt_raw_read_visits(record, what, entrant->visits);
}

static int64_t longest_of(const json_t *record, size_t i)
{
    return json_integer_value(json_array_get(json_object_get(record, "longest_ns"), i));
}

/* Records of other programs may have none of these. */
static dt_status read_company(const json_t *record, const char *what, struct dt_sets *sets)
{
    const char *text;
    int64_t loads;
    if (!dt_json_has(record, "resident"))
        return DT_OK;
    DT_TRY(dt_json_string(record, what, "resident", &text));
    DT_TRY(dt_json_int(record, what, "loads", 0, INT_MAX, &loads));
    sets->loads = (int)loads;
    sets->setup_ns = longest_of(record, 0);
    sets->round_ns = longest_of(record, 1);
    sets->set_ns = longest_of(record, 2);
    for (sets->company = DT_ALL_TOGETHER; strcmp(dt_company_text(sets->company), text) != 0;
         sets->company++)
        if (sets->company == DT_ONE_ALONE)
            return dt_fail(DT_EUSAGE, "%s: 'resident' is '%.40s', expected all, pairs or one", what,
                           text);
    return DT_OK;
}

dt_status dt_raw_read_sets(const json_t *record, const char *what, struct dt_sets *sets)
{
    json_t *list;
    *sets = (struct dt_sets){0};
    DT_TRY(dt_json_array(record, what, "sets", &list));
    if (json_array_size(list) > DT_SETS_MOST)
        return dt_fail(DT_EUSAGE, "%s: %zu 'sets', expected at most %d", what,
                       json_array_size(list), DT_SETS_MOST);
    for (size_t s = 0; s < json_array_size(list); s++) {
        json_int_t rounds = json_integer_value(json_array_get(list, s));
        if (rounds < 1 || rounds > DT_SET_ROUNDS)
            return dt_fail(DT_EUSAGE,
                           "%s: set %zu of 'sets' has %" JSON_INTEGER_FORMAT
                           " rounds, expected 1 to %d",
                           what, s, rounds, DT_SET_ROUNDS);
        sets->rounds[sets->count++] = (int)rounds;
    }
    read_others(record, sets);
    return read_company(record, what, sets);
}

dt_status dt_raw_read_comparison(const json_t *record, const char *what,
                                 const struct dt_target *target, struct dt_compared *compared)
{
    json_t *list;
    compared->count = 0;
    DT_TRY(dt_json_string(record, what, "name", &compared->name));
    DT_TRY(dt_raw_read_sets(record, what, &compared->sets));
    DT_TRY(dt_json_bool(record, what, "complete", &compared->complete));
    compared->goes_on = json_is_true(json_object_get(record, "goes_on"));
    DT_TRY(dt_json_array(record, what, "entrants", &list));
    if (json_array_size(list) > DT_ENTRANTS)
        return dt_fail(DT_EUSAGE, "%s: a session's comparison has at most %d entrants", what,
                       DT_ENTRANTS);
    for (size_t i = 0; i < json_array_size(list); i++) {
        compared->entrants[i] = (struct dt_entrant){0};
        compared->count++;
        DT_TRY(read_entrant(json_array_get(list, i), what, target, &compared->entrants[i]));
        compared->entrants[i].result.throttling.clocks = compared->clocks;
    }
    return dt_entrants_rejudge(target, compared->entrants, compared->count, &compared->sets);
}

/* ---- samples: read back, also those that other programs wrote */

static dt_status no_memory_for(const char *what)
{
    return dt_fail(DT_ENOMEM, "out of memory for the samples of %s", what);
}

/* One positive number a rank, or null for a step without clocks. */
static dt_status read_clock(const json_t *record, const char *what, struct dt_run *run)
{
    json_t *rows = NULL;
    size_t steps = (size_t)run->steps, wrong;
    if (!dt_json_has(record, "clock") || run->ranks == 0)
        return DT_OK;
    DT_TRY(dt_json_array(record, what, "clock", &rows));
    if (json_array_size(rows) != steps)
        return dt_fail(DT_EUSAGE, "%s: 'clock' has not as many rows as 'ns'", what);
    if (!dt_clock_read(rows, steps, (size_t)run->ranks, true, &run->clock, &wrong))
        return dt_fail(DT_EUSAGE, "%s: step %zu of 'clock' is not one positive number a rank", what,
                       wrong);
    return run->clock != NULL ? DT_OK : no_memory_for(what);
}

/* A list of steps under that name, which add up to all. */
static dt_status read_counts(const json_t *record, const char *what, const char *name, int all,
                             int **counts, int *n)
{
    json_t *list;
    DT_TRY(dt_json_array(record, what, name, &list));
    if (!dt_counts_read(list, all, counts, n))
        return dt_fail(DT_EUSAGE, "%s: '%s' do not add up to the steps of 'ns'", what, name);
    return *counts != NULL ? DT_OK : no_memory_for(what);
}

static dt_status read_steps(const json_t *record, const char *what, struct dt_result *result)
{
    json_t *rows;
    DT_TRY(dt_json_array(record, what, "ns", &rows));
    size_t steps = json_array_size(rows), ranks = json_array_size(json_array_get(rows, 0)), wrong;
    if (steps > INT_MAX || ranks > INT_MAX)
        return dt_fail(DT_EUSAGE, "%s: 'ns' is too large", what);
    struct dt_run run = {.steps = (int)steps, .ranks = (int)ranks};
    if (steps == 0)
        return DT_OK;
    dt_status status = read_clock(record, what, &run);
    if (status == DT_OK && !dt_times_read(rows, steps, ranks, 0, &run.ns, &wrong))
        status = ranks > 0 && json_array_size(json_array_get(rows, wrong)) == ranks
                     ? dt_fail(DT_EUSAGE, "%s: step %zu of 'ns' holds something that is no time",
                               what, wrong)
                     : dt_fail(DT_EUSAGE, "%s: step %zu of 'ns' is not an array of %zu ranks", what,
                               wrong, ranks);
    else if (status == DT_OK && run.ns == NULL)
        status = no_memory_for(what);
    if (status == DT_OK && dt_json_has(record, "starts"))
        status = read_counts(record, what, "starts", run.steps, &run.starts, &run.start_count);
    if (status == DT_OK)
        status = dt_result_add(result, &run, false);
    dt_run_fini(&run);
    return status;
}

dt_status dt_raw_read_samples(const json_t *record, const char *what, struct dt_result *result)
{
    struct dt_worker_report *report = &result->report;
    int64_t least = 0;
    json_t *list;
    DT_TRY(read_steps(record, what, result));
    if (dt_json_has(record, "least"))
        DT_TRY(dt_json_int(record, what, "least", 0, report->steps, &least));
    report->warm_up_steps = (int)least;
    if (!dt_json_has(record, "requests"))
        return DT_OK;
    DT_TRY(dt_json_array(record, what, "requests", &list));
    if (json_array_size(list) == 0)
        return DT_OK;
    return read_counts(record, what, "requests", report->steps - report->warm_up_steps,
                       &report->requests, &report->request_count);
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
static dt_status finish_samples(struct dt_result *result, bool looks, double level)
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
static dt_status read_processes(const json_t *record, const char *what, int all, int **steps,
                                int *n)
{
    json_t *list;
    DT_TRY(dt_json_array(record, what, "process_steps", &list));
    size_t count = json_array_size(list);
    if (count < 1 || count > DT_PROCESSES_MOST)
        return dt_fail(DT_EUSAGE, "%s: %zu 'process_steps', expected 1 to %d", what, count,
                       DT_PROCESSES_MOST);
    return read_counts(record, what, "process_steps", all, steps, n);
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
            status = finish_samples(&parts[i], looks, level);
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
    int n = 1, *steps = NULL;
    if (dt_json_has(record, "looks"))
        DT_TRY(dt_json_bool(record, what, "looks", &looks));
    if (dt_json_has(record, "level"))
        DT_TRY(dt_json_real(record, what, "level", &level));
    if (!(level > 0 && level < 1))
        return dt_fail(DT_EUSAGE, "%s: 'level' is %g, expected one between 0 and 1", what, level);
    if (dt_json_has(record, "process_steps"))
        DT_TRY(read_processes(record, what, result->report.steps, &steps, &n));
    dt_status status = n > 1 ? finish_processes(result, steps, n, looks, level)
                             : finish_samples(result, looks, level);
    free(steps);
    return status;
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
static bool is_missed(const json_t *entrant, int round)
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
        if (is_missed(entrant, round))
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

/* ---- targets */

#define CORES_MOST 65536
#define STEPS_MOST 1000000

/* NULL where the steps of an image are not known. */
static json_t *image_json(const struct dt_image_work *image)
{
    return image->known ? json_pack("{s:i, s:I, s:b, s:b}", "steps", image->steps,
                                    "text_and_vae_ns", (json_int_t)image->text_and_vae_ns, "given",
                                    image->given, "whole", image->is_image)
                        : NULL;
}

json_t *dt_raw_target(const struct dt_target *target)
{
    bool breaks = target->broken[0] != '\0', planted = target->least_fault > 0;
    return json_pack(
        "{s:s, s:s, s:s, s:b, s:i, s:i, s:f, s:f, s:f, s:I, s:o, s:o, s:o, s:o*, s:s*, s:s, s:s*, "
        "s:o*, s:o*}",
        "title", target->identity.title, "unit", target->hardware.unit, "objective",
        target->objective->name, "foreign", target->foreign, "cores", target->hardware.cores,
        "sampler_steps", target->image.sampler_steps, "image_flops", target->image.flops,
        "image_attention_flops", target->image.attention_flops, "image_rest_bytes",
        target->image.rest_bytes, "plans", (json_int_t)target->plans, "parameters",
        dt_space_axes_json(target->space), "default",
        dt_point_json(target->space, &target->fallback), "baseline",
        dt_point_json(target->space, &target->baseline), "image", image_json(&target->image),
        "step", target->image.step, "reference", dt_target_reference(target), "broken",
        breaks ? target->broken : NULL, "tolerance",
        breaks || planted ? json_real(target->tolerance) : NULL, "least_fault",
        planted ? json_real(target->least_fault) : NULL);
}

static dt_status read_number(const json_t *record, const char *what, const char *key, int most,
                             int *out)
{
    int64_t value;
    DT_TRY(dt_json_int(record, what, key, 1, most, &value));
    *out = (int)value;
    return DT_OK;
}

/* Fields missing from older records are 0. */
static dt_status read_amounts(const json_t *record, const char *what, struct dt_target *target)
{
    DT_TRY(dt_json_real(record, what, "image_flops", &target->image.flops));
    if (dt_json_has(record, "image_attention_flops"))
        DT_TRY(dt_json_real(record, what, "image_attention_flops", &target->image.attention_flops));
    if (dt_json_has(record, "image_rest_bytes"))
        DT_TRY(dt_json_real(record, what, "image_rest_bytes", &target->image.rest_bytes));
    return DT_OK;
}

/* The whole image, where its steps were known. */
static dt_status read_image(const json_t *record, const char *what, struct dt_image_work *image)
{
    json_t *object;
    image->step = dt_target_step(json_string_value(json_object_get(record, "step")));
    if (!dt_json_has(record, "image"))
        return DT_OK;
    DT_TRY(dt_json_object(record, what, "image", &object));
    DT_TRY(read_number(object, what, "steps", STEPS_MOST, &image->steps));
    DT_TRY(dt_json_int(object, what, "text_and_vae_ns", 0, INT64_MAX, &image->text_and_vae_ns));
    DT_TRY(dt_json_bool(object, what, "given", &image->given));
    DT_TRY(dt_json_bool(object, what, "whole", &image->is_image));
    image->known = true;
    return DT_OK;
}

/* What was asked for, with its limit of memory. Records of landscapes, and older ones, have no key. */
static void read_key(const json_t *record, struct dt_target *target)
{
    json_t *key = json_object_get(record, "key");
    int64_t bytes = json_integer_value(json_object_get(key, "max_bytes"));
    if (!json_is_object(key))
        return;
    target->identity.key = json_incref(key);
    target->max_bytes = bytes > 0 ? bytes : 0;
}

/* Of a default plan that breaks a rule. */
static void read_broken(const json_t *record, struct dt_target *target)
{
    snprintf(target->broken, sizeof target->broken, "%s", dt_json_text_at(record, "broken"));
    dt_text_clean(target->broken);
    target->tolerance = json_number_value(json_object_get(record, "tolerance"));
    target->least_fault = json_number_value(json_object_get(record, "least_fault"));
}

static dt_status read_target_fields(const json_t *record, const char *what,
                                    struct dt_target *target)
{
    const char *title, *objective;
    json_t *fallback, *baseline;
    DT_TRY(dt_json_string(record, what, "title", &title));
    DT_TRY(dt_json_string(record, what, "objective", &objective));
    DT_TRY(dt_json_bool(record, what, "foreign", &target->foreign));
    DT_TRY(read_number(record, what, "cores", CORES_MOST, &target->hardware.cores));
    DT_TRY(read_number(record, what, "sampler_steps", STEPS_MOST, &target->image.sampler_steps));
    DT_TRY(read_amounts(record, what, target));
    DT_TRY(read_image(record, what, &target->image));
    DT_TRY(dt_json_int(record, what, "plans", -1, INT64_MAX, &target->plans));
    DT_TRY(dt_json_object(record, what, "default", &fallback));
    DT_TRY(dt_json_object(record, what, "baseline", &baseline));
    const char *unit = json_string_value(json_object_get(record, "unit")); /* older ones lack it */
    target->hardware.unit = unit != NULL && strcmp(unit, "GPU") == 0 ? "GPU" : "core";
    DT_TRY(dt_objective_find(objective, &target->objective));
    DT_TRY(dt_space_axes_from_json(record, what, &target->space));
    DT_TRY(dt_point_read(target->space, fallback, &target->fallback));
    DT_TRY(dt_point_read(target->space, baseline, &target->baseline));
    snprintf(target->identity.title, sizeof target->identity.title, "%s", title);
    read_key(record, target);
    read_broken(record, target);
    snprintf(target->identity.reference, sizeof target->identity.reference, "%s",
             dt_json_text_at(record, "reference"));
    dt_text_clean(target->identity.reference);
    return DT_OK;
}

dt_status dt_raw_read_target(const json_t *record, const char *what, struct dt_target **out)
{
    struct dt_target *target = calloc(1, sizeof *target);
    if (target == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = read_target_fields(record, what, target);
    if (status < 0) {
        dt_target_free(target);
        return status;
    }
    *out = target;
    return DT_OK;
}

json_t *dt_raw_points(const struct dt_space *space, const struct dt_point points[], int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, dt_point_json(space, &points[i]));
    return list;
}

int dt_raw_read_points(const json_t *list, const struct dt_space *space, struct dt_point points[],
                       int room)
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(list) && n < room; i++)
        n += dt_point_read(space, json_array_get(list, i), &points[n]) == DT_OK;
    return n;
}
