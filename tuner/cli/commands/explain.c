/* SPDX-License-Identifier: MIT */
#include "base/columns.h"
#include "db/engines/engines.h"
#include "space/json/json.h"
#include "tuner/check/timeline.h"
#include "tuner/cli/evidence/evidence.h"
#include "tuner/cli/export.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"
#include "tuner/measure/measure.h"

#include <string.h>

enum { NEAREST = 3 };

/* It sets a variable of the built-in network's library: only a group of processes
 * of its own can run it. */
static bool sets_variables(const struct dt_target *target, const struct dt_point *point)
{
    for (int a = 0; !target->foreign && a < dt_space_axes(target->space); a++) {
        const struct dt_axis *axis = dt_space_axis(target->space, a);
        if (axis->role == DT_ROLE_ENVIRONMENT && point->index[a] != axis->fallback)
            return true;
    }
    return false;
}

/* Adds the prediction for a feasible plan, and the results of the store's sessions. */
static dt_status add_evidence(const struct dt_options *options, const struct dt_target *target,
                              const struct dt_point *point, struct dt_explanation *explanation)
{
    struct dt_replay replay;
    dt_auto_text text = {0};
    json_auto_t *plan = dt_point_json(target->space, point);
    const struct dt_evidence wanted = {.target = target, .plan = plan};
    struct dt_point tried;
    DT_TRY(dt_evidence_find(options->store, &wanted, &replay, &tried));
    json_auto_t *fields = dt_evidence_plan(&replay, target, point, &text);
    json_object_update(explanation->json, fields);
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, 4, &explanation->text);
    dt_replay_fini(&replay);
    return DT_OK;
}

static dt_status explain_plan(const struct dt_options *options, const struct dt_target *target,
                              const char *plan)
{
    int64_t values[DT_AXES_MAX];
    DT_CLEANUP(dt_explanation_fini) struct dt_explanation explanation = {0};
    struct dt_point point;
    DT_TRY(dt_space_parse(target->space, plan, values));
    DT_TRY(dt_space_explain(target->space, values, &explanation));
    bool feasible = json_is_true(json_object_get(explanation.json, "feasible"));
    bool known = feasible && dt_target_plan(target, plan, &point) == DT_OK;
    if (known && options->lookup.machine == NULL)
        DT_TRY(add_evidence(options, target, &point, &explanation));
    struct dt_text *text = &explanation.text;
    if (known && dt_target_oversubscribed(target, &point))
        dt_text_add(text,
                    "but it has %d ranks on %d %ss: 'dittune run' runs it, tuning leaves it out "
                    "unless --oversubscribe\n",
                    dt_target_ranks(target, &point), target->hardware.cores, target->hardware.unit);
    if (known && !options->job.tune_nccl && sets_variables(target, &point))
        dt_text_add(text, "but it sets NCCL's variables: 'dittune run' runs it, tuning leaves it "
                          "out unless --tune-nccl\n");
    DT_TRY(dt_print_either(options, DT_OK, json_incref(explanation.json), text));
    return feasible ? DT_OK : dt_fail(DT_EINFEASIBLE, "%s", ""); /* printed already */
}

/* ---- by an engine's file, where no worker can be asked */

static void add_plan(const json_t *plan, struct dt_text *out)
{
    dt_text_add(out, "  ");
    dt_plan_words(plan, out);
    dt_text_add(out, "\n");
}

/* Adds a feasible plan's result from a session of the engine in the store, or a
 * sentence that there is none. */
static dt_status add_stored(const struct dt_options *options, const struct dt_export_own *own,
                            const char *plan, json_t *fields, struct dt_text *out)
{
    struct dt_replay replay;
    dt_auto_text text = {0};
    struct dt_point point;
    const struct dt_evidence wanted = {
        .engine = options->worker.engine, .model = own->card.name, .words = plan};
    DT_TRY(dt_evidence_find(options->store, &wanted, &replay, &point));
    if (dt_replay_target(&replay) != NULL) {
        const struct dt_target *target = dt_replay_target(&replay);
        const char *hardware = dt_target_hardware(target);
        json_auto_t *found = dt_evidence_plan(&replay, target, &point, &text);
        json_object_update(fields, found);
        json_object_set_new(fields, "session_title", json_string(target->identity.title));
        dt_text_add(out, "by the store, of %s%s%s:\n", target->identity.title,
                    hardware != NULL ? " on " : "", hardware != NULL ? hardware : "");
        dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, 4, out);
    } else {
        json_object_set_new(fields, "measured", json_null());
        dt_text_add(out,
                    "measured: in no session of %s with %s in the store; with its worker 'dittune "
                    "run' measures it\n",
                    options->worker.engine, own->card.name);
    }
    dt_replay_fini(&replay);
    return DT_OK;
}

