/* SPDX-License-Identifier: MIT */
/* watch - ends a rank whose controller or rank 0 has ended, even in an exchange that never ends
 *
 * Between requests a rank sleeps in a read and sees the end of its input there. While it works, a timer checks every
 * five seconds (a check takes a microsecond), and exits at once when the other side has ended.
 */
#ifndef DT_WORKER_WATCH_H
#define DT_WORKER_WATCH_H

#include "worker/wire.h"

#include <stdbool.h>

/* The other side has closed its end, and no message is unread. */
bool dt_watch_gone(const struct dt_wire *wire);

/* Between start and stop the process exits with 1 when the other side of wire has ended. One wire at a time. */
void dt_watch_start(const struct dt_wire *wire);
void dt_watch_stop(void);

#endif
