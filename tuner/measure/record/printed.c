/* SPDX-License-Identifier: MIT */
/* Time of a step by kind of work, and each kind's rate relative to the device's ceiling
 * (docs/measuring-appendix.md). One table for cores and GPUs: the phases that the worker reported,
 * operations and bytes computed from the shapes, and the ceilings measured beside the plan
 * (Williams, Waterman, Patterson, CACM 52, 2009). */
#include "tuner/measure/record/result_json.h"

#include "base/figures.h"
#include "space/json/json.h"
#include "tuner/runner/samples_json.h"

#include <math.h>
#include <string.h>

/* ---- where a step goes */

#define IDENTITY_SHARE 0.01 /* largest difference between phases and step */

/* Amount of a kind of work on one rank (an even share), and its ceiling:
 * operations or bytes a second. */
struct work {
    const char *unit; /* "flops" or "bytes"; NULL: not known */
    double amount, ceiling;
};

static struct work work_of(const char *kind, const struct dt_result *result,
                           const struct dt_target *target)
{
    double share = (double)dt_result_images(result) / (result->ranks > 0 ? result->ranks : 1);
    double flop_rate =
        result->ceilings.flop_rate > 0 ? result->ceilings.flop_rate / result->ranks : NAN;
    double byte_rate =
        result->ceilings.copy_rate > 0 ? result->ceilings.copy_rate / result->ranks : NAN;
    double attention = target->image.attention_flops;
    if (attention > 0 && strcmp(kind, "attention") == 0)
        return (struct work){"flops", attention * share, flop_rate};
    if (attention > 0 && strcmp(kind, "gemm") == 0)
        return (struct work){"flops", (target->image.flops - attention) * share, flop_rate};
    if (target->image.rest_bytes > 0 && strcmp(kind, "rest") == 0)
        return (struct work){"bytes", target->image.rest_bytes * share, byte_rate};
    return (struct work){NULL, NAN, NAN};
}

struct dt_roofline dt_roofline(const struct dt_result *result)
{
    const struct dt_phase_sums *phases = result->report.phases;
    if (phases == NULL || !phases->steps.known || phases->steps.value <= 0 ||
        !phases->step_ns.known || phases->step_ns.value <= 0)
        return (struct dt_roofline){.known = false};
    double steps = (double)phases->steps.value;
    struct dt_roofline roofline = {.known = true,
                                   .steps = steps,
                                   .step_seconds = (double)phases->step_ns.value * 1e-9 / steps,
                                   .host_seconds =
                                       dt_amount_number(phases->host_ns) * 1e-9 / steps};
    for (int i = 0; i < phases->kinds.count; i++)
        roofline.sum_seconds += dt_amount_number(phases->kinds.at[i].ns) * 1e-9 / steps;
    roofline.identity_error =
        roofline.sum_seconds /
            (isfinite(roofline.host_seconds) ? roofline.host_seconds : roofline.step_seconds) -
        1;
    roofline.identity = fabs(roofline.identity_error) <= IDENTITY_SHARE;
    return roofline;
}

struct dt_roofline_kind dt_roofline_kind(const struct dt_result *result,
                                         const struct dt_target *target, int i)
{
    const struct dt_roofline whole = dt_roofline(result);
    const struct dt_phase_row *row = &result->report.phases->kinds.at[i];
    struct work work = work_of(row->name.text, result, target);
    struct dt_roofline_kind kind = {.name = row->name.text,
                                    .seconds = dt_amount_number(row->ns) * 1e-9 / whole.steps,
                                    .unit = work.unit,
                                    .amount = work.amount,
                                    .ceiling = work.ceiling,
                                    .in_flight_seconds =
                                        dt_amount_number(row->in_flight_ns) * 1e-9 / whole.steps,
                                    .bytes = dt_amount_number(row->bytes) / whole.steps};
    kind.share = kind.seconds / whole.step_seconds;
    kind.rate = kind.seconds > 0 ? work.amount / kind.seconds : NAN;
    kind.fraction = kind.rate / work.ceiling;
    kind.exposed_share = kind.in_flight_seconds > 0 ? kind.seconds / kind.in_flight_seconds : NAN;
    return kind;
}

/* An exchange in one step. Bandwidths: busbw counts the bytes a rank sends to others over the time
 * in flight; a rank keeps one of the n blocks of an all-to-all's buffer (nccl-tests,
 * doc/PERFORMANCE.md). */
struct exchange {
    double count, ranks, bytes, exposed, flight, exposed_share, algbw, busbw;
};

static struct exchange exchange_of(const struct dt_phase_row *row, double steps)
{
    double ns = dt_amount_number(row->ns), flight = dt_amount_number(row->in_flight_ns) * 1e-9,
           ranks = dt_amount_number(row->ranks), bytes = dt_amount_number(row->bytes),
           busbw = flight > 0 ? bytes / flight : NAN;
    bool all = strcmp(row->kind.text, "alltoall") == 0;
    return (struct exchange){.count = dt_amount_number(row->count) / steps,
                             .ranks = ranks,
                             .bytes = bytes / steps,
                             .exposed = ns * 1e-9 / steps,
                             .flight = flight / steps,
                             .exposed_share = flight > 0 ? ns * 1e-9 / flight : NAN,
                             .algbw = all ? busbw * ranks / (ranks - 1) : busbw,
                             .busbw = busbw};
}

