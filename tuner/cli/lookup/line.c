/* SPDX-License-Identifier: MIT */
/* Names every field of the key, also those at their defaults, so that the line stays valid when defaults change. */
#include "base/quote.h"
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

/* A look-up by the engine starts no worker, so it also names what a worker's hello would tell. */
static void add_worker(const struct dt_options *options, const struct dt_target *target,
                       struct dt_text *out)
{
    if (options->worker.engine == NULL) {
        dt_text_add(out, " --worker ");
        dt_quote(options->worker.program.path, out);
        dt_target_options(target, out);
        return;
    }
    bool gpus = json_object_get(target->identity.hard, "gpus") != NULL;
    dt_text_add(out, " --engine %s --backend %s --mode ", options->worker.engine,
                gpus ? "cuda" : "cpu");
    dt_quote(target->identity.mode, out);
    dt_target_options(target, out);
}

void dt_ask_line(const struct dt_options *options, const struct dt_target *target,
                 struct dt_text *out)
{
    const json_t *key = target->identity.key;
    dt_text_add(out, "dittune lookup");
    if (target->foreign) {
        add_worker(options, target, out);
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
        dt_text_add(out, " --max-latency %.15gms", (double)options->job.max_latency_ns * 1e-6);
    if (options->job.hosts.list != NULL || options->job.hosts.file != NULL) {
        bool list = options->job.hosts.list != NULL;
        dt_text_add(out, list ? " --hosts " : " --hostfile ");
        dt_quote(list ? options->job.hosts.list : options->job.hosts.file, out);
    }
    if (options->db != NULL) {
        dt_text_add(out, " --db ");
        dt_quote(options->db, out);
    }
    if (target->foreign && options->worker.engine == NULL)
        dt_quote_arguments(options->worker.program.arguments, out);
}
