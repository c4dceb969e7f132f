/* SPDX-License-Identifier: MIT */
/* Every call is an exchange of pieces. A piece travels through the pipe of its pair behind a
 * header with the comm, the number of the call on it, and the index among the pieces of the call
 * between the two. The pipe is small, so a piece makes progress whenever one of the two ranks runs
 * this code (a post, a wait, a poll). An arriving piece is written to its destination if its
 * receive is posted; until then it stays in the pipe, unless this rank waits for a piece behind
 * it: then it is set aside. */
#include "kernels/shared.h"
#include "base/clock.h"
#include "base/read.h"
#include "base/rng.h"
#include "kernels/comm.h"
#include "kernels/comm/comm_int.h"
#include "kernels/comm/shared_int.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum dt_shared_state { DT_SHARED_AWAITED, DT_SHARED_HERE, DT_SHARED_LEFT, DT_SHARED_FAILED };

/* One writer, one reader; counters never wrap. */
struct dt_shared_pipe {
    alignas(64) _Atomic uint64_t written;
    alignas(64) _Atomic uint64_t read;
    alignas(64) char data[];
};

/* A pipe is a ring of bytes between two counters, each written by one side only. Sleeping is a
 * futex on the rank's bell: the ringer increments the bell, then checks whether the rank sleeps;
 * the sleeper does it in the other order, so at least one of them sees the other. */

#define MAGIC      UINT64_C(0x6474736872643031) /* "dtshrd01" */
#define MOST_BYTES ((size_t)64 << 20)           /* all pipes together */

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
    DT_CLEANUP(dt_close_at) int made = memfd_create("dittune", 0);
    if (made < 0)
        return dt_fail(DT_ELIB, "no shared memory: %s", strerror(errno));
    if (ftruncate(made, (off_t)region_bytes(ranks)) != 0 ||
        pwrite(made, &header, sizeof header, 0) != (ssize_t)sizeof header)
        return dt_fail(DT_ELIB, "no %zu bytes of shared memory: %s", region_bytes(ranks),
                       strerror(errno));
    *fd = made;
    made = -1;
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

/* A process descriptor is readable once the process has ended, also before its
 * parent waits for it. */
static bool process_gone(int pid)
{
    DT_CLEANUP(dt_close_at) int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return errno == ESRCH || (errno == ENOSYS && kill(pid, 0) != 0 && errno == ESRCH);
    struct pollfd ended = {.fd = fd, .events = POLLIN};
    return poll(&ended, 1, 0) > 0;
}

/* Tells all ranks that this one has failed. */
static void shared_fail(const struct dt_shared_map *map)
{
    atomic_store(&map->region->rank[map->rank].state, DT_SHARED_FAILED);
    for (int i = 0; i < map->region->ranks; i++)
        if (i != map->rank)
            dt_shared_ring(map, i);
}

/* The rank has failed, or its process ended before it freed its comm. *pid is its process. */
static bool shared_failed(const struct dt_shared_map *map, int rank, int *pid)
{
    struct dt_shared_rank *peer = &map->region->rank[rank];
    int state = atomic_load(&peer->state);
    *pid = atomic_load(&peer->pid);
    if (state == DT_SHARED_HERE &&
        process_gone(*pid)) /* it may have left and then ended in between */
        return atomic_load(&peer->state) != DT_SHARED_LEFT;
    return state == DT_SHARED_FAILED;
}

/* The rank has failed, or has freed its comm: no more data comes from it, which is an error only
 * for ranks that expect some. */
static bool shared_gone(const struct dt_shared_map *map, int rank, int *pid)
{
    bool failed = shared_failed(map, rank, pid);
    return failed || atomic_load(&map->region->rank[rank].state) == DT_SHARED_LEFT;
}

/* ---- moves the pieces of exchanges through the pipes */

/* Header of a piece. */
struct dt_shared_frame {
    uint64_t comm, call, index, bytes;
};

