/* SPDX-License-Identifier: MIT */
#include "kernels/weights_int.h"

#include "base/rng.h"
#include "kernels/compute.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct dt_weights {
    struct dt_device *device;
    const struct dt_family *family;
    char *data; /* on the device */
    int64_t bytes;
    /* each tensor's place, in bytes; only a stack's first where it is packed at once */
    int64_t at[];
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
static void fill_waves(float *out, int channels, double coordinate)
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
        fill_waves(row, channels / 2, x);
        fill_waves(row + channels / 2, channels / 2, y);
    }
}

/* A table for another grid, such as that of the network's own size, is not used, since it is a
 * formula. The same number of tokens on a grid of another shape is another grid, too. */
static bool table_fits(const struct dt_workload *workload, const struct dt_safetensor *table)
{
    int64_t across = workload->network.latent_size / workload->network.patch;
    bool own = workload->height == workload->network.latent_size &&
               workload->width == workload->network.latent_size;
    return table != NULL && table->shape[1] == dt_workload_tokens(workload) &&
           (own || table->shape[1] != across * across);
}

/* Unpacked values of a tensor: from the file, or seeded. */
static void fill_tensor(const struct dt_workload *workload, const struct dt_safetensors *file,
                        int index, float *data)
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

static int64_t largest_tensor(const struct dt_workload *workload)
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

/* Blocks that have a tensor of the row. */
static int blocks_of(const struct dt_workload *workload, int row)
{
    return row < workload->network.family->whole ? 1 : workload->network.depth;
}

/* Bytes from the first tensor of a stack to a block's; -1: the library packs
 * them only all at once. */
static int64_t place_in_stack(const struct dt_workload *workload, const struct dt_compute *compute,
                              const struct dt_tensor *tensor, int block)
{
    if (!dt_tensor_is_linear(tensor))
        return block * tensor->size * (int64_t)sizeof(float);
    return compute->linear.weight_row(workload->dtype, dt_tensor_in(tensor),
                                      block * dt_tensor_out(tensor));
}

/* `blocks` tensors of a stack at once, or one. */
static dt_status put_tensor(const struct dt_workload *workload, struct dt_device *device,
                            const struct dt_tensor *tensor, int blocks, const float *from, char *to)
{
    if (dt_tensor_is_linear(tensor))
        return device->compute->linear.pack(device, workload->dtype, from, dt_tensor_in(tensor),
                                            blocks * dt_tensor_out(tensor), to);
    return device->compute->memory.put(device, to, from, tensor->size * (int64_t)sizeof(float));
}

static dt_status fill_stack(const struct dt_workload *workload, const struct dt_safetensors *file,
                            const struct dt_weights *weights, int row)
{
    struct dt_tensor tensor;
    int blocks = blocks_of(workload, row);
    dt_tensor_init(&tensor, workload, row);
    dt_auto_free float *all = malloc((size_t)(blocks * tensor.size) * sizeof *all);
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "no memory to pack weights");
    for (int i = 0; i < blocks; i++)
        fill_tensor(workload, file, dt_tensor_index(weights->family, row, i),
                    all + i * tensor.size);
    return put_tensor(workload, weights->device, &tensor, blocks, all,
                      weights->data + weights->at[dt_tensor_index(weights->family, row, 0)]);
}

/* The tensors of a row, through a host buffer of the size of one. */
static dt_status fill_row(const struct dt_workload *workload, const struct dt_safetensors *file,
                          const struct dt_weights *weights, int row, float *work)
{
    struct dt_tensor tensor;
    dt_tensor_init(&tensor, workload, row);
    if (tensor.stacked && place_in_stack(workload, weights->device->compute, &tensor, 1) < 0)
        return fill_stack(workload, file, weights, row);
    for (int i = 0; i < blocks_of(workload, row); i++) {
        int index = dt_tensor_index(weights->family, row, i);
        dt_tensor_init(&tensor, workload, index);
        fill_tensor(workload, file, index, work);
        DT_TRY(put_tensor(workload, weights->device, &tensor, 1, work,
                          weights->data + weights->at[index]));
    }
    return DT_OK;
}

static dt_status fill_all(const struct dt_workload *workload, const struct dt_safetensors *file,
                          struct dt_weights *weights)
{
    const struct dt_family *family = weights->family;
    dt_auto_free float *work = malloc((size_t)largest_tensor(workload) * sizeof *work + 1);
    if (work == NULL)
        return dt_fail(DT_ENOMEM, "no memory to pack weights");
    for (int row = 0; row < family->whole + family->of_block; row++)
        DT_TRY(fill_row(workload, file, weights, row, work));
    return DT_OK;
}

/* Takes as many bytes as the tensors would need apart. */
static void place_row(const struct dt_workload *workload, struct dt_weights *weights, int row)
{
    int64_t first = weights->bytes;
    for (int i = 0; i < blocks_of(workload, row); i++) {
        struct dt_tensor tensor;
        int index = dt_tensor_index(weights->family, row, i);
        dt_tensor_init(&tensor, workload, index);
        weights->at[index] = weights->bytes;
        if (tensor.stacked)
            weights->at[index] =
                first + place_in_stack(workload, weights->device->compute, &tensor, i);
        weights->bytes += (tensor.bytes + 63) / 64 * 64;
    }
}

static dt_status allocate_weights(const struct dt_workload *workload, struct dt_device *device,
                                  struct dt_weights **out)
{
    void *data = NULL;
    int count = dt_tensor_count(&workload->network);
    dt_auto_free struct dt_weights *weights =
        calloc(1, sizeof *weights + (size_t)count * sizeof weights->at[0]);
    if (weights == NULL)
        return dt_fail(DT_ENOMEM, "no memory for the table of weights");
    weights->device = device;
    weights->family = workload->network.family;
    for (int row = 0; row < weights->family->whole + weights->family->of_block; row++)
        place_row(workload, weights, row);
    DT_TRY(device->compute->memory.alloc(device, weights->bytes, &data));
    weights->data = data;
    device->compute->memory.fill(device, data, 0, weights->bytes); /* padding of packed weights */
    *out = weights;
    weights = NULL;
    return DT_OK;
}

dt_status dt_weights_new(const struct dt_workload *workload, struct dt_device *device,
                         struct dt_weights **weights)
{
    DT_CLEANUP(dt_weights_free_at) struct dt_weights *made = NULL;
    DT_CLEANUP(dt_safetensors_close_at) struct dt_safetensors *file = NULL;
    if (workload->weights[0] != '\0')
        DT_TRY(dt_tensors_open(workload->weights, &workload->network, &file));
    DT_TRY(allocate_weights(workload, device, &made));
    DT_TRY(fill_all(workload, file, made));
    *weights = made;
    made = NULL;
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
    fill_tensor(workload, NULL, index, data);
}
