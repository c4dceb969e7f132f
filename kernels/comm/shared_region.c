/* SPDX-License-Identifier: MIT */
/* A pipe is a ring of bytes between two counters, each written by one side only. Sleeping is a futex on the rank's
 * bell: the ringer increments the bell, then checks whether the rank sleeps; the sleeper does it in the other order, so
 * at least one of them sees the other. */
#include "kernels/comm/shared_int.h"

#include "base/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernels/shared.h"

#define MAGIC      UINT64_C(0x6474736872643031) /* "dtshrd01" */
#define MOST_BYTES ((size_t)64 << 20)           /* of all pipes */

enum { MOST_RANKS = 1024, LEAST_CAPACITY = 4096, MOST_CAPACITY = 256 << 10 };

static size_t capacity_of(int ranks)
{
    size_t capacity = MOST_CAPACITY, pairs = (size_t)ranks * (size_t)ranks;
    while (capacity > LEAST_CAPACITY && capacity * pairs > MOST_BYTES)
        capacity /= 2;
    return capacity;
}

static size_t pipe_bytes(size_t capacity)
{
    return sizeof(struct dt_shared_pipe) + capacity;
}

static size_t pipes_at(int ranks)
{
    return sizeof(struct dt_shared_region) + (size_t)ranks * sizeof(struct dt_shared_rank);
}

static size_t region_bytes(int ranks)
{
    return pipes_at(ranks) + (size_t)ranks * (size_t)ranks * pipe_bytes(capacity_of(ranks));
}

dt_status dt_shared_new(int ranks, int *fd)
{
    if (ranks < 1 || ranks > MOST_RANKS)
        return dt_fail(DT_EUSAGE, "%d ranks cannot share memory: expected 1 to %d", ranks,
                       MOST_RANKS);
    struct dt_shared_region header = {
        .magic = MAGIC, .ranks = ranks, .capacity = capacity_of(ranks)};
    int made = memfd_create("dittune", 0);
    if (made < 0)
        return dt_fail(DT_ELIB, "no shared memory: %s", strerror(errno));
    if (ftruncate(made, (off_t)region_bytes(ranks)) != 0 ||
        pwrite(made, &header, sizeof header, 0) != (ssize_t)sizeof header) {
        int error = errno;
        close(made);
        return dt_fail(DT_ELIB, "no %zu bytes of shared memory: %s", region_bytes(ranks),
                       strerror(error));
    }
    *fd = made;
    return DT_OK;
}

dt_status dt_shared_map(int fd, int rank, int ranks, struct dt_shared_map *map)
{
    struct stat info;
    size_t bytes = region_bytes(ranks);
    if (fstat(fd, &info) != 0)
        return dt_fail(DT_ELIB, "no shared memory at descriptor %d: %s", fd, strerror(errno));
    if (info.st_size != (off_t)bytes || rank < 0 || rank >= ranks)
        return dt_fail(DT_EUSAGE, "the shared memory was not made for rank %d of %d", rank, ranks);
    struct dt_shared_region *region = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (region == MAP_FAILED)
        return dt_fail(DT_ELIB, "cannot map shared memory: %s", strerror(errno));
    if (region->magic != MAGIC || region->ranks != ranks ||
        region->capacity != capacity_of(ranks)) {
        munmap(region, bytes);
        return dt_fail(DT_EUSAGE, "the shared memory was not made for %d ranks", ranks);
    }
    *map = (struct dt_shared_map){region, bytes, rank};
    atomic_store(&region->rank[rank].pid, (int)getpid());
    atomic_store(&region->rank[rank].state, DT_SHARED_HERE);
    return DT_OK;
}

void dt_shared_unmap(struct dt_shared_map *map)
{
    int here = DT_SHARED_HERE; /* a failed rank stays failed: others may not have checked yet */
    atomic_compare_exchange_strong(&map->region->rank[map->rank].state, &here, DT_SHARED_LEFT);
    for (int i = 0; i < map->region->ranks; i++)
        dt_shared_ring(map, i);
    munmap(map->region, map->bytes);
    map->region = NULL;
}

static struct dt_shared_pipe *pipe_of(const struct dt_shared_map *map, int from, int to)
{
    const struct dt_shared_region *region = map->region;
    size_t index = (size_t)from * (size_t)region->ranks + (size_t)to;
    char *at = (char *)map->region + pipes_at(region->ranks) + index * pipe_bytes(region->capacity);
    return (struct dt_shared_pipe *)(void *)at;
}

size_t dt_shared_room(const struct dt_shared_map *map, int to)
{
    struct dt_shared_pipe *pipe = pipe_of(map, map->rank, to);
    uint64_t held = atomic_load_explicit(&pipe->written, memory_order_relaxed) -
                    atomic_load_explicit(&pipe->read, memory_order_acquire);
    return map->region->capacity - (size_t)held;
}

