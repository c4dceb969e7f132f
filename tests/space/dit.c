/* SPDX-License-Identifier: MIT */
/* The built-in space against eleven nested loops over plain numbers, with the
 * rules written again in C. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/family.h"
#include "space/dit/dit.h"

#include <string.h>

struct machine {
    struct dt_workload workload;
    struct dt_limits limits;
    int batches[8];
};

/* Varied inputs of a case; zeros are the defaults. */
struct given {
    int heads, height, width, devices, cores;
    int hosts; /* that the cores are on, in equal parts */
    bool guidance, oversubscribe;
    int batches[4]; /* 0 ends */
    int64_t memory_kib, max_kib;
};

static void set_up(const struct given *given, struct machine *machine)
{
    *machine =
        (struct machine){.workload = {.network = {.family = &dt_family_dit,
                                                  .hidden = 8 * given->heads,
                                                  .heads = given->heads,
                                                  .depth = 2,
                                                  .patch = 2,
                                                  .in_channels = 4,
                                                  .latent_size = 16,
                                                  .own = {10},
                                                  .mlp_ratio = 4},
                                      .height = given->height,
                                      .width = given->width,
                                      .guidance = given->guidance,
                                      .sampler_steps = 50},
                         .limits = {.cores = given->cores,
                                    .devices = given->devices,
                                    .hosts = given->hosts,
                                    .slots = given->hosts > 0 ? given->cores / given->hosts : 0,
                                    .oversubscribe = given->oversubscribe,
                                    .memory_bytes = given->memory_kib > 0 ? given->memory_kib * 1024
                                                                          : INT64_C(1) << 40,
                                    .max_bytes = given->max_kib * 1024}};
    int *n = &machine->limits.batch_count;
    for (; given->batches[*n] > 0; ++*n)
        machine->batches[*n] = given->batches[*n];
    machine->limits.batches = machine->batches;
}

static struct dt_space *make(const struct given *given, struct machine *machine)
{
    struct dt_space *space = NULL;
    set_up(given, machine);
    assert_int_equal(dt_dit_space(&machine->workload, &machine->limits, &space), DT_OK);
    return space;
}

/* One rank's share for some number of ranks, or an even split of all cores. */
static bool worth_threads(int threads, int cores)
{
    bool share = cores % threads == 0;
    for (int ranks = 1; ranks <= cores; ranks++)
        share = share || cores / ranks == threads;
    return share;
}

static bool offered(const int list[], int n, int value)
{
    for (int i = 0; i < n; i++)
        if (list[i] == value)
            return true;
    return false;
}

/* Only the smallest of the tiles that hold the whole sequence is worth trying; the
 * list is 2^k * first. */
static bool worth_tile(int tile, int first, int tokens)
{
    return tile == first || tile / 2 < tokens;
}

static bool fits(const struct machine *machine, const struct dt_plan *plan)
{
    int64_t bytes = dt_workload_rank_bytes(&machine->workload, plan);
    if (machine->limits.max_bytes > 0 && bytes > machine->limits.max_bytes)
        return false;
    return bytes * plan->ranks <= machine->limits.memory_bytes;
}

static bool degrees_legal(const struct machine *machine, const struct dt_plan *plan)
{
    int tokens = machine->workload.height / 2 * (machine->workload.width / 2);
    int heads = machine->workload.network.heads;
    if (plan->ranks != plan->cfg * plan->ulysses * plan->ring)
        return false;
    if (!machine->limits.oversubscribe && plan->ranks > machine->limits.cores)
        return false;
    if (heads % plan->ulysses != 0 || tokens < plan->ulysses * plan->ring)
        return false;
    return plan->cfg == 1 || machine->workload.guidance;
}

/* Written for plans of several hosts alone. */
static bool placed_legal(const struct machine *machine, const struct dt_plan *plan)
{
    if (plan->hosts == 0)
        return true;
    if (plan->ranks % plan->hosts != 0)
        return false;
    if (plan->neighbours == DT_PLAN_BY_RING && (plan->ulysses < 2 || plan->ring < 2))
        return false;
    return machine->limits.oversubscribe ||
           plan->ranks / plan->hosts * plan->threads <= machine->limits.slots;
}

static bool rest_legal(const struct machine *machine, const struct dt_plan *plan)
{
    int tokens = machine->workload.height / 2 * (machine->workload.width / 2);
    int share = machine->limits.cores / plan->ranks;
    if (plan->threads > (share > 1 ? share : 1) ||
        !worth_threads(plan->threads, machine->limits.cores))
        return false;
    if (!worth_tile(plan->tile_q, 32, tokens) || !worth_tile(plan->tile_kv, 64, tokens))
        return false;
    if (machine->workload.network.heads / plan->ulysses % plan->chunks != 0)
        return false;
    if (plan->overlap == 1 && plan->ring == 1 && plan->chunks == 1)
        return false;
    if (plan->chunks > 1 && (plan->overlap == 0 || plan->ulysses == 1))
        return false;
    return fits(machine, plan) && placed_legal(machine, plan);
}

