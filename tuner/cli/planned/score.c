/* SPDX-License-Identifier: MIT */
#include "tuner/cli/planned/score.h"

#include "base/array.h"
#include "base/figures.h"
#include "base/json.h"
#include "db/engines/engines.h"
#include "model/predict.h"
#include "tuner/cli/print.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The columns of a table, in any order; those before NEEDED must be there. */
enum column {
    AT_table,
    AT_model,
    AT_gpu,
    AT_gpus,
    AT_cfg,
    AT_tp,
    AT_ulysses,
    AT_ring,
    AT_metric,
    AT_value,
    AT_unit,
    NEEDED,
    AT_kv_gather = NEEDED,
    AT_fsdp,
    AT_vae_sp,
    AT_engine,
    AT_memory,
    AT_note,
    AT_link,
    AT_source,
    COLUMN_COUNT
};
static const char *const column_names[] = {"table",  "model",     "gpu",  "gpus",   "cfg",
                                           "tp",     "ulysses",   "ring", "metric", "value",
                                           "unit",   "kv_gather", "fsdp", "vae_sp", "engine",
                                           "memory", "note",      "link", "source", NULL};

enum {
    LINE_ROOM = 4096,
    ROWS_MOST = 1024,
    TEXT_ROOM = 160,
    KNOWN_DEVICES = 1024,
    STEPS_MOST = 1 << 20
};

enum metric { METRIC_REQUEST, METRIC_STEPS, METRIC_OTHER };

struct measured_row {
    char table[32], gpu[64], model[TEXT_ROOM];
    struct dt_degrees degrees;
    int devices, steps;
    enum metric metric;
    double seconds;
    double memory_bytes; /* 0: not told */
    bool sized;          /* its size is told */
    bool offloaded;      /* some weights lie on the host */
    int line;
    const char *why; /* it is not scored; NULL: it is */
    struct dt_card card;
    struct dt_machine_card machine;
    struct dt_predict_job job;
    struct dt_prediction prediction;
    double predicted, factor; /* seconds; of the 80 % interval */
    int anchor;               /* the row that scaled it, -1: none */
};

struct table {
    struct measured_row *rows;
    int count, line;
    const char *path;
    int at[COLUMN_COUNT]; /* the field of a column; -1: none */
};

/* ---- reading */

/* Splits a line of CSV in place: quotes around a field, doubled within. Returns the number of fields. */
static int split(char *line, char *fields[], int most)
{
    int n = 0;
    for (char *at = line; at != NULL && n < most;) {
        char *to = at;
        bool quoted = *at == '"';
        fields[n++] = at;
        if (!quoted) {
            at = strpbrk(at, ",\r\n");
            bool more = at != NULL && *at == ',';
            if (at != NULL)
                *at++ = '\0';
            at = more ? at : NULL;
            continue;
        }
        for (at++; *at != '\0' && (*at != '"' || at[1] == '"'); at++) {
            at += *at == '"';
            *to++ = *at;
        }
        bool more = *at == '"' && at[1] == ',';
        at = more ? at + 2 : NULL;
        *to = '\0';
    }
    return n;
}

static dt_status read_header(struct table *table, char *line)
{
    char *fields[64];
    int n = split(line, fields, 64);
    for (int i = 0; i < COLUMN_COUNT; i++)
        table->at[i] = -1;
    for (int i = 0; i < n; i++) {
        int column = dt_text_index(fields[i], column_names);
        if (column < 0)
            return dt_fail(DT_EUSAGE,
                           "%s: the column '%.60s' is unknown: expected table, model, gpu, gpus, "
                           "cfg, tp, ulysses, ring, metric, value, unit, and of others kv_gather, "
                           "fsdp, vae_sp, engine, link, memory, note, source",
                           table->path, fields[i]);
        table->at[column] = i;
    }
    for (int i = 0; i < (int)NEEDED; i++)
        if (table->at[i] < 0)
            return dt_fail(DT_EUSAGE, "%s: there is no column '%s'", table->path, column_names[i]);
    return DT_OK;
}

static const char *field(const struct table *table, char *fields[], int n, enum column column)
{
    int at = table->at[column];
    return at >= 0 && at < n ? fields[at] : "";
}

