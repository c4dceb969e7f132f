/* SPDX-License-Identifier: MIT */
/* The document: its sections in their order, as a page or as Markdown; its trials as CSV. */
#include "base/quote.h"
#include "tuner/check/history/timeline.h"
#include "tuner/cli/page/page_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *heading, *words;
    void (*draw)(const struct page_view *view, struct dt_text *out); /* NULL: the table alone */
    void (*table)(const struct page_view *view, struct page_pen *pen);
    bool open; /* the table is shown, not folded */
    bool half; /* as narrow as its figure */
} sections[] = {
    {"Plans",
     "Plans of the final comparison were measured in turn, in fresh processes: quote these times. "
     "The speed comes from pairs, measured one after the other, so it is more exact than the "
     "quotient of two times. A trial is one start at another time: compare trials with trials "
     "only. Words are explained at the end of the page.",
     NULL, dt_page_plans, true, false},
    {"Final comparison",
     "Rounds visit each plan in turn, so that what disturbs the machine disturbs all plans alike.",
     dt_page_draw_pairs, dt_page_pairs, false, true},
    {"The session",
     "Trials in their order, with failures and those that were dropped early. A trial is of one "
     "start: the best of them were measured again before one was chosen.",
     dt_page_draw_course, dt_page_trials, false, true},
    {"Time and memory",
     "Times and memory of the trials. A plan on the line is the best of all that need no more "
     "memory.",
     dt_page_draw_memory, dt_page_front, false, true},
    {"Ranks", "", dt_page_draw_ranks, dt_page_ranks, false, true},
    {"Prediction",
     "Before a plan is measured, the search's prior predicts its time from the default's. Plans "
     "that the prior cannot tell apart lie above each other.",
     dt_page_draw_predicted, dt_page_predicted, false, true},
    {"Kinds of work",
     "Rates are of the operations and bytes that the shapes need, against what the device reached "
     "in the same session.",
     dt_page_draw_phases, dt_page_phases, false, true},
    {"Effect of each parameter",
     "Points are trials, bars their medians. Where enough plans were measured, a share says how "
     "much of the differences the parameter explains alone; what several explain only together "
     "is in no share.",
     dt_page_draw_effects, dt_page_importance, false, false},
    {"Machine", "", NULL, dt_page_machine, true, false},
    {"Words", "", NULL, dt_page_words, true, false},
};

static void add_sections(const struct page_view *view, struct page_pen *pen)
{
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        struct dt_text table = {0}, *out = pen->out;
        pen->out = &table;
        sections[i].table(view, pen);
        pen->out = out;
        if (table.size == 0)
            continue;
        dt_text_add(out, !pen->html         ? ""
                         : sections[i].half ? "<section class=\"half\">\n"
                                            : "<section>\n");
        dt_pen_heading(pen, 2, sections[i].heading);
        dt_pen_say(pen, sections[i].words);
        if (pen->html && sections[i].draw != NULL) {
            dt_text_add(out, "<div class=\"figures\">\n");
            sections[i].draw(view, out);
            dt_text_add(out, "</div>\n");
        }
        if (!sections[i].open)
            dt_pen_fold(pen, sections[i].draw != NULL ? "Data" : "Show");
        dt_text_add_bytes(out, dt_text_at(&table), table.size);
        if (!sections[i].open)
            dt_pen_unfold(pen);
        dt_text_add(out, pen->html ? "</section>\n" : "");
        out->failed = out->failed || table.failed;
        dt_text_fini(&table);
    }
}

static void add_session(const struct page_view *view, struct page_pen *pen, const char *letter)
{
    const struct dt_session *session = view->session;
    char minute[24], title[400];
    struct dt_text words = {0};
    dt_minute(view->page->began_wall_ns, minute);
    snprintf(title, sizeof title, "%s%s", letter, session->target->identity.title);
    dt_text_add(pen->out, pen->html ? "<article>\n" : "");
    dt_pen_heading(pen, 1, title);
    if (pen->html)
        dt_text_add(pen->out, "<div class=\"verdict\">");
    dt_page_verdict(view, &words);
    dt_pen_say(pen, dt_text_at(&words));
    if (view->page->later != NULL && view->page->later[0] != '\0')
        dt_pen_say(pen, view->page->later);
    if (pen->html)
        dt_text_add(pen->out, "</div>\n");
    dt_text_clear(&words);
    dt_text_add(&words, "Tuned for %s on %s UTC; session %s.", session->target->objective->name,
                minute, view->page->journal);
    dt_pen_say(pen, dt_text_at(&words));
    dt_page_facts(view, pen);
    add_sections(view, pen);
    dt_text_add(pen->out, pen->html ? "</article>\n" : "");
    dt_text_fini(&words);
}

/* False: no memory, which *out says then. */
static bool make_views(const struct dt_page pages[], int n, struct page_view views[2],
                       struct dt_text *out)
{
    for (int i = 0; i < n; i++)
        if (!dt_page_view(&pages[i], i == 0 ? "a" : "b", &views[i])) {
            out->failed = true;
            return false;
        }
    return true;
}

