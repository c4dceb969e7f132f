/* SPDX-License-Identifier: MIT */
/* same_session - two sessions compared field by field
 *
 * What a record does not have is left out: facts about how a trial was run that only the controller
 * needs while it runs (cores that our own processes kept busy, time spent on references, the
 * trace), and what a comparison knows of its processes. */
#ifndef DT_TESTS_TUNER_SESSION_SAME_SESSION_H
#define DT_TESTS_TUNER_SESSION_SAME_SESSION_H

#include "tuner/session/session.h"

#include <math.h>
#include <string.h>

static inline bool same_real(double a, double b)
{
    return isnan(a) ? isnan(b) : !isnan(b) && !(a < b) && !(a > b);
}

static inline bool same_reals(const double a[], const double b[], size_t n)
{
    bool same = (a == NULL) == (b == NULL);
    for (size_t i = 0; same && a != NULL && i < n; i++)
        same = same_real(a[i], b[i]);
    return same;
}

static inline bool same_bytes(const void *a, const void *b, size_t size)
{
    return (a == NULL) == (b == NULL) && (a == NULL || memcmp(a, b, size) == 0);
}

/* Returns the field's name where it differs. */
#define SAME_INT(field)                                                                            \
    if (a->field != b->field)                                                                      \
    return #field
#define SAME_REAL(field)                                                                           \
    if (!same_real(a->field, b->field))                                                            \
    return #field
#define SAME_TEXT(field)                                                                           \
    if (strcmp(a->field, b->field) != 0)                                                           \
    return #field
#define SAME_ALL(field, n)                                                                         \
    if (!same_bytes(a->field, b->field, (size_t)(n) * sizeof *a->field))                           \
    return #field
#define SAME_REALS(field, n)                                                                       \
    if (!same_reals(a->field, b->field, (size_t)(n)))                                              \
    return #field
#define SAME_JSON(field)                                                                           \
    if ((a->field == NULL) != (b->field == NULL) ||                                                \
        (a->field != NULL && !json_equal(a->field, b->field)))                                     \
    return #field

static inline const char *differs_report(const struct dt_result *a, const struct dt_result *b)
{
    size_t all = (size_t)a->report.steps * (size_t)a->ranks;
    SAME_INT(report.steps);
    SAME_ALL(report.ns, all);
    SAME_INT(report.warm_up_steps);
    SAME_INT(report.request_count);
    SAME_ALL(report.requests, a->report.request_count);
    SAME_REALS(report.clock, all);
    SAME_INT(report.start_count);
    SAME_ALL(report.starts, a->report.start_count);
    SAME_REAL(ceilings.flop_rate);
    SAME_REAL(ceilings.copy_rate);
    SAME_ALL(report.device_ns, all);
    SAME_ALL(report.host_ns, all);
    SAME_INT(throttling.count);
    SAME_INT(throttling.all);
    SAME_INT(throttling.marked);
    SAME_ALL(throttling.marks, a->throttling.marked);
    return NULL;
}

static inline const char *differs_samples(const struct dt_result *a, const struct dt_result *b)
{
    SAME_INT(samples.start);
    SAME_INT(samples.steady);
    SAME_INT(samples.n);
    SAME_REALS(samples.seconds, a->samples.n);
    SAME_REAL(samples.skew_seconds);
    SAME_REALS(samples.rank_seconds, a->ranks);
    SAME_ALL(samples.last, a->ranks);
    SAME_REAL(summary.median);
    SAME_REAL(summary.mean);
    SAME_REAL(summary.min);
    SAME_REAL(summary.max);
    SAME_REAL(summary.mad);
    SAME_REAL(summary.interval.low);
    SAME_REAL(summary.interval.high);
    SAME_REAL(summary.level);
    SAME_INT(summary.unreliable);
    SAME_REAL(summary.series.lag1);
    return NULL;
}

/* trial: and not an entrant of a comparison. */
static inline const char *differs_result(const struct dt_result *a, const struct dt_result *b,
                                         bool trial)
{
    SAME_ALL(point.index, DT_AXES_MAX);
    SAME_INT(outcome);
    SAME_TEXT(cause);
    SAME_INT(ranks);
    SAME_INT(batch);
    SAME_INT(devices);
    SAME_INT(facts.peak_bytes);
    SAME_REAL(facts.cold_seconds);
    SAME_REAL(facts.verified_error);
    SAME_REAL(facts.image_error);
    SAME_REAL(facts.repeat_error);
    if (trial) {
        SAME_REAL(facts.others);
        SAME_REAL(facts.gpus);
        SAME_REAL(facts.slowdown);
        SAME_INT(undone);
        SAME_REAL(facts.predicted);
        SAME_REAL(facts.cost_seconds);
    }
    const char *name = differs_report(a, b);
    return name != NULL ? name : differs_samples(a, b);
}

