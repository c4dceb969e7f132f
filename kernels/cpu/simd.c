/* SPDX-License-Identifier: MIT */
#include "kernels/cpu/simd.h"

#include <stdatomic.h>
#include <stddef.h>

static const struct dt_simd *const rows[] = {
#if defined(__x86_64__)
    &dt_simd_bf16,     &dt_simd_avx512,        &dt_simd_avx2,
#endif
    &dt_simd_portable, &dt_simd_portable_bf16, NULL,
};

static _Atomic(const struct dt_simd *) chosen[DT_DTYPES];

const struct dt_simd *const *dt_simd_rows(void)
{
    return rows;
}

bool dt_simd_usable(int i)
{
#if defined(__x86_64__)
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (rows[i] == &dt_simd_bf16)
        return wide && __builtin_cpu_supports("avx512bf16");
    if (rows[i] == &dt_simd_avx512)
        return wide;
    if (rows[i] == &dt_simd_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return rows[i] != NULL;
}

void dt_simd_use(const struct dt_simd *simd)
{
    for (int i = 0; i < DT_DTYPES; i++)
        if (simd == NULL || simd->dtype == (enum dt_dtype)i)
            atomic_store(&chosen[i], simd);
}

const struct dt_simd *dt_simd(enum dt_dtype dtype)
{
    const struct dt_simd *simd = atomic_load(&chosen[dtype]);
    for (int i = 0; simd == NULL && rows[i] != NULL; i++)
        if (rows[i]->dtype == dtype && dt_simd_usable(i))
            simd = rows[i];
    atomic_store(&chosen[dtype], simd);
    return simd;
}
