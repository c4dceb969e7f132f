/* SPDX-License-Identifier: MIT */
/* dittune-worker with the fault that DITTUNE_FAULT names (tests/kernels/fake_ranks/fault.h): the
 * linker puts this before dt_comm_world (--wrap), so that the program is otherwise the worker. */
#include "tests/kernels/fake_ranks/fault.h"

#include <stdlib.h>

dt_status __real_dt_comm_world(struct dt_comm *host, struct dt_device *device, const char *name,
                               struct dt_comm **world);
dt_status __wrap_dt_comm_world(struct dt_comm *host, struct dt_device *device, const char *name,
                               struct dt_comm **world);

dt_status __wrap_dt_comm_world(struct dt_comm *host, struct dt_device *device, const char *name,
                               struct dt_comm **world)
{
    const char *fault = getenv("DITTUNE_FAULT");
    DT_TRY(__real_dt_comm_world(host, device, name, world));
    return fault != NULL ? dt_comm_fault(*world, fault, world) : DT_OK;
}
