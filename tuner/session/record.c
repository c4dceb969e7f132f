/* SPDX-License-Identifier: MIT */
#include "tuner/session/record.h"

#include "base/clock.h"
#include "db/store.h"
#include "search/bayes/importance.h"
#include "space/json/json.h"
#include "tuner/session/history.h"
#include "tuner/session/session_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define UNSTORED_MOST_NS (60 * DT_NS_PER_SECOND)

static json_t *result_or_null(const struct dt_result *result, const struct dt_target *target)
{
    return result != NULL ? dt_result_json(result, target) : json_null();
}

struct dt_measured dt_measured_of(const struct dt_result *result, const struct dt_target *target)
{
    if (result == NULL || result->samples.n == 0)
        return (struct dt_measured){.known = false};
    const struct dt_interval *interval = &result->summary.interval;
    return (struct dt_measured){
        .known = true,
        .plan = dt_point_json(target->space, &result->point),
        .median_ns = dt_ns_of(result->summary.median),
        .interval_ns = {true, dt_ns_of(interval->low), dt_ns_of(interval->high)},
        .cold_ns = dt_ns_of(result->cold_seconds),
        .peak_bytes = result->peak_bytes,
        .samples = result->samples.n,
        .batch = result->batch,
        .error = result->verified_error,
        .rule = dt_target_breaks(target, &result->point) ? target->broken : NULL,
        .warnings = dt_remarks_sentences(result->report.remarks)};
}

struct dt_measured dt_front_figures(const struct dt_result *result, const struct dt_target *target)
{
    return (struct dt_measured){.known = true,
                                .plan = dt_point_json(target->space, &result->point),
                                .median_ns = dt_ns_of(result->summary.median),
                                .cold_ns = DT_NO_NS,
                                .peak_bytes = result->peak_bytes,
                                .batch = result->batch,
                                .error = NAN};
}

struct dt_gain dt_gain_of(const struct dt_ratio *ratio)
{
    if (ratio == NULL || !isfinite(ratio->interval.high))
        return (struct dt_gain){.known = false};
    return (struct dt_gain){.known = true,
                            .ratio = 1 / ratio->ratio,
                            .interval = {1 / ratio->interval.high, 1 / ratio->interval.low},
                            .pairs = ratio->pairs,
                            .sets = ratio->sets};
}

struct dt_noise_floor dt_noise_floor_of(const struct dt_noise *noise)
{
    return (struct dt_noise_floor){.known = noise->pairs > 0,
                                   .margin = noise->margin,
                                   .ratio = noise->ratio,
                                   .interval = {noise->interval.low, noise->interval.high},
                                   .pairs = noise->pairs,
                                   .sets = noise->sets};
}

static int by_size(const void *a, const void *b)
{
    const double *one = a, *other = b;
    return (*one > *other) - (*one < *other);
}

/* Of the known ones; NAN: none. Sorts them. */
static double median_of(double values[], int n)
{
    qsort(values, (size_t)n, sizeof values[0], by_size);
    return n == 0 ? NAN : (values[(n - 1) / 2] + values[n / 2]) / 2;
}

static bool is_known(const struct dt_stored_load *load)
{
    return !isnan(load->cores) || load->left_out > 0;
}

struct dt_stored_load dt_load_of_sets(const struct dt_sets *sets)
{
    double cores[DT_SETS_MOST];
    int n = 0;
    struct dt_stored_load load = {.of = "sets",
                                  .cores_most = NAN,
                                  .stolen_most = NAN,
                                  .stalled_most = NAN,
                                  .left_out_most = NAN,
                                  .gpus_most = NAN};
    for (int s = 0; s < sets->count; s++) {
        if (dt_sets_disturbed(sets, s)) {
            load.left_out++;
            load.left_out_most = fmax(load.left_out_most, sets->others[s]);
            load.gpus_most =
                sets->gpus[s] > 0 ? fmax(load.gpus_most, sets->gpus[s]) : load.gpus_most;
        } else if (!isnan(sets->others[s])) {
            cores[n++] = sets->others[s];
            load.cores_most = fmax(load.cores_most, sets->others[s]);
            load.stolen_most = fmax(load.stolen_most, sets->stolen[s]);
            load.stalled_most = fmax(load.stalled_most, sets->stalled[s]);
        }
    }
    load.cores = median_of(cores, n);
    load.known = is_known(&load);
    if (load.left_out > 0 && sets->disturber[0] != '\0')
        load.program = sets->disturber;
    return load;
}