static inline const char *differs_entrant(const struct dt_entrant *a, const struct dt_entrant *b)
{
    SAME_INT(role);
    SAME_ALL(point.index, DT_AXES_MAX);
    SAME_REALS(visits, DT_ROUNDS_MOST);
    SAME_INT(ratio.pairs);
    SAME_INT(ratio.sets);
    SAME_REAL(ratio.ratio);
    SAME_REAL(ratio.interval.low);
    SAME_REAL(ratio.interval.high);
    SAME_INT(failures);
    SAME_INT(out);
    SAME_INT(out_set);
    SAME_INT(decisive);
    return differs_result(&a->result, &b->result, false);
}

static inline const char *differs_shots(const struct dt_session_finals *a,
                                        const struct dt_session_finals *b)
{
    SAME_INT(shot_count);
    for (int i = 0; i < a->shot_count; i++) {
        SAME_ALL(shots[i].point.index, DT_AXES_MAX);
        SAME_REAL(shots[i].value);
        SAME_INT(shots[i].figures.median_ns);
        SAME_INT(shots[i].figures.interval_ns.low);
        SAME_INT(shots[i].figures.interval_ns.high);
        SAME_INT(shots[i].figures.peak_bytes);
    }
    SAME_INT(chosen);
    SAME_ALL(winner.index, DT_AXES_MAX);
    SAME_INT(tie_count);
    for (int i = 0; i < a->tie_count; i++)
        SAME_ALL(ties[i].index, DT_AXES_MAX);
    return NULL;
}

static inline const char *differs_finals(const struct dt_session_finals *a,
                                         const struct dt_session_finals *b)
{
    SAME_INT(entrant_count);
    SAME_INT(best);
    SAME_INT(opponent);
    SAME_INT(verdict);
    SAME_INT(limit_broken);
    SAME_INT(sets.count);
    SAME_ALL(sets.rounds, a->sets.count);
    SAME_REALS(sets.others, a->sets.count);
    SAME_REALS(sets.stolen, a->sets.count);
    SAME_REALS(sets.stalled, a->sets.count);
    SAME_REALS(sets.gpus, a->sets.count);
    SAME_TEXT(sets.disturber);
    SAME_INT(sets.company);
    SAME_INT(sets.loads);
    SAME_INT(sets.setup_ns);
    SAME_INT(sets.round_ns);
    SAME_INT(sets.set_ns);
    for (int i = 0; i < a->entrant_count; i++) {
        const char *name = differs_entrant(&a->entrants[i], &b->entrants[i]);
        if (name != NULL)
            return name;
    }
    return differs_shots(a, b);
}

static inline const char *differs_search(const struct dt_session *a, const struct dt_session *b)
{
    SAME_TEXT(search.name);
    SAME_TEXT(search.why);
    SAME_TEXT(search.prior);
    SAME_TEXT(search.note);
    SAME_INT(search.stopped);
    SAME_INT(search.known_count);
    for (int i = 0; i < a->search.known_count; i++)
        SAME_ALL(search.known[i].index, DT_AXES_MAX);
    SAME_INT(search.weighed);
    SAME_REALS(search.importance, a->search.weighed ? DT_AXES_MAX : 0);
    return NULL;
}

/* The name of a field that differs; NULL: none does. */
static inline const char *differs_session(const struct dt_session *a, const struct dt_session *b)
{
    SAME_TEXT(id);
    SAME_INT(budget_ns);
    SAME_INT(max_latency_ns);
    SAME_INT(has_against);
    SAME_ALL(against.index, DT_AXES_MAX);
    SAME_JSON(fingerprint.hard);
    SAME_JSON(fingerprint.soft);
    SAME_TEXT(host);
    SAME_TEXT(boot_id);
    SAME_INT(count);
    SAME_INT(tried.leader);
    SAME_INT(slowest_ns);
    SAME_INT(clocks.ranks);
    SAME_REALS(clocks.rate, a->clocks.ranks);
    SAME_INT(unverified_count);
    for (int i = 0; i < a->unverified_count; i++) {
        SAME_INT(unverified[i].batch);
        SAME_TEXT(unverified[i].cause);
    }
    SAME_INT(closing.elapsed_ns);
    SAME_INT(closing.need_ns);
    SAME_INT(closing.compared_ns);
    SAME_INT(verdict);
    SAME_INT(ended);
    const char *name = differs_search(a, b);
    for (int i = 0; name == NULL && i < a->count; i++) {
        name = dt_session_counts(a, i) == dt_session_counts(b, i) ? NULL : "counts";
        if (name == NULL)
            name = differs_result(&a->trials[i], &b->trials[i], true);
    }
    if (name == NULL)
        name = differs_finals(&a->finals, &b->finals);
    return name != NULL ? name : differs_shots(&a->next, &b->next);
}

#endif
