/* SPDX-License-Identifier: MIT */
/* One denoising step: the operations of the network's family, classifier-free guidance (Ho & Salimans 2022) and the DDIM
 * update (Song et al. 2021). */
#include "kernels/pass_int.h"

#include "base/clock.h"

#define GUIDANCE_SCALE 4.0f
#define PATIENCE_NS    (600 * DT_NS_PER_SECOND) /* of a step; the controller has less */

const char *dt_phase_text(enum dt_phase_kind kind)
{
    static const char *const texts[DT_PHASE_KINDS] = {"attention", "gemm", "exchange", "rest",
                                                      "idle"};
    return texts[kind];
}

const char *dt_block_text(enum dt_block_kind kind)
{
    static const char *const texts[DT_BLOCK_KINDS] = {"embed", "block", "final", "sampler"};
    return texts[kind];
}

static const struct {
    const char *text;
    int degree;
} exchanges[DT_EXCHANGE_KINDS] = {
    [DT_EXCHANGE_FORTH] = {"forth", DT_DEGREE_ulysses},
    [DT_EXCHANGE_BACK] = {"back", DT_DEGREE_ulysses},
    [DT_EXCHANGE_RING] = {"ring", DT_DEGREE_ring},
    [DT_EXCHANGE_CFG] = {"cfg", DT_DEGREE_cfg},
};

const char *dt_exchange_text(enum dt_exchange_kind kind)
{
    return exchanges[kind].text;
}

int dt_exchange_degree(enum dt_exchange_kind kind)
{
    return exchanges[kind].degree;
}

float *dt_pass_at(const struct dt_pass *pass, int buffer)
{
    return dt_pass_data(pass, buffer, 0);
}

void *dt_pass_data(const struct dt_pass *pass, int buffer, int64_t at)
{
    char *from = pass->layout.host[buffer] ? pass->memory.host : pass->memory.arena;
    return from + pass->layout.offset[buffer] + at * pass->layout.element[buffer];
}

void dt_pass_count(struct dt_pass *pass, int sum, const void *data, int64_t bytes)
{
    if (pass->counted >= DT_COUNTED_STEPS)
        return;
    dt_pass_begin(pass);
    uint64_t *sums = dt_pass_data(pass, DT_BUFFER_SUMS, 0);
    pass->compute->rows.sum(pass->device, data, bytes, sums + sum);
}

/* Exchanges the eps of the own tokens with the rank that runs the other half. */
static dt_status swap_eps(struct dt_pass *pass)
{
    const struct dt_network *network = &pass->workload.network;
    int64_t pixels =
        (int64_t)pass->layout.images * pass->layout.tokens * network->patch * network->patch;
    float *send = dt_pass_at(pass, DT_BUFFER_EPS_SEND),
          *recv = dt_pass_at(pass, DT_BUFFER_EPS_RECV);
    struct dt_copy op = {.to = send,
                         .from = dt_pass_at(pass, DT_BUFFER_OUT),
                         .count = {1, 1, pixels},
                         .to_stride = {0, 0, network->in_channels},
                         .from_stride = {0, 0, dt_network_out_channels(network)},
                         .width = network->in_channels,
                         .element = sizeof(float)};
    size_t bytes = (size_t)pixels * (size_t)network->in_channels * sizeof(float);
    dt_pass_begin(pass);
    pass->compute->rows.copy(pass->device, &op);
    dt_pass_count(pass, 0, send, (int64_t)bytes);
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_pass_posted(pass, &pass->exchanges.partner);
    DT_TRY(dt_comm_shift(pass->comms[DT_DEGREE_cfg], send, recv, bytes, &pass->exchanges.partner));
    dt_pass_lap(pass, DT_PHASE_EXCHANGE);
    DT_TRY(dt_pass_wait(pass, pass->comms[DT_DEGREE_cfg], &pass->exchanges.partner));
    dt_pass_count(pass, 1, recv, (int64_t)bytes);
    return DT_OK;
}

/* Computes image i of the result from its passes, on whichever rank they ran. */
static void guide(struct dt_pass *pass, int i)
{
    const struct dt_network *network = &pass->workload.network;
    int channels = dt_network_out_channels(network), guided = network->in_channels;
    int64_t pixels = (int64_t)pass->layout.tokens * network->patch * network->patch;
    const float *own = dt_pass_at(pass, DT_BUFFER_OUT) + i * pixels * channels;
    const float *other = pass->comms[DT_DEGREE_cfg] != NULL
                             ? dt_pass_at(pass, DT_BUFFER_EPS_RECV) + i * pixels * guided
                             : own + pass->layout.images * pixels * channels;
    int other_channels = pass->comms[DT_DEGREE_cfg] != NULL ? guided : channels;
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
    pass->compute->rows.guide(pass->device, &op);
}

