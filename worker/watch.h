/* SPDX-License-Identifier: MIT */
/* watch - no rank outlives the one above it, not even from within an exchange that never ends
 *
 * Between requests a rank sleeps in a read and sees the end of its input there. While it works, a timer looks every five
 * seconds (a look takes a microsecond), and leaves the process at once when the other side is gone.
 */
#ifndef DT_WORKER_WATCH_H
#define DT_WORKER_WATCH_H

#include "worker/wire.h"

#include <stdbool.h>

/* The other side closed its end, and nothing it said is unread. */
bool dt_watch_gone(const struct dt_wire *wire);

/* From start to stop the process exits with 1 when the other side of wire is gone. One wire at a time. */
void dt_watch_start(const struct dt_wire *wire);
void dt_watch_stop(void);

#endif
