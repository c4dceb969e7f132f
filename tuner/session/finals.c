/* SPDX-License-Identifier: MIT */
/* The shoot-out chooses the winner, the final comparison judges it on new samples, so that its
 * figure is free of the winner's curse (docs/measuring-appendix.md). */
#include "tuner/session/session_int.h"

#include "base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOOTOUT_SETS       2
#define STOP_SECONDS        0.6  /* to stop the last groups */
#define USUAL_START_SECONDS 0.5  /* start of a set's processes, while nothing is known */
#define VISIT_SECONDS       0.02 /* time of timed steps */
#define LEAST_ROUNDS        2    /* rounds of a set */
#define WARM_STEPS          2    /* steps of a plan before the first round of a set */
#define LOADS               3    /* groups of a set, where plans differ in their groups */
#define MARGIN              1.3
#define TWIN_MARGIN         1.05 /* nothing is decided without it */
#define FAR_BETTER          0.95 /* times the challenger's value */
#define CEILING_SECONDS     2    /* a large product and a large copy */

/* The plan may be compared: it ran, or its failure may be temporary. */
static bool may_run(const struct dt_session *session, const struct dt_point *point)
{
    const struct dt_result *trial = dt_session_trial(session, point);
    return trial != NULL &&
           (trial->outcome == DT_TRIAL_OK || dt_outcome_may_pass(trial->outcome)) &&
           !dt_verdict_cannot_run(session, trial);
}

/* Seconds of a plan's steps in one set: warm-up, and rounds of one untimed and some timed steps. */
static double steps_seconds(double step)
{
    double timed = fmin(fmax(ceil(VISIT_SECONDS / fmax(step, 1e-9)), 1), DT_VISIT_STEPS);
    return (WARM_STEPS + LEAST_ROUNDS * (1 + timed)) * step;
}

/* The same of a plan that ran. Where a step is a start, its time is the whole run,
 * whatever it printed, and a visit is one run. The first run of a trial is that of its
 * preparation, with the cold step. */
static double seconds_in_set(const struct dt_session *session, const struct dt_result *trial)
{
    if (!session->target->image.starts)
        return steps_seconds(trial->summary.median);
    double run = fmax(trial->wall_seconds, trial->facts.cold_seconds);
    return LEAST_ROUNDS * (isfinite(run) && run > 0 ? run : trial->summary.median);
}

/* `sets` sets of plans whose steps in a set take `steps` seconds: groups are loaded, and plans
 * are prepared, in each. */
static double comparison_seconds(const struct dt_tuning *tuning, int sets, int plans, double steps)
{
    const struct dt_rig *rig = &tuning->rig;
    double load = rig->costs.started > 0 ? dt_rig_load_seconds(rig) : USUAL_START_SECONDS;
    double loads = dt_rig_classes(rig).count > 1 ? fmin(plans, LOADS) : 1;
    return MARGIN * sets * (loads * load + plans * dt_rig_prepare_seconds(rig) + steps);
}

/* Seconds of the default in a set. */
static double default_seconds(const struct dt_session *session)
{
    const struct dt_result *known = dt_session_role(session, DT_ENTRANT_DEFAULT);
    return known != NULL && known->samples.n > 0 ? seconds_in_set(session, known) : 0;
}

double dt_finals_seconds(const struct dt_tuning *tuning, int more)
{
    const struct dt_point *known[DT_FIRST_MOST];
    double steps = more * default_seconds(tuning->session);
    int plans = more, n = dt_trials_first(tuning->session, known);
    for (int i = 0; i < n; i++) {
        const struct dt_result *trial = dt_session_trial(tuning->session, known[i]);
        bool runs = trial != NULL && trial->samples.n > 0;
        steps += runs ? seconds_in_set(tuning->session, trial) : 0;
        plans += runs || trial == NULL;
    }
    return comparison_seconds(tuning, DT_SETS_LEAST, plans, steps);
}

double dt_finals_shootout_seconds(const struct dt_tuning *tuning)
{
    int plans = DT_CANDIDATES + 1;
    return comparison_seconds(tuning, SHOOTOUT_SETS, plans,
                              plans * default_seconds(tuning->session));
}

int64_t dt_finals_latest(const struct dt_tuning *tuning)
{
    double need = dt_finals_shootout_seconds(tuning) + dt_finals_seconds(tuning, 2);
    return tuning->clock.deadline_ns - (int64_t)(need * 1e9);
}

