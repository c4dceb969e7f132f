/* SPDX-License-Identifier: MIT */
/* The document: page.html with its slots filled, the same as Markdown, or the trials as CSV. To
 * add to the page, write its text and a slot there, and a row here. */
#include "tuner/cli/page/page_int.h"

#include "base/figures.h"
#include "base/quote.h"
#include "tuner/session/record/session_json.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DATA_TRIALS 1200 /* most trials in the JSON of a page */

static const char template[] = {
#include "page.html.inc"
};
/* The text that is filled, and the session whose article is open. */
struct filling {
    const struct page_view *views, *view;
    int count;
    struct page_pen *pen;
};

/* ---- slots */

static void add_titles(const struct filling *filling)
{
    for (int i = 0; i < filling->count; i++) {
        dt_text_add(filling->pen->out, i > 0 ? " and " : "");
        dt_pen_text(filling->pen, filling->views[i].session->target->identity.title);
    }
}

static void add_comparison(const struct filling *filling)
{
    if (filling->count == 2)
        dt_page_compare(filling->views, filling->pen);
}

static void add_title(const struct filling *filling)
{
    char title[400];
    const char *letter = filling->count == 1 ? "" : filling->view == filling->views ? "A: " : "B: ";
    snprintf(title, sizeof title, "%s%s", letter, filling->view->session->target->identity.title);
    dt_pen_text(filling->pen, title);
}

static void add_verdict(const struct filling *filling)
{
    dt_auto_text text = {0};
    dt_page_verdict(filling->view, &text);
    dt_pen_text(filling->pen, dt_text_at(&text));
}

static void add_later(const struct filling *filling)
{
    dt_pen_say(filling->pen, dt_text_at(&filling->view->page->later));
}

static void add_tuned(const struct filling *filling)
{
    const struct dt_page *page = filling->view->page;
    dt_auto_text text = {0};
    dt_text_add(&text, "Tuned for %s on %s UTC; session %s.",
                page->session->target->objective->name,
                dt_figure_minute(page->session->began_wall_ns).text, page->journal);
    dt_pen_text(filling->pen, dt_text_at(&text));
}

/* Adds the figures of a page that is made now, as far as it is. */
static void add_no_figures(const struct filling *filling)
{
    if (filling->pen->html && strstr(dt_text_at(filling->pen->out), "<svg ") == NULL)
        dt_pen_say(filling->pen,
                   "There are no figures: gnuplot was not found when the page was made, it "
                   "failed, or there was nothing to draw.");
}

/* Sessions as JSON: an object, or a list of two; without the trials of a session that has more
 * than `trials` of them. */
static void sessions_json(const struct dt_session *const sessions[], int n, int trials,
                          struct dt_text *out)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        json_t *session = dt_session_json(sessions[i]);
        if (sessions[i]->count > trials)
            json_object_set_new(session, "trials", json_null());
        json_array_append_new(list, session);
    }
    if (dt_json_shown(n == 1 ? json_array_get(list, 0) : list, out) != DT_OK)
        out->failed = true;
    json_decref(list);
}

/* The JSON of --format json, for programs that read the page: no text in it ends its element. Many
 * trials are in --format csv. */
static void add_json(const struct filling *filling)
{
    const struct dt_session *sessions[2] = {NULL};
    dt_auto_text text = {0};
    for (int i = 0; i < filling->count; i++)
        sessions[i] = filling->views[i].session;
    if (filling->pen->html)
        sessions_json(sessions, filling->count, DATA_TRIALS, &text);
    for (const char *at = dt_text_at(&text); *at != '\0'; at += *at == '<') {
        size_t size = strcspn(at, "<");
        dt_text_add_bytes(filling->pen->out, at, size);
        at += size;
        dt_text_add(filling->pen->out, "%s", *at == '<' ? "\\u003c" : "");
    }
    filling->pen->out->failed = filling->pen->out->failed || text.failed;
}

