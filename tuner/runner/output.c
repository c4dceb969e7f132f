/* SPDX-License-Identifier: MIT */
#include "tuner/runner/runner.h"

#include "base/clock.h"
#include "tuner/runner/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MOST (1 << 20)
#define TURN_MS     50 /* interval of checks for interrupts */
#define GRACE_NS    (DT_NS_PER_SECOND / 2)

extern char **environ;

static bool read_some(int fd, struct dt_text *text)
{
    char block[4096];
    ssize_t n = read(fd, block, sizeof block);
    if (n > 0 && text->size < OUTPUT_MOST)
        dt_text_add_bytes(text, block, (size_t)n);
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Reads until both pipes are closed; false when the time is up. */
static bool read_pipes(const struct dt_supervised *child, int64_t deadline_ns,
                       struct dt_output *output)
{
    bool out_open = true, messages_open = true;
    while (out_open || messages_open) {
        struct pollfd polled[2] = {{out_open ? child->from : -1, POLLIN, 0},
                                   {messages_open ? child->messages : -1, POLLIN, 0}};
        if (dt_clock_machine_ns() >= deadline_ns || dt_group_interrupted != 0)
            return false;
        if (poll(polled, 2, TURN_MS) <= 0)
            continue;
        if (polled[0].revents != 0)
            out_open = read_some(child->from, &output->out);
        if (polled[1].revents != 0)
            messages_open = read_some(child->messages, &output->messages);
    }
    return true;
}

/* Waits for the end of a child whose pipes are closed. */
static bool await_end(struct dt_supervised *child, int64_t deadline_ns, struct dt_ended *end)
{
    while (!dt_supervisor_ended(child, end)) {
        if (dt_clock_machine_ns() >= deadline_ns || dt_group_interrupted != 0)
            return false;
        usleep(1000);
    }
    return true;
}

static void describe_end(bool ended, int status, char how[80])
{
    if (!ended)
        snprintf(how, 80, "did not answer in time");
    else if (WIFSIGNALED(status))
        snprintf(how, 80, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        snprintf(how, 80, "exited with %d", WEXITSTATUS(status));
}

dt_status dt_output_read(const char *path, char *const argv[], int64_t deadline_ns,
                         struct dt_output *output)
{
    static const char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM];
    struct dt_supervised child;
    struct dt_ended end = {0, 0};
    const struct dt_supervisor_program program = {path, argv, environ, 1, 0, 1};
    DT_TRY(dt_supervisor_start(&program, folders, &child));
    *output = (struct dt_output){.how = ""};
    bool ended = read_pipes(&child, deadline_ns, output) && await_end(&child, deadline_ns, &end);
    dt_supervisor_stop(&child, ended ? 0 : GRACE_NS);
    describe_end(ended, end.status, output->how);
    if (dt_group_interrupted == 0)
        return DT_OK;
    dt_output_fini(output);
    return dt_fail(DT_EINTR, "interrupted");
}

void dt_output_fini(struct dt_output *output)
{
    dt_text_fini(&output->out);
    dt_text_fini(&output->messages);
}
