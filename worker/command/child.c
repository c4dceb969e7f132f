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
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT_BYTES ((size_t)64 << 20) /* of an output; the rest is read and dropped */
#define LAST_READS 32                 /* of each output after the end: more than a pipe holds */

struct child {
    pid_t pid;
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
    child->pid = piped ? fork() : -1;
    if (child->pid == 0)
        become(argv, ends);
    for (int i = 1; i < 6; i += 2)
        close(ends[i]);
    child->from[0] = ends[0];
    child->from[1] = ends[2];
    child->failure = ends[4];
    child->process = child->pid > 0 ? (int)syscall(SYS_pidfd_open, child->pid, 0) : -1;
    if (child->pid > 0)
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

static bool has_ended(const struct child *child)
{
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid != 0;
}

/* Until the command has ended, also when it has closed its outputs before; then what is left in them, which may be open in
 * processes that it has left behind. */
static dt_status listen(struct child *child, int64_t timeout_ns, struct dt_wire *wire,
                        struct dt_child_output *output)
{
    int reads = 0;
    for (bool ended = false; reads < LAST_READS; reads += ended) {
        struct pollfd pollers[] = {{.fd = child->from[0], .events = POLLIN},
                                   {.fd = child->from[1], .events = POLLIN},
                                   {.fd = child->process, .events = POLLIN},
                                   {.fd = wire->in, .events = 0}};
        poll(pollers, 4, ended ? 0 : 100);
        if (pollers[0].revents != 0)
            drain(&child->from[0], &output->out);
        if (pollers[1].revents != 0)
            drain(&child->from[1], &output->err);
        if ((pollers[3].revents & (POLLHUP | POLLERR)) != 0)
            return dt_fail(DT_EDEAD, "the controller has ended");
        if (ended && pollers[0].revents == 0 && pollers[1].revents == 0)
            break;
        if (!ended && has_ended(child)) {
            output->wall_ns = dt_clock_ns() - child->began_ns;
            ended = true;
        }
        DT_TRY(beat(wire));
        if (!ended && dt_clock_ns() - child->began_ns > timeout_ns)
            return dt_fail(DT_FAILED, "the command did not end within %.0f s (--timeout)",
                           (double)timeout_ns * 1e-9);
    }
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

dt_status dt_child_run(char *const argv[], int64_t timeout_ns, struct dt_wire *wire,
                       struct dt_child_output *output, int64_t *peak_bytes)
{
    struct child child;
    struct rusage usage = {.ru_maxrss = 0};
    int wait_status = 0, exec_error = 0;
    *output = (struct dt_child_output){.wall_ns = 0};
    *peak_bytes = 0;
    DT_TRY(start(argv, &child));
    setpgid(child.pid, child.pid); /* the child does it too: whoever comes first */
    dt_status status = read(child.failure, &exec_error, sizeof exec_error) >= 0
                           ? DT_OK
                           : dt_fail(DT_ELIB, "cannot start the command: %s", strerror(errno));
    if (status == DT_OK)
        status = listen(&child, timeout_ns, wire, output);
    if (status < 0)
        kill(-child.pid, SIGKILL);
    while (wait4(child.pid, &wait_status, 0, &usage) < 0 && errno == EINTR)
        ;
    kill(-child.pid, SIGKILL); /* what it left behind */
    close(child.failure);
    if (child.process >= 0)
        close(child.process);
    for (int i = 0; i < 2; i++)
        if (child.from[i] >= 0)
            close(child.from[i]);
    *peak_bytes = (int64_t)usage.ru_maxrss * 1024;
    DT_TRY(status);
    return judge(wait_status, exec_error, argv[0], output);
}
