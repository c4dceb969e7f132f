/* SPDX-License-Identifier: MIT */
/* wire - lines of JSON between controller and worker (docs/protocol.md)
 *
 *     struct dt_wire wire;
 *     dt_wire_init(&wire, in_fd, out_fd);
 *     dt_wire_write(&wire, message);                      -- message is borrowed
 *     dt_wire_read(&wire, deadline_ns, &answer);          -- sleeps in poll; answer is a new reference
 */
#ifndef DT_WORKER_WIRE_H
#define DT_WORKER_WIRE_H

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

#define DT_PROTOCOL_VERSION 2
#define DT_WIRE_FOREVER     INT64_MAX

struct dt_wire {
    int in, out;            /* borrowed descriptors; -1 for none */
    struct dt_text pending; /* bytes read beyond the last line */
    size_t scanned;
    size_t taken; /* bytes of all lines read so far */
    int64_t last_write_ns;
};

void dt_wire_init(struct dt_wire *wire, int in, int out);
void dt_wire_fini(struct dt_wire *wire); /* does not close the descriptors */

/* Writes one line, retrying short writes. DT_EDEAD when the other side is gone.
 * SIGPIPE must be ignored. */
dt_status dt_wire_write(struct dt_wire *wire, const json_t *message) DT_MUST_CHECK;

/* The same for a new message, whose reference it takes. */
dt_status dt_wire_send(struct dt_wire *wire, json_t *message) DT_MUST_CHECK;

/* Waits until deadline_ns (dt_clock_ns time) for one line. DT_OK and a new reference to an object
 * with a string "op"; DT_ETIMEOUT; DT_EDEAD at end of file (the sentence says whether half a line
 * was pending); DT_EPROTO for a line that is not such an object or longer than 16 MiB; DT_EINTR
 * when a signal arrived (call again). Empty lines are skipped. */
dt_status dt_wire_read(struct dt_wire *wire, int64_t deadline_ns, json_t **message) DT_MUST_CHECK;

/* The message's "op". */
const char *dt_wire_op(const json_t *message);

#endif
