/* SPDX-License-Identifier: MIT */
#include "tuner/check/timeline.h"

#include "base/array.h"
#include "base/figures.h"
#include "tuner/check/check_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- reading */

struct reader {
    const struct dt_moment_filter *filter;
    struct dt_timelines *lines;
    bool failed; /* out of memory */
};

/* wanted NULL: any. */
static bool is_on_engine(const char *wanted, const struct dt_entry_timeline *line)
{
    struct dt_check_key key;
    dt_check_key_read(line->key, line->hard, &key);
    return wanted == NULL || strcasecmp(key.engine, wanted) == 0;
}

bool dt_timeline_is_of(const struct dt_entry_timeline *line, const json_t *key, const json_t *hard)
{
    return dt_check_differs(line->key, key) == NULL && dt_stored_same_hard(line->hard, hard);
}

/* The line of this entry, perhaps a new one that takes what the entry holds. NULL: the filter
 * excludes it, or memory runs out. */
static struct dt_entry_timeline *line_of(struct reader *reader, struct dt_entry_timeline *of)
{
    struct dt_timelines *lines = reader->lines;
    for (int i = 0; i < lines->count; i++)
        if (lines->lines[i].id == of->id && dt_timeline_is_of(&lines->lines[i], of->key, of->hard))
            return &lines->lines[i];
    dt_check_title(of->key, of->title, sizeof of->title);
    if (!is_on_engine(reader->filter->engine, of) ||
        !dt_check_passes(reader->filter->text, of->title, of->key))
        return NULL;
    if (DT_GROW(lines->lines, lines->count, 1) < 0) {
        reader->failed = true;
        return NULL;
    }
    lines->lines[lines->count] = *of;
    *of = (struct dt_entry_timeline){.count = 0};
    return &lines->lines[lines->count++];
}

static bool has_run(const struct dt_entry_timeline *line, const char *run)
{
    for (int i = 0; i < line->count; i++)
        if (strcmp(line->moments[i].run, run) == 0)
            return true;
    return false;
}

/* Adds a moment; an entry of the store only where its journal is missing, or
 * is in another store. */
static void moment_take(void *context, struct dt_entry_timeline *of, struct dt_moment *moment)
{
    struct reader *reader = context;
    bool stored = of->stored != NULL;
    struct dt_entry_timeline *line = line_of(reader, of);
    if (line != NULL && line->stored == NULL) {
        line->stored = of->stored;
        of->stored = NULL;
    }
    bool wanted = line != NULL && moment->t_wall_ns >= reader->filter->since_ns &&
                  !(stored && has_run(line, moment->run));
    bool fits = wanted && DT_GROW(line->moments, line->count, 1) == DT_OK;
    reader->failed = reader->failed || (wanted && !fits);
    if (fits)
        line->moments[line->count++] = *moment;
    else
        dt_moment_fini(moment);
    dt_timeline_fini(of);
}

static int by_time(const void *a, const void *b)
{
    const struct dt_moment *one = a, *other = b;
    if (one->t_wall_ns != other->t_wall_ns)
        return one->t_wall_ns < other->t_wall_ns ? -1 : 1;
    return strcmp(one->run, other->run);
}

/* Keeps one of two copies of a result: the one without a stamp, else the first. */
static bool is_older_copy(const struct dt_entry_timeline *line, int i, int k)
{
    bool mine = line->moments[i].stamped, its = line->moments[k].stamped;
    return mine != its ? mine : k < i;
}

/* A check's journal also has the entry it stored: a confirmed plan is no second moment,
 * another plan is an update. */
static bool is_copy(struct dt_entry_timeline *line, int i)
{
    struct dt_moment *moment = &line->moments[i];
    for (int k = 0; k < line->count && moment->kind != DT_MOMENT_CHECK; k++) {
        const struct dt_moment *other = &line->moments[k];
        if (k == i || other->dropped || moment->run[0] == '\0' ||
            strcmp(other->run, moment->run) != 0)
            continue;
        if (other->kind == DT_MOMENT_CHECK ? dt_check_differs(other->plan, moment->plan) == NULL
                                           : is_older_copy(line, i, k))
            return true;
        if (other->kind == DT_MOMENT_CHECK)
            moment->kind = DT_MOMENT_UPDATE;
    }
    return false;
}

