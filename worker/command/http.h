/* SPDX-License-Identifier: MIT */
/* http - a request of HTTP/1.1 to a server on this machine, and its answer (RFC 9112)
 *
 *     dt_url_read("http://127.0.0.1:{port}/health", "--ready", &url);
 *     dt_request_read("image.http", &url, &request);
 *     dt_http_ask(&request, port, &wait, &answer);
 *
 * One connection a request, plain HTTP, loopback addresses only: no name is looked up, no proxy is
 * asked, no redirection is followed.
 */
#ifndef DT_WORKER_COMMAND_HTTP_H
#define DT_WORKER_COMMAND_HTTP_H

#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

struct dt_url {
    char host[64]; /* "localhost", or an address without brackets */
    int port;      /* 0: the placeholder {port} */
    char path[1024];
};

/* Reads "http://HOST:PORT/PATH"; PORT may be {port}. DT_EUSAGE: not such a text, or HOST is not
 * this machine: 127.0.0.0/8, ::1, localhost. option: its name, for the sentence. */
dt_status dt_url_read(const char *text, const char *option, struct dt_url *url) DT_MUST_CHECK;

struct dt_http_request {
    char method[16];
    struct dt_url url;
    struct dt_text headers, body; /* lines with their ends; owned */
};

/* Reads a file of the form
 *
 *     # comments
 *     POST /v1/images/generations
 *     Content-Type: application/json
 *
 *     {"prompt": "a cat"}
 *
 * The first line may have a whole URL; a path alone is asked of the server of `ready`. Host,
 * Content-Length, Transfer-Encoding and Connection are ours, whatever the file says; Content-Type
 * is JSON where the body is and no other is given. DT_EIO, DT_EUSAGE. The caller frees
 * *request in any case. */
dt_status dt_request_read(const char *path, const struct dt_url *ready,
                          struct dt_http_request *request) DT_MUST_CHECK;
void dt_request_fini(struct dt_http_request *request);

/* 16 digits for what is asked: the same for another layout of headers or of a body of JSON, other
 * comments, and another Authorization. */
void dt_request_hash(const struct dt_http_request *request, char hash[17]);

struct dt_http_answer {
    int status;          /* 200 */
    struct dt_text body; /* owned */
    int64_t wall_ns;     /* from before the connection to the last byte of the body */
};

/* How long to wait. */
struct dt_http_wait {
    int64_t timeout_ns;
    dt_status (*tick)(
        void *context); /* ten times a second while it waits; an error ends the wait */
    void *context;
};

/* port: of {port}. The whole answer. DT_ETIMEOUT; DT_EIO: no connection, or it ended before the
 * answer did; DT_EPROTO: not HTTP; errors of tick. The caller frees the body in any case. */
dt_status dt_http_ask(const struct dt_http_request *request, int port,
                      const struct dt_http_wait *wait, struct dt_http_answer *answer) DT_MUST_CHECK;
void dt_http_answer_fini(struct dt_http_answer *answer);

#endif
