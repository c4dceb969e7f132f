/* SPDX-License-Identifier: MIT */
#include "kernels/weights_int.h"

#include "base/rng.h"

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
        int x = token % columns, y = token / columns;
        waves(row, channels / 2, x);
        waves(row + channels / 2, channels / 2, y);
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

/* A table of another grid, as that of the network's own size, is not used: it is a formula. As many tokens on a grid of
 * another shape than the network's own square are another grid too. */
static bool table_fits(const struct dt_workload *workload, const struct dt_safetensor *table)
{
    int64_t across = workload->network.latent_size / workload->network.patch;
    bool own = workload->height == workload->network.latent_size &&
               workload->width == workload->network.latent_size;
    return table != NULL && table->shape[1] == dt_workload_tokens(workload) &&
           (own || table->shape[1] != across * across);
}

static void read_all(const struct dt_workload *workload, const struct dt_safetensors *file,
                     struct dt_weights *weights)
{
    for (int i = 0; i < weights->count; i++) {
        struct dt_tensor tensor;
        dt_tensor_init(&tensor, workload, i);
        const struct dt_safetensor *found = dt_safetensors_find(file, tensor.name);
        float *to = weights->data + weights->at[i];
        if (i == DT_W_POSITION && !table_fits(workload, found))
            fill_position(workload, to);
        else
            memcpy(to, found->data, (size_t)tensor.size * sizeof(float));
    }
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
        DT_TRY(dt_tensors_open(workload->weights, &workload->network, &file));
    status = allocate(workload, &made);
    if (status == DT_OK && file != NULL)
        read_all(workload, file, made);
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
