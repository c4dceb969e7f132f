/* SPDX-License-Identifier: MIT */
/* What `dittune check` prints. */
#include "tuner/cli/report/report.h"

#include "base/figures.h"
#include "tuner/cli/print.h"

#include <math.h>
#include <string.h>

/* ---- text */

static bool verdict_is(const struct dt_check_record *record, enum dt_check_verdict verdict)
{
    return dt_check_verdict_of(record->verdict) == verdict;
}

bool dt_check_fails(const struct dt_check_run *run, const struct dt_check_record *record)
{
    return verdict_is(record, DT_CHECK_LOSES) || record->gain_lost ||
           (run->opts->ties_fail && verdict_is(record, DT_CHECK_TIES));
}

bool dt_check_open_question(const struct dt_check_record *record)
{
    return !verdict_is(record, DT_CHECK_WINS) && !verdict_is(record, DT_CHECK_TIES) &&
           !verdict_is(record, DT_CHECK_LOSES);
}

/* The command line that tunes the entry of a record again, or why there is none. */
static const char *check_again(const struct dt_check_record *record)
{
    const json_t *key = record->subject.key;
    if (record->retune != NULL)
        return record->retune;
    enum dt_dtype dtype;
    const struct dt_objective *objective;
    bool foreign = json_object_get(key, "worker") != NULL;
    if (dt_objective_find(dt_json_text_at(key, "objective"), &objective) < 0 ||
        (!foreign && dt_dtype_find("dtype", dt_json_text_at(key, "dtype"), &dtype) < 0))
        return "its data type or objective is unknown to this version";
    if (foreign)
        return "name its own worker with --worker PROGRAM";
    if (!json_equal(json_object_get(key, "height"), json_object_get(key, "width")))
        return "its image is not square, and --size names squares";
    return "name its own network with --model FILE";
}

