/* SPDX-License-Identifier: MIT */
/* canonical - a unique text of a JSON value, independent of its layout
 *
 * Compact, the keys of each object sorted by their bytes; a real number is `r` and the sixteen hex
 * digits of its bits (IEEE 754), because decimal spellings of a real change with the JSON library.
 * Ids and checksums are of this text, so re-indenting a file, or writing it with another version of
 * the library, does not change them.
 */
#ifndef DT_DB_CANONICAL_INT_H
#define DT_DB_CANONICAL_INT_H

#include "base/json.h"

/* Appends the text. DT_EUSAGE when value is nested deeper than
 * DT_JSON_MAX_DEPTH levels; DT_ENOMEM. */
dt_status dt_canonical_add(const json_t *value, struct dt_text *text) DT_MUST_CHECK;

#endif
