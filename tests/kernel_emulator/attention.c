/* SPDX-License-Identifier: MIT */
/* ctest: dose */
/* Every row of model/tiles_cuda.def on the emulator, for the head dimension that is the
 * argument: against float64 within what rounding allows, and exactly where the answer is exact.
 * In the plain run heads of 64 channels have every row, others two. DITTUNE_DOSE=full: every
 * row, more and larger shapes. */
#include "tests/kernel_emulator/attention_case.h"
#include "tests/lib/dose.h"

#include <stdio.h>

static const struct row {
    int tile_q, tile_kv, stages, warps;
} rows[] = {
#define DT_ATTN_TILE(tile_q, tile_kv, stages, warps) {tile_q, tile_kv, stages, warps},
#include "model/tiles_cuda.def"
#undef DT_ATTN_TILE
};

enum { ROWS = sizeof rows / sizeof *rows };

static int head;
static bool full;

/* queries = tiles[0] tile_q + more[0], keys alike */
struct shape {
    int tiles[2], more[2], sequences, heads;
};
static const struct shape shapes[] = {{{1, 2}, {3, 5}, 1, 2},
                                      {{0, 0}, {1, 1}, 2, 1},
                                      {{0, 1}, {17, 0}, 1, 1},
                                      /* from here on: full */ {{0, 3}, {5, -1}, 1, 1},
                                      {{1, 0}, {0, 9}, 2, 3},
                                      {{2, 4}, {1, 8}, 2, 2},
                                      {{1, 3}, {-1, 0}, 1, 3},
                                      {{3, 2}, {16, 16}, 1, 1}};

static int shape_count(void)
{
    return full ? (int)(sizeof shapes / sizeof *shapes) : 3;
}

/* Rows are taken in steps: a claim that needs a large shape is tried on every second one. */
static size_t row_step(bool large)
{
    return full ? 1 : head != 64 ? 6 : large ? 2 : 1;
}

/* False: there is no such instance. */
static bool make(struct attention_case *c, const struct row *row, const struct shape *shape)
{
    emu_forget();
    *c = (struct attention_case){
        .dtype = DT_BFLOAT16,
        .op = {.sequences = shape->sequences,
               .heads = shape->heads,
               .head = head,
               .queries = shape->tiles[0] * row->tile_q + shape->more[0],
               .keys = shape->tiles[1] * row->tile_kv + shape->more[1],
               .tile = {row->tile_q, row->tile_kv, row->stages, row->warps}}};
    lay_out(c);
    return dt_launch_attention_ready(c->dtype, &c->op) == 0;
}

static void fill_randomly(struct attention_case *c)
{
    struct dt_rng rng = dt_rng_at((uint64_t)c->op.queries, "attention");
    fill(c, c->op.q, random_value, &rng);
    fill(c, c->op.k, random_value, &rng);
    fill(c, c->op.v, random_value, &rng);
}

/* Largest error in parts of the bound. */
static double compare(const struct attention_case *c)
{
    double worst = 0;
    struct answer a = {0};
    int at[4];
    for (at[0] = 0; at[0] < c->op.sequences; at[0]++)
        for (at[2] = 0; at[2] < c->op.heads; at[2]++)
            for (at[1] = 0; at[1] < c->op.queries; at[1]++) {
                answer_row(c, at, &a);
                for (at[3] = 0; at[3] < head; at[3]++) {
                    double got = get(c->dtype, c->op.out, element(c, c->op.out_at, at));
                    double part = fabs(got - a.out[at[3]]) / a.out_error[at[3]];
                    worst = part <= worst ? worst : part; /* NaN, too */
                    if (!(part <= 1))
                        fail_msg("out[%d, %d, %d, %d] is %g, not %g +- %g", at[0], at[1], at[2],
                                 at[3], got, a.out[at[3]], a.out_error[at[3]]);
                }
                if (c->op.lse == NULL)
                    continue;
                double got =
                    c->op.lse[((int64_t)at[0] * c->op.heads + at[2]) * c->op.queries + at[1]];
                if (!(fabs(got - a.lse) <= a.lse_error))
                    fail_msg("lse[%d, %d, %d] is %.9g, not %.9g +- %g", at[0], at[2], at[1], got,
                             a.lse, a.lse_error);
            }
    gaps_are_intact(c);
    return worst;
}

