/* SPDX-License-Identifier: MIT */
#include "worker/command/timing.h"
#include "base/array.h"
#include "base/figures.h"
#include "base/json.h"
#include "worker/command/quote.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DT_TIMES_MOST 512 /* times of a run: of more every second, third.. is taken */

/* bars - the time of a step from a progress bar of tqdm */

struct dt_bar_time {
    double seconds; /* time of a step, without the first steps; NAN: the text has no complete bar */
    char from[80];  /* "steps 2 to 28 of 28/28 [00:31<00:00]" */
};

/* tqdm draws "name:  40%|####      | 2/5 [00:01<00:02,  1.49it/s]" after a carriage return, ten
 * times a second at most. Elapsed is cut to whole seconds. The rate is a smoothed mean, and so the
 * plain mean in two lines: the first one after a step, and the one that close() draws, which a line
 * feed follows. There steps / rate is the elapsed time to three digits or more, which the whole
 * seconds confirm. Otherwise only whole seconds are known. */

#define BARS_MOST  16
#define TICK_LINES 1024
#define ERROR_MOST 0.05 /* relative error of a step's time */

/* A line of a bar. */
struct drawn {
    long done;
    double elapsed; /* whole seconds */
    double mean;    /* the same by the rate; NAN: not drawn, or the whole seconds contradict it */
    double error;   /* error of the mean */
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

static dt_status judge_bar(const struct bar *bar, struct dt_bar_time *out)
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

/* Reads the last complete bar, or the last whose description begins with name (NULL: any). tick is
 * called a few times a second.
 * DT_FAILED: it was drawn once, or the text is too coarse to tell; the errors of tick. */
static dt_status bars_read(const struct dt_text *text, const char *name,
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
    return found.total > 0 ? judge_bar(&found, out) : DT_OK;
}

#define TIMING_TICK_LINES 4096
#define METRIC_LEAST      2e-5 /* its inverse is a time of less than a day, */
#define METRIC_MOST       1e6  /* and of nanoseconds that can tell a thousandth */
#define MINUTE            60e9
#define WALL_TIMES        1.05 /* printed times are rounded: so much longer than the run is none */

struct values {
    double *at; /* owned, in ns */
    size_t count;
    char other[64]; /* a first group that is no number; "": none */
    char first[80]; /* the text of the first value */
    bool unnamed;   /* the output says nothing of the unit of one of them */
};

/* s, ms, seconds, us/step: a time; it/s, tokens/s, 1/ms: a rate, how many in that time. */
static bool read_unit(const char *unit, struct dt_timing_unit *out)
{
    static const struct {
        const char *names;
        double ns;
    } units[] = {{" s sec secs second seconds ", 1e9},
                 {" ms msec msecs millisecond milliseconds ", 1e6},
                 {" us \xc2\xb5s \xce\xbcs usec usecs microsecond microseconds ", 1e3},
                 {" ns nsec nsecs nanosecond nanoseconds ", 1},
                 {" min mins minute minutes ", MINUTE},
                 {" h hr hrs hour hours ", 60 * MINUTE}};
    const char *slash = strchr(unit, '/');
    for (int part = 0; part < (slash != NULL ? 2 : 1); part++) {
        char name[40];
        const char *from = part == 1 ? slash + 1 : unit;
        size_t size = part == 0 && slash != NULL ? (size_t)(slash - unit) : strlen(from);
        if (size == 0 || size > 30 || memchr(from, ' ', size) != NULL)
            continue;
        snprintf(name, sizeof name, " %.*s ", (int)size, from);
        for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
            if (strstr(units[i].names, name) != NULL) {
                *out = (struct dt_timing_unit){.ns = units[i].ns, .rate = part == 1};
                return slash == NULL || (slash != unit && slash[1] != 0);
            }
    }
    return false;
}

static bool is_same_unit(const struct dt_timing_unit *a, const struct dt_timing_unit *b)
{
    return a->ns == b->ns && a->rate == b->rate;
}

/* One spelling of a unit, as it is part of a key. */
static const char *spell_unit(const struct dt_timing_unit *unit, const char *text)
{
    static const char *const names[] = {"ns", "us", "ms", "s", "min", "h"};
    int i = 0;
    for (double ns = unit->ns; ns > 1 && i < 5; i++)
        ns /= i < 3 ? 1e3 : 60;
    return unit->rate ? text : names[i];
}

/* The unit at the end of a name: latency_ms, latencyMs, tokens_per_s, ms_per_token. Minutes are not
 * told from minima, nor hours from heights. */
static bool read_name_unit(const char *name, size_t size, char text[48],
                           struct dt_timing_unit *unit)
{
    char word[48] = "";
    size_t n = 0;
    for (size_t i = 0; i < size && n + 2 < sizeof word; i++) {
        bool upper = name[i] >= 'A' && name[i] <= 'Z';
        if (upper && i > 0 && name[i - 1] >= 'a' && name[i - 1] <= 'z')
            word[n++] = '_';
        word[n++] = (char)(name[i] == '-' ? '_' : upper ? name[i] - 'A' + 'a' : name[i]);
    }
    char *rate = strstr(word, "_per_"), *end = strrchr(word, '_');
    snprintf(text, 48, "%s%s", rate != NULL ? "it/" : "", end != NULL ? end + 1 : word);
    if (rate != NULL && !read_unit(text, unit)) { /* ms_per_token */
        *rate = 0;
        end = strrchr(word, '_');
        snprintf(text, 48, "%s", end != NULL ? end + 1 : word);
    }
    return read_unit(text, unit) && (unit->rate || unit->ns < MINUTE);
}

static double ns_of(double number, const struct dt_timing_unit *unit)
{
    return unit->rate ? unit->ns / number : number * unit->ns;
}

/* Refuses syntax of Python's and Perl's expressions that POSIX ones lack. */
static dt_status check_expression(const char *text)
{
    bool brackets = false;
    for (const char *at = text; *at != 0; at++) {
        bool escape = *at == '\\' && !brackets;
        if (escape && (at[1] == 'd' || at[1] == 'D'))
            return dt_fail(DT_EUSAGE,
                           "the expression '%s' has \\%c, which POSIX expressions do not "
                           "have: write [0-9] or [^0-9]",
                           text, at[1]);
        if (!brackets && at[0] == '(' && at[1] == '?')
            return dt_fail(DT_EUSAGE,
                           "the expression '%s' has (?, which POSIX expressions do not "
                           "have: a plain group ( ) behind the number's would do",
                           text);
        if (!brackets && strchr("*+?}", *at) != NULL && at > text && at[1] == '?')
            return dt_fail(DT_EUSAGE,
                           "the expression '%s' has the lazy %c?, which POSIX expressions "
                           "do not have: write what may be passed over, such as [^ ]*",
                           text, *at);
        if (*at == '[' && !brackets) {
            brackets = true;
            at += at[1] == '^';
            at += at[1] == ']';
        } else if (*at == ']') {
            brackets = false;
        }
        at += escape && at[1] != 0;
    }
    return DT_OK;
}

/* The last name of a path that names a unit does: seconds, ms, latency_ms, tokens_per_s,
 * timings_ms.mean. */
static dt_status read_path_unit(struct dt_timing *timing)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-";
    char text[48], last[48];
    struct dt_timing_unit unit, found;
    bool any = false;
    for (const char *at = timing->path; (at = strpbrk(at, letters)) != NULL;) {
        size_t size = strspn(at, letters);
        bool within = at[size + strspn(at + size, "0123456789[]*\"'")] != 0; /* s.mean: any name */
        if ((!within || size > 1) && read_name_unit(at, size, last, &found)) {
            any = true;
            unit = found;
            snprintf(text, sizeof text, "%s", last);
        }
        at += size;
    }
    if (!any || timing->metric != NULL || timing->unit_given)
        return DT_OK;
    timing->unit_named = is_same_unit(&unit, &timing->unit);
    return timing->unit_named
               ? DT_OK
               : dt_fail(DT_EUSAGE, "the path '%s' names %s, but --unit is %s: give --unit %s",
                         timing->path, text, timing->unit_text, spell_unit(&unit, text));
}

