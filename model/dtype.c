/* SPDX-License-Identifier: MIT */
#include "model/dtype.h"

#include <string.h>

/* Each rounding to bfloat16 has a relative error of up to 2^-8; a network of tens of layers stays
 * within some 1e-2. tf32 has 10 bits of mantissa: 2^-11 when rounded, 2^-10 when hardware cuts them
 * off, a quarter of bfloat16's, so a quarter of its tolerance. */
static const struct row {
    const char *name, *alias;
    int bytes;
    double tolerance;
} rows[DT_DTYPES] = {
    [DT_FLOAT32] = {"float32", "fp32", 4, 1e-5},
    [DT_BFLOAT16] = {"bfloat16", "bf16", 2, 2e-2},
    [DT_TF32] = {"tf32", "tensorfloat32", 4, 5e-3},
};

const char *dt_dtype_text(enum dt_dtype dtype)
{
    return rows[dtype].name;
}

int dt_dtype_bytes(enum dt_dtype dtype)
{
    return rows[dtype].bytes;
}

double dt_dtype_tolerance(enum dt_dtype dtype)
{
    return rows[dtype].tolerance;
}

dt_status dt_dtype_find(const char *what, const char *name, enum dt_dtype *dtype)
{
    for (int i = 0; i < DT_DTYPES; i++)
        if (strcmp(rows[i].name, name) == 0 || strcmp(rows[i].alias, name) == 0) {
            *dtype = (enum dt_dtype)i;
            return DT_OK;
        }
    return dt_fail(DT_EUSAGE, "%s '%.40s' is unknown, expected float32, bfloat16 or tf32", what,
                   name);
}
