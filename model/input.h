/* SPDX-License-Identifier: MIT */
/* input - checks the files of weights and inputs without loading kernels
 *
 * Both are safetensors files. Every refusal is one sentence naming the file, the tensor, what was
 * found and what is expected: DT_EIO when a file cannot be read, DT_EUSAGE when it is invalid or
 * does not fit the network, DT_ENOMEM.
 */
#ifndef DT_MODEL_INPUT_H
#define DT_MODEL_INPUT_H

#include "base/safetensors.h"
#include "model/family.h"

#include <stdint.h>

/* Checks x [B,C,h,w] F32, t [B] I64 and the family's label (of a DiT y) [B] I64 against the network
 * and gives B and the latent's h, w. */
dt_status dt_input_inspect(const char *path, const struct dt_network *network, int *batch,
                           int *height, int *width) DT_MUST_CHECK;

/* Checks presence, dtype and shape of every tensor of a weights file, by its header alone; the
 * names are those of the authors' PyTorch code, an unknown one is refused. pos_embed may be
 * missing, or [1, any, hidden]: see below. */
dt_status dt_weights_inspect(const char *path, const struct dt_network *network) DT_MUST_CHECK;

/* Checks the table of positions, if the file has one: one row per token of the workload, or of the
 * network's own size (then it is not used: positions are a formula). */
dt_status dt_weights_inspect_positions(const char *path,
                                       const struct dt_workload *workload) DT_MUST_CHECK;

/* An input file, checked and open. */
struct dt_input {
    struct dt_safetensors *file;
    const void *x;                /* float32 [B,C,h,w], not aligned */
    const struct dt_label *label; /* NULL: the family has none */
    int batch, height, width;
};
dt_status dt_input_open(const char *path, const struct dt_network *network,
                        struct dt_input *input) DT_MUST_CHECK;
void dt_input_close(struct dt_input *input);
int64_t dt_input_time(const struct dt_input *input, int image); /* 0 or more */
int64_t dt_input_label(const struct dt_input *input,
                       int image); /* for a family with labels; 0 to "none" */

#endif