static void random_inputs_stay_within_the_error_bound(void **state)
{
    (void)state;
    struct attention_case c;
    for (size_t r = 0; r < ROWS; r += row_step(false)) {
        double worst = 0;
        for (int s = 0; s < shape_count(); s++) {
            if (!make(&c, &rows[r], &shapes[s])) {
                printf("%dx%d, %d stages, %d warps, head %d: not built\n", rows[r].tile_q,
                       rows[r].tile_kv, rows[r].stages, rows[r].warps, head);
                break;
            }
            fill_randomly(&c);
            if (s == 2)
                c.op.lse = NULL;
            run_case(&c);
            worst = fmax(worst, compare(&c));
        }
        printf("%dx%d, %d stages, %d warps, head %d: at most %.2f of the bound\n", rows[r].tile_q,
               rows[r].tile_kv, rows[r].stages, rows[r].warps, head, worst);
    }
}

/* A code of +-3 for key `index[1]` of a head; a query has that of the key it picks. */
static float code(uint64_t key, const int index[4])
{
    uint64_t bits =
        dt_rng_hash(7, (uint64_t)(index[0] * 8 + index[2]), key * 4 + (uint64_t)index[3] / 64);
    return bits >> (index[3] % 64) & 1 ? 3.0f : -3.0f;
}

static float key_code(void *arg, const int index[4])
{
    (void)arg;
    return code((uint64_t)index[1], index);
}

static int picked(int query, int keys)
{
    return (query * 37 + 11) % keys;
}

static float query_code(void *arg, const int index[4])
{
    return code((uint64_t)picked(index[1], *(const int *)arg), index);
}

/* Codes of 64 signs agree by 9 D / sqrt(D) with themselves and by a random walk with others (9 D /
 * sqrt(D) / 72 or less matter): the rest is below half a unit in the last place, so the answer is
 * the value of the picked key, to the bit. */
static void picks_one_key_exactly(void **state)
{
    (void)state;
    struct attention_case c;
    for (size_t r = 0; r < ROWS; r += row_step(true))
        for (int s = 0; s < shape_count(); s++) {
            if (!make(&c, &rows[r], &shapes[s]))
                break;
            fill_randomly(&c);
            fill(&c, c.op.q, query_code, &c.op.keys);
            fill(&c, c.op.k, key_code, NULL);
            run_case(&c);
            int at[4];
            for (at[0] = 0; at[0] < c.op.sequences; at[0]++)
                for (at[1] = 0; at[1] < c.op.queries; at[1]++)
                    for (at[2] = 0; at[2] < c.op.heads; at[2]++)
                        for (at[3] = 0; at[3] < head; at[3]++) {
                            int from[4] = {at[0], picked(at[1], c.op.keys), at[2], at[3]};
                            float want = get(c.dtype, c.op.v, element(&c, c.op.kv_at, from));
                            float got = get(c.dtype, c.op.out, element(&c, c.op.out_at, at));
                            if (got != want)
                                fail_msg("out[%d, %d, %d, %d] is %g, not %g, of key %d", at[0],
                                         at[1], at[2], at[3], (double)got, (double)want, from[1]);
                        }
        }
}

/* Queries of zeros: every key counts as much, to the bit; only the output is
 * rounded. lse is log(keys). */
static void equal_scores_average(void **state)
{
    (void)state;
    struct attention_case c;
    for (size_t r = 0; r < ROWS; r += row_step(true)) {
        if (!make(&c, &rows[r], &shapes[0]))
            continue;
        fill_randomly(&c);
        fill(&c, c.op.q, zero_value, NULL);
        run_case(&c);
        int at[4] = {0, 0, 0, 0};
        for (at[2] = 0; at[2] < c.op.heads; at[2]++)
            for (at[3] = 0; at[3] < head; at[3]++) {
                double sum = 0, size = 0;
                for (int j = 0; j < c.op.keys; j++) {
                    double v =
                        get(c.dtype, c.op.v, element(&c, c.op.kv_at, (int[4]){0, j, at[2], at[3]}));
                    sum += v;
                    size += fabs(v);
                }
                sum /= c.op.keys;
                for (at[1] = 0; at[1] < c.op.queries; at[1]++) {
                    double got = get(c.dtype, c.op.out, element(&c, c.op.out_at, at));
                    assert_true(fabs(got - sum) <= ROUNDING * fabs(sum) + size * 0x1p-22);
                }
            }
        for (int64_t i = 0; i < c.lse_count; i++)
            assert_true(fabs((double)c.op.lse[i] - log(c.op.keys)) <= 0x1p-20);
    }
}

