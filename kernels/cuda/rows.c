/* SPDX-License-Identifier: MIT */
/* The operations that consist of one kernel. */
#include "kernels/cuda/cuda_int.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/rows_int.h"

/* An operation without elements is not launched: a grid of no blocks is an error. */
#define QUEUE(device, elements, launch, what)                                                      \
    do {                                                                                           \
        struct dt_cuda *cuda_ = dt_cuda_enter(device);                                             \
        if (cuda_ != NULL && (elements) > 0) {                                                     \
            void *stream = cuda_->stream;                                                          \
            dt_cuda_keep(cuda_, (launch), (what));                                                 \
        }                                                                                          \
    } while (0)

void dt_cuda_narrow(struct dt_device *device, enum dt_dtype dtype, const float *x, void *y,
                    int64_t n)
{
    QUEUE(device, n, dt_launch_narrow(dtype, x, y, n, stream), "narrow");
}

void dt_cuda_modulate(struct dt_device *device, enum dt_dtype dtype, const struct dt_modulate *op)
{
    QUEUE(device, (int64_t)op->sequences * op->tokens, dt_launch_modulate(dtype, op, stream),
          "normalise and modulate");
}

void dt_cuda_merge(struct dt_device *device, enum dt_dtype dtype, const struct dt_merge *op)
{
    QUEUE(device, (int64_t)op->sequences * op->queries, dt_launch_merge(dtype, op, stream),
          "merge attention");
}

void dt_cuda_copy(struct dt_device *device, const struct dt_copy *op)
{
    QUEUE(device, op->count[0] * op->count[1] * op->count[2] * op->width,
          dt_launch_copy(op, stream), "copy");
}

void dt_cuda_sum(struct dt_device *device, const void *data, int64_t bytes, uint64_t *sum)
{
    QUEUE(device, bytes, dt_launch_sum(data, bytes, sum, stream), "add up words");
}

void dt_cuda_sinusoid(struct dt_device *device, const struct dt_sinusoid *op)
{
    QUEUE(device, op->count, dt_launch_sinusoid(op, stream), "embed the timestep");
}

void dt_cuda_condition(struct dt_device *device, const struct dt_condition *op)
{
    QUEUE(device, op->count, dt_launch_condition(op, stream), "condition");
}

void dt_cuda_position(struct dt_device *device, const struct dt_position *op)
{
    QUEUE(device, (int64_t)op->sequences * op->tokens, dt_launch_position(op, stream),
          "add positions");
}

void dt_cuda_guide(struct dt_device *device, const struct dt_guide *op)
{
    QUEUE(device, op->pixels, dt_launch_guide(op, stream), "guide");
}

void dt_cuda_sampler(struct dt_device *device, const struct dt_sampler *op)
{
    QUEUE(device, (int64_t)op->tokens * op->pixels, dt_launch_sampler(op, stream),
          "update the latent");
}
