/* SPDX-License-Identifier: MIT */
/* Reading a journal that is whole, torn at any byte, or has any bit flipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/journal.h"
#include "tests/db/scratch.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

struct seen {
    int n, bad;
    int64_t values[64]; /* "value" of the record, -1 when it has none */
    json_t *last;
};

static void note(struct seen *seen, const json_t *record)
{
    const json_t *value = json_object_get(record, "value");
    assert_true(seen->n < 64);
    seen->values[seen->n++] = value != NULL ? json_integer_value(value) : -1;
    json_decref(seen->last);
    seen->last = json_deep_copy(record);
}

static dt_status read_into(const char *path, struct seen *seen)
{
    struct dt_journal_reader reader = {.path = path};
    while (dt_journal_next(&reader))
        note(seen, reader.record);
    dt_status status = dt_journal_end(&reader);
    seen->bad = reader.damaged;
    return status;
}

static struct seen read_journal(const char *path)
{
    struct seen seen = {.n = 0};
    assert_int_equal(read_into(path, &seen), DT_OK);
    return seen;
}

static void add_value(struct dt_journal *journal, int64_t value)
{
    json_t *record = json_pack("{s:I, s:s}", "value", (json_int_t)value, "text", "a\nb\"\\");
    assert_int_equal(dt_journal_add(journal, "trial", record), DT_OK);
    json_decref(record);
}

/* A journal of n records, closed; its bytes. */
static char *make_journal(int n, char path[512], size_t *size)
{
    struct dt_journal *journal = NULL;
    assert_int_equal(dt_journal_open(scratch, &journal), DT_OK);
    for (int i = 0; i < n; i++)
        add_value(journal, 100 + i);
    snprintf(path, 512, "%s", dt_journal_path(journal));
    dt_journal_close(journal);
    return read_file(path, size);
}

static void round_trip(void **state)
{
    (void)state;
    struct dt_journal *journal = NULL;
    json_t *record = json_pack("{s:f, s:[i,n,b], s:{s:s}}", "seconds", 0.036, "list", 1, 1, "plan",
                               "x", "\xc3\xa9\n");
    const char *key;
    json_t *value;
    assert_int_equal(dt_journal_open(scratch, &journal), DT_OK);
    assert_int_equal(dt_journal_add(journal, "session", NULL), DT_OK);
    assert_int_equal(dt_journal_add(journal, "trial", record), DT_OK);
    struct seen seen = read_journal(dt_journal_path(journal));
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.bad, 0);
    json_object_foreach(record, key, value)
    {
        assert_true(json_equal(json_object_get(seen.last, key), value));
    }
    assert_int_equal(json_integer_value(json_object_get(seen.last, "v")), 1);
    assert_int_equal(json_integer_value(json_object_get(seen.last, "seq")), 1);
    assert_true(json_is_integer(json_object_get(seen.last, "t_wall_ns")));
    assert_true(json_is_integer(json_object_get(seen.last, "t_mono_ns")));
    assert_string_equal(json_string_value(json_object_get(seen.last, "kind")), "trial");
    assert_string_equal(json_string_value(json_object_get(seen.last, "run")),
                        dt_journal_id(journal));
    assert_non_null(strstr(dt_journal_path(journal), dt_journal_id(journal)));
    json_decref(seen.last);
    json_decref(record);
    dt_journal_close(journal);
    dt_journal_close(NULL);
}

/* The framing as documented, by bytes: newline, object whose last field is the crc of what
 * is before it, newline. */
static void framing(void **state)
{
    (void)state;
    char path[512], tail[32];
    size_t size;
    char *bytes = make_journal(1, path, &size);
    assert_int_equal(bytes[0], '\n');
    assert_int_equal(bytes[1], '{');
    assert_int_equal(bytes[size - 1], '\n');
    char *field = strstr(bytes, ",\"crc\":\"");
    assert_non_null(field);
    snprintf(tail, sizeof tail, ",\"crc\":\"%08x\"}\n",
             (unsigned)dt_crc32c(bytes + 1, (size_t)(field - bytes) - 1));
    assert_string_equal(field, tail);
    free(bytes);
}

static void own_fields_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"v", "seq", "run", "t_wall_ns", "t_mono_ns", "kind", "crc"};
    struct dt_journal *journal = NULL;
    assert_int_equal(dt_journal_open(scratch, &journal), DT_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        json_t *record = json_pack("{s:i}", names[i], 1);
        assert_int_equal(dt_journal_add(journal, "trial", record), DT_EUSAGE);
        json_decref(record);
    }
    add_value(journal, 5);
    struct seen seen = read_journal(dt_journal_path(journal));
    assert_int_equal(seen.n, 1);
    assert_int_equal(seen.bad, 0);
    json_decref(seen.last);
    dt_journal_close(journal);
}

