/* SPDX-License-Identifier: MIT */
/* The shoot-out chooses the winner, the final comparison judges it on samples the choice has not seen: the figure of
 * the winner is then free of the winner's curse (docs/measuring.md). */
#include "tuner/session/finals.h"

#include "base/clock.h"
#include "tuner/entry/entry.h"
#include "tuner/session/history.h"
#include "tuner/session/verdict.h"

#include <string.h>

#define SHOOTOUT_SHARE 0.75
#define STOP_SECONDS   0.6 /* to stop the last groups */
#define START_SECONDS  0.5 /* to start fresh ones */
#define SETUP_STEPS    5   /* of a plan before its first round */
#define MARGIN         1.3

/* A plan that failed its trial is not worth a place. */
static bool runs(const struct dt_session *session, const struct dt_point *point)
{
    const struct dt_result *trial = dt_session_trial(session, point);
    return trial != NULL && trial->outcome == DT_TRIAL_OK;
}

/* Eight rounds of plans whose steps add up to `steps` seconds. */
static double comparison_seconds(double steps)
{
    return START_SECONDS + MARGIN * (SETUP_STEPS + 2 * dt_look_samples[0]) * steps;
}

static double default_seconds(const struct dt_session *session)
{
    const struct dt_result *known = dt_session_role(session, "default");
    return known != NULL && known->n > 0 ? known->summary.median : 0;
}

double dt_finals_seconds(const struct dt_session *session, int more)
{
    const struct dt_result *known[] = {dt_session_role(session, "default"),
                                       dt_session_role(session, "baseline"),
                                       dt_session_role(session, "against")};
    double sum = 0;
    for (int i = 0; i < 3; i++)
        if (known[i] != NULL && known[i]->n > 0 && (i == 0 || known[i] != known[0]))
            sum += known[i]->summary.median;
    return comparison_seconds(sum + more * default_seconds(session));
}

static double seconds_until(int64_t ns)
{
    return (double)(ns - dt_clock_ns()) * 1e-9;
}

/* Runs a comparison and keeps what it measured, also when a signal ended it. */
static dt_status compare(struct dt_session *session, const struct dt_compare *how,
                         struct dt_compared *compared)
{
    session->progress.comparison = compared->name;
    dt_status status =
        dt_compare_run(&session->rig, compared->entrants, compared->count, how, &compared->rounds);
    compared->looks = how->looks;
    compared->complete = status == DT_OK;
    if (status != DT_OK && status != DT_EINTR)
        return status;
    dt_status kept = dt_history_comparison(session, compared);
    return status < 0 ? status : kept;
}

/* Runs the shoot-out of the top plans, with a twin when there is time for it; sets its rounds and ratios. */
static dt_status shoot(struct dt_session *session, struct dt_compared *shootout)
{
    int64_t all = session->deadline_ns - session->began_ns;
    struct dt_compare how = {.deadline_ns =
                                 session->began_ns + (int64_t)(SHOOTOUT_SHARE * (double)all),
                             .looks = 1,
                             .seed = (uint64_t)session->options->seed,
                             .progress = dt_progress_round,
                             .context = &session->progress};
    struct dt_entrant *entrants = shootout->entrants;
    double steps = (shootout->count + 1) * default_seconds(session);
    if (dt_verdict_default(session, &entrants[0]) &&
        seconds_until(how.deadline_ns) > comparison_seconds(steps))
        entrants[shootout->count++] =
            (struct dt_entrant){.role = "twin", .point = entrants[0].point};
    return compare(session, &how, shootout);
}

