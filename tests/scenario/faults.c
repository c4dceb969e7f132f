/* SPDX-License-Identifier: MIT */
/* Misbehaviour: a row of the scenario's "faults" names a fault of the table below, the plans
 * ("when") and the request ("at") at which it strikes. It strikes when the answer is ready, before
 * the clock is moved and the answer is logged and sent. */
#include "tests/scenario/scenario.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1 << 20)

/* A row of the scenario that strikes a reply. */
struct strike {
    struct worker *worker;
    const json_t *fault;
    struct reply *reply;
};

/* ---- ends and silence */

static void leave(const struct strike *strike)
{
    const char *why = text_of(strike->fault, "say", NULL);
    if (why != NULL)
        fprintf(stderr, "%s\n", why);
    fflush(stderr);
    _exit((int)number_of(strike->fault, "code", 3));
}

static void die_of_signal(const struct strike *strike)
{
    int number = (int)number_of(strike->fault, "signal", SIGSEGV);
    signal(number, SIG_DFL); /* sanitizers catch some */
    kill(getpid(), number);
    pause();
}

static void hang(const struct strike *strike)
{
    clock_move_for_ever(strike->worker->out, number_of(strike->fault, "step_ns", 1e8));
}

static void hang_real(const struct strike *strike)
{
    (void)strike;
    for (;;)
        pause();
}

static void spin(const struct strike *strike)
{
    (void)strike;
    for (volatile unsigned i = 0;; i = i + 1)
        ;
}

static void stubborn(const struct strike *strike)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    hang_real(strike);
}

/* ---- output that is not a message */

static void repeat(int fd, const char *pattern, size_t size, int64_t bytes)
{
    static char block[MIB];
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = pattern[i % size];
    for (; bytes > 0; bytes -= MIB)
        write_all(fd, block, bytes < MIB ? (size_t)bytes : sizeof block);
}

static void flood(const struct strike *strike)
{
    repeat(strike->worker->out, "x", 1, (int64_t)number_of(strike->fault, "bytes", 1024.0 * MIB));
}

static void garbage(const struct strike *strike)
{
    char bytes[128];
    for (int i = 0; i < 128; i++)
        bytes[i] = (char)(128 + i);
    write_all(strike->worker->out, bytes, sizeof bytes);
    write_all(strike->worker->out, " 42 [[[\n", 8);
}

static void half(const struct strike *strike)
{
    write_all(strike->worker->out, "{\"op\": \"samp", 12);
    _exit(0);
}

static void chatter(const struct strike *strike)
{
    static const char line[] = "\xff\0noise\n";
    repeat(STDERR_FILENO, line, sizeof line - 1,
           (int64_t)number_of(strike->fault, "bytes", 8.0 * MIB));
    printf("a library greets\n");
    fflush(stdout);
}

/* ---- other answers */

static void infeasible(const struct strike *strike)
{
    reply_fail(strike->reply, "infeasible",
               text_of(strike->fault, "say", "this plan is not possible any more"));
}

static void memory(const struct strike *strike)
{
    reply_fail(strike->reply, "memory", text_of(strike->fault, "say", "needs 5 TiB, has 1 MiB"));
}

static void error(const struct strike *strike)
{
    reply_fail(strike->reply, "error", text_of(strike->fault, "say", "planted"));
}

static void unapplied(const struct strike *strike)
{
    reply_fail(strike->reply, "unapplied",
               text_of(strike->fault, "say", "fake runs with mode=off, the plan has mode=on"));
}

/* Adds size to one projection of the last image; size 0 makes it null. */
static void spoil_projection(const struct reply *reply, double size)
{
    json_t *rows = json_object_get(json_object_get(reply->message, "verify"), "projections");
    json_t *row = json_array_get(rows, json_array_size(rows) - 1);
    size_t k = json_array_size(row) / 2;
    double was = json_number_value(json_array_get(row, k));
    if (json_array_set_new(row, k, size > 0 ? json_real(was + size) : json_null()) != 0)
        die("there is no verification to spoil", "");
}

static void wrong(const struct strike *strike)
{
    spoil_projection(strike->reply, number_of(strike->fault, "size", 0.01));
}

static void not_a_number(const struct strike *strike)
{
    spoil_projection(strike->reply, 0);
}