/* Torn at every byte, then three more records are appended by the next writer:
 * those are always read. */
static void torn_anywhere(void **state)
{
    (void)state;
    char path[512];
    size_t size, more;
    char *first = make_journal(2, path, &size);
    char *next = make_journal(3, path, &more);
    char *both = malloc(size + more);
    assert_non_null(both);
    size_t second = (size_t)(strstr(first, "\n\n") - first) + 1; /* where record two begins */
    for (size_t cut = 0; cut <= size; cut++) {
        memcpy(both, first, cut);
        memcpy(both + cut, next, more);
        write_file(path, both, cut + more);
        struct seen seen = read_journal(path);
        int whole = (cut >= second - 1) + (cut >= size - 1);
        int torn = !(cut <= 1 || (cut >= second - 1 && cut <= second + 1) || cut >= size - 1);
        assert_int_equal(seen.n, whole + 3);
        assert_int_equal(seen.bad, torn);
        for (int i = 0; i < seen.n; i++)
            assert_int_equal(seen.values[i], 100 + (i < whole ? i : i - whole));
        json_decref(seen.last);
    }
    free(first);
    free(next);
    free(both);
}

/* A single turned bit costs the record it touches, and is never read as something else. */
static void bit_flips(void **state)
{
    (void)state;
    char path[512];
    size_t size;
    char *bytes = make_journal(3, path, &size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << (bit % 8)));
        write_file(path, bytes, size);
        bytes[bit / 8] = (char)(bytes[bit / 8] ^ (1 << (bit % 8)));
        struct seen seen = read_journal(path);
        assert_int_equal(seen.n, 2);
        assert_in_range(seen.bad, 1, 2); /* two when the bit makes a newline */
        assert_in_range(seen.values[0], 100, 101);
        assert_in_range(seen.values[1], seen.values[0] + 1, 102);
        json_decref(seen.last);
    }
    free(bytes);
}

static void hostile_files(void **state)
{
    (void)state;
    struct seen seen = {.n = 0};
    size_t size = DT_JSON_MAX_BYTES + 100;
    char *line = malloc(size);
    assert_non_null(line);
    memset(line, '[', size);
    line[10] = '\0';
    write_file(at("long"), line, size);
    seen = read_journal(at("long"));
    assert_int_equal(seen.n, 0);
    assert_int_equal(seen.bad, 1);
    memset(line, '\n', 1000);
    write_file(at("empty"), line, 1000);
    seen = read_journal(at("empty"));
    assert_int_equal(seen.n + seen.bad, 0);
    free(line);
    assert_int_equal(mkfifo(at("fifo"), 0644), 0);
    assert_int_equal(read_into(at("fifo"), &seen), DT_EIO);
    assert_int_equal(read_into("/dev/zero", &seen), DT_EIO);
    assert_int_equal(read_into(scratch, &seen), DT_EIO);
    assert_int_equal(read_into(at("none"), &seen), DT_EIO);
}

/* The disk fills up inside a record: an error now, and the records before and
 * after stay readable. */
static void short_write(void **state)
{
    (void)state;
    int outcome = 0;
    struct dt_journal *journal = NULL;
    assert_int_equal(dt_journal_open(scratch, &journal), DT_OK);
    add_value(journal, 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct stat info;
        stat(dt_journal_path(journal), &info);
        struct rlimit limit = {(rlim_t)info.st_size + 50, (rlim_t)info.st_size + 50};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        json_t *record = json_pack("{s:i}", "value", 2);
        _exit(dt_journal_add(journal, "trial", record) == DT_EIO ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_int_equal(outcome, 0);
    add_value(journal, 3);
    struct seen seen = read_journal(dt_journal_path(journal));
    assert_int_equal(seen.n, 2);
    assert_int_equal(seen.bad, 1);
    assert_int_equal(seen.values[0], 1);
    assert_int_equal(seen.values[1], 3);
    json_decref(seen.last);
    dt_journal_close(journal);
}

static void cannot_be_made(void **state)
{
    (void)state;
    struct dt_journal *journal = NULL;
    write_file(at("file"), "", 0);
    assert_int_equal(dt_journal_open(at("file"), &journal), DT_EIO);
    assert_non_null(strstr(dt_message(), "Not a directory"));
    assert_null(journal);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(round_trip),    TEST(framing),        TEST(own_fields_are_refused),
        TEST(torn_anywhere), TEST(bit_flips),      TEST(hostile_files),
        TEST(short_write),   TEST(cannot_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
