/* SPDX-License-Identifier: MIT */
/* The numbers of a recorded measurement, computed again from its raw samples by the functions
 * that judged it live. */
#include "base/figures.h"
#include "db/journal.h"
#include "tuner/cli/print.h"
#include "tuner/cli/report/report.h"
#include "tuner/session/record/session_json.h"
#include "tuner/session/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct analysis {
    const struct dt_options *options;
    struct dt_log *log;       /* a session's */
    struct dt_replay_run run; /* or a run's */
    json_t *plans;            /* the run's plans, an object for each */
    struct dt_text plan;      /* text of the last one */
    bool session, is_run;
    json_t *trials, *comparisons; /* results with --json; else text */
    struct dt_text trial_text, comparison_text;
    int trial_count, comparison_count;
    struct dt_clocks clocks; /* the first trial's, as in a session */
};

static void trial_text(const struct dt_result *result, int number_of_it, struct dt_text *out)
{
    const struct dt_summary *summary = &result->summary;
    dt_text_add(out, "trial %d: %s", number_of_it, dt_figure_of(summary->median).text);
    if (isfinite(summary->interval.low))
        dt_text_add(out, ", %.1f %% interval [%.6g, %.6g] ms", 100 * summary->level,
                    summary->interval.low * 1e3, summary->interval.high * 1e3);
    else
        dt_text_add(out, ", too few samples for an interval");
    dt_text_add(out, ", %d samples after %d warm-up steps; skew of %d ranks %s\n",
                result->samples.n, result->samples.start, result->ranks,
                dt_figure_of(result->samples.skew_seconds).text);
    dt_report_warnings(result, out);
}

static dt_status analyze_trial(const json_t *record, const char *what, struct analysis *analysis)
{
    DT_CLEANUP(dt_result_fini) struct dt_result result = {.throttling.clocks = &analysis->clocks};
    DT_TRY(dt_raw_read_samples(record, what, &result));
    DT_TRY(dt_raw_finish_trial(record, what, &result));
    DT_TRY(dt_clocks_learn(&analysis->clocks, &result));
    analysis->trial_count++;
    if (analysis->options->print.json)
        json_array_append_new(analysis->trials, dt_result_samples_json(&result));
    else
        trial_text(&result, analysis->trial_count, &analysis->trial_text);
    return DT_OK;
}

/* A recorded comparison: room for its entrants. */
struct rounds {
    int n;
    struct dt_sets sets; /* sets of fresh processes, until the decision */
    const char **roles;
    double (*values)[DT_ROUNDS_MOST];
    struct dt_judged *judged;
};

static void free_rounds(struct rounds *rounds)
{
    free(rounds->roles);
    free(rounds->values);
    free(rounds->judged);
}

static dt_status read_entrant(const json_t *entrant, const char *what, int i, struct rounds *rounds)
{
    struct dt_judged *judged = &rounds->judged[i];
    const char *outcome = "ok";
    DT_TRY(dt_json_string(entrant, what, "role", &rounds->roles[i]));
    if (dt_json_has(entrant, "decisive"))
        DT_TRY(dt_json_bool(entrant, what, "decisive", &judged->decisive));
    if (dt_json_has(entrant, "outcome"))
        DT_TRY(dt_json_string(entrant, what, "outcome", &outcome));
    DT_TRY(dt_raw_read_visits(entrant, what, rounds->values[i]));
    judged->out = strcmp(outcome, "ok") != 0;
    judged->twin = strcmp(rounds->roles[i], dt_entrant_role_text(DT_ENTRANT_TWIN)) == 0;
    judged->values = rounds->values[i];
    return DT_OK;
}

