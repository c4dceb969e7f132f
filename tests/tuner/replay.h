/* SPDX-License-Identifier: MIT */
/* replay - a worker that only repeats what one once said: a test program started again
 * with DITTUNE_REPLAY=FILE
 *
 * Lines of the file (recorded with DITTUNE_TRANSCRIPT=FILE, or written by hand):
 *   > {...}     the next request must be this one, field by field (fields not named here may be anything)
 *   < {...}     say this
 *   ! raw TEXT  say TEXT without the end of the line      ! say TEXT    say TEXT as a line
 *   ! exit N    exit with N                               ! kill N      die of signal N
 *   ! hang      say nothing any more                       ! stop        stop until SIGCONT
 *   ! compute   for a second of processor time
 *   ! replica N DIRECTIVE    the directive, in that replica alone
 */
#ifndef DT_TESTS_TUNER_REPLAY_H
#define DT_TESTS_TUNER_REPLAY_H

#include "base/clock.h"
#include "worker/wire.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A deadline for what must come, however busy the machine is. */
static inline int64_t replay_deadline(void)
{
    return dt_clock_ns() + 600 * DT_NS_PER_SECOND;
}

/* Every field of want is in got, with an equal value. */
static inline bool replay_matches(const json_t *want, const json_t *got)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)want, key, value)
    {
        if (!json_equal(value, json_object_get(got, key)))
            return false;
    }
    return true;
}

static inline int replay_directive(const char *line)
{
    if (strncmp(line, "raw ", 4) == 0)
        return write(STDOUT_FILENO, line + 4, strcspn(line + 4, "\n")) > 0 ? 0 : 1;
    if (strncmp(line, "say ", 4) == 0)
        return write(STDOUT_FILENO, line + 4, strlen(line + 4)) > 0 ? 0 : 1;
    if (strncmp(line, "stop", 4) == 0)
        return raise(SIGSTOP);
    if (strncmp(line, "compute", 7) == 0) {
        int64_t end = dt_clock_thread_ns() + DT_NS_PER_SECOND;
        while (dt_clock_thread_ns() < end)
            ;
        return 0;
    }
    if (strncmp(line, "replica ", 8) == 0) {
        const char *own = getenv("DITTUNE_REPLICA");
        char *rest;
        long replica = strtol(line + 8, &rest, 10);
        return own != NULL && atoi(own) == replica ? replay_directive(rest + 1) : 0;
    }
    if (strncmp(line, "exit ", 5) == 0)
        exit(atoi(line + 5));
    if (strncmp(line, "kill ", 5) == 0)
        return signal(atoi(line + 5), SIG_DFL) == SIG_ERR || raise(atoi(line + 5)) != 0;
    for (;;)
        pause();
}

static inline void replay_request(struct dt_wire *wire, json_t *want)
{
    json_t *got = NULL;
    dt_status status = dt_wire_read(wire, DT_WIRE_FOREVER, &got);
    if (status != DT_OK)
        exit(90);
    if (!replay_matches(want, got)) {
        fprintf(stderr, "expected %s, got %s\n", json_dumps(want, JSON_COMPACT),
                json_dumps(got, JSON_COMPACT));
        exit(91);
    }
    json_decref(got);
}

/* Repeats the file, then waits for quit or the end of standard input. */
static inline int replay(const char *path)
{
    static char line[1 << 20];
    struct dt_wire wire;
    FILE *file = fopen(path, "r");
    dt_wire_init(&wire, STDIN_FILENO, STDOUT_FILENO);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        json_t *message = NULL;
        if (line[0] == '!' && replay_directive(line + 2) != 0)
            return 92;
        if (line[0] != '<' && line[0] != '>')
            continue;
        if (dt_json_parse(line + 2, strlen(line + 2), "a transcript's line", &message) < 0)
            return 93;
        if (line[0] == '>')
            replay_request(&wire, message);
        else if (dt_wire_write(&wire, message) < 0)
            return 94;
        json_decref(message);
    }
    json_t *quit = NULL;
    return file != NULL && dt_wire_read(&wire, DT_WIRE_FOREVER, &quit) == DT_OK ? 0 : 95;
}

/* Makes this program, started once more, the worker that repeats the file. */
static inline const char *replay_self(const char *path)
{
    static char self[4096];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = '\0';
    setenv("DITTUNE_REPLAY", path, 1);
    return self;
}

/* The same with a file of these lines. */
static inline const char *replay_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
        abort();
    return replay_self(path);
}

#endif
