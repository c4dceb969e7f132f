/* SPDX-License-Identifier: MIT */
#include "tuner/check/check.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/figures.h"
#include "db/store.h"
#include "stats/stats.h"
#include "tuner/check/judge_rivals.h"
#include "tuner/measure/measure.h"
#include "tuner/runner/runner.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- time: how a check shares it among entries */

#define USUAL_START_SECONDS 0.5 /* start of a plan's processes */
#define SETUP_STEPS         5   /* cold, verified, warm */
#define VISIT_SECONDS       0.02
#define SET_ROUNDS          4 /* usual ones */
#define MARGIN              1.3

/* Seconds of a visit: one untimed step, and timed ones for 20 ms. */
static double visit_seconds(double step)
{
    double timed = step > 0 ? ceil(VISIT_SECONDS / step) : 1;
    return step * (1 + fmin(fmax(timed, 1), DT_VISIT_STEPS));
}

int64_t dt_check_estimate_ns(const double step_seconds[], int n, int sets)
{
    double seconds = 0;
    for (int i = 0; i < n; i++)
        seconds += USUAL_START_SECONDS + MARGIN * (SETUP_STEPS * step_seconds[i] +
                                                   SET_ROUNDS * visit_seconds(step_seconds[i]));
    return (int64_t)(sets * seconds * 1e9);
}

int64_t dt_check_share_ns(int64_t left_ns, int entries, bool first, int64_t least_ns,
                          int64_t lose_ns)
{
    int64_t even = left_ns / (entries > 0 ? entries : 1), half = left_ns / 2;
    int64_t share = lose_ns < half ? lose_ns : half;
    share = share > even ? share : even;
    if (first && share < least_ns && (entries <= 1 || least_ns <= left_ns))
        return left_ns;
    return share >= least_ns ? share : 0;
}

/* ---- the run */

/* Rivals planned for each entry: default, baseline, two runners-up, and --against. */
#define PLANNED_RIVALS 4

/* Stored step times of the entrants; an unknown one counts like the tuned plan's. */
static int stored_steps(const struct dt_check_entry *entry, double seconds[DT_ENTRANTS])
{
    const struct dt_stored_entry *stored = &entry->item->entry;
    int64_t tuned_ns = stored->figures.median_ns > 0 ? stored->figures.median_ns : 0;
    int64_t known[] = {tuned_ns, stored->fallback.median_ns, stored->baseline.median_ns};
    for (int i = 0; i < entry->count; i++)
        seconds[i] = (double)(i < 3 && known[i] > 0 ? known[i] : tuned_ns) * 1e-9;
    return entry->count;
}

/* Time of so many sets: as long as those of its session took, where that is stored. */
static int64_t sets_ns(const struct dt_check_entry *entry, int sets)
{
    const struct dt_stored_info *info = &entry->item->entry.fingerprint.info;
    double seconds[DT_ENTRANTS];
    int n = stored_steps(entry, seconds);
    if (info->set_ns > 0 && info->set_plans > 0)
        return sets * n * (info->set_ns / info->set_plans);
    return dt_check_estimate_ns(seconds, n, sets);
}

struct dt_check_span dt_check_span(const struct dt_check_entry *entry)
{
    int most = entry->opts->until_decided ? DT_SETS_MOST : DT_SETS_USUAL;
    return (struct dt_check_span){sets_ns(entry, DT_SETS_LEAST), sets_ns(entry, most)};
}

static void leave_entry(struct dt_check_entry *entry, const char *why)
{
    entry->verdict = DT_CHECK_NOT_CHECKED;
    snprintf(entry->reason, sizeof entry->reason, "%s", why);
}

/* What is left of the budget is less than its fewest sets take. */
static dt_status leave_for_time(struct dt_check_entry *entry, int64_t least_ns)
{
    struct dt_text why = {0};
    dt_text_add(&why, "the budget ended before it, which takes about ");
    dt_figure_span((double)least_ns * 1e-9, &why);
    dt_text_add(&why, ": --budget gives more");
    leave_entry(entry, dt_text_at(&why));
    dt_text_fini(&why);
    return DT_OK;
}

