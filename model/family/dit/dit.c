/* SPDX-License-Identifier: MIT */
/* The Diffusion Transformer with adaLN-Zero blocks of Peebles & Xie (2023), "Scalable Diffusion
 * Models with Transformers", conditioned on a class; layer by layer as in the authors' PyTorch
 * code, whose names the tensors have. */
#include "model/family.h"

enum { CLASSES }; /* class labels; the embedding table has one more row, for "no class" */

enum {
    W_PATCH,
    B_PATCH,
    W_TIME0,
    B_TIME0,
    W_TIME2,
    B_TIME2,
    W_LABEL,
    W_FINAL_MOD,
    B_FINAL_MOD,
    W_OUT,
    B_OUT,
    W_POSITION,
    WHOLE,
    W_MOD = WHOLE,
    B_MOD,
    W_QKV,
    B_QKV,
    W_PROJ,
    B_PROJ,
    W_FC1,
    B_FC1,
    W_FC2,
    B_FC2,
    TENSORS
};

/* L: classes and one. */
static const struct dt_tensor_row tensors[TENSORS] = {
    [W_PATCH] = {"x_embedder.proj.weight", "CAPP", DT_TENSOR_LINEAR, 1.0f},
    [B_PATCH] = {"x_embedder.proj.bias", "C", DT_TENSOR_PLAIN, 0.1f},
    [W_TIME0] = {"t_embedder.mlp.0.weight", "CF", DT_TENSOR_LINEAR, 1.5f},
    [B_TIME0] = {"t_embedder.mlp.0.bias", "C", DT_TENSOR_PLAIN, 0.1f},
    [W_TIME2] = {"t_embedder.mlp.2.weight", "CC", DT_TENSOR_LINEAR, 1.5f},
    [B_TIME2] = {"t_embedder.mlp.2.bias", "C", DT_TENSOR_PLAIN, 0.1f},
    [W_LABEL] = {"y_embedder.embedding_table.weight", "LC", DT_TENSOR_PLAIN, 0.7f},
    [W_FINAL_MOD] = {"final_layer.adaLN_modulation.1.weight", "2C", DT_TENSOR_LINEAR, 0.5f},
    [B_FINAL_MOD] = {"final_layer.adaLN_modulation.1.bias", "2", DT_TENSOR_PLAIN, 0.1f},
    [W_OUT] = {"final_layer.linear.weight", "OC", DT_TENSOR_LINEAR, 1.0f},
    [B_OUT] = {"final_layer.linear.bias", "O", DT_TENSOR_PLAIN, 0.05f},
    [W_POSITION] = {"pos_embed", "1TC", DT_TENSOR_POSITION, 0.0f},
    [W_MOD] = {"adaLN_modulation.1.weight", "6C", DT_TENSOR_STACKED, 0.6f},
    [B_MOD] = {"adaLN_modulation.1.bias", "6", DT_TENSOR_PLAIN, 0.1f},
    [W_QKV] = {"attn.qkv.weight", "3C", DT_TENSOR_LINEAR, 1.25f},
    [B_QKV] = {"attn.qkv.bias", "3", DT_TENSOR_PLAIN, 0.05f},
    [W_PROJ] = {"attn.proj.weight", "CC", DT_TENSOR_LINEAR, 1.5f},
    [B_PROJ] = {"attn.proj.bias", "C", DT_TENSOR_PLAIN, 0.05f},
    [W_FC1] = {"mlp.fc1.weight", "MC", DT_TENSOR_LINEAR, 1.0f},
    [B_FC1] = {"mlp.fc1.bias", "M", DT_TENSOR_PLAIN, 0.05f},
    [W_FC2] = {"mlp.fc2.weight", "CM", DT_TENSOR_LINEAR, 1.0f},
    [B_FC2] = {"mlp.fc2.bias", "C", DT_TENSOR_PLAIN, 0.05f},
};

enum {
    LABEL = DT_BUFFER_OWN, /* [N] class label, int32 */
    FREQUENCY,             /* [N, 256] sinusoids of the timestep */
    EMBED,                 /* [N, C] hidden layer of the timestep MLP */
    CONDITION,             /* [N, C] timestep + class */
    MODULATION,            /* [N, depth, 6C] of all blocks */
    FINAL_MODULATION,      /* [N, 2C] */
    EMBEDDED,              /* [b, t, C] embedded patches */
    STREAM,                /* [N, t, C] residual stream */
    NORM,                  /* [N, t, C] normalised stream; also the result of a branch */
    MLP,                   /* [N, t, mlp] */
    BUFFERS_END
};
enum { BUFFERS = BUFFERS_END - DT_BUFFER_OWN };
_Static_assert((int)BUFFERS <= (int)DT_FAMILY_BUFFERS, "dt_layout has no room for them");

