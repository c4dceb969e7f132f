/* SPDX-License-Identifier: MIT */
#include "kernels/comm.h"

#include "kernels/compute.h"

dt_status dt_comm_world(struct dt_comm *host, struct dt_device *device, const char *name,
                        struct dt_comm **comm)
{
    if (!device->compute->host && host->size > 1)
        return dt_fail(DT_EUNSUP, "no comm '%s' for %s was built", name != NULL ? name : "",
                       device->compute->name);
    *comm = host;
    return DT_OK;
}