static void copy(char *to, size_t room, const char *text)
{
    snprintf(to, room, "%s", text);
}

/* The model's card that the text names by the longest alias; false: none. */
static bool find_card(const char *text, struct dt_card *card)
{
    size_t longest = 0;
    for (const char *const *name = dt_cards(); *name != NULL; name++) {
        struct dt_card read;
        if (!dt_card_known(*name, &read))
            continue;
        for (int i = 0; i < DT_CARD_ALIASES && read.aliases[i][0] != '\0'; i++)
            if (strlen(read.aliases[i]) > longest && strcasestr(text, read.aliases[i]) != NULL) {
                longest = strlen(read.aliases[i]);
                *card = read;
            }
    }
    return longest > 0;
}

/* "832x480", "1344x768x124", "81 frames", "50 steps" in the text. False: the model cannot take them; frames may be any. */
static bool read_shape(const char *text, struct measured_row *row, bool *has_size)
{
    struct dt_frames *size = &row->job.size;
    bool sized = false;
    *size = row->card.usual;
    for (const char *at = text; *at != '\0'; at++) {
        long long width, height, frames;
        int used = 0;
        if (at > text && at[-1] >= '0' && at[-1] <= '9')
            continue;
        if (!sized && sscanf(at, "%lldx%lldx%lld", &width, &height, &frames) == 3) {
            *size = (struct dt_frames){width, height, frames};
            sized = true;
        } else if (!sized && sscanf(at, "%lldx%lld", &width, &height) == 2) {
            *size = (struct dt_frames){width, height, row->card.usual.frames};
            sized = true;
        }
        if (sscanf(at, "%lld frames%n", &frames, &used) == 1 && used > 0)
            size->frames = frames;
        used = 0;
        if (sscanf(at, "%lld steps%n", &frames, &used) == 1 && used > 0)
            row->steps = frames < STEPS_MOST ? (int)frames : 0;
        used = 0;
        if (sscanf(at, "%lld updates%n", &frames, &used) == 1 && used > 0)
            row->steps = frames < STEPS_MOST ? (int)frames : 0;
    }
    struct dt_frames whole = *size;
    whole.frames = row->card.usual.frames;
    *has_size = sized;
    return row->steps >= 1 && size->frames >= 1 && size->frames < STEPS_MOST &&
           whole.width < STEPS_MOST && whole.height < STEPS_MOST &&
           (!sized || dt_card_check_size(&row->card, whole) == DT_OK);
}

static enum metric metric_of(const char *text)
{
    if (strcmp(text, "e2e") == 0 || strcmp(text, "pipeline") == 0)
        return METRIC_REQUEST;
    return strncmp(text, "denoise", 7) == 0 || strncmp(text, "DiT", 3) == 0 ? METRIC_STEPS
                                                                            : METRIC_OTHER;
}

static dt_status read_numbers(struct table *table, char *fields[], int n, struct measured_row *row)
{
    const char *unit = field(table, fields, n, AT_unit), *value = field(table, fields, n, AT_value);
    char *end;
    row->seconds = strtod(value, &end);
    if (end == value || *end != '\0' || !(row->seconds > 0 && row->seconds < 1e9))
        return dt_fail(DT_EUSAGE, "%s, line %d: the value '%.40s' is no number above 0",
                       table->path, table->line, value);
    if (strcmp(unit, "ms") == 0)
        row->seconds *= 1e-3;
    else if (strcmp(unit, "s") != 0)
        return dt_fail(DT_EUSAGE, "%s, line %d: the unit '%.40s' is unknown: expected s or ms",
                       table->path, table->line, unit);
    const struct {
        enum column column;
        int *to;
    } counts[] = {{AT_gpus, &row->devices},      {AT_cfg, &row->degrees.cfg},
                  {AT_tp, &row->degrees.tensor}, {AT_ulysses, &row->degrees.ulysses},
                  {AT_ring, &row->degrees.ring}, {AT_kv_gather, &row->degrees.kv_gather},
                  {AT_vae_sp, &row->degrees.vae}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const char *text = field(table, fields, n, counts[i].column);
        long count = text[0] != '\0' ? strtol(text, &end, 10) : 1;
        if (strcmp(text, "?") == 0)
            row->why = "a degree is not told";
        else if (count < 1 || count > KNOWN_DEVICES || (text[0] != '\0' && *end != '\0'))
            return dt_fail(DT_EUSAGE, "%s, line %d: '%s' is '%.40s', no count of 1 to %d",
                           table->path, table->line, column_names[counts[i].column], text,
                           KNOWN_DEVICES);
        *counts[i].to = (int)count;
    }
    row->degrees.shards = strcmp(field(table, fields, n, AT_fsdp), "1") == 0;
    double gib = strtod(field(table, fields, n, AT_memory), &end);
    row->memory_bytes = gib * (strstr(end, "MB") != NULL ? 1048576.0 : 1073741824.0);
    return DT_OK;
}

