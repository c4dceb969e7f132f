/* SPDX-License-Identifier: MIT */
/* reference - layers in float64, written from the paper and the names of the tensors alone: loops
 * over tokens, no tiles, no tables */
#ifndef DT_TESTS_KERNELS_REFERENCE_H
#define DT_TESTS_KERNELS_REFERENCE_H

#include "kernels/weights_int.h"
#include "tests/kernels/case.h"

struct reference {
    const struct dt_workload *workload;
    float *values[64]; /* of each tensor, owned */
    int c, tokens, mlp;
};

static inline const float *tensor(const struct reference *ref, const char *name)
{
    for (int i = 0; i < dt_tensor_count(&ref->workload->network); i++) {
        struct dt_tensor about;
        dt_tensor_init(&about, ref->workload, i);
        if (strcmp(about.name, name) == 0)
            return ref->values[i];
    }
    fail_msg("no tensor %s", name);
    return NULL;
}

static inline const float *block_tensor(const struct reference *ref, int block, const char *name)
{
    char full[96];
    snprintf(full, sizeof full, "blocks.%d.%s", block, name);
    return tensor(ref, full);
}

static inline double *zeros(int n)
{
    double *x = calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    return x;
}

static inline void dense(const double *x, int in, const float *w, const float *b, int out,
                         double *y)
{
    for (int o = 0; o < out; o++) {
        y[o] = b[o];
        for (int i = 0; i < in; i++)
            y[o] += (double)w[o * in + i] * x[i];
    }
}

static inline double silu(double x)
{
    return x / (1.0 + exp(-x));
}

static inline double gelu(double x)
{
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static inline void normalise(const double *x, int n, const double *shift, const double *scale,
                             double *y)
{
    double mean = 0.0, variance = 0.0;
    for (int i = 0; i < n; i++)
        mean += x[i] / n;
    for (int i = 0; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n; i++)
        y[i] = (x[i] - mean) / sqrt(variance + 1e-6) * (1.0 + scale[i]) + shift[i];
}

static inline void sinusoids(double time, double wave[256])
{
    for (int i = 0; i < 128; i++) {
        /* float32 as in the authors' code: at t = 999 rounding the angle shows */
        float angle = (float)time * expf(-logf(10000.0f) * (float)i / 128.0f);
        wave[i] = cos((double)angle);
        wave[128 + i] = sin((double)angle);
    }
}

static inline void embed(const struct reference *ref, const double *image, double *x)
{
    const struct dt_network *net = &ref->workload->network;
    int p = net->patch, columns = ref->workload->width / p;
    const float *w = tensor(ref, "x_embedder.proj.weight"),
                *b = tensor(ref, "x_embedder.proj.bias");
    for (int t = 0; t < ref->tokens; t++) {
        for (int o = 0; o < ref->c; o++) {
            double sum = b[o];
            for (int a = 0; a < net->in_channels; a++)
                for (int i = 0; i < p; i++)
                    for (int j = 0; j < p; j++)
                        sum += (double)w[((o * net->in_channels + a) * p + i) * p + j] *
                               image[(a * ref->workload->height + t / columns * p + i) *
                                         ref->workload->width +
                                     t % columns * p + j];
            int quarter = ref->c < 4 ? 1 : ref->c / 4, k = o % (2 * quarter);
            double at = o < 2 * quarter ? t % columns : t / columns;
            double angle = at / pow(10000.0, (double)(k % quarter) / quarter);
            x[t * ref->c + o] = sum + (k < quarter ? sin(angle) : cos(angle));
        }
    }
}

/* Attention of one head of all tokens; qkv [T, 3, H, D]. */
static inline void attend(const struct reference *ref, const double *qkv, int head, double *out)
{
    int d = ref->c / ref->workload->network.heads;
    double *score = zeros(ref->tokens);
    for (int t = 0; t < ref->tokens; t++) {
        double total = 0.0;
        for (int s = 0; s < ref->tokens; s++) {
            double dot = 0.0;
            for (int i = 0; i < d; i++)
                dot += qkv[(t * 3 + 0) * ref->c + head * d + i] *
                       qkv[(s * 3 + 1) * ref->c + head * d + i];
            score[s] = exp(dot / sqrt(d));
            total += score[s];
        }
        for (int i = 0; i < d; i++) {
            double sum = 0.0;
            for (int s = 0; s < ref->tokens; s++)
                sum += score[s] / total * qkv[(s * 3 + 2) * ref->c + head * d + i];
            out[t * ref->c + head * d + i] = sum;
        }
    }
    free(score);
}

/* One token's [p, p, channels] into out [channels, h, w]. */
static inline void unpatch(const struct reference *ref, int t, const double *pixels, double *out)
{
    const struct dt_network *net = &ref->workload->network;
    int p = net->patch, channels = dt_network_out_channels(net), width = ref->workload->width;
    int columns = width / p;
    for (int i = 0; i < p; i++)
        for (int j = 0; j < p; j++)
            for (int k = 0; k < channels; k++)
                out[(k * ref->workload->height + t / columns * p + i) * width + t % columns * p +
                    j] = pixels[(i * p + j) * channels + k];
}

static inline struct reference reference_of(const struct dt_workload *workload)
{
    struct reference ref = {.workload = workload,
                            .c = workload->network.hidden,
                            .tokens = dt_workload_tokens(workload),
                            .mlp = dt_network_mlp(&workload->network)};
    assert_true(dt_tensor_count(&workload->network) <= 64);
    for (int i = 0; i < dt_tensor_count(&workload->network); i++) {
        struct dt_tensor tensor;
        dt_tensor_init(&tensor, workload, i);
        ref.values[i] = calloc((size_t)tensor.size, sizeof(float));
        assert_non_null(ref.values[i]);
        dt_weights_seeded(workload, i, ref.values[i]);
    }
    return ref;
}

static inline void forget(struct reference *ref)
{
    for (int i = 0; i < dt_tensor_count(&ref->workload->network); i++)
        free(ref->values[i]);
}

static inline double apart(const float *got, const double *want, int64_t n)
{
    double sum = 0.0, norm = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        norm += want[i] * want[i];
    }
    return sqrt(sum / norm);
}

#endif
