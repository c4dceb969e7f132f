/* SPDX-License-Identifier: MIT */
/* json - spaces, points and explanations as JSON: of a worker's hello, a
 * user's file, a stored plan */
#ifndef DT_SPACE_JSON_JSON_H
#define DT_SPACE_JSON_JSON_H

#include "base/json.h"
#include "space/space.h"

/* A value of an axis as JSON (new reference), and read back. DT_EUSAGE: it is of another kind. */
json_t *dt_value_json(const struct dt_axis *axis, int64_t value);
dt_status dt_value_read(const struct dt_axis *axis, const json_t *json,
                        int64_t *value) DT_MUST_CHECK;

json_t *dt_point_json(const struct dt_space *space,
                      const struct dt_point *point); /* {"ranks": 2, ...}, new reference */
dt_status dt_point_from_json(const struct dt_space *space, const json_t *plan,
                             struct dt_point *point) DT_MUST_CHECK;
/* Reads a plan that names every parameter, feasible or not. DT_EUSAGE: one is missing, or its
 * value is not in the axis. */
dt_status dt_point_read(const struct dt_space *space, const json_t *plan,
                        struct dt_point *point) DT_MUST_CHECK;

/* Every violated rule (and value outside its axis) with its numbers, and the nearest feasible
 * points (fewest changed parameters, then least change in log2). */
struct dt_explanation {
    /* {"plan", "feasible", "violations": [{"rule","sentence","numbers"}],
     * "nearest": [{plan}, ..]} */
    json_t *json;
    struct dt_text text; /* the same for people */
};
dt_status dt_space_explain(const struct dt_space *space, const int64_t values[],
                           struct dt_explanation *out) DT_MUST_CHECK;
void dt_explanation_fini(struct dt_explanation *explanation);

/* A value to be replaced by another one that fits. */
struct dt_near_wanted {
    int64_t value;
    bool (*fits)(const void *context, int64_t value);
    const void *context;
};
/* Finds, among ascending values, the nearest one below that fits, then the nearest one above;
 * returns their number. */
int dt_near_values(const int64_t values[], int count, const struct dt_near_wanted *wanted,
                   int64_t near[2]);
/* Appends "; ulysses=3 or ring=2 would do", of {"ulysses": [3], "ring": [2]};
 * nothing of an empty object. */
void dt_near_text(const json_t *near, struct dt_text *out);

/* {"parameters": [{"name","values","role","default","doc"}] or {name: values or the same object},
 *  "rules": [{"if" or "python","say"} or "expr"], "constants": {name: int}, "cartesian": n, "valid": n}
 * from a worker's hello or a user's file. values: [ints or strings], {"from","to","step"} or
 * {"from","to","factor"}. The two counts, if present, are compared. The space is sealed.
 * docs/search.md describes the format. */
dt_status dt_space_from_json(const json_t *root, const char *what,
                             struct dt_space **space) DT_MUST_CHECK;

/* A user's file in that form, also one of Kernel Tuner (T1); what: the first words of each message.
 * DT_EIO: it cannot be read;
 * DT_EUSAGE: it has an unknown field, or is in no form that is read. */
dt_status dt_space_file(const char *path, const char *what, json_t **root) DT_MUST_CHECK;

/* The same as dt_space_from_json, compiled only: without the counts. */
dt_status dt_space_rules_from_json(const json_t *root, const char *what,
                                   struct dt_space **space) DT_MUST_CHECK;

/* dt_space_axes_json writes the axes as "parameters" (new reference). The reverse makes a
 * space without rules that names, reads and prints points: it is not sealed, and has no
 * plans to count or draw. */
json_t *dt_space_axes_json(const struct dt_space *space);
dt_status dt_space_axes_from_json(const json_t *root, const char *what,
                                  struct dt_space **space) DT_MUST_CHECK;

#endif
