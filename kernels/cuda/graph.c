/* SPDX-License-Identifier: MIT */
/* Records the queue as a CUDA graph by stream capture. The capture is local to this thread, so other threads on other
 * devices do not end it. */
#include "kernels/cuda/cuda_int.h"

#include <stdlib.h>

struct dt_graph {
    cudaGraphExec_t exec;
};

dt_status dt_cuda_record(struct dt_device *device)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    DT_TRY(dt_cuda_ready(cuda));
    DT_CUDA(cuda, cudaStreamBeginCapture(cuda->stream, cudaStreamCaptureModeThreadLocal),
            "begin to record");
    cuda->recording = true;
    return DT_OK;
}

/* Capture errors are recoverable: nothing was executed. */
static dt_status told(struct dt_cuda *cuda)
{
    dt_status status = dt_cuda_ready(cuda);
    if (!cuda->lost)
        cuda->error.status = DT_OK;
    return status;
}

static dt_status instantiate(struct dt_cuda *cuda, cudaGraph_t graph, struct dt_graph *made)
{
    DT_CUDA(cuda, cudaGraphInstantiate(&made->exec, graph, 0), "make a graph of what was recorded");
    return dt_cuda_check(cuda, (int)cudaGraphUpload(made->exec, cuda->stream), "load a graph");
}

dt_status dt_cuda_recorded(struct dt_device *device, struct dt_graph **graph)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    cudaGraph_t captured = NULL;
    cuda->recording = false;
    cudaError_t code = cudaStreamEndCapture(cuda->stream, &captured);
    if (code != cudaSuccess && captured == NULL) { /* end a capture that is still active */
        (void)cudaStreamEndCapture(cuda->stream, &captured);
        (void)cudaGetLastError();
    }
    dt_status status = told(cuda);
    if (status == DT_OK)
        status = dt_cuda_check(cuda, (int)code, "record");
    else
        (void)cudaGetLastError();
    struct dt_graph *made = status == DT_OK ? calloc(1, sizeof *made) : NULL;
    if (status == DT_OK)
        status = made != NULL ? instantiate(cuda, captured, made)
                              : dt_fail(DT_ENOMEM, "no memory for a graph");
    if (captured != NULL)
        (void)cudaGraphDestroy(captured);
    (void)cudaGetLastError();
    if (status != DT_OK) {
        dt_cuda_graph_free(device, made);
        return status;
    }
    *graph = made;
    return DT_OK;
}

void dt_cuda_replay(struct dt_device *device, struct dt_graph *graph)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    if (cuda != NULL)
        dt_cuda_keep(cuda, (int)cudaGraphLaunch(graph->exec, cuda->stream), "run a graph");
}

void dt_cuda_graph_free(struct dt_device *device, struct dt_graph *graph)
{
    if (graph == NULL)
        return;
    (void)dt_cuda_of(device);
    if (graph->exec != NULL)
        (void)cudaGraphExecDestroy(graph->exec);
    (void)cudaGetLastError();
    free(graph);
}
