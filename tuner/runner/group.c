/* SPDX-License-Identifier: MIT */
/* Ends of groups (killed after a fault, found dead, or by quit), the dialogue, and its
 * answers as plain values.
 *
 * One request, one answer. While waiting, this process sleeps in poll on the worker's two streams,
 * and wakes once a second to check for signals. */
#include "tuner/runner/group_int.h"

#include "base/clock.h"
#include "base/host.h"
#include "base/proc.h"
#include "tuner/runner/launch.h"
#include "tuner/runner/pause.h"
#include "tuner/runner/samples_json.h"
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
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define STARVED        2   /* threads waited for a core so many times as long as they ran */
#define OWN            0.8 /* share of the cores' time of a group that is alone there */
#define SPELL_NS       (DT_NS_PER_SECOND / 4) /* least time that tells */
#define TICK_NS        DT_NS_PER_SECOND
#define BEAT_NS        (15 * DT_NS_PER_SECOND) /* least time that a heartbeat gives */
#define INTERRUPTED_NS DT_NS_PER_SECOND        /* longest grace after a signal */

/* time between the end of a program's output and its own end */
#define DEATH_NS         (2 * DT_NS_PER_SECOND)
#define OUTPUTS_MOST     65536 /* rows of all ranks */
#define PROJECTIONS_MOST 4096

volatile int dt_group_interrupted;
struct dt_group_watch dt_group_watch;

/* ---- ends */

void dt_group_clean(char text[])
{
    for (char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            *c = '?';
}

/* Reads available standard error and keeps its last bytes. False at end of file. */
static bool drain_messages(struct dt_group *group)
{
    char block[65536];
    ssize_t got = read(group->process.messages, block, sizeof block);
    if (got <= 0)
        return got < 0 && (errno == EINTR || errno == EAGAIN);
    if (dt_group_watch.output != NULL)
        dt_group_watch.output(dt_group_watch.context, block, (size_t)got);
    size_t size = (size_t)got < DT_GROUP_MESSAGES ? (size_t)got : DT_GROUP_MESSAGES;
    size_t stay = group->messages_size + size <= DT_GROUP_MESSAGES ? group->messages_size
                                                                   : DT_GROUP_MESSAGES - size;
    memmove(group->messages, group->messages + group->messages_size - stay, stay);
    memcpy(group->messages + stay, block + (size_t)got - size, size);
    group->messages_size = stay + size;
    group->messages[group->messages_size] = '\0';
    return true;
}

/* mpirun's messages are of several lines, between lines of dashes. */
static bool is_rule(const char *line, size_t size)
{
    return size > 20 && strspn(line, "-") >= size;
}

/* The last nonempty line of standard error, made printable; where that is the end of a message of
 * mpirun, the first one. */
static void last_words(const struct dt_group *group, char out[], size_t room)
{
    size_t end = group->messages_size;
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

/* Kills the group and sets the cause. DT_FAILED. */
static dt_status break_group(struct dt_group *group, struct dt_failure *failure,
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

/* Kills a group that broke the protocol; *failure is already set. DT_FAILED. */
static dt_status break_for_answer(struct dt_group *group, struct dt_failure *failure)
{
    char why[200];
    snprintf(why, sizeof why, "%.190s", failure->cause);
    return break_group(group, failure, failure->outcome, why);
}

/* A name such as SIGKILL; not every C library has names without descriptions. */
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
        open = drain_messages(group);
    last_words(group, words, sizeof words);
    size_t size = strlen(why);
    if (words[0] != '\0')
        snprintf(why + size, room - size, " (last message: %s)", words);
}

/* After the end of the worker's output: finds out whether and how the program ended. DT_FAILED. */
static dt_status find_dead(struct dt_group *group, struct dt_failure *failure)
{
    char why[160] = "closed its output";
    struct dt_ended end;
    int64_t until = dt_clock_machine_ns() + DEATH_NS;
    bool open = true, ended = false;
    while (!ended && dt_clock_machine_ns() < until) {
        struct pollfd poller = {.fd = group->process.messages, .events = POLLIN};
        if (open && poll(&poller, 1, 5) == 1)
            open = drain_messages(group);
        else if (!open)
            dt_clock_sleep_ns(2000000);
        ended = dt_supervisor_ended(&group->process, &end);
    }
    if (ended)
        describe_end(group, &end, why, sizeof why);
    add_words(group, open, why, sizeof why);
    return break_group(group, failure, DT_TRIAL_CRASHED, why);
}

/* Handles a missed deadline; the last line of standard error may give the cause. */
static dt_status find_hung(struct dt_group *group, bool starved, struct dt_failure *failure)
{
    char why[160];
    snprintf(why, sizeof why, "no answer before the deadline%s%s%.60s%s",
             starved ? ": other programs had the cores" : "",
             group->beat[0] != '\0' ? " (last heartbeat: " : "", group->beat,
             group->beat[0] != '\0' ? ")" : "");
    add_words(group, true, why, sizeof why);
    dt_status status = break_group(group, failure, DT_TRIAL_HUNG, why);
    failure->early = starved;
    return status;
}

/* Waits for the program's end and keeps reading its output, so that it does not
 * block on a full pipe. */
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
        bool said = pollers[1].revents != 0 && drain_messages(group);
        if (pollers[2].revents != 0)
            said = read(group->process.from, block, sizeof block) > 0 || said;
        if (!said && pollers[0].revents == 0)
            dt_clock_sleep_ns(1000000);
    }
    return false;
}

static bool quit_send(struct dt_group *group)
{
    json_auto_t *quit = json_pack("{s:s}", "op", "quit");
    return dt_wire_write(&group->wire, quit) == DT_OK;
}

