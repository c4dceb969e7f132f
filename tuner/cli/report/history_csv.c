/* SPDX-License-Identifier: MIT */
/* RFC 4180, but lines end in one line feed. */
#include "tuner/cli/report/report.h"

#include "base/quote.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void add_number(double value, const char *format, struct dt_text *out)
{
    dt_text_add(out, ",");
    if (isfinite(value))
        dt_text_add(out, format, value);
}

/* The changes of the three series at this moment. */
static void add_changes(const struct dt_entry_timeline *line, int moment, struct dt_text *out)
{
    struct dt_text all = {0};
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
    dt_text_fini(&all);
}

static void add_row(const struct dt_entry_timeline *line, int i, struct dt_text *out)
{
    const struct dt_moment *moment = &line->moments[i];
    struct dt_text plan = {0};
    char minute[24];
    dt_minute(moment->t_wall_ns, minute);
    dt_plan_words(moment->plan, &plan);
    dt_text_add(out, "%016llx,", (unsigned long long)line->id);
    dt_quote_csv(line->title, out);
    dt_text_add(out, ",%s,%lld,%s,", minute, (long long)moment->t_wall_ns,
                dt_moment_text(moment->kind));
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
    add_changes(line, i, out);
    dt_text_add(out, "\n");
    dt_text_fini(&plan);
}

void dt_timelines_csv(const struct dt_timelines *lines, struct dt_text *out)
{
    dt_text_add(out, "id,title,time,t_wall_ns,kind,journal,verdict,provisional,tuned_ns,default_ns,"
                     "gain,gain_low,gain_high,plan,change\n");
    for (int i = 0; i < lines->count; i++)
        for (int k = 0; k < lines->lines[i].count; k++)
            add_row(&lines->lines[i], k, out);
}