static double seconds_until(int64_t ns)
{
    return (double)(ns - dt_clock_ns()) * 1e-9;
}

static bool same_entrants(const struct dt_target *target, const struct dt_compared *resumed,
                          const struct dt_compared *compared)
{
    bool same = resumed->entrants != NULL && resumed->count == compared->count;
    for (int i = 0; same && i < resumed->count; i++)
        same = resumed->entrants[i].role == compared->entrants[i].role &&
               dt_point_equal(target->space, &resumed->entrants[i].point,
                              &compared->entrants[i].point);
    return same;
}

/* Takes over the sets that the resumed session made of this comparison, if there are any. */
static bool take_resumed(const struct dt_target *target, struct dt_compared *resumed,
                         struct dt_compared *compared)
{
    if (!same_entrants(target, resumed, compared))
        return false;
    for (int i = 0; i < resumed->count; i++) {
        bool apart = compared->entrants[i].apart;
        compared->entrants[i] = resumed->entrants[i];
        compared->entrants[i].apart = apart;
    }
    compared->sets = resumed->sets;
    compared->complete = resumed->complete;
    free(resumed->entrants);
    resumed->entrants = NULL;
    return true;
}

struct keeper {
    struct dt_tuning *tuning;
    const struct dt_compared *compared;
};

static dt_status record_sets(void *context)
{
    const struct keeper *keeper = context;
    struct dt_log_record record = {.kind = DT_LOG_SETS, .compared = *keeper->compared};
    return dt_log_add(keeper->tuning->log, &record);
}

/* Between the sets of the final comparison the search goes on. The comparison ends when a plan is
 * found that looks far better. */
static dt_status try_plans(void *context, int64_t until_ns)
{
    const struct keeper *keeper = context;
    DT_TRY(dt_explore_more(keeper->tuning, until_ns));
    bool found = dt_finals_promising(keeper->tuning, FAR_BETTER) != NULL;
    return found && dt_clock_ns() < dt_finals_latest(keeper->tuning) ? DT_DONE : DT_OK;
}

/* The ceilings of the report's roofline, of GPUs in the time that is left after all else: measuring
 * them takes memory that the plans of a group must find free. On cores the first trial has them
 * (trials.c). Rates of ranks add up, so those of the default's devices give the others'. A failure
 * costs the ceilings only. */
static void measure_ceilings(struct dt_tuning *tuning, struct dt_compared *compared)
{
    const struct dt_target *target = tuning->target;
    struct dt_entrant *first = &compared->entrants[0];
    int64_t deadline = tuning->clock.deadline_ns - (int64_t)(STOP_SECONDS * 1e9);
    if (target->image.flops <= 0 || !target->hardware.backend.cuda || first->out ||
        seconds_until(deadline) < CEILING_SECONDS + MARGIN * dt_rig_load_seconds(&tuning->rig) ||
        dt_measure_ceilings(&tuning->rig, &first->point, deadline, &first->result) != DT_OK)
        return;
    for (int i = 1; i < compared->count; i++) {
        struct dt_result *other = &compared->entrants[i].result;
        double scale = (double)other->devices / first->result.devices;
        other->ceilings.flop_rate = scale * first->result.ceilings.flop_rate;
        other->ceilings.copy_rate = scale * first->result.ceilings.copy_rate;
    }
}

/* Runs a comparison and records its measurements, also when a signal ended it; the session then has
 * its entrants. One that the resumed session ended for good is recorded already. */
static dt_status compare_plans(struct dt_tuning *tuning, const struct dt_compare *given,
                               struct dt_compared *resumed, struct dt_compared *compared)
{
    struct dt_compare how = *given;
    struct keeper keeper = {tuning, compared};
    bool final = dt_compared_is_final(compared);
    how.warms = tuning->resume.searched;
    how.keep = record_sets;
    how.keeper = &keeper;
    how.between = final ? try_plans : NULL;
    compared->complete = false;
    compared->goes_on = how.goes_on = take_resumed(tuning->target, resumed, compared);
    if (compared->complete && compared->entrants[0].out)
        return DT_OK;
    if (tuning->watch != NULL)
        tuning->watch->compares(tuning->watch->context, compared->name);
    dt_status status =
        dt_compare_run(&tuning->rig, compared->entrants, compared->count, &how, &compared->sets);
    compared->complete = status == DT_OK;
    if (status == DT_OK && final)
        measure_ceilings(tuning, compared);
    if (status != DT_OK && status != DT_EINTR)
        return status;
    struct dt_log_record record = {.kind = DT_LOG_COMPARISON, .compared = *compared};
    dt_status recorded = dt_tuning_references(tuning);
    if (recorded == DT_OK)
        recorded = dt_log_add(tuning->log, &record);
    compared->count = record.compared.count;
    return status < 0 ? status : recorded;
}