static const struct slot {
    const char *name;
    void (*add)(const struct filling *filling);
    void (*table)(const struct page_view *view, struct page_pen *pen);
    void (*figure)(const struct page_view *view, struct dt_text *out);
} slots[] = {{"titles", add_titles, NULL, NULL},
             {"no figures", add_no_figures, NULL, NULL},
             {"json", add_json, NULL, NULL},
             {"compare", add_comparison, NULL, NULL},
             {"title", add_title, NULL, NULL},
             {"verdict", add_verdict, NULL, NULL},
             {"later", add_later, NULL, NULL},
             {"tuned", add_tuned, NULL, NULL},
             {"facts", NULL, dt_page_facts, NULL},
             {"plans", NULL, dt_page_plans, NULL},
             {"pairs", NULL, dt_page_pairs, dt_page_draw_pairs},
             {"trials", NULL, dt_page_trials, dt_page_draw_course},
             {"front", NULL, dt_page_front, dt_page_draw_memory},
             {"ranks", NULL, dt_page_ranks, dt_page_draw_ranks},
             {"predicted", NULL, dt_page_predicted, dt_page_draw_predicted},
             {"work", NULL, dt_page_phases, dt_page_draw_phases},
             {"effects", NULL, dt_page_importance, dt_page_draw_effects},
             {"machine", NULL, dt_page_machine, NULL},
             {"words", NULL, dt_page_words, NULL}};

/* name: as in the template, a figure's with " figure" behind it. */
static void slot_fill(const struct filling *filling, const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        size_t own = strlen(slots[i].name);
        if (own > size || strncmp(slots[i].name, name, own) != 0)
            continue;
        if (own == size && slots[i].add != NULL)
            slots[i].add(filling);
        else if (own == size)
            slots[i].table(filling->view, filling->pen);
        else if (filling->pen->html && slots[i].figure != NULL && name[own] == ' ')
            slots[i].figure(filling->view, filling->pen->out);
    }
}

/* ---- the template */

/* Markup of the template as it is; of Markdown headings and paragraphs are left. */
static void markup_add(const char *at, const char *end, const struct page_pen *pen)
{
    static const struct {
        const char *tag, *mark;
    } marks[] = {{"<h1>", "# "},         {"<h2>", "## "},
                 {"<summary>", "### "},  {"<caption>", "**"},
                 {"</h1>", "\n\n"},      {"</h2>", "\n\n"},
                 {"</summary>", "\n\n"}, {"</caption>", "**\n\n"},
                 {"</p>", "\n\n"},       {"<tr>", "|"},
                 {"</th>", "|"},         {"</td>", "|"},
                 {"</tr>", "\n"},        {"</thead>", "|---|---|\n"},
                 {"</tbody>", "\n"}};
    if (pen->html) {
        dt_text_add_bytes(pen->out, at, (size_t)(end - at));
        return;
    }
    while (at < end) {
        size_t text = strcspn(at, "<"), left = (size_t)(end - at);
        text = text < left ? text : left;
        if (strspn(at, "\n") < text)
            dt_text_add_bytes(pen->out, at, text);
        at += text;
        for (size_t i = 0; at < end && i < sizeof marks / sizeof marks[0]; i++)
            if (strncmp(at, marks[i].tag, strlen(marks[i].tag)) == 0)
                dt_text_add(pen->out, "%s", marks[i].mark);
        at = at < end ? at + strcspn(at, ">") + 1 : end;
    }
}

/* The next place of the word before `end`; `end`: none. */
static const char *place_of(const char *word, const char *at, const char *end)
{
    const char *found = memmem(at, (size_t)(end - at), word, strlen(word));
    return found != NULL ? found : end;
}

/* The template up to `end`; returns whether a slot had something. An article is there once for
 * each session. A section whose slots have nothing is left out. */
