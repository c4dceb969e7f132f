/* SPDX-License-Identifier: MIT */
/* The parts of runs as JSON, their sums, and runs. */
#include "tuner/runner/samples_json.h"

#include "base/array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Largest time and magnitude of telemetry: exact in a double. */
#define VALUE_MOST  (INT64_C(1) << 53)
#define REASON_MOST 40 /* characters of its name */
#define LOOKS_MOST  (INT64_C(1) << 40)
#define RUNS_MOST   1000000000 /* runs of a program */
#define STEPS_MOST  (1 << 20)
#define RANKS_MOST  65536

/* ---- kinds: how they are kept in JSON */

static bool is_amount(const json_t *value)
{
    return json_is_integer(value);
}

static void amount_read(const json_t *value, void *member)
{
    *(struct dt_amount *)member = (struct dt_amount){value != NULL, json_integer_value(value)};
}

static json_t *amount_write(const void *member)
{
    const struct dt_amount *amount = member;
    return amount->known ? json_integer(amount->value) : json_null();
}

static bool are_amounts(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (!json_is_integer(json_array_get(list, i)))
            return false;
    return json_is_array(list);
}

static void amounts_read(const json_t *list, void *member)
{
    struct dt_amounts amounts = {.at = NULL};
    if (list != NULL && DT_RESIZE(amounts.at, json_array_size(list)) == DT_OK)
        amounts.count = (int)json_array_size(list);
    for (int i = 0; i < amounts.count; i++)
        amounts.at[i] = json_integer_value(json_array_get(list, (size_t)i));
    *(struct dt_amounts *)member = amounts;
}

static json_t *amounts_write(const void *member)
{
    const struct dt_amounts *amounts = member;
    json_t *list = amounts->at != NULL ? json_array() : json_null();
    for (int i = 0; i < amounts->count; i++)
        json_array_append_new(list, json_integer(amounts->at[i]));
    return list;
}

static void rows_read(const json_t *list, void *member)
{
    struct dt_phase_rows rows = {.at = NULL};
    if (list != NULL && DT_RESIZE(rows.at, json_array_size(list)) == DT_OK)
        rows.count = (int)json_array_size(list);
    for (int i = 0; i < rows.count; i++)
        dt_record_read(&dt_record_phase_row, json_array_get(list, (size_t)i), &rows.at[i]);
    *(struct dt_phase_rows *)member = rows;
}

static json_t *rows_write(const void *member)
{
    const struct dt_phase_rows *rows = member;
    json_t *list = rows->at != NULL ? json_array() : json_null();
    for (int i = 0; i < rows->count; i++)
        json_array_append_new(list, dt_record_json(&dt_record_phase_row, &rows->at[i]));
    return list;
}

static void range_read(const json_t *value, void *member)
{
    *(struct dt_range *)member =
        (struct dt_range){value != NULL, dt_json_integer_at(value, "least"),
                          dt_json_integer_at(value, "mean"), dt_json_integer_at(value, "most")};
}

/* In ascending order. */
static bool is_range(const json_t *value)
{
    struct dt_range range;
    range_read(value, &range);
    return json_is_integer(json_object_get(value, "least")) &&
           json_is_integer(json_object_get(value, "mean")) &&
           json_is_integer(json_object_get(value, "most")) && range.least >= -VALUE_MOST &&
           range.least <= range.mean && range.mean <= range.most && range.most <= VALUE_MOST;
}

static json_t *range_write(const void *member)
{
    const struct dt_range *range = member;
    return range->known ? json_pack("{s:I, s:I, s:I}", "least", (json_int_t)range->least, "mean",
                                    (json_int_t)range->mean, "most", (json_int_t)range->most)
                        : json_null();
}

/* Names are printed and stored unescaped, so they are restricted. */
static bool are_reasons(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        size_t length = json_string_length(json_array_get(list, i));
        if (name == NULL || length == 0 || length > REASON_MOST || i >= DT_REASONS_MOST ||
            strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != length)
            return false;
    }
    return json_is_array(list);
}

static void reasons_read(const json_t *list, void *member)
{
    struct dt_reasons *reasons = member;
    reasons->count = (int)json_array_size(list);
    for (int i = 0; i < reasons->count; i++)
        snprintf(reasons->at[i], sizeof reasons->at[i], "%s",
                 json_string_value(json_array_get(list, (size_t)i)));
}

