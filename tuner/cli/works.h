/* SPDX-License-Identifier: MIT */
/* works - what one `dittune tune` tunes, one after the other: the sizes of --size, or
 * the workloads of a file
 *
 *     struct dt_works works;
 *     DT_TRY(dt_works_list(&options, &works));
 *     for (int i = 0; i < works.count && status == DT_OK; i++)
 *         status = dt_works_options(&works, i, &one);
 *     dt_works_fini(&works);
 */
#ifndef DT_TUNER_CLI_WORKS_H
#define DT_TUNER_CLI_WORKS_H

#include "base/json.h"
#include "stats/stats.h"
#include "tuner/cli/options.h"
#include "tuner/session/session.h"

struct dt_work {
    double share;
    char **words; /* the command line with the row's options; owned, NULL-ended */
    int word_count;
};

struct dt_works {
    const struct dt_options *options; /* the options as given */
    struct dt_work *list;             /* works of a file, owned; NULL: sizes */
    int count;
};

/* Reads --workloads FILE (docs/use.md "Several workloads"). DT_EUSAGE or DT_EIO names the file, the
 * row and what is wrong. */
dt_status dt_works_list(const struct dt_options *options, struct dt_works *works) DT_MUST_CHECK;

/* The options of work i, which borrow from works. DT_EUSAGE as for a command line. */
dt_status dt_works_options(const struct dt_works *works, int i,
                           struct dt_options *options) DT_MUST_CHECK;

/* Part of the requests, relative to the others. */
double dt_works_share(const struct dt_works *works, int i);

/* When work i ends that begins at now_ns: the time until end_ns is shared by it
 * and those behind it. */
int64_t dt_works_end(const struct dt_works *works, int i, int64_t now_ns, int64_t end_ns);

/* Appends the beginning of a sentence about work i: "mix.json, workload 2: "; nothing
 * where there is only one. */
void dt_works_name(const struct dt_works *works, int i, struct dt_text *out);

void dt_works_fini(struct dt_works *works);

/* ---- what each gained, and what their mix gains by their shares (stats.h, dt_stats_mix) */

struct dt_mix_work {
    char title[256];
    enum dt_verdict verdict;
    const char *spent; /* the cost of an image by the objective: "time"; NULL: it was not tuned */
    /* seconds: of an image, by the plan that the gain is told over; NAN: that has none */
    struct dt_mix_part part;
    bool documented; /* that is the documented plan, else the default */
};

struct dt_mix_work dt_mix_none(double share); /* not tuned */
/* A session's result, for a work with that share. */
struct dt_mix_work dt_mix_work(const struct dt_session *session, double share);

void dt_mix_text(const struct dt_mix_work works[], int n, struct dt_text *out);
json_t *dt_mix_json(const struct dt_mix_work works[], int n); /* docs/json.md; new reference */

#endif
