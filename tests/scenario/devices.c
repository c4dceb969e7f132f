/* SPDX-License-Identifier: MIT */
/* Reports of devices ("Devices while they work" in docs/protocol.md) from two ranks, of which
 * the second is slower. */
#include "tests/scenario/scenario.h"

#define MEMORY_BYTES 1000000

static json_t *device_of(const struct scenario *scenario)
{
    return json_object_get(scenario->root, "device");
}

/* The fields of "spoil" take the place of those that a message has. */
void devices_spoil(const struct scenario *scenario, json_t *message)
{
    json_t *spoil = json_object_get(device_of(scenario), "spoil");
    if (spoil != NULL)
        json_object_update_existing(message, spoil);
}

void devices_prepared(const struct scenario *scenario, json_t *message)
{
    const json_t *device = device_of(scenario);
    if (device == NULL)
        return;
    int taken = (int)number_of(device, "taken", 400000);
    int used = (int)number_of(device, "used", 500000);
    json_t *more =
        json_pack("{s:[i, i], s:i, s:[i, i], s:[i, i], s:[i, i], s:[i, i]}", "peak_bytes",
                  taken / 2, taken / 4, "resident_bytes", taken / 2, "before_bytes", 900000, 950000,
                  "taken_bytes", taken, 7, "free_bytes", MEMORY_BYTES - used, MEMORY_BYTES,
                  "total_bytes", MEMORY_BYTES, MEMORY_BYTES);
    json_object_update(message, more);
    json_decref(more);
}

/* Is this measured request one of those whose last two steps are slow? */
static bool is_slow(const struct worker *worker, const json_t *device, const char *mode)
{
    const json_t *value;
    size_t i;
    bool slow = false;
    json_array_foreach(json_object_get(device, "slow"), i, value)
    {
        slow = slow || json_integer_value(value) == worker->measured;
    }
    return slow && mode[0] == 'm';
}

static json_t *telemetry(const json_t *device, json_int_t looks, bool slow)
{
    json_t *rows = json_array();
    for (int r = 0; r < 2; r++) {
        int mhz = slow && r == 1 ? 600 : 1000;
        json_t *reasons = json_pack("[s]", "gpu_idle");
        if (slow && r == 1)
            json_array_extend(reasons, json_object_get(device, "reasons"));
        json_array_append_new(rows, json_pack("{s:I, s:i, s:{s:i, s:i, s:i}, s:o}", "looks", looks,
                                              "unknown", 3, "sm_mhz", "least", mhz - 1, "mean", mhz,
                                              "most", mhz + 1, "reasons", reasons));
    }
    return rows;
}

void devices_samples(const struct worker *worker, const json_t *request, json_t *message)
{
    const json_t *device = device_of(&worker->scenario);
    json_int_t n = json_integer_value(json_object_get(request, "n"));
    if (device == NULL)
        return;
    bool slow = is_slow(worker, device, text_of(request, "mode", "measure"));
    json_int_t host = (json_int_t)number_of(device, "host_ns", 1e6);
    json_int_t own = (json_int_t)number_of(device, "device_ns", 990000);
    json_t *ns = json_array(), *own_ns = json_array(), *clock = json_array();
    for (json_int_t i = 0; i < n; i++) {
        int mhz = slow && n > 2 && i >= n - 2 ? 600 : 1000;
        json_array_append_new(ns, json_pack("[I, I]", host - 1000, host));
        json_array_append_new(own_ns, json_pack("[I, I]", own - 2000, own));
        json_array_append_new(clock, json_pack("[i, i]", 1000, mhz));
    }
    json_t *phases = json_object_get(device, "phases");
    bool judged = json_is_true(json_object_get(device, "judged"));
    json_t *more = json_pack("{s:o, s:o, s:o, s:o, s:O*}", "ns", judged ? own_ns : ns,
                             judged ? "host_ns" : "device_ns", judged ? ns : own_ns, "clock", clock,
                             "telemetry", telemetry(device, n, slow), "phases", phases);
    json_object_update(message, more);
    json_decref(more);
}
