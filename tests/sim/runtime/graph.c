/* SPDX-License-Identifier: MIT */
/* Graphs: a launch puts one item on a stream. When it runs, the lanes but the first go to streams of the graph's own, with new
 * points for what joins them, and the item ends when all have. */
#include "tests/sim/sim_int.h"

#include <stdlib.h>

struct CUgraphExec_st {
    int refs;
    struct sim_nodes *nodes;
    struct sim_device *device;
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
        sim_stream_close(exec->lane[i]);
    sim_nodes_drop(exec->nodes);
    free(exec);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    (void)flags;
    cudaError_t error = sim_enter(__func__);
    sim_lock();
    if (error == cudaSuccess)
        error = graph != NULL ? sim_unsafe() : cudaErrorInvalidValue;
    struct CUgraphExec_st *exec = error == cudaSuccess ? calloc(1, sizeof *exec) : NULL;
    if (exec != NULL) {
        *exec = (struct CUgraphExec_st){
            .refs = 1, .nodes = sim_graph_nodes(graph), .device = &sim_devices[sim_current()]};
        exec->nodes->refs++;
        for (int i = 1; i < exec->nodes->lanes; i++)
            exec->lane[i] = sim_stream_new(exec->device, cudaStreamNonBlocking, 0, true);
        *out = exec;
    }
    sim_unlock();
    return sim_leave(error);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(out, graph, flags);
}

static struct sim_item *item_of(struct sim_node *node, struct sim_point **points)
{
    struct sim_point *point = node->point >= 0 ? points[node->point] : NULL;
    struct sim_item *item = sim_item_new(node->kind, point);
    item->task = node->task;
    item->data = node->data;
    item->borrowed = true;
    return item;
}

/* On the thread of the stream it was launched on. */
static cudaError_t run(struct CUstream_st *stream, void *data)
{
    struct CUgraphExec_st *exec = ((struct launch *)data)->exec;
    struct sim_nodes *nodes = exec->nodes;
    struct sim_point **points = calloc((size_t)nodes->points + 1, sizeof(struct sim_point *));
    if (points == NULL)
        abort();
    cudaError_t error = cudaSuccess;
    sim_lock();
    for (int i = 0; i < nodes->points; i++)
        points[i] = sim_point_new();
    for (int i = 0; i < nodes->count; i++)
        if (nodes->at[i].lane > 0)
            sim_queue(exec->lane[nodes->at[i].lane], item_of(&nodes->at[i], points));
    for (int i = 0; i < nodes->count; i++)
        if (nodes->at[i].lane == 0) {
            struct sim_item *item = item_of(&nodes->at[i], points);
            cudaError_t one = sim_run(stream, item);
            error = error != cudaSuccess ? error : one;
            sim_item_free(item);
        }
    for (int i = 1; i < nodes->lanes; i++)
        while (!sim_idle(exec->lane[i]))
            pthread_cond_wait(&sim_progress, sim_mutex());
    for (int i = 0; i < nodes->points; i++)
        sim_point_drop(points[i]);
    sim_unlock();
    free(points);
    return error;
}

static void drop(void *data)
{
    exec_drop(((struct launch *)data)->exec);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    cudaError_t error = sim_enter(__func__);
    sim_lock();
    if (error == cudaSuccess && (exec == NULL || exec->device->index != sim_current()))
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess) {
        struct launch launch = {exec};
        struct sim_task task = {run, drop, sizeof launch};
        exec->refs++;
        error = sim_put(stream, SIM_WORK, &task, &launch);
    }
    sim_unlock();
    return sim_leave(error);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
    (void)stream;
    return sim_leave(exec != NULL ? sim_enter(__func__) : cudaErrorInvalidValue);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    cudaError_t error = sim_enter(__func__);
    if (exec == NULL)
        return sim_leave(cudaErrorInvalidValue);
    sim_lock();
    exec_drop(exec);
    sim_unlock();
    return sim_leave(error);
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *list, size_t *count)
{
    cudaError_t error = sim_enter(__func__);
    if (error == cudaSuccess && list != NULL)
        error = cudaErrorNotSupported;
    if (error == cudaSuccess) {
        const struct sim_nodes *nodes = sim_graph_nodes(graph);
        *count = 0;
        for (int i = 0; i < nodes->count; i++)
            *count += nodes->at[i].kind == SIM_WORK || nodes->at[i].kind == SIM_KERNEL;
    }
    return sim_leave(error);
}
