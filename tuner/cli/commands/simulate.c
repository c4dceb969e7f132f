/* SPDX-License-Identifier: MIT */
#include "search/landscape/simulate.h"
#include "search/racing.h"
#include "tuner/cli/print.h"
#include "tuner/cli/report/report.h"
#include "tuner/session/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { EVALS_MOST = 100000, REPEATS_MOST = 100000, JOBS_MOST = 64 };
#define CELLS_MOST 50000000 /* of repeats x evaluations */

struct table_prior {
    const struct dt_landscape *landscape;
    double *values; /* of each entry */
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

static dt_status limit(const char *option, int64_t value, int64_t most, int *out)
{
    if (value < 1 || value > most)
        return dt_fail(DT_EUSAGE, "--%s is %lld, expected 1 to %lld", option, (long long)value,
                       (long long)most);
    *out = (int)value;
    return DT_OK;
}

static dt_status read_counts(const struct dt_options *options, struct dt_simulation *simulation)
{
    DT_TRY(limit("evals", options->simulate.evals, EVALS_MOST, &simulation->evals));
    DT_TRY(limit("repeats", options->simulate.repeats, REPEATS_MOST, &simulation->repeats));
    DT_TRY(limit("jobs", options->simulate.jobs, JOBS_MOST, &simulation->jobs));
    if ((int64_t)simulation->evals * simulation->repeats > CELLS_MOST)
        return dt_fail(DT_EUSAGE, "%d repeats of %d evaluations are more than %d evaluations",
                       simulation->repeats, simulation->evals, CELLS_MOST);
    return DT_OK;
}

static dt_status print(const struct dt_options *options, const struct dt_simulation *simulation,
                       const struct dt_runs *runs)
{
    json_t *object = NULL;
    struct dt_text text = {0};
    DT_TRY(dt_report_simulation(simulation, runs, &object));
    json_object_set_new(object, "landscape", json_string(options->simulate.landscape));
    if (options->print.json)
        return dt_print_json(object);
    dt_report_simulation_text(object, &text);
    json_decref(object);
    return dt_print_text(&text);
}

static dt_status simulate(const struct dt_options *options, struct dt_simulation simulation)
{
    struct dt_runs runs = {0};
    struct table_prior table = {0};
    const struct dt_prior prior = {
        .name = options->search.prior, .value = prior_value, .context = &table};
    dt_status status = DT_OK;
    if (options->search.prior != NULL && strcmp(options->search.prior, "cost") == 0)
        return dt_fail(DT_EUSAGE, "--prior cost needs a session: a table has no operations and "
                                  "bytes");
    if (options->search.prior != NULL && strcmp(options->search.prior, "none") != 0) {
        status = read_prior(options->search.prior, simulation.landscape, &table);
        simulation.prior = &prior;
    }
    if (status == DT_OK)
        status = dt_simulate(&simulation, &runs);
    if (status == DT_OK)
        status = print(options, &simulation, &runs);
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

static dt_status race(const struct dt_options *options, const struct dt_simulation *simulation)
{
    struct dt_raced raced;
    struct dt_text text = {0};
    DT_TRY(dt_race_replay(simulation->landscape, simulation->repeats, simulation->evals,
                          simulation->seed, &raced));
    if (options->print.json)
        return dt_print_json(raced_json(&raced));
    dt_raced_text(&raced, &text);
    return dt_print_text(&text);
}

dt_status dt_command_simulate(const struct dt_options *options)
{
    struct dt_landscape *landscape = NULL;
    struct dt_simulation simulation = {.search = options->search.name,
                                       .seed = (uint64_t)options->job.seed,
                                       .spend = (double)options->simulate.spend_ns * 1e-9,
                                       .noise = options->simulate.replay_noise};
    if (options->simulate.landscape == NULL)
        return dt_fail(DT_EUSAGE, "'dittune simulate' needs --landscape FILE");
    DT_TRY(read_counts(options, &simulation));
    DT_TRY(dt_search_check(options->search.name));
    DT_TRY(dt_session_landscape(options->simulate.landscape, &landscape));
    simulation.landscape = landscape;
    dt_status status =
        options->simulate.racing ? race(options, &simulation) : simulate(options, simulation);
    dt_landscape_free(landscape);
    return status;
}
