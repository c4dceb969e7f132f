/* SPDX-License-Identifier: MIT */
/* The processor as a device: its memory is the host's and its queue is the calling thread, so every call is done on
 * return. */
#include "kernels/cpu/cpu_int.h"

#include "base/clock.h"
#include "base/host.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN 256
#define HUGE  (2LL << 20) /* bytes of a huge page */

struct cpu_device {
    struct dt_device base;
    int64_t marks[DT_MARKS_MOST];
};

dt_status dt_cpu_open(int index, struct dt_device **device)
{
    struct cpu_device *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a device");
    made->base = (struct dt_device){&dt_compute_cpu, index};
    *device = &made->base;
    return DT_OK;
}

int dt_cpu_count(void)
{
    return 1;
}

const char *dt_cpu_model(struct dt_device *device)
{
    (void)device;
    return dt_host_cpu();
}

dt_status dt_cpu_memory(struct dt_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    (void)device;
    *free_bytes = dt_host_memory_available();
    *total_bytes = dt_host_memory_total();
    return DT_OK;
}

void dt_cpu_close(struct dt_device *device)
{
    free(device);
}

void dt_cpu_threads(struct dt_device *device, int count)
{
    (void)device;
    omp_set_num_threads(count);
}

/* The pages of a buffer are a matter of chance, constant for its lifetime, and affect times. Huge pages reduce the
 * effect. */
dt_status dt_cpu_alloc(struct dt_device *device, int64_t bytes, void **memory)
{
    (void)device;
    size_t align = bytes >= HUGE ? HUGE : ALIGN;
    size_t size = ((size_t)bytes + align - 1) / align * align;
    void *made = aligned_alloc(align, size);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for %lld bytes", (long long)bytes);
    if (align == HUGE)
        (void)madvise(made, size, MADV_HUGEPAGE); /* where the kernel allows it */
    *memory = made;
    return DT_OK;
}

void dt_cpu_release(struct dt_device *device, void *memory)
{
    (void)device;
    free(memory);
}

dt_status dt_cpu_copy_bytes(struct dt_device *device, void *to, const void *from, int64_t bytes)
{
    (void)device;
    memcpy(to, from, (size_t)bytes);
    return DT_OK;
}

void dt_cpu_fill(struct dt_device *device, void *to, int byte, int64_t bytes)
{
    (void)device;
    memset(to, byte, (size_t)bytes);
}

dt_status dt_cpu_finish(struct dt_device *device, int64_t deadline_ns,
                        dt_status (*check)(void *arg), void *arg)
{
    (void)device, (void)deadline_ns;
    return check != NULL ? check(arg) : DT_OK;
}

void dt_cpu_mark(struct dt_device *device, int slot)
{
    ((struct cpu_device *)device)->marks[slot] = dt_clock_ns();
}

dt_status dt_cpu_times(struct dt_device *device, int n, int64_t ns[])
{
    const struct cpu_device *own = (const struct cpu_device *)device;
    for (int i = 0; i < n; i++)
        ns[i] = own->marks[i] - own->marks[0];
    return DT_OK;
}
