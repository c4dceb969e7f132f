/* SPDX-License-Identifier: MIT */
/* The caller's pointer is copied as bytes, as its type is not known here. */
#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The next power of two, 16 at least; SIZE_MAX: there is none. */
static size_t room_of(size_t count)
{
    size_t room = 16;
    while (room < count && room <= SIZE_MAX / 2)
        room *= 2;
    return room >= count ? room : SIZE_MAX;
}

dt_status dt_array_grow(void *items, size_t count, size_t more, size_t item_bytes)
{
    size_t sum;
    if (__builtin_add_overflow(count, more, &sum))
        sum = SIZE_MAX;
    if (count > 0 && sum <= room_of(count))
        return DT_OK;
    return dt_array_resize(items, room_of(sum), item_bytes);
}

dt_status dt_array_resize(void *items, size_t count, size_t item_bytes)
{
    void *old, *moved = NULL;
    size_t bytes;
    memcpy(&old, items, sizeof old);
    if (!__builtin_mul_overflow(count > 0 ? count : 1, item_bytes, &bytes))
        moved = realloc(old, bytes);
    if (moved == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %zu items of %zu bytes", count, item_bytes);
    memcpy(items, &moved, sizeof moved);
    return DT_OK;
}

int dt_ascending_int(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

int dt_ascending_int64(const void *a, const void *b)
{
    return (*(const int64_t *)a > *(const int64_t *)b) -
           (*(const int64_t *)a < *(const int64_t *)b);
}
