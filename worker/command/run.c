/* SPDX-License-Identifier: MIT */
#include "worker/command/run.h"
#include "base/array.h"
#include "base/read.h"
#include "worker/command/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* verify - the file that a command writes, compared with that of the default plan
 *
 *     verify_init(&rules, "npy", "1e-3", false);
 *     verify_npy(a, b, &error);                        -- ||a - b|| / ||b||
 */

/* numpy's format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */

#define TOLERANCE   1e-5
#define HEADER_MOST (1 << 20)
#define NAME_ROOM   32

/* how, tolerance: as given, NULL: not. DT_EUSAGE. */
static dt_status verify_init(struct dt_verify_rules *rules, const char *how, const char *tolerance,
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

static dt_status open_file(const char *path, FILE **file)
{
    *file = fopen(path, "re");
    return *file != NULL ? DT_OK : dt_fail(DT_EIO, "cannot read %s: %s", path, strerror(errno));
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

/* Both files hold the same bytes, but for a carriage return before a line feed. DT_OK, or DT_DONE
 * with the first line that differs; DT_EIO when one cannot be read. */
static dt_status verify_text(const char *path, const char *reference, int64_t *line)
{
    DT_CLEANUP(dt_fclose_at) FILE *file = NULL, *other = NULL;
    int bytes[2] = {0, 0};
    DT_TRY(open_file(path, &file));
    DT_TRY(open_file(reference, &other));
    *line = 1;
    while (bytes[0] == bytes[1] && bytes[0] != EOF) {
        *line += bytes[0] == '\n';
        bytes[0] = next_byte(file);
        bytes[1] = next_byte(other);
    }
    return bytes[0] == bytes[1] ? DT_OK : DT_DONE;
}

/* ---- arrays of numpy */

struct array {
    FILE *file;
    const char *path;
    char type;    /* f, i, u, b, c */
    int bytes;    /* bytes of an item, or of half a complex one */
    bool swapped; /* in the other byte order */
    bool fortran;
    char shape[256]; /* the text without blanks */
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
    dt_auto_free char *header = calloc(room + 1, 1);
    if (header == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    bool full = fread(header, 1, room, array->file) == room;
    const char *shape = find_field(header, "shape"), *type = find_field(header, "descr"),
               *fortran = find_field(header, "fortran_order");
    if (!full || shape == NULL || type == NULL || fortran == NULL)
        return dt_fail(DT_FAILED, "%s is no array of numpy: its header is not whole", array->path);
    array->fortran = strncmp(fortran, "True", 4) == 0;
    DT_TRY(read_shape(shape, array));
    return read_type(type, array);
}

/* IEEE 754 binary16. */
static double half_to_double(unsigned bits)
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
        return array->bytes == 2   ? half_to_double(value.u2)
               : array->bytes == 4 ? (double)value.f4
                                   : value.f8;
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

/* *error: the Euclidean norm of the difference over that of the reference; INFINITY where
 * something is not finite. Booleans, integers, floats of 2, 4 and 8 bytes and complex numbers, in
 * either byte order. DT_DONE, with the sentence, for arrays of different shapes; DT_FAILED for
 * files that are no arrays. */
static dt_status verify_npy(const char *path, const char *reference, double *error)
{
    DT_CLEANUP(dt_fclose_at) FILE *file = NULL, *other = NULL;
    DT_TRY(open_file(path, &file));
    DT_TRY(open_file(reference, &other));
    struct array arrays[2] = {{.file = file, .path = path}, {.file = other, .path = reference}};
    return compare_arrays(arrays, error);
}

/* Copies a file, byte by byte. DT_EIO. */
static dt_status verify_copy(const char *from, const char *to)
{
    char block[65536];
    size_t size;
    DT_CLEANUP(dt_fclose_at) FILE *in = fopen(from, "re");
    FILE *out = in != NULL ? fopen(to, "we") : NULL;
    bool well = out != NULL;
    while (well && (size = fread(block, 1, sizeof block, in)) > 0)
        well = fwrite(block, 1, size, out) == size;
    well = well && ferror(in) == 0;
    int error = errno;
    if (out != NULL && fclose(out) != 0 && well) {
        error = errno;
        well = false;
    }
    return well ? DT_OK : dt_fail(DT_EIO, "cannot keep %s: %s", from, strerror(error));
}

#define FILE_MOST    ((size_t)64 << 20) /* bytes of one that a number is read from */
#define JUDGED_LEAST 2                  /* runs before a limit is */
#define RETRIES      1                  /* when --retries is not given */

static const char *const line_names[DT_RUN_LINES] = {"--prepare", "the command", "--cleanup"};

void dt_tally_add(struct dt_tally *tally, const char *say)
{
    int i = 0;
    while (i < tally->count && strcmp(tally->said[i].say, say) != 0)
        i++;
    if (i == DT_TALLY_MOST)
        return;
    if (i == tally->count) {
        snprintf(tally->said[i].say, sizeof tally->said[i].say, "%s", say);
        tally->said[i].runs = 0;
        tally->count++;
    }
    tally->said[i].runs++;
}

/* ---- options */

dt_status dt_run_time(const char *option, const char *text, int64_t *ns)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"h", 3600}};
    char *end;
    double number = strtod(text, &end);
    for (size_t i = 0; i < sizeof units / sizeof units[0] && end != text; i++) {
        double seconds = number * units[i].seconds;
        if (strcmp(end, units[i].name) != 0 || !(seconds >= 1e-3 && seconds < 1e9))
            continue;
        *ns = (int64_t)(seconds * 1e9);
        return DT_OK;
    }
    return dt_fail(DT_EUSAGE,
                   "%s '%s' is not a number of seconds above zero, or a time as 90s, 10m or 1h",
                   option, text);
}

