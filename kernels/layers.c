/* SPDX-License-Identifier: MIT */
/* The linear layers of the family's operations. Those of one kind in all blocks share what the library needs for their shape. */
#include "kernels/pass_int.h"

#include <stdlib.h>

static bool is_wide(const struct dt_pass *pass, int buffer)
{
    return pass->layout.element[buffer] == (int)sizeof(float);
}

/* `parts` of the three of queries, keys and values, for an exchange to send; 0: the layer as it is. */
static dt_status make(struct dt_pass *pass, const struct dt_op *op, int parts,
                      struct dt_pass_layer *layer)
{
    const struct dt_family *family = pass->workload.network.family;
    struct dt_linear_shape *shape = &layer->shape;
    struct dt_tensor weight;
    dt_tensor_init(&weight, &pass->workload, op->tensor);
    *shape = (struct dt_linear_shape){
        .rows = (int)dt_family_rows(&pass->layout, dt_family_buffer(family, op->y)->rows),
        .in = dt_tensor_in(&weight),
        .out = dt_tensor_out(&weight) * (weight.stacked ? pass->workload.network.depth : 1),
        .act = op->act,
        .wide = is_wide(pass, op->y)};
    if (parts > 0) {
        shape->out = shape->out / 3 * parts;
        shape->groups = parts * pass->plan.ulysses * pass->plan.chunks;
        shape->group_stride = (int64_t)shape->rows * (shape->out / shape->groups);
    }
    return pass->compute->linear.make(pass->device, pass->workload.dtype, shape, &layer->linear);
}

/* A plan uses only one of the layers for queries, keys and values. */
static dt_status make_queries(struct dt_pass *pass, const struct dt_op *op,
                              struct dt_pass_layer *layer)
{
    if (pass->plan.exchange != DT_PLAN_DIRECT)
        return make(pass, op, 0, layer);
    if (pass->plan.v_first == 0)
        return make(pass, op, 3, layer);
    DT_TRY(make(pass, op, 2, layer));
    if (pass->v_first.linear == NULL)
        DT_TRY(make(pass, op, 1, &pass->v_first));
    pass->v_first.first = layer->shape.out;
    return DT_OK;
}

dt_status dt_pass_layers(struct dt_pass *pass)
{
    const struct dt_family *family = pass->workload.network.family;
    const struct dt_op *const lists[] = {family->embed, family->block, family->final};
    pass->layers = calloc((size_t)(family->whole + family->of_block), sizeof *pass->layers);
    if (pass->layers == NULL)
        return dt_fail(DT_ENOMEM, "no memory for the table of layers");
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const struct dt_op *op = lists[i]; op->kind != DT_OP_END; op++) {
            struct dt_pass_layer *layer = &pass->layers[op->tensor];
            if (op->kind == DT_OP_LINEAR && layer->linear == NULL)
                DT_TRY(make(pass, op, 0, layer));
            if (op->kind == DT_OP_QUERIES && layer->linear == NULL)
                DT_TRY(make_queries(pass, op, layer));
        }
    return DT_OK;
}

void dt_pass_layers_free(struct dt_pass *pass)
{
    const struct dt_family *family = pass->workload.network.family;
    for (int i = 0; pass->layers != NULL && i < family->whole + family->of_block; i++)
        pass->compute->linear.free(pass->layers[i].linear);
    pass->compute->linear.free(pass->v_first.linear);
    free(pass->layers);
}

void dt_pass_apply(struct dt_pass *pass, const struct dt_pass_layer *layer, const struct dt_op *op,
                   int block, void *y)
{
    const struct dt_linear_shape *shape = &layer->shape;
    const char *weight = dt_weights_at(pass->weights, op->tensor, block);
    const float *bias = dt_weights_at(pass->weights, op->tensor + 1, block);
    struct dt_linear_call call = {dt_pass_data(pass, op->x, 0), weight, bias + layer->first, y};
    if (layer->first > 0)
        call.weight = weight + pass->compute->linear.weight_row(pass->workload.dtype, shape->in,
                                                                layer->first);
    if (dt_dtype_bytes(pass->workload.dtype) != (int)sizeof(float) && is_wide(pass, op->x)) {
        dt_pass_begin(pass);
        void *cast = dt_pass_data(pass, DT_BUFFER_CAST, 0);
        if (pass->cast != op->x)
            pass->compute->rows.narrow(pass->device, pass->workload.dtype, call.x, cast,
                                       (int64_t)shape->rows * shape->in);
        pass->cast = op->x;
        call.x = cast;
    }
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_pass_begin(pass);
    dt_pass_range(pass, "gemm");
    pass->compute->linear.apply(pass->device, layer->linear, &call);
    dt_pass_range(pass, NULL);
    dt_pass_lap(pass, DT_PHASE_GEMM);
}
