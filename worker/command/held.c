/* SPDX-License-Identifier: MIT */
#include "worker/command/held.h"

#include "base/clock.h"
#include "base/proc.h"

#define PATIENCE_NS (5 * DT_NS_PER_SECOND)
#define TICK_NS     (DT_NS_PER_SECOND / 50)
#define SLACK_BYTES ((int64_t)64 << 20) /* free memory varies by itself */

static struct dt_nvml *nvml; /* opened by the first run, for the life of this process */
static bool tried;

static struct dt_nvml_use read_gpu(int gpu)
{
    struct dt_nvml_device *device;
    struct dt_nvml_name name;
    struct dt_nvml_facts facts;
    dt_nvml_facts_clear(&facts);
    if (dt_nvml_at(nvml, gpu, &device, &name) == DT_OK)
        dt_nvml_read(nvml, device, &facts);
    return facts.use;
}

void dt_held_note(struct dt_held *held)
{
    if (!tried && dt_nvml_open(&nvml) < 0)
        nvml = NULL;
    tried = true;
    held->count = nvml != NULL ? dt_nvml_count(nvml) : 0;
    held->count = held->count < DT_HELD_GPUS ? held->count : DT_HELD_GPUS;
    for (int i = 0; i < held->count; i++)
        held->before[i] = read_gpu(i);
}

/* Bytes of a process at that time; -1: it was not there. */
static int64_t bytes_of(const struct dt_nvml_use *use, int64_t pid)
{
    for (int i = 0; i < use->count; i++)
        if (use->processes[i].pid == pid)
            return use->processes[i].bytes > 0 ? use->processes[i].bytes : 0;
    return -1;
}

/* How much less is free than before, beside what processes took that were there before. */
static int64_t missing(const struct dt_nvml_use *before, const struct dt_nvml_use *now)
{
    int64_t bytes = before->free_bytes - now->free_bytes;
    if (before->free_bytes < 0 || now->free_bytes < 0)
        return 0;
    for (int i = 0; i < now->count; i++) {
        int64_t old = bytes_of(before, now->processes[i].pid);
        if (old >= 0 && now->processes[i].bytes > old)
            bytes -= now->processes[i].bytes - old;
    }
    return bytes > SLACK_BYTES ? bytes : 0;
}

static void name_holders(const struct dt_nvml_use *before, const struct dt_nvml_use *now,
                         struct dt_text *say)
{
    const char *between = " by ";
    for (int i = 0; i < now->count; i++) {
        struct dt_proc proc;
        int64_t pid = now->processes[i].pid;
        if (bytes_of(before, pid) >= 0)
            continue;
        bool known = dt_proc_read((pid_t)pid, &proc);
        dt_text_add(say, "%sprocess %lld (%s)", between, (long long)pid,
                    known ? proc.name : "not visible from here");
        between = ", ";
    }
}

dt_status dt_held_wait(const struct dt_leftovers_wait *wait, const struct dt_held *held,
                       struct dt_text *say)
{
    int64_t until = dt_clock_machine_ns() + PATIENCE_NS;
    for (int gpu = 0; gpu < held->count; gpu++) {
        struct dt_nvml_use now = read_gpu(gpu);
        while (missing(&held->before[gpu], &now) > 0 && dt_clock_machine_ns() < until) {
            DT_TRY(wait->tick(wait->context));
            dt_clock_sleep_ns(TICK_NS);
            now = read_gpu(gpu);
        }
        int64_t bytes = missing(&held->before[gpu], &now);
        if (bytes == 0)
            continue;
        dt_text_add(say, "%s%.1f GB of GPU %d still held after 5 s", say->size > 0 ? "; " : "left ",
                    (double)bytes * 1e-9, gpu);
        name_holders(&held->before[gpu], &now, say);
    }
    return DT_OK;
}
