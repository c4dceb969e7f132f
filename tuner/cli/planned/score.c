/* SPDX-License-Identifier: MIT */
#include "tuner/cli/planned/score.h"

#include "base/figures.h"
#include "base/json.h"
#include "tuner/cli/export.h"
#include "tuner/cli/print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- predicting */

static bool same_job(const struct dt_measured_text *a, const struct dt_measured_text *b)
{
    return strcmp(a->table, b->table) == 0 && strcmp(a->gpu, b->gpu) == 0 &&
           strcmp(a->model, b->model) == 0;
}

static bool is_group(const struct dt_measured_row *a, const struct dt_measured_row *b)
{
    return same_job(&a->text, &b->text) && a->metric == b->metric;
}

/* Guidance is on where a plan of the same job splits it between devices, else where the row
 * and its card have it. */
static bool is_guided(const struct dt_timings *table, const struct dt_measured_row *of)
{
    for (int k = 0; k < table->count; k++)
        if (table->rows[k].degrees.cfg > 1 && same_job(&table->rows[k].text, &of->text))
            return true;
    return of->job.guided;
}

/* The row of fewest devices whose plan the rule of thumb prefers; of equal plans the fastest. */
static int anchor_of(const struct dt_timings *table, int i)
{
    int best = -1;
    for (int k = 0; k < table->count; k++) {
        const struct dt_measured_row *row = &table->rows[k];
        if (row->why != NULL || row->offloaded || !is_group(row, &table->rows[i]))
            continue;
        const struct dt_measured_row *before = best >= 0 ? &table->rows[best] : row;
        int devices = row->judged.prediction.devices - before->judged.prediction.devices;
        int rule = dt_predict_rule(&row->degrees, &before->degrees);
        if (best < 0 || devices < 0 ||
            (devices == 0 && (rule < 0 || (rule == 0 && row->seconds < before->seconds))))
            best = k;
    }
    return best;
}

static double own_seconds(const struct dt_measured_row *row)
{
    const struct dt_prediction *p = &row->judged.prediction;
    return row->metric == DT_METRIC_REQUEST ? p->request
           : row->metric == DT_METRIC_STEP  ? p->step
           : row->metric == DT_METRIC_VAE   ? p->vae
                                            : row->job.steps * p->step;
}

/* The table has the denoising time of the same plan too, which is scored in
 * place of the request's. */
static bool has_steps(const struct dt_timings *table, const struct dt_measured_row *of)
{
    for (int k = 0; k < table->count && of->metric == DT_METRIC_REQUEST; k++) {
        const struct dt_measured_row *row = &table->rows[k];
        if (row->metric == DT_METRIC_STEPS && row->why == NULL && same_job(&row->text, &of->text) &&
            dt_degrees_equal(&row->degrees, &of->degrees))
            return true;
    }
    return false;
}

static void judge_row(struct dt_timings *table, int i)
{
    struct dt_measured_row *row = &table->rows[i];
    struct dt_projection *judged = &row->judged;
    if (row->why != NULL || row->metric == DT_METRIC_VAE)
        return;
    judged->compared = !has_steps(table, row);
    judged->anchor = anchor_of(table, i);
    const struct dt_measured_row *anchor =
        judged->anchor >= 0 ? &table->rows[judged->anchor] : NULL;
    const struct dt_prediction *scaled = anchor != NULL ? &anchor->judged.prediction : NULL;
    judged->seconds =
        own_seconds(row) * (anchor != NULL ? anchor->seconds / own_seconds(anchor) : 1);
    bool unsure = row->unsure || judged->prediction.link == DT_LINK_network ||
                  (anchor != NULL && strcmp(row->text.engine, anchor->text.engine) != 0);
    judged->factor = dt_predict_factor(dt_predict_spread(&judged->prediction, scaled, unsure));
    judged->scored = anchor != NULL && anchor != row && !row->offloaded && judged->compared;
}

void dt_measured_predict(struct dt_timings *table)
{
    for (int i = 0; i < table->count; i++) {
        struct dt_measured_row *row = &table->rows[i];
        struct dt_predict_job job = row->job;
        job.guided = is_guided(table, row);
        row->judged = (struct dt_projection){.anchor = -1};
        if (row->known)
            dt_predict(&job, &row->degrees, &row->judged.prediction);
    }
    for (int i = 0; i < table->count; i++)
        judge_row(table, i);
}

/* ---- scores */

