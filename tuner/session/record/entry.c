/* SPDX-License-Identifier: MIT */
/* A session as the store's entry and as programs read it (`tune --json`). */
#include "tuner/session/record/session_json.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/host.h"
#include "db/outline.h"
#include "db/store.h"
#include "model/workload_json.h"
#include "space/json/json.h"
#include "stats/front.h"
#include "tuner/runner/samples_json.h"
#include "tuner/session/replay.h"
#include "tuner/session/session_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REST_MOST (1 << 20) /* bytes of an entry beside its space */

/* wall_ns: when the entry is made; 0: it is that of a session that is read back,
 * as its record has it. */
static struct dt_fingerprint fingerprint_of(const struct dt_session *session, int64_t wall_ns)
{
    struct dt_fingerprint made = dt_fingerprint_copy(&session->fingerprint);
    if (wall_ns > 0) {
        made.info.t_wall_ns = wall_ns;
        made.info.set_ns = session->finals.sets.set_ns;
        made.info.set_plans = session->finals.entrant_count;
    }
    return made;
}

struct dt_gain dt_session_gain(const struct dt_session *session)
{
    const struct dt_session_finals *finals = &session->finals;
    bool faster = finals->verdict == DT_VERDICT_FASTER;
    bool over_default =
        dt_verdict_default_usable(session) ||
        (finals->verdict == DT_VERDICT_UNOPPOSED && dt_session_against_default(session));
    if (finals->best < 0 || !(faster || over_default))
        return dt_gain_of(NULL);
    struct dt_ratio ratio =
        faster ? dt_session_ratio(session, finals->best) : finals->entrants[finals->best].ratio;
    struct dt_gain gain = dt_gain_of(&ratio);
    if (faster && dt_session_over_documented(session))
        gain.over = dt_entrant_role_text(DT_ENTRANT_DOCUMENTED);
    return gain;
}

static struct dt_image_time image_of(const struct dt_target *target)
{
    int64_t once_ns = target->image.text_and_vae_ns;
    return (struct dt_image_time){.known = target->image.known,
                                  .steps = target->image.steps,
                                  .unit = target->image.is_image ? "image" : NULL,
                                  .step_kinds = json_incref(target->image.step_kinds),
                                  .text_and_vae_ns = once_ns > 0 ? once_ns : DT_NO_NS,
                                  .source = once_ns <= 0          ? NULL
                                            : target->image.given ? "given"
                                                                  : "measured"};
}

struct dt_documentation dt_documentation_of(const struct dt_target *target)
{
    const struct dt_documented *documented = &target->documented;
    return (struct dt_documentation){.known = documented->known,
                                     .says = documented->says,
                                     .source = documented->source,
                                     .date = documented->date};
}

struct dt_shot dt_session_shot(const struct dt_session *session, const struct dt_result *result,
                               const char *from)
{
    const struct dt_interval *interval = &result->summary.interval;
    return (struct dt_shot){
        .point = result->point,
        .value = dt_session_value(session, result),
        .figures = {.known = true,
                    .median_ns = dt_ns_of(result->summary.median),
                    .interval_ns = {true, dt_ns_of(interval->low), dt_ns_of(interval->high)},
                    .cold_ns = DT_NO_NS,
                    .peak_bytes = result->facts.peak_bytes,
                    .batch = result->batch,
                    .error = NAN,
                    .from = from}};
}

struct list {
    const struct dt_session *session;
    struct dt_shot *shots; /* distinct plans */
    int count;
};

static void list_take(struct list *list, const struct dt_shot *one)
{
    for (int i = 0; i < list->count; i++)
        if (dt_point_equal(list->session->target->space, &list->shots[i].point, &one->point))
            return;
    if (isfinite(one->value))
        list->shots[list->count++] = *one;
}

static int by_value(const void *a, const void *b)
{
    const struct dt_shot *p = a, *q = b;
    return (p->value > q->value) - (p->value < q->value);
}

/* A shoot-out without a final comparison after it counts only where there is
 * no comparison at all. */
static const struct dt_session_finals *shootout_of(const struct dt_session *session)
{
    return session->finals.entrant_count > 0 ? &session->finals : &session->next;
}

