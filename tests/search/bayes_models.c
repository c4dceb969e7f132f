/* SPDX-License-Identifier: MIT */
/* Memory, cost, failures and priors on planted truth, and the whole strategy on landscapes
 * whose optimum is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/bayes/models.h"
#include "tests/lib/close.h"
#include "tests/lib/dose.h"
#include "tests/search/cloud.h"
#include "tests/search/line.h"

#include <gsl/gsl_errno.h>
#include <gsl/gsl_integration.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

static const struct dt_process_priors priors = {
    .length = {0.7, 1},
    .signal = {1, 1.5},
    .share = {1, 1},
    .noise = {1e-4, 1.5},
    .constant = 1,
    .starts = 1,
    .points = 300,
};

/* One value that is only known to be above the limit: mean and variance are those of
 * the normal cut there. */
struct cut {
    double mean, deviation, limit;
    int power;
};

static double cut_density(double y, void *context)
{
    const struct cut *cut = context;
    return pow(y, cut->power) * gsl_ran_gaussian_pdf(y - cut->mean, cut->deviation);
}

static double cut_moment(const struct cut *cut, int power)
{
    struct cut mine = *cut;
    double value, error;
    gsl_integration_workspace *work = gsl_integration_workspace_alloc(1000);
    mine.power = power;
    assert_int_equal(gsl_integration_qag(&(gsl_function){cut_density, &mine}, cut->limit,
                                         fmax(cut->limit, cut->mean) + 12 * cut->deviation, 0,
                                         1e-10, 1000, GSL_INTEG_GAUSS61, work, &value, &error),
                     0);
    gsl_integration_workspace_free(work);
    return value;
}

static void learns_from_a_plan_that_did_not_fit(void **state)
{
    (void)state;
    gsl_set_error_handler_off();
    struct dt_cloud cloud = make_cloud(2, 30, 1);
    struct dt_memory memory;
    bool learnt;
    assert_int_equal(dt_memory_init(&memory, &cloud, &priors, (int64_t)1 << 33), DT_OK);
    memory.process.noise = 1e-9; /* so that the value with noise is the value */
    assert_close(dt_memory_fits(&memory, 4), 1, 0);
    assert_int_equal(dt_memory_overran(&memory, 9, &learnt), DT_OK);
    assert_false(learnt);
    assert_int_equal(dt_memory_ran(&memory, 0, (int64_t)3 << 31), DT_OK);
    assert_int_equal(dt_memory_ran(&memory, 1, (int64_t)1 << 32), DT_OK);
    const struct cut cut = {dt_process_mean(&memory.process, 2),
                            dt_process_deviation(&memory.process, 2), log((double)(1LL << 33)), 0};
    double fits = dt_memory_fits(&memory, 2);
    assert_int_equal(dt_memory_overran(&memory, 2, &learnt), DT_OK);
    assert_true(learnt);
    double mass = cut_moment(&cut, 0), mean = cut_moment(&cut, 1) / mass;
    assert_close(fits, 1 - mass, 1e-9);
    assert_close(dt_process_mean(&memory.process, 2), mean, 1e-4);
    assert_close(pow(dt_process_deviation(&memory.process, 2), 2),
                 cut_moment(&cut, 2) / mass - mean * mean, 1e-4);
    dt_memory_fini(&memory);
    free_cloud(&cloud);
}

