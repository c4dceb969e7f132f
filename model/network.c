/* SPDX-License-Identifier: MIT */
/* Presets are JSON texts compiled in, read by the same code as a user's file: there is one description of what a
 * network may be. */
#include "model/network.h"

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
    const struct {
        const char *key;
        int high;
        int *out;
    } fields[] = {
        {"hidden", 16384, &network->hidden},
        {"heads", 4096, &network->heads},
        {"depth", 1024, &network->depth},
        {"patch", 64, &network->patch},
        {"in_channels", 1024, &network->in_channels},
        {"latent_size", 1024, &network->latent_size},
        {"classes", 1000000, &network->classes},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        DT_TRY(read_int(root, what, fields[i].key, fields[i].high, fields[i].out));
    return DT_OK;
}

static dt_status check(const char *what, const struct dt_network *network)
{
    if (strcmp(network->family, "dit") != 0)
        return dt_fail(DT_EUSAGE, "%s: 'family' is '%s', the only one known is 'dit'", what,
                       network->family);
    if (network->hidden % network->heads != 0)
        return dt_fail(DT_EUSAGE, "%s: 'heads' is %d, which does not divide 'hidden', %d", what,
                       network->heads, network->hidden);
    if (network->hidden % 4 != 0)
        return dt_fail(DT_EUSAGE,
                       "%s: 'hidden' is %d, the sine-cosine position embedding needs a multiple "
                       "of 4",
                       what, network->hidden);
    if (network->latent_size % network->patch != 0)
        return dt_fail(DT_EUSAGE, "%s: 'latent_size' is %d, not a multiple of 'patch', %d", what,
                       network->latent_size, network->patch);
    if (!(network->mlp_ratio > 0.0 && network->mlp_ratio <= 64.0) || dt_network_mlp(network) < 1)
        return dt_fail(DT_EUSAGE,
                       "%s: 'mlp_ratio' is %g, expected above 0 to 64, with at least one MLP "
                       "channel",
                       what, network->mlp_ratio);
    return DT_OK;
}

dt_status dt_network_from_json(const json_t *root, const char *what, struct dt_network *network)
{
    static const char *const known[] = {
        "name",        "family",      "hidden",  "heads",     "depth",       "patch",
        "in_channels", "latent_size", "classes", "mlp_ratio", "learn_sigma", NULL,
    };
    struct dt_network read = {0};
    DT_TRY(dt_json_only(root, what, known));
    DT_TRY(read_text(root, what, "name", sizeof read.name, read.name));
    DT_TRY(read_text(root, what, "family", sizeof read.family, read.family));
    DT_TRY(read_sizes(root, what, &read));
    DT_TRY(dt_json_real(root, what, "mlp_ratio", &read.mlp_ratio));
    DT_TRY(dt_json_bool(root, what, "learn_sigma", &read.learn_sigma));
    DT_TRY(check(what, &read));
    *network = read;
    return DT_OK;
}

json_t *dt_network_to_json(const struct dt_network *network)
{
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:b}", "name",
                     network->name, "family", network->family, "hidden", network->hidden, "heads",
                     network->heads, "depth", network->depth, "patch", network->patch,
                     "in_channels", network->in_channels, "latent_size", network->latent_size,
                     "classes", network->classes, "mlp_ratio", network->mlp_ratio, "learn_sigma",
                     (int)network->learn_sigma);
}

static dt_status load_file(const char *path, struct dt_network *network)
{
    char what[256];
    json_t *root = NULL;
    DT_TRY(dt_json_read(path, "the model file", &root));
    snprintf(what, sizeof what, "the model file %s", path);
    dt_status status = dt_network_from_json(root, what, network);
    json_decref(root);
    return status;
}

static dt_status load_preset(const struct preset *preset, struct dt_network *network)
{
    json_t *root = NULL;
    DT_TRY(dt_json_parse(preset->text, strlen(preset->text), "a preset", &root));
    dt_status status = dt_network_from_json(root, "a preset", network);
    json_decref(root);
    return status;
}

static dt_status unknown(const char *name, const char *const *names)
{
    char list[512] = "";
    size_t used = 0;
    for (int i = 0; names[i] != NULL && used < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
    const char *near = dt_json_nearest(name, names);
    if (near != NULL)
        return dt_fail(DT_EUSAGE,
                       "unknown model '%.200s', did you mean '%s'? known: %s, or a .json file",
                       name, near, list);
    return dt_fail(DT_EUSAGE, "unknown model '%.200s', expected %s or a .json file", name, list);
}

dt_status dt_network_load(const char *name_or_path, struct dt_network *network)
{
    for (int i = 0; i < PRESETS; i++)
        if (strcasecmp(presets[i].name, name_or_path) == 0)
            return load_preset(&presets[i], network);
    size_t size = strlen(name_or_path);
    bool json = size >= 5 && strcmp(name_or_path + size - 5, ".json") == 0;
    if (json || (strchr(name_or_path, '/') != NULL && access(name_or_path, F_OK) == 0))
        return load_file(name_or_path, network);
    return unknown(name_or_path, preset_names);
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
