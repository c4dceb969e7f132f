/* SPDX-License-Identifier: MIT */
#include "search/landscape/simulate.h"
#include "base/figures.h"
#include "search/racing.h"
#include "stats/stats.h"
#include "tuner/cli/print.h"
#include "tuner/session/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVALS_MOST = 100000, REPEATS_MOST = 100000, JOBS_MOST = 64 };
#define CELLS_MOST 50000000 /* limit of repeats x evaluations */

struct table_prior {
    const struct dt_landscape *landscape;
    double *values; /* value of each entry */
};

static double prior_value(const void *context, const struct dt_point *point)
{
    const struct table_prior *table = context;
    int64_t k = dt_space_index(table->landscape->space, point);
    return k >= 0 ? table->values[k] : NAN;
}

static dt_status read_prior(const char *path, const struct dt_landscape *landscape,
                            struct table_prior *table)
{
    struct dt_landscape *source = NULL;
    int64_t found;
    table->landscape = landscape;
    table->values = malloc((size_t)landscape->count * sizeof *table->values);
    if (table->values == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a prior");
    DT_TRY(dt_session_landscape(path, &source));
    dt_status status = dt_landscape_map(landscape, source, table->values, &found);
    dt_landscape_free(source);
    return status;
}

static dt_status limit_option(const char *option, int64_t value, int64_t most, int *out)
{
    if (value < 1 || value > most)
        return dt_fail(DT_EUSAGE, "--%s is %lld, expected 1 to %lld", option, (long long)value,
                       (long long)most);
    *out = (int)value;
    return DT_OK;
}

static dt_status read_counts(const struct dt_options *options, struct dt_simulation *simulation)
{
    DT_TRY(limit_option("evals", options->simulate.evals, EVALS_MOST, &simulation->evals));
    DT_TRY(limit_option("repeats", options->simulate.repeats, REPEATS_MOST, &simulation->repeats));
    DT_TRY(limit_option("jobs", options->simulate.jobs, JOBS_MOST, &simulation->jobs));
    if ((int64_t)simulation->evals * simulation->repeats > CELLS_MOST)
        return dt_fail(DT_EUSAGE, "%d repeats of %d evaluations are more than %d evaluations",
                       simulation->repeats, simulation->evals, CELLS_MOST);
    return DT_OK;
}

/* ---- what it prints of its repeats (docs/json.md) */

#define LEVEL 0.95

static const int stops[] = {20, 50, 100, 150};
static const int percents[] = {10, 5, 1};
enum { STOPS = sizeof stops / sizeof stops[0], PERCENTS = sizeof percents / sizeof percents[0] };

struct report {
    const struct dt_simulation *simulation;
    const struct dt_runs *runs;
    json_t *object;
    int evals, repeats;
    double *expected; /* [evals] of random search */
    double *best;     /* [repeats][evals] */
    double *column;   /* [repeats] room */
};

static json_t *interval_json(struct dt_interval interval)
{
    return json_pack("[o,o]", dt_json_number(interval.low), dt_json_number(interval.high));
}

static double ratio_to_best(const struct report *report, int repeat, int eval)
{
    return report->best[(size_t)repeat * (size_t)report->evals + (size_t)eval] /
           report->simulation->landscape->optimum;
}

static json_t *score_json(const struct report *report)
{
    double optimum = report->simulation->landscape->optimum;
    json_t *each = json_array();
    for (int r = 0; r < report->repeats; r++) {
        report->column[r] = dt_score_p(&report->best[(size_t)r * (size_t)report->evals],
                                       report->expected, report->evals, optimum);
        json_array_append_new(each, json_real(report->column[r]));
    }
    return json_pack("{s:f, s:o, s:o}", "mean", dt_stats_mean(report->column, report->repeats),
                     "interval",
                     interval_json(dt_stats_mean_interval(report->column, report->repeats, LEVEL)),
                     "each", each);
}

/* Geometric mean over the repeats of best / optimum after `eval` evaluations. */
static double mean_ratio(const struct report *report, int eval, struct dt_interval *interval)
{
    for (int r = 0; r < report->repeats; r++)
        report->column[r] = log(ratio_to_best(report, r, eval - 1));
    if (interval != NULL) {
        *interval = dt_stats_mean_interval(report->column, report->repeats, LEVEL);
        *interval = (struct dt_interval){exp(interval->low), exp(interval->high)};
    }
    return exp(dt_stats_mean(report->column, report->repeats));
}

static json_t *gap_json(const struct report *report)
{
    json_t *object = json_object();
    for (int i = 0; i <= STOPS; i++) {
        int eval = i < STOPS ? stops[i] : report->evals;
        char key[16];
        struct dt_interval interval;
        snprintf(key, sizeof key, "%d", eval);
        if (eval > report->evals || dt_json_has(object, key))
            continue;
        double mean = mean_ratio(report, eval, &interval);
        json_object_set_new(
            object, key,
            json_pack("{s:f, s:o}", "mean", mean, "interval", interval_json(interval)));
    }
    return object;
}

/* The first evaluation within the percentage, INFINITY when there is none; into the column. */
static void count_arrivals(const struct report *report, int percent)
{
    for (int r = 0; r < report->repeats; r++) {
        report->column[r] = INFINITY;
        for (int t = report->evals; t > 0; t--)
            if (ratio_to_best(report, r, t - 1) <= 1 + percent / 100.)
                report->column[r] = t;
    }
}

/* The column's evaluations become recorded seconds up to their end. */
static void arrivals_in_seconds(const struct report *report)
{
    const struct dt_entry *table = report->simulation->landscape->entries;
    for (int r = 0; r < report->repeats; r++) {
        const int32_t *entries = &report->runs->entries[(size_t)r * (size_t)report->evals];
        double evals = report->column[r], seconds = isfinite(evals) ? 0 : INFINITY;
        for (int t = 0; t < evals && isfinite(evals); t++)
            seconds += entries[t] >= 0 ? table[entries[t]].cost : 0;
        report->column[r] = seconds;
    }
}

static json_t *share_json(const struct report *report, int eval)
{
    int k = 0;
    for (int r = 0; r < report->repeats; r++)
        k += report->column[r] <= eval;
    return json_pack("{s:f, s:o}", "share", (double)k / report->repeats, "interval",
                     interval_json(dt_stats_share_interval(k, report->repeats, LEVEL)));
}

static json_t *within_json(const struct report *report)
{
    json_t *object = json_object();
    for (int i = 0; i < PERCENTS; i++) {
        char key[16];
        count_arrivals(report, percents[i]);
        json_t *row = share_json(report, report->evals), *by = json_object();
        for (int k = 0; k < STOPS; k++) {
            snprintf(key, sizeof key, "%d", stops[k]);
            if (stops[k] <= report->evals)
                json_object_set_new(by, key, share_json(report, stops[k]));
        }
        json_object_set_new(row, "by", by);
        json_object_set_new(row, "median_evals",
                            dt_json_number(dt_stats_median(report->column, report->repeats)));
        json_object_set_new(
            row, "median_interval",
            interval_json(dt_stats_median_interval(report->column, report->repeats, LEVEL)));
        arrivals_in_seconds(report);
        json_object_set_new(row, "median_seconds",
                            dt_json_number(dt_stats_median(report->column, report->repeats)));
        snprintf(key, sizeof key, "%d", percents[i]);
        json_object_set_new(object, key, row);
    }
    return object;
}

static json_t *keys_json(const struct report *report)
{
    json_t *list = json_array();
    for (int r = 0; r < report->repeats; r++) {
        json_t *keys = json_array();
        const int32_t *entries = &report->runs->entries[(size_t)r * (size_t)report->evals];
        for (int t = 0; t < report->runs->list[r].evals; t++)
            json_array_append_new(
                keys, json_string(report->simulation->landscape->entries[entries[t]].key));
        json_array_append_new(list, keys);
    }
    return list;
}

static double largest_of(const double x[], int n)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, x[i]);
    return most;
}

