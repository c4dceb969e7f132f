/* SPDX-License-Identifier: MIT */
/* array - arrays that grow
 *
 *     struct {struct item *items; int count;} list = {NULL, 0};
 *     DT_TRY(DT_GROW(list.items, list.count, 1));
 *     list.items[list.count++] = item;
 *     free(list.items);
 *
 * The room of an array follows from its count and is not stored: it is at least the next power of
 * two, and 16. That holds while DT_GROW alone allocates the array; the count may shrink.
 */
#ifndef DT_BASE_ARRAY_H
#define DT_BASE_ARRAY_H

#include "base/status.h"

#include <stddef.h>

/* Makes room for `more` items behind the first `count`. items: a pointer, NULL while count is 0; it
 * moves. DT_ENOMEM: nothing has changed. */
#define DT_GROW(items, count, more)                                                                \
    dt_array_grow(&(items), (size_t)(count), (size_t)(more), sizeof *(items))

/* Makes an array, allocated in any way, `count` items long, and never NULL. DT_ENOMEM:
 * nothing has changed. */
#define DT_RESIZE(items, count) dt_array_resize(&(items), (size_t)(count), sizeof *(items))

/* items: the address of the pointer. */
dt_status dt_array_grow(void *items, size_t count, size_t more, size_t item_bytes) DT_MUST_CHECK;
dt_status dt_array_resize(void *items, size_t count, size_t item_bytes) DT_MUST_CHECK;

/* For qsort, the least first. */
int dt_ascending_int(const void *a, const void *b);
int dt_ascending_int64(const void *a, const void *b);

#endif