static dt_status sample(struct dt_pass *pass)
{
    const struct dt_network *network = &pass->workload.network;
    const struct dt_layout *layout = &pass->layout;
    int pixels = network->patch * network->patch, out = dt_network_out_channels(network);
    if (pass->comms[DT_DEGREE_cfg] != NULL)
        DT_TRY(swap_eps(pass));
    for (int i = 0; i < layout->images; i++) {
        struct dt_sampler op = {dt_pass_at(pass, DT_BUFFER_LATENT) +
                                    (int64_t)i * layout->tokens * pixels * network->in_channels,
                                dt_pass_at(pass, DT_BUFFER_RESULT) +
                                    (int64_t)i * layout->slots * pixels * out,
                                dt_pass_at(pass, DT_BUFFER_TIME) + layout->sequences,
                                layout->tokens,
                                network->in_channels,
                                out,
                                pixels};
        dt_pass_begin(pass);
        guide(pass, i);
        if (pass->workload.input[0] == '\0')
            pass->compute->rows.sampler(pass->device, &op);
    }
    return DT_OK;
}

/* Data that changes between steps is copied to the device first, so that the rest can be a graph. */
static dt_status begin_step(struct dt_pass *pass)
{
    const struct dt_layout *layout = &pass->layout;
    int sequences = layout->sequences;
    int64_t floats = layout->count[DT_BUFFER_LATENT];
    if (pass->workload.input[0] == '\0') {
        float time = dt_sampler_time(pass->step, pass->workload.sampler_steps);
        for (int n = 0; n < sequences; n++)
            pass->memory.times[n] = time;
        if (pass->step == 0) {
            struct dt_copy op = {.to = dt_pass_at(pass, DT_BUFFER_LATENT),
                                 .from = dt_pass_at(pass, DT_BUFFER_NOISE),
                                 .count = {1, 1, 1},
                                 .width = floats,
                                 .element = sizeof(float)};
            dt_pass_begin(pass);
            pass->compute->rows.copy(pass->device, &op);
        }
    }
    dt_sampler_update(pass->step, pass->workload.sampler_steps, &pass->memory.times[sequences],
                      &pass->memory.times[sequences + 1]);
    return pass->compute->memory.put(pass->device, dt_pass_at(pass, DT_BUFFER_TIME),
                                     pass->memory.times, (sequences + 2) * (int64_t)sizeof(float));
}

static dt_status queue_step(struct dt_pass *pass)
{
    const struct dt_family *family = pass->workload.network.family;
    int depth = pass->workload.network.depth;
    DT_TRY(dt_pass_run(pass, family->embed, 0, 1));
    dt_pass_block(pass, DT_BLOCK_EMBED);
    for (int i = 0; i < depth; i++) {
        dt_pass_range(pass, "block");
        dt_status status = dt_pass_run(pass, family->block, i, depth);
        dt_pass_range(pass, NULL);
        DT_TRY(status);
        dt_pass_block(pass, DT_BLOCK_BLOCK);
    }
    DT_TRY(dt_pass_run(pass, family->final, 0, 1));
    dt_pass_block(pass, DT_BLOCK_FINAL);
    DT_TRY(sample(pass));
    dt_pass_block(pass, DT_BLOCK_SAMPLER);
    return DT_OK;
}

static dt_status check_comms(void *arg)
{
    const struct dt_pass *pass = arg;
    DT_TRY(dt_comm_check(pass->world));
    for (int i = 0; i < DT_DEGREES; i++)
        DT_TRY(dt_comm_check(pass->comms[i]));
    return DT_OK;
}

static bool can_record(const struct dt_pass *pass)
{
    bool all = true;
    for (int i = 0; i < DT_DEGREES; i++)
        all = all && (pass->comms[i] == NULL || pass->comms[i]->ops->recordable);
    return all;
}

/* The first steps run directly: libraries load kernels and connect ranks, and exchanges are checksummed. */
static bool by_graph(const struct dt_pass *pass, const struct dt_phases *phases)
{
    return pass->plan.graph != 0 && pass->compute->graph.record != NULL && phases == NULL &&
           pass->counted >= DT_COUNTED_STEPS && can_record(pass);
}

static dt_status replay_step(struct dt_pass *pass)
{
    if (pass->graph == NULL) {
        DT_TRY(pass->compute->graph.record(pass->device));
        dt_status status = queue_step(pass), ended;
        ended = pass->compute->graph.recorded(pass->device, &pass->graph);
        DT_TRY(status != DT_OK ? status : ended);
    }
    pass->compute->graph.replay(pass->device, pass->graph);
    return DT_OK;
}

static dt_status run_step(struct dt_pass *pass, const struct dt_phases *phases)
{
    DT_TRY(begin_step(pass));
    DT_TRY(by_graph(pass, phases) ? replay_step(pass) : queue_step(pass));
    pass->step = (pass->step + 1) % pass->workload.sampler_steps;
    dt_timeline_end(pass->timeline);
    return pass->compute->finish(pass->device, dt_clock_ns() + PATIENCE_NS, check_comms, pass);
}

dt_status dt_pass_step(struct dt_pass *pass, struct dt_phases *phases)
{
    pass->compute->threads(pass->device, pass->plan.threads);
    dt_timeline_start(pass->timeline, phases);
    dt_pass_range(pass, "step");
    dt_status status = run_step(pass, phases);
    dt_pass_range(pass, NULL);
    if (status == DT_OK)
        status = dt_timeline_stop(pass->timeline);
    pass->counted += pass->counted < DT_COUNTED_STEPS;
    return status;
}

void dt_pass_reset(struct dt_pass *pass)
{
    pass->step = 0;
}