static dt_status read_retries(const char *text, int *retries)
{
    char *end;
    long count = text != NULL ? strtol(text, &end, 10) : RETRIES;
    if (text != NULL && (*text == 0 || *end != 0 || count < 0 || count > 1000))
        return dt_fail(DT_EUSAGE, "--retries '%s' is not a number from 0 to 1000", text);
    *retries = (int)count;
    return DT_OK;
}

/* "3,77": codes that are as good as 0. */
static dt_status read_codes(const char *text, bool accepted[256])
{
    accepted[0] = true;
    for (const char *at = text; at != NULL && *at != '\0';) {
        char *end;
        long code = strtol(at, &end, 10);
        if (end == at || code < 0 || code > 255 || (*end != ',' && *end != '\0') ||
            (*end == ',' && end[1] == '\0'))
            return dt_fail(DT_EUSAGE,
                           "--accept-codes '%s' is not a list of exit codes from 0 to 255, as in "
                           "3,77",
                           text);
        accepted[code] = true;
        at = end + (*end == ',');
    }
    return text == NULL || *text != '\0'
               ? DT_OK
               : dt_fail(DT_EUSAGE, "--accept-codes is empty; give exit codes, as in 3,77");
}

static dt_status read_verification(struct dt_run_setup *runs, const struct dt_run_given *options)
{
    DT_TRY(verify_init(&runs->verify, options->compare, options->tolerance, options->shell));
    if (options->output[0] == '\0')
        return dt_fail(DT_EUSAGE, "--verify-output needs the name of a file");
    runs->output.words[0] = strdup(options->output);
    return runs->output.words[0] != NULL ? dt_line_names(&runs->output, runs->space)
                                         : dt_fail(DT_ENOMEM, "out of memory");
}

static const struct dt_metric *find_metric(const struct dt_run_setup *runs, const char *name,
                                           size_t size)
{
    for (int i = 0; i < DT_METRICS_MOST && runs->metrics[i].name[0] != '\0'; i++)
        if (strlen(runs->metrics[i].name) == size && memcmp(runs->metrics[i].name, name, size) == 0)
            return &runs->metrics[i];
    return NULL;
}

/* "p99=regex:p99 ([0-9.]+)" */
static dt_status read_metric(struct dt_run_setup *runs, const char *text, struct dt_metric *out)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-%";
    size_t size = strspn(text, letters);
    if (size == 0 || text[size] != '=' || size >= sizeof out->name)
        return dt_fail(DT_EUSAGE,
                       "--metric '%s' is not NAME=HOW, as in p99=regex:p99 ([0-9.]+): a name has "
                       "up to %zu letters, digits and _ . / - %%",
                       text, sizeof out->name - 1);
    if (find_metric(runs, text, size) != NULL)
        return dt_fail(DT_EUSAGE, "--metric %.*s is given twice", (int)size, text);
    snprintf(out->name, sizeof out->name, "%.*s", (int)size, text);
    out->how = text + size + 1;
    return dt_timing_init(&out->timing, out->how, NULL, out->name);
}

