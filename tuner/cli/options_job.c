/* SPDX-License-Identifier: MIT */
#include "tuner/cli/options_job.h"

#include "base/text.h"
#include "db/lookup/machine.h"
#include "db/store.h"
#include "model/cards/card.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

dt_status dt_options_backend(const struct dt_options *options, enum dt_backend_kind *kind)
{
    return dt_backend_find(options->job.backend != NULL ? options->job.backend : "auto", kind);
}

void dt_options_task(const struct dt_options *options, struct dt_task *task)
{
    const struct dt_job_options *given = &options->job;
    *task = options->task;
    if (dt_option_given(options, "model"))
        dt_task_set_text(task, DT_TASK_model, given->model);
    dt_task_set_count(task, DT_TASK_width, given->sizes.count > 0 ? given->sizes.widths[0] : 0);
    dt_task_set_count(task, DT_TASK_height, given->sizes.count > 0 ? given->sizes.heights[0] : 0);
    if (dt_option_given(options, "dtype"))
        dt_task_set_text(task, DT_TASK_dtype, given->dtype);
    dt_task_set_count(task, DT_TASK_batch, given->batches.count > 0 ? given->batches.values[0] : 0);
}

/* Texts of the job travel as JSON. */
static dt_status check_text(const char *option, const char *text)
{
    return text == NULL || dt_text_whole(text)
               ? DT_OK
               : dt_fail(DT_EUSAGE, "--%s '%s' is not UTF-8", option, text);
}

/* Without a stored secret, a hash of this process alone: sessions, which store something,
 * have made one before. */
static dt_status set_secret(const struct dt_options *options, struct dt_wanted *wanted)
{
    static unsigned char secret[DT_SIPHASH_KEY]; /* a process has one command line */
    bool there = false;
    if (!options->command.is_private)
        return DT_OK;
    DT_TRY(dt_private_read(options->store, false, secret, &there));
    if (!there && getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return dt_fail(DT_EIO, "cannot draw a secret for --private: %s", strerror(errno));
    wanted->secret = secret;
    return DT_OK;
}

/* The job of a foreign worker, which checks its model and size itself. */
static dt_status set_wanted(const struct dt_options *options, struct dt_wanted *wanted)
{
    *wanted =
        (struct dt_wanted){.engine = options->worker.engine,
                           .max_error = options->worker.max_error,
                           .text_and_vae_ns = options->worker.text_and_vae_ns,
                           .space = options->command.text == NULL ? options->command.space : NULL,
                           .lossy = options->lossy};
    dt_options_task(options, &wanted->task);
    const char *model = wanted->task.at[DT_TASK_model].text;
    const char *dtype = wanted->task.at[DT_TASK_dtype].text;
    if (model != NULL && options->worker.engine != NULL)
        dt_task_set_text(&wanted->task, DT_TASK_model, dt_card_full_name(model));
    if (dtype != NULL && strcmp(dtype, "float32") != 0 && strcmp(dtype, "bfloat16") != 0 &&
        strcmp(dtype, "float16") != 0)
        return dt_fail(DT_EUSAGE,
                       "--dtype '%s' is none that a worker takes: float32, bfloat16 or float16",
                       dtype);
    for (enum dt_task_field i = 0; i < DT_TASK_FIELDS; i++)
        DT_TRY(check_text(dt_task_rows[i].option, wanted->task.at[i].text));
    DT_TRY(check_text(options->command.served ? "server" : "command", options->command.text));
    return set_secret(options, wanted);
}

dt_status dt_options_machine(const struct dt_options *options, struct dt_described *described,
                             struct dt_job *job)
{
    struct dt_machine *machine = NULL;
    if (options->lookup.machine == NULL)
        return DT_OK;
    DT_TRY(dt_machine_load(options->lookup.machine, &machine));
    *described = (struct dt_described){.cores = machine->cores,
                                       .gpus = machine->gpus,
                                       .memory_bytes = machine->memory_bytes,
                                       .bfloat16 = machine->bfloat16};
    dt_machine_free(machine);
    job->more.machine = described;
    return DT_OK;
}

/* A process has one command line, or tunes its workloads one after the other. */
dt_status dt_options_hosts(const struct dt_options *options, struct dt_more *more)
{
    static struct dt_hosts hosts;
    const struct dt_host_options *given = &options->job.hosts;
    if (given->list == NULL && given->file == NULL) {
        if (given->mixed || dt_option_given(options, "launcher"))
            return dt_fail(DT_EUSAGE, "--%s has no effect without --hosts or --hostfile",
                           given->mixed ? "mixed-hosts" : "launcher");
        return DT_OK;
    }
    if (given->list != NULL && given->file != NULL)
        return dt_fail(DT_EUSAGE, "--hosts and --hostfile both name the hosts: give one of them");
    hosts = (struct dt_hosts){.launcher = given->launcher};
    if (given->list != NULL && strcmp(given->list, "slurm") == 0)
        DT_TRY(dt_hosts_slurm(&hosts));
    else
        DT_TRY(given->list != NULL ? dt_hosts_parse(given->list, &hosts)
                                   : dt_hosts_read(given->file, &hosts));
    more->hosts = &hosts;
    more->mixed_hosts = given->mixed;
    return DT_OK;
}

dt_status dt_options_job(const struct dt_options *options, const char *plan, struct dt_job *out)
{
    struct dt_job job = {.worker = options->worker.program,
                         .start_ns = options->worker.start_ns,
                         .size = options->job.sizes.count > 0 ? options->job.sizes.widths[0] : 0,
                         .weights = options->job.weights,
                         .input = options->job.input,
                         .batches = options->job.batches,
                         .plan = plan,
                         .shared_devices = options->job.shared_devices,
                         .devices = (int)options->job.devices,
                         .more = {.oversubscribe = options->job.oversubscribe,
                                  .nccl = options->job.tune_nccl,
                                  .lossy = options->lossy,
                                  .max_error = options->worker.max_error},
                         .max_bytes = options->job.max_bytes,
                         .reserve_bytes = options->job.reserve_bytes,
                         .max_latency_ns = options->job.max_latency_ns,
                         .seed = options->job.seed,
                         .budget_ns = options->job.budget_ns};
    DT_TRY(dt_objective_find(options->job.objective, &job.objective));
    DT_TRY(dt_options_hosts(options, &job.more));
    DT_TRY(dt_options_backend(options, &job.backend));
    if (job.worker.path != NULL) {
        DT_TRY(set_wanted(options, &job.wanted));
    } else { /* unspecified parts are chosen by device (dt_target_new) */
        job.wanted.task = options->task;
        job.wanted.text_and_vae_ns = options->worker.text_and_vae_ns;
        job.has_dtype = dt_option_given(options, "dtype");
        if (dt_option_given(options, "model"))
            DT_TRY(dt_network_load(options->job.model, &job.network));
        if (job.has_dtype)
            DT_TRY(dt_dtype_find("--dtype", options->job.dtype, &job.dtype));
    }
    *out = job;
    return DT_OK;
}