/* "PATH" or "FILE:PATH", after "json:". */
static dt_status read_path(struct dt_timing *timing, const char *text)
{
    const char *colon = text;
    for (char quote = 0; *colon != 0 && (*colon != ':' || quote != 0); colon++)
        if (quote != 0 ? *colon == quote : *colon == '"' || *colon == '\'')
            quote = quote == 0 ? *colon : 0;
    if (*colon != 0 && (colon == text || colon[1] == 0))
        return dt_fail(DT_EUSAGE, "%s 'json:%s' is not json:FILE:PATH", timing->option, text);
    if (*colon != 0 && (timing->file = strndup(text, (size_t)(colon - text))) == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    timing->path = strdup(*colon != 0 ? colon + 1 : text);
    return timing->path != NULL ? read_path_unit(timing) : dt_fail(DT_ENOMEM, "out of memory");
}

/* "tqdm", "tqdm:NAME" */
static dt_status read_bar(struct dt_timing *timing, const char *text)
{
    if (timing->unit_given)
        return dt_fail(DT_EUSAGE, "--time tqdm has no --unit: the bar shows its own");
    timing->path = *text != 0 ? strdup(text + 1) : NULL;
    return *text == 0 || timing->path != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

/* The last three marks of thousands are blanks. */
static dt_status compile_parts(struct dt_timing *timing)
{
#define PARTS "(h|hrs?|hours?|m|mins?|minutes?)"
#define MARKS "('|\xe2\x80\x99|\xc2\xa0|\xe2\x80\xaf|\xe2\x80\x89"
    static const char before[] = "[1-9][0-9]* ?" PARTS " ?$|[0-9]" MARKS ")$";
    static const char behind[] =
        "^([0-9]{1,3}" MARKS "|_)[0-9]{3}([^0-9]|$)|[0-9]+:[0-5][0-9]([^0-9]|$)|[0-9]+ ?" PARTS
        " ?[0-9.]+ ?(m|mins?|minutes?|s|secs?|seconds?)([^a-z]|$))";
    if (regcomp(&timing->part_before, before, REG_EXTENDED) != 0)
        goto out;
    if (regcomp(&timing->part_behind, behind, REG_EXTENDED) == 0)
        return DT_OK;
    regfree(&timing->part_before);
out:
    regfree(&timing->regex);
    timing->kind = 0;
    return dt_fail(DT_ENOMEM, "out of memory");
}

dt_status dt_timing_init(struct dt_timing *timing, const char *how, const char *unit,
                         const char *metric)
{
    *timing = (struct dt_timing){.kind = how[0], .metric = metric, .unit_given = unit != NULL};
    snprintf(timing->option, sizeof timing->option, "--%s%.40s",
             metric != NULL ? "metric " : "time", metric != NULL ? metric : "");
    unit = unit != NULL ? unit : "s";
    if (metric != NULL)
        timing->unit = (struct dt_timing_unit){.ns = 1};
    else if (!read_unit(unit, &timing->unit))
        return dt_fail(DT_EUSAGE,
                       "the unit '%s' is not s, ms, us, ns, min or h, or a rate such as it/s",
                       unit);
    timing->unit_text = metric != NULL ? unit : spell_unit(&timing->unit, unit);
    if (metric == NULL && strcmp(how, "wall") == 0)
        return DT_OK;
    if (metric == NULL && strncmp(how, "tqdm", 4) == 0 && (how[4] == 0 || how[4] == ':'))
        return read_bar(timing, how + 4);
    if (strncmp(how, "json:", 5) == 0 && how[5] != 0)
        return read_path(timing, how + 5);
    timing->kind = 0; /* there is nothing to free */
    if (strncmp(how, "regex:", 6) != 0 || how[6] == 0)
        return dt_fail(DT_EUSAGE, "%s '%s' is not %sregex:EXPRESSION, json:PATH or json:FILE:PATH",
                       timing->option, how, metric == NULL ? "wall, tqdm, " : "");
    DT_TRY(check_expression(how + 6));
    char why[200];
    int error = regcomp(&timing->regex, how + 6, REG_EXTENDED | REG_NEWLINE);
    if (error != 0) {
        regerror(error, &timing->regex, why, sizeof why);
        return dt_fail(DT_EUSAGE, "the expression '%s' cannot be read: %s", how + 6, why);
    }
    timing->kind = 'r';
    if (timing->regex.re_nsub > 0)
        return compile_parts(timing);
    regfree(&timing->regex);
    timing->kind = 0;
    return dt_fail(DT_EUSAGE, "the expression '%s' has no group: put the number into ( )", how + 6);
}

void dt_timing_fini(struct dt_timing *timing)
{
    for (int i = 0; i < 3 && timing->kind == 'r'; i++)
        regfree((regex_t *[]){&timing->regex, &timing->part_before, &timing->part_behind}[i]);
    free(timing->path);
    free(timing->file);
    *timing = (struct dt_timing){0};
}

static dt_status add_value(struct values *values, double value)
{
    DT_TRY(DT_GROW(values->at, values->count, 1));
    values->at[values->count++] = value;
    return DT_OK;
}

/* A group as text; false: it is not there, or too long for a number or unit. */
static bool take_group(const char *text, const regmatch_t *group, char out[64])
{
    size_t size = group->rm_so < 0 ? 0 : (size_t)(group->rm_eo - group->rm_so);
    if (size == 0 || size >= 64)
        return false;
    memcpy(out, text + group->rm_so, size);
    out[size] = 0;
    return true;
}

/* The number is a part of one with thousands, 1'234.5, or of a time of several units: 1:05.2,
 * 1m30s, "1 min 30 s". */
static dt_status check_parts(const struct dt_timing *timing, const char *begin, const char *number)
{
    enum { BEFORE = 16, BEHIND = 40 };
    const char *from = number - begin > BEFORE ? number - BEFORE : begin;
    regmatch_t before = {.rm_eo = (regoff_t)(number - from)};
    regmatch_t behind = {.rm_eo = (regoff_t)strnlen(number, BEHIND)};
    bool begins = regexec(&timing->part_before, from, 1, &before, REG_STARTEND) == 0;
    if (!begins && regexec(&timing->part_behind, number, 1, &behind, REG_STARTEND) != 0)
        return DT_OK;
    from = begins ? from + before.rm_so : number;
    const char *to = begins ? number : number + behind.rm_eo - 1; /* it may be what follows */
    to += strcspn(to, " \r\n");
    return dt_fail(DT_FAILED,
                   "the number in the group of %s is a part of one with thousands, or of a time of "
                   "several units: let the program print one plain number, as in 1234.5" DT_QUOTES
                   "; it has '%.*s'",
                   timing->option, (int)(to - from), from);
}

/* Bytes of a number that go on behind a part of it: ",5", ".25", "e-05". */
static size_t rest_of(const char *at)
{
    size_t size = strspn(at, "0123456789.,");
    while (size > 0 && strchr(".,", at[size - 1]) != NULL)
        size--;
    size_t sign = at[size] == 'e' || at[size] == 'E' ? 1 + strspn(at + size + 1, "+-") : 0;
    size_t digits = sign > 0 ? strspn(at + size + sign, "0123456789") : 0;
    return digits > 0 ? size + sign + digits : size;
}

/* One number with a decimal comma or thousands, "0,410", "1,234.5" or "1.234,5", rather than
 * several: "12,0.410,77". */
static bool is_with_comma(const char *text, size_t size)
{
    static const char *const forms[] = {"^[0-9]+,[0-9]+([eE][+-]?[0-9]+)?$",
                                        "^[0-9]{1,3}(,[0-9]{3})+([.][0-9]*)?$",
                                        "^[1-9][0-9]{0,2}([.][0-9]{3})+,[0-9]+$"};
    char copy[64];
    bool found = false;
    snprintf(copy, sizeof copy, "%.*s", (int)size, text);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0] && !found; i++) {
        regex_t form;
        if (regcomp(&form, forms[i], REG_EXTENDED | REG_NOSUB) != 0)
            continue;
        found = regexec(&form, copy, 0, NULL, 0) == 0;
        regfree(&form);
    }
    return found;
}

