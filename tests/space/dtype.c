/* SPDX-License-Identifier: MIT */
/* A data type that the machine does not run makes the space empty, and the sentence says why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "model/family.h"
#include "space/dit/dit.h"

#include <string.h>

static struct dt_space *make(bool no_dtype)
{
    const struct dt_workload workload = {.network = {.family = &dt_family_dit,
                                                     .hidden = 32,
                                                     .heads = 4,
                                                     .depth = 1,
                                                     .patch = 2,
                                                     .in_channels = 4,
                                                     .latent_size = 8,
                                                     .own = {10},
                                                     .mlp_ratio = 4},
                                         .height = 8,
                                         .width = 8,
                                         .dtype = DT_BFLOAT16,
                                         .sampler_steps = 50};
    const int batch = 1;
    const struct dt_limits limits = {.cores = 2,
                                     .devices = 2,
                                     .no_dtype = no_dtype,
                                     .memory_bytes = INT64_C(1) << 32,
                                     .batches = &batch,
                                     .batch_count = 1};
    struct dt_space *space = NULL;
    assert_int_equal(dt_dit_space(&workload, &limits, &space), DT_OK);
    return space;
}

static void an_unsupported_dtype_breaks_a_rule(void **state)
{
    (void)state;
    struct dt_space *space = make(false), *none = make(true);
    struct dt_point point;
    int64_t values[DT_AXES_MAX];
    assert_true(dt_space_count(space) > 0);
    assert_int_equal(dt_space_count(none), 0);
    assert_int_equal(dt_space_parse(none, "", values), DT_OK);
    assert_int_equal(dt_space_locate(none, values, &point), DT_EINFEASIBLE);
    assert_non_null(strstr(dt_message(), "bfloat16 needs a processor with AVX-512 BF16"));
    dt_space_free(space);
    dt_space_free(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(an_unsupported_dtype_breaks_a_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
