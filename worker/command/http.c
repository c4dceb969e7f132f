/* SPDX-License-Identifier: MIT */
/* The answer is read as it comes: a head of lines, then a body by chunks, by its length, or to the end of the connection. Sockets do not
 * block: each wait is a poll of a tenth of a second, with a tick. libcurl would need OpenSSL, Kerberos, LDAP and more in every package for what
 * is one connection on loopback. */
#include "worker/command/http.h"

#include "worker/command/quote.h"

#include "base/clock.h"
#include "base/figures.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define TICK_NS    (DT_NS_PER_SECOND / 10)
#define LINE_MOST  65536
#define LINES_MOST 1000

struct connection {
    int fd;
    int64_t until_ns, ticked_ns;
    const struct dt_http_wait *wait;
    char bytes[65536]; /* read beyond what was taken */
    size_t at, size;
};

/* ---- connection */

/* Addresses of a URL's host: "localhost" is both of its own. */
static int list_addresses(const struct dt_url *url, int port, struct sockaddr_storage out[2])
{
    bool both = strcasecmp(url->host, "localhost") == 0;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    int count = 0;
    memset(out, 0, 2 * sizeof *out);
    if (inet_pton(AF_INET, both ? "127.0.0.1" : url->host, &four.sin_addr) == 1)
        memcpy(&out[count++], &four, sizeof four);
    if (inet_pton(AF_INET6, both ? "::1" : url->host, &six.sin6_addr) == 1)
        memcpy(&out[count++], &six, sizeof six);
    return count;
}

/* The tick, when it is due, and the end of the time. */
static dt_status attend(struct connection *connection)
{
    int64_t now = dt_clock_ns();
    if (now - connection->ticked_ns >= TICK_NS) {
        connection->ticked_ns = now;
        DT_TRY(connection->wait->tick(connection->wait->context));
    }
    if (now < connection->until_ns)
        return DT_OK;
    return dt_fail(DT_ETIMEOUT, "no answer within %s",
                   dt_figure_of((double)connection->wait->timeout_ns * 1e-9).text);
}

/* Waits until the socket is ready for what is asked of it. */
static dt_status wait_for(struct connection *connection, short events)
{
    for (;;) {
        struct pollfd poller = {.fd = connection->fd, .events = events};
        int64_t left_ns = connection->until_ns - dt_clock_ns();
        int ready = poll(&poller, 1, (int)((left_ns < TICK_NS ? left_ns : TICK_NS) / 1000000) + 1);
        DT_TRY(attend(connection));
        if (ready > 0)
            return DT_OK;
    }
}

static dt_status connect_to(struct connection *connection, const struct sockaddr_storage *address)
{
    int error = 0, one = 1;
    socklen_t size = sizeof error;
    connection->fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connection->fd < 0)
        return dt_fail(DT_EIO, "no connection: %s", strerror(errno));
    if (connect(connection->fd, (const struct sockaddr *)address,
                address->ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                              : sizeof(struct sockaddr_in6)) != 0) {
        if (errno != EINPROGRESS)
            return dt_fail(DT_EIO, "no connection: %s", strerror(errno));
        DT_TRY(wait_for(connection, POLLOUT));
        if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
            return dt_fail(DT_EIO, "no connection: %s", strerror(error));
    }
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return DT_OK;
}

static dt_status open_connection(struct connection *connection, const struct dt_url *url, int port)
{
    struct sockaddr_storage addresses[2];
    int count = list_addresses(url, url->port > 0 ? url->port : port, addresses);
    dt_status status = DT_EIO;
    for (int i = 0; i < count && status == DT_EIO; i++) {
        if (connection->fd >= 0)
            close(connection->fd);
        status = connect_to(connection, &addresses[i]);
    }
    return status;
}

/* A server that answers before it has read all of a request may refuse the rest: its answer says why. */
static dt_status send_all(struct connection *connection, const struct dt_text *message)
{
    for (size_t at = 0; at < message->size;) {
        ssize_t put = send(connection->fd, message->bytes + at, message->size - at, MSG_NOSIGNAL);
        if (put > 0)
            at += (size_t)put;
        else if (errno == EPIPE || errno == ECONNRESET)
            break;
        else if (errno == EAGAIN)
            DT_TRY(wait_for(connection, POLLOUT));
        else if (errno != EINTR)
            return dt_fail(DT_EIO, "the request cannot be sent: %s", strerror(errno));
    }
    return DT_OK;
}

