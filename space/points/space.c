/* SPDX-License-Identifier: MIT */
/* Queries of a sealed space. */
#include "space/diagram/diagram.h"
#include "space/expr/expr_int.h"
#include "space/space_int.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A space whose points are given, not enumerated: sorted into the order of an enumeration. */

static int compare_words(const void *a, const void *b)
{
    const struct dt_point *p = a, *q = b;
    for (int i = 0; i < DT_AXES_MAX; i++)
        if (p->index[i] != q->index[i])
            return p->index[i] < q->index[i] ? -1 : 1;
    return 0;
}

static dt_status check_point(const struct dt_space *space, const struct dt_point *point)
{
    for (int i = 0; i < space->axis_count; i++)
        if (point->index[i] < 0 || point->index[i] >= space->axes[i].count)
            return dt_fail(DT_EUSAGE, "a point's value %d of '%s' is none of its %d values",
                           point->index[i], space->axes[i].name, space->axes[i].count);
    return DT_OK;
}

/* Unused indices beyond the last axis are set to 0, so that equal points compare equal. */
static void copy_point(const struct dt_space *space, const struct dt_point *from,
                       struct dt_point *to)
{
    *to = (struct dt_point){{0}};
    for (int i = 0; i < space->axis_count; i++)
        to->index[i] = from->index[i];
}

int64_t dt_points_sort(struct dt_point points[], int64_t n)
{
    int64_t kept = 0;
    qsort(points, (size_t)n, sizeof *points, compare_words);
    for (int64_t k = 0; k < n; k++)
        if (k == 0 || compare_words(&points[kept - 1], &points[k]) != 0)
            points[kept++] = points[k];
    return kept;
}

