/* SPDX-License-Identifier: MIT */
/* Reads in blocks and cuts at newlines. Bytes are searched for a newline only once (`scanned`), so
 * a line that arrives byte by byte costs linear time; a line beyond the limit is refused before it
 * is stored completely. */
#include "worker/wire.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* A peer that stopped reading blocks a non-blocking descriptor at most this long. */
#define WRITE_PATIENCE_MS 10000

void dt_wire_init(struct dt_wire *wire, int in, int out)
{
    *wire = (struct dt_wire){.in = in, .out = out};
}

void dt_wire_fini(struct dt_wire *wire)
{
    dt_text_fini(&wire->pending);
    dt_wire_init(wire, -1, -1);
}

static dt_status write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t put = write(fd, bytes, size);
        if (put >= 0) {
            bytes += put;
            size -= (size_t)put;
        } else if (errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            if (poll(&ready, 1, WRITE_PATIENCE_MS) == 0)
                return dt_fail(DT_EDEAD, "the other side stopped reading");
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return dt_fail(DT_EDEAD, "the other side is gone");
        } else if (errno != EINTR) {
            return dt_fail(DT_EIO, "cannot write to the other side: %s", strerror(errno));
        }
    }
    return DT_OK;
}

dt_status dt_wire_write(struct dt_wire *wire, const json_t *message)
{
    dt_auto_text line = {0};
    DT_TRY(dt_json_text(message, &line));
    dt_text_add_bytes(&line, "\n", 1);
    DT_TRY(dt_text_status(&line));
    DT_TRY(write_all(wire->out, dt_text_at(&line), line.size));
    wire->last_write_ns = dt_clock_ns();
    return DT_OK;
}

dt_status dt_wire_send(struct dt_wire *wire, json_t *message)
{
    dt_status status = dt_wire_write(wire, message);
    json_decref(message);
    return status;
}

/* The length of the first whole line in pending, without its newline; -1 when there is none yet. */
static ssize_t line_length(struct dt_wire *wire)
{
    const struct dt_text *pending = &wire->pending;
    if (pending->size == wire->scanned)
        return -1;
    const char *end = memchr(pending->bytes + wire->scanned, '\n', pending->size - wire->scanned);
    wire->scanned = end == NULL ? pending->size : 0;
    return end == NULL ? -1 : end - pending->bytes;
}

static void drop_line(struct dt_wire *wire, size_t size)
{
    struct dt_text *pending = &wire->pending;
    memmove(pending->bytes, pending->bytes + size, pending->size - size + 1);
    pending->size -= size;
    wire->scanned = 0;
    wire->taken += size;
}

static dt_status parse_line(const char *line, size_t size, json_t **message)
{
    json_auto_t *root = NULL;
    dt_status status = dt_json_parse(line, size, "the line", &root);
    if (status == DT_OK && json_is_string(json_object_get(root, "op"))) {
        *message = json_incref(root);
        return DT_OK;
    }
    return dt_fail(DT_EPROTO, "not a JSON object with a string \"op\": '%.*s'%s",
                   size < 80 ? (int)size : 80, line, size < 80 ? "" : "...");
}

/* Sleeps until there is something to read, and reads one block of it. */
static dt_status fill_line(struct dt_wire *wire, int64_t deadline_ns)
{
    char block[65536];
    struct pollfd ready = {.fd = wire->in, .events = POLLIN};
    int timeout = -1;
    if (deadline_ns != DT_WIRE_FOREVER) {
        int64_t left = deadline_ns - dt_clock_ns();
        int64_t ms = left <= 0 ? 0 : left / 1000000 + (left % 1000000 != 0);
        timeout = ms > 1000000000 ? 1000000000 : (int)ms;
    }
    int n = poll(&ready, 1, timeout);
    if (n == 0)
        return DT_OK;
    ssize_t got = n < 0 ? -1 : read(wire->in, block, sizeof block);
    if (got < 0 && errno == EINTR)
        return dt_fail(DT_EINTR, "interrupted while waiting for the other side");
    if (got < 0 && errno == EAGAIN)
        return DT_OK;
    if (got < 0 && errno != ECONNRESET)
        return dt_fail(DT_EIO, "cannot read from the other side: %s", strerror(errno));
    if (got <= 0 && wire->pending.size > 0)
        return dt_fail(DT_EDEAD, "the other side ended in the middle of a line, after %zu bytes",
                       wire->pending.size);
    if (got <= 0)
        return dt_fail(DT_EDEAD, "the other side is gone");
    dt_text_add_bytes(&wire->pending, block, (size_t)got);
    return dt_text_status(&wire->pending);
}

dt_status dt_wire_read(struct dt_wire *wire, int64_t deadline_ns, json_t **message)
{
    for (bool late = false;;) {
        ssize_t length = line_length(wire);
        if (length > DT_JSON_MAX_BYTES || (length < 0 && wire->pending.size > DT_JSON_MAX_BYTES))
            return dt_fail(DT_EPROTO, "a line longer than %d bytes", DT_JSON_MAX_BYTES);
        if (length > 0) {
            dt_status status = parse_line(wire->pending.bytes, (size_t)length, message);
            drop_line(wire, (size_t)length + 1);
            return status;
        }
        if (length == 0) {
            drop_line(wire, 1);
            continue;
        }
        /* Pending data is read even after the deadline, but only once: a peer that sends bytes
         * slowly for ever must not block the reader. */
        if (late)
            return dt_fail(DT_ETIMEOUT, "the other side did not answer in time");
        late = dt_clock_ns() >= deadline_ns;
        DT_TRY(fill_line(wire, deadline_ns));
    }
}

const char *dt_wire_op(const json_t *message)
{
    return dt_json_text_at(message, "op");
}
