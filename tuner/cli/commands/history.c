/* SPDX-License-Identifier: MIT */
/* Shows the history of a store's entries from its journals; measures nothing. */
#include "base/clock.h"
#include "db/store.h"
#include "tuner/cli/print.h"
#include "tuner/cli/report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct format {
    const char *name;
    void (*add)(const struct dt_timelines *lines, struct dt_text *out); /* NULL: JSON */
} formats[] = {{"table", dt_timelines_text},
               {"json", NULL},
               {"csv", dt_timelines_csv},
               {"openmetrics", dt_timelines_openmetrics}};

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
static void warn(const struct dt_timelines *lines)
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

/* An error when nothing is found and some files could not be read. */
static dt_status check_read(const struct dt_timelines *lines)
{
    if (lines->count > 0 || lines->journals > 0)
        return DT_OK;
    DT_TRY(dt_error_raise(&lines->store));
    if (lines->unread.size > 0)
        return dt_fail(DT_EIO, "none of the journals could be read");
    return DT_OK;
}

static dt_status print(const struct dt_timelines *lines, const struct format *format,
                       const char *directory)
{
    struct dt_text text = {0};
    if (format->add == NULL)
        return dt_print_json(dt_timelines_json(lines));
    format->add(lines, &text);
    if (format->add == dt_timelines_text && lines->count == 0)
        dt_text_add(&text, "no session and no check in %s\n", directory);
    return format->add == dt_timelines_text ? dt_print_text(&text) : dt_print_exact(&text);
}

dt_status dt_command_history(const struct dt_options *options)
{
    const char *directory = options->db != NULL ? options->db : dt_store_default();
    const struct format *format = find_format(options);
    struct dt_moment_filter filter = {
        .text = options->filter, .engine = options->upkeep.engine, .since_ns = INT64_MIN};
    struct dt_timelines lines;
    if (format == NULL)
        return dt_fail(DT_EUSAGE, "--format '%s' is not table, json, csv or openmetrics",
                       options->print.format);
    if (options->since != NULL)
        DT_TRY(parse_since(options->since, &filter.since_ns));
    DT_TRY(dt_timelines_read(directory, &filter, &lines));
    warn(&lines);
    dt_status status = check_read(&lines);
    if (status == DT_OK)
        status = dt_timelines_judge(&lines);
    if (status == DT_OK)
        status = print(&lines, format, directory);
    dt_timelines_fini(&lines);
    return status;
}
