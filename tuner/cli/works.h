/* SPDX-License-Identifier: MIT */
/* works - what one `dittune tune` tunes, one after the other: the sizes of --size, or the workloads of a file
 *
 *     struct dt_works works;
 *     DT_TRY(dt_works_list(&options, &works));
 *     for (int i = 0; i < works.count && status == DT_OK; i++)
 *         status = dt_works_options(&works, i, &one);
 *     dt_works_fini(&works);
 */
#ifndef DT_TUNER_CLI_WORKS_H
#define DT_TUNER_CLI_WORKS_H

#include "tuner/cli/options.h"

struct dt_work {
    double share;
    char **words; /* the command line with the row's options; owned, NULL-ended */
    int word_count;
};

struct dt_works {
    const struct dt_options *options; /* as given */
    struct dt_work *list;             /* of a file, owned; NULL: sizes */
    int count;
    char **moved; /* room for the words of one, owned */
};

/* Reads --workloads FILE (docs/measuring.md "Several workloads"). DT_EUSAGE or DT_EIO names the file, the row and what is wrong. */
dt_status dt_works_list(const struct dt_options *options, struct dt_works *works) DT_MUST_CHECK;

/* The options of work i, valid until the next call. DT_EUSAGE as for a command line. */
dt_status dt_works_options(struct dt_works *works, int i, struct dt_options *options) DT_MUST_CHECK;

/* Part of the requests, relative to the others. */
double dt_works_share(const struct dt_works *works, int i);

/* When work i ends that begins at now_ns: the time until end_ns is shared by it and those behind it. */
int64_t dt_works_end(const struct dt_works *works, int i, int64_t now_ns, int64_t end_ns);

/* Appends the beginning of a sentence about work i: "mix.json, workload 2: "; nothing where there is only one. */
void dt_works_name(const struct dt_works *works, int i, struct dt_text *out);

void dt_works_fini(struct dt_works *works);

#endif
