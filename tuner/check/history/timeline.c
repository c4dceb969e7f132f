/* SPDX-License-Identifier: MIT */
#include "tuner/check/history/timeline.h"

#include "base/array.h"
#include "db/journal.h"
#include "db/outline.h"
#include "db/snapshot.h"
#include "db/store.h"
#include "db/stored.h"
#include "tuner/check/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* ---- reading */

struct reader {
    const struct dt_moment_filter *filter;
    struct dt_timelines *lines;
    char run[64];
    bool failed; /* out of memory */
};

static double above_zero(double number)
{
    return number > 0 ? number : NAN;
}

static void set_gain(const struct dt_gain *gain, struct dt_moment *moment)
{
    moment->gain = above_zero(gain->ratio);
    moment->low = above_zero(gain->interval.low);
    moment->high = above_zero(gain->interval.high);
}

/* record is borrowed. */
static struct dt_moment moment_of_check(json_t *record, const struct dt_check_record *check)
{
    struct dt_moment moment = {.record = json_incref(record), .kind = DT_MOMENT_CHECK};
    moment.tuned = dt_seconds_of(check->now.tuned_ns);
    moment.fallback = dt_seconds_of(check->now.default_ns);
    moment.soft = check->update.soft;
    moment.plan = check->plan;
    moment.verdict = check->verdict != NULL ? check->verdict : "";
    set_gain(&check->now.gain, &moment);
    return moment;
}

static struct dt_moment moment_of_entry(json_t *record, const struct dt_stored_entry *entry)
{
    struct dt_moment moment = {.record = json_incref(record)};
    moment.tuned = dt_seconds_of(entry->figures.median_ns);
    moment.fallback = dt_seconds_of(entry->fallback.median_ns);
    moment.provisional = entry->provisional;
    moment.stamped = entry->fingerprint.info.checked_ns != 0;
    moment.soft = moment.stamped ? NULL : entry->fingerprint.soft;
    moment.plan = entry->plan;
    moment.verdict = entry->verdict != NULL ? entry->verdict : "";
    set_gain(&entry->gain, &moment);
    return moment;
}

/* wanted NULL: any. */
static bool is_on_engine(const char *wanted, const json_t *hard)
{
    const char *engine = json_string_value(json_object_get(hard, "engine"));
    return wanted == NULL || (engine != NULL && strcasecmp(engine, wanted) == 0);
}

/* NULL when the record names no entry, the filter excludes it, or memory runs out. */
static struct dt_entry_timeline *line_of(struct reader *reader, json_t *key, json_t *hard)
{
    struct dt_timelines *lines = reader->lines;
    struct dt_entry_timeline line = {.count = 0};
    if (!json_is_object(key) || !json_is_object(hard) || dt_store_id(key, hard, &line.id) < 0)
        return NULL;
    for (int i = 0; i < lines->count; i++)
        if (lines->lines[i].id == line.id && json_equal(lines->lines[i].key, key) &&
            json_equal(lines->lines[i].hard, hard))
            return &lines->lines[i];
    dt_check_title(key, line.title, sizeof line.title);
    if (!is_on_engine(reader->filter->engine, hard) ||
        !dt_check_passes(reader->filter->text, line.title, key))
        return NULL;
    if (DT_GROW(lines->lines, lines->count, 1) < 0) {
        reader->failed = true;
        return NULL;
    }
    line.key = json_incref(key);
    line.hard = json_incref(hard);
    lines->lines[lines->count] = line;
    return &lines->lines[lines->count++];
}

/* Owns the moment's record. */
static void line_add(struct reader *reader, struct dt_entry_timeline *line,
                     struct dt_moment *moment)
{
    bool wanted = line != NULL && moment->t_wall_ns >= reader->filter->since_ns;
    bool fits = wanted && DT_GROW(line->moments, line->count, 1) == DT_OK;
    reader->failed = reader->failed || (wanted && !fits);
    if (fits)
        line->moments[line->count++] = *moment;
    else
        json_decref(moment->record);
}

/* An entry belongs to the journal it names: after a merge or import another journal has a copy. */
static void set_origin(const struct dt_stored_entry *entry, struct dt_moment *moment)
{
    if (entry->journal == NULL || strcmp(entry->journal, moment->run) == 0)
        return;
    snprintf(moment->run, sizeof moment->run, "%s", entry->journal);
    moment->t_wall_ns = entry->fingerprint.info.t_wall_ns;
}

static void read_record(struct reader *reader, json_t *record, const char *kind)
{
    struct dt_stored_entry entry;
    bool check = strcmp(kind, "check") == 0;
    if (!check && strcmp(kind, "best") != 0)
        return;
    struct dt_check_record checked;
    dt_record_read(&dt_record_stored_entry, record, &entry);
    dt_record_read(&dt_record_check_record, record, &checked);
    struct dt_moment moment =
        check ? moment_of_check(record, &checked) : moment_of_entry(record, &entry);
    moment.t_wall_ns = json_integer_value(json_object_get(record, "t_wall_ns"));
    snprintf(moment.run, sizeof moment.run, "%s", reader->run);
    if (!check)
        set_origin(&entry, &moment);
    json_t *hard = check ? checked.subject.hard : entry.fingerprint.hard;
    line_add(reader, line_of(reader, entry.key, hard), &moment);
}

static bool has_run(const struct dt_entry_timeline *line, const char *run)
{
    for (int i = 0; i < line->count; i++)
        if (strcmp(line->moments[i].run, run) == 0)
            return true;
    return false;
}

