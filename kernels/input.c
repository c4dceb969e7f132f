/* SPDX-License-Identifier: MIT */
/* What a trajectory starts from. Image i is the same in every plan and batch: its noise and class depend on the seed
 * and i only. */
#include "kernels/pass_int.h"

#include "base/rng.h"
#include "kernels/safetensors.h"

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

static int64_t int64_at(const char *data, int64_t i)
{
    int64_t value;
    memcpy(&value, data + i * (int64_t)sizeof value, sizeof value);
    return value;
}

struct input {
    struct dt_safetensors *file;
    const char *x, *t, *y;
    int64_t batch, height, width;
};

static dt_status check_values(const char *path, const struct dt_network *network,
                              const struct input *input)
{
    for (int64_t i = 0; i < input->batch; i++) {
        int64_t t = int64_at(input->t, i), y = int64_at(input->y, i);
        if (t < 0)
            return dt_fail(DT_EUSAGE, "%.300s: tensor 't' holds %lld at %lld, expected 0 or more",
                           path, (long long)t, (long long)i);
        if (y < 0 || y > network->classes)
            return dt_fail(DT_EUSAGE, "%.300s: tensor 'y' holds %lld at %lld, expected 0 to %d",
                           path, (long long)y, (long long)i, network->classes);
    }
    return DT_OK;
}

static dt_status check_input(const char *path, const struct dt_network *network,
                             struct input *input)
{
    const void *x = NULL, *t = NULL, *y = NULL;
    const struct dt_safetensor expect_x = {
        .name = "x", .dtype = "F32", .rank = 4, .shape = {-1, network->in_channels, -1, -1}};
    DT_TRY(dt_safetensors_get(input->file, &expect_x, &x));
    const int64_t *shape = dt_safetensors_find(input->file, "x")->shape;
    const struct dt_safetensor expect_t = {
        .name = "t", .dtype = "I64", .rank = 1, .shape = {shape[0]}};
    const struct dt_safetensor expect_y = {
        .name = "y", .dtype = "I64", .rank = 1, .shape = {shape[0]}};
    DT_TRY(dt_safetensors_get(input->file, &expect_t, &t));
    DT_TRY(dt_safetensors_get(input->file, &expect_y, &y));
    if (shape[0] < 1 || shape[0] > 1 << 20)
        return dt_fail(DT_EUSAGE, "%.300s: tensor 'x' holds %lld images, expected 1 to 1048576",
                       path, (long long)shape[0]);
    for (int i = 2; i < 4; i++)
        if (shape[i] < network->patch || shape[i] > 65536 || shape[i] % network->patch != 0)
            return dt_fail(
                DT_EUSAGE,
                "%.300s: tensor 'x' is %lld pixels %s, expected a multiple of the patch, "
                "%d, up to 65536",
                path, (long long)shape[i], i == 2 ? "high" : "wide", network->patch);
    input->x = x;
    input->t = t;
    input->y = y;
    input->batch = shape[0];
    input->height = shape[2];
    input->width = shape[3];
    for (int i = 0; i < dt_safetensors_count(input->file); i++) {
        const char *name = dt_safetensors_at(input->file, i)->name;
        if (strlen(name) != 1 || strchr("xty", name[0]) == NULL)
            return dt_fail(DT_EUSAGE,
                           "%.300s: tensor '%.128s' is not an input, expected x, t and y", path,
                           name);
    }
    return check_values(path, network, input);
}

/* The caller closes input->file on success. */
static dt_status open_input(const char *path, const struct dt_network *network, struct input *input)
{
    DT_TRY(dt_safetensors_open(path, &input->file));
    dt_status status = check_input(path, network, input);
    if (status != DT_OK)
        dt_safetensors_close(input->file);
    return status;
}

dt_status dt_input_inspect(const char *path, const struct dt_network *network, int *batch,
                           int *height, int *width)
{
    struct input input = {0};
    DT_TRY(open_input(path, network, &input));
    dt_safetensors_close(input.file);
    *batch = (int)input.batch;
    *height = (int)input.height;
    *width = (int)input.width;
    return DT_OK;
}

static dt_status fill_from_file(struct dt_pass *pass)
{
    const struct dt_workload *workload = &pass->workload;
    int32_t *labels = (int32_t *)(void *)dt_pass_at(pass, DT_BUFFER_LABEL);
    struct input input = {0};
    DT_TRY(open_input(workload->input, &workload->network, &input));
    dt_status status = DT_OK;
    if (input.batch != workload->input_batch || input.height != workload->height ||
        input.width != workload->width)
        status = dt_fail(
            DT_EUSAGE, "%.300s: tensor 'x' is %lld images of %lldx%lld, expected %d of %dx%d",
            workload->input, (long long)input.batch, (long long)input.height,
            (long long)input.width, workload->input_batch, workload->height, workload->width);
    for (int i = 0; status == DT_OK && i < pass->layout.images; i++) {
        fill_image(pass, i, input.x);
        dt_pass_at(pass, DT_BUFFER_TIME)[i] =
            (float)int64_at(input.t, pass->layout.first_image + i);
        labels[i] = (int32_t)int64_at(input.y, pass->layout.first_image + i);
    }
    dt_safetensors_close(input.file);
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
