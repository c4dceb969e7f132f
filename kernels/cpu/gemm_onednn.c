/* SPDX-License-Identifier: MIT */
/* oneDNN's matmul on weights in the layout its AVX-512 kernels read: blocks of 16 inputs (bfloat16:
 * 16 pairs) by 64 outputs. Bias and activation are part of the product's last store. The layout is
 * requested by name, so that plans with any number of rows share one copy of the weights and its
 * size is known without the library (model/tensors.c). */
#include "kernels/cpu/gemm_int.h"

#if defined(DT_HAVE_ONEDNN)
#include "kernels/cpu/onednn.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct ready {
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t x, weight, bias, y, scratch;
};

static dt_status onednn_status(dnnl_status_t code, const char *what)
{
    return code == dnnl_success
               ? DT_OK
               : dt_fail(DT_ELIB, "oneDNN cannot %s: its status is %d", what, (int)code);
}

static dnnl_engine_t engine;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_engine(void)
{
    if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
}

static bool onednn_usable(enum dt_dtype dtype)
{
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    pthread_once(&once, make_engine);
    bool narrow = dtype == DT_BFLOAT16 && __builtin_cpu_supports("avx512bf16");
    return engine != NULL && wide && (dtype == DT_FLOAT32 || narrow);
}

static const char *onednn_version(void)
{
    static char text[32];
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

static dnnl_data_type_t type_of(enum dt_dtype dtype)
{
    return dtype == DT_FLOAT32 ? dnnl_f32 : dnnl_bf16;
}

static dt_status packed_layout(enum dt_dtype dtype, int in, int out, dnnl_memory_desc_t *layout)
{
    const dnnl_dims_t dims = {in, out};
    dnnl_format_tag_t tag = dtype == DT_FLOAT32 ? dnnl_BA16a64b : dnnl_BA16a64b2a;
    DT_TRY(onednn_status(dt_onednn_layout(layout, dims, type_of(dtype), tag), "lay out weights"));
    return DT_OK;
}

static dt_status execute_reorder(dnnl_memory_desc_t layouts[2], void *const data[2])
{
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_memory_t from = NULL, to = NULL;
    dnnl_stream_t stream = NULL;
    dnnl_status_t code =
        dnnl_reorder_primitive_desc_create(&description, DT_ONEDNN_LAYOUT(layouts[0]), engine,
                                           DT_ONEDNN_LAYOUT(layouts[1]), engine, NULL);
    if (code == dnnl_success)
        code = dnnl_primitive_create(&reorder, description);
    if (code == dnnl_success)
        code = dnnl_memory_create(&from, DT_ONEDNN_LAYOUT(layouts[0]), engine, data[0]);
    if (code == dnnl_success)
        code = dnnl_memory_create(&to, DT_ONEDNN_LAYOUT(layouts[1]), engine, data[1]);
    if (code == dnnl_success)
        code = dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
    if (code == dnnl_success) {
        const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
        code = dnnl_primitive_execute(reorder, stream, 2, args);
    }
    if (code == dnnl_success)
        code = dnnl_stream_wait(stream);
    dnnl_stream_destroy(stream);
    dnnl_memory_destroy(to);
    dnnl_memory_destroy(from);
    dnnl_primitive_destroy(reorder);
    dnnl_primitive_desc_destroy(description);
    return onednn_status(code, "pack weights");
}

/* The library does not write to the source. */
static dt_status onednn_pack(enum dt_dtype dtype, const float *weight, int in, int out,
                             void *packed)
{
    const dnnl_dims_t dims = {in, out};
    dnnl_memory_desc_t layouts[2] = {0};
    union {
        const float *read;
        void *given;
    } source = {weight};
    dt_status status =
        onednn_status(dt_onednn_layout(&layouts[0], dims, dnnl_f32, dnnl_ba), "describe weights");
    if (status == DT_OK)
        status = packed_layout(dtype, in, out, &layouts[1]);
    if (status == DT_OK)
        status = execute_reorder(layouts, (void *const[]){source.given, packed});
    dt_onednn_layouts_free(layouts, 2);
    return status;
}

/* Blocks of 64 outputs with all inputs follow each other. */
static int64_t weight_row(enum dt_dtype dtype, int in, int row)
{
    int64_t pad = dtype == DT_FLOAT32 ? 16 : 32, inputs = (in + pad - 1) / pad * pad;
    return row % 64 == 0 ? row * inputs * dt_dtype_bytes(dtype) : -1;
}

static dt_status set_attributes(const struct dt_linear_shape *shape, dnnl_primitive_attr_t attr)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t code = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (code == dnnl_success)
        code = dnnl_post_ops_create(&ops);
    if (code == dnnl_success && shape->act == DT_ACT_GELU)
        code = dt_onednn_activation(ops, dnnl_eltwise_gelu_tanh, 0.0f);
    if (code == dnnl_success && shape->act == DT_ACT_SILU)
        code = dt_onednn_activation(ops, dnnl_eltwise_swish, 1.0f);
    if (code == dnnl_success)
        code = dnnl_primitive_attr_set_post_ops(attr, ops);
    dnnl_post_ops_destroy(ops);
    return onednn_status(code, "describe a linear layer");
}

