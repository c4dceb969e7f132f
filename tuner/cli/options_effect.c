/* SPDX-License-Identifier: MIT */
/* Rows of options without effect beside another one, which are refused so that they are not silently ignored. */
#include "tuner/cli/options_int.h"

#include "base/figures.h"
#include "model/task.h"

#include <string.h>

#define STARTED "tune run noise space explain machine check" /* --engine names a worker */

static const char decides[] = "the worker decides by itself what it runs";
static const char shown[] = "the space is the file's";
static const char raced[] = "a race has no search";

static const struct effect {
    const char *commands, *beside, *option, *why;
} effects[] = {
#define DT_FIELD(name, option, kind, before, after, whose, values, help)                           \
    {TARGETS, "command", option, decides},
#include "model/task.def"
#undef DT_FIELD
    {TARGETS, "worker", "weights", decides},
    {TARGETS, "worker", "input", decides},
    {TARGETS, "worker", "output", decides},
    {TARGETS " machine", "worker", "backend", decides},
    {"tune space explain", "worker", "tune-nccl", decides},
    {"space explain", "machine", "hosts", "the machine's file says what plans run on"},
    {"space explain", "machine", "hostfile", "the machine's file says what plans run on"},
    {"space explain", "worker", "machine", decides},
    {"space explain", "machine", "backend", "the machine's file says what plans run on"},
    {"space explain", "machine", "input", "no plan is run there"},
    {COMMANDED, "worker", "command", "the worker is a program of its own"},
    {COMMANDED, "worker", "server", "the worker is a program of its own"},
    {COMMANDED, "command", "server", "a plan is one program"},
    {STARTED, "worker", "engine", "the worker is a program of its own"},
    {"machine check", "worker", "space", "it narrows a search"},
    {COMMANDED, "worker", "ready", "it belongs to --server"},
    {COMMANDED, "worker", "request", "it belongs to --server"},
    {COMMANDED, "worker", "requests", "it belongs to --server"},
    {COMMANDED, "worker", "time", "it belongs to --command"},
    {COMMANDED, "worker", "unit", "it belongs to --command"},
    {COMMANDED, "worker", "metric", "it belongs to --command"},
    {COMMANDED, "worker", "limit", "it belongs to --command"},
    {COMMANDED, "worker", "shell", "it belongs to --command"},
    {COMMANDED, "worker", "private", "it belongs to --command"},
    {COMMANDED, "worker", "prepare", "it belongs to --command"},
    {COMMANDED, "worker", "cleanup", "it belongs to --command"},
    {COMMANDED, "worker", "timeout", "it belongs to --command"},
    {COMMANDED, "worker", "retries", "it belongs to --command"},
    {COMMANDED, "worker", "accept-codes", "it belongs to --command"},
    {COMMANDED, "worker", "leftovers", "it belongs to --command"},
    {COMMANDED, "worker", "verify-output", "it belongs to --command"},
    {COMMANDED, "worker", "compare", "it belongs to --command"},
    {COMMANDED, "worker", "tolerance", "it belongs to --command"},
    {"space", "space", "worker", shown},
    {"space", "space", "engine", shown},
    {"space", "space", "input", shown},
    {"space", "space", "model", shown},
    {"space", "space", "size", shown},
    {"space", "space", "devices", shown},
    {"space", "space", "backend", shown},
    {"space", "space", "batch", shown},
    {"space", "space", "dtype", shown},
    {"space", "space", "max-bytes", shown},
    {"space", "space", "oversubscribe", shown},
    {"space", "space", "tune-nccl", shown},
    {"space", "space", "machine", shown},
    {"run", "input", "batch", "the batch is the file's"},
    {"run", "input", "sweep", "the batch is the file's"},
    {"tune run noise check", "quiet", "verbose", "one asks for less, the other for more"},
    {"tune run noise check worker-test", "no-wait", "wait", "one of them says how long"},
    {"tune", "dry-run", "resume", "no session is gone on with"},
    {"tune check", "dry-run", "json-stream", "nothing happens that it could report"},
    {"check", "dry-run", "update", "nothing is measured"},
    {"check", "dry-run", "junit", "nothing is measured"},
    {"check", "dry-run", "github", "nothing is measured"},
    {"tune run check", "json-stream", "json", "the last event has what it prints"},
    {"simulate", "racing", "search", raced},
    {"simulate", "racing", "prior", raced},
    {"simulate", "racing", "spend", raced},
    {"simulate", "racing", "replay-noise", raced},
};

