/* SPDX-License-Identifier: MIT */
/* Two sessions side by side: what each found, and what differs between their machines. */
#include "base/figures.h"
#include "tuner/cli/page/page_int.h"

#include "base/json.h"
#include "tuner/check/history/timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A measured value and its interval; NAN: not known. */
struct estimate {
    double value, low, high;
};

static void add_date(const struct page_view *view, struct dt_text *out)
{
    char minute[24];
    dt_minute(view->page->began_wall_ns, minute);
    dt_text_add(out, "%s UTC", minute);
}

static void add_work(const struct page_view *view, struct dt_text *out)
{
    dt_text_add(out, "%s", view->session->target->identity.title);
}

static void add_plan(const struct page_view *view, struct dt_text *out)
{
    const struct dt_result *best = dt_session_best(view->session);
    if (best != NULL)
        dt_page_plan(view, &best->point, out);
}

static void add_verdict(const struct page_view *view, struct dt_text *out)
{
    dt_text_add(out, "%s", dt_verdict_text(view->session->verdict));
}

static void add_estimate(const struct page_view *view, struct estimate estimate,
                         struct dt_text *out)
{
    if (isfinite(estimate.value))
        dt_figure_value(view->session->target->objective->metric, estimate.value, estimate.low,
                        estimate.high, out);
}

/* By the objective: of a step, or per image and step. */
static struct estimate value_of(const struct page_view *view, const struct dt_result *result)
{
    if (result == NULL || result->samples.n == 0)
        return (struct estimate){NAN, NAN, NAN};
    struct dt_trial trial = dt_result_trial(result, view->session->target);
    return (struct estimate){trial.value, trial.low, trial.high};
}

static struct estimate best_value(const struct page_view *view)
{
    return value_of(view, dt_session_best(view->session));
}

static struct estimate default_value(const struct page_view *view)
{
    return value_of(view, dt_session_role(view->session, DT_ENTRANT_DEFAULT));
}

static struct estimate speed(const struct page_view *view)
{
    const struct dt_entrant *winner = dt_page_winner(view->session);
    if (winner == NULL || winner->ratio.pairs == 0)
        return (struct estimate){NAN, NAN, NAN};
    return (struct estimate){1 / winner->ratio.ratio, 1 / winner->ratio.interval.high,
                             1 / winner->ratio.interval.low};
}

static void add_best_time(const struct page_view *view, struct dt_text *out)
{
    add_estimate(view, best_value(view), out);
}

static void add_default_time(const struct page_view *view, struct dt_text *out)
{
    add_estimate(view, default_value(view), out);
}

static void add_speed(const struct page_view *view, struct dt_text *out)
{
    struct estimate of = speed(view);
    if (isfinite(of.high))
        dt_text_add(out, "%.3f (%.3f to %.3f)", of.value, of.low, of.high);
}

static void add_memory(const struct page_view *view, struct dt_text *out)
{
    const struct dt_result *best = dt_session_best(view->session);
    if (best != NULL && best->peak_bytes > 0)
        dt_figure_bytes(best->peak_bytes, out);
}

static void add_noise(const struct page_view *view, struct dt_text *out)
{
    struct dt_noise noise = dt_session_noise(view->session);
    if (noise.pairs > 0)
        dt_text_add(out, "%s", dt_figure_percent(noise.margin).text);
}

static void add_tried(const struct page_view *view, struct dt_text *out)
{
    dt_text_add(out, "%d, %d failed", view->count, view->failed);
}

static const struct {
    const char *name;
    void (*add)(const struct page_view *view, struct dt_text *out);
    struct estimate (*measured)(const struct page_view *view); /* NULL: no measured value */
    bool own; /* each session has its own: a difference is no news */
} lines[] = {{"date", add_date, NULL, true},
             {"work", add_work, NULL, false},
             {"plan to use", add_plan, NULL, false},
             {"verdict", add_verdict, NULL, false},
             {"its time", add_best_time, best_value, false},
             {"time of the default plan", add_default_time, default_value, false},
             {"speed against the default", add_speed, speed, false},
             {"memory of its largest rank", add_memory, NULL, false},
             {"noise floor", add_noise, NULL, true},
             {"plans tried", add_tried, NULL, true}};