/* Those of evaluations that were made; of refits, those that are not 0. Returns how many. */
static int collect_ratios(const struct report *report, const double from[], bool made, double to[])
{
    int n = 0;
    for (int r = 0; r < report->repeats; r++)
        for (int t = 0; t < report->runs->list[r].evals; t++) {
            double x = from[(size_t)r * (size_t)report->evals + (size_t)t];
            if (made || x > 0)
                to[n++] = x;
        }
    return n;
}

static dt_status ask_tell_json(const struct report *report, json_t **out)
{
    const struct dt_runs *runs = report->runs;
    size_t room = (size_t)report->repeats * (size_t)report->evals;
    double *times = malloc(room * sizeof *times + 1), start = 0;
    if (times == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %zu evaluations", room);
    for (int r = 0; r < report->repeats; r++)
        start = fmax(start, runs->list[r].start_ms);
    int n = collect_ratios(report, runs->ask_tell_ms, true, times);
    *out = json_pack("{s:o, s:f, s:f}", "median", dt_json_number(dt_stats_median(times, n)), "max",
                     largest_of(times, n), "start_max", start);
    n = collect_ratios(report, runs->refit_ms, false, times);
    json_object_set_new(*out, "refits", json_integer(n));
    json_object_set_new(*out, "refit_median", dt_json_number(dt_stats_median(times, n)));
    json_object_set_new(*out, "refit_max", n > 0 ? json_real(largest_of(times, n)) : json_null());
    free(times);
    return DT_OK;
}

/* Recorded seconds that the evaluations took; of plain replay the best is what was told to be
 * best, with noise it need not be. */
static void add_runs(const struct report *report)
{
    const struct dt_landscape *landscape = report->simulation->landscape;
    json_t *made = json_array();
    double chosen = 0;
    for (int r = 0; r < report->repeats; r++) {
        const struct dt_repeat *its = &report->runs->list[r];
        size_t begin = (size_t)r * (size_t)report->evals;
        double least = INFINITY, value = landscape->slowest;
        for (int t = 0; t < its->evals; t++) {
            if (!(report->runs->seen[begin + (size_t)t] < least))
                continue;
            least = report->runs->seen[begin + (size_t)t];
            value = landscape->entries[report->runs->entries[begin + (size_t)t]].value;
        }
        chosen += log(value / landscape->optimum);
        report->column[r] = its->seconds;
        json_array_append_new(made, json_pack("{s:i, s:f, s:s}", "evals", its->evals, "seconds",
                                              its->seconds, "note", its->note));
    }
    json_object_set_new(report->object, "chosen", json_real(exp(chosen / report->repeats)));
    json_object_set_new(
        report->object, "seconds",
        json_pack("{s:f, s:o}", "mean", dt_stats_mean(report->column, report->repeats), "interval",
                  interval_json(dt_stats_mean_interval(report->column, report->repeats, LEVEL))));
    json_object_set_new(report->object, "runs", made);
}

static json_t *head_json(const struct dt_simulation *simulation)
{
    const struct dt_landscape *landscape = simulation->landscape;
    return json_pack(
        "{s:s, s:s, s:s, s:I, s:I, s:f, s:f, s:s, s:i, s:i, s:I, s:o, s:o, s:b}", "title",
        landscape->title, "device", landscape->device, "unit", landscape->unit, "feasible",
        (json_int_t)landscape->count, "failed", (json_int_t)landscape->failed, "optimum",
        landscape->optimum, "slowest", landscape->slowest, "search", simulation->search, "evals",
        simulation->evals, "repeats", simulation->repeats, "seed", (json_int_t)simulation->seed,
        "spend_seconds", dt_json_number(simulation->spend > 0 ? simulation->spend : NAN), "prior",
        simulation->prior != NULL ? json_string(simulation->prior->name) : json_null(),
        "replay_noise", simulation->noise);
}

static dt_status fill_report(struct report *report)
{
    const struct dt_landscape *landscape = report->simulation->landscape;
    json_t *times = NULL;
    for (int64_t k = 0; k < landscape->count; k++)
        report->expected[k] = landscape->entries[k].value;
    DT_TRY(dt_score_random(report->expected, landscape->count, report->evals, report->expected));
    for (int r = 0; r < report->repeats; r++) {
        size_t begin = (size_t)r * (size_t)report->evals;
        dt_score_best(landscape, &report->runs->entries[begin], report->evals,
                      &report->best[begin]);
    }
    DT_TRY(ask_tell_json(report, &times));
    json_t *regret = json_array();
    for (int t = 1; t <= report->evals; t++)
        json_array_append_new(regret, json_real(mean_ratio(report, t, NULL)));
    json_object_set_new(report->object, "score_p", score_json(report));
    json_object_set_new(report->object, "gap", gap_json(report));
    json_object_set_new(report->object, "within", within_json(report));
    json_object_set_new(report->object, "ask_tell_ms", times);
    add_runs(report);
    json_object_set_new(report->object, "regret", regret);
    json_object_set_new(report->object, "evaluated", keys_json(report));
    return DT_OK;
}

static dt_status simulation_json(const struct dt_simulation *simulation, const struct dt_runs *runs,
                                 json_t **object)
{
    json_auto_t *made = head_json(simulation);
    struct report report = {.simulation = simulation,
                            .runs = runs,
                            .object = made,
                            .evals = runs->evals,
                            .repeats = runs->repeats};
    size_t repeats = (size_t)runs->repeats, evals = (size_t)runs->evals;
    size_t count = (size_t)simulation->landscape->count;
    report.expected = malloc((evals > count ? evals : count) * sizeof(double));
    report.best = malloc(repeats * evals * sizeof(double));
    report.column = malloc(repeats * sizeof(double));
    bool room = report.expected != NULL && report.best != NULL && report.column != NULL;
    dt_status status = room && made != NULL ? fill_report(&report) : dt_no_memory("for a report");
    free(report.expected);
    free(report.best);
    free(report.column);
    if (status == DT_OK)
        *object = json_incref(made);
    return status;
}

/* ---- text */

static double real_field(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* " [low, high]" times scale, or nothing where there is none. */
static void add_interval(const json_t *object, const char *key, double scale, struct dt_text *out)
{
    const json_t *interval = json_object_get(object, key);
    const json_t *low = json_array_get(interval, 0), *high = json_array_get(interval, 1);
    if (json_is_number(low) && json_is_number(high))
        dt_text_add(out, " [%.4g, %.4g]", scale * json_number_value(low),
                    scale * json_number_value(high));
}

static void add_head(const json_t *object, struct dt_text *out)
{
    dt_text_add(out, "%s%s%s: %lld plan%s, %lld of them failed, best %.6g %s\n",
                dt_json_text_at(object, "title"),
                dt_json_text_at(object, "device")[0] != '\0' ? " on " : "",
                dt_json_text_at(object, "device"), (long long)real_field(object, "feasible"),
                real_field(object, "feasible") == 1 ? "" : "s",
                (long long)real_field(object, "failed"), real_field(object, "optimum"),
                dt_json_text_at(object, "unit"));
    dt_text_add(out, "%s, %d evaluations, %d repeats", dt_json_text_at(object, "search"),
                (int)real_field(object, "evals"), (int)real_field(object, "repeats"));
    if (dt_json_text_at(object, "prior")[0] != '\0')
        dt_text_add(out, ", with %s as prior", dt_json_text_at(object, "prior"));
    const json_t *seconds = json_object_get(object, "seconds");
    dt_text_add(out, "; they took %s where they were recorded\n\n",
                dt_figure_of(real_field(seconds, "mean")).text);
}

static void simulation_text(const json_t *object, struct dt_text *out)
{
    const json_t *score = json_object_get(object, "score_p");
    const json_t *times = json_object_get(object, "ask_tell_ms"), *row;
    const char *key;
    add_head(object, out);
    dt_text_add(out, "score P            %.3f", real_field(score, "mean"));
    add_interval(score, "interval", 1, out);
    dt_text_add(out, "   (0: random search, 1: the optimum at once)\n");
    json_object_foreach((json_t *)json_object_get(object, "gap"), key, row)
    {
        dt_text_add(out, "best / optimum     %.4f", real_field(row, "mean"));
        add_interval(row, "interval", 1, out);
        dt_text_add(out, " after %s\n", key);
    }
    json_object_foreach((json_t *)json_object_get(object, "within"), key, row)
    {
        dt_text_add(out, "within %2s %%        %.0f %% of the repeats", key,
                    100 * real_field(row, "share"));
        if (json_is_number(json_object_get(row, "median_evals")))
            dt_text_add(out, ", half of them by evaluation %.4g", real_field(row, "median_evals"));
        dt_text_add(out, "\n");
    }
    dt_text_add(out, "ask + tell         %s median, %s at most, of processor time\n",
                dt_figure_of(1e-3 * real_field(times, "median")).text,
                dt_figure_of(1e-3 * real_field(times, "max")).text);
    if (real_field(times, "refits") > 0)
        dt_text_add(out, "refits             %.0f, %s median, %s at most\n",
                    real_field(times, "refits"),
                    dt_figure_of(1e-3 * real_field(times, "refit_median")).text,
                    dt_figure_of(1e-3 * real_field(times, "refit_max")).text);
}

static dt_status print_runs(const struct dt_options *options,
                            const struct dt_simulation *simulation, const struct dt_runs *runs)
{
    json_auto_t *object = NULL;
    struct dt_text text = {0};
    DT_TRY(simulation_json(simulation, runs, &object));
    json_object_set_new(object, "landscape", json_string(options->simulate.landscape));
    simulation_text(object, &text);
    return dt_print_either(options, DT_OK, json_incref(object), &text);
}

static dt_status simulate_strategy(const struct dt_options *options,
                                   struct dt_simulation simulation)
{
    struct dt_runs runs = {0};
    struct table_prior table = {0};
    const struct dt_prior prior = {
        .name = options->session.prior, .value = prior_value, .context = &table};
    dt_status status = DT_OK;
    if (options->session.prior != NULL && strcmp(options->session.prior, "cost") == 0)
        return dt_fail(DT_EUSAGE, "--prior cost needs a session: a table has no operations and "
                                  "bytes");
    if (options->session.prior != NULL && strcmp(options->session.prior, "none") != 0) {
        status = read_prior(options->session.prior, simulation.landscape, &table);
        simulation.prior = &prior;
    }
    if (status == DT_OK)
        status = dt_simulate(&simulation, &runs);
    if (status == DT_OK)
        status = print_runs(options, &simulation, &runs);
    dt_runs_fini(&runs);
    free(table.values);
    return status;
}

static json_t *raced_json(const struct dt_raced *raced)
{
    return json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:i, s:f, s:{s:I, s:I, s:I}}", "orders",
                     raced->orders, "plans", raced->plans, "repetition_time", raced->all,
                     "repetition_time_raced", raced->spent, "saved", raced->saved,
                     "repetitions_mean", raced->repetitions, "lost", raced->lost, "worst_loss",
                     raced->worst, "ended", "far_slower", (json_int_t)raced->ended[DT_RACE_DROP],
                     "slower", (json_int_t)raced->ended[DT_RACE_SLOWER], "measured",
                     (json_int_t)raced->ended[DT_RACE_ENOUGH]);
}

