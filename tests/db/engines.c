/* SPDX-License-Identifier: MIT */
/* Requirements of every file in db/engines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/engines/engines_int.h"
#include "model/plan.h"
#include "tests/lib/dose.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

#define EACH_FILE(file)                                                                            \
    for (const struct dt_engine_file *file = dt_engine_files;                                      \
         file < dt_engine_files + dt_engine_file_count; file++)

static struct dt_engine *read_file(const struct dt_engine_file *file)
{
    struct dt_engine *engine = NULL;
    if (dt_engine_read((const char *)file->text, file->file, &engine) != DT_OK)
        fail_msg("%s: %s", file->file, dt_message());
    return engine;
}

/* Every file of the folder is compiled in, under its engine's name and version. */
static void every_file_is_compiled_in(void **state)
{
    glob_t found;
    (void)state;
    assert_int_equal(glob(DT_SOURCE_DIR "/db/engines/*.json", 0, NULL, &found), 0);
    assert_int_equal((int)found.gl_pathc, dt_engine_file_count);
    globfree(&found);
    EACH_FILE(file)
    {
        char name[128];
        const struct dt_engine_file *same = NULL;
        struct dt_engine *engine = read_file(file);
        snprintf(name, sizeof name, "%s-%s", engine->name, engine->version);
        assert_string_equal(name, file->file);
        snprintf(name, sizeof name, "%s:%s", engine->name, engine->version);
        assert_int_equal(dt_engine_find(name, &same), DT_OK);
        assert_ptr_equal(same, file);
        assert_int_equal(dt_engine_find(engine->name, &same), DT_OK);
        dt_engine_free(engine);
    }
}

/* Numbers between dots, the first three. */
static long rank_of(const char *version)
{
    int part[3] = {0};
    sscanf(version, "%d.%d.%d", &part[0], &part[1], &part[2]);
    return (part[0] * 1000L + part[1]) * 1000 + part[2];
}

/* A name alone is its newest version. */
static void a_bare_name_selects_the_newest_version(void **state)
{
    int older = 0;
    (void)state;
    EACH_FILE(file)
    {
        const struct dt_engine_file *found = NULL;
        struct dt_engine *engine = read_file(file);
        assert_int_equal(dt_engine_find(engine->name, &found), DT_OK);
        struct dt_engine *newest = read_file(found);
        assert_string_equal(newest->name, engine->name);
        if (strchr(engine->version, '.') != NULL)
            assert_true(rank_of(newest->version) >= rank_of(engine->version));
        older += found != file;
        dt_engine_free(newest);
        dt_engine_free(engine);
    }
    assert_true(older > 0);
}

static void compile(const struct dt_engine *engine, const char *text, struct dt_names *used)
{
    struct dt_expr *expr = NULL;
    if (dt_engine_compile(engine, text, &expr) != DT_OK)
        fail_msg("%s %s: %s", engine->name, engine->version, dt_message());
    for (int i = 0; i < 2; i++)
        used->bits[i] |= dt_expr_names(expr).bits[i];
    dt_expr_free(expr);
}

/* The expressions between braces of a word. */
static void compile_word(const struct dt_engine *engine, const char *word, struct dt_names *used)
{
    char inside[512];
    int skip;
    for (const char *at = word; (at = strchr(at, '{')) != NULL; at += skip) {
        skip = 1;
        if (at[1] == '{') {
            skip = 2;
        } else if (sscanf(at, "{%511[^}]}", inside) == 1) {
            bool choice = false;
            for (int i = 0; i < engine->choice_count; i++) {
                int name = engine->choices[i].name;
                if (strcmp(engine->names[name], inside) != 0)
                    continue;
                choice = true;
                used->bits[name / 64] |= UINT64_C(1) << (name % 64);
            }
            if (!choice && strcmp(inside, "program") != 0 && strcmp(inside, "checkpoint") != 0 &&
                strcmp(inside, "device_list") != 0)
                compile(engine, inside + (inside[0] == '?'), used);
        } else {
            fail_msg("%s %s: '%s' has an empty or open brace", engine->name, engine->version, word);
        }
    }
}

