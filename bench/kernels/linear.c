/* SPDX-License-Identifier: MIT */
/* Linear layers, bias (and GELU) included, against the bare product of the libraries. */
#include "bench/kernels/side.h"

#include <stdio.h>

struct layer {
    struct dt_linear *linear;
    struct dt_linear_call call;
};

static void run(void *arg)
{
    struct layer *layer = arg;
    dt_compute_cpu.linear.apply(NULL, layer->linear, &layer->call);
}

static void bench(enum dt_dtype dtype, const char *name, const int size[3], enum dt_activation act)
{
    int64_t rows = size[0], in = size[1], out = size[2];
    const struct dt_linear_shape shape = {
        .rows = size[0], .in = size[1], .out = size[2], .act = act};
    struct dt_bench_product *product = dt_bench_product(dtype, size);
    struct dt_side theirs;
    struct layer layer;
    char what[128];
    void *packed = dt_bench_room(4 * (in + 32) * (out + 64));
    layer.call =
        (struct dt_linear_call){dt_bench_numbers(dtype, rows * in), packed,
                                dt_bench_numbers(DT_FLOAT32, out), dt_bench_room(4 * rows * out)};
    if (dt_compute_cpu.linear.pack(NULL, dtype, dt_bench_numbers(DT_FLOAT32, in * out), size[1],
                                   size[2], packed) != DT_OK ||
        dt_compute_cpu.linear.make(NULL, dtype, &shape, &layer.linear) != DT_OK) {
        printf("%s: %s\n", name, dt_message());
        return;
    }
    const struct dt_side ours = {run, &layer, 2.0 * (double)rows * (double)in * (double)out};
    const char *(*const libraries[])(struct dt_bench_product *,
                                     struct dt_side *) = {dt_bench_openblas, dt_bench_onednn};
    for (int i = 0; i < 2; i++) {
        const char *library = libraries[i](product, &theirs);
        snprintf(what, sizeof what, "%s %s %d x %d -> %d%s, of %s", dt_dtype_text(dtype), name,
                 size[0], size[1], size[2], act == DT_ACT_GELU ? " + GELU" : "",
                 library != NULL ? library : "");
        if (library != NULL)
            dt_bench_compare(what, "GFLOP/s", &ours, &theirs);
    }
}

void dt_bench_linear(void)
{
    static const struct {
        const char *name;
        int in, out; /* times the channels */
        enum dt_activation act;
    } layers[] = {
        {"qkv", 1, 3, DT_ACT_NONE}, {"proj", 1, 1, DT_ACT_NONE}, {"fc1", 1, 4, DT_ACT_NONE},
        {"fc1", 1, 4, DT_ACT_GELU}, {"fc2", 4, 1, DT_ACT_NONE},
    };
    printf(
        "# linear layers, bias included, against the bare product of the library: target 0.95\n");
    for (int dtype = 0; dtype < DT_DTYPES; dtype++)
        for (int c = 384; c <= 1152 && dt_compute_cpu.usable((enum dt_dtype)dtype); c += 768)
            for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
                char name[32];
                const int size[] = {512, layers[i].in * c, layers[i].out * c};
                snprintf(name, sizeof name, "%s %s", c == 384 ? "S/2" : "XL/2", layers[i].name);
                bench((enum dt_dtype)dtype, name, size, layers[i].act);
            }
}