/* Runs the shoot-out of the top plans; sets its rounds and ratios. A later one has a third of
 * the time that is left. */
static dt_status shoot_candidates(struct dt_tuning *tuning, struct dt_compared *shootout)
{
    int64_t all = tuning->clock.deadline_ns - tuning->clock.began_ns, now = dt_clock_ns();
    int64_t share = tuning->clock.began_ns + (int64_t)(DT_SHOOTOUT_SHARE * (double)all);
    int64_t third = now + (tuning->clock.deadline_ns - now) / 3;
    bool later = tuning->finals.later;
    struct dt_compare how = {.deadline_ns = later ? third : share,
                             .sets = SHOOTOUT_SETS,
                             .seed = (uint64_t)tuning->opts.job->seed +
                                     (uint64_t)(later ? tuning->finals.tried : 0),
                             .progress = tuning->watch != NULL ? tuning->watch->set : NULL,
                             .context = tuning->watch != NULL ? tuning->watch->context : NULL};
    return compare_plans(tuning, &how, &tuning->resume.shootout, shootout);
}

/* The top candidates, or those of the shoot-out that the resumed session began;
 * returns their number. */
static int shootout_points(const struct dt_tuning *tuning, struct dt_point points[DT_CANDIDATES])
{
    const struct dt_compared *resumed = &tuning->resume.shootout;
    const struct dt_result *top[DT_CANDIDATES];
    int n = resumed->entrants != NULL ? 0 : dt_verdict_candidates(tuning->session, top);
    for (int i = 0; i < n; i++)
        points[i] = top[i]->point;
    for (int i = 1; resumed->entrants != NULL && i < resumed->count && n < DT_CANDIDATES; i++)
        points[n++] = resumed->entrants[i].point;
    return n;
}

/* The winner of the shoot-out that was just recorded, or, where the resumed session ended it
 * for good, of that one. */
static void challenger_set(const struct dt_session *session, bool recorded,
                           struct dt_point *challenger)
{
    const struct dt_session_finals *from =
        recorded || session->next.chosen > 0 ? &session->next : &session->finals;
    if (from->chosen > 0)
        *challenger = from->winner;
}

/* Picks one challenger of the default among the top candidates; false when there is none.
 * *challenger: the one where there is no time to choose. */
static dt_status run_shootout(struct dt_tuning *tuning, struct dt_point *challenger, bool *found)
{
    struct dt_point points[DT_CANDIDATES];
    int n = shootout_points(tuning, points);
    if (!*found && n > 0)
        *challenger = points[0];
    *found = n > 0;
    double left = seconds_until(tuning->clock.deadline_ns) - STOP_SECONDS;
    bool begun = tuning->resume.shootout.entrants != NULL;
    if (n < 2 || (!begun && left < 2 * dt_finals_seconds(tuning, 2)))
        return DT_OK; /* the final comparison comes first */
    struct dt_entrant entrants[DT_CANDIDATES + 2];
    struct dt_compared shootout = {.name = DT_SHOOTOUT, .entrants = entrants, .count = n + 1};
    const struct dt_point *anchor = may_run(tuning->session, &tuning->target->fallback)
                                        ? &tuning->target->fallback
                                        : &points[0];
    entrants[0] = (struct dt_entrant){.role = DT_ENTRANT_DEFAULT, .point = *anchor};
    for (int i = 0; i < n; i++)
        entrants[i + 1] = (struct dt_entrant){.role = DT_ENTRANT_CANDIDATE, .point = points[i]};
    dt_status status = shoot_candidates(tuning, &shootout);
    if (status == DT_OK)
        challenger_set(tuning->session, shootout.count == 0, challenger);
    for (int i = 0; i < shootout.count; i++)
        dt_entrant_fini(&entrants[i]);
    return status;
}

/* The final comparison that runs, or the last one. */
static const struct dt_entrant *entrants_now(const struct dt_tuning *tuning, int *n)
{
    bool runs = tuning->finals.count > 0;
    *n = runs ? tuning->finals.count : tuning->session->finals.entrant_count;
    return runs ? tuning->finals.entrants : tuning->session->finals.entrants;
}