#define BUFFER(id) [(id)-DT_BUFFER_OWN]
static const struct dt_buffer_row buffers[BUFFERS] = {
    BUFFER(LABEL) = {DT_ROWS_SEQUENCE, "1", false, false},
    BUFFER(FREQUENCY) = {DT_ROWS_SEQUENCE, "F", false, false},
    BUFFER(EMBED) = {DT_ROWS_SEQUENCE, "C", false, false},
    BUFFER(CONDITION) = {DT_ROWS_SEQUENCE, "C", false, false},
    BUFFER(MODULATION) = {DT_ROWS_SEQUENCE, "6", false, true},
    BUFFER(FINAL_MODULATION) = {DT_ROWS_SEQUENCE, "2", false, false},
    BUFFER(EMBEDDED) = {DT_ROWS_IMAGE_TOKEN, "C", false, false},
    BUFFER(STREAM) = {DT_ROWS_TOKEN, "C", false, false},
    BUFFER(NORM) = {DT_ROWS_TOKEN, "C", true, false},
    BUFFER(MLP) = {DT_ROWS_TOKEN, "M", true, false},
};

#define LINEAR(from, to, weight) .kind = DT_OP_LINEAR, .x = (from), .y = (to), .tensor = (weight)
#define MODULATE                 .kind = DT_OP_MODULATE, .x = STREAM, .y = NORM

static const struct dt_op embed[] = {
    {.kind = DT_OP_SINUSOID, .x = DT_BUFFER_TIME, .y = FREQUENCY},
    {LINEAR(FREQUENCY, EMBED, W_TIME0), .act = DT_ACT_SILU},
    {LINEAR(EMBED, CONDITION, W_TIME2)},
    {LINEAR(DT_BUFFER_LATENT, EMBEDDED, W_PATCH)},
    {.kind = DT_OP_LABEL, .x = CONDITION, .y = CONDITION, .by = LABEL, .tensor = W_LABEL},
    {.kind = DT_OP_POSITION, .x = EMBEDDED, .y = STREAM, .tensor = W_POSITION},
    {LINEAR(CONDITION, MODULATION, W_MOD)},
    {LINEAR(CONDITION, FINAL_MODULATION, W_FINAL_MOD)},
    {0},
};

/* The parts of a block's modulation: shift, scale, gate of the attention, then those of the MLP.
 * The last branch of a block is gated by its own while the next block's already normalises; the
 * final layer takes the place of the last block's next. */
static const struct dt_op block[] = {
    {MODULATE, .when = DT_FIRST, .shift = {MODULATION, 0}},
    {.kind = DT_OP_QUERIES, .x = NORM, .y = DT_BUFFER_QKV, .tensor = W_QKV},
    {.kind = DT_OP_ATTENTION},
    {LINEAR(DT_BUFFER_ATTENTION, NORM, W_PROJ)},
    {MODULATE, .gate = {MODULATION, 2}, .shift = {MODULATION, 3}},
    {LINEAR(NORM, MLP, W_FC1), .act = DT_ACT_GELU},
    {LINEAR(MLP, NORM, W_FC2)},
    {MODULATE, .when = DT_INNER, .next = true, .gate = {MODULATION, 5}, .shift = {MODULATION, 0}},
    {MODULATE, .when = DT_LAST, .gate = {MODULATION, 5}, .shift = {FINAL_MODULATION, 0}},
    {0},
};

static const struct dt_op final[] = {
    {LINEAR(NORM, DT_BUFFER_OUT, W_OUT)},
    {0},
};

static dt_status dit_check(const char *what, const struct dt_network *network)
{
    if (network->hidden % 4 != 0)
        return dt_fail(DT_EUSAGE,
                       "%s: 'hidden' is %d, the sine-cosine position embedding needs a multiple "
                       "of 4",
                       what, network->hidden);
    return DT_OK;
}

static int64_t dit_size(const struct dt_network *network, char letter)
{
    return letter == 'L' ? network->own[CLASSES] + 1 : 0;
}

const struct dt_family dt_family_dit = {
    .name = "dit",
    .doc = "class-conditional Diffusion Transformer, adaLN-Zero (Peebles & Xie 2023)",
    .fields = (const struct dt_family_field[]){[CLASSES] = {"classes", 1000000}, {NULL, 0}},
    .check = dit_check,
    .size = dit_size,
    .tensors = tensors,
    .whole = WHOLE,
    .of_block = TENSORS - WHOLE,
    .buffers = buffers,
    .buffer_count = BUFFERS,
    .embed = embed,
    .block = block,
    .final = final,
    .label = &(const struct dt_label){"y", LABEL, CLASSES},
};
