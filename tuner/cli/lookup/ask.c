/* SPDX-License-Identifier: MIT */
#include "tuner/cli/lookup/ask.h"

#include "base/clock.h"
#include "base/figures.h"
#include "base/quote.h"
#include "db/engines/engines.h"
#include "model/network.h"
#include "model/task.h"
#include "space/json/json.h"
#include "tuner/cli/options_job.h"
#include "tuner/machine/machine.h"
#include "tuner/measure/measure.h"

#include <stdio.h>
#include <string.h>

#define PATIENCE_NS (20 * DT_NS_PER_SECOND)

/* Sets a number that was given; otherwise the query's default applies. */
static dt_status set_number(struct dt_query *query, const char *name, int64_t value)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return value > 0 ? dt_query_set(query, name, text) : DT_OK;
}

static dt_status set_text(struct dt_query *query, const char *name, const char *value)
{
    return value != NULL ? dt_query_set(query, name, value) : DT_OK;
}

static dt_status set_shared(const struct dt_options *options, struct dt_query *query)
{
    DT_TRY(set_number(query, "devices", options->job.devices));
    DT_TRY(set_text(query, "objective", options->job.objective));
    DT_TRY(set_number(query, "max_bytes", options->job.max_bytes));
    DT_TRY(set_number(query, "reserve_bytes", options->job.reserve_bytes));
    DT_TRY(set_number(query, "max_latency_ns", options->job.max_latency_ns));
    if (options->lookup.engine != NULL)
        DT_TRY(dt_query_set_engine(query, options->lookup.engine));
    return set_text(query, "mode", options->lookup.mode);
}

/* The built-in network, or an engine's job: db/lookup decides, by what there is. */
static dt_status set_task(const struct dt_options *options, struct dt_query *query)
{
    struct dt_task task;
    dt_auto_text value = {0};
    dt_options_task(options, &task);
    for (enum dt_task_field i = 0; i < DT_TASK_FIELDS; i++) {
        if (!task.at[i].given || i == DT_TASK_batch) /* there may be several batches */
            continue;
        dt_text_clear(&value);
        dt_task_spell(&task, i, &value);
        DT_TRY(dt_text_status(&value));
        DT_TRY(dt_query_set(query, dt_task_rows[i].name, dt_text_at(&value)));
    }
    if (options->lossy)
        DT_TRY(dt_query_set(query, "lossy", "1"));
    if (options->job.oversubscribe)
        DT_TRY(dt_query_set(query, "oversubscribe", "1"));
    const struct dt_ints *batches = &options->job.batches;
    dt_text_clear(&value);
    for (int i = 0; i < batches->count; i++)
        dt_text_add(&value, "%s%d", i > 0 ? "," : "", batches->values[i]);
    DT_TRY(dt_text_status(&value));
    return batches->count > 0 ? dt_query_set(query, "batch", dt_text_at(&value)) : DT_OK;
}

static dt_status set_json(struct dt_query *query, const char *name, const json_t *value)
{
    dt_auto_text text = {0};
    if (value == NULL)
        return DT_OK;
    DT_TRY(dt_json_text(value, &text));
    return dt_query_set(query, name, dt_text_at(&text));
}

/* Sets a foreign worker's name, workload, job and rules. */
static dt_status set_foreign(const struct dt_target *target, struct dt_query *query)
{
    const json_t *key = target->identity.key;
    DT_TRY(set_text(query, "worker", json_string_value(json_object_get(key, "worker"))));
    DT_TRY(set_text(query, "workload", json_string_value(json_object_get(key, "workload"))));
    DT_TRY(set_number(query, "devices", target->hardware.devices));
    DT_TRY(set_text(query, "engine", target->identity.engine));
    DT_TRY(set_text(query, "mode", target->identity.mode));
    DT_TRY(set_text(query, "dtype", target->identity.dtype));
    DT_TRY(set_json(query, "job", json_object_get(key, "job")));
    return set_json(query, "space", target->worker.announced);
}

bool dt_ask_is_engine(const struct dt_options *options)
{
    struct dt_network network;
    struct dt_task task;
    dt_options_task(options, &task);
    const char *model = task.at[DT_TASK_model].text;
    return options->lookup.engine != NULL &&
           (dt_task_of_engine(&task) != NULL || !dt_engine_known(options->lookup.engine) ||
            (model != NULL && dt_network_load(model, &network) != DT_OK));
}

static dt_status find_machine(const struct dt_options *options, const struct dt_target *target,
                              struct dt_machine **machine)
{
    json_auto_t *description = NULL;
    if (options->lookup.machine != NULL)
        return dt_machine_load(options->lookup.machine, machine);
    enum dt_backend_kind kind;
    struct dt_machine_worker worker = {.foreign = true};
    DT_TRY(dt_options_backend(options, &kind));
    if (target != NULL) {
        description = dt_machine_describe(target->worker.hello, target->worker.ready, &worker);
    } else if (dt_ask_is_engine(options)) { /* without what only a worker knows */
        struct dt_backend backend;
        DT_TRY(kind == DT_BACKEND_AUTO ? dt_backend_find_gpus(&backend)
                                       : dt_backend_choose(kind, false, &backend));
        worker.backend = &backend;
        description = dt_machine_describe(NULL, NULL, &worker);
        dt_backend_fini(&backend);
    } else {
        DT_TRY(dt_machine_here((struct dt_program){NULL, NULL}, kind, false,
                               dt_clock_ns() + PATIENCE_NS, &description));
    }
    struct dt_more more = {.hosts = NULL};
    DT_TRY(dt_options_hosts(options, &more));
    if (more.hosts != NULL)
        dt_hosts_describe(more.hosts, json_object_get(description, "hard"));
    return dt_machine_from_json(description, "this machine's description", machine);
}

