/* SPDX-License-Identifier: MIT */
/* The linear layers: what each reads, writes and is called, one row each. Layers of one kind in all blocks share what
 * the library needs for their shape. */
#include "kernels/pass_int.h"

#include "model/tensors.h"

enum rows { PER_SEQUENCE, PER_TOKEN, PER_PATCH };

static const struct row {
    enum dt_buffer x, y;
    int weight; /* the bias is the next tensor */
    bool of_block;
    enum rows rows;
    enum dt_activation act;
    int part, parts; /* of the three of queries, keys and values; 0, 0: a whole layer */
} layers[DT_LAYERS] = {
    [DT_LAYER_TIME0] = {DT_BUFFER_FREQUENCY, DT_BUFFER_EMBED, DT_W_TIME0, false, PER_SEQUENCE,
                        DT_ACT_SILU, 0, 0},
    [DT_LAYER_TIME2] = {DT_BUFFER_EMBED, DT_BUFFER_CONDITION, DT_W_TIME2, false, PER_SEQUENCE,
                        DT_ACT_NONE, 0, 0},
    [DT_LAYER_PATCH] = {DT_BUFFER_LATENT, DT_BUFFER_EMBEDDED, DT_W_PATCH, false, PER_PATCH,
                        DT_ACT_NONE, 0, 0},
    [DT_LAYER_MODULATION] = {DT_BUFFER_CONDITION, DT_BUFFER_MODULATION, DT_W_MOD, true,
                             PER_SEQUENCE, DT_ACT_NONE, 0, 0},
    [DT_LAYER_QKV] = {DT_BUFFER_NORM, DT_BUFFER_QKV, DT_W_QKV, true, PER_TOKEN, DT_ACT_NONE, 0, 0},
    [DT_LAYER_QKV_SENT] = {DT_BUFFER_NORM, DT_BUFFER_SEND, DT_W_QKV, true, PER_TOKEN, DT_ACT_NONE,
                           0, 3},
    [DT_LAYER_QK_SENT] = {DT_BUFFER_NORM, DT_BUFFER_SEND, DT_W_QKV, true, PER_TOKEN, DT_ACT_NONE, 0,
                          2},
    [DT_LAYER_V_SENT] = {DT_BUFFER_NORM, DT_BUFFER_SEND, DT_W_QKV, true, PER_TOKEN, DT_ACT_NONE, 2,
                         1},
    [DT_LAYER_PROJECTION] = {DT_BUFFER_ATTENTION, DT_BUFFER_NORM, DT_W_PROJ, true, PER_TOKEN,
                             DT_ACT_NONE, 0, 0},
    [DT_LAYER_FC1] = {DT_BUFFER_NORM, DT_BUFFER_MLP, DT_W_FC1, true, PER_TOKEN, DT_ACT_GELU, 0, 0},
    [DT_LAYER_FC2] = {DT_BUFFER_MLP, DT_BUFFER_NORM, DT_W_FC2, true, PER_TOKEN, DT_ACT_NONE, 0, 0},
    [DT_LAYER_FINAL_MODULATION] = {DT_BUFFER_CONDITION, DT_BUFFER_MODULATION, DT_W_FINAL_MOD, false,
                                   PER_SEQUENCE, DT_ACT_NONE, 0, 0},
    [DT_LAYER_OUT] = {DT_BUFFER_NORM, DT_BUFFER_OUT, DT_W_OUT, false, PER_TOKEN, DT_ACT_NONE, 0, 0},
};

static bool is_wide(const struct dt_pass *pass, enum dt_buffer buffer)
{
    return pass->layout.element[buffer] == (int)sizeof(float);
}

static struct dt_linear_shape shape_of(const struct dt_pass *pass, const struct row *row)
{
    const struct dt_layout *layout = &pass->layout;
    int sequences = layout->sequences, tokens = layout->tokens;
    struct dt_tensor weight;
    dt_tensor_init(&weight, &pass->workload,
                   row->of_block ? DT_TENSOR_BLOCKS + row->weight : row->weight);
    struct dt_linear_shape shape = {.rows = row->rows == PER_SEQUENCE ? sequences
                                            : row->rows == PER_TOKEN  ? sequences * tokens
                                                                      : layout->images * tokens,
                                    .in = dt_tensor_in(&weight),
                                    .out = dt_tensor_out(&weight),
                                    .act = row->act,
                                    .wide = is_wide(pass, row->y),
                                    .choice = pass->plan.gemm};
    if (row->parts > 0) {
        shape.out = shape.out / 3 * row->parts;
        shape.groups = row->parts * pass->plan.ulysses * pass->plan.chunks;
        shape.group_stride = (int64_t)shape.rows * (shape.out / shape.groups);
    }
    return shape;
}

/* A plan makes queries, keys and values in one way. */
static bool used(const struct dt_pass *pass, int layer)
{
    bool sent = pass->plan.exchange == DT_PLAN_DIRECT, apart = pass->plan.v_first != 0;
    if (layer == DT_LAYER_QKV)
        return !sent;
    if (layer == DT_LAYER_QKV_SENT)
        return sent && !apart;
    return layers[layer].parts == 0 || (sent && apart);
}

dt_status dt_pass_layers(struct dt_pass *pass)
{
    for (int i = 0; i < DT_LAYERS; i++) {
        if (!used(pass, i))
            continue;
        pass->shapes[i] = shape_of(pass, &layers[i]);
        DT_TRY(pass->compute->linear_new(pass->device, pass->workload.dtype, &pass->shapes[i],
                                         &pass->linears[i]));
    }
    return DT_OK;
}

void dt_pass_apply(struct dt_pass *pass, enum dt_layer layer, int block, int64_t y_at)
{
    const struct row *row = &layers[layer];
    const struct dt_linear_shape *shape = &pass->shapes[layer];
    const struct dt_weights *weights = pass->weights;
    struct dt_linear_call call = {
        .x = dt_pass_data(pass, row->x, 0),
        .weight = row->of_block ? dt_weights_block(weights, block, row->weight)
                                : dt_weights_at(weights, row->weight),
        .bias = row->of_block ? dt_weights_block(weights, block, row->weight + 1)
                              : dt_weights_at(weights, row->weight + 1),
        .y = dt_pass_data(pass, row->y, y_at),
    };
    if (row->part > 0) {
        int in = shape->in, first = shape->out / row->parts * row->part;
        const char *weight = call.weight;
        call.weight = weight + pass->compute->weight_row(pass->workload.dtype, in, first);
        call.bias += first;
    }
    if (dt_dtype_bytes(pass->workload.dtype) != (int)sizeof(float) && is_wide(pass, row->x)) {
        dt_pass_begin(pass);
        void *cast = dt_pass_data(pass, DT_BUFFER_CAST, 0);
        pass->compute->narrow(pass->device, pass->workload.dtype, call.x, cast,
                              (int64_t)shape->rows * shape->in);
        call.x = cast;
    }
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_pass_begin(pass);
    dt_pass_range(pass, "gemm");
    pass->compute->linear(pass->device, pass->linears[layer], &call);
    dt_pass_range(pass, NULL);
    dt_pass_lap(pass, DT_PHASE_GEMM);
}
