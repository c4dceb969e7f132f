/* SPDX-License-Identifier: MIT */
/* Times are written in nanoseconds, which give the same double again. */
#include "tuner/measure/record/result_json.h"

#include "space/json/json.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
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
static json_t *matrix(const long long *ns, const struct dt_result *result)
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
static json_t *clocks(const struct dt_result *result)
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
        .ns = matrix(report->ns, result),
        .starts = report->starts != NULL ? dt_json_ints(report->starts, report->start_count) : NULL,
        .remarks = json_incref(report->remarks),
        .loads = json_incref(report->loads),
        .flop_peak = report->flop_peak > 0 ? report->flop_peak : NAN,
        .copy_peak = report->copy_peak > 0 ? report->copy_peak : NAN,
        .phases = json_incref(report->phases),
        .exchanges = json_incref(report->exchanges),
        .clock = report->clock != NULL ? clocks(result) : NULL,
        .throttled = report->clock != NULL ? throttled_steps(result) : NULL,
        .device = {.known = true,
                   .device_ns = device->ns != NULL ? matrix(device->ns, result) : NULL,
                   .host_ns = device->host_ns != NULL ? matrix(device->host_ns, result) : NULL,
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

static dt_status read_device(const struct dt_measured_device *device, const char *what,
                             struct dt_result *result)
{
    struct dt_device_report *report = &result->device;
    const json_t *telemetry = device->telemetry;
    size_t steps = (size_t)result->report.steps, ranks = (size_t)result->ranks;
    if (device->device_ns != NULL && steps > 0 &&
        !dt_device_answer_ns(device->device_ns, steps, ranks, &report->ns))
        return dt_fail(DT_EUSAGE, "%s: 'device_ns' has not one time a rank of each step of 'ns'",
                       what);
    if (device->host_ns != NULL && steps > 0 &&
        !dt_device_answer_ns(device->host_ns, steps, ranks, &report->host_ns))
        return dt_fail(DT_EUSAGE, "%s: 'host_ns' has not one time a rank of each step of 'ns'",
                       what);
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
static json_t *missed(const struct dt_entrant *entrant, int rounds)
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
                  "missed", missed(entrant, rounds));
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

/* Older records do not have them: no load was seen. */
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
        "{s:s, s:i, s:o, s:o, s:o, s:o, s:o, s:s*, s:s, s:i, s:[I, I, I], s:b, s:o}", "name",
        compared->name, "rounds", rounds, "sets", dt_json_ints(sets->rounds, sets->count), "others",
        of_sets_json(sets->others, sets->count), "stolen", of_sets_json(sets->stolen, sets->count),
        "stalled", of_sets_json(sets->stalled, sets->count), "gpus",
        of_sets_json(sets->gpus, sets->count), "disturber",
        sets->disturber[0] != '\0' ? sets->disturber : NULL, "resident",
        dt_company_text(sets->company), "loads", sets->loads, "longest_ns",
        (json_int_t)sets->setup_ns, (json_int_t)sets->round_ns, (json_int_t)sets->set_ns,
        "complete", compared->complete, "entrants", list);
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

/* Older records have none of these. */
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
