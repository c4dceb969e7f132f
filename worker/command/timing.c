/* SPDX-License-Identifier: MIT */
#include "worker/command/timing.h"

#include "base/array.h"
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_LINES 4096

struct values {
    double *at; /* owned */
    size_t count;
};

static dt_status find_unit(const char *unit, double *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].name, unit) == 0) {
            *ns = units[i].ns;
            return DT_OK;
        }
    return dt_fail(DT_EUSAGE, "the unit '%s' is not s, ms, us or ns", unit);
}

dt_status dt_timing_init(struct dt_timing *timing, const char *how, const char *unit)
{
    *timing = (struct dt_timing){.kind = how[0]};
    DT_TRY(find_unit(unit, &timing->unit_ns));
    if (strcmp(how, "wall") == 0)
        return DT_OK;
    if (strncmp(how, "json:", 5) == 0 && how[5] != 0) {
        timing->path = strdup(how + 5);
        return timing->path != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    }
    if (strncmp(how, "regex:", 6) != 0 || how[6] == 0)
        return dt_fail(DT_EUSAGE, "--time '%s' is not wall, regex:EXPRESSION or json:PATH", how);
    char why[200];
    int error = regcomp(&timing->regex, how + 6, REG_EXTENDED | REG_NEWLINE);
    if (error != 0) {
        regerror(error, &timing->regex, why, sizeof why);
        return dt_fail(DT_EUSAGE, "the expression '%s' cannot be read: %s", how + 6, why);
    }
    if (timing->regex.re_nsub == 0) {
        regfree(&timing->regex);
        return dt_fail(DT_EUSAGE, "the expression '%s' has no group: put the number into ( )",
                       how + 6);
    }
    return DT_OK;
}

void dt_timing_fini(struct dt_timing *timing)
{
    if (timing->kind == 'r')
        regfree(&timing->regex);
    free(timing->path);
    *timing = (struct dt_timing){0};
}

static dt_status add(struct values *values, double value)
{
    DT_TRY(DT_GROW(values->at, values->count, 1));
    values->at[values->count++] = value;
    return DT_OK;
}

/* Adds the first group of a match if it is a number. */
static dt_status add_group(const char *text, const regmatch_t *group, struct values *values)
{
    char number[64], *end;
    size_t size = group->rm_so < 0 ? 0 : (size_t)(group->rm_eo - group->rm_so);
    if (size == 0 || size >= sizeof number)
        return DT_OK;
    memcpy(number, text + group->rm_so, size);
    number[size] = 0;
    double value = strtod(number, &end);
    return *end == 0 ? add(values, value) : DT_OK;
}

/* All matches in a line: regexec is told where the line ends, since it would measure the rest of the output for each match. */
static dt_status match_line(const regex_t *regex, const char *line, size_t size,
                            struct values *values)
{
    regmatch_t found[2] = {{.rm_so = 0, .rm_eo = (regoff_t)size}};
    while (regexec(regex, line, 2, found, REG_STARTEND) == 0) {
        DT_TRY(add_group(line, &found[1], values));
        regoff_t next = found[0].rm_eo > found[0].rm_so ? found[0].rm_eo : found[0].rm_eo + 1;
        if ((size_t)next >= size)
            break;
        found[0] = (regmatch_t){.rm_so = next, .rm_eo = (regoff_t)size};
    }
    return DT_OK;
}

static dt_status match(const struct dt_timing *timing, const struct dt_text *text,
                       dt_status (*tick)(void *context), void *context, struct values *values)
{
    const char *line = dt_text_at(text), *end = line + text->size;
    for (int lines = 0; line < end; lines++) {
        size_t size = strcspn(line, "\r\n");
        DT_TRY(match_line(&timing->regex, line, size, values));
        line += size + 1;
        if (lines % TICK_LINES == 0)
            DT_TRY(tick(context));
    }
    return DT_OK;
}

