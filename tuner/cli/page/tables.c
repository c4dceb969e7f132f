/* SPDX-License-Identifier: MIT */
/* The tables: those of the plans and the machine, the data behind each figure, and what differs
 * between two sessions. */
#include "base/figures.h"
#include "base/json.h"
#include "search/bayes/importance.h"
#include "tuner/cli/page/page_int.h"
#include "tuner/cli/words.h"
#include "tuner/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RUNNERS_UP = 3, TRIALS_MOST = 200, FRONT_MOST = 256 };

static void plan_cell(const struct page_view *view, struct page_pen *pen,
                      const struct dt_point *point)
{
    dt_auto_text plan = {0};
    dt_page_plan(view, point, &plan);
    dt_pen_cell(pen, "%s", dt_text_at(&plan));
}

/* ---- plans */

/* The table of plans; those that have a row already. */
struct plans {
    const struct page_view *view;
    struct page_pen *pen;
    const struct dt_point *listed[DT_ENTRANTS + RUNNERS_UP + 2];
    int count;
};

static bool is_listed(const struct plans *plans, const struct dt_point *point)
{
    for (int i = 0; i < plans->count; i++)
        if (dt_point_equal(plans->view->session->target->space, plans->listed[i], point))
            return true;
    return false;
}

/* Devices times the time that the row shows, which is of a step, of an image and step, or device
 * time already. */
static double device_seconds(const struct page_view *view, const struct dt_result *result,
                             double shown)
{
    const struct dt_objective *objective = view->session->target->objective;
    double images = objective->one_batch ? 1 : dt_result_images(result);
    if (objective->metric != NULL)
        return NAN;
    return shown * result->devices / images /
           objective->value(1, objective->one_batch ? 1 : dt_result_images(result),
                            result->devices);
}

static void add_speed(struct page_pen *pen, const struct dt_ratio *ratio)
{
    dt_auto_text speed = {0};
    if (ratio != NULL && ratio->pairs > 0) {
        dt_text_add(&speed, "%.3f (", 1 / ratio->ratio);
        dt_figure_range(1 / ratio->interval.high, 1 / ratio->interval.low, &speed);
        dt_text_add(&speed, ")");
    }
    dt_pen_cell(pen, "%s", speed.size > 0 ? dt_text_at(&speed) : "-");
}

/* result: of the final comparison, or a trial's. speed: NULL when it was not compared. */
static void add_plan(struct plans *plans, const char *role, const struct dt_result *result,
                     const struct dt_ratio *speed)
{
    const struct page_view *view = plans->view;
    struct page_pen *pen = plans->pen;
    struct dt_trial trial = dt_result_trial(result, view->session->target);
    const struct dt_result *first = dt_session_trial(view->session, &result->point);
    bool final = result != first;
    dt_pen_cell(pen, "%s", role);
    plan_cell(view, pen, &result->point);
    dt_pen_figure(pen, final ? dt_page_shown(view, trial.value) : NAN);
    double low = dt_page_shown(view, trial.low), high = dt_page_shown(view, trial.high);
    dt_pen_range(pen, final ? fmin(low, high) : NAN, fmax(low, high));
    add_speed(pen, speed);
    dt_pen_figure(pen, first != NULL && first->samples.n > 0
                           ? dt_page_shown(view, dt_session_value(view->session, first))
                           : NAN);
    if (!view->session->target->objective->one_batch)
        dt_pen_figure(pen, result->summary.median / view->time.size);
    dt_pen_figure(pen, result->facts.peak_bytes > 0
                           ? (double)result->facts.peak_bytes / view->memory.size
                           : NAN);
    dt_pen_cell(pen, "%d", result->devices);
    dt_pen_figure(pen, device_seconds(view, result, trial.value));
    plans->listed[plans->count++] = &result->point;
}

static void add_entrants(struct plans *plans)
{
    const struct dt_session *session = plans->view->session;
    bool against = dt_session_against_default(session);
    for (int k = -1; k < session->finals.entrant_count; k++) {
        int i = k < 0 ? session->finals.best : k;
        const struct dt_entrant *entrant = i >= 0 ? &session->finals.entrants[i] : NULL;
        if (entrant == NULL || dt_entrant_twin(entrant) || entrant->result.samples.n == 0 ||
            (k >= 0 && k == session->finals.best))
            continue;
        char role[48];
        const char *stored = dt_words_role(session->verdict);
        snprintf(role, sizeof role, "%s%s%s", dt_entrant_role_text(entrant->role),
                 k < 0 ? ", " : "", k < 0 ? stored : "");
        add_plan(plans, k < 0 && entrant->role == DT_ENTRANT_CANDIDATE ? stored : role,
                 &entrant->result, against ? &entrant->ratio : NULL);
    }
}

