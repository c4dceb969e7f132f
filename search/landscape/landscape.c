/* SPDX-License-Identifier: MIT */
/* A table of cells becomes a space: each column's values, sorted, are an axis, each row is a point. Fractions are
 * scaled to integers by a power of ten, which keeps their ratios; where none exists, they become ranks. */
#include "search/landscape/table.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct making {
    const struct dt_table *table;
    struct dt_landscape *landscape;
    struct dt_cell *values[DT_AXES_MAX]; /* sorted values of each column, owned */
    int counts[DT_AXES_MAX];
    bool text[DT_AXES_MAX]; /* the column contains texts: its numbers become texts, too */
};

static dt_status no_memory(const struct making *making)
{
    return dt_fail(DT_ENOMEM, "out of memory while reading %s", making->table->what);
}

static int by_number(const void *a, const void *b)
{
    double x = ((const struct dt_cell *)a)->number, y = ((const struct dt_cell *)b)->number;
    return (x > y) - (x < y);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(((const struct dt_cell *)a)->text, ((const struct dt_cell *)b)->text);
}

/* A number in a column of texts is an error of the file: they cannot be compared. */
static dt_status gather(struct making *making, int column)
{
    const struct dt_table *table = making->table;
    size_t n = (size_t)table->count, width = (size_t)table->column_count;
    struct dt_cell *values = calloc(n, sizeof *values);
    if (values == NULL)
        return no_memory(making);
    making->values[column] = values;
    making->text[column] = table->cells[column].text != NULL;
    for (size_t k = 0; k < n; k++) {
        values[k] = table->cells[k * width + (size_t)column];
        if ((values[k].text != NULL) != making->text[column])
            return dt_fail(DT_EUSAGE, "%s: '%s' is a text in some plans and a number in others",
                           table->what, table->columns[column].name);
    }
    int (*order)(const void *, const void *) = making->text[column] ? by_text : by_number;
    qsort(values, n, sizeof *values, order);
    int count = 0;
    for (size_t k = 0; k < n; k++)
        if (count == 0 || order(&values[count - 1], &values[k]) != 0)
            values[count++] = values[k];
    making->counts[column] = count;
    return DT_OK;
}

/* The power of ten that makes all values integers, or 0. */
static double whole(const struct dt_cell values[], int count)
{
    double factor = 1;
    for (int power = 0; power <= 9; power++, factor *= 10) {
        bool all = true;
        for (int i = 0; i < count && all; i++) {
            double scaled = values[i].number * factor;
            all = fabs(scaled) < 9e15 && fabs(scaled - round(scaled)) <= 1e-12 * fabs(scaled);
        }
        if (all)
            return factor;
    }
    return 0;
}

/* A label has no space, comma or '=' in a plan's text. */
static char *label_of(const char *text)
{
    char *label = strdup(text[0] != '\0' ? text : "_");
    for (char *at = label; at != NULL && *at != '\0'; at++)
        if (strchr(" ,=\t\r\n", *at) != NULL)
            *at = '_';
    return label;
}

static dt_status add_labels(struct making *making, int column)
{
    int count = making->counts[column];
    const char **labels = calloc((size_t)count + 1, sizeof *labels);
    if (labels == NULL)
        return no_memory(making);
    dt_status status = DT_OK;
    for (int i = 0; i < count && status == DT_OK; i++)
        if ((labels[i] = label_of(making->values[column][i].text)) == NULL)
            status = no_memory(making);
    const struct dt_axis axis = {.name = making->table->columns[column].name,
                                 .role = making->table->columns[column].role,
                                 .count = count,
                                 .labels = labels};
    if (status == DT_OK)
        status = dt_space_add_axis(making->landscape->space, &axis);
    for (int i = 0; i < count; i++)
        free((char *)labels[i]);
    free(labels);
    return status;
}

static dt_status add_numbers(struct making *making, int column)
{
    int count = making->counts[column];
    const struct dt_cell *cells = making->values[column];
    double factor = whole(cells, count);
    int64_t *values = calloc((size_t)count + 1, sizeof *values);
    if (values == NULL)
        return no_memory(making);
    for (int i = 0; i < count; i++)
        values[i] = factor > 0 ? llround(cells[i].number * factor) : i;
    const struct dt_axis axis = {.name = making->table->columns[column].name,
                                 .role = making->table->columns[column].role,
                                 .count = count,
                                 .values = values};
    dt_status status = dt_space_add_axis(making->landscape->space, &axis);
    free(values);
    return status;
}

static dt_status keep_originals(struct making *making, int column)
{
    int count = making->counts[column];
    struct dt_original *originals = calloc((size_t)count + 1, sizeof *originals);
    if (originals == NULL)
        return no_memory(making);
    making->landscape->originals[column] = originals;
    for (int i = 0; i < count; i++) {
        const struct dt_cell *cell = &making->values[column][i];
        originals[i].number = cell->text != NULL ? NAN : cell->number;
        if (cell->text != NULL && (originals[i].text = strdup(cell->text)) == NULL)
            return no_memory(making);
    }
    return DT_OK;
}

