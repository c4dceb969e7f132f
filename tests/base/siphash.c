/* SPDX-License-Identifier: MIT */
/* SipHash-2-4 gives the values that its authors published: key 00 01 .. 0f, messages 00 01 02 ..  */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/siphash.h"

static void values_are_those_that_were_published(void **state)
{
    static const struct {
        size_t size;
        uint64_t hash;
    } published[] = {{0, UINT64_C(0x726fdb47dd0e0e31)},
                     {1, UINT64_C(0x74f839c593dc67fd)},
                     {8, UINT64_C(0x93f5f5799a932462)},
                     {15, UINT64_C(0xa129ca6149be45e5)}};
    unsigned char key[DT_SIPHASH_KEY], message[16];
    (void)state;
    for (unsigned char i = 0; i < 16; i++)
        key[i] = message[i] = i;
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++)
        assert_true(dt_siphash(key, message, published[i].size) == published[i].hash);
    key[0] ^= 1;
    assert_true(dt_siphash(key, message, 15) != published[3].hash);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_those_that_were_published)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
