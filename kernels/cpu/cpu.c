/* SPDX-License-Identifier: MIT */
/* One unit of work is a tile of queries of one sequence and head; units share nothing. */
#include "base/clock.h"
#include "base/host.h"
#include "kernels/compute.h"
#include "kernels/cpu/gemm_int.h"
#include "kernels/cpu/simd.h"
#include "model/network.h"

#include <math.h>
#include <omp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Every tile works: tiles are loop bounds here. */
static dt_status cpu_attention_ready(struct dt_device *device, enum dt_dtype dtype,
                                     const struct dt_attention *op)
{
    (void)device;
    if (op->tile.tile_q < 1 || op->tile.tile_kv < 1)
        return dt_fail(DT_EUNSUP, "tile_q=%d x tile_kv=%d is no tile", op->tile.tile_q,
                       op->tile.tile_kv);
    if (dt_simd(dtype) == NULL)
        return dt_fail(DT_EUNSUP, "this processor has no attention in %s", dt_dtype_text(dtype));
    return DT_OK;
}

static void cpu_attention(struct dt_device *device, enum dt_dtype dtype,
                          const struct dt_attention *op)
{
    const struct dt_simd *simd = dt_simd(dtype);
    (void)device;
    int tiles = (op->queries + op->tile.tile_q - 1) / op->tile.tile_q;
    int units = op->sequences * op->heads * tiles;
#pragma omp parallel for schedule(dynamic)
    for (int unit = 0; unit < units; unit++) {
        int pair = unit / tiles, thread = omp_get_thread_num();
        simd->attention(op, pair / op->heads, pair % op->heads, unit % tiles * op->tile.tile_q,
                        op->scratch + thread * op->scratch_floats);
        if (thread == 0 && op->poll != NULL)
            op->poll(op->poll_arg);
    }
}

static void merge_row(const struct dt_merge *op, const struct dt_simd *simd, int pair, int row)
{
    int sequence = pair / op->heads, head = pair % op->heads;
    int64_t at = (int64_t)pair * op->queries + row;
    float a = op->lse[at], b = op->part_lse[at];
    float top = a > b ? a : b;
    float wa = expf(a - top), wb = expf(b - top);
    int64_t part_row = (int64_t)op->heads * op->head, column = (int64_t)head * op->head;
    int64_t to = sequence * op->out_at.sequence + row * op->out_at.row + column;
    int64_t from = ((int64_t)sequence * op->queries + row) * part_row + column;
    int bytes = dt_dtype_bytes(simd->dtype);
    simd->blend((char *)op->out + to * bytes, wa / (wa + wb), (const char *)op->part + from * bytes,
                wb / (wa + wb), op->head);
    op->lse[at] = top + logf(wa + wb);
}

static void cpu_merge(struct dt_device *device, enum dt_dtype dtype, const struct dt_merge *op)
{
    const struct dt_simd *simd = dt_simd(dtype);
    (void)device;
    int pairs = op->sequences * op->heads;
#pragma omp parallel for collapse(2) schedule(static)
    for (int pair = 0; pair < pairs; pair++)
        for (int row = 0; row < op->queries; row++)
            merge_row(op, simd, pair, row);
}

static void widen_row(const uint16_t *x, float *y, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)x[i] << 16;
        memcpy(&y[i], &bits, sizeof bits);
    }
}

/* Token i, with x in float32. */
static void modulate_row(const struct dt_simd *simd, const struct dt_modulate *op, int i, float *x)
{
    int64_t sequence = i / op->tokens;
    int64_t at = (int64_t)i * op->channels * dt_dtype_bytes(simd->dtype);
    struct dt_row row = {.x = x,
                         .shift = op->shift + sequence * op->stride,
                         .scale = op->scale + sequence * op->stride,
                         .y = (char *)op->y + at,
                         .channels = op->channels};
    if (op->branch == NULL) {
        simd->modulate(&row);
        return;
    }
    row.branch = (const char *)op->branch + at;
    row.gate = op->gate + sequence * op->gate_stride;
    simd->residual(&row);
}

/* Token i of a stream in bfloat16: widened, and rounded again after the sum. */
static void modulate_narrow(const struct dt_simd *simd, const struct dt_modulate *op, int i)
{
    float wide[DT_HIDDEN_MOST];
    uint16_t *x = (uint16_t *)op->x + (int64_t)i * op->channels;
    widen_row(x, wide, op->channels);
    modulate_row(simd, op, i, wide);
    if (op->branch != NULL)
        simd->narrow(wide, x, op->channels);
}

