/* SPDX-License-Identifier: MIT */
/* The shoot-out chooses the winner, the final comparison judges it on new samples, so that its figure is free of the
 * winner's curse (docs/measuring.md). */
#include "tuner/session/session_int.h"

#include "base/clock.h"
#include "tuner/session/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHOOTOUT_SETS       2
#define STOP_SECONDS        0.6  /* to stop the last groups */
#define USUAL_START_SECONDS 0.5  /* of a set's processes, while nothing is known */
#define VISIT_SECONDS       0.02 /* of timed steps */
#define LEAST_ROUNDS        2    /* of a set */
#define WARM_STEPS          2    /* of a plan before the first round of a set */
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

/* The same of a plan that ran. Where a step is a start, its time is the whole run, whatever it printed, and a visit is one run. The
 * first run of a trial is that of its preparation, with the cold step. */
static double seconds_in_set(const struct dt_session *session, const struct dt_result *trial)
{
    if (!session->target->image.starts)
        return steps_seconds(trial->summary.median);
    double run = fmax(trial->report.wall_seconds, trial->cold_seconds);
    return LEAST_ROUNDS * (isfinite(run) && run > 0 ? run : trial->summary.median);
}

/* `sets` sets of plans whose steps in a set take `steps` seconds: groups are loaded, and plans are prepared, in each. */
static double comparison_seconds(const struct dt_session *session, int sets, int plans,
                                 double steps)
{
    const struct dt_rig *rig = &session->rig;
    double load = rig->costs.started > 0 ? dt_rig_load_seconds(rig) : USUAL_START_SECONDS;
    double loads = dt_rig_classes(rig).count > 1 ? fmin(plans, LOADS) : 1;
    return MARGIN * sets * (loads * load + plans * dt_rig_prepare_seconds(rig) + steps);
}

/* Of the default in a set. */
static double default_seconds(const struct dt_session *session)
{
    const struct dt_result *known = dt_session_role(session, DT_ENTRANT_DEFAULT);
    return known != NULL && known->samples.n > 0 ? seconds_in_set(session, known) : 0;
}

double dt_finals_seconds(const struct dt_session *session, int more)
{
    const struct dt_point *known[DT_FIRST_MOST];
    double steps = more * default_seconds(session);
    int plans = more, n = dt_trials_first(session, known);
    for (int i = 0; i < n; i++) {
        const struct dt_result *trial = dt_session_trial(session, known[i]);
        bool runs = trial != NULL && trial->samples.n > 0;
        steps += runs ? seconds_in_set(session, trial) : 0;
        plans += runs || trial == NULL;
    }
    return comparison_seconds(session, DT_SETS_LEAST, plans, steps);
}

double dt_finals_shootout_seconds(const struct dt_session *session)
{
    int plans = DT_CANDIDATES + 1;
    return comparison_seconds(session, SHOOTOUT_SETS, plans, plans * default_seconds(session));
}

int64_t dt_finals_latest(const struct dt_session *session)
{
    double need = dt_finals_shootout_seconds(session) + dt_finals_seconds(session, 2);
    return session->clock.deadline_ns - (int64_t)(need * 1e9);
}

static double seconds_until(int64_t ns)
{
    return (double)(ns - dt_clock_ns()) * 1e-9;
}

static bool same_entrants(const struct dt_session *session, const struct dt_compared *resumed,
                          const struct dt_compared *compared)
{
    bool same = resumed->entrants != NULL && resumed->count == compared->count;
    for (int i = 0; same && i < resumed->count; i++)
        same = resumed->entrants[i].role == compared->entrants[i].role &&
               dt_point_equal(session->target->space, &resumed->entrants[i].point,
                              &compared->entrants[i].point);
    return same;
}

/* Takes over the sets that the resumed session made of this comparison, if there are any. */
static bool take_resumed(const struct dt_session *session, struct dt_compared *resumed,
                         struct dt_compared *compared)
{
    if (!same_entrants(session, resumed, compared))
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
    struct dt_session *session;
    const struct dt_compared *compared;
};

static dt_status keep_sets(void *context)
{
    const struct keeper *keeper = context;
    return dt_history_comparison(keeper->session, "sets", keeper->compared);
}

