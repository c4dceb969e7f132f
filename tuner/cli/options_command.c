/* SPDX-License-Identifier: MIT */
/* --command and what belongs to it, as a worker and its arguments, and --engine as the worker of that engine. */
#include "tuner/cli/options_int.h"

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
            {"tolerance", offsetof(struct dt_command_options, tolerance)}};
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
    return command->shell ? "shell" : command->is_private ? "private" : NULL;
}

dt_status dt_options_command(struct dt_options *options)
{
    static char names[ROWS][24]; /* a process has one command line */
    static const char *words[2 * ROWS + 2];
    const struct dt_command_options *command = &options->command;
    int count = 0;
    if (command->text == NULL && command->space != NULL && options->worker.program.path == NULL &&
        options->worker.engine == NULL)
        return dt_fail(DT_EUSAGE, "--space needs --command, --worker or --engine");
    if (command->text == NULL)
        return stray(command) == NULL
                   ? DT_OK
                   : dt_fail(DT_EUSAGE, "--%s belongs to --command, which is not given",
                             stray(command));
    if (command->space == NULL || command->time == NULL)
        return dt_fail(DT_EUSAGE, "--command needs --%s",
                       command->space == NULL ? "space FILE: its parameters and their values"
                                              : "time: regex:EXPRESSION, json:PATH or wall");
    if (command->output == NULL && (command->compare != NULL || command->tolerance != NULL))
        return dt_fail(DT_EUSAGE, "--%s needs --verify-output FILE",
                       command->compare != NULL ? "compare" : "tolerance");
    for (int i = 0; i < ROWS; i++) {
        if (value_of(command, i) == NULL)
            continue;
        snprintf(names[i], sizeof names[i], "--%s", rows[i].option);
        words[count++] = names[i];
        words[count++] = value_of(command, i);
    }
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
