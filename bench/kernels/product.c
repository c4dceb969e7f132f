/* SPDX-License-Identifier: MIT */
#include "bench/kernels/side.h"

#include <cblas.h>
#if defined(DT_HAVE_ONEDNN)
#include "kernels/cpu/onednn.h"
#endif
#include <stddef.h>

struct dt_bench_product {
    enum dt_dtype dtype;
    int rows, in, out;
    void *x, *weight, *y;
#if defined(DT_HAVE_ONEDNN)
    dnnl_primitive_t bare;
    dnnl_memory_t memory[3];
    dnnl_stream_t stream;
#endif
};

struct dt_bench_product *dt_bench_product(enum dt_dtype dtype, const int size[3])
{
    struct dt_bench_product *p = dt_bench_room(sizeof *p);
    *p = (struct dt_bench_product){.dtype = dtype, .rows = size[0], .in = size[1], .out = size[2]};
    p->x = dt_bench_numbers(dtype, (int64_t)p->rows * p->in);
    p->weight = dt_bench_numbers(DT_FLOAT32, (int64_t)p->in * p->out);
    p->y = dt_bench_room(4LL * p->rows * p->out);
    return p;
}

static double flops(const struct dt_bench_product *p)
{
    return 2.0 * p->rows * p->in * p->out;
}

static void run_openblas(void *arg)
{
    struct dt_bench_product *p = arg;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, p->rows, p->out, p->in, 1.0f, p->x, p->in,
                p->weight, p->in, 0.0f, p->y, p->out);
}

const char *dt_bench_openblas(struct dt_bench_product *product, struct dt_side *side)
{
    *side = (struct dt_side){run_openblas, product, flops(product)};
    return product->dtype == DT_FLOAT32 ? "OpenBLAS" : NULL;
}

#if defined(DT_HAVE_ONEDNN)
static void run_onednn(void *arg)
{
    struct dt_bench_product *p = arg;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->memory[0]},
                                    {DNNL_ARG_WEIGHTS, p->memory[1]},
                                    {DNNL_ARG_DST, p->memory[2]}};
    dnnl_primitive_execute(p->bare, p->stream, 3, args);
    dnnl_stream_wait(p->stream);
}

const char *dt_bench_onednn(struct dt_bench_product *product, struct dt_side *side)
{
    struct dt_bench_product *p = product;
    dnnl_data_type_t type = p->dtype == DT_FLOAT32 ? dnnl_f32 : dnnl_bf16;
    const dnnl_dims_t x = {p->rows, p->in}, w = {p->in, p->out}, y = {p->rows, p->out};
    dnnl_memory_desc_t layouts[3] = {0};
    dnnl_primitive_desc_t description = NULL;
    dnnl_engine_t engine;
    if (!dt_compute_cpu.usable(p->dtype))
        return NULL;
    dnnl_engine_create(&engine, dnnl_cpu, 0);
    dnnl_stream_create(&p->stream, engine, dnnl_stream_default_flags);
    dt_onednn_layout(&layouts[0], x, type, dnnl_ab);
    dt_onednn_layout(&layouts[1], w, type, dnnl_format_tag_any);
    dt_onednn_layout(&layouts[2], y, type, dnnl_ab);
    if (dt_onednn_product(&description, engine, &layouts[0], &layouts[1], NULL, &layouts[2],
                          NULL) != dnnl_success)
        return NULL;
    int64_t bytes = (int64_t)dnnl_memory_desc_get_size(
        dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0));
    dnnl_memory_create(&p->memory[0], DT_ONEDNN_LAYOUT(layouts[0]), engine, p->x);
    dnnl_memory_create(&p->memory[1],
                       dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0), engine,
                       dt_bench_numbers(p->dtype, bytes / dt_dtype_bytes(p->dtype)));
    dnnl_memory_create(&p->memory[2], DT_ONEDNN_LAYOUT(layouts[2]), engine, p->y);
    dnnl_primitive_create(&p->bare, description);
    dt_onednn_layouts_free(layouts, 3);
    *side = (struct dt_side){run_onednn, p, flops(p)};
    return "oneDNN";
}
#else
const char *dt_bench_onednn(struct dt_bench_product *product, struct dt_side *side)
{
    (void)product;
    (void)side;
    return NULL;
}
#endif