struct tally {
    const struct dt_space *space;
    const struct machine *machine;
    int64_t count;
};

/* The next point of the space must be this plan. */
static void expect(struct tally *tally, const struct dt_plan *plan)
{
    struct dt_point point;
    assert_true(tally->count < dt_space_count(tally->space));
    dt_space_at(tally->space, tally->count, &point);
    struct dt_plan found = dt_dit_plan(tally->space, &point);
    if (memcmp(&found, plan, sizeof found) != 0)
        fail_msg("point %lld is not the plan of ranks=%d ulysses=%d ring=%d threads=%d chunks=%d",
                 (long long)tally->count, plan->ranks, plan->ulysses, plan->ring, plan->threads,
                 plan->chunks);
    assert_true(dt_space_feasible(tally->space, &point));
    assert_int_equal(dt_space_index(tally->space, &point), tally->count);
    tally->count++;
}

static void loop_rest(struct tally *tally, struct dt_plan plan)
{
    const struct machine *machine = tally->machine;
    for (plan.threads = 1; plan.threads <= machine->limits.cores; plan.threads++)
        for (plan.batch = 1; plan.batch <= 12; plan.batch++) {
            if (!offered(machine->batches, machine->limits.batch_count, plan.batch))
                continue;
            for (plan.tile_q = 32; plan.tile_q <= 256; plan.tile_q *= 2)
                for (plan.tile_kv = 64; plan.tile_kv <= 512; plan.tile_kv *= 2)
                    for (plan.overlap = 0; plan.overlap <= 1; plan.overlap++)
                        for (plan.chunks = 1; plan.chunks <= 12; plan.chunks++)
                            if (rest_legal(machine, &plan))
                                expect(tally, &plan);
        }
}

static void loop_hosts(struct tally *tally, struct dt_plan plan)
{
    int hosts = tally->machine->limits.hosts > 1 ? tally->machine->limits.hosts : 0;
    for (plan.hosts = hosts > 0; plan.hosts <= hosts; plan.hosts++)
        for (plan.neighbours = 0; plan.neighbours <= (hosts > 0); plan.neighbours++)
            loop_rest(tally, plan);
}

static void loop_degrees(struct tally *tally)
{
    int most = tally->machine->limits.devices;
    struct dt_plan plan = dt_plan_fallback;
    for (plan.ranks = 1; plan.ranks <= most; plan.ranks++)
        for (plan.cfg = 1; plan.cfg <= 2; plan.cfg++)
            for (plan.ulysses = 1; plan.ulysses <= most; plan.ulysses++)
                for (plan.ring = 1; plan.ring <= most; plan.ring++)
                    if (degrees_legal(tally->machine, &plan))
                        loop_hosts(tally, plan);
}

static int64_t check(const struct given *given)
{
    struct machine machine;
    struct dt_space *space = make(given, &machine);
    struct tally tally = {.space = space, .machine = &machine};
    struct dt_point point;
    loop_degrees(&tally);
    assert_int_equal(tally.count, dt_space_count(space));
    if (dt_space_count(space) > 0) {
        assert_int_equal(dt_dit_default(space, &point), DT_OK);
        assert_true(dt_space_feasible(space, &point));
        bool limited = given->memory_kib > 0 || given->max_kib > 0;
        dt_status status = dt_dit_baseline(space, &point);
        struct dt_plan plan = dt_dit_plan(space, &point);
        int cores = given->hosts > 1 ? given->cores / given->hosts : given->cores;
        assert_true(limited || (status == DT_OK && plan.threads == cores));
        assert_true(status == DT_OK ? plan.ranks == 1 : status == DT_EINFEASIBLE);
        assert_true(dt_space_feasible(space, &point));
    }
    dt_space_free(space);
    return tally.count;
}

static void head_counts_match_the_definition(void **state)
{
    static const int heads[] = {3, 5, 6, 12};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int devices = 1; devices <= 6; devices++)
            for (int guidance = 0; guidance <= 1; guidance++) {
                const struct given given = {.heads = heads[i],
                                            .height = 6,
                                            .width = 10,
                                            .devices = devices,
                                            .cores = 6,
                                            .guidance = guidance == 1,
                                            .batches = {1, 2, 3}};
                assert_true(check(&given) > 0);
            }
}