void dt_page_plans(const struct page_view *view, struct page_pen *pen)
{
    const struct dt_session *session = view->session;
    struct plans plans = {.view = view, .pen = pen};
    char step[40] = "", caption[128];
    bool alone = session->target->objective->one_batch;
    snprintf(caption, sizeof caption, "Plans, with %.0f %% intervals of the speed",
             100 * dt_page_level(session));
    if (!alone)
        snprintf(step, sizeof step, ">a step, %s|", view->time.name);
    dt_pen_table(pen, "", caption,
                 "role|~plan|>%s|>its interval|>speed against the default|>in its trial, %s|%s>"
                 "memory of a rank, %s|>devices|>device-seconds %s",
                 view->axis, view->time.name, step, view->memory.name,
                 alone ? "a step" : "per image and step");
    add_entrants(&plans);
    const enum dt_entrant_role roles[] = {DT_ENTRANT_DEFAULT, DT_ENTRANT_BASELINE,
                                          DT_ENTRANT_DOCUMENTED};
    for (int i = 0; i < 3; i++) {
        const struct dt_result *result = dt_session_role(session, roles[i]);
        if (result != NULL && result->samples.n > 0 && !is_listed(&plans, &result->point))
            add_plan(&plans, dt_entrant_role_text(roles[i]), result, NULL);
    }
    for (int i = 0, more = 0; i < view->count && more < RUNNERS_UP; i++) {
        const struct page_row *row = &view->sorted[i];
        if (isfinite(row->value) && dt_session_eligible(session, row->result) &&
            !is_listed(&plans, &row->result->point)) {
            add_plan(&plans, "runner-up", row->result, NULL);
            more++;
        }
    }
    dt_pen_end(pen);
}

/* ---- trials */

static void add_trial(const struct page_view *view, struct page_pen *pen,
                      const struct page_row *row)
{
    const struct dt_result *result = row->result;
    double low = dt_page_shown(view, row->low), high = dt_page_shown(view, row->high);
    dt_pen_cell(pen, "%d", row->number);
    plan_cell(view, pen, &result->point);
    dt_pen_cell(pen, "%s%s", result->outcome == DT_TRIAL_SLOW ? "dropped: " : "",
                dt_outcome_text(result->outcome));
    dt_pen_figure(pen, dt_page_shown(view, row->value));
    dt_pen_figure(pen, fmin(low, high));
    dt_pen_figure(pen, fmax(low, high));
    dt_pen_figure(pen, result->facts.peak_bytes > 0
                           ? (double)result->facts.peak_bytes / view->memory.size
                           : NAN);
    dt_pen_figure(pen, result->facts.cost_seconds);
    dt_pen_cell(pen, "%s", result->cause);
}

void dt_page_trials(const struct page_view *view, struct page_pen *pen)
{
    char caption[160], id[24];
    if (view->count == 0)
        return;
    int failed = view->failed < TRIALS_MOST / 4 ? view->failed : TRIALS_MOST / 4, shown = 0;
    int others = view->count <= TRIALS_MOST ? view->count : TRIALS_MOST - failed;
    snprintf(id, sizeof id, "%strials", view->prefix);
    if (view->count <= TRIALS_MOST)
        snprintf(caption, sizeof caption, "All %d trials, the best first", view->count);
    else
        snprintf(caption, sizeof caption,
                 "The best %d of %d trials, and failures (--format csv has all)", others,
                 view->count);
    dt_pen_table(pen, id, caption,
                 ">trial|~plan|outcome|>%s|>from|>to|>memory, %s|>time it took, s|why", view->axis,
                 view->memory.name);
    for (int i = 0; i < view->count; i++) {
        bool fails = !isfinite(view->sorted[i].value);
        if (i < others || (fails && shown < failed)) {
            add_trial(view, pen, &view->sorted[i]);
            shown += fails;
        }
    }
    dt_pen_end(pen);
}

