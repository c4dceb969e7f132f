/* SPDX-License-Identifier: MIT */
#include "worker/command/child.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT_BYTES ((size_t)64 << 20) /* of an output; the rest is read and dropped */
#define LAST_READS 32                 /* of each output after the end: more than a pipe holds */

struct child {
    struct dt_program_run run;
    struct dt_wire *wire;
    struct dt_child_output *output;
    int process; /* readable when it has ended; -1: the system has no pidfd */
    int from[2]; /* its standard output and error; -1: ended */
    int failure; /* carries errno of exec; its end says that the program runs */
    int64_t began_ns;
};

void dt_child_output_fini(struct dt_child_output *output)
{
    dt_text_fini(&output->out);
    dt_text_fini(&output->err);
}

static void become(char *const argv[], const int ends[6])
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(ends[1], STDOUT_FILENO) >= 0 &&
        dup2(ends[3], STDERR_FILENO) >= 0)
        execvp(argv[0], argv);
    int error = errno;
    if (write(ends[5], &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

static dt_status start(char *const argv[], struct child *child)
{
    int ends[6] = {-1, -1, -1, -1, -1, -1};
    bool piped = pipe2(ends, O_CLOEXEC) == 0 && pipe2(ends + 2, O_CLOEXEC) == 0 &&
                 pipe2(ends + 4, O_CLOEXEC) == 0;
    child->began_ns = dt_clock_ns();
    child->run.pid = piped ? fork() : -1;
    if (child->run.pid == 0)
        become(argv, ends);
    for (int i = 1; i < 6; i += 2)
        close(ends[i]);
    child->from[0] = ends[0];
    child->from[1] = ends[2];
    child->failure = ends[4];
    child->process = child->run.pid > 0 ? (int)syscall(SYS_pidfd_open, child->run.pid, 0) : -1;
    if (child->run.pid > 0)
        return DT_OK;
    return dt_fail(DT_ELIB, "cannot start the command: %s", strerror(errno));
}

/* Reads what has come; closes the descriptor at its end. NUL would end the text for the expressions of --time. */
static void drain(int *from, struct dt_text *text)
{
    char block[65536];
    ssize_t got = read(*from, block, sizeof block);
    for (char *nul = block; got > 0 && (nul = memchr(nul, 0, (size_t)(block + got - nul))) != NULL;)
        *nul = ' ';
    if (got > 0 && text->size < KEPT_BYTES)
        dt_text_add_bytes(text, block, (size_t)got);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
        close(*from);
        *from = -1;
    }
}

static dt_status beat(struct dt_wire *wire)
{
    if (dt_clock_ns() - wire->last_write_ns < DT_NS_PER_SECOND)
        return DT_OK;
    json_t *message = json_pack("{s:s}", "op", "heartbeat");
    dt_status status = dt_wire_write(wire, message);
    json_decref(message);
    return status;
}

/* What has come by now, a heartbeat, and whether the controller is there. milliseconds: to wait for something. *more: it read anything. */
static dt_status attend(struct child *child, int milliseconds, bool *more)
{
    struct pollfd pollers[] = {{.fd = child->from[0], .events = POLLIN},
                               {.fd = child->from[1], .events = POLLIN},
                               {.fd = child->process, .events = POLLIN},
                               {.fd = child->wire->in, .events = 0}};
    poll(pollers, 4, milliseconds);
    if (pollers[0].revents != 0)
        drain(&child->from[0], &child->output->out);
    if (pollers[1].revents != 0)
        drain(&child->from[1], &child->output->err);
    *more = pollers[0].revents != 0 || pollers[1].revents != 0;
    if ((pollers[3].revents & (POLLHUP | POLLERR)) != 0)
        return dt_fail(DT_EDEAD, "the controller has ended");
    return beat(child->wire);
}

/* Until the command has ended, also when it has closed its outputs before; then what is left in them, which may be open in
 * processes that it has left behind. */
static dt_status listen(struct child *child, int64_t timeout_ns)
{
    for (bool more; !child->run.ended;) {
        DT_TRY(attend(child, 100, &more));
        dt_leftovers_reap(&child->run);
        child->output->wall_ns = dt_clock_ns() - child->began_ns;
        if (!child->run.ended && child->output->wall_ns > timeout_ns)
            return dt_fail(DT_FAILED, "the command did not end within %.6g s (--timeout)",
                           (double)timeout_ns * 1e-9);
    }
    bool more = true;
    for (int reads = 0; more && reads < LAST_READS; reads++)
        DT_TRY(attend(child, 0, &more));
    return DT_OK;
}

/* While processes are being ended: one that waits until its output is read would not end. */
static dt_status attend_end(void *context)
{
    bool more;
    return attend(context, 0, &more);
}

static dt_status refuse_left(const struct dt_leftovers *left, const struct dt_child_rules *rules)
{
    const struct dt_leftover *one = dt_leftovers_disturbing(left);
    if (one != NULL && one->port > 0)
        return dt_fail(DT_FAILED,
                       "the command left process %d (%s) behind, which listened on port %d and "
                       "would answer for later plans; it was ended",
                       (int)one->pid, one->name, one->port);
    if (one != NULL)
        return dt_fail(
            DT_FAILED,
            "the command left process %d (%s) behind, which kept %.2f of a core busy; it "
            "was ended",
            (int)one->pid, one->name, one->cores);
    if (left->count > 0 && rules->leave_nothing)
        return dt_fail(DT_FAILED,
                       "the command left process %d (%s) behind (--leftovers fail); it was ended",
                       (int)left->named[0].pid, left->named[0].name);
    return DT_OK;
}

static bool speaks_of_memory(const struct dt_child_output *output)
{
    static const char *const words[] = {"out of memory", "OutOfMemory", "cannot allocate memory",
                                        "MemoryError", "bad_alloc"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasestr(dt_text_at(&output->err), words[i]) != NULL ||
            strcasestr(dt_text_at(&output->out), words[i]) != NULL)
            return true;
    return false;
}

static dt_status judge(int wait_status, int exec_error, const char *program,
                       struct dt_child_output *output)
{
    char how[80], tail[300];
    if (exec_error != 0)
        return dt_fail(DT_EUSAGE, "the program '%s' of the command cannot be run: %s", program,
                       strerror(exec_error));
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0)
        return DT_OK;
    if (WIFEXITED(wait_status))
        snprintf(how, sizeof how, "exited with %d", WEXITSTATUS(wait_status));
    else
        snprintf(how, sizeof how, "was killed by signal %d", WTERMSIG(wait_status));
    dt_timing_tail(output, tail, sizeof tail);
    return dt_fail(speaks_of_memory(output) ? DT_ENOMEM : DT_FAILED, "the command %s%s%s", how,
                   tail[0] != 0 ? "; its output ends with: " : " and printed nothing", tail);
}

