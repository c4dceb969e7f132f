/* SPDX-License-Identifier: MIT */
/* One request, one answer. While it waits this process sleeps in poll on the worker's two streams; it wakes once a
 * second to see whether a signal arrived in between. */
#include "tuner/process/group_int.h"

#include "base/clock.h"
#include "tuner/process/launch.h"
#include "worker/wire.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_NS DT_NS_PER_SECOND
#define KEPT    4096
#define DEATH_NS                                                                                   \
    (2 * DT_NS_PER_SECOND) /* how long the end of a program may follow the end of its output */

volatile int dt_group_interrupted;

struct dt_group {
    struct dt_supervised process;
    struct dt_wire wire;
    json_t *hello, *ready;
    const char *phase; /* "preparing": what the failure sentence says */
    char messages[KEPT + 1];
    size_t kept;
    bool alive;
};

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

bool dt_group_alive(const struct dt_group *group)
{
    return group != NULL && group->alive;
}

const char *dt_group_stderr(const struct dt_group *group)
{
    return group->messages;
}

/* Reads what is there of standard error and keeps its end. False at its end. */
static bool drain(struct dt_group *group)
{
    char block[65536];
    ssize_t got = read(group->process.messages, block, sizeof block);
    if (got <= 0)
        return got < 0 && (errno == EINTR || errno == EAGAIN);
    size_t size = (size_t)got < KEPT ? (size_t)got : KEPT;
    size_t stay = group->kept + size <= KEPT ? group->kept : KEPT - size;
    memmove(group->messages, group->messages + group->kept - stay, stay);
    memcpy(group->messages + stay, block + (size_t)got - size, size);
    group->kept = stay + size;
    group->messages[group->kept] = '\0';
    return true;
}

