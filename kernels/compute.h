/* SPDX-License-Identifier: MIT */
/* compute - the operations of a device for the forward pass: one small table per back end
 *
 * Matrices are row-major. Activations (void pointers here) have the given data type, everything
 * else is float32; a row stride is in elements. Memory is the device's own, from alloc, unless
 * a comment says host.
 *
 * A device is a queue: calls without a result are queued in order and may return before they are
 * done, so their inputs must not change until finish. Their first error is kept and returned by the
 * next finish. Only memory.alloc, linear.pack, linear.make and attention.ready allocate: shapes are
 * checked and scratch is sized before (model/layout.h).
 *
 * To add a back end: a folder kernels/<name>/ with its struct dt_compute at the bottom of <name>.c,
 * and a row in kernels/compute.c.
 */
#ifndef DT_KERNELS_COMPUTE_H
#define DT_KERNELS_COMPUTE_H

#include "base/status.h"
#include "model/activation.h"
#include "model/dtype.h"
#include "model/plan.h"

#include <stdbool.h>
#include <stdint.h>

/* First member of a back end's device. A device belongs to one thread at a time. */
struct dt_device {
    const struct dt_compute *compute;
    int index; /* among the back end's devices */
};

/* y[rows, out] = act(x[rows, in] weight[out, in]^T + bias[out]): a layer prepared for a number of
 * rows and the current number of threads. weight is packed, bias float32; y is float32 when wide,
 * else an activation. Not reentrant.
 *
 * groups above 1 (GPUs): the outputs are split into that many equal parts, and part g is a
 * separate matrix [rows, out / groups] at y + g * group_stride, so that an exchange can send it
 * without a pass that reorders. */
struct dt_linear_shape {
    int rows, in, out;
    enum dt_activation act;
    bool wide;
    /* 0: the fastest of the library's proposals, measured; n: the n-th,
     * beyond the last: the last */
    int choice;
    int groups; /* 0 and 1: none */
    int64_t group_stride;
};
struct dt_linear;
struct dt_linear_call {
    const void *x, *weight;
    const float *bias;
    void *y;
};

/* y = LayerNorm(x) (1 + scale[n]) + shift[n], no affine, eps 1e-6; x, y [sequences, tokens,
 * channels]. When branch is not NULL, x += gate[n] branch comes first: gated residual, norm
 * and modulation in one pass over memory. The sum is normalised in float32, before it is
 * rounded to x's data type. */
struct dt_modulate {
    void *x;
    const void *branch;
    const float *gate;          /* sequence n's at n * gate_stride */
    const float *shift, *scale; /* sequence n's at n * stride */
    void *y;
    int64_t gate_stride, stride;
    int sequences, tokens, channels;
    enum dt_dtype stream; /* type of x: float32, or bfloat16 where the activations are */
};

/* Strides of a tensor [sequence, row, head, D]; heads are D apart. */
struct dt_strides {
    int64_t sequence, row;
};

/* out = softmax(q k^T / sqrt(D)) v for each sequence and head, by online softmax over tiles
 * (Milakov & Gimelshein 2018; Dao et al. 2022). Sums in float32 in a fixed order: equal tiles give
 * equal bits. out must not overlap the inputs. keys may be 0: out is 0 and
 * lse is minus infinity. */
struct dt_attention {
    const void *q, *k, *v;
    void *out;
    float *lse; /* [sequences, heads, queries], natural logarithm; NULL: not needed */
    struct dt_strides q_at, kv_at, out_at;
    int sequences, heads, head; /* head: D */
    int queries, keys;
    struct dt_attn_tile tile;    /* stages, warps: GPU */
    enum dt_attention_kind kind; /* GPU: own or cuDNN's kernel */
    float *scratch;              /* scratch_floats per thread; NULL where none is needed */
    int64_t scratch_floats;
    void (*poll)(void *arg); /* (optional) called by the calling thread between tiles */
    void *poll_arg;
};

/* Merges two parts of an attention over disjoint keys: out and lse absorb part and part_lse. */
struct dt_merge {
    void *out;
    float *lse;
    const void *part; /* [sequences, queries, heads, D] contiguous */
    const float *part_lse;
    struct dt_strides out_at;
    int sequences, heads, head, queries;
};

