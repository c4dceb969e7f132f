/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include "base/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ALIKE         2.0 /* errors that differ by at most this factor have one cause */
#define UNSEEN_LEVELS 1.5 /* between sets without other programs */

struct errors {
    int count;
    double least, most;
};

/* Errors of the plans of several ranks. False when one of them is right, or has no error. */
static bool collect_errors(const struct dt_session *session, struct errors *errors)
{
    *errors = (struct errors){.least = INFINITY};
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (trial->ranks / dt_result_parts(trial) < 2 || !dt_session_counts(session, i) ||
            dt_target_breaks(session->target, &trial->point))
            continue;
        if (trial->outcome != DT_TRIAL_WRONG) {
            if (trial->outcome == DT_TRIAL_OK || trial->outcome == DT_TRIAL_SLOW)
                return false;
            continue;
        }
        if (!isfinite(trial->facts.verified_error) || trial->facts.verified_error <= 0)
            return false;
        errors->count++;
        errors->least = fmin(errors->least, trial->facts.verified_error);
        errors->most = fmax(errors->most, trial->facts.verified_error);
    }
    return errors->count > 1 && errors->most <= ALIKE * errors->least;
}

/* The least number of one digit above the error. */
static double accepting_tolerance(double error)
{
    double unit = pow(10, floor(log10(error)));
    return (floor(error / unit) + 1) * unit;
}

static void add_errors(const struct dt_session *session, const struct errors *errors,
                       struct dt_text *out)
{
    double most = accepting_tolerance(errors->most);
    dt_text_add(out,
                "all %d plans of several ranks differ from the 1-rank plan by about the same, "
                "%.2g: the reference or the data type may be at fault",
                errors->count, errors->most);
    if (session->target->foreign && most <= 1)
        dt_text_add(out, "; --max-error %.2g accepts them", most);
}

/* Bytes of what went wrong in a cause, without the run's number and the output's end: "the
 * command exited with 2". */
static size_t clause_of(const char **cause)
{
    int run = 0, number;
    if (sscanf(*cause, "run %d: %n", &number, &run) == 1)
        *cause += run;
    return strcspn(*cause, ";");
}

static bool failed_alike(const struct dt_result *a, const struct dt_result *b)
{
    const char *one = a->cause, *other = b->cause;
    size_t size = clause_of(&one);
    return a->outcome == b->outcome &&
           (a->outcome == DT_TRIAL_WRONG ||
            (size == clause_of(&other) && strncmp(one, other, size) == 0));
}

/* At least two plans beside the default and the documented plan were tried, and all of them failed
 * in the same way: the first of them. NULL: not so. A plan that does not fit into memory, or breaks
 * a limit, is no mistake. */
static const struct dt_result *others_failed(const struct dt_session *session, int *count)
{
    const struct dt_result *first = NULL;
    *count = 0;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (!dt_session_counts(session, i) || trial->outcome == DT_TRIAL_INTERRUPTED ||
            dt_point_equal(session->target->space, &trial->point, &session->target->fallback) ||
            dt_target_documented(session->target, &trial->point))
            continue;
        first = first != NULL ? first : trial;
        if (trial->outcome == DT_TRIAL_OK || trial->outcome == DT_TRIAL_SLOW ||
            trial->outcome == DT_TRIAL_MEMORY || trial->outcome == DT_TRIAL_LIMIT ||
            !failed_alike(first, trial))
            return NULL;
        ++*count;
    }
    return *count > 1 ? first : NULL;
}

static bool compares_batch(const struct dt_session *session, int batch)
{
    for (int i = 0; i < session->finals.entrant_count; i++)
        if (session->finals.entrants[i].result.samples.n > 0 &&
            session->finals.entrants[i].result.batch == batch &&
            !isfinite(session->finals.entrants[i].result.facts.verified_error))
            return true;
    return false;
}

/* The failed reference of a plan of the final comparison; NULL: there is none. */
static const struct dt_unverified *missing_reference(const struct dt_session *session)
{
    for (int i = 0; i < session->unverified_count; i++)
        if (compares_batch(session, session->unverified[i].batch))
            return &session->unverified[i];
    return NULL;
}

