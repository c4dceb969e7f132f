/* SPDX-License-Identifier: MIT */
/* dtype - the data types a network can run in
 *
 * A data type applies to the weights of linear layers and the activations between them (normalised
 * stream, queries, keys, values, attention, MLP, exchanges). Sums, biases and the network's output
 * are float32 always, and so is the residual stream unless a plan says otherwise (residual in
 * model/plan.def). tf32 is float32 except for the products of linear layers, whose factors are
 * rounded to 10 bits of mantissa: GPUs only. To add one: docs/adding.md.
 */
#ifndef DT_MODEL_DTYPE_H
#define DT_MODEL_DTYPE_H

#include "base/status.h"

enum dt_dtype { DT_FLOAT32, DT_BFLOAT16, DT_TF32, DT_DTYPES };

const char *dt_dtype_text(enum dt_dtype dtype);
int dt_dtype_bytes(enum dt_dtype dtype);

/* Relative error allowed between a plan's output and that of the float32 1-rank plan. */
double dt_dtype_tolerance(enum dt_dtype dtype);

/* "float32", "bfloat16" or "bf16", "tf32"; DT_EUSAGE with a sentence that begins with what. */
dt_status dt_dtype_find(const char *what, const char *name, enum dt_dtype *dtype) DT_MUST_CHECK;

#endif
