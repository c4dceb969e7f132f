/* SPDX-License-Identifier: MIT */
/* ctest: alone */
/* The n-th allocation fails, once or permanently, for every n: the library returns the code, or
 * the complete answer. Jansson's allocations fail by its own hook, ours by replacing malloc
 * where no sanitizer does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/api/session.h"
#include "tests/lib/dose.h"
#include "tests/lib/sanitized.h"

static long left = -1; /* allocations until one fails; below zero: none fails */
static bool for_ever;  /* and every one after it */
static bool failed;

static bool refuse(void)
{
    if (left < 0)
        return false;
    if (left > 0) {
        left--;
        return false;
    }
    left = for_ever ? 0 : -1;
    failed = true;
    return true;
}

#ifndef SANITIZED
enum { STRIDE = 29 }; /* of the thin dose */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);

void *malloc(size_t size)
{
    return refuse() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return refuse() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size)
{
    return refuse() ? NULL : __libc_realloc(memory, size);
}
#else
enum { STRIDE = 71 };
static void *reluctant(size_t size)
{
    return refuse() ? NULL : malloc(size);
}
#endif

enum { OF_ENGINE = 1 << 20 }; /* the number of a question */

static char *store_text, *engine_text;
static size_t store_size, engine_size;

/* Tuned on xdit, for a part of this job. */
static const char engine_entry[] =
    "{\"key\":{\"worker\":\"w\",\"workload\":\"images\",\"devices\":4,\"space\":\"00\",\"job\":{"
    "\"model\":\"org/flux\",\"revision\":\"abc\",\"width\":1024,\"height\":768,\"steps\":28,"
    "\"guidance\":3.5,\"weights\":\"random\"},\"objective\":\"latency\"},\"fingerprint\":{\"hard\":"
    "{"
    "\"device\":\"Made for a test\",\"cores\":8,\"memory_gib\":32,\"topology\":\"00\",\"dtype\":"
    "\"float32\",\"engine\":\"xdit\",\"mode\":\"eager\"},\"soft\":{},\"info\":{\"t_wall_ns\":1}},"
    "\"plan\":{\"ranks\":4,\"ulysses\":4},\"verdict\":\"faster\",\"provisional\":false,\"gain\":"
    "null,"
    "\"space\":{\"parameters\":[{\"name\":\"ranks\",\"role\":\"ranks\",\"values\":[1,2,4]},{"
    "\"name\":"
    "\"ulysses\",\"values\":[1,2,4]}],\"constants\":{\"heads\":24},\"rules\":[{\"if\":"
    "\"ulysses == ranks\",\"say\":\"all ranks are of ulysses\"}]}}";

/* A question and its results: the tier and the texts. */
struct story {
    struct dittune_db *db;
    struct dittune_machine *machine;
    struct dittune_query *query;
    struct dittune_answer *answer;
    struct dittune_export *export;
    char *json, *engines;
    int32_t tier;
    size_t count;
};

static void end(struct story *story)
{
    dittune_text_free(story->json);
    dittune_text_free(story->engines);
    dittune_export_free(story->export);
    dittune_answer_free(story->answer);
    dittune_query_free(story->query);
    dittune_machine_free(story->machine);
    dittune_db_close(story->db);
}

static int32_t set_all(struct dittune_query *query, size_t i, char *why)
{
    struct made_word words[MADE_WORDS];
    int32_t code = DITTUNE_OK;
    made_question(i, words);
    for (int k = 0; k < MADE_WORDS && code == DITTUNE_OK; k++)
        code = dittune_query_set(query, words[k].name, words[k].value, why, 256);
    return code == DITTUNE_OK ? dittune_query_seal(query, why, 256) : code;
}

/* The question about an engine's job. */
static int32_t set_engine(struct dittune_query *query, char *why)
{
    static const char *const words[][2] = {
        {"engine", "xdit"}, {"model", "org/flux"}, {"revision", "abc"}, {"size", "1024x768"},
        {"steps", "28"},    {"guidance", "3.5"},   {"devices", "4"}};
    int32_t code = DITTUNE_OK;
    for (size_t i = 0; i < sizeof words / sizeof words[0] && code == DITTUNE_OK; i++)
        code = dittune_query_set(query, words[i][0], words[i][1], why, 256);
    return code == DITTUNE_OK ? dittune_query_seal(query, why, 256) : code;
}

static int32_t tell(struct story *story, size_t question, char *why)
{
    bool of_engine = question == OF_ENGINE;
    int32_t code = dittune_db_parse(of_engine ? engine_text : store_text,
                                    of_engine ? engine_size : store_size, &story->db, why, 256);
    if (code == DITTUNE_OK)
        code = dittune_machine_parse(MADE_MACHINE, strlen(MADE_MACHINE), &story->machine, why, 256);
    if (code == DITTUNE_OK)
        code = dittune_query_new(story->machine, &story->query, why, 256);
    if (code == DITTUNE_OK)
        code = of_engine ? set_engine(story->query, why) : set_all(story->query, question, why);
    if (code == DITTUNE_OK)
        code = dittune_lookup(story->db, story->query, &story->answer, why, 256);
    if (code == DITTUNE_OK)
        code = dittune_answer_json(story->answer, "plan", &story->json, why, 256);
    if (code == DITTUNE_OK)
        code = dittune_export_new(story->answer, "xdit", "argv", &story->export, why, 256);
    if (code == DITTUNE_OK)
        code = dittune_engines(&story->engines, why, 256);
    if (code == DITTUNE_OK) {
        story->tier = dittune_answer_tier(story->answer);
        story->count = dittune_answer_count(story->answer);
    }
    return code;
}

