/* SPDX-License-Identifier: MIT */
/* mutant - changes to a text that keep it nearly right
 *
 * The JSON library is not instrumented, so random bytes never get past it: what is below it sees
 * only text that is no JSON. These changes know values, members and lists, and words that mean
 * something to the reader; checksums are put right afterwards by each target.
 *
 *     size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
 *     {
 *         struct mutant m = mutant_of(data, size, room, seed, words);
 *         mutant_json(&m, 0, m.size);
 *         return m.size;
 *     }
 */
#ifndef DT_TESTS_FUZZ_MUTANT_H
#define DT_TESTS_FUZZ_MUTANT_H

#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mutant {
    char *bytes; /* borrowed, size of room used */
    size_t size, room;
    struct dt_rng rng;
    const char *const *words; /* JSON values the reader knows, NULL-ended */
};

struct mutant mutant_of(uint8_t *data, size_t size, size_t room, unsigned seed,
                        const char *const words[]);

/* One to eight changes of the JSON text at from..to-1; other bytes stay. Returns the new end. */
size_t mutant_json(struct mutant *m, size_t from, size_t to);

/* Bytes at..at+remove-1 become text; false, and nothing changes, when there is no room. */
bool mutant_splice(struct mutant *m, size_t at, size_t remove, const char *text, size_t size);

/* Below n, n at least 1. */
size_t mutant_pick(struct mutant *m, size_t n);

/* Any change of bytes, by libFuzzer. */
void mutant_bytes(struct mutant *m);

/* The end of the line at `at`: its line feed, or the end. */
size_t mutant_line_end(const struct mutant *m, size_t at);

/* The start of one of the lines. */
size_t mutant_line(struct mutant *m);

/* Swaps, repeats, drops or cuts a line. */
void mutant_lines(struct mutant *m);

/* Eight hex digits at `at`: the CRC-32C of from..to-1. */
void mutant_crc(struct mutant *m, size_t at, size_t from, size_t to);

/* A change of a journal: of a record, or of its lines; most records get their checksum again.
 * Returns the new size. */
size_t mutant_journal(struct mutant *m);

/* Where text last occurs in from..to-1; SIZE_MAX: nowhere. */
size_t mutant_last(const struct mutant *m, size_t from, size_t to, const char *text);

#endif
