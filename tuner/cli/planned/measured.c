/* SPDX-License-Identifier: MIT */
#include "tuner/cli/planned/measured.h"

#include "base/array.h"
#include "base/figures.h"
#include "base/read.h"
#include "db/engines/engines.h"

#include <ctype.h>
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
    FILE_MOST = 4 << 20,
    FIELDS_MOST = 64,
    DEVICES_MOST = 1024,
    SIDE_MOST = 1 << 15,
    NUMBER_MOST = 1 << 20
};

/* ---- CSV */

struct csv {
    const char *path;
    char *at, separator;
    int next, line; /* lines of the file: of `at`, and where the record began */
    bool open;      /* the record ends within quotes */
    char *fields[FIELDS_MOST];
    int count, columns;          /* cells of the record, columns of the header */
    int column_at[COLUMN_COUNT]; /* the field of a column; -1: none */
    struct dt_card *cards;       /* all, owned */
    int card_count;
};

/* Splits the next record in place, without the blanks around its fields. A field in quotes may have
 * commas and line feeds; a doubled quote is one. False: the file is at its end. */
static bool next_record(struct csv *csv)
{
    bool more = *csv->at != '\0';
    csv->line = csv->next;
    csv->count = 0;
    csv->open = false;
    while (more) {
        char *from = csv->at + strspn(csv->at, csv->separator == ',' ? " \t" : " "), *to = from,
             *at = from;
        bool quoted = *at == '"';
        for (at += quoted; *at != '\0'; at++) {
            if (quoted && *at == '"' && *++at != '"')
                quoted = false;
            if (*at == '\0' || (!quoted && (*at == csv->separator || *at == '\n')))
                break;
            csv->next += *at == '\n';
            *to++ = (char)(isspace((unsigned char)*at) ? ' ' : *at);
        }
        more = *at == csv->separator;
        csv->open = quoted && *at == '\0';
        csv->next += *at == '\n';
        csv->at = *at != '\0' ? at + 1 : at;
        while (to > from && to[-1] == ' ')
            to--;
        *to = '\0';
        if (csv->count < FIELDS_MOST)
            csv->fields[csv->count++] = from;
    }
    return csv->count > 0;
}

static const char *csv_field(const struct csv *csv, enum column column)
{
    int at = csv->column_at[column];
    return at >= 0 && at < csv->count ? csv->fields[at] : "";
}

static void lower_text(char *text)
{
    for (; *text != '\0'; text++)
        *text = (char)tolower((unsigned char)*text);
}

static dt_status read_header(struct csv *csv)
{
    csv->columns = csv->count;
    for (int i = 0; i < COLUMN_COUNT; i++)
        csv->column_at[i] = -1;
    if (csv->count == 1 && strpbrk(csv->fields[0], ";|") != NULL)
        return dt_fail(
            DT_EUSAGE,
            "%s: its columns are not separated by commas or tabs: expected '%s,%s,%s,...'",
            csv->path, column_names[0], column_names[1], column_names[2]);
    for (int i = 0; i < csv->count; i++) {
        lower_text(csv->fields[i]);
        int column = dt_text_index(csv->fields[i], column_names);
        if (column < 0)
            return dt_fail(DT_EUSAGE,
                           "%s: the column '%.60s' is unknown: expected table, model, gpu, gpus, "
                           "cfg, tp, ulysses, ring, metric, value, unit, and of others kv_gather, "
                           "fsdp, vae_sp, engine, link, memory, note, source",
                           csv->path, csv->fields[i]);
        if (csv->column_at[column] >= 0)
            return dt_fail(DT_EUSAGE, "%s: there are two columns '%s'", csv->path, csv->fields[i]);
        csv->column_at[column] = i;
    }
    for (int i = 0; i < (int)NEEDED; i++)
        if (csv->column_at[i] < 0)
            return dt_fail(DT_EUSAGE, "%s: there is no column '%s'", csv->path, column_names[i]);
    return DT_OK;
}

/* ---- words */

static void copy_text(char *to, size_t room, const char *text)
{
    snprintf(to, room, "%s", text);
    dt_text_mend(to);
    dt_text_clean(to);
}

