/* SPDX-License-Identifier: MIT */
/* A table of cells becomes a space: each column's values, sorted, are an axis, each row is a
 * point. Fractions are scaled to integers by a power of ten, which keeps their ratios; where none
 * exists, they become ranks. */
#include "base/read.h"
#include "search/landscape/table.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define DT_TABLE_BYTES  (256 * 1024 * 1024)
#define DT_TABLE_VALUES 16000000
#define DT_TABLE_ROWS   1000000

/* The only user of zlib, whose reader also reads plain files. */

#define TIMES_MOST 64        /* recorded tables compress to a fourth or a sixth */
#define SMALL      (1 << 20) /* bytes that any file may unpack to */

/* most: limit of unpacked bytes. */
static dt_status read_all(gzFile file, const char *path, size_t most, struct dt_text *bytes)
{
    char block[65536];
    int got, code;
    while ((got = gzread(file, block, sizeof block)) > 0) {
        dt_text_add_bytes(bytes, block, (size_t)got);
        DT_TRY(dt_text_status(bytes));
        if (bytes->size > DT_TABLE_BYTES)
            return dt_fail(DT_EUSAGE, "%s holds more than the %d bytes allowed", path,
                           DT_TABLE_BYTES);
        if (bytes->size > most)
            return dt_fail(DT_EUSAGE,
                           "%s unpacks to more than %zu bytes, %d times its size: no table is "
                           "packed as tightly; unpack it first if it is right",
                           path, most, TIMES_MOST);
    }
    const char *why = gzerror(file, &code);
    if (got == 0 && code == Z_OK)
        return DT_OK;
    if (code == Z_ERRNO)
        return dt_fail(DT_EIO, "cannot read %s: %s", path, strerror(errno));
    return dt_fail(DT_EUSAGE, "%s is not a whole gzip file: %s", path,
                   code == Z_BUF_ERROR ? "it ends too early" : why);
}

/* The bytes of a file, plain or gzipped. */
static dt_status source_bytes(const char *path, struct dt_text *bytes)
{
    int fd;
    size_t packed;
    DT_TRY(dt_read_open(path, path, &fd, &packed));
    gzFile file = gzdopen(fd, "rb");
    if (file == NULL) {
        close(fd);
        return dt_fail(DT_ENOMEM, "out of memory while reading %s", path);
    }
    dt_status status = read_all(file, path, TIMES_MOST * packed + SMALL, bytes);
    gzclose(file);
    return status;
}

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

static void table_fini(struct dt_table *table)
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

