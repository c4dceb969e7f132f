/* SPDX-License-Identifier: MIT */
/* The API of communicators' lives, memory and windows. */
#include "tests/fake_cuda/nccl/nccl_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ncclResult_t ncclGetVersion(int *version)
{
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

/* The path of the world; no process needs to be there for it. */
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    static _Atomic unsigned number;
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/dev/shm/dittune-fake-cuda-%d-%u-%llx",
             (int)getpid(), atomic_fetch_add(&number, 1), (unsigned long long)fake_clock_ns());
    return ncclSuccess;
}

static struct ncclComm *comm_new(const ncclConfig_t *config, int rank, int size)
{
    struct ncclComm *comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        abort();
    comm->refs = 1;
    comm->rank = comm->root_rank = rank;
    comm->size = size;
    comm->device = fake_current();
    comm->blocking = config == NULL || config->blocking != 0;
    comm->random = fake_settings.seed * 7919 + (uint64_t)rank;
    return comm;
}

/* Waits for a call when its communicator blocks; not inside a group, where the end of it does. */
static ncclResult_t blocked(struct ncclComm *comm, ncclResult_t result)
{
    if (!comm->blocking || result != ncclInProgress || group_later(comm))
        return result;
    fake_lock();
    while (comm->state == ncclInProgress)
        pthread_cond_wait(&fake_progress, fake_mutex());
    result = comm->state;
    fake_unlock();
    return result;
}

static bool config_ok(const ncclConfig_t *config)
{
    if (config == NULL)
        return true;
    const ncclConfig_t fresh = NCCL_CONFIG_INITIALIZER;
    bool undefined = config->maxCTAs == NCCL_CONFIG_UNDEF_INT;
    bool order =
        undefined || config->minCTAs == NCCL_CONFIG_UNDEF_INT || config->minCTAs <= config->maxCTAs;
    return config->magic == fresh.magic && config->size == fresh.size &&
           (undefined || (config->maxCTAs >= 1 && config->maxCTAs <= 64)) && order;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    ncclResult_t result = nccl_enter(__func__, rank);
    if (result != ncclSuccess)
        return result;
    if (size < 1 || size > RANKS || rank < 0 || rank >= size || !config_ok(config))
        return comm_fail(NULL, ncclInvalidArgument, "rank %d of %d, or a bad configuration", rank,
                         size);
    struct ncclComm *comm = comm_new(config, rank, size);
    snprintf(comm->name, sizeof comm->name, "0");
    snprintf(comm->path, sizeof comm->path, "%s", id.internal);
    *out = comm;
    struct call call = {.job = JOB_INIT, .comm = comm};
    return blocked(comm, call_start(&call));
}

ncclResult_t ncclCommInitRank(ncclComm_t *out, int size, ncclUniqueId id, int rank)
{
    return ncclCommInitRankConfig(out, size, id, rank, NULL);
}

ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t *out,
                           ncclConfig_t *config)
{
    if (parent == NULL)
        return ncclInvalidArgument;
    ncclResult_t result = nccl_enter(__func__, parent->root_rank);
    fake_lock();
    if (result == ncclSuccess)
        result = comm_ready("ncclCommSplit", parent);
    if (result == ncclSuccess && !config_ok(config))
        result = comm_fail(NULL, ncclInvalidArgument, "a bad configuration");
    struct ncclComm *comm = NULL;
    if (result == ncclSuccess && color != NCCL_SPLIT_NOCOLOR) {
        comm = comm_new(config, 0, 0);
        comm->blocking = config != NULL && config->blocking != NCCL_CONFIG_UNDEF_INT
                             ? config->blocking != 0
                             : parent->blocking;
        comm->root_rank = parent->root_rank;
        comm->device = parent->device;
        snprintf(comm->name, sizeof comm->name, "%.40s.%dc%d", parent->name, parent->splits, color);
        snprintf(comm->path, sizeof comm->path, "%.100s.%dc%d", parent->path, parent->splits,
                 color);
    }
    if (result == ncclSuccess) {
        parent->splits++;
        *out = comm;
    }
    fake_unlock();
    if (result != ncclSuccess)
        return result;
    struct call call = {
        .job = JOB_SPLIT, .comm = comm, .parent = parent, .color = color, .key = key};
    result = call_start(&call);
    return blocked(comm != NULL ? comm : parent, result);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    if (comm == NULL)
        return ncclInvalidArgument;
    fake_lock();
    *state = comm->state;
    fake_unlock();
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    if (comm == NULL)
        return ncclInvalidArgument;
    ncclResult_t result = nccl_enter(__func__, comm->root_rank);
    fake_lock();
    if (result == ncclSuccess)
        result = comm_ready("ncclCommFinalize", comm);
    if (result == ncclSuccess)
        comm->finalized = true;
    fake_unlock();
    if (result != ncclSuccess)
        return result;
    struct call call = {.job = JOB_FINALIZE, .comm = comm};
    return blocked(comm, call_start(&call));
}