/* The answer of an engine's file. */
struct by_file {
    const struct dt_export_own *own;
    const char *words;         /* the plan as it was given */
    const char *why;           /* sentence that refuses the plan; NULL: it is feasible */
    const json_t *remarks;     /* a feasible plan's; NULL: none */
    const json_t *unexpressed; /* parameters that the engine cannot express; NULL: none */
};

static json_t *by_file_json(const struct dt_options *options, const struct by_file *answer,
                            json_t *nearest)
{
    json_t *violations = json_array();
    if (answer->why != NULL)
        json_array_append_new(violations, json_pack("{s:s}", "sentence", answer->why));
    return json_pack("{s:O, s:b, s:o, s:O, s:s}", "plan", answer->own->plan, "feasible",
                     answer->why == NULL, "violations", violations, "nearest", nearest, "file",
                     options->worker.engine);
}

static void by_file_text(const struct dt_options *options, const struct by_file *answer,
                         json_t *nearest, const char *evidence, struct dt_text *out)
{
    json_t *row;
    size_t i;
    dt_text_add(out, "by the file of %s and the card of %s; no worker was asked:\n",
                options->worker.engine, answer->own->card.name);
    add_plan(answer->own->plan, out);
    dt_text_add(out, "  is %sfeasible%s%s\n", answer->why != NULL ? "not " : "",
                answer->why != NULL ? ": " : "", answer->why != NULL ? answer->why : "");
    json_array_foreach(answer->remarks, i, row) dt_text_add(out, "  %s\n", json_string_value(row));
    json_array_foreach(answer->unexpressed, i, row)
        dt_text_add(out, "  but the engine cannot express %s: %s\n",
                    json_string_value(json_object_get(row, "name")),
                    json_string_value(json_object_get(row, "why")));
    dt_text_add(out, "%s", evidence);
    if (json_array_size(nearest) > 0)
        dt_text_add(out, "the nearest feasible plans:\n");
    json_array_foreach(nearest, i, row) add_plan(row, out);
}

/* With what was measured of a feasible plan, or with feasible plans beside one that is not. */
static dt_status print_by_file(const struct dt_options *options, const struct by_file *answer)
{
    dt_auto_text evidence = {0};
    json_auto_t *nearest = NULL, *fields = json_object();
    struct dt_plans_wanted wanted = dt_export_wanted(options, &answer->own->card);
    struct dt_text text = {0};
    DT_TRY(answer->why == NULL ? add_stored(options, answer->own, answer->words, fields, &evidence)
                               : dt_engine_nearest(options->worker.engine, answer->own->key, wanted,
                                                   answer->own->plan, NEAREST, &nearest));
    if (nearest == NULL)
        nearest = json_array();
    by_file_text(options, answer, nearest, dt_text_at(&evidence), &text);
    json_t *object = by_file_json(options, answer, nearest);
    json_object_update(object, fields);
    return dt_print_either(options, DT_OK, object, &text);
}

static dt_status find_misspelt(const struct dt_options *options, const json_t *unexpressed)
{
    const char *known[DT_PARAMS + 1] = {NULL};
    const json_t *row;
    size_t i;
    for (i = 0; i < DT_PARAMS; i++)
        known[i] = dt_params[i].name;
    json_array_foreach(unexpressed, i, row)
    {
        const char *name = dt_json_text_at(row, "name"), *near = dt_json_nearest(name, known);
        if (near == NULL || strcmp(near, name) != 0)
            return dt_fail(DT_EUSAGE, "no plan of %s has a parameter '%.80s'%s%s%s",
                           options->worker.engine, name, near != NULL ? ", did you mean '" : "",
                           near != NULL ? near : "", near != NULL ? "'?" : "");
    }
    return DT_OK;
}

/* A name that neither the engine nor a plan of dittune has is misspelt, whether or not the plan is
 * feasible: the engine's file is asked about the other names alone. */
