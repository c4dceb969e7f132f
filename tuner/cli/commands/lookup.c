/* SPDX-License-Identifier: MIT */
#include "db/engines/engines.h"
#include "db/snapshot.h"
#include "db/store.h"
#include "db/stores.h"
#include "model/network.h"
#include "tuner/cli/export.h"
#include "tuner/cli/lookup/ask.h"
#include "tuner/cli/lookup/show.h"
#include "tuner/cli/planned/ranking.h"
#include "tuner/cli/print.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Values that the options leave open come from the answer. */
static dt_status constants_of(const struct dt_options *options, const struct dt_answer *answer,
                              json_t **constants)
{
    struct dt_options own = *options;
    const char *model = json_string_value(json_object_get(answer->key, "model"));
    const char *dtype = json_string_value(json_object_get(answer->key, "dtype"));
    json_int_t height = dt_json_integer_at(answer->key, "height");
    if (!dt_option_given(options, "model") && model != NULL) {
        own.job.model = model;
        own.job.sizes.count = 1;
        own.job.sizes.widths[0] = height > 0 && height < INT_MAX / 8 ? 8 * (int)height : INT_MAX;
    }
    if (dtype != NULL)
        own.job.dtype = dtype;
    return dt_export_constants(&own, constants);
}

/* The entry has a job of its own: it was tuned on an engine. */
static bool of_engine(const struct dt_answer *answer)
{
    return json_object_get(json_object_get(answer->entry, "key"), "worker") != NULL;
}

/* A predicted plan of an engine, which has no entry: the question has its job. */
static bool is_predicted(const struct dt_answer *answer)
{
    return answer->entry == NULL && json_object_get(answer->key, "job") != NULL;
}

static dt_status print_export(const struct dt_options *options, const struct dt_answer *answer)
{
    struct dt_export_request request = {.plan = NULL};
    json_auto_t *constants = NULL, *object = dt_answer_json(answer);
    dt_answer_export(answer, &request);
    if (!of_engine(answer) && !is_predicted(answer)) {
        DT_TRY(constants_of(options, answer, &constants));
        request.constants = constants;
    }
    if (is_predicted(answer))
        request.checkpoint = dt_json_text_at(json_object_get(answer->key, "job"), "model");
    return dt_export_print(options, request, object);
}

static bool wants_json(const struct dt_options *options)
{
    return options->print.json ||
           (options->print.format != NULL && strcmp(options->print.format, "json") == 0);
}

static dt_status print_answer(const struct dt_options *options, const struct dt_answer *answer)
{
    struct dt_options own = *options;
    if (of_engine(answer) && own.lookup.engine != NULL && !dt_engine_known(own.lookup.engine))
        own.lookup.engine = NULL; /* its plans are its own words */
    dt_auto_text warning = {0};
    struct dt_text text = {0};
    dt_show_warning(answer, &warning);
    if (warning.size > 0)
        dt_print_note("%s", dt_text_at(&warning));
    DT_TRY(dt_export_check(&own));
    bool exported = answer->plan != NULL && dt_export_asked(&own);
    bool argv = own.print.format != NULL && strcmp(own.print.format, "argv") == 0;
    if (exported && argv && own.lookup.engine == NULL &&
        dt_command_job(json_object_get(answer->entry, "key")) != NULL) {
        DT_TRY(dt_command_fill(&own.command, answer->entry, answer->plan, &text));
        return dt_print_exact(&text);
    }
    bool for_people = !wants_json(options) &&
                      (own.print.format == NULL || strcmp(own.print.format, "table") == 0);
    if (wants_json(options) && !exported)
        return dt_print_json(dt_answer_json(answer));
    if (answer->plan != NULL && for_people && (!exported || of_engine(answer)))
        dt_show_answer(answer, options->stores->count > 1, &text);
    DT_TRY(dt_print_text(&text));
    return exported ? print_export(&own, answer) : DT_OK;
}

/* Values of --require. */
struct required {
    enum dt_tier tier;
    bool decided;
    double resolution; /* share; 0: any */
};

/* Measured on cores, and not by the engine that the plan would be exported to: what wins
 * on cores may lose on the GPUs that engines run on. True also when memory for the
 * engine's name runs out. */
