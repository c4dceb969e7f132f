/* SPDX-License-Identifier: MIT */
#include "tuner/measure/compare/compare.h"

#include "base/clock.h"
#include "base/rng.h"
#include "tuner/measure/compare/entrant.h"
#include "tuner/measure/trial.h"
#include "tuner/runner/load.h"
#include "tuner/runner/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_ROUNDS  2                       /* per set: an order and its mirror */
#define USUAL_ROUNDS  4                       /* least rounds of a set, where there is time */
#define LOOK_NS       DT_NS_PER_SECOND        /* to see whether others are busy */
#define GAP_MOST_NS   (60 * DT_NS_PER_SECOND) /* between two sets */
#define VISIT_SECONDS 0.02

/* ---- visits: a plan made resident, and run for some steps in its turn. One that fails is no
 * error: its result has the outcome */

/* Runs steps whose times are no samples of the entrant's, into a result of their own; their
 * failure is the entrant's. */
static dt_status run_aside(struct dt_rig *rig, struct dt_entrant *entrant, int n, enum dt_mode mode,
                           int64_t deadline_ns, struct dt_result *aside)
{
    dt_result_init(aside, rig->target, &entrant->point);
    aside->facts.cold_seconds = entrant->result.facts.cold_seconds;
    DT_TRY(dt_rig_run(rig, &entrant->resident, n, mode, dt_measure_deadline(aside, n, deadline_ns),
                      aside));
    if (aside->outcome != DT_TRIAL_OK) {
        entrant->result.outcome = aside->outcome;
        memcpy(entrant->result.cause, aside->cause, sizeof aside->cause);
    }
    return DT_OK;
}

static dt_status visit_warm_up(struct dt_rig *rig, struct dt_entrant *entrant, int64_t deadline_ns)
{
    struct dt_result DT_CLEANUP(dt_result_fini) warm = {0};
    DT_TRY(run_aside(rig, entrant, 2, DT_MODE_WARMUP, deadline_ns, &warm));
    if (warm.outcome != DT_TRIAL_OK)
        dt_rig_release(rig, &entrant->resident);
    return DT_OK;
}

/* Heartbeats extend a request at most to a quarter of the time that is left: a plan that hangs and
 * goes on sending them leaves the rest to the others. */
static void extend_deadline(struct dt_rig *rig, int64_t deadline_ns)
{
    int64_t now = dt_clock_ns();
    rig->until_ns = now + (deadline_ns - now) / 4;
}

/* Makes the plan resident and warms it up. */
static dt_status visit_prepare(struct dt_rig *rig, struct dt_entrant *entrant, int64_t deadline_ns)
{
    rig->apart = entrant->apart;
    extend_deadline(rig, deadline_ns);
    dt_status status = dt_rig_prepare(rig, &entrant->point, deadline_ns, &entrant->resident);
    rig->apart = false;
    DT_TRY(status);
    dt_rig_describe(&entrant->resident, &entrant->result);
    if (entrant->resident.failure.outcome == DT_TRIAL_OK && rig->target->image.starts)
        return DT_OK;
    if (entrant->resident.failure.outcome == DT_TRIAL_OK)
        return visit_warm_up(rig, entrant, deadline_ns);
    dt_rig_release(rig, &entrant->resident);
    return DT_OK;
}

static int steps_of_visit(const struct dt_entrant *entrant)
{
    const struct dt_result *result = &entrant->result;
    double step = result->report.steps > 0 ? dt_visit_seconds(result, result->report.steps - 1, 1)
                                           : result->facts.cold_seconds;
    double n = step > 0 ? VISIT_SECONDS / step : 1;
    return n < 1 ? 1 : n > DT_VISIT_STEPS ? DT_VISIT_STEPS : (int)ceil(n);
}

