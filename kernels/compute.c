/* SPDX-License-Identifier: MIT */
#include "kernels/compute.h"

const struct dt_compute *dt_compute_best(void)
{
#ifdef DT_HAVE_CUDA
    return &dt_compute_cuda;
#else
    return &dt_compute_cpu;
#endif
}
