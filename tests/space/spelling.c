/* SPDX-License-Identifier: MIT */
/* A plan that is printed is read back as itself: every plan of spaces of cores, of GPUs and of
 * workers, by whoever has the same space, by `run` and `explain`, whose space is wider, and from a
 * journal, whose space has the axes alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/family.h"
#include "space/dit/dit.h"
#include "space/json/json.h"
#include "tests/lib/dose.h"

#include <string.h>

enum { DRAWN = 4000, LISTED_MOST = 60000 };

static void read_back(const struct dt_space *space, const char *text, const struct dt_point *point)
{
    int64_t values[DT_AXES_MAX];
    struct dt_point found;
    if (dt_space_parse(space, text, values) != DT_OK ||
        dt_space_locate(space, values, &found) != DT_OK)
        fail_msg("'%s': %s", text, dt_message());
    if (!dt_point_equal(space, point, &found)) {
        struct dt_text whole = {0};
        dt_point_text(space, point, &whole);
        fail_msg("'%s' is not read back as %s", text, dt_text_at(&whole));
    }
}

/* Both spellings, and that a space of the axes alone has the same. */
static void spelt(const struct dt_space *space, const struct dt_space *axes,
                  const struct dt_point *point)
{
    struct dt_text text = {0}, again = {0};
    dt_point_text(space, point, &text);
    read_back(space, dt_text_at(&text), point);
    dt_text_clear(&text);
    dt_point_short(space, point, &text);
    assert_true(text.size > 0);
    read_back(space, dt_text_at(&text), point);
    dt_point_short(axes, point, &again);
    assert_string_equal(dt_text_at(&again), dt_text_at(&text));
    json_t *json = dt_point_json(space, point);
    struct dt_point found;
    if (dt_point_read(axes, json, &found) != DT_OK || !dt_point_equal(space, point, &found) ||
        dt_point_from_json(space, json, &found) != DT_OK || !dt_point_equal(space, point, &found))
        fail_msg("the JSON of '%s' is not read back: %s", dt_text_at(&text), dt_message());
    json_decref(json);
    dt_text_fini(&text);
    dt_text_fini(&again);
}

static struct dt_space *axes_of(const struct dt_space *space)
{
    json_t *root = json_pack("{s:o}", "parameters", dt_space_axes_json(space));
    struct dt_space *axes = NULL;
    assert_int_equal(dt_space_axes_from_json(root, "the axes", &axes), DT_OK);
    json_decref(root);
    return axes;
}

/* All plans, or so many that are drawn; of the thin dose one in seven, which meets the
 * values of every axis. */
static void every_plan(struct dt_space *space,
                       void (*also)(const struct dt_space *space, const struct dt_point *point))
{
    struct dt_space *axes = axes_of(space);
    struct dt_rng rng = dt_rng_at(1, "spelling");
    bool all = dt_space_listed(space) && dt_space_count(space) <= LISTED_MOST;
    int64_t n = all ? dt_space_count(space) : DRAWN;
    assert_true(n > 0);
    const int step = dose_thin() && n > 100 ? 7 : 1;
    for (int64_t k = 0; k < n; k += step) {
        struct dt_point point;
        if (all)
            dt_space_at(space, k, &point);
        else
            dt_space_draw(space, &rng, &point);
        spelt(space, axes, &point);
        if (also != NULL)
            also(space, &point);
    }
    dt_space_free(axes);
    dt_space_free(space);
}

static struct dt_workload workload_of(int heads, int head, enum dt_dtype dtype)
{
    return (struct dt_workload){.network = {.family = &dt_family_dit,
                                            .hidden = heads * head,
                                            .heads = heads,
                                            .depth = 2,
                                            .patch = 2,
                                            .in_channels = 4,
                                            .latent_size = 16,
                                            .own = {10},
                                            .mlp_ratio = 4},
                                .height = 16,
                                .width = 16,
                                .guidance = true,
                                .dtype = dtype,
                                .sampler_steps = 50};
}

