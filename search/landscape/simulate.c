/* SPDX-License-Identifier: MIT */
/* Times are processor time of this thread, so the cost of a strategy does not depend on the
 * load of the machine. */
#include "search/landscape/simulate.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "search/racing.h"
#include "stats/stats.h"

#include <errno.h>
#include <gsl/gsl_sort.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* score - rates a search on a landscape whose optimum is known
 *
 * The yardstick is random search. R(t) is the exact expected best of t draws without replacement;
 * F(t) is the best that a run found in t evaluations. Failures are evaluations: in both they rank
 * last, at the slowest valid value, as does a run before its first success. P is the mean over t =
 * 1..N of (R(t) - F(t)) / (R(t) - optimum): 0 is random search, 1 the optimum at once, below 0
 * worse than random. t at which random search is sure of the optimum are left out. Intervals are
 * over the repeats, at 95 %.
 */

/* For M values in ascending order v[0] .. v[M-1], t draws without replacement all miss the
 * first k with probability
 *
 *     S(k) = C(M - k, t) / C(M, t) = S(k - 1) (M - t - k + 1) / (M - k + 1),
 *
 * so the expected best is v[0] + sum over k of (v[k] - v[k - 1]) S(k). No term is negative, so
 * there is no cancellation. */

static double expected_best(const double sorted[], int64_t n, int64_t t)
{
    double best = sorted[0], missed = 1;
    for (int64_t k = 1; k < n && missed > 0; k++) {
        missed *= t <= n - k ? (double)(n - t - k + 1) / (double)(n - k + 1) : 0;
        best += (sorted[k] - sorted[k - 1]) * missed;
    }
    return best;
}

