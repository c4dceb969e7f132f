/* SPDX-License-Identifier: MIT */
#include "model/family.h"

#include <stdio.h>
#include <string.h>

static const struct dt_family *const families[] = {
#define DT_FAMILY(name) &dt_family_##name,
#include "model/families.def"
};
enum { FAMILIES = sizeof families / sizeof families[0] };

const struct dt_family *dt_family_find(const char *name)
{
    for (int i = 0; i < FAMILIES; i++)
        if (strcmp(families[i]->name, name) == 0)
            return families[i];
    return NULL;
}

const char *dt_family_names(char *list, size_t room)
{
    size_t used = 0;
    list[0] = '\0';
    for (int i = 0; i < FAMILIES && used < room; i++)
        used += (size_t)snprintf(list + used, room - used, "%s%s", i > 0 ? ", " : "",
                                 families[i]->name);
    return list;
}

int64_t dt_family_size(const struct dt_workload *workload, char letter)
{
    const struct dt_network *network = &workload->network;
    switch (letter) {
    case '1':
        return 1;
    case 'C':
        return network->hidden;
    case 'M':
        return dt_network_mlp(network);
    case 'A':
        return network->in_channels;
    case 'P':
        return network->patch;
    case 'O':
        return (int64_t)network->patch * network->patch * dt_network_out_channels(network);
    case 'F':
        return DT_TIME_CHANNELS;
    case 'T':
        return dt_workload_tokens(workload);
    default:
        if (letter >= '2' && letter <= '9')
            return (int64_t)(letter - '0') * network->hidden;
        return network->family->size != NULL ? network->family->size(network, letter) : 0;
    }
}

int64_t dt_family_product(const struct dt_workload *workload, const char *letters)
{
    int64_t product = 1;
    for (; *letters != '\0'; letters++)
        product *= dt_family_size(workload, *letters);
    return product;
}

const struct dt_buffer_row *dt_family_buffer(const struct dt_family *family, int buffer)
{
    static const struct dt_buffer_row common[DT_BUFFER_OWN] = {
        [DT_BUFFER_LATENT] = {DT_ROWS_IMAGE_TOKEN, "APP", false, false},
        [DT_BUFFER_QKV] = {DT_ROWS_TOKEN, "3", true, false},
        [DT_BUFFER_ATTENTION] = {DT_ROWS_TOKEN, "C", true, false},
        [DT_BUFFER_OUT] = {DT_ROWS_TOKEN, "O", false, false},
    };
    if (buffer >= DT_BUFFER_OWN)
        return buffer < DT_BUFFER_OWN + family->buffer_count
                   ? &family->buffers[buffer - DT_BUFFER_OWN]
                   : NULL;
    return common[buffer].width != NULL ? &common[buffer] : NULL;
}

int64_t dt_family_rows(const struct dt_layout *layout, enum dt_rows rows)
{
    if (rows == DT_ROWS_SEQUENCE)
        return layout->sequences;
    return (int64_t)(rows == DT_ROWS_TOKEN ? layout->sequences : layout->images) * layout->tokens;
}

bool dt_op_runs(const struct dt_op *op, int block, int depth)
{
    bool last = block == depth - 1;
    return op->when == DT_EVERY || (op->when == DT_FIRST && block == 0) ||
           (op->when == DT_INNER && !last) || (op->when == DT_LAST && last);
}

int dt_op_times(const struct dt_op *op, int depth)
{
    if (op->when == DT_EVERY)
        return depth;
    return op->when == DT_INNER ? depth - 1 : 1;
}

/* Multiply-adds of one sequence; an embedding of images counts in each of their sequences, as
 * in the authors' code. */
static double linear_flops(const struct dt_workload *workload, const struct dt_op *op, int tokens)
{
    const struct dt_family *family = workload->network.family;
    if (op->kind != DT_OP_LINEAR && op->kind != DT_OP_QUERIES)
        return 0;
    const struct dt_tensor_row *weight = &family->tensors[op->tensor];
    bool once = dt_family_buffer(family, op->y)->rows == DT_ROWS_SEQUENCE;
    return (double)dt_family_product(workload, weight->shape) * (once ? 1 : tokens) *
           (weight->kind == DT_TENSOR_STACKED ? workload->network.depth : 1);
}

static double attention_flops(const struct dt_workload *workload, const struct dt_op *op,
                              int tokens)
{
    (void)workload, (void)tokens;
    return op->kind == DT_OP_ATTENTION;
}

/* Bytes of C channels of a token: the stream is read and written, and a branch
 * too where it is gated. */
static double rest_bytes(const struct dt_workload *workload, const struct dt_op *op, int tokens)
{
    double stream = sizeof(float), branch = dt_dtype_bytes(workload->dtype);
    (void)tokens;
    if (op->kind == DT_OP_POSITION)
        return 3 * stream; /* embedded, position, stream */
    if (op->kind == DT_OP_MODULATE)
        return (op->gate.by > 0 ? 2 : 1) * (stream + branch);
    return 0;
}

static double count_calls(const struct dt_workload *workload, const struct dt_op *op, int tokens)
{
    (void)workload, (void)tokens;
    return op->kind != DT_OP_END;
}

/* Over all operations of a step. */
static double sum_ops(const struct dt_workload *workload, int tokens,
                      double (*of)(const struct dt_workload *workload, const struct dt_op *op,
                                   int tokens))
{
    const struct dt_family *family = workload->network.family;
    const struct {
        const struct dt_op *list;
        int depth;
    } parts[] = {{family->embed, 1}, {family->block, workload->network.depth}, {family->final, 1}};
    double total = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        for (const struct dt_op *op = parts[i].list; op->kind != DT_OP_END; op++)
            total += of(workload, op, tokens) * dt_op_times(op, parts[i].depth);
    return total;
}

double dt_family_linear(const struct dt_workload *workload, int tokens)
{
    return sum_ops(workload, tokens, linear_flops);
}

double dt_family_attentions(const struct dt_workload *workload)
{
    return sum_ops(workload, 0, attention_flops);
}

double dt_family_calls(const struct dt_workload *workload)
{
    return sum_ops(workload, 0, count_calls);
}

double dt_family_rest_bytes(const struct dt_workload *workload)
{
    return sum_ops(workload, 0, rest_bytes) * workload->network.hidden;
}
