/* SPDX-License-Identifier: MIT */
/* The table of options, and what reads a command line by it. */
#include "tuner/cli/options_int.h"

#include "base/figures.h"
#include "base/json.h"
#include "db/engines/engines.h"
#include "db/stores.h"
#include "model/task.h"
#include "tuner/machine/machine.h"

#include <errno.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- rows */

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

/* "512", with pairs also "1024x768", or a list of them, none twice. */
static dt_status read_list(const char *option, const char *text, bool pairs, const char *what,
                           struct dt_sizes *out)
{
    struct dt_sizes list = {0};
    const char *at = text;
    do {
        int64_t width = 0, height;
        bool good = take_number(&at, &width);
        height = width;
        if (good && pairs && *at == 'x') {
            at++;
            good = take_number(&at, &height);
        }
        if (!good || width < 1 || width > 1 << 20 || height < 1 || height > 1 << 20 ||
            (*at != ',' && *at != '\0'))
            return dt_fail(DT_EUSAGE, "--%s '%s' is not a list of %s", option, text, what);
        if (list.count == DT_LIST_MAX)
            return dt_fail(DT_EUSAGE, "--%s has more than %d values", option, DT_LIST_MAX);
        for (int i = 0; i < list.count; i++)
            if (list.widths[i] == (int)width && list.heights[i] == (int)height)
                return dt_fail(DT_EUSAGE, "--%s names %d twice", option, (int)width);
        list.widths[list.count] = (int)width;
        list.heights[list.count++] = (int)height;
    } while (*at++ == ',');
    *out = list;
    return DT_OK;
}

static dt_status parse_ints(const char *option, const char *text, void *field)
{
    struct dt_ints *ints = field;
    struct dt_sizes list;
    DT_TRY(read_list(option, text, false, "whole numbers from 1 on, such as 1,2,4", &list));
    ints->count = list.count;
    memcpy(ints->values, list.widths, sizeof ints->values);
    return DT_OK;
}

