/* SPDX-License-Identifier: MIT */
/* What works on float32 alone, element by element. */
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launch.h"

#define THREADS 256

/* As the CPU back end has them: tanh-GELU as x sigmoid(2u), without cancellation. */
template <enum dt_activation ACT> static __device__ float activated(float x)
{
    float power = ACT == DT_ACT_GELU ? x * fmaf(x * x, 0.044715f, 1.0f) * -1.5957691216057308f : -x;
    return x / (expf(power) + 1.0f);
}

template <enum dt_activation ACT> static __global__ void activation(float *x, int64_t n)
{
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step)
        x[i] = activated<ACT>(x[i]);
}

int dt_launch_activation(enum dt_activation act, float *x, int64_t n, void *stream)
{
    if (act == DT_ACT_NONE || n == 0)
        return 0;
    unsigned blocks = dt_blocks(n, THREADS);
    if (act == DT_ACT_GELU)
        return DT_LAUNCH(activation<DT_ACT_GELU>, blocks, THREADS, 0, stream, x, n);
    return DT_LAUNCH(activation<DT_ACT_SILU>, blocks, THREADS, 0, stream, x, n);
}
