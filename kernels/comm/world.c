/* SPDX-License-Identifier: MIT */
#include "kernels/comm.h"

#include "kernels/compute.h"
#ifdef DT_HAVE_NCCL
#include "kernels/nccl.h"
#endif
#include "kernels/staged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef DT_HAVE_NCCL
/* NCCL refuses two ranks on one GPU unless they seem to be of different hosts (2.28: init.cc): for correctness only. */
static dt_status by_nccl(struct dt_comm *host, struct dt_device *device, bool fits,
                         struct dt_comm **comm)
{
    char id[32];
    snprintf(id, sizeof id, "dittune-%d", host->rank);
    if (!fits && setenv("NCCL_HOSTID", id, 0) != 0)
        return dt_fail(DT_ENOMEM, "no memory for the environment");
    return dt_comm_nccl(host, device, NULL, comm);
}
#endif

dt_status dt_comm_world(struct dt_comm *host, struct dt_device *device, const char *name,
                        struct dt_comm **comm)
{
    bool any = name == NULL || *name == '\0';
    if (device->compute->host || host->size == 1) {
        *comm = host;
        return DT_OK;
    }
#ifdef DT_HAVE_NCCL
    bool fits = false;
    DT_TRY(dt_comm_nccl_fits(host, device, &fits));
    if ((any && fits) || (!any && strcmp(name, "nccl") == 0))
        return by_nccl(host, device, fits, comm);
#endif
    if (any || strcmp(name, "staged") == 0)
        return dt_comm_staged(host, device, comm);
    return dt_fail(DT_EUSAGE,
                   "DITTUNE_COMM is '%.40s': expected nccl (where it was built) or staged", name);
}
