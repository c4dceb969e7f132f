/* SPDX-License-Identifier: MIT */
/* Workflow commands of GitHub Actions: "::error title=T::message", in which % and line ends, and in T also : and , are written
 * as %XX (actions/toolkit, packages/core/src/command.ts). */
#include "tuner/cli/report/report.h"

#include <string.h>

static void escape(const char *text, bool property, struct dt_text *out)
{
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        bool line = *at == '%' || *at == '\r' || *at == '\n';
        if (line || (property && (*at == ':' || *at == ',')))
            dt_text_add(out, "%%%02X", *at);
        else if (*at >= 0x20 && *at != 0x7f)
            dt_text_add_bytes(out, at, 1);
        else
            dt_text_add(out, "?");
    }
}

void dt_check_github(const struct dt_check_run *run, struct dt_text *out)
{
    for (int i = 0; i < run->count; i++) {
        const struct dt_check_record *record = &run->records[i].record;
        bool fails = dt_check_fails(run, record);
        const char *reason = record->reason != NULL ? record->reason : "";
        struct dt_text message = {0};
        if (!fails && !dt_check_open_question(record))
            continue;
        dt_text_add(&message, "%s: %s%s%s%s\nto tune again: %s", record->verdict,
                    record->subject.title, reason[0] != '\0' ? ": " : "", reason,
                    record->gain_lost ? ": it lost too much of its gain over the default" : "",
                    dt_check_again(record));
        dt_text_add(out, "::%s title=", fails ? "error" : "warning");
        escape("dittune check", true, out);
        dt_text_add(out, "::");
        escape(dt_text_at(&message), false, out);
        dt_text_add(out, "\n");
        dt_text_fini(&message);
    }
}
