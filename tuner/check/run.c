/* SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/clock.h"
#include "base/figures.h"
#include "db/store.h"
#include "search/search.h"
#include "space/json/json.h"
#include "stats/front.h"
#include "stats/stats.h"
#include "tuner/check/check_int.h"
#include "tuner/runner/runner.h"
#include "tuner/session/session.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STOP_SECONDS 0.6 /* to stop the groups */

/* ---- time: how a check shares it among entries */

#define USUAL_START_SECONDS 0.5 /* start of a plan's processes */
#define SETUP_STEPS         5   /* cold, verified, warm */
#define VISIT_SECONDS       0.02
#define SET_ROUNDS          4 /* usual ones */
#define MARGIN              1.3

/* Seconds of a visit: one untimed step, and timed ones for 20 ms. */
static double visit_seconds(double step)
{
    double timed = step > 0 ? ceil(VISIT_SECONDS / step) : 1;
    return step * (1 + fmin(fmax(timed, 1), DT_VISIT_STEPS));
}

int64_t dt_check_estimate_ns(const double step_seconds[], int n, int sets)
{
    double seconds = 0;
    for (int i = 0; i < n; i++)
        seconds += USUAL_START_SECONDS + MARGIN * (SETUP_STEPS * step_seconds[i] +
                                                   SET_ROUNDS * visit_seconds(step_seconds[i]));
    return (int64_t)(sets * seconds * 1e9);
}

int64_t dt_check_share_ns(int64_t left_ns, int entries, bool first, int64_t least_ns,
                          int64_t lose_ns)
{
    int64_t even = left_ns / (entries > 0 ? entries : 1), half = left_ns / 2;
    int64_t share = lose_ns < half ? lose_ns : half;
    share = share > even ? share : even;
    if (first && share < least_ns && (entries <= 1 || least_ns <= left_ns))
        return left_ns;
    return share >= least_ns ? share : 0;
}

/* ---- an entry is measured and judged */

/* A comparison like the final one of a session, judged by check's own rule: decided rivals are
 * skipped, and the time goes to the undecided ones. */

dt_status dt_check_settle(struct dt_check_entry *entry, enum dt_check_verdict verdict,
                          const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(entry->reason, sizeof entry->reason, format, list);
    va_end(list);
    dt_text_clean(entry->reason);
    entry->verdict = verdict;
    return DT_OK;
}

/* Number of entrants between the tuned plan and the twin. */
static int rivals_of(const struct dt_check_entry *entry)
{
    return entry->count - 1 - entry->twin;
}

/* The rival to beat: the one that the stored gain is told over, else the default, or, where that is
 * the tuned plan, failed or is excluded, the documented plan or the baseline. */
static int first_of(const struct dt_check_entry *entry)
{
    const enum dt_entrant_role roles[] = {dt_check_opponent(entry), DT_ENTRANT_DEFAULT,
                                          DT_ENTRANT_DOCUMENTED, DT_ENTRANT_BASELINE};
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < rivals_of(entry); i++)
            if (entry->entrants[i + 1].role == roles[k] && !entry->judge.rivals[i].out)
                return i;
    return -1;
}

static double median_of(const double values[], int rounds)
{
    double known[DT_ROUNDS_MOST];
    int n = 0;
    for (int k = 0; k < rounds; k++)
        if (isfinite(values[k]))
            known[n++] = values[k];
    return dt_stats_median(known, n);
}

/* A default plan that breaks a rule, and whose output shows it. */
static bool is_wrong(const struct dt_check_entry *entry, const struct dt_entrant *entrant)
{
    return dt_target_wrong(entry->target, &entrant->point, entrant->result.facts.verified_error);
}

/* Excludes a rival that is better only because it breaks the entry's latency
 * limit. Needs enough sets. */
static bool breaks_limit(const struct dt_check_entry *entry, int i, const struct dt_sets *sets)
{
    int rounds = dt_sets_rounds(sets);
    double limit = (double)entry->job.max_latency_ns * 1e-9;
    /* while sets are made, the mean over the replicas stands for the slowest */
    double slowest = fmax(median_of(entry->entrants[i].visits, rounds),
                          dt_result_slowest(&entry->entrants[i].result));
    return limit > 0 && dt_sets_quiet(sets) >= DT_SETS_LEAST && slowest > limit &&
           median_of(entry->values[i], rounds) < median_of(entry->values[0], rounds);
}