/* The number is a part of another one: 410 of "0,410", 5 of "12.5", 4 of "4e-05". */
static dt_status check_whole(const struct dt_timing *timing, const char *begin, const char *number,
                             size_t size)
{
    const char *from = number;
    while (from > begin && (strchr(".,", from[-1]) != NULL || (from[-1] >= '0' && from[-1] <= '9')))
        from--;
    while (from < number && (*from == '.' || *from == ','))
        from++;
    size_t whole = (size_t)(number - from) + size + rest_of(number + size);
    if (whole == size || whole > 60)
        return DT_OK;
    if (memchr(from, ',', whole) != NULL && !is_with_comma(from, whole)) { /* commas separate */
        const char *stop = memchr(number + size, ',', whole - size - (size_t)(number - from));
        whole = stop != NULL ? (size_t)(stop - from) : whole;
        for (const char *at; (at = memchr(from, ',', (size_t)(number - from))) != NULL;) {
            whole -= (size_t)(at + 1 - from);
            from = at + 1;
        }
        if (whole == size)
            return DT_OK;
    }
    const char *hint = memchr(from, ',', whole) != NULL
                           ? "has a comma: let the program print it with a point and without "
                             "thousands (LC_ALL=C)"
                       : from < number
                           ? "begins before the group: put all of it into the group, and no .* "
                             "before"
                           : "goes on behind the group: put all of it into the group, as in "
                             "([0-9.e+-]+)";
    return dt_fail(DT_FAILED,
                   "the number in the group of %s %s" DT_QUOTES
                   "; the group has '%.*s' of the number '%.*s'",
                   timing->option, hint, (int)size, number, (int)whole, from);
}

