/* SPDX-License-Identifier: MIT */
/* What a space means, as text: spellings, comments, sentences, unused constants and the order of parameters and rules are
 * not in it. Texts that may have any byte are written with their length before them. */
#include "space/expr/expr_int.h"
#include "space/space_int.h"

#include <stdlib.h>
#include <string.h>

/* Names, not numbers: the text is hashed for keys of the store, and must not change when an operation is added. */
static const char *const operations[] = {[DT_OP_ADD] = "+",
                                         [DT_OP_SUBTRACT] = "-",
                                         [DT_OP_MULTIPLY] = "*",
                                         [DT_OP_DIVIDE] = "/",
                                         [DT_OP_MODULO] = "%",
                                         [DT_OP_EQUAL] = "==",
                                         [DT_OP_UNEQUAL] = "!=",
                                         [DT_OP_LESS] = "<",
                                         [DT_OP_LESS_EQUAL] = "<=",
                                         [DT_OP_GREATER] = ">",
                                         [DT_OP_GREATER_EQUAL] = ">=",
                                         [DT_OP_MIN] = "min",
                                         [DT_OP_MAX] = "max",
                                         [DT_OP_NEGATE] = "neg",
                                         [DT_OP_NOT] = "!",
                                         [DT_OP_BOOL] = "bool",
                                         [DT_OP_AND] = "&&",
                                         [DT_OP_OR] = "||",
                                         [DT_OP_QUOTIENT] = "quotient",
                                         [DT_OP_FLOOR] = "//",
                                         [DT_OP_FLOOR_MODULO] = "%%",
                                         [DT_OP_POWER] = "**"};

static void add_sized(const char *text, struct dt_text *out)
{
    dt_text_add(out, "%zu:%s", strlen(text), text);
}

/* A constant is its value: its name is a matter of spelling. */
static void add_name(const struct dt_space *space, int64_t at, struct dt_text *out)
{
    int constant = (int)at - space->axis_count;
    int derived = constant - space->constants.count;
    if (constant < 0)
        dt_text_add(out, "%s", space->axes[at].name);
    else if (derived < 0)
        dt_text_add(out, "%lld", (long long)space->constants.values[constant]);
    else
        dt_text_add(out, "%s", space->derived[derived].name);
}

static void add_value(const struct dt_axis *axis, int index, struct dt_text *out)
{
    dt_text_add(out, " ");
    if (axis->labels != NULL)
        add_sized(axis->labels[index], out);
    else
        dt_text_add(out, "%lld", (long long)axis->values[index]);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends the lines sorted, each once, and frees them. */
static void add_sorted(char *lines[], int count, struct dt_text *out)
{
    qsort(lines, (size_t)count, sizeof *lines, by_bytes);
    for (int i = 0; i < count; i++)
        if (i == 0 || strcmp(lines[i], lines[i - 1]) != 0)
            dt_text_add(out, "%s\n", lines[i]);
    for (int i = 0; i < count; i++)
        free(lines[i]);
}

/* Cases in any order, the axes by their names. */
static void add_table(const struct dt_space *space, const struct dt_cases *table,
                      struct dt_text *out)
{
    int order[DT_AXES_MAX], made = 0;
    char **lines = calloc((size_t)table->count + 1, sizeof *lines);
    dt_cases_order(space, table, order);
    dt_text_add(out, "cases %d", table->count);
    for (int i = 0; i < table->width; i++) {
        dt_text_add(out, " ");
        add_sized(space->axes[table->axes[order[i]]].name, out);
    }
    dt_text_add(out, "\n");
    for (int row = 0; lines != NULL && row < table->count; row++) {
        struct dt_text line = {0};
        for (int i = 0; i < table->width; i++)
            add_value(&space->axes[table->axes[order[i]]], table->rows[row].index[order[i]], &line);
        lines[made] = dt_text_take(&line);
        made += lines[made] != NULL;
    }
    out->failed = out->failed || made < table->count;
    if (lines != NULL)
        add_sorted(lines, made, out);
    free((void *)lines);
}

static void add_expr(const struct dt_space *space, const struct dt_expr *expr, struct dt_text *out)
{
    if (expr->python && expr->real)
        dt_text_add(out, "python "); /* decimals are equal or not by another measure */
    for (int i = 0; i < expr->count; i++) {
        const struct dt_expr_op *op = &expr->ops[i];
        dt_text_add(out, "%s", i > 0 ? " " : "");
        if (op->code == DT_OP_NUMBER)
            dt_text_add(out, "%lld", (long long)op->argument);
        else if (op->code == DT_OP_NAME)
            add_name(space, op->argument, out);
        else if (op->code == DT_OP_REAL)
            dt_text_add(out, "real/%llx", (unsigned long long)op->argument);
        else if (op->code == DT_OP_IN)
            dt_text_add(out, "in/%lld", (long long)op->argument);
        else
            dt_text_add(out, "%s", operations[op->code]);
    }
}

void dt_space_rule_code(const struct dt_space *space, int rule, struct dt_text *out)
{
    if (space->rules[rule].cases != NULL)
        add_table(space, space->rules[rule].cases, out);
    else
        add_expr(space, space->rules[rule].expr, out);
}

const char *dt_space_rule_text(const struct dt_space *space, int rule)
{
    return space->rules[rule].text;
}

static void add_axis(const struct dt_space *space, int at, struct dt_text *out)
{
    const struct dt_axis *axis = &space->axes[at];
    add_sized(axis->name, out);
    dt_text_add(out, " %s ", dt_role_text(axis->role));
    if (axis->variable != NULL)
        add_sized(axis->variable, out);
    dt_text_add(out, " %d/%d", axis->fallback, axis->unit);
    if (axis->truth || axis->digits > 0)
        dt_text_add(out, " %s/%d", axis->truth ? "truth" : "digits", axis->digits);
    for (int i = 0; i < axis->count; i++)
        add_value(axis, i, out);
    if (space->when[at] != NULL) {
        dt_text_add(out, " when ");
        add_expr(space, space->when[at], out);
    }
}

/* The axes or the rules, in any order. */
static void add_lines(const struct dt_space *space, bool rules, struct dt_text *out)
{
    int count = rules ? space->listed : space->axis_count, made = 0;
    char **lines = calloc((size_t)count + 1, sizeof *lines);
    for (int i = 0; lines != NULL && i < count; i++) {
        struct dt_text line = {0};
        if (rules)
            dt_space_rule_code(space, i, &line);
        else
            add_axis(space, i, &line);
        lines[made] = dt_text_take(&line);
        out->failed = out->failed || lines[made] == NULL;
        made += lines[made] != NULL;
    }
    out->failed = out->failed || lines == NULL;
    if (lines != NULL)
        add_sorted(lines, made, out);
    free(lines);
}

void dt_space_identity(const struct dt_space *space, struct dt_text *out)
{
    add_lines(space, false, out);
    dt_text_add(out, "rules\n");
    add_lines(space, true, out);
}
