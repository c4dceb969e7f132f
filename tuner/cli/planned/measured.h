/* SPDX-License-Identifier: MIT */
/* measured - a table of measured times (CSV), read as rows that predictions can be held against
 *
 * Columns, units and words of a table: docs/cost.md. Texts of models, devices and
 * metrics are people's: what is not understood leaves a row out, with the reason, and
 * never gives it another meaning.
 *
 *     struct dt_timings table;
 *     DT_TRY(dt_measured_read("table.csv", &table));
 *     dt_measured_predict(&table);        score.h
 *     dt_measured_fini(&table);
 */
#ifndef DT_TUNER_CLI_PLANNED_MEASURED_H
#define DT_TUNER_CLI_PLANNED_MEASURED_H

#include "model/predict.h"

enum { DT_MEASURED_WORD = 64, DT_MEASURED_TEXT = 256, DT_MEASURED_ROWS = 1024 };

/* The part of a request that a row's time measures; DT_METRIC_VAE is fitted, not scored. */
enum dt_metric {
    DT_METRIC_REQUEST,
    DT_METRIC_STEPS,
    DT_METRIC_STEP,
    DT_METRIC_VAE,
    DT_METRIC_NONE
};

/* The texts of a table's row. */
struct dt_measured_text {
    char table[DT_MEASURED_WORD], gpu[DT_MEASURED_WORD], engine[DT_MEASURED_WORD];
    char metric[DT_MEASURED_WORD], model[DT_MEASURED_TEXT];
    int line;
};

struct dt_measured_row {
    struct dt_measured_text text;
    struct dt_degrees degrees;
    struct dt_card card;
    struct dt_machine_card machine;
    struct dt_predict_job job; /* points to the two above */
    enum dt_metric metric;
    double seconds, memory_bytes; /* memory: 0: not given; infinite: there was too little */
    bool known;                   /* card, machine and size of the job are */
    bool moved;                   /* its size is the nearest that the model takes */
    bool offloaded;               /* some weights are on the host */
    bool unsure;     /* its modes, size, steps, device or link are not those of the forms */
    const char *why; /* it is not scored; NULL: it is */
    struct dt_projection {
        struct dt_prediction prediction;
        double seconds, factor; /* predicted; of the 80 % interval */
        int anchor;             /* the row that scaled it; -1: none */
        bool scored;            /* it has an anchor, which is not itself */
        bool compared;          /* with other plans of its job: its time has no better stand-in */
    } judged;
};

struct dt_timings {
    struct dt_measured_row *rows; /* owned */
    int count;
    const char *path; /* the caller's */
};

/* DT_EUSAGE: a column, unit or number is not as expected, or there are no rows; DT_EIO.
 * *table is set on success. */
dt_status dt_measured_read(const char *path, struct dt_timings *table) DT_MUST_CHECK;
void dt_measured_fini(struct dt_timings *table);

#endif