/* The objective's value of each visit of the sets. */
static void values_fill(struct dt_check_entry *entry, const struct dt_sets *sets)
{
    int rounds = dt_sets_rounds(sets);
    for (int i = 0; i < entry->count; i++) {
        const struct dt_entrant *entrant = &entry->entrants[i];
        const struct dt_result *result = &entrant->result;
        for (int k = 0; k < DT_ROUNDS_MOST; k++)
            entry->values[i][k] =
                k < rounds ? entry->target->objective->value(
                                 entrant->visits[k], dt_result_images(result), result->devices)
                           : NAN;
    }
}

static void take_values(struct dt_check_entry *entry, const struct dt_sets *sets)
{
    values_fill(entry, sets);
    for (int i = 0; i < entry->judge.count; i++) {
        struct dt_check_rival *rival = &entry->judge.rivals[i];
        const struct dt_entrant *entrant = &entry->entrants[i + 1];
        rival->aside =
            !entrant->out && (breaks_limit(entry, i + 1, sets) || is_wrong(entry, entrant));
        rival->out = entrant->out || rival->aside;
    }
    entry->judge.first = first_of(entry);
    if (entry->twin && entry->entrants[entry->count - 1].out)
        entry->judge.twin = NULL;
}

static bool decide_rounds(void *context, struct dt_entrant entrants[], int n,
                          const struct dt_sets *sets)
{
    struct dt_check_entry *entry = context;
    (void)n;
    take_values(entry, sets);
    bool decided = dt_check_look(&entry->judge, sets);
    for (int i = 0; i < entry->judge.count; i++)
        entrants[i + 1].decided = dt_check_decided(&entry->judge, i);
    return decided;
}

static void start_judge(struct dt_check_entry *entry, double lose_alpha)
{
    struct dt_check_judge *judge = &entry->judge;
    *judge = (struct dt_check_judge){.threshold = entry->opts->threshold,
                                     .lose_alpha = lose_alpha,
                                     .tuned = entry->values[0],
                                     .twin = entry->twin ? entry->values[entry->count - 1] : NULL,
                                     .count = rivals_of(entry),
                                     .first = -1,
                                     .margin = NAN,
                                     .limit = entry->opts->threshold,
                                     .cv = NAN};
    for (int i = 0; i < judge->count; i++)
        judge->rivals[i] = (struct dt_check_rival){.values = entry->values[i + 1],
                                                   .ratio = {.ratio = NAN, .interval = {NAN, NAN}},
                                                   .cv = NAN};
    judge->first = first_of(entry);
}

/* Compares the entrants until deadline_ns. */
static dt_status entrants_compare(struct dt_check_entry *entry, struct dt_compare how,
                                  int64_t deadline_ns)
{
    struct dt_rig rig;
    how.deadline_ns = deadline_ns - (int64_t)(STOP_SECONDS * 1e9);
    dt_rig_init(&rig, entry->target, (uint64_t)entry->job.seed);
    rig.end_ns = deadline_ns;
    dt_status status = dt_compare_run(&rig, entry->entrants, entry->count, &how, &entry->sets);
    dt_rig_fini(&rig, DT_NS_PER_SECOND);
    return status;
}

static bool anyone_ran(const struct dt_check_entry *entry)
{
    for (int i = 0; i < rivals_of(entry); i++)
        if (!entry->entrants[i + 1].out)
            return true;
    return false;
}

/* The tuned plan failed: it loses when another plan ran. */
static void judge_failure(struct dt_check_entry *entry, bool late)
{
    const struct dt_result *result = &entry->entrants[0].result;
    const char *what = dt_outcome_text(result->outcome);
    if (result->outcome == DT_TRIAL_HUNG)
        /* A stalled machine looks like a hanging plan, so the plan is not replaced for that. */
        dt_check_settle(entry, DT_CHECK_NOT_CHECKED, "%s%s",
                        late ? "the budget ended before it ran" : "the tuned plan hung: ",
                        late ? "" : result->cause);
    else if (result->outcome == DT_TRIAL_INFEASIBLE)
        dt_check_settle(entry, DT_CHECK_UNSUPPORTED, "%s", result->cause);
    else if (!anyone_ran(entry))
        dt_check_settle(entry, DT_CHECK_NOT_CHECKED, "no plan ran; the tuned one: %s: %s", what,
                        result->cause);
    else if (dt_compare_may_pass(result->outcome) &&
             entry->entrants[0].failures < DT_ATTEMPTS_FIRST)
        dt_check_settle(entry, DT_CHECK_NOT_CHECKED,
                        "the budget ended before another attempt of the tuned plan: %s: %s", what,
                        result->cause);
    else
        dt_check_settle(entry, DT_CHECK_LOSES, "the tuned plan failed, others ran: %s: %s", what,
                        result->cause);
    entry->fell = entry->verdict == DT_CHECK_LOSES;
}

