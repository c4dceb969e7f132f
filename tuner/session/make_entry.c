/* SPDX-License-Identifier: MIT */
/* Plans are stored by names and values. Figures of a plan may come from three sources, of which the later is better: a
 * trial's are biased by the choice (docs/measuring.md). */
#include "tuner/session/session_int.h"

#include "base/clock.h"
#include "base/host.h"
#include "model/workload_json.h"
#include "space/json/json.h"
#include "stats/front.h"
#include "tuner/machine/machine.h"
#include "tuner/session/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WORKER_NS (20 * DT_NS_PER_SECOND)
#define REST_MOST (1 << 20) /* bytes of an entry beside its space */

/* A worker that has answered is not started again. */
static json_t *describe_machine(const struct dt_session *session)
{
    const struct dt_target *target = session->target;
    struct dt_machine_worker worker = {{target->worker.program, target->worker.arguments},
                                       target->foreign,
                                       &target->hardware.backend};
    if (target->worker.ready != NULL) {
        json_t *machine = dt_machine_describe(target->worker.hello, target->worker.ready, &worker);
        if (session->job->wanted.secret == NULL) /* its file is named by the arguments */
            dt_machine_keep(&worker, machine);
        return machine;
    }
    json_t *machine = NULL;
    int64_t now = dt_clock_ns(), share = (session->clock.deadline_ns - now) / 4;
    int64_t deadline_ns = now + (share < WORKER_NS ? share : WORKER_NS);
    if (dt_machine_read(&worker, false, deadline_ns, &machine) < 0)
        machine = dt_machine_describe(NULL, NULL, &worker);
    return machine;
}

void dt_entry_machine(struct dt_session *session)
{
    json_t *machine = describe_machine(session);
    session->fingerprint = (struct dt_fingerprint){
        .known = true,
        .hard = json_incref(session->target->identity.hard),
        .soft = json_incref(json_object_get(machine, "soft")),
        .info = {.known = true, .host = dt_host_name(), .boot_id = dt_host_boot()}};
    json_decref(machine);
}

struct dt_fingerprint dt_entry_fingerprint(const struct dt_session *session)
{
    struct dt_fingerprint made = session->fingerprint;
    json_incref(made.hard);
    json_incref(made.soft);
    made.info.t_wall_ns = dt_clock_wall_ns();
    made.info.set_ns = session->finals.sets.set_ns;
    made.info.set_plans = session->finals.entrant_count;
    return made;
}

struct dt_gain dt_session_gain(const struct dt_session *session)
{
    bool compared = session->finals.best >= 0 && dt_session_against_default(session);
    return dt_gain_of(compared ? &session->finals.entrants[session->finals.best].ratio : NULL);
}

struct dt_image_time dt_entry_image(const struct dt_target *target)
{
    int64_t once_ns = target->image.text_and_vae_ns;
    return (struct dt_image_time){.known = target->image.told,
                                  .steps = target->image.steps,
                                  .unit = target->image.whole ? "image" : NULL,
                                  .text_and_vae_ns = once_ns > 0 ? once_ns : DT_NO_NS,
                                  .source = once_ns <= 0          ? NULL
                                            : target->image.given ? "given"
                                                                  : "measured"};
}

static struct dt_shot shot(const struct dt_session *session, const struct dt_result *result,
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
                    .peak_bytes = result->peak_bytes,
                    .batch = result->batch,
                    .error = NAN,
                    .from = from}};
}

void dt_entry_keep_shots(struct dt_session *session, const struct dt_entrant entrants[], int n)
{
    session->finals.shot_count = 0;
    for (int i = 0; i < n && session->finals.shot_count < DT_SHOTS; i++)
        if (!entrants[i].out && !dt_entrant_twin(&entrants[i]) &&
            dt_session_eligible(session, &entrants[i].result))
            session->finals.shots[session->finals.shot_count++] =
                shot(session, &entrants[i].result, "shoot-out");
}

struct list {
    const struct dt_session *session;
    struct dt_shot *shots; /* distinct plans */
    int count;
};

static void take(struct list *list, const struct dt_shot *one)
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

