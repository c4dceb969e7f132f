/* SPDX-License-Identifier: MIT */
/* A plan's text in the space of DiT-S/2 on eight cores: parsed, located, explained. */
#include "space/dit/dit.h"
#include "space/json/json.h"
#include "tests/fuzz/mutant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct dt_space *space;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const int batches[] = {1, 2, 4};
    struct dt_workload workload = {.guidance = true, .dtype = DT_FLOAT32, .sampler_steps = 50};
    struct dt_limits limits = {.cores = 8,
                               .devices = 8,
                               .memory_bytes = INT64_C(1) << 35,
                               .batches = batches,
                               .batch_count = 3};
    (void)argc, (void)argv;
    dt_status status = dt_network_load("dit-s/2", &workload.network);
    workload.height = workload.width = 32;
    if (status == DT_OK)
        status = dt_dit_space(&workload, &limits, &space);
    if (status != DT_OK)
        abort();
    return 0;
}

/* A located plan is read back from its own text. */
static void check_text(const struct dt_point *point)
{
    struct dt_text text = {0};
    int64_t values[DT_AXES_MAX];
    struct dt_point again;
    dt_point_text(space, point, &text);
    if (!dt_space_feasible(space, point) ||
        dt_space_parse(space, dt_text_at(&text), values) != DT_OK ||
        dt_space_locate(space, values, &again) != DT_OK || !dt_point_equal(space, point, &again))
        abort();
    struct dt_plan plan = dt_dit_plan(space, point);
    if (plan.ranks < 1 || plan.ranks > 8)
        abort();
    dt_text_fini(&text);
}

/* A refused plan is explained, and the nearest plans are feasible. */
static void check_refusal(const int64_t values[])
{
    struct dt_explanation explanation;
    const json_t *near;
    size_t i;
    if (dt_message()[0] == '\0')
        abort();
    if (dt_space_explain(space, values, &explanation) != DT_OK)
        return;
    json_array_foreach(json_object_get(explanation.json, "nearest"), i, near)
    {
        struct dt_point point;
        if (dt_point_from_json(space, near, &point) != DT_OK || !dt_space_feasible(space, &point))
            abort();
    }
    dt_explanation_fini(&explanation);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[1024];
    int64_t values[DT_AXES_MAX];
    struct dt_point point;
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (dt_space_parse(space, text, values) != DT_OK)
        return 0;
    if (dt_space_locate(space, values, &point) == DT_OK)
        check_text(&point);
    else
        check_refusal(values);
    return 0;
}

static size_t pair(struct mutant *m, char text[64])
{
    static const char *const odd[] = {
        "0", "-1", "3", "9223372036854775807", "9223372036854775808", "1e3", "", "x"};
    const struct dt_axis *axis =
        dt_space_axis(space, (int)mutant_pick(m, (size_t)dt_space_axes(space)));
    const char *separator = mutant_pick(m, 4) > 0 ? " " : ",";
    if (mutant_pick(m, 6) == 0)
        return (size_t)snprintf(text, 64, "%s%s=%s", separator, axis->name,
                                odd[mutant_pick(m, sizeof odd / sizeof odd[0])]);
    return (size_t)snprintf(text, 64, "%s%s=%lld", separator, axis->name,
                            (long long)axis->values[mutant_pick(m, (size_t)axis->count)]);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    static const char *const none[] = {"1", NULL};
    struct mutant m = mutant_of(data, size, room, seed, none);
    char text[64];
    for (size_t i = 1 + mutant_pick(&m, 4); i > 0; i--) {
        size_t at = mutant_pick(&m, m.size + 1), end;
        while (at > 0 && m.bytes[at - 1] != ' ' && m.bytes[at - 1] != ',')
            at--;
        for (end = at; end < m.size && m.bytes[end] != ' ' && m.bytes[end] != ',';)
            end++;
        size_t how = mutant_pick(&m, 8), more = pair(&m, text);
        if (how == 0)
            mutant_bytes(&m);
        else if (how == 1)
            mutant_splice(&m, at, end - at + (end < m.size), "", 0);
        else if (how == 2)
            mutant_splice(&m, at, end - at, text + 1, more - 1);
        else
            mutant_splice(&m, end, 0, text, more);
    }
    return m.size;
}
