/* SPDX-License-Identifier: MIT */
/* The format is Hugging Face's: https://huggingface.co/docs/safetensors (2022). The tensors must
 * cover the data without gap or overlap, so there is no hidden data. */
#include "base/safetensors.h"

#include "base/json.h"
#include "base/read.h"
#include "base/replace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PREFIX = 8 };

struct dt_safetensors {
    char *path;
    char *map;
    int64_t size, data_at;
    json_t *header;
    struct dt_safetensor *tensors; /* in order of their data */
    int count;
};

static const struct {
    const char *name;
    int bytes;
} dtypes[] = {
    {"F32", 4},  {"I64", 8}, {"F64", 8},     {"F16", 2},     {"BF16", 2}, {"I32", 4},
    {"I16", 2},  {"I8", 1},  {"U8", 1},      {"U16", 2},     {"U32", 4},  {"U64", 8},
    {"BOOL", 1}, {"C64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
};

static int dtype_bytes(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return dtypes[i].bytes;
    return 0;
}

static dt_status read_shape(const char *what, const json_t *shape, struct dt_safetensor *tensor)
{
    size_t i;
    json_t *size;
    if (json_array_size(shape) > DT_SAFETENSORS_RANK)
        return dt_fail(DT_EUSAGE, "%s: the shape has %zu dimensions, at most %d are supported",
                       what, json_array_size(shape), DT_SAFETENSORS_RANK);
    json_array_foreach(shape, i, size)
    {
        if (!json_is_integer(size) || json_integer_value(size) < 0)
            return dt_fail(DT_EUSAGE, "%s: dimension %zu of the shape is not a count", what, i);
        tensor->shape[i] = json_integer_value(size);
    }
    tensor->rank = (int)json_array_size(shape);
    return DT_OK;
}

static dt_status read_offsets(const struct dt_safetensors *file, const char *what,
                              const json_t *offsets, struct dt_safetensor *tensor)
{
    const json_t *first = json_array_get(offsets, 0), *last = json_array_get(offsets, 1);
    int64_t room = file->size - file->data_at;
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return dt_fail(DT_EUSAGE, "%s: data_offsets is not a pair of integers", what);
    int64_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || end > room)
        return dt_fail(DT_EUSAGE,
                       "%s: data_offsets are [%lld, %lld], but the file holds %lld data bytes",
                       what, (long long)begin, (long long)end, (long long)room);
    tensor->data = file->map + file->data_at + begin;
    tensor->bytes = end - begin;
    return DT_OK;
}

static dt_status read_tensor(const struct dt_safetensors *file, const char *name, json_t *row,
                             struct dt_safetensor *tensor)
{
    static const char *const known[] = {"dtype", "shape", "data_offsets", NULL};
    char what[512];
    json_t *shape = NULL, *offsets = NULL;
    snprintf(what, sizeof what, "%.300s: tensor '%.128s'", file->path, name);
    if (!json_is_object(row))
        return dt_fail(DT_EUSAGE, "%s: its entry is not a JSON object", what);
    DT_TRY(dt_json_only(row, what, known));
    DT_TRY(dt_json_string(row, what, "dtype", &tensor->dtype));
    DT_TRY(dt_json_array(row, what, "shape", &shape));
    DT_TRY(dt_json_array(row, what, "data_offsets", &offsets));
    int64_t bytes = dtype_bytes(tensor->dtype);
    if (bytes == 0)
        return dt_fail(DT_EUSAGE, "%s: unknown dtype '%.32s'", what, tensor->dtype);
    DT_TRY(read_shape(what, shape, tensor));
    DT_TRY(read_offsets(file, what, offsets, tensor));
    for (int i = 0; i < tensor->rank; i++)
        if (__builtin_mul_overflow(bytes, tensor->shape[i], &bytes))
            return dt_fail(DT_EUSAGE, "%s: the shape is too large", what);
    if (bytes != tensor->bytes)
        return dt_fail(DT_EUSAGE, "%s: dtype and shape take %lld bytes, data_offsets span %lld",
                       what, (long long)bytes, (long long)tensor->bytes);
    tensor->name = name;
    return DT_OK;
}

static dt_status read_metadata(const struct dt_safetensors *file, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return dt_fail(DT_EUSAGE, "%.300s: __metadata__ is not a JSON object", file->path);
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value))
            return dt_fail(DT_EUSAGE, "%.300s: __metadata__ '%.128s' is not a string", file->path,
                           key);
    }
    return DT_OK;
}

