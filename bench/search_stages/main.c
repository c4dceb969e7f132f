/* SPDX-License-Identifier: MIT */
/* Strategies on a simulated machine of 8 GPUs: DiT-XL/2 at 512 px, the space that a session has
 * there, and times by a model of computation, launches and exchanges whose coefficients are drawn
 * anew for each repeat. Nothing is measured on a GPU; the model only has the shape of the problem:
 * few layouts, very many settings whose worth depends on the layout.
 *
 *     bench-search-stages [MINUTES [REPEATS [STRATEGY]...]]       (30 20 stages bayes random)
 *
 * A trial costs 2 s and 13 steps; another rank count than those of the last four groups costs a
 * load of 25 s. Prints, for each strategy: trials, layouts that were tried, and the true time of
 * the best plan found over that of the best known one, which is found by climbs from random plans,
 * or by one of the strategies.
 */
#include "base/clock.h"
#include "model/network.h"
#include "search/search.h"
#include "space/dit/dit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIAL_SECONDS 2.0
#define TRIAL_STEPS   13
#define LOAD_SECONDS  25.0
#define NOISE         0.004 /* standard deviation of the logarithm of a measured time */
#define BLOCKS        28
#define STEP_SECONDS                                                                               \
    6.5e-3 /* on one GPU with cuDNN's attention and graphs, as docs/hardware.md expects it */

enum { LOADED = 4, LAYOUTS_MOST = 256, CLIMBS = 200, STRATEGIES_MOST = 8 };

struct machine {
    const struct dt_space *space;
    uint64_t seed;
};

/* A number of the repeat, uniform from low to high; key names the coefficient. */
static double draw(const struct machine *machine, uint64_t key, double low, double high)
{
    uint64_t bits = dt_rng_hash(machine->seed, 77, key);
    return low + (high - low) * ((double)(bits >> 11) * 0x1p-53);
}

static double attention_factor(const struct machine *machine, const struct dt_plan *plan)
{
    if (plan->attention != DT_ATTENTION_OWN)
        return draw(machine, 1, 0.7, 1.05);
    uint64_t tile =
        (uint64_t)(plan->tile_q * 1000 + plan->tile_kv * 10 + plan->stages * 3 + plan->warps);
    double shape = draw(machine, 1000 + tile, 0.95, 1.6);
    return shape * (1 + draw(machine, 2000 + tile, 0, 0.1) * log2(plan->ulysses * plan->ring));
}

/* Seconds that the exchanges of a block keep the step waiting. */
static double exchange_seconds(const struct machine *machine, const struct dt_plan *plan,
                               double compute)
{
    double bytes = 2 * 1024 * 1152 * 2.0 / plan->cfg / plan->ulysses / plan->ring;
    double rate = draw(machine, 3, 150e9, 370e9), latency = draw(machine, 4, 10e-6, 35e-6);
    double total = 0;
    if (plan->ulysses > 1) {
        double packed = plan->exchange == DT_PLAN_DIRECT
                            ? draw(machine, 5, 0, 12e-6) * plan->ulysses / 4
                            : draw(machine, 6, 6e-6, 20e-6);
        double once = plan->chunks * latency + 4 * bytes / rate + packed;
        double hidden =
            plan->overlap != 0 ? draw(machine, 7, 0.2, 0.8) * (1 - 1.0 / plan->chunks) : 0;
        total += once * (1 - hidden) * (plan->v_first != 0 ? draw(machine, 8, 0.85, 1.05) : 1);
    }
    if (plan->ring > 1) {
        double once = (plan->ring - 1) * (latency + 2 * bytes / rate);
        total += plan->overlap != 0 ? fmax(once - 0.15 * compute, 0.25 * once) : once;
    }
    if (plan->comm_ctas > 0)
        total *= 1 +
                 draw(machine, 9, 0.02, 0.08) *
                     fabs(log2(plan->comm_ctas) - floor(draw(machine, 10, 1, 6))) -
                 0.08;
    return total * (plan->windows != 0 ? draw(machine, 11, 0.8, 1.15) : 1);
}