static json_t *reasons_write(const void *member)
{
    const struct dt_reasons *reasons = member;
    json_t *list = json_array();
    for (int i = 0; i < reasons->count; i++)
        json_array_append_new(list, json_string(reasons->at[i]));
    return list;
}

static bool is_sentence(const json_t *value)
{
    return json_is_string(value);
}

static void sentence_read(const json_t *value, void *member)
{
    struct dt_sentence *sentence = member;
    snprintf(sentence->text, sizeof sentence->text, "%s",
             value != NULL ? json_string_value(value) : "");
    dt_text_mend(sentence->text);
    dt_text_clean(sentence->text);
}

static json_t *sentence_write(const void *member)
{
    const char *text = member;
    return text[0] != '\0' ? json_string(text) : json_null();
}

static const struct dt_kind dt_kind_amount = {"amount", "an integer", is_amount, amount_read,
                                              amount_write};
static const struct dt_kind dt_kind_figure = {"figure", "an integer", is_amount, amount_read,
                                              amount_write};
static const struct dt_kind dt_kind_amounts = {"amounts", "a list of integers", are_amounts,
                                               amounts_read, amounts_write};
static const struct dt_kind dt_kind_figures = {"figures", "a list of integers", are_amounts,
                                               amounts_read, amounts_write};
static const struct dt_kind dt_kind_rows = {"rows", "an array", dt_kind_is_list, rows_read,
                                            rows_write};
static const struct dt_kind dt_kind_range = {"range", "a range", is_range, range_read, range_write};
const struct dt_kind dt_kind_reasons = {"reasons", "a list of names", are_reasons, reasons_read,
                                        reasons_write};
static const struct dt_kind dt_kind_sentence = {"sentence", "a sentence", is_sentence,
                                                sentence_read, sentence_write};

#include "base/record_rows.h"

#include "tuner/runner/samples.def"

/* ---- sums of records */

double dt_amount_number(struct dt_amount amount)
{
    return amount.known ? (double)amount.value : NAN;
}

static int64_t sum_of(int64_t a, int64_t b)
{
    int64_t sum;
    return !__builtin_add_overflow(a, b, &sum) ? sum : b > 0 ? INT64_MAX : INT64_MIN;
}

/* Each field by its kind. Rows of a list have the same names, since both records
 * come from one worker. */
static void record_add(const struct dt_record *record, void *sum, const void *more)
{
    for (int i = 0; i < record->field_count; i++) {
        const struct dt_kind *kind = record->fields[i].kind;
        void *mine = (char *)sum + record->fields[i].offset;
        const void *other = (const char *)more + record->fields[i].offset;
        if (kind == &dt_kind_amount) {
            struct dt_amount *amount = mine;
            const struct dt_amount *added = other;
            if (amount->known && added->known)
                amount->value = sum_of(amount->value, added->value);
        } else if (kind == &dt_kind_amounts) {
            struct dt_amounts *amounts = mine;
            const struct dt_amounts *added = other;
            for (int k = 0; k < amounts->count && k < added->count; k++)
                amounts->at[k] = sum_of(amounts->at[k], added->at[k]);
        } else if (kind == &dt_kind_rows) {
            struct dt_phase_rows *rows = mine;
            const struct dt_phase_rows *added = other;
            for (int k = 0; k < rows->count && k < added->count; k++)
                record_add(&dt_record_phase_row, &rows->at[k], &added->at[k]);
        }
    }
}

/* Frees what its fields own. */
static void record_fini(const struct dt_record *record, void *held)
{
    for (int i = 0; i < record->field_count; i++) {
        const struct dt_kind *kind = record->fields[i].kind;
        void *member = (char *)held + record->fields[i].offset;
        if (kind == &dt_kind_amounts || kind == &dt_kind_figures)
            free(((struct dt_amounts *)member)->at);
        if (kind == &dt_kind_rows) {
            struct dt_phase_rows *rows = member;
            for (int k = 0; k < rows->count; k++)
                record_fini(&dt_record_phase_row, &rows->at[k]);
            free(rows->at);
        }
    }
}

static void phases_free(struct dt_phase_sums *phases)
{
    if (phases != NULL)
        record_fini(&dt_record_phase_sums, phases);
    free(phases);
}