static int by_data(const void *a, const void *b)
{
    const struct dt_safetensor *x = a, *y = b;
    if (x->data != y->data)
        return (const char *)x->data < (const char *)y->data ? -1 : 1;
    return x->bytes < y->bytes ? -1 : x->bytes > y->bytes;
}

/* Sorts the tensors and checks that they cover the data. */
static dt_status check_cover(struct dt_safetensors *file)
{
    const char *at = file->map + file->data_at, *end = file->map + file->size;
    qsort(file->tensors, (size_t)file->count, sizeof file->tensors[0], by_data);
    for (int i = 0; i < file->count; i++) {
        const struct dt_safetensor *tensor = &file->tensors[i];
        const char *data = tensor->data;
        if (data != at)
            return dt_fail(DT_EUSAGE,
                           "%.300s: tensor '%.128s' starts at data byte %lld, expected %lld: %s",
                           file->path, tensor->name, (long long)(data - file->map - file->data_at),
                           (long long)(at - file->map - file->data_at),
                           data < at ? "tensors overlap" : "there is a hole before it");
        at = data + tensor->bytes;
    }
    if (at != end)
        return dt_fail(DT_EUSAGE, "%.300s: %lld bytes after the last tensor belong to none",
                       file->path, (long long)(end - at));
    return DT_OK;
}

static dt_status read_header(struct dt_safetensors *file)
{
    const char *name;
    json_t *row;
    uint64_t length = 0;
    if (file->size < PREFIX)
        return dt_fail(DT_EUSAGE,
                       "%.300s: %lld bytes are too few for a safetensors file, expected 8 or more",
                       file->path, (long long)file->size);
    for (int i = 0; i < PREFIX; i++)
        length |= (uint64_t)(unsigned char)file->map[i] << 8 * i;
    if (length > (uint64_t)(file->size - PREFIX))
        return dt_fail(DT_EUSAGE,
                       "%.300s: its header length is %llu bytes, but the file has only "
                       "%lld after the length",
                       file->path, (unsigned long long)length, (long long)(file->size - PREFIX));
    if (length > DT_JSON_MAX_BYTES)
        return dt_fail(DT_EUSAGE, "%.300s: the header is %llu bytes long, at most %d are accepted",
                       file->path, (unsigned long long)length, DT_JSON_MAX_BYTES);
    file->data_at = PREFIX + (int64_t)length;
    char what[512];
    snprintf(what, sizeof what, "the header of %.300s", file->path);
    DT_TRY(dt_json_parse(file->map + PREFIX, (size_t)length, what, &file->header));
    if (!json_is_object(file->header))
        return dt_fail(DT_EUSAGE, "%s is not a JSON object", what);
    file->tensors = calloc(json_object_size(file->header) + 1, sizeof file->tensors[0]);
    if (file->tensors == NULL)
        return dt_fail(DT_ENOMEM, "%.300s: no memory for its table of tensors", file->path);
    json_object_foreach(file->header, name, row)
    {
        if (strcmp(name, "__metadata__") == 0)
            DT_TRY(read_metadata(file, row));
        else
            DT_TRY(read_tensor(file, name, row, &file->tensors[file->count++]));
    }
    return check_cover(file);
}

static dt_status map_file(struct dt_safetensors *file, const char *path)
{
    char name[301];
    DT_CLEANUP(dt_close_at) int fd = -1;
    size_t bytes;
    snprintf(name, sizeof name, "%.300s", path);
    DT_TRY(dt_read_open(path, name, &fd, &bytes));
    if (bytes == 0)
        return dt_fail(DT_EUSAGE, "%.300s: the file is empty, expected safetensors", path);
    void *map = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED)
        return dt_fail(DT_EIO, "cannot map %.300s: %s", path, strerror(errno));
    file->size = (int64_t)bytes;
    file->map = map;
    return DT_OK;
}

dt_status dt_safetensors_open(const char *path, struct dt_safetensors **file)
{
    DT_CLEANUP(dt_safetensors_close_at) struct dt_safetensors *opened = calloc(1, sizeof *opened);
    if (opened == NULL || (opened->path = strdup(path)) == NULL)
        return dt_fail(DT_ENOMEM, "no memory to open %.300s", path);
    DT_TRY(map_file(opened, path));
    DT_TRY(read_header(opened));
    *file = opened;
    opened = NULL;
    return DT_OK;
}

