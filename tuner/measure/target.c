/* SPDX-License-Identifier: MIT */
#include "tuner/measure/target_int.h"

#include "base/array.h"
#include "base/figures.h"
#include "base/host.h"
#include "model/input.h"
#include "space/dit/dit.h"
#include "tuner/machine/machine.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devices: how cores and GPUs differ for the built-in network, one row each */

static bool lacks_cores(const struct dt_target *target, enum dt_dtype dtype)
{
    const struct dt_described *described = target->hardware.described;
    return described == NULL ? !dt_machine_runs(dtype)
                             : dtype != DT_FLOAT32 && !described->bfloat16;
}

static bool lacks_gpus(const struct dt_target *target, enum dt_dtype dtype)
{
    return dtype != DT_FLOAT32 && !target->hardware.backend.gpus.bfloat16;
}

/* Without MPI the worker starts its ranks itself, which exchange through shared
 * memory (worker/start.c). */
#ifdef DT_HAVE_MPI
enum { CORES_BY = DT_LAUNCH_MPIRUN };
#else
enum { CORES_BY = DT_LAUNCH_SELF };
#endif

static const struct device {
    const char *unit; /* device of a rank */
    enum dt_launcher launcher;
    bool (*lacks)(const struct dt_target *target, enum dt_dtype dtype);
} device_rows[] = {
    {"core", (enum dt_launcher)CORES_BY, lacks_cores},
    {"GPU", DT_LAUNCH_SELF, lacks_gpus},
};

static const struct device *device_of(const struct dt_target *target)
{
    return &device_rows[target->hardware.backend.cuda];
}

/* A foreign worker may use GPUs, which are then what its ranks are placed on. */
static int usual_devices(const struct dt_target *target)
{
    int gpus = target->hardware.watched.gpus.count;
    return gpus > 0 ? gpus : target->hardware.cores;
}

/* Nothing is looked at on this machine, and nothing can run. */
static dt_status place_elsewhere(const struct dt_job *job, struct dt_target *target)
{
    struct dt_hardware *hardware = &target->hardware;
    const struct dt_described *described = job->more.machine;
    *hardware = (struct dt_hardware){.described = described,
                                     .cores = described->cores,
                                     .devices = job->devices > 0 ? job->devices : described->cores};
    hardware->backend.cuda = described->gpus.count > 0;
    hardware->backend.gpus = described->gpus;
    hardware->unit = device_of(target)->unit;
    return DT_OK;
}

/* The slots are cores or GPUs of the hosts; what those are is seen when the first
 * group says it is ready. */
static dt_status place_on_hosts(const struct dt_job *job, struct dt_target *target)
{
    struct dt_hardware *hardware = &target->hardware;
    hardware->hosts = *job->more.hosts;
    hardware->mixed_hosts = job->more.mixed_hosts;
    hardware->cores = dt_hosts_slots(&hardware->hosts);
    if (hardware->backend.cuda)
        hardware->backend.gpus.count = hardware->cores;
    hardware->devices = job->devices > 0 ? job->devices : hardware->cores;
    target->worker.launcher = DT_LAUNCH_MPIRUN;
    return job->worker.path != NULL ? dt_machine_program(NULL, target->worker.rank_program) : DT_OK;
}

/* Chooses back end, cores, devices, program and how ranks are started. */
static dt_status place_ranks(const struct dt_job *job, struct dt_target *target)
{
    if (job->more.machine != NULL)
        return place_elsewhere(job, target);
    DT_TRY(dt_backend_choose(job->backend, job->worker.path != NULL, &target->hardware.backend));
    target->hardware.backend.shared = job->shared_devices;
    if (job->worker.path != NULL)
        DT_TRY(dt_backend_find_gpus(&target->hardware.watched));
    target->hardware.cores =
        target->hardware.backend.cuda ? target->hardware.backend.gpus.count : dt_host_cores();
    target->hardware.devices = job->devices > 0 ? job->devices : usual_devices(target);
    target->hardware.unit = device_of(target)->unit;
    target->worker.arguments = job->worker.arguments;
    target->worker.launcher = device_of(target)->launcher;
    if (job->more.hosts != NULL)
        DT_TRY(place_on_hosts(job, target));
    if (!target->hardware.backend.cuda)
        return dt_machine_program(job->worker.path, target->worker.program);
    memcpy(target->worker.program, target->hardware.backend.program, sizeof target->worker.program);
    return DT_OK;
}

