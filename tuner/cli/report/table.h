/* SPDX-License-Identifier: MIT */
/* table - plans in rows that fit 80 columns: a column has one unit, and each plan is on an indented line below its figures */
#ifndef DT_TUNER_CLI_REPORT_TABLE_H
#define DT_TUNER_CLI_REPORT_TABLE_H

#include "tuner/measure/measure.h"

struct dt_table_row {
    const char *role;
    const struct dt_result *result;   /* a failure's row says why */
    const struct dt_entrant *entrant; /* with its ratio to the default; NULL: there is none */
};

/* Rows whose result is NULL are left out. */
void dt_table_text(const struct dt_table_row rows[], int n, const struct dt_target *target,
                   struct dt_text *out);

#endif
