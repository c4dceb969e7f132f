/* SPDX-License-Identifier: MIT */
#include "base/siphash.h"

static uint64_t read_word(const unsigned char *bytes, size_t size)
{
    uint64_t word = 0;
    for (size_t i = 0; i < size; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void mix_rounds(uint64_t v[4], int rounds)
{
    for (int i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate_left(v[1], 13) ^ v[0];
        v[3] = rotate_left(v[3], 16) ^ v[2];
        v[0] = rotate_left(v[0], 32) + v[3];
        v[2] += v[1];
        v[3] = rotate_left(v[3], 21) ^ v[0];
        v[1] = rotate_left(v[1], 17) ^ v[2];
        v[2] = rotate_left(v[2], 32);
    }
}

static void add_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix_rounds(v, 2);
    v[0] ^= word;
}

uint64_t dt_siphash(const unsigned char key[DT_SIPHASH_KEY], const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t low = read_word(key, 8), high = read_word(key + 8, 8);
    uint64_t v[4] = {low ^ UINT64_C(0x736f6d6570736575), high ^ UINT64_C(0x646f72616e646f6d),
                     low ^ UINT64_C(0x6c7967656e657261), high ^ UINT64_C(0x7465646279746573)};
    size_t left = size;
    for (; left >= 8; left -= 8, at += 8)
        add_word(v, read_word(at, 8));
    add_word(v, read_word(at, left) | (uint64_t)size << 56);
    v[2] ^= 0xff;
    mix_rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
