/* SPDX-License-Identifier: MIT */
/* Custom engine files: every form of a value, and a sentence for every mistake. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/engines/engines_int.h"

#include <stdio.h>
#include <string.h>

#define HEAD                                                                                       \
    "{\"engine\": \"mine\", \"version\": \"1\", \"doc\": \"a test\", \"sources\": {}, "            \
    "\"processes\": \"ulysses * cfg\", \"starts\": \"1\", "

static const char whole[] = HEAD
    "\"parameters\": {\"cfg\": \"1\", \"ulysses\": \"2 * cfg\", \"ranks\": \"ulysses * cfg\"},"
    "\"words\": [{\"words\": [\"run\", \"{{{ulysses + 1}}}\", \"{program}\", \"-{checkpoint}-\"]},"
    "            {\"words\": [\"never\"], \"when\": \"heads > 0\"}],"
    "\"environment\": [{\"name\": \"A\", \"value\": \"x{cfg}\"},"
    "                  {\"name\": \"B\", \"value\": \"no\", \"when\": \"cfg == 1\"}],"
    "\"kwargs\": [{\"name\": \"p.q.n\", \"value\": \"{ulysses * 3}\"},"
    "             {\"name\": \"p.q.t\", \"value\": \"{?cfg == 2}\"},"
    "             {\"name\": \"p.f\", \"value\": \"{?cfg == 1}\"},"
    "             {\"name\": \"s\", \"value\": \"{program}\"},"
    "             {\"name\": \"pair\", \"value\": \"{cfg}{ulysses}\"},"
    "             {\"name\": \"list\", \"value\": [1, null]}],"
    "\"rules\": [{\"rule\": \"cfg <= 2\", \"sentence\": \"two\"}], \"cannot\": {}}";

static json_t *fill(const struct dt_engine *engine, struct dt_values *values,
                    dt_status (*by)(const struct dt_engine *, struct dt_values *, json_t *),
                    json_t *into)
{
    assert_int_equal(by(engine, values, into), DT_OK);
    return into;
}

static void assert_json(json_t *found, const char *want)
{
    json_t *wanted = json_loads(want, 0, NULL);
    assert_non_null(wanted);
    assert_true(json_equal(found, wanted));
    json_decref(wanted);
    json_decref(found);
}

/* The shared rows come first; a parameter that the file names has none, and a row of the file
 * stands in for the shared one. */
static void shared_rows_complete_a_file(void **state)
{
    (void)state;
    struct dt_engine *engine = NULL;
    const char *text =
        "{\"engine\": \"mine\", \"version\": \"1\", \"doc\": \"d\", \"sources\": {}, "
        "\"processes\": \"ranks\","
        "\"starts\": \"1\", \"words\": [], \"environment\": [], \"kwargs\": [], \"rules\": [],"
        "\"parameters\": {\"ranks\": \"1\", \"chunks\": \"1\"},"
        "\"cannot\": {\"pp\": {\"why\": \"no\"}, \"overlap\": {\"neutral\": 1, \"why\": "
        "\"mine\"}}}";
    const char *name, *const wanted[] = {"threads", "tile_q", "tile_kv", "overlap", "pp"};
    json_t *row;
    int n = 0;
    assert_int_equal(dt_engine_read(text, "mine", &engine), DT_OK);
    json_object_foreach(json_object_get(engine->root, "cannot"), name, row)
    {
        assert_in_range(n, 0, 4);
        assert_string_equal(name, wanted[n++]);
        assert_true(json_is_string(json_object_get(row, "why")));
    }
    assert_int_equal(n, 5);
    row = json_object_get(json_object_get(engine->root, "cannot"), "overlap");
    assert_string_equal(json_string_value(json_object_get(row, "why")), "mine");
    dt_engine_free(engine);
}

