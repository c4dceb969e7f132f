/* SPDX-License-Identifier: MIT */
/* CRC-32C (Castagnoli, Brauer, Herrmann 1993), reflected, a byte at a time: a record is a few kilobytes. */
#include "db/journal.h"

#include <pthread.h>

static uint32_t table[256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++)
            rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82f63b78U : 0);
        table[byte] = rest;
    }
}

uint32_t dt_crc32c(const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint32_t crc = 0xffffffffU;
    pthread_once(&once, fill);
    for (size_t i = 0; i < size; i++)
        crc = (crc >> 8) ^ table[(crc ^ at[i]) & 0xff];
    return ~crc;
}