static int64_t devices_of(const struct dt_degrees *d)
{
    return (int64_t)d->cfg * d->tensor * d->ulysses * d->ring * d->kv_gather;
}

/* "same" and an empty model are those of the row before. */
static dt_status read_row(struct table *table, char *line)
{
    char *fields[64];
    int n = split(line, fields, 64);
    struct measured_row *row = &table->rows[table->count];
    const struct measured_row *before = table->count > 0 ? row - 1 : NULL;
    *row = (struct measured_row){.anchor = -1, .steps = 50, .line = table->line};
    copy(row->table, sizeof row->table, field(table, fields, n, AT_table));
    const char *model = field(table, fields, n, AT_model), *gpu = field(table, fields, n, AT_gpu);
    bool same = strcmp(model, "same") == 0 && before != NULL;
    copy(row->model, sizeof row->model, same ? before->model : model);
    copy(row->gpu, sizeof row->gpu, gpu[0] == '\0' && before != NULL ? before->gpu : gpu);
    row->metric = metric_of(field(table, fields, n, AT_metric));
    DT_TRY(read_numbers(table, fields, n, row));
    const char *note = field(table, fields, n, AT_note),
               *engine = field(table, fields, n, AT_engine);
    row->offloaded = strstr(note, "streamed") != NULL || strstr(note, "offload") != NULL;
    bool told = strstr(row->model, "eager") != NULL || strstr(note, "eager") != NULL;
    dt_engine_runs(engine, !told, &row->job);
    row->job.eager = told;
    if (row->metric == METRIC_OTHER)
        row->why = "neither a request nor its steps";
    else if (!find_card(row->model, &row->card))
        row->why = "no card of this model";
    else if (!dt_machine_card_of(row->gpu, &row->machine))
        row->why = "no card of this device";
    else if (devices_of(&row->degrees) != row->devices && row->why == NULL)
        row->why = "its degrees do not make its devices";
    else if (!read_shape(row->model, row, &row->sized))
        row->why = "the model cannot take its size or steps";
    table->count++;
    return DT_OK;
}

static dt_status read_table(struct table *table)
{
    char line[LINE_ROOM];
    FILE *file = fopen(table->path, "r");
    dt_status status = DT_OK;
    if (file == NULL)
        return dt_fail(DT_EIO, "cannot read the table '%s': %s", table->path, strerror(errno));
    while (status == DT_OK && fgets(line, sizeof line, file) != NULL) {
        static const char mark[] = "\xef\xbb\xbf"; /* that some programs begin a file with */
        bool cut = strchr(line, '\n') == NULL && feof(file) == 0;
        if (cut)
            status = dt_fail(DT_EUSAGE, "%s, line %d: it has more than %d bytes", table->path,
                             table->line + 1, LINE_ROOM - 1);
        else if (table->line++ == 0)
            status = read_header(table, line + (strncmp(line, mark, 3) == 0 ? 3 : 0));
        else if (line[strspn(line, " \r\n")] != '\0')
            status = table->count < ROWS_MOST
                         ? read_row(table, line)
                         : dt_fail(DT_EUSAGE, "%s has more than %d rows", table->path, ROWS_MOST);
    }
    (void)fclose(file);
    if (status == DT_OK && table->count == 0)
        status = dt_fail(DT_EUSAGE, "%s has no row of measured times", table->path);
    return status;
}

/* ---- predicting */

static bool is_group(const struct measured_row *a, const struct measured_row *b)
{
    return strcmp(a->table, b->table) == 0 && strcmp(a->gpu, b->gpu) == 0 &&
           strcmp(a->model, b->model) == 0 && a->metric == b->metric;
}

