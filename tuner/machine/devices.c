/* SPDX-License-Identifier: MIT */
#include "tuner/machine/devices.h"

#include "base/clock.h"
#include "tuner/runner/group.h"
#include "tuner/runner/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANSWER_MOST (1 << 20)
#define TURN_MS     50 /* how soon an interrupt is seen */
#define GRACE_NS    (DT_NS_PER_SECOND / 2)

extern char **environ;

/* What the program has written, and the last line of its messages. */
struct words {
    struct dt_text out, err;
    bool out_open, err_open;
};

static void find_program(const char *chosen, struct dt_devices_answer *answer)
{
    char self[DT_DEVICES_PROGRAM_ROOM - 32];
    chosen = chosen != NULL ? chosen : getenv("DITTUNE_WORKER_CUDA");
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL)
        *slash = '\0';
    if (chosen != NULL)
        snprintf(answer->program, sizeof answer->program, "%s", chosen);
    else
        snprintf(answer->program, sizeof answer->program, "%s/dittune-worker-cuda", self);
    answer->missing = access(answer->program, X_OK) != 0;
}

static bool take(int fd, struct dt_text *text)
{
    char block[4096];
    ssize_t n = read(fd, block, sizeof block);
    if (n > 0 && text->size < ANSWER_MOST)
        dt_text_add_bytes(text, block, (size_t)n);
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Until both pipes are closed or time is up; false when it is up. */
static bool listen_to(const struct dt_supervised *child, int64_t deadline_ns, struct words *words)
{
    while (words->out_open || words->err_open) {
        struct pollfd polled[2] = {{words->out_open ? child->from : -1, POLLIN, 0},
                                   {words->err_open ? child->messages : -1, POLLIN, 0}};
        if (dt_clock_machine_ns() >= deadline_ns || dt_group_interrupted != 0)
            return false;
        if (poll(polled, 2, TURN_MS) <= 0)
            continue;
        if (polled[0].revents != 0)
            words->out_open = take(child->from, &words->out);
        if (polled[1].revents != 0)
            words->err_open = take(child->messages, &words->err);
    }
    return true;
}

/* Its pipes are closed: it has ended, or is about to. */
static bool await_end(struct dt_supervised *child, int64_t deadline_ns, int *status)
{
    while (!dt_supervisor_ended(child, status)) {
        if (dt_clock_machine_ns() >= deadline_ns || dt_group_interrupted != 0)
            return false;
        usleep(1000);
    }
    return true;
}

static const char *last_line(struct dt_text *err)
{
    while (err->size > 0 && err->bytes[err->size - 1] == '\n')
        err->bytes[--err->size] = '\0';
    const char *text = dt_text_at(err), *end = strrchr(text, '\n');
    return end != NULL ? end + 1 : text;
}

static void explain(struct dt_devices_answer *answer, const char *how, struct words *words)
{
    const char *said = last_line(&words->err);
    snprintf(answer->cause, sizeof answer->cause, "%s%s%.300s", how, said[0] != '\0' ? ": " : "",
             said);
    dt_group_clean(answer->cause);
}

static void read_answer(struct dt_devices_answer *answer, int status, struct words *words)
{
    char how[80];
    json_t *object = NULL;
    if (WIFSIGNALED(status)) {
        snprintf(how, sizeof how, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
        explain(answer, how, words);
    } else if (WEXITSTATUS(status) != 0) {
        snprintf(how, sizeof how, "exited with %d", WEXITSTATUS(status));
        explain(answer, how, words);
    } else if (dt_json_parse(dt_text_at(&words->out), words->out.size, "its answer", &object) !=
                   DT_OK ||
               !json_is_object(object) || !json_is_array(json_object_get(object, "devices"))) {
        json_decref(object);
        explain(answer, "answered what is no description of devices", words);
    } else {
        answer->devices = object;
    }
}

static dt_status ask(struct dt_devices_answer *answer, int64_t deadline_ns)
{
    static const char folders[DT_SUPERVISOR_FOLDERS][DT_FOLDER_ROOM];
    char *argv[] = {answer->program, "--devices", NULL};
    struct dt_supervised child;
    struct words words = {.out_open = true, .err_open = true};
    int status = 0;
    DT_TRY(dt_supervisor_start(answer->program, argv, environ, folders, &child));
    bool ended = listen_to(&child, deadline_ns, &words) && await_end(&child, deadline_ns, &status);
    dt_supervisor_stop(&child, ended ? 0 : GRACE_NS);
    if (ended)
        read_answer(answer, status, &words);
    else
        explain(answer, "did not answer in time", &words);
    dt_text_fini(&words.out);
    dt_text_fini(&words.err);
    return dt_group_interrupted != 0 ? dt_fail(DT_EINTR, "interrupted") : DT_OK;
}

dt_status dt_machine_devices(const char *program, int64_t deadline_ns,
                             struct dt_devices_answer *answer)
{
    memset(answer, 0, sizeof *answer);
    find_program(program, answer);
    if (answer->missing) {
        snprintf(answer->cause, sizeof answer->cause, "there is no %.400s", answer->program);
        return DT_OK;
    }
    dt_status status = ask(answer, deadline_ns);
    if (status != DT_OK)
        dt_devices_answer_fini(answer);
    return status;
}

void dt_devices_answer_fini(struct dt_devices_answer *answer)
{
    json_decref(answer->devices);
    answer->devices = NULL;
}