void dt_page_front(const struct page_view *view, struct page_pen *pen)
{
    int rows[FRONT_MOST], n = dt_page_front_rows(view, rows, FRONT_MOST);
    if (n == 0)
        return;
    dt_pen_table(pen, "", "Plans that no other beats in both time and memory (Pareto front)",
                 ">trial|~plan|>%s|>memory of the largest rank, %s", view->axis, view->memory.name);
    for (int i = 0; i < n; i++) {
        const struct page_row *row = &view->rows[rows[i]];
        dt_pen_cell(pen, "%d", row->number);
        plan_cell(view, pen, &row->result->point);
        dt_pen_figure(pen, dt_page_shown(view, row->value));
        dt_pen_figure(pen, (double)row->result->facts.peak_bytes / view->memory.size);
    }
    dt_pen_end(pen);
}

void dt_page_predicted(const struct page_view *view, struct page_pen *pen)
{
    char caption[160];
    int n = 0;
    for (int i = 0; i < view->count; i++)
        n += isfinite(view->rows[i].predicted);
    if (n < 2)
        return;
    snprintf(caption, sizeof caption,
             "What the prior expected, from the measured default, and what was measured%s",
             n > TRIALS_MOST ? ": the best plans" : "");
    dt_pen_table(pen, "", caption,
                 ">trial|~plan|>predicted %s|>measured %s|>measured over predicted", view->axis,
                 view->time.name);
    for (int i = 0, shown = 0; i < view->count && shown < TRIALS_MOST; i++) {
        const struct page_row *row = &view->sorted[i];
        if (!isfinite(row->predicted))
            continue;
        dt_pen_cell(pen, "%d", row->number);
        plan_cell(view, pen, &row->result->point);
        dt_pen_figure(pen, dt_page_shown(view, row->predicted));
        dt_pen_figure(pen, dt_page_shown(view, row->value));
        dt_pen_number(pen, row->value / row->predicted, "%.3f");
        shown++;
    }
    dt_pen_end(pen);
}

void dt_page_importance(const struct page_view *view, struct page_pen *pen)
{
    struct page_effect effects[DT_AXES_MAX];
    int n = dt_page_effects(view, effects);
    if (n == 0)
        return;
    bool few = view->measured < DT_IMPORTANCE_LEAST;
    if (few)
        dt_pen_say(pen, "These plans are too few for shares: one disturbed trial would decide.");
    dt_pen_table(pen, "",
                 "What each parameter alone explains of the differences between plans (share of "
                 "the variance of log time between its values): of all plans, as the search's "
                 "model predicts them, and of the measured trials, which are crowded around good "
                 "plans",
                 "parameter|>share by the model, %%|>share in the trials, %%|value|>trials|>median "
                 "%s",
                 view->axis);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < effects[i].count; k++) {
            dt_auto_text value = {0};
            dt_page_axis_value(view, effects[i].axis, effects[i].used[k], &value);
            dt_pen_cell(pen, "%s",
                        dt_space_axis(view->session->target->space, effects[i].axis)->name);
            dt_pen_number(pen, view->session->search.weighed ? 100 * effects[i].share : NAN,
                          "%.0f");
            dt_pen_number(pen, few ? NAN : 100 * effects[i].seen, "%.0f");
            dt_pen_cell(pen, "%s", dt_text_at(&value));
            dt_pen_cell(pen, "%d", effects[i].trials[k]);
            dt_pen_figure(pen, dt_page_shown(view, effects[i].median[k]));
        }
    dt_pen_end(pen);
}

/* ---- the final comparison */

void dt_page_pairs(const struct page_view *view, struct page_pen *pen)
{
    const struct dt_session_finals *finals = &view->session->finals;
    dt_auto_text columns = {0};
    char caption[192];
    if (finals->entrant_count < 2 || finals->sets.count == 0)
        return;
    dt_text_add(&columns, ">round");
    for (int i = 0; i < finals->entrant_count; i++)
        dt_text_add(&columns, "|>%s, %s", dt_page_role(view, i), view->time.name);
    snprintf(caption, sizeof caption, "Each plan in each round of the final comparison: %s",
             view->axis);
    dt_pen_table(pen, "", caption, "%s", dt_text_at(&columns));
    for (int k = 0; k < dt_sets_rounds(&finals->sets); k++) {
        dt_pen_cell(pen, "%d", k + 1);
        for (int i = 0; i < finals->entrant_count; i++)
            dt_pen_figure(pen, dt_page_shown(view, dt_page_visit(view, i, k)));
    }
    dt_pen_end(pen);
}

/* ---- the machine */

