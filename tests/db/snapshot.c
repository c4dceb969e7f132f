/* SPDX-License-Identifier: MIT */
/* ctest: threads */
/* One version of best.json in memory: found by id, whatever collides, by many threads at once; and
 * the splice of a put. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "db/best_int.h"
#include "db/journal.h"
#include "db/snapshot.h"
#include "db/stores.h"
#include "tests/db/scratch.h"

#include <pthread.h>
#include <stdatomic.h>

/* A file of n lines; line i has the id ids[i], whatever its entry's own is. */
static void make_file(const uint64_t ids[], int n, struct dt_text *text)
{
    char model[32];
    dt_text_add(text, "{\"format\":\"dittune-best\",\"version\":{\"major\":2,\"minor\":0},"
                      "\"incompat\":[],\"compat\":[],\"entries\":[\n");
    for (int i = 0; i < n; i++) {
        struct dt_text line = {0};
        snprintf(model, sizeof model, "m%d", i);
        json_t *entry = make_entry(model, i);
        assert_int_equal(dt_entry_write(entry, &line), DT_OK);
        json_decref(entry);
        char id[17];
        snprintf(id, sizeof id, "%016llx", (unsigned long long)ids[i]);
        memcpy(line.bytes + 7, id, 16);
        line.size -= 18;
        unsigned crc = (unsigned)dt_crc32c(line.bytes, line.size);
        dt_text_add(&line, ",\"crc\":\"%08x\"}", crc);
        dt_text_add(text, "%s%s\n", dt_text_at(&line), i + 1 < n ? "," : "");
        dt_text_fini(&line);
    }
    dt_text_add(text, "]");
    dt_text_add(text, ",\"checksum\":\"%08x\"}\n", (unsigned)dt_crc32c(text->bytes, text->size));
}

static struct dt_snapshot *parse(const uint64_t ids[], int n)
{
    struct dt_text text = {0};
    struct dt_snapshot *snapshot = NULL;
    make_file(ids, n, &text);
    assert_int_equal(dt_snapshot_parse(text.bytes, text.size, "the file", &snapshot), DT_OK);
    dt_text_fini(&text);
    return snapshot;
}

/* Few different ids, some of them next to each other, the least and the greatest: against a
 * walk over all lines. */
static void found_as_by_walking(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(5, "ids");
    uint64_t ids[64];
    for (int run = 0; run < 200; run++) {
        int n = (int)dt_rng_below(&rng, 65);
        for (int i = 0; i < n; i++) {
            uint64_t kind = dt_rng_below(&rng, 4), near = dt_rng_below(&rng, 20);
            ids[i] = kind == 0   ? near
                     : kind == 1 ? UINT64_MAX - near
                     : kind == 2 ? near << 32
                                 : dt_rng_next(&rng);
        }
        struct dt_snapshot *snapshot = parse(ids, n);
        assert_int_equal(dt_snapshot_count(snapshot), n);
        for (int asked = -2; asked < n; asked++) {
            uint64_t id = asked >= 0 ? ids[asked] : dt_rng_below(&rng, 22);
            long found = dt_snapshot_find(snapshot, id);
            for (int i = 0; i < n; i++) {
                if (ids[i] != id)
                    continue;
                assert_int_equal(found, i);
                assert_true(dt_snapshot_id(snapshot, i) == id);
                found = dt_snapshot_next(snapshot, found);
            }
            assert_int_equal(found, -1);
        }
        dt_snapshot_close(snapshot);
    }
}

static void id_is_fnv_1a_of_the_identity(void **state)
{
    (void)state;
    static const char text[] = "{\"hard\":{\"a\":[true,null],\"b\":1},\"key\":{\"x\":\"y\"}}";
    json_error_t error;
    json_t *hard = json_loads("{\"b\": 1, \"a\": [true, null]}", 0, &error);
    json_t *key = json_loads("{\"x\":\"\\u0079\"}", 0, &error);
    uint64_t expected = 0xcbf29ce484222325U, id = 0;
    for (size_t i = 0; i + 1 < sizeof text; i++)
        expected = (expected ^ (unsigned char)text[i]) * 0x100000001b3U;
    assert_int_equal(dt_store_id(key, hard, &id), DT_OK);
    assert_true(id == expected);
    json_decref(hard);
    json_decref(key);
}

