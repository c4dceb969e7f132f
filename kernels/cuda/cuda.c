/* SPDX-License-Identifier: MIT */
/* The table, and the queries that need no open device. */
#include "kernels/cuda/cuda_int.h"
#ifdef DT_HAVE_CUDNN
#include "kernels/cuda/cudnn.h"
#endif
#include "kernels/cuda/rows_int.h"
#include "kernels/nvml.h"

#include <pthread.h>
#include <stdio.h>

/* bfloat16 and tf32 products, and asynchronous copies to shared memory. */
enum { CAPABILITY = 80 };

static int count(void)
{
    int there = 0;
    if (cudaGetDeviceCount(&there) != cudaSuccess)
        there = 0;
    (void)cudaGetLastError();
    return there;
}

static bool usable(enum dt_dtype dtype)
{
    (void)dtype;
    int devices = count(), least = 1000;
    for (int i = 0; i < devices; i++) {
        int major = 0, minor = 0;
        if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, i) != cudaSuccess ||
            cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, i) != cudaSuccess)
            least = 0;
        least = 10 * major + minor < least ? 10 * major + minor : least;
    }
    (void)cudaGetLastError();
    return devices > 0 && least >= CAPABILITY;
}

enum { VERSIONS = 8, LONGEST = 256 };
static struct dt_version rows[VERSIONS];
static char texts[VERSIONS][LONGEST];
static int row_count;

static void add(const char *name, const char *format, int major, int minor, int patch)
{
    snprintf(texts[row_count], LONGEST, format, major, minor, patch);
    rows[row_count] = (struct dt_version){name, texts[row_count]};
    row_count++;
}

static void ask(void)
{
    int version = 0, lt = (int)cublasLtGetVersion();
    struct cudaDeviceProp device;
    if (cudaRuntimeGetVersion(&version) == cudaSuccess)
        add("cuda", "%d.%d", version / 1000, version % 1000 / 10, 0);
    if (cudaDriverGetVersion(&version) == cudaSuccess)
        add("cuda_driver", "%d.%d", version / 1000, version % 1000 / 10, 0);
    add("cublaslt", "%d.%d.%d", lt / 10000, lt % 10000 / 100, lt % 100);
    for (int i = 0; i < DT_ATTENTIONS; i++)
        if (dt_cuda_attention_version(i)[0] != '\0')
            rows[row_count++] =
                (struct dt_version){dt_attention_texts[i], dt_cuda_attention_version(i)};
    if (cudaGetDeviceProperties(&device, 0) == cudaSuccess) {
        snprintf(texts[row_count], LONGEST, "%s", device.name);
        rows[row_count] = (struct dt_version){"device", texts[row_count]};
        row_count++;
    }
    (void)cudaGetLastError();
}

static const struct dt_version *versions(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, ask);
    return rows;
}

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

/* Without a profiler this is a load and a branch. */
static void range(struct dt_device *device, const char *name)
{
    (void)device;
    if (name != NULL)
        (void)nvtxRangePushA(name);
    else
        (void)nvtxRangePop();
}
#define RANGE range
#else
#define RANGE NULL
#endif

static int64_t weight_row(enum dt_dtype dtype, int in, int row)
{
    return (int64_t)row * in * dt_dtype_bytes(dtype);
}

const struct dt_compute dt_compute_cuda = {
    .name = "cuda",
    .usable = usable,
    .versions = versions,
    .count = count,
    .open = dt_cuda_open,
    .close = dt_cuda_close,
    .model = dt_cuda_model,
    .memory.space = dt_cuda_memory,
    .threads = dt_cuda_threads,
    .memory.alloc = dt_cuda_alloc,
    .memory.release = dt_cuda_release,
    .memory.put = dt_cuda_put,
    .memory.get = dt_cuda_get,
    .memory.fill = dt_cuda_fill,
    .finish = dt_cuda_finish,
    .timeline.mark = dt_cuda_mark,
    .timeline.times = dt_cuda_times,
    .timeline.clock = dt_cuda_clock,
    .timeline.clock_rate = dt_cuda_clock_rate,
    .health.read = dt_cuda_health,
    .health.reason = dt_nvml_reason,
    .timeline.range = RANGE,
    .graph.record = dt_cuda_record,
    .graph.recorded = dt_cuda_recorded,
    .graph.replay = dt_cuda_replay,
    .graph.free = dt_cuda_graph_free,
    .linear.pack = dt_cuda_pack,
    .linear.weight_row = weight_row,
    .linear.make = dt_cuda_linear_new,
    .linear.apply = dt_cuda_linear,
    .linear.free = dt_cuda_linear_free,
    .attention.ready = dt_cuda_attention_ready,
    .attention.run = dt_cuda_attention,
    .attention.merge = dt_cuda_merge,
    .rows.narrow = dt_cuda_narrow,
    .rows.modulate = dt_cuda_modulate,
    .rows.copy = dt_cuda_copy,
    .rows.sum = dt_cuda_sum,
    .rows.sinusoid = dt_cuda_sinusoid,
    .rows.condition = dt_cuda_condition,
    .rows.position = dt_cuda_position,
    .rows.guide = dt_cuda_guide,
    .rows.sampler = dt_cuda_sampler,
    .peak = dt_cuda_peak,
};