static void add_upper(const char *text, struct dt_text *out)
{
    for (const char *at = text; *at != '\0'; at++)
        dt_text_add(out, "%c", *at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
}

/* Foreign text, cleaned for display. */
static void add_clean(const char *text, struct dt_text *out)
{
    size_t before = out->size;
    dt_text_add(out, "%s", text);
    if (out->size > before)
        dt_text_clean(out->bytes + before);
}

/* The interval of a speed, which fewer than four sets of fresh processes do not have, and its
 * pairs. */
static void add_sureness(const struct dt_span *interval, int pairs, struct dt_text *out)
{
    if (isfinite(interval->high))
        dt_text_add(out, " [%.3f, %.3f]", 1 / interval->high, 1 / interval->low);
    dt_text_add(out, ", %d pairs\n", pairs);
}

/* Rows have times over times, as docs/json.md says; people read how fast, above 1 is faster, as
 * in the gain. */
static void add_rival(const struct dt_check_row *rival, struct dt_text *out)
{
    dt_text_add(out, "  %-11s %s: ", rival->role, rival->verdict);
    if (isnan(rival->ratio)) {
        dt_text_add(out, "%s\n", rival->reason != NULL ? rival->reason : "too few pairs of rounds");
        return;
    }
    dt_text_add(out, "tuned runs at %.3fx its speed", 1 / rival->ratio);
    add_sureness(&rival->interval, rival->pairs, out);
}

static void add_gain(const char *when, const struct dt_gain *gain, struct dt_text *out)
{
    if (!gain->known)
        dt_text_add(out, "%s none", when);
    else
        dt_text_add(out, "%s %.3f [%.3f, %.3f]", when, gain->ratio, gain->interval.low,
                    gain->interval.high);
}

static void add_default(const char *metric, int64_t then_ns, int64_t now_ns, struct dt_text *out)
{
    dt_text_add(out, "  default     then ");
    dt_figure_value(metric, (double)then_ns * 1e-9, NAN, NAN, out);
    dt_text_add(out, ", now ");
    dt_figure_value(metric, (double)now_ns * 1e-9, NAN, NAN, out);
    dt_text_add(out, " (unpaired: not evidence)\n");
}

static void add_gains(const struct dt_check_record *record, struct dt_text *out)
{
    dt_text_add(out, "  gain        over the default: ");
    add_gain("stored", &record->then.gain, out);
    add_gain(", today", &record->now.gain, out);
    dt_text_add(out, "%s\n", record->gain_lost ? ": lost too much of it" : "");
    if (record->then.default_ns > 0 && record->now.default_ns > 0)
        add_default(dt_figure_metric(dt_json_text_at(record->subject.key, "objective")),
                    record->then.default_ns, record->now.default_ns, out);
}

static void add_company(const struct dt_check_record *record, struct dt_text *out)
{
    const char *resident = record->now.resident;
    if (resident != NULL && strcmp(resident, "all") != 0)
        dt_text_add(out, "  in memory   %s\n",
                    strcmp(resident, "pairs") == 0
                        ? "two at a time, each beside the tuned plan: all do not fit together"
                        : "one at a time: the plans do not fit together, or are servers");
}

static void add_soft(const struct dt_check_record *record, struct dt_text *out)
{
    const json_t *changed = record->soft_changed;
    if (json_array_size(changed) == 0)
        return;
    dt_text_add(out, "  changed     ");
    for (size_t i = 0; i < json_array_size(changed); i++) {
        dt_text_add(out, "%s", i > 0 ? ", " : "");
        add_clean(json_string_value(json_array_get(changed, i)), out);
    }
    if (verdict_is(record, DT_CHECK_WINS) || verdict_is(record, DT_CHECK_TIES))
        dt_text_add(out, ": it %s; the optimum was not searched again",
                    verdict_is(record, DT_CHECK_WINS) ? "beats its rivals" : "is not beaten");
    dt_text_add(out, "\n");
}

/* The comparison that chose a successor where no ratio to the stored plan is known. first: role
 * of its first row. */
static void add_successor(const struct dt_check_successor *row, const char *first,
                          struct dt_text *out)
{
    dt_text_add(out, "  left        ");
    dt_plan_words(row->plan, out);
    dt_text_add(out, ": %s, ", row->role);
    if (isnan(row->ratio)) {
        dt_text_add(out, "%s\n", row->reason != NULL ? row->reason : "not compared");
        return;
    }
    dt_text_add(out, "%.3fx the speed of the %s one", 1 / row->ratio, first);
    add_sureness(&row->interval, row->pairs, out);
}

static void add_store(const struct dt_check_update *update, struct dt_text *out)
{
    struct dt_check_successor first, row;
    dt_record_read(&dt_record_check_successor, json_array_get(update->successors, 0), &first);
    for (size_t i = 0; i < json_array_size(update->successors); i++) {
        dt_record_read(&dt_record_check_successor, json_array_get(update->successors, i), &row);
        add_successor(&row, first.role, out);
    }
    if (update->updated != NULL) {
        dt_text_add(out, "  store       %s%s", update->updated,
                    update->replaced_by != NULL ? " by " : "");
        dt_plan_words(update->replaced_by, out);
        dt_text_add(out, "\n");
    }
    if (update->note != NULL)
        dt_text_add(out, "  store       %s\n", update->note);
}

static void add_record(const struct dt_check_record *record, struct dt_text *out)
{
    struct dt_text word = {0};
    bool loses = verdict_is(record, DT_CHECK_LOSES);
    add_upper(record->verdict, &word);
    dt_text_add(out, "%-13s %s\n", dt_text_at(&word), record->subject.title);
    dt_text_fini(&word);
    if (record->reason != NULL)
        dt_text_add(out, "  because     %s\n", record->reason);
    dt_text_add(out, "  plan        ");
    dt_plan_words(record->plan, out);
    dt_text_add(out, "\n");
    for (int i = 0; i < record->rivals_count; i++)
        add_rival(&record->rivals[i], out);
    if (record->now.rounds > 0)
        add_gains(record, out);
    add_company(record, out);
    add_soft(record, out);
    if (loses || json_array_size(record->soft_changed) > 0)
        dt_text_add(out, "  tune again  %s\n", check_again(record));
    add_store(&record->update, out);
}

void dt_check_text(const struct dt_check_run *run, struct dt_text *out)
{
    for (int i = 0; i < run->count; i++)
        add_record(&run->records[i].record, out);
    if (run->others > 0)
        dt_text_add(out, "%d of other commands or workers left out; ", run->others);
    dt_text_add(out, "%d checked%s", run->count, run->count > 0 ? ":" : "");
    for (int v = DT_CHECK_INCONCLUSIVE; v <= DT_CHECK_UNSUPPORTED; v++)
        if (run->counts[v] > 0)
            dt_text_add(out, " %d %s", run->counts[v],
                        dt_check_verdict_text((enum dt_check_verdict)v));
    if (run->lost_gain > 0)
        dt_text_add(out, ", %d lost too much of its gain", run->lost_gain);
    dt_text_add(out, "\n");
}

/* ---- JUnit */

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
    escape(check_again(record), out);
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

/* ---- annotations of GitHub */

static void github_escape(const char *text, bool property, struct dt_text *out)
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
                    check_again(record));
        dt_text_add(out, "::%s title=", fails ? "error" : "warning");
        github_escape("dittune check", true, out);
        dt_text_add(out, "::");
        github_escape(dt_text_at(&message), false, out);
        dt_text_add(out, "\n");
        dt_text_fini(&message);
    }
}
