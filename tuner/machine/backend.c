/* SPDX-License-Identifier: MIT */
#include "tuner/machine/machine_int.h"

#include "base/clock.h"
#include "base/figures.h"
#include "base/rng.h"
#include "tuner/runner/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the GPUs of this machine, as a separate process lists them */

static void devices_find_program(const char *chosen, struct dt_devices_answer *answer)
{
    chosen = chosen != NULL ? chosen : getenv("DITTUNE_WORKER_CUDA");
    dt_machine_beside("dittune-worker-cuda", answer->program);
    if (chosen != NULL)
        snprintf(answer->program, sizeof answer->program, "%s", chosen);
    answer->missing = access(answer->program, X_OK) != 0;
}

static const char *last_message(struct dt_text *err)
{
    while (err->size > 0 && err->bytes[err->size - 1] == '\n')
        err->bytes[--err->size] = '\0';
    const char *text = dt_text_at(err), *end = strrchr(text, '\n');
    return end != NULL ? end + 1 : text;
}

static void devices_read_answer(struct dt_devices_answer *answer, struct dt_output *output)
{
    json_auto_t *object = NULL;
    const char *how = output->how;
    if (how[0] == '\0' &&
        (dt_json_parse(dt_text_at(&output->out), output->out.size, "its answer", &object) !=
             DT_OK ||
         !json_is_object(object) || !json_is_array(json_object_get(object, "devices"))))
        how = "answered what is no description of devices";
    if (how[0] == '\0') {
        answer->devices = json_incref(object);
        return;
    }
    const char *said = last_message(&output->messages);
    snprintf(answer->cause, sizeof answer->cause, "%s%s%.300s", how, said[0] != '\0' ? ": " : "",
             said);
    dt_group_clean(answer->cause);
}

dt_status dt_machine_devices(const char *program, int64_t deadline_ns,
                             struct dt_devices_answer *answer)
{
    memset(answer, 0, sizeof *answer);
    devices_find_program(program, answer);
    if (answer->missing) {
        snprintf(answer->cause, sizeof answer->cause, "there is no %.400s", answer->program);
        return DT_OK;
    }
    char *argv[] = {answer->program, "--devices", NULL};
    struct dt_output output;
    DT_TRY(dt_output_read(answer->program, argv, deadline_ns, &output));
    devices_read_answer(answer, &output);
    dt_output_fini(&output);
    return DT_OK;
}

void dt_devices_answer_fini(struct dt_devices_answer *answer)
{
    json_decref(answer->devices);
    answer->devices = NULL;
}

/* ---- the back end */

#define BFLOAT16_CAPABILITY 80 /* Ampere */
#define ASK_SECONDS         20
#define GPUS_MOST           1024
#define SETTLE_TURN_NS      (DT_NS_PER_SECOND / 2)
/* exchanges in CUDA graphs (NCCL's user guide, "Using NCCL with CUDA Graphs") */
#define CAPTURE_SINCE 20900

/* "2.28.9" as NCCL_VERSION_CODE is since 2.9: 22809. */
static int nccl_code(const char *version)
{
    int major = 0, minor = 0, patch = 0;
    if (sscanf(version, "%d.%d.%d", &major, &minor, &patch) < 2 || major < 0 || major > 99 ||
        minor < 0 || minor > 99 || patch < 0 || patch > 99)
        return 0;
    return major * 10000 + minor * 100 + patch;
}

/* Converts "9.0" to 90; 0 when it is missing. */
static int card_capability(const json_t *card)
{
    int major = 0, minor = 0;
    if (sscanf(dt_json_text_at(card, "compute"), "%d.%d", &major, &minor) != 2 || major < 1 ||
        major > 99)
        return 0;
    return 10 * major + minor;
}

static void take_card(const json_t *card, struct dt_backend *backend)
{
    struct dt_gpus *gpus = &backend->gpus;
    int64_t memory = dt_json_integer_at(card, "memory_bytes"),
            shared = dt_json_integer_at(card, "shared_bytes");
    int compute = card_capability(card);
    bool first = gpus->count == 0;
    gpus->memory_bytes = first || memory < gpus->memory_bytes ? memory : gpus->memory_bytes;
    gpus->shared_bytes = first || shared < gpus->shared_bytes ? shared : gpus->shared_bytes;
    backend->compute = first || compute < backend->compute ? compute : backend->compute;
    gpus->count++;
}

/* From the answer, of which it takes a reference; DT_EUNSUP with the reason when it names no GPU.
 * Only CUDA says how much memory a block may share, which only the built-in worker needs. */
