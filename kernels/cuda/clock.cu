/* SPDX-License-Identifier: MIT */
/* Reads the clocks. Cycle counters of multiprocessors differ, so it always reads
 * multiprocessor 0, on which some of many small blocks run. If none does (part of a GPU), it
 * reads that of the first block. */
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/ptx.cuh"

#define BLOCKS 512 /* more than multiprocessors */

static __global__ void read_clock(uint64_t *out, bool first)
{
    if (first || dt_multiprocessor() == 0) {
        out[0] = (uint64_t)clock64();
        out[1] = dt_globaltimer();
    }
}

int dt_launch_clock(uint64_t *out, void *stream)
{
    int error = DT_LAUNCH(read_clock, 1, 1, 0, stream, out, true);
    return error != 0 ? error : DT_LAUNCH(read_clock, BLOCKS, 1, 0, stream, out, false);
}