/* To the end of all that runs below this process. */
static dt_status run_to_end(struct child *child, const struct dt_child_rules *rules,
                            int *exec_error, struct dt_leftovers *left)
{
    struct dt_error error = {DT_OK, ""};
    struct dt_leftovers_wait wait = {attend_end, child, DT_LEFTOVERS_GRACE_NS};
    dt_status status = read(child->failure, exec_error, sizeof *exec_error) >= 0
                           ? DT_OK
                           : dt_fail(DT_ELIB, "cannot start the command: %s", strerror(errno));
    if (status == DT_OK)
        status = listen(child, rules->timeout_ns);
    if (status == DT_OK)
        status = dt_leftovers_find(&wait, &child->run, left);
    dt_error_keep(&error, status);
    if (status == DT_EDEAD)
        wait.grace_ns = 0;
    dt_error_keep(&error, dt_leftovers_end(&wait, &child->run));
    return dt_error_raise(&error);
}

dt_status dt_child_run(char *const argv[], const struct dt_child_rules *rules, struct dt_wire *wire,
                       struct dt_child_output *output, struct dt_leftovers *left)
{
    struct child child = {.wire = wire, .output = output};
    int exec_error = 0;
    *output = (struct dt_child_output){.wall_ns = 0};
    *left = (struct dt_leftovers){0};
    DT_TRY(start(argv, &child));
    setpgid(child.run.pid, child.run.pid); /* the child does it too: whoever comes first */
    dt_status status = run_to_end(&child, rules, &exec_error, left);
    close(child.failure);
    if (child.process >= 0)
        close(child.process);
    for (int i = 0; i < 2; i++)
        if (child.from[i] >= 0)
            close(child.from[i]);
    output->peak_bytes = child.run.peak_bytes;
    DT_TRY(status);
    DT_TRY(judge(child.run.wait_status, exec_error, argv[0], output));
    return refuse_left(left, rules);
}