static double true_seconds(const struct machine *machine, const struct dt_point *point)
{
    struct dt_plan plan = dt_dit_plan(machine->space, point);
    int split = plan.ulysses * plan.ring * plan.cfg;
    double shrink = 1 + draw(machine, 12, 0.02, 0.08) * log2(split);
    double attention = 0.22 * attention_factor(machine, &plan) * (1 + 0.06 * (plan.ring - 1));
    double compute = STEP_SECONDS * (0.78 + attention) * shrink / split / BLOCKS;
    double block = compute + exchange_seconds(machine, &plan, compute);
    double host = plan.graph != 0 ? 0 : BLOCKS * draw(machine, 13, 40e-6, 75e-6);
    double step = fmax(block * BLOCKS, host) + draw(machine, 14, 50e-6, 200e-6);
    return plan.cfg > 1 ? step + draw(machine, 15, 10e-6, 60e-6) : step;
}

/* The best of climbs by single changes from random plans: what a session cannot afford. */
static double best_known(const struct machine *machine)
{
    struct dt_rng rng = dt_rng_at(machine->seed, "climbs");
    struct dt_point near[4096];
    double best = INFINITY;
    for (int i = 0; i < CLIMBS; i++) {
        struct dt_point at;
        dt_space_draw(machine->space, &rng, &at);
        double value = true_seconds(machine, &at);
        for (bool better = true; better;) {
            int n = dt_space_neighbours(machine->space, &at, near, 4096);
            better = false;
            for (int k = 0; k < n && k < 4096; k++) {
                double other = true_seconds(machine, &near[k]);
                if (other < value) {
                    value = other;
                    at = near[k];
                    better = true;
                }
            }
        }
        best = fmin(best, value);
    }
    return best;
}

/* ---- a session */

static uint64_t group_of(const void *context, const struct dt_point *point)
{
    const struct machine *machine = context;
    return (uint64_t)dt_dit_plan(machine->space, point).ranks;
}

struct session {
    uint64_t loaded[LOADED]; /* the latest first */
    double seconds, best;    /* best: true time of the plan that looked best */
    double looked;           /* that it was measured at */
    int trials, layouts;
    uint64_t seen[LAYOUTS_MOST];
};

static void load(struct session *session, uint64_t group)
{
    int at = 0;
    while (at < LOADED - 1 && session->loaded[at] != group)
        at++;
    if (session->loaded[at] != group)
        session->seconds += LOAD_SECONDS;
    memmove(session->loaded + 1, session->loaded, (size_t)at * sizeof session->loaded[0]);
    session->loaded[0] = group;
}

static void note_layout(struct session *session, const struct dt_plan *plan)
{
    uint64_t layout = (uint64_t)((plan->cfg * 16 + plan->ulysses) * 16 + plan->ring);
    for (int i = 0; i < session->layouts; i++)
        if (session->seen[i] == layout)
            return;
    if (session->layouts < LAYOUTS_MOST)
        session->seen[session->layouts++] = layout;
}

static struct dt_trial measure(const struct machine *machine, struct session *session,
                               const struct dt_point *point)
{
    struct dt_rng rng = dt_rng_at(machine->seed + (uint64_t)session->trials, "noise");
    struct dt_plan plan = dt_dit_plan(machine->space, point);
    double before = session->seconds, step = true_seconds(machine, point);
    double sum = 0;
    for (int i = 0; i < 12; i++)
        sum += dt_rng_uniform(&rng);
    double value = step * exp(NOISE * (sum - 6));
    load(session, (uint64_t)plan.ranks);
    note_layout(session, &plan);
    session->seconds += TRIAL_SECONDS + TRIAL_STEPS * step;
    session->trials++;
    if (value < session->looked) {
        session->looked = value;
        session->best = step;
    }
    return (struct dt_trial){.point = *point,
                             .outcome = DT_TRIAL_OK,
                             .value = value,
                             .low = value * (1 - NOISE),
                             .high = value * (1 + NOISE),
                             .seconds = value,
                             .cost = session->seconds - before};
}

static void play(const struct machine *machine, const char *name, double budget,
                 struct session *session)
{
    const struct dt_groups groups = {
        .of = group_of, .context = machine, .in_a_row = 32, .stay = LOADED};
    struct dt_point start, point;
    struct dt_search *search = NULL;
    if (dt_dit_default(machine->space, &start) < 0)
        exit(1);
    const struct dt_search_opts opts = {.space = machine->space,
                                        .seed = machine->seed,
                                        .start = &start,
                                        .groups = &groups,
                                        .evaluations = (int64_t)(budget / (TRIAL_SECONDS + 1)),
                                        .seconds = budget};
    *session = (struct session){.best = INFINITY, .looked = INFINITY};
    if (dt_search_new(name, &opts, &search) < 0) {
        fprintf(stderr, "%s\n", dt_message());
        exit(1);
    }
    while (session->seconds < budget && dt_search_ask(search, &point) == DT_OK) {
        struct dt_trial trial = measure(machine, session, &point);
        dt_search_tell(search, &trial);
    }
    dt_search_free(search);
}

