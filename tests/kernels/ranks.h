/* SPDX-License-Identifier: MIT */
/* ranks - the same body on ranks of every kind of comm that one machine can have:
 * threads and processes */
#ifndef DT_TESTS_KERNELS_RANKS_H
#define DT_TESTS_KERNELS_RANKS_H

#include "kernels/compute.h"
#include "kernels/nccl.h"
#include "kernels/shared.h"
#include "kernels/staged.h"
#include "tests/kernels/fake_ranks/fake.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MOST = 8 };

typedef dt_status (*ranks_body)(struct dt_comm *comm, void *arg);

/* Number of ranks that have freed their comm, for tests that wait for the end of a rank. */
static int *ranks_gone;

struct ranks_job {
    const struct ranks *kind;
    struct dt_fake *fake;
    struct dt_device *device;
    int fd, rank, size;
    ranks_body body;
    void *arg;
    dt_status status;
    char message[200];
};

struct ranks {
    const char *name;
    bool processes, fake;
    bool gpu; /* nothing of it may happen in a process that still forks */
    dt_status (*open)(struct ranks_job *job, struct dt_comm **comm);
};

/* Memory of the kind that comm carries, and copies from and to the host. */
static inline void *ranks_alloc(const struct dt_comm *comm, size_t bytes)
{
    void *memory = NULL;
    if (comm->device == NULL)
        memory = malloc(bytes);
    else if (comm->device->compute->memory.alloc(comm->device, (int64_t)bytes, &memory) < 0)
        memory = NULL;
    if (memory == NULL)
        abort();
    return memory;
}

static inline void ranks_release(const struct dt_comm *comm, void *memory)
{
    if (comm->device != NULL)
        comm->device->compute->memory.release(comm->device, memory);
    else
        free(memory);
}

static inline void ranks_put(const struct dt_comm *comm, void *to, const void *from, size_t bytes)
{
    if (comm->device == NULL)
        memcpy(to, from, bytes);
    else if (comm->device->compute->memory.put(comm->device, to, from, (int64_t)bytes) < 0)
        abort();
}

static inline dt_status ranks_check(void *comm)
{
    return dt_comm_check(comm);
}

/* Waits with the patience of a test. */
static inline dt_status ranks_get(struct dt_comm *comm, void *to, const void *from, size_t bytes)
{
    struct dt_device *device = comm->device;
    if (device == NULL) {
        memcpy(to, from, bytes);
        return DT_OK;
    }
    DT_TRY(
        device->compute->finish(device, dt_clock_ns() + 600 * DT_NS_PER_SECOND, ranks_check, comm));
    return device->compute->memory.get(device, to, from, (int64_t)bytes);
}

/* Memory that processes started later have in common, zeroed. */
static inline void *ranks_common(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory != MAP_FAILED ? memory : NULL;
}

static inline dt_status ranks_open_fake(struct ranks_job *job, struct dt_comm **comm)
{
    *comm = dt_fake_comm(job->fake, job->rank);
    return DT_OK;
}

static inline dt_status ranks_open_shared(struct ranks_job *job, struct dt_comm **comm)
{
    return dt_comm_shared(job->fd, job->rank, job->size, comm);
}

static inline dt_status ranks_open_staged(struct ranks_job *job, struct dt_comm **comm)
{
    struct dt_comm *host = NULL;
    DT_TRY(dt_compute_cpu.open(0, &job->device));
    DT_TRY(dt_comm_shared(job->fd, job->rank, job->size, &host));
    return dt_comm_staged(host, job->device, comm);
}

#ifdef DT_HAVE_NCCL
static inline dt_status ranks_open_nccl(struct ranks_job *job, struct dt_comm **comm)
{
    struct dt_comm *host = NULL;
    DT_TRY(dt_compute_cuda.open(job->rank, &job->device));
    DT_TRY(dt_comm_shared(job->fd, job->rank, job->size, &host));
    return dt_comm_nccl(host, job->device, comm);
}

/* All ranks on one GPU. */
static inline dt_status ranks_open_one_gpu(struct ranks_job *job, struct dt_comm **comm)
{
    struct dt_comm *host = NULL;
    DT_TRY(dt_compute_cuda.open(0, &job->device));
    DT_TRY(dt_comm_shared(job->fd, job->rank, job->size, &host));
    return dt_comm_staged(host, job->device, comm);
}

