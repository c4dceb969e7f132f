/* SPDX-License-Identifier: MIT */
/* activation - the functions that a linear layer can apply to its output */
#ifndef DT_MODEL_ACTIVATION_H
#define DT_MODEL_ACTIVATION_H

enum dt_activation { DT_ACT_NONE, DT_ACT_GELU, DT_ACT_SILU };

#endif
