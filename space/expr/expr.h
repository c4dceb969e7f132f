/* SPDX-License-Identifier: MIT */
/* expr - the language of rules: numbers, + - * / // % **, comparisons, && || ! (and, or, not),
 * min(a, b) max(a, b) abs(a), true and false, `name in (1, 2, 4)`, `name in range(8, 65, 8)`, and
 * `kind == "fast"`, with quotes of either sort, where a name's values have labels
 *
 * Compiled once against a list of names, then evaluated on an array of values. Comparisons chain as
 * in mathematics and in Python: `32 <= x * y <= 1024`. Integers are computed as in C, `//` rounds
 * down; decimals are compared to 12 digits. A division by zero or an overflow makes the rule fail
 * (dt_expr_eval reports it). At most 4096 bytes, 512 operations, 32 levels. Rules in Python
 * (dt_vocabulary.python) have Python's operators and results instead.
 */
#ifndef DT_SPACE_EXPR_EXPR_H
#define DT_SPACE_EXPR_EXPR_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct dt_expr; /* immutable after compilation; any thread may evaluate it */

/* names: n names; name i has the value values[i] in eval. DT_EUSAGE with the column of a mistake:
 * "rule 'heads %% ulises == 0', column 9: unknown name 'ulises', did you mean 'ulysses'?" */
dt_status dt_expr_new(const char *text, const char *const names[], int n,
                      struct dt_expr **expr) DT_MUST_CHECK;

/* Like dt_expr_new, with labels: name i, when labels[i] is not NULL, has counts[i] labels, which
 * must outlive the rule. A label in quotes, compared with the name by ==, !=
 * or in, is its index. */
struct dt_vocabulary {
    const char *const *names;
    const char *const *const *labels;
    const int *counts;
    int count;
    const int *digits; /* each name's digits after the decimal point; NULL: integers */
    bool python;       /* the rule is an expression of Python */
};
dt_status dt_expr_new_of(const char *text, const struct dt_vocabulary *words,
                         struct dt_expr **expr) DT_MUST_CHECK;
void dt_expr_free(struct dt_expr *expr);
DT_FREE_AT(dt_expr_free, struct dt_expr)

/* Bit i set: name i is used (i < 128). */
struct dt_names {
    uint64_t bits[2];
};
struct dt_names dt_expr_names(const struct dt_expr *expr);
const char *dt_expr_text(const struct dt_expr *expr);

/* *result is the value (comparisons give 0 or 1; a decimal gives whether it is not zero). DT_EUSAGE
 * on division by zero or overflow, with a sentence. */
dt_status dt_expr_eval(const struct dt_expr *expr, const int64_t values[],
                       int64_t *result) DT_MUST_CHECK;

/* The value as a number: an integer, or a double. */
struct dt_number {
    bool real;
    int64_t integer;
    double value; /* the value of either kind */
};
dt_status dt_expr_number(const struct dt_expr *expr, const int64_t values[],
                         struct dt_number *number) DT_MUST_CHECK;

/* The text with the values of the names: "heads=6 % (ulysses=4) == 0" */
void dt_expr_explain(const struct dt_expr *expr, const int64_t values[], struct dt_text *out);

#endif
