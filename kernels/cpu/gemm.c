/* SPDX-License-Identifier: MIT */
#include "kernels/cpu/gemm_int.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

static const struct dt_gemm *const rows[] = {
#if defined(DT_HAVE_ONEDNN)
    &dt_gemm_onednn,
#endif
    &dt_gemm_openblas,
    NULL,
};

static _Atomic(const struct dt_gemm *) chosen[DT_DTYPES];

const struct dt_gemm *const *dt_gemm_rows(void)
{
    return rows;
}

const struct dt_gemm *dt_gemm(enum dt_dtype dtype)
{
    const struct dt_gemm *gemm = atomic_load(&chosen[dtype]);
    for (int i = 0; gemm == NULL && rows[i] != NULL; i++)
        if (rows[i]->usable(dtype))
            gemm = rows[i];
    atomic_store(&chosen[dtype], gemm);
    return gemm;
}

struct dt_linear {
    const struct dt_gemm *gemm;
    struct dt_linear_shape shape;
    void *own;
};

dt_status dt_linear_new(enum dt_dtype dtype, const struct dt_linear_shape *shape,
                        struct dt_linear **linear)
{
    const struct dt_gemm *gemm = dt_gemm(dtype);
    if (gemm == NULL)
        return dt_fail(DT_EUNSUP, "no library here multiplies %s", dt_dtype_text(dtype));
    struct dt_linear *made = malloc(sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a linear layer");
    *made = (struct dt_linear){.gemm = gemm, .shape = *shape};
    dt_status status = gemm->ready != NULL ? gemm->ready(dtype, shape, &made->own) : DT_OK;
    if (status != DT_OK) {
        free(made);
        return status;
    }
    *linear = made;
    return DT_OK;
}

void dt_linear_run(struct dt_linear *linear, const struct dt_linear_call *call)
{
    linear->gemm->run(linear->own, &linear->shape, call);
}

void dt_linear_free(struct dt_linear *linear)
{
    if (linear != NULL && linear->own != NULL)
        linear->gemm->free(linear->own);
    free(linear);
}