/* Names the rival with the largest lead. */
static void name_winner(struct dt_check_entry *entry)
{
    const struct dt_check_judge *judge = &entry->judge;
    int worst = -1;
    for (int i = 0; i < judge->count; i++)
        if (judge->rivals[i].verdict == DT_CHECK_LOSES &&
            (worst < 0 || judge->rivals[i].ratio.ratio > judge->rivals[worst].ratio.ratio))
            worst = i;
    if (worst < 0)
        return;
    const struct dt_ratio *ratio = &judge->rivals[worst].ratio;
    dt_auto_text speed = {0};
    dt_figure_ratio(ratio->ratio, ratio->interval.low, ratio->interval.high, &speed);
    dt_check_settle(
        entry, DT_CHECK_LOSES,
        "the %s plan is better: it ran %s times as fast as the tuned one, %d pairs in %d sets",
        dt_entrant_role_text(entry->entrants[worst + 1].role), dt_text_at(&speed), ratio->pairs,
        ratio->sets);
}

/* The largest spread of a plan's visits; NAN: not known. */
static double visits_spread(const struct dt_check_judge *judge)
{
    double cv = judge->cv;
    for (int i = 0; i < judge->count; i++)
        if (!judge->rivals[i].out && judge->rivals[i].verdict == DT_CHECK_INCONCLUSIVE)
            cv = fmax(cv, judge->rivals[i].cv);
    return cv;
}

/* The sets decide by no rival's interval. */
static void settle_open(struct dt_check_entry *entry)
{
    double cv = visits_spread(&entry->judge);
    char noisy[120] = "";
    if (cv > DT_NOISE_MOST)
        snprintf(noisy, sizeof noisy, ": the machine is noisy, the visits of one plan spread by %s",
                 dt_figure_percent(cv).text);
    dt_check_settle(entry, DT_CHECK_INCONCLUSIVE,
                    "%d sets of fresh processes do not tell whether it is slower by more than %s%s",
                    dt_sets_quiet(&entry->sets), dt_figure_percent(entry->judge.threshold).text,
                    noisy);
}

/* A plan may beat all others and still break its stored latency limit. */
static void judge_limit(struct dt_check_entry *entry)
{
    const struct dt_result *result = &entry->entrants[0].result;
    double limit = (double)entry->job.max_latency_ns * 1e-9, slowest = dt_result_slowest(result);
    double low = result->summary.interval.low * slowest / result->summary.median;
    if (limit > 0 && dt_sets_quiet(&entry->sets) >= DT_SETS_LEAST &&
        low > limit * (1 + entry->judge.threshold))
        dt_check_settle(entry, DT_CHECK_LOSES, "it takes %s, and the entry allows %s",
                        dt_figure_of(slowest).text, dt_figure_of(limit).text);
}

/* All rivals that ran are excluded. */
static bool is_unopposed(const struct dt_check_judge *judge)
{
    bool aside = false;
    for (int i = 0; i < judge->count; i++) {
        if (!judge->rivals[i].out)
            return false;
        aside = aside || judge->rivals[i].aside;
    }
    return aside;
}

/* Too few sets decide nothing. */
static void settle_few_sets(struct dt_check_entry *entry)
{
    int quiet = dt_sets_quiet(&entry->sets), disturbed = entry->sets.count - quiet;
    const char *name = entry->sets.disturber;
    char others[120] = "";
    if (disturbed > 0)
        snprintf(others, sizeof others, "; in %d more other programs%s%s%s were busy", disturbed,
                 name[0] != '\0' ? " (" : "", name, name[0] != '\0' ? ")" : "");
    dt_check_settle(
        entry, DT_CHECK_NOT_CHECKED,
        "the budget ended after %d sets of fresh processes, and fewer than %d decide nothing%s",
        quiet, DT_SETS_LEAST, others);
}

static void judge_rounds(struct dt_check_entry *entry)
{
    const struct dt_check_judge *judge = &entry->judge;
    enum dt_check_verdict verdict = entry->verdict = dt_check_verdict(judge);
    bool few = dt_sets_quiet(&entry->sets) < DT_SETS_LEAST;
    bool open = verdict == DT_CHECK_INCONCLUSIVE;
    if (judge->count == 0 && !few)
        dt_check_settle(entry, verdict, "it is the default plan, it runs, and no other is known");
    else if (is_unopposed(judge))
        dt_check_settle(
            entry, verdict,
            "it runs, and every other plan that does takes longer than the entry allows");
    else if (judge->count == 0 || (open && few))
        settle_few_sets(entry);
    else if (verdict == DT_CHECK_NOT_CHECKED)
        dt_check_settle(entry, verdict, "none of the other plans ran: %s",
                        entry->entrants[1].result.cause);
    else if (verdict == DT_CHECK_LOSES)
        name_winner(entry);
    else if (open)
        settle_open(entry);
}

