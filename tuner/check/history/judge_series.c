/* SPDX-License-Identifier: MIT */
/* Times and gains are compared as ratios, so steps and drifts are sought in their logarithms. Moments without a figure,
 * and provisional ones, are left out. */
#include "tuner/check/history/timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *dt_series_text(enum dt_series_of series)
{
    static const char *const texts[] = {"tuned time", "default's time", "gain"};
    return texts[series];
}

const char *dt_moment_text(enum dt_moment_kind kind)
{
    static const char *const texts[] = {"session", "check", "update"};
    return texts[kind];
}

static double value_of(const struct dt_moment *moment, enum dt_series_of series)
{
    double values[] = {moment->tuned, moment->fallback, moment->gain};
    return moment->provisional ? NAN : log(values[series]);
}

static dt_status judge(struct dt_entry_timeline *line, enum dt_series_of series)
{
    struct dt_course *course = &line->courses[series];
    double *x = calloc((size_t)line->count + 1, sizeof *x);
    course->at = calloc((size_t)line->count + 1, sizeof *course->at);
    dt_status status = x != NULL && course->at != NULL
                           ? DT_OK
                           : dt_fail(DT_ENOMEM, "out of memory for %d moments", line->count);
    for (int i = 0; i < line->count && status == DT_OK; i++) {
        double value = value_of(&line->moments[i], series);
        if (!isfinite(value))
            continue;
        x[course->count] = value;
        course->at[course->count++] = i;
    }
    if (status == DT_OK)
        status = dt_stats_changes(x, course->count, &course->changes);
    free(x);
    return status;
}

dt_status dt_timelines_judge(struct dt_timelines *lines)
{
    for (int i = 0; i < lines->count; i++)
        for (int series = 0; series < DT_SERIES_COUNT; series++)
            DT_TRY(judge(&lines->lines[i], (enum dt_series_of)series));
    return DT_OK;
}

static void add_value(const json_t *value, struct dt_text *out)
{
    if (value == NULL)
        dt_text_add(out, "none");
    else if (json_is_string(value))
        dt_text_show(json_string_value(value), out);
    else {
        char *dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        dt_text_show(dumped != NULL ? dumped : "?", out);
        free(dumped);
    }
}

void dt_plan_words(const json_t *plan, struct dt_text *out)
{
    const char *name, *before = "";
    json_t *value;
    json_object_foreach((json_t *)plan, name, value)
    {
        dt_text_add(out, "%s", before);
        dt_text_show(name, out);
        dt_text_add(out, "=");
        add_value(value, out);
        before = " ";
    }
}

struct news {
    struct dt_text *out;
    const char *what; /* "" or "plan " */
    size_t begin;     /* size of out before the first */
};

static void add_news(struct news *news, const char *name, const json_t *then, const json_t *now)
{
    dt_text_add(news->out, "%s%s", news->out->size > news->begin ? ", " : "", news->what);
    dt_text_show(name, news->out);
    dt_text_add(news->out, " ");
    add_value(then, news->out);
    dt_text_add(news->out, " -> ");
    add_value(now, news->out);
}

static void differences(struct news *news, const json_t *then, const json_t *now)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)then, name, value)
    {
        const json_t *other = json_object_get(now, name);
        if (json_is_object(value) && json_is_object(other))
            differences(news, value, other);
        else if (!json_equal(value, other))
            add_news(news, name, value, other);
    }
    json_object_foreach((json_t *)now, name, value)
    {
        if (json_object_get(then, name) == NULL)
            add_news(news, name, NULL, value);
    }
}

/* Differences between two moments; a moment without versions has those of the previous one. */
static void add_differences(const struct dt_entry_timeline *line, int before, int after,
                            struct dt_text *out)
{
    const struct dt_moment *then = &line->moments[before], *now = &line->moments[after];
    const json_t *known = then->soft;
    for (int i = before; i >= 0 && known == NULL; i--)
        known = line->moments[i].soft;
    struct news news = {.out = out, .what = "", .begin = out->size};
    if (known != NULL && now->soft != NULL)
        differences(&news, known, now->soft);
    news.what = "plan ";
    if (then->plan != NULL && now->plan != NULL)
        differences(&news, then->plan, now->plan);
}

const struct dt_moment *dt_course_at(const struct dt_entry_timeline *line, enum dt_series_of series,
                                     int point)
{
    return &line->moments[line->courses[series].at[point]];
}

void dt_course_news(const struct dt_entry_timeline *line, enum dt_series_of series, int change,
                    struct dt_text *out)
{
    const struct dt_course *course = &line->courses[series];
    const struct dt_change *it = &course->changes.change[change];
    for (int k = it->earliest > 0 ? it->earliest : 1; k <= it->latest; k++)
        for (int i = course->at[k - 1]; i < course->at[k]; i++) {
            struct dt_text one = {0};
            char day[16];
            add_differences(line, i, i + 1, &one);
            dt_day(line->moments[i + 1].t_wall_ns, day);
            if (one.size > 0)
                dt_text_add(out, "%s%s %s%s", out->size > 0 ? "; " : "", dt_text_at(&one),
                            k == it->at ? "at the same time" : "on ", k == it->at ? "" : day);
            dt_text_fini(&one);
        }
}

static void date(int64_t t_wall_ns, const char *format, char out[], size_t room)
{
    time_t seconds = (time_t)(t_wall_ns / 1000000000);
    struct tm parts;
    if (gmtime_r(&seconds, &parts) == NULL || strftime(out, room, format, &parts) == 0)
        out[0] = '\0';
}

void dt_day(int64_t t_wall_ns, char out[16])
{
    date(t_wall_ns, "%Y-%m-%d", out, 16);
}

void dt_minute(int64_t t_wall_ns, char out[24])
{
    date(t_wall_ns, "%Y-%m-%d %H:%M", out, 24);
}
