/* SPDX-License-Identifier: MIT */
#include "tuner/cli/page/pen.h"

#include "base/figures.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dt_pen_escape(const char *text, struct dt_text *out)
{
    static const struct {
        char byte;
        const char *entity;
    } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
    dt_auto_text shown = {0};
    dt_text_show(text, &shown);
    for (const char *at = dt_text_at(&shown); *at != '\0';) {
        size_t plain = strcspn(at, "&<>\"'");
        dt_text_add_bytes(out, at, plain);
        at += plain;
        for (size_t i = 0; *at != '\0' && i < sizeof entities / sizeof entities[0]; i++)
            if (entities[i].byte == *at)
                dt_text_add(out, "%s", entities[i].entity);
        at += *at != '\0';
    }
}

/* Characters that mean something in Markdown or in the HTML that it may hold, after backslashes. */
static void escape_markdown(const char *text, struct dt_text *out)
{
    dt_auto_text shown = {0};
    dt_text_show(text, &shown);
    for (const char *at = dt_text_at(&shown); *at != '\0'; at++)
        dt_text_add(out, strchr("\\`*_[]<>|#&~!", *at) != NULL ? "\\%c" : "%c", *at);
}

void dt_pen_text(struct page_pen *pen, const char *text)
{
    (pen->html ? dt_pen_escape : escape_markdown)(text, pen->out);
}

void dt_pen_say(struct page_pen *pen, const char *text)
{
    if (text[0] == '\0')
        return;
    dt_text_add(pen->out, pen->html ? "<p>" : "");
    dt_pen_text(pen, text);
    dt_text_add(pen->out, pen->html ? "</p>\n" : "\n\n");
}

/* The columns' kinds and how many; names: without the kinds, to be freed by the caller. */
static char *read_columns(struct page_pen *pen, const char *columns)
{
    struct dt_text names = {0};
    pen->columns = pen->cell = 0;
    for (const char *at = columns; pen->columns < DT_PEN_COLUMNS;) {
        size_t size = strcspn(at, "|");
        bool marked = *at == '>' || *at == '~';
        pen->kinds[pen->columns++] = marked ? *at : ' ';
        dt_text_add(&names, "%.*s\n", (int)size - marked, at + marked);
        if (at[size] == '\0')
            break;
        at += size + 1;
    }
    return dt_text_take(&names);
}

static void add_header(struct page_pen *pen, char *names)
{
    char *save = NULL, *name = strtok_r(names, "\n", &save);
    dt_text_add(pen->out, pen->html ? "<thead><tr>" : "|");
    for (int i = 0; i < pen->columns && name != NULL; i++, name = strtok_r(NULL, "\n", &save)) {
        if (pen->html)
            dt_text_add(pen->out, "<th scope=\"col\"%s>",
                        pen->kinds[i] == '>' ? " class=\"n\"" : "");
        dt_pen_text(pen, name);
        dt_text_add(pen->out, pen->html ? "</th>" : "|");
    }
    if (pen->html) {
        dt_text_add(pen->out, "</tr></thead>\n<tbody>\n");
        return;
    }
    dt_text_add(pen->out, "\n|");
    for (int i = 0; i < pen->columns; i++)
        dt_text_add(pen->out, pen->kinds[i] == '>' ? "---:|" : "---|");
    dt_text_add(pen->out, "\n");
}

void dt_pen_columns(struct page_pen *pen, const char *columns)
{
    free(read_columns(pen, columns));
}

void dt_pen_table(struct page_pen *pen, const char *id, const char *caption, const char *columns,
                  ...)
{
    va_list arguments;
    dt_auto_text filled = {0};
    va_start(arguments, columns);
    dt_text_add_list(&filled, columns, arguments);
    va_end(arguments);
    char *names = read_columns(pen, dt_text_at(&filled));
    pen->out->failed = pen->out->failed || filled.failed || names == NULL;
    if (pen->html) {
        dt_text_add(pen->out, "<div class=\"wide\" tabindex=\"0\"><table%s%s%s>\n<caption>",
                    id[0] != '\0' ? " id=\"" : "", id, id[0] != '\0' ? "\"" : "");
        dt_pen_text(pen, caption);
        dt_text_add(pen->out, "</caption>\n");
    } else if (caption[0] != '\0') {
        dt_text_add(pen->out, "**");
        dt_pen_text(pen, caption);
        dt_text_add(pen->out, "**\n\n");
    }
    if (names != NULL)
        add_header(pen, names);
    free(names);
}

static void pen_put(struct page_pen *pen, const char *text)
{
    char kind = pen->kinds[pen->cell];
    if (pen->html) {
        static const char *const tags[] = {"<td>", "<td class=\"n\">", "<td class=\"p\">",
                                           "<th scope=\"row\">"};
        int tag = kind == '>' ? 1 : kind == '~' ? 2 : pen->cell == 0 ? 3 : 0;
        dt_text_add(pen->out, "%s%s", pen->cell == 0 ? "<tr>" : "", tags[tag]);
        dt_pen_text(pen, text);
        dt_text_add(pen->out, tag == 3 ? "</th>" : "</td>");
    } else {
        dt_text_add(pen->out, "%s", pen->cell == 0 ? "|" : "");
        dt_pen_text(pen, text);
        dt_text_add(pen->out, "|");
    }
    if (++pen->cell < pen->columns)
        return;
    dt_text_add(pen->out, pen->html ? "</tr>\n" : "\n");
    pen->cell = 0;
}

void dt_pen_cell(struct page_pen *pen, const char *format, ...)
{
    va_list arguments;
    dt_auto_text text = {0};
    va_start(arguments, format);
    dt_text_add_list(&text, format, arguments);
    va_end(arguments);
    pen->out->failed = pen->out->failed || text.failed;
    pen_put(pen, dt_text_at(&text));
}

void dt_pen_number(struct page_pen *pen, double value, const char *format)
{
    char text[64] = "-";
    if (isfinite(value))
        snprintf(text, sizeof text, format, value);
    pen_put(pen, text);
}

void dt_pen_figure(struct page_pen *pen, double value)
{
    pen_put(pen, dt_figure_number(value).text);
}

void dt_pen_range(struct page_pen *pen, double low, double high)
{
    char text[72] = "-";
    if (dt_figure_tells(low, high))
        snprintf(text, sizeof text, "%s to %s", dt_figure_number(low).text,
                 dt_figure_number(high).text);
    pen_put(pen, text);
}

void dt_pen_end(struct page_pen *pen)
{
    dt_text_add(pen->out, pen->html ? "</tbody></table></div>\n" : "\n");
}