/* Matrices of the product in the order x, weight, bias, y. */
static dt_status describe_layouts(enum dt_dtype dtype, const struct dt_linear_shape *shape,
                                  dnnl_memory_desc_t layouts[4])
{
    const dnnl_dims_t x = {shape->rows, shape->in}, y = {shape->rows, shape->out};
    const dnnl_dims_t bias = {1, shape->out};
    dnnl_data_type_t type = type_of(dtype);
    DT_TRY(packed_layout(dtype, shape->in, shape->out, &layouts[1]));
    DT_TRY(onednn_status(dt_onednn_layout(&layouts[0], x, type, dnnl_ab), "describe an input"));
    DT_TRY(
        onednn_status(dt_onednn_layout(&layouts[2], bias, dnnl_f32, dnnl_ab), "describe a bias"));
    DT_TRY(onednn_status(dt_onednn_layout(&layouts[3], y, shape->wide ? dnnl_f32 : type, dnnl_ab),
                         "describe an output"));
    return DT_OK;
}

static dt_status make_primitive(struct ready *ready, const dnnl_memory_desc_t layouts[4],
                                dnnl_primitive_desc_t description)
{
    dnnl_memory_t *const memories[4] = {&ready->x, &ready->weight, &ready->bias, &ready->y};
    for (int i = 0; i < 4; i++)
        DT_TRY(onednn_status(
            dnnl_memory_create(memories[i], DT_ONEDNN_LAYOUT(layouts[i]), engine, DNNL_MEMORY_NONE),
            "make a linear layer"));
    DT_TRY(onednn_status(
        dnnl_memory_create(&ready->scratch,
                           dnnl_primitive_desc_query_md(description, dnnl_query_scratchpad_md, 0),
                           engine, DNNL_MEMORY_ALLOCATE),
        "make a linear layer"));
    DT_TRY(onednn_status(dnnl_stream_create(&ready->stream, engine, dnnl_stream_default_flags),
                         "make a stream"));
    DT_TRY(onednn_status(dnnl_primitive_create(&ready->primitive, description),
                         "make a linear layer"));
    return DT_OK;
}

static void forget_primitives(void *own)
{
    struct ready *ready = own;
    dnnl_primitive_destroy(ready->primitive);
    dnnl_stream_destroy(ready->stream);
    dnnl_memory_destroy(ready->scratch);
    dnnl_memory_destroy(ready->y);
    dnnl_memory_destroy(ready->bias);
    dnnl_memory_destroy(ready->weight);
    dnnl_memory_destroy(ready->x);
    free(ready);
}

static dt_status get_ready(enum dt_dtype dtype, const struct dt_linear_shape *shape, void **own)
{
    dnnl_memory_desc_t layouts[4] = {0};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t description = NULL;
    struct ready *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a linear layer");
    dt_status status = describe_layouts(dtype, shape, layouts);
    if (status == DT_OK && dnnl_primitive_attr_create(&attr) != dnnl_success)
        status = dt_fail(DT_ENOMEM, "no memory for a linear layer");
    if (status == DT_OK)
        status = set_attributes(shape, attr);
    if (status == DT_OK && dt_onednn_product(&description, engine, &layouts[0], &layouts[1],
                                             &layouts[2], &layouts[3], attr) != dnnl_success)
        status = dt_fail(DT_EUNSUP, "oneDNN has no %s product of %d x %d by %d",
                         dt_dtype_text(dtype), shape->rows, shape->in, shape->out);
    if (status == DT_OK)
        status = make_primitive(made, layouts, description);
    dnnl_primitive_desc_destroy(description);
    dnnl_primitive_attr_destroy(attr);
    dt_onednn_layouts_free(layouts, 4);
    if (status != DT_OK) {
        forget_primitives(made);
        return status;
    }
    *own = made;
    return DT_OK;
}

/* Setting addresses and executing fail only for arguments that do not fit the primitive. */
static void onednn_run(void *own, const struct dt_linear_shape *shape,
                       const struct dt_linear_call *call)
{
    struct ready *ready = own;
    (void)shape;
    union {
        const void *read;
        void *given;
    } x = {call->x}, weight = {call->weight}, bias = {call->bias};
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, ready->x},
                                    {DNNL_ARG_WEIGHTS, ready->weight},
                                    {DNNL_ARG_BIAS, ready->bias},
                                    {DNNL_ARG_DST, ready->y},
                                    {DNNL_ARG_SCRATCHPAD, ready->scratch}};
    dnnl_memory_set_data_handle(ready->x, x.given);
    dnnl_memory_set_data_handle(ready->weight, weight.given);
    dnnl_memory_set_data_handle(ready->bias, bias.given);
    dnnl_memory_set_data_handle(ready->y, call->y);
    dnnl_primitive_execute(ready->primitive, ready->stream, 5, args);
    dnnl_stream_wait(ready->stream);
}

const struct dt_gemm dt_gemm_onednn = {
    .name = "onednn",
    .usable = onednn_usable,
    .version = onednn_version,
    .pack = onednn_pack,
    .weight_row = weight_row,
    .ready = get_ready,
    .run = onednn_run,
    .free = forget_primitives,
};
#endif
