/* SPDX-License-Identifier: MIT */
/* Shows the history of a store's entries from its journals; measures nothing. */
#include "base/clock.h"
#include "base/figures.h"
#include "base/quote.h"
#include "tuner/check/check.h"
#include "tuner/check/timeline.h"
#include "tuner/cli/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the formats (docs/history.md): text */

enum { ROWS = 20, WIDTH = 24 /* size of the plot */ };

static void add_change(const struct dt_entry_timeline *line, enum dt_series_of series, int i,
                       struct dt_text *out)
{
    const struct dt_change *change = &line->courses[series].changes.change[i];
    const struct dt_moment *before = dt_course_at(line, series, change->at - 1);
    const struct dt_moment *after = dt_course_at(line, series, change->at);
    double ratio = exp(change->after - change->before);
    dt_auto_text news = {0};
    dt_text_add(out, "%s %s %.1f %% on %s, between the %s of %s and the %s of %s",
                dt_series_text(series), ratio > 1 ? "rose" : "fell", 100 * fabs(ratio - 1),
                dt_figure_day(after->t_wall_ns).text, dt_moment_text(before->kind),
                dt_figure_minute(before->t_wall_ns).text, dt_moment_text(after->kind),
                dt_figure_minute(after->t_wall_ns).text);
    if (change->earliest < change->latest)
        dt_text_add(out, " (95 %%: %s to %s)",
                    dt_figure_day(dt_course_at(line, series, change->earliest)->t_wall_ns).text,
                    dt_figure_day(dt_course_at(line, series, change->latest)->t_wall_ns).text);
    if (change->may_be_line)
        dt_text_add(out, ", at once or little by little: the points do not tell");
    dt_course_news(line, series, i, &news);
    if (news.size > 0)
        dt_text_add(out, "; %s", dt_text_at(&news));
    dt_text_add(out, "\n");
}

static void add_drift(const struct dt_entry_timeline *line, enum dt_series_of series,
                      const struct dt_stretch *stretch, struct dt_text *out)
{
    int last = stretch->from + stretch->count - 1;
    dt_text_add(out, "%s drifts by %+.2g %% a moment, %+.1f %% in all from %s to %s\n",
                dt_series_text(series), 100 * expm1(stretch->slope),
                100 * expm1(stretch->slope * (stretch->count - 1)),
                dt_figure_day(dt_course_at(line, series, stretch->from)->t_wall_ns).text,
                dt_figure_day(dt_course_at(line, series, last)->t_wall_ns).text);
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
static char change_arrow(const struct dt_entry_timeline *line, int moment)
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
    char gain[32] = "-", verdict[14];
    snprintf(verdict, sizeof verdict, "%.13s", moment->verdict);
    dt_text_mend(verdict); /* it may be cut within a character */
    dt_text_clean(verdict);
    if (isfinite(moment->gain))
        snprintf(gain, sizeof gain, "%.3f [%.3f, %.3f]", moment->gain, moment->low, moment->high);
    dt_text_add(out, "  %-16s  %-7s  %-13s  ", dt_figure_minute(moment->t_wall_ns).text,
                dt_moment_text(moment->kind), verdict);
    const char *metric = dt_figure_metric(dt_json_text_at(line->key, "objective"));
    add_time(metric, moment->tuned, out);
    add_time(metric, moment->fallback, out);
    dt_text_add(out, "%-22s ", gain);
    add_plot(line, moment, out);
    dt_text_add(out, " %c\n", change_arrow(line, i));
}

static void add_line(const struct dt_entry_timeline *line, struct dt_text *out)
{
    dt_auto_text sentences = {0};
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
}

static void lines_text(const struct dt_timelines *lines, struct dt_text *out)
{
    for (int i = 0; i < lines->count; i++) {
        if (i > 0)
            dt_text_add(out, "\n");
        add_line(&lines->lines[i], out);
    }
}

/* ---- CSV: RFC 4180, but lines end in one line feed */