/* The network to tune. */
struct choice {
    struct dt_network network;
    enum dt_dtype dtype;
    int size; /* pixels; 0: the network's */
};

/* Chooses by the job, and by the device where the job leaves it open. */
static dt_status choose_network(const struct dt_job *job, const struct dt_target *target,
                                struct choice *choice)
{
    const struct dt_gpus *gpus =
        target->hardware.backend.cuda ? &target->hardware.backend.gpus : NULL;
    struct dt_dit_usual usual = dt_dit_usual(gpus);
    bool named = job->network.name[0] != '\0';
    bool sized = job->size > 0 || named || job->input != NULL;
    choice->size = sized ? job->size : usual.size;
    choice->network = job->network;
    if (!named)
        DT_TRY(dt_network_load(usual.model, &choice->network));
    choice->dtype = job->has_dtype ? job->dtype : dt_dit_usual_dtype(&choice->network, gpus);
    return DT_OK;
}

bool dt_target_has_replicas(const struct dt_target *target)
{
    return target->objective != NULL && target->objective->whole_image &&
           target->hardware.devices > 1 && target->hardware.hosts.count == 0;
}

/* Fills the device's limits of plans; the caller sets the rest. */
static void set_limits(const struct dt_target *target, enum dt_dtype dtype,
                       struct dt_limits *limits)
{
    limits->gpus = target->hardware.backend.cuda ? &target->hardware.backend.gpus : NULL;
    limits->cores = target->hardware.cores;
    limits->devices = target->hardware.devices;
    limits->no_dtype = device_of(target)->lacks(target, dtype);
    limits->memory_bytes = target->hardware.described != NULL
                               ? target->hardware.described->memory_bytes
                               : dt_host_memory_available();
    limits->replicas = dt_target_has_replicas(target);
    limits->hosts = target->hardware.hosts.count;
    limits->slots = dt_hosts_least_slots(&target->hardware.hosts);
    if (limits->hosts > 1) /* the others have as much, as far as is known */
        limits->memory_bytes *= limits->hosts;
}

/* After a foreign worker's ready: its ranks run on the GPUs that place_ranks found, or not. */
static dt_status watch_gpus(struct dt_target *target)
{
    struct dt_hardware *hardware = &target->hardware;
    DT_TRY(dt_machine_announced_gpus(target->worker.ready, &hardware->watched));
    hardware->backend.shared = hardware->backend.shared && hardware->watched.cuda;
    hardware->watched.shared = hardware->backend.shared;
    return DT_OK;
}

const struct dt_backend *dt_target_gpus(const struct dt_target *target)
{
    const struct dt_hardware *hardware = &target->hardware;
    if (hardware->backend.cuda)
        return &hardware->backend;
    return target->foreign && hardware->watched.cuda ? &hardware->watched : NULL;
}

int64_t dt_target_memory(const struct dt_target *target)
{
    const struct dt_backend *gpus = dt_target_gpus(target);
    if (gpus != NULL)
        return gpus->gpus.memory_bytes;
    return dt_target_names_devices(target) ? dt_machine_announced_memory(target->worker.ready)
                                           : dt_host_memory_limit();
}

dt_status dt_target_hold_back(struct dt_target *target, int64_t bytes)
{
    target->reserve = (struct dt_reserve){.bytes = bytes,
                                          .total = dt_target_memory(target),
                                          .shared = dt_target_gpus(target) == NULL &&
                                                    !dt_target_names_devices(target)};
    if (target->reserve.total > 0)
        return DT_OK;
    return dt_fail(DT_EUSAGE,
                   "--reserve cannot be kept: the memory of the devices of the worker %s "
                   "is not known",
                   target->worker.program);
}