struct dt_shared_piece {
    struct dt_shared_piece *next;
    struct dt_shared_transfer *transfer;
    struct dt_shared_frame frame;
    char *at;
    size_t done;
    bool announced; /* its frame is in the pipe */
};

/* A posted exchange. */
struct dt_shared_transfer {
    struct dt_shared_transfer *next;
    int open, room, count;
    struct dt_shared_piece pieces[];
};

/* A piece that arrived before its receive was posted. */
struct dt_shared_aside {
    struct dt_shared_aside *next;
    struct dt_shared_frame frame;
    size_t done;
    char data[];
};

struct dt_shared_queue {
    struct dt_shared_piece *first, **end;
};

struct dt_shared_peer {
    struct dt_shared_queue out, in;
    bool arriving; /* frame is read, its bytes not completely */
    /* for a posted receive, or set aside, or (both NULL) in the pipe */
    struct dt_shared_frame frame;
    struct dt_shared_piece *into;
    struct dt_shared_aside *aside, *kept;
};

/* State of a rank, shared by its comms. */
struct dt_shared_root {
    struct dt_shared_map map;
    int users;
    bool broken;
    int64_t looked_ns; /* time of the last check for ended ranks */
    struct dt_shared_transfer *idle, *posted;
    struct dt_message *lists; /* two lists with one piece for each rank */
    struct dt_shared_peer peers[];
};

#define PATIENCE_NS (60 * DT_NS_PER_SECOND)
#define LOOK_NS     (DT_NS_PER_SECOND / 5) /* between checks for ranks that have ended */

enum { SPINS = 400 }; /* some tens of microseconds */

static dt_status shared_root_new(int fd, int rank, int ranks, struct dt_shared_root **out)
{
    struct dt_shared_map map;
    DT_TRY(dt_shared_map(fd, rank, ranks, &map));
    struct dt_shared_root *root = calloc(1, sizeof *root + (size_t)ranks * sizeof root->peers[0]);
    struct dt_message *lists = calloc(2 * (size_t)ranks, sizeof *lists);
    if (root == NULL || lists == NULL) {
        free(root);
        free(lists);
        dt_shared_unmap(&map);
        return dt_fail(DT_ENOMEM, "out of memory for a communicator of %d ranks", ranks);
    }
    root->map = map;
    root->lists = lists;
    for (int i = 0; i < ranks; i++) {
        root->peers[i].out.end = &root->peers[i].out.first;
        root->peers[i].in.end = &root->peers[i].in.first;
    }
    *out = root;
    return DT_OK;
}

static void free_transfers(struct dt_shared_transfer *first)
{
    while (first != NULL) {
        struct dt_shared_transfer *next = first->next;
        free(first);
        first = next;
    }
}

static void shared_root_free(struct dt_shared_root *root)
{
    int ranks = root->map.region->ranks;
    dt_shared_unmap(&root->map);
    for (int i = 0; i < ranks; i++) {
        struct dt_shared_peer *peer = &root->peers[i];
        while (peer->kept != NULL) {
            struct dt_shared_aside *next = peer->kept->next;
            free(peer->kept);
            peer->kept = next;
        }
        free(peer->aside);
    }
    free_transfers(root->idle);
    free_transfers(root->posted);
    free(root->lists);
    free(root);
}

/* Makes a transfer with room for n pieces, owned by the root until the wait; pieces are enqueued,
 * then progress moves them. */
static dt_status shared_transfer_new(struct dt_shared_root *root, int n,
                                     struct dt_shared_transfer **out)
{
    struct dt_shared_transfer **at = &root->idle, *transfer = NULL;
    while (*at != NULL && (*at)->room < n)
        at = &(*at)->next;
    if (*at != NULL) {
        transfer = *at;
        *at = transfer->next;
    } else {
        transfer = malloc(sizeof *transfer + (size_t)n * sizeof transfer->pieces[0]);
        if (transfer == NULL)
            return dt_fail(DT_ENOMEM, "out of memory for an exchange of %d pieces", n);
        transfer->room = n;
    }
    transfer->open = transfer->count = 0;
    transfer->next = root->posted;
    root->posted = transfer;
    *out = transfer;
    return DT_OK;
}

