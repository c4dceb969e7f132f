/* SPDX-License-Identifier: MIT */
/* clock - the monotonic clock in integer nanoseconds; wall time only for people and journals */
#ifndef DT_BASE_CLOCK_H
#define DT_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC: never jumps, not comparable between hosts. */
int64_t dt_clock_ns(void);

/* Nanoseconds since 1970 (CLOCK_REALTIME); may jump. */
int64_t dt_clock_wall_ns(void);

/* Processor time of this thread (CLOCK_THREAD_CPUTIME_ID): who else is at work does not count. */
int64_t dt_clock_thread_ns(void);

/* Sleeps at least ns nanoseconds, through interruptions. */
void dt_clock_sleep_ns(int64_t ns);

#define DT_NS_PER_SECOND 1000000000LL

#endif
