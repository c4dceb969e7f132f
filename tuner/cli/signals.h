/* SPDX-License-Identifier: MIT */
/* signals - Ctrl-C, kill and the end of a terminal
 *
 * A signal that the parent process ignores stays ignored: nohup ignores SIGHUP, and a shell without
 * job control ignores SIGINT for background processes.
 */
#ifndef DT_TUNER_CLI_SIGNALS_H
#define DT_TUNER_CLI_SIGNALS_H

#include "base/status.h"

/* Calls handler on SIGINT, SIGTERM and SIGHUP, in place of an earlier handler. */
void dt_signals_catch(void (*handler)(int number));

/* DT_EINTR, DT_ETERM or DT_EHUP. */
dt_status dt_signals_status(int number);

#endif
