/* SPDX-License-Identifier: MIT */
#include "tuner/session/session_int.h"

#include "base/clock.h"
#include "base/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* steps of a usual trial: two of verification, two of warm-up, the first look */
#define TRIAL_STEPS 13
#define TRIAL_SHARE 0.12 /* limit of a trial, as a share of the time */
#define ROUGH       1.1  /* safety factor for estimates from few trials */
#define LOAD_SHARE                                                                                 \
    0.25 /* most of the time of trials for loads, when plans of a group follow each other */
#define IN_A_ROW_MOST 64
#define LEARNT_LOADS  0.33 /* loads a trial, in a search that learns what loads cost */
/* between the sets of a final comparison (tuner/measure/compare/compare.c) */
#define GAPS_SECONDS  180
#define LEAST_SECONDS 1e-3 /* least duration of a trial: a few requests */
#define LONG_START    0.01 /* share of the time, and */
#define LONG_SECONDS  10   /* from there on starts are planned */
#define GROUPS_MOST   1024
#define PLANS_MOST    100000

/* The final comparison must have the time for its eight rounds, the search at least
 * a third of its share. */
static void leave_time_for_finals(struct dt_tuning *tuning)
{
    int64_t all = tuning->clock.deadline_ns - tuning->clock.began_ns;
    int64_t latest = tuning->clock.deadline_ns - (int64_t)(dt_finals_seconds(tuning, 2) * 1e9);
    int64_t least = tuning->clock.began_ns + (int64_t)(DT_SEARCH_LEAST * (double)all);
    latest = latest > least ? latest : least;
    if (latest < tuning->clock.search_deadline_ns)
        tuning->clock.search_deadline_ns = latest;
}

/* The mean batch of the space over that of the result. */
static double batch_factor(const struct dt_session *session, const struct dt_result *result)
{
    int axis = dt_space_role(session->target->space, DT_ROLE_BATCH);
    if (axis < 0)
        return 1;
    const struct dt_axis *batch = dt_space_axis(session->target->space, axis);
    double sum = 0;
    for (int i = 0; i < batch->count; i++)
        sum += (double)batch->values[i];
    return sum / batch->count / result->batch;
}

struct room {
    double bare;  /* seconds of a usual trial of a plan whose group is loaded */
    double trial; /* the same with its share of the loads while groups replace each other */
    double load;  /* seconds of loading a group */
    double left;  /* seconds for all trials */
    int in_a_row; /* trials of a group that make up for its load */
};

/* Groups of plans that share a start. */
static double count_groups(const struct dt_tuning *tuning)
{
    const struct dt_space *space = tuning->target->space;
    uint64_t groups[GROUPS_MOST];
    int n = 0, at;
    if (!dt_space_listed(space) || dt_space_count(space) > PLANS_MOST)
        return dt_rig_classes(&tuning->rig).count;
    for (int64_t k = 0; k < dt_space_count(space) && n < GROUPS_MOST; k++) {
        struct dt_point point;
        dt_space_at(space, k, &point);
        groups[n] = dt_rig_class(tuning->target, &point);
        for (at = 0; groups[at] != groups[n];)
            at++;
        n += at == n;
    }
    return n;
}

/* Loads that a trial brings while groups replace each other: few where every plan is tried, as
 * order is free then, more in a search that learns (docs/search.md). */
static double loads_of_trial(const struct dt_tuning *tuning, const struct room *room)
{
    const struct dt_space *space = tuning->target->space;
    double plans = dt_space_listed(space) ? (double)dt_space_count(space) : INFINITY;
    double together = fmax(1.0 / room->in_a_row, count_groups(tuning) / plans);
    bool every = plans * (room->trial + together * room->load) <= room->left;
    return every ? together : fmax(together, LEARNT_LOADS);
}

double dt_session_trial_seconds(double step)
{
    return fmax(TRIAL_STEPS * step, LEAST_SECONDS);
}

/* Estimated from the trials so far: their steps and their overhead. Groups are loaded once while
 * all can stay, else again and again. */