static bool same_frame(const struct dt_shared_frame *a, const struct dt_shared_frame *b)
{
    return a->comm == b->comm && a->call == b->call && a->index == b->index;
}

static void pop_piece(struct dt_shared_queue *queue, struct dt_shared_piece **at)
{
    struct dt_shared_piece *piece = *at;
    *at = piece->next;
    if (queue->end == &piece->next)
        queue->end = at;
    piece->transfer->open--;
}

/* Takes the piece from those set aside, or arriving there. */
static bool take_aside(struct dt_shared_peer *peer, struct dt_shared_piece *piece)
{
    for (struct dt_shared_aside **at = &peer->kept; *at != NULL; at = &(*at)->next) {
        struct dt_shared_aside *aside = *at;
        if (!same_frame(&aside->frame, &piece->frame) || aside->frame.bytes != piece->frame.bytes)
            continue;
        memcpy(piece->at, aside->data, aside->done);
        piece->done = aside->done;
        *at = aside->next;
        free(aside);
        return true;
    }
    struct dt_shared_aside *aside = peer->aside;
    if (aside != NULL && same_frame(&aside->frame, &piece->frame) &&
        aside->frame.bytes == piece->frame.bytes) {
        memcpy(piece->at, aside->data, aside->done);
        piece->done = aside->done;
        peer->into = piece;
        peer->aside = NULL;
        free(aside);
    }
    return false;
}

static void shared_enqueue(struct dt_shared_root *root, struct dt_shared_transfer *transfer,
                           const struct dt_shared_frame *frame, int peer, bool out, void *at)
{
    struct dt_shared_queue *queue = out ? &root->peers[peer].out : &root->peers[peer].in;
    struct dt_shared_piece *piece = &transfer->pieces[transfer->count++];
    *piece = (struct dt_shared_piece){.transfer = transfer, .frame = *frame, .at = at};
    if (!out && take_aside(&root->peers[peer], piece))
        return;
    transfer->open++;
    *queue->end = piece;
    queue->end = &piece->next;
}

static bool send_to(struct dt_shared_root *root, int to)
{
    struct dt_shared_queue *queue = &root->peers[to].out;
    const struct dt_shared_map *map = &root->map;
    bool moved = false;
    while (queue->first != NULL) {
        struct dt_shared_piece *piece = queue->first;
        size_t bytes = (size_t)piece->frame.bytes;
        if (!piece->announced) {
            if (dt_shared_room(map, to) < sizeof piece->frame)
                break;
            dt_shared_write(map, to, &piece->frame, sizeof piece->frame);
            piece->announced = moved = true;
        }
        size_t n = dt_shared_write(map, to, piece->at + piece->done, bytes - piece->done);
        piece->done += n;
        moved |= n > 0;
        if (piece->done < bytes)
            break;
        pop_piece(queue, &queue->first);
    }
    return moved;
}

/* Reads the next frame and finds the destination of its bytes. */
static dt_status meet_peer(struct dt_shared_root *root, int from)
{
    struct dt_shared_peer *peer = &root->peers[from];
    if (!peer->arriving) {
        if (dt_shared_ready(&root->map, from) < sizeof peer->frame)
            return DT_OK;
        dt_shared_read(&root->map, from, &peer->frame, sizeof peer->frame);
        peer->arriving = true;
    }
    if (peer->into != NULL || peer->aside != NULL)
        return DT_OK;
    struct dt_shared_piece *piece = peer->in.first;
    while (piece != NULL && !same_frame(&piece->frame, &peer->frame))
        piece = piece->next;
    if (piece != NULL && piece->frame.bytes != peer->frame.bytes)
        return dt_fail(DT_ELIB, "rank %d sent %llu bytes where rank %d expected %llu", from,
                       (unsigned long long)peer->frame.bytes, root->map.rank,
                       (unsigned long long)piece->frame.bytes);
    peer->into = piece;
    return DT_OK;
}

