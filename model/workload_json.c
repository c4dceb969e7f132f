/* SPDX-License-Identifier: MIT */
#include "model/workload_json.h"

#include <stdio.h>
#include <string.h>

enum { SIDE_MAX = 8192, TOKENS_MAX = 1 << 20 };

static dt_status read_side(const json_t *root, const char *what, const char *key,
                           const struct dt_network *network, int *out)
{
    int64_t value = network->latent_size;
    if (dt_json_has(root, key))
        DT_TRY(dt_json_int(root, what, key, 1, SIDE_MAX, &value));
    if (value % network->patch != 0)
        return dt_fail(DT_EUSAGE, "%s: '%s' is %lld, not a multiple of the patch, %d", what, key,
                       (long long)value, network->patch);
    *out = (int)value;
    return DT_OK;
}

static dt_status read_path(const json_t *root, const char *what, const char *key, char out[1024])
{
    const char *text = "";
    if (dt_json_has(root, key))
        DT_TRY(dt_json_string(root, what, key, &text));
    if (strlen(text) >= 1024)
        return dt_fail(DT_EUSAGE, "%s: '%s' is a path of %zu bytes, at most 1023 are allowed", what,
                       key, strlen(text));
    snprintf(out, 1024, "%s", text);
    return DT_OK;
}

static dt_status read_int(const json_t *root, const char *what, const char *key, int low, int *out)
{
    int64_t value = *out;
    if (dt_json_has(root, key))
        DT_TRY(dt_json_int(root, what, key, low, 1 << 20, &value));
    *out = (int)value;
    return DT_OK;
}

static dt_status read_dtype(const json_t *root, const char *what, struct dt_workload *workload)
{
    const char *name = dt_dtype_text(DT_FLOAT32);
    char field[64];
    if (dt_json_has(root, "dtype"))
        DT_TRY(dt_json_string(root, what, "dtype", &name));
    snprintf(field, sizeof field, "%s: 'dtype'", what);
    return dt_dtype_find(field, name, &workload->dtype);
}

static dt_status read_files(const json_t *root, const char *what, struct dt_workload *workload)
{
    DT_TRY(read_path(root, what, "weights", workload->weights));
    DT_TRY(read_path(root, what, "input", workload->input));
    DT_TRY(read_path(root, what, "output", workload->output));
    DT_TRY(read_int(root, what, "input_batch", 0, &workload->input_batch));
    bool input = workload->input[0] != '\0';
    if (input && workload->guidance)
        return dt_fail(DT_EUSAGE, "%s: with 'input' there is no guidance, set it to false", what);
    if (!input && workload->input_batch > 0)
        return dt_fail(DT_EUSAGE, "%s: 'input_batch' is %d without an 'input'", what,
                       workload->input_batch);
    return DT_OK;
}

/* Only the network is required. The seed is an unsigned 64-bit number and JSON's integers are
 * signed, so it is written as the signed integer with the same bits. */
dt_status dt_workload_from_json(const json_t *root, const char *what, struct dt_workload *workload)
{
    static const char *const known[] = {"network", "height",        "width",       "guidance",
                                        "dtype",   "seed",          "weights",     "input",
                                        "output",  "sampler_steps", "input_batch", NULL};
    struct dt_workload read = {.guidance = true, .sampler_steps = 50};
    json_t *network;
    int64_t seed = 0;
    DT_TRY(dt_json_only(root, what, known));
    DT_TRY(dt_json_object(root, what, "network", &network));
    DT_TRY(dt_network_from_json(network, what, &read.network));
    DT_TRY(read_side(root, what, "height", &read.network, &read.height));
    DT_TRY(read_side(root, what, "width", &read.network, &read.width));
    if (dt_workload_tokens(&read) > TOKENS_MAX)
        return dt_fail(DT_EUSAGE, "%s: %d x %d latent pixels are %d tokens, at most %d are allowed",
                       what, read.width, read.height, dt_workload_tokens(&read), TOKENS_MAX);
    if (dt_json_has(root, "guidance"))
        DT_TRY(dt_json_bool(root, what, "guidance", &read.guidance));
    if (dt_json_has(root, "seed"))
        DT_TRY(dt_json_int(root, what, "seed", INT64_MIN, INT64_MAX, &seed));
    read.seed = (uint64_t)seed;
    DT_TRY(read_dtype(root, what, &read));
    DT_TRY(read_int(root, what, "sampler_steps", 1, &read.sampler_steps));
    DT_TRY(read_files(root, what, &read));
    *workload = read;
    return DT_OK;
}

json_t *dt_workload_to_json(const struct dt_workload *workload)
{
    return json_pack("{s:o, s:i, s:i, s:b, s:s, s:I, s:i, s:s, s:s, s:s, s:i}", "network",
                     dt_network_to_json(&workload->network), "height", workload->height, "width",
                     workload->width, "guidance", (int)workload->guidance, "dtype",
                     dt_dtype_text(workload->dtype), "seed", (json_int_t)workload->seed,
                     "sampler_steps", workload->sampler_steps, "weights", workload->weights,
                     "input", workload->input, "output", workload->output, "input_batch",
                     workload->input_batch);
}

static dt_status read_label(const json_t *root, const struct dt_param *param, int *value)
{
    const char *text;
    DT_TRY(dt_json_string(root, "the plan", param->name, &text));
    int found = dt_text_index(text, param->labels);
    if (found < 0)
        return dt_fail(DT_EUSAGE, "the plan: '%s' is '%.40s', expected %s or %s", param->name, text,
                       param->labels[0], param->labels[1]);
    *value = found;
    return DT_OK;
}

/* Parameters that are off by default (fallback 0) may be 0; all others are counts. */
static dt_status read_value(const json_t *root, const struct dt_param *param, int *value)
{
    int64_t number;
    if (param->labels != NULL)
        return read_label(root, param, value);
    DT_TRY(
        dt_json_int(root, "the plan", param->name, param->fallback == 0 ? 0 : 1, 1 << 20, &number));
    *value = (int)number;
    return DT_OK;
}

dt_status dt_plan_from_json(const json_t *root, struct dt_plan *plan)
{
    const char *known[DT_PARAMS + 1] = {NULL};
    struct dt_plan read = dt_plan_fallback;
    enum dt_on device = DT_ON_CPU, hosts = 0; /* replicas: where they are named */
    for (int i = 0; i < DT_PARAMS; i++)
        known[i] = dt_params[i].name;
    DT_TRY(dt_json_only(root, "the plan", known));
    for (int i = 0; i < DT_PARAMS; i++)
        if (dt_params[i].on == DT_ON_GPU && dt_json_has(root, dt_params[i].name))
            device = DT_ON_GPU;
        else if (dt_params[i].on == DT_ON_HOSTS && dt_json_has(root, dt_params[i].name))
            hosts = DT_ON_HOSTS;
    for (int i = 0; i < DT_PARAMS; i++) {
        int value = 0;
        if ((dt_params[i].on & (device | hosts)) == 0 && !dt_json_has(root, dt_params[i].name))
            continue;
        DT_TRY(read_value(root, &dt_params[i], &value));
        dt_plan_set(&read, i, value);
    }
    *plan = read;
    return DT_OK;
}
