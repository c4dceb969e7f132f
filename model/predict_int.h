/* SPDX-License-Identifier: MIT */
/* predict_int - what programs reach of a machine's rates, for both kinds of networks
 * (predict.c, predict_network.c) */
#ifndef DT_MODEL_PREDICT_INT_H
#define DT_MODEL_PREDICT_INT_H

#include "model/machines/machine_card.h"

struct dt_reached {
    double gemm, attention; /* operations a second */
    double copy, link;      /* bytes a second: read or written; sent by a device */
    double message, call;   /* seconds of a collective's step, of a kernel */
};

/* head: channels of one. */
struct dt_reached dt_reached_on(const struct dt_machine_card *machine, int head);

#endif
