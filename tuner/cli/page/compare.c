/* SPDX-License-Identifier: MIT */
/* Two sessions side by side: what each found, and what differs between their machines. */
#include "tuner/cli/page/page_int.h"

#include "base/json.h"
#include "tuner/check/history/timeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

static void add_objective(const struct page_view *view, struct dt_text *out)
{
    dt_text_add(out, "%s", view->session->target->objective->name);
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

static void add_step(const struct dt_result *result, struct dt_text *out)
{
    if (result != NULL && result->samples.n > 0)
        dt_figure_estimate(result->summary.median, result->summary.interval.low,
                           result->summary.interval.high, out);
}

static void add_best_step(const struct page_view *view, struct dt_text *out)
{
    add_step(dt_session_best(view->session), out);
}

static void add_default_step(const struct page_view *view, struct dt_text *out)
{
    add_step(dt_session_role(view->session, DT_ENTRANT_DEFAULT), out);
}

static void add_speed(const struct page_view *view, struct dt_text *out)
{
    const struct dt_entrant *winner = dt_page_winner(view->session);
    if (winner != NULL && winner->ratio.pairs > 0 && isfinite(winner->ratio.interval.high))
        dt_text_add(out, "%.3f (%.3f to %.3f)", 1 / winner->ratio.ratio,
                    1 / winner->ratio.interval.high, 1 / winner->ratio.interval.low);
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
        dt_text_add(out, "%.2g %%", 100 * noise.margin);
}

static void add_tried(const struct page_view *view, struct dt_text *out)
{
    dt_text_add(out, "%d, %d failed", view->count, view->failed);
}

static const struct {
    const char *name;
    void (*add)(const struct page_view *view, struct dt_text *out);
} lines[] = {{"date", add_date},
             {"work", add_work},
             {"objective", add_objective},
             {"plan to use", add_plan},
             {"verdict", add_verdict},
             {"its step", add_best_step},
             {"step of the default plan", add_default_step},
             {"speed against the default", add_speed},
             {"memory of its largest rank", add_memory},
             {"noise floor", add_noise},
             {"plans tried", add_tried}};

static void add_line(struct page_pen *pen, const char *name, const char *a, const char *b)
{
    dt_pen_cell(pen, "%s", name);
    dt_pen_cell(pen, "%s", a[0] != '\0' ? a : "-");
    dt_pen_cell(pen, "%s", b[0] != '\0' ? b : "-");
    dt_pen_cell(pen, "%s", strcmp(a, b) == 0 ? "" : "differs");
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
        add_line(pen, name, dt_text_at(&one), dt_text_at(&two));
        dt_text_fini(&one);
        dt_text_fini(&two);
    }
    json_decref(all);
}

void dt_page_compare(const struct page_view views[2], struct page_pen *pen)
{
    dt_pen_table(pen, "", "The two sessions; of the machine only what differs", "what|A|B|");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct dt_text one = {0}, two = {0};
        lines[i].add(&views[0], &one);
        lines[i].add(&views[1], &two);
        add_line(pen, lines[i].name, dt_text_at(&one), dt_text_at(&two));
        dt_text_fini(&one);
        dt_text_fini(&two);
    }
    static const char *const parts[] = {"hard", "soft"};
    for (int i = 0; i < 2; i++)
        add_differences(json_object_get(views[0].page->machine, parts[i]),
                        json_object_get(views[1].page->machine, parts[i]), pen);
    dt_pen_end(pen);
}