static struct dt_space *make_space(bool nccl)
{
    static const int batches[] = {1};
    const struct dt_gpus gpus = {.count = 8,
                                 .memory_bytes = INT64_C(141) << 30,
                                 .shared_bytes = 232448,
                                 .nccl = 22809,
                                 .attention = {[DT_ATTENTION_CUDNN] = true},
                                 .capture = true,
                                 .bfloat16 = true};
    const struct dt_limits limits = {
        .gpus = &gpus, .devices = 8, .tune_nccl = nccl, .batches = batches, .batch_count = 1};
    struct dt_workload workload = {
        .height = 64, .width = 64, .guidance = true, .dtype = DT_BFLOAT16};
    struct dt_space *space = NULL;
    workload.sampler_steps = 50;
    if (dt_network_load("dit-xl/2", &workload.network) < 0 ||
        dt_dit_space(&workload, &limits, &space) < 0) {
        fprintf(stderr, "%s\n", dt_message());
        exit(1);
    }
    return space;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A strategy's findings in all repeats. */
struct found {
    double *best; /* [repeats] true seconds */
    double trials;
    int layouts; /* the fewest of a repeat */
};

static struct found play_all(const struct dt_space *space, const char *name, double budget,
                             int repeats)
{
    struct found found = {.best = calloc((size_t)repeats, sizeof *found.best),
                          .layouts = LAYOUTS_MOST};
    for (int i = 0; i < repeats && found.best != NULL; i++) {
        struct machine machine = {.space = space, .seed = (uint64_t)i + 1};
        struct session session;
        play(&machine, name, budget, &session);
        found.best[i] = session.best;
        found.trials += (double)session.trials / repeats;
        found.layouts = session.layouts < found.layouts ? session.layouts : found.layouts;
    }
    if (found.best == NULL)
        exit(1);
    return found;
}

static void print_row(const char *name, const struct found *found, const double best[], int repeats)
{
    double sum = 0;
    for (int i = 0; i < repeats; i++) {
        found->best[i] /= best[i];
        sum += found->best[i];
    }
    qsort(found->best, (size_t)repeats, sizeof *found->best, compare);
    printf("%-28s %8.0f %8d %10.4f %10.4f %10.4f\n", name, found->trials, found->layouts,
           sum / repeats, found->best[repeats / 2], found->best[repeats - 1]);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"stages", "bayes", "random"};
    double minutes = argc > 1 ? strtod(argv[1], NULL) : 30;
    int repeats = argc > 2 ? atoi(argv[2]) : 20, names = argc > 3 ? argc - 3 : 3, count = 0;
    if (!(minutes > 0) || repeats < 1 || repeats > 1000 || names > STRATEGIES_MOST) {
        fprintf(stderr, "usage: bench-search-stages [MINUTES [REPEATS [STRATEGY]...]]\n");
        return 2;
    }
    struct dt_space *space = make_space(false), *all = make_space(true);
    struct dt_point *layouts = NULL;
    double *best = calloc((size_t)repeats, sizeof *best);
    if (best == NULL || dt_space_tuples(space, dt_space_layout_axes(space), &layouts, &count) < 0) {
        free(best);
        return 1;
    }
    printf("8 simulated GPUs, DiT-XL/2 at 512 px: %lld plans (%lld with --tune-nccl), %d layouts; "
           "%g minutes, %d repeats\n",
           (long long)dt_space_count(space), (long long)dt_space_count(all), count, minutes,
           repeats);
    printf("%-28s %8s %8s %10s %10s %10s\n", "strategy", "trials", "layouts", "mean gap", "median",
           "worst");
    for (int i = 0; i < repeats; i++)
        best[i] = best_known(&(struct machine){.space = space, .seed = (uint64_t)i + 1});
    struct found found[STRATEGIES_MOST];
    for (int i = 0; i < names; i++) {
        found[i] = play_all(space, argc > 3 ? argv[3 + i] : usual[i], minutes * 60, repeats);
        for (int k = 0; k < repeats; k++)
            best[k] = fmin(best[k], found[i].best[k]);
    }
    for (int i = 0; i < names; i++) {
        print_row(argc > 3 ? argv[3 + i] : usual[i], &found[i], best, repeats);
        free(found[i].best);
    }
    free(best);
    free(layouts);
    dt_space_free(space);
    dt_space_free(all);
    return 0;
}
