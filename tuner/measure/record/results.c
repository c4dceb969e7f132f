/* SPDX-License-Identifier: MIT */
/* Times are written in nanoseconds, which give the same double again. */
#include "tuner/measure/record/result_json.h"

#include "base/array.h"
#include "space/json/json.h"
#include "tuner/measure/trial.h"
#include "tuner/runner/samples_json.h"

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

#include "tuner/measure/facts.def"

#include "base/record_rows.h"

#include "tuner/measure/record/result.def"

static json_t *throttled_steps(const struct dt_result *result)
{
    json_t *steps = json_array();
    for (int i = 0; i < result->throttling.marked; i++)
        if (result->throttling.marks[i])
            json_array_append_new(steps, json_integer(i));
    return steps;
}

static json_t *loads_json(const struct dt_result *result)
{
    json_t *list = result->loads != NULL ? json_array() : NULL;
    for (int i = 0; i < result->load_count; i++)
        json_array_append_new(list, dt_record_json(&dt_record_rig_load, &result->loads[i]));
    return list;
}

static dt_status read_loads(const json_t *list, struct dt_result *result)
{
    if (list == NULL)
        return DT_OK;
    DT_TRY(DT_RESIZE(result->loads, json_array_size(list)));
    for (size_t i = 0; i < json_array_size(list); i++)
        dt_record_read(&dt_record_rig_load, json_array_get(list, i),
                       &result->loads[result->load_count++]);
    return DT_OK;
}

static json_t *exchanges_json(const struct dt_result *result)
{
    json_t *list = result->exchanges != NULL ? json_array() : NULL;
    for (int i = 0; i < result->exchange_count; i++) {
        const struct dt_timed_exchange *exchange = &result->exchanges[i];
        json_t *bytes = json_array();
        for (int k = 0; k < DT_EXCHANGE_SIZES; k++)
            json_array_append_new(bytes, json_integer(exchange->bytes[k]));
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i, s:o, s:o*, s:s*}", "kind", exchange->kind, "ranks",
                            exchange->ranks, "stride", exchange->stride, "bytes", bytes, "ns",
                            exchange->timed
                                ? dt_times_json(exchange->ns, DT_EXCHANGE_SIZES, DT_EXCHANGE_TIMES)
                                : NULL,
                            "reason", exchange->reason[0] != '\0' ? exchange->reason : NULL));
    }
    return list;
}

/* Times of another shape are left out. */
static dt_status read_exchange(const json_t *record, const char *what,
                               struct dt_timed_exchange *exchange)
{
    const json_t *bytes = json_object_get(record, "bytes");
    struct dt_run_fault fault;
    dt_auto_free long long *ns = NULL;
    const char *kind;
    DT_TRY(dt_json_string(record, what, "kind", &kind));
    *exchange = (struct dt_timed_exchange){
        .ranks = (int)dt_json_integer_at(record, "ranks"),
        .stride = (int)dt_json_integer_at(record, "stride"),
        .timed = dt_times_read(json_object_get(record, "ns"), DT_EXCHANGE_SIZES, DT_EXCHANGE_TIMES,
                               1, &ns, &fault) &&
                 ns != NULL};
    snprintf(exchange->kind, sizeof exchange->kind, "%s", kind);
    snprintf(exchange->reason, sizeof exchange->reason, "%s", dt_json_text_at(record, "reason"));
    for (size_t k = 0; k < DT_EXCHANGE_SIZES; k++)
        exchange->bytes[k] = json_integer_value(json_array_get(bytes, k));
    if (exchange->timed)
        memcpy(exchange->ns, ns, sizeof exchange->ns);
    return DT_OK;
}

static dt_status read_exchanges(const json_t *list, const char *what, struct dt_result *result)
{
    if (list == NULL)
        return DT_OK;
    DT_TRY(DT_RESIZE(result->exchanges, json_array_size(list)));
    for (size_t i = 0; i < json_array_size(list); i++)
        DT_TRY(read_exchange(json_array_get(list, i), what,
                             &result->exchanges[result->exchange_count++]));
    return DT_OK;
}

