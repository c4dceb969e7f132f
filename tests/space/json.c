/* SPDX-License-Identifier: MIT */
/* A user's space in a JSON file: what it says is what the space has, plans survive every way of
 * writing them, and what is wrong is named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/json/json.h"
#include "tests/space/walk.h"

#include <stdio.h>
#include <string.h>

static const char user[] =
    "{\"parameters\": ["
    "{\"name\": \"workers\", \"values\": [4, 1, 2], \"role\": \"ranks\", \"doc\": \"processes\"},"
    "{\"name\": \"images\", \"values\": [1, 2, 3, 6], \"role\": \"batch\", \"default\": 2},"
    "{\"name\": \"codec\", \"values\": [\"raw\", \"lz4\", \"zstd-9\"], \"default\": \"lz4\"},"
    "{\"name\": \"huge\", \"values\": [\"off\", \"on\"], \"role\": \"environment\","
    " \"variable\": \"HUGE_PAGES\"},"
    "{\"name\": \"bits\", \"values\": [-8, 16, 32], \"role\": \"lossy\", \"default\": 32}],"
    "\"constants\": {\"most\": 6},"
    "\"rules\": [\"images % workers == 0\","
    "{\"if\": \"codec == 'raw' || workers * images <= most\", \"say\": \"compression needs "
    "memory\"},"
    "{\"if\": \"bits > 0 || huge == 'on'\"}]}";

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *root = json_loads(text, 0, &error);
    if (root == NULL)
        fail_msg("column %d of %s: %s", error.column, text, error.text);
    return root;
}

static struct dt_space *make(const char *text)
{
    struct dt_space *space = NULL;
    json_t *root = parse(text);
    assert_int_equal(dt_space_from_json(root, "the file", &space), DT_OK);
    json_decref(root);
    return space;
}

static void reads_parameters(void **state)
{
    static const struct {
        const char *name, *doc;
        enum dt_role role;
        int count;
        int64_t first, last, fallback;
    } expected[] = {
        {"workers", "processes", DT_ROLE_RANKS, 3, 1, 4, 4}, /* the first that is written */
        {"images", "", DT_ROLE_BATCH, 4, 1, 6, 2},
        {"codec", "", DT_ROLE_PLAIN, 3, 0, 2, 1},
        {"huge", "", DT_ROLE_ENVIRONMENT, 2, 0, 1, 0},
        {"bits", "", DT_ROLE_LOSSY, 3, -8, 32, 32},
    };
    struct dt_space *space = make(user);
    int64_t most = 0;
    (void)state;
    assert_int_equal(dt_space_axes(space), 5);
    for (int i = 0; i < 5; i++) {
        const struct dt_axis *axis = dt_space_axis(space, i);
        assert_string_equal(axis->name, expected[i].name);
        assert_string_equal(axis->doc, expected[i].doc);
        assert_int_equal(axis->role, expected[i].role);
        assert_int_equal(axis->count, expected[i].count);
        assert_int_equal(axis->values[0], expected[i].first);
        assert_int_equal(axis->values[axis->count - 1], expected[i].last);
        assert_int_equal(axis->values[axis->fallback], expected[i].fallback);
        assert_int_equal(dt_space_find(space, expected[i].name), i);
        assert_int_equal(dt_space_role(space, expected[i].role), i);
    }
    assert_string_equal(dt_space_axis(space, 2)->labels[2], "zstd-9");
    assert_string_equal(dt_space_axis(space, 3)->variable, "HUGE_PAGES");
    assert_int_equal(dt_space_find(space, "most"), -1);
    assert_true(dt_space_constant(space, "most", &most));
    assert_int_equal(most, 6);
    assert_false(dt_space_constant(space, "least", &most));
    dt_space_free(space);
}

