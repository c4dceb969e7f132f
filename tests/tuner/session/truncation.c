/* SPDX-License-Identifier: MIT */
/* ctest: dose slow */
/* However soon a session is cut short, what it stores is not slower than the default: every search
 * on every recorded table (the full dose has those of other fields, too), cut after each
 * evaluation, judged by the session's own verdict.
 *
 * Without noise that holds of every cut, with a final comparison and without one. With noise a
 * session without a final comparison stores the default itself; one with it stores another plan
 * only when its comparison, made of repetitions that the choice has not seen, says faster: that is
 * wrong at most as often as the alpha it spends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/landscape/landscape.h"
#include "tests/lib/dose.h"
#include "tuner/session/replay.h"
#include "tuner/session/session_int.h"

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVALS = 30, TRIAL_SAMPLES = 8 };
#define UNIT_NS 1e9 /* the best plan's step: long, so that no difference is lost in rounding */

struct tally {
    int cuts, claims; /* decisions; that another plan than the default is stored */
    int close;        /* candidates that are not faster, but look so in one round of four */
    int wrong;        /* plans stored that are not faster in truth */
    double worst;     /* mean over the default's mean of what was stored */
};

struct world {
    const struct dt_landscape *landscape;
    struct dt_target target;
    struct dt_job job;
    const char *search;
    uint64_t seed;
    bool noise;
};

static void add_steps(struct dt_result *result, const struct dt_target *target,
                      const double seconds[], int n)
{
    long long ns[DT_ROUNDS_MOST];
    for (int i = 0; i < n; i++)
        ns[i] = llround(seconds[i] * 1e9);
    struct dt_run run = {.steps = n, .ranks = 1, .ns = ns};
    dt_result_init(result, target, &result->point);
    assert_int_equal(dt_result_add(result, &run, true), DT_OK);
}

static double scale(const struct world *world)
{
    return UNIT_NS * 1e-9 / world->landscape->optimum;
}

static void keep(struct dt_session *session, const struct world *world,
                 const struct dt_trial *trial)
{
    struct dt_result result = {.point = trial->point};
    double seconds[TRIAL_SAMPLES];
    for (int i = 0; i < TRIAL_SAMPLES; i++)
        seconds[i] = trial->value * scale(world);
    if (trial->outcome == DT_TRIAL_OK) {
        add_steps(&result, session->target, seconds, TRIAL_SAMPLES);
        assert_int_equal(dt_result_finish(&result, 0.95, false, 0), DT_OK);
    } else {
        dt_result_init(&result, session->target, &trial->point);
        result.outcome = trial->outcome;
    }
    struct dt_log_record record = {.kind = DT_LOG_TRIAL, .result = result};
    assert_int_equal(dt_session_apply(session, &record), DT_OK);
}

static const struct dt_entry *entry_of(const struct world *world, const struct dt_point *point)
{
    return &world->landscape->entries[dt_space_index(world->landscape->space, point)];
}

static double mean_of(const struct world *world, const struct dt_entry *entry)
{
    double sum = 0;
    for (int i = 0; i < entry->count; i++)
        sum += world->landscape->samples[entry->first + i];
    return sum / entry->count;
}

/* A visit of a final comparison: the mean, or one of the recorded repetitions. */
static double visit(const struct world *world, const struct dt_entry *entry, struct dt_rng *rng)
{
    double value = entry->value * scale(world);
    if (!world->noise || entry->count < 2)
        return value;
    int64_t k = entry->first + (int64_t)dt_rng_below(rng, (uint64_t)entry->count);
    return value * world->landscape->samples[k] / mean_of(world, entry);
}

static struct dt_entrant entrant(const struct world *world, const struct dt_point *point,
                                 enum dt_entrant_role role, struct dt_rng *rng)
{
    struct dt_entrant made = {
        .role = role, .point = *point, .decisive = role == DT_ENTRANT_CANDIDATE};
    const struct dt_entry *entry = entry_of(world, point);
    made.result.point = *point;
    made.out_set = -1;
    for (int i = 0; i < DT_ROUNDS_MOST; i++)
        made.visits[i] = visit(world, entry, rng);
    add_steps(&made.result, &world->target, made.visits, DT_ROUNDS_MOST);
    return made;
}