size_t dt_shared_ready(const struct dt_shared_map *map, int from)
{
    struct dt_shared_pipe *pipe = pipe_of(map, from, map->rank);
    return (size_t)(atomic_load_explicit(&pipe->written, memory_order_acquire) -
                    atomic_load_explicit(&pipe->read, memory_order_relaxed));
}

size_t dt_shared_write(const struct dt_shared_map *map, int to, const void *data, size_t bytes)
{
    struct dt_shared_pipe *pipe = pipe_of(map, map->rank, to);
    size_t capacity = map->region->capacity, room = dt_shared_room(map, to);
    uint64_t written = atomic_load_explicit(&pipe->written, memory_order_relaxed);
    size_t at = (size_t)written & (capacity - 1);
    bytes = bytes < room ? bytes : room;
    if (bytes == 0)
        return 0;
    size_t first = bytes < capacity - at ? bytes : capacity - at;
    memcpy(pipe->data + at, data, first);
    memcpy(pipe->data, (const char *)data + first, bytes - first);
    atomic_store_explicit(&pipe->written, written + bytes, memory_order_release);
    return bytes;
}

size_t dt_shared_read(const struct dt_shared_map *map, int from, void *data, size_t bytes)
{
    struct dt_shared_pipe *pipe = pipe_of(map, from, map->rank);
    size_t capacity = map->region->capacity, ready = dt_shared_ready(map, from);
    uint64_t read = atomic_load_explicit(&pipe->read, memory_order_relaxed);
    size_t at = (size_t)read & (capacity - 1);
    bytes = bytes < ready ? bytes : ready;
    if (bytes == 0)
        return 0;
    size_t first = bytes < capacity - at ? bytes : capacity - at;
    memcpy(data, pipe->data + at, first);
    memcpy((char *)data + first, pipe->data, bytes - first);
    atomic_store_explicit(&pipe->read, read + bytes, memory_order_release);
    return bytes;
}

void dt_shared_ring(const struct dt_shared_map *map, int rank)
{
    struct dt_shared_rank *to = &map->region->rank[rank];
    atomic_fetch_add(&to->bell, 1);
    if (atomic_load(&to->asleep) != 0)
        syscall(SYS_futex, &to->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

uint32_t dt_shared_announce(const struct dt_shared_map *map)
{
    struct dt_shared_rank *own = &map->region->rank[map->rank];
    atomic_store(&own->asleep, 1);
    return atomic_load(&own->bell);
}

bool dt_shared_sleep(const struct dt_shared_map *map, uint32_t announced, int64_t ns)
{
    struct dt_shared_rank *own = &map->region->rank[map->rank];
    struct timespec most = {.tv_sec = ns / DT_NS_PER_SECOND, .tv_nsec = ns % DT_NS_PER_SECOND};
    long code = syscall(SYS_futex, &own->bell, FUTEX_WAIT, announced, &most, NULL, 0);
    bool rung = code == 0 || errno != ETIMEDOUT;
    dt_shared_rise(map);
    return rung;
}

void dt_shared_rise(const struct dt_shared_map *map)
{
    atomic_store(&map->region->rank[map->rank].asleep, 0);
}

/* A process descriptor is readable once the process has ended, also before its parent waits for it. */
static bool process_gone(int pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return errno == ESRCH || (errno == ENOSYS && kill(pid, 0) != 0 && errno == ESRCH);
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    bool gone = poll(&ended, 1, 0) > 0;
    close(fd);
    return gone;
}

void dt_shared_fail(const struct dt_shared_map *map)
{
    atomic_store(&map->region->rank[map->rank].state, DT_SHARED_FAILED);
    for (int i = 0; i < map->region->ranks; i++)
        if (i != map->rank)
            dt_shared_ring(map, i);
}

bool dt_shared_failed(const struct dt_shared_map *map, int rank, int *pid)
{
    struct dt_shared_rank *peer = &map->region->rank[rank];
    int state = atomic_load(&peer->state);
    *pid = atomic_load(&peer->pid);
    if (state == DT_SHARED_HERE &&
        process_gone(*pid)) /* it may have left and then ended in between */
        return atomic_load(&peer->state) != DT_SHARED_LEFT;
    return state == DT_SHARED_FAILED;
}

bool dt_shared_gone(const struct dt_shared_map *map, int rank, int *pid)
{
    bool failed = dt_shared_failed(map, rank, pid);
    return failed || atomic_load(&map->region->rank[rank].state) == DT_SHARED_LEFT;
}