static void reads_rules(void **state)
{
    struct dt_space *space = make(user);
    struct dt_point point = {{0}};
    int64_t count = 0, removed[3] = {0};
    (void)state;
    do {
        int64_t v[DT_AXES_MAX];
        walk_values(space, &point, v);
        const bool holds[] = {v[1] % v[0] == 0, v[2] == 0 || v[0] * v[1] <= 6, v[4] > 0 || v[3]};
        assert_int_equal(dt_space_feasible(space, &point), holds[0] && holds[1] && holds[2]);
        count += holds[0] && holds[1] && holds[2];
        for (int i = 0; i < 3; i++)
            removed[i] += !holds[i];
    } while (walk_on(space, &point));
    assert_int_equal(dt_space_count(space), count);
    assert_int_equal(dt_space_rules(space), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(dt_space_rule(space, i).removes, removed[i]);
    assert_string_equal(dt_space_rule(space, 1).sentence, "compression needs memory");
    assert_string_equal(dt_space_rule(space, 2).sentence, "bits > 0 || huge == 'on'");
    dt_space_free(space);
}

/* Each plan as JSON and as text, and back. */
static void round_trip(void **state)
{
    struct dt_space *space = make(user);
    (void)state;
    for (int64_t k = 0; k < dt_space_count(space); k++) {
        struct dt_point point, found;
        int64_t values[DT_AXES_MAX];
        struct dt_text text = {0};
        dt_space_at(space, k, &point);
        json_t *plan = dt_point_json(space, &point);
        assert_int_equal(json_object_size(plan), 5);
        assert_true(json_is_string(json_object_get(plan, "codec")));
        assert_int_equal(dt_point_from_json(space, plan, &found), DT_OK);
        assert_true(dt_point_equal(space, &point, &found));
        json_decref(plan);
        dt_point_text(space, &point, &text);
        assert_int_equal(dt_space_parse(space, dt_text_at(&text), values), DT_OK);
        assert_int_equal(dt_space_locate(space, values, &found), DT_OK);
        assert_int_equal(dt_space_index(space, &found), k);
        /* Only values other than the defaults are needed. */
        dt_text_clear(&text);
        dt_point_short(space, &point, &text);
        assert_true(text.size > 0);
        assert_int_equal(dt_space_parse(space, dt_text_at(&text), values), DT_OK);
        assert_int_equal(dt_space_locate(space, values, &found), DT_OK);
        assert_int_equal(dt_space_index(space, &found), k);
        dt_text_fini(&text);
    }
    dt_space_free(space);
}

static void reads_plans_from_text(void **state)
{
    static const struct {
        const char *text, *says; /* NULL: it is read */
    } cases[] = {
        {"workers=2,codec=raw  images=6\tbits=32", NULL},
        {"", NULL},
        {"worker=2", "did you mean 'workers'?"},
        {"speed=2", "unknown parameter 'speed'"},
        {"workers=2 workers=2", "named twice"},
        {"workers", "'workers' is not of the form name=value"},
        {"workers=two", "workers=two is not an integer"},
        {"workers=", "not an integer"},
        {"workers=2x", "workers=2x is not an integer"},
        {"workers=99999999999999999999", "too large"},
        {"codec=gzip", "codec=gzip is unknown, expected one of raw, lz4, zstd-9"},
    };
    struct dt_space *space = make(user);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t values[DT_AXES_MAX];
        dt_status status = dt_space_parse(space, cases[i].text, values);
        assert_int_equal(status, cases[i].says == NULL ? DT_OK : DT_EUSAGE);
        if (cases[i].says != NULL && strstr(dt_message(), cases[i].says) == NULL)
            fail_msg("'%s' says: %s", cases[i].text, dt_message());
    }
    dt_space_free(space);
}

static void reads_plans_from_json(void **state)
{
    static const struct {
        const char *text;
        dt_status status;
        const char *says;
    } cases[] = {
        {"[]", DT_EUSAGE, "not a JSON object"},
        {"{\"worker\": 2}", DT_EUSAGE, "did you mean 'workers'?"},
        {"{\"workers\": \"2\"}", DT_EUSAGE, "'workers' is not an integer"},
        {"{\"workers\": 2.5}", DT_EUSAGE, "'workers' is not an integer"},
        {"{\"codec\": 1}", DT_EUSAGE, "'codec' is not a string"},
        {"{\"codec\": \"gzip\"}", DT_EUSAGE, "expected one of raw, lz4, zstd-9"},
        {"{\"workers\": 4, \"images\": 2}", DT_EINFEASIBLE, "images % workers == 0"},
        {"{\"workers\": 1, \"images\": 5}", DT_EINFEASIBLE, "images=5 is not one of"},
        {"{\"workers\": 2, \"images\": 6}", DT_EINFEASIBLE, "compression needs memory"},
    };
    struct dt_space *space = make(user);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dt_point point;
        json_t *plan = parse(cases[i].text);
        assert_int_equal(dt_point_from_json(space, plan, &point), cases[i].status);
        if (strstr(dt_message(), cases[i].says) == NULL)
            fail_msg("%s says: %s", cases[i].text, dt_message());
        json_decref(plan);
    }
    dt_space_free(space);
}