/* "p99 <= 2" */
static dt_status read_limit(struct dt_run_setup *runs, const char *text, struct dt_limit *out)
{
    const char *name = text + strspn(text, " "), *sign = strpbrk(name, "<> ");
    size_t size = sign != NULL ? (size_t)(sign - name) : strlen(name);
    char *end = NULL;
    sign = sign != NULL ? sign + strspn(sign, " ") : "";
    bool right = (sign[0] == '<' || sign[0] == '>') && sign[1] == '=';
    if (right) {
        *out = (struct dt_limit){.least = sign[0] == '>', .value = strtod(sign + 2, &end)};
        right = end != sign + 2 && end[strspn(end, " ")] == '\0' && isfinite(out->value);
    }
    if (!right)
        return dt_fail(DT_EUSAGE,
                       "--limit '%s' is not 'METRIC <= VALUE' or 'METRIC >= VALUE', with a number",
                       text);
    out->metric = find_metric(runs, name, size);
    return out->metric != NULL
               ? DT_OK
               : dt_fail(DT_EUSAGE, "--limit '%s' needs --metric %.*s=HOW", text, (int)size, name);
}

/* Each metric is maximised, or has a limit. */
static dt_status check_used(const struct dt_run_setup *runs, const struct dt_metric *maximised)
{
    for (int i = 0; i < DT_METRICS_MOST && runs->metrics[i].name[0] != '\0'; i++) {
        bool used = &runs->metrics[i] == maximised;
        for (int k = 0; k < runs->limit_count; k++)
            used = used || runs->limits[k].metric == &runs->metrics[i];
        if (!used)
            return dt_fail(DT_EUSAGE,
                           "--metric %s has no use: give --objective max:%s or --limit '%s <= ..'",
                           runs->metrics[i].name, runs->metrics[i].name, runs->metrics[i].name);
    }
    return DT_OK;
}

static dt_status read_measures(struct dt_run_setup *runs, const struct dt_run_given *options)
{
    const char *name = options->objective;
    for (int i = 0; options->metrics[i] != NULL; i++)
        DT_TRY(read_metric(runs, options->metrics[i], &runs->metrics[i]));
    for (; options->limits[runs->limit_count] != NULL; runs->limit_count++)
        DT_TRY(
            read_limit(runs, options->limits[runs->limit_count], &runs->limits[runs->limit_count]));
    if (name == NULL) {
        DT_TRY(check_used(runs, NULL));
        runs->time = options->time;
        return dt_timing_init(&runs->timing, options->time, options->unit, NULL);
    }
    if (strncmp(name, "max:", 4) != 0)
        return dt_fail(DT_EUSAGE, "--objective '%s' is not max:METRIC", name);
    const struct dt_metric *metric = find_metric(runs, name + 4, strlen(name + 4));
    if (metric == NULL)
        return dt_fail(DT_EUSAGE, "--objective %s needs --metric %s=HOW", name, name + 4);
    if (options->time != NULL || options->unit != NULL)
        return dt_fail(DT_EUSAGE, "--%s has no meaning with --objective %s, which is measured",
                       options->time != NULL ? "time" : "unit", name);
    DT_TRY(check_used(runs, metric));
    runs->time = metric->how;
    return dt_timing_init(&runs->timing, metric->how, NULL, metric->name);
}

/* The order of limits in a key. */
static bool is_before(const struct dt_limit *limit, const struct dt_limit *other)
{
    int order = strcmp(limit->metric->name, other->metric->name);
    return order < 0 || (order == 0 && limit->least < other->least);
}

