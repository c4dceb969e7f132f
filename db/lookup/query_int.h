/* SPDX-License-Identifier: MIT */
/* query_int - interface between the texts of a query and their interpretation */
#ifndef DT_DB_LOOKUP_QUERY_INT_H
#define DT_DB_LOOKUP_QUERY_INT_H

#include "db/lookup/lookup_int.h"
#include "model/task.h"

enum {
#define DT_ASK(name, kind) DT_ASK_##name,
#include "db/lookup/asks.def"
#undef DT_ASK
    DT_ASKS
};
extern const char *const dt_ask_names[]; /* NULL-ended */

/* DT_EUSAGE when value is never valid for that name. */
dt_status dt_query_check(int ask, const char *value) DT_MUST_CHECK;

/* Its task, whose texts are the query's; of several batches the first. DT_EUSAGE. */
dt_status dt_query_task(const struct dt_query *query, struct dt_task *task) DT_MUST_CHECK;
/* It may be about the entries tuned on an engine, and about the built-in network. */
bool dt_query_is_tuned(const struct dt_query *query);
dt_status dt_query_is_network(const struct dt_query *query, bool *is) DT_MUST_CHECK;
dt_status dt_query_seal_tuned(const struct dt_query *query, struct dt_asked *asked) DT_MUST_CHECK;

/* The number of a name, checked when it was set; fallback when not set. */
int64_t dt_query_number(const struct dt_query *query, int ask, int64_t fallback);
/* Pixels of the image; 0: not set. */
dt_status dt_query_size(const struct dt_query *query, int64_t *height,
                        int64_t *width) DT_MUST_CHECK;
/* Sets devices, objective, limits and the time. */
void dt_query_limits(const struct dt_query *query, struct dt_asked *asked);
/* Sets the hard fingerprint. */
dt_status dt_query_hardware(const struct dt_query *query, struct dt_asked *asked) DT_MUST_CHECK;

void dt_query_unseal(struct dt_query *query);

#endif