#define ONE(more) "{\"parameters\": [{\"name\": \"a\", " more "}]}"
#define SETS(variable)                                                                             \
    ONE("\"values\": [1], \"role\": \"environment\", \"variable\": \"" variable "\"")
#define WITH(more) "{\"parameters\": [{\"name\": \"a\", \"values\": [1, 2]}], " more "}"

static const struct {
    const char *text, *says;
} bad[] = {
    {"{}", "parameters"},
    {"{\"parameters\": 3}", "parameters"},
    {"{\"parameters\": []}", "nothing to tune"},
    {"{\"parameters\": [3]}", "parameter 1 is not"},
    {"{\"parameters\": [{\"values\": [1]}]}", "name"},
    {ONE("\"doc\": \"\""), "values"},
    {ONE("\"values\": []"), "has 0 values"},
    {ONE("\"values\": [[1]]"), "values are numbers, texts, or true and false"},
    {ONE("\"values\": [1, \"x\"]"), "value 2 is not a number"},
    {ONE("\"values\": [true, 1]"), "value 2 is not true or false"},
    {ONE("\"values\": [true, true]"), "given twice"},
    {ONE("\"values\": [null, \"x\"]"), "null is no value"},
    {ONE("\"values\": [0.1, 1e-13]"), "value 2 has more than 12 digits"},
    {ONE("\"values\": [0.10, 0.1]"), "the value 0.1 is given twice"},
    {ONE("\"values\": [0.5, 1], \"default\": 0.55"), "'default' is none of its values"},
    {ONE("\"values\": [\"x\", 1]"), "value 2 is not a string"},
    {ONE("\"values\": [3, 1, 3]"), "the value 3 is given twice"},
    {ONE("\"values\": [\"x\", \"x\"]"), "'x' is given twice"},
    {ONE("\"values\": [\"x'y\\\"\"]"), "quotes of both sorts"},
    {ONE("\"values\": [1], \"default\": 2"), "'default' is none of its values"},
    {ONE("\"values\": [\"x\"], \"default\": 0"), "'default' is none of its values"},
    {ONE("\"values\": [1], \"role\": \"boss\""), "boss"},
    {ONE("\"values\": [1], \"role\": 3"), "role"},
    {ONE("\"values\": [0, 1], \"role\": \"ranks\""), "at least 1"},
    {ONE("\"values\": [\"x\"], \"role\": \"batch\""), "at least 1"},
    {ONE("\"values\": [1], \"role\": \"environment\""), "variable"},
    {ONE("\"values\": [1], \"role\": \"environment\", \"variable\": \"A=B\""), "cannot name"},
    {SETS("LD_PRELOAD"), "'a' may not set LD_PRELOAD"},
    {SETS("LD_LIBRARY_PATH"), "may not set LD_LIBRARY_PATH"},
    {SETS("PATH"), "may not set PATH"},
    {SETS("TMPDIR"), "may not set TMPDIR"},
    {SETS("GIT_SSH_COMMAND"), "may not set GIT_SSH_COMMAND"},
    {SETS("PYTHONBREAKPOINT"), "may not set PYTHONBREAKPOINT"},
    {SETS("PYTHONINSPECT"), "may not set PYTHONINSPECT"},
    {SETS("OPENSSL_CONF"), "may not set OPENSSL_CONF"},
    {SETS("OPENSSL_MODULES"), "may not set OPENSSL_MODULES"},
    {SETS("GLIBC_TUNABLES"), "may not set GLIBC_TUNABLES"},
    {SETS("MALLOC_TRACE"), "may not set MALLOC_TRACE"},
    {SETS("JAVA_TOOL_OPTIONS"), "may not set JAVA_TOOL_OPTIONS"},
    {SETS("NCCL_NET_PLUGIN"), "may not set NCCL_NET_PLUGIN"},
    {SETS("OMPI_MCA_plm_rsh_agent"), "may not set OMPI_MCA_plm_rsh_agent"},
    {SETS("OMPI_MCA_mca_base_component_path"), "may not set OMPI_MCA_mca_base_component_path"},
    {SETS("PMIX_MCA_gds"), "may not set PMIX_MCA_gds"},
    {SETS("XDG_CACHE_HOME"), "may not set XDG_CACHE_HOME"},
    {SETS("HF_HOME"), "may not set HF_HOME"},
    {SETS("UCX_MODULE_DIR"), "may not set UCX_MODULE_DIR"},
    {SETS("VLLM_PLUGINS"), "may not set VLLM_PLUGINS"},
    {SETS("TRITON_LIBCUDA_PATH"), "may not set TRITON_LIBCUDA_PATH"},
    {SETS("VK_ICD_FILENAMES"), "may not set VK_ICD_FILENAMES"},
    {SETS("LUA_INIT"), "may not set LUA_INIT"},
    {SETS("IFS"), "may not set IFS"},
    {SETS("ENV"), "may not set ENV"},
    {SETS("BASH_ENV"), "may not set BASH_ENV"},
    {SETS("PYTHONPATH"), "may not set PYTHONPATH"},
    {SETS("DITTUNE_STORE"), "may not set DITTUNE_STORE"},
    {"{\"parameters\": [{\"name\": \"min\", \"values\": [1]}]}", "'min' cannot be a name"},
    {"{\"parameters\": [{\"name\": \"a-\", \"values\": [1]}]}", "'a-' is not a name"},
    {"{\"parameters\": [{\"name\": \"2a\", \"values\": [1]}]}", "'2a' is not a name"},
    {"{\"parameters\": [{\"name\": \"a\", \"values\": [1]}, {\"name\": \"a\", \"values\": [1]}]}",
     "'a' is given twice"},
    {WITH("\"constants\": {\"a\": 1}"), "'a' is given twice"},
    {WITH("\"constants\": {\"k\": 1.5}"), "'k' is not an integer"},
    {WITH("\"constants\": []"), "constants"},
    {WITH("\"rules\": {}"), "rules"},
    {WITH("\"rules\": [3]"), "rule 1"},
    {WITH("\"rules\": [{\"say\": \"no\"}]"), "if"},
    {WITH("\"rules\": [\"a < b\"]"), "column 5: unknown name 'b'"},
    {WITH("\"rules\": [\"a <\"]"), "column"},
};