void dt_runs_limits_text(const struct dt_run_setup *runs, struct dt_text *out)
{
    const struct dt_limit *order[DT_METRICS_MOST];
    for (int i = 0; i < runs->limit_count; i++) {
        int at = i;
        for (; at > 0 && is_before(&runs->limits[i], order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = &runs->limits[i];
    }
    for (int i = 0; i < runs->limit_count; i++) {
        const struct dt_limit *limit = order[i];
        dt_text_add(out, "%s%s %s %.12g (%s)", i > 0 ? "; " : "", limit->metric->name,
                    limit->least ? ">=" : "<=", limit->value, limit->metric->how);
    }
}

dt_status dt_runs_init(struct dt_run_setup *runs, const struct dt_run_given *options,
                       const struct dt_space *space)
{
    const struct dt_command_line *lines[DT_RUN_LINES];
    const char *left = options->leftovers != NULL ? options->leftovers : "kill";
    int count = 0;
    DT_TRY(dt_run_time("--timeout", options->timeout != NULL ? options->timeout : "600",
                       &runs->timeout_ns));
    DT_TRY(read_retries(options->retries, &runs->retries));
    DT_TRY(read_codes(options->accept, runs->accepted));
    runs->space = space;
    runs->leave_nothing = strcmp(left, "fail") == 0;
    if (!runs->leave_nothing && strcmp(left, "kill") != 0)
        return dt_fail(DT_EUSAGE, "--leftovers '%s' is neither kill nor fail", left);
    DT_TRY(read_measures(runs, options));
    for (int i = 0; i < DT_RUN_LINES; i++) {
        if (options->lines[i] == NULL)
            continue;
        DT_TRY(dt_line_read(options->lines[i], options->shell, &runs->lines[i]));
        runs->lines[i].served = options->served && i == DT_RUN_COMMAND;
        lines[count++] = &runs->lines[i];
    }
    DT_TRY(dt_lines_check(lines, count, space));
    return options->output != NULL ? read_verification(runs, options) : DT_OK;
}

void dt_runs_fini(struct dt_run_setup *runs)
{
    if (runs->reference[0] != '\0')
        unlink(runs->reference);
    dt_line_fini(&runs->output);
    dt_line_fini(&runs->verify.command);
    dt_timing_fini(&runs->timing);
    for (int i = 0; i < DT_METRICS_MOST; i++)
        dt_timing_fini(&runs->metrics[i].timing);
    for (int i = 0; i < DT_RUN_LINES; i++)
        dt_line_fini(&runs->lines[i]);
}

static struct dt_point default_point(const struct dt_space *space)
{
    struct dt_point point = {{0}};
    for (int i = 0; i < dt_space_axes(space); i++)
        point.index[i] = dt_space_axis(space, i)->fallback;
    return point;
}

dt_status dt_runs_fill(const struct dt_run_setup *runs, const struct dt_space *space,
                       const struct dt_point *point, struct dt_run_plan *plan)
{
    dt_status status = DT_OK;
    *plan = (struct dt_run_plan){.made = 0};
    for (int i = 0; i < DT_RUN_LINES && status == DT_OK; i++)
        if (runs->lines[i].words[0] != NULL)
            status = dt_line_fill(&runs->lines[i], space, point, &plan->argv[i]);
    if (runs->output.words[0] != NULL && status == DT_OK)
        status = dt_line_fill(&runs->output, space, point, &plan->output);
    const struct dt_point fallback = default_point(space);
    plan->is_default = dt_point_equal(space, point, &fallback);
    plan->point = *point;
    plan->ranks = dt_plan_ranks(space, point);
    if (status < 0)
        dt_run_plan_fini(plan);
    return status;
}

void dt_run_plan_fini(struct dt_run_plan *plan)
{
    for (int i = 0; i < DT_RUN_LINES; i++)
        dt_line_free(plan->argv[i]);
    dt_line_free(plan->output);
    for (int i = 0; i < DT_METRICS_MOST; i++)
        free(plan->values[i]);
    *plan = (struct dt_run_plan){.made = 0};
}

/* ---- a run */

/* Ends the rest of a run, and waits for its memory. */
static dt_status clear_away(const struct dt_run_setup *runs, struct dt_child_output *command,
                            struct dt_wire *wire, const struct dt_held *held,
                            struct dt_tally *tally)
{
    struct dt_leftovers left;
    dt_auto_text say = {0};
    struct dt_error error = {DT_OK, ""};
    dt_status status = dt_child_clear(command, wire, held, &left, &say);
    dt_error_keep(&error, status);
    if (say.size > 0)
        dt_tally_add(tally, dt_text_at(&say));
    if (left.count > 0) {
        dt_text_clear(&say);
        dt_text_add(&say, "left processes behind, which were ended: ");
        dt_leftovers_names(&left, &say);
        dt_tally_add(tally, dt_text_at(&say));
        dt_error_keep(&error, dt_leftovers_refuse(&left, runs->leave_nothing));
    }
    return dt_error_raise(&error);
}

/* The state of a file by which a write is seen: its time of change is set back, so that a run that
 * is over at once shows, too. */
static struct stat look_at_file(const char *path)
{
    struct stat info;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = 0}};
    if (stat(path, &info) != 0)
        return (struct stat){.st_size = -1};
    times[1].tv_sec = info.st_mtim.tv_sec - 1;
    if (utimensat(AT_FDCWD, path, times, 0) == 0)
        info.st_mtim = times[1];
    return info;
}

