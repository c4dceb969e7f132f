/* SPDX-License-Identifier: MIT */
/* The other side of tests/clock/virtual.c: eight bytes that the controller reads as its time. */
#include "tests/scenario/scenario.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define HEARTBEAT_NS 1000000000LL /* a heartbeat each second of long work */
#define ANSWERING    (1LL << 62)  /* as in tests/clock/virtual.c */
#define PIPE_ROOM    32768        /* what can be written though the controller waits */

static char heartbeat[160] = "{\"op\":\"heartbeat\"}\n";
static int64_t *elapsed_ns; /* NULL: there is no virtual clock */

void clock_open(const char *said)
{
    if (said[0] != '\0')
        snprintf(heartbeat, sizeof heartbeat, "{\"op\":\"heartbeat\",\"say\":\"%.99s\"}\n", said);
    const char *path = getenv("DITTUNE_CLOCK");
    int fd = path != NULL ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (path == NULL)
        return;
    if (fd < 0 || ftruncate(fd, sizeof *elapsed_ns) != 0)
        die("cannot open the clock", path);
    void *mapped = mmap(NULL, sizeof *elapsed_ns, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        die("cannot map the clock", path);
    elapsed_ns = mapped;
    close(fd);
}

double clock_seconds(void)
{
    return elapsed_ns != NULL
               ? (double)(__atomic_load_n(elapsed_ns, __ATOMIC_SEQ_CST) & ~ANSWERING) * 1e-9
               : 0;
}

static const struct timespec moment = {.tv_nsec = 200000};

/* Wakes the controller, and returns when it has read this. */
static void beat(int out)
{
    int unread = 1;
    write_all(out, heartbeat, strlen(heartbeat));
    while (ioctl(out, FIONREAD, &unread) == 0 && unread > 0)
        nanosleep(&moment, NULL);
}

/* Between two heartbeats the controller looks at its clock: when this returns, it has seen the new
 * time, and a deadline that has passed meanwhile will end this process. */
static void step(int out, int64_t ns)
{
    __atomic_add_fetch(elapsed_ns, ns, __ATOMIC_SEQ_CST);
    beat(out);
    beat(out);
}

void clock_move_for_ever(int out, double step_ns)
{
    while (elapsed_ns == NULL)
        pause();
    for (;;)
        step(out, (int64_t)step_ns);
}

void clock_answer(int out, double ns, const char *text, size_t size)
{
    size_t first = size < PIPE_ROOM ? size : PIPE_ROOM;
    for (; elapsed_ns != NULL && ns > HEARTBEAT_NS; ns -= HEARTBEAT_NS)
        step(out, HEARTBEAT_NS);
    if (elapsed_ns != NULL) {
        __atomic_fetch_or(elapsed_ns, ANSWERING, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(elapsed_ns, (int64_t)ns, __ATOMIC_SEQ_CST);
    }
    write_all(out, text, first);
    if (elapsed_ns != NULL)
        __atomic_and_fetch(elapsed_ns, ~ANSWERING, __ATOMIC_SEQ_CST);
    write_all(out, text + first, size - first);
}