static json_t *kind_json(const struct dt_roofline_kind *kind)
{
    json_t *row = json_pack(
        "{s:s, s:o, s:o, s:s?, s:o, s:o, s:o, s:o}", "name", kind->name, "seconds",
        dt_json_number(kind->seconds), "share", dt_json_number(kind->share), "unit", kind->unit,
        "amount", dt_json_number(kind->amount), "rate", dt_json_number(kind->rate), "ceiling",
        dt_json_number(kind->ceiling), "fraction", dt_json_number(kind->fraction));
    if (isfinite(kind->in_flight_seconds)) {
        json_object_set_new(row, "bytes", dt_json_number(kind->bytes));
        json_object_set_new(row, "in_flight_seconds", dt_json_number(kind->in_flight_seconds));
        json_object_set_new(row, "exposed_share", dt_json_number(kind->exposed_share));
    }
    return row;
}

static json_t *exchange_json(const struct dt_phase_row *row, double steps)
{
    const struct exchange exchange = exchange_of(row, steps);
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", row->name.text,
                     "kind", row->kind.text, "ranks", dt_json_number(exchange.ranks), "count",
                     dt_json_number(exchange.count), "bytes", dt_json_number(exchange.bytes),
                     "exposed_seconds", dt_json_number(exchange.exposed), "in_flight_seconds",
                     dt_json_number(exchange.flight), "exposed_share",
                     dt_json_number(exchange.exposed_share), "algbw",
                     dt_json_number(exchange.algbw), "busbw", dt_json_number(exchange.busbw));
}

/* NULL when the worker reported no phases. */
static json_t *roofline_json(const struct dt_result *result, const struct dt_target *target)
{
    const struct dt_roofline roofline = dt_roofline(result);
    const struct dt_phase_sums *phases = result->report.phases;
    if (!roofline.known)
        return NULL;
    json_t *kinds = json_array(), *exchanges = json_array();
    for (int i = 0; i < phases->kinds.count; i++) {
        const struct dt_roofline_kind kind = dt_roofline_kind(result, target, i);
        json_array_append_new(kinds, kind_json(&kind));
    }
    for (int i = 0; i < phases->exchanges.count; i++)
        json_array_append_new(exchanges, exchange_json(&phases->exchanges.at[i], roofline.steps));
    return json_pack("{s:f, s:o*, s:f, s:o, s:o, s:o, s:b, s:o, s:o}", "steps", roofline.steps,
                     "rank", phases->rank.known ? json_integer(phases->rank.value) : NULL,
                     "step_seconds", roofline.step_seconds, "host_seconds",
                     dt_json_number(roofline.host_seconds), "sum_seconds",
                     dt_json_number(roofline.sum_seconds), "identity_error",
                     dt_json_number(roofline.identity_error), "identity", roofline.identity,
                     "kinds", kinds, "exchanges", exchanges);
}

static void roofline_add_seconds(double seconds, struct dt_text *out)
{
    struct dt_text cell = {0};
    dt_figure_time(seconds, &cell);
    dt_text_add(out, "%12s", dt_text_at(&cell));
    dt_text_fini(&cell);
}

static void roofline_add_kind(const struct dt_roofline_kind *kind, struct dt_text *out)
{
    bool flops = kind->unit != NULL && strcmp(kind->unit, "flops") == 0;
    dt_text_add(out, "  %-10.20s %5.1f %% ", kind->name, 100 * kind->share);
    roofline_add_seconds(kind->seconds, out);
    if (isfinite(kind->rate))
        dt_text_add(out, "  %.4g %s", kind->rate * 1e-9, flops ? "GFLOP/s" : "GB/s");
    if (isfinite(kind->fraction))
        dt_text_add(out, ", %.0f %% of %.4g", 100 * kind->fraction, kind->ceiling * 1e-9);
    if (kind->in_flight_seconds > 0)
        dt_text_add(out, "  (%.3g MB sent, %.0f %% of the time in flight exposed)",
                    kind->bytes * 1e-6, 100 * kind->exposed_share);
    dt_text_add(out, "\n");
}

static void roofline_add_exchange(const struct dt_phase_row *row, double steps, struct dt_text *out)
{
    const struct exchange exchange = exchange_of(row, steps);
    dt_text_add(out, "    %-8.20s         ", row->name.text);
    roofline_add_seconds(exchange.exposed, out);
    dt_text_add(out, "  %.3g of %.20s among %.0f ranks, %.3g MB", exchange.count, row->kind.text,
                exchange.ranks, exchange.bytes * 1e-6);
    if (isfinite(exchange.busbw))
        dt_text_add(out, ", algbw %.4g and busbw %.4g GB/s, %.0f %% exposed", exchange.algbw * 1e-9,
                    exchange.busbw * 1e-9, 100 * exchange.exposed_share);
    dt_text_add(out, "\n");
}

