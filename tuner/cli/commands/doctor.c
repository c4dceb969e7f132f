/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "tuner/cli/print.h"
#include "tuner/machine/machine.h"

/* Waking GPUs up may take the driver a while. */
#define PATIENCE_NS (60 * DT_NS_PER_SECOND)

/* A file has plain facts, or the output of --json. */
static dt_status read_facts(const struct dt_options *options, json_t **facts)
{
    json_auto_t *file = NULL;
    if (options->facts == NULL)
        return dt_doctor_facts(NULL, dt_clock_machine_ns() + PATIENCE_NS, facts);
    DT_TRY(dt_json_read(options->facts, "the facts", &file));
    json_t *inner = json_object_get(file, "facts");
    *facts = json_incref(inner != NULL ? inner : file);
    return DT_OK;
}

dt_status dt_command_doctor(const struct dt_options *options)
{
    json_auto_t *facts = NULL, *findings = NULL;
    struct dt_text text = {0};
    DT_TRY(read_facts(options, &facts));
    DT_TRY(dt_doctor_judge(facts, &findings));
    dt_doctor_report(facts, findings, &text);
    DT_TRY(
        dt_print_either(options, DT_OK,
                        json_pack("{s:s, s:{s:i, s:i}, s:O, s:o, s:O}", "format", "dittune-doctor",
                                  "version", "major", 1, "minor", 0, "findings", findings, "rules",
                                  dt_doctor_names(), "facts", facts),
                        &text));
    enum dt_severity worst = dt_doctor_worst(findings);
    if (worst == DT_ERROR)
        return dt_fail(DT_FAILED, "plans cannot run on the GPUs as this machine is");
    if (worst == DT_BUSY)
        return dt_fail(DT_EDIRTY, "a GPU is used by others: times would not be comparable");
    return DT_OK;
}
