/* SPDX-License-Identifier: MIT */
#include "tuner/cli/report/report.h"

#include "base/columns.h"
#include "base/figures.h"
#include "db/stored.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct dt_interval stays = {1, 1};

struct dt_mix_work dt_mix_none(double share)
{
    return (struct dt_mix_work){.title = "not tuned", .part = {share, NAN, 1, stays}};
}

struct dt_mix_work dt_mix_work(const struct dt_session *session, double share)
{
    const struct dt_result *fallback = dt_session_role(session, DT_ENTRANT_DEFAULT);
    const struct dt_objective *objective = session->target->objective;
    struct dt_gain gain = dt_session_gain(session);
    struct dt_mix_work work = dt_mix_none(share);
    work.verdict = session->verdict;
    work.spent = objective->spent;
    snprintf(work.title, sizeof work.title, "%s", session->target->identity.title);
    if (fallback != NULL && fallback->samples.n > 0)
        work.part.seconds =
            dt_session_value(session, fallback) / (objective->one_batch ? fallback->batch : 1);
    if (session->verdict == DT_VERDICT_FASTER && gain.known) {
        work.part.gain = gain.ratio;
        work.part.interval = (struct dt_interval){gain.interval.low, gain.interval.high};
    }
    return work;
}

static bool counts(const struct dt_mix_work *work)
{
    return work->spent != NULL && work->part.seconds > 0;
}

/* Why the works have no common figure; NULL: they have. */
static const char *no_total(const struct dt_mix_work works[], int n)
{
    const char *spent = NULL;
    for (int i = 0; i < n; i++) {
        if (!counts(&works[i]))
            return "not all of them have a time with the default plan";
        if (spent != NULL && strcmp(spent, works[i].spent) != 0)
            return "their objectives differ: some count time, others device time";
        spent = works[i].spent;
    }
    return n > 0 ? NULL : "there are none";
}

/* DT_ENOMEM leaves NANs. */
static struct dt_mix total(const struct dt_mix_work works[], int n)
{
    struct dt_mix_part *parts = calloc((size_t)n + 1, sizeof *parts);
    for (int i = 0; parts != NULL && i < n; i++)
        parts[i] = works[i].part;
    struct dt_mix mix = dt_stats_mix(parts, parts != NULL ? n : 0);
    free(parts);
    return mix;
}

static double all_shares(const struct dt_mix_work works[], int n)
{
    double all = 0;
    for (int i = 0; i < n; i++)
        all += works[i].part.share;
    return all;
}

static void add_work(const struct dt_mix_work *work, int number, double all, struct dt_text *out)
{
    const struct dt_mix_part *part = &work->part;
    double seconds = part->seconds > 0 ? part->seconds : NAN;
    dt_text_add(out, "%-9d%5.0f %%%11s%11s", number, 100 * part->share / all,
                dt_figure_of(seconds).text, dt_figure_of(seconds / part->gain).text);
    if (part->gain != 1)
        dt_text_add(out, "  %.3f [%.3f, %.3f]", part->gain, part->interval.low,
                    part->interval.high);
    else
        dt_text_add(out, "  %s", dt_verdict_text(work->verdict));
    dt_text_add(out, "\n          %s\n", work->title);
}

void dt_mix_text(const struct dt_mix_work works[], int n, struct dt_text *out)
{
    const char *why = no_total(works, n);
    struct dt_text sentence = {0};
    dt_text_add(out, "\nworkload  share    default      tuned  times as fast\n");
    for (int i = 0; i < n; i++)
        add_work(&works[i], i + 1, all_shares(works, n), out);
    if (why != NULL) {
        dt_text_add(&sentence, "The mix has no figure of its own: %s.\n", why);
    } else {
        struct dt_mix mix = total(works, n);
        dt_text_add(&sentence,
                    "By these shares a step of an image takes %s of %s with the defaults and %s "
                    "tuned: %.3f [%.3f, %.3f] times as fast.\n",
                    dt_figure_of(mix.seconds).text, works[0].spent, dt_figure_of(mix.tuned).text,
                    mix.gain, mix.interval.low, mix.interval.high);
    }
    dt_columns_wrap(dt_text_at(&sentence), DT_COLUMNS_USUAL, 0, out);
    dt_text_fini(&sentence);
}

static json_t *interval(const struct dt_interval *given)
{
    return json_pack("[o, o]", dt_json_number(given->low), dt_json_number(given->high));
}

json_t *dt_mix_json(const struct dt_mix_work works[], int n)
{
    const char *why = no_total(works, n);
    struct dt_mix mix = total(works, why == NULL ? n : 0);
    json_t *parts = json_array();
    for (int i = 0; i < n; i++) {
        const struct dt_mix_part *part = &works[i].part;
        json_array_append_new(parts,
                              json_pack("{s:s, s:f, s:s, s:o, s:f, s:o}", "title", works[i].title,
                                        "share", part->share / all_shares(works, n), "verdict",
                                        dt_verdict_text(works[i].verdict), "default_seconds",
                                        dt_json_number(part->seconds), "gain", part->gain,
                                        "interval", interval(&part->interval)));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s?}", "workloads", parts, "default_seconds",
                     dt_json_number(why == NULL ? mix.seconds : NAN), "tuned_seconds",
                     dt_json_number(why == NULL ? mix.tuned : NAN), "gain",
                     dt_json_number(mix.gain), "interval", interval(&mix.interval), "reason", why);
}
