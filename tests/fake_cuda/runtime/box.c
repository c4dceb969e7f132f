/* SPDX-License-Identifier: MIT */
/* State shared by the processes of one fake machine: bytes of each device used by each process, in
 * a mapped file. Bytes of a dead process are freed by the next count. */
#include "tests/fake_cuda/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct fake_box *fake_box;

struct fake_box *fake_box_open(const char *path)
{
    int file = -1;
    if (path[0] != 0) {
        file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (file < 0 || ftruncate(file, sizeof(struct fake_box)) != 0)
            abort();
    }
    int flags = file < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    void *at = mmap(NULL, sizeof(struct fake_box), PROT_READ | PROT_WRITE, flags, file, 0);
    if (file >= 0)
        close(file);
    if (at == MAP_FAILED)
        abort();
    return at;
}

static bool alive(int pid)
{
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return false;
    /* A zombie holds no memory. */
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return false;
    char *read = fgets(text, sizeof text, file);
    fclose(file);
    const char *state = read != NULL ? strrchr(text, ')') : NULL;
    return state == NULL || state[2] != 'Z';
}

int64_t fake_box_used(struct fake_box *box, int device, int not_pid)
{
    int64_t sum = 0;
    for (int i = 0; i < 64; i++) {
        struct fake_share *share = &box->use[device][i];
        int pid = atomic_load(&share->pid);
        if (pid == 0 || pid == not_pid)
            continue;
        if (alive(pid))
            sum += atomic_load(&share->bytes);
        else if (atomic_compare_exchange_strong(&share->pid, &pid, 0))
            atomic_store(&share->bytes, 0);
    }
    return sum;
}

_Atomic int64_t *fake_box_mine(struct fake_box *box, int device)
{
    int me = (int)getpid();
    for (int i = 0; i < 64; i++)
        if (atomic_load(&box->use[device][i].pid) == me)
            return &box->use[device][i].bytes;
    for (int i = 0; i < 64; i++) {
        int none = 0;
        if (atomic_compare_exchange_strong(&box->use[device][i].pid, &none, me)) {
            atomic_store(&box->use[device][i].bytes, 0);
            return &box->use[device][i].bytes;
        }
    }
    abort();
}

void fake_box_close(struct fake_box *box)
{
    int me = (int)getpid();
    for (int device = 0; device < FAKE_DEVICES; device++)
        for (int i = 0; i < 64; i++) {
            int pid = me;
            struct fake_share *share = &box->use[device][i];
            if (atomic_load(&share->pid) == me) {
                atomic_store(&share->bytes, 0);
                atomic_compare_exchange_strong(&share->pid, &pid, 0);
            }
        }
    munmap(box, sizeof *box);
}
