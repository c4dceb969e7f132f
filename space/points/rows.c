/* SPDX-License-Identifier: MIT */
/* All points of a space as a sorted list of words: the indices of a point side by side, the first axis in the highest bits, so
 * that words are in the order of the points. */
#include "space/diagram/diagram.h"
#include "space/space_int.h"

#include <stdlib.h>
#include <string.h>

/* Computes the bits of each axis; false: they do not fit a word. */
static bool pack(struct dt_space *space)
{
    int shift = 0;
    for (int i = space->axis_count - 1; i >= 0; i--) {
        int bits = 0;
        while (space->axes[i].count > 1 << bits)
            bits++;
        space->shifts[i] = (uint8_t)(bits > 0 ? shift : 0);
        space->masks[i] = (uint16_t)((1 << bits) - 1);
        shift += bits;
        if (shift > 64)
            return false;
    }
    return true;
}

static uint64_t *emit(const struct dt_space *space, int depth, uint32_t node, uint64_t word,
                      uint64_t *out)
{
    const struct dt_layer *layer = &space->diagram->layers[depth];
    uint32_t first = layer->shared ? 0 : layer->begin[node];
    uint32_t end = layer->shared ? layer->edges : layer->begin[node + 1];
    int shift = space->shifts[layer->axis];
    bool last = depth + 1 == space->diagram->layer_count;
    for (uint32_t edge = first; edge < end; edge++) {
        uint64_t longer = word | (uint64_t)layer->values[edge] << shift;
        if (last)
            *out++ = longer;
        else
            out = emit(space, depth + 1, layer->children[layer->shared ? node : edge], longer, out);
    }
    return out;
}

/* Radix sort by bytes, from the lowest. */
static void sort(uint64_t *rows, uint64_t *spare, size_t n)
{
    for (int shift = 0; shift < 64; shift += 8) {
        size_t begin[257] = {0};
        for (size_t i = 0; i < n; i++)
            begin[(rows[i] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++)
            begin[i + 1] += begin[i];
        for (size_t i = 0; i < n; i++)
            spare[begin[rows[i] >> shift & 255]++] = rows[i];
        uint64_t *other = rows;
        rows = spare;
        spare = other;
    }
}

dt_status dt_space_list(struct dt_space *space)
{
    size_t n = (size_t)space->count;
    bool in_order = true;
    if (space->count <= 0 || space->count > DT_ROWS_MAX || !pack(space))
        return DT_OK;
    for (int i = 0; i < space->diagram->layer_count; i++)
        in_order = in_order && space->diagram->layers[i].axis == i;
    uint64_t *rows = malloc(n * sizeof *rows), *spare = NULL;
    if (!in_order)
        spare = malloc(n * sizeof *spare);
    if (rows == NULL || (!in_order && spare == NULL)) {
        free(rows);
        free(spare);
        return dt_fail(DT_ENOMEM, "out of memory while listing a space of plans");
    }
    emit(space, 0, 0, 0, rows);
    if (!in_order)
        sort(rows, spare, n); /* an even number of passes: the result is in rows */
    free(spare);
    space->rows = rows;
    return DT_OK;
}

void dt_row_point(const struct dt_space *space, uint64_t row, struct dt_point *point)
{
    *point = (struct dt_point){{0}};
    for (int i = 0; i < space->axis_count; i++)
        point->index[i] = (int32_t)(row >> space->shifts[i] & space->masks[i]);
}

int64_t dt_row_find(const struct dt_space *space, const struct dt_point *point)
{
    uint64_t row = 0;
    int64_t low = 0, high = space->count;
    for (int i = 0; i < space->axis_count; i++) {
        if (point->index[i] < 0 || point->index[i] >= space->axes[i].count)
            return -1;
        row |= (uint64_t)point->index[i] << space->shifts[i];
    }
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (space->rows[middle] < row)
            low = middle + 1;
        else
            high = middle;
    }
    return low < space->count && space->rows[low] == row ? low : -1;
}
