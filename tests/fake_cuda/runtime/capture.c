/* SPDX-License-Identifier: MIT */
/* Captures: what is put on a stream between begin and end becomes nodes in lanes, one lane a
 * stream that took part. */
#include "tests/fake_cuda/fake_cuda_int.h"

#include <stdlib.h>
#include <string.h>

#define LANES 16

/* Captures that this thread began, all but the relaxed ones. */
static _Thread_local struct fake_capture *mine[4];

void fake_capture_drop(struct fake_capture *capture)
{
    if (--capture->refs > 0)
        return;
    fake_nodes_drop(capture->nodes);
    free(capture);
}

cudaError_t fake_unsafe(void)
{
    for (int i = 0; i < 4; i++)
        if (mine[i] != NULL) {
            mine[i]->invalid = true;
            return cudaErrorStreamCaptureUnsupported;
        }
    return cudaSuccess;
}

bool fake_any_capture(const struct fake_device *device, bool blocking_only)
{
    for (const struct CUstream_st *at = device->streams; at != NULL; at = at->next)
        if (at->capture != NULL && (!blocking_only || (at->flags & cudaStreamNonBlocking) == 0)) {
            at->capture->invalid = true;
            return true;
        }
    return false;
}

void fake_nodes_drop(struct fake_nodes *nodes)
{
    if (nodes == NULL || --nodes->refs > 0)
        return;
    for (int i = 0; i < nodes->count; i++) {
        if (nodes->at[i].task.drop != NULL)
            nodes->at[i].task.drop(nodes->at[i].data);
        free(nodes->at[i].data);
    }
    free(nodes->at);
    free(nodes);
}

static struct fake_node *add(struct fake_nodes *nodes, enum fake_kind kind, int lane, int point)
{
    if (nodes->count == nodes->room) {
        nodes->room = nodes->room > 0 ? 2 * nodes->room : 64;
        nodes->at = realloc(nodes->at, (size_t)nodes->room * sizeof *nodes->at);
        if (nodes->at == NULL)
            abort();
    }
    struct fake_node *node = &nodes->at[nodes->count++];
    *node = (struct fake_node){.kind = kind, .lane = lane, .point = point};
    return node;
}

