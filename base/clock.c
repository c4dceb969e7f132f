/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

static _Atomic int64_t skipped_ns;

static int64_t read_clock(clockid_t id)
{
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * DT_NS_PER_SECOND + now.tv_nsec;
}

int64_t dt_clock_ns(void)
{
    return read_clock(CLOCK_MONOTONIC) - atomic_load_explicit(&skipped_ns, memory_order_relaxed);
}

void dt_clock_skip_ns(int64_t ns)
{
    atomic_fetch_add(&skipped_ns, ns);
}

int64_t dt_clock_skipped_ns(void)
{
    return atomic_load(&skipped_ns);
}

int64_t dt_clock_machine_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t dt_clock_wall_ns(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t dt_clock_thread_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void dt_clock_sleep_ns(int64_t ns)
{
    struct timespec left = {.tv_sec = ns / DT_NS_PER_SECOND, .tv_nsec = ns % DT_NS_PER_SECOND};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

void dt_clock_wait_ns(int64_t ns)
{
    struct timespec left = {.tv_sec = ns / DT_NS_PER_SECOND, .tv_nsec = ns % DT_NS_PER_SECOND};
    nanosleep(&left, NULL);
}