static void add_all(const struct dt_page pages[], int n, struct page_pen *pen)
{
    struct page_view views[2] = {{.count = 0}};
    if (make_views(pages, n, views, pen->out)) {
        if (n == 2) {
            dt_pen_heading(pen, 1, "Two sessions");
            dt_page_compare(views, pen);
        }
        for (int i = 0; i < n; i++)
            add_session(&views[i], pen, n == 1 ? "" : i == 0 ? "A: " : "B: ");
    }
    for (int i = 0; i < n; i++)
        dt_page_view_fini(&views[i]);
}

void dt_page_markdown(const struct dt_page pages[], int n, struct dt_text *out)
{
    add_all(pages, n, &(struct page_pen){.out = out});
}

static const char style[] = {
#include "page.css.inc"
};
static const char script[] = {
#include "page.js.inc"
};
/* Whatever hostile text might become in spite of its escapes: no script but this one, and
 * nothing is loaded or sent. Styles are inline in gnuplot's figures. */
static const char policy[] =
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
    "form-action 'none'; style-src 'unsafe-inline'; script-src '"
#include "page.js.hash.inc"
    "'\">\n";

void dt_page_html(const struct dt_page pages[], int n, struct dt_text *out)
{
    struct dt_text body = {0};
    add_all(pages, n, &(struct page_pen){.out = &body, .html = true});
    dt_text_add(out,
                "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "%s<meta name=\"viewport\" content=\"width=device-width, "
                "initial-scale=1\">\n<title>dittune: ",
                policy);
    for (int i = 0; i < n; i++) {
        dt_text_add(out, i > 0 ? " and " : "");
        dt_pen_escape(pages[i].session->target->identity.title, out);
    }
    dt_text_add(out, "</title>\n<style>\n%s", style);
    dt_page_colour_rules(out);
    dt_text_add(out, "</style>\n</head>\n<body>\n<main>\n");
    dt_text_add_bytes(out, dt_text_at(&body), body.size);
    if (body.size > 0 && strstr(dt_text_at(&body), "<svg ") == NULL)
        dt_text_add(out, "<p>There are no figures: gnuplot was not found when the page was made, "
                         "it failed, or there was nothing to draw.</p>\n");
    dt_text_add(out, "</main>\n<script>%s</script>\n</body>\n</html>\n", script);
    out->failed = out->failed || body.failed;
    dt_text_fini(&body);
}

/* ---- CSV, and all formats */

static void add_number(double value, struct dt_text *out)
{
    dt_text_add(out, isfinite(value) ? ",%.9g" : ",", value);
}

static void add_trial(const struct dt_page *page, const struct dt_result *result, int number,
                      struct dt_text *out)
{
    const struct dt_session *session = page->session;
    const struct dt_space *space = session->target->space;
    struct dt_trial trial = dt_result_trial(result, session->target);
    bool measured = result->samples.n > 0;
    dt_quote_csv(page->journal, out);
    dt_text_add(out, ",%d,", number);
    dt_quote_csv(dt_outcome_text(result->outcome), out);
    add_number(measured ? trial.value : NAN, out);
    add_number(measured ? trial.low : NAN, out);
    add_number(measured ? trial.high : NAN, out);
    add_number(measured ? result->summary.median : NAN, out);
    add_number(result->peak_bytes > 0 ? (double)result->peak_bytes : NAN, out);
    add_number(result->cost_seconds, out);
    add_number(result->verified_error, out);
    dt_text_add(out, ",");
    dt_quote_csv(result->cause, out);
    for (int axis = 0; axis < dt_space_axes(space); axis++) {
        const struct dt_axis *of = dt_space_axis(space, axis);
        dt_text_add(out, ",");
        if (!dt_point_has(space, &result->point, axis))
            continue;
        if (of->labels != NULL)
            dt_quote_csv(of->labels[result->point.index[axis]], out);
        else
            dt_axis_plain(of, dt_point_value(space, &result->point, axis), out);
    }
    dt_text_add(out, "\n");
}

/* Two sessions have parameters of their own, so each has a header of its own. */
void dt_page_csv(const struct dt_page pages[], int n, struct dt_text *out)
{
    for (int i = 0; i < n; i++) {
        const struct dt_session *session = pages[i].session;
        dt_text_add(out,
                    "session,trial,outcome,value_seconds,low_seconds,high_seconds,step_seconds,"
                    "peak_bytes,cost_seconds,error,cause");
        for (int axis = 0; axis < dt_space_axes(session->target->space); axis++) {
            dt_text_add(out, ",");
            dt_quote_csv(dt_space_axis(session->target->space, axis)->name, out);
        }
        dt_text_add(out, "\n");
        for (int k = 0; k < session->count; k++)
            if (dt_session_counts(session, k))
                add_trial(&pages[i], &session->trials[k], k + 1, out);
    }
}

const struct dt_page_format *dt_page_format(const char *name)
{
    static const struct dt_page_format formats[] = {
        {"html", dt_page_html}, {"md", dt_page_markdown}, {"csv", dt_page_csv}, {"json", NULL}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}