static dt_status check_written(const char *path, const struct stat *before, const char *option)
{
    struct stat now;
    if (stat(path, &now) != 0)
        return dt_fail(DT_FAILED, "the command did not write %s (%s)", path, option);
    if (now.st_ino == before->st_ino && now.st_size == before->st_size &&
        now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == before->st_mtim.tv_nsec)
        return dt_fail(DT_FAILED, "the command did not write %s (%s): it is as it was", path,
                       option);
    return DT_OK;
}

/* A file that a number is read from, as it was before the run. */
struct source {
    const struct dt_timing *timing;
    char **path; /* one word, owned; NULL: the number is in the output */
    struct stat before;
};

/* The first is that of the time, then one of each limit. */
#define SOURCES_MOST (1 + DT_METRICS_MOST)

static dt_status open_sources(const struct dt_run_setup *runs, const struct dt_run_plan *plan,
                              struct source sources[SOURCES_MOST])
{
    for (int i = 0; i <= runs->limit_count; i++) {
        struct dt_command_line line = {.shell = false};
        sources[i].timing = i == 0 ? &runs->timing : &runs->limits[i - 1].metric->timing;
        line.words[0] = sources[i].timing->file;
        if (line.words[0] == NULL)
            continue;
        DT_TRY(dt_line_fill(&line, runs->space, &plan->point, &sources[i].path));
        sources[i].before = look_at_file(sources[i].path[0]);
    }
    return DT_OK;
}

static dt_status load_output(const struct source *source, struct dt_text *text)
{
    const char *path = source->path[0];
    char name[400];
    struct dt_error error = {DT_OK, ""};
    DT_TRY(check_written(path, &source->before, source->timing->option));
    snprintf(name, sizeof name, "%.300s (%s)", path, source->timing->option);
    dt_error_keep(&error, dt_read_text(path, name, FILE_MOST, text));
    if (error.status == DT_EIO || error.status == DT_EUSAGE)
        error.status = DT_FAILED; /* this run's */
    return dt_error_raise(&error);
}

/* The time, and what has limits. */
static dt_status read_sources(const struct dt_run_setup *runs, struct dt_run_plan *plan,
                              const struct source sources[SOURCES_MOST],
                              struct dt_child_output *output, struct dt_wire *wire,
                              struct dt_times *times)
{
    output->ranks = plan->ranks;
    for (int i = 0; i <= runs->limit_count; i++) {
        dt_auto_text text = {0};
        output->file = &text;
        if (sources[i].path != NULL)
            DT_TRY(load_output(&sources[i], &text));
        if (i == 0) {
            DT_TRY(dt_timing_take(sources[i].timing, output, dt_child_beat, wire, times));
            continue;
        }
        DT_TRY(DT_GROW(plan->values[i - 1], plan->value_count, 1));
        DT_TRY(dt_timing_median(sources[i].timing, output, dt_child_beat, wire,
                                &plan->values[i - 1][plan->value_count]));
    }
    plan->value_count++;
    return DT_OK;
}

dt_status dt_runs_limits(const struct dt_run_setup *runs, struct dt_run_plan *plan)
{
    for (int i = 0; i < runs->limit_count && plan->value_count >= JUDGED_LEAST; i++) {
        const struct dt_limit *limit = &runs->limits[i];
        double median = dt_timing_middle(plan->values[i], (size_t)plan->value_count);
        if (limit->least ? median < limit->value : median > limit->value)
            return dt_fail(DT_WAIT, "%s = %.6g breaks the limit '%s %s %.6g' (median of %d runs)",
                           limit->metric->name, median, limit->metric->name,
                           limit->least ? ">=" : "<=", limit->value, plan->value_count);
    }
    return DT_OK;
}

/* --cleanup also after a failure, but not without a controller. *again: it may go better the next
 * time. */
