/* SPDX-License-Identifier: MIT */
#include "worker/requests.h"
#include "base/clock.h"
#include "base/host.h"
#include "model/workload_json.h"
#include "space/dit/dit.h"
#include "worker/wire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

/* watch - ends a rank whose controller or rank 0 has ended, even in an exchange that never ends
 *
 * Between requests a rank sleeps in a read and sees the end of its input there. While it works,
 * a timer checks every five seconds (a check takes a microsecond), and exits at once when the
 * other side has ended.
 */

/* A timer whose signal goes to the thread that started the watch, never to one that a library has
 * started: those of NCCL, NVML and cuDNN would have to bear interrupted calls. */

#define PERIOD_SECONDS 5

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* glibc before 2.38 has no name for it */
#endif

static volatile sig_atomic_t watched = -1;
static timer_t timer;
static bool ticking;

/* Safe in a signal handler. */
static bool hung_up(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLRDHUP};
    int unread = 0;
    return poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0 &&
           ioctl(fd, FIONREAD, &unread) == 0 && unread == 0;
}

static void note_signal(int number)
{
    int before = errno;
    (void)number;
    if (hung_up(watched))
        _exit(1);
    errno = before;
}

/* Between start and stop the process exits with 1 when the other side of wire has
 * ended. One wire at a time. */
static void watch_start(const struct dt_wire *wire)
{
    const struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    const struct timespec period = {.tv_sec = PERIOD_SECONDS};
    const struct itimerspec often = {period, period};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    if (wire->pending.size > 0) /* a request is pending, so the other side exists */
        return;
    event.sigev_notify_thread_id = gettid();
    watched = wire->in;
    sigaction(SIGALRM, &action, NULL);
    ticking = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    if (ticking)
        timer_settime(timer, 0, &often, NULL);
}

static void watch_stop(void)
{
    if (ticking)
        timer_delete(timer);
    ticking = false;
    watched = -1;
}

/* Peak rates of a device, the ceilings of a plan's rates: a large product, and a large copy by the
 * call that plans use. All ranks measure at once and their rates are added. */

#define MOST_BYTES  (INT64_C(256) << 20) /* size of a copy: more than any cache */
#define HOST_BYTES  (INT64_C(32) << 20)
#define ROW_BYTES   (INT64_C(1) << 20)
#define LEAST_BYTES ROW_BYTES
#define COPY_NS     (DT_NS_PER_SECOND / 10)
#define PATIENCE_NS (60 * DT_NS_PER_SECOND)

/* The best of several copies; each byte is read and written once. */
static dt_status best_copy(struct dt_rank *self, char *memory, int64_t bytes, double *rate)
{
    const struct dt_compute *compute = self->compute;
    const struct dt_copy op = {.to = memory + bytes,
                               .from = memory,
                               .count = {1, 1, bytes / ROW_BYTES},
                               .to_stride = {0, 0, ROW_BYTES / 4},
                               .from_stride = {0, 0, ROW_BYTES / 4},
                               .width = ROW_BYTES / 4,
                               .element = 4};
    int64_t end = dt_clock_ns() + COPY_NS;
    compute->memory.fill(self->device, memory, 1, 2 * bytes);
    DT_TRY(compute->finish(self->device, dt_clock_ns() + PATIENCE_NS, NULL, NULL));
    do {
        int64_t start = dt_clock_ns();
        compute->rows.copy(self->device, &op);
        DT_TRY(compute->finish(self->device, start + PATIENCE_NS, NULL, NULL));
        double now = 2e9 * (double)bytes / (double)(dt_clock_ns() - start);
        *rate = now > *rate ? now : *rate;
    } while (dt_clock_ns() < end);
    return DT_OK;
}

/* Uses free memory; 0 where there is too little. */
static dt_status copy_rate(struct dt_rank *self, double *rate)
{
    const struct dt_compute *compute = self->compute;
    int64_t there = 0, total = 0, bytes = compute->host ? HOST_BYTES : MOST_BYTES;
    void *memory = NULL;
    DT_TRY(compute->memory.space(self->device, &there, &total));
    while (bytes > there / 8 / (self->seat.host_size > 0 ? self->seat.host_size : 1))
        bytes /= 2;
    if (bytes < LEAST_BYTES)
        return DT_OK;
    DT_TRY(compute->memory.alloc(self->device, 2 * bytes, &memory));
    dt_status status = best_copy(self, memory, bytes, rate);
    compute->memory.release(self->device, memory);
    return status;
}

