/* SPDX-License-Identifier: MIT */
#include "tuner/machine/machine.h"
#include "base/clock.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"

#define PATIENCE_NS (20 * DT_NS_PER_SECOND)

static void add_fields(const json_t *object, struct dt_text *out)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)object, name, value)
    {
        if (json_is_string(value))
            dt_text_add(out, "  %-12s %s\n", name, json_string_value(value));
        else if (json_is_integer(value))
            dt_text_add(out, "  %-12s %lld\n", name, (long long)json_integer_value(value));
        else if (json_is_boolean(value))
            dt_text_add(out, "  %-12s %s\n", name, json_is_true(value) ? "yes" : "no");
    }
}

static void add_part(const json_t *description, const char *part, const char *title,
                     struct dt_text *out)
{
    dt_text_add(out, "%s\n", title);
    add_fields(json_object_get(description, part), out);
}

dt_status dt_command_machine(const struct dt_options *options)
{
    json_auto_t *description = NULL;
    struct dt_text text = {0};
    enum dt_backend_kind kind;
    DT_TRY(dt_options_backend(options, &kind));
    int64_t patience_ns =
        options->worker.program.path != NULL ? options->worker.start_ns : PATIENCE_NS;
    DT_TRY(dt_machine_here(options->worker.program, kind, options->renew,
                           dt_clock_ns() + patience_ns, &description));
    const json_t *soft = json_object_get(description, "soft");
    add_part(description, "hard", "must be equal for a stored plan to hold", &text);
    add_part(description, "soft", "a stored plan is stale when one differs", &text);
    add_fields(json_object_get(soft, "environment"), &text);
    add_part(description, "info", "never compared", &text);
    add_part(description, "limits", "limits", &text);
    return dt_print_either(options, DT_OK, json_incref(description), &text);
}