/* Called when all bytes of a piece have arrived. */
static void note_arrived(struct dt_shared_peer *peer)
{
    peer->arriving = false;
    if (peer->into != NULL) {
        struct dt_shared_piece **at = &peer->in.first;
        while (*at != peer->into)
            at = &(*at)->next;
        pop_piece(&peer->in, at);
        peer->into = NULL;
    } else {
        peer->aside->next = peer->kept;
        peer->kept = peer->aside;
        peer->aside = NULL;
    }
}

static dt_status receive_from(struct dt_shared_root *root, int from, bool *moved)
{
    struct dt_shared_peer *peer = &root->peers[from];
    for (;;) {
        bool before = peer->arriving;
        DT_TRY(meet_peer(root, from));
        *moved |= peer->arriving && !before;
        if (!peer->arriving || (peer->into == NULL && peer->aside == NULL))
            return DT_OK;
        char *to = peer->into != NULL ? peer->into->at : peer->aside->data;
        size_t *done = peer->into != NULL ? &peer->into->done : &peer->aside->done;
        size_t bytes = (size_t)peer->frame.bytes;
        size_t n = dt_shared_read(&root->map, from, to + *done, bytes - *done);
        *done += n;
        *moved |= n > 0;
        if (*done < bytes)
            return DT_OK;
        note_arrived(peer);
    }
}

/* Moves all bytes that can be moved now. */
static dt_status shared_progress(struct dt_shared_root *root, bool *moved)
{
    int ranks = root->map.region->ranks;
    *moved = false;
    if (root->broken)
        return dt_fail(DT_ELIB, "an exchange has failed before: the communicator is lost");
    for (int i = 1; i < ranks; i++) {
        int peer = (root->map.rank + i) % ranks;
        bool here = send_to(root, peer);
        dt_status status = receive_from(root, peer, &here);
        root->broken = status < 0;
        if (status < 0)
            return status;
        if (here)
            dt_shared_ring(&root->map, peer);
        *moved |= here;
    }
    return DT_OK;
}

static bool open_to(const struct dt_shared_queue *queue, const struct dt_shared_transfer *transfer)
{
    for (const struct dt_shared_piece *piece = queue->first; piece != NULL; piece = piece->next)
        if (piece->transfer == transfer)
            return true;
    return false;
}

/* Sets aside pieces in front of the awaited ones whose receive is not posted yet. */
static dt_status set_aside(struct dt_shared_root *root, const struct dt_shared_transfer *transfer,
                           bool *moved)
{
    for (int i = 0; i < root->map.region->ranks; i++) {
        struct dt_shared_peer *peer = &root->peers[i];
        if (!peer->arriving || peer->into != NULL || peer->aside != NULL ||
            !open_to(&peer->in, transfer))
            continue;
        peer->aside = malloc(sizeof *peer->aside + (size_t)peer->frame.bytes);
        if (peer->aside == NULL)
            return dt_fail(DT_ENOMEM, "out of memory for a message of %llu bytes",
                           (unsigned long long)peer->frame.bytes);
        *peer->aside = (struct dt_shared_aside){.frame = peer->frame};
        *moved = true;
    }
    return DT_OK;
}

/* Finds a peer of an outstanding piece that has ended, after all its data were taken. */
static dt_status look_for_the_dead(struct dt_shared_root *root,
                                   const struct dt_shared_transfer *transfer)
{
    bool moved = false;
    for (int i = 0; i < root->map.region->ranks; i++) {
        int pid;
        if (i == root->map.rank || !shared_gone(&root->map, i, &pid))
            continue;
        DT_TRY(shared_progress(root, &moved));
        if (moved)
            return DT_OK;
        if (atomic_load(&root->map.region->rank[i].state) == DT_SHARED_FAILED)
            return dt_fail(DT_ETIMEOUT, "rank %d (process %d) has failed", i, pid);
        if (open_to(&root->peers[i].in, transfer) || open_to(&root->peers[i].out, transfer))
            return dt_fail(DT_EDEAD, "rank %d (process %d) ended in the middle of an exchange", i,
                           pid);
    }
    return DT_OK;
}

