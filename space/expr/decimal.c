/* SPDX-License-Identifier: MIT */
#include "space/expr/decimal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static const double POWERS[] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12};

/* Appends a digit, with the sign of the number, or a zero of an exponent. */
static bool push_digit(int64_t *value, int digit)
{
    return !__builtin_mul_overflow(*value, 10, value) &&
           !__builtin_add_overflow(*value, digit, value);
}

/* e-3, E+2; text is left where there is none. */
static int read_exponent(const char **text)
{
    char *end = NULL;
    const char *at = *text + 1;
    if ((**text != 'e' && **text != 'E') || !isdigit((unsigned char)at[*at == '-' || *at == '+']))
        return 0;
    long exponent = strtol(at, &end, 10);
    *text = end;
    return exponent > 99 ? 99 : exponent < -99 ? -99 : (int)exponent;
}

bool dt_decimal_read(const char *text, struct dt_decimal *decimal, size_t *size)
{
    const char *at = text + (*text == '-');
    int sign = *text == '-' ? -1 : 1; /* applied to each digit, so that INT64_MIN fits */
    int64_t value = 0;
    int digits = 0, seen = 0;
    bool fits = true, point = false;
    for (; isdigit((unsigned char)*at) || (*at == '.' && !point); at++) {
        point = point || *at == '.';
        seen += *at != '.';
        digits += point && *at != '.';
        fits = fits && (*at == '.' || push_digit(&value, sign * (*at - '0')));
    }
    if (seen == 0)
        return false;
    digits -= read_exponent(&at);
    for (; value != 0 && digits < 0 && fits; digits++)
        fits = push_digit(&value, 0);
    for (; digits > 0 && value % 10 == 0; digits--)
        value /= 10;
    *size = (size_t)(at - text);
    *decimal = (struct dt_decimal){.value = value, .digits = value == 0 ? 0 : digits};
    return fits && digits <= DT_DIGITS_MAX;
}

bool dt_decimal_of(double number, struct dt_decimal *decimal)
{
    char text[DT_TEXT_REAL];
    size_t size = 0;
    return dt_text_real(number, text) <= 17 && dt_decimal_read(text, decimal, &size) &&
           text[size] == 0;
}

bool dt_decimal_widen(struct dt_decimal decimal, int digits, int64_t *value)
{
    *value = decimal.value;
    for (int i = decimal.digits; i < digits; i++)
        if (__builtin_mul_overflow(*value, 10, value))
            return false;
    return true;
}

double dt_decimal_number(int64_t value, int digits)
{
    return (double)value / POWERS[digits];
}

void dt_decimal_add(int64_t value, int digits, struct dt_text *out)
{
    char text[32];
    for (; digits > 0 && value % 10 == 0; digits--)
        value /= 10;
    uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
    int n = snprintf(text, sizeof text, "%0*llu", digits + 1, (unsigned long long)size);
    dt_text_add(out, "%s%.*s%s%s", value < 0 ? "-" : "", n - digits, text, digits > 0 ? "." : "",
                text + n - digits);
}
