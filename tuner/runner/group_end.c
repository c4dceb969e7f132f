/* SPDX-License-Identifier: MIT */
/* Ends of groups: killed after a fault, found dead, or by quit; and their last messages. */
#include "base/clock.h"
#include "tuner/runner/group_int.h"
#include "tuner/runner/pause.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define INTERRUPTED_NS DT_NS_PER_SECOND /* longest grace after a signal */

#define DEATH_NS                                                                                   \
    (2 * DT_NS_PER_SECOND) /* time between the end of a program's output and its own end */

void dt_group_clean(char text[])
{
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            *c = '?';
}

/* Reads available standard error and keeps its last bytes. False at end of file. */
bool dt_group_drain(struct dt_group *group)
{
    char block[65536];
    ssize_t got = read(group->process.messages, block, sizeof block);
    if (got <= 0)
        return got < 0 && (errno == EINTR || errno == EAGAIN);
    if (dt_group_watch.output != NULL)
        dt_group_watch.output(dt_group_watch.context, block, (size_t)got);
    size_t size = (size_t)got < DT_GROUP_KEPT ? (size_t)got : DT_GROUP_KEPT;
    size_t stay = group->kept + size <= DT_GROUP_KEPT ? group->kept : DT_GROUP_KEPT - size;
    memmove(group->messages, group->messages + group->kept - stay, stay);
    memcpy(group->messages + stay, block + (size_t)got - size, size);
    group->kept = stay + size;
    group->messages[group->kept] = '\0';
    return true;
}

/* mpirun's messages are of several lines, between lines of dashes. */
static bool is_rule(const char *line, size_t size)
{
    return size > 20 && strspn(line, "-") >= size;
}

/* The last nonempty line of standard error, made printable; where that is the end of a message of mpirun, the first one. */
static void last_words(const struct dt_group *group, char out[], size_t room)
{
    size_t end = group->kept;
    while (end > 0 && !isgraph((unsigned char)group->messages[end - 1]))
        end--;
    size_t begin = end;
    while (begin > 0 && group->messages[begin - 1] != '\n')
        begin--;
    if (is_rule(group->messages + begin, end - begin)) {
        begin = strspn(group->messages, "- \r\n\t");
        end = begin + strcspn(group->messages + begin, "\r\n");
    }
    size_t n = 0;
    for (size_t i = begin; i < end && n + 1 < room; i++)
        out[n++] = isprint((unsigned char)group->messages[i]) ? group->messages[i] : '?';
    out[n] = '\0';
}

/* Kills the group and sets the cause. */
dt_status dt_group_break(struct dt_group *group, struct dt_failure *failure,
                         enum dt_outcome outcome, const char *why)
{
    *failure = (struct dt_failure){.outcome = outcome};
    snprintf(failure->cause, sizeof failure->cause, "%s while %s", why, group->phase);
    dt_group_clean(failure->cause);
    if (group->alive)
        dt_supervisor_stop(&group->process, outcome == DT_TRIAL_CRASHED ? 0 : DT_NS_PER_SECOND / 5);
    group->alive = false;
    return dt_fail(DT_FAILED, "%s", failure->cause);
}

dt_status dt_group_condemn(struct dt_group *group, struct dt_failure *failure)
{
    char why[200];
    snprintf(why, sizeof why, "%.190s", failure->cause);
    return dt_group_break(group, failure, failure->outcome, why);
}

/* As in SIGKILL; not every C library has names without descriptions. */
static const char *signal_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } rows[] = {
        {SIGHUP, "HUP"},   {SIGINT, "INT"},   {SIGQUIT, "QUIT"}, {SIGILL, "ILL"},
        {SIGTRAP, "TRAP"}, {SIGABRT, "ABRT"}, {SIGBUS, "BUS"},   {SIGFPE, "FPE"},
        {SIGKILL, "KILL"}, {SIGUSR1, "USR1"}, {SIGSEGV, "SEGV"}, {SIGUSR2, "USR2"},
        {SIGPIPE, "PIPE"}, {SIGALRM, "ALRM"}, {SIGTERM, "TERM"}, {SIGXCPU, "XCPU"},
        {SIGXFSZ, "XFSZ"}, {SIGSYS, "SYS"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].number == number)
            return rows[i].name;
    return "?";
}