static struct dt_stored_load load_of_trials(const struct dt_session *session)
{
    double *cores = calloc((size_t)session->count + 1, sizeof *cores);
    int n = 0;
    struct dt_stored_load load = {.of = "trials",
                                  .cores_most = NAN,
                                  .stolen_most = NAN,
                                  .stalled_most = NAN,
                                  .left_out_most = NAN,
                                  .gpus_most = NAN};
    for (int i = 0; cores != NULL && i < session->count; i++) {
        double others = session->trials[i].others;
        if (dt_result_disturbed(&session->trials[i])) {
            load.left_out++;
            load.left_out_most = fmax(load.left_out_most, others);
            double gpus = session->trials[i].gpus;
            load.gpus_most = gpus > 0 ? fmax(load.gpus_most, gpus) : load.gpus_most;
        } else if (!isnan(others)) {
            cores[n++] = others;
            load.cores_most = fmax(load.cores_most, others);
        }
    }
    load.cores = median_of(cores, n);
    load.known = is_known(&load);
    free(cores);
    return load;
}

struct dt_stored_load dt_session_load(const struct dt_session *session)
{
    return session->finals.sets.count > 0 ? dt_load_of_sets(&session->finals.sets)
                                          : load_of_trials(session);
}

/* Adds the search and its inputs. */
static void add_search(const struct dt_session *session, json_t *object)
{
    const char *note = session->search.note, *prior = session->search.belief.name;
    json_object_set_new(object, "search_note", note[0] != '\0' ? json_string(note) : json_null());
    json_object_set_new(object, "search_stopped", json_boolean(session->search.stopped));
    json_object_set_new(object, "prior", prior[0] != '\0' ? json_string(prior) : json_null());
    json_object_set_new(
        object, "known",
        dt_raw_points(session->target->space, session->search.known, session->search.known_count));
}

static void add_noise(const struct dt_session *session, json_t *object)
{
    struct dt_noise measured = dt_session_noise(session);
    struct dt_noise_floor noise = dt_noise_floor_of(&measured);
    struct dt_text note = {0};
    dt_session_noise_note(session, &note);
    json_object_set_new(object, "noise", dt_record_json(&dt_record_noise_floor, &noise));
    json_object_set_new(object, "noise_note",
                        note.size > 0 ? json_string(dt_text_at(&note)) : json_null());
    dt_text_fini(&note);
}

/* Adds how much of the space was tried, what there was no time for, and the load meanwhile. */
static void add_done(const struct dt_session *session, json_t *object)
{
    int failed;
    struct dt_text skipped = {0};
    struct dt_stored_load load = dt_session_load(session);
    dt_session_skipped(session, &skipped);
    json_object_set_new(object, "tried", json_integer(dt_session_tried_count(session, &failed)));
    json_object_set_new(object, "plans",
                        session->target->plans >= 0 ? json_integer(session->target->plans)
                                                    : json_null());
    json_object_set_new(object, "skipped",
                        skipped.size > 0 ? json_string(dt_text_at(&skipped)) : json_null());
    json_object_set_new(object, "needs_seconds",
                        session->clock.need_seconds > 0 && dt_session_provisional(session)
                            ? json_real(session->clock.need_seconds)
                            : json_null());
    json_object_set_new(object, "load", dt_record_json(&dt_record_stored_load, &load));
    dt_text_fini(&skipped);
}