dt_status dt_ask(const struct dt_options *options, struct dt_query **query)
{
    DT_CLEANUP(dt_target_free_at) struct dt_target *target = NULL;
    DT_CLEANUP(dt_machine_free_at) struct dt_machine *machine = NULL;
    DT_CLEANUP(dt_query_free_at) struct dt_query *made = NULL;
    struct dt_job job;
    if (options->worker.program.path != NULL) {
        DT_TRY(dt_options_job(options, NULL, &job));
        DT_TRY(dt_target_new(&job, &target));
    }
    DT_TRY(find_machine(options, target, &machine));
    DT_TRY(dt_query_new(machine, &made));
    DT_TRY(target != NULL ? set_foreign(target, made) : set_task(options, made));
    DT_TRY(set_shared(options, made));
    DT_TRY(dt_query_seal(made));
    *query = made;
    made = NULL;
    return DT_OK;
}

/* ---- the question as a command line: every field of the key, also those at their defaults, so
 * that it stays valid when these change */

static void add_network(const struct dt_options *options, const json_t *key, struct dt_text *out)
{
    bool named = dt_option_given(options, "model");
    dt_text_add(out, " --model ");
    dt_quote(named ? options->job.model : dt_json_text_at(key, "model"), out);
    dt_text_add(out, " --size %lld --dtype %s",
                DT_LATENT_PIXELS * (long long)dt_json_integer_at(key, "height"),
                dt_json_text_at(key, "dtype"));
    if (dt_option_given(options, "backend"))
        dt_text_add(out, " --backend %s", options->job.backend);
    if (options->job.oversubscribe)
        dt_text_add(out, " --oversubscribe");
    if (options->lossy)
        dt_text_add(out, " --lossy");
}

/* The worker can run the plan, but the engine alone has no call for it, as with arguments of the
 * worker such as --cfg. */
static bool is_refused(const char *engine, const struct dt_target *target,
                       const struct dt_point *best)
{
    DT_CLEANUP(dt_export_fini) struct dt_export export = {.json = NULL};
    if (best == NULL || !dt_engine_known(engine))
        return false;
    json_auto_t *plan = dt_point_json(target->space, best);
    const struct dt_export_request request = {.engine = engine,
                                              .form = DT_FORM_JSON,
                                              .plan = plan,
                                              .key = target->identity.key,
                                              .hard = target->identity.hard};
    dt_status status = dt_export(&request, &export);
    return status == DT_EINFEASIBLE;
}

/* The text of a private command stays on the command line of the user: the worker's arguments,
 * which are options of dittune, too, without it. */
static void add_private(const struct dt_options *options, struct dt_text *out)
{
    const char *const *words = options->worker.program.arguments;
    for (int i = 0; words[i] != NULL; i++) {
        dt_text_add(out, " ");
        bool hidden = words[i] == options->command.text || words[i] == options->command.prepare ||
                      words[i] == options->command.cleanup;
        dt_quote(hidden ? "..." : words[i], out);
    }
    dt_text_add(out, " --private");
}

/* A look-up by the engine starts no worker, so it also names what a worker's hello would tell. */
static void add_worker(const struct dt_options *options, const struct dt_target *target,
                       bool by_engine, struct dt_text *out)
{
    if (!by_engine) {
        dt_text_add(out, " --worker ");
        dt_quote(options->worker.program.path, out);
        dt_target_options(target, false, out);
        if (options->command.space != NULL && options->command.text == NULL) {
            dt_text_add(out, " --space ");
            dt_quote(options->command.space, out);
        }
        return;
    }
    bool gpus = json_object_get(target->identity.hard, "gpus") != NULL;
    dt_text_add(out, " --engine %s --backend %s --mode ", options->worker.engine,
                gpus ? "cuda" : "cpu");
    dt_quote(target->identity.mode, out);
    dt_target_options(target, true, out);
}

void dt_ask_line(const struct dt_options *options, const struct dt_target *target,
                 const struct dt_point *best, struct dt_text *out)
{
    const json_t *key = target->identity.key;
    const char *engine = options->worker.engine;
    bool by_engine = engine != NULL && !is_refused(engine, target, best);
    dt_text_add(out, "dittune lookup");
    bool is_private = options->command.is_private;
    if (is_private) {
        add_private(options, out);
    } else if (target->foreign) {
        add_worker(options, target, by_engine, out);
    } else {
        add_network(options, key, out);
    }
    dt_text_add(out, " --devices %lld", (long long)dt_json_integer_at(key, "devices"));
    for (int i = 0; i < options->job.batches.count && !target->foreign; i++)
        dt_text_add(out, "%s%d", i == 0 ? " --batch " : ",", options->job.batches.values[i]);
    dt_text_add(out, " --objective %s", dt_json_text_at(key, "objective"));
    if (options->job.max_bytes > 0)
        dt_text_add(out, " --max-bytes %lldB", (long long)options->job.max_bytes);
    if (options->job.reserve_bytes > 0)
        dt_text_add(out, " --reserve %lldB", (long long)options->job.reserve_bytes);
    if (options->job.max_latency_ns > 0)
        dt_text_add(out, " --max-latency %s", dt_figure_exact(options->job.max_latency_ns).text);
    if (options->job.hosts.list != NULL || options->job.hosts.file != NULL) {
        bool list = options->job.hosts.list != NULL;
        dt_text_add(out, list ? " --hosts " : " --hostfile ");
        dt_quote(list ? options->job.hosts.list : options->job.hosts.file, out);
    }
    if (options->db != NULL) {
        dt_text_add(out, " --db ");
        dt_quote(options->db, out);
    }
    if (target->foreign && !by_engine && !is_private)
        dt_quote_arguments(options->worker.program.arguments, out);
}