bool dt_group_end(struct dt_group *group, bool say_quit, int64_t patience_ns, char how[],
                  size_t room)
{
    struct dt_ended end = {0, 0};
    if (say_quit) {
        (void)quit_send(group); /* a dead worker has ended already */
    } else {
        close(group->process.to);
        group->process.to = -1;
    }
    if (!await_end(group, dt_clock_machine_ns() + patience_ns, &end))
        return false;
    describe_end(group, &end, how, room);
    dt_supervisor_stop(&group->process, 0);
    group->alive = false;
    return true;
}

/* Ends the processes of all members, which have the grace at the same time. */
static void members_end(struct dt_group *group, int64_t grace_ns)
{
    const int64_t end_ns = dt_clock_machine_ns() + grace_ns;
    bool asked[DT_REPLICAS_MOST] = {false};
    for (int i = 0; i < group->member_count; i++) {
        struct dt_group *member = group->members[i];
        asked[i] = member->alive && grace_ns > 0 && member->process.to >= 0 && quit_send(member);
    }
    for (int i = 0; i < group->member_count; i++) {
        struct dt_group *member = group->members[i];
        struct dt_ended end;
        bool ended = asked[i] && await_end(member, end_ns - grace_ns / 4, &end);
        int64_t left_ns = end_ns - dt_clock_machine_ns();
        if (member->alive)
            dt_supervisor_stop(&member->process, ended || left_ns < 0 ? 0 : left_ns);
        member->alive = false;
    }
}

static void group_free(struct dt_group *group)
{
    if (group->transcript != NULL)
        fclose(group->transcript);
    dt_wire_fini(&group->wire);
    json_decref(group->hello);
    json_decref(group->ready);
    free(group);
}

void dt_group_stop(struct dt_group *group, int64_t grace_ns)
{
    if (group == NULL)
        return;
    if (dt_group_interrupted != 0 &&
        grace_ns > INTERRUPTED_NS) /* within a request it reads no quit */
        grace_ns = INTERRUPTED_NS;
    members_end(group, grace_ns);
    for (int i = group->member_count; i-- > 0;)
        if (group->members[i] != group)
            group_free(group->members[i]);
    group_free(group);
}

/* ---- the dialogue */

const json_t *dt_group_hello(const struct dt_group *group)
{
    return group->hello;
}

const json_t *dt_group_ready(const struct dt_group *group)
{
    return group->ready;
}

const char *dt_group_rank_text(const struct dt_group *group, int rank, const char *field)
{
    const json_t *ranks = json_object_get(group->ready, "ranks");
    return dt_json_text_at(json_array_get(ranks, (size_t)rank), field);
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
    bool alive = group != NULL;
    for (int i = 0; alive && i < group->member_count; i++)
        alive = group->members[i]->alive;
    return alive;
}

void dt_group_extend(struct dt_group *group, int64_t until_ns)
{
    for (int i = 0; i < group->member_count; i++)
        group->members[i]->until_ns = until_ns;
}

int64_t dt_group_paused_ns(const struct dt_group *group)
{
    int64_t paused_ns = 0;
    for (int i = 0; i < group->member_count; i++)
        if (group->members[i]->paused_ns > paused_ns)
            paused_ns = group->members[i]->paused_ns;
    return paused_ns;
}

static void group_show(const struct dt_group *group)
{
    if (dt_group_watch.tick != NULL)
        dt_group_watch.tick(dt_group_watch.context, group->shown, group->beat);
}

/* The group's processes have ended, which was not read yet. */
static bool has_ended(const struct dt_group *group)
{
    struct pollfd poller = {.fd = group->process.status, .events = POLLIN};
    return group->alive && poll(&poller, 1, 0) == 1;
}

/* Sleeps until the worker writes, the next tick is due, the deadline passes, or another replica
 * that is awaited, too, has ended: only then true. Drains standard error of all replicas. */
static bool group_rest(struct dt_group *group, int64_t deadline_ns)
{
    group_show(group);
    bool ended = false;
    const struct dt_group *parent = group->parent;
    int64_t now = dt_clock_ns(), until = deadline_ns < now + TICK_NS ? deadline_ns : now + TICK_NS;
    struct pollfd pollers[1 + 2 * DT_REPLICAS_MOST] = {
        {.fd = group->process.from, .events = POLLIN}};
    int timeout = until > now ? (int)((until - now) / 1000000) + 1 : 0, n = parent->member_count;
    for (int i = 0; i < n; i++) {
        const struct dt_group *member = parent->members[i];
        bool other = member != group && member->awaited;
        pollers[1 + i] =
            (struct pollfd){.fd = member->alive ? member->process.messages : -1, .events = POLLIN};
        pollers[1 + n + i] = (struct pollfd){
            .fd = member->alive && other ? member->process.status : -1, .events = POLLIN};
    }
    if (poll(pollers, 1 + 2 * (nfds_t)n, timeout) <= 0)
        return false;
    for (int i = 0; i < n; i++) {
        ended = ended || pollers[1 + n + i].revents != 0;
        if (pollers[1 + i].revents == 0 || drain_messages(parent->members[i]))
            continue;
        /* end of file, which poll would report for ever */
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        dup3(null, parent->members[i]->process.messages, O_CLOEXEC);
        close(null);
        if (pollers[0].revents == 0)
            dt_clock_sleep_ns(1000000);
    }
    return ended;
}

static dt_status reply_misread(struct dt_group *group, dt_status status, struct dt_failure *failure)
{
    char why[160];
    snprintf(why, sizeof why, "%.150s", dt_message());
    if (status == DT_EDEAD && group->wire.pending.size == 0)
        return find_dead(group, failure);
    if (status == DT_EDEAD || status == DT_EPROTO)
        return break_group(group, failure, DT_TRIAL_PROTOCOL, why);
    return status;
}

/* A line of the transcript: '>' to the worker, '<' from it. */
static void transcript_note(struct dt_group *group, char direction, const json_t *message)
{
    if (group->transcript == NULL)
        return;
    fprintf(group->transcript, "%c ", direction);
    json_dumpf(message, group->transcript, JSON_COMPACT);
    fputc('\n', group->transcript);
    fflush(group->transcript);
}