static dt_status run_once(const struct dt_run_setup *runs, struct dt_run_plan *plan,
                          struct dt_wire *wire, struct dt_tally *tally, struct dt_times *times,
                          bool *again)
{
    struct dt_child_output outputs[DT_RUN_LINES] = {
        {.from = {-1, -1}}, {.from = {-1, -1}}, {.from = {-1, -1}}};
    struct dt_error error = {DT_OK, ""};
    struct source sources[SOURCES_MOST] = {{.path = NULL}};
    struct dt_held held;
    int values = plan->value_count;
    plan->made++;
    tally->runs++;
    dt_held_note(&held);
    dt_error_keep(&error, open_sources(runs, plan, sources));
    for (int i = 0; i < DT_RUN_LINES; i++) {
        bool wanted = i == DT_RUN_CLEANUP ? error.status != DT_EDEAD : error.status == DT_OK;
        if (plan->argv[i] == NULL || !wanted)
            continue;
        const struct dt_child_rules rules = {runs->timeout_ns, runs->accepted, line_names[i]};
        dt_error_keep(&error, dt_child_run(plan->argv[i], &rules, wire, &outputs[i]));
        if (error.status != DT_OK || i != DT_RUN_COMMAND)
            continue;
        dt_error_keep(&error, read_sources(runs, plan, sources, &outputs[i], wire, times));
        if (error.status == DT_OK && times->too_long)
            dt_tally_add(tally, "reported more time than the run took: is --unit right, or are the "
                                "times simulated?");
    }
    dt_error_keep(&error, clear_away(runs, &outputs[DT_RUN_COMMAND], wire, &held, tally));
    *again = false;
    for (int i = 0; i < DT_RUN_LINES; i++) {
        *again = *again || outputs[i].exited_badly;
        dt_child_output_fini(&outputs[i]);
    }
    for (int i = 0; i < SOURCES_MOST; i++)
        dt_line_free(sources[i].path);
    *again = *again && error.status == DT_FAILED;
    if (error.status < 0) {
        dt_times_fini(times);
        plan->value_count = values;
    }
    return dt_error_raise(&error);
}

dt_status dt_runs_make(const struct dt_run_setup *runs, struct dt_run_plan *plan,
                       struct dt_wire *wire, struct dt_tally *tally, struct dt_times *times)
{
    bool again = false;
    *times = (struct dt_times){.count = 0};
    dt_status status = run_once(runs, plan, wire, tally, times, &again);
    for (int i = 0; i < runs->retries && again; i++) {
        dt_tally_add(tally, "failed and were repeated");
        status = run_once(runs, plan, wire, tally, times, &again);
    }
    if (status == DT_FAILED || status == DT_ENOMEM)
        return dt_fail(status, "run %d: %s", plan->made, dt_message());
    return status;
}

/* ---- verification */

static dt_status run_and_look(const struct dt_run_setup *runs, struct dt_run_plan *plan,
                              struct dt_wire *wire, struct dt_tally *tally, struct dt_times *times)
{
    struct stat before = look_at_file(plan->output[0]);
    DT_TRY(dt_runs_make(runs, plan, wire, tally, times));
    dt_status status = check_written(plan->output[0], &before, "--verify-output");
    if (status < 0)
        dt_times_fini(times);
    return status;
}

/* Keeps the file of the default plan, which was just written. */
static dt_status keep_reference(struct dt_run_setup *runs, const char *path)
{
    const char *folder = getenv("TMPDIR");
    char copy[sizeof runs->reference];
    snprintf(copy, sizeof copy, "%s/dittune-reference-%d", folder != NULL ? folder : "/tmp",
             (int)getpid());
    DT_TRY(verify_copy(path, copy));
    memcpy(runs->reference, copy, sizeof copy);
    return DT_OK;
}

/* Variables of the point's environment, as this process was started with those of
 * the plans that it runs. */
static void set_environment(const struct dt_space *space, const struct dt_point *point)
{
    for (int i = 0; i < dt_space_axes(space); i++) {
        const struct dt_axis *axis = dt_space_axis(space, i);
        dt_auto_text text = {0};
        if (axis->role != DT_ROLE_ENVIRONMENT)
            continue;
        if (!dt_point_has(space, point, i)) {
            unsetenv(axis->variable != NULL ? axis->variable : axis->name);
            continue;
        }
        dt_axis_plain(axis, dt_point_value(space, point, i), &text);
        setenv(axis->variable != NULL ? axis->variable : axis->name, dt_text_at(&text), 1);
    }
}