static json_t *reasons_json(const struct dt_run *report)
{
    json_t *list = report->reasons != NULL ? json_array() : NULL;
    for (int i = 0; i < report->reason_count; i++)
        json_array_append_new(list, dt_kind_reasons.write(&report->reasons[i]));
    return list;
}

static dt_status read_reasons(const json_t *list, const char *what, struct dt_run *report)
{
    if (list == NULL)
        return DT_OK;
    DT_TRY(DT_RESIZE(report->reasons, json_array_size(list)));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *names = json_array_get(list, i);
        if (!dt_kind_reasons.right(names))
            return dt_fail(DT_EUSAGE, "%s: 'reasons' is not lists of names", what);
        dt_kind_reasons.read(names, &report->reasons[report->reason_count++]);
    }
    return DT_OK;
}

json_t *dt_raw_result(const struct dt_result *result, const struct dt_target *target)
{
    const struct dt_run *report = &result->report;
    int steps = report->steps, ranks = result->ranks;
    const struct dt_measurement measurement = {
        .known = true,
        .plan = dt_point_json(target->space, &result->point),
        .outcome = dt_outcome_text(result->outcome),
        .cause = result->cause,
        .facts = result->facts,
        .least = report->warm_up_steps,
        .requests = dt_json_ints(report->requests, report->request_count),
        .ns = dt_times_json(report->ns, steps, ranks),
        .replicas = result->replicas > 1 ? result->replicas : 0,
        .starts = report->starts != NULL ? dt_json_ints(report->starts, report->start_count) : NULL,
        .remarks = dt_remarks_json(report->remarks),
        .loads = loads_json(result),
        .ceilings = result->ceilings,
        .phases = dt_phases_json(report->phases),
        .exchanges = exchanges_json(result),
        .clock = dt_clock_json(report),
        .throttled = report->clock != NULL ? throttled_steps(result) : NULL,
        .device = {.known = true,
                   .device_ns = dt_times_json(report->device_ns, steps, ranks),
                   .host_ns = dt_times_json(report->host_ns, steps, ranks),
                   .telemetry = dt_telemetry_json(report->telemetry, ranks),
                   .reasons = reasons_json(report),
                   .memory = dt_device_bytes_json(&result->memory)}};
    return dt_record_json(&dt_record_measurement, &measurement);
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
    DT_TRY(dt_outcome_parse(measurement.outcome, &result->outcome));
    snprintf(result->cause, sizeof result->cause, "%s", measurement.cause);
    result->facts = measurement.facts;
    result->ceilings = measurement.ceilings;
    DT_TRY(read_loads(measurement.loads, result));
    DT_TRY(read_exchanges(measurement.exchanges, what, result));
    DT_TRY(dt_raw_read_samples(record, what, result));
    DT_TRY(read_reasons(measurement.device.reasons, what, &result->report));
    if (measurement.device.memory != NULL &&
        !dt_device_bytes_read(measurement.device.memory, result->ranks, &result->memory))
        return dt_fail(DT_EUSAGE, "%s: 'memory' has not one integer a rank in each list", what);
    return DT_OK;
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
    json_auto_t *result = dt_raw_result(&entrant->result, target);
    json_object_update(object, result);
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

/* Records of other programs may have none of these. */
static dt_status read_company(const json_t *record, const char *what, struct dt_sets *sets)
{
    const char *text;
    int64_t loads, *longest[] = {&sets->setup_ns, &sets->round_ns, &sets->set_ns};
    const json_t *list = json_object_get(record, "longest_ns");
    if (!dt_json_has(record, "resident"))
        return DT_OK;
    DT_TRY(dt_json_string(record, what, "resident", &text));
    DT_TRY(dt_json_int(record, what, "loads", 0, INT_MAX, &loads));
    sets->loads = (int)loads;
    for (size_t i = 0; i < 3; i++)
        *longest[i] = json_integer_value(json_array_get(list, i));
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
    read_of_sets(record, "others", sets->count, sets->others);
    read_of_sets(record, "stolen", sets->count, sets->stolen);
    read_of_sets(record, "stalled", sets->count, sets->stalled);
    read_of_sets(record, "gpus", sets->count, sets->gpus);
    snprintf(sets->disturber, sizeof sets->disturber, "%s", dt_json_text_at(record, "disturber"));
    dt_text_clean(sets->disturber);
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

/* A list of steps under that name, which add up to all. */
static dt_status read_counts(const json_t *record, const char *what, const char *name, int all,
                             int **counts, int *n)
{
    json_t *list;
    DT_TRY(dt_json_array(record, what, name, &list));
    if (!dt_counts_read(list, all, counts, n))
        return dt_fail(DT_EUSAGE, "%s: '%s' do not add up to the steps of 'ns'", what, name);
    return *counts != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory for %s", what);
}

static dt_status run_malformed(const struct dt_run_fault *fault, const char *what, size_t ranks)
{
    const char *field = fault->field;
    if (strcmp(field, "ns") == 0)
        return fault->size
                   ? dt_fail(DT_EUSAGE, "%s: step %zu of 'ns' is not an array of %zu ranks", what,
                             fault->step, ranks)
                   : dt_fail(DT_EUSAGE, "%s: step %zu of 'ns' holds something that is no time",
                             what, fault->step);
    if (strcmp(field, "clock") == 0)
        return fault->size
                   ? dt_fail(DT_EUSAGE, "%s: 'clock' has not as many rows as 'ns'", what)
                   : dt_fail(DT_EUSAGE, "%s: step %zu of 'clock' is not one positive number a rank",
                             what, fault->step);
    if (strcmp(field, "telemetry") == 0)
        return dt_fail(DT_EUSAGE, "%s: 'telemetry' is not one object a rank", what);
    if (strcmp(field, "starts") == 0)
        return dt_fail(DT_EUSAGE, "%s: 'starts' do not add up to the steps of 'ns'", what);
    if (strcmp(field, "remarks") == 0)
        return dt_fail(DT_EUSAGE, "%s: 'remarks' has not the runs and warnings of a program", what);
    return dt_fail(DT_EUSAGE, "%s: '%s' has not one time a rank of each step of 'ns'", what, field);
}

dt_status dt_raw_read_samples(const json_t *record, const char *what, struct dt_result *result)
{
    struct dt_run *report = &result->report;
    const struct dt_run_form form = {
        .remarks = json_object_get(record, "remarks"), .starts = true, .gaps = true};
    struct dt_run_fault fault;
    int64_t least = 0, replicas = 1;
    json_t *list;
    if (dt_json_has(record, "replicas"))
        DT_TRY(dt_json_int(record, what, "replicas", 1, DT_REPLICAS_MOST, &replicas));
    result->replicas = (int)replicas;
    DT_TRY(dt_json_array(record, what, "ns", &list));
    dt_status status = dt_run_read(record, &form, report, &fault);
    if (status != DT_OK)
        return status == DT_FAILED
                   ? run_malformed(&fault, what, json_array_size(json_array_get(list, 0)))
                   : status;
    result->ranks = report->steps > 0 ? report->ranks : result->ranks;
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
    struct dt_result whole = {.outcome = DT_TRIAL_OK, .replicas = result->replicas};
    dt_auto_free struct dt_result *parts = calloc((size_t)n, sizeof *parts);
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
        parts[i].replicas = result->replicas;
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
    dt_result_fini(result);
    *result = whole;
    return status;
}

dt_status dt_raw_finish_trial(const json_t *record, const char *what, struct dt_result *result)
{
    bool looks = false;
    double level = 0.95;
    int n = 1;
    dt_auto_free int *steps = NULL;
    if (dt_json_has(record, "looks"))
        DT_TRY(dt_json_bool(record, what, "looks", &looks));
    if (dt_json_has(record, "level"))
        DT_TRY(dt_json_real(record, what, "level", &level));
    if (!(level > 0 && level < 1))
        return dt_fail(DT_EUSAGE, "%s: 'level' is %g, expected one between 0 and 1", what, level);
    if (dt_json_has(record, "process_steps"))
        DT_TRY(read_processes(record, what, result->report.steps, &steps, &n));
    return n > 1 ? finish_processes(result, steps, n, looks, level)
                 : finish_samples(result, looks, level);
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
    struct dt_result DT_CLEANUP(dt_result_fini) result = {0};
    DT_TRY(dt_raw_read_samples(entrant, what, &result));
    return visits_of(entrant, &result, what, visits);
}
