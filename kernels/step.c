/* SPDX-License-Identifier: MIT */
/* One denoising step of the DiT of Peebles & Xie (2023), adaLN-Zero blocks, as the authors' PyTorch code computes it;
 * classifier-free guidance (Ho & Salimans 2022) and the DDIM update (Song et al. 2021). */
#include "kernels/pass_int.h"

#include "base/clock.h"

#include <string.h>

#define GUIDANCE_SCALE 4.0f

const char *dt_phase_text(enum dt_phase_kind kind)
{
    static const char *const texts[DT_PHASE_KINDS] = {"attention", "gemm", "exchange", "rest"};
    return texts[kind];
}

const char *dt_block_text(enum dt_block_kind kind)
{
    static const char *const texts[DT_BLOCK_KINDS] = {"embed", "block", "final", "sampler"};
    return texts[kind];
}

float *dt_pass_at(const struct dt_pass *pass, enum dt_buffer buffer)
{
    return (float *)(void *)(pass->arena + pass->layout.offset[buffer]);
}

void dt_pass_lap(struct dt_pass *pass, enum dt_phase_kind kind)
{
    if (pass->phases == NULL)
        return;
    int64_t now = dt_clock_ns();
    pass->phases->kind_ns[kind] += now - pass->lap_ns;
    pass->lap_ns = now;
}

dt_status dt_pass_wait(struct dt_pass *pass, struct dt_comm *comm, struct dt_request *request)
{
    dt_pass_lap(pass, DT_PHASE_REST);
    DT_TRY(comm->ops->wait(comm, request));
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    if (pass->phases != NULL) {
        pass->phases->exchange_bytes += request->bytes;
        pass->phases->exchange_in_flight_ns += pass->lap_ns - request->posted_ns;
    }
    return DT_OK;
}

/* Over all ranks what was sent is what was received, so the two sums are equal unless a word was changed on its way: one
 * element of thousands may move the output by less than rounding, but not the sum. */
void dt_pass_count(const struct dt_pass *pass, uint64_t *sum, const float *data, int64_t floats)
{
    for (int64_t i = 0; pass->counted < DT_COUNTED_STEPS && i < floats; i++) {
        uint32_t word;
        memcpy(&word, data + i, sizeof word);
        *sum += word;
    }
}

static void linear(struct dt_pass *pass, const struct dt_linear *op)
{
    dt_pass_lap(pass, DT_PHASE_REST);
    pass->compute->linear(op);
    dt_pass_lap(pass, DT_PHASE_GEMM);
}

/* From the buffer x to the buffer y by tensors weight and weight + 1 of the block, or of the network (block -1). */
struct layer {
    enum dt_buffer x, y;
    int block, weight;
    int rows, in, out;
    enum dt_activation act;
};

static void apply(struct dt_pass *pass, const struct layer *layer)
{
    const struct dt_weights *weights = pass->weights;
    int block = layer->block, weight = layer->weight;
    bool whole = block < 0;
    struct dt_linear op = {
        .x = dt_pass_at(pass, layer->x),
        .y = dt_pass_at(pass, layer->y),
        .weight = whole ? dt_weights_at(weights, weight) : dt_weights_block(weights, block, weight),
        .bias = whole ? dt_weights_at(weights, weight + 1)
                      : dt_weights_block(weights, block, weight + 1),
        .rows = layer->rows,
        .in = layer->in,
        .out = layer->out,
        .act = layer->act,
    };
    linear(pass, &op);
}

static void embed(struct dt_pass *pass)
{
    const struct dt_network *network = &pass->workload.network;
    const struct dt_layout *layout = &pass->layout;
    int rows = layout->sequences, channels = network->hidden;
    int pixels = network->in_channels * network->patch * network->patch;
    struct dt_sinusoid sinusoid = {dt_pass_at(pass, DT_BUFFER_TIME),
                                   dt_pass_at(pass, DT_BUFFER_FREQUENCY), rows, DT_TIME_CHANNELS};
    const struct layer layers[] = {
        {DT_BUFFER_FREQUENCY, DT_BUFFER_EMBED, -1, DT_W_TIME0, rows, DT_TIME_CHANNELS, channels,
         DT_ACT_SILU},
        {DT_BUFFER_EMBED, DT_BUFFER_CONDITION, -1, DT_W_TIME2, rows, channels, channels,
         DT_ACT_NONE},
        {DT_BUFFER_LATENT, DT_BUFFER_NORM, -1, DT_W_PATCH, layout->images * layout->tokens, pixels,
         channels, DT_ACT_NONE},
    };
    struct dt_condition condition = {dt_pass_at(pass, DT_BUFFER_CONDITION),
                                     dt_weights_at(pass->weights, DT_W_LABEL),
                                     (const int32_t *)(void *)dt_pass_at(pass, DT_BUFFER_LABEL),
                                     dt_pass_at(pass, DT_BUFFER_CONDITION),
                                     rows,
                                     channels};
    struct dt_position position = {dt_pass_at(pass, DT_BUFFER_NORM),
                                   dt_weights_at(pass->weights, DT_W_POSITION) +
                                       (int64_t)layout->first_token * channels,
                                   dt_pass_at(pass, DT_BUFFER_STREAM),
                                   rows,
                                   layout->images,
                                   layout->tokens,
                                   channels};
    pass->compute->sinusoid(&sinusoid);
    for (int i = 0; i < 3; i++)
        apply(pass, &layers[i]);
    pass->compute->condition(&condition);
    pass->compute->position(&position);
}