static dt_status from_json(json_t *devices, bool built_in, struct dt_backend *backend)
{
    size_t i;
    json_t *card;
    *backend = (struct dt_backend){.cuda = true};
    json_array_foreach(json_object_get(devices, "devices"), i, card)
    {
        if (i < GPUS_MOST)
            take_card(card, backend);
    }
    const char *why = dt_json_text_at(devices, "why");
    struct dt_gpus *gpus = &backend->gpus;
    if (gpus->count == 0)
        return dt_fail(DT_EUNSUP, "%.400s", why[0] != '\0' ? why : "no GPU was found");
    if (gpus->memory_bytes <= 0 || (built_in && gpus->shared_bytes <= 0) || backend->compute <= 0)
        return dt_fail(DT_EUNSUP, "its answer lacks the memory or the capability of a GPU");
    gpus->nccl = nccl_code(dt_json_text_at(devices, "nccl"));
    for (int kind = 0; kind < DT_ATTENTIONS; kind++)
        gpus->attention[kind] = dt_json_text_at(devices, dt_attention_texts[kind])[0] != '\0';
    gpus->capture = gpus->nccl >= CAPTURE_SINCE;
    gpus->capability = backend->compute;
    gpus->bfloat16 = backend->compute >= BFLOAT16_CAPABILITY;
    backend->devices = json_incref(devices);
    return DT_OK;
}

/* Without a driver in the kernel no process is started to query it. */
static bool has_driver(void)
{
    static const char *const signs[] = {"/dev/nvidiactl", "/proc/driver/nvidia/version", "/dev/dxg",
                                        "/dev/nvhost-gpu"};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++)
        if (access(signs[i], F_OK) == 0)
            return true;
    return false;
}

/* DT_EUNSUP with the reason when there is no GPU to use. program NULL: the
 * built-in worker for GPUs. */
static dt_status backend_query(const char *program, struct dt_backend *backend)
{
    DT_CLEANUP(dt_devices_answer_fini) struct dt_devices_answer answer = {.devices = NULL};
    backend->expected =
        getenv("DITTUNE_WORKER_CUDA") != NULL || getenv("DITTUNE_NVML") != NULL || has_driver();
    if (!backend->expected)
        return dt_fail(DT_EUNSUP, "no NVIDIA driver is loaded");
    DT_TRY(dt_machine_devices(program, dt_clock_machine_ns() + ASK_SECONDS * DT_NS_PER_SECOND,
                              &answer));
    if (answer.devices == NULL)
        return dt_fail(DT_EUNSUP, "%s%s%s", answer.missing ? "" : answer.program,
                       answer.missing ? "" : " --devices ", answer.cause);
    dt_status status = from_json(answer.devices, program == NULL, backend);
    backend->expected = true;
    memcpy(backend->program, answer.program, sizeof backend->program);
    return status;
}

dt_status dt_backend_find(const char *name, enum dt_backend_kind *kind)
{
    static const char *const names[] = {"auto", "cpu", "cuda", NULL};
    int i = dt_text_index(name, names);
    if (i < 0)
        return dt_fail(DT_EUSAGE, "--backend '%s' is unknown, expected auto, cpu or cuda", name);
    *kind = (enum dt_backend_kind)i;
    return DT_OK;
}

dt_status dt_backend_choose(enum dt_backend_kind kind, bool foreign, struct dt_backend *out)
{
    struct dt_backend backend = {.cuda = false};
    if (foreign || kind == DT_BACKEND_CPU) {
        *out = backend;
        return DT_OK;
    }
    dt_status status = backend_query(NULL, &backend);
    if (status != DT_OK && status != DT_EUNSUP)
        return status;
    if (status == DT_EUNSUP && kind == DT_BACKEND_CUDA)
        return dt_fail(DT_EUNSUP, "--backend cuda: %.599s", dt_message());
    if (status == DT_EUNSUP) {
        backend = (struct dt_backend){.cuda = false, .expected = backend.expected};
        snprintf(backend.why, sizeof backend.why, "%s", dt_message());
    }
    *out = backend;
    return DT_OK;
}

dt_status dt_backend_find_gpus(struct dt_backend *out)
{
    char program[DT_PROGRAM_ROOM];
    DT_TRY(dt_backend_choose(DT_BACKEND_AUTO, false, out));
    dt_machine_beside("dittune-worker", program);
    if (out->cuda || !out->expected || getenv("DITTUNE_WORKER_CUDA") != NULL || program[0] == '\0')
        return DT_OK;
    struct dt_backend backend = {.cuda = false};
    dt_status status = backend_query(program, &backend);
    if (status == DT_OK)
        *out = backend;
    return status == DT_EUNSUP ? DT_OK : status;
}

void dt_backend_fini(struct dt_backend *backend)
{
    json_decref(backend->devices);
    backend->devices = NULL;
}

static dt_status clean_card(const json_t *card)
{
    const json_t *processes = json_object_get(card, "processes");
    int64_t index = dt_json_integer_at(card, "index"),
            total = dt_json_integer_at(card, "memory_bytes");
    const json_t *free_bytes = json_object_get(card, "free_bytes");
    int64_t used = json_is_integer(free_bytes) ? total - json_integer_value(free_bytes) : 0;
    size_t n = json_array_size(processes);
    if (n > 0)
        return dt_fail(
            DT_EDIRTY,
            "GPU %lld is used by %zu other process%s (the first: pid %lld): end them, or "
            "measure anyway with --shared-devices",
            (long long)index, n, n == 1 ? "" : "es",
            (long long)dt_json_integer_at(json_array_get(processes, 0), "pid"));
    if (used > DT_DIRTY_BYTES && (double)used > DT_DIRTY_SHARE * (double)total)
        return dt_fail(
            DT_EDIRTY,
            "%s of %s of GPU %lld are in use by others: end them, or measure all the same with "
            "--shared-devices",
            dt_figure_bytes_of(used).text, dt_figure_bytes_of(total).text, (long long)index);
    return DT_OK;
}

