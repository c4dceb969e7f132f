/* SPDX-License-Identifier: MIT */
/* simd_body - the float32 kernels, included once by each simd_<name>.c
 *
 * The includer defines LANES (floats of a vector), ROWS (see simd_attention_body.h), VEC_FMA,
 * VEC_MAX (see simd_vec_body.h), and SIMD and SIMD_NAME, the table and its name.
 */
#include "kernels/cpu/simd_vec_body.h"

#define ACT                     float
#define load_act(p)             load(p)
#define load_act_part(p, n)     load_part(p, n)
#define store_act(p, v)         store(p, v)
#define store_act_part(p, v, n) store_part(p, v, n)

#include "kernels/cpu/simd_attention_body.h"
#include "kernels/cpu/simd_rows_body.h"

const struct dt_simd SIMD = {
    .name = SIMD_NAME,
    .dtype = DT_FLOAT32,
    .attention = attention_rows,
    .exp = exp_row,
    .activate = activate_row,
    .modulate = modulate_row,
    .residual = residual_row,
    .blend = blend_row,
};
