/* SPDX-License-Identifier: MIT */
/* Verification by scripted workers: the worst image counts, wherever it stands; what is not finite
 * is wrong; another shape is not compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/tuner/script.h"
#include "tuner/measure/rig.h"

#include <math.h>
#include <string.h>

#define PREPARE(tile, handle, verify)                                                              \
    "> {\"op\":\"prepare\",\"plan\":{\"tile\":" tile                                               \
    "}}\n< {\"op\":\"prepared\",\"handle\":" handle                                                \
    ",\"peak_bytes\":[7],\"resident_bytes\":7,\"cold_ns\":[9],\"verify\":" verify "}\n"
/* three images of norm 2, two projections each */
#define REFERENCE                                                                                  \
    PREPARE("1", "1", "{\"norm\":[2,2,2],\"projections\":[[1,-1],[3,0],[0,4]]}")                   \
    "> {\"op\":\"release\",\"handle\":1}\n< {\"op\":\"released\",\"handle\":1}\n"

static char path[256];

static struct dt_resident verify(const char *answer)
{
    char text[4096];
    struct dt_point point;
    struct dt_rig rig;
    struct dt_resident resident;
    snprintf(text, sizeof text, SCRIPT_START REFERENCE "%s", answer);
    struct dt_target *target = script_target(path, text);
    assert_int_equal(dt_target_plan(target, "tile=2", &point), DT_OK);
    dt_rig_init(&rig, target, 1);
    assert_int_equal(dt_rig_prepare(&rig, &point, replay_deadline(), &resident), DT_OK);
    dt_rig_fini(&rig, DT_NS_PER_SECOND / 10);
    dt_target_free(target);
    return resident;
}

/* Off by (0.02, 0) in one image: sqrt(0.0004 / 2) / 2 = 0.00707. */
static void test_the_worst_image_counts(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        PREPARE("2", "2", "{\"norm\":[2,2,2],\"projections\":[[1.02,-1],[3,0],[0,4]]}"),
        PREPARE("2", "2", "{\"norm\":[2,2,2],\"projections\":[[1,-1],[3.02,0],[0,4]]}"),
        PREPARE("2", "2", "{\"norm\":[2,2,2],\"projections\":[[1,-1],[3,0],[0.02,4]]}")};
    for (int i = 0; i < 3; i++) {
        struct dt_resident resident = verify(wrong[i]);
        assert_int_equal(resident.failure.outcome, DT_TRIAL_WRONG);
        assert_true(fabs(resident.facts.verified_error - 0.02 / sqrt(8)) < 1e-9);
    }
}

static void test_rounding_is_accepted(void **state)
{
    (void)state;
    struct dt_resident resident = verify(
        PREPARE("2", "2", "{\"norm\":[2,2,2],\"projections\":[[1.00002,-1],[3,0],[0,4.00002]]}"));
    assert_int_equal(resident.failure.outcome, DT_TRIAL_OK);
    assert_true(fabs(resident.facts.verified_error - 0.00002 / sqrt(8)) < 1e-9);
}

static void test_what_is_not_finite_is_wrong(void **state)
{
    (void)state;
    assert_int_equal(
        verify(PREPARE("2", "2", "{\"norm\":[2,2,2],\"projections\":[[1,-1],[3,0],[0,null]]}"))
            .failure.outcome,
        DT_TRIAL_WRONG);
    assert_int_equal(
        verify(PREPARE("2", "2", "{\"norm\":[2,null,2],\"projections\":[[1,-1],[3,0],[0,4]]}"))
            .failure.outcome,
        DT_TRIAL_WRONG);
}

static void test_another_shape_is_not_compared(void **state)
{
    (void)state;
    struct dt_resident resident =
        verify(PREPARE("2", "2", "{\"norm\":[2],\"projections\":[[5,5]]}"));
    assert_int_equal(resident.failure.outcome, DT_TRIAL_OK);
    assert_true(isnan(resident.facts.verified_error));
}