/* Between the sets of the final comparison the search goes on. The comparison ends when a plan is found that looks far better. */
static dt_status try_plans(void *context, int64_t until_ns)
{
    const struct keeper *keeper = context;
    DT_TRY(dt_explore_more(keeper->session, until_ns));
    bool found = dt_finals_promising(keeper->session, FAR_BETTER) != NULL;
    return found && dt_clock_ns() < dt_finals_latest(keeper->session) ? DT_DONE : DT_OK;
}

/* The ceilings of the report's roofline, of GPUs in the time that is left after all else: measuring them takes memory that the
 * plans of a group must find free. On cores the first trial has them (trials.c). Rates of ranks add up, so those of the
 * default's devices give the others'. A failure costs the ceilings only. */
static void measure_ceilings(struct dt_session *session, struct dt_compared *compared)
{
    const struct dt_target *target = session->target;
    struct dt_entrant *first = &compared->entrants[0];
    int64_t deadline = session->clock.deadline_ns - (int64_t)(STOP_SECONDS * 1e9);
    if (target->image.flops <= 0 || !target->hardware.backend.cuda || first->out ||
        seconds_until(deadline) < CEILING_SECONDS + MARGIN * dt_rig_load_seconds(&session->rig) ||
        dt_measure_ceilings(&session->rig, &first->point, deadline, &first->result) != DT_OK)
        return;
    for (int i = 1; i < compared->count; i++) {
        struct dt_result *other = &compared->entrants[i].result;
        double scale = (double)other->devices / first->result.devices;
        other->report.flop_peak = scale * first->result.report.flop_peak;
        other->report.copy_peak = scale * first->result.report.copy_peak;
    }
}

/* Runs a comparison and keeps its measurements, also when a signal ended it. */
static dt_status compare(struct dt_session *session, const struct dt_compare *given,
                         struct dt_compared *resumed, struct dt_compared *compared)
{
    struct dt_compare how = *given;
    struct keeper keeper = {session, compared};
    how.keep = keep_sets;
    how.keeper = &keeper;
    how.between = resumed == &session->resume.final ? try_plans : NULL;
    compared->complete = false;
    how.goes_on = take_resumed(session, resumed, compared);
    if (compared->complete && compared->entrants[0].out)
        return DT_OK;
    if (session->watch != NULL)
        session->watch->compares(session->watch->context, compared->name);
    dt_status status =
        dt_compare_run(&session->rig, compared->entrants, compared->count, &how, &compared->sets);
    compared->complete = status == DT_OK;
    if (status == DT_OK && resumed == &session->resume.final)
        measure_ceilings(session, compared);
    if (status != DT_OK && status != DT_EINTR)
        return status;
    dt_status kept = dt_history_comparison(session, "comparison", compared);
    return status < 0 ? status : kept;
}

/* Runs the shoot-out of the top plans; sets its rounds and ratios. A later one has a third of the time that is left. */
static dt_status shoot(struct dt_session *session, struct dt_compared *shootout)
{
    int64_t all = session->clock.deadline_ns - session->clock.began_ns, now = dt_clock_ns();
    int64_t share = session->clock.began_ns + (int64_t)(DT_SHOOTOUT_SHARE * (double)all);
    int64_t third = now + (session->clock.deadline_ns - now) / 3;
    bool later = session->earlier.entrant_count > 0;
    struct dt_compare how = {.deadline_ns = later ? third : share,
                             .sets = SHOOTOUT_SETS,
                             .seed = (uint64_t)session->job->seed +
                                     (uint64_t)(later ? session->finals.tried : 0),
                             .progress = session->watch != NULL ? session->watch->set : NULL,
                             .context = session->watch != NULL ? session->watch->context : NULL};
    return compare(session, &how, &session->resume.shootout, shootout);
}

/* The top candidates, or those of the shoot-out that the resumed session began; returns their number. */
static int shootout_points(const struct dt_session *session, struct dt_point points[DT_CANDIDATES])
{
    const struct dt_compared *resumed = &session->resume.shootout;
    const struct dt_result *top[DT_CANDIDATES];
    int n = resumed->entrants != NULL ? 0 : dt_verdict_candidates(session, top);
    for (int i = 0; i < n; i++)
        points[i] = top[i]->point;
    for (int i = 1; resumed->entrants != NULL && i < resumed->count && n < DT_CANDIDATES; i++)
        points[n++] = resumed->entrants[i].point;
    return n;
}

/* Picks one challenger of the default among the top candidates; false when there is none. *challenger: the one where there is no time
 * to choose. */