/* A plan was tried that a session need not try, or there is none, or the search ended by itself. */
static bool was_searched(const struct dt_session *session)
{
    int failed, tried = dt_session_tried_count(session, &failed);
    bool any =
        session->search.stopped || (session->target->plans >= 0 && tried >= session->target->plans);
    for (int i = 0; i < session->count && !any; i++)
        any = session->trials[i].outcome != DT_TRIAL_INTERRUPTED &&
              !dt_trials_is_known(session, &session->trials[i].point);
    return any;
}

static void add_not_searched(const struct dt_session *session, struct dt_text *out)
{
    int failed, tried = dt_session_tried_count(session, &failed);
    dt_text_add(out, "the session ended before its search: %d of ", tried);
    dt_target_plans(session->target, out);
    dt_text_add(out, " %s tried, and no other than those that are always tried",
                tried == 1 ? "was" : "were");
}

/* Too few sets are left of those that were made, as others were busy in some. */
static bool was_disturbed(const struct dt_session *session)
{
    const struct dt_sets *sets = &session->finals.sets;
    int quiet = dt_sets_quiet(sets);
    return quiet < DT_SETS_LEAST && quiet < sets->count;
}

static void add_disturbed(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_sets *sets = &session->finals.sets;
    double most = 0, gpus = 0;
    for (int s = 0; s < sets->count; s++) {
        most = fmax(most, dt_sets_disturbed(sets, s) ? sets->others[s] : 0);
        gpus = fmax(gpus, sets->gpus[s]);
    }
    dt_text_add(out, "other programs%s%s%s ", sets->disturber[0] != '\0' ? " (" : "",
                sets->disturber, sets->disturber[0] != '\0' ? ")" : "");
    if (gpus > 0)
        dt_text_add(out, "used %.0f of the GPUs", gpus);
    else
        dt_text_add(out, "kept up to %.1f of the cores busy", most);
    dt_text_add(out,
                " in %d of %d sets of the final comparison, and fewer than %d undisturbed sets "
                "decide nothing "
                "(DITTUNE_LOAD=none measures beside them)",
                sets->count - dt_sets_quiet(sets), sets->count, DT_SETS_LEAST);
}

/* How many times as long the first entrant took in one set as in another, where no load was seen; 1
 * where the best plan was faster in each of them. */
static double level_spread(const struct dt_session *session)
{
    const struct dt_session_finals *finals = &session->finals;
    const struct dt_entrant *first = &finals->entrants[0];
    if (finals->entrant_count == 0)
        return 1;
    if (finals->best > 0) {
        const struct dt_entrant *best = &finals->entrants[finals->best];
        const struct dt_objective *objective = session->target->objective;
        double times =
            objective->value(1, dt_result_images(&first->result), first->result.devices) /
            objective->value(1, dt_result_images(&best->result), best->result.devices);
        if (dt_sets_agree(first->visits, best->visits, times, &finals->sets))
            return 1;
    }
    return dt_sets_levels(first->visits, &finals->sets, DT_SETS_MOST);
}

void dt_session_doubt(const struct dt_session *session, struct dt_text *out)
{
    struct errors errors;
    const struct dt_unverified *reference = missing_reference(session);
    int failed;
    const struct dt_result *failure = others_failed(session, &failed);
    if (collect_errors(session, &errors))
        add_errors(session, &errors, out);
    else if (failure != NULL)
        dt_text_add(
            out, "all %d plans that were tried beside the %s failed in the same way (%s: %s)",
            failed, session->target->documented.known ? "default and documented plan" : "default",
            dt_outcome_text(failure->outcome), failure->cause);
    else if (reference != NULL)
        dt_text_add(out, "the plans were not verified, as their reference failed: %s",
                    reference->cause);
    else if (was_disturbed(session))
        add_disturbed(session, out);
    else if (!was_searched(session))
        add_not_searched(session, out);
    else if (level_spread(session) > UNSEEN_LEVELS)
        dt_text_add(out,
                    "one and the same plan took %.1f times as long in one set of the final "
                    "comparison as in another, as something that cannot be seen here changes its "
                    "time",
                    level_spread(session));
    else
        dt_verdict_unresolved(session, out);
}

