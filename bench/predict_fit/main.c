/* SPDX-License-Identifier: MIT */
/* bench-predict-fit [CONSTANT=VALUE]... TABLE.csv...: fits the constants of
 * model/predict_constants.h that are marked so to measured tables, on all of them and with each
 * table left out, and scores the rows left out beside those that were fitted.
 *
 * Minimises, over the logarithms of the constants, the sum of rho(ln predicted / measured) over
 * times after one measured row, VAE times and memory, with rho(x) = d^2 (sqrt(1 + (x / d)^2) - 1),
 * d = 0.1, which a few far rows do not draw; and a weak pull to the values in use, that keeps what
 * no row tells of. A search along each constant in turn, whose steps halve. The spreads are then
 * multiplied by what makes the intervals hold 80 % of the fitted rows, and those of ratios by what
 * makes them hold 80 % of pairs of plans. */
#include "model/predict_constants.h"
#include "tuner/cli/planned/score.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PULL 0.2 /* rho of a constant that is e times its value in use */

enum { FILES_MOST = 16, TABLES_MOST = 64 };

static struct dt_timings files[FILES_MOST];
static int file_count;
static struct dt_predict_constants start; /* those in use, or given */

struct fit {
    struct dt_predict_constants constants;
    const char *without; /* name of the table left out; NULL: none */
};

static double *constant_of(struct dt_predict_constants *constants, int i)
{
    return (double *)((char *)constants + dt_predict_constant_rows[i].at);
}

static double start_of(int i)
{
    return *constant_of(&start, i);
}

static bool is_interval(int i)
{
    const char *name = dt_predict_constant_rows[i].name;
    return strncmp(name, "spread", 6) == 0 || strncmp(name, "ratio", 5) == 0;
}

static double rho(double predicted, double measured)
{
    const double d = 0.1, x = log(predicted / measured) / d;
    return d * d * (sqrt(1 + x * x) - 1);
}

static bool is_fitted(const struct fit *fit, const struct dt_measured_row *row)
{
    return fit->without == NULL || strcmp(row->text.table, fit->without) != 0;
}

static double row_loss(const struct dt_measured_row *row)
{
    const struct dt_projection *judged = &row->judged;
    double loss = judged->scored ? rho(judged->seconds, row->seconds) : 0;
    if (row->why == NULL && row->metric == DT_METRIC_VAE)
        loss += rho(judged->prediction.vae, row->seconds);
    if (row->why == NULL && row->metric == DT_METRIC_REQUEST && !row->offloaded &&
        row->memory_bytes > 0)
        loss += rho(judged->prediction.memory_bytes, row->memory_bytes);
    return loss;
}

static void predict_all(const struct dt_predict_constants *constants)
{
    dt_predict_use(constants);
    for (int f = 0; f < file_count; f++)
        dt_measured_predict(&files[f]);
}

static double loss_of(struct fit *fit)
{
    double loss = 0;
    predict_all(&fit->constants);
    for (int f = 0; f < file_count; f++)
        for (int i = 0; i < files[f].count; i++)
            loss += is_fitted(fit, &files[f].rows[i]) ? row_loss(&files[f].rows[i]) : 0;
    for (int i = 0; dt_predict_constant_rows[i].name != NULL; i++)
        loss += PULL * pow(log(*constant_of(&fit->constants, i) / start_of(i)), 2);
    return loss;
}

/* Along one constant: whether a step up or down is better, which is then kept. */
static bool step_along(struct fit *fit, int i, double step, double *least)
{
    double *constant = constant_of(&fit->constants, i), before = *constant;
    for (int way = -1; way <= 1; way += 2) {
        *constant = before * exp(way * step);
        double loss = loss_of(fit);
        if (loss < *least - 1e-12) {
            *least = loss;
            return true;
        }
    }
    *constant = before;
    return false;
}

/* Share of the fitted pairs of plans whose measured ratio is in its interval. */
static double ratios_held(const struct fit *fit)
{
    static struct dt_scores all, without;
    all = without = (struct dt_scores){.pairs = 0};
    predict_all(&fit->constants);
    for (int f = 0; f < file_count; f++) {
        dt_measured_score(&files[f], NULL, &all);
        if (fit->without != NULL)
            dt_measured_score(&files[f], fit->without, &without);
    }
    int count = all.ratios - without.ratios;
    return count > 0 ? (double)(all.ratios_covered - without.ratios_covered) / count : 1;
}