static void cpu_modulate(struct dt_device *device, enum dt_dtype dtype,
                         const struct dt_modulate *op)
{
    const struct dt_simd *simd = dt_simd(dtype);
    (void)device;
    int rows = op->sequences * op->tokens;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < rows; i++) {
        if (op->stream == DT_BFLOAT16)
            modulate_narrow(simd, op, i);
        else
            modulate_row(simd, op, i, (float *)op->x + (int64_t)i * op->channels);
    }
}

static void cpu_position(struct dt_device *device, const struct dt_position *op)
{
    const struct dt_simd *simd = dt_simd(op->stream);
    int rows = op->sequences * op->tokens;
    (void)device;
#pragma omp parallel for schedule(static)
    for (int row = 0; row < rows; row++) {
        int64_t image = row / op->tokens % op->images, token = row % op->tokens;
        const float *x = op->x + (image * op->tokens + token) * op->channels;
        const float *at = op->position + token * op->channels;
        int64_t first = (int64_t)row * op->channels;
        float wide[DT_HIDDEN_MOST],
            *out = op->stream == DT_BFLOAT16 ? wide : (float *)op->out + first;
        for (int c = 0; c < op->channels; c++)
            out[c] = x[c] + at[c];
        if (op->stream == DT_BFLOAT16)
            simd->narrow(wide, (uint16_t *)op->out + first, op->channels);
    }
}

static void cpu_narrow(struct dt_device *device, enum dt_dtype dtype, const float *x, void *y,
                       int64_t n)
{
    enum { CHUNK = 8192 };
    const struct dt_simd *simd = dt_simd(dtype);
    int bytes = dt_dtype_bytes(dtype);
    (void)device;
    if (simd->narrow == NULL) {
        memcpy(y, x, (size_t)n * sizeof *x);
        return;
    }
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i += CHUNK)
        simd->narrow(x + i, (char *)y + i * bytes, n - i < CHUNK ? (int)(n - i) : CHUNK);
}

enum { N = 1024 }; /* rows, inputs and outputs of the product */

