/* SPDX-License-Identifier: MIT */
#include "tuner/machine/machine_int.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/environment.h"
#include "base/host.h"
#include "base/rng.h"
#include "model/workload_json.h"
#include "tuner/runner/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- variables that reach the worker and change the behaviour of its libraries */

/* Prefixes, since libraries add variables often. Names of places, and variables of one launch (Open
 * MPI sets such for its programs), do not affect speed. */

#define NAME_ROOM  64
#define VALUE_ROOM 256

extern char **environ;

/* docs/machine.md has the same list. */
static const char relevant[] =
    "OMP_ GOMP_ KMP_ OPENBLAS_ GOTO_ GOTOBLAS_ MKL_ BLIS_ DNNL_ ONEDNN_ OMPI_MCA_ "
    "PMIX_MCA_ UCX_ FI_ NCCL_ CUDA_ CUBLAS_ CUDNN_ TORCH_ PYTORCH_ HWLOC_ MALLOC_ "
    "LD_PRELOAD= LD_LIBRARY_PATH= GLIBC_TUNABLES= NVIDIA_TF32_OVERRIDE=";
static const char not_relevant[] =
    "OMPI_MCA_orte_ OMPI_MCA_ess_ OMPI_MCA_pmix OMPI_MCA_initial_wdir "
    "OMPI_MCA_shmem_RUNTIME_ OMPI_MCA_mpi_oversubscribe HWLOC_HIDE_ERRORS= "
    "CUDA_HOME= CUDA_PATH= CUDA_VERSION=";

static bool begins_with(const char *entry, const char *prefixes)
{
    for (size_t size; *prefixes != '\0'; prefixes += size + strspn(prefixes + size, " ")) {
        size = strcspn(prefixes, " ");
        if (strncmp(entry, prefixes, size) == 0)
            return true;
    }
    return false;
}

static void variables_add(json_t *object, char *const entries[])
{
    for (int i = 0; entries[i] != NULL; i++) {
        size_t size = strcspn(entries[i], "=");
        char name[NAME_ROOM], value[VALUE_ROOM];
        if (entries[i][size] != '=' || size >= sizeof name || !begins_with(entries[i], relevant) ||
            begins_with(entries[i], not_relevant))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)size, entries[i]);
        snprintf(value, sizeof value, "%s", entries[i] + size + 1);
        dt_group_clean(name);
        dt_group_clean(value);
        json_object_set_new(object, name, json_string(value));
    }
}

/* Variables about threads were removed before main; only a foreign worker gets them back. */
json_t *dt_machine_environment(bool foreign)
{
    json_t *object = json_object();
    if (foreign)
        variables_add(object, dt_environment_dropped());
    variables_add(object, environ);
    return object;
}

/* ---- the cache */

/* A cache holds a description and the stamp of its conditions: it is fresh when the current stamp
 * is equal. Starting a worker takes a tenth of a second, reading the cache a hundredth of that. It
 * is not synced: a lost or torn cache is written again. */

#define PATH_ROOM 4096

static json_int_t mtime_ns(const struct stat *info)
{
    return (json_int_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec;
}

/* Conditions of a cached description; NULL when the program is not found. The linker's cache
 * changes whenever libraries are installed. */
static json_t *cache_stamp(const char *program)
{
    char path[DT_PROGRAM_ROOM];
    struct stat info, libraries;
    dt_auto_free char *full =
        dt_host_program(program, path, sizeof path) ? realpath(path, NULL) : NULL;
    if (full == NULL || stat(full, &info) != 0)
        return NULL;
    return json_pack("{s:s, s:s, s:{s:s, s:I, s:I, s:I}, s:I, s:s, s:i, s:I}", "boot_id",
                     dt_host_boot(), "dittune", DT_VERSION, "worker", "path", full, "size",
                     (json_int_t)info.st_size, "mtime_ns", mtime_ns(&info), "inode",
                     (json_int_t)info.st_ino, "libraries_mtime_ns",
                     stat("/etc/ld.so.cache", &libraries) == 0 ? mtime_ns(&libraries) : 0,
                     "processors", dt_host_processors(), "cores", dt_host_cores(), "memory_bytes",
                     (json_int_t)dt_host_memory_limit());
}

static bool cache_folder(char folder[PATH_ROOM])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int size = -1;
    if (cache != NULL && cache[0] == '/')
        size = snprintf(folder, PATH_ROOM, "%s/dittune", cache);
    else if (home != NULL && home[0] == '/')
        size = snprintf(folder, PATH_ROOM, "%s/.cache/dittune", home);
    return size > 0 && size < PATH_ROOM - 64;
}

