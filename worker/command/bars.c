/* SPDX-License-Identifier: MIT */
/* tqdm draws "name:  40%|####      | 2/5 [00:01<00:02,  1.49it/s]" after a carriage return, ten times a second at most. Elapsed is cut
 * to whole seconds. The rate is a smoothed mean, and so the plain mean in two lines: the first one after a step, and the one that
 * close() draws, which a line feed follows. There steps / rate is the elapsed time to three digits or more, which the whole seconds
 * confirm. Otherwise only whole seconds are known. */
#include "worker/command/bars.h"

#include "base/figures.h"

#include "worker/command/quote.h"

#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BARS_MOST  16
#define TICK_LINES 1024
#define ERROR_MOST 0.05 /* of a step's time, relative */

/* A line of a bar. */
struct drawn {
    long done;
    double elapsed; /* whole seconds */
    double mean;    /* the same by the rate; NAN: not drawn, or the whole seconds contradict it */
    double error;   /* of mean */
};

struct bar {
    char name
        [48]; /* description up to its first digit; bars of one name and total follow each other */
    long total, begin;
    struct drawn first, last; /* first.done 0: no step is done */
    bool closed;
};

static double seconds_of(const char *text, const regmatch_t groups[])
{
    double hours = groups[3].rm_so >= 0 ? atof(text + groups[4].rm_so) : 0;
    return hours * 3600 + atof(text + groups[5].rm_so) * 60 + atof(text + groups[6].rm_so);
}

/* The elapsed time by steps and rate. */
static void read_mean(const char *text, const regmatch_t groups[], long steps, struct drawn *drawn)
{
    const char *number = text + groups[8].rm_so, *point = strchr(number, '.');
    double rate = atof(number), half = 0.5;
    for (const char *at = point; at != NULL && at[1] >= '0' && at[1] <= '9'; at++)
        half /= 10;
    bool inverse = groups[9].rm_eo - groups[9].rm_so == 1 && text[groups[9].rm_so] == 's';
    double mean = inverse ? (double)steps * rate : (double)steps / rate;
    double error = mean * half / rate;
    bool confirmed = mean > drawn->elapsed - error && mean < drawn->elapsed + 1 + error;
    drawn->mean = steps > 0 && confirmed ? mean : NAN;
    drawn->error = error;
}

static struct bar *find_bar(struct bar bars[], int *count, const char *name, long total)
{
    for (int i = 0; i < *count; i++)
        if (bars[i].total == total && strcmp(bars[i].name, name) == 0)
            return &bars[i];
    struct bar *bar = &bars[*count < BARS_MOST ? (*count)++ : BARS_MOST - 1];
    *bar = (struct bar){.total = total};
    snprintf(bar->name, sizeof bar->name, "%s", name);
    return bar;
}

/* Adds a line; true: its bar is complete, and is *out. */
static bool add_line(const char *line, const regmatch_t groups[], struct bar bars[], int *count,
                     struct bar *out)
{
    char name[sizeof out->name];
    size_t size = strcspn(line, "0123456789|");
    struct drawn now = {
        .done = atol(line + groups[1].rm_so), .elapsed = seconds_of(line, groups), .mean = NAN};
    bool begins = line[groups[8].rm_so] == '?';
    while (size > 0 && (line[size - 1] == ' ' || line[size - 1] == ':'))
        size--;
    snprintf(name, sizeof name, "%.*s", size < sizeof name ? (int)size : 0, line);
    struct bar *bar = find_bar(bars, count, name, atol(line + groups[2].rm_so));
    bool again = now.done < bar->last.done && now.elapsed < bar->last.elapsed;
    if (begins || again)
        *bar = (struct bar){.total = bar->total, .begin = begins ? now.done : 0};
    snprintf(bar->name, sizeof bar->name, "%s", name);
    if (!begins)
        read_mean(line, groups, now.done - bar->begin, &now);
    if (bar->first.done == 0 && now.done > bar->begin && !begins)
        bar->first = now;
    bar->last = now;
    size_t end = strcspn(line, "\r\n");
    bar->closed = line[end - 1] == ']' && line[end] == '\n';
    *out = *bar;
    return now.done == bar->total;
}

static dt_status judge(const struct bar *bar, struct dt_bar_time *out)
{
    const struct drawn *first = &bar->first, *last = &bar->last;
    bool exact = bar->closed && isfinite(first->mean) && isfinite(last->mean);
    double seconds = exact ? last->mean - first->mean : last->elapsed - first->elapsed;
    double error = exact ? last->error + first->error : 1;
    long steps = last->done - first->done;
    snprintf(out->from, sizeof out->from, "steps %ld to %ld of %ld/%ld [%02.0f:%02.0f<00:00]",
             first->done + 1, last->done, last->done, bar->total, floor(last->elapsed / 60),
             fmod(last->elapsed, 60));
    if (steps < 1)
        return dt_fail(DT_FAILED,
                       "the bar was drawn only at its end, so its first step cannot be left "
                       "out: let it have more steps, or print the time of each and read it by "
                       "regex:" DT_QUOTES "; it is '%s%s%ld/%ld'",
                       bar->name, bar->name[0] != 0 ? ": " : "", last->done, bar->total);
    if (!(seconds > 0 && error <= ERROR_MOST * seconds))
        return dt_fail(DT_FAILED,
                       "the bar shows its time too coarsely: %s without the first step, give "
                       "or take %s. Let it have more steps, or print the time of each and "
                       "read it by regex:" DT_QUOTES "; it is '%s%s%ld/%ld'",
                       dt_figure_of(seconds > 0 ? seconds : 0).text, dt_figure_of(error).text,
                       bar->name, bar->name[0] != 0 ? ": " : "", last->done, bar->total);
    out->seconds = seconds / (double)steps;
    return DT_OK;
}

dt_status dt_bars_read(const struct dt_text *text, const char *name,
                       dt_status (*tick)(void *context), void *context, struct dt_bar_time *out)
{
    static const char form[] = "([0-9]+)/([0-9]+) \\[(([0-9]+):)?([0-9]+):([0-9][0-9])<([0-9:?]+), "
                               "*([0-9.]+|\\?)([^],/ ]*)/";
    struct bar bars[BARS_MOST], bar, found = {.total = 0};
    int count = 0, lines = 0;
    dt_status status = DT_OK;
    regex_t regex;
    regmatch_t groups[10];
    const char *line = dt_text_at(text), *end = line + text->size;
    *out = (struct dt_bar_time){.seconds = NAN};
    if (regcomp(&regex, form, REG_EXTENDED) != 0)
        return dt_fail(DT_ENOMEM, "out of memory");
    while (line < end && status == DT_OK) {
        line += strspn(line, " \r\n");
        size_t size = strcspn(line, "\r\n");
        groups[0] = (regmatch_t){.rm_so = 0, .rm_eo = (regoff_t)size};
        if ((name == NULL || strncmp(line, name, strlen(name)) == 0) &&
            regexec(&regex, line, 10, groups, REG_STARTEND) == 0 &&
            add_line(line, groups, bars, &count, &bar))
            found = bar;
        line += size;
        if (++lines % TICK_LINES == 0)
            status = tick(context);
    }
    regfree(&regex);
    DT_TRY(status);
    return found.total > 0 ? judge(&found, out) : DT_OK;
}