static void fills_every_form_of_row(void **state)
{
    (void)state;
    struct dt_engine *engine = NULL;
    struct dt_values values;
    json_t *plan = json_pack("{s:i}", "cfg", 2), *notes = json_array();
    struct dt_export_request request = {.plan = plan, .program = "p q", .checkpoint = "{c}"};
    assert_int_equal(dt_engine_read(whole, "mine", &engine), DT_OK);
    assert_int_equal(dt_values_read(engine, &request, &values), DT_OK);
    assert_int_equal(dt_values_check(engine, &values, notes), DT_OK);
    assert_json(fill(engine, &values, dt_words_argv, json_array()),
                "[\"run\", \"{5}\", \"p q\", \"-{c}-\"]");
    assert_json(fill(engine, &values, dt_words_environment, json_object()), "{\"A\": \"x2\"}");
    assert_json(
        fill(engine, &values, dt_words_kwargs, json_object()),
        "{\"p\": {\"q\": {\"n\": 12, \"t\": true}, \"f\": false}, \"s\": \"p q\", \"pair\": \"24\","
        " \"list\": [1, null]}");
    json_decref(plan);
    json_decref(notes);
    dt_engine_free(engine);
}

/* Flags are for sh to split, so a word that it would change is refused; a deploy file has lists of
 * one and the keywords. */
static void prints_flags_and_a_file(void **state)
{
    static const char text[] = HEAD
        "\"parameters\": {\"cfg\": \"1\", \"ulysses\": \"2\", \"ranks\": \"ulysses * cfg\"},"
        "\"words\": [{\"words\": [\"run\", \"{checkpoint}\"], \"own\": true},"
        "            {\"words\": [\"--p\", \"{program}\", \"--c={cfg}\"]}],"
        "\"environment\": [], \"kwargs\": [{\"name\": \"n\", \"value\": \"{ulysses}\"}],"
        "\"yaml_for\": \"run FILE\", \"yaml\": [{\"name\": \"a[].b\", \"value\": "
        "\"{device_list}\"},"
        "{\"name\": \"a[].c.d\", \"value\": \"{?cfg == 1}\"}, {\"name\": \"a[].e\", \"kwargs\": "
        "true},"
        "{\"name\": \"f\", \"value\": \"{program}\"}], \"rules\": [], \"cannot\": {}}";
    static const char *const refused[] = {"", "a b", "a\tb", "a\nb", "*.py", "a?", "[a]", "a\\"};
    static const char *const taken[] = {"a'b", "a\"b", "$a", "`a`", "#a", "a;b", "~"};
    struct dt_engine *engine = NULL;
    struct dt_values values;
    dt_auto_text out = {0};
    (void)state;
    struct dt_export_request request = {.checkpoint = "two words"};
    assert_int_equal(dt_engine_read(text, "mine", &engine), DT_OK);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        request.program = refused[i];
        assert_int_equal(dt_values_read(engine, &request, &values), DT_OK);
        assert_int_equal(dt_flags_write(engine, &values, &out), DT_EUSAGE);
        assert_non_null(strstr(dt_message(), "--format argv"));
    }
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        char wanted[64];
        request.program = taken[i];
        snprintf(wanted, sizeof wanted, "--p %s --c=1\n", taken[i]);
        dt_text_clear(&out);
        assert_int_equal(dt_values_read(engine, &request, &values), DT_OK);
        assert_int_equal(dt_flags_write(engine, &values, &out), DT_OK);
        assert_string_equal(dt_text_at(&out), wanted);
    }
    request.program = "a: \"b\"\n- c";
    dt_text_clear(&out);
    assert_int_equal(dt_values_read(engine, &request, &values), DT_OK);
    assert_int_equal(dt_yaml_write(engine, &values, &out), DT_OK);
    assert_string_equal(dt_text_at(&out), "# run FILE\na:\n  - b: \"0,1\"\n    c:\n      d: true\n"
                                          "    e:\n      n: 2\nf: \"a: \\\"b\\\"\\n- c\"\n");
    dt_engine_free(engine);
}

/* Two choices: the first word is the engine's own, the first legal word that changes nothing stands
 * in where that is forbidden. */