/* --require-resolution: what could not be told apart is no result. */
static void judge_resolution(struct dt_check_entry *entry)
{
    double most = entry->opts->resolution, margin = entry->judge.margin;
    bool judged = entry->verdict == DT_CHECK_WINS || entry->verdict == DT_CHECK_TIES;
    if (!(most > 0) || !judged || margin <= most)
        return;
    if (isnan(margin))
        dt_check_settle(entry, DT_CHECK_INCONCLUSIVE,
                        "the noise floor is not known, and --require-resolution asks for %.3g %%",
                        100 * most);
    else
        dt_check_settle(entry, DT_CHECK_INCONCLUSIVE,
                        "differences below %.3g %% are lost in the noise here, and "
                        "--require-resolution asks for %.3g %%",
                        100 * margin, 100 * most);
}

/* Measures and judges until deadline_ns (monotonic). DT_EINTR: a signal arrived. */
static dt_status entry_measure(struct dt_check_entry *entry, double lose_alpha, int64_t deadline_ns)
{
    entry->seed = dt_clock_wall_ns();
    const struct dt_compare how = {.sets =
                                       entry->opts->until_decided ? DT_SETS_MOST : DT_SETS_USUAL,
                                   .seed = (uint64_t)entry->seed,
                                   .decide = decide_rounds,
                                   .judge = entry};
    start_judge(entry, lose_alpha);
    dt_status status = entrants_compare(entry, how, deadline_ns);
    take_values(entry, &entry->sets);
    dt_check_end(&entry->judge, &entry->sets);
    DT_TRY(status);
    if (entry->entrants[0].out)
        judge_failure(entry, dt_clock_ns() + (int64_t)(STOP_SECONDS * 1e9) >= deadline_ns);
    else
        judge_rounds(entry);
    if (!entry->entrants[0].out)
        judge_limit(entry);
    judge_resolution(entry);
    for (int i = 0; i < entry->count; i++)
        dt_text_clean(entry->entrants[i].result.cause);
    return DT_OK;
}

/* ---- the store is updated */

/* Always: that the plan lost, which a later win or tie takes back. With --update: replaces a plan
 * that lost, with the figures of this comparison; stamps one that did not lose with the time, and
 * if it won, with today's soft fingerprint. The figures and the gain of a plan that won stay
 * those of its session, so that many small losses of gain still add up to one that
 * --max-gain-loss sees. */

/* Ratio of entrant b over entrant a, at the level of one comparison. */
static struct dt_ratio ratio_of(const struct dt_check_entry *entry, int b, int a)
{
    return dt_judge_ratio_through(entry->values[0], entry->values[a], entry->values[b],
                                  &entry->sets, dt_stats_set_level(dt_sets_quiet(&entry->sets)));
}

/* The entrant of the plan, if it ran; -1: none. */
static int entrant_at(const struct dt_check_entry *entry, const struct dt_point *point)
{
    for (int i = 0; i < entry->count - entry->twin; i++)
        if (!entry->entrants[i].out &&
            dt_point_equal(entry->target->space, &entry->entrants[i].point, point))
            return i;
    return -1;
}

/* It ran, keeps the entry's latency limit, and is no default whose output is wrong. */
static bool rival_fits(const struct dt_check_entry *entry, int i)
{
    const struct dt_entrant *entrant = &entry->entrants[i];
    double limit = (double)entry->job.max_latency_ns * 1e-9;
    return !entrant->out && entrant->result.samples.n > 0 && !is_wrong(entry, entrant) &&
           !(limit > 0 && dt_result_slowest(&entrant->result) > limit);
}

/* The entrants of default and documented plan that may be stored, the latter where it is
 * another plan; -1: not so. */
static void known_at(const struct dt_check_entry *entry, int *fallback, int *documented)
{
    const struct dt_target *target = entry->target;
    *fallback = entrant_at(entry, &target->fallback);
    *documented = target->documented.known ? entrant_at(entry, &target->documented.point) : -1;
    if (*documented >= 0 && (*documented == *fallback || !rival_fits(entry, *documented)))
        *documented = -1;
    if (*fallback >= 0 && !rival_fits(entry, *fallback))
        *fallback = -1;
}