/* The final comparison as it would be after these trials, and what it decides. */
static void finish(struct dt_session *session, const struct world *world)
{
    const struct dt_result *top[DT_CANDIDATES];
    struct dt_rng rng = dt_rng_at(world->seed + (uint64_t)session->count, "final comparison");
    for (int i = 0; i < session->finals.entrant_count; i++)
        dt_entrant_fini(&session->finals.entrants[i]);
    session->finals.entrant_count = 0;
    session->finals.sets = (struct dt_sets){.count = DT_SETS_USUAL};
    for (int s = 0; s < DT_SETS_USUAL; s++)
        session->finals.sets.rounds[s] = DT_SET_ROUNDS;
    if (entry_of(world, &session->target->fallback)->outcome == DT_TRIAL_OK)
        session->finals.entrants[session->finals.entrant_count++] =
            entrant(world, &session->target->fallback, DT_ENTRANT_DEFAULT, &rng);
    if (dt_verdict_candidates(session, top) > 0)
        session->finals.entrants[session->finals.entrant_count++] =
            entrant(world, &top[0]->point, DT_ENTRANT_CANDIDATE, &rng);
    assert_int_equal(dt_entrants_rejudge(session->target, session->finals.entrants,
                                         session->finals.entrant_count, &session->finals.sets),
                     DT_OK);
    session->finals.best = -1;
    dt_verdict_decide(session, &session->finals);
}

/* How often one draw of a beats one of b; draws that tie beat by half. */
static double chance_faster(const struct world *world, const struct dt_entry *a,
                            const struct dt_entry *b)
{
    double wins = 0, x = mean_of(world, a) / a->value, y = mean_of(world, b) / b->value;
    if (a->count < 2 || b->count < 2)
        return a->value < b->value ? 1 : 0;
    for (int i = 0; i < a->count; i++)
        for (int k = 0; k < b->count; k++) {
            double mine = world->landscape->samples[a->first + i] / x;
            double other = world->landscape->samples[b->first + k] / y;
            wins += mine < other ? 1 : mine > other ? 0 : 0.5;
        }
    return wins / a->count / b->count;
}

static void judge_cut(struct dt_session *session, const struct world *world, struct tally *tally)
{
    const struct dt_entry *fallback = entry_of(world, &session->target->fallback);
    bool runs = fallback->outcome == DT_TRIAL_OK;
    session->finals.best = -1;
    session->finals.sets = (struct dt_sets){0};
    const struct dt_result *stored = dt_session_best(session);
    if (runs) /* whatever was tried: there was no final comparison */
        assert_true(
            dt_point_equal(session->target->space, &stored->point, &session->target->fallback));
    if (stored == NULL)
        return;
    finish(session, world);
    stored = dt_session_best(session);
    assert_non_null(stored);
    const struct dt_entry *entry = entry_of(world, &stored->point);
    assert_true(entry->outcome == DT_TRIAL_OK);
    tally->cuts++;
    if (runs && session->finals.entrant_count > 1) {
        double chance =
            chance_faster(world, entry_of(world, &session->finals.entrants[1].point), fallback);
        tally->close += chance > 0.25 && chance <= 0.5;
    }
    if (!runs || entry == fallback)
        return;
    tally->claims++;
    tally->wrong += world->noise ? chance_faster(world, entry, fallback) <= 0.5
                                 : entry->value > fallback->value;
    tally->worst = fmax(tally->worst, entry->value / fallback->value);
}