/* Number of bytes of the worker's output that have arrived, from its start. */
static size_t bytes_arrived(const struct dt_group *group)
{
    int unread = 0;
    if (ioctl(group->process.from, FIONREAD, &unread) != 0)
        unread = 0;
    return group->wire.taken + group->wire.pending.size + (size_t)unread;
}

/* The deadline, or `more_ns` from now on where that is allowed and later. */
static int64_t extended_deadline(const struct dt_group *group, int64_t deadline_ns, int64_t more_ns)
{
    int64_t later_ns = dt_clock_ns() + more_ns;
    if (later_ns > group->until_ns)
        later_ns = group->until_ns;
    return later_ns > deadline_ns ? later_ns : deadline_ns;
}

/* A time in which the group's processes are watched. */
struct spell {
    int64_t at_ns; /* its begin; 0: none yet */
    struct dt_proc_time time;
    bool starved; /* the one before */
};

/* Ends the spell, and begins the next one. A group that sleeps is not starved, however busy the
 * machine is; nor is one that has the cores for itself, whose threads may wait for each other. */
static void spell_look(const struct dt_group *group, struct spell *spell)
{
    int64_t now = dt_clock_machine_ns(), passed_ns = now - spell->at_ns;
    if (spell->at_ns > 0 && passed_ns < SPELL_NS)
        return;
    struct dt_proc_time time = dt_proc_time_below(group->process.pid);
    int64_t waited_ns = time.waited_ns - spell->time.waited_ns;
    int64_t ran_ns = time.ran_ns - spell->time.ran_ns;
    spell->starved = spell->at_ns > 0 && waited_ns > passed_ns / 2 &&
                     waited_ns > STARVED * ran_ns &&
                     (double)ran_ns < OWN * dt_host_cores() * (double)passed_ns;
    spell->at_ns = now;
    spell->time = time;
}

/* Keeps the heartbeat's text. Returns the request's deadline, which it may extend by the time
 * `more_ns` from now on. */
static int64_t take_beat(struct dt_group *group, const json_t *beat, int64_t deadline_ns,
                         int64_t more_ns)
{
    const char *said = json_string_value(json_object_get(beat, "say"));
    if (said != NULL) {
        snprintf(group->beat, sizeof group->beat, "%s", said);
        dt_group_clean(group->beat);
    }
    return extended_deadline(group, deadline_ns, more_ns);
}

/* The next message that is not a heartbeat. A message that has arrived by the deadline is in time,
 * even behind heartbeats. DT_WAIT: another replica has ended, whose answer counts first. */
static dt_status next_message(struct dt_group *group, int64_t deadline_ns, json_t **message,
                              struct dt_failure *failure)
{
    struct dt_pause pause = dt_pause_begin();
    size_t in_time = SIZE_MAX;
    int64_t more_ns = deadline_ns - dt_clock_ns();
    int64_t half_ns = deadline_ns - more_ns / 2; /* reading /proc disturbs what is measured */
    more_ns = more_ns > BEAT_NS ? more_ns : BEAT_NS;
    struct spell spell = {0};
    group->beat[0] = '\0';
    group_show(group);
    for (;;) {
        json_auto_t *got = NULL;
        if (dt_group_interrupted != 0)
            return dt_fail(DT_EINTR, "interrupted");
        dt_pause_look(&pause);
        group->paused_ns = pause.paused_ns;
        int64_t now = dt_clock_ns();
        bool late = now >= deadline_ns;
        if (late && in_time == SIZE_MAX)
            in_time = bytes_arrived(group);
        dt_status status = dt_wire_read(&group->wire, 0, &got);
        if (status == DT_OK && strcmp(dt_wire_op(got), "heartbeat") != 0) {
            transcript_note(group, '<', got);
            *message = json_incref(got);
            return DT_OK;
        }
        int64_t until = status == DT_OK && group->wire.taken <= in_time
                            ? take_beat(group, got, deadline_ns, more_ns)
                            : 0;
        if (until > deadline_ns) {
            deadline_ns = until;
            in_time = SIZE_MAX;
            continue;
        }
        if (status == DT_OK && group->wire.taken < in_time)
            continue;
        if ((status == DT_ETIMEOUT || status == DT_OK) && late) {
            spell_look(group, &spell);
            until = spell.starved ? extended_deadline(group, deadline_ns, more_ns) : deadline_ns;
            if (until <= deadline_ns)
                return find_hung(group, spell.starved, failure);
            deadline_ns = until;
            in_time = SIZE_MAX;
            continue;
        }
        if (spell.at_ns == 0 && now >= half_ns)
            spell_look(group, &spell);
        if (status == DT_ETIMEOUT)
            status = group_rest(group, deadline_ns) && !has_ended(group) ? DT_WAIT : DT_OK;
        else if (status != DT_OK && status != DT_EINTR)
            return reply_misread(group, status, failure);
        if (status == DT_WAIT)
            return DT_WAIT;
    }
}

static dt_status reply_unexpected(struct dt_group *group, const char *want, const json_t *message,
                                  struct dt_failure *failure)
{
    char why[160];
    snprintf(why, sizeof why, "said '%.40s', expected '%s'", dt_wire_op(message), want);
    return break_group(group, failure, DT_TRIAL_PROTOCOL, why);
}

/* A private program's sentence without its own output, where there is one; the whole one is
 * for the terminal alone. */
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
static dt_status answer_failed(struct dt_group *group, const json_t *message,
                               struct dt_failure *failure)
{
    const char *kind = json_string_value(json_object_get(message, "kind"));
    const char *say = recorded_sentence(group, message);
    static const struct {
        const char *kind;
        enum dt_outcome outcome;
    } kinds[] = {{"memory", DT_TRIAL_MEMORY},      {"infeasible", DT_TRIAL_INFEASIBLE},
                 {"wrong", DT_TRIAL_WRONG},        {"limit", DT_TRIAL_LIMIT},
                 {"hung", DT_TRIAL_HUNG},          {"crashed", DT_TRIAL_CRASHED},
                 {"unapplied", DT_TRIAL_UNAPPLIED}};
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
    return dt_fail(DT_FAILED, "%s", failure->cause);
}