/* The last line that is a JSON object, or the whole text. New reference or NULL. */
static json_t *find_json(struct dt_text *text)
{
    const char *whole = dt_text_at(text), *end = whole + text->size;
    json_t *root = NULL;
    while (root == NULL && end > whole) {
        const char *begin = end;
        while (begin > whole && begin[-1] != '\n')
            begin--;
        if (*begin == '{' && dt_json_parse(begin, (size_t)(end - begin), "a line", &root) < 0)
            root = NULL;
        end = begin > whole ? begin - 1 : whole;
    }
    if (root == NULL && dt_json_parse(whole, text->size, "the output", &root) < 0)
        root = NULL;
    return root;
}

/* The value at a path of names and [numbers]; borrowed, NULL when there is none. */
static const json_t *follow(const json_t *value, const char *path)
{
    while (value != NULL && *path != 0) {
        char name[200];
        size_t size = strcspn(path, ".[");
        if (*path == '[') {
            char *end;
            unsigned long index = strtoul(path + 1, &end, 10);
            value = *end == ']' ? json_array_get(value, index) : NULL;
            path = *end == ']' ? end + 1 : end;
        } else if (size > 0 && size < sizeof name) {
            memcpy(name, path, size);
            name[size] = 0;
            value = json_object_get(value, name);
            path += size;
        } else {
            return NULL;
        }
        path += *path == '.' && path[1] != 0;
    }
    return value;
}

static dt_status read_json(const char *path, struct dt_text *text, struct values *values)
{
    json_t *root = find_json(text);
    const json_t *value = follow(root, path);
    dt_status status = json_is_number(value) ? add(values, json_number_value(value)) : DT_OK;
    for (size_t i = 0; i < json_array_size(value) && status == DT_OK; i++) {
        const json_t *number = json_array_get(value, i);
        status = json_is_number(number)
                     ? add(values, json_number_value(number))
                     : dt_fail(DT_FAILED, "the list at '%s' has something else than numbers", path);
    }
    json_decref(root);
    return status;
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

void dt_times_fini(struct dt_times *times)
{
    free(times->ns);
    *times = (struct dt_times){.ns = NULL};
}

/* Every one, or every second, third.. of them. */
static dt_status take_all(const struct dt_timing *timing, const struct values *values,
                          struct dt_child_output *output, struct dt_times *times)
{
    size_t every = (values->count + DT_TIMES_MOST - 1) / DT_TIMES_MOST;
    char tail[300];
    dt_timing_tail(output, tail, sizeof tail);
    if (values->count == 0)
        return dt_fail(DT_FAILED, "the output has no time where --time says%s; %s%s",
                       output->cut ? " (it was above 64 MiB, and only its end was read)" : "",
                       tail[0] != 0 ? "it ends with: " : "the command printed nothing", tail);
    DT_TRY(DT_RESIZE(times->ns, values->count));
    for (size_t i = 0; i < values->count; i++) {
        double time = values->at[i] * timing->unit_ns;
        if (!(time >= 1 && time < 1e18))
            return dt_fail(DT_FAILED, "the time %g s is not above zero; the output ends with: %s",
                           time * 1e-9, tail);
        if (i % every == 0)
            times->ns[times->count++] = (int64_t)time;
    }
    return DT_OK;
}

dt_status dt_timing_take(const struct dt_timing *timing, struct dt_child_output *output,
                         dt_status (*tick)(void *context), void *context, struct dt_times *times)
{
    struct values values = {0};
    dt_status status = DT_OK;
    *times = (struct dt_times){.wall_ns = output->wall_ns, .peak_bytes = output->peak_bytes};
    if (timing->kind == 'w') {
        DT_TRY(DT_RESIZE(times->ns, 1));
        times->ns[times->count++] = output->wall_ns;
        return DT_OK;
    }
    if (timing->kind == 'j')
        status = read_json(timing->path, &output->out, &values);
    else
        status = match(timing, &output->out, tick, context, &values);
    if (timing->kind == 'r' && status == DT_OK)
        status = match(timing, &output->err, tick, context, &values);
    if (status == DT_OK)
        status = take_all(timing, &values, output, times);
    free(values.at);
    return status;
}