static void run(const struct world *world, struct tally *tally)
{
    struct dt_session session = {.target = &world->target, .finals.best = -1};
    struct dt_search_opts opts = {.space = world->landscape->space,
                                  .seed = world->seed,
                                  .start = &world->target.fallback,
                                  .evaluations = EVALS};
    struct dt_search *search = NULL;
    assert_int_equal(dt_search_new(world->search, &opts, &search), DT_OK);
    for (int i = 0; i < EVALS; i++) {
        struct dt_trial trial;
        struct dt_point point;
        if (dt_search_ask(search, &point) != DT_OK)
            break;
        if (i == 0) /* the default goes first, whatever the search */
            assert_true(dt_point_equal(opts.space, &point, opts.start));
        if (world->noise)
            dt_landscape_trial_noisy(world->landscape, &point, world->seed, &trial);
        else
            dt_landscape_trial(world->landscape, &point, &trial);
        dt_search_tell(search, &trial);
        keep(&session, world, &trial);
        judge_cut(&session, world, tally);
    }
    dt_search_free(search);
    dt_session_fini(&session);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The plan at this quantile of the valid ones: a default of such quality;
 * below 0: one that fails. */
static struct dt_point plan_at(const struct dt_landscape *landscape, double quantile)
{
    struct dt_point point = {{0}};
    int64_t n = 0, best = 0;
    if (quantile < 0 && landscape->failed > 0) {
        while (landscape->entries[best].outcome == DT_TRIAL_OK)
            best++;
        dt_space_at(landscape->space, best, &point);
        return point;
    }
    double *values = malloc((size_t)landscape->count * sizeof *values);
    assert_non_null(values);
    for (int64_t k = 0; k < landscape->count; k++)
        if (landscape->entries[k].outcome == DT_TRIAL_OK)
            values[n++] = landscape->entries[k].value;
    qsort(values, (size_t)n, sizeof *values, ascending);
    double wanted = values[(int64_t)(fmax(quantile, 0) * (double)(n - 1))];
    while (landscape->entries[best].outcome != DT_TRIAL_OK ||
           landscape->entries[best].value != wanted)
        best++;
    dt_space_at(landscape->space, best, &point);
    free(values);
    return point;
}

static void run_table(const char *path, bool noise, struct tally *tally)
{
    struct dt_landscape *landscape = NULL;
    assert_int_equal(dt_session_landscape(path, &landscape), DT_OK);
    struct world world = {.landscape = landscape,
                          .target = {.space = landscape->space, .plans = landscape->count},
                          .noise = noise};
    assert_int_equal(dt_objective_find("latency", &world.target.objective), DT_OK);
    const double quantiles[] = {0.5, 0, -1};
    for (int q = 0; q < 3; q++) {
        world.target.fallback = world.target.baseline = plan_at(landscape, quantiles[q]);
        for (int s = 0; dt_strategies[s] != NULL; s++) {
            world.search = dt_strategies[s]->name;
            world.seed = (uint64_t)(1 + q);
            run(&world, tally);
        }
    }
    dt_landscape_free(landscape);
}

static glob_t tables;

static void check(bool noise, struct tally *sum)
{
    for (size_t i = 0; i < tables.gl_pathc; i++) {
        struct tally tally = {0};
        run_table(tables.gl_pathv[i], noise, &tally);
        printf("%s: %d cuts, %d store another plan, %d wrongly (%d candidates were close), the "
               "slowest at %.4f of the default\n",
               strrchr(tables.gl_pathv[i], '/') + 1, tally.cuts, tally.claims, tally.wrong,
               tally.close, tally.worst);
        sum->cuts += tally.cuts;
        sum->claims += tally.claims;
        sum->wrong += tally.wrong;
        sum->close += tally.close;
        sum->worst = fmax(sum->worst, tally.worst);
    }
    assert_true(sum->cuts > 0 && sum->claims > 0);
}

static void without_noise_a_cut_session_is_never_slower(void **state)
{
    (void)state;
    struct tally tally = {0};
    check(false, &tally);
    assert_int_equal(tally.wrong, 0);
    assert_true(tally.worst < 1);
}

/* One-sided, half of 5 % a decision; decisions of one default share no draws. */
static void with_noise_a_cut_session_is_seldom_slower(void **state)
{
    (void)state;
    struct tally tally = {0};
    check(true, &tally);
    assert_true(tally.wrong <= 0.025 * tally.close);
}

int main(void)
{
    glob(DT_SOURCE_DIR "/tests/landscapes/*.gz", 0, NULL, &tables);
    glob(DT_SOURCE_DIR "/tests/landscapes/*.jsonl", GLOB_APPEND, NULL, &tables);
    if (dose_full())
        glob(DT_SOURCE_DIR "/../shared/landscapes/*.gz", GLOB_APPEND, NULL, &tables);
    if (tables.gl_pathc == 0)
        return 77;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_noise_a_cut_session_is_never_slower),
        cmocka_unit_test(with_noise_a_cut_session_is_seldom_slower),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    globfree(&tables);
    return failed;
}