/* The row of fewest devices whose plan the rule of thumb prefers. */
static int anchor_of(const struct table *table, int i)
{
    int best = -1;
    for (int k = 0; k < table->count; k++) {
        const struct measured_row *row = &table->rows[k];
        if (row->why != NULL || row->offloaded || !is_group(row, &table->rows[i]))
            continue;
        const struct measured_row *before = best >= 0 ? &table->rows[best] : NULL;
        if (before == NULL || row->devices < before->devices ||
            (row->devices == before->devices &&
             dt_predict_rule(&row->degrees, &before->degrees) < 0))
            best = k;
    }
    return best;
}

static double own_seconds(const struct measured_row *row)
{
    return row->metric == METRIC_REQUEST ? row->prediction.request
                                         : row->steps * row->prediction.step;
}

/* Modes that the forms have no term for: caches, sparse attention, narrow numbers; or a size that is not told. */
static bool is_unsure(const struct measured_row *row)
{
    return !row->sized || strcasestr(row->model, "cache") != NULL ||
           strcasestr(row->model, "sparse") != NULL || strcasestr(row->model, "fp4") != NULL ||
           strcasestr(row->model, "fp8") != NULL;
}

static void predict_rows(struct table *table)
{
    for (int i = 0; i < table->count; i++) {
        struct measured_row *row = &table->rows[i];
        if (row->why != NULL)
            continue;
        row->job.card = &row->card;
        row->job.machine = &row->machine;
        row->job.text_tokens = row->card.text_tokens;
        row->job.guided =
            row->card.guidance == DT_GUIDANCE_CFG && strstr(row->model, "no guidance") == NULL;
        row->job.steps = row->steps;
        dt_predict(&row->job, &row->degrees, &row->prediction);
    }
    for (int i = 0; i < table->count; i++) {
        struct measured_row *row = &table->rows[i];
        if (row->why != NULL)
            continue;
        bool unsure = is_unsure(row);
        row->anchor = anchor_of(table, i);
        const struct measured_row *anchor = row->anchor >= 0 ? &table->rows[row->anchor] : NULL;
        row->predicted = own_seconds(row);
        if (anchor != NULL)
            row->predicted *= anchor->seconds / own_seconds(anchor);
        row->factor = dt_predict_factor(dt_predict_spread(
            &row->prediction, anchor != NULL ? &anchor->prediction : NULL, unsure));
    }
}

/* ---- scores */

struct pair { /* one table, device and number of devices */
    const struct measured_row *first, *best, *picked, *ruled;
    int plans;
    double mean; /* seconds of its plans: what random choice gets */
};

/* The least measured row of the plan, in the pair of `of`. */
static const struct measured_row *least_of(const struct table *table, const struct measured_row *of)
{
    const struct measured_row *least = of;
    for (int k = 0; k < table->count; k++) {
        const struct measured_row *row = &table->rows[k];
        if (row->why == NULL && is_group(row, of) && row->devices == of->devices &&
            dt_degrees_equal(&row->degrees, &of->degrees) && row->seconds < least->seconds)
            least = row;
    }
    return least;
}

#define TIE 1.02 /* of predicted times: the rule of thumb decides */

/* Fills the pair that begins with row i; false: an earlier row is of it, or it has one plan only. */
static bool find_pair(const struct table *table, int i, struct pair *pair)
{
    const struct measured_row *of = &table->rows[i];
    double sum = 0;
    *pair = (struct pair){.first = of};
    if (of->why != NULL)
        return false;
    for (int k = 0; k < table->count; k++) {
        const struct measured_row *row = &table->rows[k];
        if (row->why != NULL || !is_group(row, of) || row->devices != of->devices)
            continue;
        if (k < i)
            return false;
        if (row != least_of(table, row))
            continue;
        pair->plans++;
        sum += row->seconds;
        if (pair->best == NULL || row->seconds < pair->best->seconds)
            pair->best = row;
        if (pair->ruled == NULL || dt_predict_rule(&row->degrees, &pair->ruled->degrees) < 0)
            pair->ruled = row;
        const struct measured_row *picked = pair->picked;
        bool close = picked != NULL && row->predicted < TIE * picked->predicted &&
                     picked->predicted < TIE * row->predicted;
        if (picked == NULL || (close ? dt_predict_rule(&row->degrees, &picked->degrees) < 0
                                     : row->predicted < picked->predicted))
            pair->picked = row;
    }
    pair->mean = sum / (pair->plans > 0 ? pair->plans : 1);
    return pair->plans > 1;
}

