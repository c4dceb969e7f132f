/* SPDX-License-Identifier: MIT */
#include "worker/seat.h"

#include "base/host.h"

#include <errno.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A launcher's names of rank and size. A batch system's own variables (SLURM_*) are not used: they are also set in the
 * shell of a job, where a program is started once. */
static const struct launcher {
    const char *size, *rank, *host_size, *host_rank;
} launchers[] = {
    {"DITTUNE_SIZE", "DITTUNE_RANK", "DITTUNE_HOST_SIZE", "DITTUNE_HOST_RANK"}, /* worker/ranks.c */
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
    {"DITTUNE_PLACED_SIZE", "PMIX_RANK", "DITTUNE_PLACED_HOST",
     "SLURM_LOCALID"}, /* srun, for tuner/runner/launch.c */
};

static dt_status number(const char *name, int low, int high, int *value)
{
    const char *text = getenv(name);
    if (text == NULL)
        return dt_fail(DT_EUSAGE, "the launcher set no %s", name);
    char *end;
    errno = 0;
    long parsed = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || parsed < low || parsed > high)
        return dt_fail(DT_EUSAGE, "%s is '%.40s', expected %d to %d", name, text, low, high);
    *value = (int)parsed;
    return DT_OK;
}

static dt_status ask_launcher(struct dt_seat *seat)
{
    *seat = (struct dt_seat){.size = 1, .host_size = 1};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const struct launcher *by = &launchers[i];
        if (getenv(by->size) == NULL)
            continue;
        DT_TRY(number(by->size, 1, 65536, &seat->size));
        DT_TRY(number(by->rank, 0, seat->size - 1, &seat->rank));
        DT_TRY(number(by->host_size, 1, seat->size, &seat->host_size));
        return number(by->host_rank, 0, seat->host_size - 1, &seat->host_rank);
    }
    return DT_OK;
}

/* Open MPI binds ranks to cores of its own choice by default, and from version 5 on does not tell them. The launcher itself, which is
 * their parent, is not bound. */
static void undo_launcher(void)
{
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL)
        dt_host_unbind(getppid());
}

dt_status dt_seat_find(struct dt_seat *seat)
{
    undo_launcher();
    DT_TRY(ask_launcher(seat));
    seat->oversubscribed = seat->host_size > dt_host_cores();
    return DT_OK;
}

dt_status dt_seat_bind(struct dt_seat *seat)
{
    seat->bound = dt_host_bind(seat->host_rank, seat->host_size, DT_SEAT_CORES, seat->cores,
                               &seat->core_count) == DT_OK;
    if (seat->core_count < 1)
        return dt_fail(DT_ELIB, "rank %d got no core", seat->rank);
    return DT_OK;
}

dt_status dt_seat_threads(const struct dt_seat *seat, int threads)
{
    int cores[DT_SEAT_CORES], n, refused = 0;
    omp_set_num_threads(seat->loose ? seat->core_count : threads);
    if (!seat->bound)
        return DT_OK;
    DT_TRY(dt_host_bind(seat->host_rank, seat->host_size, DT_SEAT_CORES, cores, &n));
    if (seat->loose)
        return DT_OK;
#pragma omp parallel num_threads(threads) reduction(+ : refused)
    refused += dt_host_bind_thread(seat->cores[omp_get_thread_num() % seat->core_count]) != DT_OK;
    if (refused > 0)
        return dt_fail(DT_ELIB, "%d of %d threads could not be bound to a core", refused, threads);
    return DT_OK;
}