static dt_status check_names(const struct dt_options *options, struct dt_export_request request)
{
    DT_CLEANUP(dt_export_fini) struct dt_export export = {.json = NULL};
    json_auto_t *others = json_object();
    json_t *value;
    const char *name;
    json_object_foreach((json_t *)request.plan, name, value)
    {
        if (!dt_param_known(name))
            json_object_set(others, name, value);
    }
    request.plan = others;
    dt_status status = dt_export(&request, &export);
    if (status == DT_OK)
        status = find_misspelt(options, export.unexpressed);
    return status == DT_EINFEASIBLE ? DT_OK : status; /* by its values */
}

static dt_status judge_by_file(const struct dt_options *options, const struct dt_export_own *own,
                               const char *words)
{
    DT_CLEANUP(dt_export_fini) struct dt_export export = {.json = NULL};
    dt_auto_text many = {0};
    const struct dt_export_request request = {.engine = options->worker.engine,
                                              .form = DT_FORM_ARGV,
                                              .plan = own->plan,
                                              .key = own->key,
                                              .card = &own->card};
    struct dt_error refused = {DT_OK, ""};
    DT_TRY(check_names(options, request));
    dt_status status = dt_error_keep(&refused, dt_export(&request, &export));
    if (status < 0 && status != DT_EINFEASIBLE)
        return status;
    const char *why = status < 0 ? refused.sentence : NULL;
    int64_t processes = export.processes * export.replicas;
    if (status == DT_OK && options->job.devices > 0 && processes > options->job.devices) {
        dt_text_add(&many, "it has %lld ranks, more than --devices %lld", (long long)processes,
                    (long long)options->job.devices);
        why = dt_text_at(&many);
    }
    struct by_file answer = {.own = own,
                             .words = words,
                             .why = why,
                             .remarks = export.remarks,
                             .unexpressed = export.unexpressed};
    DT_TRY(print_by_file(options, &answer));
    return why == NULL ? DT_OK : dt_fail(DT_EINFEASIBLE, "%s", ""); /* printed already */
}

static dt_status explain_by_file(const struct dt_options *options, const char *plan)
{
    static const char *const others[] = {"backend", "max-bytes", "input", NULL};
    DT_CLEANUP(dt_export_own_fini) struct dt_export_own own = {.plan = NULL};
    const char *ignored = NULL;
    for (int i = 0; i < DT_TASK_FIELDS; i++)
        if (i != DT_TASK_model && i != DT_TASK_width && i != DT_TASK_height &&
            i != DT_TASK_frames && i != DT_TASK_text_tokens &&
            dt_option_given(options, dt_task_rows[i].option))
            ignored = dt_task_rows[i].option;
    for (int i = 0; others[i] != NULL; i++)
        ignored = dt_option_given(options, others[i]) ? others[i] : ignored;
    if (ignored != NULL)
        return dt_fail(
            DT_EUSAGE,
            "--%s has no effect: no worker of %s is asked, and its file has no rule on it", ignored,
            options->worker.engine);
    if (dt_option_given(options, "model") && !dt_card_named(options->job.model)) {
        struct dt_card card;
        DT_TRY(dt_card_load(options->job.model, &card));
    }
    if (!dt_card_named(options->job.model))
        return dt_fail(DT_EUSAGE,
                       "no worker of %s is asked, and its file answers for published models only: "
                       "name one with --model (dittune models lists them)",
                       options->worker.engine);
    DT_TRY(dt_export_own_read(options, plan, &own));
    return judge_by_file(options, &own, plan);
}

dt_status dt_command_explain(const struct dt_options *options)
{
    dt_auto_text plan = {0};
    DT_CLEANUP(dt_target_free_at) struct dt_target *target = NULL;
    for (int i = 0; i < options->words.rest_count; i++)
        dt_text_add(&plan, "%s%s", i > 0 ? " " : "", options->words.rest[i]);
    struct dt_job job;
    struct dt_described machine;
    if (options->worker.engine != NULL && options->worker.program.path == NULL)
        return explain_by_file(options, dt_text_at(&plan));
    DT_TRY(dt_options_job(options, dt_text_at(&plan), &job));
    DT_TRY(dt_options_machine(options, &machine, &job));
    DT_TRY(dt_target_new(&job, &target));
    return explain_plan(options, target, dt_text_at(&plan));
}
