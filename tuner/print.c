/* SPDX-License-Identifier: MIT */
#include "tuner/print.h"

#include "tuner/machine/backend.h"
#include "tuner/session/record.h"
#include "tuner/session/report.h"

#include <stdio.h>
#include <string.h>

void dt_print_escaped(const char *text, struct dt_text *out)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        bool c1 = *at == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0; /* U+0080 to U+009F in UTF-8 */
        if (*at < 0x20 || *at == 0x7f || *at == '\\' || c1)
            dt_text_add(out, "\\x%02x", c1 ? *++at : *at);
        else
            dt_text_add_bytes(out, at, 1);
    }
}

void dt_print_word(const char *word, struct dt_text *out)
{
    size_t plain = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./,:=+@%");
    if (word[0] != '\0' && word[plain] == '\0') {
        dt_text_add(out, "%s", word);
        return;
    }
    dt_text_add(out, "'");
    for (const char *at = word; *at != '\0'; at++)
        dt_text_add(out, *at == '\'' ? "'\\''" : "%c", *at);
    dt_text_add(out, "'");
}

dt_status dt_print_text(struct dt_text *text)
{
    dt_status status = dt_text_status(text);
    if (status == DT_OK && fputs(dt_text_at(text), stdout) < 0)
        status = dt_fail(DT_EIO, "cannot write to standard output");
    dt_text_fini(text);
    return status;
}

dt_status dt_print_json(json_t *object)
{
    struct dt_text text = {0};
    dt_status status = dt_json_text(object, &text);
    json_decref(object);
    dt_text_add(&text, "\n");
    dt_status printed = dt_print_text(&text);
    return status < 0 ? status : printed;
}

dt_status dt_print_run(const struct dt_sweep *sweep, json_t *list, struct dt_text *text, bool json)
{
    json_t *record = dt_record_runs(sweep, list);
    if (json)
        return dt_print_json(record);
    if (sweep->values.count > 0) {
        dt_text_clear(text);
        dt_report_sweep(sweep, record, text);
    }
    json_decref(record);
    return dt_print_text(text);
}

void dt_print_value(const json_t *value, struct dt_text *out)
{
    if (json_is_string(value))
        dt_print_escaped(json_string_value(value), out);
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
        fprintf(stderr, "dittune: plans run on cores, as no GPU can be used: %s\n", backend->why);
}
