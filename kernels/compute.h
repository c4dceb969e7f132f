/* SPDX-License-Identifier: MIT */
/* compute - what the forward pass asks of a device: one small table a back end
 *
 * Matrices are row-major. Activations (void pointers here) are in the data type that is given, everything else is
 * float32; a row stride is in elements. Nothing but pack and linear_new allocates or fails: shapes are checked and scratch is sized
 * before (model/layout.h). Calls block; threads() sets how many threads the calls of this thread use.
 *
 * To add a back end: a folder kernels/<name>/ with its struct dt_compute at the bottom of <name>.c, and a row in
 * kernels/compute.c.
 */
#ifndef DT_KERNELS_COMPUTE_H
#define DT_KERNELS_COMPUTE_H

#include "base/status.h"
#include "model/dtype.h"

#include <stdbool.h>
#include <stdint.h>

enum dt_activation { DT_ACT_NONE, DT_ACT_GELU, DT_ACT_SILU };

/* y[rows, out] = act(x[rows, in] weight[out, in]^T + bias[out]): a layer made ready for a number of rows and the threads
 * set at that time. weight is packed, bias float32; y is float32 when wide, else an activation. Not for two callers at
 * once. */
struct dt_linear_shape {
    int rows, in, out;
    enum dt_activation act;
    bool wide;
};
struct dt_linear;
struct dt_linear_call {
    const void *x, *weight;
    const float *bias;
    void *y;
};

/* y = LayerNorm(x) (1 + scale[n]) + shift[n], no affine, eps 1e-6; x, y [sequences, tokens, channels]. When branch is
 * not NULL, x += gate[n] branch comes first: gated residual, norm and modulation in one pass over memory. */
struct dt_modulate {
    float *x;
    const void *branch;
    const float *gate;          /* of sequence n: at n * gate_stride */
    const float *shift, *scale; /* of sequence n: at n * stride */
    void *y;
    int64_t gate_stride, stride;
    int sequences, tokens, channels;
};

/* Strides of a tensor [sequence, row, head, D]; heads are D apart. */
struct dt_strides {
    int64_t sequence, row;
};

/* out = softmax(q k^T / sqrt(D)) v for each sequence and head, by online softmax over tiles (Milakov & Gimelshein
 * 2018; Dao et al. 2022). Sums in float32 in a fixed order: equal tiles give equal bits. out must not overlap the
 * inputs. keys may be 0: out is 0 and lse is minus infinity. */
struct dt_attention {
    const void *q, *k, *v;
    void *out;
    float *lse; /* [sequences, heads, queries], natural logarithm; NULL when not wanted */
    struct dt_strides q_at, kv_at, out_at;
    int sequences, heads, head; /* head: D */
    int queries, keys;
    int tile_q, tile_kv;
    float *scratch; /* a thread's part is scratch_floats long */
    int64_t scratch_floats;
    void (*poll)(void *arg); /* (optional) called by the calling thread between tiles */
    void *poll_arg;
};

/* Two parts of an attention over disjoint keys become one: out and lse take in part and part_lse. */
struct dt_merge {
    void *out;
    float *lse;
    const void *part; /* [sequences, queries, heads, D] contiguous */
    const float *part_lse;
    struct dt_strides out_at;
    int sequences, heads, head, queries;
};

/* width elements of `element` bytes of each of rows rows. */
struct dt_copy {
    void *to;
    const void *from;
    int64_t to_stride, from_stride;
    int64_t rows, width;
    int element;
};

/* out[n] = [cos(t f), sin(t f)] with f_i = 10000^(-2i/channels), in float32 as the authors' code computes it */
struct dt_sinusoid {
    const float *time;
    float *out;
    int count, channels;
};

/* out[n] = SiLU(x[n] + table[label[n]]) */
struct dt_condition {
    const float *x, *table;
    const int32_t *label;
    float *out;
    int count, channels;
};

/* out[n, t] = x[n % images, t] + position[t] */
struct dt_position {
    const float *x, *position;
    float *out;
    int sequences, images, tokens, channels;
};

/* out = uncond + scale (cond - uncond) on the first `guided` channels of each pixel, cond on the rest */
struct dt_guide {
    const float *cond, *uncond,
        *rest;  /* rest [pixels, channels]: where channels not guided come from */
    float *out; /* [pixels, channels] */
    int64_t cond_stride, uncond_stride;
    int64_t pixels;
    int channels, guided;
    float scale;
};

/* latent = keep latent + step eps; latent [tokens, channels, p, p], eps [tokens, p, p, eps_channels] */
struct dt_sampler {
    float *latent;
    const float *eps;
    int tokens, channels, eps_channels, pixels; /* pixels: p * p */
    float keep, step;
};

struct dt_compute {
    const char *name, *doc;
    bool (*usable)(enum dt_dtype dtype); /* on this processor, with what was built in */
    void (*threads)(int count);
    /* weight[out, in] as the back end's library likes it, once: dt_tensor.bytes long, and it may lie anywhere. */
    dt_status (*pack)(enum dt_dtype dtype, const float *weight, int in, int out, void *packed);
    dt_status (*linear_new)(enum dt_dtype dtype, const struct dt_linear_shape *shape,
                            struct dt_linear **linear);
    void (*linear)(struct dt_linear *linear, const struct dt_linear_call *call);
    void (*linear_free)(struct dt_linear *linear);                           /* NULL is fine */
    void (*narrow)(enum dt_dtype dtype, const float *x, void *y, int64_t n); /* to an activation */
    void (*modulate)(enum dt_dtype dtype, const struct dt_modulate *op);
    void (*attention)(enum dt_dtype dtype, const struct dt_attention *op);
    void (*merge)(enum dt_dtype dtype, const struct dt_merge *op);
    void (*copy)(const struct dt_copy *op);
    void (*sinusoid)(const struct dt_sinusoid *op);
    void (*condition)(const struct dt_condition *op);
    void (*position)(const struct dt_position *op);
    void (*guide)(const struct dt_guide *op);
    void (*sampler)(const struct dt_sampler *op);
};

extern const struct dt_compute dt_compute_cpu;

/* A back end that runs a data type; DT_EUNSUP with a sentence when this processor, or this build, has none. */
dt_status dt_compute_find(enum dt_dtype dtype, const struct dt_compute **compute) DT_MUST_CHECK;

#endif
