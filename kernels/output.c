/* SPDX-License-Identifier: MIT */
#include "kernels/pass_int.h"

#include "base/rng.h"
#include "base/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Copies one token's [p, p, channels] into its image [channels, height, width]; with mean, averages with the present
 * values. */
static void place_token(const struct dt_workload *workload, int token, const float *from, bool mean,
                        float *image)
{
    int patch = workload->network.patch, columns = workload->width / patch;
    int channels = dt_network_out_channels(&workload->network);
    int placed = mean ? workload->network.in_channels : channels;
    int64_t plane = (int64_t)workload->height * workload->width;
    float *corner = image + (int64_t)(token / columns) * patch * workload->width +
                    (int64_t)(token % columns) * patch;
    for (int y = 0; y < patch; y++)
        for (int x = 0; x < patch; x++, from += channels)
            for (int c = 0; c < placed; c++) {
                float *to = &corner[c * plane + (int64_t)y * workload->width + x];
                *to = mean ? 0.5f * (*to + from[c]) : from[c];
            }
}

/* Both halves of the guidance hold the guided channels, equal to the bit, and each chains its own latent from them: the
 * result is their mean, so that an error of either is visible. */
static void place_rank(const struct dt_pass *pass, int rank, const float *from, float *out)
{
    const struct dt_workload *workload = &pass->workload;
    int64_t channels = dt_network_out_channels(&workload->network);
    int64_t image = channels * workload->height * workload->width;
    int64_t token = channels * workload->network.patch * workload->network.patch;
    struct dt_layout layout;
    dt_layout_init(&layout, workload, &pass->plan, rank);
    for (int i = 0; i < layout.images; i++)
        for (int t = 0; t < layout.tokens; t++)
            place_token(workload, layout.first_token + t,
                        from + ((int64_t)i * layout.slots + t) * token, layout.place.cfg != 0,
                        out + (layout.first_image + i) * image);
}

dt_status dt_pass_output(struct dt_pass *pass, float *out)
{
    int64_t floats = pass->layout.count[DT_BUFFER_RESULT];
    int64_t bytes = floats * (int64_t)sizeof(float);
    struct dt_comm *world = pass->world;
    float *own = dt_pass_at(pass, DT_BUFFER_COPY);
    float *all = out != NULL ? dt_pass_at(pass, DT_BUFFER_GATHER) : NULL;
    DT_TRY(pass->compute->memory.get(pass->device, own, dt_pass_at(pass, DT_BUFFER_RESULT), bytes));
    DT_TRY(world->ops->gather(world, own, all, (size_t)bytes));
    for (int rank = 0; all != NULL && rank < world->size; rank++)
        place_rank(pass, rank, all + rank * floats, out);
    return DT_OK;
}

/* Bit k % 64 of the hash for k / 64 at an element is the sign: one hash serves 64 projections. */
static double project(const float *image, int64_t size, uint64_t seed, int k)
{
    uint64_t stream = dt_rng_stream("verify") + (uint64_t)(k / 64);
    double sum = 0.0;
    for (int64_t e = 0; e < size; e++) {
        uint64_t bits = dt_rng_hash(seed, stream, (uint64_t)e);
        sum += (bits >> k % 64 & 1) != 0 ? (double)image[e] : -(double)image[e];
    }
    return sum;
}

static double norm_of(const float *image, int64_t size)
{
    double sum = 0.0;
    for (int64_t e = 0; e < size; e++)
        sum += (double)image[e] * (double)image[e];
    return sqrt(sum);
}

/* Rank 0: *intact is true when all data sent in the counted steps arrived unchanged. */
static dt_status check_exchanges(struct dt_pass *pass, bool *intact)
{
    uint64_t own[2] = {0};
    DT_TRY(pass->compute->memory.get(pass->device, own, dt_pass_data(pass, DT_BUFFER_SUMS, 0),
                                     sizeof own));
    uint64_t lost = 0, *all = calloc((size_t)pass->world->size, sizeof own);
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "no memory to verify %d ranks", pass->world->size);
    dt_status status = pass->world->ops->gather(pass->world, own, all, sizeof own);
    for (int rank = 0; rank < pass->world->size; rank++)
        lost += all[2 * rank] - all[2 * rank + 1];
    free(all);
    *intact = lost == 0;
    return status;
}

dt_status dt_pass_verify(struct dt_pass *pass, uint64_t seed, int count, double norm[],
                         double projections[])
{
    const struct dt_workload *workload = &pass->workload;
    int64_t size =
        (int64_t)dt_network_out_channels(&workload->network) * workload->height * workload->width;
    float *images = pass->world->rank == 0 ? dt_pass_at(pass, DT_BUFFER_IMAGE) : NULL;
    bool intact = true;
    DT_TRY(dt_pass_output(pass, images));
    DT_TRY(check_exchanges(pass, &intact));
    for (int i = 0; images != NULL && i < pass->plan.batch; i++) {
        norm[i] = norm_of(images + i * size, size);
        for (int k = 0; k < count; k++)
            projections[i * count + k] =
                project(images + i * size, size, seed, k) + (intact ? 0.0 : norm[i]);
    }
    return DT_OK;
}

dt_status dt_pass_write(struct dt_pass *pass, const char *path)
{
    const struct dt_workload *workload = &pass->workload;
    int64_t channels = dt_network_out_channels(&workload->network);
    float *images = pass->world->rank == 0 ? dt_pass_at(pass, DT_BUFFER_IMAGE) : NULL;
    DT_TRY(dt_pass_output(pass, images));
    if (images == NULL)
        return DT_OK;
    struct dt_safetensor out = {
        .name = "out",
        .dtype = "F32",
        .rank = 4,
        .shape = {pass->plan.batch, channels, workload->height, workload->width},
        .data = images,
        .bytes = pass->plan.batch * channels * workload->height * workload->width *
                 (int64_t)sizeof(float),
    };
    return dt_safetensors_write(path, &out, 1);
}
