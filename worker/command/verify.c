/* SPDX-License-Identifier: MIT */
/* numpy's format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include "worker/command/verify.h"

#include "worker/command/quote.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE   1e-5
#define HEADER_MOST (1 << 20)
#define NAME_ROOM   32

dt_status dt_verify_init(struct dt_verify_rules *rules, const char *how, const char *tolerance,
                         bool shell)
{
    char *end = NULL;
    *rules = (struct dt_verify_rules){.kind = 'c', .tolerance = TOLERANCE};
    if (how == NULL || strcmp(how, "text") == 0)
        rules->kind = 't';
    else if (strcmp(how, "npy") == 0)
        rules->kind = 'n';
    if (tolerance != NULL && rules->kind != 'n')
        return dt_fail(DT_EUSAGE, "--tolerance belongs to --compare npy");
    if (tolerance != NULL)
        rules->tolerance = strtod(tolerance, &end);
    if (tolerance != NULL && (end == tolerance || *end != '\0' || !(rules->tolerance >= 0) ||
                              !isfinite(rules->tolerance)))
        return dt_fail(DT_EUSAGE, "--tolerance '%s' is not a relative error, as in 1e-3",
                       tolerance);
    return rules->kind == 'c' ? dt_line_read(how, shell, &rules->command) : DT_OK;
}

static dt_status open_both(const char *path, const char *reference, FILE *files[2])
{
    const char *const paths[2] = {path, reference};
    for (int i = 0; i < 2; i++)
        if ((files[i] = fopen(paths[i], "re")) == NULL) {
            int error = errno;
            if (i == 1)
                fclose(files[0]);
            return dt_fail(DT_EIO, "cannot read %s: %s", paths[i], strerror(error));
        }
    return DT_OK;
}

/* The next byte of a text; a carriage return before a line feed is left out. */
static int next_byte(FILE *file)
{
    int byte = getc_unlocked(file);
    if (byte != '\r')
        return byte;
    int after = getc_unlocked(file);
    if (after == '\n')
        return after;
    ungetc(after, file);
    return byte;
}

dt_status dt_verify_text(const char *path, const char *reference, int64_t *line)
{
    FILE *files[2];
    int bytes[2] = {0, 0};
    DT_TRY(open_both(path, reference, files));
    *line = 1;
    while (bytes[0] == bytes[1] && bytes[0] != EOF) {
        *line += bytes[0] == '\n';
        bytes[0] = next_byte(files[0]);
        bytes[1] = next_byte(files[1]);
    }
    fclose(files[0]);
    fclose(files[1]);
    return bytes[0] == bytes[1] ? DT_OK : DT_DONE;
}

/* ---- arrays of numpy */

struct array {
    FILE *file;
    const char *path;
    char type;    /* f, i, u, b, c */
    int bytes;    /* of an item, or of half a complex one */
    bool swapped; /* in the other byte order */
    bool fortran;
    char shape[256]; /* as written, without blanks */
    double items;
};

/* The text behind 'name': in the header. */
static const char *find_field(const char *header, const char *name)
{
    char quoted[NAME_ROOM];
    snprintf(quoted, sizeof quoted, "'%s'", name);
    const char *at = strstr(header, quoted);
    if (at == NULL)
        return NULL;
    at += strlen(quoted);
    at += strspn(at, " ");
    return *at == ':' ? at + 1 + strspn(at + 1, " ") : NULL;
}

static dt_status read_shape(const char *text, struct array *array)
{
    size_t size = 0;
    const char *at = text;
    array->items = 1;
    for (; *at != '\0' && *at != ')'; at++)
        if (*at != ' ' && *at != '(' && size + 1 < sizeof array->shape)
            array->shape[size++] = *at;
    array->shape[size] = '\0';
    while (size > 0 && array->shape[size - 1] == ',')
        array->shape[--size] = '\0';
    for (char *number = array->shape; *number != '\0';) {
        char *end;
        long long count = strtoll(number, &end, 10);
        if (end == number || count < 0 || (*end != ',' && *end != '\0'))
            return dt_fail(DT_FAILED,
                           "%s is no array of numpy: its shape cannot be read" DT_QUOTES
                           ", it is '%.40s'",
                           array->path, array->shape);
        array->items *= (double)count;
        number = end + (*end == ',');
    }
    return *at == ')' ? DT_OK
                      : dt_fail(DT_FAILED, "%s is no array of numpy: it has no shape", array->path);
}

/* "'<f4'": byte order, kind, bytes. */
static dt_status read_type(const char *text, struct array *array)
{
    char order = 0, type = 0;
    int bytes = 0;
    const int one = 1;
    bool little = *(const char *)&one == 1;
    bool known =
        sscanf(text, "'%c%c%d'", &order, &type, &bytes) == 3 && strchr("<>|=", order) != NULL;
    array->type = type;
    array->bytes = type == 'c' ? bytes / 2 : bytes;
    array->swapped = (order == '>' && little) || (order == '<' && !little);
    array->items *= type == 'c' ? 2 : 1;
    bool sized = type == 'f'                  ? bytes == 2 || bytes == 4 || bytes == 8
                 : type == 'c'                ? bytes == 8 || bytes == 16
                 : type == 'i' || type == 'u' ? bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8
                                              : type == 'b' && bytes == 1;
    return known && sized ? DT_OK
                          : dt_fail(DT_FAILED,
                                    "%s is an array of items that cannot be compared: booleans, "
                                    "integers, floats and complex numbers can" DT_QUOTES
                                    "; their type is %.20s",
                                    array->path, text);
}

