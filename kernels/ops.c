/* SPDX-License-Identifier: MIT */
/* The operations that a family's lists are made of (model/family.h), one function each. */
#include "kernels/pass_int.h"

void *dt_pass_half(const struct dt_pass *pass, int buffer, int block)
{
    const struct dt_buffer_row *row = dt_family_buffer(pass->workload.network.family, buffer);
    int64_t half = row->twice ? block % 2 * (pass->layout.count[buffer] / 2) : 0;
    return dt_pass_data(pass, buffer, half);
}

static dt_status sinusoid(struct dt_pass *pass, const struct dt_op *op, int block)
{
    struct dt_sinusoid call = {dt_pass_at(pass, op->x), dt_pass_at(pass, op->y),
                               pass->layout.sequences, DT_TIME_CHANNELS};
    (void)block;
    dt_pass_begin(pass);
    pass->compute->rows.sinusoid(pass->device, &call);
    return DT_OK;
}

static dt_status linear(struct dt_pass *pass, const struct dt_op *op, int block)
{
    int of = block + op->next;
    dt_pass_apply(pass, &pass->layers[op->tensor], op, of, dt_pass_half(pass, op->y, of));
    return DT_OK;
}

static dt_status label(struct dt_pass *pass, const struct dt_op *op, int block)
{
    struct dt_condition call = {
        dt_pass_at(pass, op->x),       dt_weights_at(pass->weights, op->tensor, block),
        dt_pass_data(pass, op->by, 0), dt_pass_at(pass, op->y),
        pass->layout.sequences,        pass->workload.network.hidden};
    dt_pass_begin(pass);
    pass->compute->rows.condition(pass->device, &call);
    return DT_OK;
}

static dt_status position(struct dt_pass *pass, const struct dt_op *op, int block)
{
    const struct dt_layout *layout = &pass->layout;
    int channels = pass->workload.network.hidden;
    const float *table = dt_weights_at(pass->weights, op->tensor, block);
    struct dt_position call = {dt_pass_at(pass, op->x),
                               table + (int64_t)layout->first_token * channels,
                               dt_pass_at(pass, op->y),
                               layout->sequences,
                               layout->images,
                               layout->tokens,
                               channels};
    dt_pass_begin(pass);
    pass->compute->rows.position(pass->device, &call);
    return DT_OK;
}

/* The gate is this block's, whatever the norm is for. */
static dt_status modulate(struct dt_pass *pass, const struct dt_op *op, int block)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t channels = pass->workload.network.hidden;
    const float *gate = dt_pass_half(pass, op->by, block);
    const float *shift = dt_pass_half(pass, op->by, block + op->next);
    shift += op->shift.at * channels;
    struct dt_modulate call = {.x = dt_pass_at(pass, op->x),
                               .shift = shift,
                               .scale = shift + channels,
                               .y = dt_pass_data(pass, op->y, 0),
                               .gate_stride = op->gate.of * channels,
                               .stride = op->shift.of * channels,
                               .sequences = layout->sequences,
                               .tokens = layout->tokens,
                               .channels = (int)channels};
    if (op->gate.of > 0) {
        call.branch = call.y;
        call.gate = gate + op->gate.at * channels;
    }
    dt_pass_begin(pass);
    pass->compute->rows.modulate(pass->device, pass->workload.dtype, &call);
    return DT_OK;
}

static dt_status attention(struct dt_pass *pass, const struct dt_op *op, int block)
{
    (void)op;
    return dt_pass_attention(pass, block);
}

static dt_status (*const runs[DT_OP_KINDS])(struct dt_pass *pass, const struct dt_op *op,
                                            int block) = {
    [DT_OP_SINUSOID] = sinusoid,   [DT_OP_LINEAR] = linear,     [DT_OP_LABEL] = label,
    [DT_OP_POSITION] = position,   [DT_OP_MODULATE] = modulate, [DT_OP_QUERIES] = dt_pass_queries,
    [DT_OP_ATTENTION] = attention,
};

dt_status dt_pass_run(struct dt_pass *pass, const struct dt_op *list, int block, int depth)
{
    for (const struct dt_op *op = list; op->kind != DT_OP_END; op++)
        if (dt_op_runs(op, block, depth))
            DT_TRY(runs[op->kind](pass, op, block));
    return DT_OK;
}