static json_t *measure_peak(struct dt_rank *self, dt_status *status)
{
    double flop_rate = 0, byte_rate = 0;
    if (*status == DT_OK)
        *status = self->compute->peak(self->device, self->workload.dtype, &flop_rate);
    if (*status == DT_OK)
        *status = copy_rate(self, &byte_rate);
    return *status == DT_OK ? json_pack("[f,f]", flop_rate, byte_rate) : NULL;
}

static dt_status request_peak(struct dt_rank *self, const json_t *request, json_t **answer)
{
    (void)request;
    json_auto_t *parts = NULL;
    json_t *part;
    size_t i;
    double sums[2] = {0, 0};
    dt_status status = dt_seat_threads(&self->seat, self->seat.core_count);
    if (status == DT_OK)
        status = dt_rank_align(self);
    json_t *mine = measure_peak(self, &status);
    DT_TRY(dt_rank_settle(self, status, mine, &parts));
    json_array_foreach(parts, i, part) for (size_t k = 0; k < 2; k++)
    {
        sums[k] += json_real_value(json_array_get(part, k));
    }
    if (self->seat.rank == 0)
        *answer = json_pack("{s:s,s:f}", "op", "peak", "flop_rate", sums[0]);
    if (self->seat.rank == 0 && sums[1] > 0)
        json_object_set_new(*answer, "copy_bytes_per_second", json_real(sums[1]));
    return DT_OK;
}

/* Three stages with an agreement after each, so that a rank that fails never leaves the
 * others inside an exchange: reading and sizing (alone), making resident (collective), the
 * first two steps (collective). */

#define WHAT "the request prepare"

static struct dt_loaded *free_place(struct dt_rank *self)
{
    for (int i = 0; i < DT_RANK_RESIDENTS; i++)
        if (self->residents[i].handle == 0)
            return &self->residents[i];
    return NULL;
}

static dt_status read_plan(struct dt_rank *self, const json_t *request, struct dt_plan *plan)
{
    json_t *object;
    DT_TRY(dt_json_object(request, WHAT, "plan", &object));
    DT_TRY(dt_plan_from_json(object, plan));
    if (plan->ranks != self->seat.size)
        return dt_fail(DT_EINFEASIBLE, "the plan wants ranks=%d, this group has %d", plan->ranks,
                       self->seat.size);
    DT_TRY(dt_dit_check(&self->workload, plan));
    if (free_place(self) == NULL)
        return dt_fail(DT_EINFEASIBLE, "%d plans are resident already: release one",
                       DT_RANK_RESIDENTS);
    return DT_OK;
}

/* Number of this host's ranks that share the memory of this rank's device. */
static int count_sharers(const struct dt_rank *self)
{
    int ranks = self->seat.host_size, devices = self->compute->count();
    if (self->compute->host || devices < 1)
        return ranks;
    return (ranks + devices - 1) / devices;
}

/* Allocates nothing unless there is memory for every rank of the host. */
static dt_status check_memory(struct dt_rank *self, const struct dt_plan *plan)
{
    int64_t need = dt_workload_activation_bytes(&self->workload, plan);
    if (self->weights == NULL)
        need = dt_workload_rank_bytes(&self->workload, plan);
    int64_t there = 0, total = 0;
    DT_TRY(self->compute->memory.space(self->device, &there, &total));
    if (self->weights == NULL)
        self->free_bytes = there;
    self->before_bytes = there;
    there /= count_sharers(self);
    if (need > there)
        return dt_fail(
            DT_ENOMEM,
            "rank %d needs %lld more bytes for this plan, and %lld are available to it on %s",
            self->seat.rank, (long long)need, (long long)there, dt_host_name());
    return DT_OK;
}

/* The controller's rules leave out data types that are not computed here; a caller of one's
 * own may ask for them. */
static dt_status load_weights(struct dt_rank *self)
{
    enum dt_dtype dtype = self->workload.dtype;
    if (self->weights != NULL)
        return DT_OK;
    if (!self->compute->usable(dtype))
        return dt_fail(DT_EUNSUP,
                       "%s is not computed by this processor, or not by the libraries "
                       "that are built in: float32 is",
                       dt_dtype_text(dtype));
    return dt_weights_new(&self->workload, self->device, &self->weights);
}