bool dt_roofline_text(const struct dt_result *result, const struct dt_target *target,
                      struct dt_text *out)
{
    const struct dt_roofline roofline = dt_roofline(result);
    const struct dt_phase_sums *phases = result->report.phases;
    if (!roofline.known)
        return false;
    dt_text_add(out, "breakdown of the critical rank, mean of %.0f steps of ", roofline.steps);
    dt_figure_time(roofline.step_seconds, out);
    dt_text_add(out, ":\n");
    for (int i = 0; i < phases->kinds.count; i++) {
        const struct dt_roofline_kind kind = dt_roofline_kind(result, target, i);
        roofline_add_kind(&kind, out);
        for (int k = 0; strcmp(kind.name, "exchange") == 0 && k < phases->exchanges.count; k++)
            roofline_add_exchange(&phases->exchanges.at[k], roofline.steps, out);
    }
    if (!roofline.identity)
        dt_text_add(out,
                    "warning: the phases add up to %s, %.3g %% off the %s of the same steps by the "
                    "host's clock\n",
                    dt_figure_of(roofline.sum_seconds).text, 100 * roofline.identity_error,
                    dt_figure_of(roofline.host_seconds).text);
    return true;
}

/* ---- a plan */

/* The values that --json prints of a plan. */

static double positive_or_nan(double value)
{
    return value > 0 ? value : NAN;
}

/* NAN: null. */
static json_t *numbers_json(const double x[], int n)
{
    json_t *array = json_array();
    for (int i = 0; x != NULL && i < n; i++)
        json_array_append_new(array, dt_kind_real.write(&x[i]));
    return array;
}

static json_t *interval_json(struct dt_interval interval)
{
    return numbers_json((const double[]){interval.low, interval.high}, 2);
}

/* The sources of the values of printed.def. */
struct print {
    const struct dt_result *result;
    const struct dt_target *target;   /* NULL: samples alone */
    const struct dt_samples *samples; /* the result's */
    bool whole;                       /* with phases and roofline */
    bool device;                      /* its worker reported something of devices */
    /* processes were requested: else an interval over samples need not hold for the next one */
    bool several;
    double flops, flop_rate, peak, image; /* a step's; seconds of an image; NAN: not known */
    struct dt_two_clocks clocks;
    struct dt_device_memory memory;
    struct dt_reasons reasons;
};

#include "base/record_rows.h"

#include "tuner/measure/record/printed.def"

/* A function for each record: its JSON values are new references. */
#define DT_RECORD(record, doc)                                                                     \
    static struct dt_##record record##_of(const struct print *of)                                  \
    {                                                                                              \
        return (struct dt_##record)                                                                \
        {                                                                                          \
            .known = true,
#define DT_VALUE(record, kind, member, name, need, doc, value) .member = value,
#define DT_PART(record, part, member, name, need, doc)         .member = part##_of(of),
#define DT_GROUP(record, part, member)                         .member = part##_of(of),
#define DT_END(record)                                                                             \
    }                                                                                              \
    ;                                                                                              \
    }

#include "tuner/measure/record/printed.def"

json_t *dt_result_samples_json(const struct dt_result *result)
{
    const struct print print = {.result = result,
                                .samples = &result->samples,
                                .several = result->samples.process_seconds != NULL};
    struct dt_printed_samples samples = printed_samples_of(&print);
    return dt_record_json(&dt_record_printed_samples, &samples);
}

static bool has_device(const struct dt_result *result)
{
    const struct dt_run *report = &result->report;
    return report->device_ns != NULL || report->host_ns != NULL || report->telemetry != NULL ||
           dt_device_bytes_known(&result->memory);
}

static json_t *plan_json(const struct dt_result *result, const struct dt_target *target, bool whole)
{
    double step = result->summary.median, flops = target->image.flops * dt_result_images(result);
    struct print print = {.result = result,
                          .target = target,
                          .samples = &result->samples,
                          .whole = whole,
                          .device = has_device(result),
                          .several = result->samples.process_seconds != NULL,
                          .flops = flops,
                          .flop_rate = positive_or_nan(flops) / step,
                          .peak = positive_or_nan(result->ceilings.flop_rate),
                          .image = step * target->image.sampler_steps};
    if (print.device) {
        print.clocks = dt_device_clocks(result);
        print.memory = dt_device_memory(result);
        print.reasons = dt_device_report_reasons(result);
    }
    struct dt_printed_plan plan = printed_plan_of(&print);
    plan.device.known = print.device;
    return dt_record_json(&dt_record_printed_plan, &plan);
}

json_t *dt_trial_json(const struct dt_result *result, const struct dt_target *target)
{
    return plan_json(result, target, false);
}

json_t *dt_result_json(const struct dt_result *result, const struct dt_target *target)
{
    return plan_json(result, target, true);
}