/* One of the words, separated by '|', is part of the text, case ignored. */
static bool text_mentions(const char *text, const char *words)
{
    for (const char *at = words; *at != '\0';) {
        size_t size = strcspn(at, "|");
        for (const char *in = text; *in != '\0'; in++)
            if (strncasecmp(in, at, size) == 0)
                return true;
        at += size + (at[size] == '|');
    }
    return false;
}

/* The text is one of the words, case ignored. */
static bool is_one_of(const char *text, const char *words)
{
    for (const char *at = words; *at != '\0';) {
        size_t size = strcspn(at, "|");
        if (strlen(text) == size && strncasecmp(text, at, size) == 0)
            return true;
        at += size + (at[size] == '|');
    }
    return false;
}

static bool is_absent(const char *text)
{
    return text[0] == '\0' || is_one_of(text, "-|none");
}

static bool is_unknown(const char *text)
{
    return is_one_of(text, "?|unknown|not stated|not told|n/a|na|nan");
}

static void leave_out(struct dt_measured_row *row, const char *why)
{
    if (row->why == NULL)
        row->why = why;
}

/* ---- models */

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '.';
}

/* Bytes of the word at the beginning: letters, digits and points between them. */
static size_t word_size(const char *at)
{
    size_t size = 0;
    while (isalnum((unsigned char)at[size]) ||
           (at[size] == '.' && size > 0 && isalnum((unsigned char)at[size + 1])))
        size++;
    return size;
}

/* Behind the word in the text, at its first place; NULL: it is not there. */
static const char *after_word(const char *text, const char *word, size_t size)
{
    for (const char *at = text; *at != '\0'; at += word_size(at) + (word_size(at) == 0))
        if (word_size(at) == size && strncasecmp(at, word, size) == 0)
            return at + size;
    return NULL;
}

static bool word_is(const char *at, const char *words)
{
    char word[32];
    size_t size = word_size(at);
    if (size == 0 || size >= sizeof word)
        return false;
    snprintf(word, sizeof word, "%.*s", (int)size, at);
    return is_one_of(word, words);
}

/* A word behind the name and a dash makes it another model ("FLUX.2-klein"), unless it is a size, a
 * date, a task or a format. */
static bool is_another(const char *behind)
{
    static const char same[] = "diffusers|preview|t2v|i2v|ti2v|720p|480p|bf16|fp8|dev|text|with";
    char word[32];
    size_t size = *behind == '-' ? word_size(behind + 1) : 0;
    if (size == 0 || size >= sizeof word)
        return size > 0;
    snprintf(word, sizeof word, "%.*s", (int)size, behind + 1);
    return strspn(word, "0123456789") != size && !is_one_of(word, same);
}

/* Words of the alias that the text has, each anywhere; 0: not all, or the text names another model.
 * Words for a task need not be there. */
static int alias_words(const char *alias, const char *text)
{
    int count = 0;
    const char *slash = strchr(alias, '/'), *behind = NULL;
    for (const char *at = slash != NULL ? slash + 1 : alias; *at != '\0';) {
        size_t size = word_size(at);
        const char *found = size > 0 ? after_word(text, at, size) : text;
        if (found == NULL && !word_is(at, "t2v|ti2v"))
            return 0;
        if (found != NULL && size > 0)
            behind = behind == NULL || found > behind ? found : behind;
        count += size > 0 && found != NULL;
        at += size > 0 ? size : 1;
    }
    return behind == NULL || is_another(behind) ? 0 : count;
}

/* The card whose name has most words of the text; NULL: none. */
static const struct dt_card *find_card(const struct csv *csv, const char *text)
{
    const struct dt_card *best = NULL;
    int most = 0;
    for (int k = 0; k < csv->card_count; k++)
        for (int i = 0; i < DT_CARD_ALIASES && csv->cards[k].aliases[i][0] != '\0'; i++) {
            int count = alias_words(csv->cards[k].aliases[i], text);
            if (count > most) {
                most = count;
                best = &csv->cards[k];
            }
        }
    return best;
}

