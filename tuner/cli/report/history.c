/* SPDX-License-Identifier: MIT */
#include "base/figures.h"
#include "tuner/cli/report/report.h"

#include <math.h>
#include <string.h>

enum { ROWS = 20, WIDTH = 24 /* of the plot */ };

static void add_change(const struct dt_entry_timeline *line, enum dt_series_of series, int i,
                       struct dt_text *out)
{
    const struct dt_change *change = &line->courses[series].changes.change[i];
    const struct dt_moment *before = dt_course_at(line, series, change->at - 1);
    const struct dt_moment *after = dt_course_at(line, series, change->at);
    double ratio = exp(change->after - change->before);
    char day[16], from[24], to[24], first[16], last[16];
    struct dt_text news = {0};
    dt_day(after->t_wall_ns, day);
    dt_minute(before->t_wall_ns, from);
    dt_minute(after->t_wall_ns, to);
    dt_day(dt_course_at(line, series, change->earliest)->t_wall_ns, first);
    dt_day(dt_course_at(line, series, change->latest)->t_wall_ns, last);
    dt_text_add(out, "%s %s %.1f %% on %s, between the %s of %s and the %s of %s",
                dt_series_text(series), ratio > 1 ? "rose" : "fell", 100 * fabs(ratio - 1), day,
                dt_moment_text(before->kind), from, dt_moment_text(after->kind), to);
    if (change->earliest < change->latest)
        dt_text_add(out, " (95 %%: %s to %s)", first, last);
    if (change->may_be_line)
        dt_text_add(out, ", at once or little by little: the points do not tell");
    dt_course_news(line, series, i, &news);
    if (news.size > 0)
        dt_text_add(out, "; %s", dt_text_at(&news));
    dt_text_fini(&news);
    dt_text_add(out, "\n");
}

static void add_drift(const struct dt_entry_timeline *line, enum dt_series_of series,
                      const struct dt_stretch *stretch, struct dt_text *out)
{
    char from[16], to[16];
    dt_day(dt_course_at(line, series, stretch->from)->t_wall_ns, from);
    dt_day(dt_course_at(line, series, stretch->from + stretch->count - 1)->t_wall_ns, to);
    dt_text_add(out, "%s drifts by %+.2g %% a moment, %+.1f %% in all from %s to %s\n",
                dt_series_text(series), 100 * expm1(stretch->slope),
                100 * expm1(stretch->slope * (stretch->count - 1)), from, to);
}

/* A line for each step and drift of the three series. */
static void add_changes(const struct dt_entry_timeline *line, struct dt_text *out)
{
    size_t before = out->size;
    int most = 0;
    for (int k = 0; k < DT_SERIES_COUNT; k++) {
        enum dt_series_of series = (enum dt_series_of)k;
        const struct dt_course *course = &line->courses[k];
        most = course->count > most ? course->count : most;
        for (int i = 0; i <= course->changes.count; i++) {
            if (i > 0)
                add_change(line, series, i - 1, out);
            if (course->changes.stretch[i].slope != 0)
                add_drift(line, series, &course->changes.stretch[i], out);
        }
    }
    if (out->size > before)
        return;
    if (most < DT_CHANGES_LEAST)
        dt_text_add(out, "too few moments to tell steps and drifts from noise: %d, of %d\n", most,
                    DT_CHANGES_LEAST);
    else
        dt_text_add(out, "no step and no drift\n");
}

/* A point changed here: ^ the tuned time rose, v it fell. */
static char arrow(const struct dt_entry_timeline *line, int moment)
{
    const struct dt_course *course = &line->courses[DT_OF_TUNED];
    for (int i = 0; i < course->changes.count; i++) {
        const struct dt_change *change = &course->changes.change[i];
        if (course->at[change->at] == moment)
            return change->after > change->before ? '^' : 'v';
    }
    return ' ';
}