static void answer(const struct strike *strike)
{
    json_object_update(strike->reply->message, json_object_get(strike->fault, "fields"));
}

static void delay(const struct strike *strike)
{
    strike->reply->ns += number_of(strike->fault, "ns", 1e9);
}

/* ---- effects outside the worker */

/* Leaves a process behind, in a session of its own, that ignores SIGTERM. */
static void orphan(const struct strike *strike)
{
    (void)strike;
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() == 0) {
            signal(SIGTERM, SIG_IGN);
            for (int fd = 0; fd < 64; fd++)
                close(fd);
            for (;;)
                pause();
        }
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

/* Replaces the file, when it is one, by an empty folder. */
static void break_file(const struct strike *strike)
{
    const char *path = text_of(strike->fault, "path", "");
    struct stat found;
    if (stat(path, &found) == 0 && S_ISREG(found.st_mode) &&
        (unlink(path) != 0 || mkdir(path, 0755) != 0))
        die("cannot break", path);
}

static const struct {
    const char *name, *at; /* at: the request when the scenario names none */
    void (*act)(const struct strike *strike);
} faults[] = {
    {"exit", "run", leave},
    {"segv", "prepare", die_of_signal},
    {"hang", "run", hang},
    {"hang_real", "run", hang_real},
    {"spin", "run", spin},
    {"stubborn", "run", stubborn},
    {"flood", "run", flood},
    {"garbage", "run", garbage},
    {"half", "run", half},
    {"chatter", "run", chatter},
    {"infeasible", "prepare", infeasible},
    {"memory", "prepare", memory},
    {"error", "run", error},
    {"unapplied", "prepare", unapplied},
    {"wrong", "prepare", wrong},
    {"nan", "prepare", not_a_number},
    {"answer", "run", answer},
    {"delay", "run", delay},
    {"orphan", "prepare", orphan},
    {"break", "run", break_file},
};

/* ---- which faults strike a reply */

static int find(const json_t *fault)
{
    const char *name = text_of(fault, "do", "");
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (strcmp(faults[i].name, name) == 0)
            return (int)i;
    die("there is no fault", name);
}

static bool fits(const json_t *fault, const struct reply *reply)
{
    const char *at = text_of(fault, "at", faults[find(fault)].at);
    bool here = strcmp(at, reply->at) == 0 || (reply->mode != NULL && strcmp(at, reply->mode) == 0);
    bool copy = reply->copy || !json_is_true(json_object_get(fault, "copy"));
    return here && copy && plan_fits(json_object_get(fault, "when"), reply->plan);
}

void faults_check(const json_t *root)
{
    static const char *const places[] = {"hello",   "ready",   "prepare",  "run",  "warmup",
                                         "measure", "release", "exchange", "peak", "quit"};
    const json_t *fault;
    size_t row;
    json_array_foreach(json_object_get(root, "faults"), row, fault)
    {
        const char *at = text_of(fault, "at", faults[find(fault)].at);
        bool known = false;
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
            known = known || strcmp(places[i], at) == 0;
        if (!known || row >= FAULTS_MOST)
            die(known ? "there are too many" : "faults do not strike at", known ? "faults" : at);
    }
}

/* "from": not in processes before this one; "skip": not the first n times in a process; "first":
 * not more than n times in all. */
static bool is_turn(struct worker *worker, const json_t *fault, int row)
{
    const json_t *first = json_object_get(fault, "first");
    if (worker->process < (int)number_of(fault, "from", 0) ||
        worker->passed[row]++ < (int)number_of(fault, "skip", 0))
        return false;
    return first == NULL || log_strikes(worker, row) < (int)json_integer_value(first);
}

void faults_strike(struct worker *worker, struct reply *reply)
{
    const json_t *fault, *rows = json_object_get(worker->scenario.root, "faults");
    size_t row;
    json_array_foreach(rows, row, fault)
    {
        if (!fits(fault, reply) || !is_turn(worker, fault, (int)row))
            continue;
        log_note(worker, json_pack("{s:s, s:i, s:s, s:s}", "op", "fault", "row", (int)row, "do",
                                   text_of(fault, "do", ""), "at", reply->at));
        faults[find(fault)].act(&(struct strike){worker, fault, reply});
    }
}
