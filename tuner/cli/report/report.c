/* SPDX-License-Identifier: MIT */
#include "tuner/cli/report/report.h"

#include "base/columns.h"
#include "base/figures.h"
#include "tuner/cli/lookup/show.h"
#include "tuner/cli/words.h"
#include "tuner/session/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define INDENT 10 /* indent of plans */

/* ---- plans in rows that fit 80 columns: a column has one unit, and each plan is on an indented
 * line below its figures */

struct dt_table_row {
    const char *role;
    const struct dt_result *result;   /* a failure's row says why */
    const struct dt_entrant *entrant; /* with its ratio to the default; NULL: there is none */
};

struct table {
    const struct dt_target *target;
    struct dt_unit time, memory; /* units of all rows */
    struct dt_text *out;
};

static bool row_measured(const struct dt_table_row *row)
{
    return row->result != NULL &&
           (row->result->outcome == DT_TRIAL_OK || row->result->outcome == DT_TRIAL_SLOW);
}

/* The units in which the smallest figures have at least one digit before the point; false: no plan
 * was measured. */
static bool choose_units(struct table *table, const struct dt_table_row rows[], int n)
{
    double seconds = INFINITY, bytes = INFINITY;
    bool any = false;
    for (int i = 0; i < n; i++)
        if (row_measured(&rows[i])) {
            any = true;
            seconds = fmin(seconds, table->target->objective->metric != NULL
                                        ? rows[i].result->facts.cold_seconds
                                        : rows[i].result->summary.median);
            bytes = fmin(bytes, (double)rows[i].result->facts.peak_bytes);
        }
    table->time = dt_figure_time_unit(seconds);
    table->memory = dt_figure_bytes_unit(fmax(bytes, 1024));
    return any;
}

/* Nothing without pairs. */
static void add_ratio(const struct dt_entrant *entrant, struct dt_text *out)
{
    if (entrant != NULL && entrant->ratio.pairs > 0)
        dt_figure_ratio(1 / entrant->ratio.ratio, 1 / entrant->ratio.interval.high,
                        1 / entrant->ratio.interval.low, out);
}

/* Where batches differ the objective is what compares, and takes the place of
 * the step's interval. */
static bool shows_objective(const struct table *table)
{
    return table->target->objective->one_batch == 0;
}

static void add_header(const struct table *table)
{
    char step[40], cold[24], memory[24];
    const char *metric = table->target->objective->metric;
    if (metric != NULL)
        snprintf(step, sizeof step, "%s", metric);
    else
        snprintf(step, sizeof step, "step, %s", table->time.name);
    snprintf(cold, sizeof cold, "cold, %s", table->time.name);
    snprintf(memory, sizeof memory, "memory, %s", table->memory.name);
    if (shows_objective(table))
        dt_text_add(table->out, "%*s%15s  %-22s%9s%9s%13s\n", INDENT, "",
                    table->target->objective->unit, "speed against default", step, cold, memory);
    else
        dt_text_add(table->out, "%*s%8s  %-16s %-22s%8s%13s\n", INDENT, "", step, "interval",
                    "speed against default", cold, memory);
}

static void add_figures(const struct table *table, const struct dt_table_row *row)
{
    const struct dt_result *result = row->result;
    const struct dt_objective *objective = table->target->objective;
    double step = result->summary.median, unit = table->time.size;
    double slowest = dt_result_slowest(result);
    double memory = rint((double)result->facts.peak_bytes / table->memory.size * 10) / 10;
    struct dt_figure cold = dt_figure_number(result->facts.cold_seconds / unit);
    dt_auto_text ratio = {0};
    add_ratio(row->entrant, &ratio);
    dt_text_add(table->out, "%-*s", INDENT, row->role);
    if (shows_objective(table)) {
        double value = dt_objective_shown(objective, step, dt_result_images(result),
                                          result->devices, table->target->image.sampler_steps);
        dt_text_add(table->out, "%15s  %-22s%9s%9s", dt_figure_number(value).text,
                    dt_text_at(&ratio), dt_figure_number(slowest / unit).text, cold.text);
    } else {
        struct dt_interval interval = result->summary.interval;
        bool inverse = objective->metric != NULL;
        char range[72] = "[-, -]";
        if (dt_figure_tells(interval.low, interval.high))
            snprintf(range, sizeof range, "[%s, %s]",
                     dt_figure_number(inverse ? 1 / interval.high : interval.low / unit).text,
                     dt_figure_number(inverse ? 1 / interval.low : interval.high / unit).text);
        dt_text_add(table->out, "%8s  %-16s %-22s%8s",
                    dt_figure_number(inverse ? 1 / step : step / unit).text, range,
                    dt_text_at(&ratio), cold.text);
    }
    dt_text_add(table->out, "%13s\n", dt_figure_number(memory).text);
}

