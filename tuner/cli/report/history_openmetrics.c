/* SPDX-License-Identifier: MIT */
/* OpenMetrics 1.0: every moment with its time, as a backfill reads it. A metric's points are together, in the order of time,
 * and no two have the same time. */
#include "tuner/cli/report/report.h"

#include "tuner/check/check.h"

#include <math.h>
#include <string.h>

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

static void add_time(const struct dt_moment *moment, struct dt_text *out)
{
    long long ms = (long long)(moment->t_wall_ns / 1000000);
    dt_text_add(out, " %lld.%03lld\n", ms / 1000, ms % 1000);
}

/* A moment has a time, and is the last of those in its millisecond. */
static bool counts(const struct dt_entry_timeline *line, int i)
{
    int64_t ms = line->moments[i].t_wall_ns / 1000000;
    return ms > 0 && (i + 1 == line->count || line->moments[i + 1].t_wall_ns / 1000000 > ms);
}

static double figure(const struct dt_moment *moment, enum dt_series_of series)
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
            if (!counts(&lines->lines[i], k) || !isfinite(figure(moment, series)))
                continue;
            dt_text_add(out, "%s", names[series]);
            add_labels(&lines->lines[i], out);
            dt_text_add(out, "} %.9g", figure(moment, series));
            add_time(moment, out);
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
        add_time(moment, out);
    }
}

static void add_verdicts(const struct dt_timelines *lines, struct dt_text *out)
{
    dt_text_add(out, "# TYPE dittune_verdict stateset\n"
                     "# HELP dittune_verdict Verdict of a check on the stored plan.\n");
    for (int i = 0; i < lines->count; i++) {
        const struct dt_entry_timeline *line = &lines->lines[i];
        for (int k = 0; k < line->count; k++)
            if (line->moments[k].kind == DT_MOMENT_CHECK && counts(line, k))
                add_verdict(line, &line->moments[k], out);
    }
}

static void add_plans(const struct dt_timelines *lines, struct dt_text *out)
{
    dt_text_add(out, "# TYPE dittune_plan info\n"
                     "# HELP dittune_plan The plan that is stored last.\n");
    for (int i = 0; i < lines->count; i++) {
        const struct dt_entry_timeline *line = &lines->lines[i];
        struct dt_text plan = {0};
        dt_plan_words(line->moments[line->count - 1].plan, &plan);
        dt_text_add(out, "dittune_plan_info");
        add_labels(line, out);
        dt_text_add(out, ",plan=\"");
        add_escaped(dt_text_at(&plan), out);
        dt_text_add(out, "\"} 1\n");
        dt_text_fini(&plan);
    }
}

void dt_timelines_openmetrics(const struct dt_timelines *lines, struct dt_text *out)
{
    for (int k = 0; k < DT_SERIES_COUNT; k++)
        add_gauge(lines, (enum dt_series_of)k, out);
    add_verdicts(lines, out);
    add_plans(lines, out);
    dt_text_add(out, "# EOF\n");
}