/* Handles an error: a signal or lack of memory stops the run, other errors only this entry. */
static dt_status run_give_up(struct dt_check_run *run, struct dt_check_entry *entry,
                             dt_status status)
{
    run->interrupted = run->interrupted || status == DT_EINTR;
    leave_entry(entry, run->interrupted ? "interrupted" : dt_message());
    dt_text_clean(entry->reason);
    return status == DT_ENOMEM ? status : DT_OK;
}

/* A failed write to the store ends the run; after a signal the store is unchanged. */
static dt_status run_update(struct dt_check_run *run, struct dt_check_entry *entry,
                            int64_t deadline_ns)
{
    dt_status status =
        dt_check_update(entry, run->opts->directory, dt_journal_id(run->journal), deadline_ns);
    if (status == DT_EINTR)
        run->interrupted = true;
    else if (status < 0) {
        dt_error_keep(&run->failed, status);
        snprintf(entry->written.note, sizeof entry->written.note, "not updated: %.250s",
                 run->failed.sentence);
        dt_text_clean(entry->written.note);
    }
    return DT_OK;
}

/* A store that cannot be written stays as it is, which is said; the check goes on. */
static dt_status run_mark(struct dt_check_run *run, struct dt_check_entry *entry)
{
    dt_status status = run->failed.status < 0 ? DT_OK : dt_check_mark(entry, run->opts->directory);
    if (status == DT_EINTR)
        run->interrupted = true;
    else if (status < 0) {
        snprintf(entry->written.note, sizeof entry->written.note,
                 "look-ups go on recommending it, as the store could not be changed: %.250s",
                 dt_message());
        dt_text_clean(entry->written.note);
    }
    return status == DT_ENOMEM ? status : DT_OK;
}

/* Checks the first of `left` remaining entries. */
static dt_status run_check_entry(struct dt_check_run *run, struct dt_check_entry *entry, int left,
                                 int64_t end_ns)
{
    if (run->interrupted) {
        leave_entry(entry, "interrupted");
        return DT_OK;
    }
    if (run->failed.status < 0) {
        char why[560];
        snprintf(why, sizeof why, "an error ended the run before it: %.500s", run->failed.sentence);
        leave_entry(entry, why);
        dt_text_clean(entry->reason);
        return DT_OK;
    }
    if (dt_clock_ns() >= end_ns) {
        leave_entry(entry, "the budget ended before it: --budget gives more");
        return DT_OK;
    }
    dt_status status = dt_check_open(entry);
    if (status < 0)
        return run_give_up(run, entry, status);
    if (entry->verdict != DT_CHECK_UNJUDGED)
        return DT_OK;
    DT_TRY(dt_check_soft(entry, end_ns));
    int64_t now = dt_clock_ns(), least = sets_ns(entry, DT_SETS_LEAST);
    int64_t share = dt_check_share_ns(end_ns - now, left, run->count == 0, least,
                                      sets_ns(entry, DT_CHECK_LEAST_LOSE));
    if (share == 0)
        return leave_for_time(entry, least);
    status = dt_check_measure(entry, dt_check_lose_alpha(run->comparisons), now + share);
    if (status < 0)
        return run_give_up(run, entry, status);
    if (run->opts->update)
        DT_TRY(run_update(run, entry, now + 2 * share < end_ns ? now + 2 * share : end_ns));
    return run_mark(run, entry);
}

/* Today's gain with its whole interval is below the share of the stored gain that --max-gain-loss allows. */
static bool has_lost_gain(const struct dt_check_run *run, const struct dt_check_record *record)
{
    double least = record->then.gain.ratio * (1 - run->opts->max_gain_loss);
    return run->opts->max_gain_loss > 0 && record->then.gain.known && record->now.gain.known &&
           record->now.gain.interval.high < least;
}