/* Entries with colliding ids are distinguished by their identities; two of one
 * identity become one. */
static void put_among_collisions(void **state)
{
    (void)state;
    json_t *entry = make_entry("m1", 77), *one = json_array();
    uint64_t id = 0;
    json_array_append_new(one, entry);
    assert_int_equal(dt_entry_id(entry, &id), DT_OK);
    uint64_t ids[4] = {id, id, 3, id};
    struct dt_best best = {.state = DT_BEST_ABSENT};
    struct dt_text next = {0};
    struct dt_snapshot *snapshot = NULL;
    make_file(ids, 4, &best.text);
    assert_int_equal(dt_best_parse("the file", &best), DT_OK);
    assert_int_equal(dt_best_put(&best, one, &next), DT_OK);
    assert_int_equal(dt_snapshot_parse(next.bytes, next.size, "the new one", &snapshot), DT_OK);
    assert_int_equal(dt_snapshot_count(snapshot), 4);
    for (long i = 0; i < 4; i++) {
        const json_t *found = NULL;
        size_t size;
        const char *line = dt_snapshot_line(snapshot, i, &size);
        assert_int_equal(dt_snapshot_entry(snapshot, i, &found), DT_OK);
        if (i == 1)
            assert_true(same_entry(found, entry));
        else /* byte for byte */
            assert_memory_equal(line, best.text.bytes + best.lines[i].at, size);
    }
    dt_snapshot_close(snapshot);
    dt_text_fini(&next);
    dt_best_fini(&best);
    json_decref(one);
}

static void twins_become_one(void **state)
{
    (void)state;
    json_t *one = json_array();
    struct dt_best best = {.state = DT_BEST_ABSENT}, after = {.state = DT_BEST_ABSENT};
    json_array_append_new(one, make_entry("m0", 5));
    assert_int_equal(dt_best_put(&best, one, &best.text), DT_OK);
    const char *opening = strstr(dt_text_at(&best.text), "{\"id\"");
    const char *end = strstr(dt_text_at(&best.text), "\n],");
    assert_non_null(opening);
    assert_non_null(end);
    struct dt_text twice = {0};
    dt_text_add(&twice, "%.*s,\n%.*s\n]", (int)(end - best.text.bytes), best.text.bytes,
                (int)(end - opening), opening);
    dt_text_add(&twice, ",\"checksum\":\"%08x\"}\n", (unsigned)dt_crc32c(twice.bytes, twice.size));
    dt_best_fini(&best);
    best.text = twice;
    assert_int_equal(dt_best_parse("the file", &best), DT_OK);
    assert_int_equal(best.count, 2);
    assert_int_equal(dt_best_put(&best, one, &after.text), DT_OK);
    assert_int_equal(dt_best_parse("the file", &after), DT_OK);
    assert_int_equal(after.count, 1);
    dt_best_fini(&after);
    dt_best_fini(&best);
    json_decref(one);
}

struct note {
    struct dt_snapshot_note head;
    long of;
};
static atomic_int freed, made;

static void free_note(struct dt_snapshot_note *note)
{
    atomic_fetch_add(&freed, 1);
    free(note);
}

/* Every thread reads every entry and keeps a note of it; all of them must get the same. */
static void *read_all(void *context)
{
    struct dt_snapshot *snapshot = context;
    for (long i = 0; i < (long)dt_snapshot_count(snapshot); i++) {
        const json_t *entry = NULL, *again = NULL;
        if (dt_snapshot_entry(snapshot, i, &entry) != DT_OK ||
            dt_snapshot_entry(snapshot, i, &again) != DT_OK || entry != again)
            return "an entry";
        if (json_integer_value(json_object_get(json_object_get(entry, "plan"), "ranks")) != i)
            return "another entry";
        const struct dt_snapshot_note *kept = dt_snapshot_note(snapshot, i);
        if (kept == NULL) {
            struct note *note = calloc(1, sizeof *note);
            note->head.free = free_note;
            note->of = i;
            atomic_fetch_add(&made, 1);
            kept = dt_snapshot_keep(snapshot, i, &note->head);
        }
        if (kept != dt_snapshot_note(snapshot, i) || ((const struct note *)kept)->of != i)
            return "a note";
    }
    return NULL;
}