static void locate(const struct making *making, int64_t row, struct dt_point *point)
{
    int width = making->table->column_count;
    *point = (struct dt_point){{0}};
    for (int i = 0; i < width; i++) {
        const struct dt_cell *values = making->values[i];
        assert(values != NULL);
        const struct dt_cell *found =
            bsearch(&making->table->cells[row * width + i], values, (size_t)making->counts[i],
                    sizeof *values, making->text[i] ? by_text : by_number);
        point->index[i] = (int32_t)(found - values);
    }
}

/* Appends the entry's key with its NUL; *offset is its start. */
static void add_key(const struct making *making, int64_t row, struct dt_text *keys)
{
    const struct dt_table *table = making->table;
    const char *key = table->entries[row].key;
    if (key != NULL)
        dt_text_add(keys, "%s", key);
    for (int i = 0; key == NULL && i < table->column_count; i++) {
        dt_text_add(keys, "%s", i > 0 ? "," : "");
        dt_cell_text(&table->cells[row * table->column_count + i], keys);
    }
    dt_text_add_bytes(keys, "", 1);
}

/* The first row of a plan counts; repeated rows are dropped. */
static dt_status fill(struct making *making, const struct dt_point points[])
{
    const struct dt_table *table = making->table;
    struct dt_landscape *landscape = making->landscape;
    struct dt_text *keys = &landscape->texts;
    size_t *offsets = calloc((size_t)table->count, sizeof *offsets);
    landscape->count = dt_space_count(landscape->space);
    landscape->entries = calloc((size_t)landscape->count, sizeof *landscape->entries);
    if (offsets == NULL || landscape->entries == NULL) {
        free(offsets);
        return no_memory(making);
    }
    for (int64_t row = table->count - 1; row >= 0; row--) {
        int64_t k = dt_space_index(landscape->space, &points[row]);
        landscape->entries[k] = table->entries[row];
        offsets[k] = keys->size;
        add_key(making, row, keys);
        if (row == table->start)
            landscape->start = k;
    }
    dt_status status = dt_text_status(keys);
    for (int64_t k = 0; k < landscape->count && status == DT_OK; k++)
        landscape->entries[k].key = dt_text_at(keys) + offsets[k];
    free(offsets);
    return status;
}

static dt_status measure(struct making *making)
{
    struct dt_landscape *landscape = making->landscape;
    landscape->optimum = INFINITY;
    landscape->slowest = 0;
    for (int64_t k = 0; k < landscape->count; k++) {
        double value = landscape->entries[k].value;
        landscape->failed += isnan(value);
        landscape->optimum = value < landscape->optimum ? value : landscape->optimum;
        landscape->slowest = value > landscape->slowest ? value : landscape->slowest;
    }
    if (landscape->failed == landscape->count)
        return dt_fail(DT_EUSAGE, "%s holds no plan that was measured", making->table->what);
    landscape->samples = malloc((size_t)making->table->sample_count * sizeof(double) + 1);
    if (landscape->samples == NULL)
        return no_memory(making);
    if (making->table->sample_count > 0)
        memcpy(landscape->samples, making->table->samples,
               (size_t)making->table->sample_count * sizeof(double));
    return DT_OK;
}

static dt_status make(struct making *making)
{
    const struct dt_table *table = making->table;
    struct dt_landscape *landscape = making->landscape;
    DT_TRY(dt_space_new(&landscape->space));
    for (int i = 0; i < table->column_count; i++) {
        DT_TRY(gather(making, i));
        DT_TRY(making->text[i] ? add_labels(making, i) : add_numbers(making, i));
        DT_TRY(keep_originals(making, i));
    }
    struct dt_point *points = calloc((size_t)table->count, sizeof *points);
    if (points == NULL)
        return no_memory(making);
    for (int64_t row = 0; row < table->count; row++)
        locate(making, row, &points[row]);
    dt_status status = dt_space_seal_points(landscape->space, points, table->count);
    if (status == DT_OK)
        status = fill(making, points);
    free(points);
    DT_TRY(status);
    return measure(making);
}

dt_status dt_landscape_make(const struct dt_table *table, struct dt_landscape **out)
{
    struct dt_landscape *landscape = calloc(1, sizeof *landscape);
    struct making making = {.table = table, .landscape = landscape};
    if (landscape == NULL)
        return no_memory(&making);
    snprintf(landscape->title, sizeof landscape->title, "%s", table->title);
    snprintf(landscape->device, sizeof landscape->device, "%s", table->device);
    snprintf(landscape->unit, sizeof landscape->unit, "%s", table->unit);
    landscape->seconds = table->seconds;
    landscape->start = -1;
    dt_status status = table->count > 0 && table->column_count > 0
                           ? make(&making)
                           : dt_fail(DT_EUSAGE, "%s holds no plans", table->what);
    for (int i = 0; i < table->column_count; i++)
        free(making.values[i]);
    if (status < 0) {
        dt_landscape_free(landscape);
        return status;
    }
    *out = landscape;
    return DT_OK;
}

void dt_landscape_free(struct dt_landscape *landscape)
{
    if (landscape == NULL)
        return;
    for (int i = 0; i < DT_AXES_MAX && landscape->originals[i] != NULL; i++) {
        for (int k = 0; k < dt_space_axis(landscape->space, i)->count; k++)
            free((char *)landscape->originals[i][k].text);
        free(landscape->originals[i]);
    }
    dt_space_free(landscape->space);
    dt_text_fini(&landscape->texts);
    free(landscape->entries);
    free(landscape->samples);
    free(landscape);
}