static void settles_choices(void **state)
{
    static const char text[] = HEAD
        "\"parameters\": {\"ring\": \"1\", \"cfg\": \"1\", \"ulysses\": \"ring\", \"ranks\": "
        "\"ulysses * cfg\"},"
        "\"choices\": {\"kind\": {\"values\": [\"own\", \"rough\", \"fine\", \"last\"], "
        "\"source\": \"s\","
        "\"lossy\": {\"rough\": \"it rounds\"}}, \"mode\": {\"values\": [\"a\", \"b\"], "
        "\"source\": \"s\"}},"
        "\"words\": [{\"words\": [\"{kind}\", \"-{mode}{ring}\"], \"when\": \"kind != 'own'\"}],"
        "\"environment\": [], \"kwargs\": [{\"name\": \"k\", \"value\": \"{kind}\"}], \"cannot\": "
        "{},"
        "\"rules\": [{\"rule\": \"ring == 1 || kind != 'own'\", \"sentence\": \"no ring\"},"
        "{\"rule\": \"mode == 'a' || kind == 'last'\", \"sentence\": \"no b\"}]}";
    static const struct {
        const char *plan, *words, *kwargs; /* NULL: infeasible */
    } cases[] = {
        {"{}", "[]", "{\"k\": \"own\"}"},
        {"{\"ring\": 2}", "[\"fine\", \"-a2\"]", "{\"k\": \"fine\"}"},
        {"{\"ring\": 2, \"kind\": \"rough\"}", "[\"rough\", \"-a2\"]", "{\"k\": \"rough\"}"},
        {"{\"mode\": \"b\"}", "[\"last\", \"-b1\"]", "{\"k\": \"last\"}"},
        {"{\"ring\": 2, \"kind\": \"own\"}", NULL, NULL},
        {"{\"mode\": \"b\", \"kind\": \"fine\"}", NULL, NULL},
        {"{\"kind\": \"none\"}", NULL, NULL},
        {"{\"kind\": 1}", NULL, NULL},
    };
    struct dt_engine *engine = NULL;
    (void)state;
    assert_int_equal(dt_engine_read(text, "mine", &engine), DT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dt_values values;
        json_t *plan = json_loads(cases[i].plan, 0, NULL), *notes = json_array();
        struct dt_export_request request = {.plan = plan};
        dt_status status = dt_values_read(engine, &request, &values);
        if (status == DT_OK)
            status = dt_values_check(engine, &values, notes);
        assert_int_equal(status, cases[i].words != NULL ? DT_OK : DT_EINFEASIBLE);
        if (status == DT_OK) {
            assert_json(fill(engine, &values, dt_words_argv, json_array()), cases[i].words);
            assert_json(fill(engine, &values, dt_words_kwargs, json_object()), cases[i].kwargs);
            assert_int_equal(dt_choices_note(engine, &values, notes), DT_OK);
            /* what was added, or rounds */
            assert_int_equal(json_array_size(notes), strcmp(cases[i].words, "[]") != 0);
        }
        json_decref(plan);
        json_decref(notes);
    }
    dt_engine_free(engine);
}

static void refuses_values_the_engine_forbids(void **state)
{
    static const struct {
        const char *plan, *say;
        dt_status status;
    } cases[] = {
        {"{\"cfg\": 3}", "two (cfg=3 <= 2); cfg=2 ranks=12 would do", DT_EINFEASIBLE},
        {"{\"cfg\": 2, \"ranks\": 3}", "make 8 x 1 processes, and it has 3 x 1 ranks",
         DT_EINFEASIBLE},
        {"{\"cfg\": 0, \"ulysses\": 0}", "make 0 x 1 processes", DT_EINFEASIBLE},
        {"{\"ulysses\": 5000000000000000000, \"cfg\": 2}", "does not fit 64 bits", DT_EUSAGE},
        {"{\"ulysses\": 9000000, \"ranks\": 9000000}", "9000000 x 1 processes", DT_EINFEASIBLE},
        {"{\"ulysses\": \"2\"}", "the plan's 'ulysses' is not a whole number", DT_EUSAGE},
        {"{\"ulysses\": 2.5}", "the plan's 'ulysses' is not a whole number", DT_EUSAGE},
    };
    struct dt_engine *engine = NULL;
    (void)state;
    assert_int_equal(dt_engine_read(whole, "mine", &engine), DT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dt_values values;
        json_t *plan = json_loads(cases[i].plan, 0, NULL), *notes = json_array();
        struct dt_export_request request = {.plan = plan};
        dt_status status = dt_values_read(engine, &request, &values);
        if (status == DT_OK)
            status = dt_values_check(engine, &values, notes);
        assert_int_equal(status, cases[i].status);
        if (strstr(dt_message(), cases[i].say) == NULL)
            fail_msg("%s: '%s' lacks '%s'", cases[i].plan, dt_message(), cases[i].say);
        json_decref(plan);
        json_decref(notes);
    }
    dt_engine_free(engine);
}