/* Picks one challenger of the default among the top candidates; false when there is none. */
static dt_status shootout(struct dt_session *session, struct dt_point *challenger, bool *found)
{
    const struct dt_result *top[DT_CANDIDATES];
    int n = dt_verdict_candidates(session, top);
    *found = n > 0;
    if (n > 0)
        *challenger = top[0]->point;
    double left = seconds_until(session->deadline_ns) - STOP_SECONDS;
    if (n < 2 || left < 2 * dt_finals_seconds(session, 2)) /* the final comparison comes first */
        return DT_OK;
    struct dt_entrant entrants[DT_CANDIDATES + 2];
    struct dt_compared shootout = {.name = "shoot-out", .entrants = entrants, .count = n + 1};
    const struct dt_point *anchor =
        runs(session, &session->target->fallback) ? &session->target->fallback : &top[0]->point;
    entrants[0] = (struct dt_entrant){.role = "default", .point = *anchor};
    for (int i = 0; i < n; i++)
        entrants[i + 1] = (struct dt_entrant){.role = "candidate", .point = top[i]->point};
    dt_status status = shoot(session, &shootout);
    int chosen = status == DT_OK
                     ? dt_verdict_choose(session, entrants, shootout.count, shootout.rounds)
                     : -1;
    if (chosen > 0)
        *challenger = entrants[chosen].point;
    if (status == DT_OK)
        dt_entry_keep_shots(session, entrants, shootout.count);
    for (int i = 0; i < shootout.count; i++)
        dt_entrant_fini(&entrants[i]);
    return status;
}

static void enter(struct dt_session *session, const char *role, const struct dt_point *point,
                  bool decisive)
{
    for (int i = 0; i < session->entrant_count; i++)
        if (dt_point_equal(session->target->space, &session->entrants[i].point, point))
            return;
    session->entrants[session->entrant_count++] =
        (struct dt_entrant){.role = role, .point = *point, .decisive = decisive};
}

/* The default once more: what its ratios say is noise. Last, so that it takes no memory that a plan needs. */
static void enter_twin(struct dt_session *session, bool challenged)
{
    if (session->entrant_count == 0 || !dt_verdict_default(session, &session->entrants[0]))
        return;
    if (seconds_until(session->deadline_ns) - STOP_SECONDS <
        dt_finals_seconds(session, challenged ? 2 : 1))
        return;
    session->entrants[session->entrant_count++] =
        (struct dt_entrant){.role = "twin", .point = session->target->fallback};
}

/* The plan all are compared with fell: the next one takes its place, and its twin goes too. */
static void drop_first(struct dt_session *session)
{
    int kept = 0;
    for (int i = 0; i < session->entrant_count; i++) {
        struct dt_entrant *entrant = &session->entrants[i];
        dt_entrant_fini(entrant);
        if (i > 0 && !dt_entrant_twin(entrant))
            memmove(&session->entrants[kept++], entrant, sizeof *entrant);
    }
    session->entrant_count = kept;
}

/* The plan all others are compared with failed before anything could be decided, and there are others: its twin falls
 * with it. */
static bool first_fell(const struct dt_session *session)
{
    bool others = false;
    for (int i = 1; i < session->entrant_count; i++)
        others = others || !dt_entrant_twin(&session->entrants[i]);
    return others && session->entrants[0].out && session->rounds < dt_look_samples[0];
}

dt_status dt_finals_run(struct dt_session *session)
{
    struct dt_point challenger;
    bool challenged = false;
    DT_TRY(shootout(session, &challenger, &challenged));
    if (runs(session, &session->target->fallback))
        enter(session, "default", &session->target->fallback, false);
    if (challenged)
        enter(session, "candidate", &challenger, true);
    if (runs(session, &session->target->baseline))
        enter(session, "baseline", &session->target->baseline, false);
    if (session->has_against && runs(session, &session->against))
        enter(session, "against", &session->against, false);
    enter_twin(session, challenged);
    struct dt_compare how = {.deadline_ns = session->deadline_ns - (int64_t)(STOP_SECONDS * 1e9),
                             .looks = DT_LOOKS,
                             .seed = (uint64_t)session->options->seed + 1,
                             .progress = dt_progress_round,
                             .context = &session->progress};
    struct dt_compared final = {.name = "final comparison", .entrants = session->entrants};
    dt_status status;
    do {
        if (final.count > 0)
            drop_first(session);
        final.count = session->entrant_count;
        status = compare(session, &how, &final);
        session->rounds = final.rounds;
    } while (status == DT_OK && first_fell(session));
    if (status == DT_OK || status == DT_EINTR)
        dt_verdict_decide(session);
    return status;
}