static struct room room_for_trials(const struct dt_tuning *tuning)
{
    const struct dt_rig *rig = &tuning->rig;
    double around = -dt_rig_setup_seconds(rig), step = 0;
    int count = 0;
    for (int i = 0; i < tuning->session->count; i++) {
        const struct dt_result *trial = &tuning->session->trials[i];
        if (!dt_session_counts(tuning->session, i))
            continue;
        count++;
        around += trial->facts.cost_seconds - dt_result_seconds(trial, trial->report.steps);
        if (trial->samples.n > 0)
            step = fmax(step, trial->summary.median * batch_factor(tuning->session, trial));
    }
    around = count > 0 ? fmax(0, around / count) : 0;
    struct dt_rig_classes classes = dt_rig_classes(rig);
    double bare = fmax(around + TRIAL_STEPS * step, LEAST_SECONDS);
    struct room room = {.bare = bare,
                        .trial = bare,
                        .load = dt_rig_load_seconds(rig),
                        .left = (double)(tuning->clock.search_deadline_ns - dt_clock_ns()) * 1e-9};
    room.in_a_row = (int)fmin(fmax(ceil(room.load / (LOAD_SHARE * room.trial)), 1), IN_A_ROW_MOST);
    if (classes.stay)
        room.left -= room.load * fmax(0, classes.count - rig->costs.loads);
    else
        room.trial += room.load * loads_of_trial(tuning, &room);
    room.left = fmax(room.left, 0);
    return room;
}

/* Converts a result for the search: breaking the limit of latency is a failure; the cost includes
 * the start of a group for the first plan of a class. */
static struct dt_trial trial_told(const struct dt_session *session, const struct dt_result *result)
{
    struct dt_trial trial = dt_result_trial(result, session->target);
    trial.cost -= result->reference_seconds;
    if (trial.outcome == DT_TRIAL_OK && !dt_session_eligible(session, result)) {
        trial.outcome = DT_TRIAL_INFEASIBLE;
        trial.value = trial.low = trial.high = NAN;
    }
    return trial;
}

/* Copies a text of the search. */
static void copy_words(void (*say)(const struct dt_search *, struct dt_text *),
                       const struct dt_search *search, char text[], size_t room)
{
    dt_auto_text words = {0};
    say(search, &words);
    snprintf(text, room, "%s", dt_text_at(&words));
}

/* Seconds of the whole session: the time so far, the trials that fit (*every: of all plans), the
 * shoot-out and the final comparison. */
static double seconds_of_session(const struct dt_tuning *tuning, const struct room *room,
                                 bool *every)
{
    const struct dt_space *space = tuning->target->space;
    double all = (double)(tuning->clock.deadline_ns - tuning->clock.began_ns) * 1e-9;
    double until = (double)(tuning->clock.search_deadline_ns - tuning->clock.began_ns) * 1e-9;
    double fit = floor(room->left / room->trial), others = INFINITY;
    if (dt_space_listed(space))
        others = fmax(0, (double)dt_space_count(space) - tuning->session->count);
    *every = others <= fit;
    double trials = until - room->left + fmin(fit, others) * room->trial;
    double finals = dt_finals_seconds(tuning, 2), sets = DT_SETS_USUAL / DT_SETS_LEAST * finals;
    double left = all - trials - dt_finals_shootout_seconds(tuning);
    double gaps = fmin(GAPS_SECONDS, fmax(0, fmin(left / 2 - finals, left - sets)));
    return fmin(all, all - left + finals + gaps);
}

/* Notes the search, the number of trials that fit, and when the answer is there, if the budget is
 * not too short for a decided one. */
static void note_search(struct dt_tuning *tuning, const struct room *room)
{
    dt_auto_text text = {0};
    dt_text_add(&text, "search: %s (%s), ", tuning->search.name, tuning->search.why);
    dt_figure_time(room->trial, &text);
    dt_text_add(&text, " a trial");
    if (room->load > room->trial) {
        dt_text_add(&text, ", ");
        dt_figure_time(room->load, &text);
        dt_text_add(&text, " a load");
    }
    if (tuning->clock.need_seconds <= 0) { /* else the first trials said what is needed */
        bool every;
        double seconds = seconds_of_session(tuning, room, &every);
        dt_text_add(&text, "; a decided answer takes about ");
        dt_figure_span(seconds, &text);
        if (every)
            dt_text_add(&text, " for %lld plan%s", (long long)dt_space_count(tuning->target->space),
                        dt_space_count(tuning->target->space) == 1 ? "" : "s");
    }
    dt_tuning_note(tuning, "%s", dt_text_at(&text));
}

