/* SPDX-License-Identifier: MIT */
#include "kernels/cpu/simd.h"

#include <stdatomic.h>
#include <stddef.h>

static const struct dt_simd *const rows[] = {
#if defined(__x86_64__)
    &dt_simd_avx512,
    &dt_simd_avx2,
#endif
    &dt_simd_portable,
    NULL,
};

static _Atomic(const struct dt_simd *) chosen;

const struct dt_simd *const *dt_simd_rows(void)
{
    return rows;
}

bool dt_simd_usable(int i)
{
#if defined(__x86_64__)
    if (rows[i] == &dt_simd_avx512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
    if (rows[i] == &dt_simd_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return rows[i] != NULL;
}

void dt_simd_use(const struct dt_simd *simd)
{
    atomic_store(&chosen, simd);
}

const struct dt_simd *dt_simd(void)
{
    const struct dt_simd *simd = atomic_load(&chosen);
    for (int i = 0; simd == NULL; i++)
        if (dt_simd_usable(i))
            simd = rows[i];
    atomic_store(&chosen, simd);
    return simd;
}
