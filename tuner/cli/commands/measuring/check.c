/* SPDX-License-Identifier: MIT */
/* The worst result decides the exit code: a plan that lost (4), an interruption (130, 143),
 * an undecided plan (5). */
#include "tuner/check/check.h"
#include "base/clock.h"
#include "base/columns.h"
#include "base/figures.h"
#include "base/replace.h"
#include "space/json/json.h"
#include "stats/stats.h"
#include "tuner/check/timeline.h"
#include "tuner/cli/alone.h"
#include "tuner/cli/live/progress.h"
#include "tuner/cli/options.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"
#include "tuner/runner/runner.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDENT 12

/* ---- check --dry-run */

/* Sums over the entries that can be checked. */
struct sums {
    struct dt_check_span span;
    int entries;
};

static json_t *seconds_json(int64_t ns)
{
    return json_real((double)ns * 1e-9);
}

static void add_span(const struct dt_check_span *span, struct dt_text *out)
{
    dt_text_add(out, "%s to %s", dt_figure_span_of((double)span->least_ns * 1e-9).text,
                dt_figure_span_of((double)span->most_ns * 1e-9).text);
}

static json_t *entry_json(const struct dt_check_entry *entry, const struct dt_check_span *span)
{
    const struct dt_check_item *item = entry->item;
    json_t *plans = json_array();
    for (int i = 0; i < entry->count; i++)
        json_array_append_new(
            plans,
            json_pack("{s:s, s:o}", "role", dt_entrant_role_text(entry->entrants[i].role), "plan",
                      dt_point_json(entry->target->space, &entry->entrants[i].point)));
    return json_pack("{s:s, s:s, s:O?, s:o, s:o, s:s?, s:o, s:o}", "id", item->entry.id, "title",
                     item->title, "plan", item->entry.plan, "checked_ns",
                     item->checked_ns > 0 ? json_integer(item->checked_ns) : json_null(),
                     "measures", plans, "reason", entry->reason[0] != '\0' ? entry->reason : NULL,
                     "least_seconds", span != NULL ? seconds_json(span->least_ns) : json_null(),
                     "most_seconds", span != NULL ? seconds_json(span->most_ns) : json_null());
}

static void entry_text(const struct dt_check_entry *entry, const struct dt_check_span *span,
                       struct dt_text *out)
{
    const struct dt_check_item *item = entry->item;
    dt_text_add(out, "%s  %s%s\n", item->entry.id, item->title,
                item->checked_ns > 0 ? "" : " (never checked)");
    if (span == NULL) {
        dt_text_add(out, "  would not be measured: %s\n", entry->reason);
        return;
    }
    for (int i = 0; i < entry->count; i++) {
        dt_text_add(out, "  %-10s ", dt_entrant_role_text(entry->entrants[i].role));
        if (entry->entrants[i].role == DT_ENTRANT_TWIN)
            dt_text_add(out, "the tuned plan a second time");
        else
            dt_point_short(entry->target->space, &entry->entrants[i].point, out);
        dt_text_add(out, "\n");
    }
    if (entry->against[0] != '\0')
        dt_text_add(out, "  against    no plan here: %s\n", entry->against);
    dt_text_add(out, "  time       about ");
    add_span(span, out);
    dt_text_add(out, "\n");
}

/* One entry as JSON or as text. */
static dt_status add_entry(struct dt_check_entry *entry, struct sums *sums, json_t *entries,
                           struct dt_text *out)
{
    struct dt_check_span span;
    dt_status status = dt_check_open(entry);
    if (status == DT_EINTR || status == DT_ENOMEM)
        return status;
    if (status < 0) {
        snprintf(entry->reason, sizeof entry->reason, "%s", dt_message());
        dt_text_clean(entry->reason);
    }
    bool open = status == DT_OK && entry->verdict == DT_CHECK_UNJUDGED;
    if (open) {
        span = dt_check_span(entry);
        sums->span.least_ns += span.least_ns;
        sums->span.most_ns += span.most_ns;
        sums->entries++;
    }
    json_array_append_new(entries, entry_json(entry, open ? &span : NULL));
    entry_text(entry, open ? &span : NULL, out);
    return DT_OK;
}