static bool is_of_cores(const struct dt_options *options, const struct dt_answer *answer)
{
    const json_t *hard = json_object_get(json_object_get(answer->entry, "fingerprint"), "hard");
    const char *asked = options->lookup.engine;
    json_auto_t *family = NULL;
    if (answer->tier != DT_TIER_PROXY || asked == NULL || !dt_engine_known(asked) ||
        json_object_get(hard, "cores") == NULL || dt_json_has(hard, "devices"))
        return false;
    bool other = dt_engine_family(asked, &family) != DT_OK ||
                 !json_equal(family, json_object_get(hard, "engine"));
    return other;
}

/* --require-resolution is of plans as they were measured. */
static bool is_resolved(const struct dt_answer *answer, const struct required *required)
{
    return !(required->resolution > 0) ||
           (answer->measured != NULL && answer->measured->resolution <= required->resolution);
}

static bool is_enough(const struct dt_options *options, const struct dt_answer *answer,
                      const struct required *required)
{
    bool weak = required->tier > DT_TIER_HEURISTIC && is_of_cores(options, answer);
    return !weak && dt_answer_meets(answer, required->tier, required->decided) &&
           is_resolved(answer, required);
}

/* Nothing is stored: a name that is no engine may be mistyped. */
static dt_status check_engine(const struct dt_options *options)
{
    json_auto_t *name = NULL;
    struct dt_network network;
    if (options->worker.program.path != NULL || dt_engine_known(options->lookup.engine) ||
        dt_network_load(options->job.model, &network) != DT_OK)
        return DT_OK;
    DT_TRY(dt_engine_family(options->lookup.engine, &name));
    return DT_OK;
}

/* Appends "run dittune --engine mine first", or the engine that was meant by the name of none. */
static void advice_add(const struct dt_options *options, struct dt_text *out)
{
    const char *names[64] = {NULL}, *near = NULL;
    const char *engine = dt_ask_is_engine(options) ? options->lookup.engine : NULL;
    json_auto_t *list = NULL;
    if (engine != NULL && !dt_engine_known(engine) && dt_engines(&list) == DT_OK) {
        for (size_t i = 0; i < json_array_size(list) && i < 63; i++)
            names[i] = dt_json_text_at(json_array_get(list, i), "engine");
        near = dt_json_nearest(engine, names);
    }
    if (near != NULL)
        dt_text_add(out, "did you mean --engine %s?", near);
    else
        dt_text_add(out, "run dittune%s%s %s", engine != NULL ? " --engine " : "",
                    engine != NULL ? engine : "",
                    options->lookup.machine != NULL ? "there" : "first");
}

static dt_status fail_resolution(const struct dt_options *options, const struct dt_query *query,
                                 const struct dt_answer *answer)
{
    char known[100] = "the noise of its comparison is not known";
    if (answer->measured != NULL && isfinite(answer->measured->resolution))
        snprintf(known, sizeof known, "its comparison could not tell differences below %.3g %%",
                 100 * answer->measured->resolution);
    return dt_fail(
        DT_EWEAK,
        "the plan stored for %s is not measured to --require-resolution %.3g%%: %s; tune "
        "again on a quiet machine",
        dt_query_title_of(query, answer), 100 * options->lookup.resolution, known);
}

