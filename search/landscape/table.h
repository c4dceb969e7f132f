/* SPDX-License-Identifier: MIT */
/* table - filled by the reader of a file format; landscape.c makes a landscape of it
 *
 * A reader gets a source and adds columns, then rows: a plan and its results. Texts are borrowed
 * from the source (or whatever the reader keeps in `held`) until the landscape is made.
 */
#ifndef DT_SEARCH_LANDSCAPE_TABLE_H
#define DT_SEARCH_LANDSCAPE_TABLE_H

#include "base/array.h"
#include "base/json.h"
#include "search/landscape/landscape.h"

struct dt_source {
    const char *what; /* the path: first words of each error message */
    const char *text;
    size_t size;
    const json_t *root; /* NULL: it is not one JSON object */
};

/* A value of a plan: a number, or a text. */
struct dt_cell {
    double number;
    const char *text; /* NULL: a number */
    bool truth;       /* the number is a boolean */
    bool real;        /* the number has a fraction, possibly .0 */
};

struct dt_column {
    const char *name;
    enum dt_role role;
};

struct dt_table {
    const char *what;
    char title[256], device[128], unit[16];
    double seconds;
    struct dt_column columns[DT_AXES_MAX];
    int column_count;
    struct dt_cell *cells;    /* [count][column_count] */
    struct dt_entry *entries; /* [count]; a NULL key is made from the cells */
    int64_t count;
    double *samples;
    int64_t sample_count;
    int64_t start; /* row of the default plan; -1 */
    void *held;    /* owner of borrowed texts, freed last */
    void (*free_held)(void *);
};

struct dt_reader {
    const char *name;
    bool (*knows)(const struct dt_source *source);
    dt_status (*read)(const struct dt_source *source, struct dt_table *table);
};

extern const struct dt_reader dt_reader_kernel_tuner, dt_reader_t4;

dt_status dt_table_add_column(struct dt_table *table, const char *name,
                              enum dt_role role) DT_MUST_CHECK;

/* cells: [column_count]; samples: [entry->count], copied. */
dt_status dt_table_add_row(struct dt_table *table, const struct dt_cell cells[],
                           const struct dt_entry *entry, const double samples[]) DT_MUST_CHECK;

/* A number, a text, true or false. */
dt_status dt_cell_read(const json_t *value, const char *what, const char *name,
                       struct dt_cell *cell) DT_MUST_CHECK;

/* Numbers of an array (NULL: none) into *samples, which grows and is the caller's;
 * others are an error. */
dt_status dt_table_numbers(const json_t *array, const char *what, double **samples,
                           int *count) DT_MUST_CHECK;

#endif
