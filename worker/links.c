/* SPDX-License-Identifier: MIT */
/* Set-up: rank 0 listens, it sends its address and a random token over the communicator, and each
 * rank connects and sends the token and its rank. The Unix socket is an abstract one named by the
 * kernel, so nothing is left in any folder. */
#include "worker/links.h"

#include "base/clock.h"
#include "base/host.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_NS (30 * DT_NS_PER_SECOND)
#define GUESTS      64 /* callers who have not greeted yet; of more, the first is dropped */

struct address {
    unsigned char token[16];
    int failed; /* rank 0 could not listen */
    struct sockaddr_un unix_name;
    socklen_t unix_size; /* 0: by TCP */
    char host[256], port[16];
};

struct hello {
    unsigned char token[16];
    int rank;
};

static dt_status link_broken(const char *what)
{
    return dt_fail(DT_EIO, "cannot %s the ranks: %s", what, strerror(errno));
}

static dt_status listen_unix(struct address *address, int *fd)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address->unix_size = sizeof address->unix_name;
    if (*fd < 0 || bind(*fd, (struct sockaddr *)&name, sizeof name.sun_family) != 0 ||
        listen(*fd, 1024) != 0 ||
        getsockname(*fd, (struct sockaddr *)&address->unix_name, &address->unix_size) != 0)
        return link_broken("listen for");
    return DT_OK;
}

static dt_status listen_tcp(struct address *address, int *fd)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    struct sockaddr_storage name;
    socklen_t size = sizeof name;
    address->unix_size = 0;
    if (getaddrinfo(NULL, "0", &hints, &found) != 0)
        return dt_fail(DT_EIO, "cannot listen for the ranks: no network");
    *fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int bad = *fd < 0 || bind(*fd, found->ai_addr, found->ai_addrlen) != 0 ||
              listen(*fd, 1024) != 0 || getsockname(*fd, (struct sockaddr *)&name, &size) != 0;
    freeaddrinfo(found);
    if (bad)
        return link_broken("listen for");
    const char *given =
        getenv("DITTUNE_FIRST_HOST"); /* the address by which the launcher reaches it */
    snprintf(address->host, sizeof address->host, "%s", given != NULL ? given : dt_host_name());
    if (getnameinfo((struct sockaddr *)&name, size, NULL, 0, address->port, sizeof address->port,
                    NI_NUMERICSERV) != 0)
        return dt_fail(DT_EIO, "cannot name the port the ranks connect to");
    return DT_OK;
}

static int connect_to(const struct sockaddr *name, socklen_t size)
{
    int fd = socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, name, size) == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_tcp(const struct address *address)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int fd = -1;
    if (getaddrinfo(address->host, address->port, &hints, &found) != 0)
        return -1;
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next)
        fd = connect_to(at->ai_addr, at->ai_addrlen);
    freeaddrinfo(found);
    return fd;
}

/* Callers who have not greeted whole yet: anyone may call, and nobody waits for a stranger.
 * ready[0] is the listener. */
struct guests {
    struct pollfd ready[1 + GUESTS];
    struct hello hellos[1 + GUESTS];
    size_t sizes[1 + GUESTS]; /* bytes of each hello */
    int count;                /* the listener included */
};

static void guest_drop(struct guests *guests, int at)
{
    size_t after = (size_t)(--guests->count - at);
    memmove(&guests->ready[at], &guests->ready[at + 1], after * sizeof guests->ready[0]);
    memmove(&guests->hellos[at], &guests->hellos[at + 1], after * sizeof guests->hellos[0]);
    memmove(&guests->sizes[at], &guests->sizes[at + 1], after * sizeof guests->sizes[0]);
}