static void phases_add(struct dt_run *sum, struct dt_run *more)
{
    if (more->phases != NULL && (sum->phases == NULL || more->steps > sum->phase_steps)) {
        struct dt_phase_sums *shorter = sum->phases;
        sum->phases = more->phases;
        sum->phase_steps = more->steps;
        more->phases = shorter;
    }
    if (more->phases != NULL)
        record_add(&dt_record_phase_sums, sum->phases, more->phases);
}

void dt_reasons_add(struct dt_reasons *reasons, const struct dt_reasons *more)
{
    for (int i = 0; i < more->count; i++) {
        int at = 0;
        while (at < reasons->count && strcmp(reasons->at[at], more->at[i]) != 0)
            at++;
        if (at == reasons->count && at < DT_REASONS_MOST)
            memcpy(reasons->at[reasons->count++], more->at[i], sizeof reasons->at[0]);
    }
}

/* Means are weighted by their number of readings. */
static void telemetry_add_rank(struct dt_rank_telemetry *rank, const struct dt_rank_telemetry *more)
{
    int64_t looks = rank->looks + more->looks;
    double share = looks > 0 ? (double)more->looks / (double)looks : 0;
    for (int i = 0; i < dt_record_rank_telemetry.field_count; i++) {
        const struct dt_field *field = &dt_record_rank_telemetry.fields[i];
        struct dt_range *mine = (void *)((char *)rank + field->offset);
        const struct dt_range *range = (const void *)((const char *)more + field->offset);
        if (field->kind != &dt_kind_range || !range->known)
            continue;
        if (mine->known) {
            double mean = (double)mine->mean * (1 - share) + (double)range->mean * share;
            mine->least = range->least < mine->least ? range->least : mine->least;
            mine->most = range->most > mine->most ? range->most : mine->most;
            mine->mean = llround(mean);
        } else {
            *mine = *range;
        }
    }
    dt_reasons_add(&rank->reasons, &more->reasons);
    rank->looks = looks;
}

/* Called before the request is added. */
static dt_status telemetry_add(struct dt_run *sum, struct dt_run *more)
{
    const int request = sum->request_count, old = sum->reason_count;
    if (more->telemetry == NULL)
        return DT_OK;
    DT_TRY(DT_RESIZE(sum->reasons, request + 1));
    memset(sum->reasons + old, 0, (size_t)(request + 1 - old) * sizeof *sum->reasons);
    sum->reason_count = request + 1;
    for (int r = 0; r < more->ranks; r++)
        dt_reasons_add(&sum->reasons[request], &more->telemetry[r].reasons);
    for (int r = 0; sum->telemetry != NULL && r < more->ranks; r++)
        telemetry_add_rank(&sum->telemetry[r], &more->telemetry[r]);
    if (sum->telemetry == NULL) {
        sum->telemetry = more->telemetry;
        more->telemetry = NULL;
    }
    return DT_OK;
}

/* Its lists. */
static struct dt_amounts *lists_of(struct dt_device_bytes *bytes, int i)
{
    return (struct dt_amounts *[]){&bytes->before, &bytes->taken, &bytes->free, &bytes->total}[i];
}

bool dt_device_bytes_known(const struct dt_device_bytes *bytes)
{
    return bytes->before.at != NULL || bytes->taken.at != NULL || bytes->free.at != NULL ||
           bytes->total.at != NULL;
}

void dt_device_bytes_fill(struct dt_device_bytes *bytes, struct dt_device_bytes *more)
{
    for (int i = 0; i < 4; i++) {
        if (lists_of(bytes, i)->at == NULL) {
            *lists_of(bytes, i) = *lists_of(more, i);
            *lists_of(more, i) = (struct dt_amounts){.at = NULL};
        }
    }
    dt_device_bytes_fini(more);
}

dt_status dt_device_bytes_join(struct dt_device_bytes *bytes, const struct dt_device_bytes *more)
{
    struct dt_device_bytes added = *more;
    for (int i = 0; i < 4; i++) {
        struct dt_amounts *list = lists_of(bytes, i);
        const struct dt_amounts *tail = lists_of(&added, i);
        if (list->at == NULL || tail->at == NULL) {
            free(list->at);
            *list = (struct dt_amounts){.at = NULL};
            continue;
        }
        DT_TRY(DT_RESIZE(list->at, list->count + tail->count));
        memcpy(list->at + list->count, tail->at, (size_t)tail->count * sizeof *list->at);
        list->count += tail->count;
    }
    if (more->resident.value > bytes->resident.value)
        bytes->resident = more->resident;
    return DT_OK;
}