static dt_status race_strategies(const struct dt_options *options,
                                 const struct dt_simulation *simulation)
{
    struct dt_raced raced;
    struct dt_text text = {0};
    DT_TRY(dt_race_replay(simulation->landscape, simulation->repeats, simulation->evals,
                          simulation->seed, &raced));
    dt_raced_text(&raced, &text);
    return dt_print_either(options, DT_OK, raced_json(&raced), &text);
}

dt_status dt_command_simulate(const struct dt_options *options)
{
    struct dt_landscape *landscape = NULL;
    struct dt_simulation simulation = {.search = options->session.strategy,
                                       .seed = (uint64_t)options->job.seed,
                                       .spend = (double)options->simulate.spend_ns * 1e-9,
                                       .noise = options->simulate.replay_noise};
    if (options->simulate.landscape == NULL)
        return dt_fail(DT_EUSAGE, "'dittune simulate' needs --landscape FILE");
    DT_TRY(read_counts(options, &simulation));
    DT_TRY(dt_search_check(options->session.strategy));
    DT_TRY(dt_session_landscape(options->simulate.landscape, &landscape));
    simulation.landscape = landscape;
    dt_status status = options->simulate.racing ? race_strategies(options, &simulation)
                                                : simulate_strategy(options, simulation);
    dt_landscape_free(landscape);
    return status;
}
