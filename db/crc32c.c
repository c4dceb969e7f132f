/* SPDX-License-Identifier: MIT */
/* CRC-32C (Castagnoli, Brauer, Herrmann 1993), reflected, eight bytes at a time: slicing by 8
 * (Kounavis, Berry 2008), or the instruction of x86-64 (SSE 4.2) and most ARMv8. A look-up checks
 * the whole store, megabytes, before it reads a line. */
#include "db/crc32c_int.h"
#include "db/journal.h"

#include <stdbool.h>
#include <string.h>
#ifdef __aarch64__
#include <sys/auxv.h>
#endif

static uint32_t table[8][256]; /* table[k]: of a byte with k bytes of 0 behind it */

/* Before main, or when the library is loaded: no thread can meet it half filled, and libdittune
 * needs no library of threads. */
__attribute__((constructor)) static void fill(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++)
            rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82f63b78U : 0);
        table[0][byte] = rest;
    }
    for (int k = 1; k < 8; k++)
        for (int byte = 0; byte < 256; byte++) {
            uint32_t rest = table[k - 1][byte];
            table[k][byte] = (rest >> 8) ^ table[0][rest & 0xff];
        }
}

static uint32_t by_table(uint32_t crc, const unsigned char *at, size_t size)
{
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low = crc ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
                              (uint32_t)at[3] << 24);
        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
              table[4][low >> 24] ^ table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^
              table[0][at[7]];
    }
    for (; size > 0; size--, at++)
        crc = (crc >> 8) ^ table[0][(crc ^ *at) & 0xff];
    return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t
by_instruction(uint32_t crc, const unsigned char *at, size_t size)
{
    uint64_t sum = crc, word;
    for (; size >= 8; size -= 8, at += 8) {
        memcpy(&word, at, sizeof word);
        sum = __builtin_ia32_crc32di(sum, word);
    }
    for (; size > 0; size--, at++)
        sum = __builtin_ia32_crc32qi((uint32_t)sum, *at);
    return (uint32_t)sum;
}

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}
#elif defined(__aarch64__) && defined(__ORDER_LITTLE_ENDIAN__) &&                                  \
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* In assembler, since with some compilers <arm_acle.h> has it only when the whole source is
 * compiled for such a processor. */
static uint32_t by_instruction(uint32_t crc, const unsigned char *at, size_t size)
{
    uint64_t word;
    for (; size >= 8; size -= 8, at += 8) {
        memcpy(&word, at, sizeof word);
        __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
    }
    for (; size > 0; size--, at++)
        __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)*at));
    return crc;
}

static bool has_instruction(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
}
#else
static uint32_t by_instruction(uint32_t crc, const unsigned char *at, size_t size)
{
    return by_table(crc, at, size);
}

static bool has_instruction(void)
{
    return false;
}
#endif

uint32_t dt_crc32c_portable(const void *bytes, size_t size)
{
    return ~by_table(0xffffffffU, bytes, size);
}

uint32_t dt_crc32c(const void *bytes, size_t size)
{
    return has_instruction() ? ~by_instruction(0xffffffffU, bytes, size)
                             : dt_crc32c_portable(bytes, size);
}