static void guest_accept(struct guests *guests)
{
    int fd = accept4(guests->ready[0].fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (guests->count == 1 + GUESTS) {
        close(guests->ready[1].fd);
        guest_drop(guests, 1);
    }
    guests->ready[guests->count] = (struct pollfd){.fd = fd, .events = POLLIN};
    guests->sizes[guests->count++] = 0;
}

/* Reads of a greeting what has come. True: it is over, and its caller became a rank, or was
 * disconnected as a stranger. */
static bool greet_guest(struct dt_links *links, const struct address *address,
                        struct guests *guests, int at)
{
    struct hello *hello = &guests->hellos[at];
    size_t *size = &guests->sizes[at];
    int fd = guests->ready[at].fd;
    ssize_t n = recv(fd, (char *)hello + *size, sizeof *hello - *size, MSG_DONTWAIT);
    if (n > 0)
        *size += (size_t)n;
    if (n > 0 ? *size < sizeof *hello : n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (*size < sizeof *hello || memcmp(hello->token, address->token, sizeof hello->token) != 0 ||
        hello->rank < 1 || hello->rank >= links->size || links->wires[hello->rank].in >= 0)
        close(fd);
    else
        dt_wire_init(&links->wires[hello->rank], fd, fd);
    return true;
}

static int ranks_there(const struct dt_links *links)
{
    int there = 1;
    for (int i = 1; i < links->size; i++)
        there += links->wires[i].in >= 0;
    return there;
}

static dt_status accept_all(struct dt_links *links, const struct address *address, int listener)
{
    struct guests guests = {.ready = {{.fd = listener, .events = POLLIN}}, .count = 1};
    int64_t end = dt_clock_ns() + PATIENCE_NS, left = PATIENCE_NS;
    int there = 1;
    while (there < links->size && left > 0) {
        int n = poll(guests.ready, (nfds_t)guests.count, (int)(left / 1000000) + 1);
        for (int i = guests.count - 1; n > 0 && i > 0; i--)
            if (guests.ready[i].revents != 0 && greet_guest(links, address, &guests, i))
                guest_drop(&guests, i);
        if (n > 0 && guests.ready[0].revents != 0)
            guest_accept(&guests);
        there = ranks_there(links);
        left = end - dt_clock_ns();
    }
    for (int i = 1; i < guests.count; i++)
        close(guests.ready[i].fd);
    if (there < links->size)
        return dt_fail(DT_ETIMEOUT, "only %d of %d ranks connected", there, links->size);
    return DT_OK;
}

static dt_status serve_links(struct dt_links *links, struct dt_comm *world, bool one_host)
{
    struct address address = {0};
    int fd = -1;
    dt_status status = one_host ? listen_unix(&address, &fd) : listen_tcp(&address, &fd);
    if (status == DT_OK &&
        getrandom(address.token, sizeof address.token, 0) != (ssize_t)sizeof address.token)
        status = link_broken("make a token for");
    address.failed = status < 0;
    dt_status sent = world->ops->broadcast(world, &address, sizeof address);
    if (status == DT_OK)
        status = sent;
    if (status == DT_OK)
        status = accept_all(links, &address, fd);
    if (fd >= 0)
        close(fd);
    return status;
}

static dt_status join_links(struct dt_links *links, struct dt_comm *world)
{
    struct address address;
    DT_TRY(world->ops->broadcast(world, &address, sizeof address));
    if (address.failed)
        return dt_fail(DT_EIO, "rank 0 could not listen for the ranks");
    struct hello hello = {.rank = links->rank};
    memcpy(hello.token, address.token, sizeof hello.token);
    int fd = address.unix_size > 0
                 ? connect_to((const struct sockaddr *)&address.unix_name, address.unix_size)
                 : connect_tcp(&address);
    if (fd < 0)
        return link_broken("connect");
    dt_wire_init(&links->wires[0], fd, fd);
    if (send(fd, &hello, sizeof hello, 0) != (ssize_t)sizeof hello)
        return link_broken("greet");
    return DT_OK;
}

dt_status dt_links_open(struct dt_links *links, struct dt_comm *world, bool one_host)
{
    *links = (struct dt_links){.rank = world->rank, .size = world->size};
    if (world->size == 1)
        return DT_OK;
    size_t n = world->rank == 0 ? (size_t)world->size : 1;
    links->wires = calloc(n, sizeof *links->wires);
    if (links->wires == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the links to %d ranks", world->size);
    for (size_t i = 0; i < n; i++)
        dt_wire_init(&links->wires[i], -1, -1);
    return world->rank == 0 ? serve_links(links, world, one_host) : join_links(links, world);
}

void dt_links_close(struct dt_links *links)
{
    int n = links->wires == NULL ? 0 : links->rank == 0 ? links->size : 1;
    for (int i = 0; i < n; i++) {
        if (links->wires[i].in >= 0)
            close(links->wires[i].in);
        dt_wire_fini(&links->wires[i]);
    }
    free(links->wires);
    links->wires = NULL;
}

dt_status dt_links_send(struct dt_links *links, const json_t *message)
{
    for (int i = 1; i < links->size; i++)
        DT_TRY(dt_wire_write(&links->wires[i], message));
    return DT_OK;
}

static dt_status receive_message(struct dt_wire *wire, int64_t deadline_ns, json_t **message)
{
    dt_status status;
    do
        status = dt_wire_read(wire, deadline_ns, message);
    while (status == DT_EINTR);
    return status;
}

dt_status dt_links_receive(struct dt_links *links, json_t **message)
{
    return receive_message(&links->wires[0], DT_WIRE_FOREVER, message);
}

/* A verdict as a message: {"op":"verdict","code":-20,"say":"...","part":...}. */
static json_t *verdict_json(dt_status status, json_t *part)
{
    return json_pack("{s:s,s:i,s:s,s:o?}", "op", "verdict", "code", status, "say",
                     status < 0 ? dt_message() : "", "part", part);
}

static dt_status verdict_status(const json_t *message)
{
    dt_status status = (dt_status)json_integer_value(json_object_get(message, "code"));
    return status < 0 ? dt_fail(status, "%s", json_string_value(json_object_get(message, "say")))
                      : status;
}

static void choose_worst(const json_t *other, json_t **worst)
{
    json_int_t code = json_integer_value(json_object_get(other, "code"));
    json_int_t before = json_integer_value(json_object_get(*worst, "code"));
    if (code < 0 && (before == 0 || (before == DT_ETIMEOUT && code != DT_ETIMEOUT)))
        *worst = (json_t *)other;
}

/* A rank may work for long, but not after rank 0 timed out in an exchange with it. */
static dt_status collect_parts(struct dt_links *links, json_t *own, json_t *all)
{
    bool late = json_integer_value(json_object_get(own, "code")) == DT_ETIMEOUT;
    int64_t deadline_ns = late ? dt_clock_ns() + PATIENCE_NS : DT_WIRE_FOREVER;
    int bad = json_array_append(all, own);
    for (int i = 1; i < links->size; i++) {
        json_t *other = NULL;
        dt_status status = receive_message(&links->wires[i], deadline_ns, &other);
        if (status == DT_EDEAD)
            return dt_fail(DT_EDEAD, "rank %d died", i);
        if (status == DT_ETIMEOUT)
            return dt_fail(DT_ETIMEOUT, "rank %d hangs", i);
        DT_TRY(status);
        bad |= json_array_append_new(all, other);
    }
    return bad ? dt_fail(DT_ENOMEM, "out of memory for the ranks' answers") : DT_OK;
}

static dt_status take_parts(const json_t *all, json_t **parts)
{
    json_auto_t *list = json_array();
    json_t *one;
    size_t i;
    int bad = list == NULL;
    json_array_foreach((json_t *)all, i, one) bad |=
        json_array_append(list, json_object_get(one, "part"));
    if (bad)
        return dt_fail(DT_ENOMEM, "out of memory for the ranks' answers");
    *parts = json_incref(list);
    return DT_OK;
}

/* Rank 0 collects all verdicts and sends the worst to all. */
static dt_status judge_parts(struct dt_links *links, json_t *own, json_t **parts)
{
    json_auto_t *all = json_array();
    json_t *one, *worst = own;
    size_t i;
    DT_TRY(collect_parts(links, own, all));
    json_array_foreach(all, i, one) choose_worst(one, &worst);
    dt_status status = verdict_status(worst);
    json_auto_t *final = verdict_json(status, NULL);
    DT_TRY(dt_links_send(links, final));
    return status == DT_OK && parts != NULL ? take_parts(all, parts) : status;
}

dt_status dt_links_agree(struct dt_links *links, dt_status status, json_t *mine, json_t **parts)
{
    json_auto_t *own = verdict_json(status, mine), *final = NULL;
    if (own == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a rank's answer");
    if (links->rank == 0)
        return judge_parts(links, own, parts);
    DT_TRY(dt_wire_write(&links->wires[0], own));
    DT_TRY(dt_links_receive(links, &final));
    return verdict_status(final);
}
