/* SPDX-License-Identifier: MIT */
/* environment - removes variables about threads and cores before libraries read them
 *
 * OpenMP and OpenBLAS read variables when they are loaded, before main, and act on them: under
 * OMP_PROC_BIND the program finds itself on one core, and under OMP_THREAD_LIMIT=1 OpenBLAS waits
 * for ever for a second thread. So a program that calls dt_environment_dropped anywhere starts
 * without them: they are removed before any library reads the environment
 * (docs/decisions/0005-thread-variables.md).
 */
#ifndef DT_BASE_ENVIRONMENT_H
#define DT_BASE_ENVIRONMENT_H

/* The removed variables, "NAME=value", NULL-ended; to be passed on to foreign programs. */
char *const *dt_environment_dropped(void);

#endif
