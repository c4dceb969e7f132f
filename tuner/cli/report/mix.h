/* SPDX-License-Identifier: MIT */
/* mix - several tuned works as one: what each gained, and what their mix gains by their shares (stats.h, dt_stats_mix) */
#ifndef DT_TUNER_CLI_REPORT_MIX_H
#define DT_TUNER_CLI_REPORT_MIX_H

#include "stats/stats.h"
#include "tuner/session/session.h"

struct dt_mix_work {
    char title[256];
    enum dt_verdict verdict;
    const char
        *spent; /* what an image costs by the work's objective: "time"; NULL: it was not tuned */
    struct dt_mix_part
        part; /* seconds: of an image, by the default plan; NAN where that has none */
};

struct dt_mix_work dt_mix_none(double share); /* not tuned */
/* What a session found, of a work with that share. */
struct dt_mix_work dt_mix_work(const struct dt_session *session, double share);

void dt_mix_text(const struct dt_mix_work works[], int n, struct dt_text *out);
json_t *dt_mix_json(const struct dt_mix_work works[], int n); /* docs/json.md; new reference */

#endif