static bool template_fill(struct filling *filling, const char *at, const char *end)
{
    static const char article[] = "<article>", section[] = "<section", after[] = "</section>\n";
    struct dt_text *out = filling->pen->out;
    bool any = false;
    while (at < end) {
        const char *slot = place_of("{{", at, end), *part = place_of(section, at, slot),
                   *whole = filling->view == NULL ? place_of(article, at, part) : part;
        markup_add(at, whole, filling->pen);
        at = whole;
        if (whole < part) {
            const char *close = place_of("</article>", at, end);
            for (int i = 0; i < filling->count; i++) {
                filling->view = &filling->views[i];
                template_fill(filling, at, close);
                markup_add(close, close + sizeof article, filling->pen);
            }
            filling->view = NULL;
            at = close + sizeof article;
            any = true;
        } else if (part < slot) {
            const char *close = place_of(after, at, end) + sizeof after - 1;
            const char *inside = place_of(">", at, close) + 1;
            dt_auto_text inner = {0};
            filling->pen->out = &inner;
            markup_add(at, inside, filling->pen);
            bool full = template_fill(filling, inside, close);
            filling->pen->out = out;
            if (full)
                dt_text_add_bytes(out, dt_text_at(&inner), inner.size);
            out->failed = out->failed || inner.failed;
            any = any || full;
            at = close;
        } else if (slot < end) {
            const char *close = place_of("}}", slot, end);
            size_t before = out->size;
            slot_fill(filling, slot + 2, (size_t)(close - slot) - 2);
            any = any || out->size > before;
            at = close + 2;
        }
    }
    return any;
}

/* The template from its beginning or from one of its tags on, up to its end. */
static void page_fill(const struct dt_page pages[], int n, const char *from, struct page_pen *pen)
{
    struct page_view views[2] = {{.count = 0}};
    bool made = true;
    for (int i = 0; i < n && made; i++)
        made = dt_page_view(&pages[i], i == 0 ? "a" : "b", &views[i]);
    const char *end = template + sizeof template - 1, *begin = place_of(from, template, end);
    struct filling filling = {.views = views, .count = n, .pen = pen};
    if (made)
        template_fill(&filling, begin, pen->html ? end : place_of("<script>", begin, end));
    pen->out->failed = pen->out->failed || !made;
    for (int i = 0; i < n; i++)
        dt_page_view_fini(&views[i]);
}

static void page_html(const struct dt_page pages[], int n, struct dt_text *out)
{
    page_fill(pages, n, "<!DOCTYPE", &(struct page_pen){.out = out, .html = true});
}

static void page_markdown(const struct dt_page pages[], int n, struct dt_text *out)
{
    page_fill(pages, n, "<main>", &(struct page_pen){.out = out});
}

static void page_recipe(const struct dt_page pages[], int n, struct dt_text *out)
{
    for (int i = 0; i < n; i++) {
        struct page_view view = {.count = 0};
        if (dt_page_view(&pages[i], "a", &view))
            dt_page_recipe(&view, &(struct page_pen){.out = out});
        else
            out->failed = true;
        dt_page_view_fini(&view);
    }
}

static void page_json(const struct dt_page pages[], int n, struct dt_text *out)
{
    const struct dt_session *sessions[2] = {pages[0].session, n > 1 ? pages[1].session : NULL};
    sessions_json(sessions, n, INT_MAX, out);
    dt_text_add(out, "\n");
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
    add_number(result->facts.peak_bytes > 0 ? (double)result->facts.peak_bytes : NAN, out);
    add_number(result->facts.cost_seconds, out);
    add_number(result->facts.verified_error, out);
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
static void page_csv(const struct dt_page pages[], int n, struct dt_text *out)
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
    static const struct dt_page_format formats[] = {{"html", page_html},
                                                    {"md", page_markdown},
                                                    {"recipe", page_recipe},
                                                    {"csv", page_csv},
                                                    {"json", page_json}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}
