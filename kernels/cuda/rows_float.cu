/* SPDX-License-Identifier: MIT */
/* Kernels on float32: conditioning, the latent and its update. All but position, whose result may
 * be bfloat16, and activation are small. */
#include "kernels/cuda/rows.cuh"

#define THREADS 256

/* First element of this thread, and the stride to its next one. */
#define FIRST ((int64_t)blockIdx.x * THREADS + threadIdx.x)
#define STEP  ((int64_t)gridDim.x * THREADS)

/* The formulas of the CPU back end: tanh-GELU as x sigmoid(2u), without cancellation. */
template <enum dt_activation ACT> static __device__ float activated(float x)
{
    float power = ACT == DT_ACT_GELU ? x * fmaf(x * x, 0.044715f, 1.0f) * -1.5957691216057308f : -x;
    return x / (expf(power) + 1.0f);
}

template <enum dt_activation ACT>
static __global__ void activation_rows(float *x, int64_t n, int64_t eights)
{
    for (int64_t i = FIRST; i < eights; i += STEP) {
        float v[8];
        dt_load8(v, x + i * 8);
        for (int k = 0; k < 8; k++)
            v[k] = activated<ACT>(v[k]);
        dt_store8(x + i * 8, v);
    }
    for (int64_t i = eights * 8 + FIRST; i < n; i += STEP)
        x[i] = activated<ACT>(x[i]);
}

int dt_launch_activation(enum dt_activation act, float *x, int64_t n, void *stream)
{
    if (act == DT_ACT_NONE || n == 0)
        return 0;
    int64_t eights = dt_aligned16(x) ? n / 8 : 0;
    unsigned blocks = dt_blocks(eights > 0 ? eights : n, THREADS);
    if (act == DT_ACT_GELU)
        return DT_LAUNCH(activation_rows<DT_ACT_GELU>, blocks, THREADS, 0, stream, x, n, eights);
    return DT_LAUNCH(activation_rows<DT_ACT_SILU>, blocks, THREADS, 0, stream, x, n, eights);
}

/* The angle is the timestep, up to 1000, times the frequency: one unit in its last place would be
 * 6e-5 rad. The argument is rounded to float32 as in the authors' code; the exponential is exact
 * but for the rounding, so that every library's is the same. */
static __global__ void sinusoid_rows(struct dt_sinusoid op)
{
    int half = op.channels / 2;
    for (int64_t i = FIRST; i < (int64_t)op.count * half; i += STEP) {
        int64_t n = i / half, channel = i % half;
        float exponent = -9.210340371976184f * (float)channel / (float)half;
        float frequency = (float)exp((double)exponent);
        float *row = op.out + n * op.channels;
        row[channel] = cosf(op.time[n] * frequency);
        row[half + channel] = sinf(op.time[n] * frequency);
    }
}

int dt_launch_sinusoid(const struct dt_sinusoid *op, void *stream)
{
    int64_t n = (int64_t)op->count * (op->channels / 2);
    return n == 0 ? 0 : DT_LAUNCH(sinusoid_rows, dt_blocks(n, THREADS), THREADS, 0, stream, *op);
}

static __global__ void condition_rows(struct dt_condition op)
{
    for (int64_t i = FIRST; i < (int64_t)op.count * op.channels; i += STEP) {
        int64_t n = i / op.channels, channel = i % op.channels;
        float both = op.x[i] + op.table[(int64_t)op.label[n] * op.channels + channel];
        op.out[i] = both / (1.0f + expf(-both));
    }
}

int dt_launch_condition(const struct dt_condition *op, void *stream)
{
    int64_t n = (int64_t)op->count * op->channels;
    return n == 0 ? 0 : DT_LAUNCH(condition_rows, dt_blocks(n, THREADS), THREADS, 0, stream, *op);
}

/* One block per token; X is the type of the result. */
template <class X> static __global__ void position(struct dt_position op, int eights)
{
    int64_t image = blockIdx.x / op.tokens % op.images, token = blockIdx.x % op.tokens;
    const float *x = op.x + (image * op.tokens + token) * op.channels;
    const float *at = op.position + token * op.channels;
    X *out = (X *)op.out + (int64_t)blockIdx.x * op.channels;
    for (int i = (int)threadIdx.x; i < eights; i += (int)blockDim.x) {
        float a[8], b[8];
        dt_load8(a, x + i * 8);
        dt_load8(b, at + i * 8);
        for (int k = 0; k < 8; k++)
            a[k] += b[k];
        dt_store8(out + i * 8, a);
    }
    for (int i = eights * 8 + (int)threadIdx.x; i < op.channels; i += (int)blockDim.x)
        dt_narrow_to(out + i, x[i] + at[i]);
}

template <class X> static int launch_position(const struct dt_position *op, void *stream)
{
    unsigned rows = (unsigned)(op->sequences * op->tokens);
    bool wide = op->channels * (int)sizeof(X) % 16 == 0 && dt_aligned16(op->x) &&
                dt_aligned16(op->position) && dt_aligned16(op->out);
    int eights = wide ? op->channels / 8 : 0, pieces = wide ? (op->channels + 7) / 8 : op->channels;
    unsigned threads =
        pieces > THREADS ? THREADS : (unsigned)(pieces + DT_WARP - 1) / DT_WARP * DT_WARP;
    if (rows == 0 || threads == 0)
        return 0;
    return DT_LAUNCH(position<X>, rows, threads, 0, stream, *op, eights);
}

int dt_launch_position(const struct dt_position *op, void *stream)
{
    return op->stream == DT_BFLOAT16 ? launch_position<uint16_t>(op, stream)
                                     : launch_position<float>(op, stream);
}

static __global__ void guide_rows(struct dt_guide op)
{
    for (int64_t i = FIRST; i < op.pixels * op.channels; i += STEP) {
        int64_t pixel = i / op.channels, channel = i % op.channels;
        float value;
        if (channel < op.guided) {
            float cond = op.cond[pixel * op.cond_stride + channel];
            float uncond = op.uncond[pixel * op.uncond_stride + channel];
            value = uncond + op.scale * (cond - uncond);
        } else {
            value = op.rest[i];
        }
        op.out[i] = value;
    }
}

int dt_launch_guide(const struct dt_guide *op, void *stream)
{
    int64_t n = op->pixels * op->channels;
    return n == 0 ? 0 : DT_LAUNCH(guide_rows, dt_blocks(n, THREADS), THREADS, 0, stream, *op);
}

static __global__ void sampler_rows(struct dt_sampler op)
{
    float keep = op.update[0], step = op.update[1];
    int64_t patch = (int64_t)op.channels * op.pixels;
    for (int64_t i = FIRST; i < op.tokens * patch; i += STEP) {
        int64_t token = i / patch, channel = i % patch / op.pixels, pixel = i % op.pixels;
        float eps = op.eps[(token * op.pixels + pixel) * op.eps_channels + channel];
        op.latent[i] = keep * op.latent[i] + step * eps;
    }
}

int dt_launch_sampler(const struct dt_sampler *op, void *stream)
{
    int64_t n = (int64_t)op->tokens * op->channels * op->pixels;
    return n == 0 ? 0 : DT_LAUNCH(sampler_rows, dt_blocks(n, THREADS), THREADS, 0, stream, *op);
}