static dt_status shootout(struct dt_session *session, struct dt_point *challenger, bool *found)
{
    struct dt_point points[DT_CANDIDATES];
    int n = shootout_points(session, points);
    if (!*found && n > 0)
        *challenger = points[0];
    *found = n > 0;
    double left = seconds_until(session->clock.deadline_ns) - STOP_SECONDS;
    bool begun = session->resume.shootout.entrants != NULL;
    if (n < 2 || (!begun && left < 2 * dt_finals_seconds(session, 2)))
        return DT_OK; /* the final comparison comes first */
    struct dt_entrant entrants[DT_CANDIDATES + 2];
    struct dt_compared shootout = {.name = "shoot-out", .entrants = entrants, .count = n + 1};
    const struct dt_point *anchor =
        may_run(session, &session->target->fallback) ? &session->target->fallback : &points[0];
    entrants[0] = (struct dt_entrant){.role = DT_ENTRANT_DEFAULT, .point = *anchor};
    for (int i = 0; i < n; i++)
        entrants[i + 1] = (struct dt_entrant){.role = DT_ENTRANT_CANDIDATE, .point = points[i]};
    dt_status status = shoot(session, &shootout);
    int chosen = status == DT_OK ? dt_verdict_choose(session, entrants, shootout.count) : -1;
    if (chosen > 0)
        *challenger = entrants[chosen].point;
    if (status == DT_OK)
        dt_entry_keep_shots(session, entrants, shootout.count);
    for (int i = 0; i < shootout.count; i++)
        dt_entrant_fini(&entrants[i]);
    return status;
}

static void enter(struct dt_session *session, enum dt_entrant_role role,
                  const struct dt_point *point, bool decisive)
{
    for (int i = 0; i < session->finals.entrant_count; i++)
        if (dt_point_equal(session->target->space, &session->finals.entrants[i].point, point))
            return;
    session->finals.entrants[session->finals.entrant_count++] =
        (struct dt_entrant){.role = role, .point = *point, .decisive = decisive};
}

static const struct dt_entrant *candidate_of(const struct dt_session *session)
{
    for (int i = 0; i < session->finals.entrant_count; i++)
        if (session->finals.entrants[i].role == DT_ENTRANT_CANDIDATE)
            return &session->finals.entrants[i];
    return NULL;
}

/* The twin does not share the default's processes where the challenger does not. */
static bool twin_is_apart(const struct dt_session *session)
{
    const struct dt_entrant *candidate = candidate_of(session);
    return candidate != NULL &&
           !dt_rig_same_group(session->target, &session->target->fallback, &candidate->point);
}

/* Adds the twin, a second copy of the default whose ratios are noise. It shares the default's processes if the
 * challenger does, and has its own otherwise, so that all differences but the plan itself are the same as the
 * challenger's. */
static void enter_twin(struct dt_session *session, bool challenged)
{
    if (session->finals.entrant_count == 0 ||
        !dt_verdict_default(session, &session->finals.entrants[0]))
        return;
    double need = dt_finals_seconds(session, challenged ? 2 : 1) * TWIN_MARGIN / MARGIN;
    if (seconds_until(session->clock.deadline_ns) - STOP_SECONDS < need)
        return;
    session->finals.entrants[session->finals.entrant_count++] =
        (struct dt_entrant){.role = DT_ENTRANT_TWIN,
                            .point = session->target->fallback,
                            .apart = twin_is_apart(session)};
}

/* The reference plan was excluded: the next one takes its place, and its twin is removed, too. */
static void drop_first(struct dt_session *session)
{
    int kept = 0;
    for (int i = 0; i < session->finals.entrant_count; i++) {
        struct dt_entrant *entrant = &session->finals.entrants[i];
        dt_entrant_fini(entrant);
        if (i > 0 && !dt_entrant_twin(entrant))
            memmove(&session->finals.entrants[kept++], entrant, sizeof *entrant);
    }
    session->finals.entrant_count = kept;
}

/* The reference plan cannot run here, nothing is decided yet, and there are other plans. */
static bool first_fell(const struct dt_session *session)
{
    const struct dt_entrant *first = &session->finals.entrants[0];
    bool others = false;
    for (int i = 1; i < session->finals.entrant_count; i++)
        others = others || !dt_entrant_twin(&session->finals.entrants[i]);
    return others && first->out && dt_sets_quiet(&session->finals.sets) < DT_SETS_LEAST &&
           dt_verdict_cannot_run(session, &first->result);
}

