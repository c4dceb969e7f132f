/* SPDX-License-Identifier: MIT */
#include "search/landscape/table.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static const struct dt_reader *const readers[] = {
    &dt_reader_kernel_tuner,
    &dt_reader_t4,
    NULL,
};

/* Python writes NaN and Infinity, which JSON does not have. They become 0, which no measurement has; text keeps its
 * length. */
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

/* A Kernel Tuner cache is open while it is written: it ends in a comma instead of its last two braces. */
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

static const struct dt_reader *find(const struct dt_reader *const more[],
                                    const struct dt_source *source)
{
    const struct dt_reader *found = find_in(more, source);
    return found != NULL ? found : find_in(readers, source);
}

static dt_status read_with(const struct dt_reader *reader, const struct dt_source *source,
                           struct dt_landscape **landscape)
{
    struct dt_table table = {.what = source->what, .start = -1};
    dt_status status = reader->read(source, &table);
    if (status == DT_OK)
        status = dt_landscape_make(&table, landscape);
    dt_table_fini(&table);
    return status;
}

static void add_names(const struct dt_reader *const list[], struct dt_text *names)
{
    for (; list != NULL && *list != NULL; list++)
        dt_text_add(names, "%s%s", names->size == 0 ? "" : ", ", (*list)->name);
}

static dt_status unknown(const struct dt_reader *const more[], const struct dt_source *source)
{
    struct dt_text names = {0};
    add_names(more, &names);
    add_names(readers, &names);
    dt_status status =
        dt_fail(DT_EUSAGE, "%s is not a known kind of table: %s", source->what, dt_text_at(&names));
    dt_text_fini(&names);
    return status;
}

/* A journal is many JSON objects, the others are one. */
static dt_status read_text(const char *path, const struct dt_reader *const more[],
                           struct dt_text *bytes, struct dt_landscape **landscape)
{
    const struct dt_json_limits limits = {.bytes = DT_TABLE_BYTES, .values = DT_TABLE_VALUES};
    struct dt_source source = {.what = path, .text = dt_text_at(bytes), .size = bytes->size};
    const struct dt_reader *reader = find(more, &source);
    json_t *root = NULL;
    if (reader != NULL)
        return read_with(reader, &source, landscape);
    mend_numbers(bytes);
    mend_end(bytes);
    DT_TRY(dt_text_status(bytes));
    DT_TRY(dt_json_parse_within(dt_text_at(bytes), bytes->size, limits, path, &root));
    source.root = root;
    reader = find(more, &source);
    dt_status status =
        reader != NULL ? read_with(reader, &source, landscape) : unknown(more, &source);
    json_decref(root);
    return status;
}

dt_status dt_landscape_open(const char *path, const struct dt_reader *const more[],
                            struct dt_landscape **landscape)
{
    struct dt_text bytes = {0};
    dt_status status = dt_source_bytes(path, &bytes);
    if (status == DT_OK)
        status = read_text(path, more, &bytes, landscape);
    dt_text_fini(&bytes);
    return status;
}
