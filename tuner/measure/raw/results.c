/* SPDX-License-Identifier: MIT */
/* Times are written in nanoseconds, which give the same double again. */
#include "tuner/measure/raw/raw.h"

#include <math.h>
#include <stdio.h>

static json_t *nanoseconds(double seconds)
{
    return isfinite(seconds) ? json_integer((json_int_t)llround(seconds * 1e9)) : json_null();
}

static json_t *matrix(const struct dt_result *result)
{
    json_t *rows = json_array();
    for (int i = 0; i < result->report.steps; i++) {
        json_t *row = json_array();
        for (int r = 0; r < result->ranks; r++)
            json_array_append_new(
                row,
                json_integer(result->report.ns[(size_t)i * (size_t)result->ranks + (size_t)r]));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *requests(const struct dt_result *result)
{
    json_t *list = json_array();
    for (int i = 0; i < result->report.request_count; i++)
        json_array_append_new(list, json_integer(result->report.requests[i]));
    return list;
}

json_t *dt_raw_result(const struct dt_result *result, const struct dt_target *target)
{
    json_t *object = json_pack(
        "{s:o, s:s, s:s, s:o, s:I, s:o, s:o, s:i, s:o, s:o}", "plan",
        dt_point_json(target->space, &result->point), "outcome", dt_outcome_text(result->outcome),
        "cause", result->cause, "cold_ns", nanoseconds(result->cold_seconds), "peak_bytes",
        (json_int_t)result->peak_bytes, "verified_error",
        isfinite(result->verified_error) ? json_real(result->verified_error) : json_null(),
        "cost_ns", nanoseconds(result->cost_seconds), "least", result->report.warm_up_steps,
        "requests", requests(result), "ns", matrix(result));
    if (result->report.flop_peak > 0)
        json_object_set_new(object, "peak_flop_rate", json_real(result->report.flop_peak));
    if (result->report.copy_peak > 0)
        json_object_set_new(object, "copy_bytes_per_second", json_real(result->report.copy_peak));
    if (result->report.phases != NULL)
        json_object_set(object, "phases", result->report.phases);
    if (result->report.exchanges != NULL)
        json_object_set(object, "exchanges", result->report.exchanges);
    dt_raw_add_clock(result, object);
    dt_device_report_record(result, object);
    return object;
}

/* A number, or null: NAN. */
static dt_status read_real(const json_t *record, const char *what, const char *key, double *out)
{
    *out = NAN;
    return json_is_null(json_object_get(record, key)) ? DT_OK
                                                      : dt_json_real(record, what, key, out);
}

static dt_status read_exchanges(const json_t *record, const char *what, struct dt_result *result)
{
    json_t *list;
    const char *kind;
    if (!dt_json_has(record, "exchanges"))
        return DT_OK;
    DT_TRY(dt_json_array(record, what, "exchanges", &list));
    for (size_t i = 0; i < json_array_size(list); i++)
        DT_TRY(dt_json_string(json_array_get(list, i), what, "kind", &kind));
    result->report.exchanges = json_incref(list);
    return DT_OK;
}

static dt_status read_facts(const json_t *record, const char *what, struct dt_result *result)
{
    const char *outcome, *cause;
    double cold_ns, cost_ns;
    DT_TRY(dt_json_string(record, what, "outcome", &outcome));
    DT_TRY(dt_outcome_parse(outcome, &result->outcome));
    DT_TRY(dt_json_string(record, what, "cause", &cause));
    DT_TRY(read_real(record, what, "cold_ns", &cold_ns));
    DT_TRY(read_real(record, what, "cost_ns", &cost_ns));
    DT_TRY(read_real(record, what, "verified_error", &result->verified_error));
    DT_TRY(dt_json_int(record, what, "peak_bytes", INT64_MIN, INT64_MAX, &result->peak_bytes));
    if (dt_json_has(record, "peak_flop_rate"))
        DT_TRY(dt_json_real(record, what, "peak_flop_rate", &result->report.flop_peak));
    if (dt_json_has(record, "copy_bytes_per_second"))
        DT_TRY(dt_json_real(record, what, "copy_bytes_per_second", &result->report.copy_peak));
    snprintf(result->cause, sizeof result->cause, "%s", cause);
    result->cold_seconds = cold_ns * 1e-9;
    result->cost_seconds = cost_ns * 1e-9;
    result->report.phases = json_incref(json_object_get(record, "phases"));
    return DT_OK;
}

dt_status dt_raw_read_result(const json_t *record, const char *what, const struct dt_target *target,
                             struct dt_result *result)
{
    json_t *plan;
    struct dt_point point = {{0}};
    *result = (struct dt_result){0};
    DT_TRY(dt_json_object(record, what, "plan", &plan));
    DT_TRY(dt_point_read(target->space, plan, &point));
    dt_result_init(result, target, &point);
    DT_TRY(read_facts(record, what, result));
    DT_TRY(read_exchanges(record, what, result));
    DT_TRY(dt_raw_read_samples(record, what, result));
    return dt_device_report_read(record, what, result);
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
        json_pack("{s:s, s:b, s:i, s:o, s:o}", "role", dt_entrant_role_text(entrant->role),
                  "decisive", entrant->decisive, "failures", entrant->failures, "out_set",
                  entrant->out_set >= 0 ? json_integer(entrant->out_set) : json_null(), "missed",
                  missed(entrant, rounds));
    json_t *result = dt_raw_result(&entrant->result, target);
    json_object_update(object, result);
    json_decref(result);
    return object;
}

json_t *dt_raw_comparison(const struct dt_compared *compared, const struct dt_target *target)
{
    json_t *list = json_array(), *sets = json_array();
    int rounds = dt_sets_rounds(&compared->sets);
    for (int i = 0; i < compared->count; i++)
        json_array_append_new(list, entrant_json(&compared->entrants[i], rounds, target));
    for (int s = 0; s < compared->sets.count; s++)
        json_array_append_new(sets, json_integer(compared->sets.rounds[s]));
    return json_pack("{s:s, s:i, s:o, s:b, s:o}", "name", compared->name, "rounds", rounds, "sets",
                     sets, "complete", compared->complete, "entrants", list);
}

static dt_status read_entrant(const json_t *record, const char *what,
                              const struct dt_target *target, struct dt_entrant *entrant)
{
    const char *role;
    int rounds;
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
    entrant->out_set = (int)out_set;
    return dt_raw_read_visits(record, what, entrant->visits, &rounds);
}

dt_status dt_raw_read_sets(const json_t *record, const char *what, struct dt_sets *sets)
{
    json_t *list;
    *sets = (struct dt_sets){0};
    if (!dt_json_has(record, "sets"))
        return DT_OK;
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
    return DT_OK;
}

/* Journals of older versions have rounds of one start. */
static dt_status judge_again(const json_t *record, const char *what, const struct dt_target *target,
                             struct dt_compared *compared)
{
    int64_t looks;
    if (dt_json_has(record, "sets")) {
        DT_TRY(dt_entrants_rejudge(target, compared->entrants, compared->count, &compared->sets));
        compared->rounds = dt_sets_rounds(&compared->sets);
        return DT_OK;
    }
    DT_TRY(dt_json_int(record, what, "looks", 1, DT_LOOKS, &looks));
    return dt_entrants_rejudge_rounds(target, compared->entrants, compared->count, (int)looks,
                                      &compared->rounds);
}

dt_status dt_raw_read_comparison(const json_t *record, const char *what,
                                 const struct dt_target *target, struct dt_compared *compared)
{
    json_t *list;
    int64_t rounds;
    compared->count = 0;
    DT_TRY(dt_json_string(record, what, "name", &compared->name));
    DT_TRY(dt_json_int(record, what, "rounds", 0, DT_ROUNDS_MOST, &rounds));
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
    compared->rounds = (int)rounds;
    return judge_again(record, what, target, compared);
}
