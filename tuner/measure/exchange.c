/* SPDX-License-Identifier: MIT */
#include "tuner/measure/exchange.h"

#include "space/dit/dit.h"

#include <string.h>

#define SIZES       8 /* 1 KiB to 16 MiB, each four times the one before */
#define LEAST_BYTES 1024
#define TIMES       5

int dt_exchange_list(const struct dt_target *target, const struct dt_point *point,
                     struct dt_exchange out[DT_DEGREES])
{
    if (target->foreign)
        return 0;
    struct dt_plan plan = dt_dit_plan(target->space, point);
    int n = 0;
    for (int i = 0; i < DT_DEGREES; i++)
        if (dt_plan_degree(&plan, i) > 1 && dt_degrees[i].exchange != NULL)
            out[n++] = (struct dt_exchange){dt_degrees[i].exchange, dt_plan_degree(&plan, i),
                                            dt_plan_stride(&plan, i)};
    return n;
}

/* The bytes of an all-to-all are a multiple of the number of ranks. */
static json_t *sizes_of(const struct dt_exchange *exchange)
{
    json_t *bytes = json_array();
    json_int_t block = strcmp(exchange->kind, "alltoall") == 0 ? exchange->ranks : 1;
    json_int_t size = LEAST_BYTES;
    for (int i = 0; i < SIZES; i++, size *= 4)
        json_array_append_new(bytes, json_integer((size + block - 1) / block * block));
    return bytes;
}

static bool row_is_times(const json_t *row)
{
    const json_t *value;
    size_t i;
    json_array_foreach((json_t *)row, i, value)
    {
        if (!json_is_integer(value) || json_integer_value(value) < 1)
            return false;
    }
    return json_array_size(row) == TIMES;
}

static bool are_times(const json_t *ns)
{
    const json_t *row;
    size_t i;
    json_array_foreach((json_t *)ns, i, row)
    {
        if (!row_is_times(row))
            return false;
    }
    return json_array_size(ns) == SIZES;
}

/* entry gets "ns" or "reason". */
static dt_status measure_one(struct dt_resident *resident, const struct dt_exchange *exchange,
                             int64_t deadline_ns, json_t *entry)
{
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    json_t *answer = NULL;
    json_t *request =
        json_pack("{s:s, s:s, s:i, s:i, s:O, s:i}", "op", "exchange", "kind", exchange->kind,
                  "group", exchange->ranks, "stride", exchange->stride, "bytes",
                  json_object_get(entry, "bytes"), "n", TIMES);
    dt_status status =
        dt_group_call(resident->group, request, "exchanged", deadline_ns, &answer, &failure);
    json_decref(request);
    if (status < 0 && status != DT_FAILED)
        return status;
    json_t *ns = json_object_get(answer, "ns");
    if (status == DT_FAILED)
        json_object_set_new(entry, "reason", json_string(failure.cause));
    else if (!are_times(ns))
        json_object_set_new(entry, "reason",
                            json_string("the answer's ns has not five times for each size"));
    else
        json_object_set(entry, "ns", ns);
    json_decref(answer);
    return DT_OK;
}

dt_status dt_exchange_measure(const struct dt_target *target, struct dt_resident *resident,
                              int64_t deadline_ns, struct dt_result *result)
{
    struct dt_exchange list[DT_DEGREES];
    int n = dt_exchange_list(target, &result->point, list);
    json_decref(result->report.exchanges);
    result->report.exchanges = json_array();
    for (int i = 0; i < n && resident->group != NULL; i++) {
        json_t *entry =
            json_pack("{s:s, s:i, s:i, s:o}", "kind", list[i].kind, "ranks", list[i].ranks,
                      "stride", list[i].stride, "bytes", sizes_of(&list[i]));
        if (json_array_append_new(result->report.exchanges, entry) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
        DT_TRY(measure_one(resident, &list[i], deadline_ns, entry));
        if (!dt_group_alive(resident->group))
            resident->group = NULL;
    }
    return DT_OK;
}
