/* SPDX-License-Identifier: MIT */
#include "model/machines/machine_card.h"

#include "base/array.h"
#include "base/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define GIB  1073741824.0
#define GIGA 1e9
#define TERA 1e12

#define MACHINE(name, text) {name, text},
static const struct {
    const char *name, *text;
} files[] = {
#include "machines.inc"
};
#undef MACHINE
enum { FILES = sizeof files / sizeof files[0] };

#define MACHINE(name, text) name,
static const char *const file_names[] = {
#include "machines.inc"
    NULL};
#undef MACHINE

const char *const dt_pair_texts[] = {"nvlink", "pcie", "hccs", NULL};

const char *const *dt_machine_cards(void)
{
    return file_names;
}

/* A number above 0. */
static dt_status read_rate(const json_t *object, const char *what, const char *key, double unit,
                           double *out)
{
    DT_TRY(dt_json_real(object, what, key, out));
    if (!(*out >= 1e-3 && *out <= 1e9))
        return dt_fail(DT_EUSAGE, "%s: '%s' is %g, expected a number of 0.001 to 1e9", what, key,
                       *out);
    *out *= unit;
    return DT_OK;
}

static dt_status read_word(const json_t *root, const char *what, const char *key, char *out)
{
    const char *word;
    DT_TRY(dt_json_string(root, what, key, &word));
    if (word[0] == '\0' || strlen(word) >= DT_MACHINE_WORD)
        return dt_fail(DT_EUSAGE, "%s: '%s' is not a text of 1 to %d bytes", what, key,
                       DT_MACHINE_WORD - 1);
    snprintf(out, DT_MACHINE_WORD, "%s", word);
    return DT_OK;
}

/* What was measured cannot be above what the datasheet has. */
static dt_status check_measured(const json_t *root, const char *what)
{
    static const struct {
        const char *measured, *part, *of;
    } rows[] = {{"bfloat16_tflops", "device", "bfloat16_tflops"},
                {"float32_tflops", "device", "float32_tflops"},
                {"memory_gb_s", "device", "memory_gb_s"},
                {"memory_gib", "device", "memory_gib"},
                {"nvlink_gb_s", "links", "nvlink"},
                {"pcie_gb_s", "links", "pcie"}};
    json_t *measured = NULL;
    DT_TRY(dt_json_object(root, what, "measured", &measured));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const json_t *part = json_object_get(root, rows[i].part);
        double most = json_number_value(json_object_get(part, rows[i].of)), seen;
        if (!dt_json_has(measured, rows[i].measured))
            continue;
        DT_TRY(read_rate(measured, what, rows[i].measured, 1, &seen));
        if (dt_json_has(part, rows[i].of) && seen > most)
            return dt_fail(DT_EUSAGE, "%s: measured.%s is %g, above %s.%s, which is %g", what,
                           rows[i].measured, seen, rows[i].part, rows[i].of, most);
    }
    return DT_OK;
}

/* "9.0" */
static dt_status read_compute(const json_t *device, const char *what, int *capability)
{
    const char *compute;
    char *end;
    DT_TRY(dt_json_string(device, what, "compute", &compute));
    double value = strtod(compute, &end);
    if (end == compute || *end != '\0' || !(value > 0 && value < 100))
        return dt_fail(DT_EUSAGE, "%s: 'compute' is '%.40s', expected a capability such as 9.0",
                       what, compute);
    *capability = (int)(value * 10 + 0.5);
    return DT_OK;
}

static dt_status read_device(const json_t *root, const char *what, struct dt_machine_card *card)
{
    static const char *const known[] = {
        "name", "memory_gib", "bfloat16_tflops", "float32_tflops", "memory_gb_s", "compute", NULL};
    json_t *device = NULL;
    DT_TRY(dt_json_object(root, what, "device", &device));
    DT_TRY(dt_json_only(device, what, known));
    DT_TRY(read_word(device, what, "name", card->device));
    DT_TRY(read_rate(device, what, "memory_gib", GIB, &card->memory_bytes));
    DT_TRY(read_rate(device, what, "bfloat16_tflops", TERA, &card->flop_rate));
    DT_TRY(read_rate(device, what, "memory_gb_s", GIGA, &card->copy_rate));
    if (dt_json_has(device, "compute"))
        DT_TRY(read_compute(device, what, &card->capability));
    if (!dt_json_has(root, "measured"))
        return DT_OK;
    DT_TRY(check_measured(root, what));
    const json_t *measured = json_object_get(root, "measured");
    return dt_json_has(measured, "memory_gib")
               ? read_rate(measured, what, "memory_gib", GIB, &card->memory_bytes)
               : DT_OK;
}

static dt_status read_links(const json_t *root, const char *what, struct dt_machine_card *card)
{
    json_t *links = NULL;
    const char *pair;
    DT_TRY(dt_json_object(root, what, "links", &links));
    DT_TRY(dt_json_string(root, what, "pair", &pair));
    int found = dt_text_index(pair, dt_pair_texts);
    if (found < 0)
        return dt_fail(DT_EUSAGE, "%s: 'pair' is '%s', expected nvlink, pcie or hccs", what, pair);
    if (!dt_json_has(links, pair))
        return dt_fail(DT_EUSAGE, "%s: 'pair' is '%s', which 'links' has no rate of", what, pair);
    card->pair = (enum dt_pair)found;
    return read_rate(links, what, pair, GIGA, &card->pair_rate);
}

