/* SPDX-License-Identifier: MIT */
/* On a machine that lacks nothing, what a worker refuses (dt_dit_check) is what is not in the
 * space, for plans a few changes from feasible ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "model/family.h"
#include "space/dit/dit.h"
#include "tests/lib/dose.h"

#include <string.h>

static struct dt_workload network(bool guidance, enum dt_dtype dtype)
{
    struct dt_workload workload = {.height = 12, .width = 10, .guidance = guidance, .dtype = dtype};
    workload.network = (struct dt_network){.family = &dt_family_dit,
                                           .hidden = 768,
                                           .heads = 12,
                                           .depth = 2,
                                           .patch = 2,
                                           .in_channels = 4,
                                           .latent_size = 16,
                                           .own = {10},
                                           .mlp_ratio = 4};
    return workload;
}

static const struct dt_gpus gpus = {
    .count = 64,
    .memory_bytes = INT64_C(1) << 50,
    .shared_bytes = 1 << 30,
    .nccl = 99999,
    .capability = 90,
    .attention = {[DT_ATTENTION_CUDNN] = true, [DT_ATTENTION_FA3] = true},
    .capture = true,
    .bfloat16 = true};
static const int batches[] = {1, 2, 3, 4};
static const struct dt_limits limits = {.cores = 4096,
                                        .devices = 64,
                                        .oversubscribe = true,
                                        .lossy = true,
                                        .memory_bytes = INT64_C(1) << 50,
                                        .batches = batches,
                                        .batch_count = 4};

/* A few axes at random; then, more often than not, as many ranks as the degrees make. */
static void change(const struct dt_space *space, enum dt_on on, const struct dt_point *base,
                   struct dt_rng *rng, struct dt_point *point)
{
    for (int n = (int)dt_rng_below(rng, 5); n > 0; n--) {
        int axis = (int)dt_rng_below(rng, (uint64_t)dt_space_axes(space));
        int most = dt_space_axis(space, axis)->count;
        most = most < 12 ? most : 12;
        point->index[axis] = (int32_t)dt_rng_below(rng, (uint64_t)most);
    }
    struct dt_plan plan = dt_dit_plan(space, point);
    int ranks = 1;
    for (int i = 0; i < DT_DEGREES; i++)
        ranks *= dt_plan_degree(&plan, i);
    if (ranks <= 64 && dt_rng_below(rng, 4) > 0)
        point->index[0] = ranks - 1;
    for (int i = 0; i < dt_space_axes(space); i++) /* of the CPU: never more than there are cores */
        if (strcmp(dt_space_axis(space, i)->name, "threads") == 0)
            point->index[i] = 0;
    int64_t narrow;
    bool tiles =
        plan.attention == DT_ATTENTION_OWN && dt_space_constant(space, "narrow", &narrow) && narrow;
    for (int i = 0; on == DT_ON_GPU && !tiles && i < dt_space_axes(space); i++) /* the session's */
        if (strstr("tile_q tile_kv stages warps", dt_space_axis(space, i)->name) != NULL)
            point->index[i] = base->index[i];
}

static void compare(struct dt_workload workload, const struct dt_gpus *on)
{
    const int plans = dose_thin() ? 1000 : 3000;
    struct dt_limits here = limits;
    struct dt_space *space = NULL;
    struct dt_rng rng = dt_rng_at(7, "check");
    struct dt_point point, start, base;
    int answers[2] = {0};
    here.gpus = on;
    assert_int_equal(dt_dit_rules(&workload, &here, &space), DT_OK);
    assert_int_equal(dt_dit_baseline(space, &start), DT_OK);
    base = start;
    for (int i = 0; i < plans; i++) {
        point = start;
        change(space, on != NULL ? DT_ON_GPU : DT_ON_CPU, &base, &rng, &point);
        struct dt_plan plan = dt_dit_plan(space, &point);
        bool feasible = dt_space_feasible(space, &point);
        dt_status status = dt_dit_check(&workload, &plan);
        if (status != (feasible ? DT_OK : DT_EINFEASIBLE)) {
            struct dt_text text = {0};
            dt_point_text(space, &point, &text);
            fail_msg("%s: %s, but the space says %d", dt_text_at(&text),
                     status == DT_OK ? "accepted" : dt_message(), feasible);
        }
        answers[feasible]++;
        start = feasible ? point : start;
    }
    assert_true(answers[0] > plans / 20);
    assert_true(answers[1] > plans / 20);
    dt_space_free(space);
}

static void check_agrees_with_the_space(void **state)
{
    (void)state;
    for (int guidance = 0; guidance < 2; guidance++) {
        compare(network(guidance, DT_FLOAT32), NULL);
        compare(network(guidance, DT_FLOAT32), &gpus);
        compare(network(guidance, DT_BFLOAT16), &gpus);
    }
}

static void refused(struct dt_plan plan, const char *why)
{
    struct dt_workload workload = network(true, DT_FLOAT32);
    assert_int_equal(dt_dit_check(&workload, &plan), DT_EINFEASIBLE);
    if (strstr(dt_message(), why) == NULL)
        fail_msg("'%s' does not say '%s'", dt_message(), why);
}

/* No axis holds these values: the rules alone must see them. */
static void plans_without_a_layout_are_refused(void **state)
{
    struct dt_workload workload = network(true, DT_FLOAT32);
    struct dt_plan one = dt_plan_fallback;
    (void)state;
    one.tile_q = 32;
    one.tile_kv = 64;
    struct dt_plan plan = one;
    assert_int_equal(dt_dit_check(&workload, &plan), DT_OK);
    plan.ulysses = plan.ranks = 5;
    refused(plan, "ulysses must divide the number of heads (heads=12 % (ulysses=5)");
    plan = one;
    plan.ulysses = 2;
    refused(plan, "cfg x ulysses x ring must be the number of ranks");
    plan = one;
    plan.chunks = 0;
    refused(plan, "chunks must divide the heads of a ulysses rank");
    plan = one;
    plan.cfg = plan.ranks = 3;
    refused(plan, "cfg=2 needs guidance");
    plan = one;
    plan.ring = plan.ranks = 31;
    refused(plan, "each rank of a sequence needs a token of its own");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_agrees_with_the_space),
        cmocka_unit_test(plans_without_a_layout_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