/* The rival of that entrant; -1: it is the tuned plan, or out. */
static int rival_at(const struct dt_check_entry *entry, int entrant)
{
    return entrant > 0 && !entry->judge.rivals[entrant - 1].out ? entrant - 1 : -1;
}

/* The entrant that replaces the tuned plan; 0: none. Not a default that breaks the
 * entry's latency limit. */
static int find_successor(const struct dt_check_entry *entry)
{
    int fallback, documented;
    known_at(entry, &fallback, &documented);
    return dt_check_successor(&entry->judge, &entry->sets, rival_at(entry, fallback),
                              rival_at(entry, documented)) +
           1;
}

static struct dt_measured figures_of(const struct dt_check_entry *entry, int i)
{
    return dt_measured_of(&entry->entrants[i].result, entry->target);
}

/* The figures of the entrant of that plan, whether it ran or not. */
static struct dt_measured role_figures(const struct dt_check_entry *entry,
                                       const struct dt_point *point)
{
    for (int i = 0; i < entry->count; i++)
        if (dt_point_equal(entry->target->space, &entry->entrants[i].point, point))
            return figures_of(entry, i);
    return (struct dt_measured){.known = false};
}

/* The winner, then the previous best plans. */
static void fill_top(const struct dt_check_entry *entry, int winner, struct dt_stored_entry *now)
{
    now->top[now->top_count++] = figures_of(entry, winner);
    for (int i = 0; i < entry->count - entry->twin && now->top_count < DT_TOP_MOST; i++)
        if (i != winner && !entry->entrants[i].out && entry->entrants[i].role != DT_ENTRANT_TUNED)
            now->top[now->top_count++] = figures_of(entry, i);
}

/* Only plans that ran here: times of the session are not compared with today's. */
static void fill_front(const struct dt_check_entry *entry, struct dt_stored_entry *now)
{
    struct dt_front_point points[DT_ENTRANTS];
    int n = 0;
    for (int i = 0; i < entry->count - entry->twin; i++) {
        const struct dt_result *result = &entry->entrants[i].result;
        if (rival_fits(entry, i))
            points[n++] = (struct dt_front_point){
                entry->target->objective->value(result->summary.median, dt_result_images(result),
                                                result->devices),
                result->facts.peak_bytes, i};
    }
    n = dt_front(points, n);
    for (int k = 0; k < n; k++)
        now->pareto[now->pareto_count++] =
            dt_front_figures(&entry->entrants[points[k].index].result, entry->target);
}

/* The winner of a comparison, by the rule of a session's verdict (tuner/session/verdict.c). */
struct won {
    enum dt_verdict verdict;
    struct dt_gain gain;
    int opponent; /* entrant: the better of default and documented plan; -1: neither can be used */
};

static struct won won_by(const struct dt_check_entry *by, int winner)
{
    int fallback, documented;
    known_at(by, &fallback, &documented);
    double better =
        fallback >= 0 && documented >= 0 ? ratio_of(by, documented, fallback).ratio : NAN;
    int opponent = dt_judge_opponent(fallback, documented, better);
    bool is_known = winner == fallback || winner == documented;
    int over = is_known ? fallback : opponent;
    struct dt_ratio none = {.ratio = NAN, .interval = {NAN, NAN}};
    struct dt_ratio ratio = over >= 0 ? ratio_of(by, winner, over) : none;
    struct dt_ratio first = fallback >= 0 ? ratio_of(by, winner, fallback) : none;
    bool beats = dt_judge_beats(&ratio, by->judge.margin) &&
                 (fallback < 0 || dt_judge_beats(&first, by->judge.margin));
    struct won won = {.verdict = winner == fallback     ? DT_VERDICT_DEFAULT
                                 : winner == documented ? DT_VERDICT_DOCUMENTED
                                 : opponent < 0         ? DT_VERDICT_UNOPPOSED
                                 : beats                ? DT_VERDICT_FASTER
                                                        : DT_VERDICT_TIE,
                      .gain = dt_gain_of(ratio.sets >= DT_SETS_LEAST ? &ratio : NULL),
                      .opponent = opponent};
    if (over >= 0 && over == documented)
        won.gain.over = dt_entrant_role_text(DT_ENTRANT_DOCUMENTED);
    return won;
}

/* The winner takes the plan's place: of `by`, the entry's comparison, or that of the
 * plans that were left. */
