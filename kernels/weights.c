/* SPDX-License-Identifier: MIT */
#include "kernels/weights_int.h"

#include "base/rng.h"
#include "kernels/safetensors.h"
#include "model/layout.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dt_weights {
    float *data;
    int64_t bytes;
    int count;
    int64_t at[]; /* of each tensor, in floats */
};

static const struct row {
    const char *name, *shape;
    bool gain;
    float scale;
} whole[] =
    {
#define GAIN(x)                            true, (x)
#define PLAIN(x)                           false, (x)
#define DT_TENSOR(id, name, shape, seeded) {name, shape, seeded},
#define DT_BLOCK_TENSOR(id, name, shape, seeded)
#include "kernels/tensors.def"
},
  of_block[] = {
#define DT_TENSOR(id, name, shape, seeded)
#define DT_BLOCK_TENSOR(id, name, shape, seeded) {name, shape, seeded},
#include "kernels/tensors.def"
};

static int64_t size_of(const struct dt_workload *workload, char letter)
{
    const struct dt_network *network = &workload->network;
    const struct {
        char letter;
        int64_t size;
    } sizes[] = {
        {'C', network->hidden},
        {'A', network->in_channels},
        {'P', network->patch},
        {'F', DT_TIME_CHANNELS},
        {'L', network->classes + 1},
        {'M', dt_network_mlp(network)},
        {'T', dt_workload_tokens(workload)},
        {'O', (int64_t)network->patch * network->patch * dt_network_out_channels(network)},
        {'1', 1},
        {'2', 2L * network->hidden},
        {'3', 3L * network->hidden},
        {'6', 6L * network->hidden},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].letter == letter)
            return sizes[i].size;
    return 0;
}

int dt_tensor_count(const struct dt_network *network)
{
    return DT_TENSOR_BLOCKS + network->depth * DT_TENSORS_OF_BLOCK;
}

void dt_tensor_init(struct dt_tensor *tensor, const struct dt_workload *workload, int index)
{
    int local = index - DT_TENSOR_BLOCKS;
    const struct row *row = local < 0 ? &whole[index] : &of_block[local % DT_TENSORS_OF_BLOCK];
    int64_t inputs = 1;
    *tensor = (struct dt_tensor){.rank = (int)strlen(row->shape), .size = 1};
    if (local < 0)
        snprintf(tensor->name, sizeof tensor->name, "%s", row->name);
    else
        snprintf(tensor->name, sizeof tensor->name, "blocks.%d.%s", local / DT_TENSORS_OF_BLOCK,
                 row->name);
    for (int i = 0; i < tensor->rank; i++) {
        tensor->shape[i] = size_of(workload, row->shape[i]);
        tensor->size *= tensor->shape[i];
        inputs *= i > 0 ? tensor->shape[i] : 1;
    }
    tensor->scale = row->gain ? row->scale / sqrtf((float)inputs) : row->scale;
}

static void seed_tensor(const struct dt_tensor *tensor, uint64_t seed, float *data)
{
    enum { CHUNK = 16384 };
    uint64_t stream = dt_rng_stream(tensor->name);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < tensor->size; i += CHUNK) {
        int64_t n = tensor->size - i < CHUNK ? tensor->size - i : CHUNK;
        dt_rng_fill(data + i, (size_t)n, seed, stream, (uint64_t)i, tensor->scale);
    }
}

/* [sin, cos] of one coordinate in `channels` channels. */
static void waves(float *out, int channels, double coordinate)
{
    int half = channels / 2;
    for (int i = 0; i < half; i++) {
        double angle = coordinate * pow(10000.0, -(double)i / half);
        out[i] = (float)sin(angle);
        out[half + i] = (float)cos(angle);
    }
}

/* The authors' fixed table: the column in the first half of the channels, the row in the second. */
static void fill_position(const struct dt_workload *workload, float *data)
{
    int columns = workload->width / workload->network.patch;
    int tokens = dt_workload_tokens(workload), channels = workload->network.hidden;
    for (int token = 0; token < tokens; token++) {
        float *row = data + (int64_t)token * channels;
        waves(row, channels / 2, token % columns);
        waves(row + channels / 2, channels / 2, token / columns);
    }
}