static void add_line(struct page_pen *pen, const char *name, const char *texts[2],
                     const char *remark)
{
    dt_pen_cell(pen, "%s", name);
    for (int i = 0; i < 2; i++)
        dt_pen_cell(pen, "%s", texts[i][0] != '\0' ? texts[i] : "-");
    dt_pen_cell(pen, "%s", remark);
}

static const char *differs(const char *texts[2])
{
    return strcmp(texts[0], texts[1]) == 0 ? "" : "differs";
}

/* Two measured values differ when their intervals are apart. */
static void add_remark(struct estimate a, struct estimate b, struct dt_text *out)
{
    if (!isfinite(b.value / a.value))
        return;
    dt_text_add(out, "B is %.3f times A", b.value / a.value);
    if (isfinite(a.low + a.high + b.low + b.high))
        dt_text_add(out, a.high < b.low || b.high < a.low ? "; the intervals are apart"
                                                          : "; the intervals overlap");
}

static void add_value(const json_t *value, struct dt_text *out)
{
    if (json_is_object(value) || json_is_array(value))
        out->failed |= dt_json_text(value, out) != DT_OK;
    else if (value != NULL)
        dt_json_plain(value, out);
}

/* Fields of one or the other that are not equal. */
static void add_differences(const json_t *a, const json_t *b, struct page_pen *pen)
{
    json_t *all = json_object();
    const char *name;
    json_t *value;
    if (all == NULL ||
        json_object_update(all, (json_t *)a) + json_object_update(all, (json_t *)b) < -2)
        pen->out->failed = true;
    json_object_foreach(all, name, value)
    {
        const json_t *mine = json_object_get(a, name), *other = json_object_get(b, name);
        struct dt_text one = {0}, two = {0};
        if (mine != NULL && other != NULL && json_equal(mine, other))
            continue;
        add_value(mine, &one);
        add_value(other, &two);
        const char *texts[2] = {dt_text_at(&one), dt_text_at(&two)};
        add_line(pen, name, texts, differs(texts));
        dt_text_fini(&one);
        dt_text_fini(&two);
    }
    json_decref(all);
}

static void add_result(const struct page_view views[2], size_t line, struct page_pen *pen)
{
    struct dt_text one = {0}, two = {0}, remark = {0};
    lines[line].add(&views[0], &one);
    lines[line].add(&views[1], &two);
    const char *texts[2] = {dt_text_at(&one), dt_text_at(&two)};
    bool alike = views[0].session->target->objective == views[1].session->target->objective;
    if (lines[line].measured != NULL && alike)
        add_remark(lines[line].measured(&views[0]), lines[line].measured(&views[1]), &remark);
    else if (lines[line].measured == NULL && !lines[line].own)
        dt_text_add(&remark, "%s", differs(texts));
    add_line(pen, lines[line].name, texts, dt_text_at(&remark));
    dt_text_fini(&one);
    dt_text_fini(&two);
    dt_text_fini(&remark);
}

void dt_page_compare(const struct page_view views[2], struct page_pen *pen)
{
    dt_pen_table(pen, "",
                 "The two sessions; of the question, the machine and the software only what "
                 "differs",
                 "what|A|B|difference");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        add_result(views, i, pen);
    add_differences(views[0].session->target->identity.key, views[1].session->target->identity.key,
                    pen);
    static const char *const parts[] = {"hard", "soft"};
    for (int i = 0; i < 2; i++)
        add_differences(json_object_get(views[0].page->machine, parts[i]),
                        json_object_get(views[1].page->machine, parts[i]), pen);
    dt_pen_end(pen);
}
