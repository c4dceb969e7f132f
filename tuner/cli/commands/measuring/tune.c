/* SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/clock.h"
#include "base/quote.h"
#include "db/store.h"
#include "tuner/cli/alone.h"
#include "tuner/cli/commands/measuring/preview.h"
#include "tuner/cli/live/progress.h"
#include "tuner/cli/lookup/ask.h"
#include "tuner/cli/lookup/show.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"
#include "tuner/cli/report/report.h"
#include "tuner/cli/works.h"
#include "tuner/session/history.h"
#include "tuner/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Results of the works so far. */
struct found {
    json_t *results;         /* with --json: one object each */
    struct dt_mix_work *mix; /* [works] */
    int count, works;
    struct dt_list list; /* of these works; spent_ns: before this command */
    int64_t next_ns;     /* --dry-run: when the next work would begin */
};

static dt_status report(const struct dt_options *options, const struct dt_session *session,
                        struct found *found)
{
    struct dt_text text = {0}, lookup = {0};
    found->mix[found->count] = dt_mix_work(session, found->mix[found->count].part.share);
    if (options->print.json) {
        json_array_append_new(found->results, dt_session_json(session));
        return DT_OK;
    }
    bool live = session->store.stored || session->store.outranked; /* not read back */
    const struct dt_result *best = dt_session_best(session);
    if (live)
        dt_ask_line(options, session->target, best != NULL ? &best->point : NULL, &lookup);
    dt_report_session(session, live ? dt_text_at(&lookup) : NULL, &text);
    if (live && session->store.id[0] != '\0') {
        dt_text_add(&text, "See all of it: dittune report %s", session->store.id);
        dt_text_add(&text, options->db != NULL ? " --db " : "");
        if (options->db != NULL)
            dt_quote(options->db, &text);
        dt_text_add(&text, "\n");
    }
    dt_text_fini(&lookup);
    return dt_print_text(&text);
}

/* A word of the command line, without the text of a private command, which may follow "--command=". */
static void add_word(const struct dt_options *options, const char *word, struct dt_text *out)
{
    const struct dt_command_options *given = &options->command;
    const char *const texts[] = {given->text, given->prepare, given->cleanup};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0] && given->is_private; i++)
        if (texts[i] >= word && texts[i] <= word + strlen(word)) {
            dt_text_add(out, "%.*s...", (int)(texts[i] - word), word);
            return;
        }
    dt_quote(word, out);
}

/* The command as it was typed, with --resume. */
static void say_resume(const struct dt_options *options)
{
    const char *const *line = options->words.line;
    struct dt_text text = {0};
    int i = 0;
    for (; line[i] != NULL && strcmp(line[i], "--") != 0; i++) {
        dt_text_add(&text, i > 0 ? " " : "");
        add_word(options, line[i], &text);
    }
    dt_text_add(&text, options->search.resume ? "" : " --resume");
    if (line[i] != NULL)
        dt_quote_arguments(line + i + 1, &text);
    dt_print_note("go on with: %s", dt_text_at(&text));
    dt_text_fini(&text);
}

/* After Ctrl-C or the end of the budget the session's results are still stored and shown. */
static dt_status tune_session(const struct dt_options *options, struct dt_session *session,
                              struct found *found)
{
    struct dt_progress progress;
    const struct dt_watch watch = dt_progress_watch(&progress);
    dt_progress_init(&progress, session->target, dt_print_voice(options, false),
                     session->clock.deadline_ns);
    session->watch = &watch;
    progress.session = session;
    dt_status begun = dt_session_begin(session), status = begun;
    progress.began_ns = session->clock.began_ns;
    progress.deadline_ns = session->clock.deadline_ns;
    if (found->list.id[0] == '\0')
        snprintf(found->list.id, sizeof found->list.id, "%s", session->store.id);
    if (begun == DT_OK)
        status = dt_session_run(session);
    dt_progress_end(&progress);
    if (begun < 0)
        return begun;
    dt_status printed = report(options, session, found);
    bool any = dt_session_best(session) != NULL;
    if (status == DT_EPROVISIONAL && !options->print.json && any)
        status = dt_fail(status, "%s", ""); /* the report has the reason */
    if (status == DT_EINTR && any)
        say_resume(options);
    if (status == DT_EINTR)
        status = dt_fail(status, "interrupted%s",
                         any ? "; what was known is stored" : " before a plan was measured");
    return status < 0 ? status : printed;
}