static void add_fields(struct page_pen *pen, const char *part, const json_t *object)
{
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        dt_auto_text text = {0};
        if (json_is_object(value) && json_object_size(value) == 0)
            continue;
        dt_json_plain(value, &text);
        dt_pen_cell(pen, "%s", name);
        dt_pen_cell(pen, "%s", dt_text_at(&text));
        dt_pen_cell(pen, "%s", part);
    }
}

void dt_page_machine(const struct page_view *view, struct page_pen *pen)
{
    const struct dt_fingerprint *machine = &view->session->fingerprint;
    if (!machine->known)
        return;
    dt_pen_table(pen, "",
                 "What must be the same for the plan to be used as it is, and what may change, "
                 "after which dittune check should be run",
                 "property|value|for the plan");
    add_fields(pen, "must be the same", machine->hard);
    add_fields(pen, "may change", machine->soft);
    dt_pen_end(pen);
}

/* ---- words */

/* Rows of the template's table of words: parameters of the space that have a
 * meaning of their own. */
void dt_page_words(const struct page_view *view, struct page_pen *pen)
{
    static const char *const parameters[][2] = {
        {"replicas", "groups of ranks that run at the same time, each with a batch of its own"},
        {"cfg", "the guided and the unguided pass run on two halves of the ranks"},
        {"ulysses", "ranks share the heads of attention and exchange by all-to-all"},
        {"ring", "ranks share the tokens and send keys and values round"},
        {"tensor", "ranks share the weights of each layer"},
        {"threads", "threads of each rank, on cores"},
        {"tile_q", "rows of the attention that are computed together: block of queries"},
        {"tile_kv", "block of keys and values in the attention"},
        {"overlap", "1: exchanges run while other parts are computed"},
        {"chunks", "parts that an exchange is cut into, so that they overlap"},
    };
    dt_pen_columns(pen, "word|meaning");
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++)
        if (dt_space_find(view->session->target->space, parameters[i][0]) >= 0) {
            dt_pen_cell(pen, "%s", parameters[i][0]);
            dt_pen_cell(pen, "%s", parameters[i][1]);
        }
}

/* ---- two sessions side by side */

/* Rows on the results of the sessions, and what a difference is: none, since each has its own; that
 * of the texts; that of what was measured. */
enum difference { OWN, TEXT, MEASURED };
enum { DATE, WORK, PLAN, VERDICT, TIME, DEFAULT, SPEED, MEMORY, NOISE, TRIED, RESULTS };
static const struct {
    const char *name;
    enum difference by;
} results[RESULTS] = {[DATE] = {"date", OWN},
                      [WORK] = {"work", TEXT},
                      [PLAN] = {"plan to use", TEXT},
                      [VERDICT] = {"verdict", TEXT},
                      [TIME] = {"its time", MEASURED},
                      [DEFAULT] = {"time of the default plan", MEASURED},
                      [SPEED] = {"speed against the default", MEASURED},
                      [MEMORY] = {"memory of its largest rank", TEXT},
                      [NOISE] = {"noise floor", OWN},
                      [TRIED] = {"plans tried", OWN}};

/* A cell of such a row, and the measured value that it shows with its interval; NAN: none. */
struct result_cell {
    struct dt_text text;
    double value, low, high;
};

/* By the objective: of a step, or per image and step. */
static void result_time(const struct page_view *view, const struct dt_result *result,
                        struct result_cell *cell)
{
    const struct dt_target *target = view->session->target;
    if (result == NULL || result->samples.n == 0)
        return;
    struct dt_trial trial = dt_result_trial(result, target);
    cell->value = trial.value;
    cell->low = trial.low;
    cell->high = trial.high;
    if (isfinite(trial.value))
        dt_figure_value(target->objective->metric, trial.value, trial.low, trial.high, &cell->text);
}