static void odd_sizes_match_the_definition(void **state)
{
    static const int sizes[][2] = {{2, 2}, {2, 6}, {10, 2}, {14, 18}, {22, 26}, {34, 16}};
    (void)state;
    for (int i = 0; i < 6; i++) {
        const struct given given = {.heads = 6,
                                    .height = sizes[i][0],
                                    .width = sizes[i][1],
                                    .devices = 6,
                                    .cores = 8,
                                    .guidance = true,
                                    .batches = {2, 4}};
        assert_true(check(&given) > 0);
    }
}

static void cores_and_devices_match_the_definition(void **state)
{
    (void)state;
    for (int cores = 1; cores <= 7; cores++)
        for (int oversubscribe = 0; oversubscribe <= 1; oversubscribe++) {
            const struct given given = {.heads = 6,
                                        .height = 8,
                                        .width = 8,
                                        .devices = 4,
                                        .cores = cores,
                                        .oversubscribe = oversubscribe == 1,
                                        .guidance = true,
                                        .batches = {6, 1}};
            assert_true(check(&given) > 0);
        }
}

static void hosts_match_the_definition(void **state)
{
    (void)state;
    for (int hosts = 1; hosts <= 3; hosts++)
        for (int slots = 1; slots <= 3; slots++)
            for (int oversubscribe = 0; oversubscribe <= 1; oversubscribe++) {
                const struct given given = {.heads = 6,
                                            .height = 6,
                                            .width = 8,
                                            .devices = hosts * slots,
                                            .cores = hosts * slots,
                                            .hosts = hosts,
                                            .oversubscribe = oversubscribe == 1,
                                            .guidance = true,
                                            .batches = {1, 2}};
                assert_true(check(&given) > 0);
            }
}

/* Threads that are not named fit the slots, whether the hosts are named or not; as many
 * as fit when they are. */
static void unnamed_threads_fit_the_hosts(void **state)
{
    const struct given given = {.heads = 12,
                                .height = 24,
                                .width = 8,
                                .devices = 12,
                                .cores = 12,
                                .hosts = 3,
                                .guidance = true,
                                .batches = {1, 2}};
    struct machine machine;
    struct dt_space *space = make(&given, &machine);
    (void)state;
    for (int ranks = 1; ranks <= 12; ranks++)
        for (int hosts = 0; hosts <= 3; hosts++) {
            struct dt_text text = {0};
            struct dt_point point;
            int64_t values[DT_AXES_MAX];
            if (12 % ranks != 0 || (hosts > 0 && (ranks % hosts != 0 || ranks / hosts > 4)))
                continue;
            dt_text_add(&text, hosts > 0 ? "ranks=%d hosts=%d" : "ranks=%d", ranks, hosts);
            assert_int_equal(dt_space_parse(space, dt_text_at(&text), values), DT_OK);
            assert_int_equal(dt_space_locate(space, values, &point), DT_OK);
            struct dt_plan plan = dt_dit_plan(space, &point);
            assert_true(plan.ranks / plan.hosts * plan.threads <= 4);
            assert_true(hosts == 0 || (plan.hosts == hosts && plan.threads == 4 / (ranks / hosts)));
            dt_text_fini(&text);
        }
    dt_space_free(space);
}

static void batches_match_the_definition(void **state)
{
    static const int lists[][4] = {{1}, {5}, {12, 1, 4}, {3, 3, 2}, {6, 4, 2}};
    (void)state;
    for (int i = 0; i < 5; i++) {
        struct given given = {.heads = 3, .height = 4, .width = 6, .devices = 6, .cores = 6};
        memcpy(given.batches, lists[i], sizeof given.batches);
        assert_true(check(&given) > 0);
    }
}

/* From no room at all to room for everything, the count grows, and each step is exact. */
static void memory_limits_match_the_definition(void **state)
{
    struct given given = {.heads = 6,
                          .height = 8,
                          .width = 8,
                          .devices = 4,
                          .cores = 4,
                          .guidance = true,
                          .batches = {1, 4}};
    const int64_t all = check(&given);
    int64_t before = 0;
    int steps = 0;
    (void)state;
    for (given.memory_kib = 1; given.memory_kib < 1 << 20;
         given.memory_kib = given.memory_kib * 5 / 4 + 1) {
        int64_t count = check(&given);
        assert_true(count >= before);
        steps += count > before;
        before = count;
    }
    assert_int_equal(before, all);
    assert_true(steps > 3);
    given.memory_kib = 0;
    before = 0;
    for (given.max_kib = 1; given.max_kib < 1 << 16; given.max_kib = given.max_kib * 5 / 4 + 1) {
        int64_t count = check(&given);
        assert_true(count >= before);
        before = count;
    }
    assert_int_equal(before, all);
}