/* The word behind a number: a unit, perhaps. */
static void take_word(const char *behind, char word[40])
{
    const char *at = behind + strspn(behind, " \t");
    size_t n = strcspn(at, " \t\r\n,;:)]|}\"'.<>=");
    snprintf(word, 40, "%.*s", n < 40 ? (int)n : 0, at);
}

/* "5 min" may be five minutes, and the least of some numbers: "0.41 min 0.39 max", or where the
 * unit is given. */
static bool is_label(const struct dt_timing *timing, const char *behind)
{
    const char *at = behind + strspn(behind, " \t");
    at += strcspn(at, " \t\r\n:=");
    at += strspn(at, " \t:=");
    return timing->unit_given || (*at >= '0' && *at <= '9');
}

/* The word behind a number names the unit that is read (*named), or another one. */
static dt_status check_behind(const struct dt_timing *timing, const char *number, size_t size,
                              bool *named)
{
    char word[40];
    struct dt_timing_unit unit;
    take_word(number + size, word);
    *named = read_unit(word, &unit) &&
             !(unit.ns >= MINUTE && !unit.rate && is_label(timing, number + size));
    if (!*named || is_same_unit(&unit, &timing->unit))
        return DT_OK;
    return dt_fail(DT_FAILED,
                   "the output has another unit than %s: give it as --unit, or, where it changes, "
                   "put the unit into a second group" DT_QUOTES "; it has '%.*s %s' (--unit %s)",
                   timing->unit_text, (int)size, number, word, spell_unit(&unit, word));
}

/* The name before a number ends with its unit: "latency_ms: 5", "step_s=5", "ms: 5", "time [ms] 5",
 * "took (in ms): 5". A unit that is given stands: the name may mean something else. */