/* Waits for what is under way, as the real one does. */
ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    ncclResult_t result = comm != NULL ? nccl_enter(__func__, comm->root_rank) : ncclSuccess;
    if (comm == NULL || result != ncclSuccess)
        return result;
    fake_lock();
    while (comm->outstanding > 0 || comm->state == ncclInProgress)
        pthread_cond_wait(&fake_progress, fake_mutex());
    comm_drop(comm);
    fake_unlock();
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (comm == NULL)
        return ncclSuccess;
    fake_lock();
    int rank = comm->root_rank;
    const struct fake_fault *fault = fake_fault("ncclCommAbort", rank);
    fake_unlock();
    while (fault != NULL && strcmp(fault->act, "hang") == 0)
        pause();
    fake_lock();
    atomic_store(&comm->aborted, true);
    pthread_cond_broadcast(&fake_progress);
    comm_drop(comm);
    fake_unlock();
    return fault != NULL ? (ncclResult_t)fault->code : ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    *count = comm->size;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    *device = comm->device;
    return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void **memory, size_t bytes)
{
    ncclResult_t result = nccl_enter(__func__, fake_current());
    if (result != ncclSuccess)
        return result;
    fake_lock();
    cudaError_t error = fake_unsafe();
    if (error == cudaSuccess)
        error = fake_allocate(&fake_devices[fake_current()], bytes, true, memory);
    fake_unlock();
    return error == cudaSuccess ? ncclSuccess
                                : comm_fail(NULL, ncclUnhandledCudaError, "Cuda failure '%s'",
                                            cudaGetErrorString(error));
}

ncclResult_t ncclMemFree(void *memory)
{
    return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

/* Collective over the communicator; the memory must be of ncclMemAlloc. */
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes, ncclWindow_t *out,
                                    int flags)
{
    (void)flags;
    if (comm == NULL)
        return ncclInvalidArgument;
    struct fake_device *device;
    ncclResult_t result = nccl_enter(__func__, comm->root_rank);
    fake_lock();
    if (result == ncclSuccess)
        result = comm_ready("ncclCommWindowRegister", comm);
    const struct fake_block *block = fake_block_at(memory, bytes, &device);
    if (result == ncclSuccess &&
        (block == NULL || !block->window || (uintptr_t)memory % NCCL_WIN_REQUIRED_ALIGNMENT != 0)) {
        fake_complain("ncclCommWindowRegister: %zu bytes at %p are not of ncclMemAlloc", bytes,
                      memory);
        result = comm_fail(NULL, ncclInvalidArgument, "%s", "not memory of ncclMemAlloc");
    }
    if (result == ncclSuccess)
        log_post(comm, "window comm=%s bytes=%zu", comm->name, bytes);
    fake_unlock();
    if (result != ncclSuccess)
        return result;
    *out = (ncclWindow_t)memory;
    struct call call = {.job = JOB_REGISTER, .comm = comm};
    return blocked(comm, call_start(&call));
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    if (comm == NULL)
        return ncclInvalidArgument;
    ncclResult_t result = nccl_enter(__func__, comm->root_rank);
    struct fake_device *device;
    fake_lock();
    if (result == ncclSuccess && fake_block_at(window, 1, &device) == NULL) {
        fake_complain("ncclCommWindowDeregister: the memory was freed before");
        result = ncclInvalidArgument;
    }
    fake_unlock();
    return result;
}
