/* SPDX-License-Identifier: MIT */
/* A table of measured times as anyone may have written it, read, predicted and scored as
 * `plan --against` does. */
#include "tuner/cli/planned/score.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int file;
static char path[64];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    file = memfd_create("table", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return file < 0;
}

/* What is scored has a time, an anchor and a prediction of both. */
static void check_rows(const struct dt_timings *table)
{
    for (int i = 0; i < table->count; i++) {
        const struct dt_measured_row *row = &table->rows[i];
        if (row->judged.scored && (row->why != NULL || !(row->seconds > 0) ||
                                   row->judged.anchor == i || !(row->judged.seconds > 0) ||
                                   isinf(row->judged.seconds) || !(row->judged.factor >= 1)))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct dt_scores scores;
    struct dt_timings table;
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size)
        return 0;
    if (dt_measured_read(path, &table) != DT_OK)
        return 0;
    scores = (struct dt_scores){.pairs = 0};
    dt_measured_predict(&table);
    dt_measured_score(&table, NULL, &scores);
    check_rows(&table);
    dt_measured_fini(&table);
    return 0;
}
