/* SPDX-License-Identifier: MIT */
#include "kernels/compute.h"

#include <stddef.h>
#include <string.h>

static const struct dt_compute *const rows[] = {
#ifdef DT_HAVE_CUDA
    &dt_compute_cuda,
#endif
    &dt_compute_cpu,
    NULL,
};

const struct dt_compute *const *dt_compute_rows(void)
{
    return rows;
}

const struct dt_compute *dt_compute_find(const char *name)
{
    for (size_t i = 0; rows[i] != NULL; i++)
        if (strcmp(rows[i]->name, name) == 0)
            return rows[i];
    return NULL;
}