bool dt_target_exceeds(const struct dt_target *target, int ranks, int64_t peak_bytes,
                       struct dt_text *why)
{
    const struct dt_reserve *reserve = &target->reserve;
    dt_auto_text text = {0};
    int hosts = target->hardware.hosts.count > 1 ? target->hardware.hosts.count : 1;
    int64_t held = peak_bytes * (reserve->shared ? (ranks + hosts - 1) / hosts : 1);
    bool much = target->max_bytes > 0 && peak_bytes > target->max_bytes;
    bool full = peak_bytes > 0 && reserve->bytes > 0 && held > reserve->total - reserve->bytes;
    if (much)
        dt_text_add(&text, "a rank takes %s (%lld bytes), more than --max-bytes %s (%lld)",
                    dt_figure_bytes_of(peak_bytes).text, (long long)peak_bytes,
                    dt_figure_bytes_of(target->max_bytes).text, (long long)target->max_bytes);
    else if (full)
        dt_text_add(
            &text,
            "%s takes %s (%lld bytes), and --reserve holds %s: more than the %s (%lld) of %s",
            reserve->shared && ranks > 1 ? "it" : "a rank", dt_figure_bytes_of(held).text,
            (long long)held, dt_figure_bytes_of(reserve->bytes).text,
            dt_figure_bytes_of(reserve->total).text, (long long)reserve->total,
            reserve->shared ? "the machine" : "its device");
    if (why != NULL && (much || full))
        dt_text_add(why, "%s", dt_text_at(&text));
    return much || full;
}

dt_status dt_target_devices_free(const struct dt_target *target)
{
    const struct dt_backend *gpus = dt_target_gpus(target);
    if (gpus == NULL || gpus->shared)
        return DT_OK;
    int most = target->hardware.devices, count = gpus->gpus.count;
    return dt_backend_clean(gpus, most < count ? most : count);
}

/* "8 GPUs (NVIDIA H200)" */
void dt_target_units(const struct dt_target *target, int n, struct dt_text *out)
{
    const char *name = dt_target_hardware(target);
    dt_text_add(out, "%d %s%s", n, target->hardware.unit, n == 1 ? "" : "s");
    if (name != NULL)
        dt_text_add(out, " (%s)", name);
    if (target->hardware.hosts.count > 0)
        dt_text_add(out, " of %d host%s", target->hardware.hosts.count,
                    target->hardware.hosts.count == 1 ? "" : "s");
}

/* ---- the built-in network */

int dt_target_named(const char *plan, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = plan; at != NULL && (at = strstr(at, name)) != NULL; at += size) {
        bool starts = at == plan || at[-1] == ' ' || at[-1] == ',';
        if (starts && at[size] == '=') {
            long value = strtol(at + size + 1, NULL, 10);
            return value > 0 && value < 1 << 20 ? (int)value : 0;
        }
    }
    return 0;
}

/* Ranks that a plan's text requests: its ranks, or the product of its degrees, of each replica. */
static int ranks_in(const char *plan)
{
    int named = dt_target_named(plan, "ranks");
    int64_t product = 1;
    for (int i = 0; i < DT_DEGREES; i++) {
        int degree = dt_target_named(plan, dt_params[dt_degrees[i].param].name);
        product *= degree > 0 ? degree : 1;
        if (product > 1024)
            product = 1024;
    }
    int replicas = dt_target_named(plan, "replicas");
    return (named > product ? named : (int)product) *
           (replicas > 1 && replicas < 1024 ? replicas : 1);
}