static dt_status read_rounds(const json_t *record, const char *what, struct rounds *rounds)
{
    json_t *entrants;
    DT_TRY(dt_json_array(record, what, "entrants", &entrants));
    rounds->n = (int)json_array_size(entrants);
    if (rounds->n < 2)
        return dt_fail(DT_EUSAGE, "%s: a comparison needs two 'entrants', here are %d", what,
                       rounds->n);
    DT_TRY(dt_raw_read_sets(record, what, &rounds->sets));
    rounds->roles = calloc((size_t)rounds->n, sizeof *rounds->roles);
    rounds->values = calloc((size_t)rounds->n, sizeof *rounds->values);
    rounds->judged = calloc((size_t)rounds->n, sizeof *rounds->judged);
    if (rounds->roles == NULL || rounds->values == NULL || rounds->judged == NULL)
        return dt_no_memory("for a comparison");
    for (int i = 0; i < rounds->n; i++)
        DT_TRY(read_entrant(json_array_get(entrants, (size_t)i), what, i, rounds));
    return DT_OK;
}

/* The rule of sessions: faster by less than the noise of entrant 0's twin is a tie. */
static const char *verdict_of(const struct rounds *rounds, int i)
{
    const struct dt_ratio *ratio = &rounds->judged[i].ratio;
    double margin = NAN;
    for (int k = 1; k < rounds->n; k++)
        if (rounds->judged[k].twin)
            margin = dt_judge_margin(&rounds->judged[k].ratio);
    return dt_judge_faster(ratio) && !dt_judge_beats(ratio, margin) ? "tie" : dt_judge_text(ratio);
}

static json_t *rounds_json(const struct rounds *rounds)
{
    json_t *entrants = json_array();
    for (int i = 0; i < rounds->n; i++) {
        const struct dt_ratio *ratio = &rounds->judged[i].ratio;
        json_array_append_new(entrants,
                              json_pack("{s:s, s:o, s:[o,o], s:i, s:i, s:s}", "role",
                                        rounds->roles[i], "ratio", dt_json_number(ratio->ratio),
                                        "interval", dt_json_number(ratio->interval.low),
                                        dt_json_number(ratio->interval.high), "pairs", ratio->pairs,
                                        "sets", ratio->sets, "verdict", verdict_of(rounds, i)));
    }
    return json_pack("{s:i, s:f, s:o}", "rounds", dt_sets_rounds(&rounds->sets), "interval_level",
                     dt_stats_set_level(rounds->sets.count), "entrants", entrants);
}

static void rounds_text(const struct rounds *rounds, int number_of_it, struct dt_text *out)
{
    dt_text_add(out, "comparison %d: %d rounds, %.1f %% intervals of the time against %s\n",
                number_of_it, dt_sets_rounds(&rounds->sets),
                100 * dt_stats_set_level(rounds->sets.count), rounds->roles[0]);
    for (int i = 1; i < rounds->n; i++) {
        const struct dt_ratio *ratio = &rounds->judged[i].ratio;
        dt_text_add(out, "  %s: ", rounds->roles[i]);
        if (isfinite(ratio->interval.high))
            dt_text_add(out, "%.4f [%.4f, %.4f], %d pairs: ", ratio->ratio, ratio->interval.low,
                        ratio->interval.high, ratio->pairs);
        dt_text_add(out, "%s\n", verdict_of(rounds, i));
    }
}

static dt_status analyze_comparison(const json_t *record, const char *what,
                                    struct analysis *analysis)
{
    DT_CLEANUP(free_rounds) struct rounds rounds = {0};
    DT_TRY(read_rounds(record, what, &rounds));
    analysis->comparison_count++;
    rounds.sets.count = dt_judge_sets(rounds.judged, rounds.n, &rounds.sets);
    if (analysis->options->print.json)
        json_array_append_new(analysis->comparisons, rounds_json(&rounds));
    else
        rounds_text(&rounds, analysis->comparison_count, &analysis->comparison_text);
    return DT_OK;
}

