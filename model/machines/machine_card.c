/* SPDX-License-Identifier: MIT */
#include "model/machines/machine_card.h"

#include "base/array.h"
#include "base/figures.h"
#include "base/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

const char *const dt_link_texts[] = {
#define DT_LINK(name) #name,
    DT_LINK_ROWS
#undef DT_LINK
        NULL};

const char *const *dt_machine_cards(void)
{
    return file_names;
}

double dt_rate_value(struct dt_rate rate)
{
    return rate.measured > 0 ? rate.measured : rate.sheet;
}

/* "h100.json, 'links'": of messages about a field of a part. */
static const char *part_of(const char *what, const char *part, struct dt_text *text)
{
    dt_text_add(text, "%s, '%s'", what, part);
    return dt_text_at(text);
}

/* A number above 0. */
static dt_status read_number(const json_t *object, const char *what, const char *key, double unit,
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

/* An optional count; 0: it is not there. */
static dt_status read_count(const json_t *object, const char *what, const char *key, int *out)
{
    int64_t count = 0;
    if (dt_json_has(object, key))
        DT_TRY(dt_json_int(object, what, key, 1, DT_MACHINE_DEVICES_MOST, &count));
    *out = (int)count;
    return DT_OK;
}

struct rate_row {
    const char *part, *key, *measured; /* fields of the datasheet, and of "measured" */
    double unit;
    struct dt_rate *rate;
    bool needed;
    bool assumed; /* no datasheet has it: a measured rate may be above it */
};

/* A measured rate cannot be above that of the datasheet. */
static dt_status read_rate(const json_t *root, const char *what, const struct rate_row *row)
{
    const json_t *part = json_object_get(root, row->part);
    const json_t *measured = json_object_get(root, "measured");
    dt_auto_text sheet = {0}, other = {0};
    *row->rate = (struct dt_rate){0, 0};
    if (row->needed || dt_json_has(part, row->key))
        DT_TRY(read_number(part, part_of(what, row->part, &sheet), row->key, row->unit,
                           &row->rate->sheet));
    if (!dt_json_has(measured, row->measured))
        return DT_OK;
    DT_TRY(read_number(measured, part_of(what, "measured", &other), row->measured, row->unit,
                       &row->rate->measured));
    if (row->rate->sheet > 0 && row->rate->measured > row->rate->sheet && !row->assumed)
        return dt_fail(DT_EUSAGE, "%s: measured.%s is %g, above %s.%s, which is %g", what,
                       row->measured, row->rate->measured / row->unit, row->part, row->key,
                       row->rate->sheet / row->unit);
    return DT_OK;
}

static dt_status read_rates(const json_t *root, const char *what, struct dt_machine_card *card)
{
    static const char *const of_device[] = {
        "name", "memory_gib", "bfloat16_tflops", "float32_tflops", "memory_gb_s", "compute", NULL};
    static const char *const of_links[] = {"nvlink",  "pcie", "hccs", "across_sockets",
                                           "network", "c2c",  NULL};
    static const char *const of_measured[] = {"bfloat16_tflops",
                                              "float32_tflops",
                                              "memory_gb_s",
                                              "memory_gib",
                                              "nvlink_gb_s",
                                              "pcie_gb_s",
                                              "hccs_gb_s",
                                              "across_sockets_gb_s",
                                              "network_gb_s",
                                              "c2c_gb_s",
                                              "attention_bfloat16_tflops",
                                              "attention_float16_tflops",
                                              NULL};
    struct dt_rate flop, unused;
    struct dt_machine_link *links = card->links;
    const struct rate_row rows[] = {
        {"device", "memory_gib", "memory_gib", DT_GIB, &card->memory, true, false},
        {"device", "bfloat16_tflops", "bfloat16_tflops", TERA, &flop, true, false},
        {"device", "float32_tflops", "float32_tflops", TERA, &unused, false, false},
        {"device", "memory_gb_s", "memory_gb_s", GIGA, &card->copy, true, false},
        {"links", "nvlink", "nvlink_gb_s", GIGA, &links[DT_LINK_nvlink].rate, false, false},
        {"links", "pcie", "pcie_gb_s", GIGA, &links[DT_LINK_pcie].rate, false, false},
        {"links", "hccs", "hccs_gb_s", GIGA, &links[DT_LINK_hccs].rate, false, false},
        {"links", "across_sockets", "across_sockets_gb_s", GIGA,
         &links[DT_LINK_across_sockets].rate, false, true},
        {"links", "network", "network_gb_s", GIGA, &links[DT_LINK_network].rate, false, false},
        {"links", "c2c", "c2c_gb_s", GIGA, &card->host, false, false}};
    const struct {
        const char *name, *const *known;
    } parts[] = {{"device", of_device}, {"links", of_links}, {"measured", of_measured}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        dt_auto_text where = {0};
        json_t *part = NULL;
        if (i == 2 && !dt_json_has(root, parts[i].name))
            continue;
        DT_TRY(dt_json_object(root, what, parts[i].name, &part));
        DT_TRY(dt_json_only(part, part_of(what, parts[i].name, &where), parts[i].known));
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        DT_TRY(read_rate(root, what, &rows[i]));
    card->flop_rate = flop.sheet;
    if (card->host.sheet <= 0)
        card->host = links[DT_LINK_pcie].rate;
    return dt_json_has(root, "host_memory_gib")
               ? read_number(root, what, "host_memory_gib", DT_GIB, &card->host_memory_bytes)
               : DT_OK;
}

/* "9.0"; "none": no device of CUDA's */
static dt_status read_compute(const json_t *device, const char *what, int *capability)
{
    const char *compute;
    char *end;
    DT_TRY(dt_json_string(device, what, "compute", &compute));
    if (strcmp(compute, "none") == 0) {
        *capability = DT_NO_CUDA;
        return DT_OK;
    }
    double value = strtod(compute, &end);
    if (end == compute || *end != '\0' || !(value > 0 && value < 100))
        return dt_fail(DT_EUSAGE,
                       "%s: 'compute' is '%.40s', expected a capability such as 9.0, or none", what,
                       compute);
    *capability = (int)(value * 10 + 0.5);
    return DT_OK;
}

/* "lanes" and "latency_us", both optional; a latency may be null. */
static dt_status read_more(const json_t *root, const char *what, struct dt_machine_card *card)
{
    static const char *const shared[] = {"across_sockets", "network", NULL};
    json_t *lanes = NULL, *latency = NULL;
    dt_auto_text of_lanes = {0}, of_latency = {0};
    const char *lanes_of = part_of(what, "lanes", &of_lanes),
               *latency_of = part_of(what, "latency_us", &of_latency);
    if (dt_json_has(root, "lanes")) {
        DT_TRY(dt_json_object(root, what, "lanes", &lanes));
        DT_TRY(dt_json_only(lanes, lanes_of, shared));
    }
    if (dt_json_has(root, "latency_us")) {
        DT_TRY(dt_json_object(root, what, "latency_us", &latency));
        DT_TRY(dt_json_only(latency, latency_of, dt_link_texts));
    }
    for (int i = 0; i < DT_LINKS; i++) {
        struct dt_machine_link *link = &card->links[i];
        const json_t *known = json_object_get(latency, dt_link_texts[i]);
        DT_TRY(read_count(lanes, lanes_of, dt_link_texts[i], &link->lanes));
        if (known != NULL && !json_is_null(known))
            DT_TRY(read_number(latency, latency_of, dt_link_texts[i], 1e-6, &link->latency));
    }
    return DT_OK;
}

static dt_status read_pair(const json_t *root, const char *what, struct dt_machine_card *card)
{
    const char *pair;
    DT_TRY(dt_json_string(root, what, "pair", &pair));
    int found = dt_text_index(pair, dt_link_texts);
    if (found < 0 || found >= DT_PAIRS)
        return dt_fail(DT_EUSAGE, "%s: 'pair' is '%s', expected nvlink, pcie or hccs", what, pair);
    if (card->links[found].rate.sheet <= 0)
        return dt_fail(DT_EUSAGE, "%s: 'pair' is '%s', which 'links' has no rate of", what, pair);
    card->pair = (enum dt_link)found;
    return DT_OK;
}

/* The link `far`, which groups of more than `count` devices use, has a rate, and none above that of
 * the link `near`, over which it is reached. */
static dt_status check_link(const struct dt_machine_card *card, const char *what, const char *field,
                            int count, enum dt_link far, enum dt_link near)
{
    const double farther = card->links[far].rate.sheet, nearer = card->links[near].rate.sheet;
    if (count > 0 && farther <= 0)
        return dt_fail(DT_EUSAGE, "%s: '%s' is %d, and 'links' has no rate of %s", what, field,
                       count, dt_link_texts[far]);
    if (nearer > 0 && farther > nearer)
        return dt_fail(DT_EUSAGE,
                       "%s: links.%s is %g, above links.%s, over which it is reached: %g", what,
                       dt_link_texts[far], farther / GIGA, dt_link_texts[near], nearer / GIGA);
    return DT_OK;
}

static dt_status check_divides(const char *what, const char *field, int part, const char *of,
                               int total)
{
    return part > 0 && total > 0 && total % part != 0
               ? dt_fail(DT_EUSAGE, "%s: '%s' is %d, which does not divide '%s', which is %d", what,
                         field, part, of, total)
               : DT_OK;
}

/* Hosts, and how the devices of one lie. */
static dt_status read_places(const json_t *root, const char *what, struct dt_machine_card *card)
{
    int hosts, reach;
    DT_TRY(read_count(root, what, "hosts", &hosts));
    DT_TRY(read_count(root, what, "reach", &reach));
    DT_TRY(read_count(root, what, "per_switch", &card->per_switch));
    DT_TRY(read_count(root, what, "per_socket", &card->per_socket));
    card->hosts = hosts > 0 ? hosts : 1;
    card->reach = reach > 0 ? reach : card->devices;
    if (card->hosts * card->devices > DT_MACHINE_DEVICES_MOST)
        return dt_fail(DT_EUSAGE, "%s: %d hosts of %d devices, expected at most %d devices in all",
                       what, card->hosts, card->devices, DT_MACHINE_DEVICES_MOST);
    if (card->pair != DT_LINK_pcie && card->reach >= card->devices &&
        card->per_switch + card->per_socket > 0)
        return dt_fail(
            DT_EUSAGE, "%s: '%s' is of devices that talk over PCIe, and %s reaches all of a host",
            what, card->per_switch > 0 ? "per_switch" : "per_socket", dt_link_texts[card->pair]);
    if (card->reach > card->devices)
        DT_TRY(check_divides(what, "devices", card->devices, "reach", card->reach));
    DT_TRY(
        check_divides(what, "reach", reach < card->devices ? reach : 0, "devices", card->devices));
    DT_TRY(check_divides(what, "per_socket", card->per_socket, "devices", card->devices));
    DT_TRY(check_divides(what, "per_switch", card->per_switch, "per_socket", card->per_socket));
    DT_TRY(check_divides(what, "per_switch", card->per_switch, "devices", card->devices));
    int beyond = card->reach < card->devices ? card->reach : 0;
    if (card->pair != DT_LINK_pcie)
        DT_TRY(check_link(card, what, "reach", beyond, DT_LINK_pcie, card->pair));
    DT_TRY(check_link(card, what, "per_socket", card->per_socket, DT_LINK_across_sockets,
                      DT_LINK_pcie));
    int networked = card->hosts > 1 && card->hosts * card->devices > card->reach ? card->hosts : 0;
    return check_link(card, what, "hosts", networked, DT_LINK_network, card->pair);
}

static dt_status read_card(const json_t *root, const char *what, struct dt_machine_card *card)
{
    static const char *const known[] = {"name",     "device",     "devices",    "hosts",
                                        "reach",    "per_switch", "per_socket", "pair",
                                        "links",    "lanes",      "latency_us", "host_memory_gib",
                                        "measured", "sources",    "notes",      NULL};
    struct dt_machine_card read = {.devices = 0};
    json_t *sources = NULL;
    dt_auto_text where = {0};
    int64_t devices;
    DT_TRY(dt_json_only(root, what, known));
    DT_TRY(read_word(root, what, "name", read.name));
    DT_TRY(dt_json_int(root, what, "devices", 1, DT_MACHINE_DEVICES_MOST, &devices));
    read.devices = (int)devices;
    DT_TRY(read_rates(root, what, &read));
    const json_t *device = json_object_get(root, "device");
    const char *of_device = part_of(what, "device", &where);
    DT_TRY(read_word(device, of_device, "name", read.device));
    if (dt_json_has(device, "compute"))
        DT_TRY(read_compute(device, of_device, &read.capability));
    DT_TRY(read_pair(root, what, &read));
    DT_TRY(read_more(root, what, &read));
    DT_TRY(read_places(root, what, &read));
    DT_TRY(dt_json_object(root, what, "sources", &sources));
    *card = read;
    return DT_OK;
}

void dt_machine_card_place(struct dt_machine_card *card, int hosts, int devices)
{
    card->hosts = hosts;
    if (card->reach >= card->devices)
        card->reach = card->reach / card->devices * devices;
    else if (card->reach > devices)
        card->reach = devices;
    card->devices = devices;
}

/* Reads what `dittune machine --json` prints on a machine with GPUs: the card of its device, but
 * the number of devices and the memory that the driver reported. */
static dt_status read_described(const json_t *root, const char *what, struct dt_machine_card *card)
{
    const json_t *hard = json_object_get(root, "hard");
    const char *device = dt_json_text_at(hard, "device");
    json_int_t gpus = dt_json_integer_at(hard, "gpus"),
               gib = dt_json_integer_at(hard, "memory_gib"),
               bytes = dt_json_integer_at(json_object_get(root, "limits"), "memory_bytes");
    if (gpus < 1)
        return dt_fail(DT_EUSAGE,
                       "%s: that machine has no GPUs ('%.60s'): plans are predicted for GPUs", what,
                       device);
    if (!dt_machine_card_of(device, card))
        return dt_fail(DT_EUSAGE,
                       "%s: there is no card of its device '%.60s' in model/machines: write one "
                       "(docs/cost.md)",
                       what, device);
    dt_machine_card_place(card, 1,
                          gpus < DT_MACHINE_DEVICES_MOST ? (int)gpus : DT_MACHINE_DEVICES_MOST);
    if (bytes > 0 || gib > 0)
        card->memory.measured = bytes > 0 ? (double)bytes : (double)gib * DT_GIB;
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
    return strchr(name, '/') != NULL || (size >= 5 && strcmp(name + size - 5, ".json") == 0);
}

/* A card's name with a number before or after it, "h100x8" or "8 x h100": the
 * number; 0: it is none. */
static int count_beside(const char *text, const char *name)
{
    const char *at = strcasestr(text, name);
    char rest[DT_MACHINE_WORD], *digits;
    if (at == NULL || strlen(text) >= sizeof rest)
        return 0;
    snprintf(rest, sizeof rest, "%.*s %s", (int)(at - text), text, at + strlen(name));
    digits = rest + strcspn(rest, "0123456789");
    size_t size = strspn(digits, "0123456789");
    if (strspn(rest, "xX*:-_ 0123456789") < strlen(rest) || size > 3 ||
        strpbrk(digits + size, "0123456789") != NULL)
        return 0;
    return atoi(digits);
}

/* counts: "2x", what stood before the name. */
static dt_status no_card(const char *counts, int size, const char *name)
{
    const char *near = NULL;
    char number[16] = "";
    struct dt_machine_card card;
    for (int i = 0; i < FILES; i++) {
        int count = count_beside(name, files[i].name);
        if (count > 0 && (near == NULL || strlen(files[i].name) > strlen(near))) {
            near = files[i].name;
            snprintf(number, sizeof number, "%dx", count);
        }
    }
    if (near == NULL)
        near = dt_json_nearest(name, file_names);
    if (near == NULL && dt_machine_card_of(name, &card))
        near = card.name;
    return dt_fail(DT_EUSAGE,
                   "no card of the machine '%.200s'%s%.*s%s%s%s: expected one of model/machines, "
                   "as 8xh100, or a file of the same fields (docs/cost.md)",
                   name, near != NULL ? ", did you mean '" : "", near != NULL ? size : 0, counts,
                   number, near != NULL ? near : "", near != NULL ? "'?" : "");
}

/* name: in text, behind the counts. */
static dt_status load_named(const char *text, const char *name, struct dt_machine_card *card)
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
    return no_card(text, (int)(name - text), name);
}

/* The counts before the name, "2x8xh100": hosts, and devices of each. */
static dt_status read_counts(const char *text, long counts[2], int *n, const char **name)
{
    for (*n = 0, *name = text;; ++*n) {
        char *end;
        long count = strtol(*name, &end, 10);
        if (end == *name || (*end != 'x' && *end != 'X'))
            return DT_OK;
        if (*n == 2)
            return dt_fail(DT_EUSAGE,
                           "--machine %s has three counts: expected devices, as 8xh100, or hosts "
                           "and the devices of each, as 2x8xh100",
                           text);
        counts[*n] = count;
        *name = end + 1;
    }
}

/* The counts take the place of the card's. */
static dt_status put_counts(const char *text, const long counts[2], int n,
                            struct dt_machine_card *card)
{
    long devices = counts[n - 1], hosts = n == 2 ? counts[0] : card->hosts;
    if (devices < 1 || devices > card->devices)
        return dt_fail(DT_EUSAGE,
                       "--machine %s: a host with %s has 1 to %d devices; several hosts are "
                       "2x%dx%s",
                       text, card->device, card->devices, card->devices, card->name);
    if (hosts < 1 || hosts > DT_MACHINE_DEVICES_MOST / devices)
        return dt_fail(DT_EUSAGE, "--machine %s: %ld hosts of %ld devices, expected 1 to %ld hosts",
                       text, hosts, devices, DT_MACHINE_DEVICES_MOST / devices);
    dt_machine_card_place(card, (int)hosts, (int)devices);
    if (hosts > 1 && hosts * devices > card->reach && card->links[DT_LINK_network].rate.sheet <= 0)
        return dt_fail(DT_EUSAGE,
                       "--machine %s: the card %s has no links.network, what its hosts talk over: "
                       "give a file with one (docs/cost.md)",
                       text, card->name);
    return DT_OK;
}

dt_status dt_machine_card_load(const char *text, struct dt_machine_card *card)
{
    long counts[2] = {0, 0};
    int n = 0;
    const char *name = text;
    FILE *file = is_file(text) ? fopen(text, "r") : NULL; /* one whose name begins like a count */
    if (file != NULL)
        (void)fclose(file);
    else
        DT_TRY(read_counts(text, counts, &n, &name));
    struct dt_machine_card read;
    DT_TRY(load_named(text, name, &read));
    if (n > 0)
        DT_TRY(put_counts(text, counts, n, &read));
    *card = read;
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
    if (strstr(text, " MIG ") != NULL)
        return false;
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