/* The entrants of the comparison that the resumed session began; false: it began none. */
static bool enter_resumed(struct dt_session *session)
{
    const struct dt_compared *resumed = &session->resume.final;
    for (int i = 0; resumed->entrants != NULL && i < resumed->count; i++)
        session->finals.entrants[session->finals.entrant_count++] =
            (struct dt_entrant){.role = resumed->entrants[i].role,
                                .point = resumed->entrants[i].point,
                                .decisive = resumed->entrants[i].decisive};
    for (int i = 0; i < session->finals.entrant_count; i++)
        session->finals.entrants[i].apart =
            dt_entrant_twin(&session->finals.entrants[i]) && twin_is_apart(session);
    return session->finals.entrant_count > 0;
}

static void enter_all(struct dt_session *session, const struct dt_point *challenger)
{
    if (may_run(session, &session->target->fallback))
        enter(session, DT_ENTRANT_DEFAULT, &session->target->fallback, false);
    if (challenger != NULL)
        enter(session, DT_ENTRANT_CANDIDATE, challenger, true);
    if (may_run(session, &session->target->baseline))
        enter(session, DT_ENTRANT_BASELINE, &session->target->baseline, false);
    if (session->has_against && may_run(session, &session->against))
        enter(session, DT_ENTRANT_AGAINST, &session->against, false);
    enter_twin(session, challenger != NULL);
}

/* The plan was the challenger of the comparison before. */
static bool compared_before(const struct dt_session *session, const struct dt_point *point)
{
    const struct dt_session_finals *earlier = &session->earlier;
    for (int i = 0; i < earlier->entrant_count; i++)
        if (earlier->entrants[i].role == DT_ENTRANT_CANDIDATE &&
            dt_point_equal(session->target->space, &earlier->entrants[i].point, point))
            return true;
    return false;
}

const struct dt_result *dt_finals_promising(const struct dt_session *session, double times)
{
    const struct dt_result *fallback = dt_session_trial(session, &session->target->fallback);
    const struct dt_entrant *candidate = candidate_of(session);
    const struct dt_result *best = NULL;
    bool gained = candidate != NULL && candidate->ratio.ratio < 1;
    if (fallback == NULL || !dt_session_eligible(session, fallback))
        return NULL;
    double value =
        dt_session_value(session, fallback) * times * (gained ? candidate->ratio.ratio : 1);
    for (int i = session->finals.tried; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (dt_session_counts(session, i) && dt_session_eligible(session, trial) &&
            !(candidate != NULL &&
              dt_point_equal(session->target->space, &candidate->point, &trial->point)) &&
            dt_session_value(session, trial) < value) {
            value = dt_session_value(session, trial);
            best = trial;
        }
    }
    return best;
}

/* Sets of the final comparison until it is decided, or the time is over. */
static dt_status compare_finally(struct dt_session *session)
{
    struct dt_compare how = {.deadline_ns =
                                 session->clock.deadline_ns - (int64_t)(STOP_SECONDS * 1e9),
                             .sets = DT_SETS_USUAL,
                             .seed = (uint64_t)session->job->seed + 1,
                             .progress = session->watch != NULL ? session->watch->set : NULL,
                             .context = session->watch != NULL ? session->watch->context : NULL};
    struct dt_compared final = {.name = "final comparison", .entrants = session->finals.entrants};
    dt_status status;
    do {
        if (final.count > 0)
            drop_first(session);
        final.count = session->finals.entrant_count;
        status = compare(session, &how, &session->resume.final, &final);
        session->finals.sets = final.sets;
    } while (status == DT_OK && first_fell(session));
    if (status == DT_OK || status == DT_EINTR)
        dt_verdict_decide(session);
    return status;
}

dt_status dt_finals_run(struct dt_session *session, const struct dt_point *found)
{
    struct dt_point challenger = found != NULL ? *found : session->target->fallback;
    bool challenged = found != NULL;
    if (found != NULL)
        dt_verdict_again(session);
    session->finals.tried = session->count;
    dt_status status = shootout(session, &challenger, &challenged);
    if (status == DT_OK && !(challenged && compared_before(session, &challenger))) {
        if (!enter_resumed(session))
            enter_all(session, challenged ? &challenger : NULL);
        status = compare_finally(session);
    }
    int tried = session->finals.tried;
    dt_verdict_settle(session);
    session->finals.tried = tried;
    return status;
}
