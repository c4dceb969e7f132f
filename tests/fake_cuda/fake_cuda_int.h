/* SPDX-License-Identifier: MIT */
/* fake_cuda_int - declarations shared by the parts of the fake CUDA
 *
 * One mutex guards all; what a stream runs, runs without it. A stream is a thread and a list of
 * items; an event is a point, shared by who records it and who waits for it; a capture collects
 * items as nodes instead, and a launched graph runs them: the first lane where it was launched, the
 * others on streams of its own.
 */
#ifndef DT_TESTS_FAKE_CUDA_INT_H
#define DT_TESTS_FAKE_CUDA_INT_H

#include "tests/fake_cuda/fake_cuda.h"
#include "tests/fake_cuda/machine.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stddef.h>

void fake_posted_clear(void); /* nccl/log.c */

/* ---- device.c, memory.c */

struct fake_block {
    struct fake_block *next; /* by address */
    char *at, *pages;        /* host view */
    size_t bytes, length;    /* asked for; of its pages */
    bool window;             /* from ncclMemAlloc */
};

struct fake_device {
    int index;
    char *host, *alias; /* the two views of its memory */
    size_t arena;
    int fd;
    struct fake_block *blocks;
    size_t hint; /* where the next block is looked for */
    int64_t big, small;
    bool context;
    cudaError_t sticky;
    struct CUstream_st *streams, *legacy;
    int64_t launches;
};

extern struct fake_device fake_devices[FAKE_DEVICES];

pthread_mutex_t *fake_mutex(void);
void fake_lock(void);
void fake_unlock(void);
int fake_current(void);
/* Begins an API call: an error it must return, faults and sticky errors included. */
cudaError_t fake_enter(const char *name);
/* Ends one: keeps the error for cudaGetLastError. */
cudaError_t fake_leave(cudaError_t error);
bool fake_driver(void);
void fake_callback(bool begins);
void fake_fail(struct fake_device *device, cudaError_t error); /* sticky */

cudaError_t fake_allocate(struct fake_device *device, size_t bytes, bool window, void **memory);
void fake_context(struct fake_device *device);
void fake_devices_init(void);
void fake_devices_fini(void);
/* The block that holds all bytes of a device address; NULL: none. Locked by the caller. */
struct fake_block *fake_block_at(const void *memory, size_t bytes, struct fake_device **device);
/* The memory that a kernel of the device reads at an address: the alias of its own memory, or
 * pinned memory itself. NULL: illegal. */
void *fake_see(const struct fake_device *device, const void *memory, size_t bytes);
bool fake_pinned(const void *memory, size_t bytes);
bool fake_is_device(const void *memory);

/* ---- stream.c */

struct fake_point {
    int refs;
    bool done;
    int64_t ns;
    struct fake_capture *capture; /* not NULL: recorded in it, as its point `id` */
    int id;
};

enum fake_kind { FAKE_WORK, FAKE_KERNEL, FAKE_RECORD, FAKE_WAIT };

struct fake_task {
    cudaError_t (*run)(struct CUstream_st *stream, void *data);
    void (*drop)(void *data); /* (optional) frees what data owns */
    size_t bytes;
};

struct fake_item {
    struct fake_item *next;
    enum fake_kind kind;
    struct fake_task task;
    struct fake_point *point;
    bool borrowed; /* data is a graph's */
    void *data;
};

struct CUstream_st {
    struct CUstream_st *next;
    struct fake_device *device;
    unsigned flags;
    int priority;
    pthread_cond_t cond;
    struct fake_item *first, **last;
    uint64_t put, done;
    bool closing, internal;
    uint64_t random;
    struct fake_capture *capture;
    int lane;
    void *compute; /* the CPU's device of its thread */
    float *scratch;
    size_t scratch_floats;
};

/* Broadcast when a point is done, a stream is idle or closed, a device fails, a call or an
 * exchange of NCCL ends: all that is waited for. Not at each item, which wakes every
 * thread of the machine. */
extern pthread_cond_t fake_progress;

struct CUstream_st *fake_stream_new(struct fake_device *device, unsigned flags, int priority,
                                    bool internal);
void fake_stream_close(struct CUstream_st *stream);
/* The stream of a handle, the legacy one for NULL; NULL: none such. Locked by the
 * caller, as is the rest. */
struct CUstream_st *fake_stream_at(cudaStream_t handle);
bool fake_idle(const struct CUstream_st *stream);
/* Queues a task with a copy of data, or adds it to the stream's capture. */
cudaError_t fake_put(cudaStream_t handle, enum fake_kind kind, const struct fake_task *task,
                     const void *data);
/* Makes a stream wait for the legacy stream, or that for all, as CUDA has it
 * for blocking streams. */
void fake_order_legacy(struct CUstream_st *stream);
void fake_queue(struct CUstream_st *stream, struct fake_item *item);
cudaError_t fake_run(struct CUstream_st *stream, struct fake_item *item);
struct fake_item *fake_item_new(enum fake_kind kind, struct fake_point *point);
void fake_item_free(struct fake_item *item);
cudaError_t fake_wait_idle(struct fake_device *device, struct CUstream_st *stream);
/* launch.c: the CPU back end's device of a stream's thread */
struct dt_device *fake_cpu(struct CUstream_st *stream);
void fake_compute_close(struct CUstream_st *stream);
/* *field, a pointer to `bytes` bytes, as the stream's device sees it; NULL
 * stays. False: illegal. */
bool fake_see_field(const struct CUstream_st *stream, const void *field, int64_t bytes);
float fake_gelu(float x);
struct fake_point *fake_point_new(void);
void fake_point_drop(struct fake_point *point);
int64_t fake_clock_ns(void);
extern _Atomic int64_t fake_planted_ns; /* that clock is ahead by */
void fake_products_forget(void);
void fake_random_delay(uint64_t *random);

/* ---- capture.c */

struct fake_node {
    enum fake_kind kind;
    int lane, point;
    struct fake_task task;
    void *data;
};

struct fake_nodes {
    int refs, count, room, lanes, points;
    struct fake_node *at;
};

struct fake_capture {
    int refs; /* of the streams and points that know it */
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    struct CUstream_st *lane[16];
    struct fake_nodes *nodes;
    bool invalid, ended;
};

/* For functions that must not be called during a capture: invalidates the
 * capture of this thread. */
cudaError_t fake_unsafe(void);
cudaError_t fake_capture_task(struct CUstream_st *stream, enum fake_kind kind,
                              const struct fake_task *task, const void *data);
cudaError_t fake_capture_record(struct CUstream_st *stream, struct fake_point **point);
cudaError_t fake_capture_wait(struct CUstream_st *stream, const struct fake_point *point);
bool fake_any_capture(const struct fake_device *device, bool blocking_only);
void fake_capture_drop(struct fake_capture *capture);
struct fake_nodes *fake_graph_nodes(cudaGraph_t graph);
void fake_nodes_drop(struct fake_nodes *nodes);

#endif