static dt_status check_before(const struct dt_timing *timing, const char *begin, const char *number,
                              size_t size, bool *named)
{
    enum { MOST = 60 };
    char text[48];
    struct dt_timing_unit unit;
    const char *at = number, *least = number - begin > MOST ? number - MOST : begin;
    bool apart = false;
    for (; at > least && strchr(" \t\"'=:", at[-1]) != NULL; at--)
        apart = apart || at[-1] == '=' || at[-1] == ':';
    bool brackets = at > least && (at[-1] == ')' || at[-1] == ']');
    const char *end = at -= brackets;
    while (at > least &&
           (at[-1] & 0x80 || isalnum((unsigned char)at[-1]) || strchr("_-/", at[-1]) != NULL))
        at--;
    if (at == end || timing->unit_given || !read_name_unit(at, (size_t)(end - at), text, &unit))
        return DT_OK;
    bool whole = strlen(text) == (size_t)(end - at);
    if (whole && !brackets && !(apart && end - at > 1))
        return DT_OK;
    *named = is_same_unit(&unit, &timing->unit);
    return *named ? DT_OK
                  : dt_fail(DT_FAILED,
                            "the output has another unit than %s: give it as --unit" DT_QUOTES
                            "; it has '%.*s' (--unit %s)",
                            timing->unit_text, (int)(number - at) + (int)size, at,
                            spell_unit(&unit, text));
}

/* Adds the first group of a match, which is a number, in the unit of the second
 * one, if that is a unit. */
static dt_status add_group(const struct dt_timing *timing, const char *begin, const char *text,
                           const regmatch_t groups[3], struct values *values)
{
    char number[64], second[64], *end;
    struct dt_timing_unit unit = timing->unit;
    if (!take_group(text, &groups[1], number))
        return DT_OK;
    double value = strtod(number, &end);
    if (*end != 0) {
        snprintf(values->other, sizeof values->other, "%s", number);
        return DT_OK;
    }
    const char *at = text + groups[1].rm_so;
    if (!isfinite(value))
        return dt_fail(DT_FAILED, "the output has a %s that is not finite" DT_QUOTES ": '%s'",
                       timing->metric != NULL ? "number" : "time", number);
    DT_TRY(check_whole(timing, begin, at, strlen(number)));
    DT_TRY(check_parts(timing, begin, at));
    bool named = timing->metric != NULL ||
                 (timing->regex.re_nsub > 1 && take_group(text, &groups[2], second) &&
                  read_unit(second, &unit));
    if (!named)
        DT_TRY(check_behind(timing, at, strlen(number), &named));
    if (!named)
        DT_TRY(check_before(timing, begin, at, strlen(number), &named));
    values->unnamed = values->unnamed || !named;
    if (values->count == 0) {
        const char *stop = text + groups[0].rm_eo;
        take_word(at + strlen(number), second);
        if (stop == at + strlen(number) && second[0] != 0)
            stop += strspn(stop, " \t") + strlen(second);
        snprintf(values->first, sizeof values->first, "%.*s", (int)(stop - at), at);
    }
    return add_value(values, ns_of(value, &unit));
}

/* All matches in a line: regexec is told where the line ends, since it would measure the rest of
 * the output for each match. */
static dt_status match_line(const struct dt_timing *timing, const char *line, size_t size,
                            struct values *values)
{
    regmatch_t found[3] = {{.rm_so = 0, .rm_eo = (regoff_t)size}};
    while (regexec(&timing->regex, line, 3, found, REG_STARTEND) == 0) {
        DT_TRY(add_group(timing, line, line, found, values));
        regoff_t next = found[0].rm_eo > found[0].rm_so ? found[0].rm_eo : found[0].rm_eo + 1;
        if ((size_t)next >= size)
            break;
        found[0] = (regmatch_t){.rm_so = next, .rm_eo = (regoff_t)size};
    }
    return DT_OK;
}

static dt_status match_timing(const struct dt_timing *timing, const struct dt_text *text,
                              dt_status (*tick)(void *context), void *context,
                              struct values *values)
{
    const char *line = dt_text_at(text), *end = line + text->size;
    for (int lines = 0; line < end; lines++) {
        size_t size = strcspn(line, "\r\n");
        DT_TRY(match_line(timing, line, size, values));
        line += size + 1;
        if (lines % TIMING_TICK_LINES == 0)
            DT_TRY(tick(context));
    }
    return DT_OK;
}

/* Bytes of the JSON object or list that begins here, by its brackets; 0: it has no end. */
static size_t number_extent(const char *begin)
{
    int depth = 0;
    bool quoted = false;
    for (const char *at = begin; *at != 0; at++) {
        if (quoted && *at == '\\' && at[1] != 0)
            at++;
        else if (*at == '"')
            quoted = !quoted;
        else if (!quoted && (*at == '{' || *at == '['))
            depth++;
        else if (!quoted && (*at == '}' || *at == ']') && --depth == 0)
            return (size_t)(at - begin + 1);
    }
    return 0;
}

struct span {
    const char *begin, *end;
};

/* The last object or list that begins a line before span->begin, on one line or many, or the whole
 * text; *span becomes it. New reference; *root NULL: none. An object with NaN, which Python writes
 * and JSON does not have, is not passed over for an older one. */
