/* SPDX-License-Identifier: MIT */
/* A rank of another worker, on several hosts: mpirun or srun starts this program on each, which becomes that worker with the variables
 * that torchrun would set. */
#include "worker/torchrun.h"

#include "worker/seat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dt_status set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    return setenv(name, text, 1) == 0 ? DT_OK : dt_fail(DT_ENOMEM, "out of memory for %s", name);
}

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
static dt_status silence(void)
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
        DT_TRY(silence());
    execvp(program[0], program);
    return dt_fail(DT_EIO, "cannot run %s: %s", program[0], strerror(errno));
}
