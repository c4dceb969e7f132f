/* SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/clock.h"
#include "base/columns.h"
#include "base/figures.h"
#include "base/quote.h"
#include "db/outline.h"
#include "db/store.h"
#include "space/json/json.h"
#include "tuner/cli/alone.h"
#include "tuner/cli/live/progress.h"
#include "tuner/cli/lookup/ask.h"
#include "tuner/cli/lookup/show.h"
#include "tuner/cli/options_job.h"
#include "tuner/cli/print.h"
#include "tuner/cli/report/report.h"
#include "tuner/cli/works.h"
#include "tuner/session/record/session_json.h"
#include "tuner/session/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Results of the works so far. */
struct found {
    json_t *results;         /* with --json: one object each */
    struct dt_mix_work *mix; /* [works] */
    int count, works;
    struct dt_list list; /* the list of these works; spent_ns: before this command */
    int64_t next_ns;     /* --dry-run: when the next work would begin */
};

/* Where the result is, and what shows it. */
static void add_stored(const struct dt_options *options, const struct dt_tuning *tuning,
                       struct dt_text *out)
{
    const struct dt_session *session = tuning->session;
    const struct dt_result *best = dt_session_best(session);
    dt_auto_text lookup = {0};
    dt_ask_line(options, session->target, best != NULL ? &best->point : NULL, &lookup);
    if (tuning->store.result != DT_STORE_STORED)
        dt_text_add(out, "Not stored: an earlier session %s.\nLook that up: %s\n",
                    tuning->store.result == DT_STORE_KEPT_DECIDED
                        ? "decided this with a final comparison"
                        : "measured more, and decided as little",
                    dt_text_at(&lookup));
    else
        dt_text_add(out, "Stored. Look it up: %s\n", dt_text_at(&lookup));
    dt_text_add(out, "See all of it: dittune report %s", session->id);
    dt_text_add(out, options->db != NULL ? " --db " : "");
    if (options->db != NULL)
        dt_quote(options->db, out);
    dt_text_add(out, "\n");
}

/* tuning: of the session; NULL: it is read back. */
static dt_status report_session(const struct dt_options *options, const struct dt_session *session,
                                const struct dt_tuning *tuning, struct found *found)
{
    struct dt_text text = {0};
    found->mix[found->count] = dt_mix_work(session, found->mix[found->count].part.share);
    if (options->print.json) {
        json_array_append_new(found->results, dt_session_json(session));
        return DT_OK;
    }
    dt_report_session(session, &text);
    if (tuning != NULL && tuning->store.result != DT_STORE_NOTHING)
        add_stored(options, tuning, &text);
    return dt_print_text(&text);
}

/* A word of the command line, without the text of a private command, which may
 * follow "--command=". */
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
    dt_auto_text text = {0};
    int i = 0;
    for (; line[i] != NULL && strcmp(line[i], "--") != 0; i++) {
        dt_text_add(&text, i > 0 ? " " : "");
        add_word(options, line[i], &text);
    }
    dt_text_add(&text, options->session.resume ? "" : " --resume");
    if (line[i] != NULL)
        dt_quote_arguments(line + i + 1, &text);
    dt_print_note("go on with: %s", dt_text_at(&text));
}

/* After Ctrl-C or the end of the budget the session's results are still stored and shown. */
static dt_status tune_session(const struct dt_options *options, struct dt_tuning *tuning,
                              struct found *found)
{
    struct dt_progress progress;
    const struct dt_watch watch = dt_progress_watch(&progress);
    dt_progress_init(&progress, tuning->target, dt_print_voice(options, false),
                     tuning->clock.deadline_ns);
    tuning->watch = &watch;
    progress.chance = &tuning->search.chance;
    dt_status begun = dt_tuning_begin(tuning), status = begun;
    progress.began_ns = tuning->clock.began_ns;
    progress.deadline_ns = tuning->clock.deadline_ns;
    if (found->list.id[0] == '\0')
        snprintf(found->list.id, sizeof found->list.id, "%s", tuning->session->id);
    if (begun == DT_OK)
        status = dt_tuning_run(tuning);
    dt_progress_end(&progress);
    if (begun < 0)
        return begun;
    dt_status printed = report_session(options, tuning->session, tuning, found);
    bool any = dt_session_best(tuning->session) != NULL;
    if (status == DT_EPROVISIONAL && !options->print.json && any)
        status = dt_fail(status, "%s", ""); /* the report has the reason */
    if (status == DT_EINTR && any)
        say_resume(options);
    if (status == DT_EINTR)
        status = dt_fail(status, "interrupted%s",
                         any ? "; what was known is stored" : " before a plan was measured");
    return status < 0 ? status : printed;
}

