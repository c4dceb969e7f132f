/* SPDX-License-Identifier: MIT */
/* A bandit over other strategies. Each arm's credit is the area under the curve of its successes (a success: a new
 * best) among the last answers, with more weight on recent ones, plus a bonus for arms that were seldom asked (Fialho
 * et al. 2010). Every arm is told every answer. */
#include "base/array.h"
#include "search/arm_int.h"
#include "search/bandit_int.h"
#include "search/seen.h"

#include <math.h>
#include <stdlib.h>

static const char *const names[] = {"genetic", "ils", "annealing", "tpe"};
enum { ARMS = sizeof names / sizeof names[0], TRIES = 16 };

struct asked {
    struct dt_point point;
    int arm;
};

struct portfolio {
    const struct dt_space *space;
    const struct dt_seen *seen;
    struct dt_rng rng;
    double explore, best; /* best: the least value told */
    struct dt_arm arms[ARMS];
    bool done[ARMS];
    struct asked *asked; /* outstanding answers */
    int asked_count;
    struct dt_bandit bandit;
};

dt_status dt_bandit_init(struct dt_bandit *bandit, int window)
{
    *bandit = (struct dt_bandit){.window = window};
    bandit->events = calloc((size_t)window, sizeof *bandit->events);
    return bandit->events != NULL
               ? DT_OK
               : dt_fail(DT_ENOMEM, "out of memory for a window of %d answers", window);
}

void dt_bandit_fini(struct dt_bandit *bandit)
{
    free(bandit->events);
}

void dt_bandit_tell(struct dt_bandit *bandit, int arm, bool success)
{
    if (bandit->count == bandit->window) {
        bandit->count--;
        for (int i = 0; i < bandit->count; i++)
            bandit->events[i] = bandit->events[i + 1];
    }
    bandit->events[bandit->count++] = (struct dt_event){.arm = arm, .success = success};
}

struct dt_uses dt_bandit_uses(const struct dt_bandit *bandit, int arm)
{
    struct dt_uses uses = {0};
    for (int i = 0; i < bandit->count; i++) {
        if (bandit->events[i].arm != arm)
            continue;
        uses.count++;
        uses.successes += bandit->events[i].success;
        uses.area += bandit->events[i].success ? uses.count : 0;
    }
    return uses;
}

double dt_bandit_score(const struct dt_bandit *bandit, int arm, int pending, int all_pending,
                       double explore)
{
    struct dt_uses uses = dt_bandit_uses(bandit, arm);
    double whole = 0.5 * uses.count * (uses.count + 1), all = bandit->count + all_pending;
    if (uses.count + pending == 0)
        return INFINITY;
    return (whole > 0 ? uses.area / whole : 0) +
           explore * sqrt(2 * log2(all) / (uses.count + pending));
}

enum { WINDOW, EXPLORE };
static const struct dt_knob knobs[] = {
    {"window", "number of latest answers that count for credit", 20, 1, 1e5},
    {"explore", "weight of the bonus for strategies that were seldom asked", 0.05, 0, 100},
    {0}};

static void fini(void *state)
{
    struct portfolio *search = state;
    for (int i = 0; i < ARMS; i++)
        dt_arm_close(&search->arms[i]);
    free(search->asked);
    dt_bandit_fini(&search->bandit);
}

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    struct portfolio *search = state;
    *search = (struct portfolio){.space = opts->space,
                                 .seen = opts->seen,
                                 .rng = dt_rng_at(opts->seed, "portfolio"),
                                 .explore = opts->knobs[EXPLORE],
                                 .best = INFINITY};
    dt_status status = dt_bandit_init(&search->bandit, (int)opts->knobs[WINDOW]);
    for (int i = 0; i < ARMS && status == DT_OK; i++)
        status = dt_arm_open(&search->arms[i], names[i], opts);
    if (status < 0)
        fini(search);
    return status;
}

