/* SPDX-License-Identifier: MIT */
/* The controller's cost of an ask and a tell, with every model of the search in use: values, a
 * prior, peaks of memory with plans that do not fit, failures, seconds.
 *
 *     bench-search-speed [CANDIDATES [ANSWERS [STRATEGY]]]        (20000 1000 bayes)
 *
 * Prints processor milliseconds of this thread around 150 answers and at the end, fits apart.
 */
#include "base/clock.h"
#include "base/rng.h"
#include "base/text.h"
#include "search/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { AXES = 8, VALUES = 10, WINDOW = 50 };

struct row {
    double milliseconds;
    bool fit;
};

static double time_of(const struct dt_point *point, double factor)
{
    double sum = 1;
    for (int a = 0; a < AXES; a++) {
        double off = point->index[a] - (a * 7 + 3) % VALUES;
        sum += 0.02 * off * off + (a > 0 ? 0.01 * factor * off * point->index[a - 1] : 0);
    }
    return fmax(sum, 0.5);
}

static double believed(const void *context, const struct dt_point *point)
{
    (void)context;
    return time_of(point, 0.5);
}

static struct dt_space *make_space(int64_t candidates)
{
    static const int64_t values[VALUES] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    static const char *const names[AXES] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct dt_rng rng = dt_rng_at(1, "points");
    struct dt_space *space = NULL;
    struct dt_point *points = calloc((size_t)candidates, sizeof *points);
    if (points == NULL || dt_space_new(&space) < 0)
        exit(1);
    for (int a = 0; a < AXES; a++) {
        const struct dt_axis axis = {.name = names[a],
                                     .role = a == 0 ? DT_ROLE_RANKS : DT_ROLE_PLAIN,
                                     .count = VALUES,
                                     .values = values};
        if (dt_space_add_axis(space, &axis) < 0)
            exit(1);
    }
    for (int64_t i = 0; i < candidates; i++)
        for (int a = 0; a < AXES; a++)
            points[i].index[a] = (int32_t)dt_rng_below(&rng, VALUES);
    if (dt_space_seal_points(space, points, candidates) < 0)
        exit(1);
    free(points);
    return space;
}

static void answer(struct dt_trial *trial)
{
    int a = trial->point.index[1], b = trial->point.index[2], c = trial->point.index[3];
    trial->value = NAN;
    trial->cost = 1;
    trial->outcome = a + b > 14 ? DT_TRIAL_MEMORY : c == 5 && a > 6 ? DT_TRIAL_WRONG : DT_TRIAL_OK;
    if (trial->outcome != DT_TRIAL_OK)
        return;
    trial->value = time_of(&trial->point, 1);
    trial->cost += 10 * trial->value;
    trial->variance = 1e-5;
    trial->peak_bytes = (int64_t)(1e9 * exp2(0.3 * (a + b)));
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print(const struct row rows[], int answers)
{
    double sorted[WINDOW];
    int n = 0;
    for (int i = answers - WINDOW; i < answers; i++)
        if (i >= 0 && !rows[i].fit)
            sorted[n++] = rows[i].milliseconds;
    qsort(sorted, (size_t)n, sizeof *sorted, ascending);
    if (n > 0)
        printf("%6d answers: median %7.2f ms, most %7.2f ms\n", answers, sorted[n / 2],
               sorted[n - 1]);
}

int main(int argc, char **argv)
{
    int candidates = argc > 1 ? atoi(argv[1]) : 20000, answers = argc > 2 ? atoi(argv[2]) : 1000;
    struct dt_space *space = make_space(candidates);
    const struct dt_prior prior = {"table", believed, NULL};
    const struct dt_search_opts opts = {
        .space = space, .seed = 1, .prior = &prior, .seconds = 1e9, .capacity_bytes = 20000000000};
    struct dt_search *search = NULL;
    struct row *rows = calloc((size_t)answers, sizeof *rows);
    if (rows == NULL || dt_search_new(argc > 3 ? argv[3] : "bayes:stop=0", &opts, &search) < 0) {
        free(rows);
        dt_space_free(space);
        return 1;
    }
    struct dt_refits before = {0}, longest = {0};
    for (int i = 0; i < answers; i++) {
        struct dt_trial trial = {.low = NAN, .high = NAN};
        int64_t start = dt_clock_thread_ns();
        if (dt_search_ask(search, &trial.point) != DT_OK)
            break;
        int64_t asked = dt_clock_thread_ns();
        answer(&trial);
        int64_t answered = dt_clock_thread_ns();
        dt_search_tell(search, &trial);
        struct dt_refits after = dt_search_refits(search);
        rows[i].milliseconds = (double)(dt_clock_thread_ns() - answered + asked - start) / 1e6;
        rows[i].fit = after.count > before.count;
        longest.seconds = fmax(longest.seconds, after.seconds - before.seconds);
        before = after;
        if (i + 1 == 150 || i + 1 == answers)
            print(rows, i + 1);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%6d fits: %.2f s in all, the longest %.2f s; %ld MiB resident\n", before.count,
           before.seconds, longest.seconds, usage.ru_maxrss / 1024);
    dt_search_free(search);
    dt_space_free(space);
    free(rows);
    return 0;
}
