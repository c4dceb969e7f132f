/* SPDX-License-Identifier: MIT */
/* hosts - the machines that ranks are started on, and how many each takes
 *
 * A launcher starts them: mpirun, srun, or a command of the user's. dittune has no transport and no
 * scheduler of its own.
 */
#ifndef DT_TUNER_RUNNER_HOSTS_H
#define DT_TUNER_RUNNER_HOSTS_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>

#define DT_HOSTS_MOST 64
#define DT_SLOTS_MOST 1024

struct dt_host {
    char name[254]; /* a name within DNS's limit, or an address */
    int slots;      /* cores, or GPUs, that dittune may use there */
};

struct dt_hosts {
    struct dt_host at[DT_HOSTS_MOST];
    int count; /* 0: this machine alone */
    /* "mpirun", "srun", or a command with placeholders (launch.c); borrowed */
    const char *launcher;
};

/* "a:8,b:8"; a host without a number has one slot. DT_EUSAGE: a name that no host can have, a
 * name twice, too many. */
dt_status dt_hosts_parse(const char *text, struct dt_hosts *hosts) DT_MUST_CHECK;

/* The form of mpirun's hostfiles: a line for each host, "name slots=8"; names that return add up, #
 * begins a comment. DT_EUSAGE names file, line and what is wrong; DT_EIO. */
dt_status dt_hosts_read(const char *path, struct dt_hosts *hosts) DT_MUST_CHECK;

/* Those of the Slurm job that this process is part of, as many slots as the job has tasks there.
 * DT_EUSAGE: it is part of none. */
dt_status dt_hosts_slurm(struct dt_hosts *hosts) DT_MUST_CHECK;

int dt_hosts_slots(const struct dt_hosts *hosts);       /* slots of all hosts */
int dt_hosts_least_slots(const struct dt_hosts *hosts); /* slots of the host with the fewest */

/* "a:8,b:8" of the first `count`, each with at most `slots`. */
void dt_hosts_text(const struct dt_hosts *hosts, int count, int slots, struct dt_text *out);

/* Without the host of that name; false: there is none. */
bool dt_hosts_drop(struct dt_hosts *hosts, const char *name);

#endif