void dt_explore_starts(struct dt_tuning *tuning)
{
    dt_auto_text text = {0};
    double all = (double)(tuning->clock.deadline_ns - tuning->clock.began_ns) * 1e-9;
    double load = dt_rig_load_seconds(&tuning->rig), finals = dt_finals_seconds(tuning, 2);
    double groups = count_groups(tuning);
    double most = fmin(DT_TRIALS_SHARE * all, fmax(all - finals, DT_SEARCH_LEAST * all));
    if (tuning->search.planned || load < LONG_START * all || load < LONG_SECONDS)
        return;
    tuning->search.planned = true;
    dt_text_add(&text, "a start takes about ");
    dt_figure_span(load, &text);
    dt_text_add(&text, ": ");
    dt_target_plans(tuning->target, &text);
    dt_text_add(&text, groups < GROUPS_MOST ? " need %.0f" : " need more than %.0f", groups);
    if (groups < GROUPS_MOST && groups * load <= most) {
        dt_text_add(&text, " (");
        dt_figure_span(groups * load, &text);
        dt_text_add(&text, "), as those of a group share one and are tried in a row");
    } else {
        dt_text_add(&text, ", and there is time for %.0f, the most promising first",
                    fmax(floor(most / load), 1));
    }
    dt_text_add(&text, "; the final comparison starts its plans in each of %d sets (",
                DT_SETS_LEAST);
    dt_figure_span(finals, &text);
    dt_text_add(&text, ")");
    dt_tuning_note(tuning, "%s", dt_text_at(&text));
}

/* The inputs of the search. */
static struct dt_search_opts search_opts(struct dt_tuning *tuning, const struct room *room)
{
    tuning->search.groups = (struct dt_groups){.of = dt_rig_class,
                                               .context = tuning->target,
                                               .in_a_row = room->in_a_row,
                                               .stay = dt_rig_classes(&tuning->rig).room};
    return (struct dt_search_opts){.space = tuning->target->space,
                                   .seed = (uint64_t)tuning->opts.job->seed,
                                   .start = &tuning->target->fallback,
                                   .known = tuning->search.known,
                                   .known_count = tuning->search.known_count,
                                   .prior = dt_belief_order(&tuning->search.belief),
                                   .groups = &tuning->search.groups,
                                   .evaluations = (int64_t)fmax(1, room->left / room->trial),
                                   .seconds = fmax(room->left, 1e-3),
                                   .capacity_bytes = tuning->opts.job->max_bytes};
}

static dt_status new_search(struct dt_tuning *tuning, const struct dt_search_opts *opts,
                            struct dt_search **search)
{
    snprintf(tuning->search.name, sizeof tuning->search.name, "%s", tuning->opts.strategy);
    return dt_search_new(tuning->search.name, opts, search);
}

static void say_reason(struct dt_tuning *tuning, const struct dt_search *search)
{
    copy_words(dt_search_reason, search, tuning->search.why, sizeof tuning->search.why);
    if (tuning->search.why[0] == '\0')
        snprintf(tuning->search.why, sizeof tuning->search.why, "asked for");
}

/* Asks for the first point, which makes a choosing search choose. */
static dt_status open_search(struct dt_tuning *tuning)
{
    struct dt_tuning_search *search = &tuning->search;
    struct room room = room_for_trials(tuning);
    struct dt_search_opts opts = search_opts(tuning, &room);
    DT_TRY(new_search(tuning, &opts, &search->running));
    for (int i = 0; i < tuning->session->count; i++) {
        struct dt_trial trial = trial_told(tuning->session, &tuning->session->trials[i]);
        if (dt_session_counts(tuning->session, i) && !tuning->session->trials[i].undone)
            dt_search_tell(search->running, &trial);
    }
    dt_status status = dt_search_ask(search->running, &search->next);
    search->asked = status == DT_OK;
    say_reason(tuning, search->running);
    note_search(tuning, &room);
    struct dt_log_record record = {.kind = DT_LOG_SEARCH,
                                   .search = {.name = search->name,
                                              .why = search->why,
                                              .prior = search->belief.name,
                                              .known_count = search->known_count,
                                              .evaluations = opts.evaluations,
                                              .left_ns = llround(opts.seconds * 1e9),
                                              .capacity_bytes = opts.capacity_bytes,
                                              .in_a_row = opts.groups->in_a_row}};
    memcpy(record.search.known, search->known, sizeof record.search.known);
    DT_TRY(dt_log_add(tuning->log, &record));
    return status;
}

