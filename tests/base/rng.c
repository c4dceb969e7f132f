/* SPDX-License-Identifier: MIT */
/* Known vectors, and the moments and counts of long draws within five standard deviations
 * of what chance allows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>

#define N 200000

static void streams_are_fnv_1a(void **state)
{
    (void)state;
    assert_true(dt_rng_stream("") == 0xcbf29ce484222325ULL);
    assert_true(dt_rng_stream("a") == 0xaf63dc4c8601ec8cULL);
    assert_true(dt_rng_stream("foobar") == 0x85944171f73967e8ULL);
}

/* The first output of SplitMix64 from state 0 is also the key of seed 0; with it as the stream the
 * two cancel, and the hash walks SplitMix64 from state 0, whose outputs are published. */
static void hashes_are_splitmix64(void **state)
{
    (void)state;
    static const uint64_t expected[] = {0xe220a8397b1dcdafULL, 0x6e789e6aa1b965f4ULL,
                                        0x06c45d188009454fULL, 0xf88bb8a8724c81ecULL,
                                        0x1b39896a51a8749bULL};
    for (uint64_t i = 0; i < 5; i++)
        assert_true(dt_rng_hash(0, expected[0], i) == expected[i]);
}

static void values_do_not_depend_on_the_order(void **state)
{
    (void)state;
    float whole[1000], part[1000];
    uint64_t stream = dt_rng_stream("blocks.0.attn.qkv.weight");
    struct dt_rng rng = dt_rng_at(7, "blocks.0.attn.qkv.weight");
    for (uint64_t i = 0; i < 100; i++)
        assert_true(dt_rng_next(&rng) == dt_rng_hash(7, stream, i));
    dt_rng_fill(whole, 1000, 7, stream, 0, 0.5f);
    for (size_t first = 0; first < 1000; first += 130) {
        size_t n = first + 130 < 1000 ? 130 : 1000 - first;
        dt_rng_fill(part + first, n, 7, stream, first, 0.5f);
    }
    assert_memory_equal(whole, part, sizeof whole);
}

/* Asserts that the mean and variance of x lie within five deviations; kurtosis is E[(x -
 * mean)^4] / variance^2. */
static void check_moments(const double *x, double mean, double variance, double kurtosis)
{
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        sum += x[i];
        squares += (x[i] - mean) * (x[i] - mean);
    }
    assert_true(fabs(sum / N - mean) < 5 * sqrt(variance / N));
    assert_true(fabs(squares / N - variance) < 5 * variance * sqrt((kurtosis - 1) / N));
}

static void moments_are_those_of_the_distribution(void **state)
{
    (void)state;
    double *x = malloc(N * sizeof *x);
    float *f = malloc(N * sizeof *f);
    assert_true(x != NULL && f != NULL);
    struct dt_rng rng = dt_rng_at(1, "moments");
    for (int i = 0; i < N; i++) {
        x[i] = dt_rng_uniform(&rng);
        assert_true(x[i] >= 0 && x[i] < 1);
    }
    check_moments(x, 0.5, 1.0 / 12, 1.8);
    for (int i = 0; i < N; i++)
        x[i] = dt_rng_normal(&rng);
    check_moments(x, 0, 1, 3);
    dt_rng_fill(f, N, 1, 2, 0, 3.0f);
    for (int i = 0; i < N; i++) {
        x[i] = (double)f[i];
        assert_true(fabs(x[i]) <= 3 * 1.7320509);
    }
    check_moments(x, 0, 9, 1.8);
    free(x);
    free(f);
}

/* The statistic of k equal bins has mean k - 1 and variance 2 (k - 1). */
static void check_bins(const int *count, int k, int n)
{
    double chi = 0, expected = (double)n / k;
    for (int i = 0; i < k; i++)
        chi += (count[i] - expected) * (count[i] - expected) / expected;
    assert_true(fabs(chi - (k - 1)) < 5 * sqrt(2.0 * (k - 1)));
}

static void bins_are_filled_evenly(void **state)
{
    (void)state;
    int uniform[100] = {0}, below[100] = {0}, low[256] = {0}, pairs[256] = {0};
    struct dt_rng rng = dt_rng_at(2, "bins");
    for (int i = 0; i < N; i++) {
        uint64_t bits = dt_rng_next(&rng);
        uniform[(int)(dt_rng_uniform(&rng) * 100)]++;
        below[dt_rng_below(&rng, 100)]++;
        low[bits & 255]++;
        pairs[(bits >> 60) * 16 + (dt_rng_hash(3, 4, (uint64_t)i) >> 60)]++;
    }
    check_bins(uniform, 100, N);
    check_bins(below, 100, N);
    check_bins(low, 256, N);
    check_bins(pairs, 256, N);
}

/* Neighbouring seeds, streams and indices share nothing: pairs of their values
 * fill the plane evenly. */
static void neighbours_are_independent(void **state)
{
    (void)state;
    int seeds[64] = {0}, streams[64] = {0}, indices[64] = {0};
    for (uint64_t i = 0; i < N; i++) {
        uint64_t here = dt_rng_hash(5, 6, i) >> 61;
        seeds[here * 8 + (dt_rng_hash(6, 6, i) >> 61)]++;
        streams[here * 8 + (dt_rng_hash(5, 7, i) >> 61)]++;
        indices[here * 8 + (dt_rng_hash(5, 6, i + 1) >> 61)]++;
    }
    check_bins(seeds, 64, N);
    check_bins(streams, 64, N);
    check_bins(indices, 64, N);
}

/* n = 3/4 of 2^64, where a bare remainder would hit the lowest third half of the time. */
static void below_has_no_bias(void **state)
{
    (void)state;
    int thirds[3] = {0};
    struct dt_rng rng = dt_rng_at(3, "below");
    uint64_t third = 1ULL << 62;
    for (int i = 0; i < N; i++) {
        uint64_t x = dt_rng_below(&rng, 3 * third);
        assert_true(x < 3 * third);
        thirds[x / third]++;
    }
    check_bins(thirds, 3, N);
    for (int i = 0; i < 100; i++)
        assert_true(dt_rng_below(&rng, 1) == 0);
    assert_true(dt_rng_below(&rng, UINT64_MAX) < UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_are_fnv_1a),
        cmocka_unit_test(hashes_are_splitmix64),
        cmocka_unit_test(values_do_not_depend_on_the_order),
        cmocka_unit_test(moments_are_those_of_the_distribution),
        cmocka_unit_test(bins_are_filled_evenly),
        cmocka_unit_test(neighbours_are_independent),
        cmocka_unit_test(below_has_no_bias),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