static dt_status first_step(struct dt_rank *self, struct dt_pass *pass, int64_t *cold_ns)
{
    DT_TRY(dt_rank_align(self));
    int64_t start = dt_clock_ns();
    DT_TRY(dt_pass_step(pass, NULL));
    *cold_ns = dt_clock_ns() - start;
    DT_TRY(dt_rank_beat(self));
    DT_TRY(dt_pass_step(pass, NULL));
    return dt_rank_beat(self);
}

/* A number that is not finite becomes null. */
static json_t *describe_output(const double norm[], const double projections[], int images,
                               int count)
{
    json_t *norms = json_array(), *table = json_array();
    for (int i = 0; i < images; i++) {
        json_t *row = json_array();
        json_array_append_new(norms, dt_json_number(norm[i]));
        for (int k = 0; k < count; k++)
            json_array_append_new(
                row, dt_json_number(projections[(size_t)i * (size_t)count + (size_t)k]));
        json_array_append_new(table, row);
    }
    return json_pack("{s:o,s:o}", "norm", norms, "projections", table);
}

dt_status dt_rank_verify(struct dt_rank *self, const json_t *request,
                         const struct dt_loaded *resident, json_t **verify)
{
    json_t *asked = json_object_get(request, "verify");
    int64_t count, seed;
    if (!json_is_object(asked))
        return DT_OK;
    DT_TRY(dt_json_int(asked, WHAT, "projections", 1, 4096, &count));
    DT_TRY(dt_json_int(asked, WHAT, "seed", INT64_MIN, INT64_MAX, &seed));
    size_t images = (size_t)resident->plan.batch;
    dt_auto_free double *norm = calloc(images, sizeof *norm);
    dt_auto_free double *projections = calloc(images * (size_t)count, sizeof *projections);
    if (norm == NULL || projections == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to verify");
    DT_TRY(dt_pass_verify(resident->pass, (uint64_t)seed, (int)count, norm, projections));
    if (self->seat.rank == 0)
        *verify = describe_output(norm, projections, (int)images, (int)count);
    return DT_OK;
}

static int64_t resident_bytes(const struct dt_rank *self)
{
    int64_t sum = dt_workload_weight_bytes(&self->workload);
    for (int i = 0; i < DT_RANK_RESIDENTS; i++)
        if (self->residents[i].handle != 0)
            sum += dt_pass_bytes(self->residents[i].pass);
    return sum;
}

static json_t *prepare_reply(const struct dt_loaded *resident, const json_t *parts, json_t *verify)
{
    static const char *const counted[] = {"before_bytes", "taken_bytes", "free_bytes",
                                          "total_bytes"};
    json_int_t most = 0;
    json_t *part;
    size_t i;
    json_array_foreach((json_t *)parts, i, part)
    {
        json_int_t bytes = json_integer_value(json_object_get(part, "resident_bytes"));
        most = bytes > most ? bytes : most;
    }
    json_t *answer = json_pack("{s:s,s:i,s:o,s:I,s:o,s:O*,s:b}", "op", "prepared", "handle",
                               resident->handle, "peak_bytes", dt_rank_column(parts, "peak_bytes"),
                               "resident_bytes", most, "cold_ns", dt_rank_column(parts, "cold_ns"),
                               "verify", verify, "verifies_runs", verify != NULL);
    for (size_t k = 0; k < sizeof counted / sizeof counted[0]; k++)
        if (json_object_get(json_array_get(parts, 0), counted[k]) != NULL)
            json_object_set_new(answer, counted[k], dt_rank_column(parts, counted[k]));
    return answer;
}

/* taken_bytes: decrease of the device's free memory since before the weights, including
 * memory taken by libraries. */
static json_t *describe_rank(const struct dt_rank *self, const struct dt_loaded *resident,
                             int64_t cold_ns)
{
    int64_t peak = dt_workload_weight_bytes(&self->workload) + dt_pass_bytes(resident->pass);
    int64_t there = 0, total = 0;
    json_t *part = json_pack("{s:I,s:I,s:I}", "peak_bytes", (json_int_t)peak, "resident_bytes",
                             (json_int_t)resident_bytes(self), "cold_ns", (json_int_t)cold_ns);
    if (!self->compute->host &&
        self->compute->memory.space(self->device, &there, &total) == DT_OK) {
        json_object_set_new(part, "before_bytes", json_integer(self->before_bytes));
        json_object_set_new(part, "taken_bytes", json_integer(self->free_bytes - there));
        json_object_set_new(part, "free_bytes", json_integer(there));
        json_object_set_new(part, "total_bytes", json_integer(total));
    }
    return part;
}

static dt_status first_steps(struct dt_rank *self, const json_t *request,
                             struct dt_loaded *resident, json_t **answer)
{
    int64_t cold_ns = 0;
    json_auto_t *verify = NULL, *parts = NULL;
    json_t *mine = NULL;
    dt_status status = first_step(self, resident->pass, &cold_ns);
    if (status == DT_OK)
        status = dt_rank_verify(self, request, resident, &verify);
    if (status == DT_OK)
        mine = describe_rank(self, resident, cold_ns);
    if (status != DT_EDEAD)
        status = dt_rank_settle(self, status, mine, &parts);
    if (status == DT_OK && self->seat.rank == 0)
        *answer = prepare_reply(resident, parts, verify);
    return status;
}

static dt_status request_prepare(struct dt_rank *self, const json_t *request, json_t **answer)
{
    struct dt_plan plan = {0};
    dt_status status = read_plan(self, request, &plan);
    if (status == DT_OK)
        status = check_memory(self, &plan);
    DT_TRY(dt_links_agree(&self->links, status, NULL, NULL));
    status = dt_seat_threads(&self->seat, plan.threads);
    if (status == DT_OK)
        status = load_weights(self);
    DT_TRY(dt_links_agree(&self->links, status, NULL, NULL));
    DT_TRY(dt_rank_beat(self));
    struct dt_loaded *resident = free_place(self);
    DT_CLEANUP(dt_pass_free_at) struct dt_pass *pass = NULL;
    status = dt_pass_new(&self->workload, &plan, self->weights, self->world, &pass);
    DT_TRY(dt_rank_settle(self, status, NULL, NULL));
    *resident = (struct dt_loaded){.handle = ++self->handles, .plan = plan, .pass = pass};
    dt_pass_reset(pass);
    status = first_steps(self, request, resident, answer);
    if (status < 0)
        *resident = (struct dt_loaded){0};
    else
        pass = NULL;
    return status;
}

#define TOKEN DT_RANK_TOKEN

static dt_status answer_release(struct dt_rank *self, const json_t *request, json_t **answer)
{
    struct dt_loaded *resident = NULL;
    DT_TRY(dt_rank_find(self, request, &resident));
    dt_pass_free(resident->pass);
    if (self->seat.rank == 0)
        *answer = json_pack("{s:s,s:i}", "op", "released", "handle", resident->handle);
    *resident = (struct dt_loaded){0};
    return DT_OK;
}

static dt_status write_output(struct dt_rank *self, const json_t *request, json_t **answer)
{
    struct dt_loaded *resident = NULL;
    const char *path;
    DT_TRY(dt_rank_find(self, request, &resident));
    DT_TRY(dt_json_string(request, "the request write", "path", &path));
    DT_TRY(dt_rank_settle(self, dt_pass_write(resident->pass, path), NULL, NULL));
    if (self->seat.rank == 0)
        *answer = json_pack("{s:s}", "op", "written");
    return DT_OK;
}

static dt_status answer_quit(struct dt_rank *self, const json_t *request, json_t **answer)
{
    (void)request, (void)answer;
    self->over = true;
    return DT_OK;
}

static const struct request {
    const char *name;
    dt_status (*execute)(struct dt_rank *self, const json_t *request, json_t **answer);
} table[] = {
    {"prepare", request_prepare},      {"run", dt_request_run},     {"release", answer_release},
    {"write", write_output},           {"trace", dt_request_trace}, {"peak", request_peak},
    {"exchange", dt_request_exchange}, {"quit", answer_quit},
};

static dt_status execute_request(struct dt_rank *self, const json_t *request, json_t **answer)
{
    const char *name = dt_wire_op(request);
    dt_auto_text known = {0};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, name) == 0)
            return table[i].execute(self, request, answer);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        dt_text_add(&known, "%s%s", i > 0 ? ", " : "", table[i].name);
    return dt_fail(DT_EPROTO, "unknown request '%.40s'; this worker knows %s", name,
                   dt_text_at(&known));
}