/* Every string of the rows, wherever it stands; and each row says where it was read. */
static void compile_rows(const struct dt_engine *engine, const char *list, struct dt_names *used)
{
    const json_t *row, *sources = json_object_get(engine->root, "sources");
    size_t i, k;
    json_array_foreach(json_object_get(engine->root, list), i, row)
    {
        json_t *word;
        const char *when = json_string_value(json_object_get(row, "when"));
        const char *source = json_string_value(json_object_get(row, "source"));
        if (source == NULL || json_object_get(sources, source) == NULL)
            fail_msg("%s %s: row %zu of %s names no source of the file", engine->name,
                     engine->version, i, list);
        if (when != NULL)
            compile(engine, when, used);
        json_array_foreach(json_object_get(row, "words"), k, word)
            compile_word(engine, json_string_value(word), used);
        if (json_is_string(json_object_get(row, "note")))
            compile_word(engine, json_string_value(json_object_get(row, "note")), used);
        if (json_is_string(json_object_get(row, "value")))
            compile_word(engine, json_string_value(json_object_get(row, "value")), used);
        if (json_object_get(row, "rule") != NULL)
            compile(engine, json_string_value(json_object_get(row, "rule")), used);
    }
}

/* Every expression compiles; every parameter of the file is used or listed. */
static void every_parameter_is_used_or_listed_as_unexpressed(void **state)
{
    (void)state;
    EACH_FILE(file)
    {
        static const char *const lists[] = {"words", "environment", "kwargs", "yaml",
                                            "rules", "notes",       NULL};
        struct dt_engine *engine = read_file(file);
        const json_t *cannot = json_object_get(engine->root, "cannot");
        struct dt_names used = {{0}};
        for (int i = 0; lists[i] != NULL; i++)
            compile_rows(engine, lists[i], &used);
        compile(engine, json_string_value(json_object_get(engine->root, "processes")), &used);
        compile(engine, json_string_value(json_object_get(engine->root, "starts")), &used);
        for (int i = engine->first; i < engine->first + engine->parameters; i++)
            if ((used.bits[i / 64] >> (i % 64) & 1) == 0 &&
                !json_object_get(cannot, engine->names[i]))
                fail_msg("%s: '%s' is never used", file->file, engine->names[i]);
        const char *name;
        json_t *row;
        json_object_foreach((json_t *)cannot, name,
                            row) if (!json_is_string(json_object_get(row, "why")))
            fail_msg("%s: '%s' does not say why", file->file, name);
        dt_engine_free(engine);
    }
}

static const char *const degree_names[] = {"replicas", "cfg", "ulysses", "ring", "tensor", "pipe"};

static json_t *make_plan(const int degrees[6])
{
    json_t *plan = json_object();
    int ranks = 1;
    for (int i = 0; i < 6; i++) {
        ranks *= i > 0 ? degrees[i] : 1;
        if (i < 4 || degrees[i] > 1)
            json_object_set_new(plan, degree_names[i], json_integer(degrees[i]));
    }
    json_object_set_new(plan, "ranks", json_integer(ranks));
    json_object_set_new(plan, "batch", json_integer(degrees[0]));
    return plan;
}

static json_t *make_facts(void)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "heads", 24,
                     "depth", 24, "hidden", 1536, "tokens", 144 * 144, "latent_height", 288,
                     "latent_width", 288, "height", 2304, "width", 2304, "guidance", 1, "bfloat16",
                     1, "devices", 64);
}

/* Every degree above 1 is a parameter of the engine's file. */
static bool knows_degrees(const char *name, const int degrees[6])
{
    const struct dt_engine_file *file = NULL;
    bool knows = true;
    assert_int_equal(dt_engine_find(name, &file), DT_OK);
    struct dt_engine *engine = read_file(file);
    for (int i = 0; i < 6; i++)
        knows = knows &&
                (degrees[i] == 1 || json_object_get(json_object_get(engine->root, "parameters"),
                                                    degree_names[i]) != NULL);
    dt_engine_free(engine);
    return knows;
}

/* A plan is refused by a rule, or its process counts multiply to the ranks
 * and are in the command. */
