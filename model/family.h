/* SPDX-License-Identifier: MIT */
/* family - a kind of network, as data that the common code walks
 *
 * A family is one const struct at the bottom of model/family/<name>/<name>.c: the fields of its
 * JSON, its tensors, the buffers of a rank, and the operations of a step in their order. The common
 * code derives the rest: sizes, counts of operations and bytes, the check of a weights file
 * (model/), the forward pass (kernels/).
 *
 * Sizes are letters. C hidden channels, 2 to 9 multiples of C, M the MLP, A in_channels, P patch, O
 * p*p*out_channels, F DT_TIME_CHANNELS, T tokens of an image, 1 one; any other letter is the
 * family's own. "3C" is a matrix [3*hidden, hidden].
 *
 * To add a family, add its folder and a row to families.def.
 */
#ifndef DT_MODEL_FAMILY_H
#define DT_MODEL_FAMILY_H

#include "model/activation.h"
#include "model/layout.h"
#include "model/workload.h"

#include <stdbool.h>
#include <stddef.h>

/* A field of the network's JSON beside the common ones: an integer from 1 on. Its value is
 * network.own of the row's number. */
struct dt_family_field {
    const char *name;
    int high; /* the largest value */
};

enum dt_tensor_kind {
    DT_TENSOR_PLAIN,
    DT_TENSOR_LINEAR, /* the weight of a linear layer [out, in...]; its bias is the next tensor */
    /* the same, in each block, for one product before the blocks that makes the outputs of all */
    DT_TENSOR_STACKED,
    DT_TENSOR_POSITION /* the sine-cosine table of positions [1, T, C]: a file need not have it */
};
struct dt_tensor_row {
    /* in the authors' PyTorch code; of a block's tensors what follows "blocks.<i>." */
    const char *name;
    const char *shape; /* a letter a dimension */
    enum dt_tensor_kind kind;
    float seeded; /* LINEAR: gain over 1/sqrt(inputs); PLAIN: standard deviation */
};

enum dt_rows { DT_ROWS_SEQUENCE, DT_ROWS_TOKEN, DT_ROWS_IMAGE_TOKEN };
struct dt_buffer_row {
    enum dt_rows rows;
    const char *width; /* elements of a row: the product of its letters */
    bool activation;   /* elements are of the workload's data type; otherwise of 32 bits */
    /* a row has as much for each block, one after the other: outputs of stacked tensors */
    bool blocks;
};

/* The comments name the operation's buffers; T is its tensor. */
enum dt_op_kind {
    DT_OP_END,      /* end of a list */
    DT_OP_SINUSOID, /* y [N, F] = sinusoids of x [N] */
    DT_OP_LINEAR,   /* y = act(x T^t + bias) */
    DT_OP_LABEL,    /* y [N, C] = SiLU(x + T[row of the label]); by: the labels */
    DT_OP_POSITION, /* y [N, t, C] = x [b, t, C] of the sequence's image + T of the own tokens */
    /* x += gate y unless there is no gate, then y = LayerNorm(x) (1 + scale) + shift */
    DT_OP_MODULATE,
    /* QKV = x T^t + bias, or what an exchange sends of it; the next operation is ATTENTION */
    DT_OP_QUERIES,
    DT_OP_ATTENTION, /* ATTENTION = self-attention of QKV over all tokens of the sequence */
    DT_OP_KINDS
};

/* Blocks in which an operation runs: all, block 0, all but the last, the last. */
enum dt_op_when { DT_EVERY, DT_FIRST, DT_INNER, DT_LAST };

/* Part `at`, of C channels, of a row of a buffer of modulations: of the block's own where it has
 * all blocks. by 0: none. */
struct dt_part {
    int by, at;
};

struct dt_op {
    enum dt_op_kind kind;
    enum dt_op_when when;
    bool next;    /* MODULATE: shift and scale are the next block's */
    int x, y, by; /* enum dt_buffer, or the family's own; by: LABEL */
    /* row of the family's tensors; operations of one tensor have one act and
     * buffers of one width */
    int tensor;
    enum dt_activation act;
    struct dt_part gate, shift; /* MODULATE; scale is the part after shift */
};

/* The condition of an image: an integer from 0 to network.own[count], which stands for "none". */
struct dt_label {
    const char *input; /* tensor of an input file, [B] I64 */
    int buffer, count;
};

struct dt_family {
    const char *name, *doc;
    const struct dt_family_field *fields; /* ended by a NULL name; at most DT_FAMILY_FIELDS */
    /* (optional) DT_EUSAGE with a sentence that begins with what, for a network that
     * common checks let pass. */
    dt_status (*check)(const char *what, const struct dt_network *network);
    int64_t (*size)(const struct dt_network *network,
                    char letter);        /* (optional) of its own letters */
    const struct dt_tensor_row *tensors; /* rows of the whole network, then rows of each block */
    int whole, of_block;                 /* how many */
    const struct dt_buffer_row *buffers; /* from DT_BUFFER_OWN on, at most DT_FAMILY_BUFFERS */
    int buffer_count;
    const struct dt_op *embed, *block,
        *final; /* before the blocks, of each, after them: it fills DT_BUFFER_OUT */
    const struct dt_label *label; /* NULL: without */
};

#define DT_FAMILY(name) extern const struct dt_family dt_family_##name;
#include "model/families.def"

const struct dt_family *dt_family_find(const char *name); /* NULL: unknown */
const char *dt_family_names(char *list, size_t room);     /* "a, b", into list */

/* The size that a letter stands for, and the product of a text of them. */
int64_t dt_family_size(const struct dt_workload *workload, char letter);
int64_t dt_family_product(const struct dt_workload *workload, const char *letters);

/* The row of one of the family's buffers, or of LATENT, QKV, ATTENTION, OUT; NULL for others. */
const struct dt_buffer_row *dt_family_buffer(const struct dt_family *family, int buffer);
int64_t dt_family_rows(const struct dt_layout *layout, enum dt_rows rows);

/* An operation runs in that block; the number of blocks it runs in. depth:
 * blocks of the network. */
bool dt_op_runs(const struct dt_op *op, int block, int depth);
int dt_op_times(const struct dt_op *op, int depth);

/* Sums over the operations of a step: multiply-adds of the linear layers of one sequence with so
 * many tokens on this rank; how many attentions, and how many operations, there are; bytes of one
 * token that the passes between the matrix products read and write. */
double dt_family_linear(const struct dt_workload *workload, int tokens);
double dt_family_attentions(const struct dt_workload *workload);
double dt_family_calls(const struct dt_workload *workload);
double dt_family_rest_bytes(const struct dt_workload *workload);

#endif
