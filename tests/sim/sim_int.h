/* SPDX-License-Identifier: MIT */
/* sim_int - what the parts of the simulator know of each other
 *
 * One mutex guards all; what a stream runs, runs without it. A stream is a thread and a list of items; an event is a point,
 * shared by who records it and who waits for it; a capture collects items as nodes instead, and a launched graph runs them:
 * the first lane where it was launched, the others on streams of its own.
 */
#ifndef DT_TESTS_SIM_SIM_INT_H
#define DT_TESTS_SIM_SIM_INT_H

#include "tests/sim/sim.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#define SIM_DEVICES 16
#define SIM_FAULTS  16

/* ---- settings.c */

struct sim_fault {
    char what[48]; /* a function, or launch, exchange */
    char act[16];  /* fail, delay, drop, error, hang, corrupt */
    int at;        /* from the at-th on, counted from 1; 0: each */
    int rank;      /* -1: any; of CUDA calls the device */
    int code, ms;
    bool once, always; /* once: in one process only (needs a box); always: also after the at-th */
    atomic_int seen;
};

struct sim_settings {
    int devices, multiprocessors, major, minor, driver, delay_us, peers, init_ms;
    int64_t memory, context;
    int64_t poison; /* bytes of a block that begin as NaN, at most: pages cost time */
    uint64_t seed;
    char name[64], box[256], host[64], nvml[256], lt[64];
    int fault_count;
    struct sim_fault faults[SIM_FAULTS];
};

extern struct sim_settings sim_settings;

void sim_settings_read(const char *text, struct sim_settings *settings);

/* The fault planted for this call of `what`, or NULL; counts. rank: the device, or the rank of a comm. */
const struct sim_fault *sim_fault(const char *what, int rank);
void sim_sleep_ms(int ms);
void sim_complaints_clear(void);
void sim_posted_clear(void);
void sim_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- box.c: what the processes of a machine share */

struct sim_share {
    _Atomic int pid;
    _Atomic int64_t bytes;
};

struct sim_box {
    struct sim_share use[SIM_DEVICES][64];
    _Atomic uint32_t fired; /* faults with once */
};

struct sim_box *sim_box_open(const char *path); /* a private one for "" */
void sim_box_close(struct sim_box *box);
int64_t sim_box_used(struct sim_box *box, int device, int not_pid);
_Atomic int64_t *sim_box_mine(struct sim_box *box, int device);
extern struct sim_box *sim_box;

/* ---- device.c, memory.c */

struct sim_block {
    struct sim_block *next; /* by address */
    char *at, *pages;       /* host view */
    size_t bytes, length;   /* asked for; of its pages */
    bool window;            /* from ncclMemAlloc */
};

struct sim_device {
    int index;
    char *host, *alias; /* the two views of its memory */
    size_t arena;
    int fd;
    struct sim_block *blocks;
    size_t hint; /* where the next block is looked for */
    int64_t big, small;
    bool context;
    cudaError_t sticky;
    struct CUstream_st *streams, *legacy;
    int64_t launches;
};

extern struct sim_device sim_devices[SIM_DEVICES];

pthread_mutex_t *sim_mutex(void);
void sim_lock(void);
void sim_unlock(void);
int sim_current(void);
/* Begins an API call: an error it must return, faults and sticky errors included. */
cudaError_t sim_enter(const char *name);
/* Ends one: keeps the error for cudaGetLastError. */
cudaError_t sim_leave(cudaError_t error);
bool sim_driver(void);
void sim_callback(bool begins);
void sim_fail(struct sim_device *device, cudaError_t error); /* sticky */

cudaError_t sim_allocate(struct sim_device *device, size_t bytes, bool window, void **memory);
void sim_context(struct sim_device *device);
void sim_devices_init(void);
void sim_devices_fini(void);
/* The block that holds all bytes of a device address; NULL: none. Locked by the caller. */
struct sim_block *sim_block_at(const void *memory, size_t bytes, struct sim_device **device);
/* What a kernel of the device sees at an address: the alias of its own memory, pinned memory as it is. NULL: illegal. */
void *sim_see(const struct sim_device *device, const void *memory, size_t bytes);
bool sim_pinned(const void *memory, size_t bytes);
bool sim_is_device(const void *memory);

