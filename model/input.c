/* SPDX-License-Identifier: MIT */
#include "model/input.h"

#include <string.h>

enum { MOST_IMAGES = 1 << 20, MOST_PIXELS = 65536 };

static int64_t int64_at(const struct dt_input *input, const char *name, int image)
{
    int64_t value;
    const struct dt_safetensor *tensor = dt_safetensors_find(input->file, name);
    memcpy(&value, (const char *)tensor->data + (size_t)image * sizeof value, sizeof value);
    return value;
}

int64_t dt_input_time(const struct dt_input *input, int image)
{
    return int64_at(input, "t", image);
}

int64_t dt_input_label(const struct dt_input *input, int image)
{
    return int64_at(input, input->label->input, image);
}

static dt_status check_sides(const char *path, const struct dt_network *network,
                             const int64_t shape[])
{
    if (shape[0] < 1 || shape[0] > MOST_IMAGES)
        return dt_fail(DT_EUSAGE, "%.300s: tensor 'x' holds %lld images, expected 1 to %d", path,
                       (long long)shape[0], MOST_IMAGES);
    for (int i = 2; i < 4; i++)
        if (shape[i] < network->patch || shape[i] > MOST_PIXELS || shape[i] % network->patch != 0)
            return dt_fail(
                DT_EUSAGE,
                "%.300s: tensor 'x' is %lld pixels %s, expected a multiple of the patch, "
                "%d, up to %d",
                path, (long long)shape[i], i == 2 ? "high" : "wide", network->patch, MOST_PIXELS);
    return DT_OK;
}

static dt_status check_names(const char *path, const struct dt_input *input)
{
    const char *label = input->label != NULL ? input->label->input : "t";
    for (int i = 0; i < dt_safetensors_count(input->file); i++) {
        const char *name = dt_safetensors_at(input->file, i)->name;
        if (strcmp(name, "x") != 0 && strcmp(name, "t") != 0 && strcmp(name, label) != 0)
            return dt_fail(DT_EUSAGE, "%.300s: tensor '%.128s' is not an input, expected %s%s",
                           path, name, input->label != NULL ? "x, t and " : "x and ", label);
    }
    return DT_OK;
}

static dt_status check_values(const char *path, const struct dt_network *network,
                              const struct dt_input *input)
{
    for (int i = 0; i < input->batch; i++) {
        int64_t t = dt_input_time(input, i);
        if (t < 0)
            return dt_fail(DT_EUSAGE, "%.300s: tensor 't' holds %lld at %d, expected 0 or more",
                           path, (long long)t, i);
        if (input->label == NULL)
            continue;
        int64_t y = dt_input_label(input, i), none = network->own[input->label->count];
        if (y < 0 || y > none)
            return dt_fail(DT_EUSAGE, "%.300s: tensor '%s' holds %lld at %d, expected 0 to %lld",
                           path, input->label->input, (long long)y, i, (long long)none);
    }
    return DT_OK;
}

static dt_status check_input(const char *path, const struct dt_network *network,
                             struct dt_input *input)
{
    const void *unused;
    struct dt_safetensor expect = {
        .name = "x", .dtype = "F32", .rank = 4, .shape = {-1, network->in_channels, -1, -1}};
    DT_TRY(dt_safetensors_get(input->file, &expect, &input->x));
    const int64_t *shape = dt_safetensors_find(input->file, "x")->shape;
    DT_TRY(check_sides(path, network, shape));
    expect = (struct dt_safetensor){.name = "t", .dtype = "I64", .rank = 1, .shape = {shape[0]}};
    DT_TRY(dt_safetensors_get(input->file, &expect, &unused));
    if (input->label != NULL) {
        expect.name = input->label->input;
        DT_TRY(dt_safetensors_get(input->file, &expect, &unused));
    }
    DT_TRY(check_names(path, input));
    input->batch = (int)shape[0];
    input->height = (int)shape[2];
    input->width = (int)shape[3];
    return check_values(path, network, input);
}

dt_status dt_input_open(const char *path, const struct dt_network *network, struct dt_input *input)
{
    DT_CLEANUP(dt_input_close) struct dt_input opened = {.label = network->family->label};
    DT_TRY(dt_safetensors_open(path, &opened.file));
    DT_TRY(check_input(path, network, &opened));
    *input = opened;
    opened.file = NULL;
    return DT_OK;
}

void dt_input_close(struct dt_input *input)
{
    dt_safetensors_close(input->file);
}

dt_status dt_input_inspect(const char *path, const struct dt_network *network, int *batch,
                           int *height, int *width)
{
    DT_CLEANUP(dt_input_close) struct dt_input input = {0};
    DT_TRY(dt_input_open(path, network, &input));
    *batch = input.batch;
    *height = input.height;
    *width = input.width;
    return DT_OK;
}