static void add_time(const char *metric, double seconds, struct dt_text *out)
{
    size_t before = out->size;
    if (isfinite(seconds))
        dt_figure_value(metric, seconds, NAN, NAN, out);
    else
        dt_text_add(out, "-");
    dt_text_add(out, "%*s", before + 11 > out->size ? (int)(before + 11 - out->size) : 1, "");
}

/* Where the tuned time lies between the least and the most of all. */
static void add_plot(const struct dt_entry_timeline *line, const struct dt_moment *moment,
                     struct dt_text *out)
{
    double least = INFINITY, most = 0;
    char plot[WIDTH + 1];
    for (int i = 0; i < line->count; i++) {
        least = fmin(least, line->moments[i].tuned);
        most = fmax(most, line->moments[i].tuned);
    }
    memset(plot, ' ', WIDTH);
    plot[WIDTH] = '\0';
    if (isfinite(moment->tuned))
        plot[most > least ? (int)((moment->tuned - least) / (most - least) * (WIDTH - 1) + 0.5)
                          : WIDTH / 2] = moment->provisional ? 'o' : '*';
    dt_text_add(out, "|%s|", plot);
}

static void add_row(const struct dt_entry_timeline *line, int i, struct dt_text *out)
{
    const struct dt_moment *moment = &line->moments[i];
    char minute[24], gain[32] = "-", verdict[14];
    snprintf(verdict, sizeof verdict, "%s", moment->verdict);
    dt_text_mend(verdict); /* it may be cut within a character */
    dt_text_clean(verdict);
    dt_minute(moment->t_wall_ns, minute);
    if (isfinite(moment->gain))
        snprintf(gain, sizeof gain, "%.3f [%.3f, %.3f]", moment->gain, moment->low, moment->high);
    dt_text_add(out, "  %-16s  %-7s  %-13s  ", minute, dt_moment_text(moment->kind), verdict);
    const char *metric = dt_figure_metric(dt_json_text_at(line->key, "objective"));
    add_time(metric, moment->tuned, out);
    add_time(metric, moment->fallback, out);
    dt_text_add(out, "%-22s ", gain);
    add_plot(line, moment, out);
    dt_text_add(out, " %c\n", arrow(line, i));
}

static void add_line(const struct dt_entry_timeline *line, struct dt_text *out)
{
    struct dt_text sentences = {0};
    int counts[3] = {0}, first = line->count > ROWS ? line->count - ROWS : 0;
    for (int i = 0; i < line->count; i++)
        counts[line->moments[i].kind]++;
    dt_text_add(out, "%s\n  entry %016llx", line->title, (unsigned long long)line->id);
    for (int k = 0, any = 0; k < 3; k++)
        if (counts[k] > 0)
            dt_text_add(out, "%s%d %s%s", any++ > 0 ? ", " : "; ", counts[k],
                        dt_moment_text((enum dt_moment_kind)k), counts[k] == 1 ? "" : "s");
    dt_text_add(out, line->stored != NULL ? "; plan " : "; last plan ");
    dt_plan_words(line->stored != NULL ? line->stored : line->moments[line->count - 1].plan, out);
    dt_text_add(out, "\n  %-16s  %-7s  %-13s  %-10s %-10s %-22s  tuned time\n", "when", "what",
                "verdict", "tuned", "default", "gain");
    if (first > 0)
        dt_text_add(out, "  (%d earlier ones: --format csv has them all)\n", first);
    for (int i = first; i < line->count; i++)
        add_row(line, i, out);
    add_changes(line, &sentences);
    for (const char *at = dt_text_at(&sentences); *at != '\0';) {
        size_t size = strcspn(at, "\n");
        dt_text_add(out, "  %.*s\n", (int)size, at);
        at += size + 1;
    }
    dt_text_fini(&sentences);
}

void dt_timelines_text(const struct dt_timelines *lines, struct dt_text *out)
{
    for (int i = 0; i < lines->count; i++) {
        if (i > 0)
            dt_text_add(out, "\n");
        add_line(&lines->lines[i], out);
    }
}
