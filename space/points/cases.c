/* SPDX-License-Identifier: MIT */
/* A list of cases as a rule: the rows are sorted, so that a case, and all cases with the same beginning, are found by halving. */
#include "space/space_int.h"

#include <stdlib.h>
#include <string.h>

void dt_cases_free(struct dt_cases *table)
{
    if (table != NULL)
        free(table->rows);
    free(table);
}

struct dt_cases *dt_cases_copy(const struct dt_cases *table)
{
    size_t bytes = (size_t)table->count * sizeof *table->rows;
    struct dt_cases *copy = malloc(sizeof *copy);
    struct dt_point *rows = malloc(bytes + 1);
    if (copy == NULL || rows == NULL) {
        free(copy);
        free(rows);
        return NULL;
    }
    *copy = *table;
    copy->rows = rows;
    memcpy(rows, table->rows, bytes);
    return copy;
}

/* The first row that begins with the key's first `length` values, or with greater ones. */
static int first_row(const struct dt_cases *table, const struct dt_point *key, int length)
{
    int low = 0, high = table->count;
    while (low < high) {
        int middle = low + (high - low) / 2, i = 0;
        while (i < length && table->rows[middle].index[i] == key->index[i])
            i++;
        if (i < length && table->rows[middle].index[i] < key->index[i])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool begins(const struct dt_cases *table, int row, const struct dt_point *key, int length)
{
    return row < table->count &&
           memcmp(table->rows[row].index, key->index, (size_t)length * sizeof key->index[0]) == 0;
}

bool dt_cases_has(const struct dt_space *space, const struct dt_cases *table,
                  const int64_t values[])
{
    struct dt_point key = {{0}};
    for (int i = 0; i < table->width; i++)
        key.index[i] = dt_axis_find(&space->axes[table->axes[i]], values[table->axes[i]]);
    return begins(table, first_row(table, &key, table->width), &key, table->width);
}

bool dt_cases_move(const struct dt_cases *table, int axis, int index, struct dt_point *point)
{
    struct dt_point key = {{0}};
    int at = 0, best = -1, least = DT_AXES_MAX;
    for (int i = 0; i < table->width; i++)
        key.index[i] = point->index[table->axes[i]];
    while (at < table->width && table->axes[at] != axis)
        at++;
    key.index[at] = index;
    for (int row = first_row(table, &key, at + 1); begins(table, row, &key, at + 1); row++) {
        int changes = 0;
        for (int i = at + 1; i < table->width; i++)
            changes += table->rows[row].index[i] != key.index[i];
        best = changes < least ? row : best;
        least = changes < least ? changes : least;
    }
    for (int i = 0; best >= 0 && i < table->width; i++)
        point->index[table->axes[i]] = table->rows[best].index[i];
    return best >= 0;
}

int dt_space_cases(const struct dt_space *space, int rule)
{
    return space->rules[rule].cases != NULL ? space->rules[rule].cases->count : 0;
}

void dt_cases_order(const struct dt_space *space, const struct dt_cases *table, int order[])
{
    for (int i = 0; i < table->width; i++) {
        int at = i;
        const char *name = space->axes[table->axes[i]].name;
        for (; at > 0 && strcmp(space->axes[table->axes[order[at - 1]]].name, name) > 0; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
}

void dt_space_case(const struct dt_space *space, int rule, int i, struct dt_text *out)
{
    const struct dt_cases *table = space->rules[rule].cases;
    int order[DT_AXES_MAX];
    dt_cases_order(space, table, order);
    for (int k = 0; k < table->width; k++) {
        const struct dt_axis *axis = &space->axes[table->axes[order[k]]];
        dt_text_add(out, "%s%s=", k > 0 ? " " : "", axis->name);
        dt_axis_text(axis, axis->values[table->rows[i].index[order[k]]], out);
    }
}

void dt_cases_text(const struct dt_space *space, const struct dt_cases *table,
                   const int64_t values[], struct dt_text *out)
{
    for (int i = 0; i < table->width; i++) {
        const struct dt_axis *axis = &space->axes[table->axes[i]];
        dt_text_add(out, "%s%s=", i > 0 ? " " : "", axis->name);
        dt_axis_text(axis, values[table->axes[i]], out);
    }
}
