/* SPDX-License-Identifier: MIT */
/* lock - one measurement at a time on a machine
 *
 * Two sessions at once measure each other. A command that measures takes this lock, flock(2) on a file that all users of
 * the machine share, and holds it until its process ends, however it ends. Nothing is written to the file: who holds it is
 * read from /proc, so it needs no rights but to be read.
 */
#ifndef DT_TUNER_MACHINE_LOCK_H
#define DT_TUNER_MACHINE_LOCK_H

#include "base/status.h"

#include <stdbool.h>

/* Takes the lock of $DITTUNE_LOCK ("none": there is none), else of /dev/shm/dittune.lock, else of /tmp/dittune.lock. While
 * another process holds it: notes who and waits (*waited is set), or DT_EBUSY with that sentence when wait is false. DT_EINTR
 * when a signal ended the wait. A lock that cannot be opened is noted, and no error. note is given whole sentences. */
dt_status dt_lock_measuring(bool wait, void (*note)(const char *sentence),
                            bool *waited) DT_MUST_CHECK;

#endif