static const struct dt_entrant *candidate_of(const struct dt_entrant entrants[], int n)
{
    for (int i = 0; i < n; i++)
        if (entrants[i].role == DT_ENTRANT_CANDIDATE)
            return &entrants[i];
    return NULL;
}

static void enter_plan(struct dt_tuning *tuning, enum dt_entrant_role role,
                       const struct dt_point *point, bool decisive)
{
    struct dt_tuning_finals *finals = &tuning->finals;
    for (int i = 0; i < finals->count; i++)
        if (dt_point_equal(tuning->target->space, &finals->entrants[i].point, point))
            return;
    finals->entrants[finals->count++] =
        (struct dt_entrant){.role = role, .point = *point, .decisive = decisive};
}

/* The twin does not share the first plan's processes where the challenger does not. */
static bool twin_is_apart(const struct dt_tuning *tuning)
{
    const struct dt_entrant *entrants = tuning->finals.entrants;
    const struct dt_entrant *candidate = candidate_of(entrants, tuning->finals.count);
    return candidate != NULL &&
           !dt_rig_same_group(tuning->target, &entrants[0].point, &candidate->point);
}

/* Adds the twin, a second copy of the first plan, which is the default or the documented one, whose
 * ratios are noise. It shares that plan's processes if the challenger does, and has its own
 * otherwise, so that all differences but the plan itself are the same as the challenger's. */
static void enter_twin(struct dt_tuning *tuning, bool challenged)
{
    struct dt_tuning_finals *finals = &tuning->finals;
    if (finals->count == 0 || !dt_verdict_needs_twin(tuning->session, &finals->entrants[0]))
        return;
    double need = dt_finals_seconds(tuning, challenged ? 2 : 1) * TWIN_MARGIN / MARGIN;
    if (seconds_until(tuning->clock.deadline_ns) - STOP_SECONDS < need)
        return;
    finals->entrants[finals->count++] = (struct dt_entrant){.role = DT_ENTRANT_TWIN,
                                                            .point = finals->entrants[0].point,
                                                            .apart = twin_is_apart(tuning)};
}

/* The reference plan of the last comparison was excluded: the documented plan takes its place, with
 * a twin, else the next one, without. */
static void enter_others(struct dt_tuning *tuning)
{
    const struct dt_session_finals *fell = &tuning->session->finals;
    const struct dt_documented *documented = &tuning->target->documented;
    for (int i = 1; i < fell->entrant_count; i++)
        if (!fell->entrants[i].out &&
            dt_target_documented(tuning->target, &fell->entrants[i].point))
            enter_plan(tuning, DT_ENTRANT_DOCUMENTED, &documented->point, false);
    for (int i = 1; i < fell->entrant_count; i++)
        if (!dt_entrant_twin(&fell->entrants[i]))
            enter_plan(tuning, fell->entrants[i].role, &fell->entrants[i].point,
                       fell->entrants[i].decisive);
    enter_twin(tuning, tuning->finals.count > 1);
}

static bool has_twin(const struct dt_compared *compared)
{
    for (int i = 1; i < compared->count; i++)
        if (dt_entrant_twin(&compared->entrants[i]))
            return true;
    return false;
}

/* The entrants of the comparison that the resumed session began; false: it began none, or had no
 * time for a twin, without which its sets decide nothing. */
static bool enter_resumed(struct dt_tuning *tuning)
{
    struct dt_tuning_finals *finals = &tuning->finals;
    const struct dt_compared *resumed = &tuning->resume.final;
    if (resumed->entrants != NULL && !has_twin(resumed) &&
        dt_verdict_needs_twin(tuning->session, &resumed->entrants[0]))
        return false;
    for (int i = 0; resumed->entrants != NULL && i < resumed->count; i++)
        finals->entrants[finals->count++] =
            (struct dt_entrant){.role = resumed->entrants[i].role,
                                .point = resumed->entrants[i].point,
                                .decisive = resumed->entrants[i].decisive};
    for (int i = 0; i < finals->count; i++)
        finals->entrants[i].apart = dt_entrant_twin(&finals->entrants[i]) && twin_is_apart(tuning);
    return finals->count > 0;
}