static dt_status read_header(struct array *array)
{
    unsigned char start[12];
    size_t room = 0;
    bool magic = fread(start, 1, 8, array->file) == 8 && memcmp(start, "\x93NUMPY", 6) == 0;
    bool wide = magic && start[6] > 1;
    magic = magic && fread(start + 8, 1, wide ? 4 : 2, array->file) == (wide ? 4U : 2U);
    for (int i = wide ? 3 : 1; magic && i >= 0; i--)
        room = room << 8 | start[8 + i];
    if (!magic || room == 0 || room > HEADER_MOST)
        return dt_fail(DT_FAILED, "%s is no array of numpy (.npy)", array->path);
    char *header = calloc(room + 1, 1);
    if (header == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    const char *shape = NULL, *type = NULL, *fortran = NULL;
    if (fread(header, 1, room, array->file) == room) {
        shape = find_field(header, "shape");
        type = find_field(header, "descr");
        fortran = find_field(header, "fortran_order");
    }
    dt_status status =
        shape != NULL && type != NULL && fortran != NULL
            ? read_shape(shape, array)
            : dt_fail(DT_FAILED, "%s is no array of numpy: its header is not whole", array->path);
    if (status == DT_OK)
        status = read_type(type, array);
    array->fortran = fortran != NULL && strncmp(fortran, "True", 4) == 0;
    free(header);
    return status;
}

/* IEEE 754 binary16. */
static double half(unsigned bits)
{
    unsigned exponent = bits >> 10 & 31, fraction = bits & 1023;
    double value = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                   : exponent == 0 ? ldexp((double)fraction, -24)
                                   : ldexp((double)(fraction + 1024), (int)exponent - 25);
    return bits >> 15 != 0 ? -value : value;
}

static double number_of(const struct array *array, const unsigned char raw[8])
{
    unsigned char bytes[8] = {0};
    for (int i = 0; i < array->bytes; i++)
        bytes[i] = raw[array->swapped ? array->bytes - 1 - i : i];
    union {
        unsigned char bytes[8];
        float f4;
        double f8;
        int8_t i1;
        int16_t i2;
        int32_t i4;
        int64_t i8;
        uint16_t u2;
        uint32_t u4;
        uint64_t u8;
    } value;
    memcpy(value.bytes, bytes, sizeof bytes);
    if (array->type == 'f' || array->type == 'c')
        return array->bytes == 2 ? half(value.u2) : array->bytes == 4 ? (double)value.f4 : value.f8;
    if (array->type == 'i')
        return array->bytes == 1   ? (double)value.i1
               : array->bytes == 2 ? (double)value.i2
               : array->bytes == 4 ? (double)value.i4
                                   : (double)value.i8;
    return array->bytes == 1   ? (double)value.bytes[0]
           : array->bytes == 2 ? (double)value.u2
           : array->bytes == 4 ? (double)value.u4
                               : (double)value.u8;
}

static dt_status next_number(const struct array *array, double *number)
{
    unsigned char raw[8] = {0};
    if (fread(raw, 1, (size_t)array->bytes, array->file) != (size_t)array->bytes)
        return dt_fail(DT_FAILED, "%s ends within its array", array->path);
    *number = number_of(array, raw);
    return DT_OK;
}

static dt_status compare_arrays(struct array arrays[2], double *error)
{
    double difference = 0, norm = 0;
    for (int i = 0; i < 2; i++)
        DT_TRY(read_header(&arrays[i]));
    if (strcmp(arrays[0].shape, arrays[1].shape) != 0 || arrays[0].items < arrays[1].items ||
        arrays[0].items > arrays[1].items)
        return dt_fail(DT_DONE, "the output is an array of shape (%s), the default plan's of (%s)",
                       arrays[0].shape, arrays[1].shape);
    if (arrays[0].fortran != arrays[1].fortran && strchr(arrays[0].shape, ',') != NULL)
        return dt_fail(DT_FAILED, "one of the arrays is stored by columns, the other by rows");
    int64_t items = arrays[0].items < 1e15 ? (int64_t)arrays[0].items : INT64_MAX;
    for (int64_t k = 0; k < items; k++) {
        double a, b;
        DT_TRY(next_number(&arrays[0], &a));
        DT_TRY(next_number(&arrays[1], &b));
        difference += (a - b) * (a - b);
        norm += b * b;
    }
    *error = difference > 0 || !isfinite(difference) ? sqrt(difference / norm) : 0;
    if (!isfinite(*error))
        *error = INFINITY;
    return DT_OK;
}

dt_status dt_verify_npy(const char *path, const char *reference, double *error)
{
    FILE *files[2];
    DT_TRY(open_both(path, reference, files));
    struct array arrays[2] = {{.file = files[0], .path = path},
                              {.file = files[1], .path = reference}};
    dt_status status = compare_arrays(arrays, error);
    fclose(files[0]);
    fclose(files[1]);
    return status;
}

dt_status dt_verify_copy(const char *from, const char *to)
{
    char block[65536];
    size_t size;
    FILE *in = fopen(from, "re"), *out = in != NULL ? fopen(to, "we") : NULL;
    bool well = out != NULL;
    while (well && (size = fread(block, 1, sizeof block, in)) > 0)
        well = fwrite(block, 1, size, out) == size;
    well = well && ferror(in) == 0;
    int error = errno;
    if (in != NULL)
        fclose(in);
    if (out != NULL && fclose(out) != 0 && well) {
        error = errno;
        well = false;
    }
    return well ? DT_OK : dt_fail(DT_EIO, "cannot keep %s: %s", from, strerror(error));
}
