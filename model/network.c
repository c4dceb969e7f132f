/* SPDX-License-Identifier: MIT */
/* Presets are JSON texts compiled in, read by the same code as a user's file. */
#include "model/workload_json.h"

#include "model/cards/card.h"
#include "model/family.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define PRESET(name, text) {name, text},
static const struct preset {
    const char *name, *text;
} presets[] = {
#include "presets.inc"
};
#undef PRESET
enum { PRESETS = sizeof presets / sizeof presets[0] };

#define PRESET(name, text) name,
static const char *const preset_names[] = {
#include "presets.inc"
    NULL};
#undef PRESET

const char *const *dt_network_presets(void)
{
    return preset_names;
}

/* Sizes that networks of every family have. */
static const struct size {
    const char *key;
    int high;
    size_t offset; /* the int's place in struct dt_network */
} sizes[] = {
#define SIZE(name, high)                                                                           \
    {                                                                                              \
#name, high, offsetof(struct dt_network, name)                                             \
    }
    SIZE(hidden, DT_HIDDEN_MOST), SIZE(heads, 4096),       SIZE(depth, 1024), SIZE(patch, 64),
    SIZE(in_channels, 1024),      SIZE(latent_size, 1024),
};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static dt_status read_int(const json_t *root, const char *what, const char *key, int high, int *out)
{
    int64_t value;
    DT_TRY(dt_json_int(root, what, key, 1, high, &value));
    *out = (int)value;
    return DT_OK;
}

static dt_status read_text(const json_t *root, const char *what, const char *key, size_t room,
                           char *out)
{
    const char *text;
    DT_TRY(dt_json_string(root, what, key, &text));
    if (text[0] == '\0' || strlen(text) >= room)
        return dt_fail(DT_EUSAGE, "%s: '%s' must be 1 to %zu bytes long, it has %zu", what, key,
                       room - 1, strlen(text));
    snprintf(out, room, "%s", text);
    return DT_OK;
}

static dt_status read_sizes(const json_t *root, const char *what, struct dt_network *network)
{
    const struct dt_family_field *own = network->family->fields;
    for (int i = 0; i < SIZES; i++)
        DT_TRY(read_int(root, what, sizes[i].key, sizes[i].high,
                        (int *)(void *)((char *)network + sizes[i].offset)));
    for (int i = 0; own[i].name != NULL; i++)
        DT_TRY(read_int(root, what, own[i].name, own[i].high, &network->own[i]));
    return DT_OK;
}

static dt_status read_family(const json_t *root, const char *what, const struct dt_family **family)
{
    char names[256];
    const char *name;
    DT_TRY(dt_json_string(root, what, "family", &name));
    *family = dt_family_find(name);
    if (*family == NULL)
        return dt_fail(DT_EUSAGE, "%s: 'family' is '%.40s', known: %s", what, name,
                       dt_family_names(names, sizeof names));
    return DT_OK;
}

/* No field but those of every network and of the family. */
static dt_status check_fields(const json_t *root, const char *what, const struct dt_family *family)
{
    const char *known[SIZES + DT_FAMILY_FIELDS + 5] = {"name", "family", "mlp_ratio",
                                                       "learn_sigma"};
    int n = 4;
    for (int i = 0; i < SIZES; i++)
        known[n++] = sizes[i].key;
    for (int i = 0; family->fields[i].name != NULL; i++)
        known[n++] = family->fields[i].name;
    return dt_json_only(root, what, known);
}

static dt_status check_network(const char *what, const struct dt_network *network)
{
    if (network->hidden % network->heads != 0)
        return dt_fail(DT_EUSAGE, "%s: 'heads' is %d, which does not divide 'hidden', %d", what,
                       network->heads, network->hidden);
    if (network->latent_size % network->patch != 0)
        return dt_fail(DT_EUSAGE, "%s: 'latent_size' is %d, not a multiple of 'patch', %d", what,
                       network->latent_size, network->patch);
    if (!(network->mlp_ratio > 0.0 && network->mlp_ratio <= 64.0) || dt_network_mlp(network) < 1)
        return dt_fail(DT_EUSAGE,
                       "%s: 'mlp_ratio' is %g, expected above 0 to 64, with at least one MLP "
                       "channel",
                       what, network->mlp_ratio);
    return network->family->check != NULL ? network->family->check(what, network) : DT_OK;
}