static void seed_all(const struct dt_workload *workload, struct dt_weights *weights)
{
    for (int i = 0; i < weights->count; i++) {
        struct dt_tensor tensor;
        dt_tensor_init(&tensor, workload, i);
        if (i != DT_W_POSITION)
            seed_tensor(&tensor, workload->seed, weights->data + weights->at[i]);
    }
    fill_position(workload, weights->data + weights->at[DT_W_POSITION]);
}

static dt_status refuse_unknown(const struct dt_workload *workload,
                                const struct dt_safetensors *file)
{
    int count = dt_tensor_count(&workload->network);
    for (int i = 0; i < dt_safetensors_count(file); i++) {
        const char *name = dt_safetensors_at(file, i)->name;
        bool known = false;
        for (int j = 0; !known && j < count; j++) {
            struct dt_tensor tensor;
            dt_tensor_init(&tensor, workload, j);
            known = strcmp(tensor.name, name) == 0;
        }
        if (!known)
            return dt_fail(
                DT_EUSAGE, "%.300s: tensor '%.128s' is not part of the network '%s' of depth %d",
                dt_safetensors_path(file), name, workload->network.name, workload->network.depth);
    }
    return DT_OK;
}

static dt_status read_all(const struct dt_workload *workload, const struct dt_safetensors *file,
                          struct dt_weights *weights)
{
    DT_TRY(refuse_unknown(workload, file));
    for (int i = 0; i < weights->count; i++) {
        struct dt_tensor tensor;
        const void *data = NULL;
        dt_tensor_init(&tensor, workload, i);
        if (i == DT_W_POSITION && dt_safetensors_find(file, tensor.name) == NULL) {
            fill_position(workload, weights->data + weights->at[i]);
            continue;
        }
        struct dt_safetensor expect = {.name = tensor.name, .dtype = "F32", .rank = tensor.rank};
        memcpy(expect.shape, tensor.shape, sizeof tensor.shape);
        DT_TRY(dt_safetensors_get(file, &expect, &data));
        memcpy(weights->data + weights->at[i], data, (size_t)tensor.size * sizeof(float));
    }
    return DT_OK;
}

static dt_status allocate(const struct dt_workload *workload, struct dt_weights **out)
{
    int count = dt_tensor_count(&workload->network);
    struct dt_weights *weights = calloc(1, sizeof *weights + (size_t)count * sizeof weights->at[0]);
    int64_t floats = 0;
    if (weights == NULL)
        return dt_fail(DT_ENOMEM, "no memory for the table of weights");
    weights->count = count;
    for (int i = 0; i < count; i++) {
        struct dt_tensor tensor;
        dt_tensor_init(&tensor, workload, i);
        weights->at[i] = floats;
        floats += tensor.size;
    }
    weights->bytes = floats * (int64_t)sizeof(float);
    weights->data = aligned_alloc(64, ((size_t)weights->bytes + 63) / 64 * 64);
    if (weights->data == NULL) {
        free(weights);
        return dt_fail(DT_ENOMEM, "no memory for %lld bytes of weights",
                       (long long)(floats * (int64_t)sizeof(float)));
    }
    *out = weights;
    return DT_OK;
}

dt_status dt_weights_new(const struct dt_workload *workload, struct dt_weights **weights)
{
    struct dt_weights *made = NULL;
    struct dt_safetensors *file = NULL;
    dt_status status = DT_OK;
    if (workload->weights[0] != '\0')
        DT_TRY(dt_safetensors_open(workload->weights, &file));
    status = allocate(workload, &made);
    if (status == DT_OK && file != NULL)
        status = read_all(workload, file, made);
    else if (status == DT_OK)
        seed_all(workload, made);
    dt_safetensors_close(file);
    if (status != DT_OK) {
        dt_weights_free(made);
        return status;
    }
    *weights = made;
    return DT_OK;
}

void dt_weights_free(struct dt_weights *weights)
{
    if (weights == NULL)
        return;
    free(weights->data);
    free(weights);
}

const float *dt_weights_at(const struct dt_weights *weights, int tensor)
{
    return weights->data + weights->at[tensor];
}

const float *dt_weights_block(const struct dt_weights *weights, int block, int tensor)
{
    return dt_weights_at(weights, DT_TENSOR_BLOCKS + block * DT_TENSORS_OF_BLOCK + tensor);
}

int64_t dt_weights_bytes(const struct dt_weights *weights)
{
    return weights->bytes;
}
