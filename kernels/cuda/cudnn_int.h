/* SPDX-License-Identifier: MIT */
/* cudnn_int - interface between the cache of plans (cudnn.c) and their construction (cudnn_plan.c) */
#ifndef DT_KERNELS_CUDA_CUDNN_INT_H
#define DT_KERNELS_CUDA_CUDNN_INT_H

#include "kernels/cuda/cudnn.h"

#include <cudnn.h>

/* Target of a plan: a handle, or the properties of an absent device. One of the two is NULL. */
struct dt_cudnn_target {
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t device;
};

/* The names of the tensors within the graph. */
enum { DT_CUDNN_Q = 1, DT_CUDNN_K, DT_CUDNN_V, DT_CUDNN_OUT, DT_CUDNN_LSE, DT_CUDNN_SCALE };

/* Converts the status of a call: DT_OK, DT_EUNSUP where cuDNN means "not supported", else DT_ELIB, with the call's
 * name, cuDNN's text and its stored reason. */
dt_status dt_cudnn_check(cudnnStatus_t status, const char *call) DT_MUST_CHECK;

/* *plan gets a finalized execution plan (owned by the caller), *about its facts. */
dt_status dt_cudnn_plan_new(const struct dt_cudnn_target *target, const struct dt_attention *op,
                            int64_t workspace_bytes, cudnnBackendDescriptor_t *plan,
                            struct dt_cuda_sdpa_plan *about) DT_MUST_CHECK;

/* Sets attributes: `count` values of cuDNN's type at `values`. */
dt_status dt_cudnn_set(cudnnBackendDescriptor_t to, cudnnBackendAttributeName_t name,
                       cudnnBackendAttributeType_t type, int64_t count,
                       const void *values) DT_MUST_CHECK;
/* Creates an empty descriptor; the error message has its name. */
dt_status dt_cudnn_new(cudnnBackendDescriptorType_t type, const char *name,
                       cudnnBackendDescriptor_t *descriptor) DT_MUST_CHECK;
dt_status dt_cudnn_finalize(cudnnBackendDescriptor_t descriptor, const char *name) DT_MUST_CHECK;
void dt_cudnn_destroy(cudnnBackendDescriptor_t descriptor); /* NULL is fine */

#endif