/* The trial of this plan is expected to end in time. */
static bool point_fits(const struct dt_tuning *tuning, const struct dt_point *point, int64_t end_ns)
{
    struct room room = room_for_trials(tuning);
    bool loaded = dt_rig_is_loaded(&tuning->rig, point);
    double seconds = ROUGH * (room.bare + (loaded ? 0 : room.load));
    return dt_clock_ns() + (int64_t)(seconds * 1e9) < end_ns;
}

/* Visits the incumbent when it is due; the search is told what plans that were tried again did. */
static dt_status visit_next(struct dt_tuning *tuning)
{
    int count = tuning->session->count;
    dt_status status = dt_visits_make(tuning);
    for (int i = count; i < tuning->session->count; i++) {
        struct dt_trial trial = trial_told(tuning->session, &tuning->session->trials[i]);
        if (dt_session_counts(tuning->session, i))
            dt_search_tell(tuning->search.running, &trial);
    }
    return status;
}

/* Trials until the end of the time for them. whole: only those that are expected to end until then.
 * DT_DONE: no plan is left, or none is worth a trial. */
static dt_status run_search(struct dt_tuning *tuning, bool whole)
{
    struct dt_tuning_search *search = &tuning->search;
    int64_t end = tuning->clock.search_deadline_ns;
    while (dt_clock_ns() < end) {
        dt_status status = search->asked ? DT_OK : dt_search_ask(search->running, &search->next);
        search->asked = status == DT_OK;
        if (status != DT_OK || (whole && !point_fits(tuning, &search->next, end)))
            return status;
        DT_TRY(dt_trials_try(tuning, &search->next, true, TRIAL_SHARE));
        struct dt_trial trial =
            trial_told(tuning->session, &tuning->session->trials[tuning->session->count - 1]);
        if (trial.outcome == DT_TRIAL_INTERRUPTED && dt_clock_ns() >= end)
            break; /* no information about the plan */
        dt_search_tell(search->running, &trial);
        search->asked = false;
        search->chance = dt_search_chance(search->running);
        DT_TRY(visit_next(tuning));
    }
    return DT_OK;
}

/* Records the search's note at its end, and whether it stopped by itself. */
static void end_search(struct dt_tuning *tuning, bool stopped)
{
    tuning->search.stopped = stopped;
    copy_words(dt_search_note, tuning->search.running, tuning->search.note,
               sizeof tuning->search.note);
    if (stopped)
        dt_tuning_note(tuning, "the search stopped after %d trial%s: %.*s", tuning->session->count,
                       tuning->session->count == 1 ? "" : "s",
                       (int)dt_explore_clause(tuning->search.note), tuning->search.note);
}

dt_status dt_explore_end(struct dt_tuning *tuning)
{
    struct dt_log_record record = {.kind = DT_LOG_SEARCHED,
                                   .searched = {tuning->search.note, tuning->search.stopped}};
    return dt_log_add(tuning->log, &record);
}

/* Tries the best plans of other sessions, so that the search starts with their times. */
static dt_status try_stored(struct dt_tuning *tuning)
{
    for (int i = 0; i < tuning->search.known_count; i++)
        if (dt_session_trial(tuning->session, &tuning->search.known[i]) == NULL &&
            dt_clock_ns() < tuning->clock.search_deadline_ns)
            DT_TRY(dt_trials_try(tuning, &tuning->search.known[i], true, TRIAL_SHARE));
    return DT_OK;
}

