/* SPDX-License-Identifier: MIT */
/* A row defines how an option's text is parsed: its function writes at an offset of struct dt_options. */
#include "tuner/cli/options_int.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct dt_command dt_commands[] = {
#define DT_COMMAND(name, word, arguments, least, most, doc)                                        \
    {word, arguments, doc, least, most, dt_command_##name},
#include "tuner/cli/commands.def"
#undef DT_COMMAND
};
const int dt_command_count = sizeof dt_commands / sizeof dt_commands[0];

static dt_status parse_switch(const char *option, const char *text, void *field)
{
    (void)option;
    (void)text;
    *(bool *)field = true;
    return DT_OK;
}

static dt_status parse_text(const char *option, const char *text, void *field)
{
    if (text[0] == '\0')
        return dt_fail(DT_EUSAGE, "--%s is empty", option);
    *(const char **)field = text;
    return DT_OK;
}

static dt_status parse_texts(const char *option, const char *text, void *field)
{
    struct dt_texts *texts = field;
    if (texts->count == DT_TEXTS_MOST)
        return dt_fail(DT_EUSAGE, "--%s is given more than %d times", option, DT_TEXTS_MOST);
    return parse_text(option, text, &texts->at[texts->count++]);
}

static dt_status parse_server(const char *option, const char *text, void *field)
{
    struct dt_command_options *command = field;
    command->served = true;
    return parse_text(option, text, &command->text);
}

/* Parses an integer at *text and advances *text. */
static bool take_number(const char **text, int64_t *value)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    *value = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0;
}

static dt_status parse_count(const char *option, const char *text, void *field)
{
    const char *at = text;
    int64_t value;
    if (!take_number(&at, &value) || *at != '\0')
        return dt_fail(DT_EUSAGE, "--%s '%s' is not a whole number of 0 or more", option, text);
    *(int64_t *)field = value;
    return DT_OK;
}

/* "N" or "1..N" */
static dt_status parse_devices(const char *option, const char *text, void *field)
{
    const char *at = text;
    int64_t first, last;
    if (!take_number(&at, &first))
        return dt_fail(DT_EUSAGE, "--%s '%s' is not a count such as 4 or 1..4", option, text);
    last = first;
    if (strncmp(at, "..", 2) == 0) {
        at += 2;
        if (!take_number(&at, &last) || first != 1)
            return dt_fail(DT_EUSAGE, "--%s '%s' is not a range such as 1..4 (it starts at 1)",
                           option, text);
    }
    if (*at != '\0' || last < 1 || last > 1024)
        return dt_fail(DT_EUSAGE, "--%s '%s' is not a count of 1 to 1024, such as 4 or 1..4",
                       option, text);
    *(int64_t *)field = last;
    return DT_OK;
}

static dt_status parse_ints(const char *option, const char *text, void *field)
{
    struct dt_ints list = {0};
    const char *at = text;
    do {
        int64_t value;
        if (!take_number(&at, &value) || value < 1 || value > 1 << 20 ||
            (*at != ',' && *at != '\0'))
            return dt_fail(DT_EUSAGE,
                           "--%s '%s' is not a list of whole numbers from 1 on, such as 1,2,4",
                           option, text);
        if (list.count == DT_LIST_MAX)
            return dt_fail(DT_EUSAGE, "--%s has more than %d values", option, DT_LIST_MAX);
        for (int i = 0; i < list.count; i++)
            if (list.values[i] == (int)value)
                return dt_fail(DT_EUSAGE, "--%s names %d twice", option, (int)value);
        list.values[list.count++] = (int)value;
    } while (*at++ == ',');
    *(struct dt_ints *)field = list;
    return DT_OK;
}

static dt_status parse_natural(const char *option, const char *text, void *field)
{
    const char *whole = text;
    int64_t value;
    if (!take_number(&text, &value) || *text != '\0' || value < 1 || value > 1 << 20)
        return dt_fail(DT_EUSAGE, "--%s '%s' is not a whole number of 1 to %d", option, whole,
                       1 << 20);
    *(int64_t *)field = value;
    return DT_OK;
}