static const struct ranks ranks_rows[] = {
    {"threads, nccl", .gpu = true, .open = ranks_open_nccl},
    {"processes, nccl", .processes = true, .gpu = true, .open = ranks_open_nccl},
    {"processes, staged, one GPU", .processes = true, .gpu = true, .open = ranks_open_one_gpu},
#else
static const struct ranks ranks_rows[] = {
    {"threads, fake", .fake = true, .open = ranks_open_fake},
    {"threads, shared", .open = ranks_open_shared},
    {"processes, shared", .processes = true, .open = ranks_open_shared},
    {"threads, staged", .open = ranks_open_staged},
    {"processes, staged", .processes = true, .open = ranks_open_staged},
#endif
};

enum { RANKS_ROWS = sizeof ranks_rows / sizeof ranks_rows[0] };

static inline void *ranks_work(void *arg)
{
    struct ranks_job *job = arg;
    struct dt_comm *comm = NULL;
    job->status = job->kind->open(job, &comm);
    if (job->status == DT_OK)
        job->status = job->body(comm, job->arg);
    if (job->status < 0)
        snprintf(job->message, sizeof job->message, "%s", dt_message());
    if (!job->kind->fake)
        dt_comm_free(comm);
    __atomic_add_fetch(ranks_gone, 1, __ATOMIC_SEQ_CST);
    if (job->device != NULL)
        job->device->compute->close(job->device);
    return NULL;
}

static inline void ranks_threads(struct ranks_job jobs[], int size)
{
    pthread_t threads[RANKS_MOST];
    for (int i = 0; i < size; i++)
        if (pthread_create(&threads[i], NULL, ranks_work, &jobs[i]) != 0)
            abort();
    for (int i = 0; i < size; i++)
        pthread_join(threads[i], NULL);
}

/* The children write into jobs, which are common memory. */
static inline void ranks_one_process(struct ranks_job jobs[], int size)
{
    int code = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        ranks_threads(jobs, size);
        _exit(0);
    }
    waitpid(pid, &code, 0);
    if (code != 0)
        jobs[0].status = DT_FAILED;
}

static inline void ranks_processes(struct ranks_job jobs[], int size)
{
    pid_t pids[RANKS_MOST];
    fflush(NULL);
    for (int i = 0; i < size; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            ranks_work(&jobs[i]);
            _exit(0);
        }
    }
    for (int i = 0; i < size; i++) {
        int code = 0;
        waitpid(pids[i], &code, 0);
        if (code != 0) {
            jobs[i].status = DT_FAILED;
            snprintf(jobs[i].message, sizeof jobs[i].message, "ended with %s %d",
                     WIFSIGNALED(code) ? "signal" : "code",
                     WIFSIGNALED(code) ? WTERMSIG(code) : WEXITSTATUS(code));
        }
    }
}

/* Runs body(comm, arg) on each rank; statuses[size] may be NULL. The first error, printed when
 * nobody asked for them, or DT_OK; a process that was killed has DT_FAILED. What processes tell
 * goes into memory that is common. */
static inline dt_status ranks_run(const struct ranks *kind, int size, ranks_body body, void *arg,
                                  dt_status statuses[])
{
    struct ranks_job *jobs = ranks_common((size_t)size * sizeof *jobs);
    struct dt_fake *fake = NULL;
    int fd = -1;
    dt_status first = kind->fake ? dt_fake_new(size, &(struct dt_fake_options){0}, &fake)
                                 : dt_shared_new(size, &fd);
    ranks_gone = ranks_common(sizeof *ranks_gone);
    if (first != DT_OK || jobs == NULL || ranks_gone == NULL)
        return DT_FAILED;
    for (int i = 0; i < size; i++)
        jobs[i] = (struct ranks_job){kind, fake, NULL, fd, i, size, body, arg, DT_OK, ""};
    (kind->processes ? ranks_processes : kind->gpu ? ranks_one_process : ranks_threads)(jobs, size);
    for (int i = 0; i < size; i++) {
        if (statuses != NULL)
            statuses[i] = jobs[i].status;
        else if (jobs[i].status < 0)
            fprintf(stderr, "%s: rank %d of %d: %s\n", kind->name, i, size, jobs[i].message);
        first = first == DT_OK ? jobs[i].status : first;
    }
    dt_fake_free(fake);
    if (fd >= 0)
        close(fd);
    munmap(jobs, (size_t)size * sizeof *jobs);
    munmap(ranks_gone, sizeof *ranks_gone);
    return first;
}

#endif
