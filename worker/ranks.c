/* SPDX-License-Identifier: MIT */
#include "worker/ranks.h"

#include "base/host.h"
#include "kernels/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SHARED "DITTUNE_SHARED"

static int set(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    return setenv(name, text, 1);
}

/* Runs in the child. Only rank 0 has standard input and output; all ranks share standard error. */
static void become(int rank, int ranks, int fd, pid_t parent)
{
    char *const argv[] = {(char[]){"dittune-worker"}, NULL};
    int nothing = open("/dev/null", O_RDWR);
    bool ready = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && nothing >= 0 &&
                 dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
                 set("DITTUNE_SIZE", ranks) == 0 && set("DITTUNE_RANK", rank) == 0 &&
                 set("DITTUNE_HOST_SIZE", ranks) == 0 && set("DITTUNE_HOST_RANK", rank) == 0 &&
                 set(SHARED, fd) == 0;
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
            become(rank, ranks, *fd, own);
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
