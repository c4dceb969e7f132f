/* SPDX-License-Identifier: MIT */
/* network - the shape of a diffusion transformer of one of the families of model/family.h
 *
 * Letters used everywhere: B images, T tokens of one image, H heads, D channels of a head, C = H*D.
 * A network comes from a preset (model/family/<family>/<name>.json, compiled in) or from a user's
 * JSON file of the same fields. To add a preset, add a file.
 */
#ifndef DT_MODEL_NETWORK_H
#define DT_MODEL_NETWORK_H

#include "base/status.h"

#include <stdbool.h>

/* Image pixels along a side of one latent pixel: the factor of the autoencoder. */
#define DT_LATENT_PIXELS 8

#define DT_HIDDEN_MOST 16384 /* channels */

/* The most fields of its own that a family may have. */
#define DT_FAMILY_FIELDS 8

struct dt_family;

struct dt_network {
    char name[64];
    const struct dt_family *family;
    int hidden;                /* C */
    int heads;                 /* H, divides hidden */
    int depth;                 /* blocks */
    int patch;                 /* pixels of the latent along one side of a token */
    int in_channels;           /* channels of the latent */
    int latent_size;           /* latent pixels along a side; a multiple of patch */
    double mlp_ratio;          /* MLP width over hidden */
    bool learn_sigma;          /* the network puts out 2 * in_channels */
    int own[DT_FAMILY_FIELDS]; /* the fields of the family */
};

/* name_or_path: a preset's name ("dit-s/2", case ignored) or, when it ends in .json or holds a '/'
 * naming a file, a JSON file. DT_EUSAGE names the value and lists the presets, or the wrong field;
 * DT_EIO when unreadable. */
dt_status dt_network_load(const char *name_or_path, struct dt_network *network) DT_MUST_CHECK;
const char *const *dt_network_presets(void); /* NULL-ended names */
bool dt_network_is_preset(const char *name); /* case ignored */

int dt_network_mlp(const struct dt_network *network);  /* MLP width */
int dt_network_head(const struct dt_network *network); /* D */
int dt_network_out_channels(
    const struct dt_network *network); /* in_channels, doubled with learn_sigma */

#endif
