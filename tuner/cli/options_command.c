/* SPDX-License-Identifier: MIT */
/* --command and what belongs to it, as a worker and its arguments, and --engine as the worker of that engine. */
#include "tuner/cli/options_int.h"

#include "base/figures.h"
#include "db/engines/engines.h"
#include "tuner/machine/machine.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define PROGRAM "dittune-worker-command"

/* The options of the worker that have a value, in their order on its command line. */
static const struct row {
    const char *option;
    size_t at; /* in struct dt_command_options */
} rows[] = {{"command", offsetof(struct dt_command_options, text)},
            {"space", offsetof(struct dt_command_options, space)},
            {"time", offsetof(struct dt_command_options, time)},
            {"unit", offsetof(struct dt_command_options, unit)},
            {"prepare", offsetof(struct dt_command_options, prepare)},
            {"cleanup", offsetof(struct dt_command_options, cleanup)},
            {"timeout", offsetof(struct dt_command_options, timeout)},
            {"retries", offsetof(struct dt_command_options, retries)},
            {"accept-codes", offsetof(struct dt_command_options, accept)},
            {"leftovers", offsetof(struct dt_command_options, leftovers)},
            {"verify-output", offsetof(struct dt_command_options, output)},
            {"compare", offsetof(struct dt_command_options, compare)},
            {"tolerance", offsetof(struct dt_command_options, tolerance)},
            {"ready", offsetof(struct dt_command_options, ready)},
            {"request", offsetof(struct dt_command_options, request)},
            {"requests", offsetof(struct dt_command_options, requests)},
            {"start-timeout", offsetof(struct dt_command_options, start)}};
enum {
    ROWS = sizeof rows / sizeof rows[0],
    FIRST_STRAY = 2
}; /* --space has a meaning without --command */

static const char *value_of(const struct dt_command_options *command, int i)
{
    return *(const char *const *)(const void *)((const char *)command + rows[i].at);
}

/* One of the options that mean something only with --command, if it was given. */
static const char *stray(const struct dt_command_options *command)
{
    for (int i = FIRST_STRAY; i < ROWS; i++)
        if (value_of(command, i) != NULL)
            return rows[i].option;
    return command->metrics.count > 0  ? "metric"
           : command->limits.count > 0 ? "limit"
           : command->shell            ? "shell"
           : command->is_private       ? "private"
                                       : NULL;
}

static bool is_servers(const char *name)
{
    return strcmp(name, "ready") == 0 || strncmp(name, "request", 7) == 0;
}

/* An option of --command beside --server, or the other way round; NULL: none. */
static const char *misplaced(const struct dt_command_options *command)
{
    for (int i = FIRST_STRAY; i < ROWS; i++) {
        const char *name = rows[i].option;
        bool both = strcmp(name, "time") == 0 || strcmp(name, "unit") == 0 ||
                    strcmp(name, "timeout") == 0 || strcmp(name, "start-timeout") == 0;
        bool server = is_servers(name);
        if (!both && server != command->served && value_of(command, i) != NULL)
            return name;
    }
    return command->served && command->limits.count > 0 ? "limit" : NULL;
}

static dt_status check_command(const struct dt_command_options *command, const char *metric)
{
    const char *name = command->served ? "server" : "command", *wrong = misplaced(command);
    if (wrong != NULL)
        return dt_fail(DT_EUSAGE, "--%s belongs to --%s, which is not given", wrong,
                       command->served ? "command" : "server");
    if (command->space == NULL)
        return dt_fail(DT_EUSAGE, "--%s needs --space FILE: its parameters and their values", name);
    if (command->served && command->request == NULL)
        return dt_fail(DT_EUSAGE, "--server needs --request FILE: the HTTP request that is timed");
    if (!command->served && command->time == NULL && metric == NULL)
        return dt_fail(DT_EUSAGE, "--command needs --time: regex:EXPRESSION, json:PATH or wall; or "
                                  "--objective max:METRIC");
    if (command->output == NULL && (command->compare != NULL || command->tolerance != NULL))
        return dt_fail(DT_EUSAGE, "--%s needs --verify-output FILE",
                       command->compare != NULL ? "compare" : "tolerance");
    return DT_OK;
}

static void add_word(const char *name, const char *value, const char *words[], int *count)
{
    words[(*count)++] = name;
    words[(*count)++] = value;
}

dt_status dt_options_command(struct dt_options *options)
{
    static char start[24];
    static char names[ROWS][24]; /* a process has one command line */
    static const char *words[2 * (ROWS + 1 + 2 * DT_TEXTS_MOST) + 2];
    const struct dt_command_options *command = &options->command;
    int count = 0;
    if (command->text == NULL && command->space != NULL && options->worker.program.path == NULL &&
        options->worker.engine == NULL)
        return dt_fail(DT_EUSAGE, "--space needs --command, --server, --worker or --engine");
    if (command->text == NULL)
        return stray(command) == NULL
                   ? DT_OK
                   : dt_fail(DT_EUSAGE, "--%s belongs to --%s, which is not given", stray(command),
                             is_servers(stray(command)) ? "server" : "command");
    const char *metric = dt_figure_metric(options->job.objective);
    DT_TRY(check_command(command, metric));
    if (command->served && dt_option_given(options, "start-timeout")) {
        snprintf(start, sizeof start, "%.9g", (double)options->worker.start_ns * 1e-9);
        options->command.start = start;
    }
    for (int i = 0; i < ROWS; i++) {
        if (value_of(command, i) == NULL)
            continue;
        snprintf(names[i], sizeof names[i], "--%s",
                 i == 0 && command->served ? "server" : rows[i].option);
        add_word(names[i], value_of(command, i), words, &count);
    }
    if (metric != NULL)
        add_word("--objective", options->job.objective, words, &count);
    for (int i = 0; i < command->metrics.count; i++)
        add_word("--metric", command->metrics.at[i], words, &count);
    for (int i = 0; i < command->limits.count; i++)
        add_word("--limit", command->limits.at[i], words, &count);
    if (command->shell)
        words[count++] = "--shell";
    words[count] = NULL;
    if (options->worker.program.path == NULL)
        options->worker.program = (struct dt_program){PROGRAM, words};
    return DT_OK;
}

dt_status dt_options_engine(const struct dt_command *command, struct dt_options *options)
{
    static char program[DT_PROGRAM_ROOM]; /* a process has one command line */
    if (options->worker.engine == NULL)
        return DT_OK;
    dt_status status = dt_machine_engine(options->worker.engine, program);
    if (status == DT_OK)
        options->worker.program.path = program;
    else if (strcmp(command->name, "explain") == 0 &&
             (dt_engine_known(options->worker.engine) ||
              strchr(options->worker.engine, ':') != NULL)) /* answered by the engine's file */
        return DT_OK;
    return status;
}