/* Reads more; DT_DONE: the connection has ended. */
static dt_status fill(struct connection *connection)
{
    connection->at = connection->size = 0;
    for (;;) {
        DT_TRY(attend(connection));
        ssize_t got = recv(connection->fd, connection->bytes, sizeof connection->bytes, 0);
        if (got > 0) {
            connection->size = (size_t)got;
            return DT_OK;
        }
        if (got == 0)
            return DT_DONE;
        if (errno == EAGAIN)
            DT_TRY(wait_for(connection, POLLIN));
        else if (errno != EINTR)
            return dt_fail(DT_EIO, "the connection ended: %s", strerror(errno));
    }
}

/* ---- answer */

static dt_status cut_short(void)
{
    return dt_fail(DT_EIO, "the connection ended before the answer did");
}

/* One line without its end. */
static dt_status take_line(struct connection *connection, struct dt_text *line)
{
    dt_text_clear(line);
    dt_text_add(line, "%s", "");
    for (;;) {
        if (connection->at == connection->size) {
            dt_status status = fill(connection);
            if (status != DT_OK)
                return status == DT_DONE ? cut_short() : status;
        }
        const char *begin = connection->bytes + connection->at;
        size_t most = connection->size - connection->at;
        const char *end = memchr(begin, '\n', most);
        size_t size = end != NULL ? (size_t)(end - begin) : most;
        dt_text_add_bytes(line, begin, size);
        connection->at += size + (end != NULL);
        if (line->size > LINE_MOST)
            return dt_fail(DT_EPROTO, "the answer has a line of more than %d bytes", LINE_MOST);
        if (end == NULL)
            continue;
        if (line->size > 0 && line->bytes[line->size - 1] == '\r')
            line->bytes[--line->size] = 0;
        return dt_text_status(line);
    }
}

/* n bytes, or with UINT64_MAX all until the connection ends. */
static dt_status take_bytes(struct connection *connection, uint64_t n, struct dt_text *body)
{
    while (n > 0) {
        if (connection->at == connection->size) {
            dt_status status = fill(connection);
            if (status == DT_DONE)
                return n == UINT64_MAX ? DT_OK : cut_short();
            DT_TRY(status);
        }
        size_t most = connection->size - connection->at, size = n < most ? (size_t)n : most;
        if (body->size < DT_HTTP_KEPT_BYTES)
            dt_text_add_bytes(body, connection->bytes + connection->at, size);
        connection->at += size;
        n -= n == UINT64_MAX ? 0 : size;
    }
    return DT_OK;
}

/* Hexadecimal digits, perhaps with an extension behind ';'. */
static dt_status read_chunk_size(const char *line, uint64_t *size)
{
    size_t digits = strspn(line, "0123456789abcdefABCDEF");
    char after = line[digits];
    if (digits == 0 || digits > 15 || (after != 0 && strchr("; \t", after) == NULL))
        return dt_fail(DT_EPROTO,
                       "the answer's chunk does not begin with its size" DT_QUOTES ": '%.20s'",
                       line);
    *size = strtoull(line, NULL, 16);
    return DT_OK;
}

static dt_status take_chunks(struct connection *connection, struct dt_text *line,
                             struct dt_text *body)
{
    uint64_t size = 1;
    while (size > 0) {
        DT_TRY(take_line(connection, line));
        DT_TRY(read_chunk_size(line->bytes, &size));
        if (size == 0)
            break;
        DT_TRY(take_bytes(connection, size, body));
        DT_TRY(take_line(connection, line));
        if (line->size > 0)
            return dt_fail(DT_EPROTO, "the answer's chunk is longer than its size says");
    }
    for (int lines = 0; lines < LINES_MOST; lines++) {
        DT_TRY(take_line(connection, line));
        if (line->size == 0)
            return DT_OK;
    }
    return dt_fail(DT_EPROTO, "the answer has more than %d lines behind its body", LINES_MOST);
}

struct head {
    int status;
    bool chunked;
    uint64_t size; /* of the body; UINT64_MAX: to the end of the connection */
};

/* The value of a header, without blanks before it; NULL: the line is another one. */
static const char *value_of(const char *line, const char *name)
{
    size_t size = strlen(name);
    if (strncasecmp(line, name, size) != 0 || line[size] != ':')
        return NULL;
    return line + size + 1 + strspn(line + size + 1, " \t");
}

