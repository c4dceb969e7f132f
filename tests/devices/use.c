/* SPDX-License-Identifier: MIT */
/* Use of a GPU before a trial, on fake GPUs with the fake NVML and its files h200.nvml and old.nvml. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernels/cuda/devices.h"

#include <stdlib.h>
#include <string.h>

static void use_nvml(const char *library, const char *settings)
{
    setenv("DITTUNE_NVML", library, 1);
    setenv("DITTUNE_FAKE_CUDA", settings, 1);
}

static void test_others(void **state)
{
    static const int64_t own[] = {1, 4321};
    struct dt_cuda_use use;
    (void)state;
    use_nvml(LIBRARY, SETTINGS "h200.nvml");
    assert_int_equal(dt_cuda_device_use(0, NULL, 0, &use), DT_OK);
    assert_int_equal(use.memory_bytes, 150754820096LL);
    assert_int_equal(use.free_bytes, 140000000000LL);
    assert_int_equal(use.count, 2);
    assert_int_equal(use.others[0].pid, 4321);
    assert_int_equal(use.others[0].bytes, 8000000000LL);
    assert_int_equal(use.others[1].pid, 99);
    assert_int_equal(dt_cuda_device_use(0, own, 2, &use), DT_OK);
    assert_int_equal(use.count, 1);
    assert_int_equal(use.others[0].pid, 99);
}

static void test_unknown(void **state)
{
    struct dt_cuda_use use;
    (void)state;
    use_nvml(LIBRARY, SETTINGS "h200.nvml");
    assert_int_equal(dt_cuda_device_use(1, NULL, 0, &use), DT_OK); /* MIG: nobody may know */
    assert_int_equal(use.count, DT_NVML_UNKNOWN);
    assert_int_equal(use.free_bytes, 140000000000LL);
    assert_int_equal(dt_cuda_device_use(2, NULL, 0, &use), DT_EUNSUP);
    assert_string_equal(dt_message(), "CUDA knows no device 2");
    use_nvml(LIBRARY, SETTINGS "broken.nvml");
    assert_int_equal(dt_cuda_device_use(0, NULL, 0, &use), DT_EUNSUP);
}

/* More than there is room for: that there are some is what counts. */
static void test_many(void **state)
{
    struct dt_cuda_use use;
    (void)state;
    use_nvml(LIBRARY_OLD, SETTINGS "old.nvml");
    assert_int_equal(dt_cuda_device_use(0, NULL, 0, &use), DT_OK);
    assert_int_equal(use.count, DT_NVML_PROCESSES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_unknown), cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
