/* SPDX-License-Identifier: MIT */
/* dittune-worker - runs plans of the built-in DiT on this machine's cores, by the
 * protocol of docs/protocol.md
 *
 * Rank 0 reads requests from standard input and sends them to the others over sockets. A rank that
 * loses its controller or rank 0 exits at once, without clean-up: another rank may be in an
 * exchange that never ends. */
#include "base/environment.h"
#include "worker/gpus/devices.h"
#include "worker/gpus/telemetry.h"
#include "worker/requests.h"
#include "worker/seat.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Redirects output of libraries to standard error; the protocol keeps a descriptor of its own. */
static dt_status take_output(int *fd)
{
    *fd = dup(STDOUT_FILENO);
    if (*fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return dt_fail(DT_EIO, "cannot duplicate standard output: %s", strerror(errno));
    return DT_OK;
}

/* libgomp reads its wait policy when it is loaded: idle threads of ranks that share a core
 * must not spin on it. */
static void start_again_passive(const struct dt_seat *seat, char **argv)
{
    if (seat->oversubscribed && getenv("OMP_WAIT_POLICY") == NULL &&
        setenv("OMP_WAIT_POLICY", "passive", 1) == 0)
        execv("/proc/self/exe", argv);
}

static dt_status next_request(struct dt_rank *self, json_t **request)
{
    if (self->seat.rank != 0)
        return dt_links_receive(&self->links, request);
    for (;;) {
        dt_status status = dt_wire_read(&self->wire, DT_WIRE_FOREVER, request);
        if (status == DT_OK)
            return dt_links_send(&self->links, *request);
        if (status == DT_EPROTO)
            status = dt_rank_refuse(self, status);
        if (status < 0 && status != DT_EINTR)
            return status;
    }
}

static dt_status serve_requests(struct dt_rank *self)
{
    while (!self->over) {
        json_auto_t *request = NULL;
        dt_status status = next_request(self, &request);
        if (status < 0)
            return status == DT_EDEAD ? DT_DONE : status;
        DT_TRY(dt_rank_serve(self, request));
    }
    return DT_OK;
}

/* A stopped rank cannot notice that mpirun has ended. A single rank is ended by its parent. */
static void end_with_launcher(const struct dt_seat *seat)
{
    pid_t parent = getppid();
    if (seat->size > 1 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent))
        _exit(1);
}

static dt_status work_rank(struct dt_rank *self, int *argc, char ***argv)
{
    int out;
    DT_TRY(dt_seat_find(&self->seat));
    end_with_launcher(&self->seat);
    start_again_passive(&self->seat, *argv);
    DT_TRY(dt_seat_bind(&self->seat));
    DT_TRY(take_output(&out));
    dt_wire_init(&self->wire, STDIN_FILENO, out);
    DT_TRY(dt_rank_start(self, argc, argv));
    return serve_requests(self);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--devices") == 0)
        return dt_devices_print();
    if (argc == 2 && strcmp(argv[1], "--observe") == 0)
        return dt_observe();
    if (argc > 2 && strcmp(argv[1], DT_TORCHRUN) == 0) {
        dt_status became = dt_torchrun_become(argv + 2);
        fprintf(stderr, "dittune-worker: %s\n", dt_message());
        return dt_status_exit(became);
    }
    if (argc > 1) {
        fprintf(stderr,
                "dittune-worker %s: takes no arguments but --devices or --observe; dittune starts "
                "it and talks to it\n",
                DT_VERSION);
        return 2;
    }
    struct dt_rank *self = calloc(1, sizeof *self);
    if (self == NULL)
        return 1;
    (void)dt_environment_dropped(); /* links the code that runs before main */
    signal(SIGPIPE, SIG_IGN);
    dt_status status = work_rank(self, &argc, &argv);
    if (status < 0)
        fprintf(stderr, "dittune-worker: rank %d: %s\n", self->seat.rank, dt_message());
    if (status != DT_OK)
        _exit(status < 0 ? 1 : 0);
    dt_rank_fini(self);
#ifdef DT_HAVE_MPI
    dt_comm_mpi_end();
#endif
    free(self);
    return 0;
}