/* Every plan that keeps the limits, the session's best first, the others by the objective. */
static void list_plans(struct list *list)
{
    const struct dt_session *session = list->session;
    struct dt_shot one = dt_session_shot(session, dt_session_best(session),
                                         session->finals.best >= 0 ? "final comparison" : "trial");
    list_take(list, &one);
    for (int i = 0; i < session->finals.entrant_count; i++) {
        const struct dt_entrant *entrant = &session->finals.entrants[i];
        one = dt_session_shot(session, &entrant->result, "final comparison");
        if (!entrant->out && !dt_entrant_twin(entrant) &&
            dt_session_eligible(session, &entrant->result))
            list_take(list, &one);
    }
    const struct dt_session_finals *shootout = shootout_of(session);
    for (int i = 0; i < shootout->shot_count; i++)
        list_take(list, &shootout->shots[i]);
    for (int i = 0; i < session->count; i++) {
        one = dt_session_shot(session, &session->trials[i], "trial");
        if (dt_session_eligible(session, &session->trials[i]))
            list_take(list, &one);
    }
    if (list->count > 1)
        qsort(list->shots + 1, (size_t)list->count - 1, sizeof list->shots[0], by_value);
}

static void fill_top(const struct dt_session *session, struct dt_stored_entry *entry)
{
    int room =
        1 + session->finals.entrant_count + shootout_of(session)->shot_count + session->count;
    struct list list = {.session = session, .shots = calloc((size_t)room, sizeof *list.shots)};
    if (list.shots != NULL)
        list_plans(&list);
    for (int i = 0; i < list.count && i < DT_TOP_MOST; i++) {
        entry->top[i] = list.shots[i].figures;
        entry->top[i].plan = dt_point_json(session->target->space, &list.shots[i].point);
        entry->top_count = i + 1;
    }
    free(list.shots);
}

/* Uses times of trials, since only they were all measured in the same way. */
static void fill_front(const struct dt_session *session, struct dt_stored_entry *entry)
{
    dt_auto_free struct dt_front_point *points = calloc((size_t)session->count + 1, sizeof *points);
    int n = 0;
    for (int i = 0; points != NULL && i < session->count; i++)
        if (dt_session_eligible(session, &session->trials[i]))
            points[n++] = (struct dt_front_point){dt_session_value(session, &session->trials[i]),
                                                  session->trials[i].facts.peak_bytes, i};
    n = points != NULL ? dt_front(points, n) : 0;
    for (int k = 0; k < n && k < DT_PARETO_MOST; k++) {
        const struct dt_result *trial = &session->trials[points[k].index];
        entry->pareto[k] = dt_front_figures(trial, session->target);
        entry->pareto_count = k + 1;
    }
}

/* Presets are known by their names. */
static bool is_preset(const json_t *network)
{
    const char *name = dt_json_text_at(network, "name");
    struct dt_network preset;
    if (!dt_network_is_preset(name) || dt_network_load(name, &preset) != DT_OK)
        return false;
    json_auto_t *known = dt_network_to_json(&preset);
    return json_equal(known, network);
}

/* A space that leaves no room for the rest of a line stays out: the key has its hash. */
void dt_entry_add_work(const struct dt_target *target, json_t *object)
{
    json_t *network = json_object_get(target->workload, "network");
    if (network != NULL && !is_preset(network))
        json_object_set(object, "network", network);
    if (target->worker.announced != NULL &&
        json_dumpb(target->worker.announced, NULL, 0, JSON_COMPACT) <=
            DT_JSON_MAX_BYTES - REST_MOST)
        json_object_set(object, "space", target->worker.announced);
}

