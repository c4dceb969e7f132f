/* SPDX-License-Identifier: MIT */
/* The hosts of a Slurm allocation, as its variables name them (the manual page of salloc, "OUTPUT ENVIRONMENT VARIABLES"). */
#include "tuner/runner/hosts.h"

#include "base/clock.h"
#include "base/host.h"
#include "tuner/runner/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (30 * DT_NS_PER_SECOND)

/* Numbers for each node, in their order: "4(x2),1" is 4, 4, 1. Sets slots of the hosts; false: it is not such a list, or for another
 * number of nodes. */
static bool set_slots(const char *text, struct dt_hosts *hosts)
{
    int n = 0;
    for (const char *at = text; *at != '\0';) {
        char *end;
        long slots = strtol(at, &end, 10), times = 1;
        if (end == at || slots < 1 || slots > DT_SLOTS_MOST)
            return false;
        if (end[0] == '(' && end[1] == 'x') {
            times = strtol(end + 2, &end, 10);
            if (*end++ != ')')
                return false;
        }
        for (; times > 0; times--) {
            if (n == hosts->count)
                return false;
            hosts->at[n++].slots = (int)slots;
        }
        if (*end != ',' && *end != '\0')
            return false;
        at = end + (*end == ',');
    }
    return n == hosts->count;
}

/* Slurm's own program spells the names out. */
static dt_status read_names(struct dt_hosts *hosts)
{
    char *const words[] = {(char[]){"scontrol"}, (char[]){"show"}, (char[]){"hostnames"}, NULL};
    char path[4096];
    struct dt_output output = {.how = ""};
    if (!dt_host_program("scontrol", path, sizeof path))
        return dt_fail(DT_EUSAGE, "--hosts slurm: scontrol, Slurm's program, was not found");
    DT_TRY(dt_output_read(path, words, dt_clock_machine_ns() + PATIENCE_NS, &output));
    dt_status status =
        output.how[0] == '\0'
            ? DT_OK
            : dt_fail(DT_EUSAGE, "--hosts slurm: scontrol show hostnames %s", output.how);
    struct dt_text list = {0};
    const char *at = dt_text_at(&output.out);
    while (status == DT_OK && *at != '\0') {
        size_t size = strcspn(at, "\n");
        dt_text_add(&list, "%s%.*s", list.size > 0 && size > 0 ? "," : "", (int)size, at);
        at += size + (at[size] == '\n');
    }
    if (status == DT_OK)
        status = dt_hosts_parse(dt_text_at(&list), hosts);
    dt_text_fini(&list);
    dt_output_fini(&output);
    return status;
}

dt_status dt_hosts_slurm(struct dt_hosts *hosts)
{
    const char *tasks = getenv("SLURM_TASKS_PER_NODE"), *cpus = getenv("SLURM_JOB_CPUS_PER_NODE");
    if (getenv("SLURM_JOB_NODELIST") == NULL)
        return dt_fail(DT_EUSAGE,
                       "--hosts slurm is for a Slurm job, and this is none: start dittune "
                       "by salloc or sbatch, or name the hosts");
    DT_TRY(read_names(hosts));
    const char *slots = tasks != NULL ? tasks : cpus;
    if (slots != NULL && !set_slots(slots, hosts))
        return dt_fail(DT_EUSAGE, "--hosts slurm: %s is '%.100s', which does not fit the %d hosts",
                       tasks != NULL ? "SLURM_TASKS_PER_NODE" : "SLURM_JOB_CPUS_PER_NODE", slots,
                       hosts->count);
    return DT_OK;
}
