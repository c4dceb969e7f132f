/* SPDX-License-Identifier: MIT */
/* Linear layers of DiT-XL/2 (1,152) at 1,024 tokens and of a network of 3,072 at 4,608, and a
 * product that shows the ceiling; in each, the proposal that a plan takes, measured, and each of
 * the library's eight (--short: the first). */
#include "bench/gpu/bench.h"

#include <stdio.h>

struct layer {
    enum dt_dtype dtype;
    int rows, in, out;
    enum dt_activation act;
    struct dt_linear *linear;
    char *x, *weight, *y;
    void *bias;
    int sets;
};

static void call(struct bench *bench, void *arg, int set)
{
    const struct layer *layer = arg;
    const int64_t element = dt_dtype_bytes(layer->dtype);
    const struct dt_linear_call one = {layer->x + set * layer->rows * layer->in * element,
                                       layer->weight + set * layer->in * layer->out * element,
                                       layer->bias,
                                       layer->y + set * layer->rows * layer->out * element};
    bench->device->compute->linear.apply(bench->device, layer->linear, &one);
}

static void time_choice(struct bench *bench, struct layer *layer, int choice)
{
    const struct dt_compute *compute = bench->device->compute;
    struct dt_linear_shape shape = {.rows = layer->rows,
                                    .in = layer->in,
                                    .out = layer->out,
                                    .act = layer->act,
                                    .choice = choice};
    char what[96];
    int n = snprintf(what, sizeof what, "linear %s %d x %d -> %d%s, ", dt_dtype_text(layer->dtype),
                     layer->rows, layer->in, layer->out, layer->act == DT_ACT_GELU ? ", gelu" : "");
    if (choice == 0)
        snprintf(what + n, sizeof what - (size_t)n, "chosen");
    else
        snprintf(what + n, sizeof what - (size_t)n, "proposal %d", choice);
    if (compute->linear.make(bench->device, layer->dtype, &shape, &layer->linear) != DT_OK) {
        bench_refused(bench, what);
        return;
    }
    bench_time(bench, &(struct bench_row){what, "TFLOP/s",
                                          2.0 * layer->rows * (double)layer->in * layer->out, call,
                                          layer, layer->sets});
    compute->linear.free(layer->linear);
}

static void time_layer(struct bench *bench, struct layer layer)
{
    const int64_t element = dt_dtype_bytes(layer.dtype);
    const int64_t rows = layer.rows, in = layer.in, out = layer.out;
    layer.sets = bench_sets(bench, (rows * in + in * out + rows * out) * element);
    layer.x = bench_memory(bench, layer.sets * rows * in * element);
    layer.weight = bench_memory(bench, layer.sets * in * out * element);
    layer.y = bench_memory(bench, layer.sets * rows * out * element);
    layer.bias = bench_memory(bench, out * 4);
    if (layer.x == NULL || layer.weight == NULL || layer.y == NULL || layer.bias == NULL)
        bench_refused(bench, "linear");
    else
        for (int choice = 0; choice <= (bench->first_only ? 1 : 8); choice += bench->quick ? 8 : 1)
            time_choice(bench, &layer, choice);
    bench_release(bench, layer.x);
    bench_release(bench, layer.weight);
    bench_release(bench, layer.y);
    bench_release(bench, layer.bias);
}

enum { SHORT = 5 }; /* the ceiling, and the layers of DiT-XL/2 */

void bench_linear(struct bench *bench)
{
    static const struct layer large[] = {
        {.dtype = DT_BFLOAT16, .rows = 8192, .in = 8192, .out = 8192},
        {.dtype = DT_BFLOAT16, .rows = 2048, .in = 1152, .out = 3456},
        {.dtype = DT_BFLOAT16, .rows = 2048, .in = 1152, .out = 1152},
        {.dtype = DT_BFLOAT16, .rows = 2048, .in = 1152, .out = 4608, .act = DT_ACT_GELU},
        {.dtype = DT_BFLOAT16, .rows = 2048, .in = 4608, .out = 1152},
        {.dtype = DT_BFLOAT16, .rows = 4608, .in = 3072, .out = 9216},
        {.dtype = DT_BFLOAT16, .rows = 4608, .in = 3072, .out = 12288, .act = DT_ACT_GELU},
        {.dtype = DT_BFLOAT16, .rows = 4608, .in = 12288, .out = 3072},
        {.dtype = DT_TF32, .rows = 4608, .in = 3072, .out = 9216},
        {.dtype = DT_FLOAT32, .rows = 4608, .in = 3072, .out = 9216},
    };
    static const struct layer small[] = {
        {.dtype = DT_BFLOAT16, .rows = 64, .in = 64, .out = 192},
        {.dtype = DT_FLOAT32, .rows = 64, .in = 64, .out = 128, .act = DT_ACT_GELU},
    };
    size_t n = bench->quick ? sizeof small / sizeof small[0] : sizeof large / sizeof large[0];
    for (size_t i = 0; i < n && (i < SHORT || !bench->first_only); i++)
        time_layer(bench, bench->quick ? small[i] : large[i]);
}
