/* SPDX-License-Identifier: MIT */
/* Tree-structured Parzen estimator with joint kernels. The answers are split into the best and the
 * rest; each part defines a density, a mixture of products over the axes with one term an answer
 * and one uniform term; the candidate with the largest ratio of the two is proposed. Numbers have
 * bells over their rank, labels an Aitchison-Aitken kernel. Candidates are feasible: draws, and
 * plans one exchange from the best. */
#include "base/array.h"
#include "search/search.h"
#include "search/seen.h"

#include <math.h>
#include <stdlib.h>

struct answer {
    struct dt_point point;
    double value; /* INFINITY: it failed */
};

/* Terms of one axis: bell[distance], and for numbers the sum of the bell over all
 * values from each of them. */
struct axis {
    int count;
    bool label;
    double *bell, *sum;
};

struct density {
    const struct answer *rows;
    int n, step;    /* n rows, step apart, are its terms */
    double uniform; /* the uniform term's value */
    struct axis axes[DT_AXES_MAX];
};

struct tpe {
    const struct dt_space *space;
    const struct dt_seen *seen;
    struct dt_rng rng;
    int starts, candidates, parents;
    double best, width;
    struct answer *answers; /* best first; among equals the earlier one; failures last */
    int count;
    struct density good, rest;
    double *tables;
};

/* Limits that keep a proposal at milliseconds: terms of the two densities, which are the very
 * best answers and every so many of the rest; and points tested for the candidates, where not
 * every draw is feasible. */
enum { GOOD_MOST = 50, REST_MOST = 300, TESTS_MOST = 50000 };

enum { STARTS, BEST, WIDTH, CANDIDATES, PARENTS };
static const struct dt_knob knobs[] = {
    {"starts", "random plans before the first density estimate", 10, 2, 1e5},
    {"best", "share of the answers that count as good", 0.15, 0.01, 0.5},
    {"width", "kernel width after one answer, as a share of the axis", 0.05, 0.01, 1},
    {"candidates", "candidates drawn for each choice", 500, 1, 1e6},
    {"parents", "best plans whose neighbours are candidates too", 5, 0, 1000},
    {0}};

static void part_tables(struct tpe *search, struct density *density, double **next)
{
    density->uniform = 1;
    for (int i = 0; i < dt_space_axes(search->space); i++) {
        const struct dt_axis *axis = dt_space_axis(search->space, i);
        density->axes[i] = (struct axis){.count = axis->count,
                                         .label = axis->labels != NULL,
                                         .bell = *next,
                                         .sum = *next + axis->count};
        *next += 2 * axis->count;
        density->uniform /= axis->count;
    }
}

