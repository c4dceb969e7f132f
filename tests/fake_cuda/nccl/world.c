/* SPDX-License-Identifier: MIT */
#include "tests/fake_cuda/nccl/nccl_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct world *world_open(const char *path, int size, size_t *bytes)
{
    *bytes = sizeof(struct world) + (size_t)size * (size_t)size * sizeof(struct mailbox);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ftruncate(file, (off_t)*bytes) != 0)
        abort();
    void *at = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (at == MAP_FAILED)
        abort();
    return at;
}

static void rest(void)
{
    struct timespec time = {0, 50000};
    nanosleep(&time, NULL);
}

/* Two rows of seats: a rank is at most one meeting ahead of another, for it waits for all before
 * it goes to the next. */
bool world_meet(struct ncclComm *comm, const char *what, const int mine[2], int out[][2])
{
    uint64_t serial = ++comm->met;
    struct seat *seats = comm->world->seats[serial % 2];
    struct seat *own = &seats[comm->rank];
    snprintf(own->what, sizeof own->what, "%s", what);
    own->a = mine[0];
    own->b = mine[1];
    atomic_store(&own->serial, serial);
    for (int i = 0; i < comm->size; i++) {
        while (atomic_load(&seats[i].serial) < serial) {
            if (atomic_load(&comm->aborted))
                return false;
            rest();
        }
        if (strncmp(seats[i].what, what, sizeof own->what - 1) != 0) {
            fake_complain("nccl %s: rank %d came to %s where rank %d came to %s", comm->name,
                          comm->rank, what, i, seats[i].what);
            return false;
        }
        if (out != NULL) {
            out[i][0] = seats[i].a;
            out[i][1] = seats[i].b;
        }
    }
    return true;
}