static dt_status sleep_once(struct dt_shared_root *root, const struct dt_shared_transfer *transfer,
                            int64_t *since)
{
    uint32_t announced = dt_shared_announce(&root->map);
    bool moved = false;
    dt_status status = shared_progress(root, &moved);
    if (status < 0 || moved || transfer->open == 0) {
        dt_shared_rise(&root->map);
        return status;
    }
    int64_t now = dt_clock_ns();
    *since = *since == 0 ? now : *since;
    if (now - *since > PATIENCE_NS) {
        dt_shared_rise(&root->map);
        return dt_fail(DT_ETIMEOUT, "no end of an exchange after %lld s: a rank is hung or dead",
                       (long long)(PATIENCE_NS / DT_NS_PER_SECOND));
    }
    return dt_shared_sleep(&root->map, announced, LOOK_NS) ? DT_OK
                                                           : look_for_the_dead(root, transfer);
}

static dt_status await_transfer(struct dt_shared_root *root,
                                const struct dt_shared_transfer *transfer)
{
    int64_t since = 0;
    for (int idle = 0;; idle++) {
        bool moved = false;
        DT_TRY(shared_progress(root, &moved));
        if (transfer->open == 0)
            return DT_OK;
        if (!moved)
            DT_TRY(set_aside(root, transfer, &moved));
        if (moved)
            since = idle = 0;
        else if (idle > SPINS)
            DT_TRY(sleep_once(root, transfer, &since));
    }
}

/* Waits until all its pieces have moved; it is idle then. */
static dt_status shared_wait(struct dt_shared_root *root, struct dt_shared_transfer *transfer)
{
    dt_status status = await_transfer(root, transfer);
    if (status < 0) {
        root->broken = true;
        return status;
    }
    struct dt_shared_transfer **at = &root->posted;
    while (*at != transfer)
        at = &(*at)->next;
    *at = transfer->next;
    transfer->next = root->idle;
    root->idle = transfer;
    return DT_OK;
}

#define CHECK_NS 20000000

/* This rank's view of a comm. */
struct seat {
    struct dt_shared_root *root;
    uint64_t id, calls;
    int under_way;
    int members[]; /* ranks of the root */
};

static const struct dt_comm_ops ops;

static dt_status join_ranks(struct dt_shared_root *root, uint64_t id, const int members[], int size,
                            int rank, struct dt_comm **out)
{
    struct dt_comm *comm = NULL;
    size_t bytes = (size_t)size * sizeof members[0];
    DT_TRY(dt_comm_make(&ops, sizeof(struct seat) + bytes, &comm));
    struct seat *seat = comm->state;
    seat->root = root;
    seat->id = id;
    memcpy(seat->members, members, bytes);
    comm->rank = rank;
    comm->size = size;
    root->users++;
    *out = comm;
    return DT_OK;
}

static void shared_release(struct dt_comm *comm)
{
    struct seat *seat = comm->state;
    seat->root->broken |= seat->under_way > 0;
    if (--seat->root->users == 0)
        shared_root_free(seat->root);
    free(comm);
}

static int index_of(const struct dt_message pieces[], int at)
{
    int index = 0;
    for (int i = 0; i < at; i++)
        index += pieces[i].peer == pieces[at].peer;
    return index;
}

static dt_status copy_here(struct dt_comm *comm, void *to, const void *from, size_t bytes)
{
    (void)comm;
    memcpy(to, from, bytes);
    return DT_OK;
}

