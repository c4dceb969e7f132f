/* SPDX-License-Identifier: MIT */
/* Random effects: a step takes on rank r
 *
 *   ns * residency * process * exp(drift + noise) * (1 + spike) * (1 + mode) * (1 + warm) * (1 + step) * (1 +- swing) * (1 + late_r) * rank_r / clock_r
 *
 * with process, drift, noise, spike, mode common to all ranks, and process, drift, noise to all
 * plans of the process. */
#include "tests/scenario/scenario.h"

#include <math.h>

#define PROJECTIONS_MOST 4096

/* Steele, Lea, Flood 2014: splitmix64 */
static uint64_t next(struct stream *stream)
{
    uint64_t z = stream->state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* in (0, 1) */
static double uniform(struct stream *stream)
{
    return ((double)(next(stream) >> 12) + 0.5) * 0x1p-52;
}

/* Box, Muller 1958 */
static double normal(struct stream *stream)
{
    double radius = sqrt(-2 * log(uniform(stream)));
    return radius * cos(2 * 3.14159265358979323846 * uniform(stream));
}

void stream_start(const struct scenario *scenario, int process, struct stream *stream)
{
    struct stream seed = {.state = (uint64_t)scenario->seed << 20 | (uint64_t)process};
    *stream = (struct stream){.state = next(&seed)};
    stream->process = exp(scenario->process_sd * normal(stream));
    stream->drift = scenario->drift_sd * normal(stream);
    stream->noise = normal(stream);
    for (int r = 0; r < RANKS_PLACED && scenario->rank_sd > 0; r++)
        stream->ranks[r] = scenario->rank_sd * normal(stream);
}

double stream_residency(const struct scenario *scenario, struct stream *stream)
{
    double factor = 1;
    if (scenario->residency_sd > 0)
        factor *= exp(scenario->residency_sd * normal(stream));
    if (scenario->residency_share > 0 && uniform(stream) < scenario->residency_share)
        factor *= 1 + scenario->residency_size;
    return factor;
}

static double warm(const struct scenario *scenario, int step)
{
    double k = step - scenario->warm_skip;
    if (k < 0)
        return 0;
    if (scenario->warm_tau > 0)
        return scenario->warm_size * exp(-k / scenario->warm_tau);
    return k < scenario->warm_steps ? scenario->warm_size : 0;
}

/* Factor on the true time of every rank. */
static double common(const struct scenario *scenario, struct stream *stream, int step)
{
    double keep = exp(-1 / scenario->drift_tau), sd = sqrt(log1p(scenario->cv * scenario->cv));
    stream->drift =
        keep * stream->drift + scenario->drift_sd * sqrt(1 - keep * keep) * normal(stream);
    stream->noise =
        scenario->ar1 * stream->noise + sqrt(1 - scenario->ar1 * scenario->ar1) * normal(stream);
    double factor = stream->process * exp(stream->drift + sd * stream->noise);
    if (uniform(stream) < scenario->spike_share)
        factor *= 1 - scenario->spike_mean * log(uniform(stream));
    if (uniform(stream) < scenario->mode_share)
        factor *= 1 + scenario->mode_size;
    if (scenario->step_size != 0 && step >= scenario->step_at)
        factor *= 1 + scenario->step_size;
    return factor * (1 + warm(scenario, step));
}

/* The clock of a rank in the step that comes. */
static double clock_of(const struct scenario *scenario, const struct stream *stream, int rank)
{
    double k = stream->steps - scenario->slow_at;
    bool slow = scenario->slow_clock > 0 && rank == (int)scenario->slow_rank && k >= 0 &&
                k < scenario->slow_steps;
    return slow ? scenario->slow_clock : 1;
}

/* How much the load of others slows the plan down at this moment. */
static double slowed(const struct scenario *scenario, const json_t *plan)
{
    const json_t *moment, *feels = plan_field(scenario, plan, "feels");
    double factor = 1, now = clock_seconds();
    size_t i;
    json_array_foreach(json_object_get(scenario->root, "busy"), i, moment)
    {
        if (json_number_value(json_array_get(moment, 0)) <= now)
            factor = json_number_value(json_array_get(moment, 1));
    }
    return feels != NULL ? pow(factor, json_number_value(feels)) : factor;
}

json_t *stream_step(const struct scenario *scenario, struct stream *stream, struct handle *handle,
                    json_t *clocks, double *longest_ns)
{
    double swing = handle->visits % 2 == 0 ? 1 - handle->swing : 1 + handle->swing;
    double all = handle->ns * swing * common(scenario, stream, handle->steps++) *
                 slowed(scenario, handle->plan);
    json_t *row = json_array(), *clock_row = clocks != NULL ? json_array() : NULL;
    json_int_t most = 0;
    for (int r = 0; r < handle->ranks; r++) {
        double late = scenario->lateness * normal(stream), clock = clock_of(scenario, stream, r);
        late += r == (int)scenario->late_rank ? scenario->late_size : 0;
        double placed = r < RANKS_PLACED ? exp(stream->ranks[r]) : 1;
        json_int_t ns = llround(all * (1 + late) * placed / clock);
        ns = ns > 0 ? ns : 1;
        most = ns > most ? ns : most;
        json_array_append_new(row, json_integer(ns));
        if (clock_row != NULL)
            json_array_append_new(clock_row, json_real(clock));
    }
    if (clock_row != NULL)
        json_array_append_new(clocks, clock_row);
    stream->steps++;
    *longest_ns += (double)most;
    return row;
}

json_t *stream_projections(uint64_t seed, json_int_t count)
{
    struct stream stream = {.state = seed};
    json_t *row = json_array();
    for (json_int_t k = 0; k < count && k < PROJECTIONS_MOST; k++)
        json_array_append_new(row, json_real(uniform(&stream)));
    return row;
}
