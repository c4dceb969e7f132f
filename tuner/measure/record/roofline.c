/* SPDX-License-Identifier: MIT */
/* Time of a step by kind of work, and each kind's rate relative to the device's ceiling (docs/measuring.md). One table for cores
 * and GPUs: the phases that the worker reported, operations and bytes computed from the shapes, and the ceilings measured
 * beside the plan (Williams, Waterman, Patterson, CACM 52, 2009). */
#include "tuner/measure/record/result_json.h"

#include "base/figures.h"

#include <math.h>
#include <string.h>

#define IDENTITY_SHARE 0.01 /* largest difference between phases and step */

/* A number of the object; NAN when missing. */
static double at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Amount of a kind of work on one rank (an even share), and its ceiling: operations or bytes a second. */
struct work {
    const char *unit; /* "flops" or "bytes"; NULL: not known */
    double amount, ceiling;
};

static struct work work_of(const char *kind, const struct dt_result *result,
                           const struct dt_target *target)
{
    double share = (double)result->batch / (result->ranks > 0 ? result->ranks : 1);
    double flop_rate =
        result->report.flop_peak > 0 ? result->report.flop_peak / result->ranks : NAN;
    double byte_rate =
        result->report.copy_peak > 0 ? result->report.copy_peak / result->ranks : NAN;
    double attention = target->image.attention_flops;
    if (attention > 0 && strcmp(kind, "attention") == 0)
        return (struct work){"flops", attention * share, flop_rate};
    if (attention > 0 && strcmp(kind, "gemm") == 0)
        return (struct work){"flops", (target->image.flops - attention) * share, flop_rate};
    if (target->image.rest_bytes > 0 && strcmp(kind, "rest") == 0)
        return (struct work){"bytes", target->image.rest_bytes * share, byte_rate};
    return (struct work){NULL, NAN, NAN};
}

/* times: of one step */
static json_t *kind_json(const json_t *kind, double steps, double whole,
                         const struct dt_result *result, const struct dt_target *target)
{
    double seconds = at(kind, "ns") * 1e-9 / steps,
           flight = at(kind, "in_flight_ns") * 1e-9 / steps;
    struct work work = work_of(dt_json_text_at(kind, "name"), result, target);
    double rate = seconds > 0 ? work.amount / seconds : NAN;
    json_t *row = json_pack(
        "{s:s, s:o, s:o, s:s?, s:o, s:o, s:o, s:o}", "name", dt_json_text_at(kind, "name"),
        "seconds", dt_json_number(seconds), "share", dt_json_number(seconds / whole), "unit",
        work.unit, "amount", dt_json_number(work.amount), "rate", dt_json_number(rate), "ceiling",
        dt_json_number(work.ceiling), "fraction", dt_json_number(rate / work.ceiling));
    if (isfinite(flight)) {
        json_object_set_new(row, "bytes", dt_json_number(at(kind, "bytes") / steps));
        json_object_set_new(row, "in_flight_seconds", dt_json_number(flight));
        json_object_set_new(row, "exposed_share",
                            dt_json_number(flight > 0 ? seconds / flight : NAN));
    }
    return row;
}

/* Bandwidths of one exchange: busbw counts the bytes a rank sends to others over the time in flight; a rank keeps one
 * of the n blocks of an all-to-all's buffer (nccl-tests, doc/PERFORMANCE.md). */
static json_t *exchange_json(const json_t *exchange, double steps)
{
    double count = at(exchange, "count"), ranks = at(exchange, "ranks"),
           flight = at(exchange, "in_flight_ns") * 1e-9, bytes = at(exchange, "bytes");
    bool all = strcmp(dt_json_text_at(exchange, "kind"), "alltoall") == 0;
    double busbw = flight > 0 ? bytes / flight : NAN;
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name",
                     dt_json_text_at(exchange, "name"), "kind", dt_json_text_at(exchange, "kind"),
                     "ranks", dt_json_number(ranks), "count", dt_json_number(count / steps),
                     "bytes", dt_json_number(bytes / steps), "exposed_seconds",
                     dt_json_number(at(exchange, "ns") * 1e-9 / steps), "in_flight_seconds",
                     dt_json_number(flight / steps), "exposed_share",
                     dt_json_number(flight > 0 ? at(exchange, "ns") * 1e-9 / flight : NAN), "algbw",
                     dt_json_number(all ? busbw * ranks / (ranks - 1) : busbw), "busbw",
                     dt_json_number(busbw));
}

