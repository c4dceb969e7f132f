/* SPDX-License-Identifier: MIT */
/* The order of posted exchanges: the same on all ranks of each comm, with the same bytes, for every
 * plan of a small space; and, because a GPU has one stream of exchanges, the same over all comms of
 * a rank, whatever tokens, heads or images are its own. Built with fake GPUs, it is about the plans
 * that only they have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/text.h"
#include "kernels/staged.h"
#include "kernels/weights_int.h"
#include "tests/kernels/case.h"

enum { MOST_RANKS = 8, MOST_COMMS = 8, ID = 16 };

/* Posts of one rank, in the form of dt_fake_order. */
struct posted {
    int comms;
    char id[MOST_COMMS][ID + 1];   /* in the order of their first exchange */
    struct dt_text of[MOST_COMMS]; /* what was posted on that comm, with bytes */
    struct dt_text all;            /* all, by number of the comm, without bytes */
};

static int number_of(struct posted *posted, const char *id)
{
    for (int i = 0; i < posted->comms; i++)
        if (memcmp(posted->id[i], id, ID) == 0)
            return i;
    assert_true(posted->comms < MOST_COMMS);
    memcpy(posted->id[posted->comms], id, ID);
    return posted->comms++;
}

static void read_order(const char *order, struct posted *posted)
{
    *posted = (struct posted){.comms = 0};
    for (const char *at = order, *end; *at != '\0'; at = end + 1) {
        end = strchr(at, ';');
        assert_non_null(end);
        int comm = number_of(posted, at);
        size_t op = strcspn(at + ID + 1, " ;");
        dt_text_add_bytes(&posted->of[comm], at + ID, (size_t)(end - at) - ID);
        dt_text_add(&posted->all, "%d ", comm);
        dt_text_add_bytes(&posted->all, at + ID + 1, op);
        dt_text_add(&posted->all, ";");
    }
}

static void forget(struct posted *posted)
{
    for (int i = 0; i < posted->comms; i++)
        dt_text_fini(&posted->of[i]);
    dt_text_fini(&posted->all);
}

struct sweep {
    struct dt_workload workload;
    struct dt_weights *weights[MOST_RANKS];
    struct case_run run; /* of all ranks */
    float *out;
    int plans, exchanges, shared;
};

static void compare(struct sweep *sweep, const struct dt_plan *plan, struct posted ranks[])
{
    char text[512];
    for (int a = 0; a < plan->ranks; a++) {
        if (strcmp(dt_text_at(&ranks[a].all), dt_text_at(&ranks[0].all)) != 0)
            fail_msg("%s: rank %d posts %s where rank 0 posts %s", plan_text(plan, text), a,
                     dt_text_at(&ranks[a].all), dt_text_at(&ranks[0].all));
        for (int b = 0; b < a; b++)
            for (int i = 0; i < ranks[a].comms; i++)
                for (int j = 0; j < ranks[b].comms; j++) {
                    if (strcmp(ranks[a].id[i], ranks[b].id[j]) != 0)
                        continue;
                    sweep->shared++;
                    if (strcmp(dt_text_at(&ranks[a].of[i]), dt_text_at(&ranks[b].of[j])) != 0)
                        fail_msg("%s: on a comm of both, rank %d posts %s where rank %d posts %s",
                                 plan_text(plan, text), a, dt_text_at(&ranks[a].of[i]), b,
                                 dt_text_at(&ranks[b].of[j]));
                }
    }
}

#ifdef DT_HAVE_CUDA
/* Each rank on a GPU of its own, through whose memory the fake's messages go. */
static dt_status body(struct dt_comm *world, void *arg)
{
    const struct sweep *sweep = arg;
    struct case_run run = sweep->run;
    struct dt_device *device = dt_weights_device(sweep->weights[world->rank]);
    struct dt_comm *own = NULL, *comm = NULL;
    dt_status status = world->ops->split(world, 0, world->rank, NULL, &own);
    if (status == DT_OK)
        status = dt_comm_staged(own, device, &comm);
    run.weights = sweep->weights[world->rank];
    if (status == DT_OK && comm != NULL)
        status = case_body(comm, &run);
    dt_comm_free(comm);
    return status;
}

static struct dt_device *device_of(int rank)
{
    static struct dt_device *devices[MOST_RANKS];
    if (devices[rank] == NULL && dt_compute_cuda.open(rank, &devices[rank]) != DT_OK)
        abort();
    return devices[rank];
}