/* Appends the cell as Python prints it. */
static void cell_text(const struct dt_cell *cell, struct dt_text *out)
{
    char text[DT_TEXT_REAL];
    if (cell->text != NULL)
        dt_text_add(out, "%s", cell->text);
    else if (cell->truth)
        dt_text_add(out, "%s", cell->number != 0 ? "True" : "False");
    else if (cell->real && dt_text_real(cell->number, text) > 0)
        dt_text_add(out, "%s%s", text, strpbrk(text, ".en") == NULL ? ".0" : "");
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

/* transfer - maps the plans of a recorded table to those of another space, by parameter names and
 * the values in the files */

static bool same_original(const struct dt_original *a, const struct dt_original *b)
{
    return a->text != NULL && b->text != NULL ? strcmp(a->text, b->text) == 0
                                              : a->text == b->text && a->number == b->number;
}

static struct dt_original value_of(const struct dt_axis *axis, int i)
{
    if (axis->labels != NULL)
        return (struct dt_original){.number = NAN, .text = axis->labels[i]};
    return (struct dt_original){.number = dt_axis_number(axis, axis->values[i])};
}

/* For each value of an axis its index in the source's axis, or -1. */
static int32_t *match_values(const struct dt_axis *axis, const struct dt_original *originals,
                             const struct dt_landscape *source, int its)
{
    int32_t *indices = malloc((size_t)axis->count * sizeof *indices);
    for (int i = 0; indices != NULL && i < axis->count; i++) {
        struct dt_original mine = originals != NULL ? originals[i] : value_of(axis, i);
        indices[i] = -1;
        for (int k = 0; k < dt_space_axis(source->space, its)->count; k++)
            if (same_original(&mine, &source->originals[its][k]))
                indices[i] = k;
    }
    return indices;
}

/* A parameter with one value may be missing on one side. */
dt_status dt_transfer_init(struct dt_transfer *transfer, const struct dt_space *space,
                           const struct dt_original *const originals[],
                           const struct dt_landscape *source)
{
    *transfer = (struct dt_transfer){.space = space, .source = source};
    for (int i = 0; i < dt_space_axes(space); i++) {
        const struct dt_axis *axis = dt_space_axis(space, i);
        int its = dt_space_find(source->space, axis->name);
        transfer->theirs[i] = its;
        if (its < 0 && axis->count > 1)
            return dt_fail(DT_EUSAGE, "the prior has no parameter '%s'", axis->name);
        if (its < 0)
            continue;
        transfer->indices[i] =
            match_values(axis, originals != NULL ? originals[i] : NULL, source, its);
        if (transfer->indices[i] == NULL)
            return dt_fail(DT_ENOMEM, "out of memory for a prior");
    }
    for (int i = 0; i < dt_space_axes(source->space); i++) {
        const struct dt_axis *axis = dt_space_axis(source->space, i);
        if (axis->count > 1 && dt_space_find(space, axis->name) < 0)
            return dt_fail(DT_EUSAGE, "the prior's parameter '%s' is not known here", axis->name);
    }
    return DT_OK;
}

void dt_transfer_fini(struct dt_transfer *transfer)
{
    for (int i = 0; i < DT_AXES_MAX; i++) {
        free(transfer->indices[i]);
        transfer->indices[i] = NULL;
    }
}

double dt_transfer_value(const struct dt_transfer *transfer, const struct dt_point *point)
{
    struct dt_point there = {{0}};
    for (int i = 0; i < dt_space_axes(transfer->space); i++) {
        if (transfer->theirs[i] < 0)
            continue;
        int32_t index = transfer->indices[i][point->index[i]];
        if (index < 0)
            return NAN;
        there.index[transfer->theirs[i]] = index;
    }
    int64_t k = dt_space_index(transfer->source->space, &there);
    if (k < 0)
        return NAN;
    double value = transfer->source->entries[k].value;
    return isnan(value) ? INFINITY : value;
}

bool dt_transfer_back(const struct dt_transfer *transfer, int axis, const struct dt_point *there,
                      int32_t *index)
{
    int its = transfer->theirs[axis], count = dt_space_axis(transfer->space, axis)->count;
    for (int i = 0; i < count; i++)
        if (its < 0 || transfer->indices[axis][i] == there->index[its]) {
            *index = i;
            return true;
        }
    return false;
}

/* Answers of a landscape: to a search in place of a machine, and to another
 * landscape as a prior. */

static const struct dt_entry *entry_at(const struct dt_landscape *landscape,
                                       const struct dt_point *point)
{
    return &landscape->entries[dt_space_index(landscape->space, point)];
}

void dt_landscape_trial(const struct dt_landscape *landscape, const struct dt_point *point,
                        struct dt_trial *trial)
{
    const struct dt_entry *entry = entry_at(landscape, point);
    *trial = (struct dt_trial){.point = *point,
                               .outcome = entry->outcome,
                               .value = entry->value,
                               .low = entry->value,
                               .high = entry->value,
                               .seconds = landscape->seconds * entry->value,
                               .peak_bytes = entry->peak_bytes,
                               .cost = entry->cost};
}

struct draw {
    double mean, variance; /* the drawn repetitions' */
};

static struct draw bootstrap_noise(const double samples[], int n, struct dt_rng *rng)
{
    double mean = 0, squares = 0; /* Welford 1962 */
    for (int i = 0; i < n; i++) {
        double x = samples[dt_rng_below(rng, (uint64_t)n)], step = x - mean;
        mean += step / (i + 1);
        squares += step * (x - mean);
    }
    return (struct draw){.mean = mean, .variance = n > 1 ? squares / (n - 1) : 0};
}

static double mean_of(const double samples[], int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += samples[i];
    return sum / n;
}

void dt_landscape_trial_noisy(const struct dt_landscape *landscape, const struct dt_point *point,
                              uint64_t seed, struct dt_trial *trial)
{
    int64_t k = dt_space_index(landscape->space, point);
    const struct dt_entry *entry = &landscape->entries[k];
    struct dt_rng rng = {.seed = dt_rng_hash(seed, dt_rng_stream("replay noise"), (uint64_t)k),
                         .stream = dt_rng_stream("repetitions")};
    dt_landscape_trial(landscape, point, trial);
    if (entry->count < 2 || isnan(entry->value))
        return;
    const double *samples = &landscape->samples[entry->first];
    struct draw draw = bootstrap_noise(samples, entry->count, &rng);
    double error = sqrt(draw.variance / entry->count) / draw.mean;
    trial->value *= draw.mean / mean_of(samples, entry->count);
    trial->seconds = landscape->seconds * trial->value;
    trial->variance = error * error;
    trial->low = trial->value * exp(-1.96 * error);
    trial->high = trial->value * exp(1.96 * error);
}

dt_status dt_landscape_map(const struct dt_landscape *landscape, const struct dt_landscape *source,
                           double values[], int64_t *found)
{
    DT_CLEANUP(dt_transfer_fini) struct dt_transfer transfer = {.space = NULL};
    const struct dt_original *originals[DT_AXES_MAX];
    memcpy(originals, landscape->originals, sizeof originals);
    DT_TRY(dt_transfer_init(&transfer, landscape->space, originals, source));
    int64_t n = 0;
    for (int64_t k = 0; k < landscape->count; k++) {
        struct dt_point point;
        dt_space_at(landscape->space, k, &point);
        values[k] = dt_transfer_value(&transfer, &point);
        n += !isnan(values[k]);
    }
    if (n == 0)
        return dt_fail(DT_EUSAGE, "the prior and the landscape have no plan in common");
    *found = n;
    return DT_OK;
}

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
static dt_status gather_column(struct making *making, int column)
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
static double whole_cost(const struct dt_cell values[], int count)
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

static dt_status add_labels(struct making *making, int column, struct dt_axis *axis)
{
    const char **labels = calloc((size_t)axis->count + 1, sizeof *labels);
    dt_status status = labels != NULL ? DT_OK : no_memory(making);
    for (int i = 0; i < axis->count && status == DT_OK; i++)
        if ((labels[i] = label_of(making->values[column][i].text)) == NULL)
            status = no_memory(making);
    axis->labels = labels;
    if (status == DT_OK)
        status = dt_space_add_axis(making->landscape->space, axis);
    for (int i = 0; labels != NULL && i < axis->count; i++)
        free((char *)labels[i]);
    free(labels);
    return status;
}

static dt_status add_numbers(struct making *making, int column, struct dt_axis *axis)
{
    const struct dt_cell *cells = making->values[column];
    double factor = whole_cost(cells, axis->count);
    dt_auto_free int64_t *values = calloc((size_t)axis->count + 1, sizeof *values);
    if (values == NULL)
        return no_memory(making);
    for (int i = 0; i < axis->count; i++)
        values[i] = factor > 0 ? llround(cells[i].number * factor) : i;
    axis->values = values;
    return dt_space_add_axis(making->landscape->space, axis);
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

static void locate_row(const struct making *making, int64_t row, struct dt_point *point)
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
        cell_text(&table->cells[row * table->column_count + i], keys);
    }
    dt_text_add_bytes(keys, "", 1);
}

