/* SPDX-License-Identifier: MIT */
/* kernels/nvml.c reads the values of the files h200.nvml and old.nvml; values a driver lacks
 * are unknown, not wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernels/nvml.h"

#include <stdlib.h>
#include <string.h>

#define H200   SETTINGS "h200.nvml"
#define OLD    SETTINGS "old.nvml"
#define BROKEN SETTINGS "broken.nvml"

static struct dt_nvml *open_library(const char *name, const char *settings)
{
    struct dt_nvml *nvml = NULL;
    assert_int_equal(setenv("DITTUNE_NVML", name, 1), 0);
    assert_int_equal(setenv("DITTUNE_FAKE_CUDA", settings, 1), 0);
    assert_int_equal(dt_nvml_open(&nvml), DT_OK);
    return nvml;
}

static void reads_all_facts_of_a_new_driver(void **state)
{
    (void)state;
    struct dt_nvml *nvml = open_library(LIBRARY, H200);
    struct dt_nvml_device *first = NULL, *second = NULL;
    struct dt_nvml_facts facts;
    enum dt_nvml_link link;
    char version[80];
    dt_nvml_driver(nvml, version, sizeof version);
    assert_string_equal(version, "580.95.05");
    assert_int_equal(dt_nvml_find(nvml, "0000:18:00.0", &first), DT_OK);
    assert_int_equal(dt_nvml_find(nvml, "0000:19:00.0", &second), DT_OK);
    dt_nvml_read(nvml, first, &facts);
    assert_int_equal(facts.health.sm_mhz, 1755);
    assert_int_equal(facts.sm_mhz_max, 1980);
    assert_int_equal(facts.health.memory_mhz, 3201);
    assert_int_equal(facts.memory_mhz_max, 3202);
    assert_int_equal(facts.health.temperature_c, 61);
    assert_int_equal(facts.health.power_mw, 455000);
    assert_int_equal(facts.power_limit_mw, 600000);
    assert_int_equal(facts.power_limit_default_mw, 700000);
    assert_int_equal(facts.health.utilization, 37);
    assert_int_equal(facts.ecc, 1);
    assert_int_equal(facts.ecc_pending, 0);
    assert_int_equal(facts.mig, 0);
    assert_int_equal(facts.persistence, 1);
    assert_int_equal(facts.pcie.generation, 4);
    assert_int_equal(facts.pcie.generation_max, 5);
    assert_int_equal(facts.pcie.width, 8);
    assert_int_equal(facts.pcie.width_max, 16);
    assert_int_equal(facts.nvlinks, 9);
    assert_int_equal(facts.use.memory_bytes, 150754820096LL);
    assert_int_equal(facts.use.free_bytes, 140000000000LL);
    assert_int_equal(facts.health.reasons, 0x24);
    assert_int_equal(facts.application_mhz, DT_NVML_UNKNOWN); /* not supported */
    assert_int_equal(facts.use.count, 2);
    assert_int_equal(facts.use.processes[0].pid, 4321);
    assert_int_equal(facts.use.processes[0].bytes, 8000000000LL);
    assert_int_equal(facts.use.processes[1].pid, 99);
    assert_int_equal(facts.use.processes[1].bytes, DT_NVML_UNKNOWN);
    assert_true(dt_nvml_link(nvml, first, first, &link) && link == DT_NVML_SELF);
    assert_true(dt_nvml_link(nvml, first, second, &link) && link == DT_NVML_NVLINK);
    dt_nvml_close(nvml);
}

static void reads_a_gpu_in_mig_mode(void **state)
{
    (void)state;
    struct dt_nvml *nvml = open_library(LIBRARY, H200);
    struct dt_nvml_device *device = NULL;
    struct dt_nvml_facts facts;
    assert_int_equal(dt_nvml_find(nvml, "0000:19:00.0", &device), DT_OK);
    dt_nvml_read(nvml, device, &facts);
    assert_int_equal(facts.mig, 1);
    assert_int_equal(facts.health.utilization, DT_NVML_UNKNOWN);
    assert_int_equal(facts.use.count, DT_NVML_UNKNOWN);
    assert_int_equal(facts.health.sm_mhz, 1755);
    dt_nvml_close(nvml);
}

