/* SPDX-License-Identifier: MIT */
/* Replaces the CPU back end behind the fake GPUs of tests/fake_cuda by the kernels themselves on
 * the emulator, so whole networks run with the real host code and the real kernels. The fake
 * GPUs' streams are threads; the emulator takes one launch at a time. The fake GPUs check the
 * bounds of buffers here. */
#define dt_launch_narrow          emu_launch_narrow
#define dt_launch_modulate        emu_launch_modulate
#define dt_launch_merge           emu_launch_merge
#define dt_launch_copy            emu_launch_copy
#define dt_launch_sum             emu_launch_sum
#define dt_launch_sinusoid        emu_launch_sinusoid
#define dt_launch_condition       emu_launch_condition
#define dt_launch_position        emu_launch_position
#define dt_launch_guide           emu_launch_guide
#define dt_launch_sampler         emu_launch_sampler
#define dt_launch_attention       emu_launch_attention
#define dt_launch_attention_ready emu_launch_attention_ready
#include "kernels/cuda/launch.h"
#include "tests/kernel_emulator/emulator.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void begin(void)
{
    pthread_mutex_lock(&turn);
    emu_anywhere(1);
}

static void end(const char *name, int code)
{
    if (code != 0) {
        fprintf(stderr, "%s on the emulator: error %d: %s\n", name, code, emu_error());
        abort();
    }
    pthread_mutex_unlock(&turn);
}

#define RUN(name, ...)                                                                             \
    do {                                                                                           \
        (void)device;                                                                              \
        begin();                                                                                   \
        end(#name, dt_launch_##name(__VA_ARGS__, NULL));                                           \
    } while (0)

static void narrow(struct dt_device *device, enum dt_dtype dtype, const float *x, void *y,
                   int64_t n)
{
    RUN(narrow, dtype, x, y, n);
}

static void modulate(struct dt_device *device, enum dt_dtype dtype, const struct dt_modulate *op)
{
    RUN(modulate, dtype, op);
}

static void merge(struct dt_device *device, enum dt_dtype dtype, const struct dt_merge *op)
{
    RUN(merge, dtype, op);
}

static void copy(struct dt_device *device, const struct dt_copy *op)
{
    RUN(copy, op);
}

static void sum(struct dt_device *device, const void *data, int64_t bytes, uint64_t *total)
{
    RUN(sum, data, bytes, total);
}

static void sinusoid(struct dt_device *device, const struct dt_sinusoid *op)
{
    RUN(sinusoid, op);
}

static void condition(struct dt_device *device, const struct dt_condition *op)
{
    RUN(condition, op);
}

static void position(struct dt_device *device, const struct dt_position *op)
{
    RUN(position, op);
}

static void guide(struct dt_device *device, const struct dt_guide *op)
{
    RUN(guide, op);
}

static void sampler(struct dt_device *device, const struct dt_sampler *op)
{
    RUN(sampler, op);
}

static void attention(struct dt_device *device, enum dt_dtype dtype, const struct dt_attention *op)
{
    (void)device;
    begin();
    int code = dt_launch_attention_ready(dtype, op);
    end("attention", code != 0 ? code : dt_launch_attention(dtype, op, NULL));
}

static dt_status open_device(int index, struct dt_device **device)
{
    return dt_compute_cpu.open(index, device);
}

static void close_device(struct dt_device *device)
{
    dt_compute_cpu.close(device);
}

static void threads(struct dt_device *device, int count)
{
    dt_compute_cpu.threads(device, count);
}

extern const struct dt_compute dt_compute_emulated;
const struct dt_compute dt_compute_emulated = {
    .name = "emulated",
    .open = open_device,
    .close = close_device,
    .threads = threads,
    .rows.narrow = narrow,
    .rows.modulate = modulate,
    .attention.merge = merge,
    .rows.copy = copy,
    .rows.sum = sum,
    .rows.sinusoid = sinusoid,
    .rows.condition = condition,
    .rows.position = position,
    .rows.guide = guide,
    .rows.sampler = sampler,
    .attention.run = attention,
};