static void many_threads(void **state)
{
    (void)state;
    uint64_t ids[100] = {0};
    pthread_t threads[8];
    for (int run = 0; run < 20; run++) {
        struct dt_snapshot *snapshot = parse(ids, 100);
        for (int t = 0; t < 8; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, read_all, snapshot), 0);
        for (int t = 0; t < 8; t++) {
            void *fault = NULL;
            assert_int_equal(pthread_join(threads[t], &fault), 0);
            assert_null(fault);
        }
        dt_snapshot_close(snapshot);
    }
    assert_int_equal(freed, made);
    assert_true(made >= 2000);
}

static void fallback_is_told(void **state)
{
    (void)state;
    struct dt_snapshot *snapshot = NULL;
    assert_int_equal(dt_snapshot_open(at("nowhere"), &snapshot), DT_OK);
    assert_int_equal(dt_snapshot_count(snapshot), 0);
    assert_int_equal(dt_snapshot_find(snapshot, 0), -1);
    dt_snapshot_close(snapshot);
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(put("b", 1), DT_OK);
    assert_int_equal(dt_snapshot_open(scratch, &snapshot), DT_OK);
    assert_null(dt_snapshot_fallback(snapshot));
    assert_int_equal(dt_snapshot_count(snapshot), 2);
    dt_snapshot_close(snapshot);
    write_file(at("best.json"), "{", 1);
    assert_int_equal(dt_snapshot_open(scratch, &snapshot), DT_OK);
    assert_non_null(strstr(dt_snapshot_fallback(snapshot), "best.json is cut short"));
    assert_int_equal(dt_snapshot_count(snapshot), 1);
    dt_snapshot_close(snapshot);
    dt_snapshot_close(NULL);
}

/* Lines of two stores in one snapshot: an id that both have is found in the
 * first, then in the second. */
static void two_stores(void **state)
{
    (void)state;
    struct dt_snapshot *snapshot = NULL;
    struct dt_stores stores;
    char list[2048], behind[512];
    snprintf(behind, sizeof behind, "%s", at("behind"));
    snprintf(list, sizeof list, "%s:%s:%s", scratch, at("nowhere"), behind);
    assert_int_equal(put("a", 1), DT_OK);
    assert_int_equal(mkdir(behind, 0755), 0);
    assert_int_equal(rename(at("best.json"), at("behind/best.json")), 0);
    assert_int_equal(put("b", 1), DT_OK);
    assert_int_equal(put("a", 2), DT_OK);
    assert_int_equal(dt_stores_read(list, NULL, &stores), DT_OK);
    assert_int_equal(dt_snapshot_open_stores(&stores, &snapshot), DT_OK);
    assert_int_equal(dt_snapshot_stores(snapshot), 3);
    assert_int_equal(dt_snapshot_count(snapshot), 3);
    assert_false(dt_snapshot_is_absent(snapshot, 0));
    assert_true(dt_snapshot_is_absent(snapshot, 1));
    long first = dt_snapshot_find(snapshot, dt_snapshot_id(snapshot, 2));
    assert_int_equal(first, 1);
    assert_int_equal(dt_snapshot_next(snapshot, first), 2);
    assert_int_equal(dt_snapshot_next(snapshot, 2), -1);
    assert_int_equal(dt_snapshot_next(snapshot, 0), -1);
    assert_int_equal(dt_snapshot_store(snapshot, 1), 0);
    assert_int_equal(dt_snapshot_store(snapshot, 2), 2);
    assert_string_equal(dt_snapshot_folder(snapshot, 2), behind);
    assert_false(dt_snapshot_is_outdated(snapshot));
    assert_int_equal(unlink(at("behind/best.json")), 0);
    assert_true(dt_snapshot_is_outdated(snapshot));
    dt_snapshot_close(snapshot);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(found_as_by_walking),
        cmocka_unit_test(id_is_fnv_1a_of_the_identity),
        cmocka_unit_test(put_among_collisions),
        cmocka_unit_test(twins_become_one),
        cmocka_unit_test(many_threads),
        TEST(fallback_is_told),
        TEST(two_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
