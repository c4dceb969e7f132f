/* SPDX-License-Identifier: MIT */
/* dose - what differs between the full run of a test (DITTUNE_DOSE=full, the word "dose" in its
 * ctest line) and that of test.sh without --full (DITTUNE_DOSE=thin); a test by hand, and on a
 * GPU, is between the two
 *
 * A test whose claim holds for all that it draws takes its seeds from dose_seed: fixed in the plain
 * run, so that it repeats; drawn and printed in the full one. DITTUNE_SEED=N repeats that. */
#ifndef DT_TESTS_LIB_DOSE_H
#define DT_TESTS_LIB_DOSE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static inline bool dose_full(void)
{
    const char *dose = getenv("DITTUNE_DOSE");
    return dose != NULL && strcmp(dose, "full") == 0;
}

/* Each kind of case once. */
static inline bool dose_thin(void)
{
    const char *dose = getenv("DITTUNE_DOSE");
    return dose != NULL && strcmp(dose, "thin") == 0;
}

/* name: of what is drawn. */
static inline uint64_t dose_seed(const char *name, uint64_t plain)
{
    const char *told = getenv("DITTUNE_SEED");
    uint64_t seed = plain;
    if (told != NULL)
        seed = strtoull(told, NULL, 10);
    else if (!dose_full() || getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        return plain;
    printf("%s: DITTUNE_SEED=%llu\n", name, (unsigned long long)seed);
    return seed;
}

#endif