static dt_status run_add_record(struct dt_check_run *run, json_t *json)
{
    struct dt_checked *checked = &run->records[run->count++];
    checked->json = json;
    dt_record_read(&dt_record_check_record, json, &checked->record);
    run->lost_gain += checked->record.gain_lost;
    run->counts[dt_check_verdict_of(checked->record.verdict)]++;
    return dt_journal_add(run->journal, "check", json);
}

/* Entries of other commands, or workers, than the one that was named are told where no entry is of that. */
static dt_status run_add_aside(struct dt_check_run *run, const json_t *records)
{
    json_t *record;
    size_t i;
    run->others = run->count > 0 ? (int)json_array_size(records) : 0;
    if (run->others > 0)
        return DT_OK;
    json_array_foreach(records, i, record)
    {
        DT_TRY(run_add_record(run, json_incref(record)));
    }
    return DT_OK;
}

static dt_status run_keep(struct dt_check_run *run, struct dt_check_entry *entry, json_t *aside)
{
    struct dt_check_record record = dt_check_record(entry);
    struct dt_text retune = {0};
    dt_check_retune(entry, &retune);
    if (retune.size > 0)
        dt_text_clean(retune.bytes);
    record.gain_lost = has_lost_gain(run, &record);
    record.retune = retune.size > 0 ? dt_text_at(&retune) : NULL;
    json_t *json = dt_record_json(&dt_record_check_record, &record);
    dt_text_fini(&retune);
    if (json == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    if (entry->other)
        return json_array_append_new(aside, json) == 0 ? DT_OK
                                                       : dt_fail(DT_ENOMEM, "out of memory");
    DT_TRY(run_add_record(run, json));
    return entry->written.best != NULL ? dt_journal_add(run->journal, "best", entry->written.best)
                                       : DT_OK;
}

dt_status dt_check_run(struct dt_check_run *run)
{
    struct dt_check_list list;
    int64_t end_ns = dt_clock_ns() + run->opts->budget_ns;
    dt_status status = dt_check_select(run->opts, &list);
    run->comparisons = list.count * (PLANNED_RIVALS + (run->opts->against != NULL));
    if (status == DT_OK && list.count > 0 && run->opts->update)
        status = dt_store_check(run->opts->directory);
    if (status == DT_OK && list.count > 0)
        status = dt_journal_open(run->opts->directory, &run->journal);
    struct dt_check_entry *entry = malloc(sizeof *entry);
    json_t *aside = json_array();
    if (status == DT_OK)
        status = DT_RESIZE(run->records, list.count);
    if (entry == NULL && status == DT_OK)
        status = dt_fail(DT_ENOMEM, "out of memory");
    for (int i = 0; status == DT_OK && i < list.count; i++) {
        *entry = (struct dt_check_entry){.opts = run->opts, .item = &list.items[i]};
        run->interrupted = run->interrupted || dt_group_interrupted != 0;
        if (run->opts->progress != NULL)
            run->opts->progress(run->opts->context, entry->item->title, i, list.count);
        status = run_check_entry(run, entry, list.count - i, end_ns);
        if (status == DT_OK)
            dt_error_keep(&run->failed, run_keep(run, entry, aside));
        dt_check_close(entry);
    }
    if (status == DT_OK)
        dt_error_keep(&run->failed, run_add_aside(run, aside));
    json_decref(aside);
    free(entry);
    dt_check_list_fini(&list);
    return status == DT_OK ? dt_error_raise(&run->failed) : status;
}

void dt_check_run_fini(struct dt_check_run *run)
{
    for (int i = 0; i < run->count; i++)
        json_decref(run->records[i].json);
    free(run->records);
    dt_journal_close(run->journal);
    run->records = NULL;
    run->count = 0;
    run->journal = NULL;
}
