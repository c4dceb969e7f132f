/* SPDX-License-Identifier: MIT */
/* JUnit XML as CI systems read it: LOSES is a failure, what was not judged is skipped. Names come from workers and from
 * stores that others wrote, so everything is escaped, and what XML 1.0 has no place for becomes U+FFFD. */
#include "tuner/cli/report/report.h"

#include <string.h>

static void escape(const char *text, struct dt_text *out)
{
    for (const char *at = text; *at != '\0';) {
        size_t size = dt_text_shown(at);
        if (size == 0)
            dt_text_add(out, "\xef\xbf\xbd");
        else if (strchr("<>&\"'", *at) != NULL)
            dt_text_add(out, "&#%d;", *at);
        else
            dt_text_add_bytes(out, at, size);
        at += size > 0 ? size : 1;
    }
}

static void add_attribute(const char *name, const char *value, struct dt_text *out)
{
    dt_text_add(out, " %s=\"", name);
    escape(value, out);
    dt_text_add(out, "\"");
}

static void add_case(const struct dt_check_run *run, const struct dt_check_record *record,
                     struct dt_text *out)
{
    const char *verdict = record->verdict, *reason = record->reason != NULL ? record->reason : "";
    bool fails = dt_check_fails(run, record), open = dt_check_open_question(record);
    struct dt_text what = {0};
    dt_text_add(&what, "%s%s%s%s", verdict, reason[0] != '\0' ? ": " : "", reason,
                record->gain_lost ? "; it lost too much of its gain over the default" : "");
    dt_text_add(out, "    <testcase classname=\"dittune.check\"");
    add_attribute("name", record->subject.title, out);
    dt_text_add(out, ">\n");
    if (fails || open) {
        dt_text_add(out, fails ? "      <failure" : "      <skipped");
        add_attribute("message", dt_text_at(&what), out);
        dt_text_add(out, "/>\n");
    }
    dt_text_add(out, "      <system-out>");
    escape(verdict, out);
    dt_text_add(out, "; to tune again: ");
    escape(dt_check_again(record), out);
    dt_text_add(out, "</system-out>\n    </testcase>\n");
    dt_text_fini(&what);
}

void dt_check_junit(const struct dt_check_run *run, struct dt_text *out)
{
    int failures = 0, skipped = 0;
    for (int i = 0; i < run->count; i++) {
        const struct dt_check_record *record = &run->records[i].record;
        bool fails = dt_check_fails(run, record);
        failures += fails;
        skipped += !fails && dt_check_open_question(record);
    }
    dt_text_add(out,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
                "name=\"dittune check\" tests=\"%d\" failures=\"%d\" errors=\"0\" "
                "skipped=\"%d\">\n",
                run->count, failures, skipped);
    for (int i = 0; i < run->count; i++)
        add_case(run, &run->records[i].record, out);
    dt_text_add(out, "  </testsuite>\n</testsuites>\n");
}
