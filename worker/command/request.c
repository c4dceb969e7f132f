/* SPDX-License-Identifier: MIT */
/* What is asked, and where: the URL of an option, and the file of a request. */
#include "worker/command/http.h"

#include "base/json.h"
#include "base/read.h"
#include "base/rng.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

/* The next line, without its end; NULL: none is left. *at moves behind it. The line is cut in place. */
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

static bool is_named(const char *line, const char *name)
{
    size_t size = strlen(name);
    return strncasecmp(line, name, size) == 0 && line[size] == ':';
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
        if (is_named(line, ours[i]))
            return DT_OK;
    dt_text_add(&request->headers, "%s\r\n", line);
    return DT_OK;
}

static bool has_header(const struct dt_http_request *request, const char *name)
{
    for (const char *line = dt_text_at(&request->headers); line[0] != 0;
         line = strchr(line, '\n') + 1)
        if (is_named(line, name))
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
    struct dt_text text = {0};
    char name[256];
    *request = (struct dt_http_request){.method = ""};
    snprintf(name, sizeof name, "the request's file %.200s", path);
    dt_status status = dt_read_text(path, name, FILE_MOST, &text);
    if (status == DT_OK)
        status = parse_file(path, &text, ready, request);
    dt_text_fini(&text);
    return status;
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
    json_t *object = json_object();
    const char *line = dt_text_at(&request->headers);
    while (line[0] != 0) {
        struct dt_text key = {0};
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
        dt_text_fini(&key);
        line = strchr(line, '\n') + 1;
    }
    char *dump = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
    dt_text_add(out, "%s\n", dump != NULL ? dump : "");
    free(dump);
    json_decref(object);
}

static void add_body(const struct dt_text *body, struct dt_text *out)
{
    json_t *root = NULL;
    bool is_json = dt_json_parse(dt_text_at(body), body->size, "the body", &root) == DT_OK;
    char *dump = is_json ? json_dumps(root, JSON_SORT_KEYS | JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    if (dump != NULL)
        dt_text_add(out, "%s", dump);
    else
        dt_text_add_bytes(out, dt_text_at(body), body->size);
    free(dump);
    json_decref(root);
}

void dt_request_hash(const struct dt_http_request *request, char hash[17])
{
    struct dt_text text = {0};
    dt_text_add(&text, "%s %s:%d%s\n", request->method, request->url.host, request->url.port,
                request->url.path);
    add_headers(request, &text);
    add_body(&request->body, &text);
    uint64_t made = dt_rng_bytes(DT_RNG_FNV, text.bytes, text.size); /* a body may have NUL */
    snprintf(hash, 17, "%016llx", (unsigned long long)made);
    dt_text_fini(&text);
}
