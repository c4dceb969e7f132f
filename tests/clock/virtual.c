/* SPDX-License-Identifier: MIT */
/* virtual - base/clock.h with virtual time of a session: a program linked with this
 * file never waits for it
 *
 * DITTUNE_CLOCK names a file of eight bytes, the nanoseconds since the session began. The scenario
 * worker (tests/scenario) adds the planted duration of each answer; otherwise only
 * DITTUNE_CLOCK_LOOK advances it: the nanoseconds that pass at each reading of the clock (1000 when
 * not set), so that no loop waits for ever. Without DITTUNE_CLOCK the time is the process's own,
 * shared with its children. DITTUNE_CLOCK_WALL is the time of day, in nanoseconds since 1970, at
 * which the session began, for repeatable tests; else the current time.
 *
 * The load of the machine is planted, too: 0, or DITTUNE_CLOCK_LOAD.
 *
 * Bit 62 of the eight bytes is set while a worker has advanced the time but not yet written its
 * answer: readers then wait, so that on any machine an answer is available as
 * soon as its time is. */
#include "base/clock.h"
#include "tuner/runner/load.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define START_NS (1000 * DT_NS_PER_SECOND) /* no test may take 0 for a time */

#define ANSWERING (1LL << 62)
#define PATIENCE  10000 /* looks of 0.1 ms at a worker that is answering: it may have been killed */

static int64_t *elapsed_ns;
static int64_t look_ns = 1000, wall_start_ns;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * DT_NS_PER_SECOND + now.tv_nsec;
}

/* The time, when no worker is about to answer. */
static int64_t elapsed(void)
{
    int64_t now = __atomic_load_n(elapsed_ns, __ATOMIC_SEQ_CST);
    for (int i = 0; (now & ANSWERING) != 0 && i < PATIENCE; i++) {
        dt_clock_sleep_ns(100000);
        now = __atomic_load_n(elapsed_ns, __ATOMIC_SEQ_CST);
    }
    if ((now & ANSWERING) != 0)
        now = __atomic_and_fetch(elapsed_ns, ~ANSWERING, __ATOMIC_SEQ_CST);
    return now;
}

static void map_file(void)
{
    const char *path = getenv("DITTUNE_CLOCK"), *look = getenv("DITTUNE_CLOCK_LOOK");
    const char *wall = getenv("DITTUNE_CLOCK_WALL");
    int fd = path != NULL ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (path != NULL && (fd < 0 || ftruncate(fd, sizeof *elapsed_ns) != 0)) {
        perror(path);
        exit(64);
    }
    elapsed_ns = mmap(NULL, sizeof *elapsed_ns, PROT_READ | PROT_WRITE,
                      fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd, 0);
    if (elapsed_ns == MAP_FAILED) {
        perror("mmap");
        exit(64);
    }
    if (fd >= 0)
        close(fd);
    if (look != NULL)
        look_ns = strtoll(look, NULL, 10);
    wall_start_ns = read_clock(CLOCK_REALTIME) - elapsed();
    if (wall != NULL)
        wall_start_ns = strtoll(wall, NULL, 10);
}

int64_t dt_clock_ns(void)
{
    pthread_once(&once, map_file);
    __atomic_add_fetch(elapsed_ns, look_ns, __ATOMIC_SEQ_CST);
    return START_NS + elapsed();
}

void dt_clock_skip_ns(int64_t ns)
{
    (void)ns;
}

int64_t dt_clock_skipped_ns(void)
{
    return 0;
}

int64_t dt_clock_machine_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

/* Planted time goes on from DITTUNE_CLOCK_WALL, or from when the program began. */
int64_t dt_clock_wall_ns(void)
{
    pthread_once(&once, map_file);
    return wall_start_ns + elapsed();
}

int64_t dt_clock_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* Instead of the C library's. */
int getloadavg(double loads[], int n)
{
    const char *load = getenv("DITTUNE_CLOCK_LOAD");
    for (int i = 0; i < n; i++)
        loads[i] = load != NULL ? strtod(load, NULL) : 0;
    return n;
}

void dt_clock_wait_ns(int64_t ns)
{
    pthread_once(&once, map_file);
    __atomic_add_fetch(elapsed_ns, ns, __ATOMIC_SEQ_CST);
}

/* Others on the cores, instead of the system's: DITTUNE_CLOCK_OTHERS names a file of lines "SECOND
 * CORES STOLEN": so many are busy from that second of the session on, and so many of these a
 * hypervisor takes (none where it is left out). Without it none are. */
void dt_load_read(struct dt_load_reading *reading)
{
    const char *path = getenv("DITTUNE_CLOCK_OTHERS");
    FILE *file = path != NULL ? fopen(path, "re") : NULL;
    pthread_once(&once, map_file);
    double now = (double)elapsed() * 1e-9, from, cores, since = 0, busy = 0, gone = 0;
    char line[128];
    memset(reading, 0, sizeof *reading);
    reading->known = true;
    reading->at = now;
    while (file != NULL && since < now && fgets(line, sizeof line, file) != NULL) {
        double stolen = 0, span;
        if (sscanf(line, "%lf %lf %lf", &from, &cores, &stolen) < 2)
            break;
        span = from < now ? from - since : now - since;
        reading->busy += span * (busy - gone);
        reading->stolen += span * gone;
        since = from;
        busy = cores;
        gone = stolen;
    }
    if (since < now) {
        reading->busy += (now - since) * (busy - gone);
        reading->stolen += (now - since) * gone;
    }
    if (file != NULL) {
        fclose(file);
        reading->programs[reading->count++] =
            (struct dt_load_program){.pid = 1, .seconds = reading->busy, .name = "planted"};
    }
}

void dt_clock_sleep_ns(int64_t ns)
{
    struct timespec left = {.tv_sec = ns / DT_NS_PER_SECOND, .tv_nsec = ns % DT_NS_PER_SECOND};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}