json_t *dt_roofline(const struct dt_result *result, const struct dt_target *target)
{
    const json_t *phases = result->report.phases, *kinds = json_object_get(phases, "kinds"),
                 *exchanges = json_object_get(phases, "exchanges");
    double steps = at(phases, "steps"), whole = at(phases, "step_ns") * 1e-9 / steps,
           host = at(phases, "host_ns") * 1e-9 / steps, sum = 0;
    if (!(steps > 0) || !(whole > 0))
        return NULL;
    json_t *rows = json_array(), *list = json_array();
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        json_t *row = kind_json(json_array_get(kinds, i), steps, whole, result, target);
        sum += at(row, "seconds");
        json_array_append_new(rows, row);
    }
    for (size_t i = 0; i < json_array_size(exchanges); i++)
        json_array_append_new(list, exchange_json(json_array_get(exchanges, i), steps));
    double off = sum / (isfinite(host) ? host : whole) - 1;
    return json_pack("{s:f, s:O*, s:f, s:o, s:o, s:o, s:b, s:o, s:o}", "steps", steps, "rank",
                     json_object_get(phases, "rank"), "step_seconds", whole, "host_seconds",
                     dt_json_number(host), "sum_seconds", dt_json_number(sum), "identity_error",
                     dt_json_number(off), "identity", fabs(off) <= IDENTITY_SHARE, "kinds", rows,
                     "exchanges", list);
}

static void add_seconds(double seconds, struct dt_text *out)
{
    struct dt_text cell = {0};
    dt_figure_time(seconds, &cell);
    dt_text_add(out, "%12s", dt_text_at(&cell));
    dt_text_fini(&cell);
}

static void add_kind(const json_t *row, struct dt_text *out)
{
    bool flops = strcmp(dt_json_text_at(row, "unit"), "flops") == 0;
    double rate = at(row, "rate"), flight = at(row, "in_flight_seconds");
    dt_text_add(out, "  %-10.20s %5.1f %% ", dt_json_text_at(row, "name"), 100 * at(row, "share"));
    add_seconds(at(row, "seconds"), out);
    if (isfinite(rate))
        dt_text_add(out, "  %.4g %s", rate * 1e-9, flops ? "GFLOP/s" : "GB/s");
    if (isfinite(at(row, "fraction")))
        dt_text_add(out, ", %.0f %% of %.4g", 100 * at(row, "fraction"), at(row, "ceiling") * 1e-9);
    if (flight > 0)
        dt_text_add(out, "  (%.3g MB sent, %.0f %% of the time in flight exposed)",
                    at(row, "bytes") * 1e-6, 100 * at(row, "exposed_share"));
    dt_text_add(out, "\n");
}

static void add_exchange(const json_t *row, struct dt_text *out)
{
    dt_text_add(out, "    %-8.20s         ", dt_json_text_at(row, "name"));
    add_seconds(at(row, "exposed_seconds"), out);
    dt_text_add(out, "  %.3g of %.20s among %.0f ranks, %.3g MB", at(row, "count"),
                dt_json_text_at(row, "kind"), at(row, "ranks"), at(row, "bytes") * 1e-6);
    if (isfinite(at(row, "busbw")))
        dt_text_add(out, ", algbw %.4g and busbw %.4g GB/s, %.0f %% exposed",
                    at(row, "algbw") * 1e-9, at(row, "busbw") * 1e-9,
                    100 * at(row, "exposed_share"));
    dt_text_add(out, "\n");
}

void dt_roofline_text(const json_t *roofline, struct dt_text *out)
{
    const json_t *kinds = json_object_get(roofline, "kinds"),
                 *exchanges = json_object_get(roofline, "exchanges");
    if (roofline == NULL)
        return;
    dt_text_add(out, "breakdown of the critical rank, mean of %.0f steps of ",
                at(roofline, "steps"));
    dt_figure_time(at(roofline, "step_seconds"), out);
    dt_text_add(out, ":\n");
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        const json_t *kind = json_array_get(kinds, i);
        add_kind(kind, out);
        for (size_t k = 0; strcmp(dt_json_text_at(kind, "name"), "exchange") == 0 &&
                           k < json_array_size(exchanges);
             k++)
            add_exchange(json_array_get(exchanges, k), out);
    }
    if (!json_is_true(json_object_get(roofline, "identity")))
        dt_text_add(out,
                    "warning: the phases add up to %s, %.3g %% off the %s of the same steps by the "
                    "host's clock\n",
                    dt_figure_of(at(roofline, "sum_seconds")).text,
                    100 * at(roofline, "identity_error"),
                    dt_figure_of(at(roofline, "host_seconds")).text);
}