static dt_status set_size(const struct dt_job *job, int size, struct dt_workload *workload)
{
    const struct dt_network *network = &workload->network;
    int step = DT_LATENT_PIXELS * network->patch;
    if (size > 0 && (size % step != 0 || size > 16384))
        return dt_fail(
            DT_EUSAGE,
            "--size %d is not a multiple of %d (8 x the patch of %s) up to 16384; near it: %d",
            size, step, network->name,
            size > 16384  ? 16384 / step * step
            : size < step ? step
                          : (size + step / 2) / step * step);
    workload->height = workload->width = size > 0 ? size / DT_LATENT_PIXELS : network->latent_size;
    if (job->input == NULL)
        return DT_OK;
    int height, width;
    DT_TRY(dt_input_inspect(job->input, network, &workload->input_batch, &height, &width));
    if (size > 0 && (height != workload->height || width != workload->width))
        return dt_fail(
            DT_EUSAGE,
            "the input file %s: x is %d x %d, but --size %d asks for %d x %d latent pixels",
            job->input, width, height, size, workload->width, workload->height);
    workload->height = height;
    workload->width = width;
    workload->guidance = false;
    return DT_OK;
}

static dt_status copy_path(const char *path, char out[], size_t room)
{
    char *full = path != NULL ? realpath(path, NULL) : NULL;
    int size = snprintf(out, room, "%s", full != NULL ? full : path != NULL ? path : "");
    free(full);
    return size >= 0 && (size_t)size < room ? DT_OK
                                            : dt_fail(DT_EUSAGE, "the path %s is too long", path);
}

static dt_status make_workload(const struct dt_job *job, const struct choice *choice,
                               struct dt_workload *workload)
{
    *workload = (struct dt_workload){.network = choice->network,
                                     .dtype = choice->dtype,
                                     .guidance = true,
                                     .seed = (uint64_t)job->seed,
                                     .sampler_steps = 50};
    if (job->weights != NULL)
        DT_TRY(dt_weights_inspect(job->weights, &workload->network));
    DT_TRY(copy_path(job->weights, workload->weights, sizeof workload->weights));
    DT_TRY(copy_path(job->input, workload->input, sizeof workload->input));
    DT_TRY(set_size(job, choice->size, workload));
    return job->weights != NULL ? dt_weights_inspect_positions(job->weights, workload) : DT_OK;
}

/* Batches the space may hold: those of the job, and the one that its plan names. */
static void list_batches(const struct dt_job *job, struct dt_ints *batches)
{
    int more = dt_target_named(job->plan, "batch");
    *batches = job->batches;
    bool have = more == 0;
    for (int i = 0; i < batches->count; i++)
        have = have || batches->values[i] == more;
    if (!have && batches->count < DT_LIST_MAX)
        batches->values[batches->count++] = more;
    if (batches->count == 0)
        batches->values[batches->count++] = 1;
}

/* The whole image of the built-in network is shown where its steps, or text encoder and VAE, are
 * given: it has neither. */
static void set_image(const struct dt_wanted *wanted, const struct dt_workload *workload,
                      struct dt_image_work *image)
{
    int steps = (int)wanted->task.at[DT_TASK_steps].count;
    *image = (struct dt_image_work){.sampler_steps = steps > 0 ? steps : workload->sampler_steps,
                                    .flops = dt_workload_flops(workload, 1),
                                    .attention_flops = dt_workload_attention_flops(workload, 1),
                                    .rest_bytes = dt_workload_rest_bytes(workload, 1),
                                    .known = steps > 0 || wanted->text_and_vae_ns > 0,
                                    .given = wanted->text_and_vae_ns > 0,
                                    .text_and_vae_ns = wanted->text_and_vae_ns};
    image->steps = image->sampler_steps;
}

/* The documented plan of the built-in network (docs/measuring.md) for images a second: the most
 * replicas of the smallest plan. */
static void document_builtin(struct dt_target *target)
{
    struct dt_documented *documented = &target->documented;
    int axis = dt_space_role(target->space, DT_ROLE_REPLICAS);
    int64_t values[DT_AXES_MAX];
    for (int i = axis >= 0 ? dt_space_axis(target->space, axis)->count : 0;
         i-- > 0 && !documented->known;) {
        char plan[64];
        snprintf(plan, sizeof plan, "ranks=1 replicas=%lld",
                 (long long)dt_space_axis(target->space, axis)->values[i]);
        documented->known = dt_space_parse(target->space, plan, values) == DT_OK &&
                            dt_space_locate(target->space, values, &documented->point) == DT_OK;
    }
    snprintf(documented->source, sizeof documented->source, "docs/measuring.md: Replicas");
    snprintf(documented->date, sizeof documented->date, "2026-11-27");
    snprintf(documented->says, sizeof documented->says,
             "for images a second, the most replicas of the smallest plan that fits");
}

