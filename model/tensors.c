/* SPDX-License-Identifier: MIT */
#include "model/tensors.h"

#include "model/input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dt_tensor_is_linear(const struct dt_tensor *tensor)
{
    return tensor->kind == DT_TENSOR_LINEAR || tensor->kind == DT_TENSOR_STACKED;
}

int dt_tensor_out(const struct dt_tensor *tensor)
{
    return (int)tensor->shape[0];
}

int dt_tensor_in(const struct dt_tensor *tensor)
{
    return (int)(tensor->size / tensor->shape[0]);
}

/* Blocks of 64 outputs by 16 inputs (32 for 16-bit types), padded with zeros, as AVX-512 products
 * read them. Large layers have no padding, and a library that needs less leaves the rest unused. */
static int64_t kept_bytes(const struct dt_tensor *tensor, enum dt_dtype dtype)
{
    int64_t element = dt_dtype_bytes(dtype), depth = 64 / element;
    if (!dt_tensor_is_linear(tensor))
        return tensor->size * (int64_t)sizeof(float);
    int64_t in = (dt_tensor_in(tensor) + depth - 1) / depth * depth;
    int64_t out = (int64_t)(dt_tensor_out(tensor) + 63) / 64 * 64;
    return in * out * element;
}

int dt_tensor_count(const struct dt_network *network)
{
    return network->family->whole + network->depth * network->family->of_block;
}

int dt_tensor_index(const struct dt_family *family, int row, int block)
{
    return row < family->whole ? row : row + block * family->of_block;
}

void dt_tensor_init(struct dt_tensor *tensor, const struct dt_workload *workload, int index)
{
    const struct dt_family *family = workload->network.family;
    int local = index - family->whole;
    int number = local < 0 ? index : family->whole + local % family->of_block;
    const struct dt_tensor_row *row = &family->tensors[number];
    int64_t inputs = 1;
    *tensor = (struct dt_tensor){.rank = (int)strlen(row->shape), .size = 1};
    if (local < 0)
        snprintf(tensor->name, sizeof tensor->name, "%s", row->name);
    else
        snprintf(tensor->name, sizeof tensor->name, "blocks.%d.%s", local / family->of_block,
                 row->name);
    for (int i = 0; i < tensor->rank; i++) {
        tensor->shape[i] = dt_family_size(workload, row->shape[i]);
        tensor->size *= tensor->shape[i];
        inputs *= i > 0 ? tensor->shape[i] : 1;
    }
    tensor->kind = row->kind;
    tensor->stacked =
        row->kind == DT_TENSOR_STACKED || (number > 0 && row[-1].kind == DT_TENSOR_STACKED);
    tensor->bytes = kept_bytes(tensor, workload->dtype);
    tensor->scale = dt_tensor_is_linear(tensor) ? row->seeded / sqrtf((float)inputs) : row->seeded;
}

static bool is_among(const struct dt_tensor_row rows[], int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return true;
    return false;
}

/* "blocks.3.attn.qkv.weight": the number must be in canonical decimal form and below depth. */
static bool is_tensor(const struct dt_network *network, const char *name)
{
    static const char blocks[] = "blocks.";
    const struct dt_family *family = network->family;
    if (strncmp(name, blocks, sizeof blocks - 1) != 0)
        return is_among(family->tensors, family->whole, name);
    char *end, digits[32];
    const char *number = name + sizeof blocks - 1;
    long block = strtol(number, &end, 10);
    int size = snprintf(digits, sizeof digits, "%ld.", block);
    return block >= 0 && block < network->depth && strncmp(number, digits, (size_t)size) == 0 &&
           is_among(&family->tensors[family->whole], family->of_block, end + 1);
}

static dt_status check_tensors(const struct dt_safetensors *file, const struct dt_network *network)
{
    const struct dt_workload workload = {
        .network = *network, .height = network->latent_size, .width = network->latent_size};
    for (int i = 0; i < dt_safetensors_count(file); i++) {
        const char *name = dt_safetensors_at(file, i)->name;
        if (!is_tensor(network, name))
            return dt_fail(DT_EUSAGE,
                           "%.300s: tensor '%.128s' is not part of the network '%s' of depth %d",
                           dt_safetensors_path(file), name, network->name, network->depth);
    }
    for (int i = 0; i < dt_tensor_count(network); i++) {
        struct dt_tensor tensor;
        const void *data;
        dt_tensor_init(&tensor, &workload, i);
        if (tensor.kind == DT_TENSOR_POSITION) {
            if (dt_safetensors_find(file, tensor.name) == NULL)
                continue;
            tensor.shape[1] = -1;
        }
        struct dt_safetensor expect = {.name = tensor.name, .dtype = "F32", .rank = tensor.rank};
        memcpy(expect.shape, tensor.shape, sizeof tensor.shape);
        DT_TRY(dt_safetensors_get(file, &expect, &data));
    }
    return DT_OK;
}

dt_status dt_tensors_open(const char *path, const struct dt_network *network,
                          struct dt_safetensors **file)
{
    DT_CLEANUP(dt_safetensors_close_at) struct dt_safetensors *opened = NULL;
    DT_TRY(dt_safetensors_open(path, &opened));
    DT_TRY(check_tensors(opened, network));
    *file = opened;
    opened = NULL;
    return DT_OK;
}

dt_status dt_weights_inspect(const char *path, const struct dt_network *network)
{
    DT_CLEANUP(dt_safetensors_close_at) struct dt_safetensors *file = NULL;
    return dt_tensors_open(path, network, &file);
}

static dt_status check_positions(const char *path, const struct dt_workload *workload,
                                 const struct dt_safetensor *table)
{
    int64_t across = workload->network.latent_size / workload->network.patch;
    int tokens = dt_workload_tokens(workload);
    if (table != NULL && table->shape[1] != tokens && table->shape[1] != across * across)
        return dt_fail(DT_EUSAGE,
                       "%.300s: tensor '%s' has %lld positions, expected %d, as the image has "
                       "tokens, or the %lld of the network's own size",
                       path, table->name, (long long)table->shape[1], tokens,
                       (long long)(across * across));
    return DT_OK;
}

dt_status dt_weights_inspect_positions(const char *path, const struct dt_workload *workload)
{
    DT_CLEANUP(dt_safetensors_close_at) struct dt_safetensors *file = NULL;
    DT_TRY(dt_safetensors_open(path, &file));
    for (int i = 0; i < workload->network.family->whole; i++) {
        struct dt_tensor tensor;
        dt_tensor_init(&tensor, workload, i);
        if (tensor.kind == DT_TENSOR_POSITION)
            DT_TRY(check_positions(path, workload, dt_safetensors_find(file, tensor.name)));
    }
    return DT_OK;
}
