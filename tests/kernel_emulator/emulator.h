/* SPDX-License-Identifier: MIT */
/* emulator - the CUDA kernels of kernels/cuda, run on the host
 *
 * The .cu files are compiled a second time, as C++ for the host, with tests/kernel_emulator/include
 * before the toolkit's headers. A launch runs at once: blocks one after the other, the threads of a
 * block as fibers that meet at barriers and at warp-wide instructions. The compiler's hooks for a
 * race detector (-fsanitize=thread, without its library) show every load and store of a kernel; an
 * error ends the launch, which returns EMU_FAILED, and emu_error() says where.
 *
 * Errors: an access outside a buffer of emu_alloc or outside shared memory, misaligned, of shared
 * memory nobody wrote in this block, or before the cp.async that fills it was waited for; two
 * threads at the same place, one of them writing, without a barrier between; a thread missing at a
 * barrier or a warp-wide instruction, or there from another line.
 *
 * "Device" memory is only what emu_alloc gave: a host address in a kernel is an error.
 */
#ifndef DT_TESTS_EMULATOR_H
#define DT_TESTS_EMULATOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMU_FAILED 719 /* cudaErrorLaunchFailure */

/* Bytes at an address that is `shift` past a multiple of 256, filled with 0xff (NaN in every
 * floating type), with guards around. Lives until emu_forget. */
void *emu_alloc(size_t bytes, size_t shift);
void emu_forget(void);

/* 1: any other address of the host is device memory too, checked for alignment only
 * (tests/fake_cuda has buffers of its own). */
void emu_anywhere(int device);

/* The sentence of the launch that failed last; "" when none did since emu_reset. */
const char *emu_error(void);

/* Counters of a warp's accesses to one kind of memory. */
struct emu_traffic {
    int64_t requests; /* warp-wide instructions */
    int64_t bytes;    /* asked for by threads */
    int64_t wide;     /* of them by accesses of 16 bytes */
    /* global: sectors of 32 bytes touched; shared: passes over the 32 banks of 4 bytes */
    int64_t units;
    int64_t least; /* units if the same bytes were dense, or free of conflicts */
};

struct emu_tally {
    struct emu_traffic load, store; /* global memory, cp.async's reading among the loads */
    struct emu_traffic shared_load, shared_store; /* ordinary accesses */
    struct emu_traffic ldmatrix, cp_async;        /* shared memory as they touch it */
    int64_t launches, barriers, mma;
};
struct emu_tally emu_counts(void);

/* Counts and the error start again. */
void emu_reset(void);

/* How many units in the last place the exponentials of the kernels' library are above the host's; 0
 * at the start. CUDA's programming guide allows expf two, exp one. */
extern int emu_exponentials;

/* The order in which warps and lanes are run: 0 as numbered, 1 backwards. What races with nothing
 * does not depend on it. */
void emu_order(int backwards);

#ifdef __cplusplus
}
#endif
#endif