static struct dt_plan on_device(struct dt_plan plan)
{
    plan.tile_kv = 64;
    plan.stages = 1;
    plan.warps = 4;
    return plan;
}

enum { DIRECT = 1, TRIED_RANKS = 4 };
#else
static dt_status body(struct dt_comm *world, void *arg)
{
    const struct sweep *sweep = arg;
    struct case_run run = sweep->run;
    run.weights = sweep->weights[0];
    return case_body(world, &run);
}

static struct dt_device *device_of(int rank)
{
    (void)rank;
    return case_device();
}

static struct dt_plan on_device(struct dt_plan plan)
{
    return plan;
}

enum { DIRECT = 0, TRIED_RANKS = MOST_RANKS };
#endif

static void try_plan(struct sweep *sweep, const struct dt_plan *plan)
{
    char text[512];
    struct dt_fake *fake = NULL;
    sweep->run = (struct case_run){
        .workload = &sweep->workload, .plan = plan, .steps = 1, .out = sweep->out};
    struct posted ranks[MOST_RANKS];
    assert_int_equal(dt_fake_new(plan->ranks, &(struct dt_fake_options){0}, &fake), DT_OK);
    if (dt_fake_run(fake, body, sweep, NULL) != DT_OK)
        fail_msg("%s: it does not run", plan_text(plan, text));
    for (int i = 0; i < plan->ranks; i++)
        read_order(dt_fake_order(fake, i), &ranks[i]);
    compare(sweep, plan, ranks);
    sweep->plans++;
    sweep->exchanges += dt_fake_exchanges(fake, 0);
    for (int i = 0; i < plan->ranks; i++)
        forget(&ranks[i]);
    dt_fake_free(fake);
}

/* Overlap, chunks and ways to exchange of one choice of degrees. */
static void try_degrees(struct sweep *sweep, struct dt_plan plan)
{
    int owned = sweep->workload.network.heads / plan.ulysses;
    for (plan.overlap = 0; plan.overlap <= 1; plan.overlap++)
        for (plan.chunks = 1; plan.chunks <= owned; plan.chunks++) {
            plan.exchange = DT_PLAN_PACKED;
            plan.v_first = 0;
            try_plan(sweep, &plan);
            if (!DIRECT || plan.ulysses == 1 || owned % plan.chunks != 0)
                continue;
            plan.exchange = DT_PLAN_DIRECT;
            for (plan.v_first = 0; plan.v_first <= 1; plan.v_first++)
                try_plan(sweep, &plan);
        }
}

static void try_all(struct dt_workload workload, int batch)
{
    struct sweep sweep = {.workload = workload};
    int heads = workload.network.heads, halves = workload.guidance ? 2 : 1;
    sweep.out = calloc((size_t)(batch * case_image(&workload)), sizeof(float));
    for (int i = 0; i < (DIRECT ? TRIED_RANKS : 1); i++)
        assert_int_equal(dt_weights_new(&workload, device_of(i), &sweep.weights[i]), DT_OK);
    for (int cfg = 1; cfg <= halves; cfg++)
        for (int ulysses = 1; ulysses <= heads; ulysses++)
            for (int ring = 1; cfg * ulysses * ring <= TRIED_RANKS; ring++) {
                struct dt_plan plan = on_device(case_plan(cfg, ulysses, ring));
                plan.batch = batch;
                if (heads % ulysses == 0 && plan.ranks > 1)
                    try_degrees(&sweep, plan);
            }
    print_message("%d plans, %d exchanges of rank 0, %d pairs of ranks on a comm\n", sweep.plans,
                  sweep.exchanges, sweep.shared);
    assert_true(sweep.plans > 0 && sweep.exchanges > sweep.plans && sweep.shared > sweep.plans);
    for (int i = 0; i < MOST_RANKS; i++)
        dt_weights_free(sweep.weights[i]);
    free(sweep.out);
}

/* Tokens and heads that the ranks have unequal shares of. */
static void every_plan_has_one_order(void **state)
{
    (void)state;
    struct dt_workload workload = case_workload(6, 4, 6, 10); /* 15 tokens */
    try_all(workload, 1);
    workload = case_workload(4, 4, 6, 6); /* 9 tokens */
    workload.network.depth = 1;
    try_all(workload, 3);
    workload.guidance = false;
    try_all(workload, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_has_one_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