/* The sum against the budget. */
static void add_sum(const struct sums *sums, const struct dt_check_opts *opts, struct dt_text *out)
{
    if (sums->entries == 0)
        return;
    dt_text_add(out, "together  about ");
    add_span(&sums->span, out);
    dt_text_add(out,
                ": %d to %d sets of fresh processes of each plan, by the stored step times (long "
                "loads not included); --budget %s",
                DT_SETS_LEAST, opts->until_decided ? DT_SETS_MOST : DT_SETS_USUAL,
                dt_figure_span_of((double)opts->budget_ns * 1e-9).text);
    dt_text_add(out, opts->budget_ns >= sums->span.most_ns ? " is enough for all\n"
                     : opts->budget_ns >= sums->span.least_ns
                         ? " is enough where few sets decide\n"
                         : " is too short for all: the last of them would not be checked\n");
}

static dt_status add_all(const struct dt_check_opts *opts, const struct dt_check_list *list,
                         struct sums *sums, json_t *entries, struct dt_text *out)
{
    struct dt_check_entry *entry = malloc(sizeof *entry);
    dt_status status = DT_OK;
    if (entry == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (int i = 0; status == DT_OK && i < list->count; i++) {
        *entry = (struct dt_check_entry){.opts = opts, .item = &list->items[i]};
        status = add_entry(entry, sums, entries, out);
        dt_check_close(entry);
    }
    free(entry);
    return status;
}

/* Opens each entry, so a worker may be started and asked for its parameters;
 * measures and writes nothing. */
static dt_status print_preview(const struct dt_options *options, const struct dt_check_opts *opts,
                               const struct dt_check_list *list)
{
    struct sums sums = {.entries = 0};
    dt_auto_text text = {0};
    struct dt_text wrapped = {0};
    json_auto_t *entries = json_array();
    dt_text_add(&text, "dry run: of %s these would be checked, least recently checked first:\n",
                opts->directory);
    DT_TRY(add_all(opts, list, &sums, entries, &text));
    add_sum(&sums, opts, &text);
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, INDENT, &wrapped);
    return dt_print_either(options, DT_OK,
                           json_pack("{s:O, s:o, s:o, s:o}", "entries", entries, "budget_seconds",
                                     seconds_json(opts->budget_ns), "least_seconds",
                                     seconds_json(sums.span.least_ns), "most_seconds",
                                     seconds_json(sums.span.most_ns)),
                           &wrapped);
}

/* ---- what it prints, from the records of a run alone: text */

static bool verdict_is(const struct dt_check_record *record, enum dt_check_verdict verdict)
{
    return dt_check_verdict_of(record->verdict) == verdict;
}

static bool record_fails(const struct dt_check_run *run, const struct dt_check_record *record)
{
    return verdict_is(record, DT_CHECK_LOSES) || record->gain_lost ||
           (run->opts->ties_fail && verdict_is(record, DT_CHECK_TIES));
}

static bool record_asks(const struct dt_check_record *record)
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

/* Rows have times over times, as docs/json.md says; people read how fast, above 1 is faster, as
 * in the gain. */
static void add_speed(double ratio, const struct dt_span *interval, struct dt_text *out)
{
    dt_figure_ratio(1 / ratio, 1 / interval->high, 1 / interval->low, out);
}

static void add_rival(const struct dt_check_row *rival, struct dt_text *out)
{
    dt_text_add(out, "  %-11s %s: ", rival->role, rival->verdict);
    if (isnan(rival->ratio)) {
        dt_text_add(out, "%s\n", rival->reason != NULL ? rival->reason : "too few pairs of rounds");
        return;
    }
    dt_text_add(out, "tuned runs at ");
    add_speed(rival->ratio, &rival->interval, out);
    dt_text_add(out, " times its speed, %d pairs\n", rival->pairs);
}

static void add_gain(const char *when, const struct dt_gain *gain, struct dt_text *out)
{
    if (!gain->known)
        dt_text_add(out, "%s none", when);
    else {
        dt_text_add(out, "%s ", when);
        dt_figure_ratio(gain->ratio, gain->interval.low, gain->interval.high, out);
    }
}

