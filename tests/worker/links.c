/* SPDX-License-Identifier: MIT */
/* The sockets between ranks, which anyone may call: strangers that are silent, or say something
 * else, keep nobody waiting, and none becomes a rank. Ranks are threads here, and the strangers
 * call from rank 1 before it joins. */
#include "worker/links.h"

#include "base/clock.h"
#include "tests/kernels/fake_ranks/fake.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

enum { RANKS = 3, STRANGERS = 150, DESCRIPTORS = 1024 };

struct visit {
    bool one_host;
    int strangers[STRANGERS];
    json_t *parts;
};

/* Where a socket of this process listens, as its callers name it; 0: none does. */
static socklen_t find_listener(struct sockaddr_storage *name)
{
    for (int fd = 3; fd < DESCRIPTORS; fd++) {
        int listens = 0;
        socklen_t size = sizeof listens, room = sizeof *name;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
            getsockname(fd, (struct sockaddr *)name, &room) == 0) {
            if (name->ss_family == AF_INET)
                ((struct sockaddr_in *)name)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            return room;
        }
    }
    return 0;
}

/* Most are silent. One in five says too little, a whole greeting without the token, or more. */
static int call(const struct sockaddr_storage *name, socklen_t size, int number)
{
    static const char words[200] = "GET / HTTP/1.0\r\n\r\n";
    const size_t said[] = {7, 20, 24, sizeof words};
    int fd = socket(name->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)name, size) != 0)
        return -1;
    if (number % 5 == 0 && send(fd, words, said[number / 5 % 4], MSG_NOSIGNAL) < 0)
        return -1;
    return fd;
}

static dt_status visit(struct visit *visit)
{
    struct sockaddr_storage name;
    socklen_t size;
    while ((size = find_listener(&name)) == 0)
        dt_clock_sleep_ns(1000000);
    for (int i = 0; i < STRANGERS; i++)
        if ((visit->strangers[i] = call(&name, size, i)) < 0)
            return dt_fail(DT_EIO, "stranger %d cannot call", i);
    return DT_OK;
}

static dt_status rank(struct dt_comm *comm, void *context)
{
    struct visit *of = context;
    struct dt_links links;
    json_t *parts = NULL;
    if (comm->rank == 1)
        DT_TRY(visit(of));
    dt_status status = dt_links_open(&links, comm, of->one_host);
    json_t *own = json_integer(100 + comm->rank);
    if (status == DT_OK)
        status = dt_links_agree(&links, DT_OK, own, &parts);
    else
        json_decref(own);
    if (comm->rank == 0)
        of->parts = parts;
    dt_links_close(&links);
    return status;
}

static void meet(bool one_host)
{
    struct visit of = {.one_host = one_host};
    struct dt_fake *fake;
    assert_int_equal(dt_fake_new(RANKS, &(struct dt_fake_options){.delay_ns = 0}, &fake), DT_OK);
    dt_status status = dt_fake_run(fake, rank, &of, NULL);
    if (status < 0)
        print_error("%s\n", dt_message());
    assert_int_equal(status, DT_OK);
    assert_int_equal(json_array_size(of.parts), RANKS);
    for (int i = 0; i < RANKS; i++)
        assert_int_equal(json_integer_value(json_array_get(of.parts, (size_t)i)), 100 + i);
    json_decref(of.parts);
    for (int i = 0; i < STRANGERS; i++) { /* told nothing, and let go */
        char byte;
        assert_true(recv(of.strangers[i], &byte, 1, 0) <= 0);
        close(of.strangers[i]);
    }
    dt_fake_free(fake);
}

static void test_one_host(void **state)
{
    (void)state;
    meet(true);
}

static void test_several_hosts(void **state)
{
    (void)state;
    setenv("DITTUNE_FIRST_HOST", "127.0.0.1", 1);
    meet(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_host),
        cmocka_unit_test(test_several_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
