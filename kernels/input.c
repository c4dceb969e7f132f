/* SPDX-License-Identifier: MIT */
/* The start of a trajectory. Image i is the same in every plan and batch: its noise and class
 * depend on the seed and i only. */
#include "model/input.h"
#include "base/rng.h"
#include "kernels/pass_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRAINED_STEPS 1000

/* Product of 1 - beta, beta from 1e-4 to 0.02 in a straight line. */
static double alpha_bar(int time)
{
    double product = 1.0;
    for (int i = 0; i <= time; i++)
        product *= 1.0 - (1e-4 + (0.02 - 1e-4) * i / (TRAINED_STEPS - 1));
    return product;
}

static int time_of(int step, int steps)
{
    return (int)((int64_t)(steps - 1 - step) * TRAINED_STEPS / steps);
}

float dt_sampler_time(int step, int steps)
{
    return (float)time_of(step, steps);
}

void dt_sampler_update(int step, int steps, float *keep, float *move)
{
    double here = alpha_bar(time_of(step, steps));
    double next = step + 1 < steps ? alpha_bar(time_of(step + 1, steps)) : 1.0;
    double ratio = sqrt(next / here);
    *keep = (float)ratio;
    *move = (float)(sqrt(1.0 - next) - sqrt(1.0 - here) * ratio);
}

/* Offset of row `y` of the patch of own token t, channel c, in an image
 * [in_channels, height, width]. */
static int64_t pixel_at(const struct dt_pass *pass, int token, int c, int y)
{
    const struct dt_workload *workload = &pass->workload;
    int patch = workload->network.patch, columns = workload->width / patch;
    int at = pass->layout.first_token + token;
    return ((int64_t)c * workload->height + (int64_t)(at / columns) * patch + y) * workload->width +
           (int64_t)(at % columns) * patch;
}

/* Runs of patch pixels of image i into latent, host memory: from the file's x, or
 * noise when x is NULL. */
static void fill_image(const struct dt_pass *pass, int i, const char *x, float *latent)
{
    const struct dt_network *network = &pass->workload.network;
    int patch = network->patch, rows = network->in_channels * patch;
    int64_t image = (int64_t)network->in_channels * pass->workload.height * pass->workload.width;
    uint64_t stream = dt_rng_stream("noise");
    latent += (int64_t)i * pass->layout.tokens * rows * patch;
    for (int token = 0; token < pass->layout.tokens; token++) {
        for (int row = 0; row < rows; row++, latent += patch) {
            int64_t at = i * image + pixel_at(pass, token, row / patch, row % patch);
            if (x != NULL)
                memcpy(latent, x + at * (int64_t)sizeof(float), (size_t)patch * sizeof(float));
            else
                dt_rng_fill(latent, (size_t)patch, pass->workload.seed, stream, (uint64_t)at, 1.0f);
        }
    }
}

static dt_status fill_from_file(struct dt_pass *pass, float *latent, int32_t labels[])
{
    const struct dt_workload *workload = &pass->workload;
    DT_CLEANUP(dt_input_close) struct dt_input input = {0};
    DT_TRY(dt_input_open(workload->input, &workload->network, &input));
    if (input.batch != workload->input_batch || input.height != workload->height ||
        input.width != workload->width)
        return dt_fail(DT_EUSAGE,
                       "%.300s: tensor 'x' is %d images of %d x %d, expected %d of %d x %d",
                       workload->input, input.batch, input.height, input.width,
                       workload->input_batch, workload->height, workload->width);
    for (int i = 0; i < pass->layout.images; i++) {
        fill_image(pass, i, input.x, latent);
        pass->memory.times[i] = (float)dt_input_time(&input, i);
        labels[i] = input.label != NULL ? (int32_t)dt_input_label(&input, i) : 0;
    }
    return DT_OK;
}

static void fill_labels(struct dt_pass *pass, const struct dt_label *label, int32_t labels[])
{
    const struct dt_workload *workload = &pass->workload;
    int none = workload->network.own[label->count];
    for (int n = 0; n < pass->layout.sequences; n++) {
        int image = n % pass->layout.images;
        bool conditional = pass->layout.place.cfg == 0 && n < pass->layout.images;
        uint64_t bits = dt_rng_hash(workload->seed, dt_rng_stream("label"), (uint64_t)image);
        labels[n] = conditional ? (int32_t)(bits % (uint64_t)none) : none;
    }
}

static void fill_seeded(struct dt_pass *pass, float *latent, int32_t labels[])
{
    const struct dt_label *label = pass->workload.network.family->label;
    if (label != NULL)
        fill_labels(pass, label, labels);
    for (int i = 0; i < pass->layout.images; i++)
        fill_image(pass, i, NULL, latent);
}

static dt_status put_buffer(struct dt_pass *pass, int buffer, const void *from)
{
    const struct dt_layout *layout = &pass->layout;
    int64_t bytes = layout->count[buffer] * layout->element[buffer];
    return bytes > 0
               ? pass->compute->memory.put(pass->device, dt_pass_at(pass, buffer), from, bytes)
               : DT_OK;
}

dt_status dt_pass_fill(struct dt_pass *pass)
{
    const struct dt_label *label = pass->workload.network.family->label;
    size_t floats = (size_t)pass->layout.count[DT_BUFFER_LATENT];
    size_t sequences = (size_t)pass->layout.sequences;
    dt_auto_free float *latent = calloc(floats, sizeof *latent);
    dt_auto_free int32_t *labels = calloc(sequences, sizeof *labels);
    if (latent == NULL || labels == NULL)
        return dt_fail(DT_ENOMEM, "no memory for %zu numbers of noise", floats);
    if (pass->workload.input[0] != '\0')
        DT_TRY(fill_from_file(pass, latent, labels));
    else
        fill_seeded(pass, latent, labels);
    DT_TRY(put_buffer(pass, DT_BUFFER_LATENT, latent));
    DT_TRY(put_buffer(pass, DT_BUFFER_NOISE, latent));
    return label != NULL ? put_buffer(pass, label->buffer, labels) : DT_OK;
}
