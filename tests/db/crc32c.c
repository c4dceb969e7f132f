/* SPDX-License-Identifier: MIT */
/* CRC-32C against the check values of RFC 3720 (iSCSI), appendix B.4, and against
 * division by the polynomial. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "db/crc32c_int.h"
#include "db/journal.h"

#include <string.h>

static void matches_published_values(void **state)
{
    (void)state;
    unsigned char bytes[32];
    assert_int_equal(dt_crc32c("123456789", 9), 0xe3069283);
    assert_int_equal(dt_crc32c("", 0), 0);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(dt_crc32c(bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(dt_crc32c(bytes, sizeof bytes), 0x62a8ab43);
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    assert_int_equal(dt_crc32c(bytes, sizeof bytes), 0x46dd794e);
}

/* The remainder bit by bit, without a table, most significant bit first on mirrored input. */
static uint32_t divide(const unsigned char *bytes, size_t size)
{
    uint32_t rest = 0xffffffffU, mirrored = 0;
    for (size_t i = 0; i < 8 * size; i++) {
        uint32_t bit = (uint32_t)(bytes[i / 8] >> (i % 8)) & 1;
        uint32_t top = (rest >> 31) ^ bit;
        rest = (rest << 1) ^ (top != 0 ? 0x1edc6f41U : 0);
    }
    for (int i = 0; i < 32; i++)
        mirrored |= ((rest >> i) & 1) << (31 - i);
    return ~mirrored;
}

static void matches_long_division(void **state)
{
    (void)state;
    unsigned char bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)dt_rng_hash(1, 2, i);
    for (size_t size = 0; size <= sizeof bytes; size += 7) {
        assert_int_equal(dt_crc32c(bytes, size), divide(bytes, size));
        assert_int_equal(dt_crc32c_portable(bytes, size), divide(bytes, size));
    }
}

/* At any address and of any length: eight bytes at a time, and what is left. */
static void instruction_and_table_agree(void **state)
{
    (void)state;
    unsigned char bytes[5000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)dt_rng_hash(3, 4, i);
    for (size_t at = 0; at < 9; at++)
        for (size_t size = 0; size < sizeof bytes - at; size += size < 40 ? 1 : 97)
            assert_int_equal(dt_crc32c(bytes + at, size), dt_crc32c_portable(bytes + at, size));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_published_values),
        cmocka_unit_test(matches_long_division),
        cmocka_unit_test(instruction_and_table_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