/* The least measured row of the plan, in the pair of `of`; of equal ones the first. */
static const struct dt_measured_row *least_of(const struct dt_timings *table,
                                              const struct dt_measured_row *of)
{
    const struct dt_measured_row *least = of;
    for (int k = 0; k < table->count; k++) {
        const struct dt_measured_row *row = &table->rows[k];
        if (row->why == NULL && is_group(row, of) &&
            dt_degrees_equal(&row->degrees, &of->degrees) &&
            (row->seconds < least->seconds || (row->seconds == least->seconds && row < least)))
            least = row;
    }
    return least;
}

/* Row k is of the pair of `of`, and the least measured of its plan. */
static bool in_pair(const struct dt_timings *table, int k, const struct dt_measured_row *of)
{
    const struct dt_measured_row *row = &table->rows[k];
    return row->why == NULL && is_group(row, of) &&
           row->judged.prediction.devices == of->judged.prediction.devices &&
           row == least_of(table, row);
}

/* The plan that the rule of thumb prefers among those whose predicted times tie with the least;
 * among equal ones the fastest. */
static const struct dt_measured_row *pick_row(const struct dt_timings *table,
                                              const struct dt_measured_row *of)
{
    const struct dt_measured_row *picked = NULL;
    double least = INFINITY;
    for (int k = 0; k < table->count; k++)
        if (table->rows[k].judged.seconds < least && in_pair(table, k, of))
            least = table->rows[k].judged.seconds;
    for (int k = 0; k < table->count; k++) {
        const struct dt_measured_row *row = &table->rows[k];
        if (row->judged.seconds > DT_PREDICT_TIE * least || !in_pair(table, k, of))
            continue;
        int rule = picked != NULL ? dt_predict_rule(&row->degrees, &picked->degrees) : -1;
        if (rule < 0 || (rule == 0 && row->judged.seconds < picked->judged.seconds))
            picked = row;
    }
    return picked;
}

bool dt_measured_pair(const struct dt_timings *table, int i, struct dt_scored_pair *pair)
{
    const struct dt_measured_row *of = &table->rows[i];
    double sum = 0;
    *pair = (struct dt_scored_pair){.first = of};
    if (!of->judged.compared)
        return false;
    for (int k = 0; k < table->count; k++) {
        const struct dt_measured_row *row = &table->rows[k];
        if (row->why != NULL || !is_group(row, of) ||
            row->judged.prediction.devices != of->judged.prediction.devices)
            continue;
        if (k < i)
            return false;
        if (row != least_of(table, row))
            continue;
        pair->plans++;
        sum += row->seconds;
        if (pair->best == NULL || row->seconds < pair->best->seconds)
            pair->best = row;
        if (pair->ruled == NULL || dt_predict_rule(&row->degrees, &pair->ruled->degrees) < 0)
            pair->ruled = row;
    }
    if (pair->plans < 2)
        return false;
    pair->picked = pick_row(table, of);
    pair->regret = pair->picked->seconds / pair->best->seconds - 1;
    pair->rule = pair->ruled->seconds / pair->best->seconds - 1;
    pair->random = sum / pair->plans / pair->best->seconds - 1;
    return true;
}

bool dt_measured_covered(const struct dt_measured_row *row)
{
    return row->seconds >= row->judged.seconds / row->judged.factor &&
           row->seconds <= row->judged.seconds * row->judged.factor;
}

static double error_of(const struct dt_measured_row *row)
{
    return row->judged.seconds / row->seconds - 1;
}

static void score_memory(const struct dt_measured_row *row, struct dt_scores *scores)
{
    double predicted = row->judged.prediction.memory_bytes,
           room = dt_rate_value(row->machine.memory);
    if (row->metric != DT_METRIC_REQUEST || !row->known || row->memory_bytes <= 0 || row->offloaded)
        return;
    scores->false_fits += predicted <= room && row->memory_bytes > room;
    if (isinf(row->memory_bytes))
        return;
    scores->memories++;
    scores->memories_right += fabs(predicted / row->memory_bytes - 1) <= 0.1;
}

/* Row i against each later one of its pair. */
static void score_ratios(const struct dt_timings *table, int i, struct dt_scores *scores)
{
    const struct dt_measured_row *a = &table->rows[i];
    if (!a->judged.compared || a->offloaded)
        return;
    for (int k = i + 1; k < table->count; k++) {
        const struct dt_measured_row *b = &table->rows[k];
        const struct dt_prediction *p = &a->judged.prediction, *q = &b->judged.prediction;
        if (!b->judged.compared || b->offloaded || p->devices != q->devices || !is_group(a, b) ||
            dt_degrees_equal(&a->degrees, &b->degrees) ||
            strcmp(a->text.engine, b->text.engine) != 0)
            continue;
        double factor = dt_predict_factor(dt_predict_ratio_spread(p, q, a->unsure != b->unsure));
        double predicted = own_seconds(a) / own_seconds(b), measured = a->seconds / b->seconds;
        bool told = predicted > factor || predicted < 1 / factor;
        scores->ratios++;
        scores->ratios_covered += measured <= predicted * factor && measured >= predicted / factor;
        scores->told += told;
        scores->told_right += told && (predicted > 1) == (measured > 1);
    }
}

