/* SPDX-License-Identifier: MIT */
#include "worker/command/memory.h"

#include "base/read.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define LOOK_BYTES                                                                                 \
    ((size_t)256 << 10) /* of the end of an output: a hint at its beginning is no failure */
#define KILLED (128 + SIGKILL)

static const char *const phrases[] = {
    "out of memory",        /* CUDA, HIP, PyTorch, Linux */
    "OutOfMemory",          /* torch.OutOfMemoryError, hipErrorOutOfMemory, java.lang */
    "OUT_OF_MEMORY",        /* CUDA_ERROR_, CL_, ncclSystemError texts */
    "OUT_OF_DEVICE_MEMORY", /* oneAPI Level Zero, Vulkan */
    "OUT_OF_HOST_MEMORY",
    "ErrorMemoryAllocation",         /* cudaErrorMemoryAllocation */
    "STATUS_ALLOC_FAILED",           /* CUBLAS_, CUDNN_, CUSOLVER_ */
    "RESOURCE_EXHAUSTED",            /* XLA, JAX */
    "MEM_OBJECT_ALLOCATION_FAILURE", /* OpenCL */
    "bad_alloc",                     /* std::bad_alloc */
    "bad_array_new_length",
    "MemoryError",            /* Python */
    "Cannot allocate memory", /* ENOMEM */
    "not enough memory",      /* PyTorch's CPU allocator */
    "insufficient memory",
    "No available memory for the cache blocks", /* vLLM */
    "Unable to allocate",                       /* numpy, followed by a size */
    "memory allocation of",                     /* Rust */
    "oom-kill",                                 /* the kernel, Slurm, Kubernetes */
    "oom_kill",
    "OOMKilled",
    "exitcode: -9", /* torchrun, of a rank that SIGKILL ended */
};

const char *dt_memory_phrase(const struct dt_text *text)
{
    size_t skipped = text->size > LOOK_BYTES ? text->size - LOOK_BYTES : 0;
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (strcasestr(dt_text_at(text) + skipped, phrases[i]) != NULL)
            return phrases[i];
    return NULL;
}

int64_t dt_memory_kills(void)
{
    const char *path = getenv("DITTUNE_VMSTAT");
    return dt_read_number(path != NULL ? path : "/proc/vmstat", "oom_kill ");
}

bool dt_memory_killed(int wait_status, int64_t kills)
{
    if (WIFEXITED(wait_status))
        return WEXITSTATUS(wait_status) == KILLED;
    return WTERMSIG(wait_status) == SIGKILL && kills >= 0 && dt_memory_kills() > kills;
}