/* Runs the default plan, whose file the others are compared with. */
static dt_status make_reference(struct dt_run_setup *runs, const struct dt_point *now,
                                struct dt_wire *wire, struct dt_tally *tally)
{
    const struct dt_point fallback = default_point(runs->space);
    DT_CLEANUP(dt_run_plan_fini) struct dt_run_plan plan = {.made = 0};
    DT_CLEANUP(dt_times_fini) struct dt_times times = {.count = 0};
    DT_TRY(dt_runs_fill(runs, runs->space, &fallback, &plan));
    set_environment(runs->space, &fallback);
    dt_status status = run_and_look(runs, &plan, wire, tally, &times);
    if (status == DT_OK)
        status = keep_reference(runs, plan.output[0]);
    set_environment(runs->space, now);
    return status;
}

/* By a command, which gets both files. */
static dt_status compare_by_command(const struct dt_run_setup *runs, const struct dt_run_plan *plan,
                                    struct dt_wire *wire)
{
    static const bool accepted[256] = {true};
    const struct dt_child_rules rules = {runs->timeout_ns, accepted, "the command of --compare"};
    struct dt_child_output output;
    struct dt_leftovers left;
    struct dt_held none = {.count = 0};
    struct dt_error error = {DT_OK, ""};
    dt_auto_text say = {0};
    const struct dt_point any = default_point(runs->space);
    DT_CLEANUP(dt_line_free_at) char **argv = NULL;
    int count = 0;
    DT_TRY(dt_line_fill(&runs->verify.command, runs->space, &any, &argv));
    while (argv[count] != NULL)
        count++;
    if (count + 2 > DT_COMMAND_WORDS)
        return dt_fail(DT_EUSAGE, "the command of --compare has too many words");
    argv[count] = strdup(plan->output[0]);
    argv[count + 1] = argv[count] != NULL ? strdup(runs->reference) : NULL;
    if (argv[count] == NULL || argv[count + 1] == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    bool failed = dt_error_keep(&error, dt_child_run(argv, &rules, wire, &output)) == DT_FAILED;
    bool disagrees = failed && output.exited_badly;
    dt_error_keep(&error, dt_child_clear(&output, wire, &none, &left, &say));
    dt_child_output_fini(&output);
    dt_status status = dt_error_raise(&error);
    return disagrees
               ? dt_fail(DT_DONE, "the output differs from the default plan's: %s", dt_message())
               : status;
}

static dt_status compare_output(const struct dt_run_setup *runs, const struct dt_run_plan *plan,
                                struct dt_wire *wire, double *error)
{
    const char *path = plan->output[0];
    int64_t line = 0;
    if (runs->verify.kind == 'c')
        return compare_by_command(runs, plan, wire);
    if (runs->verify.kind == 'n') {
        dt_status status = verify_npy(path, runs->reference, error);
        return status != DT_OK || *error <= runs->verify.tolerance
                   ? status
                   : dt_fail(DT_DONE,
                             "the output differs from the default plan's by %.2g, allowed %.2g "
                             "(--tolerance)",
                             *error, runs->verify.tolerance);
    }
    dt_status status = verify_text(path, runs->reference, &line);
    *error = status == DT_OK ? 0 : NAN;
    return status == DT_DONE
               ? dt_fail(DT_DONE, "the output differs from the default plan's in line %lld",
                         (long long)line)
               : status;
}

dt_status dt_runs_verified(struct dt_run_setup *runs, struct dt_run_plan *plan,
                           struct dt_wire *wire, struct dt_tally *tally, struct dt_times *times,
                           double *error)
{
    *error = NAN;
    *times = (struct dt_times){.count = 0};
    if (plan->output == NULL)
        return dt_runs_make(runs, plan, wire, tally, times);
    if (runs->reference[0] == '\0' && !plan->is_default) {
        dt_status made = make_reference(runs, &plan->point, wire, tally);
        if (made == DT_FAILED || made == DT_ENOMEM)
            return dt_fail(made, "the default plan, whose output others are compared with: %s",
                           dt_message());
        DT_TRY(made);
    }
    DT_TRY(run_and_look(runs, plan, wire, tally, times));
    dt_status status = runs->reference[0] == '\0' ? keep_reference(runs, plan->output[0]) : DT_OK;
    if (status == DT_OK && plan->is_default)
        *error = 0;
    if (status == DT_OK && !plan->is_default)
        status = compare_output(runs, plan, wire, error);
    if (status != DT_OK)
        dt_times_fini(times);
    return status;
}