static const struct dt_workload *asked; /* by a_wider_space */

/* `run --plan` makes its space from the plan's own ranks and batch, on a machine of two cores. */
static void a_wider_space(const struct dt_space *space, const struct dt_point *point)
{
    struct dt_plan plan = dt_dit_plan(space, point);
    const int batch = plan.batch;
    const struct dt_limits limits = {.cores = 8,
                                     .devices = 2 * plan.ranks,
                                     .oversubscribe = true,
                                     .memory_bytes = INT64_C(1) << 40,
                                     .batches = &batch,
                                     .batch_count = 1};
    struct dt_space *wide = NULL;
    struct dt_text text = {0};
    struct dt_point found;
    int64_t values[DT_AXES_MAX];
    assert_int_equal(dt_dit_rules(asked, &limits, &wide), DT_OK);
    dt_point_short(space, point, &text);
    if (dt_space_parse(wide, dt_text_at(&text), values) != DT_OK ||
        dt_space_locate(wide, values, &found) != DT_OK)
        fail_msg("'%s': %s", dt_text_at(&text), dt_message());
    struct dt_plan read = dt_dit_plan(wide, &found);
    for (int i = 0; i < dt_param_count; i++)
        assert_int_equal(dt_plan_get(&read, i), dt_plan_get(&plan, i));
    dt_text_fini(&text);
    dt_space_free(wide);
}

static void short_texts_are_read_back_on_cores(void **state)
{
    static const int devices[] = {1, 2, 4, 8}, batches[] = {2, 6, 1};
    (void)state;
    for (int i = 0; i < 16; i++) {
        struct dt_workload workload = workload_of(6, 8, DT_FLOAT32);
        struct dt_limits limits = {.cores = i % 4 == 3 ? 4 : devices[i % 4],
                                   .devices = devices[i % 4],
                                   .oversubscribe = true,
                                   .memory_bytes = INT64_C(1) << 40,
                                   .batches = batches,
                                   .batch_count = i < 8 ? 2 : 3};
        struct dt_space *space = NULL;
        workload.guidance = i / 4 % 2 == 0;
        assert_int_equal(dt_dit_space(&workload, &limits, &space), DT_OK);
        asked = &workload;
        every_plan(space, i % 4 < 2 ? a_wider_space : NULL);
    }
}