/* The last line of standard error that says something, printable. */
static void last_words(const struct dt_group *group, char out[], size_t room)
{
    size_t end = group->kept;
    while (end > 0 && !isgraph((unsigned char)group->messages[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && group->messages[begin - 1] != '\n')
        begin--;
    size_t n = 0;
    for (size_t i = begin; i < end && n + 1 < room; i++)
        out[n++] = isprint((unsigned char)group->messages[i]) ? group->messages[i] : '?';
    out[n] = '\0';
}

/* Kills the group and says why. */
static dt_status end_group(struct dt_group *group, struct dt_failure *failure,
                           enum dt_outcome outcome, const char *why)
{
    *failure = (struct dt_failure){.outcome = outcome};
    snprintf(failure->cause, sizeof failure->cause, "%s while %s", why, group->phase);
    if (group->alive)
        dt_supervisor_stop(&group->process, outcome == DT_TRIAL_CRASHED ? 0 : DT_NS_PER_SECOND / 5);
    group->alive = false;
    return dt_fail(DT_FAILED, "%s", failure->cause);
}

dt_status dt_group_condemn(struct dt_group *group, struct dt_failure *failure)
{
    char why[200];
    snprintf(why, sizeof why, "%.190s", failure->cause);
    return end_group(group, failure, failure->outcome, why);
}

static void describe_end(int wait_status, char out[], size_t room)
{
    if (WIFSIGNALED(wait_status)) {
        const char *name = sigabbrev_np(WTERMSIG(wait_status));
        snprintf(out, room, "killed by signal %d (SIG%s)", WTERMSIG(wait_status),
                 name != NULL ? name : "?");
    } else {
        snprintf(out, room, "exited with %d", WEXITSTATUS(wait_status));
    }
}

/* The worker's output ended: did the program end, and how? */
static dt_status dead(struct dt_group *group, struct dt_failure *failure)
{
    char why[160] = "closed its output", words[80];
    int wait_status;
    int64_t until = dt_clock_ns() + DEATH_NS;
    bool open = true, ended = false;
    while (!ended && dt_clock_ns() < until) {
        struct pollfd poller = {.fd = group->process.messages, .events = POLLIN};
        if (open && poll(&poller, 1, 5) == 1)
            open = drain(group);
        else if (!open)
            dt_clock_sleep_ns(2000000);
        ended = dt_supervisor_ended(&group->process, &wait_status);
    }
    if (ended)
        describe_end(wait_status, why, sizeof why);
    while (open &&
           (poll(&(struct pollfd){.fd = group->process.messages, .events = POLLIN}, 1, 0) == 1))
        open = drain(group);
    last_words(group, words, sizeof words);
    if (words[0] != '\0') {
        size_t size = strlen(why);
        snprintf(why + size, sizeof why - size, " (it said: %s)", words);
    }
    return end_group(group, failure, DT_TRIAL_CRASHED, why);
}

/* Sleeps until the worker says something, it is time for the next tick, or the deadline; drains standard error. */
static void rest(struct dt_group *group, int64_t deadline_ns)
{
    int64_t now = dt_clock_ns(), until = deadline_ns < now + TICK_NS ? deadline_ns : now + TICK_NS;
    struct pollfd pollers[2] = {{.fd = group->process.from, .events = POLLIN},
                                {.fd = group->process.messages, .events = POLLIN}};
    int timeout = until > now ? (int)((until - now) / 1000000) + 1 : 0;
    if (poll(pollers, 2, timeout) <= 0)
        return;
    if (pollers[1].revents != 0 && !drain(group)) {
        /* its end: poll would report it for ever */
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
        return dead(group, failure);
    if (status == DT_EDEAD || status == DT_EPROTO)
        return end_group(group, failure, DT_TRIAL_PROTOCOL, why);
    return status;
}

/* The next message that is not a heartbeat. */
static dt_status next(struct dt_group *group, int64_t deadline_ns, json_t **message,
                      struct dt_failure *failure)
{
    for (;;) {
        json_t *got = NULL;
        if (dt_group_interrupted != 0)
            return dt_fail(DT_EINTR, "interrupted");
        dt_status status = dt_wire_read(&group->wire, 0, &got);
        if (status == DT_OK && strcmp(dt_wire_op(got), "heartbeat") != 0) {
            *message = got;
            return DT_OK;
        }
        json_decref(got);
        if (status == DT_ETIMEOUT && dt_clock_ns() >= deadline_ns)
            return end_group(group, failure, DT_TRIAL_HUNG, "no answer before the deadline");
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
    return end_group(group, failure, DT_TRIAL_PROTOCOL, why);
}

/* {"op":"failed"}: the worker lives on. */
static dt_status failed(struct dt_group *group, json_t *message, struct dt_failure *failure)
{
    const char *kind = json_string_value(json_object_get(message, "kind"));
    const char *say = json_string_value(json_object_get(message, "say"));
    *failure = (struct dt_failure){.outcome = DT_TRIAL_FAILED};
    if (kind != NULL && strcmp(kind, "memory") == 0)
        failure->outcome = DT_TRIAL_MEMORY;
    if (kind != NULL && strcmp(kind, "infeasible") == 0)
        failure->outcome = DT_TRIAL_INFEASIBLE;
    snprintf(failure->cause, sizeof failure->cause, "%s",
             say != NULL ? say : "the worker gave no reason");
    for (char *c = failure->cause; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    json_decref(message);
    (void)group;
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
    *answer = message;
    return DT_OK;
}

static dt_status say(struct dt_group *group, const json_t *request, struct dt_failure *failure)
{
    if (!group->alive)
        return end_group(group, failure, DT_TRIAL_CRASHED, "the group had ended before");
    dt_status status = dt_wire_write(&group->wire, request);
    return status == DT_EDEAD ? dead(group, failure) : status;
}

dt_status dt_group_call(struct dt_group *group, const json_t *request, const char *answer_op,
                        int64_t deadline_ns, json_t **answer, struct dt_failure *failure)
{
    const char *op = dt_wire_op(request);
    group->phase = strcmp(op, "prepare") == 0 ? "preparing"
                   : strcmp(op, "run") == 0   ? "running"
                                              : "answering";
    DT_TRY(say(group, request, failure));
    return expect(group, answer_op, deadline_ns, answer, failure);
}

/* hello, hello, ready. */
static dt_status greet(struct dt_group *group, const struct dt_launch *launch,
                       const json_t *workload, int64_t deadline_ns, struct dt_failure *failure)
{
    json_t *hello = json_pack("{s:s, s:i, s:i, s:O?}", "op", "hello", "protocol",
                              DT_PROTOCOL_VERSION, "ranks", launch->ranks, "workload", workload);
    if (workload == NULL)
        json_object_set_new(hello, "workload", json_null());
    dt_status status = say(group, hello, failure);
    json_decref(hello);
    if (status == DT_OK)
        status = expect(group, "hello", deadline_ns, &group->hello, failure);
    DT_TRY(status);
    int64_t version = json_integer_value(json_object_get(group->hello, "protocol"));
    if (version < 1 || version > DT_PROTOCOL_VERSION)
        return end_group(group, failure, DT_TRIAL_PROTOCOL,
                         "speaks a protocol version this program does not know");
    DT_TRY(expect(group, "ready", deadline_ns, &group->ready, failure));
    if (dt_group_ranks(group) < 1)
        return end_group(group, failure, DT_TRIAL_PROTOCOL, "'ready' lists no ranks");
    return DT_OK;
}

dt_status dt_group_start(const struct dt_launch *launch, const json_t *workload,
                         int64_t deadline_ns, struct dt_group **out, struct dt_failure *failure)
{
    struct dt_start start;
    DT_TRY(dt_launch_plan(launch, &start));
    struct dt_group *group = calloc(1, sizeof *group);
    dt_status status =
        group == NULL ? dt_fail(DT_ENOMEM, "out of memory")
                      : dt_supervisor_start(start.path, start.argv, start.envp,
                                            (const char(*)[256])start.folders, &group->process);
    dt_launch_fini(&start);
    if (status < 0) {
        free(group);
        return status;
    }
    group->alive = true;
    group->phase = "starting";
    dt_wire_init(&group->wire, group->process.from, group->process.to);
    status = greet(group, launch, workload, deadline_ns, failure);
    if (status < 0) {
        char message[512];
        snprintf(message, sizeof message, "%s", dt_message());
        dt_group_stop(group, DT_NS_PER_SECOND / 5);
        return dt_fail(status, "%s", message);
    }
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

/* Waits for the program's end, reading on what it says, so that it is not stuck in a full pipe. */
static bool await_end(struct dt_group *group, int64_t until, int *wait_status)
{
    char block[65536];
    while (dt_clock_ns() < until) {
        struct pollfd pollers[3] = {{.fd = group->process.status, .events = POLLIN},
                                    {.fd = group->process.messages, .events = POLLIN},
                                    {.fd = group->process.from, .events = POLLIN}};
        if (dt_supervisor_ended(&group->process, wait_status))
            return true;
        poll(pollers, 3, 20);
        bool said = pollers[1].revents != 0 && drain(group);
        if (pollers[2].revents != 0)
            said = read(group->process.from, block, sizeof block) > 0 || said;
        if (!said && pollers[0].revents == 0)
            dt_clock_sleep_ns(1000000);
    }
    return false;
}

bool dt_group_end(struct dt_group *group, bool say_quit, int64_t patience_ns, char how[],
                  size_t room)
{
    int wait_status = 0;
    json_t *quit = json_pack("{s:s}", "op", "quit");
    dt_status said = say_quit ? dt_wire_write(&group->wire, quit) : DT_OK;
    json_decref(quit);
    if (!say_quit) {
        close(group->process.to);
        group->process.to = -1;
    }
    (void)said; /* a worker that is gone has ended */
    if (!await_end(group, dt_clock_ns() + patience_ns, &wait_status))
        return false;
    describe_end(wait_status, how, room);
    dt_supervisor_stop(&group->process, 0);
    group->alive = false;
    return true;
}

void dt_group_stop(struct dt_group *group, int64_t grace_ns)
{
    if (group == NULL)
        return;
    if (group->alive) {
        json_t *quit = json_pack("{s:s}", "op", "quit");
        int64_t until = dt_clock_ns() + grace_ns - grace_ns / 4;
        int wait_status;
        bool ended = grace_ns > 0 && group->process.to >= 0 &&
                     dt_wire_write(&group->wire, quit) == DT_OK &&
                     await_end(group, until, &wait_status);
        json_decref(quit);
        dt_supervisor_stop(&group->process, ended ? 0 : grace_ns / 4);
    }
    dt_wire_fini(&group->wire);
    json_decref(group->hello);
    json_decref(group->ready);
    free(group);
}