dt_status dt_network_from_json(const json_t *root, const char *what, struct dt_network *network)
{
    struct dt_network read = {0};
    if (!json_is_object(root))
        return dt_fail(DT_EUSAGE, "%s is not a JSON object", what);
    DT_TRY(read_family(root, what, &read.family));
    DT_TRY(check_fields(root, what, read.family));
    DT_TRY(read_text(root, what, "name", sizeof read.name, read.name));
    DT_TRY(read_sizes(root, what, &read));
    DT_TRY(dt_json_real(root, what, "mlp_ratio", &read.mlp_ratio));
    DT_TRY(dt_json_bool(root, what, "learn_sigma", &read.learn_sigma));
    DT_TRY(check_network(what, &read));
    *network = read;
    return DT_OK;
}

json_t *dt_network_to_json(const struct dt_network *network)
{
    const struct dt_family_field *own = network->family->fields;
    json_auto_t *made =
        json_pack("{s:s, s:s}", "name", network->name, "family", network->family->name);
    int lost = made == NULL;
    for (int i = 0; i < SIZES; i++) {
        const void *value = (const char *)network + sizes[i].offset;
        lost |= json_object_set_new(made, sizes[i].key, json_integer(*(const int *)value));
    }
    for (int i = 0; own[i].name != NULL; i++)
        lost |= json_object_set_new(made, own[i].name, json_integer(network->own[i]));
    lost |= json_object_set_new(made, "mlp_ratio", json_real(network->mlp_ratio));
    lost |= json_object_set_new(made, "learn_sigma", json_boolean(network->learn_sigma));
    return lost == 0 ? json_incref(made) : NULL;
}

static dt_status load_file(const char *path, struct dt_network *network)
{
    char what[256];
    json_auto_t *root = NULL;
    DT_TRY(dt_json_read(path, "the model file", &root));
    snprintf(what, sizeof what, "the model file %s", path);
    return dt_network_from_json(root, what, network);
}

static dt_status load_preset(const struct preset *preset, struct dt_network *network)
{
    json_auto_t *root = NULL;
    DT_TRY(dt_json_parse(preset->text, strlen(preset->text), "a preset", &root));
    return dt_network_from_json(root, "a preset", network);
}

static dt_status unknown_preset(const char *name, const char *const *names)
{
    char list[512] = "";
    size_t used = 0;
    for (int i = 0; names[i] != NULL && used < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
    const char *near = dt_json_nearest(name, names);
    struct dt_card card;
    if (dt_card_known(name, &card))
        return dt_fail(DT_EUSAGE,
                       "'%s' is a model of engines, not of the built-in network: name its engine "
                       "with --engine NAME",
                       card.name);
    if (near != NULL)
        return dt_fail(DT_EUSAGE,
                       "unknown model '%.200s', did you mean '%s'? known: %s, or a .json file",
                       name, near, list);
    return dt_fail(DT_EUSAGE, "unknown model '%.200s', expected %s or a .json file", name, list);
}

static const struct preset *preset_named(const char *name)
{
    for (int i = 0; i < PRESETS; i++)
        if (strcasecmp(presets[i].name, name) == 0)
            return &presets[i];
    return NULL;
}

bool dt_network_is_preset(const char *name)
{
    return preset_named(name) != NULL;
}

dt_status dt_network_load(const char *name_or_path, struct dt_network *network)
{
    const struct preset *preset = preset_named(name_or_path);
    if (preset != NULL)
        return load_preset(preset, network);
    size_t size = strlen(name_or_path);
    bool json = size >= 5 && strcmp(name_or_path + size - 5, ".json") == 0;
    if (json || (strchr(name_or_path, '/') != NULL && access(name_or_path, F_OK) == 0))
        return load_file(name_or_path, network);
    return unknown_preset(name_or_path, preset_names);
}

/* Cut, not rounded, as the authors' code does. */
int dt_network_mlp(const struct dt_network *network)
{
    return (int)((double)network->hidden * network->mlp_ratio);
}

int dt_network_head(const struct dt_network *network)
{
    return network->hidden / network->heads;
}

int dt_network_out_channels(const struct dt_network *network)
{
    return network->learn_sigma ? 2 * network->in_channels : network->in_channels;
}
