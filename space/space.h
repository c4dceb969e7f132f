/* SPDX-License-Identifier: MIT */
/* space - every plan worth trying: named axes of values, constants, and rules
 *
 * Points are generic: the built-in DiT (space/dit/dit.h), a worker's own parameters and a user's
 * JSON file are all a struct dt_space, and search and store treat them alike.
 *
 *     dt_space_new(&space);
 *     dt_space_add_axis(space, &axis);
 *     dt_space_add_rule(space, "heads % ulysses == 0", "ulysses must divide the number of heads");
 *     dt_space_seal(space);                      -- compiles, enumerates with pruning
 *     dt_space_at(space, k, &point);
 */
#ifndef DT_SPACE_SPACE_H
#define DT_SPACE_SPACE_H

#include "base/rng.h"
#include "base/status.h"
#include "base/text.h"
#include "model/plan.h"

#include <stdbool.h>
#include <stdint.h>

#define DT_AXES_MAX   32
#define DT_AXES_SHOWN 8 /* a plan of so many parameters is shown whole */

struct dt_axis {
    const char *name, *doc;
    enum dt_role role;
    int count; /* values, at least 1 */
    int words; /* labels behind those of the values: rules may name them, no plan has them */
    const int64_t *values;     /* ascending for numbers; 0..count-1 for labels */
    int digits;                /* digits of decimals: 0.85 is the value 85 with 2 digits; else 0 */
    bool truth;                /* the values 0 and 1 are false and true */
    const char *const *labels; /* NULL for numbers; the texts of a category otherwise */
    int fallback;              /* index of the default value */
    /* the variable to set when a group starts; NULL: none, or of role environment its own name */
    const char *variable;
    /* if not 0: `variable` is a comma-separated list, each set to value * unit,
     * and unset for value 0 */
    int unit;
    /* an expression of the axes before it: where it does not hold, the axis does not exist and has
     * its default; NULL: it exists */
    const char *when;
};

/* Its value is chosen when a group of processes starts, not for a plan of a running one. */
static inline bool dt_axis_starts(const struct dt_axis *axis)
{
    return axis->role == DT_ROLE_ENVIRONMENT || axis->variable != NULL;
}

/* A point is a plain value: one index for each axis, in axis order. */
struct dt_point {
    int32_t index[DT_AXES_MAX];
};

struct dt_space;

dt_status dt_space_new(struct dt_space **space) DT_MUST_CHECK;
void dt_space_free(struct dt_space *space);
DT_FREE_AT(dt_space_free, struct dt_space)

/* Everything is copied. DT_EUSAGE: duplicate or invalid name, no values, too many axes. */
dt_status dt_space_add_axis(struct dt_space *space, const struct dt_axis *axis) DT_MUST_CHECK;
dt_status dt_space_add_constant(struct dt_space *space, const char *name,
                                int64_t value) DT_MUST_CHECK;
dt_status dt_space_add_rule(struct dt_space *space, const char *expr,
                            const char *sentence) DT_MUST_CHECK;
/* The same, with an expression of Python (space/expr/expr.h). */
dt_status dt_space_add_python(struct dt_space *space, const char *expr,
                              const char *sentence) DT_MUST_CHECK;

/* An expression implied by the rules that is decided before them. It only speeds up the
 * enumeration: it is never listed, counted or explained. */
dt_status dt_space_add_prune(struct dt_space *space, const char *expr) DT_MUST_CHECK;

/* A name for rules whose value is a function of the axes listed in `uses` (NULL-ended, all axes
 * when NULL); values are in axis order. context must outlive the space. */
typedef int64_t dt_derive(const void *context, const int64_t values[]);
dt_status dt_space_add_derived(struct dt_space *space, const char *name, const char *const uses[],
                               dt_derive *function, const void *context) DT_MUST_CHECK;

/* Whether an expression of rules holds for a point (NULL: it is only read); adds bit i to *axes
 * for each axis it names.
 * DT_EUSAGE: it cannot be read. One that cannot be computed, or names an axis that does not
 * exist, does not hold. */
dt_status dt_space_test(const struct dt_space *space, const char *condition,
                        const struct dt_point *point, bool *holds, uint32_t *axes) DT_MUST_CHECK;

/* Fills in unnamed parameters; without it each gets its axis' default.
 * named[i]: axis i was given. */
typedef void dt_complete(const void *context, const struct dt_space *space, const bool named[],
                         int64_t values[]);
void dt_space_set_complete(struct dt_space *space, dt_complete *function, const void *context);