static dt_status read_header(const char *line, struct head *head)
{
    const char *length = value_of(line, "Content-Length"),
               *coding = value_of(line, "Transfer-Encoding");
    char *end = NULL;
    if (coding != NULL) {
        if (strncasecmp(coding, "chunked", 7) != 0 || coding[7 + strspn(coding + 7, " \t")] != 0)
            return dt_fail(DT_EPROTO,
                           "the answer's body is not coded as chunked alone" DT_QUOTES ": '%.40s'",
                           coding);
        head->chunked = true;
    }
    if (length == NULL)
        return DT_OK;
    errno = 0;
    uint64_t size = strtoull(length, &end, 10);
    if (strspn(length, "0123456789") == 0 || errno != 0 || end[strspn(end, " \t")] != 0 ||
        (head->size != UINT64_MAX && head->size != size))
        return dt_fail(DT_EPROTO, "the answer's Content-Length is no length" DT_QUOTES ": '%.40s'",
                       length);
    head->size = size;
    return DT_OK;
}

static dt_status take_head(struct connection *connection, struct dt_text *line, struct head *head)
{
    *head = (struct head){.size = UINT64_MAX};
    DT_TRY(take_line(connection, line));
    const char *space = strchr(line->bytes, ' ');
    head->status = space != NULL ? atoi(space) : 0;
    if (strncmp(line->bytes, "HTTP/1.", 7) != 0 || head->status < 100 || head->status > 999)
        return dt_fail(DT_EPROTO,
                       "the answer does not begin as one of HTTP/1.1" DT_QUOTES ": '%.40s'",
                       line->bytes);
    for (int lines = 0; lines < LINES_MOST; lines++) {
        DT_TRY(take_line(connection, line));
        if (line->size == 0)
            return DT_OK;
        DT_TRY(read_header(line->bytes, head));
    }
    return dt_fail(DT_EPROTO, "the answer has more than %d headers", LINES_MOST);
}

static dt_status take_answer(struct connection *connection, bool bodiless,
                             struct dt_http_answer *answer)
{
    struct dt_text line = {0};
    struct head head;
    dt_status status;
    do /* 1xx precede the answer */
        status = take_head(connection, &line, &head);
    while (status == DT_OK && head.status < 200);
    if (status == DT_OK) {
        answer->status = head.status;
        if (bodiless || head.status == 204 || head.status == 304)
            head = (struct head){.size = 0};
        status = head.chunked ? take_chunks(connection, &line, &answer->body)
                              : take_bytes(connection, head.size, &answer->body);
    }
    dt_text_fini(&line);
    return status;
}

/* ---- request */

static void add_message(const struct dt_http_request *request, int port, struct dt_text *out)
{
    const struct dt_url *url = &request->url;
    bool six = strchr(url->host, ':') != NULL;
    dt_text_add(out, "%s %s HTTP/1.1\r\nHost: %s%s%s:%d\r\nConnection: close\r\n", request->method,
                url->path, six ? "[" : "", url->host, six ? "]" : "",
                url->port > 0 ? url->port : port);
    dt_text_add_bytes(out, dt_text_at(&request->headers), request->headers.size);
    if (request->body.size > 0 || strcmp(request->method, "GET") != 0)
        dt_text_add(out, "Content-Length: %zu\r\n", request->body.size);
    dt_text_add(out, "\r\n");
    dt_text_add_bytes(out, dt_text_at(&request->body), request->body.size);
}

dt_status dt_http_ask(const struct dt_http_request *request, int port,
                      const struct dt_http_wait *wait, struct dt_http_answer *answer)
{
    int64_t began = dt_clock_ns();
    struct dt_text message = {0};
    struct connection *connection = malloc(sizeof *connection);
    *answer = (struct dt_http_answer){.status = 0};
    if (connection == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    connection->fd = -1;
    connection->at = connection->size = 0;
    connection->wait = wait;
    connection->ticked_ns = began;
    connection->until_ns =
        wait->timeout_ns < INT64_MAX - began ? began + wait->timeout_ns : INT64_MAX;
    add_message(request, port, &message);
    dt_status status = dt_text_status(&message);
    if (status == DT_OK)
        status = open_connection(connection, &request->url, port);
    if (status == DT_OK)
        status = send_all(connection, &message);
    if (status == DT_OK)
        status = take_answer(connection, strcmp(request->method, "HEAD") == 0, answer);
    answer->wall_ns = dt_clock_ns() - began;
    if (status == DT_OK)
        status = dt_text_status(&answer->body);
    if (connection->fd >= 0)
        close(connection->fd);
    free(connection);
    dt_text_fini(&message);
    return status;
}

void dt_http_answer_fini(struct dt_http_answer *answer)
{
    dt_text_fini(&answer->body);
}
