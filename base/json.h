/* SPDX-License-Identifier: MIT */
/* json - Jansson behind guards, and fields read with one sentence when they are wrong
 *
 * This header is the door to Jansson: other files include it, never <jansson.h>.
 *
 *     json_t *root = NULL;
 *     DT_TRY(dt_json_read(path, "the model file", &root));
 *     status = dt_json_int(root, "the model file", "heads", 1, 4096, &heads);
 *
 * Error messages begin with `what`: "the model file x.json: 'heads' is -3, expected 1 to 4096".
 * Text deeper than 32 levels, larger than 16 MiB, with repeated keys or NUL is
 * refused before parsing.
 */
#ifndef DT_BASE_JSON_H
#define DT_BASE_JSON_H

#include "base/status.h"
#include "base/text.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DT_JSON_MAX_BYTES (16 * 1024 * 1024)
#define DT_JSON_MAX_DEPTH 32

/* *root gets a new reference. Errors: DT_EIO (cannot be read, not a regular file), DT_EUSAGE (not
 * JSON, too deep, too large), each naming what, path, line and column. */
dt_status dt_json_read(const char *path, const char *what, json_t **root) DT_MUST_CHECK;
dt_status dt_json_parse(const char *text, size_t size, const char *what,
                        json_t **root) DT_MUST_CHECK;

/* The same with the caller's limits, for long tables. A value may take some
 * 100 bytes once parsed. */
struct dt_json_limits {
    size_t bytes, values;
};
dt_status dt_json_parse_within(const char *text, size_t size, struct dt_json_limits limits,
                               const char *what, json_t **root) DT_MUST_CHECK;
dt_status dt_json_read_within(const char *path, struct dt_json_limits limits, const char *what,
                              json_t **root) DT_MUST_CHECK;

/* Reads a required field of an object into *out, or fails with DT_EUSAGE (for an optional one, call
 * dt_json_has first). Strings, arrays and objects belong to the object. */
dt_status dt_json_int(const json_t *object, const char *what, const char *key, int64_t low,
                      int64_t high, int64_t *out) DT_MUST_CHECK;
dt_status dt_json_real(const json_t *object, const char *what, const char *key,
                       double *out) DT_MUST_CHECK;
dt_status dt_json_bool(const json_t *object, const char *what, const char *key,
                       bool *out) DT_MUST_CHECK;
dt_status dt_json_string(const json_t *object, const char *what, const char *key,
                         const char **out) DT_MUST_CHECK;
dt_status dt_json_array(const json_t *object, const char *what, const char *key,
                        json_t **out) DT_MUST_CHECK;
dt_status dt_json_object(const json_t *object, const char *what, const char *key,
                         json_t **out) DT_MUST_CHECK;
bool dt_json_has(const json_t *object, const char *key);
/* The text of a field, borrowed; "" where there is none. */
const char *dt_json_text_at(const json_t *object, const char *key);
json_int_t dt_json_integer_at(const json_t *object, const char *key); /* 0 where there is none */
double dt_json_number_at(const json_t *object, const char *key);      /* NAN where there is none */

/* The list has an equal value; the object of a list whose "name" it is, borrowed, or NULL. */
bool dt_json_contains(const json_t *list, const json_t *value);
bool dt_json_lists(const json_t *list, const char *name); /* the array has this string */
json_t *dt_json_named(const json_t *list, const char *name);

/* DT_EUSAGE when the object has a key that is not in the NULL-ended list; names it and
 * the nearest known key. */
dt_status dt_json_only(const json_t *object, const char *what,
                       const char *const known[]) DT_MUST_CHECK;

/* A number, new reference; null where it is not finite. */
json_t *dt_json_number(double value);

/* The array of n integers (values NULL: none), new reference; NULL when memory runs out. */
json_t *dt_json_ints(const int values[], int n);

/* A shallow copy of an object; NULL when memory runs out, where json_copy would drop fields. */
json_t *dt_json_copy(const json_t *object);

/* Compact text, keys in insertion order, no newline, appended to text. */
dt_status dt_json_text(const json_t *root, struct dt_text *text) DT_MUST_CHECK;
/* The same for standard output, which may be a terminal: what base/text.h does
 * not show is escaped. */
dt_status dt_json_shown(const json_t *root, struct dt_text *text) DT_MUST_CHECK;

/* Appends a string as it is, any other value as dt_json_text does. */
void dt_json_plain(const json_t *value, struct dt_text *text);

/* Called for each value of two objects that differs, or that one of them has not (NULL). Objects
 * that both have are compared inside: `inside` is their name, "" at the top. */
typedef void dt_json_difference(void *context, const char *inside, const char *name,
                                const json_t *then, const json_t *now);
void dt_json_differences(const json_t *then, const json_t *now, const char *inside,
                         dt_json_difference *take, void *context);

/* The row of names (NULL-ended) nearest to name by edit distance, else the first with a word that
 * begins with it, or NULL when none is near (for "did you mean"). */
const char *dt_json_nearest(const char *name, const char *const names[]);

#endif