static dt_status tpe_init(void *state, const struct dt_search_opts *opts)
{
    struct tpe *search = state;
    *search = (struct tpe){.space = opts->space,
                           .seen = opts->seen,
                           .rng = dt_rng_at(opts->seed, "tpe"),
                           .starts = (int)opts->knobs[STARTS],
                           .best = opts->knobs[BEST],
                           .width = opts->knobs[WIDTH],
                           .candidates = (int)opts->knobs[CANDIDATES],
                           .parents = (int)opts->knobs[PARENTS]};
    size_t values = 0;
    for (int i = 0; i < dt_space_axes(opts->space); i++)
        values += (size_t)dt_space_axis(opts->space, i)->count;
    search->tables = calloc(4 * values + 1, sizeof *search->tables);
    if (search->tables == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the search 'tpe'");
    double *next = search->tables;
    part_tables(search, &search->good, &next);
    part_tables(search, &search->rest, &next);
    return DT_OK;
}

/* The bell of each axis narrows with the number of answers (Scott 1992), down to half a step. */
static void shape_axis(struct axis *axis, double width)
{
    double h = fmax(width * (axis->count - 1), 0.5), total = 0;
    for (int d = 0; d < axis->count; d++)
        axis->bell[d] = exp(-0.5 * d * d / (h * h));
    if (axis->label) {
        double other = fmin(width, 1) * (axis->count - 1) / axis->count; /* mass on other labels */
        for (int d = 0; d < axis->count; d++)
            axis->bell[d] = d == 0 ? 1 - other : other / (axis->count - 1);
    }
    for (int d = 0; d < axis->count; d++) { /* sums of the two sides of a value overlap at it */
        total += axis->bell[d];
        axis->sum[d] = total;
    }
}

static double density_term(const struct axis *axis, int from, int to)
{
    if (axis->label)
        return axis->bell[from == to ? 0 : 1];
    double sum = axis->sum[from] + axis->sum[axis->count - 1 - from] - axis->bell[0];
    return axis->bell[from < to ? to - from : from - to] / sum;
}

static void fit_density(struct tpe *search, struct density *density, const struct answer *rows,
                        int count, int step)
{
    int axes = 0;
    for (int i = 0; i < dt_space_axes(search->space); i++)
        axes += density->axes[i].count > 1;
    density->rows = rows;
    const int n = (count + step - 1) / step;
    density->n = n;
    density->step = step;
    for (int i = 0; i < dt_space_axes(search->space); i++)
        shape_axis(&density->axes[i], search->width * pow(n > 1 ? n : 1, -1.0 / (4 + axes)));
}

static double density_at(const struct tpe *search, const struct density *density,
                         const struct dt_point *point)
{
    double sum = density->uniform;
    for (int k = 0; k < density->n; k++) {
        const struct answer *row = &density->rows[k * density->step];
        double product = 1;
        for (int i = 0; i < dt_space_axes(search->space); i++)
            product *= density_term(&density->axes[i], row->point.index[i], point->index[i]);
        sum += product;
    }
    return sum / (density->n + 1);
}

struct choice {
    struct dt_point point;
    double ratio; /* 0: none yet */
};

static void consider_point(const struct tpe *search, const struct dt_point *point,
                           struct choice *best)
{
    if (dt_seen_has(search->seen, point))
        return;
    double ratio =
        density_at(search, &search->good, point) / density_at(search, &search->rest, point);
    if (ratio > best->ratio)
        *best = (struct choice){.point = *point, .ratio = ratio};
}

static void consider_neighbours(const struct tpe *search, const struct dt_point *parent,
                                struct choice *best)
{
    struct dt_point near[256];
    int n = dt_space_neighbours(search->space, parent, near, 256);
    for (int i = 0; i < n && i < 256; i++)
        consider_point(search, &near[i], best);
}

static dt_status tpe_ask(void *state, struct dt_point *point)
{
    struct tpe *search = state;
    const struct answer *answers = search->answers;
    int good = (int)fmin(ceil(search->best * search->count), GOOD_MOST);
    int draws = (int)fmin(search->candidates, fmax(16, TESTS_MOST / dt_space_tries(search->space)));
    struct choice best = {.ratio = 0};
    if (search->count < search->starts || !isfinite(answers[0].value))
        return dt_seen_draw(search->seen, &search->rng, point) ? DT_OK : DT_DONE;
    while (!isfinite(answers[good - 1].value))
        good--;
    fit_density(search, &search->good, answers, good, 1);
    const int others = search->count - good;
    fit_density(search, &search->rest, answers + good, others, 1 + others / REST_MOST);
    for (int i = 0; i < search->parents && i < good; i++)
        consider_neighbours(search, &answers[i].point, &best);
    for (int i = 0; i < draws; i++) {
        dt_space_draw(search->space, &search->rng, point);
        consider_point(search, point, &best);
    }
    if (!(best.ratio > 0))
        return dt_seen_draw(search->seen, &search->rng, point) ? DT_OK : DT_DONE;
    *point = best.point;
    return DT_OK;
}

static int64_t tpe_ahead(void *state)
{
    const struct tpe *search = state;
    return search->starts - search->seen->count;
}

/* A point told again gets its latest value. An answer is dropped when memory runs out. */
static void tpe_tell(void *state, const struct dt_trial *trial)
{
    struct tpe *search = state;
    const struct answer answer = {.point = trial->point,
                                  .value = isfinite(trial->value) ? trial->value : INFINITY};
    int at = 0;
    while (at < search->count &&
           !dt_point_equal(search->space, &search->answers[at].point, &answer.point))
        at++;
    if (at == search->count) {
        if (DT_GROW(search->answers, search->count, 1) < 0)
            return;
        search->count++;
    }
    for (; at + 1 < search->count && search->answers[at + 1].value <= answer.value; at++)
        search->answers[at] = search->answers[at + 1];
    for (; at > 0 && search->answers[at - 1].value > answer.value; at--)
        search->answers[at] = search->answers[at - 1];
    search->answers[at] = answer;
}

static void tpe_fini(void *state)
{
    struct tpe *search = state;
    free(search->answers);
    free(search->tables);
}

const struct dt_strategy dt_strategy_tpe = {
    .name = "tpe",
    .doc = "tree-structured Parzen estimator: prefers regions with many good and few other plans",
    .paper = "Bergstra et al. 2011, Algorithms for hyper-parameter optimization; Watanabe 2023",
    .state_size = sizeof(struct tpe),
    .knobs = knobs,
    .init = tpe_init,
    .ask = tpe_ask,
    .tell = tpe_tell,
    .ahead = tpe_ahead,
    .fini = tpe_fini,
};