static void add_number(double value, const char *format, struct dt_text *out)
{
    dt_text_add(out, ",");
    if (isfinite(value))
        dt_text_add(out, format, value);
}

/* The changes of the three series at this moment. */
static void csv_add_changes(const struct dt_entry_timeline *line, int moment, struct dt_text *out)
{
    dt_auto_text all = {0};
    for (int k = 0; k < DT_SERIES_COUNT; k++)
        for (int i = 0; i < line->courses[k].changes.count; i++) {
            const struct dt_change *change = &line->courses[k].changes.change[i];
            double ratio = exp(change->after - change->before);
            if (line->courses[k].at[change->at] == moment)
                dt_text_add(&all, "%s%s %s %.1f %%", all.size > 0 ? "; " : "",
                            dt_series_text((enum dt_series_of)k), ratio > 1 ? "rose" : "fell",
                            100 * fabs(ratio - 1));
        }
    dt_text_add(out, ",");
    dt_quote_csv(dt_text_at(&all), out);
}

static void csv_add_row(const struct dt_entry_timeline *line, int i, struct dt_text *out)
{
    const struct dt_moment *moment = &line->moments[i];
    dt_auto_text plan = {0};
    dt_plan_words(moment->plan, &plan);
    dt_text_add(out, "%016llx,", (unsigned long long)line->id);
    dt_quote_csv(line->title, out);
    dt_text_add(out, ",%s,%lld,%s,", dt_figure_minute(moment->t_wall_ns).text,
                (long long)moment->t_wall_ns, dt_moment_text(moment->kind));
    dt_quote_csv(moment->run, out);
    dt_text_add(out, ",");
    dt_quote_csv(moment->verdict, out);
    dt_text_add(out, ",%s", moment->provisional ? "true" : "false");
    add_number(moment->tuned * 1e9, "%.0f", out);
    add_number(moment->fallback * 1e9, "%.0f", out);
    add_number(moment->gain, "%.6g", out);
    add_number(moment->low, "%.6g", out);
    add_number(moment->high, "%.6g", out);
    dt_text_add(out, ",");
    dt_quote_csv(dt_text_at(&plan), out);
    csv_add_changes(line, i, out);
    dt_text_add(out, "\n");
}

static void lines_csv(const struct dt_timelines *lines, struct dt_text *out)
{
    dt_text_add(out, "id,title,time,t_wall_ns,kind,journal,verdict,provisional,tuned_ns,default_ns,"
                     "gain,gain_low,gain_high,plan,change\n");
    for (int i = 0; i < lines->count; i++)
        for (int k = 0; k < lines->lines[i].count; k++)
            csv_add_row(&lines->lines[i], k, out);
}

/* ---- JSON */

static json_t *nanoseconds_json(double seconds)
{
    return isfinite(seconds) ? json_integer((json_int_t)llround(seconds * 1e9)) : json_null();
}

static json_t *moment_json(const struct dt_moment *moment)
{
    json_t *gain = isfinite(moment->gain)
                       ? json_pack("{s:f, s:[o,o]}", "ratio", moment->gain, "interval",
                                   dt_json_number(moment->low), dt_json_number(moment->high))
                       : json_null();
    return json_pack("{s:s, s:I, s:s, s:s, s:b, s:o, s:o, s:o, s:O?, s:O?}", "kind",
                     dt_moment_text(moment->kind), "t_wall_ns", (json_int_t)moment->t_wall_ns,
                     "journal", moment->run, "verdict", moment->verdict, "provisional",
                     moment->provisional, "tuned_ns", nanoseconds_json(moment->tuned), "default_ns",
                     nanoseconds_json(moment->fallback), "gain", gain, "plan", moment->plan, "soft",
                     moment->soft);
}