static int ascending_errors(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void dt_measured_score(const struct dt_timings *table, const char *name, struct dt_scores *scores)
{
    for (int i = 0; i < table->count; i++) {
        const struct dt_measured_row *row = &table->rows[i];
        struct dt_scored_pair pair;
        if (name != NULL && strcmp(row->text.table, name) != 0)
            continue;
        score_memory(row, scores);
        score_ratios(table, i, scores);
        if (dt_measured_pair(table, i, &pair)) {
            scores->pairs++;
            scores->right += pair.regret <= 0.03;
            scores->worse += pair.regret > pair.rule + 1e-9;
            scores->regret += pair.regret;
            scores->rule += pair.rule;
            scores->random += pair.random;
        }
        if (!row->judged.scored || scores->count == DT_MEASURED_ROWS)
            continue;
        scores->errors[scores->count++] = fabs(error_of(row));
        scores->within_30 += fabs(error_of(row)) <= 0.3;
        scores->covered += dt_measured_covered(row);
    }
    qsort(scores->errors, (size_t)scores->count, sizeof scores->errors[0], ascending_errors);
}

double dt_scores_error(const struct dt_scores *scores, double share)
{
    return scores->count > 0 ? scores->errors[(int)(share * (scores->count - 1) + 0.5)] : NAN;
}

/* ---- printing */

static void add_degrees(const struct dt_degrees *d, struct dt_text *out)
{
#define DT_PREDICT_DEGREE(name) json_object_set_new(plan, #name, json_integer(d->name));
    json_auto_t *plan = json_object();
    DT_PREDICT_DEGREE_ROWS
#undef DT_PREDICT_DEGREE
    dt_export_add_degrees(plan, out);
}

static json_t *add_pairs(const struct dt_timings *table, struct dt_text *out)
{
    json_t *list = json_array();
    dt_text_add(out, "%-6s %-22s %7s %5s  %8s %8s %8s  %s\n", "table", "device", "devices", "plans",
                "plan, %", "rule, %", "random, %", "predicted best / measured best");
    for (int i = 0; i < table->count; i++) {
        struct dt_scored_pair pair;
        if (!dt_measured_pair(table, i, &pair))
            continue;
        const struct dt_measured_text *text = &pair.first->text;
        int devices = pair.first->judged.prediction.devices;
        dt_auto_text picked = {0}, fastest = {0};
        add_degrees(&pair.picked->degrees, &picked);
        add_degrees(&pair.best->degrees, &fastest);
        dt_text_add(out, "%-6s %-22.22s %7d %5d  %8.1f %8.1f %8.1f   %s / %s\n", text->table,
                    text->gpu, devices, pair.plans, 100 * pair.regret, 100 * pair.rule,
                    100 * pair.random, dt_text_at(&picked), dt_text_at(&fastest));
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:f}", "table", text->table, "device",
                            text->gpu, "devices", devices, "plans", pair.plans, "regret",
                            pair.regret, "rule_regret", pair.rule, "random_regret", pair.random));
    }
    return list;
}

static json_t *add_times(const struct dt_timings *table, struct dt_text *out)
{
    json_t *list = json_array();
    dt_text_add(out, "\n%-6s %-22s %7s  %-28s %10s %10s %7s  %s\n", "table", "device", "devices",
                "plan", "measured, s", "predicted, s", "error", "80 % interval");
    for (int i = 0; i < table->count; i++) {
        const struct dt_measured_row *row = &table->rows[i];
        const struct dt_measured_text *text = &row->text;
        if (!row->judged.scored)
            continue;
        dt_auto_text name = {0};
        bool covered = dt_measured_covered(row);
        int devices = row->judged.prediction.devices;
        add_degrees(&row->degrees, &name);
        dt_text_add(out, "%-6s %-22.22s %7d  %-28s %10.4g %10.4g %+6.1f%%  %s\n", text->table,
                    text->gpu, devices, dt_text_at(&name), row->seconds, row->judged.seconds,
                    100 * error_of(row), covered ? "holds it" : "misses it");
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:s, s:f, s:f, s:b}", "table",
                                              text->table, "device", text->gpu, "devices", devices,
                                              "plan", dt_text_at(&name), "measured_seconds",
                                              row->seconds, "predicted_seconds",
                                              row->judged.seconds, "covered", covered));
    }
    return list;
}