/* ---- --dry-run */

/* The time of a trial decides how many fit, and with that the search. It is known before the first
 * one only where the store has a result of the same work on this machine. */

#define SUPPOSED_SECONDS 1.0 /* a trial of unknown length */

/* The folder's own or of the nearest one above it that exists; -1: unknown. */
static int64_t free_bytes(const char *directory)
{
    struct statvfs info;
    dt_auto_text path = {0};
    int64_t bytes = -1;
    dt_text_add(&path, "%s%s", directory[0] == '/' ? "" : "./", directory);
    while (path.size > 0 && dt_text_status(&path) == DT_OK && bytes < 0) {
        if (statvfs(dt_text_at(&path), &info) == 0)
            bytes = (int64_t)info.f_bavail * (int64_t)info.f_frsize;
        while (path.size > 1 && path.bytes[path.size - 1] != '/')
            path.size--;
        path.bytes[--path.size] = '\0';
    }
    return bytes;
}

/* Size of the largest journal in the store; 0: there is none. */
static int64_t journal_bytes(const char *directory)
{
    struct dt_journals runs = {.directory = directory};
    struct stat info;
    int64_t most = 0;
    while (dt_journals_next(&runs))
        if (stat(runs.path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > most)
            most = info.st_size;
    return dt_journals_end(&runs) == DT_OK ? most : 0;
}

static json_t *preview_json(const struct dt_tuning *tuning, const struct dt_preview *preview,
                            bool known)
{
    const struct dt_target *target = tuning->target;
    const char *directory = tuning->opts.directory;
    int64_t space = free_bytes(directory), journal = journal_bytes(directory);
    json_t *plans = json_array();
    for (int i = 0; i < preview->count; i++)
        json_array_append_new(plans,
                              json_pack("{s:s, s:o}", "role", preview->plans[i].role, "plan",
                                        dt_point_json(target->space, &preview->plans[i].point)));
    return json_pack(
        "{s:s, s:o, s:i, s:s, s:f, s:f, s:s, s:s, s:f, s:b, s:f, s:o, s:b, s:s, s:o, s:o}", "title",
        target->identity.title, "plans",
        target->plans >= 0 ? json_integer(target->plans) : json_null(), "devices",
        target->hardware.devices, "unit", target->hardware.unit, "budget_seconds",
        (double)(tuning->clock.deadline_ns - tuning->clock.began_ns) / 1e9, "trials_until_seconds",
        preview->trials_until, "search", tuning->search.name, "search_reason", tuning->search.why,
        "trial_seconds", preview->trial_seconds, "trial_known", known, "loads", preview->classes,
        "first", plans, "more", preview->more, "db", directory, "free_bytes",
        space >= 0 ? json_integer(space) : json_null(), "journal_bytes",
        journal > 0 ? json_integer(journal) : json_null());
}

static void add_search(const struct dt_tuning *tuning, const struct dt_preview *preview, bool known,
                       struct dt_text *out)
{
    dt_text_add(out, "search  %s (%s), %s %s%s", tuning->search.name, tuning->search.why,
                known ? "as a trial takes about" : "if a trial takes",
                dt_figure_of(preview->trial_seconds).text,
                known ? " and its load, by the store's result"
                      : ": the first trials tell how long one and its load take");
    if (preview->classes > 1)
        dt_text_add(out,
                    "; %.0f groups of plans are loaded one by one: where that takes long, plans of "
                    "a group follow each other",
                    preview->classes);
    dt_text_add(out, "\n");
}

static void add_disk(const char *directory, struct dt_text *out)
{
    int64_t space = free_bytes(directory), journal = journal_bytes(directory);
    dt_text_add(out, "disk    a journal, ");
    if (journal > 0)
        dt_text_add(out, "of up to %s so far, ", dt_figure_bytes_of(journal).text);
    dt_text_add(out, "in %s", directory);
    if (space >= 0)
        dt_text_add(out, " (%s free)", dt_figure_bytes_of(space).text);
    dt_text_add(out, "\n");
}

static void preview_text(const struct dt_tuning *tuning, const struct dt_preview *preview,
                         bool known, struct dt_text *out)
{
    const struct dt_target *target = tuning->target;
    double all = (double)(tuning->clock.deadline_ns - tuning->clock.began_ns) / 1e9;
    dt_text_add(
        out,
        "dry run: nothing is measured or stored\ntime    at most %s: trials until %s at the latest",
        dt_figure_span_of(all).text, dt_figure_span_of(preview->trials_until).text);
    double every = (double)target->plans * preview->trial_seconds;
    if (target->plans >= 0 && every < preview->trials_until)
        dt_text_add(out, " (all %lld plan%s: %s)", (long long)target->plans,
                    target->plans == 1 ? "" : "s", dt_figure_span_of(every).text);
    dt_text_add(out, ", then shoot-out and final comparison\n");
    add_search(tuning, preview, known, out);
    if (target->broken[0] != '\0')
        dt_text_add(out, "default breaks a rule of its space, and will be measured as it is: %s\n",
                    target->broken);
    add_disk(tuning->opts.directory, out);
    for (int i = 0; i < preview->count; i++) {
        dt_text_add(out, "%s%-10s  ", i == 0 ? "first   " : "        ", preview->plans[i].role);
        dt_point_short(target->space, &preview->plans[i].point, out);
        dt_text_add(out, "\n");
    }
    if (preview->more)
        dt_text_add(out, "        and so on\n");
    else if (target->plans != preview->count)
        dt_text_add(out, "        then plans that depend on these answers\n");
}

static dt_status preview_print(const struct dt_options *options, struct dt_tuning *tuning,
                               json_t *results)
{
    const struct dt_identity *identity = &tuning->target->identity;
    const char *directory = tuning->opts.directory;
    struct dt_stored_entry entry = {.known = false};
    struct dt_preview preview;
    json_auto_t *stored = NULL;
    dt_auto_text text = {0};
    struct dt_text wrapped = {0};
    dt_known_read(tuning, directory);
    if (dt_store_get(directory, identity->key, identity->hard, &stored) >= 0)
        dt_record_read(&dt_record_stored_entry, stored, &entry);
    bool known = entry.known && entry.figures.median_ns > 0;
    double step = (double)entry.figures.median_ns * 1e-9;
    DT_TRY(dt_tuning_preview(tuning, known ? dt_session_trial_seconds(step) : SUPPOSED_SECONDS,
                             &preview));
    if (options->print.json) {
        json_array_append_new(results, preview_json(tuning, &preview, known));
        return DT_OK;
    }
    preview_text(tuning, &preview, known, &text);
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, 8, &wrapped);
    return dt_print_text(&wrapped);
}