/* Options of the worker while it runs, and when it starts. */
static const char *const running[] = {"max-error", "start-timeout", NULL};
static const char *const starting[] = {"start-timeout", NULL};

static dt_status refuse_given(const struct dt_options *options, const char *const names[],
                              const char *why)
{
    for (int i = 0; names[i] != NULL; i++)
        if (dt_option_given(options, names[i]))
            return dt_fail(DT_EUSAGE, "--%s has no effect %s", names[i], why);
    return DT_OK;
}

/* Options of an engine's or worker's job. images: those for the time of a whole image are taken. */
static dt_status refuse_task(const struct dt_options *options, bool images)
{
    static const char *const whole[] = {"text-and-vae", NULL};
    for (int i = 0; i < DT_TASK_FIELDS; i++) {
        const struct dt_task_row *row = &dt_task_rows[i];
        const char *const names[] = {row->option, NULL};
        if (row->whose == DT_TASK_ENGINE || (row->whose == DT_TASK_IMAGE && !images))
            DT_TRY(refuse_given(options, names, "without --engine or --worker"));
    }
    return images ? DT_OK : refuse_given(options, whole, "without --engine or --worker");
}

static dt_status check_assigned(const struct dt_command *command, const struct dt_options *options)
{
    bool started = dt_option_given(options, "worker") || options->command.text != NULL ||
                   options->worker.engine != NULL || strcmp(command->name, "worker-test") == 0;
    bool foreign =
        started || options->lookup.engine != NULL || strcmp(command->name, "models") == 0;
    bool own = !foreign && dt_has_word("tune run", command->name); /* both show whole images */
    if (!foreign)
        DT_TRY(refuse_task(options, own));
    bool lossy = !foreign && options->lossy && strcmp(command->name, "lookup") != 0;
    if (!started)
        DT_TRY(refuse_given(options, lossy ? starting : running,
                            foreign ? "on a look-up by --engine: it starts no worker"
                                    : "without --engine or --worker"));
    for (int i = 0; i < options->job.sizes.count; i++)
        if (!foreign && options->job.sizes.widths[i] != options->job.sizes.heights[i])
            return dt_fail(DT_EUSAGE,
                           "--size %dx%d is not a square, which the built-in network needs: "
                           "--size %d",
                           options->job.sizes.widths[i], options->job.sizes.heights[i],
                           options->job.sizes.widths[i]);
    if (started && options->job.batches.count > 1)
        return dt_fail(DT_EUSAGE, "a worker takes one --batch, not %d", options->job.batches.count);
    return DT_OK;
}

/* --engine, --command and --server name a worker, too. */
static const char *beside_of(const struct dt_options *options, const struct effect *row)
{
    if (row->why == decides && options->command.served)
        return "server";
    if (strcmp(row->beside, "worker") != 0 || dt_option_given(options, "worker"))
        return row->beside;
    if (options->worker.engine != NULL && strcmp(row->option, "engine") != 0)
        return "engine";
    return row->why == decides ? "command" : row->beside;
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
        const char *beside = beside_of(options, row);
        if (dt_has_word(row->commands, command->name) && dt_option_given(options, beside) &&
            dt_option_given(options, row->option))
            return dt_fail(DT_EUSAGE, "--%s has no effect beside --%s: %s", row->option, beside,
                           row->why);
    }
    DT_TRY(check_assigned(command, options));
    bool max = dt_figure_metric(options->job.objective) != NULL;
    if (dt_option_given(options, "objective") && !max && !dt_has_word("tune lookup", command->name))
        return dt_fail(DT_EUSAGE, "--objective %s has no effect on '%s': only max:METRIC has",
                       options->job.objective, command->name);
    if (max && dt_has_word("tune run lookup", command->name) &&
        !dt_option_given(options, "command") && !dt_option_given(options, "server") &&
        !dt_option_given(options, "worker"))
        return dt_fail(DT_EUSAGE, "--objective %s has no effect: a metric belongs to --command",
                       options->job.objective);
    if (max && options->job.max_latency_ns > 0)
        return dt_fail(DT_EUSAGE, "--max-latency has no effect beside --objective %s: give --limit",
                       options->job.objective);
    if (dt_option_given(options, "sweep") && !options->run.sweep.ranks &&
        dt_option_given(options, "batch"))
        return dt_fail(DT_EUSAGE, "--batch has no effect beside --sweep batch=..: the sweep names "
                                  "the batches");
    return DT_OK;
}
