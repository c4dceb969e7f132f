/* SPDX-License-Identifier: MIT */
/* One request, one answer. While waiting, this process sleeps in poll on the worker's two streams, and wakes once a
 * second to check for signals. */
#include "tuner/runner/group_int.h"

#include "base/clock.h"
#include "base/proc.h"
#include "tuner/runner/launch.h"
#include "tuner/runner/pause.h"
#include "worker/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TICK_NS DT_NS_PER_SECOND
#define BEAT_NS (15 * DT_NS_PER_SECOND) /* least time that a heartbeat gives */

volatile int dt_group_interrupted;
struct dt_group_watch dt_group_watch;

const json_t *dt_group_hello(const struct dt_group *group)
{
    return group->hello;
}

const json_t *dt_group_ready(const struct dt_group *group)
{
    return group->ready;
}

int dt_group_ranks(const struct dt_group *group)
{
    return (int)json_array_size(json_object_get(group->ready, "ranks"));
}

int dt_group_rank_of(const struct dt_group *group, int64_t pid)
{
    const json_t *ranks = json_object_get(group->ready, "ranks"), *rank;
    struct dt_proc proc = {.parent = (pid_t)pid};
    size_t i;
    while (proc.parent > 1) {
        json_array_foreach(ranks, i, rank)
        {
            if (json_integer_value(json_object_get(rank, "pid")) == proc.parent)
                return (int)i;
        }
        if (!dt_proc_read(proc.parent, &proc))
            break;
    }
    return -1;
}

bool dt_group_alive(const struct dt_group *group)
{
    return group != NULL && group->alive;
}

void dt_group_extend(struct dt_group *group, int64_t until_ns)
{
    group->until_ns = until_ns;
}

int64_t dt_group_paused_ns(const struct dt_group *group)
{
    return group->paused_ns;
}

static void show(const struct dt_group *group)
{
    if (dt_group_watch.tick != NULL)
        dt_group_watch.tick(dt_group_watch.context, group->shown, group->said);
}

/* Sleeps until the worker writes, the next tick is due, or the deadline passes; drains standard error. */
static void rest(struct dt_group *group, int64_t deadline_ns)
{
    show(group);
    int64_t now = dt_clock_ns(), until = deadline_ns < now + TICK_NS ? deadline_ns : now + TICK_NS;
    struct pollfd pollers[2] = {{.fd = group->process.from, .events = POLLIN},
                                {.fd = group->process.messages, .events = POLLIN}};
    int timeout = until > now ? (int)((until - now) / 1000000) + 1 : 0;
    if (poll(pollers, 2, timeout) <= 0)
        return;
    if (pollers[1].revents != 0 && !dt_group_drain(group)) {
        /* end of file, which poll would report for ever */
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup3(null, group->process.messages, O_CLOEXEC);
        close(null);
        if (pollers[0].revents == 0)
            dt_clock_sleep_ns(1000000);
    }
}

static dt_status misread(struct dt_group *group, dt_status status, struct dt_failure *failure)
{
    char why[160];
    snprintf(why, sizeof why, "%.150s", dt_message());
    if (status == DT_EDEAD && group->wire.pending.size == 0)
        return dt_group_dead(group, failure);
    if (status == DT_EDEAD || status == DT_EPROTO)
        return dt_group_break(group, failure, DT_TRIAL_PROTOCOL, why);
    return status;
}

/* A line of the transcript: '>' to the worker, '<' from it. */
static void note(struct dt_group *group, char direction, const json_t *message)
{
    if (group->transcript == NULL)
        return;
    fprintf(group->transcript, "%c ", direction);
    json_dumpf(message, group->transcript, JSON_COMPACT);
    fputc('\n', group->transcript);
    fflush(group->transcript);
}

/* Number of bytes of the worker's output that have arrived, from its start. */
static size_t arrived(const struct dt_group *group)
{
    int unread = 0;
    if (ioctl(group->process.from, FIONREAD, &unread) != 0)
        unread = 0;
    return group->wire.taken + group->wire.pending.size + (size_t)unread;
}

/* Keeps the heartbeat's text. Returns the request's deadline, which it may extend by the time `more_ns` from now on. */
static int64_t heard(struct dt_group *group, const json_t *beat, int64_t deadline_ns,
                     int64_t more_ns)
{
    const char *said = json_string_value(json_object_get(beat, "say"));
    if (said != NULL) {
        snprintf(group->said, sizeof group->said, "%s", said);
        dt_group_clean(group->said);
    }
    int64_t extended = dt_clock_ns() + more_ns;
    if (extended > group->until_ns)
        extended = group->until_ns;
    return extended > deadline_ns ? extended : deadline_ns;
}

/* The next message that is not a heartbeat. A message that has arrived by the deadline is in time, even behind
 * heartbeats. */
