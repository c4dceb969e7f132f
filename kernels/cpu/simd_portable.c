/* SPDX-License-Identifier: MIT */
#include "kernels/cpu/simd_portable_body.h"

#define ROWS      4
#define SIMD      dt_simd_portable
#define SIMD_NAME "portable"

#include "kernels/cpu/simd_body.h"