dt_status dt_score_random(const double values[], int64_t n, int evals, double expected[])
{
    dt_auto_free double *sorted = malloc((size_t)n * sizeof *sorted + 1);
    double slowest = -INFINITY;
    if (sorted == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the score of %lld plans", (long long)n);
    for (int64_t k = 0; k < n; k++)
        if (values[k] > slowest)
            slowest = values[k];
    for (int64_t k = 0; k < n; k++)
        sorted[k] = isnan(values[k]) ? slowest : values[k];
    gsl_sort(sorted, 1, (size_t)n);
    for (int t = 1; t <= evals; t++)
        expected[t - 1] = expected_best(sorted, n, t);
    return DT_OK;
}

double dt_score_p(const double best[], const double expected[], int evals, double optimum)
{
    double sum = 0;
    int n = 0;
    for (int t = 0; t < evals; t++) {
        double left = expected[t] - optimum;
        if (left <= 1e-12 * fabs(optimum))
            continue;
        sum += (expected[t] - best[t]) / left;
        n++;
    }
    return n > 0 ? sum / n : 0;
}

void dt_score_best(const struct dt_landscape *landscape, const int32_t entries[], int evals,
                   double best[])
{
    double least = landscape->slowest;
    for (int t = 0; t < evals; t++) {
        if (entries[t] >= 0 && landscape->entries[entries[t]].value < least)
            least = landscape->entries[entries[t]].value;
        best[t] = least;
    }
}

static double clock_milliseconds(void)
{
    return 1e-6 * (double)dt_clock_thread_ns();
}

static dt_status start_search(const struct dt_simulation *simulation, int repeat,
                              struct dt_search **search)
{
    const struct dt_landscape *landscape = simulation->landscape;
    struct dt_point point;
    struct dt_search_opts opts = {.space = landscape->space,
                                  .seed = simulation->seed + (uint64_t)repeat,
                                  .prior = simulation->prior,
                                  .evaluations = simulation->evals,
                                  .seconds = simulation->spend};
    if (landscape->start >= 0) {
        dt_space_at(landscape->space, landscape->start, &point);
        opts.start = &point;
    }
    return dt_search_new(simulation->search, &opts, search);
}

static void answer_trial(const struct dt_simulation *simulation, int repeat, struct dt_trial *trial)
{
    struct dt_point point = trial->point;
    if (simulation->noise)
        dt_landscape_trial_noisy(simulation->landscape, &point, simulation->seed + (uint64_t)repeat,
                                 trial);
    else
        dt_landscape_trial(simulation->landscape, &point, trial);
}

/* Subtracts the time of fits since the last evaluation from this one's. */
static void split_refits(const struct dt_search *search, struct dt_refits *before,
                         double *ask_tell_ms, double *refit_ms)
{
    struct dt_refits after = dt_search_refits(search);
    if (after.count > before->count)
        *refit_ms = 1e3 * (after.seconds - before->seconds);
    *ask_tell_ms = fmax(0, *ask_tell_ms - *refit_ms);
    *before = after;
}

static dt_status play_search(const struct dt_simulation *simulation, int repeat,
                             struct dt_search *search, struct dt_runs *runs)
{
    size_t at = (size_t)repeat * (size_t)runs->evals;
    struct dt_repeat *its = &runs->list[repeat];
    struct dt_refits refits = dt_search_refits(search);
    for (; its->evals < runs->evals; its->evals++, at++) {
        if (simulation->spend > 0 && its->seconds >= simulation->spend)
            return DT_OK;
        struct dt_trial trial = {.outcome = DT_TRIAL_OK};
        double before = clock_milliseconds();
        dt_status status = dt_search_ask(search, &trial.point);
        double asked = clock_milliseconds();
        DT_TRY(status);
        if (status == DT_DONE)
            return DT_OK;
        if (status != DT_OK)
            return dt_fail(DT_EUNSUP, "the search '%s' waits, and every answer is in",
                           simulation->search);
        int64_t k = dt_space_index(simulation->landscape->space, &trial.point);
        if (k < 0)
            return dt_fail(DT_EUNSUP, "the search '%s' asks for a plan that is not of the table",
                           simulation->search);
        answer_trial(simulation, repeat, &trial);
        double told = clock_milliseconds();
        dt_search_tell(search, &trial);
        runs->ask_tell_ms[at] = asked - before + clock_milliseconds() - told;
        split_refits(search, &refits, &runs->ask_tell_ms[at], &runs->refit_ms[at]);
        runs->entries[at] = (int32_t)k;
        runs->seen[at] = trial.value;
        its->seconds += trial.cost;
    }
    return DT_OK;
}

static dt_status run_repeat(const struct dt_simulation *simulation, int repeat,
                            struct dt_runs *runs)
{
    struct dt_repeat *its = &runs->list[repeat];
    DT_CLEANUP(dt_search_free_at) struct dt_search *search = NULL;
    dt_auto_text note = {0};
    double before = clock_milliseconds();
    DT_TRY(start_search(simulation, repeat, &search));
    its->start_ms = clock_milliseconds() - before;
    dt_status status = play_search(simulation, repeat, search, runs);
    dt_search_note(search, &note);
    snprintf(its->note, sizeof its->note, "%s", dt_text_at(&note));
    return status;
}

/* Runs the repeats of one process; stops at an error. */
static void work_job(const struct dt_simulation *simulation, int job, struct dt_runs *runs)
{
    for (int repeat = job; repeat < runs->repeats; repeat += simulation->jobs) {
        struct dt_repeat *its = &runs->list[repeat];
        if (dt_error_keep(&its->error, run_repeat(simulation, repeat, runs)) < 0)
            return;
    }
}

static dt_status make_room(const struct dt_simulation *simulation, struct dt_runs *runs)
{
    size_t repeats = (size_t)simulation->repeats, cells = repeats * (size_t)simulation->evals;
    size_t size = repeats * sizeof *runs->list + cells * (3 * sizeof(double) + sizeof(int32_t));
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return dt_fail(DT_ENOMEM, "out of memory for %d repeats of %d evaluations",
                       simulation->repeats, simulation->evals);
    *runs = (struct dt_runs){.evals = simulation->evals,
                             .repeats = simulation->repeats,
                             .memory = memory,
                             .size = size,
                             .list = (struct dt_repeat *)(void *)memory};
    runs->seen = (double *)(void *)(memory + repeats * sizeof *runs->list);
    runs->ask_tell_ms = runs->seen + cells;
    runs->refit_ms = runs->ask_tell_ms + cells;
    runs->entries = (int32_t *)(void *)(runs->refit_ms + cells);
    for (size_t i = 0; i < cells; i++) {
        runs->entries[i] = -1;
        runs->seen[i] = NAN;
    }
    return DT_OK;
}

static dt_status wait_for(pid_t child)
{
    int code;
    pid_t got;
    do {
        got = waitpid(child, &code, 0);
    } while (got < 0 && errno == EINTR);
    if (got == child && WIFEXITED(code) && WEXITSTATUS(code) == 0)
        return DT_OK;
    return dt_fail(DT_EIO, "a process that ran a search ended by signal %d",
                   got == child && WIFSIGNALED(code) ? WTERMSIG(code) : 0);
}

/* This process does the first share itself. */
static dt_status fan_out(const struct dt_simulation *simulation, struct dt_runs *runs)
{
    pid_t children[64];
    int started = 1;
    dt_status status = DT_OK;
    for (; started < simulation->jobs; started++) {
        pid_t child = fork();
        if (child == 0) {
            work_job(simulation, started, runs);
            _exit(0);
        }
        if (child < 0) {
            status = dt_fail(DT_EIO, "cannot start a process: %s", strerror(errno));
            break;
        }
        children[started] = child;
    }
    work_job(simulation, 0, runs);
    for (int i = 1; i < started; i++) {
        dt_status ended = wait_for(children[i]);
        status = status < 0 ? status : ended;
    }
    return status;
}

dt_status dt_simulate(const struct dt_simulation *simulation, struct dt_runs *runs)
{
    DT_TRY(make_room(simulation, runs));
    dt_status status = fan_out(simulation, runs);
    for (int i = 0; i < runs->repeats && status == DT_OK; i++)
        status = dt_error_raise(&runs->list[i].error);
    if (status < 0)
        dt_runs_fini(runs);
    return status;
}

void dt_runs_fini(struct dt_runs *runs)
{
    if (runs->memory != NULL)
        munmap(runs->memory, runs->size);
    *runs = (struct dt_runs){0};
}

/* racing - replays the rule of search/racing.h on recorded repetitions: time
 * saved and best plans lost
 *
 * Plans come in a random order. Each is measured as long as the rule continues; a plan that was not
 * dropped becomes the incumbent when the median of its warm repetitions is the least so far. The
 * best plan of an order is the one whose median over all recorded warm repetitions is the least: it
 * is lost when another plan is the final incumbent.
 */

struct plan {
    const double *samples;
    int count;
    double truth; /* median of all warm repetitions */
};

static dt_status collect_plans(const struct dt_landscape *landscape, struct plan **plans,
                               int *count)
{
    struct plan *made = calloc((size_t)landscape->count + 1, sizeof *made);
    int n = 0;
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the repetitions of %lld plans",
                       (long long)landscape->count);
    for (int64_t k = 0; k < landscape->count; k++) {
        const struct dt_entry *entry = &landscape->entries[k];
        const double *samples = &landscape->samples[entry->first];
        if (entry->count > 1 + DT_RACE_WARM && isfinite(entry->value))
            made[n++] = (struct plan){.samples = samples,
                                      .count = entry->count,
                                      .truth = dt_stats_median(samples + 1, entry->count - 1)};
    }
    *count = n;
    *plans = made;
    if (n < 2)
        return dt_fail(DT_EUSAGE, "the table has %d plans with repetitions to race, expected two",
                       n);
    return DT_OK;
}