/* Fails the n-th allocation; returns whether there was one. */
static bool fail_at(long n, bool ever, size_t question, const struct story *wanted)
{
    struct story story = {0};
    char why[256] = "";
    for_ever = ever;
    failed = false;
    left = n;
    int32_t code = tell(&story, question, why);
    left = -1;
    bool reached = failed;
    if (code == DITTUNE_OK) { /* done without, or there was no n-th: nothing may be missing */
        if (story.tier != wanted->tier)
            fail_msg("allocation %ld%s: %s: %s", n, ever ? " and all after it" : "",
                     dittune_tier_text(story.tier), dittune_answer_reason(story.answer));
        assert_int_equal(story.count, wanted->count);
        assert_string_equal(story.json, wanted->json);
        assert_string_equal(dittune_export_text(story.export), dittune_export_text(wanted->export));
        assert_string_equal(story.engines, wanted->engines);
    } else if (code != DITTUNE_NOMEM || why[0] == '\0') {
        fail_msg("allocation %ld%s: code %d: %s", n, ever ? " and all after it" : "", (int)code,
                 why);
    }
    end(&story);
    return reached;
}

static void every_allocation(size_t question, int32_t tier)
{
    struct story wanted = {0};
    char why[256] = "";
    if (tell(&wanted, question, why) != DITTUNE_OK)
        fail_msg("%s", why);
    assert_int_equal(wanted.tier, tier);
    for (int ever = 0; ever < 2; ever++) {
        long n = 0;
        while (fail_at(n, ever == 1, question, &wanted))
            n += dose_thin() ? STRIDE : n < 3000 ? 1 : 1 + n / 300;
        print_message("question %zu: %ld allocations\n", question, n);
        assert_true(n > 100);
    }
    end(&wanted);
}

static void every_allocation_of_an_exact_answer_may_fail(void **state)
{
    (void)state;
    every_allocation(1, DITTUNE_EXACT);
}

static void every_allocation_of_a_near_answer_may_fail(void **state)
{
    (void)state;
    every_allocation(2, DITTUNE_NEAR);
}

static void every_allocation_of_an_engine_s_answer_may_fail(void **state)
{
    (void)state;
    every_allocation(OF_ENGINE, DITTUNE_EXACT);
}

static void every_allocation_of_a_list_of_jobs_may_fail(void **state)
{
    (void)state;
    struct story story = {0};
    char why[256] = "", *whole = NULL;
    bool reached = true;
    long n = 0;
    assert_int_equal(tell(&story, OF_ENGINE, why), DITTUNE_OK);
    assert_int_equal(dittune_jobs(story.db, story.query, &whole, why, 256), DITTUNE_OK);
    assert_non_null(strstr(whole, "\"steps\":28"));
    for (; reached; n++) {
        char *text = NULL;
        for_ever = failed = false;
        left = n;
        int32_t code = dittune_jobs(story.db, story.query, &text, why, 256);
        left = -1;
        reached = failed;
        if (code == DITTUNE_OK)
            assert_string_equal(text, whole);
        else
            assert_int_equal(code, DITTUNE_NOMEM);
        dittune_text_free(text);
    }
    print_message("jobs: %ld allocations\n", n);
    assert_true(n > 10);
    dittune_text_free(whole);
    end(&story);
}

static int make_engine_store(void)
{
    json_t *entry = NULL;
    struct stat info;
    if (scratch_make(NULL) != 0 ||
        dt_json_parse(engine_entry, strlen(engine_entry), "the entry", &entry) != DT_OK ||
        dt_store_put(scratch, entry) != DT_OK)
        return -1;
    json_t *job = json_object_get(json_object_get(entry, "key"), "job");
    json_object_set_new(job, "steps",
                        json_integer(4)); /* without its steps a question is refused */
    if (dt_store_put(scratch, entry) != DT_OK || stat(at("best.json"), &info) != 0)
        return -1;
    json_decref(entry);
    engine_size = (size_t)info.st_size;
    engine_text = malloc(engine_size);
    FILE *file = fopen(at("best.json"), "r");
    bool read = engine_text != NULL && file != NULL &&
                fread(engine_text, 1, engine_size, file) == engine_size;
    if (file != NULL)
        fclose(file);
    return read ? scratch_remove(NULL) : -1;
}

/* A store of two entries, the questions 0 and 1, and one of an engine's. */
static int make(void **state)
{
    struct dt_text text = {0};
    (void)state;
    left = -1;
    if (made_store(2, &text) != DT_OK || make_engine_store() != 0)
        return -1;
    store_size = text.size;
    store_text = dt_text_take(&text);
#ifdef SANITIZED
    json_set_alloc_funcs(reluctant, free);
#endif
    return store_text != NULL ? 0 : -1;
}

static int unmake(void **state)
{
    (void)state;
    free(store_text);
    free(engine_text);
    return 0;
}

int main(void)
{
    left = -1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_of_an_exact_answer_may_fail),
        cmocka_unit_test(every_allocation_of_a_near_answer_may_fail),
        cmocka_unit_test(every_allocation_of_a_list_of_jobs_may_fail),
        cmocka_unit_test(every_allocation_of_an_engine_s_answer_may_fail),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