static dt_status entry_replace(struct dt_check_entry *entry, const struct dt_check_entry *by,
                               int winner, const char *journal)
{
    const struct dt_target *target = entry->target;
    const struct won won = won_by(by, winner);
    struct dt_stored_entry now = {.known = true,
                                  .plan = dt_point_json(target->space, &by->entrants[winner].point),
                                  .verdict = dt_verdict_text(won.verdict),
                                  .figures = figures_of(by, winner),
                                  .fallback = role_figures(by, &target->fallback),
                                  .documentation = dt_documentation_of(target),
                                  .baseline = role_figures(by, &target->baseline),
                                  .gain = won.gain,
                                  .resolution = by->judge.margin,
                                  .load = dt_load_of_sets(&by->sets),
                                  .journal = journal};
    if (target->documented.known)
        now.documented = role_figures(by, &target->documented.point);
    fill_top(by, winner, &now);
    fill_front(by, &now);
    return dt_check_put(entry, DT_CHECK_REPLACED, &now);
}

/* The fastest plan shown to be faster than the first storable one (the default,
 * if it ran); -1: none. */
static int find_fastest(const struct dt_check_entry *again)
{
    int winner = -1, first = 0;
    double best = 1;
    while (first < again->count && !rival_fits(again, first))
        first++;
    if (first < again->count && dt_sets_quiet(&again->sets) >= DT_SETS_LEAST)
        winner = first;
    for (int i = first + 1; winner >= 0 && i < again->count; i++) {
        struct dt_ratio ratio = ratio_of(again, i, first);
        if (rival_fits(again, i) && dt_judge_faster(&ratio) && ratio.ratio < best) {
            winner = i;
            best = ratio.ratio;
        }
    }
    return winner;
}

/* The tuned plan failed, so there are no ratios to it: compares the plans that
 * ran among themselves. */
static dt_status elect_winner(const struct dt_check_entry *entry, int64_t deadline_ns,
                              struct dt_check_entry *left)
{
    const struct dt_compare how = {.sets = DT_SETS_USUAL, .seed = (uint64_t)dt_clock_wall_ns()};
    for (int i = 1; i < entry->count - entry->twin; i++)
        if (!entry->entrants[i].out)
            left->entrants[left->count++] = (struct dt_entrant){.role = entry->entrants[i].role,
                                                                .point = entry->entrants[i].point,
                                                                .decisive = true};
    dt_status status = entrants_compare(left, how, deadline_ns);
    values_fill(left, &left->sets);
    return status;
}

