/* SPDX-License-Identifier: MIT */
/* Planted noise with known medians, and bands that hold a count of successes but once in
 * some ten thousand times. */
#ifndef DT_TESTS_STATS_NOISE_H
#define DT_TESTS_STATS_NOISE_H

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

/* cmocka's own compares floats. */
#define assert_near(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))

static inline double exponential(struct dt_rng *rng)
{
    return -log(1 - dt_rng_uniform(rng));
}

static inline double log_normal(struct dt_rng *rng)
{
    return exp(0.05 * dt_rng_normal(rng));
}

/* A quiet machine: 1 % log-normal noise, one sample in fifty late by 15 %. */
static inline double machine(struct dt_rng *rng)
{
    double late = dt_rng_uniform(rng) < 0.02 ? 0.15 * exponential(rng) : 0;
    return exp(0.01 * dt_rng_normal(rng)) * (1 + late);
}

static inline double skewed(struct dt_rng *rng)
{
    return 1 + 0.1 * exponential(rng);
}

static inline double pareto(struct dt_rng *rng)
{
    return pow(1 - dt_rng_uniform(rng), -1 / 2.1);
}

static inline double two_modes(struct dt_rng *rng)
{
    return (dt_rng_uniform(rng) < 0.7 ? 1 : 1.04) + 0.005 * dt_rng_normal(rng);
}

struct noise {
    double (*draw)(struct dt_rng *rng);
    double median;
};

/* The median of two_modes is where 0.7 of the lower mode's distribution reaches 1/2: the upper
 * is 7 deviations off. */
static const struct noise noises[] = {
    {log_normal, 1.0},
    {skewed, 1 + 0.1 * 0.693147180559945},
    {pareto, 1.391065826},
    {two_modes, 1 + 0.005 * 0.565948821932863},
};

static inline double margin(double p, int n)
{
    return 4 * sqrt(p * (1 - p) / n);
}

#endif
