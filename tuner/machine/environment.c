/* SPDX-License-Identifier: MIT */
/* Prefixes, since libraries add variables often. Names of places, and variables of one launch (Open MPI sets such for
 * its programs), do not affect speed. */
#include "base/environment.h"
#include "tuner/machine/machine_int.h"
#include "tuner/runner/runner.h"

#include <stdio.h>
#include <string.h>

#define NAME_ROOM  64
#define VALUE_ROOM 256

extern char **environ;

/* docs/machine.md has the same list. */
static const char *const relevant[] = {"OMP_",
                                       "GOMP_",
                                       "KMP_",
                                       "OPENBLAS_",
                                       "GOTO_",
                                       "GOTOBLAS_",
                                       "MKL_",
                                       "BLIS_",
                                       "DNNL_",
                                       "ONEDNN_",
                                       "OMPI_MCA_",
                                       "PMIX_MCA_",
                                       "UCX_",
                                       "FI_",
                                       "NCCL_",
                                       "CUDA_",
                                       "CUBLAS_",
                                       "CUDNN_",
                                       "TORCH_",
                                       "PYTORCH_",
                                       "HWLOC_",
                                       "MALLOC_",
                                       "LD_PRELOAD=",
                                       "LD_LIBRARY_PATH=",
                                       "GLIBC_TUNABLES=",
                                       "NVIDIA_TF32_OVERRIDE=",
                                       NULL};
static const char *const not_relevant[] = {"OMPI_MCA_orte_",
                                           "OMPI_MCA_ess_",
                                           "OMPI_MCA_pmix",
                                           "OMPI_MCA_initial_wdir",
                                           "OMPI_MCA_shmem_RUNTIME_",
                                           "OMPI_MCA_mpi_oversubscribe",
                                           "HWLOC_HIDE_ERRORS=",
                                           "CUDA_HOME=",
                                           "CUDA_PATH=",
                                           "CUDA_VERSION=",
                                           NULL};

static bool begins_with(const char *entry, const char *const prefixes[])
{
    for (int i = 0; prefixes[i] != NULL; i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

static void add(json_t *object, char *const entries[])
{
    for (int i = 0; entries[i] != NULL; i++) {
        size_t size = strcspn(entries[i], "=");
        char name[NAME_ROOM], value[VALUE_ROOM];
        if (entries[i][size] != '=' || size >= sizeof name || !begins_with(entries[i], relevant) ||
            begins_with(entries[i], not_relevant))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)size, entries[i]);
        snprintf(value, sizeof value, "%s", entries[i] + size + 1);
        dt_group_clean(name);
        dt_group_clean(value);
        json_object_set_new(object, name, json_string(value));
    }
}

/* Variables about threads were removed before main; only a foreign worker gets them back. */
json_t *dt_machine_environment(bool foreign)
{
    json_t *object = json_object();
    if (foreign)
        add(object, dt_environment_dropped());
    add(object, environ);
    return object;
}
