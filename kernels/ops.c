/* SPDX-License-Identifier: MIT */
/* The operations that a family's lists are made of (model/family.h), one function each. */
#include "kernels/pass_int.h"

static dt_status op_sinusoid(struct dt_pass *pass, const struct dt_op *op, int block)
{
    struct dt_sinusoid call = {dt_pass_at(pass, op->x), dt_pass_at(pass, op->y),
                               pass->layout.sequences, DT_TIME_CHANNELS};
    (void)block;
    dt_pass_begin(pass);
    pass->compute->rows.sinusoid(pass->device, &call);
    return DT_OK;
}

static dt_status op_linear(struct dt_pass *pass, const struct dt_op *op, int block)
{
    dt_pass_apply(pass, &pass->layers[op->tensor], op, block, dt_pass_data(pass, op->y, 0));
    return DT_OK;
}

static dt_status op_label(struct dt_pass *pass, const struct dt_op *op, int block)
{
    struct dt_condition call = {
        dt_pass_at(pass, op->x),       dt_weights_at(pass->weights, op->tensor, block),
        dt_pass_data(pass, op->by, 0), dt_pass_at(pass, op->y),
        pass->layout.sequences,        pass->workload.network.hidden};
    dt_pass_begin(pass);
    pass->compute->rows.condition(pass->device, &call);
    return DT_OK;
}

/* The data type that the plan keeps the residual stream in. */
static enum dt_dtype stream_of(const struct dt_pass *pass, int buffer)
{
    return pass->layout.element[buffer] == (int)sizeof(float) ? DT_FLOAT32 : DT_BFLOAT16;
}

static dt_status op_position(struct dt_pass *pass, const struct dt_op *op, int block)
{
    const struct dt_layout *layout = &pass->layout;
    int channels = pass->workload.network.hidden;
    const float *table = dt_weights_at(pass->weights, op->tensor, block);
    struct dt_position call = {dt_pass_at(pass, op->x),
                               table + (int64_t)layout->first_token * channels,
                               dt_pass_data(pass, op->y, 0),
                               layout->sequences,
                               layout->images,
                               layout->tokens,
                               channels,
                               stream_of(pass, op->y)};
    dt_pass_begin(pass);
    pass->compute->rows.position(pass->device, &call);
    return DT_OK;
}

/* Where the part of the first sequence is, and how far apart those of two sequences are. */
static const float *part_at(const struct dt_pass *pass, const struct dt_part *part, int block,
                            int64_t *stride)
{
    const struct dt_network *network = &pass->workload.network;
    const struct dt_buffer_row *row = dt_family_buffer(network->family, part->by);
    int64_t width = dt_family_product(&pass->workload, row->width);
    *stride = row->blocks ? network->depth * width : width;
    return dt_pass_at(pass, part->by) + (row->blocks ? block * width : 0) +
           (int64_t)part->at * network->hidden;
}

/* The gate is this block's, whatever the norm is for. */
static dt_status op_modulate(struct dt_pass *pass, const struct dt_op *op, int block)
{
    const struct dt_layout *layout = &pass->layout;
    int channels = pass->workload.network.hidden;
    struct dt_modulate call = {.x = dt_pass_data(pass, op->x, 0),
                               .y = dt_pass_data(pass, op->y, 0),
                               .sequences = layout->sequences,
                               .tokens = layout->tokens,
                               .channels = channels,
                               .stream = stream_of(pass, op->x)};
    call.shift = part_at(pass, &op->shift, block + op->next, &call.stride);
    call.scale = call.shift + channels;
    if (op->gate.by > 0) {
        call.branch = call.y;
        call.gate = part_at(pass, &op->gate, block, &call.gate_stride);
    }
    dt_pass_begin(pass);
    pass->compute->rows.modulate(pass->device, pass->workload.dtype, &call);
    return DT_OK;
}

static dt_status op_attention(struct dt_pass *pass, const struct dt_op *op, int block)
{
    (void)op;
    return dt_pass_attention(pass, block);
}

static dt_status (*const runs[DT_OP_KINDS])(struct dt_pass *pass, const struct dt_op *op,
                                            int block) = {
    [DT_OP_SINUSOID] = op_sinusoid,   [DT_OP_LINEAR] = op_linear,
    [DT_OP_LABEL] = op_label,         [DT_OP_POSITION] = op_position,
    [DT_OP_MODULATE] = op_modulate,   [DT_OP_QUERIES] = dt_pass_queries,
    [DT_OP_ATTENTION] = op_attention,
};

dt_status dt_pass_run(struct dt_pass *pass, const struct dt_op *list, int block, int depth)
{
    pass->cast = -1;
    for (const struct dt_op *op = list; op->kind != DT_OP_END; op++) {
        if (!dt_op_runs(op, block, depth))
            continue;
        DT_TRY(runs[op->kind](pass, op, block));
        if (op->kind != DT_OP_LINEAR || op->y == pass->cast)
            pass->cast = -1;
    }
    return DT_OK;
}