json_t *dt_record_session(const struct dt_session *session)
{
    const struct dt_target *target = session->target;
    json_t *trials = json_array();
    for (int i = 0; i < session->count; i++)
        json_array_append_new(trials, dt_trial_json(&session->trials[i], target));
    struct dt_gain gain = dt_session_gain(session);
    json_t *object = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:s, s:i, s:s, s:s, s:o, s:f, s:s, "
        "s:s}",
        "title", target->identity.title, "objective", target->objective->name, "best",
        result_or_null(dt_session_best(session), target), "default",
        result_or_null(dt_session_role(session, DT_ENTRANT_DEFAULT), target), "baseline",
        result_or_null(dt_session_role(session, DT_ENTRANT_BASELINE), target), "against",
        result_or_null(session->has_against ? dt_session_role(session, DT_ENTRANT_AGAINST) : NULL,
                       target),
        "gain", dt_record_json(&dt_record_gain, &gain), "ties",
        dt_raw_points(target->space, session->finals.ties, session->finals.tie_count), "rounds",
        dt_sets_rounds(&session->finals.sets), "sets", session->finals.sets.count, "resident",
        dt_company_text(session->finals.sets.company), "loads", session->finals.sets.loads,
        "search", session->search.name, "search_reason", session->search.why, "trials", trials,
        "elapsed_seconds", session->clock.elapsed_seconds, "verdict",
        dt_verdict_text(session->verdict), "journal", session->store.id);
    struct dt_image_time image = dt_entry_image(target);
    json_object_set_new(object, "image", dt_record_json(&dt_record_image_time, &image));
    add_search(session, object);
    add_noise(session, object);
    add_done(session, object);
    return object;
}

dt_status dt_record_begin(struct dt_session *session, const char *directory)
{
    DT_TRY(dt_store_check(directory));
    DT_TRY(dt_journal_open(directory, &session->store.journal));
    snprintf(session->store.id, sizeof session->store.id, "%s",
             dt_journal_id(session->store.journal));
    dt_entry_machine(session);
    struct dt_fingerprint fingerprint = dt_entry_fingerprint(session);
    json_t *identity = json_pack("{s:O, s:o}", "key", session->target->identity.key, "fingerprint",
                                 dt_record_json(&dt_record_fingerprint, &fingerprint));
    dt_entry_add_work(session->target, identity);
    return dt_history_begin(session, identity);
}

/* A provisional result does not replace a decided one. */
static dt_status store(struct dt_session *session, const char *directory, json_t *entry)
{
    json_t *before = NULL;
    if (dt_session_provisional(session))
        DT_TRY(dt_store_get(directory, session->target->identity.key,
                            session->target->identity.hard, &before));
    struct dt_stored_entry there;
    dt_record_read(&dt_record_stored_entry, before, &there);
    session->store.kept = there.known && !there.provisional;
    json_decref(before);
    if (session->store.kept)
        return DT_OK;
    dt_status status = dt_store_put(directory, entry);
    session->store.stored = status == DT_OK;
    return status;
}

void dt_record_now(struct dt_session *session, int64_t wait_ns)
{
    const struct dt_result *best = dt_session_best(session);
    int64_t due_ns = session->store.unstored_ns + UNSTORED_MOST_NS;
    if (session->store.directory == NULL || session->store.unstored_ns == 0 || best == NULL ||
        !dt_session_eligible(session, best) || dt_clock_ns() < due_ns - wait_ns)
        return;
    session->verdict = DT_VERDICT_PROVISIONAL;
    json_t *entry = dt_entry(session);
    if (entry == NULL || store(session, session->store.directory, entry) < 0)
        dt_session_note(session, "the provisional result is not stored: %s", dt_message());
    json_decref(entry);
    session->verdict = DT_VERDICT_NONE;
    session->store.stored = false;
    session->store.unstored_ns = 0;
}

/* Nothing is measured any more, so a fit disturbs nobody. */
static void weigh_axes(struct dt_session *session)
{
    struct dt_trial *trials = calloc((size_t)session->count + 1, sizeof *trials);
    int n = 0;
    for (int i = 0; trials != NULL && i < session->count; i++) {
        const struct dt_result *result = &session->trials[i];
        if (!dt_session_counts(session, i) || result->samples.n == 0 ||
            dt_target_breaks(session->target, &result->point))
            continue;
        trials[n] = dt_result_trial(result, session->target);
        trials[n++].value = dt_session_value(session, result);
    }
    session->search.weighed =
        n > 0 && dt_importance(session->target->space, trials, n, 0, session->search.importance);
    free(trials);
}

dt_status dt_record_end(struct dt_session *session, const char *directory)
{
    weigh_axes(session);
    json_t *entry = dt_entry(session);
    dt_status status = dt_history_end(session);
    if (status == DT_OK && entry != NULL)
        status = dt_journal_add(session->store.journal, "best", entry);
    if (entry != NULL) {
        dt_status stored = store(session, directory, entry);
        status = status == DT_OK ? stored : status;
    }
    json_decref(entry);
    return status;
}
