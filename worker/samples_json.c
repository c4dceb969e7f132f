/* SPDX-License-Identifier: MIT */
#include "worker/samples_json.h"

#include <stdlib.h>

#define LAYER_SAMPLES 64 /* of a layer, for its median */

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(int64_t values[], int64_t n)
{
    if (n == 0)
        return 0;
    qsort(values, (size_t)n, sizeof values[0], ascending);
    return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* The host has no idle time. */
static json_t *list_kinds(const struct dt_phases *phases, bool host)
{
    json_t *kinds = json_array();
    for (int i = 0; i < (host ? DT_PHASE_IDLE : DT_PHASE_KINDS); i++) {
        json_t *kind = json_pack("{s:s,s:I}", "name", dt_phase_text((enum dt_phase_kind)i), "ns",
                                 (json_int_t)phases->kind_ns[i]);
        if (i == DT_PHASE_EXCHANGE) {
            json_object_set_new(kind, "bytes", json_integer(phases->exchange_bytes));
            json_object_set_new(kind, "in_flight_ns", json_integer(phases->exchange_in_flight_ns));
        }
        json_array_append_new(kinds, kind);
    }
    return kinds;
}

/* Medians of each layer of a kind, of which a step has several: its samples are in their order. NULL: there is one, or they are not
 * the same in each step. */
static json_t *list_layers(const int64_t samples[], int64_t count, int64_t kept, int steps)
{
    int64_t layers = steps > 0 && count % steps == 0 ? count / steps : 0, column[LAYER_SAMPLES];
    if (layers < 2 || layers > kept)
        return NULL;
    json_t *list = json_array();
    for (int64_t layer = 0; layer < layers; layer++) {
        int64_t n = 0;
        for (int64_t k = layer; k < kept && n < LAYER_SAMPLES; k += layers)
            column[n++] = samples[k];
        json_array_append_new(list, json_integer(median(column, n)));
    }
    return list;
}

/* Sorts the samples of each block kind: phases are cleared before the next run. */
static json_t *list_blocks(struct dt_phases *phases, int steps)
{
    json_t *blocks = json_array();
    for (int i = 0; i < DT_BLOCK_KINDS; i++) {
        int64_t count = phases->block_count[i];
        int64_t kept = count < DT_PHASE_SAMPLES ? count : DT_PHASE_SAMPLES;
        json_t *layers = list_layers(phases->block_ns[i], count, kept, steps);
        json_array_append_new(
            blocks, json_pack("{s:s,s:I,s:I,s:o*}", "name", dt_block_text((enum dt_block_kind)i),
                              "count", (json_int_t)count, "median_ns",
                              (json_int_t)median(phases->block_ns[i], kept), "layers_ns", layers));
    }
    return blocks;
}

/* Lists the exchanges of the plan. */
static json_t *list_exchanges(const struct dt_phases *phases, const struct dt_plan *plan)
{
    json_t *list = json_array();
    for (int i = 0; i < DT_EXCHANGE_KINDS; i++) {
        const struct dt_exchanged *row = &phases->exchanges[i];
        int degree = dt_exchange_degree((enum dt_exchange_kind)i);
        int ranks = dt_plan_degree(plan, degree);
        if (ranks > 1)
            json_array_append_new(list,
                                  json_pack("{s:s,s:s,s:i,s:I,s:I,s:I,s:I}", "name",
                                            dt_exchange_text((enum dt_exchange_kind)i), "kind",
                                            dt_degrees[degree].exchange, "ranks", ranks, "count",
                                            (json_int_t)row->count, "ns", (json_int_t)row->ns,
                                            "bytes", (json_int_t)row->bytes, "in_flight_ns",
                                            (json_int_t)row->in_flight_ns));
    }
    return list;
}

json_t *dt_phases_json(struct dt_phases *phases, const struct dt_plan *plan, bool host, int steps)
{
    return json_pack("{s:i,s:o,s:o,s:o,s:I}", "steps", steps, "kinds", list_kinds(phases, host),
                     "exchanges", list_exchanges(phases, plan), "blocks",
                     list_blocks(phases, steps), "step_ns", (json_int_t)phases->step_ns);
}