/* Adds an entry whose journal is missing, or is in another store. An entry stored by a check names the check's
 * journal. */
static void visit_entry(const json_t *borrowed, void *context)
{
    struct reader *reader = context;
    json_t *record = (json_t *)borrowed;
    struct dt_stored_entry entry;
    dt_record_read(&dt_record_stored_entry, record, &entry);
    struct dt_entry_timeline *line = line_of(reader, entry.key, entry.fingerprint.hard);
    struct dt_moment moment = moment_of_entry(record, &entry);
    moment.t_wall_ns = entry.fingerprint.info.t_wall_ns;
    if (line != NULL && line->stored == NULL)
        line->stored = json_incref(entry.plan);
    snprintf(moment.run, sizeof moment.run, "%s", entry.journal != NULL ? entry.journal : "");
    if (line != NULL && has_run(line, moment.run))
        line = NULL;
    line_add(reader, line, &moment);
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

/* A check's journal also has the entry it stored: a confirmed plan is no second moment, another plan is an update. */
static bool is_copy(struct dt_entry_timeline *line, int i)
{
    struct dt_moment *moment = &line->moments[i];
    for (int k = 0; k < line->count && moment->kind != DT_MOMENT_CHECK; k++) {
        const struct dt_moment *other = &line->moments[k];
        if (k == i || moment->run[0] == '\0' || strcmp(other->run, moment->run) != 0)
            continue;
        if (other->kind == DT_MOMENT_CHECK ? json_equal(other->plan, moment->plan)
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
        if (is_copy(line, i)) {
            json_decref(line->moments[i].record);
            line->moments[i] = (struct dt_moment){.run = ""};
        }
    for (int i = 0; i < line->count; i++)
        if (line->moments[i].record != NULL)
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
            continue;
        }
        free(line->moments);
        json_decref(line->key);
        json_decref(line->hard);
        json_decref(line->stored);
    }
    lines->count = kept;
    if (kept > 0)
        qsort(lines->lines, (size_t)kept, sizeof *lines->lines, by_title);
}

static void read_journal(struct reader *reader, const struct dt_journals *runs)
{
    struct dt_journal_reader journal = {.path = runs->path};
    snprintf(reader->run, sizeof reader->run, "%.63s", runs->id);
    while (dt_journal_next(&journal))
        read_record(reader, journal.record, journal.kind);
    dt_status status = dt_journal_end(&journal);
    reader->lines->journals += status == DT_OK;
    reader->lines->damaged += status == DT_OK ? journal.damaged : 0;
    reader->lines->spoiled += status < 0 || journal.damaged > 0;
    if (status < 0)
        dt_text_add(&reader->lines->unread, "%s\n", dt_message());
    reader->failed = reader->failed || status == DT_ENOMEM;
}

dt_status dt_timelines_read(const char *directory, const struct dt_moment_filter *filter,
                            struct dt_timelines *lines)
{
    struct dt_timelines made = {.count = 0};
    struct reader reader = {.filter = filter, .lines = &made};
    struct dt_journals runs = {.directory = directory};
    while (dt_journals_next(&runs))
        read_journal(&reader, &runs);
    dt_status status = dt_journals_end(&runs);
    if (status == DT_OK)
        dt_error_keep(&made.store, dt_store_each(directory, visit_entry, &reader));
    if (status == DT_OK && reader.failed)
        status = dt_fail(DT_ENOMEM, "out of memory for the history of %s", directory);
    lines_sort(&made);
    if (status < 0) {
        dt_timelines_fini(&made);
        return status;
    }
    *lines = made;
    return DT_OK;
}

void dt_timelines_fini(struct dt_timelines *lines)
{
    for (int i = 0; i < lines->count; i++) {
        struct dt_entry_timeline *line = &lines->lines[i];
        for (int k = 0; k < line->count; k++)
            json_decref(line->moments[k].record);
        for (int k = 0; k < DT_SERIES_COUNT; k++)
            free(line->courses[k].at);
        json_decref(line->key);
        json_decref(line->hard);
        json_decref(line->stored);
        free(line->moments);
    }
    free(lines->lines);
    dt_text_fini(&lines->unread);
    *lines = (struct dt_timelines){.count = 0};
}

/* ---- judging */

/* Times and gains are compared as ratios, so steps and drifts are sought in their logarithms. Moments without a figure,
 * and provisional ones, are left out. */

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
            DT_TRY(judge_course(&lines->lines[i], (enum dt_series_of)series));
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

static void news_differences(struct news *news, const json_t *then, const json_t *now)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)then, name, value)
    {
        const json_t *other = json_object_get(now, name);
        if (json_is_object(value) && json_is_object(other))
            news_differences(news, value, other);
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
        news_differences(&news, known, now->soft);
    news.what = "plan ";
    if (then->plan != NULL && now->plan != NULL)
        news_differences(&news, then->plan, now->plan);
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

static void format_date(int64_t t_wall_ns, const char *format, char out[], size_t room)
{
    time_t seconds = (time_t)(t_wall_ns / 1000000000);
    struct tm parts;
    if (gmtime_r(&seconds, &parts) == NULL || strftime(out, room, format, &parts) == 0)
        out[0] = '\0';
}

void dt_day(int64_t t_wall_ns, char out[16])
{
    format_date(t_wall_ns, "%Y-%m-%d", out, 16);
}

void dt_minute(int64_t t_wall_ns, char out[24])
{
    format_date(t_wall_ns, "%Y-%m-%d %H:%M", out, 24);
}
