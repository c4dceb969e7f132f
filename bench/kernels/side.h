/* SPDX-License-Identifier: MIT */
/* side - two things in alternation, and the ratio of their rates turn by turn
 *
 * A turn is 30 ms or more of each, A B and B A by turns. What a benchmark allocates is not freed:
 * the program ends soon.
 */
#ifndef DT_BENCH_KERNELS_SIDE_H
#define DT_BENCH_KERNELS_SIDE_H

#include "kernels/compute.h"

#define DT_BENCH_TURNS 31 /* at most */

struct dt_side {
    void (*run)(void *arg);
    void *arg;
    double amount; /* operations or bytes of one run */
};

extern int dt_bench_threads, dt_bench_turns;

/* Prints the median, the least and the greatest ratio of our rate over theirs, and both median
 * rates in units of 1e9 a second. The median. */
double dt_bench_compare(const char *what, const char *unit, const struct dt_side *ours,
                        const struct dt_side *theirs);

/* Memory, and numbers around 1 in either data type (zeros are multiplied faster on some
 * processors). Exits when there is no memory. */
void *dt_bench_room(int64_t bytes);
void *dt_bench_numbers(enum dt_dtype dtype, int64_t n);

/* The library's bare product [rows, in] x [in, out], on weights in the layout
 * that it asks for itself. */
struct dt_bench_product;
struct dt_bench_product *dt_bench_product(enum dt_dtype dtype, const int size[3]);
/* NULL: the library is not there, or does not multiply this type. */
const char *dt_bench_openblas(struct dt_bench_product *product, struct dt_side *side);
const char *dt_bench_onednn(struct dt_bench_product *product, struct dt_side *side);

void dt_bench_linear(void);
void dt_bench_attention(void);
void dt_bench_passes(void);

#endif
