/* SPDX-License-Identifier: MIT */
/* torchrun - becomes a rank of another worker */
#ifndef DT_WORKER_TORCHRUN_H
#define DT_WORKER_TORCHRUN_H

#include "base/status.h"

#define DT_TORCHRUN "--as-torchrun" /* dittune-worker --as-torchrun PROGRAM [ARGUMENT ..] */

/* Returns with an error only. program: NULL-ended. */
dt_status dt_torchrun_become(char *const program[]) DT_MUST_CHECK;

#endif