static void add_row(const struct table *table, const struct dt_table_row *row)
{
    dt_auto_text line = {0};
    if (row->result == NULL)
        return;
    if (row_measured(row)) {
        add_figures(table, row);
        dt_text_add(&line, "%*s", INDENT, "");
        if (table->target->foreign) /* whose defaults nobody knows by heart */
            dt_point_text(table->target->space, &row->result->point, &line);
        else
            dt_point_short(table->target->space, &row->result->point, &line);
        if (dt_result_parts(row->result) > 1) {
            dt_text_add(&line, "; ");
            dt_result_replicas_text(row->result, &line);
        }
    } else {
        dt_text_add(&line, "%-*s %s%s%s", INDENT, row->role, dt_outcome_text(row->result->outcome),
                    row->result->cause[0] != '\0' ? ": " : "", row->result->cause);
    }
    dt_text_add(&line, "\n");
    dt_columns_wrap(dt_text_at(&line), DT_COLUMNS_USUAL, INDENT, table->out);
}

/* ---- sentences */

/* An entrant whose ratio is speed against the default; NULL otherwise. */
static const struct dt_entrant *judged_entrant(const struct dt_session *session,
                                               const struct dt_entrant *entrant)
{
    return dt_session_against_default(session) ? entrant : NULL;
}

static struct dt_table_row known_row(const struct dt_session *session, enum dt_entrant_role role)
{
    return (struct dt_table_row){dt_entrant_role_text(role), dt_session_role(session, role),
                                 judged_entrant(session, dt_session_entrant(session, role))};
}

/* A known plan that is the default has no row of its own. */
static bool same_plan(const struct dt_session *session, enum dt_entrant_role role)
{
    const struct dt_target *target = session->target;
    const struct dt_point *point =
        role == DT_ENTRANT_BASELINE ? &target->baseline : &target->documented.point;
    return dt_point_equal(target->space, point, &target->fallback);
}

/* Adds the worker's remarks on the runs of a row's plan, unless a row before
 * has the same result. */
static void add_remarks(const struct dt_table_row rows[], size_t at, struct dt_text *out)
{
    const struct dt_result *result = rows[at].result;
    for (size_t i = 0; i < at; i++)
        if (rows[i].result == result)
            return;
    for (int k = 0; result != NULL && k < dt_remarks_count(result->report.remarks); k++) {
        dt_text_add(out, "warning: %s: ", rows[at].role);
        dt_remarks_text(result->report.remarks, k, out);
        dt_text_add(out, "\n");
    }
}

static void add_table(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_entrant *candidate = dt_session_candidate(session),
                            *best = session->finals.best >= 0
                                        ? &session->finals.entrants[session->finals.best]
                                        : NULL;
    const struct dt_result *shown = dt_session_best(session);
    bool stored = shown == NULL || shown->outcome != DT_TRIAL_LIMIT;
    const struct dt_table_row rows[] = {
        {stored ? dt_words_role(session->verdict) : "tried", shown, judged_entrant(session, best)},
        known_row(session, DT_ENTRANT_DEFAULT),
        same_plan(session, DT_ENTRANT_BASELINE)
            ? (struct dt_table_row){dt_entrant_role_text(DT_ENTRANT_BASELINE), NULL, NULL}
            : known_row(session, DT_ENTRANT_BASELINE),
        same_plan(session, DT_ENTRANT_DOCUMENTED)
            ? (struct dt_table_row){dt_entrant_role_text(DT_ENTRANT_DOCUMENTED), NULL, NULL}
            : known_row(session, DT_ENTRANT_DOCUMENTED),
        known_row(session, DT_ENTRANT_AGAINST),
        {dt_entrant_role_text(DT_ENTRANT_CANDIDATE), candidate != NULL ? &candidate->result : NULL,
         judged_entrant(session, candidate)},
        {"best trial", dt_session_uncompared(session), NULL},
    };
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct table table = {.target = session->target, .out = out};
    if (choose_units(&table, rows, ROWS))
        add_header(&table);
    for (int i = 0; i < ROWS; i++)
        add_row(&table, &rows[i]);
    for (size_t i = 0; i < ROWS; i++)
        add_remarks(rows, i, out);
}

/* The noise within the rounds. */
static void add_noise(const struct dt_session *session, struct dt_text *out)
{
    struct dt_noise noise = dt_session_noise(session);
    dt_auto_text note = {0};
    if (noise.pairs > 0) {
        dt_text_add(out, "Noise floor: ");
        dt_words_noise(noise.margin, out);
        dt_text_add(out, ".\n");
    }
    dt_session_noise_note(session, &note);
    if (note.size > 0)
        dt_text_add(out, noise.pairs > 0 ? "warning: %s\n" : "Noise floor: not known, as %s.\n",
                    dt_text_at(&note));
}

