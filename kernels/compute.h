/* SPDX-License-Identifier: MIT */
/* compute - what the forward pass asks of a device: one small table a back end
 *
 * Matrices are row-major. Activations (void pointers here) are in the data type that is given, everything else is
 * float32; a row stride is in elements. Memory is the device's own, from alloc, unless a comment says host.
 *
 * A device is a queue: the calls that return nothing are put on it in order and may return before they are done, so what
 * they read must stay as it is until finish. An error of theirs is kept and told by the next finish. Nothing but alloc, pack
 * and the *_new and *_ready calls allocates: shapes are checked and scratch is sized before (model/layout.h).
 *
 * To add a back end: a folder kernels/<name>/ with its struct dt_compute at the bottom of <name>.c, and a row in
 * kernels/compute.c.
 */
#ifndef DT_KERNELS_COMPUTE_H
#define DT_KERNELS_COMPUTE_H

#include "base/status.h"
#include "model/family.h"

#include <stdbool.h>
#include <stdint.h>

/* What a back end keeps of a device begins with this. A device belongs to one thread at a time. */
struct dt_device {
    const struct dt_compute *compute;
    int index; /* among the back end's devices */
};

/* y[rows, out] = act(x[rows, in] weight[out, in]^T + bias[out]): a layer made ready for a number of rows and the threads
 * set at that time. weight is packed, bias float32; y is float32 when wide, else an activation. Not for two callers at
 * once.
 *
 * groups above 1 (where weight_row is not NULL): the outputs are cut into so many equal parts, and part g is a matrix
 * [rows, out / groups] of its own at y + g * group_stride: what an exchange sends, without a pass that sorts it. */
struct dt_linear_shape {
    int rows, in, out;
    enum dt_activation act;
    bool wide;
    int choice; /* which of the library's proposals, 0 the first; those it has not are the last it has */
    int groups; /* 0 and 1: none */
    int64_t group_stride;
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
enum dt_attention_kind { DT_ATTENTION_OWN, DT_ATTENTION_CUDNN };
struct dt_attention {
    const void *q, *k, *v;
    void *out;
    float *lse; /* [sequences, heads, queries], natural logarithm; NULL when not wanted */
    struct dt_strides q_at, kv_at, out_at;
    int sequences, heads, head; /* head: D */
    int queries, keys;
    int tile_q, tile_kv;
    int stages, warps;           /* GPU: of model/attn_tiles.def */
    enum dt_attention_kind kind; /* GPU: whose kernel */
    float *
        scratch; /* a thread's part is scratch_floats long; NULL where attention_ready needs none */
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

/* count[0] x count[1] x count[2] rows of width elements of `element` bytes each; strides in elements. */
struct dt_copy {
    void *to;
    const void *from;
    int64_t count[3], to_stride[3], from_stride[3];
    int64_t width;
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

/* latent = update[0] latent + update[1] eps; latent [tokens, channels, p, p], eps [tokens, p, p, eps_channels] */
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

/* What changes on a device while it works; -1 where it is not known. */
struct dt_health {
    int64_t sm_mhz, memory_mhz, power_mw, temperature_c;
    int64_t utilization; /* percent of the last sampling period */
    int64_t reasons;     /* bits: why its clocks are lower than they could be */
};

struct dt_graph;

struct dt_compute {
    const char *name, *doc;
    bool host; /* its memory is the host's, and calls are done on return */
    bool (*usable)(enum dt_dtype dtype); /* on this machine, with what was built in */
    const struct dt_version *(*versions)(void);
    int (*count)(void); /* devices of this machine; 0: none */

    /* The device `index` of this machine, with a queue and workspaces of its own; several may be open on one. A process
     * that forks does so before. DT_EUNSUP with a sentence: there is none; DT_ELIB, DT_ENOMEM. */
    dt_status (*open)(int index, struct dt_device **device);
    void (*close)(struct dt_device *device);        /* NULL is fine; after an error too */
    const char *(*model)(struct dt_device *device); /* what its maker calls it */
    /* Bytes that are free now, to whoever asks first, and that there are. */
    dt_status (*memory)(struct dt_device *device, int64_t *free_bytes, int64_t *total_bytes);
    void (*threads)(struct dt_device *device, int count);

    /* Memory of the device, at multiples of 256 bytes. DT_ENOMEM names the bytes. */
    dt_status (*alloc)(struct dt_device *device, int64_t bytes, void **memory);
    void (*release)(struct dt_device *device, void *memory); /* NULL is fine; waits */
    /* From and to host memory, in order with what is queued. The host's may be used again on return; get waits. */
    dt_status (*put)(struct dt_device *device, void *to, const void *from, int64_t bytes);
    dt_status (*get)(struct dt_device *device, void *to, const void *from, int64_t bytes);
    void (*fill)(struct dt_device *device, void *to, int byte, int64_t bytes);