static void enter_all(struct dt_tuning *tuning, const struct dt_point *challenger)
{
    const struct dt_session *session = tuning->session;
    const struct dt_target *target = tuning->target;
    bool fallback = may_run(session, &target->fallback);
    bool documented = target->documented.known && may_run(session, &target->documented.point);
    if (fallback)
        enter_plan(tuning, DT_ENTRANT_DEFAULT, &target->fallback, false);
    else if (documented) /* ratios are of the first entrant */
        enter_plan(tuning, DT_ENTRANT_DOCUMENTED, &target->documented.point, false);
    if (challenger != NULL)
        enter_plan(tuning, DT_ENTRANT_CANDIDATE, challenger, true);
    if (documented)
        enter_plan(tuning, DT_ENTRANT_DOCUMENTED, &target->documented.point, true);
    if (may_run(session, &target->baseline))
        enter_plan(tuning, DT_ENTRANT_BASELINE, &target->baseline, false);
    if (session->has_against && may_run(session, &session->against))
        enter_plan(tuning, DT_ENTRANT_AGAINST, &session->against, false);
    enter_twin(tuning, challenger != NULL);
}

/* The plan was the challenger of the comparison before. */
static bool compared_before(const struct dt_session *session, const struct dt_point *point)
{
    const struct dt_session_finals *finals = &session->finals;
    const struct dt_entrant *candidate = candidate_of(finals->entrants, finals->entrant_count);
    return candidate != NULL && dt_point_equal(session->target->space, &candidate->point, point);
}

const struct dt_result *dt_finals_promising(const struct dt_tuning *tuning, double times)
{
    int n;
    const struct dt_entrant *entrants = entrants_now(tuning, &n);
    const struct dt_result *first =
        dt_session_trial(tuning->session, n > 0 ? &entrants[0].point : &tuning->target->fallback);
    const struct dt_entrant *candidate = candidate_of(entrants, n);
    const struct dt_result *best = NULL;
    double least = 1; /* over the first plan, of the best one that was compared */
    if (first == NULL || !dt_session_eligible(tuning->session, first))
        return NULL;
    for (int i = 1; i < n; i++)
        if (entrants[i].role == DT_ENTRANT_CANDIDATE || entrants[i].role == DT_ENTRANT_DOCUMENTED)
            least = fmin(least, entrants[i].ratio.ratio);
    double value = dt_session_value(tuning->session, first) * times * least;
    for (int i = tuning->finals.tried; i < tuning->session->count; i++) {
        const struct dt_result *trial = &tuning->session->trials[i];
        if (dt_session_counts(tuning->session, i) && dt_session_eligible(tuning->session, trial) &&
            !(candidate != NULL &&
              dt_point_equal(tuning->target->space, &candidate->point, &trial->point)) &&
            dt_session_value(tuning->session, trial) < value) {
            value = dt_session_value(tuning->session, trial);
            best = trial;
        }
    }
    return best;
}

/* Sets of the final comparison until it is decided, or the time is over. */
static dt_status compare_finally(struct dt_tuning *tuning)
{
    struct dt_compare how = {.deadline_ns =
                                 tuning->clock.deadline_ns - (int64_t)(STOP_SECONDS * 1e9),
                             .sets = DT_SETS_USUAL,
                             .seed = (uint64_t)tuning->opts.job->seed + 1,
                             .progress = tuning->watch != NULL ? tuning->watch->set : NULL,
                             .context = tuning->watch != NULL ? tuning->watch->context : NULL};
    struct dt_tuning_finals *finals = &tuning->finals;
    struct dt_compared final = {.name = DT_FINAL_COMPARISON, .entrants = finals->entrants};
    dt_status status;
    do {
        if (finals->count == 0)
            enter_others(tuning);
        final.count = finals->count;
        status = compare_plans(tuning, &how, &tuning->resume.final, &final);
        for (int i = 0; i < final.count; i++)
            dt_entrant_fini(&finals->entrants[i]);
        finals->count = 0;
    } while (status == DT_OK && dt_verdict_first_fell(tuning->session));
    return status;
}

dt_status dt_finals_run(struct dt_tuning *tuning, const struct dt_point *found)
{
    struct dt_point challenger = found != NULL ? *found : tuning->target->fallback;
    bool challenged = found != NULL;
    tuning->finals.tried = tuning->session->count;
    tuning->finals.later = found != NULL;
    DT_TRY(run_shootout(tuning, &challenger, &challenged));
    if (found != NULL && challenged && compared_before(tuning->session, &challenger))
        return DT_OK;
    if (!enter_resumed(tuning))
        enter_all(tuning, challenged ? &challenger : NULL);
    return compare_finally(tuning);
}