json_t *dt_entry(const struct dt_session *session, enum dt_verdict verdict, int64_t wall_ns)
{
    const struct dt_target *target = session->target;
    const struct dt_result *best = dt_session_best(session);
    if (best == NULL || dt_session_limit_broken(session))
        return NULL;
    struct dt_noise noise = dt_session_noise(session);
    dt_auto_text skipped = {0};
    int failed;
    dt_session_skipped(session, &skipped);
    struct dt_stored_entry entry = {
        .known = true,
        .key = json_incref(target->identity.key),
        .fingerprint = fingerprint_of(session, wall_ns),
        .plan = dt_point_json(target->space, &best->point),
        .verdict = dt_verdict_text(verdict),
        .provisional = dt_verdict_provisional(verdict),
        .figures = dt_measured_of(best, target),
        .fallback = dt_measured_of(dt_session_role(session, DT_ENTRANT_DEFAULT), target),
        .documented = dt_measured_of(dt_session_role(session, DT_ENTRANT_DOCUMENTED), target),
        .documentation = dt_documentation_of(target),
        .baseline = dt_measured_of(dt_session_role(session, DT_ENTRANT_BASELINE), target),
        .gain = dt_session_gain(session),
        .noise = dt_noise_floor_of(&noise),
        .resolution = dt_session_resolution(session),
        .tried = dt_session_tried_count(session, &failed),
        .plans = target->plans > 0 ? target->plans : 0,
        .skipped = skipped.size > 0 ? dt_text_at(&skipped) : NULL,
        .load = dt_session_load(session),
        .closing = session->closing,
        .image = image_of(target),
        .journal = session->id};
    fill_top(session, &entry);
    fill_front(session, &entry);
    json_t *json = dt_record_json(&dt_record_stored_entry, &entry);
    dt_entry_add_work(target, json);
    return json;
}

/* ---- figures of entries, and what --json prints */

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
        .slowest_ns = dt_result_parts(result) > 1 ? dt_ns_of(dt_result_slowest(result)) : 0,
        .interval_ns = {true, dt_ns_of(interval->low), dt_ns_of(interval->high)},
        .cold_ns = dt_ns_of(result->facts.cold_seconds),
        .peak_bytes = result->facts.peak_bytes,
        .samples = result->samples.n,
        .batch = result->batch,
        .error = result->facts.verified_error,
        .rule = dt_target_breaks(target, &result->point) ? target->broken : NULL,
        .warnings = dt_remarks_sentences(result->report.remarks)};
}