/* Adds a start as one step: the median of its steps on each rank. */
static dt_status add_start(struct dt_result *start, struct dt_result *result)
{
    size_t ranks = (size_t)start->ranks;
    int steps = start->report.steps, one = 1;
    dt_auto_free long long *ns = calloc(ranks, sizeof *ns);
    dt_auto_free double *column = calloc((size_t)steps + 1, sizeof *column);
    if (ns == NULL || column == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (size_t r = 0; r < ranks; r++) {
        for (int i = 0; i < steps; i++)
            column[i] = (double)start->report.ns[(size_t)i * ranks + r];
        ns[r] = llround(dt_stats_median(column, steps));
    }
    struct dt_run run = {
        .steps = 1, .ranks = start->ranks, .ns = ns, .starts = &one, .start_count = 1};
    dt_remarks_add(&result->report.remarks, &start->report.remarks);
    return dt_result_add(result, &run, true);
}

/* Where each step is a start, it is its own visit, and nothing warms it up. */
static dt_status visit_start(struct dt_rig *rig, struct dt_entrant *entrant, int round,
                             int64_t deadline_ns)
{
    struct dt_result DT_CLEANUP(dt_result_fini) start = {0};
    struct dt_result *result = &entrant->result;
    DT_TRY(run_aside(rig, entrant, 1, DT_MODE_MEASURE, deadline_ns, &start));
    if (start.outcome != DT_TRIAL_OK)
        return DT_OK;
    DT_TRY(add_start(&start, result));
    entrant->visits[round] = dt_visit_seconds(result, result->report.steps - 1, 1);
    return DT_OK;
}

/* One untimed step, then timed ones for about 20 ms: sets the visit of that round. If the plan's
 * group died meanwhile, the plan is first made resident again. */
static dt_status visit_make(struct dt_rig *rig, struct dt_entrant *entrant, int round,
                            int64_t deadline_ns)
{
    struct dt_result *result = &entrant->result;
    if (!dt_group_alive(entrant->resident.group))
        DT_TRY(visit_prepare(rig, entrant, deadline_ns));
    if (result->outcome != DT_TRIAL_OK)
        return DT_OK;
    int steps = steps_of_visit(entrant);
    extend_deadline(rig, deadline_ns);
    if (rig->target->image.starts)
        return visit_start(rig, entrant, round, deadline_ns);
    struct dt_result DT_CLEANUP(dt_result_fini) lead = {0};
    DT_TRY(run_aside(rig, entrant, 1, DT_MODE_WARMUP, deadline_ns, &lead));
    if (lead.outcome == DT_TRIAL_OK)
        DT_TRY(dt_rig_run(rig, &entrant->resident, steps, DT_MODE_MEASURE,
                          dt_measure_deadline(result, steps, deadline_ns), result));
    if (result->outcome == DT_TRIAL_OK)
        entrant->visits[round] = dt_visit_seconds(result, result->report.steps - steps, steps);
    return DT_OK;
}

/* ---- the comparison */

/* State of a running comparison. */
struct course {
    struct dt_rig *rig;
    struct dt_entrant *entrants;
    int n;
    const struct dt_compare *how;
    struct dt_sets *sets;
    int rounds; /* rounds of each set; 0: not chosen yet */
    enum dt_company company;
    bool roomier;       /* a plan was excluded: the next set tries with more of them together */
    bool ended;         /* the time is up */
    bool disturbed;     /* the last set, or the last instants, by other programs */
    int64_t between_ns; /* spent between sets */
};

bool dt_compare_may_pass(enum dt_outcome outcome)
{
    return dt_outcome_may_pass(outcome) || outcome == DT_TRIAL_MEMORY;
}

/* Handles a failure in this set: the number and kind of failures decide whether the plan is tried
 * again. When it is excluded, the others may fit together. */
static void entrant_fail(struct course *course, struct dt_entrant *entrant)
{
    int most = entrant == course->entrants ? DT_ATTEMPTS_FIRST : DT_ATTEMPTS;
    entrant->failures++;
    entrant->out = !dt_compare_may_pass(entrant->result.outcome) || entrant->failures >= most;
    if (entrant->out) {
        entrant->out_set = course->sets->count;
        course->roomier = true;
    }
}

/* The entrant is visited in this set: it is resident, or can be made resident again. */
static bool takes_part(const struct dt_entrant *entrant)
{
    return !entrant->out && !entrant->decided && entrant->result.outcome == DT_TRIAL_OK;
}

/* Rounds of a set for each pair of entrant 0 and another. */
static int rounds_of_pair(const struct course *course)
{
    int pairs = 0, rounds = course->rounds > 0 ? course->rounds : USUAL_ROUNDS;
    for (int i = 1; i < course->n; i++)
        pairs += takes_part(&course->entrants[i]);
    int most = pairs > 0 ? DT_SET_ROUNDS / pairs / 2 * 2 : 0;
    return rounds < most ? rounds : most;
}

/* Entrant 0 has several rivals, its twin among them, and the rounds of a set suffice
 * for a pair with each. */
static bool pairs_help(const struct course *course)
{
    int rivals = 0;
    for (int i = 1; i < course->n; i++)
        rivals += takes_part(&course->entrants[i]);
    return rivals > 1 && rounds_of_pair(course) >= LEAST_ROUNDS;
}

/* The plan does not fit while others are resident: from now on fewer are. */
static bool crowded_out(struct course *course, struct dt_entrant *entrant)
{
    bool others = false;
    for (int i = 0; i < course->n; i++)
        others = others ||
                 (course->entrants[i].resident.group != NULL && i != entrant - course->entrants);
    if (!others || entrant->result.outcome != DT_TRIAL_MEMORY)
        return false;
    entrant->result.outcome = DT_TRIAL_OK;
    course->roomier = false;
    course->company =
        course->company == DT_ALL_TOGETHER && pairs_help(course) ? DT_IN_PAIRS : DT_ONE_ALONE;
    return true;
}

/* A failure after the end of the time does not count against the plan. */
static bool is_late(struct course *course, struct dt_entrant *entrant)
{
    if (dt_clock_ns() < course->how->deadline_ns)
        return false;
    entrant->result.outcome = DT_TRIAL_OK;
    course->ended = true;
    return true;
}

void dt_compare_order(int order[], int n, int round, uint64_t seed)
{
    struct dt_rng rng = {
        .seed = seed, .stream = dt_rng_stream("compare"), .index = (uint64_t)(round / 2) * 64};
    for (int i = 0; i < n; i++)
        order[i] = i;
    for (int i = n - 1; i > 0; i--) {
        int j = (int)dt_rng_below(&rng, (uint64_t)i + 1), keep = order[i];
        order[i] = order[j];
        order[j] = keep;
    }
    for (int i = 0; round % 2 == 1 && i < n / 2; i++) {
        int keep = order[i];
        order[i] = order[n - 1 - i];
        order[n - 1 - i] = keep;
    }
}

/* Makes round k of the current set among m members, entrant 0 the first; `base` rounds were
 * made before the set. */
static dt_status one_round(struct course *course, const int members[], int m, int base, int k)
{
    int order[DT_ENTRANTS] = {0};
    int64_t deadline_ns = course->how->deadline_ns + DT_NS_PER_SECOND;
    dt_compare_order(order, m, course->sets->count * DT_SET_ROUNDS + k, course->how->seed);
    for (int i = 0; i < m; i++) {
        struct dt_entrant *entrant = &course->entrants[members[order[i]]];
        if (!takes_part(entrant))
            continue;
        DT_TRY(visit_make(course->rig, entrant, base + k, deadline_ns));
        if (entrant->result.outcome == DT_TRIAL_OK)
            continue;
        if (is_late(course, entrant) || crowded_out(course, entrant))
            return DT_OK;
        entrant_fail(course, entrant);
        if (entrant == course->entrants)
            return DT_OK;
    }
    return DT_OK;
}

/* Chooses rounds that take about as long as making the plans resident, but leaves time for the
 * sets needed to decide. */
static int choose_rounds(const struct course *course, int64_t began_ns)
{
    double setup = (double)course->sets->setup_ns, round = (double)course->sets->round_ns;
    double left = (double)(course->how->deadline_ns - began_ns);
    int rounds = 2 * (int)fmin(ceil(setup / fmax(round, 1) / 2), DT_SET_ROUNDS / 2.0);
    rounds = rounds > USUAL_ROUNDS ? rounds : USUAL_ROUNDS;
    while (rounds > LEAST_ROUNDS && 1.1 * DT_SETS_LEAST * (setup + rounds * round) > left)
        rounds -= 2;
    return rounds;
}

/* Rounds of the set; *made: how many, an incomplete one included. */
static dt_status make_rounds(struct course *course, int base, int64_t began_ns, int *made)
{
    const struct dt_entrant *first = &course->entrants[0];
    int most = course->rounds > 0 ? course->rounds : DT_SET_ROUNDS, members[DT_ENTRANTS];
    for (int i = 0; i < course->n; i++)
        members[i] = i;
    for (*made = 0; *made < most && takes_part(first) && !course->ended &&
                    course->company == DT_ALL_TOGETHER;) {
        int64_t start = dt_clock_ns();
        if (start + course->sets->round_ns + course->sets->round_ns / 4 >
            course->how->deadline_ns) {
            course->ended = true;
            break;
        }
        DT_TRY(one_round(course, members, course->n, base, (*made)++));
        int64_t took = dt_clock_ns() - start;
        course->sets->round_ns = took > course->sets->round_ns ? took : course->sets->round_ns;
        if (course->rounds == 0 && *made == LEAST_ROUNDS)
            most = course->rounds = choose_rounds(course, began_ns);
    }
    return DT_OK;
}

/* A hanging twin must not use up the time of the plans: it gets the time of all
 * before it plus a second. */
static int64_t deadline_of(const struct course *course, const struct dt_entrant *entrant,
                           int64_t began_ns)
{
    int64_t now = dt_clock_ns(), until = now + (now - began_ns) + DT_NS_PER_SECOND;
    bool short_one = dt_entrant_twin(entrant) && until < course->how->deadline_ns;
    return short_one ? until : course->how->deadline_ns;
}

static dt_status load_entrant(struct course *course, struct dt_entrant *entrant,
                              int64_t deadline_ns)
{
    course->sets->loads++;
    return visit_prepare(course->rig, entrant, deadline_ns);
}

/* Order in which a set makes the plans resident: random, with its mirror in the next set. */
static void preparing_order(const struct course *course, int order[DT_ENTRANTS])
{
    dt_compare_order(order, course->n, course->sets->count, course->how->seed + 1);
}

/* Makes every plan resident in fresh processes, in an order of the set's own; twins last, so that
 * they take no memory that a plan needs. */
static dt_status make_all_resident(struct course *course)
{
    int order[DT_ENTRANTS] = {0};
    int64_t began = dt_clock_ns();
    preparing_order(course, order);
    for (int k = 0; k < 2 * course->n; k++) {
        struct dt_entrant *entrant = &course->entrants[order[k % course->n]];
        if (dt_entrant_twin(entrant) != (k >= course->n) || !takes_part(entrant))
            continue;
        DT_TRY(load_entrant(course, entrant, deadline_of(course, entrant, began)));
        if (entrant->result.outcome == DT_TRIAL_OK)
            continue;
        if (is_late(course, entrant) || crowded_out(course, entrant))
            return DT_OK;
        entrant_fail(course,
                     entrant); /* the others are tried nevertheless, to learn which can run */
    }
    int64_t took = dt_clock_ns() - began;
    course->sets->setup_ns = took > course->sets->setup_ns ? took : course->sets->setup_ns;
    return DT_OK;
}

static void release_all(struct course *course)
{
    for (int i = 0; i < course->n; i++)
        dt_rig_release(course->rig, &course->entrants[i].resident);
    course->rig->pinned = false;
}

/* Starts fresh processes; all plans that are not excluded get another attempt. */
static void begin_set(struct course *course)
{
    dt_rig_fresh(course->rig, DT_NS_PER_SECOND);
    if (course->roomier && !course->rig->target->worker.alone)
        course->company = DT_ALL_TOGETHER;
    course->roomier = false;
    course->rig->pinned = course->company == DT_ALL_TOGETHER;
    for (int i = 0; i < course->n; i++)
        if (!course->entrants[i].out)
            course->entrants[i].result.outcome = DT_TRIAL_OK;
}

/* All visits of an entrant in this set while nothing else is resident. */
static dt_status visit_alone(struct course *course, struct dt_entrant *entrant, int base,
                             int rounds)
{
    int64_t deadline_ns = course->how->deadline_ns;
    dt_status status = load_entrant(course, entrant, deadline_ns);
    for (int k = 0; status == DT_OK && k < rounds && takes_part(entrant); k++) {
        course->ended = dt_clock_ns() >= deadline_ns;
        if (course->ended)
            break;
        status = visit_make(course->rig, entrant, base + k, deadline_ns + DT_NS_PER_SECOND);
    }
    dt_rig_release(course->rig, &entrant->resident);
    if (status == DT_OK && entrant->result.outcome != DT_TRIAL_OK && !is_late(course, entrant))
        entrant_fail(course, entrant);
    return status;
}

static bool any_visit(const struct course *course, int base, int rounds)
{
    for (int i = 0; i < course->n; i++)
        for (int k = base; k < base + rounds; k++)
            if (isfinite(course->entrants[i].visits[k]))
                return true;
    return false;
}

/* Sets become shorter when the time left is too short for those that a decision needs. */
static void shorten_sets(struct course *course, int64_t began_ns)
{
    int64_t now = dt_clock_ns(), missing = DT_SETS_LEAST - dt_sets_quiet(course->sets);
    if (missing * (now - began_ns) > course->how->deadline_ns - now)
        course->rounds = LEAST_ROUNDS;
}

/* One plan after the other, in an order of the set's own, of which the next set has the mirror:
 * drift cancels between sets only. *made: its rounds, when there was any visit. */
static dt_status one_by_one(struct course *course, int base, int64_t began_ns, int *made)
{
    const struct dt_entrant *first = &course->entrants[0];
    int order[DT_ENTRANTS] = {0}, rounds = course->rounds > 0 ? course->rounds : USUAL_ROUNDS;
    int most = course->rig->target->worker.samples;
    rounds = most > 0 && most < rounds ? most : rounds;
    preparing_order(course, order);
    for (int k = 0; k < course->n && !course->ended; k++) {
        struct dt_entrant *entrant = &course->entrants[order[k]];
        if (takes_part(entrant) && first->result.outcome == DT_TRIAL_OK)
            DT_TRY(visit_alone(course, entrant, base, rounds));
    }
    *made = any_visit(course, base, rounds) ? rounds : 0;
    shorten_sets(course, began_ns);
    return DT_OK;
}

/* Makes a plan resident in a set of pairs; a failure is handled. */
static dt_status load_for_pair(struct course *course, struct dt_entrant *entrant, int64_t began_ns)
{
    DT_TRY(load_entrant(course, entrant, deadline_of(course, entrant, began_ns)));
    if (entrant->result.outcome != DT_TRIAL_OK && !is_late(course, entrant) &&
        !crowded_out(course, entrant))
        entrant_fail(course, entrant);
    return DT_OK;
}

static bool pairs_go_on(struct course *course)
{
    course->ended = course->ended || dt_clock_ns() >= course->how->deadline_ns;
    return !course->ended && course->company == DT_IN_PAIRS;
}

/* Entrant 0 stays resident; each other is loaded beside it, visited in rounds of the two, and
 * released: both of a pair meet the same drift. Without entrant 0 the others are loaded
 * nevertheless, to learn which can run. */
static dt_status in_pairs(struct course *course, int base, int64_t began_ns, int *made)
{
    struct dt_entrant *first = course->entrants;
    int order[DT_ENTRANTS] = {0}, rounds = rounds_of_pair(course);
    course->rig->pinned = true;
    preparing_order(course, order);
    dt_status status = load_for_pair(course, first, began_ns);
    for (int k = 0; status == DT_OK && k < course->n && pairs_go_on(course); k++) {
        const int members[2] = {0, order[k]};
        struct dt_entrant *other = &course->entrants[order[k]];
        if (order[k] == 0 || !takes_part(other))
            continue;
        status = load_for_pair(course, other, began_ns);
        for (int i = 0; status == DT_OK && i < rounds && takes_part(first) && takes_part(other) &&
                        pairs_go_on(course);
             i++)
            status = one_round(course, members, 2, base, (*made)++);
        dt_rig_release(course->rig, &other->resident);
    }
    release_all(course);
    shorten_sets(course, began_ns);
    return status;
}

static dt_status side_by_side(struct course *course, int base, int64_t began_ns, int *made)
{
    dt_status status = make_all_resident(course);
    if (status == DT_OK && course->company == DT_ALL_TOGETHER && !course->ended &&
        takes_part(&course->entrants[0]))
        status = make_rounds(course, base, began_ns, made);
    release_all(course);
    return status;
}

/* Where the plans turn out not to fit beside each other before the first round, the set is made in
 * pairs or one by one; what failed of itself has its next attempt in the next set. */
static dt_status run_set(struct course *course)
{
    static dt_status (*const ways[])(struct course * course, int base, int64_t began_ns,
                                     int *made) = {
        [DT_ALL_TOGETHER] = side_by_side, [DT_IN_PAIRS] = in_pairs, [DT_ONE_ALONE] = one_by_one};
    int64_t began = dt_clock_ns();
    int base = dt_sets_rounds(course->sets), made = 0;
    dt_status status = DT_OK;
    begin_set(course);
    int company = -1;
    for (int64_t start = began; status == DT_OK && made == 0 && (int)course->company > company;
         start = dt_clock_ns()) {
        if (company >= 0)
            dt_rig_fresh(course->rig, DT_NS_PER_SECOND);
        company = (int)course->company;
        status = ways[company](course, base, start, &made);
    }
    if (made > 0 && company > (int)course->sets->company)
        course->sets->company = (enum dt_company)company;
    course->sets->rounds[course->sets->count] = made;
    course->sets->count += made > 0;
    int64_t took = dt_clock_ns() - began;
    course->sets->set_ns = took > course->sets->set_ns ? took : course->sets->set_ns;
    return status;
}

/* A GPU tells how busy it was in the last second: until then our own
 * processes wait, or are ended. */
static dt_status look_at_gpus(struct dt_rig *rig, enum dt_gpu_company company)
{
    if (!dt_rig_watches_gpus(rig))
        return DT_OK;
    if (company == DT_GPUS_FREE)
        dt_rig_fresh(rig, DT_NS_PER_SECOND);
    dt_clock_wait_ns(LOOK_NS);
    return dt_rig_watch_gpus(rig, company);
}

/* A set, and what others did on the cores and GPUs meanwhile. */
static dt_status one_set(struct course *course)
{
    struct dt_load_reading before, after;
    int set = course->sets->count;
    dt_rig_gpus_begin(course->rig);
    dt_status status = look_at_gpus(course->rig, DT_GPUS_FREE);
    dt_load_read(&before);
    if (status == DT_OK)
        status = run_set(course);
    dt_load_read(&after);
    if (status == DT_OK)
        status = look_at_gpus(course->rig, DT_GPUS_WAIT);
    const struct dt_gpu_use *use = &course->rig->gpu_use;
    struct dt_load load = dt_load_between(&before, &after);
    course->disturbed = dt_load_disturbs(load.others, use->count);
    if (course->sets->count > set) {
        course->sets->gpus[set] = use->count;
        course->sets->others[set] = load.others;
        course->sets->stolen[set] = load.stolen;
        course->sets->stalled[set] = load.stalled;
    }
    const char *name = use->count > 0 ? use->name : load.name;
    if (course->disturbed && name[0] != '\0')
        memcpy(course->sets->disturber, name, sizeof load.name);
    return status;
}

/* Others keep the cores busy in the next instants, or use a GPU. */
static bool is_disturbed_now(struct dt_rig *rig)
{
    struct dt_load_reading before, after;
    dt_load_read(&before);
    dt_clock_wait_ns(LOOK_NS);
    dt_load_read(&after);
    struct dt_load load = dt_load_between(&before, &after);
    dt_rig_gpus_begin(rig);
    if (dt_rig_watch_gpus(rig, DT_GPUS_WAIT) != DT_OK)
        rig->gpu_use.count = NAN;
    return dt_load_disturbs(load.others, rig->gpu_use.count);
}

/* After a disturbed set: waits until the others are done, as long as there is time for the
 * sets that are missing. The load of others lasts minutes, so sets that follow each other at
 * once would all meet it. */
static void wait_for_quiet(struct course *course)
{
    int64_t quiet = dt_sets_quiet(course->sets), missing = DT_SETS_LEAST - quiet;
    int64_t set_ns = course->sets->set_ns + course->sets->set_ns / 5;
    int64_t until = course->how->deadline_ns - (missing > 1 ? missing : 1) * set_ns;
    while (course->disturbed && dt_clock_ns() < until && dt_group_interrupted == 0)
        course->disturbed = is_disturbed_now(course->rig);
}

/* The baseline must not cost the comparison its verdict: it is dropped when the sets needed to
 * decide do not fit with it. The twin stays, as nothing is decided without it. */
static void spare_baseline(struct course *course)
{
    int missing = DT_SETS_LEAST - dt_sets_quiet(course->sets);
    int64_t left = course->how->deadline_ns - dt_clock_ns();
    if (missing <= 0 || course->sets->count == 0 || course->how->every_set ||
        missing * (course->sets->set_ns + course->sets->set_ns / 10) <= left)
        return;
    for (int i = 0; i < course->n; i++) {
        struct dt_entrant *entrant = &course->entrants[i];
        if (i == 0 || entrant->role != DT_ENTRANT_BASELINE || entrant->decisive || entrant->out)
            continue;
        entrant->out = true;
        entrant->out_set = course->sets->count;
        entrant->result.outcome = DT_TRIAL_INTERRUPTED;
    }
}

/* True when no further set is needed. */
static bool after_set(const struct course *course)
{
    const struct dt_compare *how = course->how;
    bool decided =
        dt_entrants_judge(course->rig->target, course->entrants, course->n, course->sets, false);
    if (how->decide != NULL)
        decided = how->decide(how->judge, course->entrants, course->n, course->sets);
    return decided && !how->every_set;
}

/* The first set always begins, a later one only when its least rounds fit. */
static bool set_fits(const struct course *course)
{
    int64_t least = course->company == DT_ALL_TOGETHER
                        ? course->sets->setup_ns + LEAST_ROUNDS * course->sets->round_ns
                        : course->sets->set_ns;
    return course->sets->count == 0 ||
           dt_clock_ns() + least + least / 10 <= course->how->deadline_ns;
}

/* The sets up to the next look are spread over half of the time that is left, but the most that the
 * comparison may make must fit. Not where load was seen: then the quiet times are used, and what is
 * seen cannot mislead. */
static int64_t gap_ns(const struct course *course)
{
    int quiet = dt_sets_quiet(course->sets), look = dt_stats_set_look(quiet) + 1;
    int missing = look < DT_SET_LOOKS ? dt_set_looks[look] - quiet : 1;
    int64_t set_ns = course->sets->set_ns + course->sets->set_ns / 5;
    int64_t left = course->how->deadline_ns - dt_clock_ns();
    int64_t spare = left - (course->how->sets - quiet) * set_ns;
    int64_t gap = left / 2 - missing * set_ns;
    gap = (gap < spare ? gap : spare) / missing;
    if (quiet < course->sets->count || gap < 0)
        return 0;
    return gap < GAP_MOST_NS ? gap : GAP_MOST_NS;
}

static dt_status spread_sets(struct course *course)
{
    int64_t began = dt_clock_ns(), due = began + gap_ns(course);
    bool watched = !isnan(course->sets->others[course->sets->count - 1]);
    dt_status status = DT_OK;
    if (course->how->between == NULL || due == began)
        return DT_OK;
    status = course->how->between(course->how->keeper, due);
    while (status == DT_OK && watched && dt_clock_ns() < due && dt_group_interrupted == 0)
        dt_clock_wait_ns(due - dt_clock_ns() < LOOK_NS ? due - dt_clock_ns() : LOOK_NS);
    course->between_ns += dt_clock_ns() - began;
    return status;
}

/* No set compares a plan whose first start in this session it is with one that had started before,
 * as when a session goes on: each of these starts once before. Where a start is what is timed, all
 * that did not start before do. */
static dt_status warm_caches(struct course *course)
{
    bool some = course->rig->target->image.starts || course->how->warms;
    for (int i = 0; i < course->n; i++)
        some = some || dt_rig_has_prepared(course->rig, &course->entrants[i].point);
    for (int i = 0; i < course->n && some && dt_clock_ns() < course->how->deadline_ns; i++) {
        struct dt_entrant *entrant = &course->entrants[i];
        if (!takes_part(entrant) || dt_rig_has_prepared(course->rig, &entrant->point))
            continue;
        DT_TRY(visit_prepare(course->rig, entrant, course->how->deadline_ns));
        dt_rig_release(course->rig, &entrant->resident);
    }
    return DT_OK;
}

/* Makes sets until decided, up to the limit of sets or time. */
static dt_status sets_until(struct course *course)
{
    const struct dt_compare *how = course->how;
    while (dt_sets_quiet(course->sets) < how->sets && course->sets->count < DT_SETS_MOST &&
           !course->entrants[0].out && !course->ended && set_fits(course)) {
        int before = course->sets->count;
        spare_baseline(course);
        wait_for_quiet(course);
        DT_TRY(one_set(course));
        if (course->sets->count == before)
            continue;
        if (how->progress != NULL && !course->disturbed)
            how->progress(how->context, dt_sets_quiet(course->sets), how->sets);
        if (how->keep != NULL)
            DT_TRY(how->keep(how->keeper));
        if (after_set(course))
            return DT_OK;
        dt_status status = spread_sets(course);
        if (status != DT_OK)
            return status < 0 ? status : DT_OK;
    }
    return DT_OK;
}

static void entrant_begin(const struct dt_rig *rig, struct dt_entrant *entrant)
{
    dt_result_init(&entrant->result, rig->target, &entrant->point);
    entrant->result.throttling.clocks = (struct dt_clocks *)&rig->clocks;
    entrant->resident = (struct dt_resident){0};
    entrant->ratio = (struct dt_ratio){.ratio = NAN, .interval = {NAN, NAN}, .spread = NAN};
    entrant->out = entrant->decided = false;
    entrant->failures = 0;
    entrant->out_set = -1;
    for (int k = 0; k < DT_ROUNDS_MOST; k++)
        entrant->visits[k] = NAN;
}

/* The sets were made in other processes, perhaps before the last judgement;
 * true when they suffice. */
static bool resume_sets(struct course *course)
{
    const struct dt_sets *sets = course->sets;
    course->company = sets->company;
    if (sets->count > 0 && sets->company == DT_ALL_TOGETHER)
        course->rounds = sets->rounds[sets->count - 1];
    for (int i = 0; i < course->n; i++) {
        course->entrants[i].result.throttling.clocks = (struct dt_clocks *)&course->rig->clocks;
        course->entrants[i].resident = (struct dt_resident){0};
    }
    return after_set(course);
}

/* Excludes an entrant that failed in the last set, unless it ran in enough others. */
static void entrant_end(const struct course *course, struct dt_entrant *entrant)
{
    if (entrant->out || entrant->result.outcome == DT_TRIAL_OK)
        return;
    entrant->out = entrant->ratio.sets < DT_SETS_LEAST;
    if (entrant->out)
        entrant->out_set = course->sets->count;
    else
        entrant->result.outcome = DT_TRIAL_OK;
}

dt_status dt_compare_run(struct dt_rig *rig, struct dt_entrant entrants[], int n,
                         const struct dt_compare *how, struct dt_sets *sets)
{
    int64_t entered = dt_clock_ns();
    struct course course = {.rig = rig, .entrants = entrants, .n = n, .how = how, .sets = sets};
    if (!how->goes_on)
        *sets = (struct dt_sets){0};
    for (int i = 0; i < n && !how->goes_on; i++)
        entrant_begin(rig, &entrants[i]);
    bool decided = how->goes_on && resume_sets(&course);
    if (rig->target->worker.alone)
        course.company = DT_ONE_ALONE;
    dt_status status = decided ? DT_OK : warm_caches(&course);
    if (status == DT_OK && !decided)
        status = sets_until(&course);
    dt_entrants_judge(rig->target, entrants, n, sets, true);
    for (int i = 0; i < n; i++) {
        entrant_end(&course, &entrants[i]);
        dt_status finished = dt_entrant_finish(&entrants[i], sets);
        status = status < 0 ? status : finished;
    }
    rig->compared_ns += dt_clock_ns() - entered - course.between_ns;
    return status;
}