void dt_device_bytes_fini(struct dt_device_bytes *bytes)
{
    record_fini(&dt_record_device_bytes, bytes);
    *bytes = (struct dt_device_bytes){.known = true};
}

/* ---- remarks */

static int runs_sum(int runs, int more)
{
    return runs + more < RUNS_MOST ? runs + more : RUNS_MOST;
}

static void remark_add(struct dt_remarks *sum, const struct dt_remark *more)
{
    int at = 0;
    while (at < sum->warnings_count && strcmp(sum->warnings[at].say.text, more->say.text) != 0)
        at++;
    if (at < sum->warnings_count)
        sum->warnings[at].runs = runs_sum(sum->warnings[at].runs, more->runs);
    else if (at < DT_REMARKS_MOST)
        sum->warnings[sum->warnings_count++] = *more;
}

void dt_remarks_add(struct dt_remarks **sum, struct dt_remarks **more)
{
    struct dt_remarks *added = *more;
    *more = NULL;
    if (*sum == NULL || added == NULL) {
        *sum = *sum == NULL ? added : *sum;
        return;
    }
    (*sum)->runs = runs_sum((*sum)->runs, added->runs);
    if ((*sum)->read.text[0] == '\0')
        (*sum)->read = added->read;
    for (int i = 0; i < added->warnings_count; i++)
        remark_add(*sum, &added->warnings[i]);
    free(added);
}

int dt_remarks_count(const struct dt_remarks *remarks)
{
    return remarks != NULL ? remarks->warnings_count : 0;
}

const char *dt_remarks_note(const struct dt_remarks *remarks)
{
    return remarks != NULL ? remarks->read.text : "";
}

void dt_remarks_text(const struct dt_remarks *remarks, int i, struct dt_text *out)
{
    dt_text_add(out, "%d ", remarks->warnings[i].runs);
    if (remarks->runs > 0)
        dt_text_add(out, "of %d ", remarks->runs);
    dt_text_add(out, "runs %s", remarks->warnings[i].say.text);
}

json_t *dt_remarks_sentences(const struct dt_remarks *remarks)
{
    json_t *list = dt_remarks_count(remarks) > 0 ? json_array() : NULL;
    for (int i = 0; i < dt_remarks_count(remarks); i++) {
        dt_auto_text text = {0};
        dt_remarks_text(remarks, i, &text);
        json_array_append_new(list, json_string(dt_text_at(&text)));
    }
    return list;
}

/* ---- runs */

void dt_outputs_fini(struct dt_outputs *outputs)
{
    free(outputs->norm);
    free(outputs->projection);
    *outputs = (struct dt_outputs){.ranks = 0};
}

dt_status dt_outputs_join(struct dt_outputs *outputs, const struct dt_outputs *more)
{
    const size_t old = (size_t)(outputs->ranks * outputs->rows),
                 added = (size_t)(more->ranks * more->rows), each = (size_t)outputs->projections;
    if (outputs->rows != more->rows || outputs->projections != more->projections ||
        (outputs->ranks == 0) != (more->ranks == 0))
        return dt_fail(DT_FAILED, "verify differs in shape among replicas");
    if (added == 0)
        return DT_OK;
    DT_TRY(DT_RESIZE(outputs->norm, old + added));
    DT_TRY(DT_RESIZE(outputs->projection, (old + added) * each));
    memcpy(outputs->norm + old, more->norm, added * sizeof *outputs->norm);
    memcpy(outputs->projection + old * each, more->projection,
           added * each * sizeof *outputs->projection);
    outputs->ranks += more->ranks;
    return DT_OK;
}

void dt_run_fini(struct dt_run *run)
{
    free(run->ns);
    free(run->device_ns);
    free(run->host_ns);
    free(run->clock);
    free(run->starts);
    free(run->remarks);
    dt_outputs_fini(&run->output);
    phases_free(run->phases);
    free(run->telemetry);
    free(run->requests);
    free(run->reasons);
    *run = (struct dt_run){.steps = 0};
}

/* Times of the run behind those of the sum; 0 where either has none. */
static dt_status times_add(long long **ns, const long long *added, size_t old, size_t more)
{
    const size_t known = *ns != NULL ? old : 0;
    if (added == NULL && *ns == NULL)
        return DT_OK;
    DT_TRY(DT_RESIZE(*ns, old + more));
    memset(*ns + known, 0, (old + more - known) * sizeof **ns);
    if (added != NULL)
        memcpy(*ns + old, added, more * sizeof **ns);
    return DT_OK;
}

