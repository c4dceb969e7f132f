/* SPDX-License-Identifier: MIT */
/* Names of errors, with NVIDIA's sentences. */
#include "tests/fake_cuda/fake_cuda_int.h"

struct row {
    cudaError_t error;
    const char *name, *text;
};

#define ROW(code, sentence)                                                                        \
    {                                                                                              \
        code, #code, sentence                                                                      \
    }

static const struct row rows[] = {
    ROW(cudaSuccess, "no error"),
    ROW(cudaErrorInvalidValue, "invalid argument"),
    ROW(cudaErrorMemoryAllocation, "out of memory"),
    ROW(cudaErrorInitializationError, "initialization error"),
    ROW(cudaErrorInsufficientDriver,
        "CUDA driver version is insufficient for CUDA runtime version"),
    ROW(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    ROW(cudaErrorInvalidDevice, "invalid device ordinal"),
    ROW(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    ROW(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    ROW(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    ROW(cudaErrorNotReady, "device not ready"),
    ROW(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    ROW(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    ROW(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    ROW(cudaErrorLaunchFailure, "unspecified launch failure"),
    ROW(cudaErrorNotPermitted, "operation not permitted"),
    ROW(cudaErrorNotSupported, "operation not supported"),
    ROW(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    ROW(cudaErrorStreamCaptureInvalidated,
        "operation failed due to a previous error during capture"),
    ROW(cudaErrorStreamCaptureMerge,
        "operation would result in a merge of separate capture sequences"),
    ROW(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    ROW(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    ROW(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    ROW(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a "
                                        "capturing blocking stream"),
    ROW(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing "
                                "stream"),
    ROW(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence "
                                           "from another thread"),
    ROW(cudaErrorUnknown, "unknown error"),
};

static const struct row *find(cudaError_t error)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].error == error)
            return &rows[i];
    return &rows[sizeof rows / sizeof rows[0] - 1];
}

const char *cudaGetErrorName(cudaError_t error)
{
    return find(error)->name;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return find(error)->text;
}