static dt_status make_builtin(const struct dt_job *job, struct dt_target *target)
{
    struct dt_workload workload;
    struct dt_ints batches;
    struct choice choice;
    DT_TRY(choose_network(job, target, &choice));
    DT_TRY(make_workload(job, &choice, &workload));
    list_batches(job, &batches);
    qsort(batches.values, (size_t)batches.count, sizeof batches.values[0], dt_ascending_int);
    int wanted = ranks_in(job->plan);
    if (job->devices == 0 && wanted > target->hardware.devices)
        target->hardware.devices = wanted < 64 ? wanted : 64;
    struct dt_limits limits = {.oversubscribe = job->more.oversubscribe || job->plan != NULL,
                               .tune_nccl = job->more.nccl || job->plan != NULL,
                               .lossy = job->more.lossy,
                               .max_bytes = job->max_bytes,
                               .batches = batches.values,
                               .batch_count = batches.count};
    set_limits(target, workload.dtype, &limits);
    if (limits.lossy)
        DT_TRY(dt_dit_lossy(&workload, limits.gpus));
    DT_TRY(dt_dit_space(&workload, &limits, &target->space));
    target->tolerance = dt_dtype_tolerance(workload.dtype);
    target->lossy_error = job->more.max_error > 0 ? job->more.max_error : INFINITY;
    snprintf(target->identity.dtype, sizeof target->identity.dtype, "%s",
             dt_dtype_text(workload.dtype));
    set_image(&job->wanted, &workload, &target->image);
    snprintf(target->identity.engine, sizeof target->identity.engine, "dittune");
    snprintf(target->identity.mode, sizeof target->identity.mode, "eager");
    snprintf(target->identity.title, sizeof target->identity.title,
             "%s, %d x %d px (%d tokens), %s, %s", workload.network.name,
             workload.width * DT_LATENT_PIXELS, workload.height * DT_LATENT_PIXELS,
             dt_workload_tokens(&workload), workload.guidance ? "guided" : "not guided",
             dt_dtype_text(workload.dtype));
    DT_TRY(dt_target_write_job(target, job, &workload, &batches));
    if (dt_space_count(target->space) == 0)
        return DT_OK;
    DT_TRY(dt_dit_default(target->space, &target->fallback));
    if (dt_dit_baseline(target->space, &target->baseline) < 0)
        target->baseline = target->fallback;
    document_builtin(target);
    return DT_OK;
}

