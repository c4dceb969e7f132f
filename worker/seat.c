/* SPDX-License-Identifier: MIT */
#include "worker/seat.h"
#include "base/host.h"
#include "kernels/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* A launcher's names of rank and size. A batch system's own variables (SLURM_*) are not used: they
 * are also set in the shell of a job, where a program is started once. */
static const struct launcher {
    const char *size, *rank, *host_size, *host_rank;
} launchers[] = {
    {"DITTUNE_SIZE", "DITTUNE_RANK", "DITTUNE_HOST_SIZE", "DITTUNE_HOST_RANK"}, /* worker/seat.c */
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
    {"DITTUNE_PLACED_SIZE", "PMIX_RANK", "DITTUNE_PLACED_HOST",
     "SLURM_LOCALID"}, /* srun, for tuner/runner/launch.c */
};

static dt_status read_variable(const char *name, int low, int high, int *value)
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
        DT_TRY(read_variable(by->size, 1, 65536, &seat->size));
        DT_TRY(read_variable(by->rank, 0, seat->size - 1, &seat->rank));
        DT_TRY(read_variable(by->host_size, 1, seat->size, &seat->host_size));
        return read_variable(by->host_rank, 0, seat->host_size - 1, &seat->host_rank);
    }
    return DT_OK;
}

/* Open MPI binds ranks to cores of its own choice by default, and from version 5 on does not tell
 * them. The launcher itself, which is their parent, is not bound. */
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

/* ranks - starts the other ranks of a group without a launcher: copies of this program on this host
 *
 * They are started before the first call of a library that does not survive a fork, find rank and
 * size in the environment as under any launcher (worker/seat.h), and share a memory region with
 * rank 0 (kernels/shared.h). They end with rank 0.
 */

#define SHARED "DITTUNE_SHARED"

static dt_status set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    return setenv(name, text, 1) == 0 ? DT_OK : dt_fail(DT_ENOMEM, "out of memory for %s", name);
}

/* Runs in the child. Only rank 0 has standard input and output; all ranks share standard error. */
static void become_rank(int rank, int ranks, int fd, pid_t parent)
{
    char *const argv[] = {(char[]){"dittune-worker"}, NULL};
    int nothing = open("/dev/null", O_RDWR);
    bool ready = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && nothing >= 0 &&
                 dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
                 set_number("DITTUNE_SIZE", ranks) == DT_OK &&
                 set_number("DITTUNE_RANK", rank) == DT_OK &&
                 set_number("DITTUNE_HOST_SIZE", ranks) == DT_OK &&
                 set_number("DITTUNE_HOST_RANK", rank) == DT_OK && set_number(SHARED, fd) == DT_OK;
    if (ready)
        execv("/proc/self/exe", argv);
    _exit(1);
}

dt_status dt_ranks_start(struct dt_seat *seat, int ranks, int *fd)
{
    pid_t own = getpid();
    DT_TRY(dt_shared_new(ranks, fd));
    for (int rank = 1; rank < ranks; rank++) {
        pid_t pid = fork();
        if (pid < 0)
            return dt_fail(DT_ELIB, "cannot start rank %d of %d: %s", rank, ranks, strerror(errno));
        if (pid == 0)
            become_rank(rank, ranks, *fd, own);
    }
    fcntl(*fd, F_SETFD, FD_CLOEXEC);
    seat->rank = seat->host_rank = 0;
    seat->size = seat->host_size = ranks;
    seat->oversubscribed = ranks > dt_host_cores();
    return DT_OK;
}

int dt_ranks_shared(void)
{
    const char *text = getenv(SHARED);
    return text != NULL ? atoi(text) : -1;
}

/* torchrun - becomes a rank of another worker */

/* A rank of another worker, on several hosts: mpirun or srun starts this program on each, which
 * becomes that worker with the variables that torchrun would set. */

static dt_status set_copy(const char *name, const char *from)
{
    const char *value = getenv(from);
    if (value == NULL)
        return dt_fail(DT_EUSAGE,
                       "%s is not set: dittune sets it for ranks on several hosts, and the "
                       "launcher must pass it on",
                       from);
    return setenv(name, value, 1) == 0 ? DT_OK : dt_fail(DT_ENOMEM, "out of memory for %s", name);
}

/* Only rank 0 speaks to the controller. */
static dt_status silence_rank(void)
{
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return dt_fail(DT_EIO, "cannot close a rank's input: %s", strerror(errno));
    close(nothing);
    return DT_OK;
}

dt_status dt_torchrun_become(char *const program[])
{
    struct dt_seat seat;
    DT_TRY(dt_seat_find(&seat));
    DT_TRY(set_number("RANK", seat.rank));
    DT_TRY(set_number("WORLD_SIZE", seat.size));
    DT_TRY(set_number("LOCAL_RANK", seat.host_rank));
    DT_TRY(set_number("LOCAL_WORLD_SIZE", seat.host_size));
    DT_TRY(set_copy("MASTER_ADDR", "DITTUNE_FIRST_HOST"));
    DT_TRY(set_copy("MASTER_PORT", "DITTUNE_PORT"));
    DT_TRY(set_copy("DITTUNE_TOKEN", "DITTUNE_TOKEN"));
    if (seat.rank > 0)
        DT_TRY(silence_rank());
    execvp(program[0], program);
    return dt_fail(DT_EIO, "cannot run %s: %s", program[0], strerror(errno));
}
