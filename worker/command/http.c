/* SPDX-License-Identifier: MIT */
/* The answer is read as it comes: a head of lines, then a body by chunks, by its length, or to the
 * end of the connection. Sockets do not block: each wait is a poll of a tenth of a second, with a
 * tick. libcurl would need OpenSSL, Kerberos, LDAP and more in every package for what is one
 * connection on loopback. */
#include "worker/command/http.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/json.h"
#include "base/read.h"
#include "base/rng.h"
#include "worker/command/quote.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define DT_HTTP_KEPT_BYTES                                                                         \
    ((size_t)64 << 20) /* kept of an answer's body; the rest is read and dropped */

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
static dt_status attend_connection(struct connection *connection)
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
        DT_TRY(attend_connection(connection));
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

/* A server that answers before it has read all of a request may refuse the rest:
 * its answer says why. */
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
static dt_status fill_buffer(struct connection *connection)
{
    connection->at = connection->size = 0;
    for (;;) {
        DT_TRY(attend_connection(connection));
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
            dt_status status = fill_buffer(connection);
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
            dt_status status = fill_buffer(connection);
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
    uint64_t size; /* bytes of the body; UINT64_MAX: to the end of the connection */
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
    dt_auto_text line = {0};
    struct head head;
    do /* 1xx precede the answer */
        DT_TRY(take_head(connection, &line, &head));
    while (head.status < 200);
    answer->status = head.status;
    if (bodiless || head.status == 204 || head.status == 304)
        return DT_OK;
    return head.chunked ? take_chunks(connection, &line, &answer->body)
                        : take_bytes(connection, head.size, &answer->body);
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
    dt_auto_text message = {0};
    dt_auto_free struct connection *connection = malloc(sizeof *connection);
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
    return status;
}

void dt_http_answer_fini(struct dt_http_answer *answer)
{
    dt_text_fini(&answer->body);
}

/* The request and its target: the URL of an option, and the file of a request. */

#define FILE_MOST ((size_t)64 << 20)

/* ---- URL */

static bool is_here(const char *host)
{
    struct in_addr four;
    struct in6_addr six;
    if (strcasecmp(host, "localhost") == 0)
        return true;
    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

/* Takes the host at *at, [] around an IPv6 address, and moves *at behind it. */
static bool take_host(const char **at, char host[64])
{
    bool six = **at == '[';
    const char *begin = *at + six;
    size_t size = strcspn(begin, six ? "]/" : ":/?#");
    if (size == 0 || size > 63 || (six && begin[size] != ']'))
        return false;
    memcpy(host, begin, size);
    host[size] = 0;
    *at = begin + size + six;
    return true;
}

static bool take_port(const char **at, int *port)
{
    char *end;
    if (**at != ':')
        return false;
    if (strncmp(*at, ":{port}", 7) == 0) {
        *port = 0;
        *at += 7;
        return true;
    }
    long number = isdigit((unsigned char)(*at)[1]) ? strtol(*at + 1, &end, 10) : 0;
    if (number < 1 || number > 65535)
        return false;
    *port = (int)number;
    *at = end;
    return true;
}

/* A path as it stands in a request: no blank, no control character, no fragment. */
static bool take_path(const char *text, char path[1024])
{
    size_t size = strlen(text);
    if (size == 0)
        text = "/";
    for (const char *c = text; *c != 0; c++)
        if (*c == '#' || *c <= ' ' || *c == 127)
            return false;
    snprintf(path, 1024, "%s", text);
    return text[0] == '/' && size < 1024;
}

dt_status dt_url_read(const char *text, const char *option, struct dt_url *url)
{
    static const char form[] = "http://127.0.0.1:{port}/PATH";
    struct dt_url made = {.port = 0};
    const char *at = text;
    if (strncasecmp(text, "http://", 7) != 0)
        return dt_fail(DT_EUSAGE, "%s '%.200s' is not of the form %s (plain HTTP)", option, text,
                       form);
    at += 7;
    if (!take_host(&at, made.host))
        return dt_fail(DT_EUSAGE, "%s '%.200s' is not of the form %s", option, text, form);
    if (!is_here(made.host))
        return dt_fail(DT_EUSAGE,
                       "%s '%.200s' is not on this machine, whose addresses are 127.0.0.1, [::1] "
                       "and localhost",
                       option, text);
    if (!take_port(&at, &made.port) || !take_path(at, made.path))
        return dt_fail(DT_EUSAGE, "%s '%.200s' is not of the form %s", option, text, form);
    *url = made;
    return DT_OK;
}

/* ---- the file */

/* The next line, without its end; NULL: none is left. *at moves behind it. The
 * line is cut in place. */
static char *next_line(char **at)
{
    char *line = *at, *end = strchr(line, '\n');
    if (*line == 0)
        return NULL;
    *at = end != NULL ? end + 1 : line + strlen(line);
    if (end != NULL)
        *end = 0;
    size_t size = strlen(line);
    if (size > 0 && line[size - 1] == '\r')
        line[size - 1] = 0;
    return line;
}

/* "POST /path", "POST http://127.0.0.1:{port}/path HTTP/1.1" */
static dt_status read_first(const char *path, char *line, const struct dt_url *ready,
                            struct dt_http_request *request)
{
    char *rest = NULL, *method = strtok_r(line, " \t", &rest),
         *target = strtok_r(NULL, " \t", &rest), *version = strtok_r(NULL, " \t", &rest);
    bool good = method != NULL && target != NULL && strlen(method) < sizeof request->method &&
                (version == NULL || strncmp(version, "HTTP/", 5) == 0) &&
                strtok_r(NULL, " \t", &rest) == NULL;
    for (const char *c = method; good && *c != 0; c++)
        good = isupper((unsigned char)*c);
    if (!good)
        return dt_fail(
            DT_EUSAGE,
            "the request's file %s begins with neither a method nor a comment; its first "
            "line is as in 'POST /v1/images/generations', headers follow, an empty line, "
            "and the body",
            path);
    snprintf(request->method, sizeof request->method, "%s", method);
    request->url = *ready;
    if (target[0] != '/')
        return dt_url_read(target, path, &request->url);
    if (!take_path(target, request->url.path))
        return dt_fail(DT_EUSAGE, "the path '%.100s' of %s has '#', or is too long", target, path);
    return DT_OK;
}

/* One line of the headers, if it is not one of those that follow from the message. */
static dt_status add_header(const char *path, const char *line, struct dt_http_request *request)
{
    static const char *const ours[] = {"Host", "Content-Length", "Transfer-Encoding", "Connection",
                                       "Expect"};
    size_t name = strcspn(line, ": \t");
    if (name == 0 || line[name] != ':')
        return dt_fail(DT_EUSAGE,
                       "'%.80s' in the request's file %s is no header, as in 'Content-Type: "
                       "application/json'; an empty line ends the headers",
                       line, path);
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (value_of(line, ours[i]) != NULL)
            return DT_OK;
    dt_text_add(&request->headers, "%s\r\n", line);
    return DT_OK;
}

static bool has_header(const struct dt_http_request *request, const char *name)
{
    for (const char *line = dt_text_at(&request->headers); line[0] != 0;
         line = strchr(line, '\n') + 1)
        if (value_of(line, name) != NULL)
            return true;
    return false;
}

static dt_status parse_file(const char *path, const struct dt_text *text,
                            const struct dt_url *ready, struct dt_http_request *request)
{
    char *at = text->bytes, *line = at != NULL ? next_line(&at) : NULL;
    while (line != NULL && (line[0] == '#' || line[0] == 0))
        line = next_line(&at);
    if (line == NULL)
        return dt_fail(DT_EUSAGE, "the request's file %s has no request", path);
    DT_TRY(read_first(path, line, ready, request));
    while ((line = next_line(&at)) != NULL && line[0] != 0)
        DT_TRY(add_header(path, line, request));
    if (line != NULL)
        dt_text_add_bytes(&request->body, at, (size_t)(text->bytes + text->size - at));
    const char *body = dt_text_at(&request->body);
    body += strspn(body, " \t\r\n");
    if ((*body == '{' || *body == '[') && !has_header(request, "Content-Type"))
        dt_text_add(&request->headers, "Content-Type: application/json\r\n");
    DT_TRY(dt_text_status(&request->headers));
    return dt_text_status(&request->body);
}

dt_status dt_request_read(const char *path, const struct dt_url *ready,
                          struct dt_http_request *request)
{
    dt_auto_text text = {0};
    char name[256];
    *request = (struct dt_http_request){.method = ""};
    snprintf(name, sizeof name, "the request's file %.200s", path);
    DT_TRY(dt_read_text(path, name, FILE_MOST, &text));
    return parse_file(path, &text, ready, request);
}

void dt_request_fini(struct dt_http_request *request)
{
    dt_text_fini(&request->headers);
    dt_text_fini(&request->body);
}

/* ---- its hash */

/* Lines of headers in one spelling, sorted; the value of Authorization changes with each user. */
static void add_headers(const struct dt_http_request *request, struct dt_text *out)
{
    json_auto_t *object = json_object();
    const char *line = dt_text_at(&request->headers);
    while (line[0] != 0) {
        dt_auto_text key = {0};
        size_t size = strcspn(line, ":"), end = strcspn(line, "\r\n");
        size_t from = size + 1 + strspn(line + size + 1, " \t");
        for (size_t i = 0; i < size; i++)
            dt_text_add(&key, "%c", tolower((unsigned char)line[i]));
        while (end > from && strchr(" \t", line[end - 1]) != NULL)
            end--;
        if (strcmp(dt_text_at(&key), "authorization") != 0)
            json_object_set_new_nocheck(
                object, dt_text_at(&key),
                json_stringn_nocheck(line + from, end > from ? end - from : 0));
        line = strchr(line, '\n') + 1;
    }
    dt_auto_free char *dump = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
    dt_text_add(out, "%s\n", dump != NULL ? dump : "");
}

static void add_body(const struct dt_text *body, struct dt_text *out)
{
    json_auto_t *root = NULL;
    bool is_json = dt_json_parse(dt_text_at(body), body->size, "the body", &root) == DT_OK;
    dt_auto_free char *dump =
        is_json ? json_dumps(root, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (dump != NULL)
        dt_text_add(out, "%s", dump);
    else
        dt_text_add_bytes(out, dt_text_at(body), body->size);
}

void dt_request_hash(const struct dt_http_request *request, char hash[17])
{
    dt_auto_text text = {0};
    dt_text_add(&text, "%s %s:%d%s\n", request->method, request->url.host, request->url.port,
                request->url.path);
    add_headers(request, &text);
    add_body(&request->body, &text);
    uint64_t made = dt_rng_bytes(DT_RNG_FNV, text.bytes, text.size); /* a body may have NUL */
    snprintf(hash, 17, "%016llx", (unsigned long long)made);
}
