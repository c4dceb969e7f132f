/* SPDX-License-Identifier: MIT */
/* The gate on sequences whose order statistics are known (tests/tuner/measure/judge_entrants.c derives the ranks: 1, 3, 9, 23 of 8, 16,
 * 32, 64), then on planted noise against a simulation that another program made (the table below). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stats/stats.h"
#include "tests/stats/noise.h"

#define THRESHOLD 0.03

static void all(double logs[64], double ratio)
{
    for (int i = 0; i < 64; i++)
        logs[i] = log(ratio);
}

static enum dt_gate gate(const double logs[], int n, int *pairs)
{
    struct dt_ratio ratio;
    enum dt_gate said = dt_stats_gate(logs, n, THRESHOLD, &ratio);
    *pairs = ratio.pairs;
    return said;
}

/* Eight equal ratios: the interval is that ratio, and each border belongs to "go on". */
static void borders(void **state)
{
    (void)state;
    static const struct {
        double ratio;
        enum dt_gate said;
        int pairs;
    } rows[] = {{0.90, DT_GATE_WIN, 8},   {0.999, DT_GATE_WIN, 8},   {1.0, DT_GATE_PASS, 8},
                {1.029, DT_GATE_PASS, 8}, {1.0301, DT_GATE_FAIL, 8}, {1.10, DT_GATE_FAIL, 8}};
    double logs[64];
    int pairs;
    for (int i = 0; i < LENGTH(rows); i++) {
        all(logs, rows[i].ratio);
        assert_int_equal(gate(logs, 64, &pairs), rows[i].said);
        assert_int_equal(pairs, rows[i].pairs);
    }
}

/* One pair of eight at 1.06 keeps the interval from lying below 1.03; of sixteen, two may. */
static void the_look_that_decides(void **state)
{
    (void)state;
    double logs[64];
    int pairs;
    all(logs, 1.01);
    logs[5] = log(1.06);
    assert_int_equal(gate(logs, 64, &pairs), DT_GATE_PASS);
    assert_int_equal(pairs, 16);
    logs[11] = log(1.06);
    assert_int_equal(gate(logs, 64, &pairs), DT_GATE_PASS);
    assert_int_equal(pairs, 16);
    logs[12] = log(1.06);
    assert_int_equal(gate(logs, 64, &pairs), DT_GATE_PASS); /* eight of 32 may */
    assert_int_equal(pairs, 32);
    for (int i = 16; i < 22; i++)
        logs[i] = log(1.06);
    assert_int_equal(gate(logs, 64, &pairs), DT_GATE_PASS); /* 22 of 64 may */
    assert_int_equal(pairs, 64);
    for (int i = 40; i < 54; i++)
        logs[i] = log(1.06);
    assert_int_equal(gate(logs, 64, &pairs), DT_GATE_INCONCLUSIVE);
    assert_int_equal(pairs, 64);
}

/* Slower for certain, but by less than the threshold: no failure. Beyond it, but not for certain: none either. */
static void a_failure_needs_both(void **state)
{
    (void)state;
    double logs[64];
    int pairs;
    for (int i = 0; i < 64; i++)
        logs[i] = log(i % 8 < 3 ? 1.04 : 1.02);
    assert_int_equal(gate(logs, 64, &pairs), DT_GATE_INCONCLUSIVE);
    for (int i = 0; i < 64; i++)
        logs[i] = log(i % 8 < 3 ? 0.99 : 1.05);
    assert_int_equal(gate(logs, 64, &pairs), DT_GATE_INCONCLUSIVE);
    for (int i = 0; i < 64; i++)
        logs[i] = log(i % 8 < 3 ? 1.02 : 1.05);
    assert_int_equal(gate(logs, 64, &pairs), DT_GATE_FAIL);
}

