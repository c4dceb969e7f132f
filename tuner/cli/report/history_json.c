/* SPDX-License-Identifier: MIT */
#include "tuner/cli/report/report.h"

#include <math.h>
#include <stdio.h>

static json_t *nanoseconds(double seconds)
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
                     moment->provisional, "tuned_ns", nanoseconds(moment->tuned), "default_ns",
                     nanoseconds(moment->fallback), "gain", gain, "plan", moment->plan, "soft",
                     moment->soft);
}

static json_t *change_json(const struct dt_entry_timeline *line, enum dt_series_of series, int i)
{
    const struct dt_course *course = &line->courses[series];
    const struct dt_change *change = &course->changes.change[i];
    struct dt_text news = {0};
    dt_course_news(line, series, i, &news);
    json_t *object = json_pack(
        "{s:s, s:f, s:i, s:i, s:i, s:I, s:b, s:s?}", "series", dt_series_text(series), "ratio",
        exp(change->after - change->before), "moment", course->at[change->at], "earliest",
        course->at[change->earliest], "latest", course->at[change->latest], "t_wall_ns",
        (json_int_t)dt_course_at(line, series, change->at)->t_wall_ns, "may_be_drift",
        change->may_be_line, "with", news.size > 0 ? dt_text_at(&news) : NULL);
    dt_text_fini(&news);
    return object;
}

static json_t *drift_json(const struct dt_entry_timeline *line, enum dt_series_of series,
                          const struct dt_stretch *stretch)
{
    const struct dt_course *course = &line->courses[series];
    return json_pack("{s:s, s:i, s:i, s:f, s:f}", "series", dt_series_text(series), "from",
                     course->at[stretch->from], "to",
                     course->at[stretch->from + stretch->count - 1], "ratio_per_moment",
                     exp(stretch->slope), "ratio", exp(stretch->slope * (stretch->count - 1)));
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
        for (int i = 0; i <= its->count; i++)
            if (its->stretch[i].slope != 0)
                json_array_append_new(drifts,
                                      drift_json(line, (enum dt_series_of)k, &its->stretch[i]));
    }
    return json_pack("{s:s, s:s, s:O, s:O, s:o, s:o, s:o, s:b}", "id", id, "title", line->title,
                     "key", line->key, "hard", line->hard, "moments", moments, "changes", changes,
                     "drifts", drifts, "enough",
                     line->courses[DT_OF_TUNED].count >= DT_CHANGES_LEAST);
}

json_t *dt_timelines_json(const struct dt_timelines *lines)
{
    json_t *entries = json_array();
    for (int i = 0; i < lines->count; i++)
        json_array_append_new(entries, line_json(&lines->lines[i]));
    return json_pack("{s:o, s:{s:i, s:i, s:i}, s:b}", "entries", entries, "journals", "read",
                     lines->journals, "damaged_records", lines->damaged, "damaged", lines->spoiled,
                     "store_unreadable", lines->store.status < 0);
}
