/* SPDX-License-Identifier: MIT */
/* Captures: what is put on a stream between begin and end becomes nodes in lanes, one lane a stream that took part. */
#include "tests/sim/sim_int.h"

#include <stdlib.h>
#include <string.h>

#define LANES 16

/* Captures that this thread began, all but the relaxed ones. */
static _Thread_local struct sim_capture *mine[4];

void sim_capture_drop(struct sim_capture *capture)
{
    if (--capture->refs > 0)
        return;
    sim_nodes_drop(capture->nodes);
    free(capture);
}

cudaError_t sim_unsafe(void)
{
    for (int i = 0; i < 4; i++)
        if (mine[i] != NULL) {
            mine[i]->invalid = true;
            return cudaErrorStreamCaptureUnsupported;
        }
    return cudaSuccess;
}

bool sim_any_capture(const struct sim_device *device, bool blocking_only)
{
    for (const struct CUstream_st *at = device->streams; at != NULL; at = at->next)
        if (at->capture != NULL && (!blocking_only || (at->flags & cudaStreamNonBlocking) == 0)) {
            at->capture->invalid = true;
            return true;
        }
    return false;
}

void sim_nodes_drop(struct sim_nodes *nodes)
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

static struct sim_node *add(struct sim_nodes *nodes, enum sim_kind kind, int lane, int point)
{
    if (nodes->count == nodes->room) {
        nodes->room = nodes->room > 0 ? 2 * nodes->room : 64;
        nodes->at = realloc(nodes->at, (size_t)nodes->room * sizeof *nodes->at);
        if (nodes->at == NULL)
            abort();
    }
    struct sim_node *node = &nodes->at[nodes->count++];
    *node = (struct sim_node){.kind = kind, .lane = lane, .point = point};
    return node;
}

cudaError_t sim_capture_task(struct CUstream_st *stream, enum sim_kind kind,
                             const struct sim_task *task, const void *data)
{
    struct sim_capture *capture = stream->capture;
    if (capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    struct sim_node *node = add(capture->nodes, kind, stream->lane, -1);
    node->task = *task;
    node->data = malloc(task->bytes + 1);
    if (node->data == NULL)
        abort();
    memcpy(node->data, data, task->bytes);
    return cudaSuccess;
}

cudaError_t sim_capture_record(struct CUstream_st *stream, struct sim_point **point)
{
    struct sim_capture *capture = stream->capture;
    if (capture->invalid)
        return cudaErrorStreamCaptureInvalidated;
    *point = sim_point_new();
    (*point)->capture = capture;
    capture->refs++;
    (*point)->id = capture->nodes->points++;
    add(capture->nodes, SIM_RECORD, stream->lane, (*point)->id);
    return cudaSuccess;
}

/* A stream that waits for what is captured takes part from then on. */
cudaError_t sim_capture_wait(struct CUstream_st *stream, const struct sim_point *point)
{
    struct sim_capture *capture = stream->capture;
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
    add(capture->nodes, SIM_WAIT, stream->lane, point->id);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
    cudaError_t error = sim_enter(__func__);
    sim_lock();
    struct CUstream_st *stream = error == cudaSuccess ? sim_stream_at(handle) : NULL;
    if (error == cudaSuccess && (stream == NULL || stream == stream->device->legacy))
        error = cudaErrorStreamCaptureUnsupported;
    else if (error == cudaSuccess && stream->capture != NULL)
        error = cudaErrorIllegalState;
    if (error == cudaSuccess) {
        struct sim_capture *capture = calloc(1, sizeof *capture);
        struct sim_nodes *nodes = calloc(1, sizeof *nodes);
        if (capture == NULL || nodes == NULL)
            abort();
        nodes->refs = nodes->lanes = 1;
        *capture = (struct sim_capture){
            .refs = 1, .mode = mode, .thread = pthread_self(), .lane = {stream}, .nodes = nodes};
        stream->capture = capture;
        stream->lane = 0;
        for (int i = 0; mode != cudaStreamCaptureModeRelaxed && i < 4; i++)
            if (mine[i] == NULL) {
                mine[i] = capture;
                break;
            }
    }
    sim_unlock();
    return sim_leave(error);
}

/* Whether the origin, at its end, comes after everything: from its last node back over waits and records. */
static bool joined(const struct sim_nodes *nodes)
{
    int covered[LANES] = {nodes->count}; /* nodes of a lane before this index are before the end */
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < nodes->count; i++) {
            const struct sim_node *wait = &nodes->at[i];
            if (wait->kind != SIM_WAIT || i >= covered[wait->lane])
                continue;
            for (int k = 0; k < nodes->count; k++) {
                const struct sim_node *node = &nodes->at[k];
                if (node->kind == SIM_RECORD && node->point == wait->point &&
                    covered[node->lane] <= k) {
                    covered[node->lane] = k + 1;
                    more = true;
                }
            }
        }
    }
    for (int i = 0; i < nodes->count; i++)
        if (i >= covered[nodes->at[i].lane] && nodes->at[i].kind != SIM_RECORD)
            return false;
    return true;
}

static cudaError_t verdict(const struct CUstream_st *stream, const struct sim_capture *capture)
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

static cudaError_t end(struct CUstream_st *stream, struct sim_nodes **nodes)
{
    struct sim_capture *capture = stream->capture;
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
    sim_capture_drop(capture);
    return error;
}

struct CUgraph_st {
    struct sim_nodes *nodes;
};

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *graph)
{
    cudaError_t error = sim_enter(__func__);
    struct CUgraph_st *made = malloc(sizeof *made);
    sim_lock();
    struct CUstream_st *stream = error == cudaSuccess ? sim_stream_at(handle) : NULL;
    if (error == cudaSuccess && (stream == NULL || stream->capture == NULL))
        error = cudaErrorIllegalState;
    if (error == cudaSuccess)
        error = end(stream, &made->nodes);
    sim_unlock();
    if (error != cudaSuccess)
        free(made);
    *graph = error == cudaSuccess ? made : NULL;
    return sim_leave(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, enum cudaStreamCaptureStatus *status)
{
    cudaError_t error = sim_enter(__func__);
    sim_lock();
    struct CUstream_st *stream = error == cudaSuccess ? sim_stream_at(handle) : NULL;
    if (error == cudaSuccess && stream == NULL)
        error = cudaErrorInvalidResourceHandle;
    if (error == cudaSuccess)
        *status = stream->capture == NULL    ? cudaStreamCaptureStatusNone
                  : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                             : cudaStreamCaptureStatusActive;
    sim_unlock();
    return sim_leave(error);
}

struct sim_nodes *sim_graph_nodes(cudaGraph_t graph)
{
    return graph->nodes;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    cudaError_t error = sim_enter(__func__);
    if (graph == NULL)
        return sim_leave(cudaErrorInvalidValue);
    sim_lock();
    sim_nodes_drop(graph->nodes);
    sim_unlock();
    free(graph);
    return sim_leave(error);
}
