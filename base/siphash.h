/* SPDX-License-Identifier: MIT */
/* siphash - SipHash-2-4, a keyed hash (Aumasson, Bernstein 2012): without the key nobody can tell
 * whether a guessed text has this hash */
#ifndef DT_BASE_SIPHASH_H
#define DT_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

#define DT_SIPHASH_KEY 16 /* bytes */

uint64_t dt_siphash(const unsigned char key[DT_SIPHASH_KEY], const void *bytes, size_t size);

#endif
