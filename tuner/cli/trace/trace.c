/* SPDX-License-Identifier: MIT */
#include "tuner/cli/trace/trace.h"

#include "base/figures.h"
#include "base/replace.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const json_t *ranks_of(const struct dt_result *result)
{
    const json_t *ranks = json_object_get(result->report.trace, "ranks");
    return (int)json_array_size(ranks) == result->ranks ? ranks : NULL;
}

static double ns_at(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

/* Where the rank's step began after the first of its host. */
static double offset_of(const json_t *ranks, size_t rank)
{
    const json_t *mine = json_array_get(ranks, rank), *other;
    double first = ns_at(mine, "start_ns");
    size_t i;
    json_array_foreach((json_t *)ranks, i, other)
    {
        if (strcmp(dt_json_text_at(other, "host"), dt_json_text_at(mine, "host")) == 0)
            first = fmin(first, ns_at(other, "start_ns"));
    }
    double offset = ns_at(mine, "start_ns") - first;
    return isfinite(offset) ? offset : 0;
}

static void add_rank(const json_t *ranks, size_t rank, json_t *events)
{
    const json_t *mine = json_array_get(ranks, rank), *span;
    struct dt_text name = {0};
    double offset = offset_of(ranks, rank);
    size_t i;
    dt_text_add(&name, "rank %zu on %s", rank, dt_json_text_at(mine, "host"));
    json_array_append_new(events, json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "process_name",
                                            "ph", "M", "pid", (int)rank, "tid", 0, "args", "name",
                                            dt_text_at(&name)));
    dt_text_fini(&name);
    json_array_foreach(json_object_get(mine, "spans"), i, span)
    {
        const char *what = json_string_value(json_array_get(span, 0));
        const char *category = json_string_value(json_array_get(span, 1));
        double begin = json_number_value(json_array_get(span, 2)),
               ns = json_number_value(json_array_get(span, 3));
        if (what != NULL && category != NULL && begin >= 0 && ns > 0)
            json_array_append_new(events, json_pack("{s:s, s:s, s:s, s:f, s:f, s:i, s:i}", "name",
                                                    what, "cat", category, "ph", "X", "ts",
                                                    (offset + begin) * 1e-3, "dur", ns * 1e-3,
                                                    "pid", (int)rank, "tid", 0));
    }
}

static dt_status write_json(json_t *object, const char *path)
{
    struct dt_text text = {0};
    dt_status status = dt_json_text(object, &text);
    if (status == DT_OK)
        status = dt_replace_text(path, &text);
    json_decref(object);
    dt_text_fini(&text);
    return status;
}

dt_status dt_trace_write(const struct dt_result *result, const struct dt_target *target,
                         const char *path)
{
    const json_t *ranks = ranks_of(result);
    const char *reason = json_string_value(json_object_get(result->report.trace, "reason"));
    if (ranks == NULL)
        return dt_fail(DT_EUNSUP, "--trace: the worker reports no parts of a step: %s",
                       reason != NULL ? reason : "its answer has not one part a rank");
    json_t *events = json_array();
    struct dt_text text = {0};
    for (size_t rank = 0; rank < json_array_size(ranks); rank++)
        add_rank(ranks, rank, events);
    dt_point_short(target->space, &result->point, &text);
    dt_status status = write_json(json_pack("{s:o, s:s, s:{s:s, s:s}}", "traceEvents", events,
                                            "displayTimeUnit", "ms", "otherData", "network",
                                            target->identity.title, "plan", dt_text_at(&text)),
                                  path);
    dt_text_fini(&text);
    return status;
}

/* The rank whose step was the longest. */
static size_t find_last(const json_t *ranks)
{
    size_t last = 0;
    for (size_t i = 1; i < json_array_size(ranks); i++)
        if (ns_at(json_array_get(ranks, i), "step_ns") >
            ns_at(json_array_get(ranks, last), "step_ns"))
            last = i;
    return last;
}

/* Layers of the same name that follow each other are one part of the line, with the least and the most of them. */
static json_t *add_layers(const json_t *rank, struct dt_text *out)
{
    const json_t *layers = json_object_get(rank, "layers");
    json_t *list = json_array();
    size_t n = json_array_size(layers);
    for (size_t i = 0; i < n;) {
        const char *name = json_string_value(json_array_get(json_array_get(layers, i), 0));
        double low = INFINITY, high = 0, sum = 0;
        size_t first = i;
        for (; i < n; i++) {
            const json_t *layer = json_array_get(layers, i);
            const char *other = json_string_value(json_array_get(layer, 0));
            double seconds = json_number_value(json_array_get(layer, 1)) * 1e-9;
            if (name == NULL || other == NULL || strcmp(name, other) != 0)
                break;
            json_array_append_new(
                list, json_pack("{s:s, s:f}", "name", other, "median_seconds", seconds));
            low = fmin(low, seconds);
            high = fmax(high, seconds);
            sum += seconds;
        }
        if (i == first)
            break; /* not a layer */
        dt_text_add(out, "%s%s", first > 0 ? ", " : "", name);
        if (i - first > 1)
            dt_text_add(out, " x %zu %s (each %s to %s)", i - first, dt_figure_of(sum).text,
                        dt_figure_of(low).text, dt_figure_of(high).text);
        else
            dt_text_add(out, " %s", dt_figure_of(sum).text);
    }
    return list;
}

/* Cores that each rank kept busy; as text, unless `run` prints those of the measured steps. */
static json_t *add_cores(const struct dt_result *result, const json_t *ranks, struct dt_text *out)
{
    bool printed = json_object_get(result->report.phases, "cpu_ns") != NULL;
    json_t *cores = json_array();
    const json_t *rank;
    struct dt_text line = {0};
    size_t i;
    json_array_foreach((json_t *)ranks, i, rank)
    {
        double busy = ns_at(rank, "cpu_ns") / ns_at(rank, "wall_ns");
        json_array_append_new(cores, dt_json_number(busy));
        dt_text_add(&line, "%s%s", i > 0 ? ", " : "", dt_figure_number(busy).text);
    }
    if (!printed)
        dt_text_add(out, "cores busy  %s by rank, waiting included\n", dt_text_at(&line));
    dt_text_fini(&line);
    return cores;
}

json_t *dt_trace_figures(const struct dt_result *result, struct dt_text *out)
{
    const json_t *ranks = ranks_of(result);
    if (ranks == NULL)
        return json_null();
    size_t last = find_last(ranks);
    dt_text_add(out, "layers      ");
    json_t *layers = add_layers(json_array_get(ranks, last), out);
    dt_text_add(out, ": medians of %lld steps on rank %zu\n",
                (long long)json_integer_value(json_object_get(result->report.trace, "n")), last);
    return json_pack("{s:i, s:o, s:o}", "rank", (int)last, "layers", layers, "cpu_cores",
                     add_cores(result, ranks, out));
}
