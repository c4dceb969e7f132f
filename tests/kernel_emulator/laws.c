/* SPDX-License-Identifier: MIT */
/* ctest: dose */
/* Laws of attention on the emulator that need no other attention to compare with: the order of keys
 * does not matter, two parts of the keys merged are the whole. And float32 attention, for any head
 * dimension, against float64. */
#include "model/plan.h"
#include "tests/kernel_emulator/attention_case.h"
#include "tests/lib/dose.h"

static void copy_row(struct attention_case *to, int row, const struct attention_case *from,
                     int from_row)
{
    for (int n = 0; n < to->op.sequences; n++) {
        size_t bytes = (size_t)to->op.kv_at.row * (size_t)dt_dtype_bytes(to->dtype);
        memcpy(place(to->dtype, to->kv_block, n * to->op.kv_at.sequence + row * to->op.kv_at.row),
               place(to->dtype, from->kv_block,
                     n * from->op.kv_at.sequence + from_row * from->op.kv_at.row),
               bytes);
    }
}

/* A case like another with other keys: `count` of them from `first` on, taken
 * `step` apart, going round. */
static struct attention_case with_keys(const struct attention_case *whole, int first, int count,
                                       int step)
{
    struct attention_case part = *whole;
    part.op.keys = count;
    lay_out(&part);
    memcpy(part.q_block, whole->q_block, (size_t)(whole->q_count * dt_dtype_bytes(whole->dtype)));
    for (int j = 0; j < count; j++)
        copy_row(&part, j, whole, (first + j * step) % whole->op.keys);
    return part;
}

static struct attention_case make(enum dt_dtype dtype, int head, int queries, int keys)
{
    emu_forget();
    struct attention_case c = {.dtype = dtype,
                               .op = {.sequences = 2,
                                      .heads = 2,
                                      .head = head,
                                      .queries = queries,
                                      .keys = keys,
                                      .tile = {64, 64, 2, 4}}};
    struct dt_rng rng = dt_rng_at((uint64_t)head, "laws");
    lay_out(&c);
    fill(&c, c.op.q, random_value, &rng);
    fill(&c, c.op.k, random_value, &rng);
    fill(&c, c.op.v, random_value, &rng);
    assert_int_equal(dt_launch_attention_ready(dtype, &c.op), 0);
    return c;
}

/* Every element and log-sum-exp within `times` its bound. */
static void compare(const struct attention_case *whole, const void *out, const float *lse,
                    double times)
{
    struct answer a = {0};
    int at[4];
    for (at[0] = 0; at[0] < whole->op.sequences; at[0]++)
        for (at[2] = 0; at[2] < whole->op.heads; at[2]++)
            for (at[1] = 0; at[1] < whole->op.queries; at[1]++) {
                answer_row(whole, at, &a);
                for (at[3] = 0; at[3] < whole->op.head; at[3]++) {
                    double got = get(whole->dtype, out, element(whole, whole->op.out_at, at));
                    if (!(fabs(got - a.out[at[3]]) <= times * a.out_error[at[3]]))
                        fail_msg("head %d: out[%d, %d, %d, %d] is %g, not %g +- %g", whole->op.head,
                                 at[0], at[1], at[2], at[3], got, a.out[at[3]],
                                 times * a.out_error[at[3]]);
                }
                double got =
                    lse[((int64_t)at[0] * whole->op.heads + at[2]) * whole->op.queries + at[1]];
                if (!(fabs(got - a.lse) <= times * a.lse_error))
                    fail_msg("head %d: lse[%d, %d, %d] is %.9g, not %.9g", whole->op.head, at[0],
                             at[2], at[1], got, a.lse);
            }
}

/* out and lse of both orders, each within the bound of the one answer. */
static void order_of_keys(enum dt_dtype dtype, int head)
{
    struct attention_case c = make(dtype, head, 33, 101);
    struct attention_case other = with_keys(&c, 13, 101, 64);
    run_case(&c);
    run_case(&other);
    compare(&c, c.op.out, c.op.lse, 1);
    compare(&c, other.op.out, other.op.lse, 1);
}

static void order_of_keys_does_not_matter(void **state)
{
    (void)state;
    order_of_keys(DT_BFLOAT16, 64);
    order_of_keys(DT_BFLOAT16, 72);
    order_of_keys(DT_FLOAT32, 64);
}

/* [sequence, query, head, D] without gaps, as dt_merge takes a part. */
static void *contiguous(const struct attention_case *c)
{
    int64_t bytes = dt_dtype_bytes(c->dtype), width = (int64_t)c->op.heads * c->op.head;
    char *out = emu_alloc((size_t)(c->op.sequences * c->op.queries * width * bytes), 0);
    for (int64_t i = 0; i < (int64_t)c->op.sequences * c->op.queries; i++)
        memcpy(
            out + i * width * bytes,
            place(c->dtype, c->op.out,
                  i / c->op.queries * c->op.out_at.sequence + i % c->op.queries * c->op.out_at.row),
            (size_t)(width * bytes));
    return out;
}