/* DT_WAIT as next_message. */
static dt_status expect_answer(struct dt_group *group, const char *want, int64_t deadline_ns,
                               json_t **answer, struct dt_failure *failure)
{
    json_auto_t *message = NULL;
    dt_status status = next_message(group, deadline_ns, &message, failure);
    if (status != DT_OK)
        return status;
    if (strcmp(dt_wire_op(message), "failed") == 0)
        return answer_failed(group, message, failure);
    if (strcmp(dt_wire_op(message), want) != 0)
        return reply_unexpected(group, want, message, failure);
    if (group->is_private && json_object_get(message, "read") != NULL) /* the matched text, too */
        json_object_set(message, "read", json_object_get(message, "brief"));
    *answer = json_incref(message);
    return DT_OK;
}

static dt_status send_request(struct dt_group *group, const json_t *request,
                              struct dt_failure *failure)
{
    if (!group->alive)
        return break_group(group, failure, DT_TRIAL_CRASHED, "the group had ended before");
    transcript_note(group, '>', request);
    dt_status status = dt_wire_write(&group->wire, request);
    return status == DT_EDEAD ? find_dead(group, failure) : status;
}

/* Sends a request of which dt_group_call's answer is awaited next. */
static dt_status begin_request(struct dt_group *group, const json_t *request, int64_t deadline_ns,
                               struct dt_failure *failure)
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
        return find_hung(group, false, failure);
    return send_request(group, request, failure);
}

dt_status dt_group_call(struct dt_group *group, const json_t *request, const char *answer_op,
                        int64_t deadline_ns, json_t **answer, struct dt_failure *failure)
{
    DT_TRY(begin_request(group, request, deadline_ns, failure));
    return expect_answer(group, answer_op, deadline_ns, answer, failure);
}

/* ---- replicas: a request goes to all members, then all their answers are awaited */

/* The answers of all members, in their order. */
struct answers {
    json_t *at[DT_REPLICAS_MOST]; /* owned */
    int count;
};

static void answers_fini(struct answers *answers)
{
    for (int i = 0; i < answers->count; i++)
        json_decref(answers->at[i]);
    answers->count = 0;
}

/* Replicas are awaited from now on: all of them, or none any more. */
static void members_set_awaited(struct dt_group *group, bool awaited)
{
    for (int i = 0; i < group->member_count; i++)
        group->members[i]->awaited = awaited;
}

/* The member whose answer is read next: the first that has ended, which ends the others, too, else
 * the first that did not answer; -1: all have answered. */
static int member_next(const struct dt_group *group)
{
    int next = -1;
    for (int i = 0; i < group->member_count; i++) {
        if (!group->members[i]->awaited)
            continue;
        next = next < 0 ? i : next;
        if (has_ended(group->members[i]))
            return i;
    }
    return next;
}

/* Puts the number of the replica before the cause of its failure. */
static void number_cause(int replica, struct dt_failure *failure)
{
    char cause[sizeof failure->cause];
    memcpy(cause, failure->cause, sizeof cause);
    snprintf(failure->cause, sizeof failure->cause, "replica %d: %.230s", replica, cause);
}

/* A failure of one member: the others cannot go on without it, except when all have failed alike
 * and live on. DT_FAILED. */
static dt_status members_fail(struct dt_group *group, int failed, struct dt_failure *failure)
{
    if (group->member_count > 1 && (failed < group->member_count || !dt_group_alive(group)))
        members_end(group, 0);
    return dt_fail(DT_FAILED, "%s", failure->cause);
}

/* Awaits the answer of each member. The first failure counts; a member that has ended
 * ends the others at once. */
static dt_status members_await(struct dt_group *group, const char *answer_op, int64_t deadline_ns,
                               struct answers *answers, struct dt_failure *failure)
{
    int failed = 0, i;
    *answers = (struct answers){.count = group->member_count};
    members_set_awaited(group, true);
    while ((i = member_next(group)) >= 0) {
        struct dt_failure failed_as;
        dt_status status =
            expect_answer(group->members[i], answer_op, deadline_ns, &answers->at[i], &failed_as);
        if (status == DT_WAIT)
            continue;
        group->members[i]->awaited = false;
        if (status < 0 && status != DT_FAILED) {
            members_set_awaited(group, false);
            answers_fini(answers);
            return status;
        }
        if (status == DT_FAILED && failed++ == 0) {
            *failure = failed_as;
            if (group->member_count > 1)
                number_cause(i, failure);
        }
        if (status == DT_FAILED && !group->members[i]->alive)
            break;
    }
    members_set_awaited(group, false);
    if (failed == 0)
        return DT_OK;
    answers_fini(answers);
    return members_fail(group, failed, failure);
}

/* Takes the request. *answers: one of each member; empty after a failure. */
static dt_status members_ask(struct dt_group *group, json_t *request, const char *answer_op,
                             int64_t deadline_ns, struct answers *answers,
                             struct dt_failure *failure)
{
    json_auto_t *asked = request;
    *answers = (struct answers){.count = 0};
    for (int i = 0; i < group->member_count; i++) {
        dt_status status = begin_request(group->members[i], asked, deadline_ns, failure);
        if (status == DT_FAILED && group->member_count > 1) {
            number_cause(i, failure);
            return members_fail(group, 1, failure);
        }
        DT_TRY(status);
    }
    return members_await(group, answer_op, deadline_ns, answers, failure);
}

/* ---- the start */

