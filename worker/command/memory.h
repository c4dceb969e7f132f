/* SPDX-License-Identifier: MIT */
/* memory - whether a program that failed ran out of memory, by its words and by its end
 *
 * To add a phrase, add a row in memory.c.
 */
#ifndef DT_WORKER_COMMAND_MEMORY_H
#define DT_WORKER_COMMAND_MEMORY_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

/* The phrase that the end of the text has; NULL: none. */
const char *dt_memory_phrase(const struct dt_text *text);

/* Processes that the kernel has killed so far since memory ran out (/proc/vmstat; DITTUNE_VMSTAT names another file, for tests); -1: not
 * known. */
int64_t dt_memory_kills(void);

/* wait_status is that of a program that was killed for memory: SIGKILL while the kernel killed someone for it (kills: before it began),
 * or exit code 137, by which a shell, a launcher or a container tells that SIGKILL ended what it ran. */
bool dt_memory_killed(int wait_status, int64_t kills);

#endif