/* The first row of a plan counts; repeated rows are dropped. */
static dt_status fill_points(struct making *making, const struct dt_point points[])
{
    const struct dt_table *table = making->table;
    struct dt_landscape *landscape = making->landscape;
    struct dt_text *keys = &landscape->texts;
    dt_auto_free size_t *offsets = calloc((size_t)table->count, sizeof *offsets);
    landscape->count = dt_space_count(landscape->space);
    landscape->entries = calloc((size_t)landscape->count, sizeof *landscape->entries);
    if (offsets == NULL || landscape->entries == NULL)
        return no_memory(making);
    for (int64_t row = table->count - 1; row >= 0; row--) {
        int64_t k = dt_space_index(landscape->space, &points[row]);
        landscape->entries[k] = table->entries[row];
        offsets[k] = keys->size;
        add_key(making, row, keys);
        if (row == table->start)
            landscape->start = k;
    }
    DT_TRY(dt_text_status(keys));
    for (int64_t k = 0; k < landscape->count; k++)
        landscape->entries[k].key = dt_text_at(keys) + offsets[k];
    return DT_OK;
}

static dt_status measure_noise(struct making *making)
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

static dt_status make_landscape(struct making *making)
{
    const struct dt_table *table = making->table;
    struct dt_landscape *landscape = making->landscape;
    DT_TRY(dt_space_new(&landscape->space));
    for (int i = 0; i < table->column_count; i++) {
        DT_TRY(gather_column(making, i));
        struct dt_axis axis = {.name = making->table->columns[i].name,
                               .role = making->table->columns[i].role,
                               .count = making->counts[i]};
        DT_TRY(making->text[i] ? add_labels(making, i, &axis) : add_numbers(making, i, &axis));
        DT_TRY(keep_originals(making, i));
    }
    dt_auto_free struct dt_point *points = calloc((size_t)table->count, sizeof *points);
    if (points == NULL)
        return no_memory(making);
    for (int64_t row = 0; row < table->count; row++)
        locate_row(making, row, &points[row]);
    DT_TRY(dt_space_seal_points(landscape->space, points, table->count));
    DT_TRY(fill_points(making, points));
    return measure_noise(making);
}

