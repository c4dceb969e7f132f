/* SPDX-License-Identifier: MIT */
/* bench-predict-speed [N]: seconds that N predictions (default 1,000,000) of plans of Wan2.1 14B on
 * eight H100 take, and 300. */
#include "base/clock.h"
#include "model/predict.h"

#include <stdio.h>
#include <stdlib.h>

static double seconds_of(const struct dt_predict_job *job, long count, double *sum)
{
    int64_t began = dt_clock_ns();
    for (long i = 0; i < count; i++) {
        const struct dt_degrees degrees = {.cfg = 1 + (int)(i & 1),
                                           .tensor = 1 << (i >> 1 & 3),
                                           .ulysses = 1 << (i >> 3 & 3),
                                           .ring = 1 << (i >> 5 & 3)};
        struct dt_prediction prediction;
        dt_predict(job, &degrees, &prediction);
        *sum += prediction.step;
    }
    return (double)(dt_clock_ns() - began) * 1e-9;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
    struct dt_card card;
    struct dt_machine_card machine;
    double sum = 0;
    if (count < 1 || dt_card_load("wan2.1-t2v-14b", &card) != DT_OK ||
        dt_machine_card_load("8xh100", &machine) != DT_OK) {
        fprintf(stderr, "usage: bench-predict-speed [N]\n");
        return 2;
    }
    const struct dt_predict_job job = {
        .card = &card, .machine = &machine, .size = card.usual, .steps = 50, .guided = true};
    (void)seconds_of(&job, 300, &sum); /* warm */
    double few = seconds_of(&job, 300, &sum), many = seconds_of(&job, count, &sum);
    printf("300 predictions: %.3f ms; %ld: %.3f s (sum of steps %.6g)\n", few * 1e3, count, many,
           sum);
    return 0;
}