dt_status dt_backend_clean(const struct dt_backend *backend, int count)
{
    size_t i;
    json_t *card;
    json_array_foreach(json_object_get(backend->devices, "devices"), i, card)
    {
        if ((int)i < count)
            DT_TRY(clean_card(card));
    }
    return DT_OK;
}

/* Compares free memory with that at the start; unknown values count as unchanged. */
static dt_status compare_free(const json_t *before, const json_t *now, int count)
{
    const json_t *then = json_object_get(before, "devices"),
                 *list = json_object_get(now, "devices");
    for (int i = 0; i < count && i < (int)json_array_size(then); i++) {
        const json_t *a = json_object_get(json_array_get(then, (size_t)i), "free_bytes");
        const json_t *b = json_object_get(json_array_get(list, (size_t)i), "free_bytes");
        int64_t lost = json_integer_value(a) - json_integer_value(b);
        if (json_is_integer(a) && json_is_integer(b) && lost > DT_DIRTY_BYTES)
            return dt_fail(DT_EDIRTY,
                           "GPU %d has %s less free memory than before a trial that was killed: "
                           "something of it is left, or others came",
                           i, dt_figure_bytes_of(lost).text);
    }
    return DT_OK;
}

dt_status dt_backend_settle(const struct dt_backend *backend, int count, int64_t deadline_ns)
{
    for (;;) {
        DT_CLEANUP(dt_devices_answer_fini) struct dt_devices_answer answer = {.devices = NULL};
        int64_t most = dt_clock_machine_ns() + ASK_SECONDS * DT_NS_PER_SECOND;
        DT_TRY(dt_machine_devices(backend->program, most, &answer));
        dt_status status =
            answer.devices != NULL
                ? compare_free(backend->devices, answer.devices, count)
                : dt_fail(DT_EDIRTY, "after a trial that was killed, %s --devices %s",
                          answer.program, answer.cause);
        if (status != DT_EDIRTY || dt_clock_ns() >= deadline_ns)
            return status;
        dt_clock_sleep_ns(SETTLE_TURN_NS);
    }
}

/* Hash of the topology: which GPU reaches which, and over what. */
static void topology_hash(const json_t *devices, char out[17])
{
    dt_auto_text text = {0};
    json_auto_t *all = json_pack("{s:O?, s:O?}", "links", json_object_get(devices, "links"),
                                 "peers", json_object_get(devices, "peers"));
    if (all == NULL || dt_json_text(all, &text) != DT_OK)
        dt_text_add(&text, "?");
    snprintf(out, 17, "%016llx", (unsigned long long)dt_rng_stream(dt_text_at(&text)));
}

json_t *dt_backend_hard(const struct dt_backend *backend)
{
    char links[17];
    const json_t *first = json_array_get(json_object_get(backend->devices, "devices"), 0);
    topology_hash(backend->devices, links);
    return json_pack("{s:s, s:i, s:I, s:s, s:s}", "device", dt_json_text_at(first, "name"), "gpus",
                     backend->gpus.count, "memory_gib",
                     (json_int_t)dt_machine_memory_gib(backend->gpus.memory_bytes), "compute",
                     dt_json_text_at(first, "compute"), "topology", links);
}

json_t *dt_backend_limits(const struct dt_backend *backend)
{
    const struct dt_gpus *gpus = &backend->gpus;
    json_t *limits = json_pack("{s:I, s:b, s:I, s:i}", "memory_bytes",
                               (json_int_t)gpus->memory_bytes, "bfloat16", (int)gpus->bfloat16,
                               "shared_bytes", (json_int_t)gpus->shared_bytes, "nccl", gpus->nccl);
    for (int i = DT_ATTENTION_OWN + 1; i < DT_ATTENTIONS; i++)
        json_object_set_new(limits, dt_attention_texts[i], json_boolean(gpus->attention[i]));
    json_object_set_new(limits, "capture", json_boolean(gpus->capture));
    return limits;
}

void dt_backend_soft(const struct dt_backend *backend, json_t *soft)
{
    static const char *const names[] = {"driver", "nccl", "cudnn", "cublaslt"};
    int cuda = (int)dt_json_integer_at(backend->devices, "cuda");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (dt_json_text_at(backend->devices, names[i])[0] != '\0')
            json_object_set_new(soft, names[i],
                                json_string(dt_json_text_at(backend->devices, names[i])));
    if (backend->shared)
        json_object_set_new(soft, "devices", json_string("shared with others"));
    if (cuda > 0)
        json_object_set_new(soft, "cuda", json_sprintf("%d.%d", cuda / 1000, cuda / 10 % 100));
}