static dt_status clock_add(double **clock, const double *added, size_t old, size_t more)
{
    const size_t known = *clock != NULL ? old : 0;
    if (added == NULL && *clock == NULL)
        return DT_OK;
    DT_TRY(DT_RESIZE(*clock, old + more));
    for (size_t i = known; i < old + more; i++)
        (*clock)[i] = i >= old && added != NULL ? added[i - old] : NAN;
    return DT_OK;
}

static dt_status counts_add(int **counts, int *n, const int *added, int more)
{
    DT_TRY(DT_RESIZE(*counts, *n + more));
    memcpy(*counts + *n, added, (size_t)more * sizeof **counts);
    *n += more;
    return DT_OK;
}

dt_status dt_run_add(struct dt_run *sum, struct dt_run *more, bool measured)
{
    size_t ranks = (size_t)more->ranks, old = (size_t)sum->steps * ranks,
           added = (size_t)more->steps * ranks;
    DT_TRY(times_add(&sum->ns, more->ns, old, added));
    DT_TRY(times_add(&sum->device_ns, more->device_ns, old, added));
    DT_TRY(times_add(&sum->host_ns, more->host_ns, old, added));
    DT_TRY(clock_add(&sum->clock, more->clock, old, added));
    if (more->starts != NULL)
        DT_TRY(counts_add(&sum->starts, &sum->start_count, more->starts, more->start_count));
    dt_remarks_add(&sum->remarks, &more->remarks);
    if (measured) {
        DT_TRY(telemetry_add(sum, more));
        phases_add(sum, more);
        sum->warm_up_steps = sum->request_count == 0 ? sum->steps : sum->warm_up_steps;
        DT_TRY(counts_add(&sum->requests, &sum->request_count, &more->steps, 1));
    }
    sum->steps += more->steps;
    sum->ranks = more->ranks;
    return DT_OK;
}

/* ---- the runs of several replicas */

/* Starts, and of each the steps, that all parts have; a run without starts is one
 * start. *counts: owned. */
static dt_status common_starts(const struct dt_run parts[], int n, int **counts, int *starts)
{
    int *common = NULL;
    *starts = parts[0].starts != NULL ? parts[0].start_count : 1;
    for (int i = 1; i < n && parts[0].starts != NULL; i++)
        *starts = parts[i].start_count < *starts ? parts[i].start_count : *starts;
    DT_TRY(DT_RESIZE(common, *starts));
    for (int k = 0; k < *starts; k++) {
        common[k] = parts[0].starts != NULL ? parts[0].starts[k] : parts[0].steps;
        for (int i = 1; i < n; i++) {
            int steps = parts[i].starts != NULL ? parts[i].starts[k] : parts[i].steps;
            common[k] = steps < common[k] ? steps : common[k];
        }
    }
    *counts = common;
    return DT_OK;
}

/* The columns of one part, whose rows are those of the common steps of each start. */
struct columns {
    const int *counts, *counts_here; /* counts_here: NULL: one start */
    int starts, first, ranks;
    size_t row; /* ranks of the joined */
};

/* from: rows of columns->ranks values of `size` bytes; to: rows of columns->row. */
static void columns_copy(const struct columns *columns, const void *from, void *to, size_t size)
{
    const size_t width = (size_t)columns->ranks * size;
    const char *source = from;
    char *target = (char *)to + (size_t)columns->first * size;
    for (int k = 0; k < columns->starts; k++) {
        for (int i = 0; i < columns->counts[k]; i++, target += columns->row * size)
            memcpy(target, source + (size_t)i * width, width);
        source +=
            (size_t)(columns->counts_here != NULL ? columns->counts_here[k] : columns->counts[k]) *
            width;
    }
}

/* Times by the host beside those by the device say what `ns` is of, and starts what its rows are:
 * of all parts or of none. */
static dt_status parts_check(const struct dt_run parts[], int n)
{
    for (int i = 1; i < n; i++) {
        if ((parts[i].host_ns != NULL) != (parts[0].host_ns != NULL))
            return dt_fail(DT_FAILED, "host_ns is not of all replicas");
        if ((parts[i].starts != NULL) != (parts[0].starts != NULL))
            return dt_fail(DT_FAILED, "starts are not of all replicas");
    }
    return DT_OK;
}

