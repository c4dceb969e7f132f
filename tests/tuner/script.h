/* SPDX-License-Identifier: MIT */
/* script - a target whose worker follows a script: one parameter, tile, of 1 or 2 */
#ifndef DT_TESTS_TUNER_SCRIPT_H
#define DT_TESTS_TUNER_SCRIPT_H

#include "tests/tuner/replay.h"
#include "tuner/measure/measure.h"

#define SCRIPT_START                                                                               \
    "> {\"op\":\"hello\"}\n"                                                                       \
    "< {\"op\":\"hello\",\"protocol\":1,\"name\":\"script\",\"launch\":\"self\",\"parameters\":"   \
    "[{\"name\":\"tile\",\"values\":[1,2],\"default\":1}]}\n"                                      \
    "< "                                                                                           \
    "{\"op\":\"ready\",\"ranks\":[{\"rank\":0,\"pid\":1,\"host\":\"here\"}],\"comm\":\"self\"}\n"

/* Workers that are started from now on follow the text, which is kept at path. To be freed. */
static inline struct dt_target *script_target(const char *path, const char *text)
{
    struct dt_job job = {.worker = {replay_text(path, text), NULL}, .plan = ""};
    struct dt_target *target = NULL;
    if (dt_objective_find("latency", &job.objective) != DT_OK ||
        dt_target_new(&job, &target) != DT_OK)
        abort();
    return target;
}

#endif