/* Each part has its own roundings, and each merge one more: the sum of the weights of the parts is
 * 1, so three bounds do. */
static void split_and_merge(enum dt_dtype dtype, int head, int keys, int cut)
{
    struct attention_case c = make(dtype, head, 35, keys);
    struct attention_case one = with_keys(&c, 0, cut, 1), two = with_keys(&c, cut, keys - cut, 1);
    run_case(&one);
    run_case(&two);
    struct dt_merge merge = {.out = one.op.out,
                             .lse = one.op.lse,
                             .part = contiguous(&two),
                             .part_lse = two.op.lse,
                             .out_at = one.op.out_at,
                             .sequences = 2,
                             .heads = 2,
                             .head = head,
                             .queries = 35};
    int code = dt_launch_merge(dtype, &merge, NULL);
    assert_string_equal(emu_error(), "");
    assert_int_equal(code, 0);
    compare(&c, one.op.out, one.op.lse, 3);
    gaps_are_intact(&one);
}

static void parts_merge_to_the_whole(void **state)
{
    (void)state;
    split_and_merge(DT_BFLOAT16, 64, 150, 70);
    split_and_merge(DT_BFLOAT16, 72, 130, 129);
    split_and_merge(DT_BFLOAT16, 88, 90, 1);
    split_and_merge(DT_BFLOAT16, 128, 128, 64);
    split_and_merge(DT_FLOAT32, 64, 70, 31);
    split_and_merge(DT_FLOAT32, 40, 65, 64);
}

static void float32_of_any_head(void **state)
{
    (void)state;
    static const int heads[] = {1, 5, 40, 72, 256, /* full: */ 64, 100, 128, 160, 200, 255};
    static const int sizes[][2] = {{1, 1}, {5, 33}, /* full: */ {33, 70}, {5, 32}};
    for (int h = 0; h < (dose_full() ? 11 : 5); h++)
        for (int s = 0; s < (dose_full() ? 4 : 2); s++) {
            struct attention_case c = make(DT_FLOAT32, heads[h], sizes[s][0], sizes[s][1]);
            run_case(&c);
            compare(&c, c.op.out, c.op.lse, 1);
            gaps_are_intact(&c);
        }
}

static void no_keys_give_zero_in_float32(void **state)
{
    (void)state;
    struct attention_case c = make(DT_FLOAT32, 40, 9, 0);
    run_case(&c);
    gaps_are_intact(&c);
    int at[4];
    for (at[0] = 0; at[0] < 2; at[0]++)
        for (at[1] = 0; at[1] < 9; at[1]++)
            for (at[2] = 0; at[2] < 2; at[2]++)
                for (at[3] = 0; at[3] < 40; at[3]++)
                    assert_true(get(c.dtype, c.op.out, element(&c, c.op.out_at, at)) == 0.0f);
    for (int64_t i = 0; i < c.lse_count; i++)
        assert_true(isinf(c.op.lse[i]) && c.op.lse[i] < 0);
}

static void what_is_not_built_is_refused(void **state)
{
    (void)state;
    struct attention_case c = make(DT_BFLOAT16, 64, 4, 4);
    struct dt_attention op = c.op;
    op.tile.tile_q = 48;
    assert_int_equal(dt_launch_attention_ready(DT_BFLOAT16, &op), -1);
    assert_int_not_equal(dt_launch_attention(DT_BFLOAT16, &op, NULL), 0);
    op = c.op;
    op.head = 80;
    assert_int_equal(dt_launch_attention_ready(DT_BFLOAT16, &op), -1);
    op.head = 257;
    assert_int_equal(dt_launch_attention_ready(DT_FLOAT32, &op), -1);
    int built = 0;
    struct dt_attention_instance instance;
    while (dt_attention_instance(built, &instance))
        built++;
    assert_true(built > 0);
}

/* The shared memory that the space assumes equals the kernel's request. */
static void shared_memory_matches_the_prediction(void **state)
{
    struct dt_attention_instance is;
    (void)state;
    for (int i = 0; dt_attention_instance(i, &is); i++) {
        const struct dt_attn_tile tile = {is.tile_q, is.tile_kv, is.stages, is.warps};
        assert_int_equal(dt_attn_tile_bytes(&tile, is.head), is.shared_bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order_of_keys_does_not_matter),
        cmocka_unit_test(parts_merge_to_the_whole),
        cmocka_unit_test(float32_of_any_head),
        cmocka_unit_test(no_keys_give_zero_in_float32),
        cmocka_unit_test(what_is_not_built_is_refused),
        cmocka_unit_test(shared_memory_matches_the_prediction),
    };
    return cmocka_run_group_tests_name("laws", tests, NULL, NULL);
}
