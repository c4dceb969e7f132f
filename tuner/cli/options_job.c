/* SPDX-License-Identifier: MIT */
#include "tuner/cli/options_job.h"

dt_status dt_options_backend(const struct dt_options *options, enum dt_backend_kind *kind)
{
    return dt_backend_find(options->backend != NULL ? options->backend : "auto", kind);
}

/* What nobody asked for is left to the device (dt_target_new). */
static dt_status set_network(const struct dt_options *options, struct dt_job *job)
{
    if (!dt_option_is_default("model", options->model))
        DT_TRY(dt_network_load(options->model, &job->network));
    job->has_dtype = !dt_option_is_default("dtype", options->dtype);
    return job->has_dtype ? dt_dtype_find("--dtype", options->dtype, &job->dtype) : DT_OK;
}

dt_status dt_options_job(const struct dt_options *options, const char *plan, struct dt_job *out)
{
    struct dt_job job = {.worker = options->worker,
                         .size = options->sizes.count > 0 ? options->sizes.values[0] : 0,
                         .weights = options->weights,
                         .input = options->input,
                         .batches = options->batches,
                         .plan = plan,
                         .shared_devices = options->shared_devices,
                         .devices = (int)options->devices,
                         .oversubscribe = options->oversubscribe,
                         .max_bytes = options->max_bytes,
                         .max_latency_ns = options->max_latency_ns,
                         .seed = options->seed,
                         .budget_ns = options->budget_ns};
    DT_TRY(dt_objective_find(options->objective, &job.objective));
    DT_TRY(dt_options_backend(options, &job.backend));
    DT_TRY(set_network(options, &job));
    *out = job;
    return DT_OK;
}
