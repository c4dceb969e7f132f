/* SPDX-License-Identifier: MIT */
/* clock - time in integer nanoseconds
 *
 * The controller reads every budget, deadline and cost from dt_clock_ns and nothing else, so a test
 * program that is linked with another definition of this file (tests/clock/virtual.c) decides how
 * time passes. Waiting for processes and devices to react is not part of a session's time: use
 * dt_clock_machine_ns for it. */
#ifndef DT_BASE_CLOCK_H
#define DT_BASE_CLOCK_H

#include <stdint.h>

/* CLOCK_MONOTONIC less what dt_clock_skip_ns took out: not comparable between
 * hosts. Virtual in tests. */
int64_t dt_clock_ns(void);

/* Subtracts ns nanoseconds from dt_clock_ns because this process was stopped meanwhile
 * (tuner/runner/pause.h); every deadline and budget moves by as much. A virtual clock ignores the
 * call, since it does not run by itself. */
void dt_clock_skip_ns(int64_t ns);
int64_t dt_clock_skipped_ns(void); /* total taken out so far */

/* CLOCK_MONOTONIC, also in tests: for time limits of processes that must end and
 * devices that must settle. */
int64_t dt_clock_machine_ns(void);

/* Nanoseconds since 1970 (CLOCK_REALTIME); may jump. */
int64_t dt_clock_wall_ns(void);

/* Processor time of this thread only (CLOCK_THREAD_CPUTIME_ID). */
int64_t dt_clock_thread_ns(void);

/* Lets ns nanoseconds of dt_clock_ns pass, less where a signal arrives: sleeps; a virtual
 * clock only moves on. */
void dt_clock_wait_ns(int64_t ns);

/* Sleeps at least ns nanoseconds of dt_clock_machine_ns; continues after interruptions. */
void dt_clock_sleep_ns(int64_t ns);

#define DT_NS_PER_SECOND 1000000000LL

#endif
