/* SPDX-License-Identifier: MIT */
/* Device memory: a memfd a device, mapped twice. The host knows addresses of a mapping it
 * may not touch; what runs on streams uses the other, of which only the pages of blocks can
 * be touched. A block ends (rounded to 256 bytes) where its pages end, and a page that can
 * not be touched follows. */
#include "tests/fake_cuda/fake_cuda_int.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define BIG  ((int64_t)2 << 20) /* what a driver hands out at least */

struct fake_device fake_devices[FAKE_DEVICES];

struct pinned {
    struct pinned *next;
    char *at;
    size_t bytes;
};
static struct pinned *pinned;

void fake_devices_init(void)
{
    for (int i = 0; i < fake_settings.devices; i++) {
        struct fake_device *device = &fake_devices[i];
        *device =
            (struct fake_device){.index = i, .fd = memfd_create("fake-cuda-device", MFD_CLOEXEC)};
        device->arena = (size_t)fake_settings.memory * 4 / PAGE * PAGE + 16 * PAGE;
        if (device->fd < 0 || ftruncate(device->fd, (off_t)device->arena) != 0)
            abort();
        int flags = MAP_SHARED | MAP_NORESERVE;
        device->host = mmap(NULL, device->arena, PROT_NONE, flags, device->fd, 0);
        device->alias = mmap(NULL, device->arena, PROT_NONE, flags, device->fd, 0);
        if (device->host == MAP_FAILED || device->alias == MAP_FAILED)
            abort();
    }
}

void fake_devices_fini(void)
{
    for (int i = 0; i < FAKE_DEVICES; i++) {
        struct fake_device *device = &fake_devices[i];
        if (device->host == NULL)
            continue;
        while (device->blocks != NULL) {
            struct fake_block *block = device->blocks;
            device->blocks = block->next;
            free(block);
        }
        munmap(device->host, device->arena);
        munmap(device->alias, device->arena);
        close(device->fd);
        *device = (struct fake_device){0};
    }
}

/* Bytes as a driver takes them: large blocks by 2 MiB, small ones share such. */
static int64_t charge(const struct fake_device *device)
{
    return device->big + (device->small + BIG - 1) / BIG * BIG +
           (device->context ? fake_settings.context : 0);
}

static void account(struct fake_device *device)
{
    atomic_store(fake_box_mine(fake_box, device->index), charge(device));
}

static void add(struct fake_device *device, size_t bytes, int sign)
{
    int64_t size = (int64_t)(bytes + 511) / 512 * 512;
    if (size >= BIG / 2)
        device->big += sign * ((size + BIG - 1) / BIG * BIG);
    else
        device->small += sign * size;
}

/* The first gap from the hint on, then from the start: what was freed stays
 * unused as long as may be. */
static char *find_gap(struct fake_device *device, size_t length, struct fake_block ***link)
{
    for (int turn = 0; turn < 2; turn++) {
        char *from = device->host + PAGE + (turn == 0 ? device->hint : 0);
        for (struct fake_block **at = &device->blocks;; at = &(*at)->next) {
            char *end = *at != NULL ? (*at)->pages : device->host + device->arena;
            if (from + length + PAGE <= end) {
                *link = at;
                return from;
            }
            if (*at == NULL)
                break;
            char *after = (*at)->pages + (*at)->length + PAGE;
            from = after > from ? after : from;
        }
    }
    return NULL;
}

static size_t poisoned(size_t length)
{
    return (int64_t)length < fake_settings.poison ? length : (size_t)fake_settings.poison;
}

cudaError_t fake_allocate(struct fake_device *device, size_t bytes, bool window, void **memory)
{
    size_t rounded = (bytes + 255) / 256 * 256, length = (rounded + PAGE - 1) / PAGE * PAGE;
    struct fake_block **link = NULL, *block = malloc(sizeof *block);
    rounded = window ? length : rounded; /* windows begin where pages do */
    add(device, bytes, 1);
    int64_t others = fake_box_used(fake_box, device->index, (int)getpid());
    bool fits =
        bytes <= (size_t)fake_settings.memory && charge(device) + others <= fake_settings.memory;
    char *pages = fits && block != NULL ? find_gap(device, length, &link) : NULL;
    if (pages == NULL) {
        add(device, bytes, -1);
        free(block);
        return cudaErrorMemoryAllocation;
    }
    *block = (struct fake_block){.next = *link,
                                 .at = pages + (length - rounded),
                                 .pages = pages,
                                 .bytes = bytes,
                                 .length = length,
                                 .window = window};
    *link = block;
    device->hint = (size_t)(pages - device->host) + length;
    char *alias = device->alias + (pages - device->host);
    if (mprotect(alias, length, PROT_READ | PROT_WRITE) != 0)
        abort();
    memset(alias, 0xff, poisoned(length)); /* not a number, in every type */
    account(device);
    *memory = block->at;
    return cudaSuccess;
}

static cudaError_t give_back(void *memory)
{
    for (int i = 0; i < fake_settings.devices; i++)
        for (struct fake_block **at = &fake_devices[i].blocks; *at != NULL; at = &(*at)->next) {
            struct fake_block *block = *at;
            if (block->at != memory)
                continue;
            struct fake_device *device = &fake_devices[i];
            off_t offset = block->pages - device->host;
            mprotect(device->alias + offset, block->length, PROT_NONE);
            fallocate(device->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
                      (off_t)block->length);
            add(device, block->bytes, -1);
            *at = block->next;
            free(block);
            account(device);
            return cudaSuccess;
        }
    return cudaErrorInvalidValue;
}