static dt_status read_card(const json_t *root, const char *what, struct dt_machine_card *card)
{
    static const char *const known[] = {
        "name",     "device",  "devices", "pair", "links", "host_memory_gib",
        "measured", "sources", "notes",   NULL};
    struct dt_machine_card read = {.devices = 0};
    json_t *sources = NULL;
    int64_t devices;
    DT_TRY(dt_json_only(root, what, known));
    DT_TRY(read_word(root, what, "name", read.name));
    DT_TRY(dt_json_int(root, what, "devices", 1, DT_MACHINE_DEVICES_MOST, &devices));
    read.devices = (int)devices;
    DT_TRY(read_device(root, what, &read));
    DT_TRY(read_links(root, what, &read));
    DT_TRY(dt_json_object(root, what, "sources", &sources));
    *card = read;
    return DT_OK;
}

/* What `dittune machine --json` prints on a machine with GPUs: the card of its device, with its own number of them and memory. */
static dt_status read_described(const json_t *root, const char *what, struct dt_machine_card *card)
{
    const json_t *hard = json_object_get(root, "hard");
    const char *device = dt_json_text_at(hard, "device");
    json_int_t gpus = dt_json_integer_at(hard, "gpus"),
               gib = dt_json_integer_at(hard, "memory_gib");
    if (gpus < 1)
        return dt_fail(DT_EUSAGE,
                       "%s: that machine has no GPUs ('%.60s'): plans are predicted for GPUs", what,
                       device);
    if (!dt_machine_card_of(device, card))
        return dt_fail(DT_EUSAGE,
                       "%s: there is no card of its device '%.60s' in model/machines: write one "
                       "(docs/cost.md)",
                       what, device);
    card->devices = gpus < DT_MACHINE_DEVICES_MOST ? (int)gpus : DT_MACHINE_DEVICES_MOST;
    if (gib > 0)
        card->memory_bytes = (double)gib * GIB;
    return DT_OK;
}

static dt_status parse_card(const char *text, const char *what, struct dt_machine_card *card)
{
    json_auto_t *root = NULL;
    DT_TRY(dt_json_parse(text, strlen(text), what, &root));
    return read_card(root, what, card);
}

static bool is_file(const char *name)
{
    size_t size = strlen(name);
    return size >= 5 && strcmp(name + size - 5, ".json") == 0;
}

static dt_status load_named(const char *name, struct dt_machine_card *card)
{
    json_auto_t *root = NULL;
    for (int i = 0; i < FILES; i++)
        if (strcasecmp(files[i].name, name) == 0)
            return parse_card(files[i].text, files[i].name, card);
    if (is_file(name)) {
        DT_TRY(dt_json_read(name, "the machine's card", &root));
        return dt_json_has(root, "hard") ? read_described(root, name, card)
                                         : read_card(root, name, card);
    }
    const char *near = dt_json_nearest(name, file_names);
    return dt_fail(DT_EUSAGE,
                   "no card of the machine '%.200s'%s%s%s: expected one of model/machines, as "
                   "8xh100, or a file of the same fields (docs/cost.md)",
                   name, near != NULL ? ", did you mean '" : "", near != NULL ? near : "",
                   near != NULL ? "'?" : "");
}

dt_status dt_machine_card_load(const char *text, struct dt_machine_card *card)
{
    char *end;
    long count = strtol(text, &end, 10);
    FILE *file = is_file(text) ? fopen(text, "r") : NULL; /* one whose name begins like a count */
    bool counted = file == NULL && end != text && (*end == 'x' || *end == 'X');
    if (file != NULL)
        (void)fclose(file);
    DT_TRY(load_named(counted ? end + 1 : text, card));
    if (counted && (count < 1 || count > card->devices))
        return dt_fail(DT_EUSAGE,
                       "--machine %s: a host with %s has 1 to %d devices; plans over "
                       "several hosts are not predicted",
                       text, card->device, card->devices);
    if (counted)
        card->devices = (int)count;
    return DT_OK;
}

/* The word, which blanks, dashes or the ends separate, is in the text, case ignored. */
static bool has_word(const char *text, const char *word, size_t size)
{
    for (const char *at = text; *at != '\0'; at++)
        if ((at == text || !isalnum((unsigned char)at[-1])) && strncasecmp(at, word, size) == 0 &&
            !isalnum((unsigned char)at[size]))
            return true;
    return false;
}

/* All words of the name are in the text; how many, 0: not all. */
static int words_in(const char *name, const char *text)
{
    int count = 0;
    for (const char *at = name; *at != '\0';) {
        size_t size = 0;
        while (isalnum((unsigned char)at[size]))
            size++;
        if (size > 0 && !has_word(text, at, size))
            return 0;
        count += size > 0;
        at += size > 0 ? size : 1;
    }
    return count;
}

bool dt_machine_card_of(const char *text, struct dt_machine_card *card)
{
    int best = 0;
    for (int i = 0; i < FILES; i++) {
        int count = words_in(files[i].name, text);
        struct dt_machine_card read;
        if (count > best && parse_card(files[i].text, files[i].name, &read) == DT_OK) {
            best = count;
            *card = read;
        }
    }
    return best > 0;
}