dt_status dt_target_new(const struct dt_job *job, struct dt_target **out)
{
    struct dt_target *target DT_CLEANUP(dt_target_free_at) = calloc(1, sizeof *target);
    if (target == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    target->max_bytes = job->max_bytes;
    target->worker.start_ns = DT_START_NS / 10; /* the built-in network's */
    target->tolerance = dt_dtype_tolerance(DT_FLOAT32);
    snprintf(target->identity.dtype, sizeof target->identity.dtype, "%s",
             dt_dtype_text(DT_FLOAT32));
    target->objective = job->objective;
    DT_TRY(place_ranks(job, target));
    DT_TRY(job->worker.path != NULL ? dt_target_foreign(job, target) : make_builtin(job, target));
    if (target->foreign)
        DT_TRY(watch_gpus(target));
    target->plans = dt_space_count(target->space);
    dt_target_write_hard(target);
    if (job->reserve_bytes > 0)
        DT_TRY(dt_target_hold_back(target, job->reserve_bytes));
    target->hardware.described = NULL;
    *out = target;
    target = NULL;
    return DT_OK;
}

void dt_target_free(struct dt_target *target)
{
    if (target == NULL)
        return;
    dt_space_free(target->space);
    dt_backend_fini(&target->hardware.backend);
    dt_backend_fini(&target->hardware.watched);
    dt_target_free_documents(target);
    free(target);
}

static int role_value(const struct dt_target *target, const struct dt_point *point,
                      enum dt_role role)
{
    int axis = dt_space_role(target->space, role);
    if (axis < 0 || dt_space_axis(target->space, axis)->labels != NULL)
        return 1;
    int64_t value = dt_point_value(target->space, point, axis);
    return value > 0 && value < INT_MAX ? (int)value : 1;
}

int dt_target_ranks(const struct dt_target *target, const struct dt_point *point)
{
    return role_value(target, point, DT_ROLE_RANKS);
}

int dt_target_replicas(const struct dt_target *target, const struct dt_point *point)
{
    return role_value(target, point, DT_ROLE_REPLICAS);
}

int dt_target_batch(const struct dt_target *target, const struct dt_point *point)
{
    return role_value(target, point, DT_ROLE_BATCH);
}

/* Threads of a rank are devices on cores only. Parameters in older records of the built-in network
 * have no role for them. */
static int64_t threads_of(const struct dt_target *target, const struct dt_point *point)
{
    bool gpus = dt_target_gpus(target) != NULL || dt_target_names_devices(target);
    int axis = target->foreign ? -1 : dt_space_find(target->space, "threads");
    if (target->foreign)
        return gpus ? 1 : role_value(target, point, DT_ROLE_THREADS);
    return axis < 0 ? 1 : dt_point_value(target->space, point, axis);
}

int dt_target_devices(const struct dt_target *target, const struct dt_point *point)
{
    int ranks = dt_target_ranks(target, point) * dt_target_replicas(target, point);
    int cores = target->hardware.cores;
    int64_t held = ranks * threads_of(target, point);
    int most = target->foreign && ranks > cores ? ranks : cores;
    return held < most ? (int)held : most;
}

bool dt_target_oversubscribed(const struct dt_target *target, const struct dt_point *point)
{
    return dt_target_ranks(target, point) * dt_target_replicas(target, point) >
           target->hardware.cores;
}

void dt_target_plans(const struct dt_target *target, struct dt_text *out)
{
    if (target->plans >= 0)
        dt_text_add(out, "%lld plan%s", (long long)target->plans, target->plans == 1 ? "" : "s");
    else
        dt_text_add(out, "more plans than can be counted");
}

dt_status dt_target_plan(const struct dt_target *target, const char *text, struct dt_point *point)
{
    int64_t values[DT_AXES_MAX];
    DT_TRY(dt_space_parse(target->space, text, values));
    return dt_space_locate(target->space, values, point);
}

const char *dt_target_reference(const struct dt_target *target)
{
    if (target->reference != NULL)
        return "float32";
    return target->identity.reference[0] != '\0' ? target->identity.reference
                                                 : target->identity.dtype;
}

void dt_target_blind(const struct dt_target *target, struct dt_text *out)
{
    if (target->least_fault > 0 && target->tolerance > target->least_fault / 3)
        dt_text_add(out,
                    "in %s verification cannot tell a small fault from rounding: right plans may "
                    "differ by %.2g, and the smallest of the planted faults by %.2g",
                    dt_target_reference(target), target->tolerance, target->least_fault);
}

bool dt_target_breaks(const struct dt_target *target, const struct dt_point *point)
{
    return target->broken[0] != '\0' && dt_point_equal(target->space, point, &target->fallback);
}

bool dt_target_documented(const struct dt_target *target, const struct dt_point *point)
{
    return target->documented.known &&
           dt_point_equal(target->space, point, &target->documented.point);
}

bool dt_target_wrong(const struct dt_target *target, const struct dt_point *point, double error)
{
    return dt_target_breaks(target, point) && error > target->tolerance;
}

dt_status dt_target_check(const struct dt_target *target)
{
    return dt_space_count(target->space) != 0 ? DT_OK : dt_space_none(target->space);
}