/* The best of several products: a peak is the machine's maximum, not its average. */
static double best_rate(struct dt_linear *linear, const struct dt_linear_call *call)
{
    double best = 0.0;
    int64_t end = dt_clock_ns() + 300000000;
    for (int64_t start = 0; start < end;) {
        start = dt_clock_ns();
        dt_linear_run(linear, call);
        double rate = 2.0 * N * N * N * 1e9 / (double)(dt_clock_ns() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

/* The same bytes serve as input, plain weight and bias; any values but zeros, which some processors
 * multiply faster. In bfloat16 the input's bytes are read as twice as many numbers, all finite. */
static dt_status cpu_peak(struct dt_device *device, enum dt_dtype dtype, double *flop_rate)
{
    const size_t size = (size_t)N * N;
    const struct dt_linear_shape shape = {.rows = N, .in = N, .out = N};
    struct dt_linear *linear = NULL;
    (void)device;
    dt_auto_free float *x = aligned_alloc(64, 3 * size * sizeof *x);
    if (x == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a product of %d x %d", N, N);
    for (size_t i = 0; i < 3 * size; i++)
        x[i] = (float)(i % 7) - 3.0f;
    const struct dt_linear_call call = {x, x + size, x, x + 2 * size};
    DT_TRY(dt_gemm(dtype)->pack(dtype, x, N, N, x + size));
    DT_TRY(dt_linear_new(dtype, &shape, &linear));
    *flop_rate = best_rate(linear, &call);
    dt_linear_free(linear);
    return DT_OK;
}

static const struct dt_version *cpu_versions(void)
{
    enum { ROOM = 8 };
    static struct dt_version versions[ROOM];
    int n = 0;
    for (int i = 0; dt_gemm_rows()[i] != NULL && n < ROOM - 2; i++)
        versions[n++] = (struct dt_version){dt_gemm_rows()[i]->name, dt_gemm_rows()[i]->version()};
    versions[n] = (struct dt_version){"simd", dt_simd(DT_FLOAT32)->name};
    return versions;
}

/* The processor as a device: its memory is the host's and its queue is the calling thread, so every
 * call is done on return. */

#define ALIGN 256
#define HUGE  (2LL << 20) /* bytes of a huge page */

struct cpu_device {
    struct dt_device base;
    int64_t marks[DT_MARKS_MOST];
};

/* Put and get are the same function, since all memory is host memory. */
static dt_status cpu_open(int index, struct dt_device **device)
{
    struct cpu_device *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a device");
    made->base = (struct dt_device){&dt_compute_cpu, index};
    *device = &made->base;
    return DT_OK;
}

static int cpu_count(void)
{
    return 1;
}

static const char *cpu_model(struct dt_device *device)
{
    (void)device;
    return dt_host_cpu();
}

static dt_status cpu_memory(struct dt_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    (void)device;
    *free_bytes = dt_host_memory_available();
    *total_bytes = dt_host_memory_total();
    return DT_OK;
}

static void cpu_close(struct dt_device *device)
{
    free(device);
}

static void cpu_threads(struct dt_device *device, int count)
{
    (void)device;
    omp_set_num_threads(count);
}

/* The pages of a buffer are a matter of chance, constant for its lifetime, and affect times. Huge
 * pages reduce the effect. */
static dt_status cpu_alloc(struct dt_device *device, int64_t bytes, void **memory)
{
    (void)device;
    size_t align = bytes >= HUGE ? HUGE : ALIGN;
    size_t size = ((size_t)bytes + align - 1) / align * align;
    void *made = aligned_alloc(align, size);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for %lld bytes", (long long)bytes);
    if (align == HUGE)
        (void)madvise(made, size, MADV_HUGEPAGE); /* where the kernel allows it */
    *memory = made;
    return DT_OK;
}

static void cpu_release(struct dt_device *device, void *memory)
{
    (void)device;
    free(memory);
}

static dt_status cpu_copy_bytes(struct dt_device *device, void *to, const void *from, int64_t bytes)
{
    (void)device;
    memcpy(to, from, (size_t)bytes);
    return DT_OK;
}

static void cpu_fill(struct dt_device *device, void *to, int byte, int64_t bytes)
{
    (void)device;
    memset(to, byte, (size_t)bytes);
}

static dt_status cpu_finish(struct dt_device *device, int64_t deadline_ns,
                            dt_status (*check)(void *arg), void *arg)
{
    (void)device, (void)deadline_ns;
    return check != NULL ? check(arg) : DT_OK;
}

static void cpu_mark(struct dt_device *device, int slot)
{
    ((struct cpu_device *)device)->marks[slot] = dt_clock_ns();
}

static dt_status cpu_times(struct dt_device *device, int n, int64_t ns[])
{
    const struct cpu_device *own = (const struct cpu_device *)device;
    for (int i = 0; i < n; i++)
        ns[i] = own->marks[i] - own->marks[0];
    return DT_OK;
}

/* The small operations in plain C, and the table. */

static void cpu_copy(struct dt_device *device, const struct dt_copy *op)
{
    int64_t inner = op->count[2], middle = op->count[1], rows = op->count[0] * middle * inner;
    (void)device;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        int64_t i = row / (middle * inner), k = row / inner % middle, l = row % inner;
        int64_t to = i * op->to_stride[0] + k * op->to_stride[1] + l * op->to_stride[2];
        int64_t from = i * op->from_stride[0] + k * op->from_stride[1] + l * op->from_stride[2];
        memcpy((char *)op->to + to * op->element, (const char *)op->from + from * op->element,
               (size_t)(op->width * op->element));
    }
}

static void cpu_sum(struct dt_device *device, const void *data, int64_t bytes, uint64_t *total)
{
    const char *from = data;
    (void)device;
    for (int64_t i = 0; i < bytes; i += 2) {
        uint16_t word;
        memcpy(&word, from + i, sizeof word);
        *total += word;
    }
}

/* The formula of kernels/cuda/rows_float.cu, which says why in double. */
static void cpu_sinusoid(struct dt_device *device, const struct dt_sinusoid *op)
{
    (void)device;
    int half = op->channels / 2;
    for (int n = 0; n < op->count; n++) {
        float *row = op->out + (int64_t)n * op->channels;
        for (int i = 0; i < half; i++) {
            float exponent = -9.210340371976184f * (float)i / (float)half;
            float frequency = (float)exp((double)exponent);
            row[i] = cosf(op->time[n] * frequency);
            row[half + i] = sinf(op->time[n] * frequency);
        }
    }
}

static void cpu_condition(struct dt_device *device, const struct dt_condition *op)
{
    (void)device;
    for (int n = 0; n < op->count; n++) {
        const float *x = op->x + (int64_t)n * op->channels;
        const float *class = op->table + (int64_t)op->label[n] * op->channels;
        float *row = op->out + (int64_t)n * op->channels;
        for (int c = 0; c < op->channels; c++) {
            float both = x[c] + class[c];
            row[c] = both / (1.0f + expf(-both));
        }
    }
}

static void cpu_guide(struct dt_device *device, const struct dt_guide *op)
{
    (void)device;
    for (int64_t i = 0; i < op->pixels; i++) {
        const float *cond = op->cond + i * op->cond_stride;
        const float *uncond = op->uncond + i * op->uncond_stride;
        float *out = op->out + i * op->channels;
        for (int c = 0; c < op->guided; c++)
            out[c] = uncond[c] + op->scale * (cond[c] - uncond[c]);
        for (int c = op->guided; c < op->channels; c++)
            out[c] = op->rest[i * op->channels + c];
    }
}

static void cpu_sampler(struct dt_device *device, const struct dt_sampler *op)
{
    (void)device;
    for (int64_t token = 0; token < op->tokens; token++) {
        float *latent = op->latent + token * op->channels * op->pixels;
        const float *eps = op->eps + token * op->pixels * op->eps_channels;
        for (int c = 0; c < op->channels; c++)
            for (int i = 0; i < op->pixels; i++)
                latent[c * op->pixels + i] = op->update[0] * latent[c * op->pixels + i] +
                                             op->update[1] * eps[i * op->eps_channels + c];
    }
}

static bool cpu_usable(enum dt_dtype dtype)
{
    return dt_simd(dtype) != NULL && dt_gemm(dtype) != NULL;
}

static dt_status cpu_pack(struct dt_device *device, enum dt_dtype dtype, const float *weight,
                          int in, int out, void *packed)
{
    (void)device;
    return dt_gemm(dtype)->pack(dtype, weight, in, out, packed);
}

static int64_t weight_row(enum dt_dtype dtype, int in, int row)
{
    return dt_gemm(dtype)->weight_row(dtype, in, row);
}

static dt_status linear_new(struct dt_device *device, enum dt_dtype dtype,
                            const struct dt_linear_shape *shape, struct dt_linear **linear)
{
    (void)device;
    if (shape->groups > 1)
        return dt_fail(DT_EUNSUP, "packed weights cannot be cut into %d groups", shape->groups);
    return dt_linear_new(dtype, shape, linear);
}

static void cpu_linear(struct dt_device *device, struct dt_linear *layer,
                       const struct dt_linear_call *call)
{
    (void)device;
    dt_linear_run(layer, call);
}

const struct dt_compute dt_compute_cpu = {
    .name = "cpu",
    .host = true,
    .usable = cpu_usable,
    .versions = cpu_versions,
    .count = cpu_count,
    .open = cpu_open,
    .close = cpu_close,
    .model = cpu_model,
    .memory.space = cpu_memory,
    .threads = cpu_threads,
    .memory.alloc = cpu_alloc,
    .memory.release = cpu_release,
    .memory.put = cpu_copy_bytes,
    .memory.get = cpu_copy_bytes,
    .memory.fill = cpu_fill,
    .finish = cpu_finish,
    .timeline.mark = cpu_mark,
    .timeline.times = cpu_times,
    .linear.pack = cpu_pack,
    .linear.weight_row = weight_row,
    .linear.make = linear_new,
    .linear.apply = cpu_linear,
    .linear.free = dt_linear_free,
    .rows.narrow = cpu_narrow,
    .rows.modulate = cpu_modulate,
    .attention.ready = cpu_attention_ready,
    .attention.run = cpu_attention,
    .attention.merge = cpu_merge,
    .rows.copy = cpu_copy,
    .rows.sum = cpu_sum,
    .rows.sinusoid = cpu_sinusoid,
    .rows.condition = cpu_condition,
    .rows.position = cpu_position,
    .rows.guide = cpu_guide,
    .rows.sampler = cpu_sampler,
    .peak = cpu_peak,
};