static dt_status send_hello(struct dt_group *group, const struct dt_launch *launch,
                            const json_t *workload, struct dt_failure *failure)
{
    const struct dt_assignment *assigned = &launch->assigned;
    json_auto_t *hello = json_pack(
        "{s:s, s:i, s:i, s:O?, s:o, s:o*, s:o*}", "op", "hello", "protocol", DT_PROTOCOL_VERSION,
        "ranks", launch->own_ranks > 0 ? launch->own_ranks : launch->ranks, "workload", workload,
        "job", assigned->job != NULL ? json_incref((json_t *)assigned->job) : json_object(),
        "devices", assigned->devices > 0 ? json_integer(assigned->devices) : NULL, "hosts",
        assigned->hosts > 1 ? json_integer(assigned->hosts) : NULL);
    return send_request(group, hello, failure);
}

/* hello and ready, the answers to hello; goes on after DT_WAIT. */
static dt_status await_hello(struct dt_group *group, int64_t deadline_ns,
                             struct dt_failure *failure)
{
    dt_status status = DT_OK;
    if (group->hello == NULL)
        status = expect_answer(group, "hello", deadline_ns, &group->hello, failure);
    if (status != DT_OK)
        return status;
    int64_t version = json_integer_value(json_object_get(group->hello, "protocol"));
    if (version < 1 || version > DT_PROTOCOL_VERSION)
        return break_group(group, failure, DT_TRIAL_PROTOCOL,
                           "speaks a protocol version this program does not know");
    status = expect_answer(group, "ready", deadline_ns, &group->ready, failure);
    if (status != DT_OK)
        return status;
    if (dt_group_ranks(group) < 1)
        return break_group(group, failure, DT_TRIAL_PROTOCOL, "'ready' lists no ranks");
    return DT_OK;
}

/* Starts the program; nothing is sent yet. */
static dt_status group_begin(const struct dt_launch *launch, struct dt_group **out)
{
    struct dt_start start;
    DT_TRY(dt_start_make(launch, &start));
    struct dt_group *group = calloc(1, sizeof *group);
    const struct dt_supervisor_program program = {
        start.path,      start.argv,      start.envp,
        start.processes, launch->replica, launch->gpus > 0 ? 1 : launch->replicas};
    dt_status status =
        group == NULL ? dt_fail(DT_ENOMEM, "out of memory")
                      : dt_supervisor_start(&program, (const char(*)[DT_FOLDER_ROOM])start.folders,
                                            &group->process);
    dt_start_fini(&start);
    if (status < 0) {
        dt_start_drop(&start);
        free(group);
        return status;
    }
    group->members[0] = group->parent = group;
    group->member_count = 1;
    group->alive = true;
    group->processes = start.processes;
    group->phase = "starting";
    group->shown = "loading";
    group->until_ns = launch->until_ns;
    group->is_private = launch->is_private;
    const char *transcript = launch->unrecorded ? NULL : getenv("DITTUNE_TRANSCRIPT");
    group->transcript = transcript != NULL ? fopen(transcript, "ae") : NULL;
    dt_wire_init(&group->wire, group->process.from, group->process.to);
    *out = group;
    return DT_OK;
}

/* All replicas, which load at the same time; *out has those that were started,
 * also after an error. */