static void add_gains(const struct dt_check_record *record, struct dt_text *out)
{
    dt_text_add(out, "  gain        over the default: ");
    add_gain("stored", &record->then.gain, out);
    add_gain(", today", &record->now.gain, out);
    dt_text_add(out, "%s\n", record->gain_lost ? ": lost too much of it" : "");
    if (record->then.default_ns <= 0 || record->now.default_ns <= 0)
        return;
    const char *metric = dt_figure_metric(dt_json_text_at(record->subject.key, "objective"));
    dt_text_add(out, "  default     then ");
    dt_figure_value(metric, (double)record->then.default_ns * 1e-9, NAN, NAN, out);
    dt_text_add(out, ", now ");
    dt_figure_value(metric, (double)record->now.default_ns * 1e-9, NAN, NAN, out);
    dt_text_add(out, " (unpaired: not evidence)\n");
}

static void add_soft(const struct dt_check_record *record, struct dt_text *out)
{
    const json_t *changed = record->soft_changed;
    if (json_array_size(changed) == 0)
        return;
    dt_text_add(out, "  changed     ");
    for (size_t i = 0; i < json_array_size(changed); i++) {
        dt_text_add(out, "%s", i > 0 ? ", " : "");
        dt_text_show(json_string_value(json_array_get(changed, i)), out);
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
    add_speed(row->ratio, &row->interval, out);
    dt_text_add(out, " times the speed of the %s one, %d pairs\n", first, row->pairs);
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
    bool loses = verdict_is(record, DT_CHECK_LOSES);
    const char *resident = record->now.resident;
    for (const char *at = record->verdict; *at != '\0'; at++)
        dt_text_add(out, "%c", *at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
    dt_text_add(out, "%*s %s\n", (int)strlen(record->verdict) - 13, "", record->subject.title);
    if (record->reason != NULL)
        dt_text_add(out, "  because     %s\n", record->reason);
    dt_text_add(out, "  plan        ");
    dt_plan_words(record->plan, out);
    dt_text_add(out, "\n");
    for (int i = 0; i < record->rivals_count; i++)
        add_rival(&record->rivals[i], out);
    if (record->now.rounds > 0)
        add_gains(record, out);
    if (resident != NULL && strcmp(resident, "all") != 0)
        dt_text_add(out, "  in memory   %s\n",
                    strcmp(resident, "pairs") == 0
                        ? "two at a time, each beside the tuned plan: all do not fit together"
                        : "one at a time: the plans do not fit together, or are servers");
    add_soft(record, out);
    if (loses || json_array_size(record->soft_changed) > 0)
        dt_text_add(out, "  tune again  %s\n", check_again(record));
    add_store(&record->update, out);
}

static void print_records(const struct dt_check_run *run, struct dt_text *out)
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

static void escape_property(const char *text, struct dt_text *out)
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
    escape_property(value, out);
    dt_text_add(out, "\"");
}

/* outcome: NULL for a test that passed. */
static void add_case(const char *name, const char *outcome, const char *message, const char *again,
                     struct dt_text *out)
{
    dt_text_add(out, "    <testcase classname=\"dittune.check\"");
    add_attribute("name", name, out);
    dt_text_add(out, ">\n");
    if (outcome != NULL) {
        dt_text_add(out, "      <%s", outcome);
        add_attribute("message", message, out);
        dt_text_add(out, "/>\n");
    }
    dt_text_add(out, "      <system-out>");
    escape_property(message, out);
    if (again != NULL) {
        dt_text_add(out, "; to tune again: ");
        escape_property(again, out);
    }
    dt_text_add(out, "</system-out>\n    </testcase>\n");
}

static void add_record_case(const struct dt_check_record *record, const char *outcome,
                            struct dt_text *out)
{
    dt_auto_text what = {0};
    const char *reason = record->reason != NULL ? record->reason : "";
    dt_text_add(&what, "%s%s%s%s", record->verdict, reason[0] != '\0' ? ": " : "", reason,
                record->gain_lost ? "; it lost too much of its gain over the default" : "");
    add_case(record->subject.title, outcome, dt_text_at(&what), check_again(record), out);
}

/* An entry without a verdict is an error: a reader of such files takes a skipped test for no
 * failure, and the exit code is not 0. Where no entry shows the exit code's cause, one more case
 * does. failed: that cause; NULL: none. */
static void print_junit(const struct dt_check_run *run, const char *failed, struct dt_text *out)
{
    int failures = 0, errors = 0;
    dt_auto_text cases = {0};
    for (int i = 0; i < run->count; i++) {
        const struct dt_check_record *record = &run->records[i].record;
        bool fails = record_fails(run, record), asks = !fails && record_asks(record);
        failures += fails;
        errors += asks;
        add_record_case(record, fails ? "failure" : asks ? "error" : NULL, &cases);
    }
    bool unseen = failed != NULL && failures + errors == 0;
    if (unseen)
        add_case("the run", "error", failed, NULL, &cases);
    dt_text_add(out,
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite "
                "name=\"dittune check\" tests=\"%d\" failures=\"%d\" errors=\"%d\" "
                "skipped=\"0\">\n%s"
                "  </testsuite>\n</testsuites>\n",
                run->count + unseen, failures, errors + unseen, dt_text_at(&cases));
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

static void print_github(const struct dt_check_run *run, struct dt_text *out)
{
    for (int i = 0; i < run->count; i++) {
        const struct dt_check_record *record = &run->records[i].record;
        bool fails = record_fails(run, record);
        const char *reason = record->reason != NULL ? record->reason : "";
        dt_auto_text message = {0};
        if (!fails && !record_asks(record))
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
    }
}

/* ---- the check */

static json_t *run_json(const struct dt_check_run *run)
{
    json_t *counts = json_object(), *entries = json_array();
    for (int i = 0; i < run->count; i++)
        json_array_append(entries, run->records[i].json);
    for (int i = DT_CHECK_INCONCLUSIVE; i <= DT_CHECK_UNSUPPORTED; i++)
        json_object_set_new(counts, dt_check_verdict_text((enum dt_check_verdict)i),
                            json_integer(run->counts[i]));
    return json_pack("{s:o, s:o, s:i, s:f, s:f, s:i, s:s?, s:b}", "entries", entries, "counts",
                     counts, "comparisons", run->comparisons, "run_alpha", DT_CHECK_RUN_ALPHA,
                     "threshold", run->opts->threshold, "gains_lost", run->lost_gain, "journal",
                     run->journal != NULL ? dt_journal_id(run->journal) : NULL, "interrupted",
                     run->interrupted);
}

static dt_status write_junit(const struct dt_check_run *run, const char *failed,
                             struct dt_replace *file)
{
    dt_auto_text text = {0};
    print_junit(run, failed, &text);
    dt_status status = dt_text_status(&text);
    if (status == DT_OK)
        status = dt_replace_add(file, dt_text_at(&text), text.size);
    return dt_replace_close(file, status);
}

/* With a JSON report annotations go to standard error: the runner reads both streams. */
static dt_status print_run(const struct dt_options *options, const struct dt_check_run *run)
{
    dt_auto_text annotations = {0};
    struct dt_text text = {0};
    if (options->check.github)
        print_github(run, &annotations);
    if (options->print.json) {
        fputs(dt_text_at(&annotations), stderr);
        return dt_print_json(run_json(run));
    }
    print_records(run, &text);
    dt_text_add(&text, "%s", dt_text_at(&annotations));
    return dt_print_text(&text);
}

/* "; the first: dit-s/2, 256 x 256 px: too noisy to judge": the only output on a console when the
 * report goes to a file. */
static dt_status fail_check(dt_status status, int n, int count, const char *what,
                            const struct dt_check_record *first)
{
    return dt_fail(status, "%d of %d stored plans %s; the first: %s: %s", n, count, what,
                   first->subject.title, first->reason != NULL ? first->reason : first->verdict);
}

static dt_status fail_nothing(const struct dt_check_opts *opts)
{
    const char *engine = opts->job.wanted.engine, *model = engine != NULL ? opts->model : NULL;
    if (model == NULL)
        model = opts->pipeline;
    return dt_fail(DT_EINCONCLUSIVE, "nothing to check: %s has no entry of this machine%s%s%s%s%s",
                   opts->directory, engine != NULL ? " tuned on " : "",
                   engine != NULL ? engine : "", model != NULL ? " for " : "",
                   model != NULL ? model : "",
                   opts->filter != NULL ? " that the filter lets pass" : "");
}

static dt_status judged_status(const struct dt_check_run *run)
{
    int failing = 0, open = 0;
    const struct dt_check_record *first_failing = NULL, *first_open = NULL;
    for (int i = 0; i < run->count; i++) {
        const struct dt_check_record *record = &run->records[i].record;
        bool fails = record_fails(run, record), asks = record_asks(record);
        first_failing = fails && failing == 0 ? record : first_failing;
        first_open = asks && open == 0 ? record : first_open;
        failing += fails;
        open += asks;
    }
    int count = run->count;
    if (failing > 0)
        return fail_check(DT_EWINNER, failing, count, "no longer do what they should",
                          first_failing);
    if (run->interrupted)
        return dt_fail(DT_EINTR, "interrupted");
    if (count == 0)
        return fail_nothing(run->opts);
    if (open > 0)
        return fail_check(DT_EINCONCLUSIVE, open, count, "could not be judged", first_open);
    return DT_OK;
}

static void show_progress(void *context, const char *title, int at, int count)
{
    struct dt_progress *progress = context;
    dt_auto_text text = {0};
    dt_text_add(&text, "check %d of %d: %s", at + 1, count, title);
    dt_progress_now(progress, NULL, dt_text_at(&text));
    if (!progress->live && !progress->verbose)
        dt_progress_note(progress, "dittune: %s", dt_text_at(&text));
}

static dt_status read_options(const struct dt_options *options, struct dt_check_opts *opts)
{
    *opts = (struct dt_check_opts){
        .model = dt_option_given(options, "model") ? options->job.model : NULL,
        .pipeline = options->task.at[DT_TASK_pipeline].text,
        .db = options->db,
        .directory = options->store,
        .filter = options->filter,
        .against = options->session.against,
        .threshold = options->check.threshold,
        .max_gain_loss = options->check.max_gain_loss,
        .resolution = options->check.resolution,
        .until_decided = options->check.until_ns > 0,
        .budget_ns = options->check.until_ns > 0 ? options->check.until_ns : options->job.budget_ns,
        .ties_fail = strcmp(options->check.require, "wins") == 0,
        .update = options->check.update,
        .progress = show_progress};
    if (!opts->ties_fail && strcmp(options->check.require, "not-worse") != 0)
        return dt_fail(DT_EUSAGE, "--require '%s' is neither wins nor not-worse",
                       options->check.require);
    if (opts->until_decided && dt_option_given(options, "budget"))
        return dt_fail(DT_EUSAGE, "--budget and --until-decided both say how long it takes");
    if (dt_option_given(options, "require-resolution") && !(opts->resolution > 0))
        return dt_fail(DT_EUSAGE, "--require-resolution must be above 0%%");
    if (!(options->check.threshold > 0))
        return dt_fail(DT_EUSAGE, "--threshold must be above 0%%");
    return dt_options_job(options, NULL, &opts->job);
}

dt_status dt_command_check(const struct dt_options *options)
{
    struct dt_check_opts opts;
    struct dt_check_run run = {.opts = &opts};
    struct dt_replace junit = {.fd = -1};
    DT_TRY(read_options(options, &opts));
    DT_TRY(dt_alone(options));
    if (options->dry) {
        struct dt_check_list list;
        DT_TRY(dt_check_select(&opts, &list));
        dt_status status =
            list.count == 0 ? fail_nothing(&opts) : print_preview(options, &opts, &list);
        dt_check_list_fini(&list);
        return status;
    }
    if (options->check.junit !=
        NULL) /* before minutes of measuring; a pipe can be opened only once */
        DT_TRY(dt_replace_open(options->check.junit, &junit));
    struct dt_error error = {DT_OK, ""};
    struct dt_progress progress;
    dt_progress_init(&progress, NULL, dt_print_voice(options, true),
                     dt_clock_ns() + opts.budget_ns);
    opts.context = &progress;
    dt_status status = dt_error_keep(&error, dt_check_run(&run));
    dt_progress_end(&progress);
    if (run.count > 0 || status == DT_OK)
        dt_error_keep(&error, print_run(options, &run));
    struct dt_error failed = error;
    if (error.status == DT_OK)
        dt_error_keep(&failed, judged_status(&run));
    if (options->check.junit != NULL)
        dt_error_keep(&error,
                      write_junit(&run, failed.status < 0 ? failed.sentence : NULL, &junit));
    status = dt_error_raise(error.status < 0 ? &error : &failed);
    dt_replace_drop(&junit);
    dt_check_run_fini(&run);
    return status;
}
