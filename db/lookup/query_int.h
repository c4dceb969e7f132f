/* SPDX-License-Identifier: MIT */
/* query_int - interface between the texts of a query and their interpretation */
#ifndef DT_DB_LOOKUP_QUERY_INT_H
#define DT_DB_LOOKUP_QUERY_INT_H

#include "db/lookup/lookup_int.h"

enum {
#define DT_ASK(name, kind) DT_ASK_##name,
#include "db/lookup/asks.def"
#undef DT_ASK
    DT_ASKS
};
extern const char *const dt_ask_names[]; /* NULL-ended */

/* DT_EUSAGE when value is never valid for that name. */
dt_status dt_query_check(int ask, const char *value) DT_MUST_CHECK;

void dt_query_unseal(struct dt_query *query);

#endif