static void no_keys_give_zero(void **state)
{
    (void)state;
    struct attention_case c;
    for (size_t r = 0; r < ROWS; r += row_step(false)) {
        if (!make(&c, &rows[r], &(struct shape){{0, 0}, {19, 0}, 2, 2}))
            continue;
        fill_randomly(&c);
        run_case(&c);
        gaps_are_intact(&c);
        int at[4];
        for (at[0] = 0; at[0] < c.op.sequences; at[0]++)
            for (at[1] = 0; at[1] < c.op.queries; at[1]++)
                for (at[2] = 0; at[2] < c.op.heads; at[2]++)
                    for (at[3] = 0; at[3] < head; at[3]++)
                        assert_true(get(c.dtype, c.op.out, element(&c, c.op.out_at, at)) == 0.0f);
        for (int64_t i = 0; i < c.lse_count; i++)
            assert_true(isinf(c.op.lse[i]) && c.op.lse[i] < 0);
    }
}

/* Warps may come in any order; equal tiles give equal bits. */
static void order_does_not_matter(void **state)
{
    (void)state;
    struct attention_case c;
    for (size_t r = 0; r < ROWS; r += row_step(true)) {
        if (!make(&c, &rows[r], &shapes[0]))
            continue;
        fill_randomly(&c);
        run_case(&c);
        size_t bytes = (size_t)c.out_count * 2;
        void *first = malloc(bytes);
        memcpy(first, c.op.out, bytes);
        emu_order(1);
        run_case(&c);
        emu_order(0);
        assert_memory_equal(first, c.op.out, bytes);
        free(first);
    }
}

/* No bank conflicts in what moves tiles; global memory in pieces of 16 bytes, and no sectors for
 * nothing where rows of a head begin at multiples of 32 bytes. */
static void memory_accesses_are_coalesced(void **state)
{
    (void)state;
    struct attention_case c;
    for (size_t r = 0; r < ROWS; r += row_step(false)) {
        if (!make(&c, &rows[r], &(struct shape){{2, 2}, {0, 0}, 1, 1}))
            continue;
        fill_randomly(&c);
        c.op.lse = NULL;
        run_case(&c);
        struct emu_tally t = emu_counts();
        assert_int_equal(t.ldmatrix.units, t.ldmatrix.least);
        assert_int_equal(t.cp_async.units, t.cp_async.least);
        assert_true(t.shared_load.units <=
                    2 * t.shared_load.least); /* outputs on their way out, once a block */
        assert_int_equal(t.shared_store.units, t.shared_store.least);
        assert_int_equal(t.load.wide, t.load.bytes);
        assert_int_equal(t.store.wide, t.store.bytes);
        assert_true(t.load.units <= t.load.least * (head % 16 == 0 ? 1 : 2));
        assert_true(t.mma > 0);
        printf("%dx%d, %d stages, %d warps, head %d: %lld sectors read for %lld, %lld written for "
               "%lld\n",
               rows[r].tile_q, rows[r].tile_kv, rows[r].stages, rows[r].warps, head,
               (long long)t.load.units, (long long)t.load.least, (long long)t.store.units,
               (long long)t.store.least);
    }
}

int main(int argc, char **argv)
{
    head = argc > 1 ? atoi(argv[1]) : 64;
    full = dose_full();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_inputs_stay_within_the_error_bound),
        cmocka_unit_test(picks_one_key_exactly),
        cmocka_unit_test(equal_scores_average),
        cmocka_unit_test(no_keys_give_zero),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(memory_accesses_are_coalesced),
    };
    return cmocka_run_group_tests_name("attention", tests, NULL, NULL);
}