static json_t *change_json(const struct dt_entry_timeline *line, enum dt_series_of series, int i)
{
    const struct dt_course *course = &line->courses[series];
    const struct dt_change *change = &course->changes.change[i];
    dt_auto_text news = {0};
    dt_course_news(line, series, i, &news);
    json_t *object = json_pack(
        "{s:s, s:f, s:i, s:i, s:i, s:I, s:b, s:s?}", "series", dt_series_text(series), "ratio",
        exp(change->after - change->before), "moment", course->at[change->at], "earliest",
        course->at[change->earliest], "latest", course->at[change->latest], "t_wall_ns",
        (json_int_t)dt_course_at(line, series, change->at)->t_wall_ns, "may_be_drift",
        change->may_be_line, "with", news.size > 0 ? dt_text_at(&news) : NULL);
    return object;
}

static json_t *line_json(const struct dt_entry_timeline *line)
{
    json_t *moments = json_array(), *changes = json_array(), *drifts = json_array();
    char id[17];
    snprintf(id, sizeof id, "%016llx", (unsigned long long)line->id);
    for (int i = 0; i < line->count; i++)
        json_array_append_new(moments, moment_json(&line->moments[i]));
    for (int k = 0; k < DT_SERIES_COUNT; k++) {
        const struct dt_changes *its = &line->courses[k].changes;
        for (int i = 0; i < its->count; i++)
            json_array_append_new(changes, change_json(line, (enum dt_series_of)k, i));
        for (int i = 0; i <= its->count; i++) {
            const struct dt_stretch *stretch = &its->stretch[i];
            const int *at = line->courses[k].at;
            if (stretch->slope != 0)
                json_array_append_new(drifts,
                                      json_pack("{s:s, s:i, s:i, s:f, s:f}", "series",
                                                dt_series_text((enum dt_series_of)k), "from",
                                                at[stretch->from], "to",
                                                at[stretch->from + stretch->count - 1],
                                                "ratio_per_moment", exp(stretch->slope), "ratio",
                                                exp(stretch->slope * (stretch->count - 1))));
        }
    }
    return json_pack("{s:s, s:s, s:O, s:O, s:o, s:o, s:o, s:b}", "id", id, "title", line->title,
                     "key", line->key, "hard", line->hard, "moments", moments, "changes", changes,
                     "drifts", drifts, "enough",
                     line->courses[DT_OF_TUNED].count >= DT_CHANGES_LEAST);
}

static json_t *lines_json(const struct dt_timelines *lines)
{
    json_t *entries = json_array();
    for (int i = 0; i < lines->count; i++)
        json_array_append_new(entries, line_json(&lines->lines[i]));
    return json_pack("{s:o, s:{s:i, s:i, s:i}, s:b}", "entries", entries, "journals", "read",
                     lines->journals, "damaged_records", lines->damaged, "damaged", lines->spoiled,
                     "store_unreadable", lines->store.status < 0);
}

/* ---- OpenMetrics 1.0: every moment with its time, as a backfill reads it; points of a metric are
 * together, in the order of time, and no two have the same time */

static const enum dt_check_verdict verdicts[] = {DT_CHECK_WINS,        DT_CHECK_TIES,
                                                 DT_CHECK_LOSES,       DT_CHECK_INCONCLUSIVE,
                                                 DT_CHECK_NOT_CHECKED, DT_CHECK_UNSUPPORTED};

static void add_escaped(const char *text, struct dt_text *out)
{
    for (const char *at = text; *at != '\0'; at++)
        if (*at == '\\' || *at == '"')
            dt_text_add(out, "\\%c", *at);
        else if (*at == '\n')
            dt_text_add(out, "\\n");
        else
            dt_text_add_bytes(out, at, 1);
}

static void add_labels(const struct dt_entry_timeline *line, struct dt_text *out)
{
    dt_text_add(out, "{id=\"%016llx\",title=\"", (unsigned long long)line->id);
    add_escaped(line->title, out);
    dt_text_add(out, "\"");
}

static void metrics_add_time(const struct dt_moment *moment, struct dt_text *out)
{
    long long ms = (long long)(moment->t_wall_ns / 1000000);
    dt_text_add(out, " %lld.%03lld\n", ms / 1000, ms % 1000);
}