dt_status dt_rank_refuse(struct dt_rank *self, dt_status why)
{
    const char *kind = "error";
    if (why == DT_ENOMEM)
        kind = "memory";
    else if (why == DT_EINFEASIBLE || why == DT_EUSAGE || why == DT_EUNSUP)
        kind = "infeasible";
    json_t *message = json_pack("{s:s,s:s,s:s}", "op", "failed", "kind", kind, "say", dt_message());
    if (self->broken) /* this process ends */
        json_object_set_new(message, "last", json_true());
    return dt_wire_send(&self->wire, message);
}

dt_status dt_rank_serve(struct dt_rank *self, const json_t *request)
{
    json_t *answer = NULL;
    watch_start(self->seat.rank == 0 ? &self->wire : &self->links.wires[0]);
    dt_status status = execute_request(self, request, &answer);
    watch_stop();
    if (status == DT_EDEAD)
        return status;
    if (self->seat.rank == 0 && !self->over)
        DT_TRY(status < 0 ? dt_rank_refuse(self, status) : dt_wire_send(&self->wire, answer));
    return self->broken ? dt_fail(DT_EDEAD, "a rank was lost within an exchange") : DT_OK;
}

dt_status dt_rank_beat(struct dt_rank *self)
{
    if (self->seat.rank != 0 || dt_clock_ns() - self->wire.last_write_ns < DT_NS_PER_SECOND)
        return DT_OK;
    if (self->wire.pending.size == 0 && hung_up(self->wire.in))
        return dt_fail(DT_EDEAD, "the controller has ended");
    return dt_wire_send(&self->wire, json_pack("{s:s}", "op", "heartbeat"));
}