    /* Waits until all that was queued is done, asleep or polling. check(arg), when not NULL, is called meanwhile; its error
     * ends the wait. DT_ETIMEOUT after deadline_ns (dt_clock_ns time); DT_ELIB with the sentence of a call that failed: the
     * device is then lost for good unless it was DT_ENOMEM. */
    dt_status (*finish)(struct dt_device *device, int64_t deadline_ns,
                        dt_status (*check)(void *arg), void *arg);

    /* Notes the time at which the queue gets here; times: of the marks 0 to n-1 since mark 0, after finish. A mark is
     * precise to about a microsecond on a GPU. */
    void (*mark)(struct dt_device *device, int slot);
    dt_status (*times)(struct dt_device *device, int n, int64_t ns[]);

    /* (optional, NULL together) Reads the clock of a multiprocessor at slot 0, before a step, and 1, after it; then, after
     * finish, its rate between the two, as far as it ran on the same one: 0 where that is not known. */
    void (*clock)(struct dt_device *device, int slot);
    dt_status (*clock_rate)(struct dt_device *device, double *hz);
    /* (optional, NULL together) How the device is; from any thread, takes about a millisecond. And what bit i of its reasons is
     * called, NULL past the last. */
    void (*health)(struct dt_device *device, struct dt_health *health);
    const char *(*reason)(int i);
    /* (optional) A range begins on the timeline of a profiler that listens; NULL: the last one begun ends. */
    void (*range)(struct dt_device *device, const char *name);

    /* (optional, NULL together) What is queued between record and recorded is not run but kept, and run by each replay.
     * Nothing may be put, got, marked or waited for in between. */
    dt_status (*record)(struct dt_device *device);
    dt_status (*recorded)(struct dt_device *device, struct dt_graph **graph);
    void (*replay)(struct dt_device *device, struct dt_graph *graph);
    void (*graph_free)(struct dt_device *device, struct dt_graph *graph); /* NULL is fine */

    /* weight[out, in], host memory, as the back end's library likes it, once: dt_tensor.bytes long, and it may lie anywhere
     * on the device. */
    dt_status (*pack)(struct dt_device *device, enum dt_dtype dtype, const float *weight, int in,
                      int out, void *packed);
    /* (optional) Bytes from the start of a packed weight to its row `row`; NULL: it cannot be cut. */
    int64_t (*weight_row)(enum dt_dtype dtype, int in, int row);
    dt_status (*linear_new)(struct dt_device *device, enum dt_dtype dtype,
                            const struct dt_linear_shape *shape, struct dt_linear **linear);
    void (*linear)(struct dt_device *device, struct dt_linear *linear,
                   const struct dt_linear_call *call);
    void (*linear_free)(struct dt_linear *linear); /* NULL is fine */

    /* Makes ready what calls of this shape need (pointers are ignored but for lse being NULL). DT_EUNSUP names the tile or
     * the head dimension that was not built. */
    dt_status (*attention_ready)(struct dt_device *device, enum dt_dtype dtype,
                                 const struct dt_attention *op);
    void (*attention)(struct dt_device *device, enum dt_dtype dtype, const struct dt_attention *op);
    void (*merge)(struct dt_device *device, enum dt_dtype dtype, const struct dt_merge *op);

    void (*narrow)(struct dt_device *device, enum dt_dtype dtype, const float *x, void *y,
                   int64_t n); /* to an activation */
    void (*modulate)(struct dt_device *device, enum dt_dtype dtype, const struct dt_modulate *op);
    void (*copy)(struct dt_device *device, const struct dt_copy *op);
    /* *sum += the 16-bit words of data, as a number of 64 bits. */
    void (*sum)(struct dt_device *device, const void *data, int64_t bytes, uint64_t *sum);
    void (*sinusoid)(struct dt_device *device, const struct dt_sinusoid *op);
    void (*condition)(struct dt_device *device, const struct dt_condition *op);
    void (*position)(struct dt_device *device, const struct dt_position *op);
    void (*guide)(struct dt_device *device, const struct dt_guide *op);
    void (*sampler)(struct dt_device *device, const struct dt_sampler *op);

    /* FLOP/s of a large linear layer, measured now (takes about 0.3 s). */
    dt_status (*peak)(struct dt_device *device, enum dt_dtype dtype, double *flop_rate);
};

extern const struct dt_compute dt_compute_cpu;
#ifdef DT_HAVE_CUDA
extern const struct dt_compute dt_compute_cuda;
#endif

/* The back ends that were built, the best first, NULL-ended; and the one of a name, NULL when it was not built. */
const struct dt_compute *const *dt_compute_rows(void);
const struct dt_compute *dt_compute_find(const char *name);

#endif