static void drop_copies(struct dt_entry_timeline *line)
{
    int kept = 0;
    for (int i = 0; i < line->count; i++)
        line->moments[i].dropped = is_copy(line, i);
    for (int i = 0; i < line->count; i++)
        if (line->moments[i].dropped)
            dt_moment_fini(&line->moments[i]);
        else
            line->moments[kept++] = line->moments[i];
    line->count = kept;
}

static int by_title(const void *a, const void *b)
{
    const struct dt_entry_timeline *one = a, *other = b;
    int order = strcmp(one->title, other->title);
    return order != 0 ? order : one->id < other->id ? -1 : one->id > other->id;
}

static void lines_sort(struct dt_timelines *lines)
{
    int kept = 0;
    for (int i = 0; i < lines->count; i++) {
        struct dt_entry_timeline *line = &lines->lines[i];
        if (line->count > 0) {
            qsort(line->moments, (size_t)line->count, sizeof *line->moments, by_time);
            drop_copies(line);
            lines->lines[kept++] = *line;
        } else {
            dt_timeline_fini(line);
        }
    }
    lines->count = kept;
    if (kept > 0)
        qsort(lines->lines, (size_t)kept, sizeof *lines->lines, by_title);
}

dt_status dt_timelines_read(const char *directory, const struct dt_moment_filter *filter,
                            struct dt_timelines *lines)
{
    DT_CLEANUP(dt_timelines_fini) struct dt_timelines made = {.count = 0};
    struct reader reader = {.filter = filter, .lines = &made};
    DT_TRY(dt_moments_read(directory, filter->checks, &made, moment_take, &reader));
    if (reader.failed)
        return dt_fail(DT_ENOMEM, "out of memory for the history of %s", directory);
    lines_sort(&made);
    *lines = made;
    made = (struct dt_timelines){.count = 0};
    return DT_OK;
}

void dt_timelines_fini(struct dt_timelines *lines)
{
    for (int i = 0; i < lines->count; i++)
        dt_timeline_fini(&lines->lines[i]);
    free(lines->lines);
    dt_text_fini(&lines->unread);
    *lines = (struct dt_timelines){.count = 0};
}

/* ---- judging */

/* Times and gains are compared as ratios, so steps and drifts are sought in their logarithms.
 * Moments without a figure, and provisional ones, are left out. */

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

static dt_status judge_course(struct dt_entry_timeline *line, enum dt_series_of series)
{
    struct dt_course *course = &line->courses[series];
    dt_auto_free double *x = calloc((size_t)line->count + 1, sizeof *x);
    course->at = calloc((size_t)line->count + 1, sizeof *course->at);
    if (x == NULL || course->at == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %d moments", line->count);
    for (int i = 0; i < line->count; i++) {
        double value = value_of(&line->moments[i], series);
        if (!isfinite(value))
            continue;
        x[course->count] = value;
        course->at[course->count++] = i;
    }
    return dt_stats_changes(x, course->count, &course->changes);
}

dt_status dt_timelines_judge(struct dt_timelines *lines)
{
    for (int i = 0; i < lines->count; i++)
        for (int series = 0; series < DT_SERIES_COUNT; series++)
            DT_TRY(judge_course(&lines->lines[i], (enum dt_series_of)series));
    return DT_OK;
}

/* Differences between two moments; a moment without versions has those of the previous one. */
static void add_differences(const struct dt_entry_timeline *line, int before, int after,
                            struct dt_text *out)
{
    const struct dt_moment *then = &line->moments[before], *now = &line->moments[after];
    int known = before;
    while (known > 0 && line->moments[known].soft == NULL)
        known--;
    dt_moment_add_news(line->moments[known].soft, now->soft, "", out);
    dt_moment_add_news(then->plan, now->plan, "plan ", out);
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
            dt_auto_text one = {0};
            struct dt_figure day = dt_figure_day(line->moments[i + 1].t_wall_ns);
            add_differences(line, i, i + 1, &one);
            if (one.size > 0)
                dt_text_add(out, "%s%s %s%s", out->size > 0 ? "; " : "", dt_text_at(&one),
                            k == it->at ? "at the same time" : "on ", k == it->at ? "" : day.text);
        }
}
