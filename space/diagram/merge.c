/* SPDX-License-Identifier: MIT */
/* Merges nodes with equal numbers. The range of each number is known, so together they usually fit one word, and often
 * an index. */
#include "base/array.h"
#include "space/diagram/build.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 1024 };
static const uint64_t BYTES_MAX = 128 << 20; /* limit for the numbers of a layer's nodes */

void dt_nodes_fini(struct dt_nodes *nodes)
{
    for (int i = 0; i < nodes->slots; i++)
        free(nodes->values[i]);
    *nodes = (struct dt_nodes){0};
}

/* true: the product of the ranges is in *size. */
static bool pack(struct dt_layer_merge *merge, const struct dt_terms *terms, uint64_t *size)
{
    *size = 1;
    for (int i = 0; i < merge->nodes->slots; i++) {
        const struct dt_term *term = &terms->rows[merge->nodes->terms[i]];
        uint64_t values = (uint64_t)term->high - (uint64_t)term->low + 1;
        merge->low[i] = term->low;
        merge->stride[i] = *size;
        if (values == 0 || __builtin_mul_overflow(*size, values, size))
            return false;
    }
    return true;
}

dt_status dt_merge_init(struct dt_layer_merge *merge, const struct dt_terms *terms,
                        struct dt_nodes *nodes, int64_t pairs)
{
    uint64_t size = 0;
    *merge = (struct dt_layer_merge){.nodes = nodes};
    merge->packed = pack(merge, terms, &size);
    merge->direct = merge->packed && size <= 4 * (uint64_t)pairs + FIRST && size <= 1 << 24;
    merge->size = merge->direct ? size : FIRST;
    merge->table = calloc(merge->size, sizeof *merge->table);
    return merge->table != NULL ? DT_OK : dt_diagram_no_memory();
}

void dt_merge_fini(struct dt_layer_merge *merge)
{
    free(merge->words);
    free(merge->table);
    merge->words = NULL;
    merge->table = NULL;
}

static uint64_t mix(uint64_t word)
{
    word *= 0x9E3779B97F4A7C15u;
    word ^= word >> 32;
    word *= 0xD6E8FEB86659FD93u;
    return word ^ word >> 32;
}

static uint64_t word_of(const struct dt_layer_merge *merge, const int64_t *const columns[], int i)
{
    uint64_t word = 0;
    for (int k = 0; k < merge->nodes->slots; k++) {
        if (merge->packed)
            word += ((uint64_t)columns[k][i] - (uint64_t)merge->low[k]) * merge->stride[k];
        else
            word = mix(word ^ (uint64_t)columns[k][i]);
    }
    return word;
}

/* A word is the numbers themselves when they are packed, and a hash of them otherwise. */
static bool same(const struct dt_layer_merge *merge, uint32_t node, uint64_t word,
                 const int64_t *const columns[], int i)
{
    if (merge->words[node] != word)
        return false;
    for (int k = 0; !merge->packed && k < merge->nodes->slots; k++)
        if (merge->nodes->values[k][node] != columns[k][i])
            return false;
    return true;
}

static dt_status widen(struct dt_layer_merge *merge)
{
    uint32_t room = merge->room > 0 ? 2 * merge->room : 256;
    if ((uint64_t)room * sizeof(int64_t) * (uint64_t)(merge->nodes->slots + 1) > BYTES_MAX)
        return dt_fail(DT_EUNSUP, "the space is too large to enumerate: its rules decide too late");
    DT_TRY(DT_RESIZE(merge->words, room));
    for (int k = 0; k < merge->nodes->slots; k++)
        DT_TRY(DT_RESIZE(merge->nodes->values[k], room));
    merge->room = room;
    return DT_OK;
}

static bool rehash(struct dt_layer_merge *merge)
{
    uint64_t size = 4 * merge->size;
    uint32_t *table = calloc(size, sizeof *table);
    if (table == NULL)
        return false;
    for (uint32_t node = 0; node < merge->nodes->count; node++) {
        uint64_t at = mix(merge->words[node]) & (size - 1);
        while (table[at] != 0)
            at = (at + 1) & (size - 1);
        table[at] = node + 1;
    }
    free(merge->table);
    merge->table = table;
    merge->size = size;
    return true;
}

static dt_status add(struct dt_layer_merge *merge, uint64_t word, const int64_t *const columns[],
                     int i)
{
    if (merge->nodes->count == merge->room)
        DT_TRY(widen(merge));
    uint32_t node = merge->nodes->count++;
    merge->words[node] = word;
    for (int k = 0; k < merge->nodes->slots; k++)
        merge->nodes->values[k][node] = columns[k][i];
    return DT_OK;
}

dt_status dt_merge_find(struct dt_layer_merge *merge, const int64_t *const columns[], int n,
                        uint32_t found[])
{
    for (int i = 0; i < n; i++) {
        uint64_t word = word_of(merge, columns, i);
        if (!merge->direct && 2 * (uint64_t)merge->nodes->count >= merge->size && !rehash(merge))
            return dt_diagram_no_memory();
        uint64_t at = merge->direct ? word : mix(word) & (merge->size - 1);
        while (merge->table[at] != 0 && !merge->direct &&
               !same(merge, merge->table[at] - 1, word, columns, i))
            at = (at + 1) & (merge->size - 1);
        if (merge->table[at] == 0) {
            DT_TRY(add(merge, word, columns, i));
            merge->table[at] = merge->nodes->count;
        }
        found[i] = merge->table[at] - 1;
    }
    return DT_OK;
}