/* Peaks of 2^(x + y) GiB, those above 2.4 GiB never seen: what was not tried is sorted right. */
static void learns_the_border_of_memory(void **state)
{
    enum { COUNT = 300, TOLD = 60 };
    (void)state;
    for (int told = 0; told < 2; told++) { /* with the capacity known, and unknown */
        struct dt_cloud cloud = make_cloud(2, COUNT, 2);
        struct dt_rng rng = dt_rng_at(3, "fit");
        struct dt_memory memory;
        const double gib = 1024.0 * 1024 * 1024;
        int wrong = 0, clear = 0;
        bool learnt;
        cloud.label[1] = false;
        for (int i = 0; i < COUNT; i++)
            cloud.x[cloud.room + (size_t)i] = (float)dt_rng_uniform(&rng);
        assert_int_equal(dt_memory_init(&memory, &cloud, &priors, told ? (int64_t)(2.4 * gib) : 0),
                         DT_OK);
        for (int i = 0; i < COUNT; i++) {
            double size = exp2((double)cloud.x[i] + (double)cloud.x[cloud.room + (size_t)i]);
            if (i < TOLD && size > 2.4)
                assert_int_equal(dt_memory_overran(&memory, i, &learnt), DT_OK);
            else if (i < TOLD)
                assert_int_equal(dt_memory_ran(&memory, i, (int64_t)(size * gib)), DT_OK);
            if (i == TOLD)
                assert_int_equal(dt_process_fit(&memory.process, &rng), DT_OK);
            if (i < TOLD || fabs(log(size / 2.4)) < 0.1)
                continue;
            clear++;
            wrong += (dt_memory_fits(&memory, i) > 0.5) != (size < 2.4);
        }
        assert_true(clear > 150);
        if (wrong > clear / (told ? 50 : 8))
            fail_msg("%d of %d are on the wrong side (%d)", wrong, clear, told);
        dt_memory_fini(&memory);
        free_cloud(&cloud);
    }
}

static void failures_lower_success_nearby_only(void **state)
{
    (void)state;
    struct dt_cloud cloud = make_cloud(1, 100, 4);
    struct dt_vote vote;
    double good = 0, bad = 0;
    int n = 0;
    assert_int_equal(dt_vote_init(&vote, &cloud, 0.5), DT_OK);
    vote.kernel.length[0] = 0.1;
    for (int i = 0; i < 40; i++) {
        assert_close(dt_vote_works(&vote, 99), vote.failures > 0 ? dt_vote_works(&vote, 99) : 1, 0);
        assert_int_equal(dt_vote_add(&vote, i, cloud.x[i] < 0.6F), DT_OK);
    }
    for (int i = 40; i < 100; i++) {
        double chance = dt_vote_works(&vote, i);
        assert_true(chance > 0 && chance < 1);
        if (cloud.x[i] < 0.45F)
            good = fmax(good, 1 - chance);
        if (cloud.x[i] > 0.75F)
            bad = fmax(bad, chance);
        n++;
    }
    assert_true(n == 60 && good < 0.4 && bad < 0.4);
    dt_vote_fini(&vote);
    free_cloud(&cloud);
}

