/* SPDX-License-Identifier: MIT */
/* environment - threads and cores of our programs are not the business of the user's shell
 *
 * OpenMP and OpenBLAS read variables when they are loaded, before main, and act on them: under OMP_PROC_BIND the program
 * finds itself on one core, and under OMP_THREAD_LIMIT=1 OpenBLAS waits for ever for a second thread. So a program that
 * calls dt_environment_dropped anywhere starts without them: they are taken out of its environment before any library
 * looks (docs/decisions/0005-thread-variables.md).
 */
#ifndef DT_BASE_ENVIRONMENT_H
#define DT_BASE_ENVIRONMENT_H

/* What was taken out, "NAME=value", NULL-ended; to be handed on to programs that are not ours. */
char *const *dt_environment_dropped(void);

#endif
