/* SPDX-License-Identifier: MIT */
/* status - status codes and the per-thread error message
 *
 * The function that knows the cause writes one sentence and returns the code; callers above pass the code on:
 *
 *     if (heads % ulysses != 0)
 *         return dt_fail(DT_EUSAGE, "ulysses=%d does not divide the %d heads", ulysses, heads);
 *     DT_TRY(dt_space_seal(space));
 *
 * To add a code, add a row to status.def.
 */
#ifndef DT_BASE_STATUS_H
#define DT_BASE_STATUS_H

#define DT_MUST_CHECK        __attribute__((warn_unused_result))
#define DT_FORMAT(at, first) __attribute__((format(printf, at, first)))

enum dt_status_code {
#define DT_STATUS(name, value, exit_code, text) name = value,
#include "base/status.def"
#undef DT_STATUS
};
typedef int dt_status;

/* Keeps one sentence for this thread (cut at 1023 bytes, made UTF-8 and cleaned for a terminal: base/text.h) and returns code. Lower case,
 * no full stop, names the offending value and what would work. */
dt_status dt_fail(dt_status code, const char *format, ...) DT_FORMAT(2, 3);

/* The sentence of the last dt_fail of this thread; "" when there was none. Valid until the next dt_fail. */
const char *dt_message(void);

/* The row of a code: its text, and the exit code of a program that stops because of it. */
const char *dt_status_text(dt_status code);
int dt_status_exit(dt_status code);

/* Returns from the calling function when expr is an error; news (above zero) is let through. */
#define DT_TRY(expr)                                                                               \
    do {                                                                                           \
        dt_status dt_try_ = (expr);                                                                \
        if (dt_try_ < 0)                                                                           \
            return dt_try_;                                                                        \
    } while (0)

#endif