/* count[0] x count[1] x count[2] rows of width elements of `element` bytes each;
 * strides in elements. */
struct dt_copy {
    void *to;
    const void *from;
    int64_t count[3], to_stride[3], from_stride[3];
    int64_t width;
    int element;
};

/* out[n] = [cos(t f), sin(t f)] with f_i = 10000^(-2i/channels), in float32 as the authors' code
 * computes it; f is rounded from double, so that it is the same in all back ends */
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
    void *out;
    int sequences, images, tokens, channels;
    enum dt_dtype stream; /* type of out: float32 or bfloat16 */
};

/* out = uncond + scale (cond - uncond) on the first `guided` channels of each
 * pixel, cond on the rest */
struct dt_guide {
    const float *cond, *uncond,
        *rest;  /* rest [pixels, channels]: source of the unguided channels */
    float *out; /* [pixels, channels] */
    int64_t cond_stride, uncond_stride;
    int64_t pixels;
    int channels, guided;
    float scale;
};

/* latent = update[0] latent + update[1] eps; latent [tokens, channels, p, p], eps
 * [tokens, p, p, eps_channels] */
struct dt_sampler {
    float *latent;
    const float *eps, *update;
    int tokens, channels, eps_channels, pixels; /* pixels: p * p */
};

/* Library versions for `ready`: name and version pairs, NULL-ended. */
struct dt_version {
    const char *name, *version;
};

/* Marks of a timeline, from 0 on. */
#define DT_MARKS_MOST 8192

/* State of a device while it works; -1: unknown. */
struct dt_health {
    int64_t sm_mhz, memory_mhz, power_mw, temperature_c;
    int64_t utilization; /* percent of the last sampling period */
    int64_t reasons;     /* bits: reasons for lowered clocks */
};

struct dt_graph;

struct dt_compute {
    const char *name;
    bool host;                           /* it uses host memory, and calls are done on return */
    bool (*usable)(enum dt_dtype dtype); /* on this machine, with the libraries built in */
    const struct dt_version *(*versions)(void);
    int (*count)(void); /* devices of this machine; 0: none */

    /* The device `index` of this machine, with a queue and workspaces of its own; several may be
     * open on one. A process that forks must do so before. DT_EUNSUP with a sentence: there is
     * none; DT_ELIB, DT_ENOMEM. */
    dt_status (*open)(int index, struct dt_device **device);
    void (*close)(struct dt_device *device);        /* NULL is fine; after an error too */
    const char *(*model)(struct dt_device *device); /* product name */
    void (*threads)(struct dt_device *device, int count);

    /* Waits until all queued work is done. check(arg), when not NULL, is called meanwhile; its
     * error ends the wait. DT_ETIMEOUT after deadline_ns (dt_clock_ns time); DT_ELIB with the
     * sentence of the failed call: the device is then lost, unless the status is DT_ENOMEM. */
    dt_status (*finish)(struct dt_device *device, int64_t deadline_ns,
                        dt_status (*check)(void *arg), void *arg);

    /* FLOP/s of a large linear layer, measured now (takes about 0.3 s). */
    dt_status (*peak)(struct dt_device *device, enum dt_dtype dtype, double *flop_rate);

    struct {
        /* Bytes that are free now, and in total. */
        dt_status (*space)(struct dt_device *device, int64_t *free_bytes, int64_t *total_bytes);
        /* Memory of the device, at multiples of 256 bytes. DT_ENOMEM names the bytes. */
        dt_status (*alloc)(struct dt_device *device, int64_t bytes, void **memory);
        void (*release)(struct dt_device *device, void *memory); /* NULL is fine; waits */
        /* Copies from and to host memory, in order with queued work. The host's buffer may be
         * reused on return; get waits. */
        dt_status (*put)(struct dt_device *device, void *to, const void *from, int64_t bytes);
        dt_status (*get)(struct dt_device *device, void *to, const void *from, int64_t bytes);
        void (*fill)(struct dt_device *device, void *to, int byte, int64_t bytes);
    } memory;