static uint64_t stream_of(const struct dt_program *program)
{
    uint64_t stream = dt_rng_stream(program->path);
    for (int i = 0; program->arguments != NULL && program->arguments[i] != NULL; i++)
        stream = stream * 31 + dt_rng_stream(program->arguments[i]);
    return stream;
}

/* Each foreign worker has a file of its own, one for each list of arguments. */
static bool cache_path(const struct dt_machine_worker *worker, char path[PATH_ROOM])
{
    if (!cache_folder(path))
        return false;
    size_t size = strlen(path);
    if (worker->foreign)
        snprintf(path + size, PATH_ROOM - size, "/machine-%016llx.json",
                 (unsigned long long)stream_of(&worker->program));
    else
        snprintf(path + size, PATH_ROOM - size, "/machine%s.json",
                 worker->backend != NULL && worker->backend->cuda ? "-cuda" : "");
    return true;
}

static bool is_description(const json_t *root)
{
    json_int_t major =
        json_integer_value(json_object_get(json_object_get(root, "version"), "major"));
    return strcmp(dt_json_text_at(root, "format"), "dittune-machine") == 0 && major == 1 &&
           json_is_object(json_object_get(root, "hard")) &&
           json_is_object(json_object_get(root, "soft")) &&
           json_is_object(json_object_get(root, "info")) &&
           json_is_object(json_object_get(root, "limits"));
}

/* The variables are the current ones of this process, not the cached ones. */
static json_t *cache_read(const struct dt_machine_worker *worker)
{
    char path[PATH_ROOM];
    json_auto_t *root = NULL;
    if (!cache_path(worker, path) || access(path, R_OK) != 0 ||
        dt_json_read(path, "the cache", &root) < 0)
        return NULL;
    json_auto_t *now = cache_stamp(worker->program.path);
    if (now == NULL || !is_description(root) || !json_equal(now, json_object_get(root, "cache")))
        return NULL;
    json_object_del(root, "cache");
    json_object_set_new(json_object_get(root, "soft"), "environment",
                        dt_machine_environment(worker->foreign));
    return json_incref(root);
}

/* Makes the folders of path, without the file itself. */
static void make_folders(char path[])
{
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, 0755) != 0 && errno != EEXIST)
            errno = 0; /* opening the file reports the error */
        *at = '/';
    }
}

static void cache_write(const char *path, const struct dt_text *text)
{
    char temp[PATH_ROOM + 8];
    snprintf(temp, sizeof temp, "%s.XXXXXX", path);
    int fd = mkostemp(temp, O_CLOEXEC);
    if (fd < 0)
        return;
    bool written = write(fd, text->bytes, text->size) == (ssize_t)text->size;
    if (close(fd) != 0 || !written || rename(temp, path) != 0)
        unlink(temp);
}

void dt_machine_keep(const struct dt_machine_worker *worker, const json_t *description)
{
    char path[PATH_ROOM];
    dt_auto_text text = {0};
    json_auto_t *now = cache_stamp(worker->program.path), *copy = dt_json_copy(description);
    if (now == NULL || copy == NULL || !cache_path(worker, path))
        return;
    json_object_set(copy, "cache", now);
    if (dt_json_text(copy, &text) == DT_OK) {
        dt_text_add(&text, "\n");
        make_folders(path);
        cache_write(path, &text);
    }
}

/* ---- the description */

#define VERSIONS_MOST 32
#define VERSION_ROOM  160

void dt_machine_beside(const char *name, char program[DT_PROGRAM_ROOM])
{
    char self[DT_PROGRAM_ROOM];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL)
        slash[1] = '\0';
    if (slash == NULL || snprintf(program, DT_PROGRAM_ROOM, "%s%s", self, name) >= DT_PROGRAM_ROOM)
        program[0] = '\0';
}