/* Ranks decide the class: a trial takes 5 s, 20 steps of its value, and 30 s where ranks change. */
static void learns_trial_costs(void **state)
{
    static const int64_t values[] = {1, 2, 3, 4, 5, 6, 7, 8};
    (void)state;
    struct dt_space *space = NULL;
    struct dt_trial_cost cost;
    struct dt_rng rng = dt_rng_at(5, "cost");
    assert_int_equal(dt_space_new(&space), DT_OK);
    const struct dt_axis ranks = {
        .name = "ranks", .role = DT_ROLE_RANKS, .count = 4, .values = values};
    const struct dt_axis tile = {.name = "tile", .count = 8, .values = values};
    assert_int_equal(dt_space_add_axis(space, &ranks), DT_OK);
    assert_int_equal(dt_space_add_axis(space, &tile), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    dt_cost_init(&cost, space, 3000);
    assert_close(dt_cost_exponent(&cost), 0, 0);
    struct dt_trial trial = {.value = NAN};
    double spent = 0;
    for (int i = 0, before = -1; i < 60; i++) {
        dt_space_draw(space, &rng, &trial.point);
        trial.value = 0.5 + dt_rng_uniform(&rng);
        trial.cost = 5 + 20 * trial.value + (trial.point.index[0] != before ? 30 : 0);
        before = trial.point.index[0];
        spent += trial.cost;
        dt_cost_add(&cost, &trial);
    }
    assert_close(dt_cost_exponent(&cost), 1 - spent / 3000, 1e-9);
    assert_close(dt_cost_seconds(&cost, &trial.point, 1), 25, 1);
    trial.point.index[0] ^= 1;
    assert_close(dt_cost_seconds(&cost, &trial.point, 1), 55, 2);
    dt_space_free(space);
}

static void stacking_weights_the_better_model(void **state)
{
    double first[50], second[50];
    (void)state;
    for (int i = 0; i < 50; i++)
        first[i] = second[i] = -i % 7;
    assert_close(dt_hint_stack(first, second, 50, 1), 0.5, 1e-12);
    for (int i = 0; i < 50; i++)
        second[i] = first[i] + 3;
    assert_true(dt_hint_stack(first, second, 50, 1) > 0.93);
    assert_true(dt_hint_stack(second, first, 50, 1) < 0.07);
    assert_true(dt_hint_stack(second, first, 3, 1) > 0.15); /* three answers prove little */
    /* Each foresees half of the answers: both are needed. */
    for (int i = 0; i < 50; i++)
        second[i] = first[i] + (i % 2 ? 4 : -4);
    assert_close(dt_hint_stack(first, second, 50, 1), 0.5, 0.05);
}

/* A bowl over 20 x 20 plans with its optimum at (4, 15), and tables of another machine about it. */
enum { SIDE = 20 };
struct table {
    const struct dt_space *space;
    /* 1: the same but for a factor; -1: upside down; 0: the same, of which
     * every second is missing */
    int kind;
};

static double bowl(const struct dt_point *point)
{
    double x = point->index[0] - 4, y = point->index[1] - 15;
    return 1 + 0.02 * (x * x + y * y) + 0.05 * ((point->index[0] * 7 + point->index[1] * 3) % 5);
}

static double believed(const void *context, const struct dt_point *point)
{
    const struct table *table = context;
    if (table->kind == 0 && (point->index[0] + point->index[1]) % 2 == 0)
        return NAN;
    return table->kind < 0 ? 1 / bowl(point) : 3 * pow(bowl(point), 1.1);
}

static struct dt_space *make_square(void)
{
    static int64_t values[SIDE];
    struct dt_space *space = NULL;
    for (int i = 0; i < SIDE; i++)
        values[i] = 3 * i + 1;
    assert_int_equal(dt_space_new(&space), DT_OK);
    for (int i = 0; i < 2; i++) {
        const struct dt_axis axis = {.name = i ? "y" : "x", .count = SIDE, .values = values};
        assert_int_equal(dt_space_add_axis(space, &axis), DT_OK);
    }
    assert_int_equal(dt_space_seal(space), DT_OK);
    return space;
}

/* The mean of the best value so far over the trials 10 to 40. */
static double regret(const char *name, const struct dt_search_opts *opts)
{
    struct dt_search *search = NULL;
    double best = INFINITY, sum = 0;
    assert_int_equal(dt_search_new(name, opts, &search), DT_OK);
    for (int i = 0; i < 40; i++) {
        struct dt_trial trial = {.outcome = DT_TRIAL_OK, .cost = 1};
        assert_int_equal(dt_search_ask(search, &trial.point), DT_OK);
        trial.value = bowl(&trial.point);
        dt_search_tell(search, &trial);
        best = fmin(best, trial.value);
        sum += i >= 10 ? best / 30 : 0;
    }
    dt_search_free(search);
    return sum;
}

static void a_bad_prior_loses_its_weight(void **state)
{
    (void)state;
    struct dt_space *space = make_square();
    const int seeds = dose_thin() ? 2 : 5;
    double cold = 0, good = 0, half = 0, bad = 0, random = 0;
    for (int seed = 0; seed < seeds; seed++) {
        struct table table = {.space = space};
        const struct dt_prior prior = {"table", believed, &table};
        struct dt_search_opts opts = {.space = space, .seed = (uint64_t)seed};
        cold += regret("bayes", &opts) / seeds;
        random += regret("random", &opts) / seeds;
        opts.prior = &prior;
        half += regret("bayes", &opts) / seeds;
        table.kind = 1;
        good += regret("bayes", &opts) / seeds;
        table.kind = -1;
        bad += regret("bayes", &opts) / seeds;
    }
    if (!(good < 1.05 && good < cold && half < cold && bad < random && cold < random))
        fail_msg("good %g, half %g, cold %g, bad %g, random %g", good, half, cold, bad, random);
    dt_space_free(space);
}

/* All plans are worth the same, to 1 %; changing the ranks costs a minute. */
static int changes_of_ranks(double seconds, uint64_t seed)
{
    static const int64_t values[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    struct dt_space *space = NULL;
    struct dt_search *search = NULL;
    struct dt_rng rng = dt_rng_at(6, "values");
    assert_int_equal(dt_space_new(&space), DT_OK);
    const struct dt_axis ranks = {
        .name = "ranks", .role = DT_ROLE_RANKS, .count = 4, .values = values};
    const struct dt_axis tile = {.name = "tile", .count = 10, .values = values};
    assert_int_equal(dt_space_add_axis(space, &ranks), DT_OK);
    assert_int_equal(dt_space_add_axis(space, &tile), DT_OK);
    assert_int_equal(dt_space_seal(space), DT_OK);
    const struct dt_search_opts opts = {.space = space, .seed = seed, .seconds = seconds};
    assert_int_equal(dt_search_new("bayes:stop=0", &opts, &search), DT_OK);
    int changes = 0;
    for (int i = 0, before = -1; i < 30; i++) {
        struct dt_trial trial = {.outcome = DT_TRIAL_OK};
        assert_int_equal(dt_search_ask(search, &trial.point), DT_OK);
        bool change = trial.point.index[0] != before;
        before = trial.point.index[0];
        changes += change;
        trial.cost = change ? 61 : 1;
        trial.value = 1 + 0.01 * dt_rng_uniform(&rng);
        dt_search_tell(search, &trial);
    }
    dt_search_free(search);
    dt_space_free(space);
    return changes;
}

static void expensive_trials_wait(void **state)
{
    (void)state;
    int cheap = 0, dear = 0;
    for (uint64_t seed = 1; seed <= (dose_thin() ? 3 : 6); seed++) {
        cheap += changes_of_ranks(0, seed);
        dear += changes_of_ranks(100000, seed);
    }
    if (dear > cheap * 2 / 3)
        fail_msg("%d changes where they cost, %d where they do not", dear, cheap);
}

static void ends_when_nothing_is_left_to_gain(void **state)
{
    (void)state;
    struct dt_space *space = make_square();
    for (int flat = 0; flat < 2; flat++) {
        const struct dt_search_opts opts = {.space = space, .seed = 3, .seconds = 1e6};
        struct dt_search *search = NULL;
        struct dt_text note = {0};
        double best = INFINITY;
        int n = 0;
        dt_status status = DT_OK;
        assert_int_equal(dt_search_new("bayes", &opts, &search), DT_OK);
        for (; n < SIDE * SIDE; n++) {
            struct dt_trial trial = {.outcome = DT_TRIAL_OK, .cost = 1};
            status = dt_search_ask(search, &trial.point);
            if (status != DT_OK)
                break;
            double x = trial.point.index[0] - 4, y = trial.point.index[1] - 15;
            trial.value = flat ? 1 + 1e-4 * x / SIDE : 1 + 0.02 * (x * x + y * y);
            dt_search_tell(search, &trial);
            best = fmin(best, trial.value);
        }
        assert_int_equal(status, DT_DONE);
        assert_in_range(n, 20, 150);
        assert_true(best < 1.005);
        dt_search_note(search, &note);
        assert_non_null(strstr(dt_text_at(&note), "a plan faster by 0.5 % is unlikely ("));
        dt_text_fini(&note);
        dt_search_free(search);
    }
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learns_from_a_plan_that_did_not_fit),
        cmocka_unit_test(learns_the_border_of_memory),
        cmocka_unit_test(failures_lower_success_nearby_only),
        cmocka_unit_test(learns_trial_costs),
        cmocka_unit_test(stacking_weights_the_better_model),
        cmocka_unit_test(a_bad_prior_loses_its_weight),
        cmocka_unit_test(expensive_trials_wait),
        cmocka_unit_test(ends_when_nothing_is_left_to_gain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