    struct {
        /* mark records the time at which the queue reaches it; times, after finish, gives the times
         * of marks 0 to n-1 since mark 0, precise to about a microsecond on a GPU. */
        void (*mark)(struct dt_device *device, int slot);
        dt_status (*times)(struct dt_device *device, int n, int64_t ns[]);
        /* (optional, NULL together) clock reads the cycle counter of a multiprocessor: slot 0
         * before a step, slot 1 after it. The other, after finish, gives the rate between the two
         * readings; 0 if they are of different multiprocessors. */
        void (*clock)(struct dt_device *device, int slot);
        dt_status (*clock_rate)(struct dt_device *device, double *hz);
        /* (optional) Begins a range on a profiler's timeline; NULL: ends the last one. */
        void (*range)(struct dt_device *device, const char *name);
    } timeline;

    struct { /* (optional, NULL together) */
        /* Reads the device's state, from any thread, in about a millisecond. */
        void (*read)(struct dt_device *device, struct dt_health *health);
        const char *(*reason)(int i); /* the name of bit i of its reasons, NULL past the last */
    } health;

    /* (optional, NULL together) Work queued between record and recorded is captured instead of run,
     * and run by each replay. put, get, mark and finish are not allowed in between. */
    struct {
        dt_status (*record)(struct dt_device *device);
        dt_status (*recorded)(struct dt_device *device, struct dt_graph **graph);
        void (*replay)(struct dt_device *device, struct dt_graph *graph);
        void (*free)(struct dt_device *device, struct dt_graph *graph); /* NULL is fine */
    } graph;

    struct {
        /* Converts weight[out, in] from host memory to the layout of the back end's library:
         * dt_tensor.bytes long, anywhere on the device. */
        dt_status (*pack)(struct dt_device *device, enum dt_dtype dtype, const float *weight,
                          int in, int out, void *packed);
        /* Bytes from the start of a packed weight to its row `row`, from which on rows may be
         * packed by themselves; -1: not from this row on. */
        int64_t (*weight_row)(enum dt_dtype dtype, int in, int row);
        dt_status (*make)(struct dt_device *device, enum dt_dtype dtype,
                          const struct dt_linear_shape *shape, struct dt_linear **linear);
        void (*apply)(struct dt_device *device, struct dt_linear *linear,
                      const struct dt_linear_call *call);
        void (*free)(struct dt_linear *linear); /* NULL is fine */
    } linear;

    struct {
        /* Prepares calls of this shape (pointers are ignored, except whether lse is NULL).
         * DT_EUNSUP names the tile or the head dimension that was not built. */
        dt_status (*ready)(struct dt_device *device, enum dt_dtype dtype,
                           const struct dt_attention *op);
        void (*run)(struct dt_device *device, enum dt_dtype dtype, const struct dt_attention *op);
        void (*merge)(struct dt_device *device, enum dt_dtype dtype, const struct dt_merge *op);
    } attention;

    struct {
        void (*narrow)(struct dt_device *device, enum dt_dtype dtype, const float *x, void *y,
                       int64_t n); /* to an activation */
        void (*modulate)(struct dt_device *device, enum dt_dtype dtype,
                         const struct dt_modulate *op);
        void (*copy)(struct dt_device *device, const struct dt_copy *op);
        /* *sum += sum of the 16-bit words of data, in 64 bits. */
        void (*sum)(struct dt_device *device, const void *data, int64_t bytes, uint64_t *sum);
        void (*sinusoid)(struct dt_device *device, const struct dt_sinusoid *op);
        void (*condition)(struct dt_device *device, const struct dt_condition *op);
        void (*position)(struct dt_device *device, const struct dt_position *op);
        void (*guide)(struct dt_device *device, const struct dt_guide *op);
        void (*sampler)(struct dt_device *device, const struct dt_sampler *op);
    } rows;
};

extern const struct dt_compute dt_compute_cpu;
#ifdef DT_HAVE_CUDA
extern const struct dt_compute dt_compute_cuda;
#endif

/* The best of the compiled back ends. */
const struct dt_compute *dt_compute_best(void);

#endif