static dt_status list_cards(struct csv *csv)
{
    for (const char *const *name = dt_cards(); *name != NULL; name++) {
        DT_TRY(DT_GROW(csv->cards, csv->card_count, 1));
        csv->card_count += dt_card_known(*name, &csv->cards[csv->card_count]);
    }
    return DT_OK;
}

/* ---- sizes */

struct shape {
    struct dt_frames size;
    int steps, steps_more; /* "40+3 steps" */
    double clip;           /* seconds of video; 0: not given */
    bool sized, stepped, framed;
    bool moved; /* to the nearest size that the model takes */
};

/* "832x480", "49 x 720 x 480": numbers with x, * or the sign of multiplication between.
 * Returns their count. */
static int read_product(const char *at, long long numbers[3], const char **end)
{
    int n = 0;
    char *stop;
    for (*end = at; n < 3 && isdigit((unsigned char)*at); at += strspn(at, " ")) {
        numbers[n++] = strtoll(at, &stop, 10);
        *end = stop;
        at = stop + strspn(stop, " ");
        if (*at == 'x' || *at == 'X' || *at == '*')
            at++;
        else if (strncmp(at, "\xc3\x97", 2) == 0)
            at += 2;
        else
            break;
    }
    return n;
}

/* "768p" is a video's usual size, or 16:9; "480p" 832 wide. */
static void read_lines(const struct dt_card *card, long long lines, struct shape *shape)
{
    int64_t low = card->usual.height < card->usual.width ? card->usual.height : card->usual.width;
    bool usual = llabs(lines - low) <= (long long)card->vae_space * card->patch;
    shape->size.width = usual ? card->usual.width : lines == 480 ? 832 : lines * 16 / 9;
    shape->size.height = usual ? card->usual.height : lines;
    shape->sized = true;
}

static void read_square(long long side, struct shape *shape)
{
    shape->size.width = shape->size.height = side;
    shape->sized = true;
}

/* Three numbers have the frames first or last: the least of them. */
static void read_sides(const long long n[3], int count, struct shape *shape)
{
    bool first = count == 3 && n[0] < n[1] && n[0] < n[2];
    shape->size.width = n[first ? 1 : 0];
    shape->size.height = n[first ? 2 : 1];
    shape->sized = true;
    if (count == 3) {
        shape->size.frames = n[first ? 0 : 2];
        shape->framed = true;
    }
}

/* One number and the word behind it: "81 frames", "50-step", "40+3 steps", "720p", "1024px", "2K",
 * "5s"; alone and of an image it is a side. */
static void read_number(const struct dt_card *card, long long number, const char *end, bool apart,
                        struct shape *shape)
{
    bool image = card->usual.frames == 1;
    size_t plus = *end == '+' ? 1 + strspn(end + 1, "0123456789") : 0;
    const char *word = end + plus;
    word += strspn(word, " -");
    if (word_is(word, "inference|sampling|denoising|denoise|diffusion"))
        word += word_size(word) + strspn(word + word_size(word), " -");
    if (word_is(word, "steps|step|updates|update|nfe|forwards")) {
        shape->steps = number < SIDE_MOST ? (int)number : 0;
        shape->steps_more = plus > 1 && plus < 6 ? (int)strtol(end + 1, NULL, 10) : 0;
        shape->stepped = true;
    } else if (word_is(word, "frames|frame|f")) {
        shape->size.frames = number;
        shape->framed = true;
    } else if (word_is(word, "s|sec|second|seconds") && !image && number <= 60)
        shape->clip = (double)number;
    else if (shape->sized)
        return;
    else if (word_is(end, "p"))
        read_lines(card, number, shape);
    else if (word_is(end, "k") && image && number <= 8)
        read_square(1024 * number, shape);
    else if (word_is(end, "px") || (apart && image && number >= 256 && number % 8 == 0 &&
                                    (*end == '\0' || strchr(",; )^", *end) != NULL)))
        read_square(number, shape);
}