/* Frees context together with the space. */
void dt_space_own(struct dt_space *space, void *context, void (*free_context)(void *));

/* A rule that names an axis with a `when` does not apply where the axis does not exist.
 *
 * Compiles the rules and enumerates, by merging partial plans with equal completions
 * (space/diagram/diagram.h): the points are counted even when there are far too many to list. Must
 * be called once, after which the space is immutable. A space without a feasible point is sealed,
 * too (count is 0). When its rules connect too many axes even for that, it is not listed, and
 * points are drawn from a larger set and tested. It takes at most about two seconds and a few
 * hundred MiB. DT_EUSAGE for a rule that does not compile; DT_EUNSUP when drawing found no
 * feasible point, either. */
dt_status dt_space_seal(struct dt_space *space) DT_MUST_CHECK;

/* Compiles the rules and enumerates nothing, in a hundredth of the time or less: points can be
 * completed, named, tested, located and printed, but not counted (dt_space_count is -1), listed,
 * drawn, walked or explained. Call once, instead of dt_space_seal. */
dt_status dt_space_compile(struct dt_space *space) DT_MUST_CHECK;

/* Seals a space without rules with given points, those of a recorded table. Their order does not
 * matter; duplicates count once. DT_EUSAGE: an index outside its axis. */
dt_status dt_space_seal_points(struct dt_space *space, const struct dt_point points[],
                               int64_t n) DT_MUST_CHECK;

int dt_space_axes(const struct dt_space *space);
const struct dt_axis *dt_space_axis(const struct dt_space *space, int axis);
int dt_space_find(const struct dt_space *space, const char *name); /* axis of that name, or -1 */
int dt_space_role(const struct dt_space *space,
                  enum dt_role role);                    /* first axis of that role, or -1 */
double dt_space_cartesian(const struct dt_space *space); /* product of the axes' counts */
int64_t dt_space_count(const struct dt_space *space);    /* feasible points; -1: unknown */
void dt_space_at(const struct dt_space *space, int64_t k,
                 struct dt_point *point); /* k-th, in axis order, last axis fastest */
int64_t dt_space_index(const struct dt_space *space,
                       const struct dt_point *point); /* inverse of at; -1 if infeasible */
bool dt_space_feasible(const struct dt_space *space, const struct dt_point *point);

/* dt_space_at and dt_space_index work. false: the feasible points are too many to count,
 * dt_space_count is -1, and they can only be drawn, tested and walked from
 * neighbour to neighbour. */
bool dt_space_listed(const struct dt_space *space);

/* Number of feasible points: the count, or an estimate where it is unknown. */
double dt_space_estimate(const struct dt_space *space);
/* Memory of the sealed space. */
size_t dt_space_bytes(const struct dt_space *space);

/* Uniform over the feasible points, of which there must be one, listed or not. */
void dt_space_draw(const struct dt_space *space, struct dt_rng *rng, struct dt_point *point);
/* Expected number of points tested for each draw: 1 where every drawn point is feasible. Callers
 * with many draws should draw fewer where this is large. */
double dt_space_tries(const struct dt_space *space);

/* Feasible points with another value of one axis, and where values belong together, of what
 * follows from it; by axis and then by value. The first `room` of them are written to out.
 * Returns the total number. */
int dt_space_neighbours(const struct dt_space *space, const struct dt_point *point,
                        struct dt_point out[], int room);

/* The point of one coordinate in [0, 1) for each axis of several values, mapped by the
 * distribution of the axis' value given the values before it (Rosenblatt 1952): uniform
 * coordinates give a uniform draw, and evenly spread ones spread the points evenly. false: the
 * point is not feasible, which happens only where dt_space_tries is above 1. */
bool dt_space_at_coordinates(const struct dt_space *space, const double coordinates[DT_AXES_MAX],
                             struct dt_point *point);

/* Bit i: axis i says how the work is split (roles ranks, batch, layout, replicas). 0 where no axis
 * of role layout has a choice. */
uint32_t dt_space_layout_axes(const struct dt_space *space);

/* One feasible point for each combination of these axes that has any, in the order of the
 * combinations: the other parameters are completed, else the first feasible point is taken.
 * *points: to be freed by the caller. DT_EUNSUP: more than 65536 combinations. */
dt_status dt_space_tuples(const struct dt_space *space, uint32_t axes, struct dt_point **points,
                          int *count) DT_MUST_CHECK;

/* A sealed space of those points that agree with one of points[n] in these axes. It has the same
 * axes, so that a point is the same in both; space must outlive it. Errors of dt_space_seal. */
