/* SPDX-License-Identifier: MIT */
/* shared_int - the memory shared by ranks of one host: a pipe for each ordered pair,
 * a bell for each rank */
#ifndef DT_KERNELS_COMM_SHARED_INT_H
#define DT_KERNELS_COMM_SHARED_INT_H

#include "base/status.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dt_shared_rank {
    alignas(64) _Atomic uint32_t bell; /* incremented on every event for the rank */
    _Atomic uint32_t asleep;
    _Atomic int state, pid;
};

struct dt_shared_region {
    uint64_t magic;
    int ranks;
    size_t capacity; /* bytes of a pipe, a power of two */
    struct dt_shared_rank rank[];
};

/* This rank's view of it. */
struct dt_shared_map {
    struct dt_shared_region *region;
    size_t bytes;
    int rank;
};

/* Maps the region and marks the rank as present; and the reverse. */
dt_status dt_shared_map(int fd, int rank, int ranks, struct dt_shared_map *map) DT_MUST_CHECK;
void dt_shared_unmap(struct dt_shared_map *map);

/* Move as many bytes as the pipe has room for, or holds; return their number. */
size_t dt_shared_write(const struct dt_shared_map *map, int to, const void *data, size_t bytes);
size_t dt_shared_read(const struct dt_shared_map *map, int from, void *data, size_t bytes);
size_t dt_shared_room(const struct dt_shared_map *map, int to);
size_t dt_shared_ready(const struct dt_shared_map *map, int from);

void dt_shared_ring(const struct dt_shared_map *map, int rank);

/* To sleep: announce, check once more for work, then sleep or rise. sleep returns false when the
 * bell did not ring for ns nanoseconds. */
uint32_t dt_shared_announce(const struct dt_shared_map *map);
bool dt_shared_sleep(const struct dt_shared_map *map, uint32_t announced, int64_t ns);
void dt_shared_rise(const struct dt_shared_map *map);

#endif
