/* SPDX-License-Identifier: MIT */
/* clock - time in integer nanoseconds
 *
 * The controller reads every budget, deadline and cost from dt_clock_ns and nothing else, so a test program that is linked
 * with another definition of this file (tests/clock/virtual.c) decides how time passes. Waiting for processes and devices
 * to react is not part of a session's time: that is counted by dt_clock_machine_ns. */
#ifndef DT_BASE_CLOCK_H
#define DT_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC less what dt_clock_skip_ns took out: not comparable between hosts. Virtual in tests. */
int64_t dt_clock_ns(void);

/* Takes ns nanoseconds that have passed out of dt_clock_ns, so that every deadline and budget moves by as much: this process
 * was stopped meanwhile (tuner/runner/pause.h). A virtual clock ignores it, as it does not run on by itself. */
void dt_clock_skip_ns(int64_t ns);
int64_t dt_clock_skipped_ns(void); /* all of it so far */

/* CLOCK_MONOTONIC, also in tests: the patience with processes that end and devices that settle. */
int64_t dt_clock_machine_ns(void);

/* Nanoseconds since 1970 (CLOCK_REALTIME); may jump. */
int64_t dt_clock_wall_ns(void);

/* Processor time of this thread (CLOCK_THREAD_CPUTIME_ID): who else is at work does not count. */
int64_t dt_clock_thread_ns(void);

/* Sleeps at least ns nanoseconds of dt_clock_machine_ns, through interruptions. */
void dt_clock_sleep_ns(int64_t ns);

#define DT_NS_PER_SECOND 1000000000LL

#endif