/* Every plan that keeps the limits, the session's best first, the others by the objective. */
static void list_plans(struct list *list)
{
    const struct dt_session *session = list->session;
    struct dt_shot one = shot(session, dt_session_best(session),
                              session->finals.best >= 0 ? "final comparison" : "trial");
    take(list, &one);
    for (int i = 0; i < session->finals.entrant_count; i++) {
        const struct dt_entrant *entrant = &session->finals.entrants[i];
        one = shot(session, &entrant->result, "final comparison");
        if (!entrant->out && !dt_entrant_twin(entrant) &&
            dt_session_eligible(session, &entrant->result))
            take(list, &one);
    }
    for (int i = 0; i < session->finals.shot_count; i++)
        take(list, &session->finals.shots[i]);
    for (int i = 0; i < session->count; i++) {
        one = shot(session, &session->trials[i], "trial");
        if (dt_session_eligible(session, &session->trials[i]))
            take(list, &one);
    }
    if (list->count > 1)
        qsort(list->shots + 1, (size_t)list->count - 1, sizeof list->shots[0], by_value);
}

static void fill_top(const struct dt_session *session, struct dt_stored_entry *entry)
{
    int room = 1 + session->finals.entrant_count + session->finals.shot_count + session->count;
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
    struct dt_front_point *points = calloc((size_t)session->count + 1, sizeof *points);
    int n = 0;
    for (int i = 0; points != NULL && i < session->count; i++)
        if (dt_session_eligible(session, &session->trials[i]))
            points[n++] = (struct dt_front_point){dt_session_value(session, &session->trials[i]),
                                                  session->trials[i].peak_bytes, i};
    n = points != NULL ? dt_front(points, n) : 0;
    for (int k = 0; k < n && k < DT_PARETO_MOST; k++) {
        const struct dt_result *trial = &session->trials[points[k].index];
        entry->pareto[k] = dt_front_figures(trial, session->target);
        entry->pareto_count = k + 1;
    }
    free(points);
}

/* Presets are known by their names. */
static bool is_preset(const json_t *network)
{
    const char *const *names = dt_network_presets();
    const char *name = json_string_value(json_object_get(network, "name"));
    struct dt_network preset;
    bool same = false;
    for (int i = 0; names[i] != NULL && name != NULL && !same; i++) {
        if (strcmp(names[i], name) != 0 || dt_network_load(name, &preset) != DT_OK)
            continue;
        json_t *known = dt_network_to_json(&preset);
        same = json_equal(known, network);
        json_decref(known);
    }
    return same;
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

json_t *dt_entry(const struct dt_session *session)
{
    const struct dt_target *target = session->target;
    const struct dt_result *best = dt_session_best(session);
    if (best == NULL || session->limit_broken)
        return NULL;
    struct dt_noise noise = dt_session_noise(session);
    struct dt_text skipped = {0};
    int failed;
    dt_session_skipped(session, &skipped);
    struct dt_stored_entry entry = {
        .known = true,
        .key = json_incref(target->identity.key),
        .fingerprint = dt_entry_fingerprint(session),
        .plan = dt_point_json(target->space, &best->point),
        .verdict = dt_verdict_text(session->verdict),
        .provisional = dt_session_provisional(session),
        .figures = dt_measured_of(best, target),
        .fallback = dt_measured_of(dt_session_role(session, DT_ENTRANT_DEFAULT), target),
        .baseline = dt_measured_of(dt_session_role(session, DT_ENTRANT_BASELINE), target),
        .gain = dt_session_gain(session),
        .noise = dt_noise_floor_of(&noise),
        .resolution = dt_session_resolution(session),
        .tried = dt_session_tried_count(session, &failed),
        .plans = target->plans > 0 ? target->plans : 0,
        .skipped = skipped.size > 0 ? dt_text_at(&skipped) : NULL,
        .load = dt_session_load(session),
        .image = dt_entry_image(target),
        .journal = session->store.id};
    fill_top(session, &entry);
    fill_front(session, &entry);
    json_t *json = dt_record_json(&dt_record_stored_entry, &entry);
    dt_entry_add_work(target, json);
    dt_text_fini(&skipped);
    return json;
}