static void add_throttled(const struct dt_session *session, struct dt_text *out)
{
    int n = 0, all = 0;
    for (int i = 0; i < session->count; i++) {
        n += session->trials[i].throttling.count > 0;
        all += session->trials[i].throttling.all;
    }
    for (int i = 0; i < session->finals.entrant_count; i++)
        n += session->finals.entrants[i].result.throttling.count > 0;
    if (n > 0)
        dt_text_add(out,
                    "warning: throttled: in %d trials or plans of the final comparison samples "
                    "were taken below 95 %% of the session's clock (in %d trials all of them)\n",
                    n, all);
}

/* How the final comparison was made where its plans did not fit beside each other. */
static void add_company(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_sets *sets = &session->finals.sets;
    if (sets->company == DT_ALL_TOGETHER)
        return;
    dt_text_add(out,
                "%s: %s. Plans were loaded %d "
                "times.\n",
                session->target->worker.alone
                    ? "Servers have the machine one at a time"
                    : "The compared plans do not fit into memory together",
                sets->company == DT_IN_PAIRS
                    ? "each was measured in turn with the first of them, two at a time"
                    : "one was loaded at a time, in orders that mirror each other",
                sets->loads);
}

/* Once each, of all plans of the final comparison. */
static void add_lowered_clocks(const struct dt_session *session, struct dt_text *out)
{
    dt_auto_text names = {0};
    for (int i = 0; i < session->finals.entrant_count; i++) {
        const struct dt_reasons reasons =
            dt_device_report_reasons(&session->finals.entrants[i].result);
        for (int k = 0; k < reasons.count; k++)
            if (strstr(dt_text_at(&names), reasons.at[k]) == NULL)
                dt_text_add(&names, "%s%s", names.size > 0 ? ", " : "", reasons.at[k]);
    }
    if (names.size > 0)
        dt_text_add(out, "Clocks of GPUs were lowered in the final comparison: %s.\n",
                    dt_text_at(&names));
}

/* Which search it was, why, and why it stopped. */
static void add_search(const struct dt_session *session, struct dt_text *out)
{
    if (session->search.name[0] != '\0')
        dt_text_add(out, "Search: %s (%s)", session->search.name, session->search.why);
    if (session->search.name[0] != '\0' && session->search.prior[0] != '\0')
        dt_text_add(out, "; prior: %s", session->search.prior);
    if (session->search.note[0] != '\0')
        dt_text_add(out, session->search.stopped ? "\nStopped early: %.*s." : "; at its end: %.*s",
                    (int)dt_explore_clause(session->search.note), session->search.note);
    dt_text_add(out, session->search.name[0] != '\0' ? "\n\n" : "\n");
}

static void add_counts(const struct dt_session *session, struct dt_text *out)
{
    int failed, tried = dt_session_tried_count(session, &failed);
    const char *hardware = dt_target_hardware(session->target);
    const struct dt_objective *objective = session->target->objective;
    const char *step = session->target->image.step;
    /* --time of a command; "" for another worker. */
    const char *time = dt_json_text_at(dt_command_job(session->target->identity.key), "time");
    bool timed = objective->one_batch && objective->metric == NULL;
    if (time[0] != '\0' && strcmp(time, "wall") != 0)
        step = "step"; /* that the command printed */
    dt_text_add(out, "\n%s; objective: %s%s%s%s%s\n%d of ", session->target->identity.title,
                objective->metric != NULL ? "max " : "", objective->doc,
                !timed         ? ""
                : step != NULL ? step
                               : "denoising step",
                hardware != NULL ? "; on " : "", hardware != NULL ? hardware : "", tried);
    dt_target_plans(session->target, out);
    const struct dt_figure elapsed = dt_figure_of(dt_seconds_of(session->closing.elapsed_ns));
    dt_text_add(out, " tried, %d failed, %s\n", failed,
                session->ended ? elapsed.text : "cut short before its end");
    dt_auto_text skipped = {0};
    dt_session_skipped(session, &skipped);
    if (skipped.size > 0)
        dt_text_add(out, "Left out: %s.\n", dt_text_at(&skipped));
}

