/* SPDX-License-Identifier: MIT */
/* space_int - the fields of a space, for the files of this folder
 *
 * Rules see one array of values, the scope: axes first, then constants, then derived names.
 */
#ifndef DT_SPACE_SPACE_INT_H
#define DT_SPACE_SPACE_INT_H

#include "space/expr/expr.h"
#include "space/space.h"

enum {
    DT_VALUES_MAX = 4096,
    DT_CONSTANTS_MAX = 64,
    DT_DERIVED_MAX = 16,
    DT_RULES_MAX = 1024,
    DT_OWNED_MAX = 4,
    DT_ROWS_MAX = 4000000,
    DT_SCOPE_MAX = DT_AXES_MAX + DT_CONSTANTS_MAX + DT_DERIVED_MAX
};

struct dt_derived {
    char *name;
    uint32_t axes; /* bit i: uses axis i */
    dt_derive *function;
    const void *context;
};

/* The plans of a list of cases: the values that some axes have together. */
struct dt_cases {
    int width, count, axes[DT_AXES_MAX]; /* ascending */
    struct dt_point *rows;               /* for each case the indices in those axes; ascending */
};

struct dt_rule {
    char *text, *sentence; /* sentence NULL: only prunes */
    bool python;           /* the language of text */
    bool of_when;          /* says the default of an axis that does not exist */
    struct dt_expr *expr;
    struct dt_cases *cases; /* in place of an expression; NULL: none */
    uint32_t axes;          /* bit i: depends on axis i, also through derived names */
    uint32_t derived;       /* bit i: the text names derived name i */
};

struct dt_diagram;

struct dt_owned {
    void *context;
    void (*free)(void *);
};

struct dt_space {
    struct dt_axis axes[DT_AXES_MAX];
    struct dt_expr *when
        [DT_AXES_MAX]; /* under which each exists, those of the axes it names included; NULL: always */
    int axis_count;
    struct {
        char *names[DT_CONSTANTS_MAX];
        int64_t values[DT_CONSTANTS_MAX];
        int count;
    } constants;
    struct dt_derived derived[DT_DERIVED_MAX];
    int derived_count;
    struct dt_rule *rules; /* once sealed, those with a sentence come first */
    int rule_count, listed;
    dt_complete *complete;
    const void *complete_context;
    struct dt_owned owned[DT_OWNED_MAX];
    int owned_count;
    struct dt_diagram *diagram;
    int64_t count; /* -1: unknown */
    /* [count] points packed into words, ascending; NULL when they are too many or too long */
    uint64_t *rows;
    uint8_t shifts[DT_AXES_MAX]; /* each axis's shift in a row */
    uint16_t masks[DT_AXES_MAX];
    struct {
        bool *kept;            /* for each rule: the diagram includes it */
        bool used;             /* the diagram lacks a rule: its points must be tested */
        double share;          /* estimated share of the diagram's points that pass, when used */
        struct dt_point known; /* a point that passes */
    } relaxation;
};

/* Fills rows, if there are not too many. */
dt_status dt_space_list(struct dt_space *space) DT_MUST_CHECK;
void dt_row_point(const struct dt_space *space, uint64_t row, struct dt_point *point);

/* A point of the diagram keeps the rules that the diagram lacks. */
bool dt_space_passes(const struct dt_space *space, const struct dt_point *point);

/* For a relaxed space: sets share and known. DT_EUNSUP: no feasible point was found. */
dt_status dt_space_probe(struct dt_space *space) DT_MUST_CHECK;

/* Computes the scope of values[] (axis order), derived names included. */
void dt_space_scope(const struct dt_space *space, const int64_t values[], int64_t scope[]);

/* A rule that cannot be computed is violated. */
bool dt_rule_holds(const struct dt_space *space, const struct dt_rule *rule, const int64_t scope[]);

/* It exists, or has another value than its default all the same. */
bool dt_value_shown(const struct dt_space *space, int axis, const int64_t values[]);

/* Sorts points and drops those that are there twice; returns how many are left. */
int64_t dt_points_sort(struct dt_point points[], int64_t n);

/* Adds the rule that the axes (ascending) have the values of one of the rows, of which it takes
 * copies. Rows may be there twice and in any order; all combinations are no rule. */
dt_status dt_space_add_cases(struct dt_space *space, const struct dt_cases *table) DT_MUST_CHECK;
struct dt_cases *dt_cases_copy(const struct dt_cases *table);
void dt_cases_free(struct dt_cases *table);
DT_FREE_AT(dt_cases_free, struct dt_cases)
bool dt_cases_has(const struct dt_space *space, const struct dt_cases *table,
                  const int64_t values[]);

/* Sets the point's case to the one that has the value `index` of an axis, agrees with the point in
 * the table's axes before it, and differs in the fewest behind it; false: there is none. */
bool dt_cases_move(const struct dt_cases *table, int axis, int index, struct dt_point *point);

/* order[k]: the column of the k-th axis by name, as lists that differ in the order
 * of their axes are one. */
void dt_cases_order(const struct dt_space *space, const struct dt_cases *table, int order[]);

/* "a=2 b=4" */
void dt_cases_text(const struct dt_space *space, const struct dt_cases *table,
                   const int64_t values[], struct dt_text *out);

/* Axis values of a point. */
void dt_point_values(const struct dt_space *space, const struct dt_point *point, int64_t values[]);

/* Writes "ranks=2 cfg=1 ..." for values that need not be feasible. */
void dt_values_text(const struct dt_space *space, const int64_t values[], struct dt_text *out);

#endif
