/* SPDX-License-Identifier: MIT */
#include "kernels/weights_int.h"

#include "base/rng.h"
#include "kernels/compute.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dt_weights {
    struct dt_device *device;
    const struct dt_family *family;
    char *data; /* of the device */
    int64_t bytes;
    int count;
    int64_t at[]; /* of each tensor, in bytes */
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

/* A table for another grid, such as that of the network's own size, is not used, since it is a formula. The same number
 * of tokens on a grid of another shape is another grid, too. */
static bool table_fits(const struct dt_workload *workload, const struct dt_safetensor *table)
{
    int64_t across = workload->network.latent_size / workload->network.patch;
    bool own = workload->height == workload->network.latent_size &&
               workload->width == workload->network.latent_size;
    return table != NULL && table->shape[1] == dt_workload_tokens(workload) &&
           (own || table->shape[1] != across * across);
}

/* Unpacked values of a tensor: from the file, or seeded. */
static void fill(const struct dt_workload *workload, const struct dt_safetensors *file, int index,
                 float *data)
{
    struct dt_tensor tensor;
    dt_tensor_init(&tensor, workload, index);
    const struct dt_safetensor *found =
        file != NULL ? dt_safetensors_find(file, tensor.name) : NULL;
    if (tensor.kind == DT_TENSOR_POSITION && !table_fits(workload, found))
        fill_position(workload, data);
    else if (found != NULL)
        memcpy(data, found->data, (size_t)tensor.size * sizeof(float));
    else
        seed_tensor(&tensor, workload->seed, data);
}

static int64_t largest(const struct dt_workload *workload)
{
    int64_t most = 0;
    for (int i = 0; i < dt_tensor_count(&workload->network); i++) {
        struct dt_tensor tensor;
        dt_tensor_init(&tensor, workload, i);
        if (tensor.size > most)
            most = tensor.size;
    }
    return most;
}

/* Tensors pass through a host buffer of the largest one's size. */
static dt_status fill_all(const struct dt_workload *workload, const struct dt_safetensors *file,
                          struct dt_weights *weights)
{
    struct dt_device *device = weights->device;
    float *work = malloc((size_t)largest(workload) * sizeof *work + 1);
    if (work == NULL)
        return dt_fail(DT_ENOMEM, "no memory to pack weights");
    dt_status status = DT_OK;
    for (int i = 0; i < weights->count && status == DT_OK; i++) {
        struct dt_tensor tensor;
        char *to = weights->data + weights->at[i];
        dt_tensor_init(&tensor, workload, i);
        fill(workload, file, i, work);
        if (tensor.kind == DT_TENSOR_LINEAR)
            status = device->compute->linear.pack(
                device, workload->dtype, work, dt_tensor_in(&tensor), dt_tensor_out(&tensor), to);
        else
            status =
                device->compute->memory.put(device, to, work, tensor.size * (int64_t)sizeof(float));
    }
    free(work);
    return status;
}

static dt_status allocate(const struct dt_workload *workload, struct dt_device *device,
                          struct dt_weights **out)
{
    void *data = NULL;
    int count = dt_tensor_count(&workload->network);
    struct dt_weights *weights = calloc(1, sizeof *weights + (size_t)count * sizeof weights->at[0]);
    if (weights == NULL)
        return dt_fail(DT_ENOMEM, "no memory for the table of weights");
    weights->count = count;
    weights->device = device;
    weights->family = workload->network.family;
    for (int i = 0; i < count; i++) {
        struct dt_tensor tensor;
        dt_tensor_init(&tensor, workload, i);
        weights->at[i] = weights->bytes;
        weights->bytes += (tensor.bytes + 63) / 64 * 64;
    }
    dt_status status = device->compute->memory.alloc(device, weights->bytes, &data);
    if (status != DT_OK) {
        free(weights);
        return status;
    }
    weights->data = data;
    device->compute->memory.fill(device, data, 0, weights->bytes); /* padding of packed weights */
    *out = weights;
    return DT_OK;
}

dt_status dt_weights_new(const struct dt_workload *workload, struct dt_device *device,
                         struct dt_weights **weights)
{
    struct dt_weights *made = NULL;
    struct dt_safetensors *file = NULL;
    if (workload->weights[0] != '\0')
        DT_TRY(dt_tensors_open(workload->weights, &workload->network, &file));
    dt_status status = allocate(workload, device, &made);
    if (status == DT_OK && made != NULL)
        status = fill_all(workload, file, made);
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
    weights->device->compute->memory.release(weights->device, weights->data);
    free(weights);
}

const void *dt_weights_at(const struct dt_weights *weights, int row, int block)
{
    return weights->data + weights->at[dt_tensor_index(weights->family, row, block)];
}

struct dt_device *dt_weights_device(const struct dt_weights *weights)
{
    return weights->device;
}

int64_t dt_weights_bytes(const struct dt_weights *weights)
{
    return weights->bytes;
}

void dt_weights_seeded(const struct dt_workload *workload, int index, float *data)
{
    fill(workload, NULL, index, data);
}
