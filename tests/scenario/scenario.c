/* SPDX-License-Identifier: MIT */
/* Fields are rows of two tables, numbers and all others: what is in neither
 * is a spelling mistake. */
#include "tests/scenario/scenario.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

#define ROW(name, usual)                                                                           \
    {                                                                                              \
#name, offsetof(struct scenario, name), usual                                              \
    }
static const struct {
    const char *name;
    size_t at;
    double usual;
} numbers[] = {
    ROW(seed, 1),
    ROW(ranks, 0),
    ROW(cold, 3),
    ROW(process_sd, 0),
    ROW(drift_sd, 0),
    ROW(drift_tau, 60),
    ROW(cv, 0),
    ROW(ar1, 0),
    ROW(spike_share, 0),
    ROW(spike_mean, 0),
    ROW(mode_share, 0),
    ROW(mode_size, 0),
    ROW(warm_size, 0),
    ROW(warm_steps, 0),
    ROW(warm_tau, 0),
    ROW(warm_skip, 0),
    ROW(step_at, 0),
    ROW(step_size, 0),
    ROW(lateness, 0),
    ROW(late_rank, 0),
    ROW(late_size, 0),
    ROW(slow_clock, 0),
    ROW(slow_rank, 0),
    ROW(slow_at, 0),
    ROW(slow_steps, 0),
    ROW(threads, 0),
    ROW(blocks, 0),
    ROW(copy, 0),
    ROW(swing, 0),
    ROW(start_ns, 5e6),
    ROW(cost_ns, 0),
    ROW(sleep, 0),
    ROW(rank_sd, 0),
    ROW(residency_sd, 0),
    ROW(residency_share, 0),
    ROW(residency_size, 0),
    ROW(room, 1 << 20),
    ROW(load_ns, 0),
};

/* type -1: any */
static const struct {
    const char *name;
    int type;
} others[] = {
    {"ns", JSON_ARRAY},
    {"axes", JSON_OBJECT},
    {"base", -1},
    {"weights", JSON_OBJECT},
    {"best", JSON_OBJECT},
    {"wrong", JSON_OBJECT},
    {"a", -1},
    {"b", -1},
    {"s", -1},
    {"exchange", JSON_OBJECT},
    {"device", JSON_OBJECT},
    {"card", JSON_STRING},
    {"peak", JSON_OBJECT},
    {"name", JSON_STRING},
    {"version", JSON_STRING},
    {"engine", JSON_STRING},
    {"mode", JSON_STRING},
    {"launch", JSON_STRING},
    {"workload", JSON_STRING},
    {"say", JSON_STRING},
    {"parameters", -1},
    {"constants", -1},
    {"rules", -1},
    {"protocol", -1},
    {"obeys", -1},
    {"job", -1},
    {"dtype", -1},
    {"tolerance", -1},
    {"least_fault", -1},
    {"reference", -1},
    {"switch", -1},
    {"documented", -1},
    {"steps", -1},
    {"text_and_vae_ns", -1},
    {"unit", -1},
    {"versions", JSON_OBJECT},
    {"batches", JSON_OBJECT},
    {"bytes", JSON_OBJECT},
    {"plans", JSON_ARRAY},
    {"faults", JSON_ARRAY},
    {"busy", JSON_ARRAY},
    {"verify", -1},
    {"log", -1},
};

void die(const char *what, const char *name)
{
    fprintf(stderr, "scenario: %s %s\n", what, name);
    exit(64);
}

double number_of(const json_t *object, const char *name, double usual)
{
    const json_t *value = json_object_get(object, name);
    if (value != NULL && !json_is_number(value))
        die("this is not a number:", name);
    return value != NULL ? json_number_value(value) : usual;
}

const char *text_of(const json_t *object, const char *name, const char *usual)
{
    const json_t *value = json_object_get(object, name);
    if (value != NULL && !json_is_string(value))
        die("this is not a text:", name);
    return value != NULL ? json_string_value(value) : usual;
}

static bool set_number(struct scenario *scenario, const char *name, const json_t *value)
{
    for (int i = 0; i < LENGTH(numbers); i++)
        if (strcmp(numbers[i].name, name) == 0 && json_is_number(value)) {
            double number = json_number_value(value);
            memcpy((char *)scenario + numbers[i].at, &number, sizeof number);
            return true;
        }
    return false;
}

static bool is_other(const char *name, const json_t *value)
{
    for (int i = 0; i < LENGTH(others); i++)
        if (strcmp(others[i].name, name) == 0)
            return others[i].type < 0 || (int)json_typeof(value) == others[i].type;
    return false;
}

void scenario_read(const char *path, struct scenario *scenario)
{
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *value;
    const char *name;
    if (!json_is_object(root))
        die("cannot read the scenario:", root == NULL ? error.text : "it is no object");
    *scenario = (struct scenario){.root = root, .model = model_of(root)};
    for (int i = 0; i < LENGTH(numbers); i++)
        memcpy((char *)scenario + numbers[i].at, &numbers[i].usual, sizeof(double));
    json_object_foreach(root, name, value)
    {
        if (!set_number(scenario, name, value) && !is_other(name, value))
            die("the scenario has a bad", name);
    }
}

void scenario_fini(struct scenario *scenario)
{
    json_decref(scenario->root);
}

bool plan_fits(const json_t *when, const json_t *plan)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)when, name, value)
    {
        if (!json_equal(value, json_object_get(plan, name)))
            return false;
    }
    return true;
}

const json_t *plan_field(const struct scenario *scenario, const json_t *plan, const char *name)
{
    const json_t *row, *found = NULL;
    size_t i;
    json_array_foreach(json_object_get(scenario->root, "plans"), i, row)
    {
        const json_t *value = json_object_get(row, name);
        if (value != NULL && plan_fits(json_object_get(row, "when"), plan))
            found = value;
    }
    return found;
}