static dt_status tune_target(const struct dt_options *options, const struct dt_job *job,
                             const struct dt_target *target, int64_t deadline_ns,
                             struct found *found)
{
    struct dt_tuning tuning;
    bool dry = options->dry;
    struct dt_session_opts opts = options->session;
    opts.job = job;
    opts.target = target;
    opts.directory = options->store;
    opts.began_ns = dry ? found->next_ns : dt_clock_ns();
    opts.deadline_ns = deadline_ns;
    opts.list = (struct dt_session_list){.work = found->count, .works = found->works};
    snprintf(opts.list.id, sizeof opts.list.id, "%s", found->list.id);
    if (target->broken[0] != '\0' && dt_command_job(target->identity.key) != NULL)
        return dt_fail(DT_EUSAGE,
                       "the default plan breaks a rule, give the space another default: %s",
                       target->broken);
    DT_TRY(dt_tuning_open(&tuning, &opts));
    dt_status status = dry ? preview_print(options, &tuning, found->results)
                           : tune_session(options, &tuning, found);
    dt_tuning_fini(&tuning);
    return status;
}

static dt_status introduce_target(const struct dt_options *options, const struct dt_target *target)
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

/* Prints once why no GPU is used; DT_EDIRTY when others use them. */
static dt_status ready_target(const struct dt_options *options, const struct dt_target *target)
{
    if (target->hardware.backend.why[0] != '\0' && !options->print.quiet)
        dt_print_note("plans run on cores, as no GPU can be used: %s",
                      target->hardware.backend.why);
    bool listed = !options->print.quiet && options->space != NULL && dt_space_listed(target->space);
    for (int i = 0; listed && i < dt_space_rules(target->space); i++) {
        struct dt_rule_info rule = dt_space_rule(target->space, i);
        if (rule.removes == 0) /* probably not what its author means */
            dt_print_note("warning: the rule '%s' removes no plan", rule.expr);
    }
    return options->dry ? DT_OK : dt_target_devices_free(target);
}