static dt_status find_json(const struct dt_text *text, struct span *span, json_t **root)
{
    enum { TRIES = 1000 };
    const char *whole = dt_text_at(text), *end = span->begin;
    end -= span->end != NULL && end > whole; /* the line feed before the one found last */
    int tries = 0;
    *root = NULL;
    while (end > whole && tries < TRIES) {
        const char *begin = end;
        while (begin > whole && begin[-1] != '\n')
            begin--;
        size_t size = *begin == '{' || *begin == '[' ? number_extent(begin) : 0;
        tries += size > 0;
        *span = (struct span){begin, begin + size};
        if (size > 0 && dt_json_parse(begin, size, "a line", root) == DT_OK)
            return DT_OK;
        *root = NULL;
        if (size > 0 && *begin == '{' &&
            (memmem(begin, size, "NaN", 3) != NULL || memmem(begin, size, "Infinity", 8) != NULL))
            return dt_fail(DT_FAILED,
                           "the last JSON object of the output has NaN or Infinity, so it "
                           "is no JSON" DT_QUOTES ": %.80s",
                           begin);
        end = begin > whole ? begin - 1 : whole;
    }
    *span = (struct span){whole, whole + text->size};
    if (dt_json_parse(whole, text->size, "the output", root) < 0)
        *root = NULL;
    return DT_OK;
}

/* The field beside a number that names its unit, as Google Benchmark's "time_unit"; NULL: none. */
static const char *unit_beside(const json_t *holder, struct dt_timing_unit *unit)
{
    static const char *const names[] = {"unit", "units", "time_unit", "timeunit", "timeUnit"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *text = json_string_value(json_object_get(holder, names[i]));
        if (text != NULL && read_unit(text, unit))
            return text;
    }
    return NULL;
}

static dt_status add_number(const struct dt_timing *timing, const json_t *holder,
                            const json_t *value, struct values *values)
{
    struct dt_timing_unit unit = timing->unit, beside;
    if (json_is_string(value))
        return dt_fail(DT_FAILED, "at '%s' is a text, not a number" DT_QUOTES ": '%.60s'",
                       timing->path, json_string_value(value));
    if (!json_is_number(value))
        return dt_fail(DT_FAILED, "at '%s' is something else than numbers", timing->path);
    const char *text = timing->metric == NULL ? unit_beside(holder, &beside) : NULL;
    if (text != NULL && timing->unit_given && !is_same_unit(&beside, &unit))
        return dt_fail(DT_FAILED,
                       "the output names another unit than --unit %s beside '%s'" DT_QUOTES
                       ": '%s'",
                       timing->unit_text, timing->path, text);
    if (text != NULL)
        unit = beside;
    if (values->count == 0)
        snprintf(values->first, sizeof values->first, "%.40s: %.9g%s%.20s", timing->path,
                 json_number_value(value), text != NULL ? " " : "", text != NULL ? text : "");
    values->unnamed = values->unnamed || (!timing->unit_named && text == NULL);
    return add_value(values, ns_of(json_number_value(value), &unit));
}

/* A number, or a list or an object of numbers. holder: the object that has it. */
static dt_status add_numbers(const struct dt_timing *timing, const json_t *holder, json_t *value,
                             struct values *values)
{
    const char *name;
    json_t *item;
    size_t i;
    if (json_is_number(value) || json_is_string(value))
        return add_number(timing, holder, value, values);
    json_array_foreach(value, i, item) DT_TRY(add_number(timing, holder, item, values));
    json_object_foreach(value, name, item) DT_TRY(add_number(timing, holder, item, values));
    return DT_OK;
}

/* One step of a path: name, "a.b", [3], ["a.b"] or [*]; *value becomes NULL where there is none.
 * Returns what follows; NULL: the path has a mistake. */
static const char *path_step(const char *path, json_t **value, bool *all)
{
    char name[200];
    bool bracket = *path == '[';
    const char *at = path + bracket;
    bool quoted = *at == '"' || *at == '\'';
    size_t size = quoted    ? strcspn(at + 1, (const char[]){*at, 0})
                  : bracket ? strcspn(at, "]")
                            : strcspn(at, ".[");
    if (size == 0 || size >= sizeof name)
        return NULL;
    snprintf(name, sizeof name, "%.*s", (int)size, at + quoted);
    if (quoted && at[1 + size] == 0)
        return NULL;
    at += size + 2 * (size_t)quoted;
    if (bracket && *at++ != ']')
        return NULL;
    *all = bracket && !quoted && strcmp(name, "*") == 0;
    bool index = bracket && !quoted && !*all;
    if (index && name[strspn(name, "0123456789")] != 0)
        return NULL;
    if (index)
        *value = json_array_get(*value, strtoul(name, NULL, 10));
    else if (!*all)
        *value = json_object_get(*value, name);
    return at + (*at == '.' && at[1] != 0);
}

static dt_status collect_values(const struct dt_timing *timing, const json_t *holder, json_t *value,
                                const char *path, struct values *values)
{
    bool all = false;
    const char *name;
    json_t *item;
    size_t i;
    while (value != NULL && *path != 0 && !all) {
        holder = json_is_object(value) ? value : holder;
        if ((path = path_step(path, &value, &all)) == NULL)
            return DT_OK;
    }
    if (!all)
        return add_numbers(timing, holder, value, values);
    json_array_foreach(value, i, item) DT_TRY(collect_values(timing, holder, item, path, values));
    json_object_foreach(value, name, item)
        DT_TRY(collect_values(timing, holder, item, path, values));
    return DT_OK;
}