dt_status dt_space_seal_points(struct dt_space *space, const struct dt_point points[], int64_t n)
{
    for (int64_t k = 0; k < n; k++)
        DT_TRY(check_point(space, &points[k]));
    dt_auto_free struct dt_point *sorted = calloc((size_t)n + 1, sizeof *sorted);
    if (sorted == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a space of %lld plans", (long long)n);
    for (int64_t k = 0; k < n; k++)
        copy_point(space, &points[k], &sorted[k]);
    int64_t kept = dt_points_sort(sorted, n);
    DT_TRY(dt_diagram_of(space->axis_count, sorted, kept, &space->diagram));
    space->count = space->diagram->count;
    return dt_space_list(space);
}

/* All points of a space as a sorted list of words: the indices of a point side by side, the first
 * axis in the highest bits, so that words are in the order of the points. */

/* Computes the bits of each axis; false: they do not fit a word. */
static bool pack_points(struct dt_space *space)
{
    int shift = 0;
    for (int i = space->axis_count - 1; i >= 0; i--) {
        int bits = 0;
        while (space->axes[i].count > 1 << bits)
            bits++;
        space->shifts[i] = (uint8_t)(bits > 0 ? shift : 0);
        space->masks[i] = (uint16_t)((1 << bits) - 1);
        shift += bits;
        if (shift > 64)
            return false;
    }
    return true;
}

static uint64_t *emit_rows(const struct dt_space *space, int depth, uint32_t node, uint64_t word,
                           uint64_t *out)
{
    const struct dt_layer *layer = &space->diagram->layers[depth];
    uint32_t first = layer->shared ? 0 : layer->begin[node];
    uint32_t end = layer->shared ? layer->edges : layer->begin[node + 1];
    int shift = space->shifts[layer->axis];
    bool last = depth + 1 == space->diagram->layer_count;
    for (uint32_t edge = first; edge < end; edge++) {
        uint64_t longer = word | (uint64_t)layer->values[edge] << shift;
        if (last)
            *out++ = longer;
        else
            out = emit_rows(space, depth + 1, layer->children[layer->shared ? node : edge], longer,
                            out);
    }
    return out;
}

/* Radix sort by bytes, from the lowest. */
static void sort_rows(uint64_t *rows, uint64_t *spare, size_t n)
{
    for (int shift = 0; shift < 64; shift += 8) {
        size_t begin[257] = {0};
        for (size_t i = 0; i < n; i++)
            begin[(rows[i] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++)
            begin[i + 1] += begin[i];
        for (size_t i = 0; i < n; i++)
            spare[begin[rows[i] >> shift & 255]++] = rows[i];
        uint64_t *other = rows;
        rows = spare;
        spare = other;
    }
}

dt_status dt_space_list(struct dt_space *space)
{
    size_t n = (size_t)space->count;
    bool in_order = true;
    if (space->count <= 0 || space->count > DT_ROWS_MAX || !pack_points(space))
        return DT_OK;
    for (int i = 0; i < space->diagram->layer_count; i++)
        in_order = in_order && space->diagram->layers[i].axis == i;
    dt_auto_free uint64_t *rows = malloc(n * sizeof *rows), *spare = NULL;
    if (!in_order)
        spare = malloc(n * sizeof *spare);
    if (rows == NULL || (!in_order && spare == NULL))
        return dt_fail(DT_ENOMEM, "out of memory while listing a space of plans");
    emit_rows(space, 0, 0, 0, rows);
    if (!in_order)
        sort_rows(rows, spare, n); /* an even number of passes: the result is in rows */
    space->rows = rows;
    rows = NULL;
    return DT_OK;
}

void dt_row_point(const struct dt_space *space, uint64_t row, struct dt_point *point)
{
    *point = (struct dt_point){{0}};
    for (int i = 0; i < space->axis_count; i++)
        point->index[i] = (int32_t)(row >> space->shifts[i] & space->masks[i]);
}

static int64_t row_find(const struct dt_space *space, const struct dt_point *point)
{
    uint64_t row = 0;
    int64_t low = 0, high = space->count;
    for (int i = 0; i < space->axis_count; i++) {
        if (point->index[i] < 0 || point->index[i] >= space->axes[i].count)
            return -1;
        row |= (uint64_t)point->index[i] << space->shifts[i];
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (space->rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < space->count && space->rows[low] == row ? low : -1;
}

int dt_space_axes(const struct dt_space *space)
{
    return space->axis_count;
}

const struct dt_axis *dt_space_axis(const struct dt_space *space, int axis)
{
    return &space->axes[axis];
}

int dt_space_find(const struct dt_space *space, const char *name)
{
    for (int i = 0; i < space->axis_count; i++)
        if (strcmp(space->axes[i].name, name) == 0)
            return i;
    return -1;
}

int dt_space_role(const struct dt_space *space, enum dt_role role)
{
    for (int i = 0; i < space->axis_count; i++)
        if (space->axes[i].role == role)
            return i;
    return -1;
}

bool dt_space_constant(const struct dt_space *space, const char *name, int64_t *value)
{
    for (int i = 0; i < space->constants.count; i++) {
        if (strcmp(space->constants.names[i], name) == 0) {
            *value = space->constants.values[i];
            return true;
        }
    }
    return false;
}

double dt_space_cartesian(const struct dt_space *space)
{
    double product = space->axis_count > 0 ? 1 : 0;
    for (int i = 0; i < space->axis_count; i++)
        product *= space->axes[i].count;
    return product;
}

int64_t dt_space_count(const struct dt_space *space)
{
    return space->count;
}

double dt_space_estimate(const struct dt_space *space)
{
    if (space->count >= 0)
        return (double)space->count;
    return space->diagram->weight * (space->relaxation.used ? space->relaxation.share : 1);
}

size_t dt_space_bytes(const struct dt_space *space)
{
    size_t rows = space->rows != NULL ? (size_t)space->count * sizeof *space->rows : 0;
    return dt_diagram_bytes(space->diagram) + rows;
}

void dt_space_at(const struct dt_space *space, int64_t k, struct dt_point *point)
{
    assert(k >= 0 && k < space->count);
    if (space->rows != NULL)
        dt_row_point(space, space->rows[k], point);
    else
        dt_diagram_at(space->diagram, (uint64_t)k, point);
}

int64_t dt_space_index(const struct dt_space *space, const struct dt_point *point)
{
    assert(space->count >= 0);
    return space->rows != NULL ? row_find(space, point) : dt_diagram_index(space->diagram, point);
}

bool dt_space_passes(const struct dt_space *space, const struct dt_point *point)
{
    int64_t values[DT_AXES_MAX], scope[DT_SCOPE_MAX];
    if (!space->relaxation.used)
        return true;
    dt_point_values(space, point, values);
    dt_space_scope(space, values, scope);
    for (int i = 0; i < space->rule_count; i++)
        if (!space->relaxation.kept[i] && !dt_rule_holds(space, &space->rules[i], scope))
            return false;
    return true;
}

/* For a space that was not enumerated: tests every rule. */
static bool keeps_rules(const struct dt_space *space, const struct dt_point *point)
{
    int64_t values[DT_AXES_MAX], scope[DT_SCOPE_MAX];
    dt_point_values(space, point, values);
    dt_space_scope(space, values, scope);
    for (int i = 0; i < space->rule_count; i++)
        if (!dt_rule_holds(space, &space->rules[i], scope))
            return false;
    return true;
}

bool dt_space_feasible(const struct dt_space *space, const struct dt_point *point)
{
    if (space->diagram == NULL)
        return keeps_rules(space, point);
    return dt_diagram_has(space->diagram, point) && dt_space_passes(space, point);
}

int dt_space_rules(const struct dt_space *space)
{
    return space->listed;
}

/* Only those derived names whose bit is set. */
static void space_derive(const struct dt_space *space, uint32_t derived, int64_t scope[])
{
    int first = space->axis_count + space->constants.count;
    for (int i = 0; derived != 0; i++, derived >>= 1)
        if (derived & 1)
            scope[first + i] = space->derived[i].function(space->derived[i].context, scope);
}

void dt_space_scope(const struct dt_space *space, const int64_t values[], int64_t scope[])
{
    for (int i = 0; i < space->axis_count; i++)
        scope[i] = values[i];
    for (int i = 0; i < space->constants.count; i++)
        scope[space->axis_count + i] = space->constants.values[i];
    space_derive(space, (UINT32_C(1) << space->derived_count) - 1, scope);
}

bool dt_rule_holds(const struct dt_space *space, const struct dt_rule *rule, const int64_t scope[])
{
    int64_t value;
    if (rule->cases != NULL)
        return dt_cases_has(space, rule->cases, scope);
    return dt_expr_eval(rule->expr, scope, &value) == DT_OK && value != 0;
}

/* Number of points that the rules of the mask leave, counted with a diagram of its
 * own; -1: not counted. */
static int64_t left_by(const struct dt_space *space, const bool rules[])
{
    /* One or two tenths of a second for all rules together. */
    int64_t work = 100000000 / space->rule_count, left = -1;
    const struct dt_bound bound = {.work = work > 100000 ? work : 100000, .edges = 1000000};
    struct dt_diagram *diagram = NULL;
    int order[DT_AXES_MAX];
    for (int i = 0; i < space->axis_count; i++)
        order[i] = i;
    if (dt_diagram_new(space, order, rules, &bound, &diagram) == DT_OK)
        left = diagram->count;
    dt_diagram_free(diagram);
    return left;
}

/* Number of points of the full product that the rule alone removes. */
static int64_t count_removed(const struct dt_space *space, int rule)
{
    int64_t all = 1, left = -1;
    dt_auto_free bool *only = calloc((size_t)space->rule_count, sizeof *only);
    for (int i = 0; i < space->axis_count; i++)
        if (__builtin_mul_overflow(all, space->axes[i].count, &all))
            all = -1;
    if (only != NULL && all > 0) {
        only[rule] = true;
        left = left_by(space, only);
    }
    return left >= 0 ? all - left : -1;
}

/* One rule that leaves no point, else all but those that can be left out one after the other while
 * no point is left; returns how many they are, 0: unknown. What takes too long to count stays. */
static int find_conflict(const struct dt_space *space, bool rules[])
{
    int count = space->listed;
    for (int i = 0; i < space->listed; i++) {
        rules[i] = true;
        if (left_by(space, rules) == 0)
            return 1;
        rules[i] = false;
    }
    for (int i = 0; i < space->listed; i++)
        rules[i] = true;
    if (count == 0 || left_by(space, rules) != 0)
        return 0;
    for (int i = 0; i < space->listed; i++) {
        rules[i] = false;
        rules[i] = left_by(space, rules) != 0;
        count -= !rules[i];
    }
    return count;
}

dt_status dt_space_none(const struct dt_space *space)
{
    dt_auto_text text = {0};
    int64_t values[DT_AXES_MAX];
    struct dt_point point;
    dt_auto_free bool *rules = calloc((size_t)space->rule_count + 1, sizeof *rules);
    int count = rules != NULL ? find_conflict(space, rules) : 0;
    bool numbers = count == 0; /* those of the default plan say more */
    const char *before = count == 1 ? ": the rule " : ": together these rules remove every plan: ";
    for (int i = 0; count > 0 && i < space->listed; i++) {
        const struct dt_rule *rule = &space->rules[i];
        if (!rules[i])
            continue;
        numbers = numbers || rule->derived != 0;
        dt_text_add(&text, "%s'%s'", before, rule->text);
        if (strcmp(rule->text, rule->sentence) != 0)
            dt_text_add(&text, count == 1 ? " removes every plan: %s" : " (%s)", rule->sentence);
        else if (count == 1)
            dt_text_add(&text, " removes every plan");
        before = ", ";
    }
    if (numbers && dt_space_parse(space, "", values) == DT_OK &&
        dt_space_locate(space, values, &point) < 0)
        dt_text_add(&text, "; the default plan: %s", dt_message());
    return dt_fail(DT_EINFEASIBLE, "no feasible plan among %.0f%s", dt_space_cartesian(space),
                   dt_text_at(&text));
}

struct dt_rule_info dt_space_rule(const struct dt_space *space, int rule)
{
    const struct dt_rule *row = &space->rules[rule];
    return (struct dt_rule_info){
        .expr = row->text, .sentence = row->sentence, .removes = count_removed(space, rule)};
}

/* Points that differ on one axis, and where values belong together, in what follows from it: a
 * neighbour by an axis differs in no axis before it, so none is found twice. */

/* The point with another value of an axis, and what goes with it: in a list of cases, another case;
 * where axes do not exist any more, their defaults. false: there is none. */
static bool move_to(const struct dt_space *space, const struct dt_point *point, int axis, int index,
                    struct dt_point *moved)
{
    bool exists = true;
    *moved = *point;
    moved->index[axis] = index;
    for (int i = 0; exists && i < space->rule_count; i++)
        if (space->rules[i].cases != NULL && (space->rules[i].axes >> axis & 1) != 0)
            exists = dt_cases_move(space->rules[i].cases, axis, index, moved);
    for (int i = axis + 1; i < space->axis_count; i++)
        if (!dt_point_has(space, moved, i))
            moved->index[i] = space->axes[i].fallback;
    return exists;
}

int dt_space_neighbours(const struct dt_space *space, const struct dt_point *point,
                        struct dt_point out[], int room)
{
    int found = 0;
    for (int axis = 0; axis < space->axis_count; axis++)
        for (int i = 0; i < space->axes[axis].count; i++) {
            struct dt_point moved;
            if (i == point->index[axis] || !move_to(space, point, axis, i, &moved) ||
                !dt_space_feasible(space, &moved))
                continue;
            if (found < room)
                out[found] = moved;
            found++;
        }
    return found;
}

/* The meaning of a space, as text: spellings, comments, sentences, unused constants and the
 * order of parameters and rules are not in it. Texts that may have any byte are written with
 * their length before them. */

/* Names, not numbers: the text is hashed for keys of the store, and must not change when
 * an operation is added. */
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
    dt_auto_free char **lines = calloc((size_t)table->count + 1, sizeof *lines);
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
    dt_auto_free char **lines = calloc((size_t)count + 1, sizeof *lines);
    for (int i = 0; lines != NULL && i < count; i++) {
        struct dt_text line = {0};
        if (rules)
            dt_space_rule_code(space, i, &line);
        else if (space->axes[i].role != DT_ROLE_REPLICAS)
            add_axis(space, i, &line);
        else
            continue;
        lines[made] = dt_text_take(&line);
        out->failed = out->failed || lines[made] == NULL;
        made += lines[made] != NULL;
    }
    out->failed = out->failed || lines == NULL;
    if (lines != NULL)
        add_sorted(lines, made, out);
}

void dt_space_identity(const struct dt_space *space, struct dt_text *out)
{
    add_lines(space, false, out);
    dt_text_add(out, "rules\n");
    add_lines(space, true, out);
}