/* Each rank's output is compared, and the one that is off is named. */
static void test_every_rank_counts(void **state)
{
    (void)state;
    static const char right[] = "{\"norm\":[2,2,2],\"projections\":[[1,-1],[3,0],[0,4]]}";
    static const char wrong[] = "{\"norm\":[2,2,2],\"projections\":[[1,-1],[3,0],[0,4.02]]}";
    char answer[2048];
    for (int rank = -1; rank < 3; rank++) {
        snprintf(answer, sizeof answer,
                 "> {\"op\":\"prepare\",\"plan\":{\"tile\":2}}\n"
                 "< {\"op\":\"prepared\",\"handle\":2,\"peak_bytes\":[7,7,7],\"resident_bytes\":7,"
                 "\"cold_ns\":[9,9,9],\"verify\":[%s,%s,%s]}\n",
                 rank == 0 ? wrong : right, rank == 1 ? wrong : right, rank == 2 ? wrong : right);
        struct dt_resident resident = verify(answer);
        assert_int_equal(resident.failure.outcome, rank < 0 ? DT_TRIAL_OK : DT_TRIAL_WRONG);
        if (rank < 0)
            continue;
        char named[16];
        snprintf(named, sizeof named, "of rank %d ", rank);
        assert_non_null(strstr(resident.failure.cause, named));
        assert_true(fabs(resident.facts.verified_error - 0.02 / sqrt(8)) < 1e-9);
    }
}

static void test_an_output_of_each_rank_or_of_one(void **state)
{
    (void)state;
    struct dt_resident resident = verify(PREPARE("2", "2",
                                                 "[{\"norm\":[2],\"projections\":[[1,-1]]},"
                                                 "{\"norm\":[2],\"projections\":[[1,-1]]}]"));
    assert_int_equal(resident.failure.outcome, DT_TRIAL_PROTOCOL);
    resident = verify(PREPARE("2", "2", "[{\"norm\":[2,2,2],\"projections\":[[1,-1],[3,0]]}]"));
    assert_int_equal(resident.failure.outcome, DT_TRIAL_PROTOCOL);
}

/* The whole image after all steps is compared and never refused; beside it stands what a second
 * image of the reference is off by. */
static void test_a_whole_image_is_only_told(void **state)
{
    (void)state;
    static const char *const images[] = {"[{\"norm\":[2],\"projections\":[[1.6,-1]]}]",
                                         "[{\"norm\":[2],\"projections\":[[1,-1,0]]}]", "null"};
    for (int i = 0; i < 3; i++) {
        char text[4096];
        struct dt_point point;
        struct dt_rig rig;
        struct dt_resident resident;
        snprintf(text, sizeof text,
                 SCRIPT_START PREPARE(
                     "1", "1",
                     "{\"norm\":[2],\"projections\":[[1,-1]]},\"image\":[{\"norm\":[2],"
                     "\"projections\":[[1,-1]]},{\"norm\":[2],\"projections\":[[1.02,-1]]}"
                     "]") "> {\"op\":\"release\",\"handle\":1}\n"
                          "< {\"op\":\"released\",\"handle\":1}\n" PREPARE(
                              "2", "2", "{\"norm\":[2],\"projections\":[[1,-1]]},\"image\":%s"),
                 images[i]);
        struct dt_target *target = script_target(path, text);
        assert_int_equal(dt_target_plan(target, "tile=2", &point), DT_OK);
        dt_rig_init(&rig, target, 1);
        assert_int_equal(dt_rig_prepare(&rig, &point, replay_deadline(), &resident), DT_OK);
        assert_int_equal(resident.failure.outcome, DT_TRIAL_OK);
        assert_true(resident.facts.verified_error == 0);
        if (i == 0) {
            assert_true(fabs(resident.facts.image_error - 0.6 / sqrt(8)) < 1e-9);
            assert_true(fabs(resident.facts.repeat_error - 0.02 / sqrt(8)) < 1e-9);
        } else {
            assert_true(isnan(resident.facts.image_error) && isnan(resident.facts.repeat_error));
        }
        dt_rig_fini(&rig, DT_NS_PER_SECOND / 10);
        dt_target_free(target);
    }
}