static void a_space_without_room_is_empty(void **state)
{
    const struct given given = {.heads = 3,
                                .height = 4,
                                .width = 4,
                                .devices = 2,
                                .cores = 2,
                                .batches = {1},
                                .memory_kib = 1};
    struct machine machine;
    struct dt_space *space = make(&given, &machine);
    struct dt_point point;
    (void)state;
    assert_int_equal(dt_space_count(space), 0);
    assert_int_equal(dt_dit_default(space, &point), DT_EINFEASIBLE);
    assert_non_null(strstr(dt_message(), "memory"));
    assert_int_equal(dt_dit_baseline(space, &point), DT_EINFEASIBLE);
    dt_space_free(space);
}

/* By hand: cfg first, then ulysses up to the head limit, then ring; all cores shared out. */
static void default_plans_match_a_table_by_hand(void **state)
{
    static const int params[] = {DT_AT_ranks, DT_AT_cfg,     DT_AT_ulysses,
                                 DT_AT_ring,  DT_AT_threads, DT_AT_batch};
    static const struct {
        struct given given;
        int values[6];
    } cases[] = {
        {{.heads = 6, .devices = 4, .cores = 8, .guidance = true, .batches = {4, 1}},
         {4, 2, 2, 1, 2, 1}},
        {{.heads = 6, .devices = 6, .cores = 6, .guidance = true, .batches = {1}},
         {6, 2, 3, 1, 1, 1}},
        {{.heads = 3, .devices = 4, .cores = 4, .batches = {1}}, {4, 1, 1, 4, 1, 1}},
        {{.heads = 5, .devices = 3, .cores = 7, .guidance = true, .batches = {2}},
         {3, 1, 1, 3, 2, 2}},
        /* 3 tokens: 4 ranks have none of their own */
        {{.heads = 5, .width = 6, .height = 2, .devices = 4, .cores = 4, .batches = {1}},
         {3, 1, 1, 3, 1, 1}},
        /* more devices than cores are not used unasked */
        {{.heads = 6, .devices = 6, .cores = 2, .oversubscribe = true, .batches = {1}},
         {2, 1, 2, 1, 1, 1}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct given given = cases[i].given;
        struct machine machine;
        struct dt_point point;
        given.height = given.height > 0 ? given.height : 16;
        given.width = given.width > 0 ? given.width : 18;
        struct dt_space *space = make(&given, &machine);
        assert_int_equal(dt_dit_default(space, &point), DT_OK);
        struct dt_plan plan = dt_dit_plan(space, &point), expected = dt_plan_fallback;
        for (int k = 0; k < 6; k++)
            dt_plan_set(&expected, params[k], cases[i].values[k]);
        expected.tile_q = given.height == 2 ? 32 : 64;
        expected.tile_kv = given.height == 2 ? 64 : 128;
        assert_memory_equal(&plan, &expected, sizeof plan);
        dt_space_free(space);
    }
}

static void refuses_invalid_limits(void **state)
{
    static const int zero[] = {0}, one[] = {1};
    const struct given given = {
        .heads = 3, .height = 4, .width = 4, .devices = 2, .cores = 2, .batches = {1}};
    struct machine machine;
    struct dt_space *space = NULL;
    (void)state;
    set_up(&given, &machine);
    const struct dt_limits bad[] = {
        {.cores = 2, .devices = 0, .batches = one, .batch_count = 1},
        {.cores = 0, .devices = 1, .batches = one, .batch_count = 1},
        {.cores = 2, .devices = 5000, .batches = one, .batch_count = 1},
        {.cores = 2, .devices = 1, .batches = one, .batch_count = 0},
        {.cores = 2, .devices = 1, .batches = zero, .batch_count = 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(dt_dit_space(&machine.workload, &bad[i], &space), DT_EUSAGE);
        assert_true(dt_message()[0] != '\0');
        assert_null(space);
    }
    machine.workload.input_batch = 5; /* an input file has the batch it has */
    assert_int_equal(dt_dit_space(&machine.workload, &machine.limits, &space), DT_OK);
    const struct dt_axis *batch = dt_space_axis(space, dt_space_role(space, DT_ROLE_BATCH));
    assert_int_equal(batch->count, 1);
    assert_int_equal(batch->values[0], 5);
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(head_counts_match_the_definition),
        cmocka_unit_test(odd_sizes_match_the_definition),
        cmocka_unit_test(cores_and_devices_match_the_definition),
        cmocka_unit_test(hosts_match_the_definition),
        cmocka_unit_test(unnamed_threads_fit_the_hosts),
        cmocka_unit_test(batches_match_the_definition),
        cmocka_unit_test(memory_limits_match_the_definition),
        cmocka_unit_test(a_space_without_room_is_empty),
        cmocka_unit_test(default_plans_match_a_table_by_hand),
        cmocka_unit_test(refuses_invalid_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