static dt_status replace_failed(struct dt_check_entry *entry, const char *journal,
                                int64_t deadline_ns)
{
    struct dt_check_entry *left = malloc(sizeof *left);
    if (left == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    *left = *entry; /* borrows everything except its entrants */
    left->count = 0;
    left->twin = false;
    entry->left = left;
    DT_TRY(elect_winner(entry, deadline_ns, left));
    int winner = find_fastest(left);
    const struct won won = winner >= 0 ? won_by(left, winner) : (struct won){.opponent = -1};
    if (won.verdict == DT_VERDICT_TIE)
        winner = won.opponent;
    if (winner >= 0)
        return entry_replace(entry, left, winner, journal);
    snprintf(entry->written.note, sizeof entry->written.note,
             "not updated: the budget was too short to compare the plans that are left");
    return DT_OK;
}

/* --update: stores the rival that replaces the tuned plan, or stamps an entry that did not lose. */
static dt_status entry_update(struct dt_check_entry *entry, const char *journal,
                              int64_t deadline_ns)
{
    if (entry->verdict == DT_CHECK_WINS || entry->verdict == DT_CHECK_TIES)
        return dt_check_put(entry, DT_CHECK_STAMPED, NULL);
    if (entry->verdict != DT_CHECK_LOSES)
        return DT_OK;
    if (entry->fell)
        return replace_failed(entry, journal, deadline_ns);
    int winner = find_successor(entry);
    if (winner > 0)
        return entry_replace(entry, entry, winner, journal);
    snprintf(entry->written.note, sizeof entry->written.note,
             "not updated: no other plan was found to be better");
    return DT_OK;
}

/* Without --update, too: notes in the store that the plan lost, so that look-ups call it stale, and
 * takes the note back after a win or a tie. */
static dt_status entry_mark(struct dt_check_entry *entry)
{
    bool lost = entry->verdict == DT_CHECK_LOSES;
    bool judged = lost || entry->verdict == DT_CHECK_WINS || entry->verdict == DT_CHECK_TIES;
    if (!judged || entry->written.change != DT_CHECK_KEPT ||
        (!lost && !(entry->item->entry.fingerprint.info.lost_ns > 0)))
        return DT_OK;
    return dt_check_put(entry, lost ? DT_CHECK_MARKED : DT_CHECK_CLEARED, NULL);
}

/* ---- the run */

/* Rivals planned for each entry: default, documented plan, baseline, two
 * runners-up, and --against. */
#define PLANNED_RIVALS 5

/* Stored step times of the entrants; an unknown one counts like the tuned plan's. */
static int stored_steps(const struct dt_check_entry *entry, double seconds[DT_ENTRANTS])
{
    const struct dt_stored_entry *stored = &entry->item->entry;
    int64_t tuned_ns = stored->figures.median_ns > 0 ? stored->figures.median_ns : 0;
    const int64_t known[DT_ENTRANT_ROLES] = {[DT_ENTRANT_DEFAULT] = stored->fallback.median_ns,
                                             [DT_ENTRANT_DOCUMENTED] = stored->documented.median_ns,
                                             [DT_ENTRANT_BASELINE] = stored->baseline.median_ns};
    for (int i = 0; i < entry->count; i++) {
        int64_t step_ns = known[entry->entrants[i].role];
        seconds[i] = (double)(step_ns > 0 ? step_ns : tuned_ns) * 1e-9;
    }
    return entry->count;
}

/* Time of so many sets: as long as those of its session took, where that is stored. */
static int64_t sets_ns(const struct dt_check_entry *entry, int sets)
{
    const struct dt_stored_info *info = &entry->item->entry.fingerprint.info;
    double seconds[DT_ENTRANTS];
    int n = stored_steps(entry, seconds);
    if (info->set_ns > 0 && info->set_plans > 0)
        return sets * n * (info->set_ns / info->set_plans);
    return dt_check_estimate_ns(seconds, n, sets);
}

struct dt_check_span dt_check_span(const struct dt_check_entry *entry)
{
    int most = entry->opts->until_decided ? DT_SETS_MOST : DT_SETS_USUAL;
    return (struct dt_check_span){sets_ns(entry, DT_SETS_LEAST), sets_ns(entry, most)};
}

/* Handles an error: a signal or lack of memory stops the run, other errors only this entry. */
static dt_status run_give_up(struct dt_check_run *run, struct dt_check_entry *entry,
                             dt_status status)
{
    run->interrupted = run->interrupted || status == DT_EINTR;
    dt_check_settle(entry, DT_CHECK_NOT_CHECKED, "%s",
                    run->interrupted ? "interrupted" : dt_message());
    return status == DT_ENOMEM ? status : DT_OK;
}

/* Notes an entry that a signal or a failed write to the store leaves undone. */
static void note_failure(struct dt_check_run *run, struct dt_check_entry *entry, const char *what,
                         dt_status status)
{
    run->interrupted = run->interrupted || status == DT_EINTR;
    if (status == DT_EINTR || status >= 0)
        return;
    snprintf(entry->written.note, sizeof entry->written.note, "%s: %.250s", what, dt_message());
    dt_text_clean(entry->written.note);
}

/* A failed write ends the run; after a signal the store is unchanged. */
static void run_update(struct dt_check_run *run, struct dt_check_entry *entry, int64_t deadline_ns)
{
    dt_status status = entry_update(entry, dt_journal_id(run->journal), deadline_ns);
    note_failure(run, entry, "not updated", status);
    if (status != DT_EINTR)
        dt_error_keep(&run->failed, status);
}

/* A store that cannot be written stays as it is, which is said; the check goes on. */
static dt_status run_mark(struct dt_check_run *run, struct dt_check_entry *entry)
{
    dt_status status = run->failed.status < 0 ? DT_OK : entry_mark(entry);
    note_failure(run, entry, "look-ups go on recommending it, as the store could not be changed",
                 status);
    return status == DT_ENOMEM ? status : DT_OK;
}

/* Checks the first of `left` remaining entries. */
static dt_status run_check_entry(struct dt_check_run *run, struct dt_check_entry *entry, int left,
                                 int64_t end_ns)
{
    const char *why = run->interrupted          ? "interrupted"
                      : run->failed.status < 0  ? "an error ended the run before it: "
                      : dt_clock_ns() >= end_ns ? "the budget ended before it: --budget gives more"
                                                : NULL;
    if (why != NULL) {
        bool error = !run->interrupted && run->failed.status < 0;
        dt_check_settle(entry, DT_CHECK_NOT_CHECKED, "%s%.500s", why,
                        error ? run->failed.sentence : "");
        return DT_OK;
    }
    dt_status status = dt_check_open(entry);
    if (status < 0)
        return run_give_up(run, entry, status);
    if (entry->verdict != DT_CHECK_UNJUDGED)
        return DT_OK;
    DT_TRY(dt_check_today(entry, end_ns));
    int64_t now = dt_clock_ns(), least = sets_ns(entry, DT_SETS_LEAST);
    int64_t share = dt_check_share_ns(end_ns - now, left, run->count == run->others, least,
                                      sets_ns(entry, DT_CHECK_LEAST_LOSE));
    if (share == 0) {
        dt_check_settle(entry, DT_CHECK_NOT_CHECKED,
                        "the budget ended before it, which takes about %s: --budget gives more",
                        dt_figure_span_of((double)least * 1e-9).text);
        return DT_OK;
    }
    status = entry_measure(entry, dt_check_lose_alpha(run->comparisons), now + share);
    if (status < 0)
        return run_give_up(run, entry, status);
    if (run->opts->update)
        run_update(run, entry, now + 2 * share < end_ns ? now + 2 * share : end_ns);
    return run_mark(run, entry);
}

/* Counts it, and writes it to the journal. */
static dt_status record_publish(struct dt_check_run *run, const struct dt_checked *checked)
{
    run->lost_gain += checked->record.gain_lost;
    run->counts[dt_check_verdict_of(checked->record.verdict)]++;
    return dt_journal_add(run->journal, "check", checked->json);
}

/* Entries of other commands, or workers, than the one that was named are told where
 * no entry is of that. */
static dt_status run_settle_others(struct dt_check_run *run)
{
    int count = run->count;
    bool alone = run->others == count;
    run->count = 0;
    run->others = alone ? 0 : run->others;
    for (int i = 0; i < count; i++)
        if (run->records[i].other && !alone)
            dt_checked_fini(&run->records[i]);
        else
            run->records[run->count++] = run->records[i];
    for (int i = 0; alone && i < count; i++)
        DT_TRY(record_publish(run, &run->records[i]));
    return DT_OK;
}

static dt_status run_keep(struct dt_check_run *run, struct dt_check_entry *entry)
{
    struct dt_checked *checked = &run->records[run->count];
    dt_auto_text retune = {0};
    dt_check_retune(entry, &retune);
    if (retune.size > 0)
        dt_text_clean(retune.bytes);
    DT_TRY(dt_checked_make(entry, dt_text_at(&retune), checked));
    run->count++;
    run->others += checked->other;
    if (checked->other)
        return DT_OK;
    DT_TRY(record_publish(run, checked));
    return entry->written.best != NULL ? dt_journal_add(run->journal, "best", entry->written.best)
                                       : DT_OK;
}

dt_status dt_check_run(struct dt_check_run *run)
{
    DT_CLEANUP(dt_check_list_fini) struct dt_check_list list = {.count = 0};
    dt_auto_free struct dt_check_entry *entry = malloc(sizeof *entry);
    int64_t end_ns = dt_clock_ns() + run->opts->budget_ns;
    dt_status status = DT_OK;
    if (entry == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    DT_TRY(dt_check_select(run->opts, &list));
    run->comparisons = list.count * (PLANNED_RIVALS + (run->opts->against != NULL));
    if (list.count > 0 && run->opts->update)
        DT_TRY(dt_store_check(run->opts->directory));
    if (list.count > 0)
        status = dt_journal_open(run->opts->directory, &run->journal);
    if (status == DT_EIO)
        return dt_fail(status,
                       "%s: a check keeps its journal in the store; of one that cannot be written "
                       "check a copy, named with --db",
                       dt_message());
    DT_TRY(status);
    DT_TRY(DT_RESIZE(run->records, list.count));
    for (int i = 0; status == DT_OK && i < list.count; i++) {
        *entry = (struct dt_check_entry){.opts = run->opts, .item = &list.items[i]};
        run->interrupted = run->interrupted || dt_group_interrupted != 0;
        if (run->opts->progress != NULL)
            run->opts->progress(run->opts->context, entry->item->title, i, list.count);
        status = run_check_entry(run, entry, list.count - i, end_ns);
        if (status == DT_OK)
            dt_error_keep(&run->failed, run_keep(run, entry));
        dt_check_close(entry);
    }
    dt_error_keep(&run->failed, run_settle_others(run));
    return status == DT_OK ? dt_error_raise(&run->failed) : status;
}

void dt_check_run_fini(struct dt_check_run *run)
{
    for (int i = 0; i < run->count; i++)
        dt_checked_fini(&run->records[i]);
    free(run->records);
    dt_journal_close(run->journal);
    run->records = NULL;
    run->count = 0;
    run->journal = NULL;
}
