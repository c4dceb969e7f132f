/* SPDX-License-Identifier: MIT */
/* The document: its sections in their order, as a page or as Markdown. */
#include "tuner/cli/page/page_int.h"

#include "tuner/check/history/timeline.h"

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
/* Whatever hostile text might become in spite of its escapes: no script but this one, and nothing is loaded or sent. Styles are inline
 * in gnuplot's figures. */
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
