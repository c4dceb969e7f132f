/* SPDX-License-Identifier: MIT */
#include "search/order_int.h"

#include <stdlib.h>

dt_status dt_order_init(struct dt_order *order, const struct dt_space *space)
{
    int64_t count = dt_space_count(space);
    uint8_t *seen = calloc((size_t)count / 8 + 1, 1);
    if (seen == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a search of %lld plans", (long long)count);
    *order = (struct dt_order){.space = space, .count = count, .seen = seen};
    return DT_OK;
}

void dt_order_fini(struct dt_order *order)
{
    free(order->seen);
}

bool dt_order_visit(struct dt_order *order, int64_t k)
{
    uint8_t bit = (uint8_t)(1u << (k % 8));
    bool before = (order->seen[k / 8] & bit) != 0;
    order->seen[k / 8] |= bit;
    return before;
}

void dt_order_tell(struct dt_order *order, const struct dt_trial *trial)
{
    int64_t k = dt_space_index(order->space, &trial->point);
    if (k >= 0)
        (void)dt_order_visit(order, k);
}
