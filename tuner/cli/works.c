/* SPDX-License-Identifier: MIT */
/* A row of the file is an object of options without their dashes. It is read as these options
 * behind the words of the command line, so that a new option needs nothing here. */
#include "tuner/cli/works.h"

#include "base/array.h"
#include "base/columns.h"
#include "base/figures.h"
#include "base/json.h"
#include "db/stored.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORKS_MOST = 64 };
#define SHARE_MOST 1e6

/* Options of the session as a whole, which a row cannot have. */
static const char *const of_session[] = {"budget",      "db",        "dry-run", "help",  "json",
                                         "json-stream", "no-wait",   "wait",    "quiet", "verbose",
                                         "prior",       "workloads", "resume"};

void dt_works_name(const struct dt_works *works, int i, struct dt_text *out)
{
    const struct dt_job_options *job = &works->options->job;
    if (works->count < 2 && job->workloads == NULL)
        return;
    if (job->workloads != NULL)
        dt_text_add(out, "%s, workload %d: ", job->workloads, i + 1);
    else
        dt_text_add(out, "--size %d: ", job->sizes.widths[i]);
}

/* Appends a copy of the word. */
static dt_status add_word(struct dt_work *work, const char *dashes, const char *word)
{
    struct dt_text text = {0};
    DT_TRY(DT_GROW(work->words, work->word_count, 2));
    dt_text_add(&text, "%s%s", dashes, word);
    work->words[work->word_count] = dt_text_take(&text);
    if (work->words[work->word_count] == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the workloads");
    work->words[++work->word_count] = NULL;
    return DT_OK;
}

static dt_status add_field(struct dt_work *work, const char *what, const char *name,
                           const json_t *value)
{
    dt_auto_text text = {0};
    for (size_t i = 0; i < sizeof of_session / sizeof of_session[0]; i++)
        if (strcmp(of_session[i], name) == 0)
            return dt_fail(DT_EUSAGE, "%s'%s' is the same for all workloads: it is given as --%s",
                           what, name, name);
    if (name[0] == '\0' || name[strspn(name, "abcdefghijklmnopqrstuvwxyz-")] != '\0')
        return dt_fail(DT_EUSAGE, "%s'%s' is not the name of an option without its dashes", what,
                       name);
    if (!json_is_true(value) && !json_is_string(value) && !json_is_number(value))
        return dt_fail(DT_EUSAGE, "%s'%s' is neither a text, a number nor true", what, name);
    DT_TRY(add_word(work, "--", name));
    if (json_is_true(value))
        return DT_OK;
    dt_json_plain(value, &text);
    return add_word(work, "", dt_text_at(&text));
}

static dt_status add_fields(struct dt_work *work, const char *what, json_t *row)
{
    const char *name;
    json_t *value;
    work->share = 1;
    if (!json_is_object(row))
        return dt_fail(DT_EUSAGE, "%sit is not a JSON object", what);
    json_object_foreach(row, name, value)
    {
        if (strcmp(name, "share") != 0)
            DT_TRY(add_field(work, what, name, value));
        else
            work->share = json_number_value(value);
    }
    if (!(work->share > 0 && work->share <= SHARE_MOST))
        return dt_fail(DT_EUSAGE, "%s'share' is not a number above 0 and up to %g", what,
                       SHARE_MOST);
    return DT_OK;
}

/* The words of the command line, those of the row, and from "--" on those for the worker. */
static dt_status read_row(struct dt_works *works, json_t *row)
{
    const char *const *line = works->options->words.line;
    struct dt_work *work = &works->list[works->count++];
    dt_auto_text what = {0};
    dt_status status = DT_OK;
    int i = 0;
    dt_works_name(works, works->count - 1, &what);
    for (; status == DT_OK && line[i] != NULL && strcmp(line[i], "--") != 0; i++)
        status = add_word(work, "", line[i]);
    if (status == DT_OK)
        status = add_fields(work, dt_text_at(&what), row);
    for (; status == DT_OK && line[i] != NULL; i++)
        status = add_word(work, "", line[i]);
    return status;
}

static bool same_words(const struct dt_work *a, const struct dt_work *b)
{
    bool same = a->word_count == b->word_count;
    for (int i = 0; same && i < a->word_count; i++)
        same = strcmp(a->words[i], b->words[i]) == 0;
    return same;
}

static dt_status read_file(struct dt_works *works, const json_t *root)
{
    static const char *const fields[] = {"workloads", NULL};
    const char *path = works->options->job.workloads;
    json_t *rows;
    DT_TRY(dt_json_only(root, path, fields));
    DT_TRY(dt_json_array(root, path, "workloads", &rows));
    size_t count = json_array_size(rows);
    if (count < 1 || count > WORKS_MOST)
        return dt_fail(DT_EUSAGE, "%s has %zu workloads, expected 1 to %d", path, count,
                       WORKS_MOST);
    DT_TRY(DT_RESIZE(works->list, count));
    for (size_t i = 0; i < count; i++)
        works->list[i] = (struct dt_work){.share = 1};
    for (size_t i = 0; i < count; i++)
        DT_TRY(read_row(works, json_array_get(rows, i)));
    for (int i = 0; i < works->count; i++)
        for (int k = 0; k < i; k++)
            if (same_words(&works->list[i], &works->list[k]))
                return dt_fail(DT_EUSAGE, "%s: workload %d is the same as workload %d", path, i + 1,
                               k + 1);
    return DT_OK;
}

dt_status dt_works_list(const struct dt_options *options, struct dt_works *works)
{
    json_auto_t *root = NULL;
    *works = (struct dt_works){.options = options};
    if (options->job.workloads == NULL) {
        works->count = options->job.sizes.count > 0 ? options->job.sizes.count : 1;
        return DT_OK;
    }
    DT_TRY(dt_json_read(options->job.workloads, "--workloads", &root));
    dt_status status = read_file(works, root);
    if (status < 0)
        dt_works_fini(works);
    return status;
}

dt_status dt_works_options(const struct dt_works *works, int i, struct dt_options *options)
{
    const struct dt_sizes *sizes = &works->options->job.sizes;
    const struct dt_command *command;
    if (works->list != NULL) {
        const char *const *words = (const char *const *)works->list[i].words;
        DT_TRY(dt_options_parse(works->list[i].word_count, words, options, &command));
        options->words.line = works->options->words.line;
        return options->job.sizes.count <= 1
                   ? DT_OK
                   : dt_fail(DT_EUSAGE, "a workload has one size, not %d: one row for each",
                             options->job.sizes.count);
    }
    *options = *works->options;
    if (sizes->count > 0)
        options->job.sizes = (struct dt_sizes){1, {sizes->widths[i]}, {sizes->heights[i]}};
    return DT_OK;
}

double dt_works_share(const struct dt_works *works, int i)
{
    return works->list != NULL ? works->list[i].share : 1;
}

int64_t dt_works_end(const struct dt_works *works, int i, int64_t now_ns, int64_t end_ns)
{
    double rest = 0;
    for (int k = i; k < works->count; k++)
        rest += dt_works_share(works, k);
    return now_ns + (int64_t)((double)(end_ns - now_ns) * dt_works_share(works, i) / rest);
}

void dt_works_fini(struct dt_works *works)
{
    for (int i = 0; works->list != NULL && i < works->count; i++) {
        for (int k = 0; k < works->list[i].word_count; k++)
            free(works->list[i].words[k]);
        free(works->list[i].words);
    }
    free(works->list);
    *works = (struct dt_works){.options = NULL};
}

/* ---- several tuned works as one */

static const struct dt_interval stays = {1, 1};

struct dt_mix_work dt_mix_none(double share)
{
    return (struct dt_mix_work){.title = "not tuned", .part = {share, NAN, 1, stays}};
}

struct dt_mix_work dt_mix_work(const struct dt_session *session, double share)
{
    bool replaced =
        session->verdict == DT_VERDICT_FASTER || session->verdict == DT_VERDICT_DOCUMENTED;
    bool documented = replaced && dt_session_over_documented(session);
    const struct dt_result *fallback =
        dt_session_role(session, documented ? DT_ENTRANT_DOCUMENTED : DT_ENTRANT_DEFAULT);
    const struct dt_objective *objective = session->target->objective;
    struct dt_gain gain = dt_session_gain(session);
    struct dt_mix_work work = dt_mix_none(share);
    work.verdict = session->verdict;
    work.documented = documented;
    work.spent = objective->spent;
    snprintf(work.title, sizeof work.title, "%s", session->target->identity.title);
    if (fallback != NULL && fallback->samples.n > 0)
        work.part.seconds =
            dt_session_value(session, fallback) / (objective->one_batch ? fallback->batch : 1);
    if (session->verdict == DT_VERDICT_FASTER && gain.known) {
        work.part.gain = gain.ratio;
        work.part.interval = (struct dt_interval){gain.interval.low, gain.interval.high};
    }
    return work;
}

static bool any_documented(const struct dt_mix_work works[], int n)
{
    for (int i = 0; i < n; i++)
        if (works[i].documented)
            return true;
    return false;
}

/* Why the works have no common figure; NULL: they have. */
static const char *no_total(const struct dt_mix_work works[], int n)
{
    const char *spent = NULL;
    for (int i = 0; i < n; i++) {
        if (works[i].spent == NULL || !(works[i].part.seconds > 0))
            return "not all of them have a time with the default plan";
        if (spent != NULL && strcmp(spent, works[i].spent) != 0)
            return "their objectives differ: some count time, others device time";
        spent = works[i].spent;
    }
    return n > 0 ? NULL : "there are none";
}

/* DT_ENOMEM leaves NANs. */
static struct dt_mix total_mix(const struct dt_mix_work works[], int n)
{
    struct dt_mix_part *parts = calloc((size_t)n + 1, sizeof *parts);
    for (int i = 0; parts != NULL && i < n; i++)
        parts[i] = works[i].part;
    struct dt_mix mix = dt_stats_mix(parts, parts != NULL ? n : 0);
    free(parts);
    return mix;
}

static double all_shares(const struct dt_mix_work works[], int n)
{
    double all = 0;
    for (int i = 0; i < n; i++)
        all += works[i].part.share;
    return all;
}

static void add_work(const struct dt_mix_work *work, int number, double all, struct dt_text *out)
{
    const struct dt_mix_part *part = &work->part;
    double seconds = part->seconds > 0 ? part->seconds : NAN;
    dt_text_add(out, "%-9d%5.0f %%%11s%11s  ", number, 100 * part->share / all,
                dt_figure_of(seconds).text, dt_figure_of(seconds / part->gain).text);
    if (part->gain != 1)
        dt_figure_ratio(part->gain, part->interval.low, part->interval.high, out);
    else
        dt_text_add(out, "%s", dt_verdict_text(work->verdict));
    dt_text_add(out, "\n          %s\n", work->title);
}

void dt_mix_text(const struct dt_mix_work works[], int n, struct dt_text *out)
{
    const char *why = no_total(works, n);
    dt_auto_text sentence = {0};
    dt_text_add(out, "\nworkload  share    default      tuned  times as fast\n");
    for (int i = 0; i < n; i++)
        add_work(&works[i], i + 1, all_shares(works, n), out);
    if (why != NULL) {
        dt_text_add(&sentence, "The mix has no figure of its own: %s.\n", why);
    } else {
        struct dt_mix mix = total_mix(works, n);
        dt_text_add(&sentence,
                    "By these shares a step of an image takes %s of %s with the defaults%s and %s "
                    "tuned: ",
                    dt_figure_of(mix.seconds).text, works[0].spent,
                    any_documented(works, n) ? " (or documented plans, where those are better)"
                                             : "",
                    dt_figure_of(mix.tuned).text);
        dt_figure_ratio(mix.gain, mix.interval.low, mix.interval.high, &sentence);
        dt_text_add(&sentence, " times as fast.\n");
    }
    dt_columns_wrap(dt_text_at(&sentence), DT_COLUMNS_USUAL, 0, out);
}

static json_t *interval_json(const struct dt_interval *given)
{
    return json_pack("[o, o]", dt_json_number(given->low), dt_json_number(given->high));
}

json_t *dt_mix_json(const struct dt_mix_work works[], int n)
{
    const char *why = no_total(works, n);
    struct dt_mix mix = total_mix(works, why == NULL ? n : 0);
    json_t *parts = json_array();
    for (int i = 0; i < n; i++) {
        const struct dt_mix_part *part = &works[i].part;
        json_array_append_new(parts,
                              json_pack("{s:s, s:f, s:s, s:o, s:f, s:o}", "title", works[i].title,
                                        "share", part->share / all_shares(works, n), "verdict",
                                        dt_verdict_text(works[i].verdict), "default_seconds",
                                        dt_json_number(part->seconds), "gain", part->gain,
                                        "interval", interval_json(&part->interval)));
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:s?}", "workloads", parts, "default_seconds",
                     dt_json_number(why == NULL ? mix.seconds : NAN), "tuned_seconds",
                     dt_json_number(why == NULL ? mix.tuned : NAN), "gain",
                     dt_json_number(mix.gain), "interval", interval_json(&mix.interval), "reason",
                     why);
}