bool dt_report_whole_image(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_image_work *image = &session->target->image;
    const struct dt_result *best = dt_session_best(session);
    if (!image->known || best == NULL || !(best->summary.median > 0))
        return false;
    double step = best->summary.median;
    double whole = dt_target_image_seconds(session->target, step, best->batch);
    dt_auto_text gain = {0};
    /* a gain of steps is less of a whole image: text encoder and VAE are the same with each plan */
    double part = image->sampler_steps * step / whole;
    if (session->verdict == DT_VERDICT_FASTER && session->finals.best >= 0) {
        const struct dt_gain steps = dt_session_gain(session);
        dt_text_add(&gain, ", ");
        dt_figure_ratio(1 + part * (steps.ratio - 1), 1 + part * (steps.interval.low - 1),
                        1 + part * (steps.interval.high - 1), &gain);
        dt_text_add(&gain, " times as fast as with the %s",
                    steps.over != NULL ? "documented plan" : "default");
    }
    dt_report_image(session->target, best, dt_text_at(&gain), out);
    return true;
}

/* Adds the limits of the best plan's verification, and how its whole image differs. */
static void add_verification(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_result *best = dt_session_best(session);
    dt_auto_text blind = {0}, image = {0};
    dt_target_blind(session->target, &blind);
    const struct dt_result *trial = best != NULL ? dt_session_trial(session, &best->point) : NULL;
    if (trial != NULL)
        dt_report_image_error(trial, &image);
    if (blind.size > 0)
        dt_text_add(out, "note: %s\n", dt_text_at(&blind));
    if (image.size > 0)
        dt_text_add(out, "Output of the best plan: right in its first steps%s\n",
                    dt_text_at(&image));
}

static void add_extreme(const struct dt_result *result, const struct dt_target *target,
                        struct dt_text *out)
{
    int ranks = dt_target_ranks(target, &result->point);
    dt_text_add(out, "%d replica%s of %d rank%s: %s images/s, %s a step", result->replicas,
                result->replicas == 1 ? "" : "s", ranks, ranks == 1 ? "" : "s",
                dt_figure_number(dt_result_images_per_second(result, target)).text,
                dt_figure_of(dt_result_slowest(result)).text);
}

/* Adds the trade of replicas: images a second against the time of a step. */
static void add_extremes(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_extremes extremes = dt_session_extremes(session);
    if (extremes.many == NULL)
        return;
    dt_text_add(out, "Extremes at batch %d: ", extremes.many->batch);
    add_extreme(extremes.many, session->target, out);
    dt_text_add(out, "; ");
    add_extreme(extremes.single, session->target, out);
    if (extremes.after > 0)
        dt_text_add(out, "; their images/s cross between batch %d and %d", extremes.before,
                    extremes.after);
    dt_text_add(out, "\n");
}

/* All but the look-up, whose command is one line to be pasted. */
static void add_report(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_result *best = dt_session_best(session);
    const struct dt_measured fallback = dt_words_fallback(session);
    struct dt_stored_load load = dt_session_load(session);
    dt_auto_text image = {0};
    add_counts(session, out);
    add_search(session, out);
    size_t before = out->size;
    add_table(session, out);
    if (out->size > before)
        dt_text_add(out, "\n");
    dt_text_add(out, "How sure: ");
    dt_words_sure(session, out);
    dt_text_add(out, "\n");
    add_extremes(session, out);
    before = out->size;
    dt_words_default(&fallback, out);
    dt_text_add(out, out->size > before ? "\n" : "");
    before = out->size;
    dt_words_documented(session, out);
    dt_text_add(out, out->size > before ? "\n" : "");
    add_company(session, out);
    if (session->finals.sets.count > 0 &&
        load.known) { /* else there is nothing to say of the result */
        dt_text_add(out, "Load: ");
        dt_words_load(&load, out);
        dt_text_add(out, ".\n");
    }
    add_lowered_clocks(session, out);
    for (int i = 0; i < session->finals.tie_count && session->verdict == DT_VERDICT_FASTER; i++) {
        dt_text_add(out, "Tied with the best in the shoot-out: ");
        dt_point_short(session->target->space, &session->finals.ties[i], out);
        dt_text_add(out, "\n");
    }
    if (dt_report_whole_image(session, &image))
        dt_text_add(out, "%s%s\n",
                    session->target->image.is_image ? "" : "A whole image: ", dt_text_at(&image));
    add_verification(session, out);
    add_noise(session, out);
    add_throttled(session, out);
    for (int i = 0; i < session->unverified_count; i++)
        dt_text_add(out,
                    "warning: outputs at batch %d were not verified: the reference failed: %s\n",
                    session->unverified[i].batch, session->unverified[i].cause);
    if (best != NULL)
        dt_report_cold(best, dt_session_role(session, DT_ENTRANT_BASELINE), session->target, out);
}

void dt_report_session(const struct dt_session *session, struct dt_text *out)
{
    dt_auto_text text = {0};
    add_report(session, &text);
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, 0, out);
}