/* "frames=81", "steps: 50" */
static bool read_assigned(const char *text, const char *at, long long number, struct shape *shape)
{
    while (at > text && at[-1] == ' ')
        at--;
    if (at == text || (at[-1] != '=' && at[-1] != ':'))
        return false;
    for (at--; at > text && at[-1] == ' ';)
        at--;
    bool frames = at - text >= 6 && strncasecmp(at - 6, "frames", 6) == 0;
    bool steps = at - text >= 5 && strncasecmp(at - 5, "steps", 5) == 0;
    if (frames)
        shape->size.frames = number;
    else if (steps)
        shape->steps = number < SIDE_MOST ? (int)number : 0;
    shape->framed |= frames;
    shape->stepped |= steps;
    return frames || steps;
}

static int64_t to_multiple(int64_t value, int64_t step)
{
    int64_t near = (value + (step - 1) / 2) / step * step;
    return near > 0 ? near : step;
}

/* Sides to the nearest that the model takes, as engines do. False: they are none. */
static bool settle_shape(const struct dt_card *card, struct shape *shape)
{
    int64_t side = (int64_t)card->vae_space * card->patch;
    struct dt_frames *size = &shape->size;
    if (size->width < side || size->height < side || size->width > SIDE_MOST ||
        size->height > SIDE_MOST || size->frames < 1 || size->frames > SIDE_MOST ||
        shape->steps < 1)
        return false;
    if (shape->clip > 0 && !shape->framed) /* usual frames are of five seconds or so */
        size->frames =
            1 + to_multiple((int64_t)((double)size->frames * shape->clip / 5), card->vae_time);
    const struct dt_frames asked = *size;
    size->width = to_multiple(size->width, side);
    size->height = to_multiple(size->height, side);
    shape->moved = size->width != asked.width || size->height != asked.height;
    return size->frames <= SIDE_MOST && (card->usual.frames > 1 || size->frames == 1);
}

/* Size, frames and steps that the text names. False: the model cannot take them. */
static bool read_shape(const char *text, const struct dt_card *card, struct shape *shape)
{
    *shape = (struct shape){.size = card->usual, .steps = 50};
    for (const char *at = text; *at != '\0';) {
        long long numbers[3] = {0};
        const char *end = at;
        bool begins = at == text || (!is_word(at[-1]) && at[-1] != '+');
        int count = begins ? read_product(at, numbers, &end) : 0;
        if (numbers[0] > NUMBER_MOST || numbers[1] > NUMBER_MOST || numbers[2] > NUMBER_MOST)
            count = 0;
        if (count > 1 && !shape->sized)
            read_sides(numbers, count, shape);
        else if (count == 1 && *end != '.' && !read_assigned(text, at, numbers[0], shape))
            read_number(card, numbers[0], end, at > text && at[-1] == ' ', shape);
        at = end > at ? end : at + 1;
    }
    return settle_shape(card, shape);
}

/* ---- devices */

/* "8xH100", "H100x8", "RTX4090", "4090": as the cards name them. */
static bool find_device(const char *text, struct dt_machine_card *machine)
{
    static const char digits[] = "0123456789";
    char bare[DT_MEASURED_WORD], graphics[DT_MEASURED_WORD + 8];
    size_t count = strspn(text, digits);
    bool counted = count > 0 && (text[count] == 'x' || text[count] == 'X');
    if (dt_machine_card_of(text, machine))
        return true;
    snprintf(bare, sizeof bare, "%s", counted ? text + count + 1 : text);
    for (char *x = bare; (x = strpbrk(x, "xX")) != NULL; x++)
        if (x > bare && isdigit((unsigned char)x[-1]) && x[1] != '\0' &&
            x[1 + strspn(x + 1, digits)] == '\0') {
            *x = '\0';
            break;
        }
    snprintf(graphics, sizeof graphics, "rtx %s",
             bare + (strncasecmp(bare, "rtx", 3) == 0 ? 3 : 0));
    return dt_machine_card_of(bare, machine) || dt_machine_card_of(graphics, machine);
}

/* "RTX 4090 48G": bytes of a device that the text gives; 0: none. */
static double told_bytes(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        char *end;
        if (!isdigit((unsigned char)*at) || (at > text && is_word(at[-1])))
            continue;
        long gib = strtol(at, &end, 10);
        if (word_is(end, "g|gb|gib") && gib > 0 && gib <= 1024)
            return (double)gib * DT_GIB;
    }
    return 0;
}