/* A moment has a time, and is the last of those in its millisecond. */
static bool moment_counts(const struct dt_entry_timeline *line, int i)
{
    int64_t ms = line->moments[i].t_wall_ns / 1000000;
    return ms > 0 && (i + 1 == line->count || line->moments[i + 1].t_wall_ns / 1000000 > ms);
}

static double moment_figure(const struct dt_moment *moment, enum dt_series_of series)
{
    const double values[] = {moment->tuned, moment->fallback, moment->gain};
    return values[series];
}

static void add_gauge(const struct dt_timelines *lines, enum dt_series_of series,
                      struct dt_text *out)
{
    static const char *const names[] = {"dittune_tuned_seconds", "dittune_default_seconds",
                                        "dittune_gain_ratio"};
    static const char *const units[] = {"seconds", "seconds", "ratio"};
    static const char *const docs[] = {"Median time of a step of the stored plan.",
                                       "Median time of a step of the default plan.",
                                       "The default's value over the stored plan's."};
    dt_text_add(out, "# TYPE %s gauge\n# UNIT %s %s\n# HELP %s %s\n", names[series], names[series],
                units[series], names[series], docs[series]);
    for (int i = 0; i < lines->count; i++)
        for (int k = 0; k < lines->lines[i].count; k++) {
            const struct dt_moment *moment = &lines->lines[i].moments[k];
            if (!moment_counts(&lines->lines[i], k) || !isfinite(moment_figure(moment, series)))
                continue;
            dt_text_add(out, "%s", names[series]);
            add_labels(&lines->lines[i], out);
            dt_text_add(out, "} %.9g", moment_figure(moment, series));
            metrics_add_time(moment, out);
        }
}

static void add_verdict(const struct dt_entry_timeline *line, const struct dt_moment *moment,
                        struct dt_text *out)
{
    for (size_t v = 0; v < sizeof verdicts / sizeof verdicts[0]; v++) {
        const char *text = dt_check_verdict_text(verdicts[v]);
        dt_text_add(out, "dittune_verdict");
        add_labels(line, out);
        dt_text_add(out, ",dittune_verdict=\"%s\"} %d", text, strcmp(text, moment->verdict) == 0);
        metrics_add_time(moment, out);
    }
}

static void add_verdicts(const struct dt_timelines *lines, struct dt_text *out)
{
    dt_text_add(out, "# TYPE dittune_verdict stateset\n"
                     "# HELP dittune_verdict Verdict of a check on the stored plan.\n");
    for (int i = 0; i < lines->count; i++) {
        const struct dt_entry_timeline *line = &lines->lines[i];
        for (int k = 0; k < line->count; k++)
            if (line->moments[k].kind == DT_MOMENT_CHECK && moment_counts(line, k))
                add_verdict(line, &line->moments[k], out);
    }
}

static void add_plans(const struct dt_timelines *lines, struct dt_text *out)
{
    dt_text_add(out, "# TYPE dittune_plan info\n"
                     "# HELP dittune_plan The plan that is stored last.\n");
    for (int i = 0; i < lines->count; i++) {
        const struct dt_entry_timeline *line = &lines->lines[i];
        dt_auto_text plan = {0};
        dt_plan_words(line->moments[line->count - 1].plan, &plan);
        dt_text_add(out, "dittune_plan_info");
        add_labels(line, out);
        dt_text_add(out, ",plan=\"");
        add_escaped(dt_text_at(&plan), out);
        dt_text_add(out, "\"} 1\n");
    }
}

static void lines_openmetrics(const struct dt_timelines *lines, struct dt_text *out)
{
    for (int k = 0; k < DT_SERIES_COUNT; k++)
        add_gauge(lines, (enum dt_series_of)k, out);
    add_verdicts(lines, out);
    add_plans(lines, out);
    dt_text_add(out, "# EOF\n");
}

/* ---- the command */

static const struct format {
    const char *name;
    void (*add)(const struct dt_timelines *lines, struct dt_text *out); /* NULL: JSON */
} formats[] = {
    {"table", lines_text}, {"json", NULL}, {"csv", lines_csv}, {"openmetrics", lines_openmetrics}};