/* Room for what all parts have. */
static dt_status joined_make_room(const struct dt_run parts[], int n, struct dt_run *joined)
{
    const size_t all = (size_t)joined->steps * (size_t)joined->ranks;
    bool device = true, clock = true, telemetry = true;
    for (int i = 0; i < n; i++) {
        device = device && parts[i].device_ns != NULL;
        clock = clock && parts[i].clock != NULL;
        telemetry = telemetry && parts[i].telemetry != NULL;
    }
    DT_TRY(DT_RESIZE(joined->ns, all));
    if (device)
        DT_TRY(DT_RESIZE(joined->device_ns, all));
    if (parts[0].host_ns != NULL)
        DT_TRY(DT_RESIZE(joined->host_ns, all));
    if (clock)
        DT_TRY(DT_RESIZE(joined->clock, all));
    return telemetry ? DT_RESIZE(joined->telemetry, joined->ranks) : DT_OK;
}

static int64_t total_ns(const struct dt_run *run)
{
    int64_t sum = 0;
    for (int i = 0; i < run->steps * run->ranks; i++)
        sum += run->ns[i] / run->ranks;
    return sum;
}

static void part_join(const struct columns *columns, struct dt_run *part, struct dt_run *joined)
{
    columns_copy(columns, part->ns, joined->ns, sizeof *joined->ns);
    if (joined->device_ns != NULL)
        columns_copy(columns, part->device_ns, joined->device_ns, sizeof *joined->device_ns);
    if (joined->host_ns != NULL)
        columns_copy(columns, part->host_ns, joined->host_ns, sizeof *joined->host_ns);
    if (joined->clock != NULL)
        columns_copy(columns, part->clock, joined->clock, sizeof *joined->clock);
    if (joined->telemetry != NULL)
        memcpy(joined->telemetry + columns->first, part->telemetry,
               (size_t)part->ranks * sizeof *joined->telemetry);
    dt_remarks_add(&joined->remarks, &part->remarks);
}

dt_status dt_run_join(struct dt_run parts[], int n, struct dt_run *out)
{
    struct dt_run DT_CLEANUP(dt_run_fini) joined = {0};
    dt_auto_free int *counts = NULL;
    int starts, slowest = 0;
    if (n == 1) {
        *out = parts[0];
        parts[0] = (struct dt_run){.steps = 0};
        return DT_OK;
    }
    DT_TRY(parts_check(parts, n));
    DT_TRY(common_starts(parts, n, &counts, &starts));
    for (int k = 0; k < starts; k++)
        joined.steps += counts[k];
    for (int i = 0; i < n; i++) {
        joined.ranks += parts[i].ranks;
        slowest = total_ns(&parts[i]) > total_ns(&parts[slowest]) ? i : slowest;
    }
    DT_TRY(joined_make_room(parts, n, &joined));
    for (int i = 0, first = 0; i < n; first += parts[i++].ranks) {
        part_join(&(struct columns){counts, parts[i].starts, starts, first, parts[i].ranks,
                                    (size_t)joined.ranks},
                  &parts[i], &joined);
        DT_TRY(i == 0 ? DT_OK : dt_outputs_join(&parts[0].output, &parts[i].output));
    }
    joined.output = parts[0].output;
    parts[0].output = (struct dt_outputs){.ranks = 0};
    joined.phases = parts[slowest].phases;
    parts[slowest].phases = NULL;
    if (parts[0].starts != NULL) {
        joined.starts = counts;
        joined.start_count = starts;
        counts = NULL;
    }
    *out = joined;
    joined = (struct dt_run){0};
    return DT_OK;
}

/* ---- as JSON: times, clocks and counts */

bool dt_times_read(const json_t *rows, size_t steps, size_t ranks, int64_t least, long long **ns,
                   struct dt_run_fault *fault)
{
    long long *times = calloc(steps * ranks + 1, sizeof *times);
    for (size_t i = 0; times != NULL && i < steps * ranks; i++) {
        const json_t *row = json_array_get(rows, i / ranks), *value;
        value = json_array_get(row, i % ranks);
        int64_t time = json_integer_value(value);
        fault->step = i / ranks;
        fault->size = json_array_size(rows) != steps || json_array_size(row) != ranks;
        if (fault->size || !json_is_integer(value) || time < least || time > VALUE_MOST) {
            free(times);
            return false;
        }
        times[i] = time;
    }
    *ns = times;
    return true;
}

