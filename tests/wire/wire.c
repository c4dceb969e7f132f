/* SPDX-License-Identifier: MIT */
/* ctest: threads dose */
/* The protocol's lines against a pipe whose other end this test holds: whatever the cuts, the same
 * messages come out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "tests/lib/dose.h"
#include "worker/wire.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECOND DT_NS_PER_SECOND

struct fixture {
    int read_end, write_end;
    struct dt_wire wire;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    int fds[2];
    if (f == NULL || pipe(fds) != 0) {
        free(f);
        return -1;
    }
    signal(SIGPIPE, SIG_IGN);
    f->read_end = fds[0];
    f->write_end = fds[1];
    dt_wire_init(&f->wire, fds[0], fds[1]);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    dt_wire_fini(&f->wire);
    if (f->read_end >= 0)
        close(f->read_end);
    if (f->write_end >= 0)
        close(f->write_end);
    free(f);
    return 0;
}

static void say(struct fixture *f, const char *bytes)
{
    assert_int_equal(write(f->write_end, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
}

static void hang_up(struct fixture *f)
{
    close(f->write_end);
    f->write_end = -1;
}

static dt_status get(struct fixture *f, json_t **message)
{
    return dt_wire_read(&f->wire, dt_clock_ns() + 600 * SECOND, message);
}

static void round_trip(void **state)
{
    struct fixture *f = *state;
    json_t *sent = json_pack("{s:s,s:I,s:[i,i],s:s}", "op", "prepared", "peak_bytes",
                             (json_int_t)1 << 40, "ns", 3, 4, "say", "a \"quoted\"\nline \xc3\xa9");
    json_t *got = NULL;
    assert_int_equal(dt_wire_write(&f->wire, sent), DT_OK);
    assert_true(f->wire.last_write_ns > 0);
    assert_int_equal(get(f, &got), DT_OK);
    assert_true(json_equal(sent, got));
    assert_string_equal(dt_wire_op(got), "prepared");
    json_decref(sent);
    json_decref(got);
}

static void split_and_joined_lines(void **state)
{
    struct fixture *f = *state;
    json_t *got = NULL;
    say(f, "\n\n{\"op\":\"a\"}\n{\"op\":\"b\"}\n{\"op\":");
    assert_int_equal(get(f, &got), DT_OK);
    assert_string_equal(dt_wire_op(got), "a");
    json_decref(got);
    assert_int_equal(get(f, &got), DT_OK);
    assert_string_equal(dt_wire_op(got), "b");
    json_decref(got);
    got = NULL;
    assert_int_equal(dt_wire_read(&f->wire, dt_clock_ns() + SECOND / 50, &got), DT_ETIMEOUT);
    assert_null(got);
    say(f, "\"c\"}\n");
    assert_int_equal(dt_wire_read(&f->wire, 0, &got), DT_OK); /* late, but it is there */
    assert_string_equal(dt_wire_op(got), "c");
    json_decref(got);
}

static void end_of_file(void **state)
{
    struct fixture *f = *state;
    json_t *got = NULL;
    say(f, "{\"op\":\"a\"}\n{\"op\":\"half");
    hang_up(f);
    assert_int_equal(get(f, &got), DT_OK);
    json_decref(got);
    got = NULL;
    assert_int_equal(get(f, &got), DT_EDEAD);
    assert_non_null(strstr(dt_message(), "in the middle of a line, after 11 bytes"));
    assert_null(got);
}

static void end_of_file_between_lines(void **state)
{
    struct fixture *f = *state;
    json_t *got = NULL;
    hang_up(f);
    assert_int_equal(get(f, &got), DT_EDEAD);
    assert_null(strstr(dt_message(), "middle"));
}

static void garbage(void **state)
{
    static const char *const lines[] = {"hello world\n",
                                        "[1,2]\n",
                                        "{\"op\":3}\n",
                                        "{\"no\":\"op\"}\n",
                                        "{\"op\":NaN}\n",
                                        "\xff\xfe\n",
                                        "{\"op\":\"a\"} x\n",
                                        "{\"op\":\"a\",\"op\":\"b\"}\n",
                                        "3\n",
                                        "null\n",
                                        "{\"op\":\"a\\u00\n"};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        json_t *got = NULL;
        say(f, lines[i]);
        assert_int_equal(get(f, &got), DT_EPROTO);
        assert_null(got);
        assert_true(strlen(dt_message()) > 10);
    }
    json_t *got = NULL;
    assert_int_equal(write(f->write_end, "{\"op\":\"a\0b\"}\n", 13), 13);
    assert_int_equal(get(f, &got), DT_EPROTO);
    say(f, "{\"op\":\"after\"}\n"); /* the line is consumed: the next one counts */
    assert_int_equal(get(f, &got), DT_OK);
    assert_string_equal(dt_wire_op(got), "after");
    json_decref(got);
}

struct flood {
    int fd;
    size_t bytes;
    char fill;
    const char *tail;
};