static const struct format *find_format(const struct dt_options *options)
{
    const char *name = options->print.format != NULL ? options->print.format
                       : options->print.json         ? "json"
                                                     : "table";
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

/* "30d", "12h", "2w" before now; "2026-11-02" in UTC. */
static dt_status parse_since(const char *text, int64_t *since_ns)
{
    static const struct {
        char unit;
        double hours;
    } units[] = {{'h', 1}, {'d', 24}, {'w', 168}};
    struct tm day = {.tm_mday = 0};
    char *end;
    double count = strtod(text, &end);
    const char *rest = strptime(text, "%Y-%m-%d", &day);
    if (rest != NULL && *rest == '\0') {
        *since_ns = (int64_t)timegm(&day) * DT_NS_PER_SECOND;
        return DT_OK;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (end > text && end[0] == units[i].unit && end[1] == '\0' && count > 0 &&
            count * units[i].hours < 1e6) {
            *since_ns = dt_clock_wall_ns() - (int64_t)(count * units[i].hours * 3600e9);
            return DT_OK;
        }
    return dt_fail(DT_EUSAGE,
                   "--since '%s' is neither a date such as 2026-11-02 nor a time such "
                   "as 12h, 30d or 8w",
                   text);
}

/* Warns once on standard error, since a program may read standard output. */
static void warn_of_lines(const struct dt_timelines *lines)
{
    int torn = lines->spoiled; /* partly read journals */
    for (const char *at = dt_text_at(&lines->unread); *at != '\0'; torn--) {
        size_t size = strcspn(at, "\n");
        dt_print_note("warning: %.*s; what it holds is missing here", (int)size, at);
        at += size + 1;
    }
    if (lines->damaged > 0)
        fprintf(stderr,
                "dittune: warning: %d damaged record%s in %d journal%s %s skipped ('dittune db "
                "verify' names them); what they held is missing here\n",
                lines->damaged, lines->damaged == 1 ? "" : "s", torn, torn == 1 ? "" : "s",
                lines->damaged == 1 ? "was" : "were");
    if (lines->store.status < 0 && lines->journals > 0)
        dt_print_note("warning: %s; the journals were still read", lines->store.sentence);
}

static dt_status print_timelines(const struct dt_timelines *lines, const struct format *format,
                                 const struct dt_options *options)
{
    bool narrowed =
        options->filter != NULL || options->upkeep.engine != NULL || options->since != NULL;
    struct dt_text text = {0};
    if (format->add == NULL)
        return dt_print_json(lines_json(lines));
    format->add(lines, &text);
    if (format->add == lines_text && lines->count == 0)
        dt_text_add(&text, "no session and no check in %s%s\n", options->store,
                    narrowed ? " that these options ask for" : "");
    return format->add == lines_text ? dt_print_text(&text) : dt_print_exact(&text);
}

dt_status dt_command_history(const struct dt_options *options)
{
    const struct format *format = find_format(options);
    struct dt_moment_filter filter = {
        .text = options->filter, .engine = options->upkeep.engine, .since_ns = INT64_MIN};
    DT_CLEANUP(dt_timelines_fini) struct dt_timelines lines = {.count = 0};
    if (format == NULL)
        return dt_fail(DT_EUSAGE, "--format '%s' is not table, json, csv or openmetrics",
                       options->print.format);
    if (options->since != NULL)
        DT_TRY(parse_since(options->since, &filter.since_ns));
    DT_TRY(dt_timelines_read(options->store, &filter, &lines));
    warn_of_lines(&lines);
    bool none = lines.count == 0 && lines.journals == 0;
    if (none)
        DT_TRY(dt_error_raise(&lines.store));
    if (none && lines.unread.size > 0)
        return dt_fail(DT_EIO, "none of the journals could be read");
    DT_TRY(dt_timelines_judge(&lines));
    return print_timelines(&lines, format, options);
}
