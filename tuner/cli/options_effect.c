/* SPDX-License-Identifier: MIT */
/* Rows of options without effect beside another one, which are refused so that they are not silently ignored. */
#include "tuner/cli/options_int.h"

#include <string.h>

#define TARGETS "tune run noise space explain lookup"

static const char decides[] = "the worker decides by itself what it runs";
static const char shown[] = "the space is the file's";
static const char raced[] = "a race has no search";

static const struct effect {
    const char *commands, *beside, *option, *why;
} effects[] = {
    {TARGETS, "command", "model", decides},
    {TARGETS, "command", "revision", decides},
    {TARGETS, "command", "size", decides},
    {TARGETS, "command", "frames", decides},
    {TARGETS, "command", "steps", decides},
    {TARGETS, "command", "guidance", decides},
    {TARGETS, "command", "batch", decides},
    {TARGETS, "command", "dtype", decides},
    {TARGETS, "worker", "weights", decides},
    {TARGETS, "worker", "input", decides},
    {TARGETS, "worker", "output", decides},
    {TARGETS " machine", "worker", "backend", decides},
    {TARGETS, "worker", "shared-devices", "whose GPUs it runs on is the worker's matter"},
    {COMMANDED, "worker", "command", "the worker is a program of its own"},
    {COMMANDED, "worker", "space", "it belongs to --command"},
    {COMMANDED, "worker", "time", "it belongs to --command"},
    {COMMANDED, "worker", "unit", "it belongs to --command"},
    {COMMANDED, "worker", "shell", "it belongs to --command"},
    {"space", "space", "worker", shown},
    {"space", "space", "input", shown},
    {"space", "space", "model", shown},
    {"space", "space", "size", shown},
    {"space", "space", "devices", shown},
    {"space", "space", "backend", shown},
    {"space", "space", "batch", shown},
    {"space", "space", "dtype", shown},
    {"space", "space", "max-bytes", shown},
    {"space", "space", "oversubscribe", shown},
    {"run", "input", "batch", "the batch is the file's"},
    {"run", "input", "sweep", "the batch is the file's"},
    {"simulate", "racing", "search", raced},
    {"simulate", "racing", "prior", raced},
    {"simulate", "racing", "spend", raced},
    {"simulate", "racing", "replay-noise", raced},
};

/* Options of a worker's job. */
static const char *const assigned[] = {"revision",  "frames",        "steps", "guidance",
                                       "max-error", "start-timeout", NULL};

static dt_status check_assigned(const struct dt_command *command, const struct dt_options *options)
{
    bool foreign = dt_option_given(options, "worker") || dt_option_given(options, "command") ||
                   strcmp(command->name, "worker-test") == 0;
    for (int i = 0; assigned[i] != NULL; i++)
        if (!foreign && dt_option_given(options, assigned[i]))
            return dt_fail(DT_EUSAGE, "--%s has no effect without --worker", assigned[i]);
    for (int i = 0; i < options->job.sizes.count; i++)
        if (!foreign && options->job.sizes.widths[i] != options->job.sizes.heights[i])
            return dt_fail(DT_EUSAGE,
                           "--size %dx%d is not a square, which the built-in network needs: "
                           "--size %d",
                           options->job.sizes.widths[i], options->job.sizes.heights[i],
                           options->job.sizes.widths[i]);
    if (foreign && options->job.batches.count > 1)
        return dt_fail(DT_EUSAGE, "a worker takes one --batch, not %d", options->job.batches.count);
    return DT_OK;
}

bool dt_option_given(const struct dt_options *options, const char *option)
{
    for (int i = 0; i < options->words.given_count; i++)
        if (strcmp(options->words.given[i], option) == 0)
            return true;
    return false;
}

dt_status dt_options_effect(const struct dt_command *command, const struct dt_options *options)
{
    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++) {
        const struct effect *row = &effects[i];
        const char *beside = row->beside;
        if (row->why == decides && !dt_option_given(options, beside))
            beside = "command"; /* it is a worker, too */
        if (dt_has_word(row->commands, command->name) && dt_option_given(options, beside) &&
            dt_option_given(options, row->option))
            return dt_fail(DT_EUSAGE, "--%s has no effect beside --%s: %s", row->option, beside,
                           row->why);
    }
    DT_TRY(check_assigned(command, options));
    if (dt_option_given(options, "sweep") && !options->run.sweep.ranks &&
        dt_option_given(options, "batch"))
        return dt_fail(DT_EUSAGE, "--batch has no effect beside --sweep batch=..: the sweep names "
                                  "the batches");
    return DT_OK;
}
