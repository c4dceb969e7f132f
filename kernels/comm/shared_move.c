/* SPDX-License-Identifier: MIT */
#include "kernels/comm/shared_move_int.h"

#include "base/clock.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (60 * DT_NS_PER_SECOND)
#define LOOK_NS     (DT_NS_PER_SECOND / 5) /* between checks for ranks that have ended */

enum { SPINS = 400 }; /* some tens of microseconds */

dt_status dt_shared_root_new(int fd, int rank, int ranks, struct dt_shared_root **out)
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

void dt_shared_root_free(struct dt_shared_root *root)
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

dt_status dt_shared_transfer_new(struct dt_shared_root *root, int n,
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

static bool same(const struct dt_shared_frame *a, const struct dt_shared_frame *b)
{
    return a->comm == b->comm && a->call == b->call && a->index == b->index;
}

static void pop(struct dt_shared_queue *queue, struct dt_shared_piece **at)
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
        if (!same(&aside->frame, &piece->frame) || aside->frame.bytes != piece->frame.bytes)
            continue;
        memcpy(piece->at, aside->data, aside->done);
        piece->done = aside->done;
        *at = aside->next;
        free(aside);
        return true;
    }
    struct dt_shared_aside *aside = peer->aside;
    if (aside != NULL && same(&aside->frame, &piece->frame) &&
        aside->frame.bytes == piece->frame.bytes) {
        memcpy(piece->at, aside->data, aside->done);
        piece->done = aside->done;
        peer->into = piece;
        peer->aside = NULL;
        free(aside);
    }
    return false;
}

void dt_shared_enqueue(struct dt_shared_root *root, struct dt_shared_transfer *transfer,
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
        pop(queue, &queue->first);
    }
    return moved;
}

/* Reads the next frame and finds the destination of its bytes. */
static dt_status meet(struct dt_shared_root *root, int from)
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
    while (piece != NULL && !same(&piece->frame, &peer->frame))
        piece = piece->next;
    if (piece != NULL && piece->frame.bytes != peer->frame.bytes)
        return dt_fail(DT_ELIB, "rank %d sent %llu bytes where rank %d expected %llu", from,
                       (unsigned long long)peer->frame.bytes, root->map.rank,
                       (unsigned long long)piece->frame.bytes);
    peer->into = piece;
    return DT_OK;
}

/* Called when all bytes of a piece have arrived. */
static void arrived(struct dt_shared_peer *peer)
{
    peer->arriving = false;
    if (peer->into != NULL) {
        struct dt_shared_piece **at = &peer->in.first;
        while (*at != peer->into)
            at = &(*at)->next;
        pop(&peer->in, at);
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
        DT_TRY(meet(root, from));
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
        arrived(peer);
    }
}

dt_status dt_shared_progress(struct dt_shared_root *root, bool *moved)
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
        if (i == root->map.rank || !dt_shared_gone(&root->map, i, &pid))
            continue;
        DT_TRY(dt_shared_progress(root, &moved));
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
    dt_status status = dt_shared_progress(root, &moved);
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

static dt_status await(struct dt_shared_root *root, const struct dt_shared_transfer *transfer)
{
    int64_t since = 0;
    for (int idle = 0;; idle++) {
        bool moved = false;
        DT_TRY(dt_shared_progress(root, &moved));
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

dt_status dt_shared_wait(struct dt_shared_root *root, struct dt_shared_transfer *transfer)
{
    dt_status status = await(root, transfer);
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