static dt_status tune_target(const struct dt_options *options, const struct dt_job *job,
                             const struct dt_target *target, int64_t deadline_ns,
                             struct found *found)
{
    struct dt_session session;
    bool dry = options->search.dry;
    struct dt_session_opts opts = {.job = job,
                                   .target = target,
                                   .directory =
                                       options->db != NULL ? options->db : dt_store_default(),
                                   .strategy = options->search.name,
                                   .prior = options->search.prior,
                                   .against = options->against,
                                   .resume = options->search.resume,
                                   .began_ns = dry ? found->next_ns : dt_clock_ns(),
                                   .deadline_ns = deadline_ns,
                                   .list = {.work = found->count, .works = found->works}};
    snprintf(opts.list.id, sizeof opts.list.id, "%s", found->list.id);
    DT_TRY(dt_session_open(&session, &opts));
    dt_status status = DT_OK;
    if (target->broken[0] != '\0' && dt_command_job(target->identity.key) != NULL)
        status =
            dt_fail(DT_EUSAGE, "the default plan breaks a rule, give the space another default: %s",
                    target->broken);
    else
        status = dry ? dt_preview(options, &session, found->results)
                     : tune_session(options, &session, found);
    dt_session_fini(&session);
    return status;
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
    if (target->identity.note[0] != '\0')
        dt_text_add(&text, "note: %s\n", target->identity.note);
    dt_status status = dt_print_text(&text);
    fflush(stdout);
    return status;
}

/* A rule that removes nothing is probably not what its author means. */
static void warn_of_rules(const struct dt_options *options, const struct dt_space *space)
{
    for (int i = 0; options->space != NULL && i < dt_space_rules(space); i++) {
        struct dt_rule_info rule = dt_space_rule(space, i);
        if (rule.removes == 0)
            dt_print_note("warning: the rule '%s' removes no plan", rule.expr);
    }
}