static dt_status analyze_record(struct analysis *analysis, const struct dt_journal_reader *reader)
{
    const json_t *record = reader->record;
    const char *kind;
    char what[4096 + 32];
    snprintf(what, sizeof what, "%s: line %d", analysis->options->words.rest[0], reader->line);
    DT_TRY(dt_json_string(record, what, "kind", &kind));
    bool first = analysis->trial_count + analysis->comparison_count == 0;
    bool session = strcmp(kind, "session") == 0, is_run = strcmp(kind, "run") == 0;
    if ((session && (analysis->is_run || !first)) || (is_run && (analysis->session || !first)))
        return dt_fail(DT_EUSAGE, "%s: the %s begins after records of others", what, kind);
    analysis->session = analysis->session || session;
    analysis->is_run = analysis->is_run || is_run;
    if (analysis->session)
        return dt_log_read(analysis->log, reader, what);
    if (analysis->is_run)
        return dt_replay_run_read(&analysis->run, reader, what);
    if (strcmp(kind, "trial") == 0)
        return analyze_trial(record, what, analysis);
    if (strcmp(kind, "comparison") == 0)
        return analyze_comparison(record, what, analysis);
    return DT_OK;
}

static dt_status print_analysis(struct analysis *analysis)
{
    struct dt_text *text = &analysis->trial_text;
    if (analysis->trial_count + analysis->comparison_count == 0)
        return dt_fail(DT_EUSAGE, "%s holds no record of a trial or a comparison",
                       analysis->options->words.rest[0]);
    dt_text_add(text, "%s", dt_text_at(&analysis->comparison_text));
    text->failed = text->failed || analysis->comparison_text.failed;
    return dt_print_either(
        analysis->options, DT_OK,
        json_pack("{s:O, s:O}", "trials", analysis->trials, "comparisons", analysis->comparisons),
        text);
}

static dt_status print_session(struct analysis *analysis)
{
    const struct dt_session *session = dt_log_session(analysis->log);
    struct dt_text text = {0};
    dt_log_read_end(analysis->log);
    if (!session->ended)
        dt_print_note("warning: %s has no end: its session was cut short",
                      analysis->options->words.rest[0]);
    dt_report_session(session, &text);
    return dt_print_either(analysis->options, DT_OK, dt_session_json(session), &text);
}

static void add_plan(void *context, const struct dt_result *result, const struct dt_result *one,
                     const struct dt_target *target)
{
    struct analysis *analysis = context;
    json_array_append_new(analysis->plans, dt_record_run(result, one, target));
    dt_text_clear(&analysis->plan);
    dt_report_run(result, one, target, &analysis->plan);
}

static void add_left_out(void *context, const struct dt_sweep *sweep, int value, const char *reason)
{
    struct analysis *analysis = context;
    json_array_append_new(analysis->plans, dt_record_left_out(sweep, value, reason));
}

dt_status dt_command_analyze(const struct dt_options *options)
{
    struct analysis analysis = {
        .options = options,
        .plans = json_array(),
        .trials = json_array(),
        .comparisons = json_array(),
        .run = {.context = &analysis, .measured = add_plan, .left_out = add_left_out}};
    struct dt_journal_reader reader = {.path = options->words.rest[0], .foreign = true};
    reader.status = dt_log_new(&analysis.log);
    while (dt_journal_next(&reader))
        reader.status = analyze_record(&analysis, &reader);
    dt_status status = dt_journal_end(&reader);
    if (status == DT_OK && analysis.is_run)
        status = dt_replay_run_end(&analysis.run);
    if (status == DT_OK)
        status = analysis.session  ? print_session(&analysis)
                 : analysis.is_run ? dt_print_run(&analysis.run.sweep, analysis.plans,
                                                  &analysis.plan, options->print.json)
                                   : print_analysis(&analysis);
    dt_replay_run_fini(&analysis.run);
    json_decref(analysis.plans);
    dt_text_fini(&analysis.plan);
    dt_log_free(analysis.log);
    dt_clocks_fini(&analysis.clocks);
    json_decref(analysis.trials);
    json_decref(analysis.comparisons);
    dt_text_fini(&analysis.trial_text);
    dt_text_fini(&analysis.comparison_text);
    return status;
}
