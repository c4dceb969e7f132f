/* SPDX-License-Identifier: MIT */
/* Names and sentences come from workers, and from stores that others wrote: before they are kept or shown they are made
 * UTF-8 in which nothing but characters is left. */
#include "tuner/check/check.h"

size_t dt_check_character(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    unsigned char c = at[0];
    if (c < 0x80)
        return c >= 0x20 && c != 0x7f ? 1 : 0;
    size_t size = c >= 0xf0 && c <= 0xf4  ? 4
                  : c >= 0xe0 && c < 0xf0 ? 3
                  : c >= 0xc2 && c < 0xe0 ? 2
                                          : 0;
    for (size_t i = 1; i < size; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (c == 0xe0 && at[1] < 0xa0) || (c == 0xf0 && at[1] < 0x90);
    bool surrogate = c == 0xed && at[1] >= 0xa0;
    bool beyond = c == 0xf4 && at[1] >= 0x90;
    bool none = c == 0xef && at[1] == 0xbf && at[2] >= 0xbe;
    bool control = c == 0xc2 && at[1] < 0xa0;
    return overlong || surrogate || beyond || none || control ? 0 : size;
}

void dt_check_clean(char text[])
{
    for (char *at = text; *at != '\0';) {
        size_t size = dt_check_character(at);
        if (size == 0)
            *at = '?';
        at += size > 0 ? size : 1;
    }
}