struct fake_block *fake_block_at(const void *memory, size_t bytes, struct fake_device **device)
{
    const char *from = memory;
    for (int i = 0; i < fake_settings.devices; i++)
        for (struct fake_block *at = fake_devices[i].blocks; at != NULL; at = at->next)
            if (from >= at->at && from + bytes <= at->at + at->bytes) {
                *device = &fake_devices[i];
                return at;
            }
    return NULL;
}

bool fake_is_device(const void *memory)
{
    const char *at = memory;
    for (int i = 0; i < fake_settings.devices; i++)
        if (at >= fake_devices[i].host && at < fake_devices[i].host + fake_devices[i].arena)
            return true;
    return false;
}

bool fake_pinned(const void *memory, size_t bytes)
{
    const char *from = memory;
    for (struct pinned *at = pinned; at != NULL; at = at->next)
        if (from >= at->at && from + bytes <= at->at + at->bytes)
            return true;
    return false;
}

void *fake_see(const struct fake_device *device, const void *memory, size_t bytes)
{
    struct fake_device *owner = NULL;
    void *seen = NULL;
    fake_lock();
    if (fake_block_at(memory, bytes, &owner) != NULL) {
        if (device == NULL || owner == device)
            seen = owner->alias + ((const char *)memory - owner->host);
        else
            fake_complain("device %d has no access to memory of device %d", device->index,
                          owner->index);
    } else if (fake_pinned(memory, bytes)) {
        seen = (void *)(uintptr_t)memory;
    } else {
        fake_complain("device %d: %zu bytes at %p are no memory of its",
                      device ? device->index : -1, bytes, memory);
    }
    fake_unlock();
    return seen;
}

const void *dt_fake_cuda_alias(const void *memory)
{
    return fake_is_device(memory) ? fake_see(NULL, memory, 1) : NULL;
}

int64_t dt_fake_cuda_used(int device)
{
    fake_lock();
    int64_t bytes = charge(&fake_devices[device]);
    fake_unlock();
    return bytes;
}

int dt_fake_cuda_blocks(int device)
{
    int count = 0;
    fake_lock();
    for (const struct fake_block *at = fake_devices[device].blocks; at != NULL; at = at->next)
        count++;
    fake_unlock();
    return count;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    if (error == cudaSuccess)
        error = fake_unsafe();
    if (error == cudaSuccess && memory == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && bytes == 0)
        *memory = NULL;
    else if (error == cudaSuccess)
        error = fake_allocate(&fake_devices[fake_current()], bytes, false, memory);
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaFree(void *memory)
{
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    if (error == cudaSuccess)
        error = fake_unsafe();
    struct fake_device *device = NULL;
    if (error == cudaSuccess && memory != NULL) {
        struct fake_block *block = fake_block_at(memory, 1, &device);
        error = block == NULL || block->at != memory ? cudaErrorInvalidValue : cudaSuccess;
        if (error == cudaSuccess)
            error = fake_wait_idle(device, NULL);
        if (error == cudaSuccess)
            error = give_back(memory);
    }
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *total)
{
    cudaError_t error = fake_enter(__func__);
    if (error == cudaSuccess) {
        fake_lock();
        struct fake_device *device = &fake_devices[fake_current()];
        int64_t others = fake_box_used(fake_box, device->index, (int)getpid());
        *total = (size_t)fake_settings.memory;
        *unused = (size_t)(fake_settings.memory - charge(device) - others);
        fake_unlock();
    }
    return fake_leave(error);
}

/* The context of a process on a device is made by its first call: it takes memory. */
void fake_context(struct fake_device *device)
{
    device->context = true;
    account(device);
}

static cudaError_t pin(const char *name, void **memory, size_t bytes)
{
    cudaError_t error = fake_enter(name);
    fake_lock();
    if (error == cudaSuccess)
        error = fake_unsafe();
    struct pinned *made = error == cudaSuccess ? malloc(sizeof *made) : NULL;
    size_t length = (bytes + PAGE - 1) / PAGE * PAGE;
    void *at = made != NULL && bytes > 0 ? aligned_alloc(PAGE, length) : NULL;
    if (at != NULL) {
        memset(at, 0xff, poisoned(length));
        *made = (struct pinned){.next = pinned, .at = at, .bytes = bytes};
        pinned = made;
        *memory = at;
    } else {
        free(made);
        error = error != cudaSuccess ? error : cudaErrorMemoryAllocation;
    }
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    (void)flags;
    return pin(__func__, memory, bytes);
}

cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    return pin(__func__, memory, bytes);
}

cudaError_t cudaFreeHost(void *memory)
{
    cudaError_t error = fake_enter(__func__);
    fake_lock();
    if (error == cudaSuccess)
        error = fake_unsafe();
    for (int i = 0; error == cudaSuccess && memory != NULL && i < fake_settings.devices; i++)
        error = fake_wait_idle(&fake_devices[i], NULL);
    struct pinned **at = &pinned;
    while (*at != NULL && (void *)(*at)->at != memory)
        at = &(*at)->next;
    if (error == cudaSuccess && memory != NULL && *at == NULL)
        error = cudaErrorInvalidValue;
    if (error == cudaSuccess && *at != NULL) {
        struct pinned *gone = *at;
        *at = gone->next;
        free(gone->at);
        free(gone);
    }
    fake_unlock();
    return fake_leave(error);
}

cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    (void)flags;
    cudaError_t error = fake_enter(__func__);
    if (error == cudaSuccess)
        *device = host;
    return fake_leave(error);
}
