/* SPDX-License-Identifier: MIT */
/* order - every feasible point once, in some order; what strategies without a model share */
#ifndef DT_SEARCH_ORDER_INT_H
#define DT_SEARCH_ORDER_INT_H

#include "search/search.h"

struct dt_order {
    const struct dt_space *space;
    int64_t count, next; /* points; steps made */
    uint8_t *seen;       /* a bit a point: asked for or told */
};

/* DT_ENOMEM. */
dt_status dt_order_init(struct dt_order *order, const struct dt_space *space) DT_MUST_CHECK;
void dt_order_fini(struct dt_order *order);

/* True when the k-th point was seen before; it is seen from now on. */
bool dt_order_visit(struct dt_order *order, int64_t k);

/* Marks a told point, so that it is not asked for. */
void dt_order_tell(struct dt_order *order, const struct dt_trial *trial);

#endif
