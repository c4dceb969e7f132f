/* SPDX-License-Identifier: MIT */
/* Graphs: a launch puts one item on a stream. When it runs, the lanes but the first go to streams
 * of the graph's own, with new points for what joins them, and the item ends when all have. */
#include "tests/fake_cuda/fake_cuda_int.h"

#include <stdlib.h>

struct CUgraphExec_st {
    int refs;
    struct fake_nodes *nodes;
    struct fake_device *device;
    struct CUstream_st *lane[16]; /* of lane 1 on */
};

/* A launch, as it is queued. */
struct launch {
    struct CUgraphExec_st *exec;
};

static void exec_drop(struct CUgraphExec_st *exec)
{
    if (--exec->refs > 0)
        return;
    for (int i = 1; i < exec->nodes->lanes; i++)
        fake_stream_close(exec->lane[i]);
    fake_nodes_drop(exec->nodes);
    free(exec);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    if (error == cudaSuccess)
        error = graph != NULL ? fake_unsafe() : cudaErrorInvalidValue;
    struct CUgraphExec_st *exec = error == cudaSuccess ? calloc(1, sizeof *exec) : NULL;
    if (exec != NULL) {
        *exec = (struct CUgraphExec_st){
            .refs = 1, .nodes = fake_graph_nodes(graph), .device = &fake_devices[fake_current()]};
        exec->nodes->refs++;
        for (int i = 1; i < exec->nodes->lanes; i++)
            exec->lane[i] = fake_stream_new(exec->device, cudaStreamNonBlocking, 0, true);
        *out = exec;
    }
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(out, graph, flags);
}

static struct fake_item *item_of(struct fake_node *node, struct fake_point **points)
{
    struct fake_point *point = node->point >= 0 ? points[node->point] : NULL;
    struct fake_item *item = fake_item_new(node->kind, point);
    item->task = node->task;
    item->data = node->data;
    item->borrowed = true;
    return item;
}

/* On the thread of the stream it was launched on. */
static cudaError_t run(struct CUstream_st *stream, void *data)
{
    struct CUgraphExec_st *exec = ((struct launch *)data)->exec;
    struct fake_nodes *nodes = exec->nodes;
    struct fake_point **points = calloc((size_t)nodes->points + 1, sizeof(struct fake_point *));
    if (points == NULL)
        abort();
    cudaError_t error = cudaSuccess;
    fake_lock();
    for (int i = 0; i < nodes->points; i++)
        points[i] = fake_point_new();
    for (int i = 0; i < nodes->count; i++)
        if (nodes->at[i].lane > 0)
            fake_queue(exec->lane[nodes->at[i].lane], item_of(&nodes->at[i], points));
    for (int i = 0; i < nodes->count; i++)
        if (nodes->at[i].lane == 0) {
            struct fake_item *item = item_of(&nodes->at[i], points);
            cudaError_t one = fake_run(stream, item);
            error = error != cudaSuccess ? error : one;
            fake_item_free(item);
        }
    for (int i = 1; i < nodes->lanes; i++)
        while (!fake_idle(exec->lane[i]))
            pthread_cond_wait(&fake_progress, fake_mutex());
    for (int i = 0; i < nodes->points; i++)
        fake_point_drop(points[i]);
    fake_unlock();
    free(points);
    return error;
}

static void drop(void *data)
{
    exec_drop(((struct launch *)data)->exec);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    if (error == cudaSuccess && (exec == NULL || exec->device->index != fake_current()))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess) {
        struct launch launch = {exec};
        struct fake_task task = {run, drop, sizeof launch};
        exec->refs++;
        error = fake_put(stream, FAKE_WORK, &task, &launch);
    }
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    (void)stream;
    return fake_leave(exec != NULL ? fake_enter(__func__) : cudaErrorInvalidValue);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    cudaError_t error = fake_enter(__func__);
    if (exec == NULL)
        return fake_leave(cudaErrorInvalidValue);
    fake_lock();
    exec_drop(exec);
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *list, size_t *count)
{
    cudaError_t error = fake_enter(__func__);
    if (error == cudaSuccess && list != NULL)
        error = cudaErrorNotSupported;
    if (error == cudaSuccess) {
        const struct fake_nodes *nodes = fake_graph_nodes(graph);
        *count = 0;
        for (int i = 0; i < nodes->count; i++)
            *count += nodes->at[i].kind == FAKE_WORK || nodes->at[i].kind == FAKE_KERNEL;
    }
    return fake_leave(error);
}