static void too_few_and_between(void **state)
{
    (void)state;
    double logs[64];
    int pairs;
    all(logs, 1.5);
    assert_int_equal(gate(logs, 7, &pairs), DT_GATE_INCONCLUSIVE);
    assert_int_equal(pairs, 0);
    assert_int_equal(gate(NULL, 0, &pairs), DT_GATE_INCONCLUSIVE);
    all(logs, 1.01);
    logs[2] = log(1.06);
    assert_int_equal(gate(logs, 11, &pairs), DT_GATE_INCONCLUSIVE); /* 2 * 12 / 2^11 > .010 */
    assert_int_equal(pairs, 11);
    assert_int_equal(gate(logs, 12, &pairs), DT_GATE_PASS);
    assert_int_equal(pairs, 12);
}

/* One visit after another in quads A B B A: what drifts is common to both, what is noise is not. Spikes: one in fifty,
 * +15 % on average. */
struct machine {
    struct dt_rng rng;
    double drift, cv;
};

static double visit(struct machine *machine)
{
    const double keep = exp(-1.0 / 60), sd = 0.02; /* per sample; of the drift */
    struct dt_rng *rng = &machine->rng;
    machine->drift = keep * machine->drift + sd * sqrt(1 - keep * keep) * dt_rng_normal(rng);
    double late = dt_rng_uniform(rng) < 0.02 ? 0.15 * exponential(rng) : 0;
    return machine->drift + machine->cv * dt_rng_normal(rng) + log(1 + late);
}

/* log(b / a) of 64 pairs; its true value is `slower`. */
static void rounds(struct machine *machine, double slower, double logs[64])
{
    machine->drift = 0.02 * dt_rng_normal(&machine->rng);
    for (int i = 0; i < 64; i++) {
        double first = visit(machine), second = visit(machine);
        logs[i] = (i % 2 == 0 ? second - first : first - second) + slower;
    }
}

/* The rows are of a simulation of 8,000 sessions each by a program of its own, of which the figures are rounded to the
 * last digit; here are 2,000, so four deviations of both are allowed, and 4 % of the mean number of pairs. */
static void planted_noise(void **state)
{
    (void)state;
    enum { REPLICATES = 2000 };
    static const struct {
        double slower, cv, pass, fail, pairs;
    } rows[] = {
        {-0.10, .05, 1, 0, 10.7},    {0, .01, 1, 0, 10.4},      {0, .02, .9996, .0004, 23},
        {0, .03, .963, .0024, 40},   {0, .05, .590, .008, 55},  {.015, .02, .757, .042, 50},
        {.045, .01, 0, 1, 9},        {.045, .02, 0, .9999, 14}, {.045, .03, .0001, .9945, 23},
        {.045, .05, .001, .894, 44}, {.10, .05, 0, 1, 14}};
    for (int i = 0; i < LENGTH(rows); i++) {
        struct machine machine = {.rng = {.seed = 71, .stream = (uint64_t)i}, .cv = rows[i].cv};
        int count[4] = {0};
        double sum = 0;
        for (int k = 0; k < REPLICATES; k++) {
            double logs[64];
            int pairs;
            rounds(&machine, rows[i].slower, logs);
            count[gate(logs, 64, &pairs)]++;
            sum += pairs;
        }
        double pass = (double)(count[DT_GATE_PASS] + count[DT_GATE_WIN]) / REPLICATES;
        double fail = (double)count[DT_GATE_FAIL] / REPLICATES;
        assert_near(pass, rows[i].pass, .001 + margin(rows[i].pass, REPLICATES * 4 / 5));
        assert_near(fail, rows[i].fail, .001 + margin(rows[i].fail, REPLICATES * 4 / 5));
        assert_near(sum / REPLICATES, rows[i].pairs, .5 + .04 * rows[i].pairs);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(borders),
        cmocka_unit_test(the_look_that_decides),
        cmocka_unit_test(a_failure_needs_both),
        cmocka_unit_test(too_few_and_between),
        cmocka_unit_test(planted_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