static void results_fill(const struct page_view *view, struct result_cell cells[RESULTS])
{
    const struct dt_session *session = view->session;
    const struct dt_result *best = dt_session_best(session);
    const struct dt_entrant *winner = dt_page_winner(session);
    struct dt_noise noise = dt_session_noise(session);
    struct result_cell *speed = &cells[SPEED];
    for (int i = 0; i < RESULTS; i++)
        cells[i] = (struct result_cell){.value = NAN, .low = NAN, .high = NAN};
    dt_text_add(&cells[DATE].text, "%s UTC",
                dt_figure_minute(view->page->session->began_wall_ns).text);
    dt_text_add(&cells[WORK].text, "%s", session->target->identity.title);
    if (best != NULL)
        dt_page_plan(view, &best->point, &cells[PLAN].text);
    dt_text_add(&cells[VERDICT].text, "%s", dt_verdict_text(session->verdict));
    result_time(view, best, &cells[TIME]);
    result_time(view, dt_session_role(session, DT_ENTRANT_DEFAULT), &cells[DEFAULT]);
    if (winner != NULL && winner->ratio.pairs > 0) {
        speed->value = 1 / winner->ratio.ratio;
        speed->low = 1 / winner->ratio.interval.high;
        speed->high = 1 / winner->ratio.interval.low;
    }
    if (isfinite(speed->high))
        dt_text_add(&speed->text, "%.3f (%.3f to %.3f)", speed->value, speed->low, speed->high);
    if (best != NULL && best->facts.peak_bytes > 0)
        dt_figure_bytes(best->facts.peak_bytes, &cells[MEMORY].text);
    if (noise.pairs > 0)
        dt_text_add(&cells[NOISE].text, "%s", dt_figure_percent(noise.margin).text);
    dt_text_add(&cells[TRIED].text, "%d, %d failed", view->count, view->failed);
}

static void add_line(struct page_pen *pen, const char *name, const char *texts[2],
                     const char *remark)
{
    dt_pen_cell(pen, "%s", name);
    for (int i = 0; i < 2; i++)
        dt_pen_cell(pen, "%s", texts[i][0] != '\0' ? texts[i] : "-");
    dt_pen_cell(pen, "%s", remark);
}

static const char *differing_axis(const char *texts[2])
{
    return strcmp(texts[0], texts[1]) == 0 ? "" : "differs";
}

/* Fields of one or the other that are not equal. */
static void add_differences(const json_t *a, const json_t *b, struct page_pen *pen)
{
    json_auto_t *all = json_object();
    const char *name;
    json_t *value;
    if (all == NULL ||
        json_object_update(all, (json_t *)a) + json_object_update(all, (json_t *)b) < -2)
        pen->out->failed = true;
    json_object_foreach(all, name, value)
    {
        const json_t *mine = json_object_get(a, name), *other = json_object_get(b, name);
        dt_auto_text one = {0}, two = {0};
        if (mine != NULL && other != NULL && json_equal(mine, other))
            continue;
        if (mine != NULL)
            dt_json_plain(mine, &one);
        if (other != NULL)
            dt_json_plain(other, &two);
        const char *texts[2] = {dt_text_at(&one), dt_text_at(&two)};
        add_line(pen, name, texts, differing_axis(texts));
    }
}

static void add_results(const struct page_view views[2], struct page_pen *pen)
{
    struct result_cell a[RESULTS], b[RESULTS];
    bool alike = views[0].session->target->objective == views[1].session->target->objective;
    results_fill(&views[0], a);
    results_fill(&views[1], b);
    for (int i = 0; i < RESULTS; i++) {
        const char *texts[2] = {dt_text_at(&a[i].text), dt_text_at(&b[i].text)};
        dt_auto_text remark = {0};
        if (results[i].by == MEASURED && alike && isfinite(b[i].value / a[i].value)) {
            dt_text_add(&remark, "B is %.3f times A", b[i].value / a[i].value);
            if (isfinite(a[i].low + a[i].high + b[i].low + b[i].high)) /* they differ when apart */
                dt_text_add(&remark, a[i].high < b[i].low || b[i].high < a[i].low
                                         ? "; the intervals are apart"
                                         : "; the intervals overlap");
        } else if (results[i].by == TEXT) {
            dt_text_add(&remark, "%s", differing_axis(texts));
        }
        add_line(pen, results[i].name, texts, dt_text_at(&remark));
        dt_text_fini(&a[i].text);
        dt_text_fini(&b[i].text);
    }
}

void dt_page_compare(const struct page_view views[2], struct page_pen *pen)
{
    dt_pen_table(pen, "",
                 "The two sessions; of the question, the machine and the software only what "
                 "differs",
                 "what|A|B|difference");
    add_results(views, pen);
    add_differences(views[0].session->target->identity.key, views[1].session->target->identity.key,
                    pen);
    const struct dt_fingerprint *a = &views[0].session->fingerprint,
                                *b = &views[1].session->fingerprint;
    add_differences(a->hard, b->hard, pen);
    add_differences(a->soft, b->soft, pen);
    dt_pen_end(pen);
}
