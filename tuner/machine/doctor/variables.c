/* SPDX-License-Identifier: MIT */
/* Variables that are harmful, or no longer read. NCCL's: its user guide, Environment Variables; those in the part
 * "Debugging" "should not be used in production". Those called not read are not among the strings of libnccl 2.28.9.
 * PyTorch's names of its own variables begin with TORCH_ since 2.2
 * (torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp). */
#include "tuner/machine/doctor/doctor.h"

#include <stddef.h>

static bool several(const struct dt_doctor_view *view)
{
    return view->count > 1;
}

#define OBSOLETE                                                                                   \
    "a name that NCCL does not read (any more)",                                                   \
        "unset it; PyTorch's variable begins with TORCH_NCCL_ since 2.2"
#define TUNED                                                                                      \
    "it fixes what is tuned here, and plans are stored for it", "unset it, and let a plan say it"

#define DEBUGGING "a setting for debugging, which makes NCCL do worse or fail"

const struct dt_doctor_variable dt_doctor_variables[] = {
    {"p2p-disabled", "NCCL_P2P_DISABLE", " 1 2 ", DT_WARNING, several,
     "NCCL may not let GPUs reach into each other: exchanges go through the host's memory",
     "unset it"},
    {"p2p-disabled", "NCCL_P2P_LEVEL", " LOC 0 ", DT_WARNING, several,
     "NCCL may not let GPUs reach into each other: exchanges go through the host's memory",
     "unset it"},
    {"shm-disabled", "NCCL_SHM_DISABLE", " 1 2 ", DT_WARNING, several,
     "where GPUs cannot reach each other, NCCL uses sockets within the machine", "unset it"},
    {"infiniband-unused", "NCCL_IB_DISABLE", " 1 2 ", DT_WARNING, dt_doctor_has_infiniband,
     "InfiniBand is here and up, but NCCL uses sockets between hosts", "unset it"},
    {"infiniband-unused", "NCCL_NET", " Socket socket SOCKET ", DT_WARNING,
     dt_doctor_has_infiniband, "InfiniBand is here and up, but NCCL uses sockets between hosts",
     "unset it, or NCCL_NET=IB"},
    {"nccl-hostid", "NCCL_HOSTID", NULL, DT_WARNING, several,
     "ranks of one machine may take each other for remote, and use sockets", "unset it"},
    {"nccl-algorithm", "NCCL_ALGO", NULL, DT_WARNING, NULL, DEBUGGING, "unset it"},
    {"nccl-algorithm", "NCCL_PROTO", NULL, DT_WARNING, NULL,
     "LL128 where the platform does not have it corrupts data, and all-to-all does not ask for it",
     "unset it"},
    {"nccl-debug", "NCCL_DEBUG", " INFO TRACE info trace ", DT_WARNING, NULL,
     "NCCL writes while it is measured", "NCCL_DEBUG=WARN tells of errors only"},
    {"nccl-launch-mode", "NCCL_LAUNCH_MODE", NULL, DT_WARNING, NULL, DEBUGGING, "unset it"},
    {"launch-blocking", "CUDA_LAUNCH_BLOCKING", " 1 ", DT_WARNING, NULL,
     "every kernel is waited for: nothing overlaps, and launches are what is measured", "unset it"},
    {"module-loading", "CUDA_MODULE_LOADING", " EAGER eager ", DT_WARNING, NULL,
     "every kernel of every library is loaded at each start", "unset it"},
    {"max-connections", "CUDA_DEVICE_MAX_CONNECTIONS", " 1 ", DT_WARNING, NULL,
     "all streams share one queue to the GPU: exchanges wait behind kernels", "unset it"},
    {"nccl-fixed", "NCCL_MAX_CTAS", NULL, DT_NOTE, several, TUNED},
    {"nccl-fixed", "NCCL_MIN_CTAS", NULL, DT_NOTE, several, TUNED},
    {"nccl-fixed", "NCCL_CTA_POLICY", NULL, DT_NOTE, several, TUNED},
    {"nccl-fixed", "NCCL_MAX_NCHANNELS", NULL, DT_NOTE, several, TUNED},
    {"nccl-fixed", "NCCL_MIN_NCHANNELS", NULL, DT_NOTE, several, TUNED},
    {"nccl-fixed", "NCCL_MAX_P2P_NCHANNELS", NULL, DT_NOTE, several, TUNED},
    {"nccl-fixed", "NCCL_MIN_P2P_NCHANNELS", NULL, DT_NOTE, several, TUNED},
    {"nccl-fixed", "NCCL_P2P_NVL_CHUNKSIZE", NULL, DT_NOTE, several, TUNED},
    {"obsolete-variable", "NCCL_BLOCKING_WAIT", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_ASYNC_ERROR_HANDLING", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_DESYNC_DEBUG", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_ENABLE_TIMING", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_RINGS", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_LL_THRESHOLD", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_TREE_THRESHOLD", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_IB_CUDA_SUPPORT", NULL, DT_WARNING, NULL, OBSOLETE},
    {"obsolete-variable", "NCCL_CHECKS_DISABLE", NULL, DT_WARNING, NULL, OBSOLETE},
};

const int dt_doctor_variable_count = sizeof dt_doctor_variables / sizeof dt_doctor_variables[0];