static void refuses_a_faulty_file(void **state)
{
    static const struct {
        const char *text, *say;
    } cases[] = {
        {"", "mine"},
        {"[]", "mine"},
        {"{\"engine\": \"mine\", \"colour\": 1}", "colour"},
        {HEAD "\"parameters\": {\"ranks\": \"1\"}, \"choices\": {\"k\": {\"values\": [\"a\", "
              "\"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww\"], \"memory\": "
              "{\"wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww\": [\"pages\"]}, \"source\": \"s\"}}, "
              "\"words\": [], \"environment\": [], \"kwargs\": [], \"rules\": [], \"cannot\": {}}",
         "each have 31 bytes"},
        {HEAD
         "\"parameters\": {\"ranks\": \"1\"}, \"choices\": {\"k\": {\"values\": [\"a\", \"b\", "
         "\"c\", \"d\", \"e\", \"f\", \"g\", \"h\", \"i\", \"j\", \"k\", \"l\", \"m\", \"n\", "
         "\"o\", \"p\", \"q\", \"r\"], \"memory\": {\"b\": [\"pages\"], \"c\": [\"pages\"], \"d\": "
         "[\"pages\"], \"e\": [\"pages\"], \"f\": [\"pages\"], \"g\": [\"pages\"], \"h\": "
         "[\"pages\"], \"i\": [\"pages\"], \"j\": [\"pages\"], \"k\": [\"pages\"], \"l\": "
         "[\"pages\"], \"m\": [\"pages\"], \"n\": [\"pages\"], \"o\": [\"pages\"], \"p\": "
         "[\"pages\"], \"q\": [\"pages\"], \"r\": [\"pages\"]}, \"source\": \"s\"}}, \"words\": "
         "[], \"environment\": [], \"kwargs\": [], \"rules\": [], \"cannot\": {}}",
         "17 words lower the memory, at most 16"},
        {HEAD "\"parameters\": {\"ranks\": \"1\"}, \"choices\": {\"k\": {\"values\": [\"a\", "
              "\"b\"], \"alone\": [\"pages\"], \"source\": \"s\"}, \"l\": {\"values\": [\"a\", "
              "\"b\"], \"alone\": [\"swaps\"], \"source\": \"s\"}}, \"words\": [], "
              "\"environment\": [], \"kwargs\": [], \"rules\": [], \"cannot\": {}}",
         "2 choices have 'alone', at most one"},
        {HEAD
         "\"parameters\": {\"cfg\": \"1\"}, \"words\": [], \"environment\": [], \"kwargs\": [],"
         "\"rules\": [], \"cannot\": {}}",
         "lacks 'ranks'"},
        {HEAD "\"parameters\": {\"ranks\": 1}, \"words\": [], \"environment\": [], \"kwargs\": [],"
              "\"rules\": [], \"cannot\": {}}",
         "'ranks' is not an expression in quotes"},
        {HEAD
         "\"parameters\": {\"ranks\": \"1\"}, \"words\": [], \"environment\": [], \"kwargs\": [],"
         "\"rules\": [{\"rule\": \"rank == 1\", \"sentence\": \"s\"}], \"cannot\": {}}",
         "did you mean 'ranks'"},
        {HEAD
         "\"parameters\": {\"ranks\": \"1\"}, \"words\": [], \"environment\": [], \"kwargs\": [],"
         "\"rules\": [{\"rule\": \"ranks == 1\"}], \"cannot\": {}}",
         "sentence"},
        {HEAD "\"parameters\": {\"ranks\": \"1\"}, \"words\": {}, \"cannot\": {}}", "words"},
        {HEAD "\"parameters\": {\"ranks\": \"1\"}, \"words\": [], \"environment\": [], \"kwargs\": "
              "[], \"rules\": [],"
              "\"cannot\": {}, \"choices\": {\"c\": {\"values\": [\"a\"], \"source\": \"s\"}}}",
         "'c' has not 2 to"},
        {HEAD "\"parameters\": {\"ranks\": \"1\"}, \"words\": [], \"environment\": [], \"kwargs\": "
              "[], \"rules\": [],"
              "\"cannot\": {}, \"choices\": {\"c\": {\"values\": [\"a\", 2], \"source\": \"s\"}}}",
         "a value of the choice 'c' is not a word"},
        {HEAD "\"parameters\": {\"ranks\": \"1\"}, \"words\": [], \"environment\": [], \"kwargs\": "
              "[], \"rules\": [],"
              "\"cannot\": {}, \"choices\": {\"c\": {\"values\": [\"a\", \"b\"], \"source\": "
              "\"s\", \"lossy\": {\"a\": \"w\"}}}}",
         "'a' of 'lossy' is no value"},
        {HEAD "\"parameters\": {\"ranks\": \"1\"}, \"words\": [], \"environment\": [], \"kwargs\": "
              "[], \"rules\": [],"
              "\"cannot\": {}, \"choices\": {\"c\": {\"values\": [\"a\", \"b\"], \"source\": "
              "\"s\", \"does\": {\"d\": \"w\"}}}}",
         "'d' of 'does' is no value"},
        {HEAD "\"parameters\": {\"ranks\": \"1\"}, \"words\": [], \"environment\": [], \"kwargs\": "
              "[], \"rules\": [],"
              "\"cannot\": {}, \"choices\": {\"c\": {\"values\": [\"a\", \"b\"], \"source\": "
              "\"s\", \"memory\": {\"a\": [\"streams\"]}}}}",
         "'a' of 'memory' is no value"},
        {HEAD "\"parameters\": {\"ranks\": \"1\"}, \"words\": [], \"environment\": [], \"kwargs\": "
              "[], \"rules\": [],"
              "\"cannot\": {}, \"choices\": {\"c\": {\"values\": [\"a\", \"b\"], \"source\": "
              "\"s\", \"memory\": {\"b\": [\"stream\"]}}}}",
         "has a word that is none of shards, streams"},
        {HEAD "\"parameters\": {\"ranks\": \"1\"}, \"words\": [], \"environment\": [], \"kwargs\": "
              "[], \"rules\": [],"
              "\"cannot\": {}, \"models\": {\"classes\": [\"A\"], \"source\": \"none\"}}",
         "'none' of 'models' is no source"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dt_engine *engine = NULL;
        assert_int_equal(dt_engine_read(cases[i].text, "mine", &engine), DT_EUSAGE);
        assert_null(engine);
        if (strstr(dt_message(), cases[i].say) == NULL)
            fail_msg("%zu: '%s' lacks '%s'", i, dt_message(), cases[i].say);
    }
}

/* An open brace, an unknown name, what the workload does not tell: refused
 * when the words are made. */
static void refuses_a_faulty_word(void **state)
{
    static const char *const words[] = {"{ulysses", "{ulises}", "{heads}", "{}", "{1 / 0}"};
    struct dt_engine *engine = NULL;
    struct dt_values values;
    json_t *plan = json_object();
    struct dt_export_request request = {.plan = plan};
    (void)state;
    assert_int_equal(dt_engine_read(whole, "mine", &engine), DT_OK);
    assert_int_equal(dt_values_read(engine, &request, &values), DT_OK);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct dt_text out = {0};
        assert_int_equal(dt_words_fill(engine, words[i], &values, &out), DT_EUSAGE);
        dt_text_fini(&out);
    }
    json_decref(plan);
    dt_engine_free(engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_every_form_of_row),
        cmocka_unit_test(prints_flags_and_a_file),
        cmocka_unit_test(shared_rows_complete_a_file),
        cmocka_unit_test(settles_choices),
        cmocka_unit_test(refuses_values_the_engine_forbids),
        cmocka_unit_test(refuses_a_faulty_file),
        cmocka_unit_test(refuses_a_faulty_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