static void *pour(void *argument)
{
    struct flood *flood = argument;
    char block[65536];
    memset(block, flood->fill, sizeof block);
    for (size_t left = flood->bytes; left > 0;) {
        ssize_t put = write(flood->fd, block, left < sizeof block ? left : sizeof block);
        if (put < 0)
            return NULL;
        left -= (size_t)put;
    }
    if (write(flood->fd, flood->tail, strlen(flood->tail)) < 0)
        return NULL;
    return NULL;
}

static void overlong_line(void **state)
{
    struct fixture *f = *state;
    struct flood flood = {f->write_end, (size_t)17 << 20, 'x', ""};
    pthread_t thread;
    json_t *got = NULL;
    assert_int_equal(pthread_create(&thread, NULL, pour, &flood), 0);
    assert_int_equal(get(f, &got), DT_EPROTO);
    assert_non_null(strstr(dt_message(), "longer than"));
    assert_true(f->wire.pending.size <
                ((size_t)16 << 20) + 131072); /* refused before it was kept whole */
    close(f->read_end);
    f->read_end = -1;
    pthread_join(thread, NULL);
}

static void long_line_is_fine(void **state)
{
    struct fixture *f = *state;
    struct flood flood = {f->write_end, (size_t)15 << 20, ' ', "{\"op\":\"far\"}\n"};
    pthread_t thread;
    json_t *got = NULL;
    assert_int_equal(pthread_create(&thread, NULL, pour, &flood), 0);
    assert_int_equal(get(f, &got), DT_OK);
    assert_string_equal(dt_wire_op(got), "far");
    json_decref(got);
    pthread_join(thread, NULL);
}

static void drip_does_not_outlive_the_deadline(void **state)
{
    struct fixture *f = *state;
    struct flood flood = {f->write_end, (size_t)64 << 20, '\n', ""};
    pthread_t thread;
    json_t *got = NULL;
    assert_int_equal(pthread_create(&thread, NULL, pour, &flood), 0);
    assert_int_equal(dt_wire_read(&f->wire, dt_clock_ns() + 1, &got), DT_ETIMEOUT);
    close(f->read_end);
    f->read_end = -1;
    pthread_join(thread, NULL);
}

static void peer_gone_while_writing(void **state)
{
    struct fixture *f = *state;
    close(f->read_end);
    f->read_end = -1;
    json_t *message = json_pack("{s:s}", "op", "quit");
    assert_int_equal(dt_wire_write(&f->wire, message), DT_EDEAD);
    json_decref(message);
}

static void nothing(int number)
{
    (void)number;
}

static void signal_interrupts(void **state)
{
    struct fixture *f = *state;
    struct sigaction action = {.sa_handler = nothing};
    struct sigaction old;
    json_t *got = NULL;
    sigaction(SIGALRM, &action, &old);
    ualarm(20000, 20000); /* again and again: a busy machine may not be waiting yet at the first */
    assert_int_equal(dt_wire_read(&f->wire, DT_WIRE_FOREVER, &got), DT_EINTR);
    ualarm(0, 0);
    say(f, "{\"op\":\"again\"}\n");
    assert_int_equal(dt_wire_read(&f->wire, DT_WIRE_FOREVER, &got), DT_OK);
    json_decref(got);
    sigaction(SIGALRM, &old, NULL);
}

/* A stream of random messages, cut at random places (1 to 40 bytes at a time), gives the messages
 * that were sent. */
static void any_cut_gives_the_same_messages(void **state)
{
    struct fixture *f = *state;
    struct dt_rng rng = dt_rng_at(dose_seed("wire", 5), "wire");
    struct dt_text stream = {0};
    long long numbers[200];
    for (int i = 0; i < 200; i++) {
        numbers[i] = (long long)(dt_rng_next(&rng) >> (1 + dt_rng_below(&rng, 60)));
        dt_text_add(&stream, "{\"op\":\"m\",\"n\":%lld}%s", numbers[i],
                    dt_rng_below(&rng, 4) == 0 ? "\n\n" : "\n");
    }
    size_t at = 0;
    for (int seen = 0; seen < 200;) {
        size_t cut = (size_t)dt_rng_below(&rng, 40) + 1;
        cut = cut < stream.size - at ? cut : stream.size - at;
        assert_int_equal(write(f->write_end, stream.bytes + at, cut), (ssize_t)cut);
        at += cut;
        json_t *got = NULL;
        dt_status status;
        while (seen < 200 && (status = dt_wire_read(&f->wire, 0, &got)) == DT_OK) {
            assert_int_equal(json_integer_value(json_object_get(got, "n")), numbers[seen++]);
            json_decref(got);
        }
        assert_true(seen == 200 || status == DT_ETIMEOUT);
    }
    dt_text_fini(&stream);
}

int main(void)
{
#define ROW(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {ROW(round_trip),
                                       ROW(split_and_joined_lines),
                                       ROW(end_of_file),
                                       ROW(end_of_file_between_lines),
                                       ROW(garbage),
                                       ROW(overlong_line),
                                       ROW(long_line_is_fine),
                                       ROW(drip_does_not_outlive_the_deadline),
                                       ROW(peer_gone_while_writing),
                                       ROW(signal_interrupts),
                                       ROW(any_cut_gives_the_same_messages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
