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

void *dt_pass_data(const struct dt_pass *pass, enum dt_buffer buffer, int64_t at)
{
    return pass->arena + pass->layout.offset[buffer] + at * pass->layout.element[buffer];
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
void dt_pass_count(const struct dt_pass *pass, uint64_t *sum, const void *data, int64_t bytes)
{
    const char *from = data;
    for (int64_t i = 0; pass->counted < DT_COUNTED_STEPS && i < bytes; i += 2) {
        uint16_t word;
        memcpy(&word, from + i, sizeof word);
        *sum += word;
    }
}

static void embed(struct dt_pass *pass)
{
    const struct dt_network *network = &pass->workload.network;
    const struct dt_layout *layout = &pass->layout;
    int rows = layout->sequences, channels = network->hidden;
    const float *table = dt_weights_at(pass->weights, DT_W_POSITION);
    struct dt_sinusoid sinusoid = {dt_pass_at(pass, DT_BUFFER_TIME),
                                   dt_pass_at(pass, DT_BUFFER_FREQUENCY), rows, DT_TIME_CHANNELS};
    struct dt_condition condition = {dt_pass_at(pass, DT_BUFFER_CONDITION),
                                     dt_weights_at(pass->weights, DT_W_LABEL),
                                     (const int32_t *)(void *)dt_pass_at(pass, DT_BUFFER_LABEL),
                                     dt_pass_at(pass, DT_BUFFER_CONDITION),
                                     rows,
                                     channels};
    struct dt_position position = {dt_pass_at(pass, DT_BUFFER_EMBEDDED),
                                   table + (int64_t)layout->first_token * channels,
                                   dt_pass_at(pass, DT_BUFFER_STREAM),
                                   rows,
                                   layout->images,
                                   layout->tokens,
                                   channels};
    pass->compute->sinusoid(&sinusoid);
    dt_pass_apply(pass, DT_LAYER_TIME0, 0, 0);
    dt_pass_apply(pass, DT_LAYER_TIME2, 0, 0);
    dt_pass_apply(pass, DT_LAYER_PATCH, 0, 0);
    pass->compute->condition(&condition);
    pass->compute->position(&position);
}

/* Where the modulation of a block starts; that of the final layer follows the last block's. Two lie side by side: the
 * last branch of a block is gated by its own while the next one's already normalises. */
static int64_t modulation_at(const struct dt_pass *pass, int block)
{
    return block % 2 * (pass->layout.count[DT_BUFFER_MODULATION] / 2);
}

static void condition_block(struct dt_pass *pass, int block)
{
    enum dt_layer layer =
        block < pass->workload.network.depth ? DT_LAYER_MODULATION : DT_LAYER_FINAL_MODULATION;
    dt_pass_apply(pass, layer, block, modulation_at(pass, block));
}

/* A gated residual and the norm after it, by parts of the modulation of the block that has them; gate -1: none. */
struct join {
    int gate_block, gate;
    int norm_block, shift;
};

/* STREAM += gate NORM, then NORM = LayerNorm(STREAM), modulated. */
static void modulate(struct dt_pass *pass, const struct join *join)
{
    const struct dt_layout *layout = &pass->layout;
    int channels = pass->workload.network.hidden;
    int parts = join->norm_block < pass->workload.network.depth ? 6 : 2;
    const float *modulation = dt_pass_at(pass, DT_BUFFER_MODULATION);
    const float *shift =
        modulation + modulation_at(pass, join->norm_block) + (int64_t)join->shift * channels;
    struct dt_modulate op = {.x = dt_pass_at(pass, DT_BUFFER_STREAM),
                             .shift = shift,
                             .scale = shift + channels,
                             .y = dt_pass_data(pass, DT_BUFFER_NORM, 0),
                             .gate_stride = 6L * channels,
                             .stride = (int64_t)parts * channels,
                             .sequences = layout->sequences,
                             .tokens = layout->tokens,
                             .channels = channels};
    if (join->gate >= 0) {
        op.branch = op.y;
        op.gate =
            modulation + modulation_at(pass, join->gate_block) + (int64_t)join->gate * channels;
    }
    pass->compute->modulate(pass->workload.dtype, &op);
}

static dt_status run_block(struct dt_pass *pass, int i)
{
    if (i == 0) {
        condition_block(pass, 0);
        modulate(pass, &(struct join){.gate = -1});
    }
    dt_pass_apply(pass, DT_LAYER_QKV, i, 0);
    DT_TRY(dt_pass_attention(pass, i));
    dt_pass_apply(pass, DT_LAYER_PROJECTION, i, 0);
    modulate(pass, &(struct join){.gate_block = i, .gate = 2, .norm_block = i, .shift = 3});
    dt_pass_apply(pass, DT_LAYER_FC1, i, 0);
    dt_pass_apply(pass, DT_LAYER_FC2, i, 0);
    condition_block(pass, i + 1);
    modulate(pass, &(struct join){.gate_block = i, .gate = 5, .norm_block = i + 1});
    return DT_OK;
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
                         network->in_channels,
                         sizeof(float)};
    size_t bytes = (size_t)pixels * (size_t)network->in_channels * sizeof(float);
    pass->compute->copy(&op);
    dt_pass_count(pass, &pass->sent, send, (int64_t)bytes);
    dt_pass_lap(pass, DT_PHASE_REST);
    DT_TRY(dt_comm_shift(pass->cfg, send, recv, bytes, &pass->partner));
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    DT_TRY(dt_pass_wait(pass, pass->cfg, &pass->partner));
    dt_pass_count(pass, &pass->received, recv, (int64_t)bytes);
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
    dt_pass_apply(pass, DT_LAYER_OUT, 0, 0);
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