dt_status dt_explore(struct dt_tuning *tuning)
{
    leave_time_for_finals(tuning);
    DT_TRY(try_stored(tuning));
    tuning->pace.at_ns = dt_clock_ns();
    tuning->pace.since = tuning->pace.from = tuning->session->count;
    if (tuning->resume.id[0] != '\0')
        DT_TRY(dt_visits_resume(tuning));
    dt_status status = open_search(tuning);
    if (status == DT_OK)
        status = run_search(tuning, tuning->search.planned);
    if (status == DT_DONE)
        DT_TRY(visit_next(tuning));
    if (status >= 0)
        end_search(tuning, status == DT_DONE);
    if (status == DT_DONE)
        status = dt_trials_strays(tuning);
    dt_store_now(tuning, INT64_MAX);
    return status < 0 ? status : DT_OK;
}

dt_status dt_explore_more(struct dt_tuning *tuning, int64_t until_ns)
{
    tuning->clock.search_deadline_ns = until_ns;
    if (tuning->search.stopped)
        return DT_OK;
    /* NULL: it ended in the session that this one resumes */
    dt_status status = tuning->search.running == NULL ? open_search(tuning) : DT_OK;
    if (status == DT_OK)
        status = run_search(tuning, true);
    if (status != DT_DONE)
        return status;
    end_search(tuning, true);
    return dt_explore_end(tuning);
}

/* Adds a plan once, without an answer to the search. */
static void preview_plan(const struct dt_session *session, const char *role,
                         const struct dt_point *point, struct dt_preview *preview)
{
    for (int i = 0; i < preview->count; i++)
        if (dt_point_equal(session->target->space, &preview->plans[i].point, point))
            return;
    preview->plans[preview->count++] = (struct dt_preview_plan){role, *point};
}

static dt_status preview_search(const struct dt_session *session, struct dt_search *search,
                                struct dt_preview *preview)
{
    for (int i = 0; i < preview->count; i++)
        dt_search_tell(search, &(struct dt_trial){.point = preview->plans[i].point,
                                                  .outcome = DT_TRIAL_INTERRUPTED,
                                                  .value = NAN,
                                                  .low = NAN,
                                                  .high = NAN});
    while (dt_search_ahead(search) > 0) {
        struct dt_point point = {{0}};
        dt_status status = dt_search_ask(search, &point);
        preview->more = status == DT_OK && preview->count == DT_PREVIEW_MOST;
        if (status != DT_OK || preview->more)
            return status < 0 ? status : DT_OK;
        preview_plan(session, "search", &point, preview);
    }
    return DT_OK;
}

dt_status dt_tuning_preview(struct dt_tuning *tuning, double trial_seconds,
                            struct dt_preview *preview)
{
    const struct dt_point *first[DT_FIRST_MOST];
    const struct dt_target *target = tuning->target;
    struct dt_search *search = NULL;
    double all = (double)(tuning->clock.deadline_ns - tuning->clock.began_ns) * 1e-9;
    *preview =
        (struct dt_preview){.trial_seconds = trial_seconds, .trials_until = DT_TRIALS_SHARE * all};
    dt_rig_init(&tuning->rig, target, (uint64_t)tuning->opts.job->seed);
    preview->classes = dt_rig_classes(&tuning->rig).count;
    int n = dt_trials_first(tuning->session, first);
    for (int i = 0; i < n; i++)
        preview_plan(tuning->session,
                     dt_entrant_role_text(dt_trials_role(tuning->session, first[i])), first[i],
                     preview);
    for (int i = 0; i < tuning->search.known_count; i++)
        preview_plan(tuning->session, "stored", &tuning->search.known[i], preview);
    struct room room = {.trial = trial_seconds,
                        .left = preview->trials_until - preview->count * trial_seconds,
                        .in_a_row = 1};
    struct dt_search_opts opts = search_opts(tuning, &room);
    dt_status status = new_search(tuning, &opts, &search);
    if (status == DT_OK)
        status = preview_search(tuning->session, search, preview);
    if (status == DT_OK)
        say_reason(tuning, search);
    dt_search_free(search);
    dt_rig_fini(&tuning->rig, 0);
    return status;
}
