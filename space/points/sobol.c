/* SPDX-License-Identifier: MIT */
/* Sobol's sequence in Gray-code order (Antonov, Saleev 1979) with the direction numbers of Joe and Kuo (2008, file
 * new-joe-kuo-6.21201) and a random digital shift, which keeps the strata of the sequence and makes each point uniform. */
#include "space/space_int.h"

/* For the coordinates from the second on: the degree of a primitive polynomial, its inner coefficients, and the first
 * direction numbers. */
static const struct {
    uint8_t degree, inner, first[7];
} rows[DT_AXES_MAX - 1] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
    {7, 7, {1, 1, 3, 13, 7, 35, 63}},
    {7, 8, {1, 3, 5, 9, 1, 25, 53}},
    {7, 14, {1, 3, 1, 13, 9, 35, 107}},
    {7, 19, {1, 3, 1, 5, 27, 61, 31}},
    {7, 21, {1, 1, 5, 11, 19, 41, 61}},
    {7, 28, {1, 3, 5, 3, 3, 13, 69}},
    {7, 31, {1, 1, 7, 13, 1, 19, 1}},
    {7, 32, {1, 3, 7, 5, 13, 19, 59}},
    {7, 37, {1, 1, 3, 9, 25, 29, 41}},
    {7, 41, {1, 3, 5, 13, 23, 1, 55}},
    {7, 42, {1, 3, 7, 3, 13, 59, 17}},
};

static void directions(int coordinate, uint32_t out[32])
{
    if (coordinate == 0) {
        for (int i = 0; i < 32; i++)
            out[i] = UINT32_C(1) << (31 - i);
        return;
    }
    int degree = rows[coordinate - 1].degree, inner = rows[coordinate - 1].inner;
    for (int i = 0; i < 32; i++) {
        if (i < degree) {
            out[i] = (uint32_t)rows[coordinate - 1].first[i] << (31 - i);
            continue;
        }
        out[i] = out[i - degree] ^ (out[i - degree] >> degree);
        for (int k = 1; k < degree; k++)
            if (inner >> (degree - 1 - k) & 1)
                out[i] ^= out[i - k];
    }
}

void dt_sobol_init(struct dt_sobol *sobol, uint64_t seed)
{
    sobol->index = 0;
    for (int i = 0; i < DT_AXES_MAX; i++) {
        directions(i, sobol->direction[i]);
        sobol->state[i] = (uint32_t)dt_rng_hash(seed, dt_rng_stream("sobol shift"), (uint64_t)i);
    }
}

void dt_sobol_next(struct dt_sobol *sobol, double coordinates[DT_AXES_MAX])
{
    for (int i = 0; i < DT_AXES_MAX; i++)
        coordinates[i] = (double)sobol->state[i] / 4294967296.0;
    int bit = 0;
    while (bit < 31 && (sobol->index >> bit & 1) != 0)
        bit++;
    sobol->index++;
    for (int i = 0; i < DT_AXES_MAX; i++)
        sobol->state[i] ^= sobol->direction[i][bit];
}
