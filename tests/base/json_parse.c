/* SPDX-License-Identifier: MIT */
/* ctest: dose */
/* Compares the parser with Jansson's own: equal acceptance and values. In contrast to Jansson's, it
 * distinguishes invalid text from lack of memory, whichever allocation fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/rng.h"
#include "tests/lib/dose.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#define CASES 300000

/* Every kind of token, as seeds for mutations. */
static const char *const seeds[] = {
    "{\"a\":1,\"b\":[true,false,null],\"c\":{\"d\":\"e\"}}",
    "[0,-0,12,-34,5.6,-7.8e9,1E+2,3e-4,9223372036854775807,-9223372036854775808]",
    "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\",\"\\u00e9\\uD834\\uDD1E\\u0041\"]",
    "[\"x\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e\"]",
    " {\n\t\"longer than one block of a buffer\" : [ { } , [ ] , \"\" ] }\r\n",
    "[1e308,1e-308,123456789012345678,0.1,1e5]",
    "[[[[{\"a\":{\"a\":{\"a\":[]}}}]]]]",
};
static const char bytes[] =
    "{}[]:,\"\\/bfnrtu0123456789aAeE+-. \n\t\x01\x7f\x80\xbf\xc0\xed\xf4\xff";

static size_t mutate(struct dt_rng *rng, const char *seed, char *text)
{
    size_t size = strlen(seed);
    memcpy(text, seed, size + 1);
    for (uint64_t n = dt_rng_below(rng, 4); n > 0 && size > 0; n--) {
        size_t at = dt_rng_below(rng, size);
        switch (dt_rng_below(rng, 4)) {
        case 0:
            text[at] = bytes[dt_rng_below(rng, sizeof bytes - 1)];
            break;
        case 1:
            memmove(text + at + 1, text + at, size++ - at);
            text[at] = bytes[dt_rng_below(rng, sizeof bytes - 1)];
            break;
        case 2:
            memmove(text + at, text + at + 1, --size - at);
            break;
        default:
            size = at;
        }
    }
    return size;
}

static void compare(const char *text, size_t size)
{
    json_error_t error;
    json_t *mine = NULL, *its = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    dt_status status = dt_json_parse(text, size, "it", &mine);
    if ((status == DT_OK) != (its != NULL))
        fail_msg("'%.*s': %s, Jansson: %s", (int)size, text,
                 status == DT_OK ? "good" : dt_message(), its != NULL ? "good" : error.text);
    if (status == DT_OK && !json_equal(mine, its))
        fail_msg("'%.*s' is another value", (int)size, text);
    json_decref(mine);
    json_decref(its);
}

static void agrees_with_jansson(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(dose_seed("json", 1), "json");
    char text[512];
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        compare(seeds[i], strlen(seeds[i]));
    for (int i = 0; i < (dose_thin() ? CASES / 4 : CASES); i++) {
        const char *seed = seeds[dt_rng_below(&rng, sizeof seeds / sizeof seeds[0])];
        compare(text, mutate(&rng, seed, text));
    }
}

/* ---- memory ---- */

static long left;    /* allocations that succeed still */
static bool forever; /* and all that follow fail */
static long live;

static void *count(void *made)
{
    live += made != NULL;
    return made;
}

static void *fail_at(size_t size)
{
    left--;
    return left == -1 || (forever && left < 0) ? NULL : count(malloc(size));
}

static void free_counted(void *block)
{
    live -= block != NULL;
    free(block);
}

static void a_failed_allocation_is_not_bad_text(void **state)
{
    (void)state;
    json_malloc_t old_malloc;
    json_free_t old_free;
    json_get_alloc_funcs(&old_malloc, &old_free);
    json_set_alloc_funcs(fail_at, free_counted);
    for (size_t i = 0; i < sizeof seeds / sizeof seeds[0]; i++)
        for (int both = 0; both < 2; both++) {
            dt_status status = DT_ENOMEM;
            forever = both == 1;
            for (long n = 0; status != DT_OK; n++) {
                json_t *root = NULL;
                left = n;
                live = 0;
                status = dt_json_parse(seeds[i], strlen(seeds[i]), "it", &root);
                assert_true(status == DT_OK || status == DT_ENOMEM);
                assert_true((status == DT_OK) == (root != NULL));
                json_decref(root);
                assert_int_equal(live, 0);
            }
        }
    json_set_alloc_funcs(old_malloc, old_free);
}

static void ignores_the_locale_s_decimal_comma(void **state)
{
    (void)state;
    if (setlocale(LC_NUMERIC, "de_DE.UTF-8") == NULL)
        skip();
    json_t *root = NULL;
    assert_int_equal(dt_json_parse("[1.5]", 5, "it", &root), DT_OK);
    assert_true(json_real_value(json_array_get(root, 0)) == 1.5);
    json_decref(root);
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_jansson),
        cmocka_unit_test(a_failed_allocation_is_not_bad_text),
        cmocka_unit_test(ignores_the_locale_s_decimal_comma),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
