/* SPDX-License-Identifier: MIT */
/* fake_cuda - fake GPUs: the CUDA runtime, cuBLASLt, NCCL and the launchers of
 * kernels/cuda, computed on the CPU
 *
 * The host code of the CUDA back end links with it in place of NVIDIA's libraries, against their
 * headers. It is made to let wrong host code fail: device memory crashes a host that touches it and
 * begins as NaN, streams are threads that run late by chance, copies from pinned memory read when
 * they run, a capture refuses what a real one refuses. It says nothing about time.
 *
 * The machine is described by DITTUNE_FAKE_CUDA, settings parted by colons, all optional
 * (runtime/settings.c has the list):
 *
 *     DITTUNE_FAKE_CUDA="devices=4:memory=2g:seed=7:box=/tmp/x/box:fault=cudaMalloc,at=3,code=2"
 */
#ifndef DT_TESTS_FAKE_CUDA_H
#define DT_TESTS_FAKE_CUDA_H

#include <stdbool.h>
#include <stdint.h>

/* Instead of DITTUNE_FAKE_CUDA; NULL: DITTUNE_FAKE_CUDA again. Everything of the machine before is
 * gone, so it must be idle. */
void dt_fake_cuda_set(const char *settings);

/* The readable alias of an address of a fake device, for tests that look without a copy;
 * NULL: not device memory. */
const void *dt_fake_cuda_alias(const void *memory);

/* Bytes taken of a device by this process, its context included; allocations
 * that were not freed. */
int64_t dt_fake_cuda_used(int device);
int dt_fake_cuda_blocks(int device);

/* Kernels started on a device so far, copies not counted. */
int64_t dt_fake_cuda_launches(int device);

/* Products that ran since dt_fake_cuda_set, of the library's proposal `rank` (from 0). */
int64_t dt_fake_cuda_products(int rank);

/* How often a planted fault was met since dt_fake_cuda_set. */
int dt_fake_cuda_fired(void);

/* The first error found by the fake CUDA since dt_fake_cuda_set, a sentence; "" without any. With a
 * box, those of all processes are in BOX.log, too. */
const char *dt_fake_cuda_complaint(void);

/* The calls of a rank to NCCL, in order, a line each, as "alltoall comm=0 >1:8x7 <1:8x7". Ranks
 * of this process only. */
const char *dt_fake_cuda_posted(int rank);

#endif