static void describe_end(const struct dt_group *group, const struct dt_ended *ended, char out[],
                         size_t room)
{
    char rank[32] = "";
    if (group->processes > 1 && ended->status != 0)
        snprintf(rank, sizeof rank, "rank %d ", ended->rank);
    if (WIFSIGNALED(ended->status)) {
        snprintf(out, room, "%skilled by signal %d (SIG%s)", rank, WTERMSIG(ended->status),
                 signal_name(WTERMSIG(ended->status)));
    } else {
        snprintf(out, room, "%sexited with %d", rank, WEXITSTATUS(ended->status));
    }
}

/* The last line that the worker wrote for people. */
static void add_words(struct dt_group *group, bool open, char why[], size_t room)
{
    char words[80];
    while (open &&
           (poll(&(struct pollfd){.fd = group->process.messages, .events = POLLIN}, 1, 0) == 1))
        open = dt_group_drain(group);
    last_words(group, words, sizeof words);
    size_t size = strlen(why);
    if (words[0] != '\0')
        snprintf(why + size, room - size, " (last message: %s)", words);
}

/* After the end of the worker's output: finds out whether and how the program ended. */
dt_status dt_group_dead(struct dt_group *group, struct dt_failure *failure)
{
    char why[160] = "closed its output";
    struct dt_ended end;
    int64_t until = dt_clock_machine_ns() + DEATH_NS;
    bool open = true, ended = false;
    while (!ended && dt_clock_machine_ns() < until) {
        struct pollfd poller = {.fd = group->process.messages, .events = POLLIN};
        if (open && poll(&poller, 1, 5) == 1)
            open = dt_group_drain(group);
        else if (!open)
            dt_clock_sleep_ns(2000000);
        ended = dt_supervisor_ended(&group->process, &end);
    }
    if (ended)
        describe_end(group, &end, why, sizeof why);
    add_words(group, open, why, sizeof why);
    return dt_group_break(group, failure, DT_TRIAL_CRASHED, why);
}

dt_status dt_group_hung(struct dt_group *group, struct dt_failure *failure)
{
    char why[160];
    snprintf(why, sizeof why, "no answer before the deadline%s%.60s%s",
             group->said[0] != '\0' ? " (last heartbeat: " : "", group->said,
             group->said[0] != '\0' ? ")" : "");
    add_words(group, true, why, sizeof why);
    return dt_group_break(group, failure, DT_TRIAL_HUNG, why);
}

/* Waits for the program's end and keeps reading its output, so that it does not block on a full pipe. */
static bool await_end(struct dt_group *group, int64_t until, struct dt_ended *ended)
{
    char block[65536];
    struct dt_pause pause = dt_pause_begin();
    for (; pause.looked_ns - pause.paused_ns < until; dt_pause_look(&pause)) {
        struct pollfd pollers[3] = {{.fd = group->process.status, .events = POLLIN},
                                    {.fd = group->process.messages, .events = POLLIN},
                                    {.fd = group->process.from, .events = POLLIN}};
        if (dt_supervisor_ended(&group->process, ended))
            return true;
        poll(pollers, 3, 20);
        bool said = pollers[1].revents != 0 && dt_group_drain(group);
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
    struct dt_ended end = {0, 0};
    json_t *quit = json_pack("{s:s}", "op", "quit");
    dt_status said = say_quit ? dt_wire_write(&group->wire, quit) : DT_OK;
    json_decref(quit);
    if (!say_quit) {
        close(group->process.to);
        group->process.to = -1;
    }
    (void)said; /* a dead worker has ended already */
    if (!await_end(group, dt_clock_machine_ns() + patience_ns, &end))
        return false;
    describe_end(group, &end, how, room);
    dt_supervisor_stop(&group->process, 0);
    group->alive = false;
    return true;
}

void dt_group_stop(struct dt_group *group, int64_t grace_ns)
{
    if (group == NULL)
        return;
    if (dt_group_interrupted != 0 &&
        grace_ns > INTERRUPTED_NS) /* within a request it reads no quit */
        grace_ns = INTERRUPTED_NS;
    if (group->alive) {
        json_t *quit = json_pack("{s:s}", "op", "quit");
        int64_t until = dt_clock_machine_ns() + grace_ns - grace_ns / 4;
        struct dt_ended end;
        bool ended = grace_ns > 0 && group->process.to >= 0 &&
                     dt_wire_write(&group->wire, quit) == DT_OK && await_end(group, until, &end);
        json_decref(quit);
        dt_supervisor_stop(&group->process, ended ? 0 : grace_ns / 4);
    }
    if (group->transcript != NULL)
        fclose(group->transcript);
    dt_wire_fini(&group->wire);
    json_decref(group->hello);
    json_decref(group->ready);
    free(group);
}
