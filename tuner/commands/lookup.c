/* SPDX-License-Identifier: MIT */
/* Only the exact tier for now: the same key on a machine of the same make. */
#include "db/engines/engines.h"
#include "db/store.h"
#include "tuner/export.h"
#include "tuner/print.h"
#include "tuner/trial/target.h"

#include <stdio.h>
#include <string.h>

static void describe(const json_t *entry, struct dt_text *out)
{
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(entry, "plan"), name, value)
    {
        if (json_is_string(value))
            dt_text_add(out, "%s%s=%s", out->size > 0 ? " " : "", name, json_string_value(value));
        else
            dt_text_add(out, "%s%s=%lld", out->size > 0 ? " " : "", name,
                        (long long)json_integer_value(value));
    }
    dt_text_add(out, "\n");
}

static dt_status export_entry(const struct dt_options *options, const struct dt_target *target,
                              const json_t *entry)
{
    json_t *constants = NULL;
    if (!target->foreign)
        DT_TRY(dt_export_constants(options, &constants));
    const struct dt_exported what = {
        .plan = json_object_get(entry, "plan"),
        .key = target->key,
        .hard = json_object_get(json_object_get(entry, "fingerprint"), "hard"),
        .constants = constants};
    dt_status status = dt_export_print(options, &what);
    json_decref(constants);
    return status;
}

static dt_status answer(const struct dt_options *options, const struct dt_target *target,
                        json_t *entry)
{
    struct dt_point point;
    const char *tier = "none";
    json_t *plan = json_object_get(entry, "plan");
    if (plan != NULL && dt_point_from_json(target->space, plan, &point) == DT_OK)
        tier = "exact";
    else
        plan = NULL;
    struct dt_text text = {0};
    if (plan != NULL && dt_export_asked(options))
        return export_entry(options, target, entry);
    bool json = options->json || (options->format != NULL && strcmp(options->format, "json") == 0);
    if (json)
        DT_TRY(dt_print_json(json_pack("{s:s, s:O?, s:O?}", "tier", tier, "plan", plan, "entry",
                                       plan ? entry : NULL)));
    else if (plan != NULL)
        describe(entry, &text);
    DT_TRY(dt_print_text(&text));
    if (plan != NULL && json_is_true(json_object_get(entry, "provisional")) && !json)
        fprintf(stderr, "dittune: this plan is provisional: the session that stored it ended "
                        "before its final comparison\n");
    if (plan != NULL)
        return DT_OK;
    const char *directory = options->db != NULL ? options->db : dt_store_default();
    if (entry != NULL)
        return dt_fail(DT_EWEAK,
                       "the stored plan for %s is no longer legal here: run dittune again",
                       target->title);
    return dt_fail(
        DT_EWEAK,
        "no plan is stored in %s for %s (objective %s, %d device%s) on this machine: run "
        "dittune first",
        directory, target->title, target->objective->name, target->devices,
        target->devices == 1 ? "" : "s");
}

dt_status dt_command_lookup(const struct dt_options *options)
{
    struct dt_target_opts opts = {.size = options->sizes.count > 0 ? options->sizes.values[0] : 0};
    struct dt_target *target = NULL;
    json_t *entry = NULL;
    enum dt_form form;
    if (options->format != NULL)
        DT_TRY(dt_form_parse(options->format, &form));
    if (options->engines)
        return dt_export_engines(options);
    if (options->plan != NULL)
        return dt_export_own(options);
    if (options->sizes.count > 1)
        return dt_fail(DT_EUSAGE, "'dittune lookup' takes one --size, not %d",
                       options->sizes.count);
    DT_TRY(dt_target_new(options, &opts, &target));
    dt_status status = dt_store_get(options->db != NULL ? options->db : dt_store_default(),
                                    target->key, target->hard, &entry);
    if (status == DT_OK)
        status = answer(options, target, entry);
    json_decref(entry);
    dt_target_free(target);
    return status;
}