dt_status dt_rank_find(struct dt_rank *self, const json_t *request, struct dt_loaded **resident)
{
    int64_t handle;
    DT_TRY(dt_json_int(request, "the request", "handle", 1, INT32_MAX, &handle));
    for (int i = 0; i < DT_RANK_RESIDENTS; i++)
        if (self->residents[i].handle == handle) {
            *resident = &self->residents[i];
            return DT_OK;
        }
    return dt_fail(DT_EPROTO, "no plan of handle %lld is resident", (long long)handle);
}

dt_status dt_rank_align(struct dt_rank *self)
{
    struct dt_comm *world = self->world;
    struct dt_request request = {.bytes = 0};
    char *tokens = self->tokens;
    DT_TRY(world->ops->barrier(world));
    DT_TRY(world->ops->barrier(world));
    for (int i = 0; i < (tokens != NULL ? 2 : 0); i++) {
        DT_TRY(dt_comm_alltoall(world, tokens, tokens + world->size * TOKEN, TOKEN, &request));
        DT_TRY(world->ops->wait(world, &request));
    }
    return DT_OK;
}

/* The status makes the group unusable: an exchange or a device is lost. On the
 * processor nothing is lost. */
static bool is_lost(const struct dt_rank *self, dt_status status)
{
    bool lost = status == DT_ETIMEOUT || status == DT_ELIB;
    if (self->links.size == 1)
        return lost && !self->compute->host;
    return lost || status == DT_ENOMEM;
}

/* Other ranks may wait on their devices for data that this rank will never send. The
 * first error is reported. */
static dt_status abort_exchanges(struct dt_rank *self, dt_status status)
{
    struct dt_comm *host = self->host;
    struct dt_error first = {DT_OK, ""};
    dt_error_keep(&first, status);
    if (self->links.size > 1 && host->ops->abort != NULL)
        dt_error_keep(&first, host->ops->abort(host, dt_clock_ns() + DT_NS_PER_SECOND));
    return dt_error_raise(&first);
}

dt_status dt_rank_settle(struct dt_rank *self, dt_status status, json_t *mine, json_t **parts)
{
    if (is_lost(self, status))
        status = abort_exchanges(self, status);
    status = dt_links_agree(&self->links, status, mine, parts);
    self->broken = is_lost(self, status);
    return status;
}

json_t *dt_rank_column(const json_t *parts, const char *key)
{
    json_auto_t *column = json_array();
    json_t *part;
    size_t i;
    json_array_foreach((json_t *)parts, i, part)
    {
        if (json_array_append(column, json_object_get(part, key)) != 0)
            return NULL;
    }
    return json_incref(column);
}