/* A request is scored where steps are not told by themselves: a table's denoise rows stand for its requests. */
static bool has_steps(const struct table *table, const struct measured_row *of)
{
    for (int k = 0; k < table->count; k++) {
        const struct measured_row *row = &table->rows[k];
        if (of->metric == METRIC_REQUEST && row->metric == METRIC_STEPS && row->why == NULL &&
            strcmp(row->table, of->table) == 0 && row->devices == of->devices &&
            dt_degrees_equal(&row->degrees, &of->degrees))
            return true;
    }
    return false;
}

static void add_degrees(const struct dt_degrees *d, struct dt_text *out)
{
    const struct {
        const char *name;
        int degree;
    } rows[] = {{"cfg", d->cfg},
                {"tensor", d->tensor},
                {"ulysses", d->ulysses},
                {"ring", d->ring},
                {"kv_gather", d->kv_gather}};
    int words = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].degree > 1)
            dt_text_add(out, "%s%s=%d", words++ > 0 ? " " : "", rows[i].name, rows[i].degree);
    if (words == 0)
        dt_text_add(out, "one device");
}

struct score {
    int pairs, right, worse; /* within 3 %; of more regret than the rule */
    double errors[ROWS_MOST];
    int count, within_30, covered, skipped;
    int memories, memories_right, false_fits;
};

static json_t *score_pairs(const struct table *table, struct score *score, struct dt_text *out)
{
    json_t *list = json_array();
    dt_text_add(out, "%-6s %-22s %7s %5s  %8s %8s %8s  %s\n", "table", "device", "devices", "plans",
                "plan, %", "rule, %", "random, %", "predicted best / measured best");
    for (int i = 0; i < table->count; i++) {
        struct pair pair;
        if (!find_pair(table, i, &pair))
            continue;
        if (has_steps(table, pair.first))
            continue; /* counted by its steps' rows */
        double best = pair.best->seconds, regret = 100 * (pair.picked->seconds / best - 1);
        double rule = 100 * (pair.ruled->seconds / best - 1);
        score->pairs++;
        score->right += regret <= 3;
        score->worse += regret > rule + 1e-9;
        dt_auto_text picked = {0}, fastest = {0};
        add_degrees(&pair.picked->degrees, &picked);
        add_degrees(&pair.best->degrees, &fastest);
        dt_text_add(out, "%-6s %-22.22s %7d %5d  %8.1f %8.1f %8.1f   %s / %s\n", pair.first->table,
                    pair.first->gpu, pair.first->devices, pair.plans, regret, rule,
                    100 * (pair.mean / best - 1), dt_text_at(&picked), dt_text_at(&fastest));
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:i, s:f, s:f, s:f}", "table",
                                              pair.first->table, "device", pair.first->gpu,
                                              "devices", pair.first->devices, "plans", pair.plans,
                                              "regret", regret / 100, "rule_regret", rule / 100,
                                              "random_regret", pair.mean / best - 1));
    }
    return list;
}

static void score_memory(const struct measured_row *row, struct score *score)
{
    if (row->memory_bytes <= 0 || row->offloaded)
        return;
    double predicted = row->prediction.memory_bytes;
    score->memories++;
    score->memories_right += fabs(predicted / row->memory_bytes - 1) <= 0.1;
    score->false_fits += predicted <= dt_rate_value(row->machine.memory) &&
                         row->memory_bytes > dt_rate_value(row->machine.memory);
}