/* The narrowest that hold 80 %, in steps of 2 %. */
static void fit_ratios(struct fit *fit)
{
    for (double times = 0.2; times < 5; times *= 1.02) {
        fit->constants.ratio_base = times * start.ratio_base;
        fit->constants.ratio_exchange = times * start.ratio_exchange;
        if (ratios_held(fit) >= 0.8)
            return;
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void fit_interval(struct fit *fit)
{
    static double shares[FILES_MOST * DT_MEASURED_ROWS];
    int count = 0;
    predict_all(&fit->constants);
    for (int f = 0; f < file_count; f++)
        for (int i = 0; i < files[f].count; i++) {
            const struct dt_measured_row *row = &files[f].rows[i];
            if (row->judged.scored && is_fitted(fit, row))
                shares[count++] =
                    fabs(log(row->judged.seconds / row->seconds)) / log(row->judged.factor);
        }
    qsort(shares, (size_t)count, sizeof shares[0], ascending);
    for (int i = 0; dt_predict_constant_rows[i].name != NULL && count > 0; i++)
        if (strncmp(dt_predict_constant_rows[i].name, "spread", 6) == 0 &&
            dt_predict_constant_rows[i].fitted)
            *constant_of(&fit->constants, i) *= shares[(int)(0.8 * (count - 1) + 0.5)];
}

static struct fit fit_without(const char *table)
{
    struct fit fit = {.constants = start, .without = table};
    double least = loss_of(&fit);
    for (double step = 0.4; step > 0.005;) {
        bool moved = false;
        for (int i = 0; dt_predict_constant_rows[i].name != NULL; i++)
            if (dt_predict_constant_rows[i].fitted && !is_interval(i))
                moved |= step_along(&fit, i, step, &least);
        step = moved ? step : step / 2;
    }
    fit_interval(&fit);
    fit_ratios(&fit);
    return fit;
}

/* Scores one table, or all with NULL, by the constants. */
static void score_by(const struct dt_predict_constants *constants, const char *table,
                     struct dt_scores *scores)
{
    predict_all(constants);
    for (int f = 0; f < file_count; f++)
        dt_measured_score(&files[f], table, scores);
}

static void print_scores(const char *what, const struct dt_scores *s)
{
    double pairs = s->pairs > 0 ? s->pairs : 1;
    printf(
        "%-24s %2d of %2d, %d worse; %5.1f %5.1f %5.1f; %5.1f %5.1f; %3d of %3d; %3d of %3d; %2d "
        "of %2d, %2d of %2d; %d of %d, %d\n",
        what, s->right, s->pairs, s->worse, 100 * s->regret / pairs, 100 * s->rule / pairs,
        100 * s->random / pairs, 100 * dt_scores_error(s, 0.5), 100 * dt_scores_error(s, 0.9),
        s->within_30, s->count, s->covered, s->count, s->ratios_covered, s->ratios, s->told_right,
        s->told, s->memories_right, s->memories, s->false_fits);
}

static int list_tables(const char *names[TABLES_MOST])
{
    int count = 0;
    for (int f = 0; f < file_count; f++)
        for (int i = 0; i < files[f].count; i++) {
            int k = 0;
            while (k < count && strcmp(names[k], files[f].rows[i].text.table) != 0)
                k++;
            if (k == count && count < TABLES_MOST)
                names[count++] = files[f].rows[i].text.table;
        }
    return count;
}

static void print_constants(struct fit *all, struct fit without[], int count)
{
    printf("\n%-18s %10s %10s %10s %10s  of\n", "constant", "in use", "all", "least", "greatest");
    for (int i = 0; dt_predict_constant_rows[i].name != NULL; i++) {
        double least = *constant_of(&all->constants, i), greatest = least;
        for (int k = 0; k < count; k++) {
            least = fmin(least, *constant_of(&without[k].constants, i));
            greatest = fmax(greatest, *constant_of(&without[k].constants, i));
        }
        if (dt_predict_constant_rows[i].fitted)
            printf("%-18s %10.4g %10.4g %10.4g %10.4g  %s\n", dt_predict_constant_rows[i].name,
                   start_of(i), *constant_of(&all->constants, i), least, greatest,
                   dt_predict_constant_rows[i].unit);
    }
}

/* "spread_host=0.4" */
static bool set_constant(const char *text)
{
    size_t size = strcspn(text, "=");
    for (int i = 0; text[size] == '=' && dt_predict_constant_rows[i].name != NULL; i++)
        if (strlen(dt_predict_constant_rows[i].name) == size &&
            strncmp(dt_predict_constant_rows[i].name, text, size) == 0) {
            *constant_of(&start, i) = strtod(text + size + 1, NULL);
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    static struct fit all, without[TABLES_MOST];
    static struct dt_scores in_use, fitted, left_out;
    const char *tables[TABLES_MOST];
    start = dt_predict_defaults;
    for (int i = 1; i < argc && file_count < FILES_MOST; i++) {
        if (set_constant(argv[i]))
            continue;
        if (dt_measured_read(argv[i], &files[file_count++]) != DT_OK) {
            fprintf(stderr, "bench-predict-fit: %s\n", dt_message());
            return 2;
        }
    }
    int count = list_tables(tables);
    if (count == 0) {
        fprintf(stderr, "usage: bench-predict-fit [CONSTANT=VALUE]... TABLE.csv...\n");
        return 2;
    }
    printf(
        "winners; regret of plan, rule and random, %%; median error and that of nine of ten, %%; "
        "within 30 %%; intervals hold; those of ratios hold, and are on the right side of 1; "
        "memory "
        "within 10 %%, false fits\n");
    all = fit_without(NULL);
    for (int k = 0; k < count; k++) {
        static struct dt_scores own;
        own = (struct dt_scores){.pairs = 0};
        without[k] = fit_without(tables[k]);
        score_by(&without[k].constants, tables[k], &own);
        score_by(&without[k].constants, tables[k], &left_out);
        if (own.count > 0)
            print_scores(tables[k], &own);
    }
    score_by(&all.constants, NULL, &fitted);
    score_by(&start, NULL, &in_use);
    print_scores("all, each left out", &left_out);
    print_scores("all, fitted", &fitted);
    print_scores("all, constants in use", &in_use);
    print_constants(&all, without, count);
    for (int f = 0; f < file_count; f++)
        dt_measured_fini(&files[f]);
    return 0;
}