cudaError_t fake_capture_task(struct CUstream_st *stream, enum fake_kind kind,
                              const struct fake_task *task, const void *data)
{
    struct fake_capture *capture = stream->capture;
    if (capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    struct fake_node *node = add(capture->nodes, kind, stream->lane, -1);
    node->task = *task;
    node->data = malloc(task->bytes + 1);
    if (node->data == NULL)
        abort();
    memcpy(node->data, data, task->bytes);
    return cudaSuccess;
}

cudaError_t fake_capture_record(struct CUstream_st *stream, struct fake_point **point)
{
    struct fake_capture *capture = stream->capture;
    if (capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    *point = fake_point_new();
    (*point)->capture = capture;
    capture->refs++;
    (*point)->id = capture->nodes->points++;
    add(capture->nodes, FAKE_RECORD, stream->lane, (*point)->id);
    return cudaSuccess;
}

/* A stream that waits for what is captured takes part from then on. */
cudaError_t fake_capture_wait(struct CUstream_st *stream, const struct fake_point *point)
{
    struct fake_capture *capture = stream->capture;
    if (point->capture == NULL) {
        capture->invalid = true;
        return cudaErrorStreamCaptureIsolation;
    }
    if (point->capture->ended)
        return cudaErrorCapturedEvent;
    if (capture != NULL && capture != point->capture) {
        capture->invalid = point->capture->invalid = true;
        return cudaErrorStreamCaptureMerge;
    }
    capture = point->capture;
    if (capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    if (stream->capture == NULL) {
        if (capture->nodes->lanes == LANES)
            abort();
        stream->capture = capture;
        stream->lane = capture->nodes->lanes++;
        capture->lane[stream->lane] = stream;
        capture->refs++;
    }
    add(capture->nodes, FAKE_WAIT, stream->lane, point->id);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    struct CUstream_st *stream = error == cudaSuccess ? fake_stream_at(handle) : NULL;
    if (error == cudaSuccess && (stream == NULL || stream == stream->device->legacy))
        error = cudaErrorStreamCaptureUnsupported;
    else if (error == cudaSuccess && stream->capture != NULL)
        error = cudaErrorIllegalState;
    if (error == cudaSuccess) {
        struct fake_capture *capture = calloc(1, sizeof *capture);
        struct fake_nodes *nodes = calloc(1, sizeof *nodes);
        if (capture == NULL || nodes == NULL)
            abort();
        nodes->refs = nodes->lanes = 1;
        *capture = (struct fake_capture){
            .refs = 1, .mode = mode, .thread = pthread_self(), .lane = {stream}, .nodes = nodes};
        stream->capture = capture;
        stream->lane = 0;
        for (int i = 0; mode != cudaStreamCaptureModeRelaxed && i < 4; i++)
            if (mine[i] == NULL) {
                mine[i] = capture;
                break;
            }
    }
    fake_unlock();
    return fake_leave(error);
}

/* All nodes are before the end of the origin stream: walks from its last node back
 * over waits and records. */
static bool joined(const struct fake_nodes *nodes)
{
    int covered[LANES] = {nodes->count}; /* nodes of a lane before this index are before the end */
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < nodes->count; i++) {
            const struct fake_node *wait = &nodes->at[i];
            if (wait->kind != FAKE_WAIT || i >= covered[wait->lane])
                continue;
            for (int k = 0; k < nodes->count; k++) {
                const struct fake_node *node = &nodes->at[k];
                if (node->kind == FAKE_RECORD && node->point == wait->point &&
                    covered[node->lane] <= k) {
                    covered[node->lane] = k + 1;
                    more = true;
                }
            }
        }
    }
    for (int i = 0; i < nodes->count; i++)
        if (i >= covered[nodes->at[i].lane] && nodes->at[i].kind != FAKE_RECORD)
            return false;
    return true;
}

static cudaError_t verdict(const struct CUstream_st *stream, const struct fake_capture *capture)
{
    if (capture->mode != cudaStreamCaptureModeRelaxed &&
        !pthread_equal(capture->thread, pthread_self()))
        return cudaErrorStreamCaptureWrongThread;
    if (capture->lane[0] != stream)
        return cudaErrorStreamCaptureUnmatched;
    if (capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    return joined(capture->nodes) ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}

static cudaError_t end(struct CUstream_st *stream, struct fake_nodes **nodes)
{
    struct fake_capture *capture = stream->capture;
    cudaError_t error = verdict(stream, capture);
    if (error == cudaErrorStreamCaptureWrongThread || error == cudaErrorStreamCaptureUnmatched) {
        capture->invalid = true;
        return error;
    }
    for (int i = 0; i < 4; i++)
        if (mine[i] == capture)
            mine[i] = NULL;
    if (error == cudaSuccess) {
        *nodes = capture->nodes;
        capture->nodes = NULL;
    }
    capture->ended = true;
    int gone = 0;
    for (int i = 0; i < LANES; i++)
        if (capture->lane[i] != NULL) {
            capture->lane[i]->capture = NULL;
            capture->lane[i] = NULL;
            gone++;
        }
    capture->refs -= gone - 1;
    fake_capture_drop(capture);
    return error;
}

struct CUgraph_st {
    struct fake_nodes *nodes;
};

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph)
{
    cudaError_t error = fake_enter(__func__);
    struct CUgraph_st *made = malloc(sizeof *made);
    fake_lock();
    struct CUstream_st *stream = error == cudaSuccess ? fake_stream_at(handle) : NULL;
    if (error == cudaSuccess && (stream == NULL || stream->capture == NULL))
        error = cudaErrorIllegalState;
    if (error == cudaSuccess)
        error = end(stream, &made->nodes);
    fake_unlock();
    if (error != cudaSuccess)
        free(made);
    *graph = error == cudaSuccess ? made : NULL;
    return fake_leave(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    struct CUstream_st *stream = error == cudaSuccess ? fake_stream_at(handle) : NULL;
    if (error == cudaSuccess && stream == NULL)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess)
        *status = stream->capture == NULL    ? cudaStreamCaptureStatusNone
                  : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                             : cudaStreamCaptureStatusActive;
    fake_unlock();
    return fake_leave(error);
}

struct fake_nodes *fake_graph_nodes(cudaGraph_t graph)
{
    return graph->nodes;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    cudaError_t error = fake_enter(__func__);
    if (graph == NULL)
        return fake_leave(cudaErrorInvalidValue);
    fake_lock();
    fake_nodes_drop(graph->nodes);
    fake_unlock();
    free(graph);
    return fake_leave(error);
}
