/* SPDX-License-Identifier: MIT */
#include "tuner/check/check.h"

#include "base/clock.h"
#include "tuner/machine/machine.h"

#define WORKER_NS (20 * DT_NS_PER_SECOND) /* to get ready */

/* Names in `out` ("environment.NAME" for those inside): values that differ, or that only one side has. */
static void differences(const json_t *then, const json_t *now, const char *inside, json_t *out)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)then, name, value)
    {
        const json_t *other = json_object_get(now, name);
        if (json_is_object(value) && json_is_object(other))
            differences(value, other, name, out);
        else if (!json_equal(value, other))
            json_array_append_new(
                out, json_sprintf("%s%s%s", inside, inside[0] != '\0' ? "." : "", name));
    }
    json_object_foreach((json_t *)now, name, value)
    {
        if (json_object_get(then, name) == NULL)
            json_array_append_new(
                out, json_sprintf("%s%s%s", inside, inside[0] != '\0' ? "." : "", name));
    }
}

/* The description as in a session (tuner/session/session_int.h). If the worker does not start, its versions are missing and
 * its plans are not checked. */
static json_t *describe(const struct dt_target *target, int64_t deadline_ns)
{
    struct dt_machine_worker worker = {{target->worker.program, target->worker.arguments},
                                       target->foreign,
                                       &target->hardware.backend};
    int64_t most = dt_clock_ns() + WORKER_NS;
    json_t *machine = NULL;
    if (target->worker.ready != NULL)
        return dt_machine_describe(target->worker.hello, target->worker.ready, &worker);
    if (dt_machine_read(&worker, false, deadline_ns < most ? deadline_ns : most, &machine) < 0)
        machine = dt_machine_describe(NULL, NULL, &worker);
    return machine;
}

dt_status dt_check_soft(struct dt_check_entry *entry, int64_t deadline_ns)
{
    json_t *machine = describe(entry->target, deadline_ns);
    entry->today.soft = json_incref(json_object_get(machine, "soft"));
    entry->today.info = json_incref(json_object_get(machine, "info"));
    entry->today.changed = json_array();
    json_decref(machine);
    if (entry->today.soft == NULL || entry->today.info == NULL || entry->today.changed == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    differences(entry->item->entry.fingerprint.soft, entry->today.soft, "", entry->today.changed);
    return DT_OK;
}
