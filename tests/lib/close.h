/* SPDX-License-Identifier: MIT */
/* close - include after cmocka.h and math.h */
#ifndef DT_TESTS_LIB_CLOSE_H
#define DT_TESTS_LIB_CLOSE_H

#define assert_close(a, b, tolerance)                                                              \
    do {                                                                                           \
        if (!(fabs((a) - (b)) <= (tolerance)))                                                     \
            fail_msg("%s = %.12g, not %.12g", #a, (double)(a), (double)(b));                       \
    } while (0)

#endif