static int count_processes(const char *engine, const int degrees[6])
{
    json_t *plan = make_plan(degrees), *facts = make_facts();
    struct dt_export out;
    struct dt_export_request request = {
        .engine = engine, .form = DT_FORM_JSON, .plan = plan, .constants = facts};
    int product = degrees[0] * degrees[1] * degrees[2] * degrees[3] * degrees[4] * degrees[5];
    dt_status status = dt_export(&request, &out);
    if (status == DT_OK) {
        char starts[64];
        assert_int_equal(out.processes * out.replicas, product);
        assert_int_equal(json_array_size(json_object_get(out.json, "lines")), out.replicas);
        snprintf(starts, sizeof starts, "nproc_per_node=%d\"", (int)out.processes);
        if (strstr(dt_text_at(&out.text), "nproc_per_node=") != NULL)
            assert_non_null(strstr(dt_text_at(&out.text), starts));
        dt_export_fini(&out);
    } else if (status == DT_EINFEASIBLE && strstr(dt_message(), "its degrees make") != NULL) {
        assert_false(
            knows_degrees(engine, degrees)); /* only what the file does not know may be missing */
    } else if (status != DT_EINFEASIBLE) {
        fail_msg("%s: %s", engine, dt_message());
    }
    json_decref(plan);
    json_decref(facts);
    return status == DT_OK;
}

/* Every plan of a small space; in the thin dose one in five, which has every
 * value of each degree. */
static void process_counts_multiply_to_the_ranks(void **state)
{
    const int step = dose_thin() ? 5 : 1;
    (void)state;
    EACH_FILE(file)
    {
        struct dt_engine *engine = read_file(file);
        char name[128];
        int taken = 0;
        snprintf(name, sizeof name, "%s:%s", engine->name, engine->version);
        for (int i = 0; i < 2 * 2 * 3 * 3 * 2 * 2; i += step) {
            const int degrees[6] = {1 + i % 2,      1 + i / 2 % 2,  1 + i / 4 % 3,
                                    1 + i / 12 % 3, 1 + i / 36 % 2, 1 + i / 72 % 2};
            taken += count_processes(name, degrees);
        }
        assert_true(taken >= (step == 1 ? 3 : 1));
        dt_engine_free(engine);
    }
}

/* No rule is empty: drawn at random, each one refuses some plan that its neighbours' rules let
 * through, and takes another. */
static void every_rule_refuses_some_plan(void **state)
{
    static const int64_t capabilities[] = {-1, 89, 90, 100};
    (void)state;
    EACH_FILE(file)
    {
        struct dt_engine *engine = read_file(file);
        for (int r = 0; r < engine->rule_count; r++) {
            int broken = 0, kept = 0;
            uint64_t word = 1;
            for (int n = 0; n < 200000 && (broken == 0 || kept == 0); n++) {
                int64_t at[DT_ENGINE_NAMES], holds = 0;
                for (int i = 0; i < engine->count; i++) {
                    word = word * 6364136223846793005U + 1442695040888963407U;
                    bool degree = i >= engine->first && i < engine->first + engine->parameters;
                    at[i] = (int64_t)(word >> 60) % (n % 2 == 0 ? 2 : 13) + degree;
                    if (strcmp(engine->names[i], "compute") == 0)
                        at[i] = capabilities[(word >> 60) % 4];
                }
                bool decided = dt_expr_eval(engine->rules[r].expr, at, &holds) == DT_OK;
                broken += !decided || holds == 0;
                kept += decided && holds != 0;
            }
            if (broken == 0 || kept == 0)
                fail_msg("%s: '%s' %s", file->file, dt_expr_text(engine->rules[r].expr),
                         broken == 0 ? "refuses nothing" : "takes nothing");
        }
        dt_engine_free(engine);
    }
}