void dt_session_undecided(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_session_finals *finals = &session->finals;
    const struct dt_result *fallback = dt_session_role(session, DT_ENTRANT_DEFAULT);
    const struct dt_entrant *candidate = dt_session_candidate(session);
    bool out_of_it = finals->entrant_count > 0 && finals->entrants[0].out;
    dt_auto_text doubt = {0};
    dt_session_doubt(session, &doubt);
    if (out_of_it)
        fallback = &finals->entrants[0].result;
    if (doubt.size > 0)
        dt_text_add(out, "%s", dt_text_at(&doubt));
    else if (out_of_it || (fallback != NULL && fallback->samples.n == 0))
        dt_text_add(out, "the default plan %s (%s%s%s)",
                    out_of_it ? "failed in the final comparison" : "was not measured",
                    dt_outcome_text(fallback->outcome), fallback->cause[0] != '\0' ? ": " : "",
                    fallback->cause);
    else if (finals->entrant_count > 0)
        dt_text_add(out,
                    "the final comparison got %d of the %d sets of fresh processes that it needs "
                    "at least",
                    candidate != NULL ? candidate->ratio.sets : finals->sets.count, DT_SETS_LEAST);
    else
        dt_text_add(out, "the session ended before a final comparison");
}

bool dt_doubts_failed(const struct dt_session *session)
{
    struct errors errors;
    int others;
    const struct dt_result *fallback = dt_session_role(session, DT_ENTRANT_DEFAULT);
    return (fallback != NULL && fallback->samples.n == 0 &&
            fallback->outcome != DT_TRIAL_INTERRUPTED && fallback->outcome != DT_TRIAL_HUNG) ||
           collect_errors(session, &errors) || others_failed(session, &others) != NULL;
}

bool dt_doubts_lack_time(const struct dt_session *session, double elapsed_seconds)
{
    const struct dt_sets *sets = &session->finals.sets;
    /* a further set would have fitted into the budget: something else than time
     * ended the comparison */
    bool left =
        sets->count > 0 && (int64_t)(elapsed_seconds * 1e9) + 2 * sets->set_ns < session->budget_ns;
    if (dt_doubts_failed(session) || missing_reference(session) != NULL || was_disturbed(session) ||
        left)
        return false;
    return !dt_session_enough(session) || !was_searched(session) ||
           isnan(dt_session_resolution(session));
}

void dt_need_text(const struct dt_session *session, double seconds, const char *before,
                  struct dt_text *out)
{
    bool minutes = seconds > DT_NEED_SECONDS_MOST, ran = false;
    for (int i = 0; i < session->count && !ran; i++)
        ran = session->trials[i].samples.n > 0;
    if (seconds > 0)
        dt_text_add(out, "%sa decided answer needs %s --budget %.0f%s", before,
                    ran ? "about" : "at least", minutes ? seconds / 60 : seconds,
                    minutes ? "m" : "s");
}

void dt_session_need(const struct dt_session *session, const char *before, struct dt_text *out)
{
    dt_need_text(session, (double)session->closing.need_ns * 1e-9, before, out);
    if (session->closing.need_ns > 0 && was_disturbed(session))
        dt_text_add(out, ", beside no other programs");
}

void dt_session_unusable(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_result *known = dt_session_role(session, DT_ENTRANT_DEFAULT);
    const struct dt_target *target = session->target;
    int64_t limit_ns = session->max_latency_ns;
    if (known != NULL && dt_session_eligible(session, known))
        return;
    if (known == NULL || (known->outcome == DT_TRIAL_OK && known->samples.n == 0)) {
        dt_text_add(out, "it was not measured");
    } else if (known->outcome != DT_TRIAL_OK) {
        dt_text_add(out, "it failed (%s%s%s)", dt_outcome_text(known->outcome),
                    known->cause[0] != '\0' ? ": " : "", known->cause);
    } else if (dt_target_wrong(target, &known->point, known->facts.verified_error)) {
        dt_text_add(out, "its output differs from the reference by %.2g, allowed %.2g",
                    known->facts.verified_error, target->tolerance);
    } else {
        dt_text_add(out, "a step of it takes ");
        dt_figure_time(known->summary.median, out);
        dt_text_add(out, ", longer than --max-latency ");
        dt_figure_time((double)limit_ns * 1e-9, out);
    }
}
