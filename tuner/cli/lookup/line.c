/* SPDX-License-Identifier: MIT */
/* Names every field of the key, also those at their defaults, so that the line stays valid when defaults change. */
#include "base/figures.h"
#include "base/quote.h"
#include "db/engines/engines.h"
#include "space/json/json.h"
#include "tuner/cli/lookup/ask.h"
#include "tuner/measure/measure.h"

static long long number_of(const json_t *key, const char *name)
{
    return json_integer_value(json_object_get(key, name));
}

static void add_network(const struct dt_options *options, const json_t *key, struct dt_text *out)
{
    bool named = !dt_option_is_default("model", options->job.model);
    dt_text_add(out, " --model ");
    dt_quote(named ? options->job.model : dt_json_text_at(key, "model"), out);
    dt_text_add(out, " --size %lld --dtype %s", DT_LATENT_PIXELS * number_of(key, "height"),
                dt_json_text_at(key, "dtype"));
    if (!dt_option_is_default("backend", options->job.backend))
        dt_text_add(out, " --backend %s", options->job.backend);
    if (options->job.oversubscribe)
        dt_text_add(out, " --oversubscribe");
    if (options->lossy)
        dt_text_add(out, " --lossy");
}

/* The worker can run the plan, but the engine alone has no call for it, as with arguments of the worker such as --cfg. */
static bool is_refused(const char *engine, const struct dt_target *target,
                       const struct dt_point *best)
{
    struct dt_export export;
    if (best == NULL || !dt_engine_known(engine))
        return false;
    json_t *plan = dt_point_json(target->space, best);
    const struct dt_export_request request = {.engine = engine,
                                              .form = DT_FORM_JSON,
                                              .plan = plan,
                                              .key = target->identity.key,
                                              .hard = target->identity.hard};
    dt_status status = dt_export(&request, &export);
    if (status == DT_OK)
        dt_export_fini(&export);
    json_decref(plan);
    return status == DT_EINFEASIBLE;
}

/* The text of a private command stays on the command line of the user: the worker's arguments, which are options of dittune, too,
 * without it. */
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
        dt_target_options(target, out);
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
    dt_target_options(target, out);
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
    dt_text_add(out, " --devices %lld", number_of(key, "devices"));
    for (int i = 0; i < options->job.batches.count && !target->foreign; i++)
        dt_text_add(out, "%s%d", i == 0 ? " --batch " : ",", options->job.batches.values[i]);
    dt_text_add(out, " --objective %s", dt_json_text_at(key, "objective"));
    if (options->job.max_bytes > 0)
        dt_text_add(out, " --max-bytes %lldB", (long long)options->job.max_bytes);
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