json_t *dt_times_json(const long long *ns, int steps, int ranks)
{
    json_t *rows = ns != NULL || steps == 0 ? json_array() : NULL;
    for (int i = 0; rows != NULL && i < steps; i++) {
        json_t *row = json_array();
        for (int r = 0; r < ranks; r++)
            json_array_append_new(row, json_integer(*ns++));
        json_array_append_new(rows, row);
    }
    return rows;
}

static bool clock_read(const json_t *rows, bool gaps, struct dt_run *run,
                       struct dt_run_fault *fault)
{
    size_t ranks = (size_t)run->ranks, all = (size_t)run->steps * ranks;
    run->clock = calloc(all + 1, sizeof *run->clock);
    for (size_t i = 0; run->clock != NULL && i < all; i++) {
        const json_t *row = json_array_get(rows, i / ranks);
        bool gap = gaps && json_is_null(row);
        run->clock[i] = gap ? NAN : json_number_value(json_array_get(row, i % ranks));
        fault->step = i / ranks;
        fault->size = json_array_size(rows) != (size_t)run->steps;
        if (fault->size || (!gap && (json_array_size(row) != ranks || !(run->clock[i] > 0))))
            return false;
    }
    return true;
}

json_t *dt_clock_json(const struct dt_run *run)
{
    json_t *rows = run->clock != NULL ? json_array() : NULL;
    for (int i = 0; rows != NULL && i < run->steps; i++) {
        const double *clock = run->clock + (size_t)i * (size_t)run->ranks;
        json_t *row = isfinite(clock[0]) ? json_array() : json_null();
        for (int r = 0; r < run->ranks && json_is_array(row); r++)
            json_array_append_new(row, json_real(clock[r]));
        json_array_append_new(rows, row);
    }
    return rows;
}

bool dt_counts_read(const json_t *list, int total, int **counts, int *n)
{
    size_t size = json_array_size(list);
    int *steps = calloc(size + 1, sizeof *steps), left = total;
    bool right = true;
    for (size_t i = 0; steps != NULL && right && i < size; i++) {
        json_int_t count = json_integer_value(json_array_get(list, i));
        right = count >= 1 && count <= left;
        steps[i] = (int)count;
        left -= right ? (int)count : 0;
    }
    if (steps != NULL && (!right || left > 0)) {
        free(steps);
        return false;
    }
    *counts = steps;
    *n = (int)size;
    return true;
}

/* ---- telemetry, memory and remarks */

bool dt_telemetry_read(const json_t *list, int ranks, struct dt_rank_telemetry **telemetry)
{
    struct dt_rank_telemetry *made = NULL;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (dt_record_require(&dt_record_rank_telemetry, json_array_get(list, i), "telemetry") <
                0 ||
            dt_json_integer_at(json_array_get(list, i), "looks") > LOOKS_MOST)
            return false;
    if (json_array_size(list) != (size_t)ranks || DT_RESIZE(made, ranks) < 0)
        return false;
    for (int i = 0; i < ranks; i++)
        dt_record_read(&dt_record_rank_telemetry, json_array_get(list, (size_t)i), &made[i]);
    *telemetry = made;
    return true;
}

json_t *dt_telemetry_json(const struct dt_rank_telemetry *telemetry, int ranks)
{
    json_t *list = telemetry != NULL ? json_array() : NULL;
    for (int r = 0; list != NULL && r < ranks; r++)
        json_array_append_new(list, dt_record_json(&dt_record_rank_telemetry, &telemetry[r]));
    return list;
}

bool dt_device_bytes_read(const json_t *object, int ranks, struct dt_device_bytes *bytes)
{
    bool right = dt_record_check(&dt_record_device_bytes, object, "memory") == DT_OK;
    dt_record_read(&dt_record_device_bytes, object, bytes);
    for (int i = 0; i < 4; i++)
        right = right && (lists_of(bytes, i)->at == NULL || lists_of(bytes, i)->count == ranks);
    bytes->resident.known = bytes->resident.known && dt_device_bytes_known(bytes);
    if (!right)
        dt_device_bytes_fini(bytes);
    return right;
}

json_t *dt_device_bytes_json(const struct dt_device_bytes *bytes)
{
    return dt_device_bytes_known(bytes) ? dt_record_json(&dt_record_device_bytes, bytes) : NULL;
}