static dt_status members_begin(const struct dt_launch *launch, struct dt_group **out)
{
    struct dt_launch each = *launch;
    if (launch->replicas <= 1)
        return group_begin(launch, out);
    if (launch->replicas > DT_REPLICAS_MOST)
        return dt_fail(DT_EUSAGE, "%d replicas, at most %d are started", launch->replicas,
                       DT_REPLICAS_MOST);
    struct dt_group *parent = calloc(1, sizeof *parent);
    if (parent == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_wire_init(&parent->wire, -1, -1);
    *out = parent;
    for (each.replica = 0; each.replica < launch->replicas; each.replica++) {
        struct dt_group *member;
        DT_TRY(group_begin(&each, &member));
        member->parent = parent;
        parent->members[parent->member_count++] = member;
    }
    return DT_OK;
}

/* hello of the first member, and ready with the ranks of all of them. */
static dt_status members_join(struct dt_group *parent)
{
    if (parent->members[0] == parent)
        return DT_OK;
    json_t *ranks = json_array();
    bool failed = ranks == NULL;
    for (int i = 0; i < parent->member_count; i++)
        failed |=
            json_array_extend(ranks, json_object_get(parent->members[i]->ready, "ranks")) != 0;
    parent->hello = json_incref(parent->members[0]->hello);
    parent->ready = dt_json_copy(parent->members[0]->ready);
    failed |= json_object_set_new(parent->ready, "ranks", ranks) != 0;
    return failed ? dt_fail(DT_ENOMEM, "out of memory") : DT_OK;
}

static dt_status members_greet(struct dt_group *group, const struct dt_launch *launch,
                               const json_t *workload, int64_t deadline_ns,
                               struct dt_failure *failure)
{
    dt_status status = DT_OK;
    int i = 0, next;
    for (int k = 0; k < group->member_count && status == DT_OK; k++)
        status = send_hello(group->members[i = k], launch, workload, failure);
    members_set_awaited(group, true);
    while (status >= 0 && (next = member_next(group)) >= 0) {
        i = next;
        status = await_hello(group->members[i], deadline_ns, failure);
        group->members[i]->awaited = status == DT_WAIT;
    }
    members_set_awaited(group, false);
    if (status == DT_FAILED && group->member_count > 1) {
        number_cause(i, failure);
        return dt_fail(DT_FAILED, "%s", failure->cause);
    }
    return status == DT_OK ? members_join(group) : status;
}

dt_status dt_group_start(const struct dt_launch *launch, const json_t *workload,
                         int64_t deadline_ns, struct dt_group **out, struct dt_failure *failure)
{
    struct dt_group *group = NULL;
    dt_status status = members_begin(launch, &group);
    if (status == DT_OK)
        status = members_greet(group, launch, workload, deadline_ns, failure);
    if (status < 0) {
        struct dt_error error = {DT_OK, ""};
        dt_error_keep(&error, status);
        dt_group_stop(group, DT_NS_PER_SECOND / 5);
        return dt_error_raise(&error);
    }
    for (int i = 0; i < group->member_count; i++)
        dt_supervisor_note(&group->members[i]->process);
    *out = group;
    return DT_OK;
}

dt_status dt_group_release(struct dt_group *group, int handle, int64_t deadline_ns,
                           struct dt_failure *failure)
{
    struct answers DT_CLEANUP(answers_fini) answers;
    return members_ask(group, json_pack("{s:s, s:i}", "op", "release", "handle", handle),
                       "released", deadline_ns, &answers, failure);
}

/* ---- answers: every shape is checked, and a wrong one is a breach of the protocol */

void dt_prepared_fini(struct dt_prepared *prepared)
{
    dt_outputs_fini(&prepared->output);
    dt_outputs_fini(&prepared->image);
    dt_device_bytes_fini(&prepared->memory);
    free(prepared->remarks);
    prepared->remarks = NULL;
}

static dt_status reply_breach(struct dt_failure *failure, const char *what)
{
    *failure = (struct dt_failure){.outcome = DT_TRIAL_PROTOCOL};
    snprintf(failure->cause, sizeof failure->cause, "the answer's %s", what);
    return dt_fail(DT_FAILED, "%s", failure->cause);
}

/* The largest of an array of integers from low to high; false for anything else. */
static bool read_largest(const json_t *array, size_t n, json_int_t low, json_int_t high,
                         int64_t *out)
{
    int64_t most = 0;
    if (json_array_size(array) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        json_t *value = json_array_get(array, i);
        if (!json_is_integer(value) || json_integer_value(value) < low ||
            json_integer_value(value) > high)
            return false;
        most = json_integer_value(value) > most ? json_integer_value(value) : most;
    }
    *out = most;
    return true;
}

/* A number, or null for one that is not finite. */
static bool read_number(const json_t *value, double *out)
{
    *out = json_is_number(value) ? json_number_value(value) : NAN;
    return json_is_number(value) || json_is_null(value);
}

/* The rank's part of `output`, whose shape is known. */
static dt_status read_rank_output(const json_t *verify, size_t rank, struct dt_outputs *output,
                                  struct dt_failure *failure)
{
    json_t *norms = json_object_get(verify, "norm"),
           *table = json_object_get(verify, "projections");
    size_t rows = (size_t)output->rows, count = (size_t)output->projections;
    double *norm = output->norm + rank * rows, *projection = output->projection;
    if (json_array_size(norms) != rows || json_array_size(table) != rows)
        return reply_breach(failure, "verify has not one norm and one row of projections an image");
    for (size_t i = 0; i < rows; i++) {
        json_t *row = json_array_get(table, i);
        if (json_array_size(row) != count || !read_number(json_array_get(norms, i), &norm[i]))
            return reply_breach(failure,
                                "verify has rows of different length, or a norm that is no number");
        for (size_t k = 0; k < count; k++)
            if (!read_number(json_array_get(row, k), &projection[(rank * rows + i) * count + k]))
                return reply_breach(failure, "verify has a projection that is no number");
    }
    return DT_OK;
}

/* verify: one object, or an array of one a rank. Absent or null: output stays empty. */
static dt_status read_output(const json_t *verify, size_t ranks, struct dt_outputs *output,
                             struct dt_failure *failure)
{
    bool many = json_is_array(verify);
    const json_t *first = many ? json_array_get(verify, 0) : verify;
    json_t *table = json_object_get(first, "projections");
    size_t rows = json_array_size(table), count = json_array_size(json_array_get(table, 0));
    if (verify == NULL || json_is_null(verify))
        return DT_OK;
    if (many && json_array_size(verify) != ranks)
        return reply_breach(failure, "verify has not one object a rank");
    ranks = many ? ranks : 1;
    if (rows < 1 || rows > OUTPUTS_MOST / ranks || count < 1 || count > PROJECTIONS_MOST)
        return reply_breach(failure, "verify has not one norm and one row of projections an image");
    output->norm = calloc(ranks * rows, sizeof *output->norm);
    output->projection = calloc(ranks * rows * count, sizeof *output->projection);
    if (output->norm == NULL || output->projection == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    output->ranks = (int)ranks;
    output->rows = (int)rows;
    output->projections = (int)count;
    for (size_t rank = 0; rank < ranks; rank++)
        DT_TRY(
            read_rank_output(many ? json_array_get(verify, rank) : verify, rank, output, failure));
    return DT_OK;
}

static dt_status read_prepared(const json_t *answer, int ranks, struct dt_prepared *prepared,
                               struct dt_failure *failure)
{
    json_t *peak = json_object_get(answer, "peak_bytes"),
           *cold = json_object_get(answer, "cold_ns");
    json_t *handle = json_object_get(answer, "handle"),
           *resident = json_object_get(answer, "resident_bytes");
    prepared->ranks = (int)json_array_size(cold);
    if (!json_is_integer(handle) || json_integer_value(handle) < 0 ||
        json_integer_value(handle) > 1 << 30)
        return reply_breach(failure, "handle is no small integer");
    prepared->handle = (int)json_integer_value(handle);
    if (prepared->ranks < 1 || (ranks > 1 && prepared->ranks != ranks))
        return reply_breach(failure, "cold_ns has not one number a rank");
    if (!read_largest(cold, (size_t)prepared->ranks, 1, DT_STEP_NS_MOST, &prepared->cold_ns))
        return reply_breach(
            failure, "cold_ns holds something that is not a positive integer, a day at most");
    if (!read_largest(peak, (size_t)prepared->ranks, 0, INT64_MAX, &prepared->peak_bytes))
        return reply_breach(failure, "peak_bytes has not one integer a rank");
    if (resident != NULL && (!json_is_integer(resident) || json_integer_value(resident) < 0))
        return reply_breach(failure, "resident_bytes is not an integer");
    prepared->resident_bytes = json_integer_value(resident);
    if (!dt_device_bytes_read(answer, prepared->ranks, &prepared->memory))
        return reply_breach(failure, "lists of a device's bytes have not one integer a rank");
    json_t *error = json_object_get(answer, "error");
    prepared->error = json_is_number(error) ? json_number_value(error) : NAN;
    if (error != NULL && !json_is_null(error) && !(prepared->error >= 0))
        return reply_breach(failure, "error is not a number of 0 or more");
    if (!dt_remarks_read(answer, &prepared->remarks))
        return reply_breach(failure, "warnings are not a list of what runs did, and of how many");
    prepared->verifies_runs = json_is_true(json_object_get(answer, "verifies_runs"));
    const json_t *image = json_object_get(answer, "image");
    DT_TRY(read_output(image, json_array_size(image), &prepared->image, failure));
    return read_output(json_object_get(answer, "verify"), (size_t)prepared->ranks,
                       &prepared->output, failure);
}

static json_t *describe_verify(const struct dt_verify *verify)
{
    return verify == NULL ? NULL
                          : json_pack("{s:i, s:I}", "projections", verify->projections, "seed",
                                      (json_int_t)verify->seed);
}

/* The plan of all replicas; takes what the parts own. DT_FAILED, with the sentence, where they
 * do not fit together. */
static dt_status prepared_join(struct dt_prepared parts[], int n, struct dt_prepared *joined,
                               struct dt_failure *failure)
{
    *joined = parts[0];
    parts[0] = (struct dt_prepared){.handle = joined->handle};
    for (int i = 1; i < n; i++) {
        struct dt_prepared *more = &parts[i];
        if (more->handle != joined->handle)
            return reply_breach(failure, "handle is not that of the other replicas");
        joined->ranks += more->ranks;
        joined->verifies_runs = joined->verifies_runs && more->verifies_runs;
        joined->cold_ns = more->cold_ns > joined->cold_ns ? more->cold_ns : joined->cold_ns;
        if (more->peak_bytes > joined->peak_bytes)
            joined->peak_bytes = more->peak_bytes;
        if (more->resident_bytes > joined->resident_bytes)
            joined->resident_bytes = more->resident_bytes;
        joined->error = fmax(joined->error, more->error); /* the one that is known */
        dt_remarks_add(&joined->remarks, &more->remarks);
        DT_TRY(dt_device_bytes_join(&joined->memory, &more->memory));
        dt_status status = dt_outputs_join(&joined->output, &more->output);
        if (status != DT_OK)
            return status == DT_FAILED
                       ? reply_breach(failure, "verify differs in shape among replicas")
                       : status;
        more->image.ranks = more->image.ranks > 0; /* the first of each */
        joined->image.ranks = joined->image.ranks > i ? i : joined->image.ranks;
        status = dt_outputs_join(&joined->image, &more->image);
        if (status != DT_OK)
            return status == DT_FAILED
                       ? reply_breach(failure, "image differs in shape among replicas")
                       : status;
    }
    return DT_OK;
}

static void prepared_free(struct dt_prepared parts[], int n)
{
    for (int i = 0; parts != NULL && i < n; i++)
        dt_prepared_fini(&parts[i]);
}

/* A failure in an answer of one member, which broke the protocol: it ends all. */
static dt_status members_break(struct dt_group *group, int member, dt_status status,
                               struct dt_failure *failure)
{
    if (status != DT_FAILED)
        return status;
    status = break_for_answer(group->members[member], failure);
    if (group->member_count == 1)
        return status;
    number_cause(member, failure);
    return members_fail(group, 1, failure);
}

dt_status dt_group_prepare(struct dt_group *group, const json_t *plan,
                           const struct dt_verify *verify, int64_t deadline_ns,
                           struct dt_prepared *out, struct dt_failure *failure)
{
    struct dt_prepared joined = {.handle = -1};
    struct answers DT_CLEANUP(answers_fini) answers;
    int n = group->member_count, at = 0;
    dt_auto_free struct dt_prepared *parts = calloc((size_t)n, sizeof *parts);
    json_t *request = json_pack("{s:s, s:O, s:I, s:o}", "op", "prepare", "plan", plan, "seed",
                                (json_int_t)verify->seed, "verify", describe_verify(verify));
    DT_TRY(members_ask(group, request, "prepared", deadline_ns, &answers, failure));
    dt_status status = parts != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    for (int i = 0; i < n && status == DT_OK; i++) {
        at = i;
        status =
            read_prepared(answers.at[i], dt_group_ranks(group->members[i]), &parts[i], failure);
    }
    if (status == DT_OK)
        status = prepared_join(parts, n, &joined, failure);
    prepared_free(parts, n);
    if (status < 0) {
        dt_prepared_fini(&joined);
        return members_break(group, at, status, failure);
    }
    *out = joined;
    return DT_OK;
}

static dt_status breach_of_run(const struct dt_run_fault *fault, struct dt_failure *failure)
{
    static const struct {
        const char *field, *size, *value;
    } rows[] = {
        {"ns", "ns has a row without one positive integer, a day at most, a rank", NULL},
        {"clock", "clock has not one row a step",
         "clock has a row without one positive number a rank"},
        {"device_ns", "device_ns has not one time a rank in one row a step", NULL},
        {"host_ns", "host_ns has not one time a rank in one row a step", NULL},
        {"telemetry", "telemetry is not one object of known fields a rank", NULL},
        {"starts", "starts do not add up to the rows of ns", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].field, fault->field) == 0)
            return reply_breach(failure, !fault->size && rows[i].value != NULL ? rows[i].value
                                                                               : rows[i].size);
    return reply_breach(failure, "warnings are not a list of what runs did, and of how many");
}

/* Where each step is a start, fewer may have been made, and each may have several steps. */
static dt_status read_samples(const json_t *answer, const struct dt_steps *asked,
                              struct dt_run *run, struct dt_failure *failure)
{
    const json_t *starts = asked->starts ? json_object_get(answer, "starts") : NULL;
    struct dt_run_fault fault;
    const struct dt_run_form form = {.remarks = answer, .starts = starts != NULL};
    size_t rows = json_array_size(json_object_get(answer, "ns")), count = json_array_size(starts);
    if (starts != NULL && (count < 1 || count > (size_t)asked->count))
        return reply_breach(failure, "starts has not as many items as starts were asked for");
    if (starts == NULL && rows != (size_t)asked->count)
        return reply_breach(failure, "ns has not one row a step");
    dt_status status = dt_run_read(answer, &form, run, &fault);
    if (status != DT_OK)
        return status == DT_FAILED ? breach_of_run(&fault, failure) : status;
    return read_output(json_object_get(answer, "verify"), (size_t)run->ranks, &run->output,
                       failure);
}

const char *dt_mode_text(enum dt_mode mode)
{
    return mode == DT_MODE_WARMUP ? "warmup" : "measure";
}

dt_status dt_group_run(struct dt_group *group, const struct dt_steps *steps, int64_t deadline_ns,
                       struct dt_run *out, struct dt_failure *failure)
{
    struct answers DT_CLEANUP(answers_fini) answers;
    int n = group->member_count, at = 0;
    dt_auto_free struct dt_run *parts = calloc((size_t)n, sizeof *parts);
    json_t *request = json_pack("{s:s, s:i, s:i, s:s, s:o*}", "op", "run", "handle", steps->handle,
                                "n", steps->count, "mode", dt_mode_text(steps->mode), "verify",
                                describe_verify(steps->verify));
    DT_TRY(members_ask(group, request, "samples", deadline_ns, &answers, failure));
    dt_status status = parts != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    for (int i = 0; i < n && status == DT_OK; i++) {
        at = i;
        status = read_samples(answers.at[i], steps, &parts[i], failure);
    }
    if (status == DT_OK) {
        status = dt_run_join(parts, n, out);
        if (status == DT_FAILED)
            status = reply_breach(failure, dt_message());
    }
    for (int i = 0; parts != NULL && i < n; i++)
        dt_run_fini(&parts[i]);
    return status == DT_OK ? status : members_break(group, at, status, failure);
}

/* ---- further requests */

dt_status dt_group_exchange(struct dt_group *group, const struct dt_exchange_request *exchange,
                            int64_t deadline_ns, long long ns[], struct dt_failure *failure)
{
    const size_t sizes = (size_t)exchange->sizes, times = (size_t)exchange->times;
    struct answers DT_CLEANUP(answers_fini) answers;
    json_t *bytes = json_array();
    for (size_t i = 0; i < sizes; i++)
        json_array_append_new(bytes, json_integer(exchange->bytes[i]));
    json_t *request = json_pack("{s:s, s:s, s:i, s:i, s:o, s:i}", "op", "exchange", "kind",
                                exchange->kind, "group", exchange->ranks, "stride",
                                exchange->stride, "bytes", bytes, "n", exchange->times);
    DT_TRY(members_ask(group, request, "exchanged", deadline_ns, &answers, failure));
    memset(ns, 0, sizes * times * sizeof *ns);
    for (int i = 0; i < answers.count; i++) { /* that of the slowest replica */
        dt_auto_free long long *read = NULL;
        struct dt_run_fault fault;
        const json_t *rows = json_object_get(answers.at[i], "ns");
        if (!dt_times_read(rows, sizes, times, 1, &read, &fault)) {
            snprintf(failure->cause, sizeof failure->cause,
                     "the answer's ns has not %d times for each size", exchange->times);
            return dt_fail(DT_FAILED, "%s", failure->cause);
        }
        for (size_t k = 0; read != NULL && k < sizes * times; k++)
            ns[k] = read[k] > ns[k] ? read[k] : ns[k];
    }
    return DT_OK;
}

dt_status dt_group_peak(struct dt_group *group, int64_t deadline_ns, double *flop_rate,
                        double *copy_rate, struct dt_failure *failure)
{
    struct answers DT_CLEANUP(answers_fini) answers;
    dt_status status = members_ask(group, json_pack("{s:s}", "op", "peak"), "peak", deadline_ns,
                                   &answers, failure);
    *flop_rate = *copy_rate = answers.count > 0 ? 0 : NAN;
    for (int i = 0; i < answers.count; i++) {
        *flop_rate += dt_json_number_at(answers.at[i], "flop_rate");
        *copy_rate += dt_json_number_at(answers.at[i], "copy_bytes_per_second");
    }
    return status;
}

dt_status dt_group_trace(struct dt_group *group, int handle, int steps, int64_t deadline_ns,
                         char **text, struct dt_failure *failure)
{
    dt_auto_text out = {0};
    struct answers DT_CLEANUP(answers_fini) answers;
    json_t *request = json_pack("{s:s, s:i, s:i}", "op", "trace", "handle", handle, "n", steps);
    DT_TRY(members_ask(group, request, "traced", deadline_ns, &answers, failure));
    for (int i = 1; i < answers.count; i++) /* the first one lists the ranks of all */
        json_array_extend(json_object_get(answers.at[0], "ranks"),
                          json_object_get(answers.at[i], "ranks"));
    dt_status status = dt_json_text(answers.at[0], &out);
    *text = status == DT_OK ? dt_text_take(&out) : NULL;
    return status;
}

dt_status dt_group_write(struct dt_group *group, int handle, const char *path, int64_t deadline_ns,
                         struct dt_failure *failure)
{
    json_auto_t *answer = NULL;
    json_auto_t *request =
        json_pack("{s:s, s:i, s:s}", "op", "write", "handle", handle, "path", path);
    return dt_group_call(group->members[0], request, "written", deadline_ns, &answer, failure);
}