static void refusals_name_the_rule(void **state)
{
    (void)state;
    struct dt_export out;
    json_t *facts = make_facts();
    json_t *plan = json_pack("{s:i, s:i, s:i}", "ranks", 5, "ulysses", 5, "tile_q", 64);
    struct dt_export_request request = {.engine = "xdit:0.4.5", .plan = plan, .constants = facts};
    assert_int_equal(dt_export(&request, &out), DT_EINFEASIBLE);
    assert_string_equal(
        dt_message(),
        "xdit 0.4.5 does not take this plan: ulysses must divide the number of heads "
        "(heads=24 % (ulysses=5) == 0); ulysses x ring must divide the rows of the latent "
        "(latent_height=288 % ((ulysses=5) * (ring=1)) == 0); ulysses=4 ranks=4 or "
        "ulysses=6 ranks=6 would do");
    request.engine = "xdti";
    assert_int_equal(dt_export(&request, &out), DT_EUSAGE);
    request.engine = "xdit:9";
    assert_int_equal(dt_export(&request, &out), DT_EUSAGE);
    request.engine = "xdit";
    json_object_set_new(plan, "ulysses", json_integer(3));
    assert_int_equal(dt_export(&request, &out), DT_EINFEASIBLE);
    json_object_set_new(plan, "ranks", json_integer(3));
    json_t *hard = json_pack("{s:s, s:s}", "engine", "built-in", "mode", "eager");
    request.hard = hard;
    assert_int_equal(dt_export(&request, &out), DT_OK);
    assert_false(out.measured);
    assert_non_null(
        strstr(json_string_value(json_array_get(out.notes, 0)), "not measured on xdit"));
    assert_string_equal(
        json_string_value(json_object_get(json_array_get(out.unexpressed, 0), "name")), "tile_q");
    dt_export_fini(&out);
    json_object_set_new(hard, "engine", json_string("xdit"));
    assert_int_equal(dt_export(&request, &out), DT_OK);
    assert_true(out.measured);
    dt_export_fini(&out);
    json_decref(hard);
    json_decref(plan);
    json_decref(facts);
}

/* A GPU's plan: what is off is not listed, what is on is, with our own reason. */
static void lists_only_gpu_settings_that_are_on(void **state)
{
    static const char *const listed[] = {"tile_q", "tile_kv", "overlap", "chunks",
                                         "stages", "warps",   "graph",   "exchange"};
    (void)state;
    EACH_FILE(file)
    {
        char name[128];
        struct dt_export out;
        struct dt_engine *engine = read_file(file);
        json_t *plan = json_object(), *facts = make_facts();
        for (int i = 0; i < dt_param_count; i++)
            if ((dt_params[i].on & DT_ON_GPU) != 0)
                json_object_set_new(plan, dt_params[i].name,
                                    dt_params[i].labels != NULL
                                        ? json_string(dt_params[i].labels[dt_params[i].fallback])
                                        : json_integer(dt_params[i].fallback));
        const int values[] = {2, 2, 1, 1, 1, 2, 8};
        const char *const names[] = {"ranks",   "ulysses", "stages", "graph",
                                     "overlap", "chunks",  "warps"};
        for (int i = 0; i < 7; i++)
            json_object_set_new(plan, names[i], json_integer(values[i]));
        json_object_set_new(plan, "exchange", json_string("direct"));
        snprintf(name, sizeof name, "%s:%s", engine->name, engine->version);
        struct dt_export_request request = {.engine = name, .plan = plan, .constants = facts};
        assert_int_equal(dt_export(&request, &out), DT_OK);
        assert_int_equal(json_array_size(out.unexpressed), 8);
        for (int i = 0; i < 8; i++) {
            bool found = false;
            for (size_t k = 0; k < json_array_size(out.unexpressed); k++)
                found = found || strcmp(json_string_value(json_object_get(
                                            json_array_get(out.unexpressed, k), "name")),
                                        listed[i]) == 0;
            assert_true(found);
        }
        dt_export_fini(&out);
        dt_engine_free(engine);
        json_decref(plan);
        json_decref(facts);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_is_compiled_in),
        cmocka_unit_test(a_bare_name_selects_the_newest_version),
        cmocka_unit_test(every_parameter_is_used_or_listed_as_unexpressed),
        cmocka_unit_test(process_counts_multiply_to_the_ranks),
        cmocka_unit_test(every_rule_refuses_some_plan),
        cmocka_unit_test(refusals_name_the_rule),
        cmocka_unit_test(lists_only_gpu_settings_that_are_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