bool dt_remarks_read(const json_t *object, struct dt_remarks **remarks)
{
    const json_t *runs = json_object_get(object, "runs"),
                 *warnings = json_object_get(object, "warnings");
    bool right = dt_record_check(&dt_record_remarks, object, "remarks") == DT_OK &&
                 json_array_size(warnings) <= DT_REMARKS_MOST &&
                 json_integer_value(runs) <= RUNS_MOST;
    for (size_t i = 0; i < json_array_size(warnings) && right; i++) {
        const json_t *one = json_array_get(warnings, i);
        right = dt_record_require(&dt_record_remark, one, "remarks") == DT_OK &&
                dt_json_text_at(one, "say")[0] != '\0' &&
                dt_json_integer_at(one, "runs") <= RUNS_MOST;
    }
    *remarks = right && (runs != NULL || warnings != NULL) ? malloc(sizeof **remarks) : NULL;
    if (*remarks != NULL)
        dt_record_read(&dt_record_remarks, object, *remarks);
    return right;
}

json_t *dt_remarks_json(const struct dt_remarks *remarks)
{
    return remarks != NULL ? dt_record_json(&dt_record_remarks, remarks) : NULL;
}

json_t *dt_phases_json(const struct dt_phase_sums *phases)
{
    return phases != NULL ? dt_record_json(&dt_record_phase_sums, phases) : NULL;
}

/* ---- runs */

/* The value that is there and not null; the field that is at fault next. */
static const json_t *part_of(const json_t *object, const char *name, struct dt_run_fault *fault)
{
    const json_t *value = json_object_get(object, name);
    fault->field = name;
    return json_is_null(value) ? NULL : value;
}

static dt_status samples_read(const json_t *rows, struct dt_run *run, struct dt_run_fault *fault)
{
    size_t steps = json_array_size(rows), ranks = json_array_size(json_array_get(rows, 0));
    *fault = (struct dt_run_fault){.field = "ns", .size = true};
    if (json_is_array(rows) && steps == 0)
        return DT_OK;
    if (!json_is_array(rows) || steps > STEPS_MOST || ranks > RANKS_MOST || ranks == 0 ||
        !dt_times_read(rows, steps, ranks, 1, &run->ns, fault))
        return DT_FAILED;
    for (size_t i = 0; run->ns != NULL && i < steps * ranks; i++)
        if (run->ns[i] > DT_STEP_NS_MOST) {
            *fault = (struct dt_run_fault){.field = "ns", .step = i / ranks};
            return DT_FAILED;
        }
    run->steps = (int)steps;
    run->ranks = (int)ranks;
    return run->ns != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory for the samples");
}

/* The parts beside the samples; false: fault->field is malformed. */
static bool parts_read(const json_t *object, const struct dt_run_form *form, struct dt_run *run,
                       struct dt_run_fault *fault)
{
    const json_t *timed = run->steps > 0 ? object : NULL, *part,
                 *phases = json_object_get(object, "phases");
    size_t steps = (size_t)run->steps, ranks = (size_t)run->ranks;
    part = part_of(timed, "clock", fault);
    if (part != NULL && !clock_read(part, form->gaps, run, fault))
        return false;
    part = part_of(timed, "device_ns", fault);
    if (part != NULL && !dt_times_read(part, steps, ranks, 0, &run->device_ns, fault))
        return false;
    part = part_of(timed, "host_ns", fault);
    if (part != NULL && !dt_times_read(part, steps, ranks, 0, &run->host_ns, fault))
        return false;
    part = part_of(timed, "telemetry", fault);
    if (part != NULL && !dt_telemetry_read(part, run->ranks, &run->telemetry))
        return false;
    part = part_of(form->starts ? object : NULL, "starts", fault);
    if (part != NULL && !dt_counts_read(part, run->steps, &run->starts, &run->start_count))
        return false;
    if (json_is_object(phases) && DT_RESIZE(run->phases, 1) == DT_OK)
        dt_record_read(&dt_record_phase_sums, phases, run->phases);
    fault->field = "remarks";
    return dt_remarks_read(form->remarks, &run->remarks);
}

dt_status dt_run_read(const json_t *object, const struct dt_run_form *form, struct dt_run *run,
                      struct dt_run_fault *fault)
{
    DT_TRY(samples_read(json_object_get(object, "ns"), run, fault));
    return parts_read(object, form, run, fault) ? DT_OK : DT_FAILED;
}