struct dt_measured dt_front_figures(const struct dt_result *result, const struct dt_target *target)
{
    return (struct dt_measured){.known = true,
                                .plan = dt_point_json(target->space, &result->point),
                                .median_ns = dt_ns_of(result->summary.median),
                                .cold_ns = DT_NO_NS,
                                .peak_bytes = result->facts.peak_bytes,
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

/* Times beside other programs: what is known of some sets or trials. */
struct load {
    struct dt_stored_load stored;
    double *cores; /* [count], of those that were not disturbed */
    int count;
};

static struct load load_begin(const char *of, double cores[])
{
    return (struct load){.stored = {.of = of,
                                    .cores_most = NAN,
                                    .stolen_most = NAN,
                                    .stalled_most = NAN,
                                    .left_out_most = NAN,
                                    .gpus_most = NAN},
                         .cores = cores};
}

/* others, gpus: cores and GPUs that other programs used; NAN: not known. */
static void load_add(struct load *load, bool disturbed, double others, double gpus)
{
    struct dt_stored_load *stored = &load->stored;
    if (disturbed) {
        stored->left_out++;
        stored->left_out_most = fmax(stored->left_out_most, others);
        stored->gpus_most = gpus > 0 ? fmax(stored->gpus_most, gpus) : stored->gpus_most;
    } else if (!isnan(others)) {
        load->cores[load->count++] = others;
        stored->cores_most = fmax(stored->cores_most, others);
    }
}

static struct dt_stored_load load_end(struct load *load)
{
    load->stored.cores = dt_stats_median(load->cores, load->count);
    load->stored.known = !isnan(load->stored.cores) || load->stored.left_out > 0;
    return load->stored;
}

struct dt_stored_load dt_load_of_sets(const struct dt_sets *sets)
{
    double cores[DT_SETS_MOST];
    struct load load = load_begin("sets", cores);
    for (int s = 0; s < sets->count; s++) {
        bool disturbed = dt_sets_disturbed(sets, s);
        load_add(&load, disturbed, sets->others[s], sets->gpus[s]);
        if (disturbed || isnan(sets->others[s]))
            continue;
        load.stored.stolen_most = fmax(load.stored.stolen_most, sets->stolen[s]);
        load.stored.stalled_most = fmax(load.stored.stalled_most, sets->stalled[s]);
    }
    if (load.stored.left_out > 0 && sets->disturber[0] != '\0')
        load.stored.program = sets->disturber;
    return load_end(&load);
}

static struct dt_stored_load load_of_trials(const struct dt_session *session)
{
    dt_auto_free double *cores = calloc((size_t)session->count + 1, sizeof *cores);
    struct load load = load_begin("trials", cores);
    for (int i = 0; cores != NULL && i < session->count; i++)
        load_add(&load, dt_result_disturbed(&session->trials[i]), session->trials[i].facts.others,
                 session->trials[i].facts.gpus);
    return load_end(&load);
}

struct dt_stored_load dt_session_load(const struct dt_session *session)
{
    return session->finals.sets.count > 0 ? dt_load_of_sets(&session->finals.sets)
                                          : load_of_trials(session);
}

static const char *text_or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* Adds the search and its inputs, the noise, how much of the space was tried, what there was no
 * time for, and the load meanwhile. */
static void add_rest(const struct dt_session *session, json_t *object)
{
    const struct dt_session_search *search = &session->search;
    struct dt_noise measured = dt_session_noise(session);
    struct dt_noise_floor noise = dt_noise_floor_of(&measured);
    struct dt_stored_load load = dt_session_load(session);
    int64_t plans = session->target->plans, need_ns = session->closing.need_ns;
    int failed, tried = dt_session_tried_count(session, &failed);
    dt_auto_text note = {0}, skipped = {0};
    dt_session_noise_note(session, &note);
    dt_session_skipped(session, &skipped);
    json_auto_t *rest = json_pack(
        "{s:s?, s:b, s:s?, s:o, s:o, s:s?, s:i, s:o, s:s?, s:o, s:o}", "search_note",
        text_or_null(search->note), "search_stopped", (int)search->stopped, "prior",
        text_or_null(search->prior), "known",
        dt_raw_points(session->target->space, search->known, search->known_count), "noise",
        dt_record_json(&dt_record_noise_floor, &noise), "noise_note",
        text_or_null(dt_text_at(&note)), "tried", tried, "plans",
        plans >= 0 ? json_integer(plans) : json_null(), "skipped",
        text_or_null(dt_text_at(&skipped)), "needs_seconds",
        need_ns > 0 && dt_session_provisional(session) ? json_real(rint((double)need_ns * 1e-9))
                                                       : json_null(),
        "load", dt_record_json(&dt_record_stored_load, &load));
    json_object_update(object, rest);
}

static json_t *extreme_json(const struct dt_result *result, const struct dt_target *target)
{
    return json_pack("{s:i, s:i, s:f, s:f}", "replicas", result->replicas, "ranks",
                     dt_target_ranks(target, &result->point), "latency_seconds",
                     dt_result_slowest(result), "images_per_second",
                     dt_result_images_per_second(result, target));
}

/* NULL where not both were measured. */
static json_t *extremes_json(const struct dt_session *session)
{
    const struct dt_extremes extremes = dt_session_extremes(session);
    if (extremes.many == NULL)
        return NULL;
    return json_pack("{s:i, s:o, s:o, s:o}", "batch", extremes.many->batch, "many",
                     extreme_json(extremes.many, session->target), "one",
                     extreme_json(extremes.single, session->target), "crossing",
                     extremes.after > 0 ? json_pack("[i, i]", extremes.before, extremes.after)
                                        : json_null());
}

json_t *dt_session_json(const struct dt_session *session)
{
    const struct dt_target *target = session->target;
    json_t *trials = json_array();
    for (int i = 0; i < session->count; i++)
        json_array_append_new(trials, dt_trial_json(&session->trials[i], target));
    struct dt_gain gain = dt_session_gain(session);
    struct dt_documentation documentation = dt_documentation_of(target);
    json_t *object = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:i, s:s, s:i, s:s, s:s, s:o, "
        "s:f, s:s, s:s}",
        "title", target->identity.title, "objective", target->objective->name, "best",
        result_or_null(dt_session_best(session), target), "default",
        result_or_null(dt_session_role(session, DT_ENTRANT_DEFAULT), target), "documented",
        result_or_null(dt_session_role(session, DT_ENTRANT_DOCUMENTED), target), "documentation",
        dt_record_json(&dt_record_documentation, &documentation), "baseline",
        result_or_null(dt_session_role(session, DT_ENTRANT_BASELINE), target), "against",
        result_or_null(session->has_against ? dt_session_role(session, DT_ENTRANT_AGAINST) : NULL,
                       target),
        "gain", dt_record_json(&dt_record_gain, &gain), "ties",
        dt_raw_points(target->space, shootout_of(session)->ties, shootout_of(session)->tie_count),
        "rounds", dt_sets_rounds(&session->finals.sets), "sets", session->finals.sets.count,
        "resident", dt_company_text(session->finals.sets.company), "loads",
        session->finals.sets.loads, "search", session->search.name, "search_reason",
        session->search.why, "trials", trials, "elapsed_seconds",
        fmax(0, (double)session->closing.elapsed_ns * 1e-9), "verdict",
        dt_verdict_text(session->verdict), "journal", session->id);
    struct dt_image_time image = image_of(target);
    json_object_set_new(object, "image", dt_record_json(&dt_record_image_time, &image));
    json_t *extremes = extremes_json(session);
    if (extremes != NULL)
        json_object_set_new(object, "extremes", extremes);
    add_rest(session, object);
    return object;
}

/* ---- the store */

void dt_entry_fingerprint(const struct dt_target *target, int64_t deadline_ns, bool cached,
                          struct dt_fingerprint *fingerprint)
{
    json_auto_t *machine = dt_target_machine(target, deadline_ns, cached);
    *fingerprint = (struct dt_fingerprint){.known = true,
                                           .hard = json_incref(target->identity.hard),
                                           .soft = json_incref(json_object_get(machine, "soft")),
                                           .info = {.known = true,
                                                    .host = dt_host_name(),
                                                    .boot_id = dt_host_boot(),
                                                    .t_wall_ns = dt_clock_wall_ns()}};
}

struct dt_fingerprint dt_fingerprint_copy(const struct dt_fingerprint *fingerprint)
{
    json_incref(fingerprint->hard);
    json_incref(fingerprint->soft);
    return *fingerprint;
}

void dt_fingerprint_fini(struct dt_fingerprint *fingerprint)
{
    json_decref(fingerprint->hard);
    json_decref(fingerprint->soft);
    *fingerprint = (struct dt_fingerprint){.known = false};
}

dt_status dt_entry_store(const struct dt_session *session, enum dt_verdict verdict,
                         const char *directory, struct dt_journal *journal,
                         struct dt_tuning_store *store)
{
    json_auto_t *entry = dt_entry(session, verdict, dt_clock_wall_ns()), *kept = NULL;
    struct dt_stored_entry there;
    store->result = DT_STORE_NOTHING;
    if (entry == NULL)
        return DT_OK;
    if (journal != NULL)
        DT_TRY(dt_journal_add(journal, "best", entry));
    DT_TRY(dt_store_offer(directory, entry, &kept));
    dt_record_read(&dt_record_stored_entry, kept, &there);
    store->result = kept == NULL        ? DT_STORE_STORED
                    : there.provisional ? DT_STORE_KEPT_MORE
                                        : DT_STORE_KEPT_DECIDED;
    return DT_OK;
}

/* ---- reviving a session that was killed */

/* Key and fingerprint are those of its first record, not of the machine that reads it. A
 * completed final comparison has a verdict that its session did not store any more: the entry is
 * provisional all the same. */
dt_status dt_revive(const char *path, json_t **entry)
{
    DT_CLEANUP(dt_replay_fini) struct dt_replay replay = {.log = NULL};
    *entry = NULL;
    dt_status status = dt_replay_open(path, false, &replay);
    const struct dt_session *session = replay.session;
    if (status == DT_OK && session->target != NULL && !session->ended &&
        session->target->identity.key != NULL && session->fingerprint.hard != NULL) {
        const struct dt_result *best = dt_session_best(session);
        if (best != NULL && dt_session_eligible(session, best))
            *entry = dt_entry(session, DT_VERDICT_PROVISIONAL, 0);
    }
    return status == DT_EIO || status == DT_ENOMEM ? status : DT_OK;
}

bool dt_resume_same_work(const struct dt_outline *outline, const struct dt_target *target)
{
    return json_equal(outline->key, target->identity.key);
}

bool dt_resume_same_machine(const struct dt_outline *outline, const struct dt_session *session)
{
    const json_t *machine = outline->fingerprint;
    return dt_stored_same_hard(json_object_get(machine, "hard"), session->fingerprint.hard) &&
           json_equal(json_object_get(machine, "soft"), session->fingerprint.soft);
}