/* The link that the row names, where it is not that of the card's neighbours: its rate,
 * if the card has one. */
static void read_link(const char *link, struct dt_measured_row *row)
{
    struct dt_machine_card *machine = &row->machine;
    bool pcie = text_mentions(link, "pcie|pci-e") || text_mentions(row->text.gpu, "pcie");
    bool nvlink =
        text_mentions(link, "nvlink|nv18|nvswitch") || text_mentions(row->text.gpu, "nvl");
    enum dt_link told = pcie ? DT_LINK_pcie : DT_LINK_nvlink;
    if (pcie == nvlink || machine->pair == told)
        return;
    if (dt_rate_value(machine->links[told].rate) > 0) {
        machine->pair = told;
        machine->reach = machine->devices;
    } else
        row->unsure = true;
}

/* Link and memory of the row take the place of the card's. */
static void read_device(const struct csv *csv, int devices, struct dt_measured_row *row)
{
    struct dt_machine_card *machine = &row->machine;
    double bytes = told_bytes(row->text.gpu);
    read_link(csv_field(csv, AT_link), row);
    if (bytes > 0 && fabs(bytes / dt_rate_value(machine->memory) - 1) > 0.1) {
        machine->memory = (struct dt_rate){bytes, 0};
        row->unsure = true;
    }
    if (devices <= machine->devices)
        return;
    machine->hosts = (devices + machine->devices - 1) / machine->devices;
    if (machine->reach < devices && dt_rate_value(machine->links[DT_LINK_network].rate) <= 0)
        leave_out(row, "it has several hosts, and the card no rate of a network");
}

/* ---- metrics and numbers */

