/* SPDX-License-Identifier: MIT */
/* --command and what belongs to it, as a worker and its arguments, and --engine as the worker of that engine. */
#include "tuner/cli/options_int.h"

#include "db/engines/engines.h"
#include "tuner/machine/machine.h"

#include <string.h>

#define PROGRAM "dittune-worker-command"

/* One of the options that mean something only with --command, if it was given. */
static const char *stray(const struct dt_command_options *command)
{
    return command->time != NULL   ? "time"
           : command->unit != NULL ? "unit"
           : command->shell        ? "shell"
           : command->is_private   ? "private"
                                   : NULL;
}

dt_status dt_options_command(struct dt_options *options)
{
    static const char *words[10]; /* a process has one command line */
    const struct dt_command_options *command = &options->command;
    const struct {
        const char *option, *value;
    } rows[] = {{"--command", command->text},
                {"--space", command->space},
                {"--time", command->time},
                {"--unit", command->unit}};
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
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].value != NULL) {
            words[count++] = rows[i].option;
            words[count++] = rows[i].value;
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