static void missing_functions_leave_facts_unknown(void **state)
{
    (void)state;
    struct dt_nvml *nvml = open_library(LIBRARY_OLD, OLD);
    struct dt_nvml_device *first = NULL, *second = NULL;
    struct dt_nvml_facts facts;
    enum dt_nvml_link link;
    assert_int_equal(dt_nvml_find(nvml, "0000:18:00.0", &first), DT_OK);
    assert_int_equal(dt_nvml_find(nvml, "0000:19:00.0", &second), DT_OK);
    dt_nvml_read(nvml, first, &facts);
    assert_int_equal(facts.application_mhz, DT_NVML_UNKNOWN); /* not in the library */
    assert_int_equal(facts.power_limit_mw, 500000);
    assert_int_equal(facts.health.reasons, 0x88);
    assert_int_equal(facts.use.count, DT_NVML_PROCESSES);
    assert_int_equal(facts.use.processes[0].bytes, DT_NVML_UNKNOWN);
    assert_true(dt_nvml_link(nvml, first, second, &link) && link == DT_NVML_NODE);
    dt_nvml_close(nvml);
}

/* The parts are those of the whole, and nothing else. */
static void sampling_reads_only_health(void **state)
{
    (void)state;
    struct dt_nvml *nvml = open_library(LIBRARY, H200);
    struct dt_nvml_device *device = NULL;
    struct dt_nvml_facts facts;
    assert_int_equal(dt_nvml_find(nvml, "0000:18:00.0", &device), DT_OK);
    dt_nvml_sample(nvml, device, &facts);
    assert_int_equal(facts.health.sm_mhz, 1755);
    assert_int_equal(facts.health.reasons, 0x24);
    assert_int_equal(facts.sm_mhz_max, DT_NVML_UNKNOWN);
    assert_int_equal(facts.use.count, DT_NVML_UNKNOWN);
    dt_nvml_close(nvml);
}

static void a_missing_library_is_reported(void **state)
{
    (void)state;
    struct dt_nvml *nvml = NULL;
    struct dt_nvml_device *device = NULL;
    setenv("DITTUNE_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    assert_int_equal(dt_nvml_open(&nvml), DT_EUNSUP);
    assert_non_null(strstr(dt_message(), "/nowhere/libnvidia-ml.so.1"));
    setenv("DITTUNE_NVML", LIBRARY, 1);
    setenv("DITTUNE_FAKE_CUDA", BROKEN, 1);
    assert_int_equal(dt_nvml_open(&nvml), DT_EUNSUP);
    assert_string_equal(dt_message(), "NVML: Driver Not Loaded");
    nvml = open_library(LIBRARY, H200);
    assert_int_equal(dt_nvml_find(nvml, "0000:99:00.0", &device), DT_EUNSUP);
    dt_nvml_close(nvml);
}

static void names_the_reasons_for_low_clocks(void **state)
{
    (void)state;
    assert_string_equal(dt_nvml_reason(2), "sw_power_cap");
    assert_string_equal(dt_nvml_reason(7), "hw_power_brake");
    assert_string_equal(dt_nvml_reason(8), "display_clocks");
    assert_null(dt_nvml_reason(9));
    assert_null(dt_nvml_reason(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_all_facts_of_a_new_driver),
        cmocka_unit_test(reads_a_gpu_in_mig_mode),
        cmocka_unit_test(missing_functions_leave_facts_unknown),
        cmocka_unit_test(sampling_reads_only_health),
        cmocka_unit_test(a_missing_library_is_reported),
        cmocka_unit_test(names_the_reasons_for_low_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
