/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "db/store.h"
#include "tuner/cli/alone.h"
#include "tuner/cli/lookup/ask.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"
#include "tuner/cli/progress.h"
#include "tuner/cli/report/report.h"
#include "tuner/session/record.h"
#include "tuner/session/session.h"

#include <stdio.h>
#include <string.h>

static dt_status report(const struct dt_options *options, const struct dt_session *session,
                        json_t *list)
{
    struct dt_text text = {0}, lookup = {0};
    if (options->print.json) {
        json_array_append_new(list, dt_record_session(session));
        return DT_OK;
    }
    dt_ask_line(options, session->target, &lookup);
    dt_report_session(session, dt_text_at(&lookup), &text);
    dt_text_fini(&lookup);
    return dt_print_text(&text);
}

/* After Ctrl-C or the end of the budget the session's results are still stored and shown. */
static dt_status tune_target(const struct dt_options *options, const struct dt_job *job,
                             const struct dt_target *target, int64_t deadline_ns, json_t *list)
{
    const char *directory = options->db != NULL ? options->db : dt_store_default();
    struct dt_session session = {.job = job,
                                 .target = target,
                                 .search.strategy = options->search.name,
                                 .store.directory = directory,
                                 .clock.began_ns = dt_clock_ns(),
                                 .clock.deadline_ns = deadline_ns,
                                 .finals.best = -1};
    dt_status status = dt_target_check(target);
    if (status == DT_OK && options->against != NULL) {
        session.has_against = true;
        status = dt_target_plan(target, options->against, &session.against);
    }
    if (status == DT_OK)
        status = dt_belief_init(&session.search.belief, target, options->search.prior);
    if (status == DT_OK)
        status = dt_record_begin(&session, directory);
    if (status < 0) {
        dt_belief_fini(&session.search.belief);
        return status;
    }
    dt_known_read(&session, directory);
    struct dt_progress progress;
    const struct dt_watch watch = dt_progress_watch(&progress);
    dt_progress_init(&progress, target, options->print.quiet, deadline_ns);
    session.watch = &watch;
    struct dt_error ended = {DT_OK, ""};
    if (options->search.resume)
        dt_error_keep(&ended, dt_session_resume(&session, directory));
    progress.began_ns = session.clock.began_ns;
    progress.deadline_ns = session.clock.deadline_ns;
    if (ended.status == DT_OK)
        dt_error_keep(&ended, dt_session_run(&session));
    dt_progress_end(&progress);
    dt_status stored = dt_record_end(&session, directory);
    status = stored < 0 ? stored : dt_error_raise(&ended);
    dt_status printed = report(options, &session, list);
    if (status == DT_EPROVISIONAL && !options->print.json && dt_session_best(&session) != NULL)
        status = dt_fail(status, "%s", ""); /* the report has the reason */
    if (status == DT_EINTR)
        status = dt_fail(status, "interrupted%s",
                         dt_session_best(&session) != NULL ? "; what was known is stored, and "
                                                             "--resume goes on from there"
                                                           : " before a plan was measured");
    dt_journal_close(session.store.journal);
    dt_session_fini(&session);
    return status < 0 ? status : printed;
}

static dt_status introduce(const struct dt_options *options, const struct dt_target *target)
{
    struct dt_text text = {0};
    if (options->print.json || options->print.quiet)
        return DT_OK;
    dt_text_add(&text, "dittune %s tunes %s%s (", DT_VERSION,
                target->foreign ? "" : "the built-in network ", target->identity.title);
    dt_target_plans(target, &text);
    dt_text_add(&text, ") on ");
    dt_target_units(target, target->hardware.cores, &text);
    dt_text_add(&text, target->foreign ? "\n" : "; another: --model NAME|FILE.json --size PX\n");
    if (options->job.devices > target->hardware.cores && !options->job.oversubscribe &&
        !target->foreign) {
        dt_text_add(&text, "plans of more than %d ranks are left out: there are ",
                    target->hardware.cores);
        dt_target_units(target, target->hardware.cores, &text);
        dt_text_add(&text, " (--oversubscribe takes them in)\n");
    }
    if (target->limited)
        dt_text_add(&text, "plans of more than %d rank%s are left out (--devices N allows more)\n",
                    target->hardware.devices, target->hardware.devices == 1 ? "" : "s");
    dt_status status = dt_print_text(&text);
    fflush(stdout);
    return status;
}

/* Prints once why no GPU is used; DT_EDIRTY when others use them. */
static dt_status ready(const struct dt_options *options, const struct dt_target *target)
{
    if (target->hardware.backend.why[0] != '\0' && !options->print.quiet)
        dt_print_note("plans run on cores, as no GPU can be used: %s",
                      target->hardware.backend.why);
    return dt_target_devices_free(target);
}

static dt_status check_job(const struct dt_job *job)
{
    if (job->objective->one_batch && job->batches.count > 1)
        return dt_fail(
            DT_EUSAGE,
            "--objective %s compares plans of one batch, but --batch names %d; give one, or use "
            "--objective throughput",
            job->objective->name, job->batches.count);
    return DT_OK;
}

static void warn_of_store(const struct dt_options *options)
{
    struct dt_text warnings = {0};
    if (dt_store_warnings(options->db != NULL ? options->db : dt_store_default(), &warnings) ==
            DT_OK &&
        warnings.size > 0)
        dt_print_note("warning: %s", dt_text_at(&warnings));
    dt_text_fini(&warnings);
}

dt_status dt_command_tune(const struct dt_options *options)
{
    int sizes = options->job.sizes.count > 0 ? options->job.sizes.count : 1;
    struct dt_job job;
    DT_TRY(dt_options_job(options, NULL, &job));
    DT_TRY(check_job(&job));
    DT_TRY(dt_search_check(options->search.name));
    DT_TRY(dt_alone(options));
    int64_t end = dt_clock_ns() + options->job.budget_ns;
    warn_of_store(options);
    json_t *list = json_array();
    struct dt_error worst = {DT_OK, ""};
    for (int i = 0; i < sizes && worst.status != DT_EINTR; i++) {
        struct dt_error error = {DT_OK, ""};
        if (options->job.sizes.count > 0) {
            job.size = job.wanted.width = options->job.sizes.widths[i];
            job.wanted.height = options->job.sizes.heights[i];
        }
        struct dt_target *target = NULL;
        int64_t now = dt_clock_ns(), share = (end - now) / (sizes - i);
        dt_status status = dt_target_new(&job, &target);
        if (status == DT_OK)
            status = ready(options, target);
        if (status == DT_OK)
            status = introduce(options, target);
        if (status == DT_OK)
            status = tune_target(options, &job, target, now + share, list);
        dt_error_keep(&error, status);
        dt_target_free(target);
        if (worst.status == DT_OK || status == DT_EINTR)
            worst = error;
        if (sizes > 1 && status != DT_EINTR && error.sentence[0] != '\0')
            dt_print_note("--size %d: %s", job.size, error.sentence);
    }
    dt_status printed = DT_OK;
    if (options->print.json && sizes == 1 && json_array_size(list) == 1)
        printed = dt_print_json(json_incref(json_array_get(list, 0)));
    else if (options->print.json && json_array_size(list) > 0)
        printed = dt_print_json(json_pack("{s:O}", "results", list));
    json_decref(list);
    return worst.status < 0 ? dt_error_raise(&worst) : printed;
}