/* Prints only JSON, which includes the tier; a plan alone would not show it. */
static dt_status refuse_answer(const struct dt_options *options, const struct dt_query *query,
                               const struct dt_answer *answer, const struct required *required,
                               const char *other)
{
    if (answer->entry == NULL && answer->refused == NULL && options->lookup.engine != NULL)
        DT_TRY(check_engine(options));
    char rule[80] = "";
    if (other != NULL)
        snprintf(rule, sizeof rule, ", or take the %s with --require heuristic", other);
    const char *tier = dt_tier_text(answer->tier);
    size_t reasons = json_array_size(answer->stale_reasons);
    const char *lost = json_string_value(json_array_get(answer->stale_reasons, reasons - 1));
    if (wants_json(options))
        DT_TRY(dt_print_json(dt_answer_json(answer)));
    if (is_of_cores(options, answer))
        return dt_fail(DT_EWEAK,
                       "the plan stored for %s was measured on cores by %s, not by %s, and may "
                       "lose on GPUs; --require heuristic takes it",
                       dt_query_title_of(query, answer), answer->engine, options->lookup.engine);
    if (answer->tier >= required->tier && answer->entry != NULL && !is_resolved(answer, required))
        return fail_resolution(options, query, answer);
    if (answer->tier == DT_TIER_EXACT && answer->why_provisional == NULL)
        return dt_fail(DT_EWEAK,
                       "the plan stored for %s is no longer the best: %s; run dittune again, or "
                       "--require exact takes it",
                       dt_query_title_of(query, answer),
                       lost != NULL ? lost : "it lost in a check");
    if (answer->tier == DT_TIER_EXACT)
        return dt_fail(DT_EWEAK,
                       "the plan stored for %s is provisional, not decided: %s; --require exact "
                       "takes it",
                       dt_query_title_of(query, answer), answer->why_provisional);
    if (answer->tier > DT_TIER_HEURISTIC)
        return dt_fail(DT_EWEAK,
                       "the plan stored for %s is of tier %s, not %s: %s; --require %s "
                       "takes it",
                       dt_query_title_of(query, answer), tier, options->lookup.tier, answer->reason,
                       tier);
    if (answer->refused != NULL)
        return dt_fail(DT_EWEAK, "no plan stored for %s can be used here: %s; run dittune again%s",
                       dt_query_title_of(query, answer), answer->refused, rule);
    int64_t devices = dt_json_integer_at(answer->key, "devices");
    dt_auto_text advice = {0}, stores = {0};
    for (int i = 0; i < options->stores->count; i++)
        dt_text_add(&stores, "%s%s", i > 0 ? ", " : "", options->stores->at[i]);
    const char *engine = options->lookup.engine;
    if (engine != NULL && !dt_ask_is_engine(options) && !dt_option_given(options, "model"))
        return dt_fail(DT_EWEAK,
                       "no plan that was tuned on %s for this machine is stored in %s: run dittune "
                       "--engine %s --model .. first; the question without --model is one about "
                       "the built-in network, too, for which there is none",
                       engine, dt_text_at(&stores), engine);
    advice_add(options, &advice);
    return dt_fail(DT_EWEAK,
                   "no plan is stored in %s for %s (objective %s, %lld device%s) on %s: %s%s",
                   dt_text_at(&stores), dt_query_title_of(query, answer), options->job.objective,
                   (long long)devices, devices == 1 ? "" : "s",
                   options->lookup.machine != NULL ? "the machine of --machine" : "this machine",
                   dt_text_at(&advice), rule);
}

/* Where the command was given without --private, and the store has private ones: the answer to the
 * same question about a private command replaces a weaker one, or one that names no reason. */
static dt_status look_private(const struct dt_options *options, const struct dt_snapshot *snapshot,
                              struct dt_query **query, struct dt_answer **answer)
{
    struct dt_options own = *options;
    DT_CLEANUP(dt_query_free_at) struct dt_query *asked = NULL;
    DT_CLEANUP(dt_answer_free_at) struct dt_answer *other = NULL;
    unsigned char secret[DT_SIPHASH_KEY];
    bool there = false;
    if (own.command.text == NULL || own.command.is_private ||
        dt_private_read(own.store, false, secret, &there) != DT_OK || !there)
        return DT_OK;
    own.command.is_private = true;
    DT_TRY(dt_ask(&own, &asked));
    DT_TRY(dt_lookup(snapshot, asked, &other));
    if (other->tier > (*answer)->tier || (other->refused != NULL && (*answer)->refused == NULL)) {
        dt_answer_free(*answer);
        *answer = other;
        *query = asked;
        other = NULL;
        asked = NULL;
    }
    return DT_OK;
}

/* The engine's plan of a published model that is predicted to be the fastest on the question's
 * device; *plan stays NULL where the model or the device has no card, or nothing fits. */