/* NORM = LayerNorm(STREAM), modulated by parts `shift` and `shift + 1` of the MODULATION of `parts` parts. */
static void modulate(struct dt_pass *pass, int shift, int parts)
{
    const struct dt_layout *layout = &pass->layout;
    int channels = pass->workload.network.hidden;
    const float *modulation = dt_pass_at(pass, DT_BUFFER_MODULATION) + (int64_t)shift * channels;
    struct dt_modulate op = {dt_pass_at(pass, DT_BUFFER_STREAM),
                             modulation,
                             modulation + channels,
                             dt_pass_at(pass, DT_BUFFER_NORM),
                             (int64_t)parts * channels,
                             layout->sequences,
                             layout->tokens,
                             channels};
    pass->compute->modulate(&op);
}

/* STREAM += gate NORM */
static void gate(struct dt_pass *pass, int part)
{
    const struct dt_layout *layout = &pass->layout;
    int channels = pass->workload.network.hidden;
    struct dt_gate op = {dt_pass_at(pass, DT_BUFFER_STREAM),
                         dt_pass_at(pass, DT_BUFFER_NORM),
                         dt_pass_at(pass, DT_BUFFER_MODULATION) + (int64_t)part * channels,
                         6L * channels,
                         layout->sequences,
                         layout->tokens,
                         channels};
    pass->compute->gate(&op);
}

static dt_status run_block(struct dt_pass *pass, int i)
{
    int sequences = pass->layout.sequences, rows = sequences * pass->layout.tokens;
    int c = pass->workload.network.hidden, mlp = dt_network_mlp(&pass->workload.network);
    const struct layer modulation = {
        DT_BUFFER_CONDITION, DT_BUFFER_MODULATION, i, DT_W_MOD, sequences, c, 6 * c, DT_ACT_NONE};
    const struct layer qkv = {DT_BUFFER_NORM, DT_BUFFER_QKV, i, DT_W_QKV, rows, c,
                              3 * c,          DT_ACT_NONE};
    const struct layer projection = {DT_BUFFER_ATTENTION, DT_BUFFER_NORM, i, DT_W_PROJ, rows, c, c,
                                     DT_ACT_NONE};
    const struct layer fc1 = {DT_BUFFER_NORM, DT_BUFFER_MLP, i, DT_W_FC1, rows, c, mlp,
                              DT_ACT_GELU};
    const struct layer fc2 = {DT_BUFFER_MLP, DT_BUFFER_NORM, i, DT_W_FC2, rows, mlp, c,
                              DT_ACT_NONE};
    apply(pass, &modulation);
    modulate(pass, 0, 6);
    apply(pass, &qkv);
    DT_TRY(dt_pass_attention(pass, i));
    apply(pass, &projection);
    gate(pass, 2);
    modulate(pass, 3, 6);
    apply(pass, &fc1);
    apply(pass, &fc2);
    gate(pass, 5);
    return DT_OK;
}

static void finish(struct dt_pass *pass)
{
    const struct dt_network *network = &pass->workload.network;
    int c = network->hidden, rows = pass->layout.sequences * pass->layout.tokens;
    int out = network->patch * network->patch * dt_network_out_channels(network);
    const struct layer modulation = {DT_BUFFER_CONDITION,
                                     DT_BUFFER_MODULATION,
                                     -1,
                                     DT_W_FINAL_MOD,
                                     pass->layout.sequences,
                                     c,
                                     2 * c,
                                     DT_ACT_NONE};
    const struct layer last = {DT_BUFFER_NORM, DT_BUFFER_OUT, -1, DT_W_OUT, rows, c, out,
                               DT_ACT_NONE};
    apply(pass, &modulation);
    modulate(pass, 0, 2);
    apply(pass, &last);
}

/* The eps of the own tokens, to and from the rank that runs the other half. */
static dt_status swap_eps(struct dt_pass *pass)
{
    const struct dt_network *network = &pass->workload.network;
    int64_t pixels =
        (int64_t)pass->layout.images * pass->layout.tokens * network->patch * network->patch;
    float *send = dt_pass_at(pass, DT_BUFFER_EPS_SEND),
          *recv = dt_pass_at(pass, DT_BUFFER_EPS_RECV);
    struct dt_copy op = {send,
                         dt_pass_at(pass, DT_BUFFER_OUT),
                         network->in_channels,
                         dt_network_out_channels(network),
                         pixels,
                         network->in_channels};
    size_t bytes = (size_t)pixels * (size_t)network->in_channels * sizeof(float);
    pass->compute->copy(&op);
    dt_pass_count(pass, &pass->sent, send, pixels * network->in_channels);
    dt_pass_lap(pass, DT_PHASE_REST);
    DT_TRY(dt_comm_shift(pass->cfg, send, recv, bytes, &pass->partner));
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    DT_TRY(dt_pass_wait(pass, pass->cfg, &pass->partner));
    dt_pass_count(pass, &pass->received, recv, pixels * network->in_channels);
    return DT_OK;
}

