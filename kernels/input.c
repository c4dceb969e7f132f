/* SPDX-License-Identifier: MIT */
/* What a trajectory starts from. Image i is the same in every plan and batch: its noise and class depend on the seed
 * and i only. */
#include "kernels/pass_int.h"

#include "base/rng.h"
#include "model/input.h"

#include <math.h>
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

/* Where row `y` of the patch of own token t, channel c, lies in an image [in_channels, height, width]. */
static int64_t pixel_at(const struct dt_pass *pass, int token, int c, int y)
{
    const struct dt_workload *workload = &pass->workload;
    int patch = workload->network.patch, columns = workload->width / patch;
    int at = pass->layout.first_token + token;
    return ((int64_t)c * workload->height + (int64_t)(at / columns) * patch + y) * workload->width +
           (int64_t)(at % columns) * patch;
}

/* Runs of patch pixels of image i: from the file's x, or noise when x is NULL. */
static void fill_image(struct dt_pass *pass, int i, const char *x)
{
    const struct dt_network *network = &pass->workload.network;
    int patch = network->patch, rows = network->in_channels * patch;
    int64_t image = (int64_t)network->in_channels * pass->workload.height * pass->workload.width;
    uint64_t stream = dt_rng_stream("noise");
    float *latent =
        dt_pass_at(pass, DT_BUFFER_LATENT) + (int64_t)i * pass->layout.tokens * rows * patch;
    for (int token = 0; token < pass->layout.tokens; token++) {
        for (int row = 0; row < rows; row++, latent += patch) {
            int64_t at = (pass->layout.first_image + i) * image +
                         pixel_at(pass, token, row / patch, row % patch);
            if (x != NULL)
                memcpy(latent, x + at * (int64_t)sizeof(float), (size_t)patch * sizeof(float));
            else
                dt_rng_fill(latent, (size_t)patch, pass->workload.seed, stream, (uint64_t)at, 1.0f);
        }
    }
}

void dt_pass_noise(struct dt_pass *pass)
{
    for (int i = 0; i < pass->layout.images; i++)
        fill_image(pass, i, NULL);
}

static dt_status fill_from_file(struct dt_pass *pass)
{
    const struct dt_workload *workload = &pass->workload;
    int32_t *labels = (int32_t *)(void *)dt_pass_at(pass, DT_BUFFER_LABEL);
    struct dt_input input;
    DT_TRY(dt_input_open(workload->input, &workload->network, &input));
    dt_status status = DT_OK;
    if (input.batch != workload->input_batch || input.height != workload->height ||
        input.width != workload->width)
        status =
            dt_fail(DT_EUSAGE, "%.300s: tensor 'x' is %d images of %d x %d, expected %d of %d x %d",
                    workload->input, input.batch, input.height, input.width, workload->input_batch,
                    workload->height, workload->width);
    for (int i = 0; status == DT_OK && i < pass->layout.images; i++) {
        int image = pass->layout.first_image + i;
        fill_image(pass, i, input.x);
        dt_pass_at(pass, DT_BUFFER_TIME)[i] = (float)dt_input_time(&input, image);
        labels[i] = (int32_t)dt_input_label(&input, image);
    }
    dt_input_close(&input);
    return status;
}

dt_status dt_pass_fill(struct dt_pass *pass)
{
    const struct dt_workload *workload = &pass->workload;
    int32_t *labels = (int32_t *)(void *)dt_pass_at(pass, DT_BUFFER_LABEL);
    int classes = workload->network.classes;
    if (workload->input[0] != '\0')
        return fill_from_file(pass);
    for (int n = 0; n < pass->layout.sequences; n++) {
        int image = pass->layout.first_image + n % pass->layout.images;
        bool with_class = pass->layout.place.cfg == 0 && n < pass->layout.images;
        uint64_t bits = dt_rng_hash(workload->seed, dt_rng_stream("label"), (uint64_t)image);
        labels[n] = with_class ? (int32_t)(bits % (uint64_t)classes) : classes;
    }
    dt_pass_noise(pass);
    return DT_OK;
}
