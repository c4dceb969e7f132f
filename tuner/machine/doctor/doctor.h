/* SPDX-License-Identifier: MIT */
/* doctor - finds problems that keep plans from this machine's GPUs or slow them
 * down (docs/doctor.md)
 *
 * Facts are gathered once, as JSON, from `dittune-worker-cuda --devices` and from the system. Rules
 * use nothing else, so they can be applied to the facts of another machine:
 *
 *     dt_doctor_facts(&facts);                       -- or a file's
 *     dt_doctor_judge(facts, &findings);
 *
 * To add a rule: a row in rules.c, and a case in tests/doctor/faults.py that plants it.
 */
#ifndef DT_TUNER_MACHINE_DOCTOR_DOCTOR_H
#define DT_TUNER_MACHINE_DOCTOR_DOCTOR_H

#include "base/json.h"
#include "base/text.h"
#include "tuner/machine/machine.h"

#include <stdbool.h>
#include <stdint.h>

/* The parts of the facts; devices, when there are none, is an empty object. Borrowed. */
struct dt_doctor_view {
    const json_t *worker;  /* {"program", "missing", "cause"} */
    const json_t *devices; /* docs/protocol.md */
    const json_t *host;    /* doctor.c */
    int64_t count;         /* number of devices */
    /* that a rule about each device is asked of; NULL for rules about the machine */
    const json_t *device;
};

struct dt_doctor_rule {
    const char *name;
    enum dt_severity severity;
    bool each; /* asked of each device */
    /* True when the fault is present; `what` then has the sentence. */
    bool (*found)(const struct dt_doctor_view *view, struct dt_text *what);
    const char *mend; /* the remedy, one sentence */
};

extern const struct dt_doctor_rule dt_doctor_rules[];
extern const int dt_doctor_rule_count;

/* A variable that libraries read, or are believed to read. */
struct dt_doctor_variable {
    const char *rule, *name;
    const char *values; /* " 1 TRUE ": any of these; NULL: any value */
    enum dt_severity severity;
    bool (*matters)(const struct dt_doctor_view *view); /* NULL: always */
    const char *what, *mend;
};
extern const struct dt_doctor_variable dt_doctor_variables[];
extern const int dt_doctor_variable_count;

/* Read a field; one that is missing, null or of another type gives fallback or false. */
int64_t dt_doctor_int(const json_t *object, const char *key, int64_t fallback);
bool dt_doctor_is(const json_t *object, const char *key, bool value);
/* A variable of the environment of the worker; NULL when it is not set. */
const char *dt_doctor_environment(const struct dt_doctor_view *view, const char *name);
bool dt_doctor_has_infiniband(const struct dt_doctor_view *view); /* with an active port */

#endif
