/* SPDX-License-Identifier: MIT */
#include "search/landscape/table.h"

#include "base/array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dt_status dt_table_add_column(struct dt_table *table, const char *name, enum dt_role role)
{
    if (table->column_count == DT_AXES_MAX)
        return dt_fail(DT_EUSAGE, "%s has more than %d parameters", table->what, DT_AXES_MAX);
    table->columns[table->column_count++] = (struct dt_column){.name = name, .role = role};
    return DT_OK;
}

dt_status dt_table_add_row(struct dt_table *table, const struct dt_cell cells[],
                           const struct dt_entry *entry, const double samples[])
{
    size_t width = (size_t)table->column_count;
    if (table->count == DT_TABLE_ROWS)
        return dt_fail(DT_EUSAGE, "%s has more than %d plans", table->what, DT_TABLE_ROWS);
    DT_TRY(DT_GROW(table->cells, (size_t)table->count * width, width));
    DT_TRY(DT_GROW(table->entries, table->count, 1));
    DT_TRY(DT_GROW(table->samples, table->sample_count, entry->count));
    if (width > 0)
        memcpy(&table->cells[(size_t)table->count * width], cells, width * sizeof *cells);
    if (entry->count > 0)
        memcpy(&table->samples[table->sample_count], samples,
               (size_t)entry->count * sizeof *samples);
    table->entries[table->count] = *entry;
    table->entries[table->count].first = table->sample_count;
    table->sample_count += entry->count;
    table->count++;
    return DT_OK;
}

void dt_table_fini(struct dt_table *table)
{
    free(table->cells);
    free(table->entries);
    free(table->samples);
    if (table->free_held != NULL)
        table->free_held(table->held);
}

dt_status dt_cell_read(const json_t *value, const char *what, const char *name,
                       struct dt_cell *cell)
{
    if (json_is_string(value))
        *cell = (struct dt_cell){.text = json_string_value(value)};
    else if (json_is_boolean(value))
        *cell = (struct dt_cell){.number = json_is_true(value), .truth = true};
    else if (json_is_number(value))
        *cell = (struct dt_cell){.number = json_number_value(value), .real = json_is_real(value)};
    else
        return dt_fail(DT_EUSAGE, "%s: '%s' is neither a number nor a text", what, name);
    if (fabs(cell->number) > 9007199254740992.)
        return dt_fail(DT_EUSAGE, "%s: '%s' is %g, more than 2^53", what, name, cell->number);
    return DT_OK;
}

/* The shortest text that reads back as the number. */
static void real_text(double number, struct dt_text *out)
{
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    dt_text_add(out, "%s%s", text, strpbrk(text, ".en") == NULL ? ".0" : "");
}

void dt_cell_text(const struct dt_cell *cell, struct dt_text *out)
{
    if (cell->text != NULL)
        dt_text_add(out, "%s", cell->text);
    else if (cell->truth)
        dt_text_add(out, "%s", cell->number != 0 ? "True" : "False");
    else if (cell->real)
        real_text(cell->number, out);
    else
        dt_text_add(out, "%lld", (long long)cell->number);
}

dt_status dt_table_numbers(const json_t *array, const char *what, double **samples, int *count)
{
    size_t n = json_array_size(array);
    if (array != NULL && !json_is_array(array))
        return dt_fail(DT_EUSAGE, "%s: its repetitions are no list", what);
    DT_TRY(DT_RESIZE(*samples, n));
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_array_get(array, i);
        if (!json_is_number(value))
            return dt_fail(DT_EUSAGE, "%s: repetition %zu is not a number", what, i + 1);
        if (json_number_value(value) <= 0)
            return dt_fail(DT_EUSAGE, "%s: repetition %zu is %g, but a time is above 0", what,
                           i + 1, json_number_value(value));
        (*samples)[i] = json_number_value(value);
    }
    *count = (int)n;
    return DT_OK;
}