static void refuses_each_mistake(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dt_space *space = NULL;
        json_t *root = parse(bad[i].text);
        assert_int_equal(dt_space_from_json(root, "the file", &space), DT_EUSAGE);
        assert_null(space);
        if (strstr(dt_message(), bad[i].says) == NULL || strncmp(dt_message(), "the file", 8) != 0)
            fail_msg("%s says: %s", bad[i].text, dt_message());
        json_decref(root);
    }
}

/* A space of the axes alone reads every plan of the whole one as the same point,
 * and writes it the same. */
static void axes_without_rules_read_every_plan(void **state)
{
    (void)state;
    struct dt_space *whole = make(user), *axes = NULL;
    json_t *root = json_pack("{s:o}", "parameters", dt_space_axes_json(whole));
    assert_int_equal(dt_space_axes_from_json(root, "the record", &axes), DT_OK);
    json_t *again = dt_space_axes_json(axes);
    assert_true(json_equal(json_object_get(root, "parameters"), again));
    json_decref(again);
    assert_true(dt_space_count(whole) > 0);
    for (int64_t k = 0; k < dt_space_count(whole); k++) {
        struct dt_point point, read;
        dt_space_at(whole, k, &point);
        json_t *plan = dt_point_json(whole, &point);
        assert_int_equal(dt_point_read(axes, plan, &read), DT_OK);
        assert_memory_equal(&point, &read, sizeof point);
        json_t *written = dt_point_json(axes, &read);
        assert_true(json_equal(plan, written));
        json_decref(written);
        if (k == 0) {
            json_object_set_new(plan, "bits", json_integer(17));
            assert_int_equal(dt_point_read(axes, plan, &read), DT_EUSAGE);
            assert_non_null(strstr(dt_message(), "bits=17"));
            json_object_del(plan, "bits");
            assert_int_equal(dt_point_read(axes, plan, &read), DT_EUSAGE);
            assert_non_null(strstr(dt_message(), "'bits'"));
        }
        json_decref(plan);
    }
    json_decref(root);
    dt_space_free(axes);
    dt_space_free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_parameters),
        cmocka_unit_test(reads_rules),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(reads_plans_from_text),
        cmocka_unit_test(reads_plans_from_json),
        cmocka_unit_test(refuses_each_mistake),
        cmocka_unit_test(axes_without_rules_read_every_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