static dt_status predict_plan(const struct dt_options *options, const struct dt_query *query,
                              struct dt_ranking *ranking, const json_t **plan)
{
    const json_t *hard = dt_query_hard(query);
    int64_t devices = dt_json_integer_at(dt_query_key(query), "devices");
    const char *model = dt_option_given(options, "model") ? options->job.model : NULL;
    if (options->lookup.engine == NULL || !dt_engine_known(options->lookup.engine) || devices < 1 ||
        devices > dt_json_integer_at(hard, "gpus") || model == NULL ||
        !dt_card_known(model, &ranking->card) ||
        (!dt_machine_card_of(dt_json_text_at(hard, "devices"), &ranking->machine) &&
         !dt_machine_card_of(dt_json_text_at(hard, "device"), &ranking->machine)))
        return DT_OK;
    dt_machine_card_place(&ranking->machine, 1, (int)devices);
    dt_status status = dt_ranking_open(options, ranking);
    if (status == DT_EINFEASIBLE)
        return DT_OK;
    DT_TRY(status);
    if (ranking->count == 0 || ranking->rows[0].fit == DT_FITS_NOT)
        return DT_OK;
    *plan = dt_ranking_is_enough(ranking) ? ranking->documented.plan : ranking->rows[0].plan;
    return DT_OK;
}

/* Prints an engine's plan that was predicted, not measured. */
static dt_status print_predicted(const struct dt_options *options, const struct dt_answer *answer,
                                 const struct dt_ranking *ranking, const json_t *plan)
{
    struct dt_answer told = *answer;
    dt_auto_text reason = {0};
    dt_text_add(&reason,
                "%s; predicted for %s from its datasheet: 'dittune plan' has all plans and "
                "intervals",
                answer->reason, ranking->machine.device);
    DT_TRY(dt_text_status(&reason));
    told.tier = DT_TIER_HEURISTIC;
    told.evidence = "predicted";
    told.reason = dt_text_at(&reason);
    told.plan = plan;
    return print_answer(options, &told);
}

static dt_status look_up(const struct dt_options *options, const struct dt_query *query,
                         const struct required *required)
{
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *snapshot = NULL;
    DT_CLEANUP(dt_query_free_at) struct dt_query *private = NULL;
    DT_CLEANUP(dt_answer_free_at) struct dt_answer *answer = NULL;
    DT_TRY(dt_snapshot_open_stores(options->stores, &snapshot));
    for (int i = 1; i < dt_snapshot_stores(snapshot); i++)
        if (dt_snapshot_is_absent(snapshot, i))
            dt_print_note("no store is in %s: it is left out", dt_snapshot_folder(snapshot, i));
    if (dt_snapshot_fallback(snapshot) != NULL)
        dt_print_note("warning: %s: best.json.1 was read instead, what was stored after it is "
                      "missing; 'dittune db rebuild --salvage' brings back what is whole",
                      dt_snapshot_fallback(snapshot));
    DT_TRY(dt_lookup(snapshot, query, &answer));
    if (!is_enough(options, answer, required))
        DT_TRY(look_private(options, snapshot, &private, &answer));
    if (is_enough(options, answer, required) && answer->plan != NULL)
        return print_answer(options, answer);
    DT_CLEANUP(dt_ranking_fini) struct dt_ranking ranking = {.key = NULL};
    const json_t *plan = NULL;
    DT_TRY(predict_plan(options, query, &ranking, &plan));
    if (plan != NULL && required->tier <= DT_TIER_HEURISTIC && answer->plan == NULL)
        return print_predicted(options, answer, &ranking, plan);
    return is_enough(options, answer, required)
               ? print_answer(options, answer)
               : refuse_answer(options, private != NULL ? private : query, answer, required,
                               answer->plan != NULL ? "default rule's plan"
                               : plan != NULL       ? "predicted plan"
                                                    : NULL);
}

dt_status dt_command_lookup(const struct dt_options *options)
{
    DT_CLEANUP(dt_query_free_at) struct dt_query *query = NULL;
    const char *tier = options->lookup.tier;
    struct required required = {.decided = strcmp(tier, "decided") == 0,
                                .resolution = options->lookup.resolution};
    DT_TRY(dt_export_check(options));
    if (dt_option_given(options, "require-resolution") && !(options->lookup.resolution > 0))
        return dt_fail(DT_EUSAGE, "--require-resolution must be above 0%%");
    DT_TRY(dt_tier_find("--require", required.decided ? "exact" : tier, &required.tier));
    if (options->lookup.engines)
        return dt_export_engines(options);
    if (options->job.plan != NULL)
        return dt_export_own(options);
    DT_TRY(dt_ask(options, &query));
    return look_up(options, query, &required);
}