dt_status dt_machine_program(const char *named, char program[DT_PROGRAM_ROOM])
{
    const char *chosen = named != NULL ? named : getenv("DITTUNE_WORKER");
    if (chosen != NULL) {
        char found[DT_PROGRAM_ROOM];
        snprintf(program, DT_PROGRAM_ROOM, "%s", chosen);
        if (dt_host_program(chosen, found, sizeof found) || strchr(chosen, '/') != NULL)
            return DT_OK;
        dt_machine_beside(chosen, found);
        if (access(found, X_OK) == 0)
            memcpy(program, found, sizeof found);
        return DT_OK;
    }
    dt_machine_beside("dittune-worker", program);
    if (program[0] == '\0')
        return dt_fail(
            DT_FAILED,
            "cannot tell where this program is: set DITTUNE_WORKER to the path of dittune-worker");
    if (access(program, X_OK) != 0)
        return dt_fail(DT_EUSAGE, "%s is missing: set DITTUNE_WORKER to the path of dittune-worker",
                       program);
    return DT_OK;
}

/* Firmware and kernel reserve 1 to 6 % of the installed memory, a part that differs between
 * machines of one make. */
int64_t dt_machine_memory_gib(int64_t bytes)
{
    int64_t gib = bytes > 0 ? (bytes - 1) / (1LL << 30) + 1 : 1, step = 1;
    while (gib > 8 * step)
        step *= 2;
    return (gib + step - 1) / step * step;
}

bool dt_machine_runs(enum dt_dtype dtype)
{
#if defined(DT_HAVE_ONEDNN)
    return dtype == DT_FLOAT32 || dt_host_has_bfloat16();
#else
    return dtype == DT_FLOAT32;
#endif
}

static bool is_on_gpus(const struct dt_backend *backend)
{
    return backend != NULL && backend->cuda;
}

json_t *dt_machine_hard(const struct dt_backend *backend)
{
    char topology[17];
    const char *cpu = dt_host_cpu_id();
    if (is_on_gpus(backend))
        return dt_backend_hard(backend);
    snprintf(topology, sizeof topology, "%016llx", (unsigned long long)dt_host_topology());
    return json_pack("{s:s, s:s*, s:i, s:I, s:s}", "device", dt_host_cpu(), "cpu",
                     cpu[0] != '\0' ? cpu : NULL, "cores", dt_host_cores(), "memory_gib",
                     (json_int_t)dt_machine_memory_gib(dt_host_memory_total()), "topology",
                     topology);
}

/* A worker's texts, cleaned for files and terminals; our own fields take precedence. */
static void soft_add_versions(json_t *soft, const json_t *versions)
{
    const char *name;
    json_t *value;
    int n = 0;
    json_object_foreach((json_t *)versions, name, value)
    {
        char key[64], text[VERSION_ROOM];
        if (!json_is_string(value) || strlen(name) >= sizeof key || n++ == VERSIONS_MOST)
            continue;
        snprintf(key, sizeof key, "%s", name);
        snprintf(text, sizeof text, "%s", json_string_value(value));
        dt_group_clean(key);
        dt_group_clean(text);
        text[strcspn(text, "\n")] = '\0';
        if (json_object_get(soft, key) == NULL)
            json_object_set_new(soft, key, json_string(text));
    }
}

static json_t *soft_fields(const json_t *hello, const json_t *ready,
                           const struct dt_machine_worker *about)
{
    const char *name = json_string_value(json_object_get(hello, "name"));
    const char *version = json_string_value(json_object_get(hello, "version"));
    json_t *soft = json_pack("{s:s, s:s, s:s, s:s, s:o}", "dittune", DT_VERSION, "hwloc",
                             dt_host_hwloc_version(), "method", "1", "kernel", dt_host_kernel(),
                             "environment", dt_machine_environment(about->foreign));
    if (is_on_gpus(about->backend))
        dt_backend_soft(about->backend, soft);
    else if (about->foreign && about->backend != NULL && about->backend->shared)
        json_object_set_new(soft, "devices", json_string("shared with others"));
    if (name != NULL) {
        char worker[VERSION_ROOM];
        snprintf(worker, sizeof worker, "%.80s%s%.64s", name, version != NULL ? " " : "",
                 version != NULL ? version : "");
        dt_group_clean(worker);
        json_object_set_new(soft, "worker", json_string(worker));
    }
    soft_add_versions(
        soft, json_object_get(json_array_get(json_object_get(ready, "ranks"), 0), "versions"));
    return soft;
}