static dt_status shared_exchange(struct dt_comm *comm, const struct dt_pieces *pieces,
                                 struct dt_request *request)
{
    struct seat *seat = comm->state;
    struct dt_shared_transfer *transfer = NULL;
    DT_TRY(dt_comm_copy_own(comm, pieces, copy_here));
    DT_TRY(shared_transfer_new(seat->root, pieces->send_count + pieces->recv_count, &transfer));
    struct dt_shared_frame frame = {.comm = seat->id, .call = seat->calls++};
    for (int pass = 0; pass < 2; pass++) {
        const struct dt_message *list = pass == 0 ? pieces->recvs : pieces->sends;
        for (int i = 0; i < (pass == 0 ? pieces->recv_count : pieces->send_count); i++) {
            if (list[i].peer == comm->rank)
                continue;
            frame.index = (uint64_t)index_of(list, i);
            frame.bytes = list[i].bytes;
            shared_enqueue(seat->root, transfer, &frame, seat->members[list[i].peer], pass == 1,
                           list[i].at);
        }
    }
    seat->under_way++;
    request->state[0] = transfer;
    bool moved;
    return shared_progress(seat->root, &moved);
}

static dt_status shared_wait_request(struct dt_comm *comm, struct dt_request *request)
{
    struct seat *seat = comm->state;
    DT_TRY(shared_wait(seat->root, request->state[0]));
    seat->under_way--;
    return DT_OK;
}

/* The next wait reports an error again. */
static void poll_once(struct dt_comm *comm)
{
    struct seat *seat = comm->state;
    bool moved;
    if (!seat->root->broken && shared_progress(seat->root, &moved) < 0)
        return;
}

static dt_status exchange_now(struct dt_comm *comm, const struct dt_pieces *pieces)
{
    struct dt_request request = {.bytes = 0};
    DT_TRY(shared_exchange(comm, pieces, &request));
    return shared_wait_request(comm, &request);
}

/* Dissemination barrier: messages to and from ranks 1, 2, 4, ... away (Hensgen et al. 1988). */
static dt_status shared_barrier(struct dt_comm *comm)
{
    char out = 0, in = 0;
    for (int away = 1; away < comm->size; away *= 2) {
        struct dt_message to = {(comm->rank + away) % comm->size, &out, 1};
        struct dt_message from = {(comm->rank + comm->size - away) % comm->size, &in, 1};
        DT_TRY(exchange_now(comm, &(struct dt_pieces){&to, &from, 1, 1}));
    }
    return DT_OK;
}

static dt_status shared_gather(struct dt_comm *comm, const void *send, void *recv, size_t bytes)
{
    struct dt_message own = {0, (void *)send, bytes};
    if (comm->rank != 0)
        return exchange_now(comm, &(struct dt_pieces){.sends = &own, .send_count = 1});
    dt_auto_free struct dt_message *all = calloc((size_t)comm->size, sizeof *all);
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to gather from %d ranks", comm->size);
    for (int i = 0; i < comm->size; i++)
        all[i] = (struct dt_message){i, (char *)recv + (size_t)i * bytes, bytes};
    return exchange_now(comm, &(struct dt_pieces){&own, all, 1, comm->size});
}

