/* SPDX-License-Identifier: MIT */
#include "search/arm_int.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#define DT_STRATEGY(name) extern const struct dt_strategy dt_strategy_##name;
#include "search/strategies.def"
#undef DT_STRATEGY

const struct dt_strategy *const dt_strategies[] = {
#define DT_STRATEGY(name) &dt_strategy_##name,
#include "search/strategies.def"
#undef DT_STRATEGY
    NULL};

#define STRATEGIES_MOST 64

enum { MODEL_MOST = 2000 }; /* answers that a model is fitted to */

static const struct dt_knob no_knobs[] = {{0}};

static const struct dt_knob *knobs_of(const struct dt_strategy *strategy)
{
    return strategy->knobs != NULL ? strategy->knobs : no_knobs;
}

static dt_status unknown_strategy(const char *name)
{
    struct dt_text names = {0};
    const char *known[STRATEGIES_MOST + 1] = {NULL};
    for (int i = 0; dt_strategies[i] != NULL && i < STRATEGIES_MOST; i++)
        known[i] = dt_strategies[i]->name;
    const char *near = dt_json_nearest(name, known);
    for (int i = 0; dt_strategies[i] != NULL; i++)
        dt_text_add(&names, "%s%s", i > 0 ? ", " : "", dt_strategies[i]->name);
    dt_status status = dt_fail(DT_EUSAGE, "unknown search '%.80s'%s%s%s choose one of %s", name,
                               near != NULL ? ", did you mean '" : ":", near != NULL ? near : "",
                               near != NULL ? "'?" : "", dt_text_at(&names));
    dt_text_fini(&names);
    return status;
}

static dt_status unknown_knob(const struct dt_strategy *strategy, const char *name)
{
    const struct dt_knob *knobs = knobs_of(strategy);
    struct dt_text names = {0};
    for (int i = 0; knobs[i].name != NULL; i++)
        dt_text_add(&names, "%s%s", i > 0 ? ", " : "", knobs[i].name);
    dt_status status =
        knobs[0].name == NULL
            ? dt_fail(DT_EUSAGE, "search '%s' has no settings, but '%.80s' was given",
                      strategy->name, name)
            : dt_fail(DT_EUSAGE, "search '%s' has no setting '%.80s': choose from %s",
                      strategy->name, name, dt_text_at(&names));
    dt_text_fini(&names);
    return status;
}

/* Sets one knob from "population=40"; modifies the text. */
static dt_status set_knob(struct dt_arm *arm, char *text)
{
    const struct dt_knob *knobs = knobs_of(arm->strategy);
    char *value = strchr(text, '='), *end = NULL;
    if (value != NULL)
        *value++ = '\0';
    for (int i = 0; knobs[i].name != NULL; i++) {
        if (strcmp(knobs[i].name, text) != 0)
            continue;
        double x = value != NULL ? strtod(value, &end) : 0;
        bool number = value != NULL && end != value && *end == '\0';
        if (!number || !(x >= knobs[i].low && x <= knobs[i].high))
            return dt_fail(DT_EUSAGE, "search '%s': %s=%.80s must be a number from %g to %g",
                           arm->strategy->name, text, value != NULL ? value : "", knobs[i].low,
                           knobs[i].high);
        arm->knobs[i] = x;
        return DT_OK;
    }
    return unknown_knob(arm->strategy, text);
}

static dt_status set_knobs(struct dt_arm *arm, const char *text)
{
    char *copy = strdup(text), *rest = copy;
    dt_status status =
        copy != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory for the search '%.80s'", text);
    while (status == DT_OK && rest != NULL)
        status = set_knob(arm, strsep(&rest, ","));
    free(copy);
    return status;
}

dt_status dt_arm_parse(const char *text, struct dt_arm *arm)
{
    size_t size = strcspn(text, ":");
    *arm = (struct dt_arm){0};
    for (int i = 0; dt_strategies[i] != NULL; i++)
        if (strlen(dt_strategies[i]->name) == size &&
            strncmp(dt_strategies[i]->name, text, size) == 0)
            arm->strategy = dt_strategies[i];
    if (arm->strategy == NULL)
        return unknown_strategy(text);
    const struct dt_knob *knobs = knobs_of(arm->strategy);
    for (int i = 0; knobs[i].name != NULL; i++)
        arm->knobs[i] = knobs[i].fallback;
    return text[size] == ':' ? set_knobs(arm, text + size + 1) : DT_OK;
}

dt_status dt_arm_open(struct dt_arm *arm, const char *text, const struct dt_search_opts *opts)
{
    DT_TRY(dt_arm_parse(text, arm));
    struct dt_search_opts mine = *opts;
    mine.knobs = arm->knobs;
    arm->state = calloc(1, arm->strategy->state_size);
    dt_status status = arm->state != NULL
                           ? arm->strategy->init(arm->state, &mine)
                           : dt_fail(DT_ENOMEM, "out of memory for the search '%.80s'", text);
    if (status < 0) {
        free(arm->state);
        *arm = (struct dt_arm){0};
    }
    return status;
}

void dt_arm_close(struct dt_arm *arm)
{
    if (arm->strategy != NULL && arm->strategy->fini != NULL && arm->state != NULL)
        arm->strategy->fini(arm->state);
    free(arm->state);
    *arm = (struct dt_arm){0};
}

dt_status dt_arm_ask(struct dt_arm *arm, struct dt_point *point)
{
    return arm->strategy->ask(arm->state, point);
}

int64_t dt_arm_ahead(const struct dt_arm *arm)
{
    if (arm->strategy->ahead != NULL)
        return arm->strategy->ahead(arm->state);
    return arm->strategy->tell == NULL ? INT64_MAX : 0;
}

void dt_arm_tell(struct dt_arm *arm, const struct dt_trial *trial)
{
    if (arm->strategy->tell != NULL)
        arm->strategy->tell(arm->state, trial);
}

void dt_arm_note(const struct dt_arm *arm, struct dt_text *out)
{
    if (arm->strategy->note != NULL)
        arm->strategy->note(arm->state, out);
}

struct dt_refits dt_arm_refits(const struct dt_arm *arm)
{
    if (arm->strategy == NULL || arm->strategy->refits == NULL)
        return (struct dt_refits){0};
    return arm->strategy->refits(arm->state);
}

struct dt_chance dt_arm_chance(const struct dt_arm *arm)
{
    if (arm->strategy == NULL || arm->strategy->chance == NULL)
        return (struct dt_chance){.known = false};
    return arm->strategy->chance(arm->state);
}

const char *dt_arm_fitting(const struct dt_space *space, double room)
{
    if (dt_space_listed(space) && (double)dt_space_count(space) <= room)
        return "exhaustive";
    return room <= MODEL_MOST ? "bayes" : "portfolio";
}
