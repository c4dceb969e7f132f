/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "kernels/pass_int.h"

#include <stdlib.h>

#define DT_COUNTED_STEPS 2 /* steps before the output is verified */

/* Marks are numbered through a step and read once, when it is done: to read one earlier would make
 * the device wait. When there are more than a device keeps, the full table is read in the middle;
 * that time is not counted. */

#define PATIENCE_NS (600 * DT_NS_PER_SECOND)

enum { NO_BLOCK = -1 };

/* Kind of the time before a mark. */
struct note {
    signed char kind, block, exchange;
    int posted; /* the mark of the exchange whose wait ends here, or -1 */
};

struct dt_timeline {
    struct dt_device *device;
    struct dt_phases *phases; /* NULL: not traced */
    dt_status status;         /* the first error */
    int count;
    bool open;        /* between begin and lap */
    int posting;      /* kind of the exchange being posted */
    int64_t base_ns;  /* time of mark 0 within the step */
    int64_t block_ns; /* where the block began */
    int64_t step_ns;  /* the last step's time, by the device's clock */
    struct note notes[DT_MARKS_MOST];
    int64_t ns[DT_MARKS_MOST];
};

dt_status dt_timeline_new(struct dt_device *device, struct dt_timeline **timeline)
{
    struct dt_timeline *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a timeline");
    made->device = device;
    *timeline = made;
    return DT_OK;
}

void dt_timeline_free(struct dt_timeline *timeline)
{
    free(timeline);
}

static void keep_span(struct dt_step_parts *spans, const struct dt_step_part *span)
{
    if (spans != NULL && spans->count < spans->room && span->ns > 0)
        spans->at[spans->count++] = *span;
}

static void end_block(struct dt_timeline *timeline, int kind, int64_t now)
{
    struct dt_phases *phases = timeline->phases;
    int64_t count = phases->block_count[kind]++;
    if (count < DT_PHASE_SAMPLES)
        phases->block_ns[kind][count] = now - timeline->block_ns;
    keep_span(phases->spans, &(struct dt_step_part){timeline->block_ns, now - timeline->block_ns,
                                                    (signed char)kind, 0, true, false});
    timeline->block_ns = now;
}

static void end_exchange(struct dt_phases *phases, int kind, int64_t in_flight_ns)
{
    phases->exchange_in_flight_ns += in_flight_ns;
    phases->exchanges[kind].in_flight_ns += in_flight_ns;
}

/* Accounts for all marks; the last becomes the first of the next table. */
static dt_status read_marks(struct dt_timeline *timeline)
{
    const struct dt_compute *compute = timeline->device->compute;
    int64_t deadline = dt_clock_ns() + PATIENCE_NS;
    DT_TRY(compute->finish(timeline->device, deadline, NULL, NULL));
    DT_TRY(compute->timeline.times(timeline->device, timeline->count, timeline->ns));
    for (int i = 1; i < timeline->count; i++) {
        const struct note *note = &timeline->notes[i];
        int64_t now = timeline->ns[i];
        timeline->phases->kind_ns[note->kind] += now - timeline->ns[i - 1];
        keep_span(timeline->phases->spans,
                  &(struct dt_step_part){timeline->base_ns + timeline->ns[i - 1],
                                         now - timeline->ns[i - 1], note->kind, note->exchange,
                                         false, note->posted >= 0});
        if (note->kind == DT_PHASE_EXCHANGE)
            timeline->phases->exchanges[note->exchange].ns += now - timeline->ns[i - 1];
        if (note->posted >= 0)
            end_exchange(timeline->phases, note->exchange, now - timeline->ns[note->posted]);
        if (note->block != NO_BLOCK)
            end_block(timeline, note->block, timeline->base_ns + now);
    }
    timeline->base_ns += timeline->ns[timeline->count - 1];
    return DT_OK;
}

static int add_mark(struct dt_timeline *timeline, int kind, int block, int posted)
{
    if (timeline->count == DT_MARKS_MOST) {
        dt_status status = read_marks(timeline);
        if (timeline->status == DT_OK)
            timeline->status = status;
        timeline->count = 0;
        posted = -1;
        timeline->device->compute->timeline.mark(timeline->device, timeline->count++);
    }
    timeline->notes[timeline->count] = (struct note){(signed char)kind, (signed char)block,
                                                     (signed char)timeline->posting, posted};
    timeline->device->compute->timeline.mark(timeline->device, timeline->count);
    return timeline->count++;
}

/* Times of a step's parts, by marks in the device's queue. An untraced step (phases NULL) has
 * only two marks. Work queued after begin counts for the lap that ends it; time between a lap and
 * the next begin is idle. */
static void timeline_start(struct dt_timeline *timeline, struct dt_phases *phases)
{
    timeline->phases = phases;
    timeline->status = DT_OK;
    timeline->count = 0;
    timeline->base_ns = timeline->block_ns = 0;
    timeline->open = true;
    if (phases != NULL)
        (void)add_mark(timeline, DT_PHASE_REST, NO_BLOCK, -1);
    else if (!timeline->device->compute->host)
        timeline->device->compute->timeline.mark(timeline->device, 0);
}

static void timeline_end(struct dt_timeline *timeline)
{
    if (timeline->phases == NULL && !timeline->device->compute->host)
        timeline->device->compute->timeline.mark(timeline->device, 1);
}

/* An untraced step has two marks. */
static dt_status read_ends(struct dt_timeline *timeline)
{
    int64_t ns[2] = {0};
    if (!timeline->device->compute->host)
        DT_TRY(timeline->device->compute->timeline.times(timeline->device, 2, ns));
    timeline->step_ns = ns[1];
    return DT_OK;
}

