/* SPDX-License-Identifier: MIT */
#include "kernels/compute.h"

#include <stddef.h>

static const struct dt_compute *const rows[] = {&dt_compute_cpu};

dt_status dt_compute_find(enum dt_dtype dtype, const struct dt_compute **compute)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i]->usable(dtype)) {
            *compute = rows[i];
            return DT_OK;
        }
    return dt_fail(DT_EUNSUP, "%s needs oneDNN and a processor with AVX-512 BF16: use float32 here",
                   dt_dtype_text(dtype));
}
