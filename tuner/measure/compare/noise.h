/* SPDX-License-Identifier: MIT */
/* noise - the noise floor from comparing a plan with itself: the smallest difference the machine can resolve now
 *
 * The same plan is made resident twice and compared like two plans. The interval of their ratio is the noise floor: smaller
 * differences between plans are not evidence (docs/measuring.md).
 */
#ifndef DT_TUNER_MEASURE_COMPARE_NOISE_H
#define DT_TUNER_MEASURE_COMPARE_NOISE_H

#include "tuner/measure/compare/compare.h"

#define DT_NOISE_MOST 0.05 /* above this margin or spread the machine is too noisy to judge */

struct dt_noise {
    int pairs;    /* 0: unknown, all other fields are NAN or false */
    int sets;     /* sets of fresh processes; 0: one start */
    double ratio; /* twin's times over the first copy's */
    struct dt_interval interval;
    double margin; /* a factor of 1 + margin, either way, may be noise */
    double cv;     /* spread of the visits of the noisier copy: 1.4826 MAD over the median */
    bool noisy;    /* margin or cv above DT_NOISE_MOST */
    bool differs;  /* the interval excludes 1: placement or order had an effect */
};

/* first: the plan (entrant 0 of the comparison); twin: the same plan once more, with its ratio against first. */
struct dt_noise dt_noise_of(const struct dt_entrant *first, const struct dt_entrant *twin);
struct dt_noise dt_noise_none(void); /* nothing is known: pairs is 0 */

/* Appends a warning about excessive noise, if any. */
void dt_noise_note(const struct dt_noise *noise, struct dt_text *out);

#endif