/* Image i of the result out of the images' passes, wherever they ran. */
static void guide(struct dt_pass *pass, int i)
{
    const struct dt_network *network = &pass->workload.network;
    int channels = dt_network_out_channels(network), guided = network->in_channels;
    int64_t pixels = (int64_t)pass->layout.tokens * network->patch * network->patch;
    const float *own = dt_pass_at(pass, DT_BUFFER_OUT) + i * pixels * channels;
    const float *other = pass->cfg != NULL
                             ? dt_pass_at(pass, DT_BUFFER_EPS_RECV) + i * pixels * guided
                             : own + pass->layout.images * pixels * channels;
    int other_channels = pass->cfg != NULL ? guided : channels;
    bool conditional = pass->layout.place.cfg == 0;
    struct dt_guide op = {
        .cond = conditional ? own : other,
        .uncond = conditional ? other : own,
        .rest = own,
        .out = dt_pass_at(pass, DT_BUFFER_RESULT) +
               (int64_t)i * pass->layout.slots * network->patch * network->patch * channels,
        .cond_stride = conditional ? channels : other_channels,
        .uncond_stride = conditional ? other_channels : channels,
        .pixels = pixels,
        .channels = channels,
        .guided = guided,
        .scale = GUIDANCE_SCALE,
    };
    if (!pass->workload.guidance) { /* uncond + 1 (cond - uncond), without its rounding */
        op.uncond = op.cond;
        op.uncond_stride = op.cond_stride;
    }
    pass->compute->guide(&op);
}

static dt_status sample(struct dt_pass *pass)
{
    const struct dt_network *network = &pass->workload.network;
    const struct dt_layout *layout = &pass->layout;
    int pixels = network->patch * network->patch, out = dt_network_out_channels(network);
    float keep = 0, move = 0;
    if (pass->cfg != NULL)
        DT_TRY(swap_eps(pass));
    dt_sampler_update(pass->step, pass->workload.sampler_steps, &keep, &move);
    for (int i = 0; i < layout->images; i++) {
        struct dt_sampler op = {dt_pass_at(pass, DT_BUFFER_LATENT) +
                                    (int64_t)i * layout->tokens * pixels * network->in_channels,
                                dt_pass_at(pass, DT_BUFFER_RESULT) +
                                    (int64_t)i * layout->slots * pixels * out,
                                layout->tokens,
                                network->in_channels,
                                out,
                                pixels,
                                keep,
                                move};
        guide(pass, i);
        if (pass->workload.input[0] == '\0')
            pass->compute->sampler(&op);
    }
    return DT_OK;
}

/* Notes how long a block took, and starts the next. */
static void end_block(struct dt_pass *pass, enum dt_block_kind kind, int64_t *start)
{
    struct dt_phases *phases = pass->phases;
    if (phases == NULL)
        return;
    dt_pass_lap(pass, DT_PHASE_REST);
    if (phases->block_count[kind] < DT_PHASE_SAMPLES)
        phases->block_ns[kind][phases->block_count[kind]] = pass->lap_ns - *start;
    phases->block_count[kind]++;
    *start = pass->lap_ns;
}

static dt_status run_step(struct dt_pass *pass)
{
    int64_t start = pass->lap_ns;
    if (pass->workload.input[0] == '\0') {
        float time = dt_sampler_time(pass->step, pass->workload.sampler_steps);
        for (int n = 0; n < pass->layout.sequences; n++)
            dt_pass_at(pass, DT_BUFFER_TIME)[n] = time;
        if (pass->step == 0)
            dt_pass_noise(pass);
    }
    embed(pass);
    end_block(pass, DT_BLOCK_EMBED, &start);
    for (int i = 0; i < pass->workload.network.depth; i++) {
        DT_TRY(run_block(pass, i));
        end_block(pass, DT_BLOCK_BLOCK, &start);
    }
    finish(pass);
    end_block(pass, DT_BLOCK_FINAL, &start);
    DT_TRY(sample(pass));
    pass->step = (pass->step + 1) % pass->workload.sampler_steps;
    end_block(pass, DT_BLOCK_SAMPLER, &start);
    return DT_OK;
}

dt_status dt_pass_step(struct dt_pass *pass, struct dt_phases *phases)
{
    int64_t start = dt_clock_ns();
    pass->phases = phases;
    pass->lap_ns = start;
    pass->compute->threads(pass->plan.threads);
    dt_status status = run_step(pass);
    pass->counted += pass->counted < DT_COUNTED_STEPS;
    if (phases != NULL)
        phases->step_ns += pass->lap_ns - start;
    pass->phases = NULL;
    return status;
}

void dt_pass_reset(struct dt_pass *pass)
{
    pass->step = 0;
}