/* A plan that is right in its first two steps only is found by the output of a later one. */
static void test_a_later_step_is_verified(void **state)
{
    (void)state;
    static const char *const later[] = {"[1,-1],[3,0],[0,4]", "[1,-1],[3,0],[0,9]",
                                        "[1,-1],[3,0],[0,null]"};
    for (int i = 0; i < 3; i++) {
        char text[4096];
        struct dt_point point;
        struct dt_rig rig;
        struct dt_resident resident;
        struct dt_result result;
        snprintf(text, sizeof text,
                 SCRIPT_START REFERENCE
                 "> {\"op\":\"prepare\",\"plan\":{\"tile\":2}}\n"
                 "< {\"op\":\"prepared\",\"handle\":2,\"peak_bytes\":[7],\"cold_ns\":[9],"
                 "\"verify\":{\"norm\":[2,2,2],\"projections\":[[1,-1],[3,0],[0,4]]},"
                 "\"verifies_runs\":true}\n"
                 "> {\"op\":\"run\",\"n\":1,\"verify\":{\"projections\":16,\"seed\":1}}\n"
                 "< {\"op\":\"samples\",\"ns\":[[9]],\"verify\":{\"norm\":[2,2,2],"
                 "\"projections\":[%s]}}\n",
                 later[i]);
        struct dt_target *target = script_target(path, text);
        assert_int_equal(dt_target_plan(target, "tile=2", &point), DT_OK);
        dt_rig_init(&rig, target, 1);
        dt_result_init(&result, target, &point);
        assert_int_equal(dt_rig_prepare(&rig, &point, replay_deadline(), &resident), DT_OK);
        assert_int_equal(resident.failure.outcome, DT_TRIAL_OK);
        assert_int_equal(dt_rig_verify_again(&rig, &resident, replay_deadline(), &result), DT_OK);
        assert_int_equal(result.outcome, i == 0 ? DT_TRIAL_OK : DT_TRIAL_WRONG);
        if (i > 0)
            assert_non_null(strstr(result.cause, " after 3 steps "));
        if (i == 1)
            assert_true(fabs(result.facts.verified_error - 5 / sqrt(8)) < 1e-9);
        dt_result_fini(&result);
        dt_rig_fini(&rig, DT_NS_PER_SECOND / 10);
        dt_target_free(target);
    }
}

/* Releasing a plan frees the report of its memory, even if it was never described. */
static void test_nothing_is_kept_of_what_is_released(void **state)
{
    (void)state;
    static const char text[] = SCRIPT_START REFERENCE
        "> {\"op\":\"prepare\",\"plan\":{\"tile\":2}}\n"
        "< {\"op\":\"prepared\",\"handle\":2,\"peak_bytes\":[7],\"cold_ns\":[9],"
        "\"taken_bytes\":[5]}\n"
        "> {\"op\":\"release\",\"handle\":2}\n"
        "< {\"op\":\"released\",\"handle\":2}\n";
    struct dt_point point;
    struct dt_rig rig;
    struct dt_resident resident;
    struct dt_target *target = script_target(path, text);
    assert_int_equal(dt_target_plan(target, "tile=2", &point), DT_OK);
    dt_rig_init(&rig, target, 1);
    assert_int_equal(dt_rig_prepare(&rig, &point, replay_deadline(), &resident), DT_OK);
    assert_non_null(resident.prepared.memory.taken.at);
    assert_int_equal(resident.prepared.memory.taken.at[0], 5);
    dt_rig_release(
        &rig, &resident); /* not lost: the leak check of the build with sanitizers would see it */
    assert_null(resident.prepared.memory.taken.at);
    dt_rig_fini(&rig, DT_NS_PER_SECOND / 10);
    dt_target_free(target);
}

int main(void)
{
    const char *script = getenv("DITTUNE_REPLAY");
    if (script != NULL)
        _exit(replay(script)); /* no leak check of what was never meant to end */
    signal(SIGPIPE, SIG_IGN);
    snprintf(path, sizeof path, "%s/tests/test_measure_rig.script", DT_BINARY_DIR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_worst_image_counts),
        cmocka_unit_test(test_rounding_is_accepted),
        cmocka_unit_test(test_what_is_not_finite_is_wrong),
        cmocka_unit_test(test_another_shape_is_not_compared),
        cmocka_unit_test(test_every_rank_counts),
        cmocka_unit_test(test_an_output_of_each_rank_or_of_one),
        cmocka_unit_test(test_a_whole_image_is_only_told),
        cmocka_unit_test(test_a_later_step_is_verified),
        cmocka_unit_test(test_nothing_is_kept_of_what_is_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