static dt_status parse_sizes(const char *option, const char *text, void *field)
{
    return read_list(option, text, true, "pixels such as 256,512 or 1024x768", field);
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

/* Parses a number such as 7.5 at *text, without a sign, and advances *text. */
static bool take_real(const char **text, double *value)
{
    char *end;
    if (**text != '.' && (**text < '0' || **text > '9'))
        return false;
    errno = 0;
    *value = strtod(*text, &end);
    bool good = end != *text && errno == 0;
    *text = end;
    return good;
}

static dt_status parse_real(const char *option, const char *text, void *field)
{
    const char *at = text;
    double value;
    if (!take_real(&at, &value) || *at != '\0' || !(value < 1e9))
        return dt_fail(DT_EUSAGE, "--%s '%s' is not a number such as 3.5", option, text);
    *(double *)field = value;
    return DT_OK;
}

static dt_status parse_lengths(const char *option, const char *text, void *field)
{
    char what[40];
    snprintf(what, sizeof what, "--%s", option);
    return dt_lengths_parse(what, text, field);
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
    const char *end = text;
    double value;
    bool good = take_real(&end, &value);
    if (good && value == 0)
        return dt_fail(DT_EUSAGE, "--%s '%s' must be above 0: write %s", option, text, want);
    if (!good || !(value > 0))
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
    const char *end = text;
    double value;
    if (!take_real(&end, &value) || strcmp(end, "%") != 0 || !(value < 100))
        return dt_fail(DT_EUSAGE, "--%s '%s' is not a percentage below 100%%, such as 3%%", option,
                       text);
    *(double *)field = value / 100;
    return DT_OK;
}

#define AT(field) offsetof(struct dt_options, field)
#define JOBS      TARGETS " worker-test"
#define TASK_EVERY(name, option, kind, values, help)
#define TASK_ENGINE(name, option, kind, values, help)                                              \
    {option, values, JOBS, NULL, KIND_##kind(name), help},
#define TASK_IMAGE(name, option, kind, values, help)                                               \
    {option, values, JOBS " plan", NULL, KIND_##kind(name), help},
#define TASK_LEARNED(name, option, kind, values, help)                                             \
    {option, values, "lookup", NULL, KIND_##kind(name), help},
#define KIND_TEXT(name)    parse_text, AT(task.at[DT_TASK_##name].text)
#define KIND_COUNT(name)   parse_natural, AT(task.at[DT_TASK_##name].count)
#define KIND_SCALE(name)   parse_real, AT(task.at[DT_TASK_##name].scale)
#define KIND_LENGTHS(name) parse_lengths, AT(task.at[DT_TASK_##name].lengths)
#define HOSTED             "tune run noise space explain lookup check"

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
    {"model", "NAME", "plan", NULL, parse_text, AT(plan.model),
     "a published model (dittune models lists them), or a .json file of a card"},
    {"machine", "NAME|FILE", "plan", NULL, parse_text, AT(plan.machine),
     "a machine of model/machines, as h100, 8xh100 or 2x8xh100 (two hosts), or a file of the same "
     "fields"},
    {"given", "'PLAN TIME'|ID", "plan", NULL, parse_text, AT(plan.given),
     "one measured time of a request, which scales all others: '6.71s' of one device, "
     "'ulysses=2 4.38s', the id of an entry of the store, or store: the nearest of its entries"},
    {"against", "TABLE.csv", "plan", NULL, parse_text, AT(plan.against),
     "score the predictions against a table of measured times (docs/cost.md)"},
    {"size", "WxH", "models plan", NULL, parse_sizes, AT(job.sizes),
     "image or video size in pixels (default: the model's usual one)"},
    {"from", "FOLDER|FILE", "models", NULL, parse_text, AT(lookup.from),
     "write a card from a model's configurations: a folder that diffusers saved, or config.json"},
    {"devices", "N", "models", NULL, parse_devices, AT(job.devices),
     "plans on at most N devices, of whatever machine (default: 8)"},
    {"frames", "N", "models plan", NULL, KIND_COUNT(frames),
     "frames of the video (default: the model's usual ones)"},
    {"text-tokens", "N[,N]", "models plan", NULL, KIND_LENGTHS(text_tokens),
     "tokens of the prompts that plans must run (default: the pipeline's padded length, or any)"},
    {"lossy", NULL, JOBS " models", NULL, parse_switch, AT(lossy),
     "also plans that change the output beyond rounding (caches, fp8, ...); --max-error limits "
     "their error"},
    {"engine", "NAME[:VERSION]", "models", NULL, parse_text, AT(lookup.engine),
     "list the plans that this engine takes, each with its command"},
    {"engine", "NAME[:VERSION]", "plan", NULL, parse_text, AT(lookup.engine),
     "whose plans are predicted"},
    {"backend", "auto|cpu|cuda", "tune run noise space explain lookup machine", "auto", parse_text,
     AT(job.backend), "back end: cpu, cuda, or auto (GPUs where there are any)"},
    {"shared-devices", NULL, "tune run noise check", NULL, parse_switch, AT(job.shared_devices),
     "measure also on GPUs that others use; the result records it"},
    {"batch", "N[,N]", JOBS, NULL, parse_ints, AT(job.batches), "images of a step (default: 1)"},
    {"dtype", "float32|bfloat16|tf32|float16", JOBS, "float32", parse_text, AT(job.dtype),
     "data type: float32, bfloat16 (weights and activations between layers; the default on GPUs) "
     "or tf32 (GPUs); engines and workers also float16"},
    {"objective", "latency|throughput|cost", COMMANDED " space", "latency", parse_text,
     AT(job.objective),
     "latency (seconds a step), throughput (images/s), cost (device-seconds an image), or "
     "max:METRIC, the largest value of a --metric of --command; with throughput and cost plans may "
     "have replicas; other commands than tune, run, space, explain and lookup have only "
     "max:METRIC"},
    {"objective", "latency|throughput|cost", "models", "latency", parse_text, AT(job.objective),
     "what the documented plan is for: the time of one image, or images a second of all devices"},
    {"max-bytes", "SIZE", "tune run noise space explain lookup", NULL, parse_bytes,
     AT(job.max_bytes), "limit of a rank's memory: 2GiB"},
    {"objective", "latency|throughput|cost", "plan", "latency", parse_text, AT(job.objective),
     "what is best: the time of a request, requests an hour of all devices, or device-seconds of a "
     "request"},
    {"max-bytes", "SIZE", "plan", NULL, parse_bytes, AT(job.max_bytes),
     "memory of a device that plans may take (default: all of it)"},
    {"max-bytes", "SIZE", "models", NULL, parse_bytes, AT(job.max_bytes),
     "memory of a device: only plans whose weights in bfloat16 fit: 80GiB"},
    {"reserve", "SIZE", "tune run lookup check", NULL, parse_bytes, AT(job.reserve_bytes),
     "memory of each device that the server also holds (text encoder, VAE, other programs): a plan "
     "that leaves less is out of memory; of check: instead of the entry's: 12GiB"},
    {"max-latency", "TIME", "tune lookup", NULL, parse_duration, AT(job.max_latency_ns),
     "limit of a plan's step time: 80ms"},
    {"against", "'PLAN'", "tune check", NULL, parse_text, AT(session.against),
     "today's production plan, which is also measured and compared"},
    {"search", "NAME[:KNOB=X,..]", "tune simulate", "auto", parse_text, AT(session.strategy),
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
    {"unit", "s|ms|us|ns|min|h", COMMANDED, NULL, parse_text, AT(command.unit),
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
    {"prior", "FILE|cost|none", "tune simulate", NULL, parse_text, AT(session.prior),
     "warm start: FILE, another machine's journal or table; tune also takes cost, an analytical "
     "model "
     "(its default for the built-in network), or none"},
    {"resume", NULL, "tune", NULL, parse_switch, AT(session.resume),
     "go on with the last session of this work that was killed, interrupted or not decided; "
     "--budget counts from its start"},
    {"dry-run", NULL, "tune check", NULL, parse_switch, AT(dry),
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
    {"pipeline", "FILE.py:NAME", "check db", NULL, KIND_TEXT(pipeline),
     "only entries of this pipeline; of db: show, rm"},
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
    {"format", "table|json|env|argv|flags|yaml", "lookup", NULL, parse_text, AT(print.format),
     "table, json, env (NAME=VALUE lines) or argv (one command), quoted for sh, flags (of an "
     "engine's command, the plan's), or yaml (an engine's deploy file)"},
    {"format", "table|json|csv|openmetrics", "history", NULL, parse_text, AT(print.format),
     "of what is printed (default: table)"},
    {"format", "html|md|recipe|csv|json", "report", NULL, parse_text, AT(print.format),
     "html (one page), md, recipe (a page for an engine's cookbook), csv (its trials) or json "
     "(default: html)"},
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
    {"db", "DIR[:DIR..]", "tune explain lookup plan check history why report db", NULL, parse_text,
     AT(db),
     "folder of the store (default: $DITTUNE_STORE or the user's data folder); look-ups also ask "
     "those behind it"},
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
     "tune run noise analyze space simulate explain lookup machine doctor check plan "
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

/* The word is one of the words, which blanks separate. */
static bool has_word(const char *words, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += size)
        if ((at == words || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0'))
            return true;
    return false;
}

/* ---- --command and what belongs to it, as a worker and its arguments; --engine as the worker of
 * that engine */

#define PROGRAM "dittune-worker-command"
enum { TEXTS = 24 }; /* at most so many of their options */

/* The value of one of their options that are texts, which become the worker's; NULL: not
 * given, or another option. */
static const char *value_of(const struct dt_options *options, const struct dt_option_row *row)
{
    size_t at = row->offset - offsetof(struct dt_options, command);
    bool ours = at < sizeof options->command && row->parse == parse_text;
    return ours ? *(const char *const *)(const void *)((const char *)options + row->offset) : NULL;
}

/* One of the options that mean something only with --command, if it was given; --space
 * has a meaning without. */
static const char *stray_word(const struct dt_options *options)
{
    const struct dt_command_options *command = &options->command;
    for (int i = 0; i < dt_option_row_count; i++)
        if (value_of(options, &dt_option_rows[i]) != NULL &&
            strcmp(dt_option_rows[i].name, "space") != 0)
            return dt_option_rows[i].name;
    return command->metrics.count > 0  ? "metric"
           : command->limits.count > 0 ? "limit"
           : command->shell            ? "shell"
           : command->is_private       ? "private"
                                       : NULL;
}

static const char *owner_of(const char *option)
{
    return has_word("ready request requests", option) ? "server" : "command";
}

/* An option of --command beside --server, or the other way round; NULL: none. */
static const char *misplaced_option(const struct dt_options *options, const char *given)
{
    for (int i = 0; i < dt_option_row_count; i++) {
        const char *name = dt_option_rows[i].name;
        if (value_of(options, &dt_option_rows[i]) != NULL &&
            !has_word("command space time unit timeout", name) &&
            strcmp(owner_of(name), given) != 0)
            return name;
    }
    return options->command.served && options->command.limits.count > 0 ? "limit" : NULL;
}

static dt_status check_command(const struct dt_options *options, const char *metric)
{
    const struct dt_command_options *command = &options->command;
    const char *name = command->served ? "server" : "command",
               *wrong = misplaced_option(options, name);
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

static dt_status command_fill(struct dt_options *options)
{
    static char start[24];
    static char names[TEXTS][24]; /* a process has one command line */
    static const char *words[2 * (TEXTS + 2 + 2 * DT_TEXTS_MOST) + 2];
    const struct dt_command_options *command = &options->command;
    int count = 0;
    if (command->text == NULL && command->space != NULL && options->worker.program.path == NULL &&
        options->worker.engine == NULL)
        return dt_fail(DT_EUSAGE, "--space needs --command, --server, --worker or --engine");
    if (command->text == NULL)
        return stray_word(options) == NULL
                   ? DT_OK
                   : dt_fail(DT_EUSAGE, "--%s belongs to --%s, which is not given",
                             stray_word(options), owner_of(stray_word(options)));
    const char *metric = dt_figure_metric(options->job.objective);
    DT_TRY(check_command(options, metric));
    for (int i = 0, n = 0; i < dt_option_row_count && n < TEXTS; i++) {
        const struct dt_option_row *row = &dt_option_rows[i];
        const char *value = value_of(options, row);
        if (value == NULL)
            continue;
        bool server = value == command->text && command->served;
        snprintf(names[n], sizeof names[n], "--%s", server ? "server" : row->name);
        add_word(names[n++], value, words, &count);
    }
    if (command->served && dt_option_given(options, "start-timeout")) {
        snprintf(start, sizeof start, "%.9g", (double)options->worker.start_ns * 1e-9);
        add_word("--start-timeout", start, words, &count);
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

static dt_status engine_fill(const struct dt_command *command, struct dt_options *options)
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

/* ---- options without effect beside another one, which are refused so that they are not silently
 * ignored */

#define STARTED "tune run noise space explain machine check" /* --engine names a worker */

static const char decides[] = "the worker decides by itself what it runs";

static const struct effect {
    const char *commands, *beside, *options, *why;
} effects[] = {
#define DT_FIELD(name, option, kind, before, after, whose, values, help)                           \
    {TARGETS, "command", option, decides},
#include "model/task.def"
    {TARGETS, "worker", "weights input output", decides},
    {TARGETS " machine", "worker", "backend", decides},
    {"tune space explain", "worker", "tune-nccl", decides},
    {"space explain", "machine", "hosts hostfile backend",
     "the machine's file says what plans run on"},
    {"space explain", "worker", "machine", decides},
    {"space explain", "machine", "input", "no plan is run there"},
    {COMMANDED, "worker", "command server", "the worker is a program of its own"},
    {COMMANDED, "command", "server", "a plan is one program"},
    {STARTED, "worker", "engine", "the worker is a program of its own"},
    {"machine check", "worker", "space", "it narrows a search"},
    {COMMANDED, "worker", "ready request requests", "it belongs to --server"},
    {COMMANDED, "worker",
     "time unit metric limit shell private prepare cleanup timeout retries accept-codes leftovers "
     "verify-output compare tolerance",
     "it belongs to --command"},
    {"space", "space",
     "worker engine input model size devices backend batch dtype max-bytes oversubscribe tune-nccl "
     "machine",
     "the space is the file's"},
    {"run", "input", "batch sweep", "the batch is the file's"},
    {"tune run noise check", "quiet", "verbose", "one asks for less, the other for more"},
    {"tune run noise check worker-test", "no-wait", "wait", "one of them says how long"},
    {"tune", "dry-run", "resume", "no session is gone on with"},
    {"tune check", "dry-run", "json-stream", "nothing happens that it could report"},
    {"check", "dry-run", "update junit github", "nothing is measured"},
    {"tune run check", "json-stream", "json", "the last event has what it prints"},
    {"plan", "against",
     "model engine machine given db size frames steps text-tokens objective max-bytes",
     "the table names what it is of"},
    {"models", "from", "engine devices lossy max-bytes objective", "a card has no plans"},
    {"simulate", "racing", "search prior spend replay-noise", "a race has no search"},
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
    if (dt_option_given(options, dt_task_rows[DT_TASK_pipeline].option))
        return dt_fail(DT_EUSAGE,
                       "--pipeline %s is for the worker of an engine: add --engine "
                       "diffusers, or --worker PROGRAM",
                       options->task.at[DT_TASK_pipeline].text);
    for (int i = 0; i < DT_TASK_FIELDS; i++) {
        const struct dt_task_row *row = &dt_task_rows[i];
        const char *const names[] = {row->option, NULL};
        if (row->whose != DT_TASK_EVERY && (row->whose != DT_TASK_IMAGE || !images))
            DT_TRY(refuse_given(options, names, "without --engine or --worker"));
    }
    return images ? DT_OK : refuse_given(options, whole, "without --engine or --worker");
}

static dt_status check_assigned(const struct dt_command *command, const struct dt_options *options)
{
    bool started = dt_option_given(options, "worker") || options->command.text != NULL ||
                   options->worker.engine != NULL || strcmp(command->name, "worker-test") == 0;
    bool foreign =
        started || options->lookup.engine != NULL || has_word("models plan", command->name);
    bool own = !foreign && has_word("tune run", command->name); /* both show whole images */
    if (!foreign && strcmp(command->name, "db") != 0)
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
    if (options->worker.engine != NULL && strcmp(row->options, "engine") != 0)
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

static dt_status effects_check(const struct dt_command *command, const struct dt_options *options)
{
    for (size_t i = 0; i < sizeof effects / sizeof effects[0]; i++) {
        const struct effect *row = &effects[i];
        const char *beside = beside_of(options, row);
        if (!has_word(row->commands, command->name) || !dt_option_given(options, beside))
            continue;
        for (int k = 0; k < options->words.given_count; k++)
            if (has_word(row->options, options->words.given[k]))
                return dt_fail(DT_EUSAGE, "--%s has no effect beside --%s: %s",
                               options->words.given[k], beside, row->why);
    }
    DT_TRY(check_assigned(command, options));
    if (options->job.sizes.count > 1 && strcmp(command->name, "tune") != 0)
        return dt_fail(DT_EUSAGE, "'dittune %s' takes one --size, not %d", command->name,
                       options->job.sizes.count);
    bool max = dt_figure_metric(options->job.objective) != NULL;
    if (dt_option_given(options, "objective") && !max &&
        !has_word("tune run space explain lookup models plan", command->name))
        return dt_fail(DT_EUSAGE, "--objective %s has no effect on '%s': only max:METRIC has",
                       options->job.objective, command->name);
    if (max && has_word("tune run space lookup models plan", command->name) &&
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

/* ---- the command line */

#define OPTIONS_MOST 128 /* considered for the nearest name of a misspelt one */
#define NAMES_MOST   32  /* commands and topics of help */

bool dt_option_taken(const struct dt_command *command, const struct dt_option_row *row)
{
    return row->commands == NULL || has_word(row->commands, command->name);
}

/* Suggests our option for a name known from other tools. */
static const char *option_instead(const char *name)
{
    static const struct {
        const char *name, *hint;
    } hints[] = {{"trials", "a session has a time, not a number of trials: --budget 2m"},
                 {"timeout", "a session has a time: --budget 2m"},
                 {"gpus", "--devices N: use at most N devices"},
                 {"resolution", "--size PX"}};
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (strcmp(hints[i].name, name) == 0)
            return hints[i].hint;
    return NULL;
}

/* Suggests the nearest option of the command. */
static dt_status unknown_option(const struct dt_command *command, const char *name)
{
    const char *names[OPTIONS_MOST + 1] = {NULL}, *hint = option_instead(name);
    int n = 0;
    for (int i = 0; i < dt_option_row_count && n < OPTIONS_MOST; i++)
        if (dt_option_taken(command, &dt_option_rows[i]))
            names[n++] = dt_option_rows[i].name;
    const char *near = dt_json_nearest(name, names);
    if (hint != NULL)
        return dt_fail(DT_EUSAGE, "unknown option --%s: %s", name, hint);
    if (near != NULL)
        return dt_fail(DT_EUSAGE, "unknown option --%s, did you mean --%s?", name, near);
    return dt_fail(DT_EUSAGE, "unknown option --%s: see dittune %s --help", name, command->name);
}

dt_status dt_command_find(const char *word, bool topics, const struct dt_command **command)
{
    const char *names[NAMES_MOST + 1] = {NULL};
    for (int i = 0; topics && dt_help_topics[i] != NULL; i++)
        names[dt_command_count + i] = dt_help_topics[i];
    for (int i = 0; i < dt_command_count; i++) {
        names[i] = dt_commands[i].name;
        if (strcmp(word, dt_commands[i].name) == 0) {
            *command = &dt_commands[i];
            return DT_OK;
        }
    }
    const char *near = dt_json_nearest(word, names);
    if (near != NULL)
        return dt_fail(DT_EUSAGE, "unknown command '%s', did you mean '%s'?", word, near);
    return dt_fail(DT_EUSAGE, "unknown command '%s': see dittune --help", word);
}

/* The row with that name for the command, else any: a name may have different meanings for two
 * commands. */
static const struct dt_option_row *find_row(const struct dt_command *command, const char *name)
{
    const struct dt_option_row *row = NULL;
    for (int k = 0; k < dt_option_row_count; k++)
        if (strcmp(dt_option_rows[k].name, name) == 0 &&
            (row == NULL || dt_option_taken(command, &dt_option_rows[k])))
            row = &dt_option_rows[k];
    return row;
}

/* One "--name", "--name value" or "--name=value" at argv[*i]. */
static dt_status parse_option(int argc, const char *const *argv, int *i,
                              const struct dt_command *command, struct dt_options *options)
{
    static const char *const letters[] = {"help", "quiet", "verbose", "output"};
    char name[64];
    const char *word = argv[*i] + 2, *equals = strchr(word, '=');
    bool letter = argv[*i][1] != '-' && argv[*i][2] == '\0';
    for (size_t k = 0; letter && k < sizeof letters / sizeof letters[0]; k++)
        if (letters[k][0] == argv[*i][1])
            word = letters[k];
    size_t size = equals != NULL ? (size_t)(equals - word) : strlen(word);
    if ((argv[*i][1] != '-' && word == argv[*i] + 2) || size == 0 || size >= sizeof name)
        return dt_fail(DT_EUSAGE,
                       "unknown option %s: options start with two dashes, see dittune --help",
                       argv[*i]);
    memcpy(name, word, size);
    name[size] = '\0';
    const struct dt_option_row *row = find_row(command, name);
    if (row == NULL)
        return unknown_option(command, name);
    if (!dt_option_taken(command, row))
        return dt_fail(DT_EUSAGE, "--%s is not an option of 'dittune %s' (it belongs to: %s)", name,
                       command->name, row->commands);
    if (row->hint == NULL && equals != NULL)
        return dt_fail(DT_EUSAGE, "--%s takes no value", name);
    if (row->hint != NULL && equals == NULL && *i + 1 >= argc)
        return dt_fail(DT_EUSAGE, "--%s needs a value: --%s %s", name, name, row->hint);
    const char *value = row->hint == NULL ? "" : equals != NULL ? equals + 1 : argv[++*i];
    if (options->words.given_count < DT_GIVEN_MOST && !dt_option_given(options, row->name))
        options->words.given[options->words.given_count++] = row->name;
    size_t task = row->offset - offsetof(struct dt_options, task.at); /* or more than its size */
    if (task < sizeof options->task.at)
        options->task.at[task / sizeof options->task.at[0]].given = true;
    return row->parse(name, value, (char *)options + row->offset);
}

static dt_status stores_find(struct dt_options *options)
{
    static struct dt_stores stores;
    const char *home = getenv("HOME");
    const struct passwd *user = home == NULL || home[0] == '\0' ? getpwuid(geteuid()) : NULL;
    DT_TRY(dt_stores_read(options->db, user != NULL ? user->pw_dir : ".", &stores));
    options->stores = &stores;
    options->store = stores.at[0];
    return DT_OK;
}

/* For commands that only read a store a missing path is an error, not an empty store; for look-up
 * and check, which may come before the first session, it is one. */
static dt_status check_store(const struct dt_command *command, const struct dt_options *options)
{
    bool db = strcmp(command->name, "db") == 0 && options->words.rest_count > 0;
    bool reads = has_word("history report why", command->name) ||
                 (db && has_word("show verify gc export rm rebuild", options->words.rest[0]));
    if (!reads || options->db == NULL || access(options->store, F_OK) == 0)
        return DT_OK;
    return dt_fail(DT_EIO, "--db %s: %s", options->store, strerror(errno));
}

/* Files of one name in two folders are two programs: the key has the folder. One that is not there
 * stays as it is typed. */
static dt_status pipeline_place(struct dt_options *options)
{
    const char **text = &options->task.at[DT_TASK_pipeline].text;
    if (*text == NULL)
        return DT_OK;
    const char *slash = strrchr(*text, '/'), *name = slash != NULL ? slash + 1 : *text;
    dt_auto_free char *typed = name > *text ? strndup(*text, (size_t)(name - *text)) : strdup(".");
    dt_auto_free char *folder = typed != NULL ? realpath(typed, NULL) : NULL;
    if (folder == NULL)
        return DT_OK;
    int size = snprintf(options->pipeline, sizeof options->pipeline, "%s/%s",
                        strcmp(folder, "/") == 0 ? "" : folder, name);
    if (size >= (int)sizeof options->pipeline)
        return dt_fail(DT_EUSAGE, "--pipeline '%.200s..' is too long", *text);
    *text = options->pipeline;
    return DT_OK;
}

dt_status dt_options_parse(int argc, const char *const *argv, struct dt_options *options,
                           const struct dt_command **command)
{
    int words = 0;
    bool named = argc > 1 && argv[1][0] != '-';
    *options = (struct dt_options){0};
    for (int k = 0; k < dt_option_row_count; k++)
        if (dt_option_rows[k].fallback != NULL)
            DT_TRY(dt_option_rows[k].parse(dt_option_rows[k].name, dt_option_rows[k].fallback,
                                           (char *)options + dt_option_rows[k].offset));
    options->words.line = argv;
    *command = &dt_commands[0];
    if (named)
        DT_TRY(dt_command_find(argv[1], false, command));
    const struct dt_command *late;
    bool only_words = false;
    for (int i = named ? 2 : 1; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            if (options->worker.program.path != NULL || options->worker.engine != NULL ||
                (strcmp((*command)->name, "worker-test") == 0 && words == 1)) {
                options->worker.program.arguments = argv + i + 1;
                break;
            }
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
            DT_TRY(parse_option(argc, argv, &i, *command, options));
        } else if (!named && words == 0 && dt_command_find(argv[i], false, &late) == DT_OK) {
            return dt_fail(DT_EUSAGE, "a command stands before its options: dittune %s ..",
                           argv[i]);
        } else if (words++ < DT_REST_MOST) {
            options->words.rest[words - 1] = argv[i];
        }
    }
    options->words.rest_count = words;
    if (options->print.help)
        return DT_OK;
    DT_TRY(pipeline_place(options));
    const char *over = options->words.rest[(*command)->words_max];
    if (words > (*command)->words_max && strchr(over, '=') != NULL)
        return dt_fail(DT_EUSAGE,
                       "'dittune %s' does not take the word '%s': quote a plan, as in --plan "
                       "'ranks=2 ulysses=2'",
                       (*command)->name, over);
    if (words > (*command)->words_max)
        return dt_fail(DT_EUSAGE, "'dittune %s' does not take the word '%s': see dittune %s --help",
                       (*command)->name, over, (*command)->name);
    if (words < (*command)->words_min)
        return dt_fail(DT_EUSAGE, "'dittune %s' needs %s", (*command)->name, (*command)->arguments);
    if (options->print.json && options->print.format != NULL &&
        strcmp(options->print.format, "json") != 0)
        return dt_fail(DT_EUSAGE, "--json is --format json: it does not go with --format %s",
                       options->print.format);
    options->print.json = options->print.json || options->print.stream;
    DT_TRY(stores_find(options));
    DT_TRY(check_store(*command, options));
    DT_TRY(effects_check(*command, options));
    DT_TRY(engine_fill(*command, options));
    return command_fill(options);
}