/* The best arm that is not done, ties broken by a randomly rotated order; -1: none. */
static int choose(struct portfolio *search)
{
    int pending[ARMS] = {0};
    int turn = (int)dt_rng_below(&search->rng, ARMS), chosen = -1;
    double best = -INFINITY;
    for (int i = 0; i < search->asked_count; i++)
        pending[search->asked[i].arm]++;
    for (int k = 0; k < ARMS; k++) {
        int arm = (k + turn) % ARMS;
        double s = search->done[arm] ? -INFINITY
                                     : dt_bandit_score(&search->bandit, arm, pending[arm],
                                                       search->asked_count, search->explore);
        if (s > best) {
            best = s;
            chosen = arm;
        }
    }
    return chosen;
}

static dt_status remember(struct portfolio *search, const struct dt_point *point, int arm)
{
    DT_TRY(DT_GROW(search->asked, search->asked_count, 1));
    search->asked[search->asked_count++] = (struct asked){.point = *point, .arm = arm};
    return DT_OK;
}

/* Asks the arm for a new point; DT_DONE when it has none. */
static dt_status ask_arm(struct portfolio *search, int arm, struct dt_point *point)
{
    for (int i = 0; i < TRIES; i++) {
        dt_status status = dt_arm_ask(&search->arms[arm], point);
        if (status != DT_OK)
            return status;
        if (dt_space_feasible(search->space, point) && !dt_seen_has(search->seen, point))
            return DT_OK;
    }
    return dt_seen_draw(search->seen, &search->rng, point) ? DT_OK : DT_DONE;
}

static dt_status ask(void *state, struct dt_point *point)
{
    struct portfolio *search = state;
    for (int arm = choose(search); arm >= 0; arm = choose(search)) {
        dt_status status = ask_arm(search, arm, point);
        if (status == DT_OK)
            return remember(search, point, arm);
        if (status != DT_DONE)
            return status;
        search->done[arm] = true;
    }
    return DT_DONE;
}

static void credit(struct portfolio *search, const struct dt_point *point, bool success)
{
    for (int i = 0; i < search->asked_count; i++) {
        if (!dt_point_equal(search->space, &search->asked[i].point, point))
            continue;
        dt_bandit_tell(&search->bandit, search->asked[i].arm, success);
        search->asked[i] = search->asked[--search->asked_count];
        return;
    }
}

static void tell(void *state, const struct dt_trial *trial)
{
    struct portfolio *search = state;
    double value = dt_answer_value(trial);
    credit(search, &trial->point, value < search->best);
    search->best = fmin(search->best, value);
    for (int i = 0; i < ARMS; i++)
        dt_arm_tell(&search->arms[i], trial);
}

static void note(const void *state, struct dt_text *out)
{
    const struct portfolio *search = state;
    for (int i = 0; i < ARMS; i++) {
        struct dt_uses uses = dt_bandit_uses(&search->bandit, i);
        dt_text_add(out, "%s%s %d of %d", i > 0 ? ", " : "new bests lately: ", names[i],
                    uses.successes, uses.count);
    }
}

static struct dt_refits refits(const void *state)
{
    const struct portfolio *search = state;
    struct dt_refits all = {0};
    for (int i = 0; i < ARMS; i++) {
        struct dt_refits its = dt_arm_refits(&search->arms[i]);
        all.count += its.count;
        all.seconds += its.seconds;
    }
    return all;
}

const struct dt_strategy dt_strategy_portfolio = {
    .name = "portfolio",
    .doc = "a bandit over genetic, ils, annealing and tpe, by the improvements each has found",
    .paper =
        "Fialho et al. 2010, Analyzing bandit-based adaptive operator selection; as in OpenTuner",
    .state_size = sizeof(struct portfolio),
    .knobs = knobs,
    .init = init,
    .ask = ask,
    .tell = tell,
    .fini = fini,
    .note = note,
    .refits = refits,
};