static enum dt_metric metric_of(const char *text)
{
    static const struct {
        const char *words;
        enum dt_metric metric;
    } rows[] = {
        {"throughput|qps|per second|per minute|per hour|fps|speedup|it/s|images/|videos/|requests/",
         DT_METRIC_NONE},
        {"decod", DT_METRIC_VAE},
        {"encod|memory|load|cold|first", DT_METRIC_NONE},
        {"per step|per-step|step time|step latency|per iter|s/it|s/step", DT_METRIC_STEP},
        {"denois|dit|diffus|sampl|transformer|steps", DT_METRIC_STEPS},
        {"step|iteration|update", DT_METRIC_STEP},
        {"e2e|end-to-end|end to end|latency|pipeline|total|request|wall|generat|inference|time",
         DT_METRIC_REQUEST}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (text_mentions(text, rows[i].words))
            return rows[i].metric;
    return strncasecmp(text, "vae", 3) == 0 ? DT_METRIC_VAE : DT_METRIC_NONE;
}

/* Seconds of a unit; 0: it is unknown. "s/step" and the like make a metric of
 * steps one of a step. */
static double unit_seconds(const char *unit, enum dt_metric *metric)
{
    static const struct {
        const char *words;
        double seconds;
    } rows[] = {{"s|sec|secs|second|seconds", 1},
                {"ms|msec|milliseconds", 1e-3},
                {"us|usec|\xc2\xb5s|microseconds", 1e-6},
                {"min|mins|minute|minutes", 60}};
    char word[32];
    size_t size = strcspn(unit, "/");
    if (is_one_of(unit + size, "/step|/it|/iter|/iteration|/update"))
        *metric = DT_METRIC_STEP;
    else if ((unit[size] == '/' && !is_one_of(unit + size, "/image|/video|/request")) ||
             size >= sizeof word)
        return 0;
    snprintf(word, sizeof word, "%.*s", (int)size, unit);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (is_one_of(word, rows[i].words))
            return rows[i].seconds;
    return 0;
}

/* A number, in which commas may group three digits: "1,904.08". *end: behind it; the text
 * itself: there is none. */
static double read_real(const char *text, const char **end)
{
    char digits[64];
    size_t n = 0;
    const char *at = text;
    for (; *at != '\0' && n + 1 < sizeof digits; at++) {
        bool groups = *at == ',' && at > text && strspn(at + 1, "0123456789") == 3;
        if (!groups)
            digits[n++] = *at;
    }
    digits[n] = '\0';
    char *stop;
    double value = strtod(digits, &stop);
    if (end != NULL) /* commas are counted by the digits that remain */
        *end = stop == digits ? text : at - strlen(stop);
    return value;
}

static dt_status read_time(const struct csv *csv, struct dt_measured_row *row)
{
    const char *unit = csv_field(csv, AT_unit), *value = csv_field(csv, AT_value), *end;
    bool timed = row->metric != DT_METRIC_NONE;
    if (timed && is_one_of(value, "oom|out of memory"))
        row->memory_bytes = INFINITY;
    if (isinf(row->memory_bytes))
        leave_out(row, "there was too little memory");
    else if (timed && (is_absent(value) || is_unknown(value)))
        leave_out(row, "it has no time");
    if (!timed || row->why != NULL)
        return DT_OK;
    row->seconds = read_real(value, &end);
    if (end == value || *end != '\0' || !(row->seconds > 0 && row->seconds < 1e9))
        return dt_fail(DT_EUSAGE, "%s, line %d: the value '%.40s' is no number above 0", csv->path,
                       csv->line, value);
    double seconds = unit_seconds(unit, &row->metric);
    row->seconds *= seconds;
    return seconds > 0 ? DT_OK
                       : dt_fail(DT_EUSAGE,
                                 "%s, line %d: the unit '%.40s' is unknown: expected s, "
                                 "ms, us or min, or one of them with /step",
                                 csv->path, csv->line, unit);
}

/* A count that may be absent, which is 1. */
static dt_status read_count(const struct csv *csv, enum column column, struct dt_measured_row *row,
                            int *to)
{
    const char *text = csv_field(csv, column);
    char *end;
    *to = 1;
    if (is_absent(text))
        return DT_OK;
    if (is_unknown(text)) {
        leave_out(row, "a degree is not told");
        return DT_OK;
    }
    double count = strtod(text, &end);
    if (end == text || *end != '\0' || !(count >= 1 && count <= DEVICES_MOST) ||
        floor(count) != count)
        return dt_fail(DT_EUSAGE, "%s, line %d: '%s' is '%.40s', no count of 1 to %d", csv->path,
                       csv->line, column_names[column], text, DEVICES_MOST);
    *to = (int)count;
    return DT_OK;
}

static const char yes[] = "yes|true|on|y", no[] = "no|false|off|n|0";

static dt_status read_degrees(const struct csv *csv, struct dt_measured_row *row, int *devices)
{
    struct dt_degrees *d = &row->degrees;
    const struct {
        enum column column;
        int *to;
    } counts[] = {{AT_gpus, devices},        {AT_cfg, &d->cfg},   {AT_tp, &d->tensor},
                  {AT_ulysses, &d->ulysses}, {AT_ring, &d->ring}, {AT_kv_gather, &d->kv_gather}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        DT_TRY(read_count(csv, counts[i].column, row, counts[i].to));
    int64_t product = (int64_t)d->cfg * d->tensor * d->ulysses * d->ring * d->kv_gather;
    if (is_absent(csv_field(csv, AT_gpus)) && product <= DEVICES_MOST)
        *devices = (int)product;
    if (product != *devices)
        leave_out(row, "its degrees do not make its devices");
    const char *vae = csv_field(csv, AT_vae_sp), *shards = csv_field(csv, AT_fsdp);
    bool counted = vae[0] != '\0' && strspn(vae, "0123456789.") == strlen(vae);
    d->vae = 1;
    if (counted && !is_one_of(vae, no))
        DT_TRY(read_count(csv, AT_vae_sp, row, &d->vae));
    else if (!is_absent(vae) && !is_one_of(vae, no)) { /* "yes", or how it is split */
        d->vae = *devices;
        row->unsure |= !is_one_of(vae, yes);
    }
    if (is_absent(shards) || is_one_of(shards, no))
        return DT_OK;
    int parts = 1;
    if (is_one_of(shards, yes))
        d->settings = DT_SETTING_shards;
    else
        DT_TRY(read_count(csv, AT_fsdp, row, &parts));
    if (parts > 1 || strcmp(shards, "1") == 0)
        d->settings = DT_SETTING_shards;
    return DT_OK;
}

/* ---- rows */

/* "same", "as T6" and an empty text are those of a row before. */
static const struct dt_measured_row *referred_row(const struct dt_timings *table, const char *text)
{
    const struct dt_measured_row *last = table->count > 0 ? &table->rows[table->count - 1] : NULL;
    const char *as = strstr(text, " as ");
    if (text[0] == '\0' || strncasecmp(text, "same", 4) == 0 || is_one_of(text, "ditto|\""))
        return last;
    for (int i = 0; i < table->count && as != NULL; i++)
        if (strcmp(table->rows[i].text.table, as + 4) == 0)
            return &table->rows[i];
    return NULL;
}

/* The first of two stages, whose plan and time the row's note gives: "stage 1 1.546 s". Its sides
 * are half of the request's. */
static void read_stage(const char *note, struct shape *shape, struct dt_measured_row *row)
{
    const char *stage = strstr(note, "stage 1 ");
    char *end;
    double seconds = stage != NULL ? strtod(stage + 8, &end) : 0;
    if (!text_mentions(row->text.model, "two-stage|two stage|2-stage"))
        return;
    row->unsure = true;
    if (!(seconds > 0 && seconds < 1e9) || strncmp(end, " s", 2) != 0) {
        shape->steps += shape->steps_more;
        return;
    }
    row->seconds = seconds;
    row->metric = DT_METRIC_STEPS;
    shape->size.width = to_multiple(shape->size.width / 2, row->card.vae_space * row->card.patch);
    shape->size.height = to_multiple(shape->size.height / 2, row->card.vae_space * row->card.patch);
}

/* Modes that the forms have no term for. */
static bool has_modes(const char *text)
{
    return text_mentions(text, "cache|sparse|fp4|fp8|int8|int4|quant|sage|w8a8|mxfp|sliding|async");
}

static void read_job(const struct csv *csv, const char *sized_by, struct dt_measured_row *row)
{
    const char *note = csv_field(csv, AT_note), *model = row->text.model;
    struct shape shape;
    char engine[DT_MEASURED_WORD];
    if (!read_shape(sized_by, &row->card, &shape)) {
        leave_out(row, "the model cannot take its size or steps");
        return;
    }
    row->known = true;
    read_stage(note, &shape, row);
    snprintf(engine, sizeof engine, "%.*s", (int)strcspn(row->text.engine, " "), row->text.engine);
    bool compiled = text_mentions(model, "compil") || text_mentions(note, "compil");
    dt_engine_runs(engine, compiled, &row->job);
    row->job.eager |= text_mentions(model, "eager") || text_mentions(note, "eager");
    row->job.size = shape.size;
    row->moved = shape.moved;
    row->job.steps = shape.steps;
    row->job.text_tokens = row->card.text_tokens;
    row->job.guided =
        row->card.guidance == DT_GUIDANCE_CFG &&
        !text_mentions(model, "no guidance|no cfg|without guidance|without cfg|distill");
    row->unsure |=
        has_modes(model) || !shape.sized || (!shape.stepped && row->metric == DT_METRIC_REQUEST);
}

static void read_memory(const struct csv *csv, struct dt_measured_row *row)
{
    const char *text = csv_field(csv, AT_memory), *note = csv_field(csv, AT_note);
    double memory =
        read_real(text, NULL) * (text_mentions(text, "mb|mib") ? DT_GIB / 1024 : DT_GIB);
    if (memory > 0 && row->memory_bytes <= 0)
        row->memory_bytes = memory;
    row->offloaded =
        text_mentions(note, "streamed|offload") || text_mentions(row->text.model, "offload");
}

static dt_status read_row(const struct csv *csv, struct dt_timings *table)
{
    struct dt_measured_row *row = &table->rows[table->count];
    *row = (struct dt_measured_row){.text.line = csv->line, .judged.anchor = -1};
    struct dt_measured_text *text = &row->text;
    const char *model = csv_field(csv, AT_model), *gpu = csv_field(csv, AT_gpu);
    const struct dt_measured_row *last = table->count > 0 ? row - 1 : NULL;
    copy_text(text->table, sizeof text->table, csv_field(csv, AT_table));
    copy_text(text->engine, sizeof text->engine, csv_field(csv, AT_engine));
    copy_text(text->metric, sizeof text->metric, csv_field(csv, AT_metric));
    copy_text(text->gpu, sizeof text->gpu, gpu[0] == '\0' && last != NULL ? last->text.gpu : gpu);
    const struct dt_measured_row *like = referred_row(table, model);
    bool same = like != NULL && strstr(model, " as ") == NULL;
    copy_text(text->model, sizeof text->model, same ? like->text.model : model);
    const char *sized_by = like != NULL ? like->text.model : text->model;
    int devices = 1;
    row->metric = metric_of(text->metric);
    if (row->metric == DT_METRIC_NONE)
        leave_out(row, "it is no time of a request, its steps or a step");
    DT_TRY(read_degrees(csv, row, &devices));
    bool whole = row->why == NULL;
    DT_TRY(read_time(csv, row));
    read_memory(csv, row);
    const struct dt_card *card = find_card(csv, text->model);
    if (card == NULL)
        leave_out(row, "no card of this model");
    else if (!find_device(text->gpu, &row->machine))
        leave_out(row, "no card of this device");
    else {
        row->card = *card;
        read_job(csv, sized_by, row);
        read_device(csv, devices, row);
        row->known &= whole;
    }
    table->count++;
    return DT_OK;
}

static dt_status read_records(struct csv *csv, struct dt_timings *table)
{
    bool headed = false;
    while (next_record(csv)) {
        if (csv->count == 1 && (csv->fields[0][0] == '\0' || csv->fields[0][0] == '#'))
            continue;
        if (!headed) {
            DT_TRY(read_header(csv));
            headed = true;
            continue;
        }
        if (csv->open)
            return dt_fail(DT_EUSAGE, "%s, line %d: a quote is not closed", csv->path, csv->line);
        if (csv->count > csv->columns)
            return dt_fail(DT_EUSAGE,
                           "%s, line %d: %d fields for %d columns: a text with a comma is put into "
                           "quotes",
                           csv->path, csv->line, csv->count, csv->columns);
        if (table->count == DT_MEASURED_ROWS)
            return dt_fail(DT_EUSAGE, "%s has more than %d rows", csv->path, DT_MEASURED_ROWS);
        DT_TRY(DT_GROW(table->rows, table->count, 1));
        DT_TRY(read_row(csv, table));
    }
    return table->count > 0 ? DT_OK
                            : dt_fail(DT_EUSAGE, "%s has no row of measured times", csv->path);
}

dt_status dt_measured_read(const char *path, struct dt_timings *table)
{
    dt_auto_text text = {0}, name = {0};
    struct dt_timings read = {.path = path};
    dt_text_add(&name, "the table '%.200s'", path);
    DT_TRY(dt_read_text(path, dt_text_at(&name), FILE_MOST, &text));
    const char *bytes = dt_text_at(&text);
    if (strlen(bytes) != text.size)
        return dt_fail(DT_EUSAGE, "%s is no text: it has a byte of 0", path);
    size_t mark =
        strncmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* that some programs begin a file with */
    struct csv csv = {.path = path, .at = text.bytes + mark, .separator = ',', .next = 1};
    if (text.size > 0 && memchr(csv.at, '\t', strcspn(csv.at, ",\n")) != NULL)
        csv.separator = '\t';
    dt_status status = list_cards(&csv);
    if (status == DT_OK)
        status = text.size > 0 ? read_records(&csv, &read)
                               : dt_fail(DT_EUSAGE, "%s has no row of measured times", path);
    free(csv.cards);
    if (status != DT_OK) {
        dt_measured_fini(&read);
        return status;
    }
    for (int i = 0; i < read.count; i++) { /* where the rows now are */
        read.rows[i].job.card = &read.rows[i].card;
        read.rows[i].job.machine = &read.rows[i].machine;
    }
    *table = read;
    return DT_OK;
}

void dt_measured_fini(struct dt_timings *table)
{
    free(table->rows);
    *table = (struct dt_timings){.rows = NULL};
}