static dt_status timeline_stop(struct dt_timeline *timeline)
{
    dt_status status = timeline->status;
    if (timeline->phases == NULL)
        return read_ends(timeline);
    if (status == DT_OK)
        status = read_marks(timeline);
    timeline->phases->step_ns += timeline->base_ns;
    timeline->step_ns = timeline->base_ns;
    timeline->phases = NULL;
    return status;
}

int64_t dt_pass_device_ns(const struct dt_pass *pass)
{
    return pass->timeline->step_ns;
}

/* On the host the time between two calls is the caller's own work, which is rest. */
void dt_pass_begin(struct dt_pass *pass)
{
    struct dt_timeline *timeline = pass->timeline;
    if (timeline->phases == NULL || timeline->open || pass->compute->host)
        return;
    (void)add_mark(timeline, DT_PHASE_IDLE, NO_BLOCK, -1);
    timeline->open = true;
}

void dt_pass_range(const struct dt_pass *pass, const char *name)
{
    if (pass->compute->timeline.range != NULL)
        pass->compute->timeline.range(pass->device, name);
}

void dt_pass_lap(struct dt_pass *pass, enum dt_phase_kind kind)
{
    struct dt_timeline *timeline = pass->timeline;
    if (kind == DT_PHASE_EXCHANGE)
        dt_pass_range(pass, NULL);
    if (timeline->phases == NULL || (!timeline->open && !pass->compute->host))
        return;
    (void)add_mark(timeline, (int)kind, NO_BLOCK, -1);
    timeline->open = false;
}

static void pass_block(struct dt_pass *pass, enum dt_block_kind kind)
{
    if (pass->timeline->phases == NULL)
        return;
    dt_pass_begin(pass);
    (void)add_mark(pass->timeline, DT_PHASE_REST, (int)kind, -1);
    pass->timeline->open = false;
}

static enum dt_exchange_kind kind_of(const struct dt_pass *pass, const struct dt_request *request)
{
    if (request == &pass->exchanges.rotation)
        return DT_EXCHANGE_RING;
    if (request == &pass->exchanges.partner)
        return DT_EXCHANGE_CFG;
    return request >= pass->exchanges.back && request < pass->exchanges.back + pass->plan.chunks
               ? DT_EXCHANGE_BACK
               : DT_EXCHANGE_FORTH;
}

void dt_pass_posted(struct dt_pass *pass, struct dt_request *request)
{
    pass->timeline->posting = (int)kind_of(pass, request);
    request->mark = pass->timeline->count - 1;
    dt_pass_range(pass, "exchange");
}

dt_status dt_pass_wait(struct dt_pass *pass, struct dt_comm *comm, struct dt_request *request)
{
    struct dt_timeline *timeline = pass->timeline;
    dt_pass_lap(pass, DT_PHASE_REST);
    dt_pass_begin(pass);
    dt_pass_range(pass, "wait");
    dt_status status = comm->ops->wait(comm, request);
    dt_pass_range(pass, NULL);
    DT_TRY(status);
    if (timeline->phases == NULL)
        return DT_OK;
    struct dt_exchanged *exchanged = &timeline->phases->exchanges[kind_of(pass, request)];
    timeline->posting = (int)kind_of(pass, request);
    exchanged->count++;
    exchanged->bytes += request->bytes;
    bool known = request->mark >= 0 && request->mark < timeline->count;
    (void)add_mark(timeline, DT_PHASE_EXCHANGE, NO_BLOCK, known ? request->mark : -1);
    timeline->open = false;
    timeline->phases->exchange_bytes += request->bytes;
    return DT_OK;
}

/* One denoising step: the operations of the network's family, classifier-free guidance (Ho &
 * Salimans 2022) and the DDIM update (Song et al. 2021). */

#define GUIDANCE_SCALE   4.0f
#define STEP_PATIENCE_NS (600 * DT_NS_PER_SECOND) /* limit of a step; the controller's is shorter */

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
static void guide_image(struct dt_pass *pass, int i)
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

static dt_status sample_latent(struct dt_pass *pass)
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
        guide_image(pass, i);
        if (pass->workload.input[0] == '\0')
            pass->compute->rows.sampler(pass->device, &op);
    }
    return DT_OK;
}

/* Data that changes between steps is copied to the device first, so that the
 * rest can be a graph. */
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
    pass_block(pass, DT_BLOCK_EMBED);
    for (int i = 0; i < depth; i++) {
        dt_pass_range(pass, "block");
        dt_status status = dt_pass_run(pass, family->block, i, depth);
        dt_pass_range(pass, NULL);
        DT_TRY(status);
        pass_block(pass, DT_BLOCK_BLOCK);
    }
    DT_TRY(dt_pass_run(pass, family->final, 0, 1));
    pass_block(pass, DT_BLOCK_FINAL);
    DT_TRY(sample_latent(pass));
    pass_block(pass, DT_BLOCK_SAMPLER);
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

/* The first steps run directly: libraries load kernels and connect ranks, and
 * exchanges are checksummed. */
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
    timeline_end(pass->timeline);
    return pass->compute->finish(pass->device, dt_clock_ns() + STEP_PATIENCE_NS, check_comms, pass);
}

dt_status dt_pass_step(struct dt_pass *pass, struct dt_phases *phases)
{
    pass->compute->threads(pass->device, pass->plan.threads);
    timeline_start(pass->timeline, phases);
    dt_pass_range(pass, "step");
    dt_status status = run_step(pass, phases);
    dt_pass_range(pass, NULL);
    if (status == DT_OK)
        status = timeline_stop(pass->timeline);
    pass->counted += pass->counted < DT_COUNTED_STEPS;
    return status;
}

void dt_pass_reset(struct dt_pass *pass)
{
    pass->step = 0;
}