/* "7.5" */
static dt_status parse_real(const char *option, const char *text, void *field)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    bool number = text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
    if (!number || end == text || *end != '\0' || errno != 0 || !(value < 1e9))
        return dt_fail(DT_EUSAGE, "--%s '%s' is not a number such as 3.5", option, text);
    *(double *)field = value;
    return DT_OK;
}

/* ---- values of a task, by their kind */

static dt_status parse_task_TEXT(const char *option, const char *text, void *field)
{
    struct dt_task_value *value = field;
    value->given = true;
    return parse_text(option, text, &value->text);
}

static dt_status parse_task_COUNT(const char *option, const char *text, void *field)
{
    struct dt_task_value *value = field;
    value->given = true;
    return parse_natural(option, text, &value->count);
}

static dt_status parse_task_SCALE(const char *option, const char *text, void *field)
{
    struct dt_task_value *value = field;
    value->given = true;
    return parse_real(option, text, &value->scale);
}

static dt_status parse_task_LENGTHS(const char *option, const char *text, void *field)
{
    char what[40];
    struct dt_task_value *value = field;
    snprintf(what, sizeof what, "--%s", option);
    value->given = true;
    return dt_lengths_parse(what, text, &value->lengths);
}

/* A relative error: above 0 and at most 1. */
static dt_status parse_error(const char *option, const char *text, void *field)
{
    double value = 0;
    DT_TRY(parse_real(option, text, &value));
    if (!(value > 0 && value <= 1))
        return dt_fail(DT_EUSAGE, "--%s '%s' is not a relative error above 0 and up to 1", option,
                       text);
    *(double *)field = value;
    return DT_OK;
}

/* "512", "1024x768" (width x height), or a list of them. */
static dt_status parse_sizes(const char *option, const char *text, void *field)
{
    struct dt_sizes list = {0};
    const char *at = text;
    do {
        int64_t width = 0, height;
        bool good = take_number(&at, &width);
        height = width;
        if (good && *at == 'x') {
            at++;
            good = take_number(&at, &height);
        }
        if (!good || width < 1 || width > 1 << 20 || height < 1 || height > 1 << 20 ||
            (*at != ',' && *at != '\0'))
            return dt_fail(DT_EUSAGE,
                           "--%s '%s' is not a list of pixels such as 256,512 or 1024x768", option,
                           text);
        if (list.count == DT_LIST_MAX)
            return dt_fail(DT_EUSAGE, "--%s has more than %d values", option, DT_LIST_MAX);
        for (int i = 0; i < list.count; i++)
            if (list.widths[i] == (int)width && list.heights[i] == (int)height)
                return dt_fail(DT_EUSAGE, "--%s names %d twice", option, (int)width);
        list.widths[list.count] = (int)width;
        list.heights[list.count++] = (int)height;
    } while (*at++ == ',');
    *(struct dt_sizes *)field = list;
    return DT_OK;
}

/* "batch=1,2,4" or "ranks=1,2,4" */
static dt_status parse_sweep(const char *option, const char *text, void *field)
{
    struct dt_sweep sweep = {.ranks = strncmp(text, "ranks=", 6) == 0};
    if (!sweep.ranks && strncmp(text, "batch=", 6) != 0)
        return dt_fail(DT_EUSAGE, "--%s '%s' is not of the form batch=1,2,4 or ranks=1,2,4", option,
                       text);
    DT_TRY(parse_ints(option, text + 6, &sweep.values));
    *(struct dt_sweep *)field = sweep;
    return DT_OK;
}

struct unit {
    const char *name;
    double factor;
};

