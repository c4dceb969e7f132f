/* SPDX-License-Identifier: MIT */
/* A space as a worker or a user's file announces it: its rules compiled and, where it is
 * small, its points counted. */
#include "space/space.h"
#include "space/json/json.h"
#include "tests/fuzz/mutant.h"

#include <stdlib.h>
#include <string.h>

#define SMALL 3000 /* of the product: more takes too long to count under the sanitizers */

static const char *const words[] = {"\"name\"",
                                    "\"values\"",
                                    "\"default\"",
                                    "\"role\"",
                                    "\"ranks\"",
                                    "\"batch\"",
                                    "\"environment\"",
                                    "\"variable\"",
                                    "\"lossy\"",
                                    "\"if\"",
                                    "\"say\"",
                                    "\"rules\"",
                                    "\"constants\"",
                                    "\"parameters\"",
                                    "\"cartesian\"",
                                    "\"valid\"",
                                    "{\"from\":1,\"to\":64,\"factor\":2}",
                                    "{\"from\":-3,\"to\":9,\"step\":3}",
                                    "[1,2,4]",
                                    "[\"a\",\"b\"]",
                                    "\" && \"",
                                    "\" || \"",
                                    "\" == \"",
                                    "\" != \"",
                                    "\" <= \"",
                                    "\" % \"",
                                    "\" / \"",
                                    "\" * \"",
                                    "\" - \"",
                                    "\" ? \"",
                                    "\" : \"",
                                    "\"!\"",
                                    "\"(\"",
                                    "\")\"",
                                    "\"tile\"",
                                    "\"rows\"",
                                    "\"order\"",
                                    "\"min(\"",
                                    "\"max(\"",
                                    "\"9223372036854775807\"",
                                    "\" in \"",
                                    "\"-\"",
                                    "\"-1\"",
                                    "\"a\"",
                                    "\"b\"",
                                    "\"'row'\"",
                                    "\"\\\"row\\\"\"",
                                    NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

/* Every point is legal by the rules and survives its own JSON. */
static void check_points(const struct dt_space *space)
{
    int64_t count = dt_space_count(space);
    if (!dt_space_listed(space) || count > SMALL)
        return;
    for (int64_t k = 0; k < count; k += 1 + count / 50) {
        struct dt_point point, again;
        dt_space_at(space, k, &point);
        json_t *plan = dt_point_json(space, &point);
        if (!dt_space_feasible(space, &point) || dt_point_from_json(space, plan, &again) != DT_OK ||
            !dt_point_equal(space, &point, &again))
            abort();
        json_decref(plan);
    }
}

static bool is_small(const json_t *root)
{
    struct dt_space *axes = NULL;
    double product = 1;
    if (dt_space_axes_from_json(root, "the space", &axes) != DT_OK)
        return false;
    for (int a = 0; a < dt_space_axes(axes); a++)
        product *= dt_space_axis(axes, a)->count;
    dt_space_free(axes);
    return product <= SMALL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *root = NULL;
    struct dt_space *rules = NULL, *space = NULL;
    if (dt_json_parse((const char *)data, size, "the space", &root) != DT_OK)
        return 0;
    dt_status compiled = dt_space_rules_from_json(root, "the space", &rules);
    if (compiled == DT_OK && is_small(root) &&
        dt_space_from_json(root, "the space", &space) == DT_OK)
        check_points(space);
    dt_space_free(rules);
    dt_space_free(space);
    json_decref(root);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    struct mutant m = mutant_of(data, size, room, seed, words);
    if (mutant_pick(&m, 16) == 0)
        mutant_bytes(&m);
    else
        mutant_json(&m, 0, m.size);
    return m.size;
}
