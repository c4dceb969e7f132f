/* SPDX-License-Identifier: MIT */
/* decimal - numbers such as 0.85 as an integer and the number of its digits
 * after the point: 85 and 2 */
#ifndef DT_SPACE_EXPR_DECIMAL_H
#define DT_SPACE_EXPR_DECIMAL_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { DT_DIGITS_MAX = 12 };

struct dt_decimal {
    int64_t value;
    int digits;
};

/* The decimal that a text begins with ("12", "-0.5", "1.5e-3"), with as few digits as it needs;
 * *size: its bytes. Returns false for a text that begins with no number, or one that needs more
 * than DT_DIGITS_MAX digits or 64 bits. */
bool dt_decimal_read(const char *text, struct dt_decimal *decimal, size_t *size);
/* The shortest decimal that is the number as a double. */
bool dt_decimal_of(double number, struct dt_decimal *decimal);
/* The value with more digits; false: it does not fit 64 bits. */
bool dt_decimal_widen(struct dt_decimal decimal, int digits, int64_t *value);
double dt_decimal_number(int64_t value, int digits);
void dt_decimal_add(int64_t value, int digits, struct dt_text *out);

#endif