void dt_safetensors_close(struct dt_safetensors *file)
{
    if (file == NULL)
        return;
    if (file->map != NULL)
        munmap(file->map, (size_t)file->size);
    json_decref(file->header);
    free(file->tensors);
    free(file->path);
    free(file);
}

int dt_safetensors_count(const struct dt_safetensors *file)
{
    return file->count;
}

const struct dt_safetensor *dt_safetensors_at(const struct dt_safetensors *file, int i)
{
    return &file->tensors[i];
}

const struct dt_safetensor *dt_safetensors_find(const struct dt_safetensors *file, const char *name)
{
    for (int i = 0; i < file->count; i++)
        if (strcmp(file->tensors[i].name, name) == 0)
            return &file->tensors[i];
    return NULL;
}

const char *dt_safetensors_path(const struct dt_safetensors *file)
{
    return file->path;
}

/* "[2, 4, any, any]" */
static const char *shape_text(const struct dt_safetensor *tensor, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "[");
    for (int i = 0; i < tensor->rank && used < room; i++) {
        const char *comma = i > 0 ? ", " : "";
        int n = tensor->shape[i] < 0 ? snprintf(text + used, room - used, "%sany", comma)
                                     : snprintf(text + used, room - used, "%s%lld", comma,
                                                (long long)tensor->shape[i]);
        used += (size_t)n;
    }
    if (used < room)
        snprintf(text + used, room - used, "]");
    return text;
}

dt_status dt_safetensors_get(const struct dt_safetensors *file, const struct dt_safetensor *expect,
                             const void **data)
{
    char found_shape[128], expect_shape[128];
    const struct dt_safetensor *found = dt_safetensors_find(file, expect->name);
    shape_text(expect, expect_shape, sizeof expect_shape);
    if (found == NULL)
        return dt_fail(DT_EUSAGE, "%.300s: tensor '%s' is missing, expected %s %s", file->path,
                       expect->name, expect->dtype, expect_shape);
    if (strcmp(found->dtype, expect->dtype) != 0)
        return dt_fail(DT_EUSAGE, "%.300s: tensor '%s' has dtype %s, expected %s", file->path,
                       expect->name, found->dtype, expect->dtype);
    bool same = found->rank == expect->rank;
    for (int i = 0; same && i < expect->rank; i++)
        same = expect->shape[i] < 0 || found->shape[i] == expect->shape[i];
    if (!same)
        return dt_fail(DT_EUSAGE, "%.300s: tensor '%s' has shape %s, expected %s", file->path,
                       expect->name, shape_text(found, found_shape, sizeof found_shape),
                       expect_shape);
    *data = found->data;
    return DT_OK;
}

/* Length, header padded by spaces to a multiple of 8, so that the data is aligned. */
static void write_header(struct dt_text *text, const struct dt_safetensor tensors[], int count)
{
    char shape[128], prefix[PREFIX] = {0};
    int64_t at = 0;
    dt_text_add_bytes(text, prefix, PREFIX);
    dt_text_add(text, "{");
    for (int i = 0; i < count; i++) {
        dt_text_add(text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%lld,%lld]}",
                    i > 0 ? "," : "", tensors[i].name, tensors[i].dtype,
                    shape_text(&tensors[i], shape, sizeof shape), (long long)at,
                    (long long)(at + tensors[i].bytes));
        at += tensors[i].bytes;
    }
    dt_text_add(text, "}");
    while (!text->failed && text->size % 8 != 0)
        dt_text_add(text, " ");
    for (int i = 0; !text->failed && i < PREFIX; i++)
        text->bytes[i] = (char)((text->size - PREFIX) >> 8 * i & 0xff);
}

dt_status dt_safetensors_write(const char *path, const struct dt_safetensor tensors[], int count)
{
    dt_auto_text header = {0};
    struct dt_replace file;
    write_header(&header, tensors, count);
    DT_TRY(dt_text_status(&header));
    DT_TRY(dt_replace_open(path, &file));
    dt_status status = dt_replace_add(&file, header.bytes, header.size);
    for (int i = 0; status == DT_OK && i < count; i++)
        status = dt_replace_add(&file, tensors[i].data, (size_t)tensors[i].bytes);
    return dt_replace_close(&file, status);
}