static dt_status parse_unit(const char *option, const char *text, const struct unit units[],
                            const char *want, int64_t *out)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end != text && value == 0)
        return dt_fail(DT_EUSAGE, "--%s '%s' must be above 0: write %s", option, text, want);
    if (end == text || errno != 0 || !(value > 0) ||
        !((text[0] >= '0' && text[0] <= '9') || text[0] == '.'))
        return dt_fail(DT_EUSAGE, "--%s '%s' is not %s", option, text, want);
    for (int i = 0; units[i].name != NULL; i++)
        if (strcmp(units[i].name, end) == 0 && value * units[i].factor < 9e18) {
            *out = (int64_t)(value * units[i].factor + 0.5);
            return DT_OK;
        }
    for (int i = 0; units[i].name != NULL; i++)
        if (strcmp(units[i].name, end) == 0)
            return dt_fail(DT_EUSAGE, "--%s '%s' is too large", option, text);
    if (*end == '\0')
        return dt_fail(DT_EUSAGE, "--%s '%s' has no unit: write %s", option, text, want);
    return dt_fail(DT_EUSAGE, "--%s '%s' has the unknown unit '%s': write %s", option, text, end,
                   want);
}

static dt_status parse_duration(const char *option, const char *text, void *field)
{
    static const struct unit units[] = {{"us", 1e3}, {"ms", 1e6},   {"s", 1e9},
                                        {"m", 60e9}, {"h", 3600e9}, {NULL, 0}};
    return parse_unit(option, text, units, "a time such as 500ms, 90s, 2m or 1.5h", field);
}

static dt_status parse_bytes(const char *option, const char *text, void *field)
{
    static const struct unit units[] = {
        {"B", 1},    {"KiB", 1024.}, {"MiB", 1048576.}, {"GiB", 1073741824.},
        {"KB", 1e3}, {"MB", 1e6},    {"GB", 1e9},       {NULL, 0}};
    return parse_unit(option, text, units, "a size such as 800MiB or 16GB", field);
}

/* "3%" */
static dt_status parse_percent(const char *option, const char *text, void *field)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    bool number = text[0] == '.' || (text[0] >= '0' && text[0] <= '9');
    if (!number || end == text || errno != 0 || strcmp(end, "%") != 0 || !(value < 100))
        return dt_fail(DT_EUSAGE, "--%s '%s' is not a percentage below 100%%, such as 3%%", option,
                       text);
    *(double *)field = value / 100;
    return DT_OK;
}

