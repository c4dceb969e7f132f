/* SPDX-License-Identifier: MIT */
/* Marks are numbered through a step and read once, when it is done: to read one earlier would make the device wait.
 * When there are more than a device keeps, the full table is read in the middle; that time is not counted. */
#include "kernels/pass_int.h"

#include "base/clock.h"

#include <stdlib.h>

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
    int64_t base_ns;  /* of mark 0 within the step */
    int64_t block_ns; /* where the block began */
    int64_t step_ns;  /* of the last step, by the device's clock */
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

void dt_timeline_start(struct dt_timeline *timeline, struct dt_phases *phases)
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

void dt_timeline_end(struct dt_timeline *timeline)
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

dt_status dt_timeline_stop(struct dt_timeline *timeline)
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

void dt_pass_block(struct dt_pass *pass, enum dt_block_kind kind)
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
