/* SPDX-License-Identifier: MIT */
/* leftovers - the processes that a program leaves behind are found and ended, so that none runs
 * beside the next plan
 *
 *     dt_leftovers_adopt();                        -- once: orphans below this process become its children
 *     program.pid = fork() ..                      -- run it to its end, or until it takes too long
 *     dt_leftovers_find(&wait, &program, &found);  -- after its end: what it left, and whether that disturbs the next run
 *     dt_leftovers_end(&wait, &program);           -- TERM, a short grace, KILL, until nothing is left below this process
 *
 * Everything below this process counts: ranks in process groups of their own (mpirun), in sessions
 * of their own (torchrun, setsid), double forks. A process may have one program at a time.
 */
#ifndef DT_WORKER_COMMAND_LEFTOVERS_H
#define DT_WORKER_COMMAND_LEFTOVERS_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DT_LEFTOVERS_NAMED    8
#define DT_LEFTOVERS_GRACE_NS INT64_C(500000000) /* from TERM to KILL */

/* The first process of a program. The functions below reap every child of this process,
 * so they take its end. */
struct dt_program_run {
    pid_t pid;
    bool ended;
    int wait_status;    /* once it has ended */
    int64_t peak_bytes; /* the largest process's, of those reaped so far */
};

struct dt_leftover {
    pid_t pid;
    char name[17];
    int port;     /* TCP port on which it listens; 0: none */
    double cores; /* that it keeps busy */
};

struct dt_leftovers {
    int count; /* all processes, also those that are not named */
    struct dt_leftover named[DT_LEFTOVERS_NAMED];
};

/* Called every few milliseconds of a wait: drains pipes, sends heartbeats. An error ends the grace:
 * KILL is sent at once. */
struct dt_leftovers_wait {
    dt_status (*tick)(void *context);
    void *context;
    int64_t grace_ns;
};

void dt_leftovers_adopt(void);

/* Reaps every child that has ended. False when no child is left. */
bool dt_leftovers_reap(struct dt_program_run *program);

/* Call after the end of the program: gives what it started 100 ms to end by itself, and lists what
 * still runs. At once when there is nothing. The errors of tick. */
dt_status dt_leftovers_find(const struct dt_leftovers_wait *wait, struct dt_program_run *program,
                            struct dt_leftovers *found) DT_MUST_CHECK;

/* Ends the program, if it runs, and all else below this process. The errors of tick, after the end
 * of all; DT_FAILED names a process that does not end within ten seconds of KILL (it waits for a
 * driver or a file system). */
dt_status dt_leftovers_end(const struct dt_leftovers_wait *wait,
                           struct dt_program_run *program) DT_MUST_CHECK;

/* DT_FAILED names a process that would disturb later runs, as it listens on a port or keeps a core
 * busy; with `any`, whatever was left. */
dt_status dt_leftovers_refuse(const struct dt_leftovers *found, bool any) DT_MUST_CHECK;

/* "sleep, python3": each name once. */
void dt_leftovers_names(const struct dt_leftovers *found, struct dt_text *out);

#define DT_SOCKETS_MOST 256

/* Sockets by their inodes; those beyond the room are not kept. */
struct dt_sockets {
    unsigned long inodes[DT_SOCKETS_MOST];
    int count;
};

/* The sockets that a process holds; none when its descriptors cannot be read. */
void dt_sockets_of(pid_t pid, struct dt_sockets *out);

/* The sockets that listen on a TCP port, in this network name space. */
void dt_sockets_listening(int port, struct dt_sockets *out);

#endif