json_t *dt_machine_describe(const json_t *hello, const json_t *ready,
                            const struct dt_machine_worker *worker)
{
    json_t *hard = worker->foreign && ready != NULL ? dt_machine_announced_hard(ready)
                                                    : dt_machine_hard(worker->backend);
    json_t *limits =
        is_on_gpus(worker->backend)
            ? dt_backend_limits(worker->backend)
            : json_pack("{s:I, s:b}", "memory_bytes", (json_int_t)dt_host_memory_limit(),
                        "bfloat16", dt_machine_runs(DT_BFLOAT16));
    return json_pack("{s:s, s:{s:i, s:i}, s:o, s:o, s:{s:s, s:s, s:I}, s:o}", "format",
                     "dittune-machine", "version", "major", 1, "minor", 0, "hard", hard, "soft",
                     soft_fields(hello, ready, worker), "info", "host", dt_host_name(), "boot_id",
                     dt_host_boot(), "t_wall_ns", (json_int_t)dt_clock_wall_ns(), "limits", limits);
}

/* A hello accepts any workload: nothing is loaded before the first plan. */
static dt_status make_workload(json_t **json)
{
    struct dt_workload workload = {.guidance = true, .sampler_steps = 1, .dtype = DT_FLOAT32};
    DT_TRY(dt_network_load("dit-s/2", &workload.network));
    workload.height = workload.width = workload.network.latent_size;
    *json = dt_workload_to_json(&workload);
    return *json != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

static dt_status ask_worker(const struct dt_machine_worker *worker, int64_t deadline_ns,
                            json_t **description)
{
    struct dt_launch launch = {
        .program = worker->program.path, .arguments = worker->program.arguments, .ranks = 1};
    struct dt_failure failure = {.outcome = DT_TRIAL_OK};
    struct dt_group *group = NULL;
    json_auto_t *workload = NULL;
    if (!worker->foreign)
        DT_TRY(make_workload(&workload));
    dt_status status = dt_group_start(&launch, workload, deadline_ns, &group, &failure);
    if (status == DT_FAILED)
        return dt_fail(DT_FAILED, "the worker %s did not start: %s", worker->program.path,
                       failure.cause);
    DT_TRY(status);
    *description = dt_machine_describe(dt_group_hello(group), dt_group_ready(group), worker);
    dt_group_stop(group, DT_NS_PER_SECOND);
    return *description != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

dt_status dt_machine_read(const struct dt_machine_worker *worker, bool renew, int64_t deadline_ns,
                          json_t **description)
{
    json_t *cached = renew ? NULL : cache_read(worker);
    if (cached != NULL && is_on_gpus(worker->backend)) { /* they were queried just now */
        json_object_set_new(cached, "hard", dt_backend_hard(worker->backend));
        json_object_set_new(cached, "limits", dt_backend_limits(worker->backend));
        dt_backend_soft(worker->backend, json_object_get(cached, "soft"));
    }
    if (cached != NULL) {
        *description = cached;
        return DT_OK;
    }
    DT_TRY(ask_worker(worker, deadline_ns, description));
    dt_machine_keep(worker, *description);
    return DT_OK;
}

dt_status dt_machine_here(struct dt_program named, enum dt_backend_kind kind, bool renew,
                          int64_t deadline_ns, json_t **description)
{
    char program[DT_PROGRAM_ROOM];
    DT_CLEANUP(dt_backend_fini) struct dt_backend backend = {.cuda = false};
    DT_TRY(dt_backend_choose(kind, named.path != NULL, &backend));
    const struct dt_machine_worker worker = {
        {backend.cuda ? backend.program : program, named.arguments}, named.path != NULL, &backend};
    if (!backend.cuda)
        DT_TRY(dt_machine_program(named.path, program));
    return dt_machine_read(&worker, renew, deadline_ns, description);
}