/* Reads the last JSON, or the text that it is in. An earlier one that has the path is named, not
 * read: it may be of a warm-up. */
static dt_status read_json(const struct dt_timing *timing, const struct dt_text *text,
                           struct values *values)
{
    struct span last = {.end = NULL}, span = {.begin = dt_text_at(text) + text->size};
    do {
        json_auto_t *root = NULL;
        dt_status status = find_json(text, &span, &root);
        status =
            status == DT_OK ? collect_values(timing, NULL, root, timing->path, values) : status;
        if (last.end == NULL)
            last = span;
        bool is_last = span.end >= last.end;
        if (status < 0)
            return is_last ? status : DT_OK;
        if (values->count > 0 && !is_last)
            return dt_fail(DT_FAILED,
                           "the last JSON of the output has nothing at '%s', which an earlier one "
                           "has: let the program print its result last, or read the lines by "
                           "regex: and take each as a step",
                           timing->path);
    } while (values->count == 0 && span.begin > dt_text_at(text));
    return DT_OK;
}

void dt_timing_tail(struct dt_child_output *output, char out[], size_t room)
{
    struct dt_text *text = output->err.size > 0 ? &output->err : &output->out;
    size_t size = text->size;
    while (size > 0 && strchr(" \t\r\n", dt_text_at(text)[size - 1]) != NULL)
        size--;
    size_t from = size < room ? 0 : size - room + 1;
    snprintf(out, room, "%.*s", (int)(size - from), dt_text_at(text) + from);
    dt_text_mend(out);
    for (char *at = out; *at != 0; at++)
        if (*at == '\n' || *at == '\r')
            *at = '|';
    dt_text_clean(out);
}

static int by_value(const void *a, const void *b)
{
    const double *p = a, *q = b;
    return (*p > *q) - (*p < *q);
}