static dt_status next(struct dt_group *group, int64_t deadline_ns, json_t **message,
                      struct dt_failure *failure)
{
    struct dt_pause pause = dt_pause_begin();
    size_t in_time = SIZE_MAX;
    int64_t more_ns = deadline_ns - dt_clock_ns();
    more_ns = more_ns > BEAT_NS ? more_ns : BEAT_NS;
    group->said[0] = '\0';
    show(group);
    for (;;) {
        json_t *got = NULL;
        if (dt_group_interrupted != 0)
            return dt_fail(DT_EINTR, "interrupted");
        dt_pause_look(&pause);
        group->paused_ns = pause.paused_ns;
        bool late = dt_clock_ns() >= deadline_ns;
        if (late && in_time == SIZE_MAX)
            in_time = arrived(group);
        dt_status status = dt_wire_read(&group->wire, 0, &got);
        if (status == DT_OK && strcmp(dt_wire_op(got), "heartbeat") != 0) {
            note(group, '<', got);
            *message = got;
            return DT_OK;
        }
        int64_t until = status == DT_OK && group->wire.taken <= in_time
                            ? heard(group, got, deadline_ns, more_ns)
                            : 0;
        json_decref(got);
        if (until > deadline_ns) {
            deadline_ns = until;
            in_time = SIZE_MAX;
            continue;
        }
        if (status == DT_OK && group->wire.taken < in_time)
            continue;
        if ((status == DT_ETIMEOUT || status == DT_OK) && late)
            return dt_group_hung(group, failure);
        if (status == DT_ETIMEOUT)
            rest(group, deadline_ns);
        else if (status != DT_OK && status != DT_EINTR)
            return misread(group, status, failure);
    }
}

static dt_status unexpected(struct dt_group *group, const char *want, json_t *message,
                            struct dt_failure *failure)
{
    char why[160];
    snprintf(why, sizeof why, "said '%.40s', expected '%s'", dt_wire_op(message), want);
    json_decref(message);
    return dt_group_break(group, failure, DT_TRIAL_PROTOCOL, why);
}

/* Of a private program the sentence without its own output, where there is one; the whole one is for the terminal alone. */
static const char *recorded_sentence(const struct dt_group *group, const json_t *message)
{
    const char *brief = dt_json_text_at(message, "brief"), *say = dt_json_text_at(message, "say");
    if (!group->is_private || brief[0] == '\0')
        return say;
    if (dt_group_watch.confide != NULL)
        dt_group_watch.confide(dt_group_watch.context, say);
    return brief;
}

/* {"op":"failed"}: the worker lives on, unless it says that this is its last answer. */
static dt_status failed(struct dt_group *group, json_t *message, struct dt_failure *failure)
{
    const char *kind = json_string_value(json_object_get(message, "kind"));
    const char *say = recorded_sentence(group, message);
    static const struct {
        const char *kind;
        enum dt_outcome outcome;
    } kinds[] = {{"memory", DT_TRIAL_MEMORY}, {"infeasible", DT_TRIAL_INFEASIBLE},
                 {"wrong", DT_TRIAL_WRONG},   {"limit", DT_TRIAL_LIMIT},
                 {"hung", DT_TRIAL_HUNG},     {"crashed", DT_TRIAL_CRASHED}};
    *failure = (struct dt_failure){.outcome = DT_TRIAL_FAILED};
    for (size_t i = 0; kind != NULL && i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kind, kinds[i].kind) == 0)
            failure->outcome = kinds[i].outcome;
    snprintf(failure->cause, sizeof failure->cause, "%s",
             say[0] != '\0' ? say : "the worker gave no reason");
    dt_group_clean(failure->cause);
    if (json_is_true(json_object_get(message, "last")) && group->alive) {
        dt_supervisor_stop(&group->process, DT_NS_PER_SECOND);
        group->alive = false;
    }
    json_decref(message);
    return dt_fail(DT_FAILED, "%s", failure->cause);
}

static dt_status expect(struct dt_group *group, const char *want, int64_t deadline_ns,
                        json_t **answer, struct dt_failure *failure)
{
    json_t *message = NULL;
    DT_TRY(next(group, deadline_ns, &message, failure));
    if (strcmp(dt_wire_op(message), "failed") == 0)
        return failed(group, message, failure);
    if (strcmp(dt_wire_op(message), want) != 0)
        return unexpected(group, want, message, failure);
    if (group->is_private && json_object_get(message, "read") != NULL) /* what was matched, too */
        json_object_set(message, "read", json_object_get(message, "brief"));
    *answer = message;
    return DT_OK;
}