/* Measures one plan; true when it was not dropped. */
static bool racing_run(const struct plan *plan, const struct plan *best, struct dt_raced *raced)
{
    struct dt_race race = {.most = plan->count - 1};
    enum dt_race_next next;
    int n = 0, until = 0;
    if (best != NULL) {
        race.best = best->samples + 1;
        race.best_count = best->count - 1;
    }
    while ((next = dt_race_look(&race, plan->samples, n, &until)) == DT_RACE_MORE)
        n = until;
    for (int i = 0; i < plan->count; i++) {
        raced->all += plan->samples[i];
        raced->spent += i < n ? plan->samples[i] : 0;
    }
    raced->repetitions += n;
    raced->ended[next]++;
    return next == DT_RACE_ENOUGH;
}

/* Shuffles the first raced->plans (Durstenfeld 1964) and races them. */
static void race_order(struct plan plans[], int count, struct dt_rng *rng, struct dt_raced *raced)
{
    const struct plan *best = NULL;
    double truth = INFINITY;
    for (int i = 0; i < raced->plans; i++) {
        int k = i + (int)dt_rng_below(rng, (uint64_t)(count - i));
        struct plan drawn = plans[k];
        plans[k] = plans[i];
        plans[i] = drawn;
        truth = fmin(truth, drawn.truth);
        if (racing_run(&plans[i], best, raced) && (best == NULL || drawn.truth < best->truth))
            best = &plans[i];
    }
    if (best == NULL) /* cannot happen: the first plan of an order is never dropped */
        return;
    raced->lost += best->truth > truth;
    raced->worst = fmax(raced->worst, best->truth / truth);
}

dt_status dt_race_replay(const struct dt_landscape *landscape, int orders, int plans, uint64_t seed,
                         struct dt_raced *raced)
{
    dt_auto_free struct plan *list = NULL;
    int count = 0;
    DT_TRY(collect_plans(landscape, &list, &count));
    struct dt_raced made = {.orders = orders, .plans = plans < count ? plans : count};
    struct dt_rng rng = dt_rng_at(seed, "orders");
    for (int i = 0; i < orders; i++)
        race_order(list, count, &rng, &made);
    made.repetitions /= (double)orders * made.plans;
    made.saved = 1 - made.spent / made.all;
    *raced = made;
    return DT_OK;
}

void dt_raced_text(const struct dt_raced *raced, struct dt_text *out)
{
    dt_text_add(out, "racing             %d orders of %d plans\n", raced->orders, raced->plans);
    dt_text_add(out, "repetition time    %.1f %% saved, %.3g repetitions a plan\n",
                100 * raced->saved, raced->repetitions);
    dt_text_add(out, "best plan lost     in %d of %d orders, at most %.3g %% of its time\n",
                raced->lost, raced->orders, 100 * (raced->worst - 1));
}