static dt_status landscape_make(const struct dt_table *table, struct dt_landscape **out)
{
    struct dt_landscape *landscape = calloc(1, sizeof *landscape);
    struct making making = {.table = table, .landscape = landscape};
    if (landscape == NULL)
        return no_memory(&making);
    snprintf(landscape->title, sizeof landscape->title, "%s",
             table->title[0] != '\0' ? table->title : table->what);
    snprintf(landscape->device, sizeof landscape->device, "%s", table->device);
    snprintf(landscape->unit, sizeof landscape->unit, "%s", table->unit);
    landscape->seconds = table->seconds;
    landscape->start = -1;
    dt_status status = table->count > 0 && table->column_count > 0
                           ? make_landscape(&making)
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

static const struct dt_reader *const readers[] = {
    &dt_reader_kernel_tuner,
    &dt_reader_t4,
    NULL,
};

/* Python writes NaN and Infinity, which JSON does not have. They become 0, which no measurement
 * has; text keeps its length. */
static void mend_numbers(struct dt_text *bytes)
{
    static const char *const words[] = {"NaN", "Infinity"};
    bool quoted = false;
    for (size_t i = 0; i < bytes->size; i++) {
        char *at = bytes->bytes + i;
        if (quoted && *at == '\\')
            i++;
        else if (*at == '"')
            quoted = !quoted;
        for (int w = 0; !quoted && w < 2; w++) {
            size_t size = strlen(words[w]);
            if (*at == words[w][0] && bytes->size - i >= size && memcmp(at, words[w], size) == 0) {
                memset(at, ' ', size);
                *at = '0';
            }
        }
    }
}

/* A Kernel Tuner cache is open while it is written: it ends in a comma instead of
 * its last two braces. */
static void mend_end(struct dt_text *bytes)
{
    size_t size = bytes->size;
    while (size > 0 && isspace((unsigned char)bytes->bytes[size - 1]))
        size--;
    if (size == 0 || bytes->bytes[size - 1] != ',')
        return;
    bytes->bytes[size - 1] = '}';
    bytes->size = size;
    dt_text_add(bytes, "}");
}

static const struct dt_reader *find_in(const struct dt_reader *const list[],
                                       const struct dt_source *source)
{
    for (; list != NULL && *list != NULL; list++)
        if ((*list)->knows(source))
            return *list;
    return NULL;
}

static const struct dt_reader *find_reader(const struct dt_reader *const more[],
                                           const struct dt_source *source)
{
    const struct dt_reader *found = find_in(more, source);
    return found != NULL ? found : find_in(readers, source);
}

static dt_status read_with(const struct dt_reader *reader, const struct dt_source *source,
                           struct dt_landscape **landscape)
{
    DT_CLEANUP(table_fini) struct dt_table table = {.what = source->what, .start = -1};
    DT_TRY(reader->read(source, &table));
    return landscape_make(&table, landscape);
}

static void add_names(const struct dt_reader *const list[], struct dt_text *names)
{
    for (; list != NULL && *list != NULL; list++)
        dt_text_add(names, "%s%s", names->size == 0 ? "" : ", ", (*list)->name);
}

static dt_status unknown_format(const struct dt_reader *const more[],
                                const struct dt_source *source)
{
    dt_auto_text names = {0};
    add_names(more, &names);
    add_names(readers, &names);
    return dt_fail(DT_EUSAGE, "%s is not a known kind of table: %s", source->what,
                   dt_text_at(&names));
}

/* A journal is many JSON objects, the others are one. */
static dt_status read_text(const char *path, const struct dt_reader *const more[],
                           struct dt_text *bytes, struct dt_landscape **landscape)
{
    const struct dt_json_limits limits = {.bytes = DT_TABLE_BYTES, .values = DT_TABLE_VALUES};
    struct dt_source source = {.what = path, .text = dt_text_at(bytes), .size = bytes->size};
    const struct dt_reader *reader = find_reader(more, &source);
    json_auto_t *root = NULL;
    if (reader != NULL)
        return read_with(reader, &source, landscape);
    mend_numbers(bytes);
    mend_end(bytes);
    DT_TRY(dt_text_status(bytes));
    DT_TRY(dt_json_parse_within(dt_text_at(bytes), bytes->size, limits, path, &root));
    source.root = root;
    reader = find_reader(more, &source);
    return reader != NULL ? read_with(reader, &source, landscape) : unknown_format(more, &source);
}

dt_status dt_landscape_open(const char *path, const struct dt_reader *const more[],
                            struct dt_landscape **landscape)
{
    dt_auto_text bytes = {0};
    DT_TRY(source_bytes(path, &bytes));
    return read_text(path, more, &bytes, landscape);
}