double dt_timing_middle(double values[], size_t count)
{
    qsort(values, count, sizeof values[0], by_value);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

void dt_times_fini(struct dt_times *times)
{
    free(times->ns);
    *times = (struct dt_times){.ns = NULL};
}

/* A step is no longer than its run, and steps one after the other are not either: another unit was
 * meant, or the times are simulated, which a unit that is given, or named by the output, allows. */
static dt_status check_wall(const struct dt_timing *timing, const struct values *values,
                            const struct dt_child_output *output, struct dt_times *times)
{
    double most = 0, sum = 0, wall = (double)output->wall_ns;
    dt_auto_text say = {0};
    for (size_t i = 0; i < values->count; i++) {
        sum += values->at[i];
        most = fmax(most, values->at[i]);
    }
    bool one = most > WALL_TIMES * wall;
    times->too_long = one || sum > WALL_TIMES * wall * (output->ranks > 1 ? output->ranks : 1);
    if (!times->too_long || timing->unit_given || !values->unnamed)
        return DT_OK;
    if (one)
        dt_text_add(&say, "the output has a time of ");
    else
        dt_text_add(&say, "the output has %zu times, together ", values->count);
    dt_figure_time((one ? most : sum) * 1e-9, &say);
    dt_text_add(&say, ", but the whole run took ");
    dt_figure_time(wall * 1e-9, &say);
    return dt_fail(
        DT_FAILED,
        "%s: is --unit right? Give --unit ms, us, ns or a rate such as it/s, or --unit %s where "
        "the time is simulated%s" DT_QUOTES "; read from '%s'",
        dt_text_at(&say), timing->unit_text, one ? "" : " or several processes print theirs",
        values->first);
}

static void say_read(const struct dt_timing *timing, const struct values *values,
                     struct dt_times *times)
{
    dt_auto_text say = {0};
    dt_text_add(&say, "%s read: ", timing->metric != NULL ? timing->metric : "time");
    if (timing->metric != NULL)
        dt_text_add(&say, "%.6g", values->at[0]);
    else
        dt_figure_time(values->at[0] * 1e-9, &say);
    dt_text_add(&say, DT_QUOTES " from '%s'", values->first);
    if (values->count > 1)
        dt_text_add(&say, ", the first of %zu", values->count);
    snprintf(times->read, sizeof times->read, "%s", dt_text_at(&say));
    dt_text_mend(times->read);
}

static dt_status refuse_nothing(const struct dt_timing *timing, const struct values *values,
                                struct dt_child_output *output)
{
    char tail[300];
    dt_timing_tail(output, tail, sizeof tail);
    if (values->other[0] != 0)
        return dt_fail(DT_FAILED,
                       "the first group of %s matched what is no number: put the number alone "
                       "into the first group, with a point and without thousands" DT_QUOTES
                       "; it matched '%s'",
                       timing->option, values->other);
    if (timing->file != NULL)
        return dt_fail(DT_FAILED, "the file of %s has no number at '%s'", timing->option,
                       timing->path);
    if (timing->kind == 't')
        return dt_fail(
            DT_FAILED,
            "the output has no progress bar of tqdm%s%s that came to its end, as in "
            "'28/28 [00:31<00:00, 1.10s/it]'%s%s",
            timing->path != NULL ? " named " : "", timing->path != NULL ? timing->path : "",
            tail[0] != 0 ? DT_QUOTES "; it ends with: " : "; the command printed nothing", tail);
    return dt_fail(
        DT_FAILED, "the output has no %s where %s says%s%s%s",
        timing->metric != NULL ? "number" : "time", timing->option,
        output->cut ? " (it was above 64 MiB, and only its end was read)"
        : timing->kind == 'r' && (strstr(tail, "it/s]") != NULL || strstr(tail, "s/it]") != NULL)
            ? " (a progress bar turns over between s/it and it/s: --time tqdm reads it)"
            : "",
        tail[0] != 0 ? DT_QUOTES "; it ends with: " : "; the command printed nothing", tail);
}

static dt_status read_tqdm(const struct dt_timing *timing, const struct dt_text *text,
                           dt_status (*tick)(void *context), void *context, struct values *values)
{
    struct dt_bar_time bar;
    DT_TRY(bars_read(text, timing->path, tick, context, &bar));
    if (isnan(bar.seconds))
        return DT_OK;
    snprintf(values->first, sizeof values->first, "%s", bar.from);
    return add_value(values, bar.seconds * 1e9);
}

/* The numbers, one at least; times in ns. The caller frees values->at in any case. */
static dt_status read_values(const struct dt_timing *timing, struct dt_child_output *output,
                             dt_status (*tick)(void *context), void *context, struct values *values)
{
    const struct dt_text *texts[] = {&output->out, &output->err};
    dt_status status = DT_OK;
    if (timing->file != NULL)
        status = read_json(timing, output->file, values);
    for (int i = 0; i < 2 && status == DT_OK && timing->file == NULL; i++) {
        if (timing->kind == 'r')
            status = match_timing(timing, texts[i], tick, context, values);
        else if (timing->kind == 'j' && values->count == 0)
            status = read_json(timing, texts[i], values);
        else if (timing->kind == 't' && values->count == 0)
            status = read_tqdm(timing, texts[1 - i], tick, context, values);
    }
    return status == DT_OK && values->count == 0 ? refuse_nothing(timing, values, output) : status;
}

/* A time, or the inverse of a metric to be maximised, as a time. */
static dt_status time_of(const struct dt_timing *timing, double value,
                         struct dt_child_output *output, int64_t *ns)
{
    char tail[300] = "";
    if (timing->metric != NULL && !(value >= METRIC_LEAST && value <= METRIC_MOST))
        return dt_fail(DT_FAILED,
                       "%s is %g: a number to be maximised is from %g to %g: print it in another "
                       "unit",
                       timing->option, value, METRIC_LEAST, METRIC_MOST);
    double time = timing->metric != NULL ? 1e9 / value : value;
    if (time >= 1 && time < 1e18) {
        *ns = (int64_t)time;
        return DT_OK;
    }
    dt_timing_tail(output, tail, sizeof tail);
    return dt_fail(DT_FAILED, "the time of %g seconds %s" DT_QUOTES "; the output ends with: %s",
                   time * 1e-9,
                   !(time > 0)                        ? "is not above zero"
                   : time < 1                         ? "is shorter than a nanosecond"
                   : isinf(time) && timing->unit.rate ? "follows from a rate of 0"
                                                      : "is longer than any run",
                   tail);
}

/* Every one, or every second, third.. of them. */
static dt_status take_all(const struct dt_timing *timing, const struct values *values,
                          struct dt_child_output *output, struct dt_times *times)
{
    size_t every = (values->count + DT_TIMES_MOST - 1) / DT_TIMES_MOST;
    DT_TRY(DT_RESIZE(times->ns, values->count));
    for (size_t i = 0; i < values->count; i++) {
        int64_t ns = 0;
        DT_TRY(time_of(timing, values->at[i], output, &ns));
        if (i % every == 0)
            times->ns[times->count++] = ns;
    }
    say_read(timing, values, times);
    return timing->metric == NULL ? check_wall(timing, values, output, times) : DT_OK;
}

dt_status dt_timing_take(const struct dt_timing *timing, struct dt_child_output *output,
                         dt_status (*tick)(void *context), void *context, struct dt_times *times)
{
    struct values values = {0};
    *times = (struct dt_times){.wall_ns = output->wall_ns, .peak_bytes = output->peak_bytes};
    if (timing->kind == 'w') {
        DT_TRY(DT_RESIZE(times->ns, 1));
        times->ns[times->count++] = output->wall_ns;
        return DT_OK;
    }
    dt_status status = read_values(timing, output, tick, context, &values);
    if (status == DT_OK)
        status = take_all(timing, &values, output, times);
    free(values.at);
    return status;
}

dt_status dt_timing_median(const struct dt_timing *timing, struct dt_child_output *output,
                           dt_status (*tick)(void *context), void *context, double *median)
{
    struct values values = {0};
    dt_status status = read_values(timing, output, tick, context, &values);
    if (status == DT_OK)
        *median = dt_timing_middle(values.at, values.count);
    free(values.at);
    return status;
}
