/* SPDX-License-Identifier: MIT */
#include "tuner/cli/print.h"

#include "db/store.h"
#include "tuner/cli/live/screen.h"
#include "tuner/cli/live/stream.h"
#include "tuner/machine/machine.h"
#include "tuner/measure/measure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

dt_status dt_print_text(struct dt_text *text)
{
    dt_text_clean_lines(text);
    return dt_print_exact(text);
}

dt_status dt_print_exact(struct dt_text *text)
{
    dt_status status = dt_text_status(text);
    if (status == DT_OK && fputs(dt_text_at(text), stdout) < 0)
        status = dt_fail(DT_EIO, "cannot write to standard output");
    dt_text_fini(text);
    return status;
}

dt_status dt_print_json(json_t *object)
{
    if (dt_stream_is_open() && object != NULL) {
        dt_stream_keep(object);
        return DT_OK;
    }
    struct dt_text text = {0};
    dt_status status = dt_json_shown(object, &text);
    json_decref(object);
    dt_text_add(&text, "\n");
    dt_status printed = dt_print_exact(&text);
    return status < 0 ? status : printed;
}

dt_status dt_print_either(const struct dt_options *options, dt_status status, json_t *object,
                          struct dt_text *text)
{
    bool json = status == DT_OK && options->print.json;
    if (status == DT_OK && !json)
        status = dt_print_text(text);
    dt_text_fini(text);
    if (json)
        return dt_print_json(object);
    json_decref(object);
    return status;
}

void dt_print_note(const char *format, ...)
{
    char line[4096] = "dittune: ";
    size_t size = strlen(line);
    va_list args;
    va_start(args, format);
    vsnprintf(line + size, sizeof line - size, format, args);
    va_end(args);
    dt_text_mend(line); /* it may be cut within a character */
    dt_text_clean(line);
    dt_screen_line(line);
    if (dt_stream_is_open())
        dt_stream_event("note", json_pack("{s:s}", "text", line + size));
}

enum dt_voice dt_print_voice(const struct dt_options *options, bool json)
{
    if (options->print.quiet || (json && options->print.json))
        return DT_VOICE_QUIET;
    return options->print.verbose ? DT_VOICE_VERBOSE : DT_VOICE_USUAL;
}

void dt_print_value(const json_t *value, struct dt_text *out)
{
    if (json_is_string(value))
        dt_text_show(json_string_value(value), out);
    else if (json_is_integer(value))
        dt_text_add(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        dt_text_add(out, "%g", json_real_value(value));
    else if (json_is_boolean(value))
        dt_text_add(out, "%s", json_is_true(value) ? "true" : "false");
    else
        dt_text_add(out, "-");
}

void dt_print_cores(const struct dt_backend *backend, bool quiet)
{
    if (backend->expected && backend->why[0] != '\0' && !quiet)
        dt_print_note("plans run on cores, as no GPU can be used: %s", backend->why);
}

void dt_print_store(const char *directory)
{
    dt_auto_text warnings = {0};
    if (dt_store_warnings(directory, &warnings) == DT_OK && warnings.size > 0)
        dt_print_note("warning: %s", dt_text_at(&warnings));
}

void dt_print_crowded(const struct dt_target *target, const struct dt_point *point)
{
    if (dt_target_oversubscribed(target, point))
        dt_print_note("warning: %d ranks on %d %ss: oversubscribed, the times mean little",
                      dt_target_ranks(target, point) * dt_target_replicas(target, point),
                      target->hardware.cores, target->hardware.unit);
}
