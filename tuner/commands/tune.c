/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "db/store.h"
#include "tuner/alone.h"
#include "tuner/print.h"
#include "tuner/session/known.h"
#include "tuner/session/record.h"
#include "tuner/session/report.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

static void describe_lookup(const struct dt_options *options, int size, struct dt_text *out)
{
    dt_text_add(out, "dittune lookup");
    dt_text_add(out, options->worker != NULL ? " --worker " : " --model ");
    dt_print_word(options->worker != NULL ? options->worker : options->model, out);
    if (size > 0)
        dt_text_add(out, " --size %d", size);
    if (options->devices > 0)
        dt_text_add(out, " --devices %lld", (long long)options->devices);
    for (int i = 0; i < options->batches.count; i++)
        dt_text_add(out, "%s%d", i == 0 ? " --batch " : ",", options->batches.values[i]);
    if (options->worker == NULL && strcmp(options->dtype, "float32") != 0)
        dt_text_add(out, " --dtype %s", options->dtype);
    dt_text_add(out, " --objective %s", options->objective);
    if (options->max_bytes > 0)
        dt_text_add(out, " --max-bytes %lldB", (long long)options->max_bytes);
    if (options->max_latency_ns > 0)
        dt_text_add(out, " --max-latency %.12gms", (double)options->max_latency_ns * 1e-6);
    if (options->db != NULL) {
        dt_text_add(out, " --db ");
        dt_print_word(options->db, out);
    }
}

static dt_status report(const struct dt_options *options, const struct dt_session *session,
                        int size, json_t *list)
{
    struct dt_text text = {0}, lookup = {0};
    if (options->json) {
        json_array_append_new(list, dt_record_session(session));
        return DT_OK;
    }
    describe_lookup(options, size, &lookup);
    dt_report_session(session, dt_text_at(&lookup), &text);
    dt_text_fini(&lookup);
    return dt_print_text(&text);
}

/* Ctrl-C and a budget that ended keep what is known: the session is stored and shown whatever ended it. */
static dt_status tune_target(const struct dt_options *options, const struct dt_target *target,
                             int size, int64_t deadline_ns, json_t *list)
{
    const char *directory = options->db != NULL ? options->db : dt_store_default();
    struct dt_session session = {.options = options,
                                 .target = target,
                                 .began_ns = dt_clock_ns(),
                                 .deadline_ns = deadline_ns,
                                 .best = -1};
    dt_status status = dt_target_check(target);
    if (status == DT_OK && options->against != NULL) {
        session.has_against = true;
        status = dt_target_plan(target, options->against, &session.against);
    }
    if (status == DT_OK)
        status = dt_belief_init(&session.belief, target, options->prior);
    if (status == DT_OK)
        status = dt_record_begin(&session, directory);
    if (status < 0) {
        dt_belief_fini(&session.belief);
        return status;
    }
    dt_known_read(&session, directory);
    status = dt_session_run(&session);
    char ended[1024];
    snprintf(ended, sizeof ended, "%s", dt_message());
    dt_status stored = dt_record_end(&session, directory);
    if (stored < 0)
        status = stored;
    else if (status < 0)
        status = dt_fail(status, "%s", ended);
    dt_status printed = report(options, &session, size, list);
    if (status == DT_EPROVISIONAL && !options->json && dt_session_best(&session) != NULL)
        status = dt_fail(status, "%s", ""); /* the report says it */
    dt_journal_close(session.journal);
    dt_session_fini(&session);
    return status < 0 ? status : printed;
}

static void introduce(const struct dt_options *options, const struct dt_target *target)
{
    if (options->json || options->quiet)
        return;
    struct dt_text plans = {0}, units = {0};
    dt_target_plans(target, &plans);
    dt_target_units(target, target->cores, &units);
    if (target->foreign)
        printf("dittune %s tunes %s (%s) on %s\n", DT_VERSION, target->title, dt_text_at(&plans),
               dt_text_at(&units));
    else
        printf("dittune %s tunes the built-in network %s (%s) on %s; another: "
               "--model NAME|FILE.json "
               "--size PX\n",
               DT_VERSION, target->title, dt_text_at(&plans), dt_text_at(&units));
    dt_text_fini(&plans);
    if (options->devices > target->cores && !options->oversubscribe && !target->foreign)
        printf("plans of more than %d ranks are left out: there are %s (--oversubscribe takes "
               "them in)\n",
               target->cores, dt_text_at(&units));
    dt_text_fini(&units);
    fflush(stdout);
}

/* Says why no GPU is used, once; DT_EDIRTY when others are on them. */
static dt_status ready(const struct dt_options *options, const struct dt_target *target)
{
    if (target->backend.why[0] != '\0' && !options->quiet)
        fprintf(stderr, "dittune: plans run on cores, as no GPU can be used: %s\n",
                target->backend.why);
    return dt_target_devices_free(target);
}

static dt_status check_options(const struct dt_options *options)
{
    const struct dt_objective *objective;
    DT_TRY(dt_objective_find(options->objective, &objective));
    if (objective->one_batch && options->batches.count > 1)
        return dt_fail(
            DT_EUSAGE,
            "--objective %s compares plans of one batch, but --batch names %d; give one, or use "
            "--objective throughput",
            objective->name, options->batches.count);
    return dt_search_check(options->search);
}

static dt_status interrupted(void)
{
    bool term = dt_group_interrupted == SIGTERM;
    return dt_fail(term ? DT_ETERM : DT_EINTR, "interrupted; what was known is stored");
}

static void warn_of_store(const struct dt_options *options)
{
    struct dt_text warnings = {0};
    if (dt_store_warnings(options->db != NULL ? options->db : dt_store_default(), &warnings) ==
            DT_OK &&
        warnings.size > 0)
        fprintf(stderr, "dittune: warning: %s", dt_text_at(&warnings));
    dt_text_fini(&warnings);
}

dt_status dt_command_tune(const struct dt_options *options)
{
    int sizes = options->sizes.count > 0 ? options->sizes.count : 1;
    DT_TRY(check_options(options));
    DT_TRY(dt_alone(options));
    int64_t end = dt_clock_ns() + options->budget_ns;
    warn_of_store(options);
    json_t *list = json_array();
    char why[1024] = "";
    dt_status worst = DT_OK;
    for (int i = 0; i < sizes && worst != DT_EINTR; i++) {
        int size = options->sizes.count > 0 ? options->sizes.values[i] : 0;
        struct dt_target_opts opts = {.size = size};
        struct dt_target *target = NULL;
        int64_t now = dt_clock_ns(), share = (end - now) / (sizes - i);
        dt_status status = dt_target_new(options, &opts, &target);
        if (status == DT_OK)
            status = ready(options, target);
        if (status == DT_OK) {
            introduce(options, target);
            status = tune_target(options, target, size, now + share, list);
        }
        dt_target_free(target);
        if (status < 0 && (worst == DT_OK || status == DT_EINTR)) {
            worst = status;
            snprintf(why, sizeof why, "%s", dt_message());
        }
        if (status < 0 && sizes > 1 && status != DT_EINTR && dt_message()[0] != '\0')
            fprintf(stderr, "dittune: --size %d: %s\n", size, dt_message());
    }
    dt_status printed = DT_OK;
    if (options->json && sizes == 1 && json_array_size(list) == 1)
        printed = dt_print_json(json_incref(json_array_get(list, 0)));
    else if (options->json && json_array_size(list) > 0)
        printed = dt_print_json(json_pack("{s:O}", "results", list));
    json_decref(list);
    if (worst == DT_EINTR)
        return interrupted();
    return worst < 0 ? dt_fail(worst, "%s", why) : printed;
}