/* Prints once why no GPU is used; DT_EDIRTY when others use them. */
static dt_status ready(const struct dt_options *options, const struct dt_target *target)
{
    if (target->hardware.backend.why[0] != '\0' && !options->print.quiet)
        dt_print_note("plans run on cores, as no GPU can be used: %s",
                      target->hardware.backend.why);
    if (!options->print.quiet && dt_space_listed(target->space))
        warn_of_rules(options, target->space);
    return options->search.dry ? DT_OK : dt_target_devices_free(target);
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

/* All are checked before the first one is begun. */
static dt_status check_works(struct dt_works *works)
{
    for (int i = 0; i < works->count; i++) {
        struct dt_options options;
        struct dt_job job;
        struct dt_text name = {0};
        dt_status status = dt_works_options(works, i, &options);
        if (status == DT_OK)
            status = dt_options_job(&options, NULL, &job);
        if (status == DT_OK)
            status = check_job(&job);
        if (status == DT_OK)
            status = dt_search_check(options.search.name);
        dt_works_name(works, i, &name);
        if (status < 0)
            status = dt_fail(status, "%s%s", dt_text_at(&name), dt_message());
        dt_text_fini(&name);
        DT_TRY(status);
    }
    return DT_OK;
}

/* The work came to its end before the list was resumed: shows that session again. */
static dt_status show_done(const struct dt_options *options, const struct dt_target *target,
                           struct found *found, bool *done)
{
    const char *directory = options->db != NULL ? options->db : dt_store_default();
    struct dt_replay replay;
    *done = false;
    if (!options->search.resume || found->works < 2 || found->list.id[0] == '\0')
        return DT_OK;
    DT_TRY(
        dt_list_done(directory, &found->list, found->count, target->identity.key, &replay, done));
    if (!*done)
        return DT_OK;
    if (!options->print.quiet)
        dt_print_note("resumed: session %s has tuned %s", replay.session.store.id,
                      target->identity.title);
    dt_status status = report(options, &replay.session, found);
    dt_replay_fini(&replay);
    return status;
}

static dt_status make_secret(const struct dt_options *options)
{
    unsigned char secret[DT_SIPHASH_KEY];
    bool there;
    return dt_private_read(options->db != NULL ? options->db : dt_store_default(), true, secret,
                           &there);
}

static dt_status tune_work(struct dt_works *works, int i, int64_t end_ns, struct found *found)
{
    struct dt_options options;
    struct dt_job job;
    struct dt_target *target = NULL;
    bool dry = works->options->search.dry;
    int64_t begin_ns = dry ? found->next_ns : dt_clock_ns();
    int64_t share_end_ns = dt_works_end(works, i, begin_ns, end_ns);
    DT_TRY(dt_works_options(works, i, &options));
    if (options.command.is_private && !dry)
        DT_TRY(make_secret(&options));
    DT_TRY(dt_options_job(&options, NULL, &job));
    dt_status status = dt_target_new(&job, &target);
    if (status == DT_OK)
        status = ready(&options, target);
    bool done = false;
    if (status == DT_OK)
        status = show_done(&options, target, found, &done);
    if (status == DT_OK && !done)
        status = introduce(&options, target);
    if (status == DT_OK && !done)
        status = tune_target(&options, &job, target, share_end_ns, found);
    found->next_ns = share_end_ns;
    dt_target_free(target);
    return status;
}

static dt_status print_found(const struct dt_options *options, const struct dt_works *works,
                             const struct found *found)
{
    bool several = works->list != NULL || works->count > 1;
    struct dt_text text = {0};
    if (several && !options->print.json && !options->search.dry && found->count > 1) {
        dt_mix_text(found->mix, works->count, &text);
        return dt_print_text(&text);
    }
    if (!options->print.json || json_array_size(found->results) == 0)
        return DT_OK;
    if (!several)
        return dt_print_json(json_incref(json_array_get(found->results, 0)));
    if (options->search.dry)
        return dt_print_json(json_pack("{s:O}", "results", found->results));
    return dt_print_json(json_pack("{s:O, s:o}", "results", found->results, "mix",
                                   dt_mix_json(found->mix, works->count)));
}

/* The first error, or the interruption, is that of the command; the other works are tuned. */
static dt_status tune_works(struct dt_works *works, struct found *found)
{
    found->next_ns = dt_clock_ns();
    int64_t end_ns = found->next_ns + works->options->job.budget_ns - found->list.spent_ns;
    struct dt_error worst = {DT_OK, ""};
    for (; found->count < works->count && worst.status != DT_EINTR; found->count++) {
        struct dt_error error = {DT_OK, ""};
        struct dt_text name = {0};
        dt_error_keep(&error, tune_work(works, found->count, end_ns, found));
        if (worst.status == DT_OK || error.status == DT_EINTR)
            worst = error;
        dt_works_name(works, found->count, &name);
        if (name.size > 0 && error.status != DT_EINTR && error.sentence[0] != '\0') {
            dt_print_note("%s%s", dt_text_at(&name), error.sentence);
            worst.sentence[0] = '\0'; /* of an earlier one, or this: it was said */
        }
        dt_text_fini(&name);
    }
    return dt_error_raise(&worst);
}

static dt_status tune_all(const struct dt_options *options, struct dt_works *works)
{
    struct found found = {.works = works->count};
    const char *directory = options->db != NULL ? options->db : dt_store_default();
    if (options->search.resume && works->count > 1)
        DT_TRY(dt_list_last(directory, works->count, &found.list));
    DT_TRY(DT_RESIZE(found.mix, works->count));
    found.results = json_array();
    for (int i = 0; i < works->count; i++)
        found.mix[i] = dt_mix_none(dt_works_share(works, i));
    dt_print_store(directory);
    dt_status status = tune_works(works, &found);
    dt_status printed = print_found(options, works, &found);
    free(found.mix);
    json_decref(found.results);
    return status < 0 ? status : printed;
}

dt_status dt_command_tune(const struct dt_options *options)
{
    struct dt_works works;
    DT_TRY(dt_works_list(options, &works));
    dt_status status = check_works(&works);
    if (status == DT_OK)
        status = dt_alone(options);
    if (status == DT_OK)
        status = tune_all(options, &works);
    dt_works_fini(&works);
    return status;
}