static dt_status say(struct dt_group *group, const json_t *request, struct dt_failure *failure)
{
    if (!group->alive)
        return dt_group_break(group, failure, DT_TRIAL_CRASHED, "the group had ended before");
    note(group, '>', request);
    dt_status status = dt_wire_write(&group->wire, request);
    return status == DT_EDEAD ? dt_group_dead(group, failure) : status;
}

dt_status dt_group_call(struct dt_group *group, const json_t *request, const char *answer_op,
                        int64_t deadline_ns, json_t **answer, struct dt_failure *failure)
{
    const char *op = dt_wire_op(request);
    group->phase = strcmp(op, "prepare") == 0 ? "preparing"
                   : strcmp(op, "run") == 0   ? "running"
                                              : "answering";
    if (strcmp(op, "prepare") == 0)
        group->shown = "verifying";
    else if (strcmp(op, "run") == 0)
        group->shown =
            strcmp(dt_json_text_at(request, "mode"), "warmup") == 0 ? "warming up" : "measuring";
    group->paused_ns = 0;
    if (group->alive && dt_clock_ns() >= deadline_ns)
        return dt_group_hung(group, failure);
    DT_TRY(say(group, request, failure));
    return expect(group, answer_op, deadline_ns, answer, failure);
}

/* hello, hello, ready. */
static dt_status greet(struct dt_group *group, const struct dt_launch *launch,
                       const json_t *workload, int64_t deadline_ns, struct dt_failure *failure)
{
    const struct dt_assignment *assigned = &launch->assigned;
    json_t *hello = json_pack(
        "{s:s, s:i, s:i, s:O?, s:o}", "op", "hello", "protocol", DT_PROTOCOL_VERSION, "ranks",
        launch->own_ranks > 0 ? launch->own_ranks : launch->ranks, "workload", workload, "job",
        assigned->job != NULL ? json_incref((json_t *)assigned->job) : json_object());
    if (workload == NULL)
        json_object_set_new(hello, "workload", json_null());
    if (assigned->devices > 0)
        json_object_set_new(hello, "devices", json_integer(assigned->devices));
    if (assigned->hosts > 1)
        json_object_set_new(hello, "hosts", json_integer(assigned->hosts));
    dt_status status = say(group, hello, failure);
    json_decref(hello);
    if (status == DT_OK)
        status = expect(group, "hello", deadline_ns, &group->hello, failure);
    DT_TRY(status);
    int64_t version = json_integer_value(json_object_get(group->hello, "protocol"));
    if (version < 1 || version > DT_PROTOCOL_VERSION)
        return dt_group_break(group, failure, DT_TRIAL_PROTOCOL,
                              "speaks a protocol version this program does not know");
    DT_TRY(expect(group, "ready", deadline_ns, &group->ready, failure));
    if (dt_group_ranks(group) < 1)
        return dt_group_break(group, failure, DT_TRIAL_PROTOCOL, "'ready' lists no ranks");
    return DT_OK;
}

dt_status dt_group_start(const struct dt_launch *launch, const json_t *workload,
                         int64_t deadline_ns, struct dt_group **out, struct dt_failure *failure)
{
    struct dt_start start;
    DT_TRY(dt_launch_plan(launch, &start));
    struct dt_group *group = calloc(1, sizeof *group);
    dt_status status =
        group == NULL
            ? dt_fail(DT_ENOMEM, "out of memory")
            : dt_supervisor_start(start.path, start.argv, start.envp, start.processes,
                                  (const char(*)[DT_FOLDER_ROOM])start.folders, &group->process);
    dt_launch_fini(&start);
    if (status < 0) {
        dt_launch_drop(&start);
        free(group);
        return status;
    }
    group->alive = true;
    group->processes = start.processes;
    group->phase = "starting";
    group->shown = "loading";
    group->until_ns = launch->until_ns;
    group->is_private = launch->is_private;
    const char *transcript = launch->unrecorded ? NULL : getenv("DITTUNE_TRANSCRIPT");
    group->transcript = transcript != NULL ? fopen(transcript, "ae") : NULL;
    dt_wire_init(&group->wire, group->process.from, group->process.to);
    status = greet(group, launch, workload, deadline_ns, failure);
    if (status < 0) {
        struct dt_error error = {DT_OK, ""};
        dt_error_keep(&error, status);
        dt_group_stop(group, DT_NS_PER_SECOND / 5);
        return dt_error_raise(&error);
    }
    dt_supervisor_note(&group->process);
    *out = group;
    return DT_OK;
}

dt_status dt_group_release(struct dt_group *group, int handle, int64_t deadline_ns,
                           struct dt_failure *failure)
{
    json_t *answer = NULL, *request = json_pack("{s:s, s:i}", "op", "release", "handle", handle);
    dt_status status = dt_group_call(group, request, "released", deadline_ns, &answer, failure);
    json_decref(request);
    json_decref(answer);
    return status;
}