/* All are checked before the first one is begun. */
static dt_status check_works(struct dt_works *works)
{
    for (int i = 0; i < works->count; i++) {
        struct dt_options options;
        struct dt_job job;
        dt_auto_text name = {0};
        dt_status status = dt_works_options(works, i, &options);
        if (status == DT_OK)
            status = dt_options_job(&options, NULL, &job);
        if (status == DT_OK && job.objective->one_batch && job.batches.count > 1)
            status = dt_fail(DT_EUSAGE,
                             "--objective %s compares plans of one batch, but --batch names %d; "
                             "give one, or use "
                             "--objective throughput",
                             job.objective->name, job.batches.count);
        if (status == DT_OK)
            status = dt_search_check(options.session.strategy);
        dt_works_name(works, i, &name);
        if (status < 0)
            status = dt_fail(status, "%s%s", dt_text_at(&name), dt_message());
        DT_TRY(status);
    }
    return DT_OK;
}

/* The work came to its end before the list was resumed: shows that session again. */
static dt_status show_done(const struct dt_options *options, const struct dt_target *target,
                           struct found *found, bool *done)
{
    struct dt_replay replay;
    *done = false;
    if (!options->session.resume || found->works < 2 || found->list.id[0] == '\0')
        return DT_OK;
    DT_TRY(dt_list_done(options->store, &found->list, found->count, target, &replay, done));
    if (!*done)
        return DT_OK;
    if (!options->print.quiet)
        dt_print_note("resumed: session %s has tuned %s", replay.session->id,
                      target->identity.title);
    dt_status status = report_session(options, replay.session, NULL, found);
    dt_replay_fini(&replay);
    return status;
}

static dt_status tune_work(struct dt_works *works, int i, int64_t end_ns, struct found *found)
{
    struct dt_options options;
    struct dt_job job;
    struct dt_target *target = NULL;
    bool dry = works->options->dry;
    int64_t begin_ns = dry ? found->next_ns : dt_clock_ns();
    int64_t share_end_ns = dt_works_end(works, i, begin_ns, end_ns);
    DT_TRY(dt_works_options(works, i, &options));
    if (options.command.is_private && !dry) {
        unsigned char secret[DT_SIPHASH_KEY];
        bool there;
        DT_TRY(dt_private_read(options.store, true, secret, &there));
    }
    DT_TRY(dt_options_job(&options, NULL, &job));
    dt_status status = dt_target_new(&job, &target);
    if (status == DT_OK)
        status = ready_target(&options, target);
    bool done = false;
    if (status == DT_OK)
        status = show_done(&options, target, found, &done);
    if (status == DT_OK && !done)
        status = introduce_target(&options, target);
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
    if (several && !options->print.json && !options->dry && found->count > 1) {
        dt_mix_text(found->mix, works->count, &text);
        return dt_print_text(&text);
    }
    if (!options->print.json || json_array_size(found->results) == 0)
        return DT_OK;
    if (!several)
        return dt_print_json(json_incref(json_array_get(found->results, 0)));
    if (options->dry)
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
        dt_auto_text name = {0};
        dt_error_keep(&error, tune_work(works, found->count, end_ns, found));
        if (worst.status == DT_OK || error.status == DT_EINTR)
            worst = error;
        dt_works_name(works, found->count, &name);
        if (name.size > 0 && error.status != DT_EINTR && error.sentence[0] != '\0') {
            dt_print_note("%s%s", dt_text_at(&name), error.sentence);
            worst.sentence[0] = '\0'; /* an earlier one's, or this one's: it was printed */
        }
    }
    return dt_error_raise(&worst);
}

static dt_status tune_all(const struct dt_options *options, struct dt_works *works)
{
    struct found found = {.works = works->count};
    if (options->session.resume && works->count > 1)
        DT_TRY(dt_list_last(options->store, works->count, &found.list));
    DT_TRY(DT_RESIZE(found.mix, works->count));
    found.results = json_array();
    for (int i = 0; i < works->count; i++)
        found.mix[i] = dt_mix_none(dt_works_share(works, i));
    dt_print_store(options->store);
    dt_status status = tune_works(works, &found);
    dt_status printed = print_found(options, works, &found);
    free(found.mix);
    json_decref(found.results);
    return status < 0 ? status : printed;
}

dt_status dt_command_tune(const struct dt_options *options)
{
    DT_CLEANUP(dt_works_fini) struct dt_works works = {.options = NULL};
    DT_TRY(dt_works_list(options, &works));
    DT_TRY(check_works(&works));
    DT_TRY(dt_alone(options));
    return tune_all(options, &works);
}