static bool left_out_alike(const struct dt_measured_row *a, const struct dt_measured_row *b)
{
    return a->why != NULL && b->why != NULL && strcmp(a->why, b->why) == 0 &&
           strcmp(a->text.metric, b->text.metric) == 0 && strcmp(a->text.gpu, b->text.gpu) == 0 &&
           strcmp(a->text.model, b->text.model) == 0;
}

/* One line for rows alike. */
static void add_left_out(const struct dt_timings *table, struct dt_text *out)
{
    for (int i = 0; i < table->count; i++) {
        const struct dt_measured_row *row = &table->rows[i];
        int before = 0, alike = 0;
        for (int k = 0; k < table->count; k++) {
            before += k < i && left_out_alike(row, &table->rows[k]);
            alike += left_out_alike(row, &table->rows[k]);
        }
        if (row->why == NULL || before > 0)
            continue;
        dt_text_add(out, "not scored, line %d", row->text.line);
        if (alike > 1)
            dt_text_add(out, " and %d more", alike - 1);
        dt_text_add(out, " (%.60s, %.30s, %.30s): %s\n", row->text.model, row->text.gpu,
                    row->text.metric, row->why);
    }
}

/* One line for rows of a model's text whose size the model cannot have. */
static void add_moved(const struct dt_timings *table, struct dt_text *out)
{
    for (int i = 0; i < table->count; i++) {
        const struct dt_measured_row *row = &table->rows[i];
        int before = 0;
        for (int k = 0; k < i; k++)
            before +=
                table->rows[k].moved && strcmp(table->rows[k].text.model, row->text.model) == 0;
        if (row->moved && row->why == NULL && before == 0)
            dt_text_add(out,
                        "scored at %lldx%lld, the nearest size that the model takes, line %d "
                        "(%.60s)\n",
                        (long long)row->job.size.width, (long long)row->job.size.height,
                        row->text.line, row->text.model);
    }
}

static void add_sums(const struct dt_scores *scores, struct dt_text *out)
{
    dt_text_add(
        out,
        "\nwinners: %d of %d pairs right or within 3 %%, %d of more regret than the rule of "
        "thumb\ntimes after one measured row: median error %.1f %%, nine of ten within "
        "%.1f %%, %d of %d within 30 %%; the 80 %% intervals hold %d of %d\nratios of two "
        "plans of as many devices: the 80 %% intervals hold %d of %d; where they leave out 1, "
        "%d of %d are on the right side\nmemory: %d of %d within 10 %%, %d false fits\n",
        scores->right, scores->pairs, scores->worse, 100 * dt_scores_error(scores, 0.5),
        100 * dt_scores_error(scores, 0.9), scores->within_30, scores->count, scores->covered,
        scores->count, scores->ratios_covered, scores->ratios, scores->told_right, scores->told,
        scores->memories_right, scores->memories, scores->false_fits);
}

static dt_status print_scores(const struct dt_options *options, const struct dt_timings *table)
{
    struct dt_scores scores = {.pairs = 0};
    struct dt_text text = {0};
    dt_measured_score(table, NULL, &scores);
    if (scores.count == 0) {
        dt_auto_text why = {0};
        add_left_out(table, &why);
        return dt_fail(DT_EUSAGE,
                       "%s has no row to score: two rows of one table, device and model are "
                       "needed, of which one is the measured time that scales the other\n%s",
                       table->path, dt_text_at(&why));
    }
    json_t *pairs = add_pairs(table, &text), *times = add_times(table, &text);
    add_left_out(table, &text);
    add_moved(table, &text);
    add_sums(&scores, &text);
    json_t *answer = json_pack(
        "{s:o, s:o, s:i, s:i, s:i, s:f, s:f, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}",
        "pairs", pairs, "times", times, "right", scores.right, "of", scores.pairs,
        "worse_than_rule", scores.worse, "median_error", dt_scores_error(&scores, 0.5),
        "ninth_error", dt_scores_error(&scores, 0.9), "within_30", scores.within_30, "covered",
        scores.covered, "scored", scores.count, "ratios_covered", scores.ratios_covered, "ratios",
        scores.ratios, "told_right", scores.told_right, "told", scores.told, "memories_right",
        scores.memories_right, "memories", scores.memories, "false_fits", scores.false_fits);
    return dt_print_either(options, DT_OK, answer, &text);
}

dt_status dt_score_table(const struct dt_options *options, const char *path)
{
    struct dt_timings table;
    DT_TRY(dt_measured_read(path, &table));
    dt_measured_predict(&table);
    dt_status status = print_scores(options, &table);
    dt_measured_fini(&table);
    return status;
}