dt_status dt_space_restrict(const struct dt_space *space, uint32_t axes,
                            const struct dt_point points[], int n,
                            struct dt_space **part) DT_MUST_CHECK;

/* For each rule, its text, sentence, and the number of points of the full product that it alone
 * removes (-1: not counted, since the product exceeds 63 bits or counting takes too long). */
struct dt_rule_info {
    const char *expr, *sentence;
    int64_t removes;
};
int dt_space_rules(const struct dt_space *space);
/* Counts again on each call. */
struct dt_rule_info dt_space_rule(const struct dt_space *space, int rule);

/* The error DT_EINFEASIBLE of a space without a feasible point: its sentence names a set of rules
 * of which none can be left out, as far as that could be counted. */
dt_status dt_space_none(const struct dt_space *space) DT_MUST_CHECK;

/* The cases of a rule that is a list of them (0: it is an expression), and one of them, its
 * axes by name: "a=2 b=4". */
int dt_space_cases(const struct dt_space *space, int rule);
void dt_space_case(const struct dt_space *space, int rule, int i, struct dt_text *out);

/* The meaning of a compiled space, as text: two spaces have one text if they have the
 * same parameters (names, roles, variables, values in order, defaults) and rules (names,
 * operations, values of constants). Spelling, documentation, sentences, the order of parameters and
 * rules, and the controller's replicas do not count. */
void dt_space_identity(const struct dt_space *space, struct dt_text *out);
/* The part of rule `rule` in that text: equal where rules mean the same. */
void dt_space_rule_code(const struct dt_space *space, int rule, struct dt_text *out);
const char *dt_space_rule_text(const struct dt_space *space,
                               int rule); /* the rule as it was written; borrowed */

/* Values. A value's text is its number, true or false, or its label: as it is, or in quotes where a
 * plan's text needs them. */
void dt_axis_plain(const struct dt_axis *axis, int64_t value, struct dt_text *out);
void dt_axis_text(const struct dt_axis *axis, int64_t value, struct dt_text *out);
double dt_axis_number(const struct dt_axis *axis, int64_t value); /* 0.85 of 85 with 2 digits */
int dt_axis_find(const struct dt_axis *axis, int64_t value);      /* index of the value, or -1 */
/* Reads what either of them wrote, or a JSON value writes; DT_EUSAGE: it is of another kind. */
dt_status dt_axis_read_text(const struct dt_axis *axis, const char *text,
                            int64_t *value) DT_MUST_CHECK;
bool dt_space_constant(const struct dt_space *space, const char *name,
                       int64_t *value); /* false: no such constant */
int64_t dt_point_value(const struct dt_space *space, const struct dt_point *point, int axis);
/* The axis exists in the plan (its `when` holds): else texts, JSON and commands
 * have no value of it. */
bool dt_point_has(const struct dt_space *space, const struct dt_point *point, int axis);
bool dt_point_equal(const struct dt_space *space, const struct dt_point *a,
                    const struct dt_point *b);
/* They have the same values of these axes (bit i: axis i). */
bool dt_points_agree(const struct dt_space *space, uint32_t axes, const struct dt_point *a,
                     const struct dt_point *b);
void dt_point_text(const struct dt_space *space, const struct dt_point *point,
                   struct dt_text *out); /* "ranks=2 cfg=1 ..." */
/* For people: the same where the space has few parameters; else the shortest text that
 * dt_space_parse reads as this point: ranks, threads, batch, and values it would
 * complete differently. */
void dt_point_short(const struct dt_space *space, const struct dt_point *point,
                    struct dt_text *out);

/* "ranks=2 ulysses=2" (separated by spaces or commas): sets named[] and values[] (axis order;
 * a value outside the axis is kept for the explanation) and completes the rest. DT_EUSAGE:
 * unknown parameter (with the nearest name), one that does not exist in the plan, not a
 * number, named twice. */
dt_status dt_space_parse(const struct dt_space *space, const char *text,
                         int64_t values[]) DT_MUST_CHECK;

/* DT_OK and *point, or DT_EINFEASIBLE with one sentence: the first violated rule with its numbers
 * and the nearest feasible values. */
dt_status dt_space_locate(const struct dt_space *space, const int64_t values[],
                          struct dt_point *point) DT_MUST_CHECK;

/* Reads a user's file (space/json/json.h); misspelt keys are an error, too.
 * DT_EIO: it cannot be read. */
dt_status dt_space_read(const char *path, struct dt_space **space) DT_MUST_CHECK;

#endif