static json_t *score_times(const struct table *table, struct score *score, struct dt_text *out)
{
    json_t *list = json_array();
    dt_text_add(out, "\n%-6s %-22s %7s  %-28s %10s %10s %7s  %s\n", "table", "device", "devices",
                "plan", "measured, s", "predicted, s", "error", "80 % interval");
    for (int i = 0; i < table->count; i++) {
        const struct measured_row *row = &table->rows[i];
        score->skipped += row->why != NULL;
        if (row->why == NULL && row->metric == METRIC_REQUEST)
            score_memory(row, score);
        if (row->why != NULL || row->anchor == i || row->anchor < 0 || row->offloaded ||
            has_steps(table, row))
            continue;
        dt_auto_text name = {0};
        double error = row->predicted / row->seconds - 1;
        bool covered = row->seconds >= row->predicted / row->factor &&
                       row->seconds <= row->predicted * row->factor;
        score->errors[score->count++] = fabs(error);
        score->within_30 += fabs(error) <= 0.3;
        score->covered += covered;
        add_degrees(&row->degrees, &name);
        dt_text_add(out, "%-6s %-22.22s %7d  %-28s %10.4g %10.4g %+6.1f%%  %s\n", row->table,
                    row->gpu, row->devices, dt_text_at(&name), row->seconds, row->predicted,
                    100 * error, covered ? "holds it" : "misses it");
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:i, s:s, s:f, s:f, s:b}", "table", row->table,
                                        "device", row->gpu, "devices", row->devices, "plan",
                                        dt_text_at(&name), "measured_seconds", row->seconds,
                                        "predicted_seconds", row->predicted, "covered", covered));
    }
    return list;
}

static double quantile(double values[], int count, double share)
{
    return count > 0 ? values[(int)(share * (count - 1) + 0.5)] : NAN;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void add_skipped(const struct table *table, struct dt_text *out)
{
    for (int i = 0; i < table->count; i++)
        if (table->rows[i].why != NULL && table->rows[i].metric != METRIC_OTHER)
            dt_text_add(out, "not scored, line %d (%.60s, %.30s): %s\n", table->rows[i].line,
                        table->rows[i].model, table->rows[i].gpu, table->rows[i].why);
}

static dt_status print_score(const struct dt_options *options, const struct table *table)
{
    struct score *score = calloc(1, sizeof *score);
    struct dt_text text = {0};
    if (score == NULL)
        return dt_fail(DT_ENOMEM, "no memory for scores");
    json_t *pairs = score_pairs(table, score, &text), *times = score_times(table, score, &text);
    qsort(score->errors, (size_t)score->count, sizeof score->errors[0], ascending);
    if (score->count == 0) {
        json_decref(pairs);
        json_decref(times);
        free(score);
        dt_auto_text why = {0};
        add_skipped(table, &why);
        dt_text_fini(&text);
        return dt_fail(DT_EUSAGE,
                       "%s has no row to score: two rows of one table, device and model are "
                       "needed, of which one is the measured time that scales the other\n%s",
                       table->path, dt_text_at(&why));
    }
    double median = quantile(score->errors, score->count, 0.5);
    double ninth = quantile(score->errors, score->count, 0.9);
    add_skipped(table, &text);
    dt_text_add(
        &text,
        "\nwinners: %d of %d pairs right or within 3 %%, %d of more regret than the rule of "
        "thumb\ntimes after one measured row: median error %.1f %%, nine of ten within "
        "%.1f %%, %d of %d within 30 %%; the 80 %% intervals hold %d of %d\nmemory: %d of "
        "%d within 10 %%, %d false fits\n",
        score->right, score->pairs, score->worse, 100 * median, 100 * ninth, score->within_30,
        score->count, score->covered, score->count, score->memories_right, score->memories,
        score->false_fits);
    json_t *answer = json_pack(
        "{s:o, s:o, s:i, s:i, s:i, s:f, s:f, s:i, s:i, s:i, s:i, s:i, s:i}", "pairs", pairs,
        "times", times, "right", score->right, "of", score->pairs, "worse_than_rule", score->worse,
        "median_error", median, "ninth_error", ninth, "within_30", score->within_30, "covered",
        score->covered, "scored", score->count, "memories_right", score->memories_right, "memories",
        score->memories, "false_fits", score->false_fits);
    free(score);
    return dt_print_either(options, DT_OK, answer, &text);
}

dt_status dt_score_table(const struct dt_options *options, const char *path)
{
    struct table table = {.path = path};
    table.rows = calloc(ROWS_MOST, sizeof *table.rows);
    if (table.rows == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a table");
    dt_status status = read_table(&table);
    if (status == DT_OK) {
        predict_rows(&table);
        status = print_score(options, &table);
    }
    free(table.rows);
    return status;
}
