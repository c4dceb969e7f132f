/* SPDX-License-Identifier: MIT */
/* status - status codes and the per-thread error message
 *
 * The function that knows the cause writes one sentence and returns the code; callers
 * above pass the code on:
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
/* For a local variable: the function gets its address where its scope ends. Jansson's json_auto_t
 * is the same for JSON. */
#define DT_CLEANUP(function) __attribute__((cleanup(function)))
/* A local pointer to memory of malloc: dt_auto_free double *norm = calloc(count, sizeof *norm); */
#define dt_auto_free DT_CLEANUP(dt_free_at)
void dt_free_at(void *at); /* at: the address of the pointer */
/* Defines function_at for DT_CLEANUP of a pointer: DT_FREE_AT(dt_target_free, struct dt_target) */
#define DT_FREE_AT(function, type)                                                                 \
    static inline void function##_at(type **at)                                                    \
    {                                                                                              \
        function(*at);                                                                             \
    }

enum dt_status_code {
#define DT_STATUS(name, value, exit_code, text) name = value,
#include "base/status.def"
};
typedef int dt_status;

/* Keeps one sentence for this thread (cut at 1023 bytes, made UTF-8 and cleaned for a
 * terminal: base/text.h) and returns code. Lower case, no full stop, names the offending value
 * and what would work. */
dt_status dt_fail(dt_status code, const char *format, ...) DT_FORMAT(2, 3);

/* DT_ENOMEM: "out of memory", and what for: "for a query", "while drawing plans". */
dt_status dt_no_memory(const char *what);

/* The sentence of the last dt_fail of this thread; "" when there was none. Valid until the next
 * dt_fail, of which it may be an argument: dt_fail(status, "%s: %s", name, dt_message()). */
const char *dt_message(void);

/* An error that is kept with its sentence while other calls go on, which may fail too:
 *
 *     struct dt_error error = {DT_OK, ""};
 *     dt_error_keep(&error, measure(plan));
 *     dt_error_keep(&error, put_away(plan));
 *     return dt_error_raise(&error);
 */
struct dt_error {
    dt_status status; /* DT_OK: none is kept */
    char sentence[1024];
};

/* Keeps status, if it is the first error, and this thread's sentence. Returns status. */
dt_status dt_error_keep(struct dt_error *error, dt_status status);

/* The error, its sentence this thread's again, on whatever thread it was kept;
 * DT_OK when there is none. */
dt_status dt_error_raise(const struct dt_error *error) DT_MUST_CHECK;

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