#define AT(field) offsetof(struct dt_options, field)
#define JOBS      TARGETS " worker-test"
#define TASK_EVERY(name, option, kind, values, help)
#define TASK_ENGINE(name, option, kind, values, help)                                              \
    {option, values, JOBS, NULL, parse_task_##kind, AT(task.at[DT_TASK_##name]), help},
#define TASK_IMAGE TASK_ENGINE
#define HOSTED     "tune run noise space explain lookup check"

const struct dt_option_row dt_option_rows[] = {
    {"budget", "TIME", "tune noise check", "10m", parse_duration, AT(job.budget_ns),
     "total time: 90s, 2m, 1.5h"},
    {"model", "NAME|FILE", JOBS " check", "dit-s/2", parse_text, AT(job.model),
     "a preset, or a JSON file that describes a DiT (default on GPUs: dit-xl/2 at 512 px); for "
     "engines and workers: their name of the model"},
    {"size", "PX[,PX]", "tune", NULL, parse_sizes, AT(job.sizes),
     "image size in pixels, WxH for engines and workers; several share the budget (default: the "
     "model's own)"},
    {"workloads", "FILE", "tune", NULL, parse_text, AT(job.workloads),
     "several workloads with their shares, as JSON; they share the budget likewise"},
    {"size", "PX", "run noise space explain lookup worker-test", NULL, parse_sizes, AT(job.sizes),
     "image size in pixels, WxH for engines and workers (default: the model's own)"},
    {"devices", "N", "tune run noise space explain lookup", NULL, parse_devices, AT(job.devices),
     "use at most N devices (default: the cores, or all GPUs)"},
    {"hosts", "HOST:N[,..]", HOSTED, NULL, parse_text, AT(job.hosts.list),
     "use N cores or GPUs of each of these machines; slurm: those of this job (docs/clusters.md)"},
    {"hostfile", "FILE", HOSTED, NULL, parse_text, AT(job.hosts.file),
     "the same from a hostfile of mpirun: a line HOST slots=N for each"},
    {"launcher", "NAME|COMMAND", HOSTED, "mpirun", parse_text, AT(job.hosts.launcher),
     "what starts ranks on --hosts: mpirun, srun, or a command with {ranks}, {hosts}, .. "
     "{program}"},
    {"mixed-hosts", NULL, "tune run noise check", NULL, parse_switch, AT(job.hosts.mixed),
     "also hosts with different processors or GPUs"},
    {"size", "WxH", "models", NULL, parse_sizes, AT(job.sizes),
     "image or video size in pixels (default: the model's usual one)"},
    {"devices", "N", "models", NULL, parse_devices, AT(job.devices),
     "plans on at most N devices, of whatever machine (default: 8)"},
    {"frames", "N", "models", NULL, parse_task_COUNT, AT(task.at[DT_TASK_frames]),
     "frames of the video (default: the model's usual ones)"},
    {"text-tokens", "N[,N]", "models", NULL, parse_task_LENGTHS, AT(task.at[DT_TASK_text_tokens]),
     "tokens of the prompts that plans must run (default: the pipeline's padded length, or any)"},
    {"lossy", NULL, JOBS " models", NULL, parse_switch, AT(lossy),
     "also plans that change the output beyond rounding (caches, fp8, ...); --max-error limits "
     "their error"},
    {"engine", "NAME[:VERSION]", "models", NULL, parse_text, AT(lookup.engine),
     "list the plans that this engine takes, each with its command"},
    {"backend", "auto|cpu|cuda", "tune run noise space explain lookup machine", "auto", parse_text,
     AT(job.backend), "back end: cpu, cuda, or auto (GPUs where there are any)"},
    {"shared-devices", NULL, "tune run noise check", NULL, parse_switch, AT(job.shared_devices),
     "measure also on GPUs that others use; the result records it"},
    {"batch", "N[,N]", JOBS, NULL, parse_ints, AT(job.batches), "images of a step (default: 1)"},
    {"dtype", "float32|bfloat16|tf32|float16", JOBS, "float32", parse_text, AT(job.dtype),
     "data type: float32, bfloat16 (weights and activations between layers; the default on GPUs) "
     "or tf32 (GPUs); engines and workers also float16"},
    {"objective", "latency|throughput|cost", COMMANDED, "latency", parse_text, AT(job.objective),
     "latency (seconds a step), throughput (images/s), cost (device-seconds an image), or "
     "max:METRIC, the largest value of a --metric of --command; other commands than tune and "
     "lookup "
     "have only that"},
    {"max-bytes", "SIZE", "tune run noise space explain lookup", NULL, parse_bytes,
     AT(job.max_bytes), "limit of a rank's memory: 2GiB"},
    {"max-bytes", "SIZE", "models", NULL, parse_bytes, AT(job.max_bytes),
     "memory of a device: only plans whose weights in bfloat16 fit: 80GiB"},
    {"max-latency", "TIME", "tune lookup", NULL, parse_duration, AT(job.max_latency_ns),
     "limit of a plan's step time: 80ms"},
    {"against", "'PLAN'", "tune check", NULL, parse_text, AT(against),
     "today's production plan, which is also measured and compared"},
    {"search", "NAME[:KNOB=X,..]", "tune simulate", "auto", parse_text, AT(search.name),
     "search strategy: a name and settings from the list of searches"},
    {"plan", "'PLAN'", "run noise lookup", NULL, parse_text, AT(job.plan),
     "'ranks=2 ulysses=2'; other parameters take their defaults"},
    {"sweep", "WHAT=N,N", "run", NULL, parse_sweep, AT(run.sweep),
     "measure the plan at each batch=1,2,4, or ranks=1,2,4, and fit a line"},
    {"processes", "N", "run", "1", parse_count, AT(run.processes),
     "measure in N fresh processes; the interval is over them (5 is a good number)"},
    {"quick", NULL, "run", NULL, parse_switch, AT(run.quick),
     "stop at 8 samples without a long warm-up; time neither exchanges nor the GEMM peak"},
    {"weights", "FILE", "run", NULL, parse_text, AT(job.weights),
     "safetensors file of the network's weights"},
    {"input", "FILE", "run space explain", NULL, parse_text, AT(job.input),
     "safetensors file with x, t and y"},
    {"output", "FILE", "run", NULL, parse_text, AT(run.output),
     "safetensors file to write the output to"},
    {"trace", "FILE", "run", NULL, parse_text, AT(run.trace),
     "write the parts of a step on each rank for Perfetto or chrome://tracing, and show layers"},
    {"raw", "FILE", "run", NULL, parse_text, AT(run.raw),
     "keep every sample in a file, from which analyze computes all figures again"},
    {"worker", "PROGRAM", "tune run noise space explain lookup machine check", NULL, parse_text,
     AT(worker.program.path),
     "a program that speaks the worker protocol, instead of the built-in network; what follows -- "
     "are its arguments"},
    {"engine", "NAME[:VERSION]", "explain", NULL, parse_text, AT(worker.engine),
     "ask the worker of this engine; with a version, or where the worker is not installed, the "
     "engine's file and the card of --model"},
    {"engine", "NAME", "tune run noise space machine check worker-test", NULL, parse_text,
     AT(worker.engine),
     "tune or test this engine by its worker, the program dittune-worker-NAME (docs/engines.md)"},
    {"command", "TEXT", COMMANDED, NULL, parse_text, AT(command.text),
     "tune any program by its command line, in which {name} is a parameter's value "
     "(docs/command.md)"},
    {"server", "TEXT", COMMANDED, NULL, parse_server, AT(command),
     "the same for a program that answers requests on {port}: it is started once a plan, and timed "
     "request by request (docs/server.md)"},
    {"ready", "URL", COMMANDED, NULL, parse_text, AT(command.ready),
     "where --server answers with 200 when it is ready "
     "(default: http://127.0.0.1:{port}/health)"},
    {"request", "FILE", COMMANDED, NULL, parse_text, AT(command.request),
     "the HTTP request that --server is timed with: 'POST /path', headers, an empty line, the "
     "body"},
    {"requests", "N", COMMANDED, NULL, parse_text, AT(command.requests),
     "timed requests of a start of --server, at most (default: 8 to 64, as the noise demands)"},
    {"space", "FILE", COMMANDED, NULL, parse_text, AT(command.space),
     "parameters and rules of --command or --server, as JSON; with --worker or --engine: the "
     "values to try"},
    {"time", "HOW", COMMANDED, NULL, parse_text, AT(command.time),
     "where the output of --command, or the answer of --server, has the time of a step: "
     "regex:EXPRESSION, json:PATH, json:FILE:PATH, tqdm or wall (default of --server)"},
    {"unit", "s|ms|us|ns", COMMANDED, NULL, parse_text, AT(command.unit),
     "of that time, or a rate, as in it/s (default: s)"},
    {"metric", "NAME=HOW", COMMANDED, NULL, parse_texts, AT(command.metrics),
     "another number of --command, read as --time is: p99=regex:p99 ([0-9.]+); for --objective "
     "max:NAME and --limit; may be given several times"},
    {"limit", "'METRIC <= VALUE'", COMMANDED, NULL, parse_texts, AT(command.limits),
     "or >=: a plan that breaks it fails; may be given several times"},
    {"shell", NULL, COMMANDED, NULL, parse_switch, AT(command.shell),
     "run --command or --server by sh -c"},
    {"private", NULL, COMMANDED, NULL, parse_switch, AT(command.is_private),
     "store and show a keyed hash of --command instead of its text (docs/command.md)"},
    {"prepare", "TEXT", COMMANDED, NULL, parse_text, AT(command.prepare),
     "a command to run before each run of --command, not timed"},
    {"cleanup", "TEXT", COMMANDED, NULL, parse_text, AT(command.cleanup),
     "a command to run after each run of --command, also after one that failed"},
    {"timeout", "TIME", COMMANDED, NULL, parse_text, AT(command.timeout),
     "after which a run of --command has failed and is ended (default: 10m)"},
    {"retries", "N", COMMANDED, NULL, parse_text, AT(command.retries),
     "how often a run of --command that failed is repeated (default: 1)"},
    {"accept-codes", "N,..", COMMANDED, NULL, parse_text, AT(command.accept),
     "exit codes of --command that are as good as 0"},
    {"leftovers", "kill|fail", COMMANDED, NULL, parse_text, AT(command.leftovers),
     "processes that a run of --command leaves behind: end them and warn, or fail the plan, too "
     "(default: kill)"},
    {"verify-output", "FILE", COMMANDED, NULL, parse_text, AT(command.output),
     "compare this file, which --command writes, with that of the default plan"},
    {"compare", "text|npy|COMMAND", COMMANDED, NULL, parse_text, AT(command.compare),
     "how to compare it: as text, as an array of numpy, or by a command that gets both files and "
     "exits with 0 when they agree (default: text)"},
    {"tolerance", "X", COMMANDED, NULL, parse_text, AT(command.tolerance),
     "relative error of an array that is still right (default: 1e-5)"},
#define DT_FIELD(name, option, kind, before, after, whose, values, help)                           \
    TASK_##whose(name, option, kind, values, help)
#include "model/task.def"
#undef DT_FIELD
    {"text-and-vae", "TIME", "tune run", NULL, parse_duration, AT(worker.text_and_vae_ns),
     "time of text encoder and VAE for an image, to show that of a whole one"},
    {"max-error", "X", JOBS, NULL, parse_error, AT(worker.max_error),
     "for engines and workers: largest relative error of a plan's output (default: the worker's "
     "own, or by its data type); of the built-in network's plans those that --lossy adds "
     "(default: any)"},
    {"start-timeout", "TIME", JOBS " machine check", "10m", parse_duration, AT(worker.start_ns),
     "for engines and workers: time that the worker has to get ready"},
    {"space", "FILE", "space", NULL, parse_text, AT(space),
     "a space as JSON: parameters, rules, constants"},
    {"landscape", "FILE", "simulate", NULL, parse_text, AT(simulate.landscape),
     "recorded table: a session's journal, a Kernel Tuner cache or a T4 file, plain or gzipped"},
    {"evals", "N", "simulate", "150", parse_count, AT(simulate.evals), "evaluations of a repeat"},
    {"spend", "TIME", "simulate", NULL, parse_duration, AT(simulate.spend_ns),
     "also end a repeat after this recorded time: 90s, 2m, 1.5h"},
    {"repeats", "N", "simulate", "20", parse_count, AT(simulate.repeats),
     "number of repeats, with the seeds from --seed on"},
    {"prior", "FILE|cost|none", "tune simulate", NULL, parse_text, AT(search.prior),
     "warm start: FILE, another machine's journal or table; tune also takes cost, an analytical "
     "model "
     "(its default for the built-in network), or none"},
    {"resume", NULL, "tune", NULL, parse_switch, AT(search.resume),
     "go on with the last session of this work that was killed, interrupted or not decided; "
     "--budget counts from its start"},
    {"dry-run", NULL, "tune check", NULL, parse_switch, AT(search.dry),
     "tune: print what would be tried first, and by which search; check: what would be checked; "
     "measure and store nothing"},
    {"replay-noise", NULL, "simulate", NULL, parse_switch, AT(simulate.replay_noise),
     "answer with a draw of the recorded repetitions instead of their mean"},
    {"racing", NULL, "simulate", NULL, parse_switch, AT(simulate.racing),
     "race the recorded repetitions of --evals plans in --repeats orders instead of a search"},
    {"jobs", "N", "simulate", "1", parse_count, AT(simulate.jobs),
     "processes that share the repeats"},
    {"tune-nccl", NULL, "tune space explain", NULL, parse_switch, AT(job.tune_nccl),
     "on GPUs, also variables that NCCL reads at the start of a process: new processes for each"},
    {"oversubscribe", NULL, "tune noise space lookup", NULL, parse_switch, AT(job.oversubscribe),
     "allow more ranks than cores"},
    {"filter", "TEXT", "check history", NULL, parse_text, AT(filter),
     "only entries whose title or key contains TEXT"},
    {"filter", "TEXT", "db", NULL, parse_text, AT(filter),
     "show, rm: only entries whose title or key contains TEXT"},
    {"engine", "NAME", "history", NULL, parse_text, AT(upkeep.engine),
     "only entries that were tuned on this engine"},
    {"engine", "NAME", "db", NULL, parse_text, AT(upkeep.engine),
     "show, rm: only entries that were tuned on this engine"},
    {"model", "NAME", "db", NULL, parse_text, AT(upkeep.model),
     "show, rm: only entries of this model"},
    {"threshold", "SHARE", "check", "3%", parse_percent, AT(check.threshold),
     "a smaller slowdown is no loss"},
    {"max-gain-loss", "SHARE", "check", NULL, parse_percent, AT(check.max_gain_loss),
     "fail when a gain over the default has shrunk by more than this: 10%"},
    {"require", "wins|not-worse", "check", "not-worse", parse_text, AT(check.require),
     "wins, or not-worse (ties pass, too)"},
    {"require-resolution", "SHARE", "check", NULL, parse_percent, AT(check.resolution),
     "a win or a tie counts only where smaller differences than this could be told: 5%"},
    {"until-decided", "TIME", "check", NULL, parse_duration, AT(check.until_ns),
     "instead of --budget: up to twice the sets for each plan, until all are judged: 30m"},
    {"update", NULL, "check", NULL, parse_switch, AT(check.update),
     "store the better plan where the stored one lost"},
    {"junit", "FILE", "check", NULL, parse_text, AT(check.junit), "write a JUnit report, too"},
    {"github", NULL, "check", NULL, parse_switch, AT(check.github),
     "print annotations for GitHub Actions, too"},
    {"list", NULL, "space", NULL, parse_switch, AT(print.list), "every plan, one a line"},
    {"renew", NULL, "machine", NULL, parse_switch, AT(renew),
     "query the worker again and renew the cache"},
    {"facts", "FILE", "doctor", NULL, parse_text, AT(facts),
     "diagnose from the facts in the output of `dittune doctor --json`"},
    {"engine", "NAME[:VERSION]", "lookup", NULL, parse_text, AT(lookup.engine),
     "print the plan in the flags of this engine (--engines lists them)"},
    {"mode", "NAME", "lookup", NULL, parse_text, AT(lookup.mode),
     "execution mode of the engine: eager, compiled, ... (default: eager)"},
    {"machine", "FILE", "lookup", NULL, parse_text, AT(lookup.machine),
     "look up for the machine in the output of `dittune machine --json`"},
    {"machine", "FILE", "space explain", NULL, parse_text, AT(lookup.machine),
     "plans of the machine in the output of `dittune machine --json`, not of this one"},
    {"require", "TIER", "lookup", "proxy", parse_text, AT(lookup.tier),
     "minimum confidence: decided, exact, near, scaled, proxy (all measured on such hardware), "
     "heuristic or none; weaker answers exit with 10"},
    {"require-resolution", "SHARE", "lookup", NULL, parse_percent, AT(lookup.resolution),
     "only a plan whose comparison could tell smaller differences than this: 5%"},
    {"format", "table|json|env|argv", "lookup", NULL, parse_text, AT(print.format),
     "table, json, env (NAME=VALUE lines) or argv (one command), quoted for sh"},
    {"format", "table|json|csv|openmetrics", "history", NULL, parse_text, AT(print.format),
     "of what is printed (default: table)"},
    {"format", "html|md|csv|json", "report", NULL, parse_text, AT(print.format),
     "html (one page), md, csv (its trials) or json (default: html)"},
    {"output", "FILE", "report", NULL, parse_text, AT(run.output),
     "-o: write it there; - is standard output (default: report.html; otherwise -)"},
    {"since", "DATE|TIME", "history", NULL, parse_text, AT(since),
     "only records since 2026-11-02, or since 12h, 30d, 8w ago"},
    {"program", "FILE", "lookup", NULL, parse_text, AT(lookup.program),
     "your own program, for engines that start one"},
    {"checkpoint", "NAME|DIR", "lookup", NULL, parse_text, AT(lookup.checkpoint),
     "the engine's name of the model"},
    {"engines", NULL, "lookup", NULL, parse_switch, AT(lookup.engines),
     "list the known engines and versions, and the parameters each cannot express"},
    {"db", "DIR", "tune explain lookup check history why report db", NULL, parse_text, AT(db),
     "folder of the store (default: $DITTUNE_DB or the user's data folder)"},
    {"salvage", NULL, "db", NULL, parse_switch, AT(upkeep.salvage),
     "rebuild: also from intact lines of damaged files"},
    {"keep", "DAYS", "db", "30", parse_count, AT(upkeep.keep_days),
     "gc: keep all files younger than this"},
    {"yes", NULL, "db", NULL, parse_switch, AT(upkeep.yes), "gc, rm: remove, do not only list"},
    {"seed", "N", "tune run noise simulate", "1", parse_count, AT(job.seed),
     "seed of weights, inputs and search"},
    {"quiet", NULL, "tune run noise check", NULL, parse_switch, AT(print.quiet),
     "-q: no progress on standard error, the result only"},
    {"verbose", NULL, "tune run noise check", NULL, parse_switch, AT(print.verbose),
     "-v: also what each trial does, and the standard error of workers"},
    {"no-wait", NULL, "tune run noise check worker-test", NULL, parse_switch, AT(no_wait),
     "exit with code 12 instead of waiting while another dittune measures on this machine"},
    {"wait", "TIME", "tune run noise check worker-test", NULL, parse_duration, AT(wait_ns),
     "wait at most so long for another dittune that measures here, then exit with code 12"},
    {"json", NULL,
     "tune run noise analyze space simulate explain lookup machine doctor check "
     "history why report db models worker-test",
     NULL, parse_switch, AT(print.json), "one JSON object on standard output (docs/json.md)"},
    {"json-stream", NULL, "tune run check", NULL, parse_switch, AT(print.stream),
     "what happens while it happens, one JSON object a line; the last is the result "
     "(docs/json.md)"},
    {"markdown", NULL, "help", NULL, parse_switch, AT(print.markdown),
     "the help of every command as docs/cli.md"},
    {"man", NULL, "help", NULL, parse_switch, AT(print.man),
     "the manual page dittune(1), for man -l or groff -man"},
    {"help", NULL, NULL, NULL, parse_switch, AT(print.help), "this help"},
};
const int dt_option_row_count = sizeof dt_option_rows / sizeof dt_option_rows[0];

bool dt_option_is_default(const char *option, const char *text)
{
    for (int i = 0; i < dt_option_row_count; i++)
        if (strcmp(dt_option_rows[i].name, option) == 0)
            return text == NULL || text == dt_option_rows[i].fallback;
    return false;
}