/* ---- stream.c */

struct sim_point {
    int refs;
    bool done;
    int64_t ns;
    struct sim_capture *capture; /* not NULL: recorded in it, as its point `id` */
    int id;
};

enum sim_kind { SIM_WORK, SIM_KERNEL, SIM_RECORD, SIM_WAIT };

struct sim_task {
    cudaError_t (*run)(struct CUstream_st *stream, void *data);
    void (*drop)(void *data); /* (optional) frees what data owns */
    size_t bytes;
};

struct sim_item {
    struct sim_item *next;
    enum sim_kind kind;
    struct sim_task task;
    struct sim_point *point;
    bool borrowed; /* data is a graph's */
    void *data;
};

struct CUstream_st {
    struct CUstream_st *next;
    struct sim_device *device;
    unsigned flags;
    int priority;
    pthread_cond_t cond;
    struct sim_item *first, **last;
    uint64_t put, done;
    bool closing, internal;
    uint64_t random;
    struct sim_capture *capture;
    int lane;
    void *compute; /* the CPU's device of its thread */
    float *scratch;
    size_t scratch_floats;
};

/* What tells one hung exchange from another when a stream is waited for: broadcast whenever anything got on. */
extern pthread_cond_t sim_progress;

struct CUstream_st *sim_stream_new(struct sim_device *device, unsigned flags, int priority,
                                   bool internal);
void sim_stream_close(struct CUstream_st *stream);
/* The stream of a handle, the legacy one for NULL; NULL: none such. Locked by the caller, as is the rest. */
struct CUstream_st *sim_stream_at(cudaStream_t handle);
bool sim_idle(const struct CUstream_st *stream);
/* Queues a task with a copy of data, or adds it to the stream's capture. */
cudaError_t sim_put(cudaStream_t handle, enum sim_kind kind, const struct sim_task *task,
                    const void *data);
/* Makes a stream wait for the legacy stream, or that for all, as CUDA has it for blocking streams. */
void sim_order_legacy(struct CUstream_st *stream);
void sim_queue(struct CUstream_st *stream, struct sim_item *item);
cudaError_t sim_run(struct CUstream_st *stream, struct sim_item *item);
struct sim_item *sim_item_new(enum sim_kind kind, struct sim_point *point);
void sim_item_free(struct sim_item *item);
cudaError_t sim_wait_idle(struct sim_device *device, struct CUstream_st *stream);
/* launch.c: the CPU back end's device of a stream's thread */
struct dt_device *sim_cpu(struct CUstream_st *stream);
void sim_compute_close(struct CUstream_st *stream);
/* *field, a pointer to `bytes` bytes, as the stream's device sees it; NULL stays. False: illegal. */
bool sim_see_field(const struct CUstream_st *stream, const void *field, int64_t bytes);
float sim_gelu(float x);
struct sim_point *sim_point_new(void);
void sim_point_drop(struct sim_point *point);
int64_t sim_clock_ns(void);
void sim_random_delay(uint64_t *random);

/* ---- capture.c */

struct sim_node {
    enum sim_kind kind;
    int lane, point;
    struct sim_task task;
    void *data;
};

struct sim_nodes {
    int refs, count, room, lanes, points;
    struct sim_node *at;
};

struct sim_capture {
    int refs; /* of the streams and points that know it */
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    struct CUstream_st *lane[16];
    struct sim_nodes *nodes;
    bool invalid, ended;
};

/* What must not be called while this thread captures: the capture is spoilt. */
cudaError_t sim_unsafe(void);
cudaError_t sim_capture_task(struct CUstream_st *stream, enum sim_kind kind,
                             const struct sim_task *task, const void *data);
cudaError_t sim_capture_record(struct CUstream_st *stream, struct sim_point **point);
cudaError_t sim_capture_wait(struct CUstream_st *stream, const struct sim_point *point);
bool sim_any_capture(const struct sim_device *device, bool blocking_only);
void sim_capture_drop(struct sim_capture *capture);
struct sim_nodes *sim_graph_nodes(cudaGraph_t graph);
void sim_nodes_drop(struct sim_nodes *nodes);

#endif