static dt_status shared_broadcast(struct dt_comm *comm, void *data, size_t bytes)
{
    struct dt_message from = {0, data, bytes};
    if (comm->rank != 0)
        return exchange_now(comm, &(struct dt_pieces){.recvs = &from, .recv_count = 1});
    dt_auto_free struct dt_message *all = calloc((size_t)comm->size, sizeof *all);
    if (all == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to tell %d ranks", comm->size);
    for (int i = 1; i < comm->size; i++)
        all[i - 1] = (struct dt_message){i, data, bytes};
    return exchange_now(comm, &(struct dt_pieces){.sends = all, .send_count = comm->size - 1});
}

static dt_status shared_alltoall(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                                 struct dt_request *request)
{
    struct seat *seat = comm->state;
    struct dt_message *sends = seat->root->lists, *recvs = sends + seat->root->map.region->ranks;
    for (int i = 0; i < comm->size; i++) {
        int peer = (comm->rank + i) % comm->size; /* not all to the same rank at once */
        sends[i] = (struct dt_message){peer, (char *)send + (size_t)peer * bytes, bytes};
        recvs[i] = (struct dt_message){peer, (char *)recv + (size_t)peer * bytes, bytes};
    }
    return shared_exchange(comm, &(struct dt_pieces){sends, recvs, comm->size, comm->size},
                           request);
}

static dt_status shared_shift(struct dt_comm *comm, const void *send, void *recv, size_t bytes,
                              struct dt_request *request)
{
    struct dt_message to = {(comm->rank + 1) % comm->size, (void *)send, bytes};
    struct dt_message from = {(comm->rank + comm->size - 1) % comm->size, recv, bytes};
    return shared_exchange(comm, &(struct dt_pieces){&to, &from, 1, 1}, request);
}

static dt_status shared_split(struct dt_comm *comm, int color, int key,
                              const struct dt_comm_config *config, struct dt_comm **out)
{
    struct seat *seat = comm->state;
    int mine[2] = {color, key}, rank = 0;
    dt_auto_free int *pairs = calloc((size_t)comm->size * 3, sizeof *pairs);
    (void)config;
    if (pairs == NULL)
        return dt_fail(DT_ENOMEM, "out of memory to split a communicator");
    int *members = pairs + (size_t)comm->size * 2;
    DT_TRY(shared_gather(comm, mine, pairs, sizeof mine));
    DT_TRY(shared_broadcast(comm, pairs, (size_t)comm->size * sizeof mine));
    int size = dt_comm_members(comm, pairs, color, members, &rank);
    for (int i = 0; i < size; i++)
        members[i] = seat->members[members[i]];
    uint64_t id = dt_rng_hash(seat->id, seat->calls, (uint64_t)(uint32_t)color);
    return join_ranks(seat->root, id, members, size, rank, out);
}

dt_status dt_comm_shared(int fd, int rank, int ranks, struct dt_comm **comm)
{
    struct dt_shared_root *root = NULL;
    dt_auto_free int *members = calloc((size_t)ranks, sizeof *members);
    if (members == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %d ranks", ranks);
    for (int i = 0; i < ranks; i++)
        members[i] = i;
    DT_TRY(shared_root_new(fd, rank, ranks, &root));
    dt_status status = join_ranks(root, 1, members, ranks, rank, comm);
    if (status != DT_OK)
        shared_root_free(root);
    return status;
}

/* The failure of any rank fails all, since a rank that computes may be waiting for it on a device.
 * A rank that has finished and left has not failed. */
static dt_status shared_check(struct dt_comm *comm)
{
    struct dt_shared_root *root = ((struct seat *)comm->state)->root;
    int64_t now = dt_clock_ns();
    if (now - root->looked_ns < CHECK_NS)
        return DT_OK;
    root->looked_ns = now;
    for (int i = 0; i < root->map.region->ranks; i++) {
        int pid;
        if (i != root->map.rank && shared_failed(&root->map, i, &pid))
            return dt_fail(DT_ETIMEOUT, "rank %d (process %d) has failed or ended", i, pid);
    }
    return DT_OK;
}

static dt_status tell_failure(struct dt_comm *comm, int64_t deadline_ns)
{
    (void)deadline_ns;
    shared_fail(&((struct seat *)comm->state)->root->map);
    return DT_OK;
}

static const struct dt_comm_ops ops = {
    .name = "shared",
    .split = shared_split,
    .free = shared_release,
    .barrier = shared_barrier,
    .gather = shared_gather,
    .broadcast = shared_broadcast,
    .alltoall = shared_alltoall,
    .shift = shared_shift,
    .exchange = shared_exchange,
    .wait = shared_wait_request,
    .poll = poll_once,
    .check = shared_check,
    .abort = tell_failure,
};