static void short_texts_are_read_back_on_gpus(void **state)
{
    static const int one[] = {1}, several[] = {1, 2, 4};
    static const struct {
        int heads, head, gpus, nccl;
        enum dt_dtype dtype;
        bool cudnn, batches;
    } cases[] = {
        {6, 64, 1, 22809, DT_BFLOAT16, true, true},   {6, 64, 2, 22809, DT_BFLOAT16, true, false},
        {16, 72, 8, 22809, DT_BFLOAT16, true, true},  {24, 128, 4, 21600, DT_BFLOAT16, false, true},
        {16, 128, 8, 22809, DT_FLOAT32, false, true}, {12, 64, 2, 22809, DT_TF32, true, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct dt_workload workload =
            workload_of(cases[i].heads, cases[i].head, cases[i].dtype);
        const struct dt_gpus gpus = {.count = cases[i].gpus,
                                     .memory_bytes = INT64_C(80) << 30,
                                     .shared_bytes = 232448,
                                     .nccl = cases[i].nccl,
                                     .attention = {[DT_ATTENTION_CUDNN] = cases[i].cudnn},
                                     .capture = true,
                                     .bfloat16 = true};
        const struct dt_limits limits = {.gpus = &gpus,
                                         .devices = cases[i].gpus,
                                         .batches = cases[i].batches ? several : one,
                                         .batch_count = cases[i].batches ? 3 : 1};
        struct dt_space *space = NULL;
        if (dt_dit_space(&workload, &limits, &space) != DT_OK)
            fail_msg("%s", dt_message());
        every_plan(space, NULL);
    }
}

/* Spaces of workers: defaults that are not the first value, labels, and no ranks. */
static const char *const announced[] = {
    "{\"parameters\": [{\"name\": \"ranks\", \"values\": [1, 2, 4], \"role\": \"ranks\", "
    "\"default\": 2},"
    "{\"name\": \"threads\", \"values\": [1, 2]},"
    "{\"name\": \"images\", \"values\": [1, 2, 3], \"role\": \"batch\", \"default\": 3},"
    "{\"name\": \"tile\", \"values\": [16, 32, 64], \"default\": 32}], \"rules\": [\"ranks * "
    "threads <= 4\"]}",
    "{\"parameters\": [{\"name\": \"codec\", \"values\": [\"raw\", \"lz4\", \"zstd-9\"]},"
    "{\"name\": \"mode\", \"values\": [\"eager\", \"max-autotune\"], \"default\": "
    "\"max-autotune\"}]}",
    "{\"parameters\": {\"p\": [3, 1, 2]}}",
    "{\"parameters\": [{\"name\": \"mode\", \"values\": [\"fused\", \"plain\"]},"
    "{\"name\": \"tile\", \"values\": [8, 16], \"default\": 16, \"when\": \"mode == 'fused'\"},"
    "{\"name\": \"threads\", \"values\": [1, 2], \"when\": \"tile < 16\"},"
    "{\"name\": \"a\", \"values\": [1, 2, 3]}, {\"name\": \"b\", \"values\": [1, 2, 3]}],"
    "\"rules\": [{\"cases\": [{\"b\": 1, \"a\": 1}, {\"b\": 3, \"a\": 1}, {\"b\": 1, \"a\": "
    "3}]},"
    "\"tile + a <= 16\"]}",
};

static void short_texts_of_workers_are_read_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof announced / sizeof announced[0]; i++) {
        json_t *root = NULL;
        struct dt_space *space = NULL;
        assert_int_equal(dt_json_parse(announced[i], strlen(announced[i]), "the hello", &root),
                         DT_OK);
        if (dt_space_from_json(root, "the hello", &space) != DT_OK)
            fail_msg("%s", dt_message());
        json_decref(root);
        every_plan(space, NULL);
    }
}

/* The plans that reports printed so that they were read as others. */
static void texts_of_past_reports_are_read_back(void **state)
{
    static const struct {
        const char *plan, *spelt;
    } cases[] = {
        {"ranks=1 threads=2", "ranks=1 threads=2"},
        {"ranks=1 threads=1 tile_q=32", "ranks=1 threads=1 tile_q=32"},
        {"ranks=1 threads=1", "ranks=1 threads=1"},
        {"", "ranks=2 cfg=2 threads=1"},
    };
    static const int one[] = {1};
    const struct dt_workload workload = workload_of(6, 64, DT_FLOAT32);
    const struct dt_limits limits = {.cores = 2,
                                     .devices = 2,
                                     .memory_bytes = INT64_C(1) << 40,
                                     .batches = one,
                                     .batch_count = 1};
    struct dt_space *space = NULL;
    (void)state;
    assert_int_equal(dt_dit_space(&workload, &limits, &space), DT_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t values[DT_AXES_MAX];
        struct dt_point point;
        struct dt_text text = {0};
        assert_int_equal(dt_space_parse(space, cases[i].plan, values), DT_OK);
        assert_int_equal(dt_space_locate(space, values, &point), DT_OK);
        dt_point_short(space, &point, &text);
        assert_string_equal(dt_text_at(&text), cases[i].spelt);
        dt_text_fini(&text);
    }
    dt_space_free(space);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_texts_are_read_back_on_cores),
        cmocka_unit_test(short_texts_are_read_back_on_gpus),
        cmocka_unit_test(short_texts_of_workers_are_read_back),
        cmocka_unit_test(texts_of_past_reports_are_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
