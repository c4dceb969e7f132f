/* SPDX-License-Identifier: MIT */
/* The verdict and the answers that a reader looks for first, from a session or from an entry
 * alone; to add one, a function and its row. */
#include "tuner/cli/page/page_int.h"

#include "base/columns.h"
#include "base/json.h"
#include "search/bayes/importance.h"
#include "tuner/check/timeline.h"
#include "tuner/cli/report/report.h"
#include "tuner/cli/words.h"
#include "tuner/session/record/session_json.h"
#include "tuner/session/session.h"

#include <math.h>
#include <string.h>

#define MEMORY_RISK                                                                                \
    0.9 /* share of a device's, or the machine's, memory above which it is called at risk */

#define DRIFT                                                                                      \
    0.1 /* log ratio of the default's times above which the machine's drift is mentioned */

void dt_page_verdict(const struct page_view *view, struct dt_text *out)
{
    const struct dt_session *session = view->session;
    const struct dt_result *best = dt_session_best(session);
    const struct dt_result *documented = dt_session_role(session, DT_ENTRANT_DOCUMENTED);
    const struct dt_measured fallback = dt_words_fallback(session);
    dt_auto_text plan = {0}, unusable = {0};
    if (best == NULL) {
        dt_text_add(out, "No plan could be used: none was measured.");
        return;
    }
    dt_page_plan(view, &best->point, &plan);
    dt_session_unusable(session, &unusable);
    const struct dt_words_verdict what = {
        .verdict = session->verdict,
        .plan = dt_text_at(&plan),
        .is_default = true,
        .is_documented = dt_target_documented(session->target, &best->point),
        .lacks_documented =
            session->target->documented.known &&
            (documented == NULL || documented->samples.n == 0 ||
             (documented->outcome != DT_TRIAL_OK && documented->outcome != DT_TRIAL_SLOW)),
        .gain = dt_session_gain(session),
        .level = dt_page_level(session),
        .unusable = unusable.size > 0 ? dt_text_at(&unusable) : NULL,
        .fallback = &fallback};
    dt_words_verdict(&what, out);
}

static void sure_of_session(const struct page_view *view, struct dt_text *out)
{
    size_t before = out->size;
    dt_words_sure(view->session, out);
    dt_words_capital(out, before);
}

static void change_of_session(const struct page_view *view, struct dt_text *out)
{
    const struct dt_session *session = view->session;
    int failed, tried = dt_session_tried_count(session, &failed);
    dt_auto_text skipped = {0};
    dt_session_skipped(session, &skipped);
    dt_text_add(out, "%d of ", tried);
    dt_target_plans(session->target, out);
    dt_text_add(out, " %s tried", tried == 1 ? "was" : "were");
    dt_text_add(out, session->target->plans == tried ? ", so no plan of this space is left"
                                                     : "; a plan that was not tried may be faster");
    if (skipped.size > 0)
        dt_text_add(out, ". Left out: %s", dt_text_at(&skipped));
    for (int i = 0; i < session->finals.tie_count && session->verdict == DT_VERDICT_FASTER; i++) {
        dt_text_add(out, i == 0 ? ". As fast as the best in the shoot-out: " : "; ");
        dt_page_plan(view, &session->finals.ties[i], out);
    }
    dt_text_add(out,
                ". Another model, size, batch, number of devices, device or engine needs a session "
                "of its own. After a new version of driver, engine or library, run dittune check: "
                "it measures whether this plan still wins.");
}

/* Shares below 1 % keep a digit; none has an exponent. */
static void add_share(double share, struct dt_text *out)
{
    dt_text_add(out, share < 0.01 ? "%.2f %%" : "%.0f %%", 100 * share);
}

/* The trials that ended so; *first: the first of them. */
static int count_outcome(const struct page_view *view, int outcome, const struct page_row **first)
{
    int n = 0;
    for (int i = view->count; i-- > 0;)
        if ((int)view->rows[i].result->outcome == outcome) {
            *first = &view->rows[i];
            n++;
        }
    return n;
}

/* The share of a rank's limit, where one was given; of its GPU's memory, or of the machine's by
 * all ranks: ": 34 % of the limit of 60 MiB a rank", ", and at most 1012 MiB in all 2: 4 % of
 * the machine's 24 GiB" */
static void add_memory_share(const struct page_view *view, const struct dt_result *best,
                             struct dt_text *out)
{
    const struct dt_target *target = view->session->target;
    double bytes = (double)best->facts.peak_bytes, used = dt_device_memory(best).used;
    double limit = target->max_bytes > 0 ? bytes / (double)target->max_bytes : NAN;
    bool gpu = isfinite(used) || strcmp(target->hardware.unit, "core") != 0;
    int64_t gib = dt_json_integer_at(view->session->fingerprint.hard, "memory_gib");
    if (!isfinite(used) && gib > 0)
        used = bytes * (gpu ? 1 : best->ranks) / ((double)gib * (1 << 30));
    if (isfinite(limit)) {
        dt_text_add(out, ": ");
        add_share(limit, out);
        dt_text_add(out, " of the limit of %s a rank", dt_figure_bytes_of(target->max_bytes).text);
    } else if (isfinite(used)) {
        if (!gpu && best->ranks > 1)
            dt_text_add(out, ", and at most %s in all %d",
                        dt_figure_bytes_of(best->facts.peak_bytes * best->ranks).text, best->ranks);
        dt_text_add(out, ": ");
        add_share(used, out);
        if (gpu)
            dt_text_add(out, " of its GPU's memory");
        else
            dt_text_add(out, " of the machine's %s", dt_figure_bytes_of(gib << 30).text);
    }
    if (target->reserve.bytes > 0 && target->reserve.total > 0) {
        double reserved = (double)target->reserve.bytes / (double)target->reserve.total;
        used = isfinite(used) ? used + reserved : reserved;
        dt_text_add(out, ", beside the %s reserved",
                    dt_figure_bytes_of(target->reserve.bytes).text);
    }
    if (isfinite(limit) || isfinite(used))
        dt_text_add(out, ", so it is %s",
                    fmax(limit, used) > MEMORY_RISK ? "at risk" : "not at risk");
}

static void memory_of_session(const struct page_view *view, struct dt_text *out)
{
    const struct dt_result *best = dt_session_best(view->session);
    const struct page_row *first;
    int lost = count_outcome(view, DT_TRIAL_MEMORY, &first);
    int above = 0; /* plans that ran, and took more than the limit that the user gave */
    for (int i = 0; i < view->count; i++)
        above += view->rows[i].result->outcome == DT_TRIAL_MEMORY &&
                 !dt_session_lacks_memory(view->session, view->rows[i].result);
    if (best != NULL && best->facts.peak_bytes > 0) {
        dt_words_memory(best->facts.peak_bytes, best->ranks, out);
        add_memory_share(view, best, out);
        dt_text_add(out, ". ");
    }
    if (above > 0)
        dt_text_add(out, "%d other plan%s took more than that limit. ", above,
                    above == 1 ? "" : "s");
    if (lost > above)
        dt_text_add(out, "%d other plan%s did not fit into memory.", lost - above,
                    lost - above == 1 ? "" : "s");
    else if (lost == 0)
        dt_text_add(out, "No plan that was tried ran out of memory.");
}

static void image_of_session(const struct page_view *view, struct dt_text *out)
{
    if (dt_report_whole_image(view->session, out))
        return;
    if (view->session->target->image.known)
        dt_text_add(out, "Not known: no plan was measured.");
    else
        dt_text_add(out, "Not known: the session was not told how many denoising steps an image "
                         "takes (--steps N).");
}

static void cost_of_session(const struct page_view *view, struct dt_text *out)
{
    const struct dt_session *session = view->session;
    double seconds = dt_seconds_of(session->closing.elapsed_ns);
    dt_text_add(out, "%s for %d trial%s",
                seconds > 0 ? dt_figure_span_of(seconds).text : "Not known", view->count,
                view->count == 1 ? "" : "s");
    if (session->finals.sets.count > 0)
        dt_text_add(out, " and a final comparison with %d fresh start%s of the processes",
                    session->finals.sets.count, session->finals.sets.count == 1 ? "" : "s");
    dt_text_add(out, view->page->session->ended
                         ? "."
                         : "; the journal has no end: the session was cut short.");
}

static void failures_of_session(const struct page_view *view, struct dt_text *out)
{
    dt_text_add(out, view->failed == 0 ? "No trial failed" : "%d of %d trials failed", view->failed,
                view->count);
    const char *before = ": ";
    for (int outcome = DT_TRIAL_SLOW + 1; outcome < DT_TRIAL_INTERRUPTED; outcome++) {
        const struct page_row *row = NULL;
        int n = count_outcome(view, outcome, &row);
        if (n == 0)
            continue;
        dt_text_add(out, "%s%d %s, as trial %d (", before, n,
                    dt_outcome_text((enum dt_outcome)outcome), row->number);
        dt_page_plan(view, &row->result->point, out);
        dt_text_add(out, row->result->cause[0] != '\0' ? "): \"%s\"" : ")", row->result->cause);
        before = "; ";
    }
    dt_text_add(out, ". ");
    if (view->slow > 0)
        dt_text_add(out, "%d %s dropped after a few samples, being slower than the best so far. ",
                    view->slow, view->slow == 1 ? "was" : "were");
    const struct page_row *first;
    int cut = count_outcome(view, DT_TRIAL_INTERRUPTED, &first);
    if (cut > 0)
        dt_text_add(out, "%d %s interrupted.", cut, cut == 1 ? "was" : "were");
}

/* Between the trials and the final comparison, by the default plan, where it is more than a
 * trial's own scatter. */
static void add_drift(const struct page_view *view, struct dt_text *out)
{
    const struct dt_session *session = view->session;
    const struct dt_result *last = dt_session_role(session, DT_ENTRANT_DEFAULT);
    double ratio = last != NULL && dt_session_compared(session)
                       ? dt_session_value(session, last) / dt_page_default(view)
                       : NAN;
    if (!(fabs(log(ratio)) > DRIFT))
        return;
    dt_text_add(out,
                " The default plan took %.2f times as long in the final comparison as in its "
                "trial: the machine was %s then. That changes times",
                ratio, ratio > 1 ? "slower" : "faster");
    if (session->finals.sets.company != DT_ONE_ALONE)
        dt_text_add(out, ", and hardly the gain, since the plans of that comparison took turns");
    if (view->slow > 0 && ratio > 1)
        dt_text_add(
            out,
            "; %d plan%s dropped in the search, beside times that the machine did not reach "
            "again",
            view->slow, view->slow == 1 ? " was" : "s were");
    dt_text_add(out, ".");
}

static void noise_of_session(const struct page_view *view, struct dt_text *out)
{
    struct dt_noise noise = dt_session_noise(view->session);
    const struct dt_entrant *winner = dt_page_winner(view->session);
    dt_auto_text note = {0};
    if (noise.pairs == 0) {
        dt_session_noise_note(view->session, &note);
        dt_text_add(out, "Not known: %s.",
                    note.size > 0 ? dt_text_at(&note) : "nothing was compared");
        return;
    }
    dt_words_noise(noise.margin, out);
    dt_text_add(out,
                ", as a second copy of the %s plan, measured like any other, seemed to differ from "
                "the first by up to that much",
                dt_session_against_default(view->session) ? "default" : "documented");
    if (view->session->verdict == DT_VERDICT_FASTER && winner != NULL) {
        const struct dt_gain gain = dt_session_gain(view->session);
        double low = gain.interval.low - 1;
        dt_text_add(out,
                    ". The gain of the plan to use, %.1f %%, is larger; the lower end of its "
                    "interval, %.1f %%, is %s",
                    100 * (gain.ratio - 1), 100 * low, low > noise.margin ? "larger, too" : "not");
    }
    dt_text_add(out, noise.noisy ? ". A noise floor of this size means that the machine was not "
                                   "quiet; a quiet one can tell smaller gains."
                                 : ".");
    add_drift(view, out);
}

static void add_load(const struct dt_stored_load *load, struct dt_text *out)
{
    size_t before = out->size;
    dt_words_load(load, out);
    dt_words_capital(out, before);
    dt_text_add(out, ".");
}

static void load_of_session(const struct page_view *view, struct dt_text *out)
{
    struct dt_stored_load load = dt_session_load(view->session);
    add_load(&load, out);
}

static void matters_of_session(const struct page_view *view, struct dt_text *out)
{
    struct page_effect effects[DT_AXES_MAX];
    int n = dt_page_effects(view, effects), low = 0, high = 0;
    if (n == 0 || effects[0].share <= 0 || view->measured < DT_IMPORTANCE_LEAST) {
        dt_text_add(out, "%d measured plan%s too few to tell.", view->measured,
                    view->measured == 1 ? " is" : "s are");
        return;
    }
    const struct page_effect *first = &effects[0];
    for (int i = 1; i < first->count; i++) {
        low = first->median[i] < first->median[low] ? i : low;
        high = first->median[i] > first->median[high] ? i : high;
    }
    dt_text_add(out,
                "%s, which alone explains %.0f %% of the differences between %s. The median of "
                "the trials is ",
                dt_space_axis(view->session->target->space, first->axis)->name, 100 * first->share,
                view->session->search.weighed ? "all plans, by the search's model"
                                              : "the measured plans");
    for (int i = 0, at = low; i < 2; i++, at = high) {
        dt_figure_value(view->session->target->objective->metric, first->median[at], NAN, NAN, out);
        dt_text_add(out, " with ");
        dt_page_axis_value(view, first->axis, first->used[at], out);
        dt_text_add(out, i == 0 ? " and " : ".");
    }
}

/* From the final comparison: times of the role's plan over those of the default; NAN: none. */
static double ratio_of(const struct dt_session *session, enum dt_entrant_role role)
{
    const struct dt_entrant *entrant = dt_session_entrant(session, role);
    if (!dt_session_against_default(session) || entrant == NULL || entrant->ratio.pairs == 0)
        return NAN;
    return role == DT_ENTRANT_DEFAULT ? 1 : entrant->ratio.ratio;
}

static void one_rank_of_session(const struct page_view *view, struct dt_text *out)
{
    const struct dt_session *session = view->session;
    const struct dt_result *best = dt_session_best(session),
                           *one = dt_session_role(session, DT_ENTRANT_BASELINE);
    const struct dt_entrant *winner = dt_page_winner(session);
    bool is_default = dt_point_equal(session->target->space, &session->target->baseline,
                                     &session->target->fallback);
    double paired = ratio_of(session, is_default ? DT_ENTRANT_DEFAULT : DT_ENTRANT_BASELINE) /
                    (winner != NULL && winner->ratio.pairs > 0 ? winner->ratio.ratio : NAN);
    double slow = one != NULL && one->samples.n > 0 ? dt_session_value(session, one) : NAN,
           fast = best != NULL ? dt_session_value(session, best) : NAN;
    dt_auto_text plan = {0};
    int ranks = dt_target_ranks(session->target, &session->target->baseline);
    dt_page_plan(view, &session->target->baseline, &plan);
    if (!isfinite(slow / fast))
        dt_text_add(out, "The plan of %s, %s, was not measured.",
                    ranks > 1 ? "the fewest ranks" : "one rank", dt_text_at(&plan));
    else if (dt_point_equal(session->target->space, &one->point, &best->point))
        dt_text_add(out, "The plan to use is that of %s.",
                    ranks > 1 ? "the fewest ranks" : "one rank");
    else
        dt_text_add(out, "The baseline, %s%s, takes %.3f times as long as the plan to use%s.",
                    dt_text_at(&plan), is_default ? " (here also the default)" : "",
                    isfinite(paired) ? paired : slow / fast,
                    isfinite(paired) ? ", by the pairs of the final comparison"
                    : session->finals.entrant_count > 0
                        ? ", by their medians in the final comparison"
                        : " in their trials");
}

static void elsewhere_of_session(const struct page_view *view, struct dt_text *out)
{
    const json_t *hard = view->session->fingerprint.hard;
    const char *device = json_string_value(json_object_get(hard, "device"));
    dt_text_add(out, "On a machine of the same make (");
    dt_target_units(view->session->target, view->session->target->hardware.cores, out);
    if (device != NULL)
        dt_text_add(out, " of %s", device);
    dt_text_add(out, ") the plan can be used as it is. On other hardware it is only a first guess: "
                     "run dittune tune there.");
}

static void output_of_session(const struct page_view *view, struct dt_text *out)
{
    const struct dt_result *best = dt_session_best(view->session);
    const struct dt_result *trial =
        best != NULL ? dt_session_trial(view->session, &best->point) : NULL;
    double error = best != NULL ? best->facts.verified_error : NAN;
    if (!isfinite(error) && trial != NULL)
        error = trial->facts.verified_error;
    const struct dt_target *target = view->session->target;
    const char *dtype = dt_target_reference(target);
    int ranks = dt_target_ranks(target, &target->baseline);
    if (error == 0)
        dt_text_add(out, "Bit for bit that of the reference (");
    else if (isfinite(error))
        dt_text_add(out, "Within a relative error of %.1g of the reference (", error);
    else
        dt_text_add(out, "It was not compared with a reference.");
    if (isfinite(error) && ranks > 1)
        dt_text_add(out, "%d ranks, the fewest", ranks);
    else if (isfinite(error))
        dt_text_add(out, "one rank");
    if (isfinite(error))
        dt_text_add(out, "%s%s).", dtype[0] != '\0' ? ", in " : "", dtype);
    dt_auto_text blind = {0};
    dt_target_blind(target, &blind);
    if (blind.size > 0)
        dt_text_add(out, " But %s.", dt_text_at(&blind));
}

/* ---- of an entry alone */

static void verdict_of_entry(const struct dt_stored_entry *entry, struct dt_text *out)
{
    dt_auto_text plan = {0};
    dt_plan_words(entry->plan, &plan);
    const struct dt_words_verdict what = {
        .verdict = dt_verdict_of(entry->verdict),
        .plan = dt_text_at(&plan),
        .is_default = !entry->fallback.known || json_equal(entry->fallback.plan, entry->plan),
        .is_documented = entry->documented.known && json_equal(entry->documented.plan, entry->plan),
        .lacks_documented = entry->documentation.known && !entry->documented.known,
        .gain = entry->gain,
        .level = NAN,
        .fallback = &entry->fallback};
    dt_words_verdict(&what, out);
}

/* Parameters of a plan that differ from the stored one; all of them when none does. */
static void add_other_plan(const struct dt_page *page, const json_t *plan, struct dt_text *out)
{
    json_t *differs = json_object(), *value;
    const char *name;
    json_object_foreach((json_t *)plan, name, value)
    {
        if (!json_equal(value, json_object_get(page->entry.fields.plan, name)))
            json_object_set(differs, name, value);
    }
    dt_plan_words(json_object_size(differs) > 0 ? differs : plan, out);
    json_decref(differs);
}

static void sure_of_entry(const struct dt_page *page, struct dt_text *out)
{
    dt_words_sure_stored(&page->entry.fields, out);
}

/* The time of a plan, or its metric that is maximised. */
static void add_time(const struct dt_page *page, const struct dt_measured *measured, bool interval,
                     struct dt_text *out)
{
    const struct dt_span_ns *span = &measured->interval_ns;
    interval = interval && span->known;
    dt_figure_value(dt_figure_metric(dt_json_text_at(page->entry.fields.key, "objective")),
                    dt_seconds_of(measured->median_ns), interval ? dt_seconds_of(span->low) : NAN,
                    interval ? dt_seconds_of(span->high) : NAN, out);
}

static void time_of_entry(const struct dt_page *page, struct dt_text *out)
{
    const struct dt_stored_entry *entry = &page->entry.fields;
    const char *unit = entry->image.known && entry->image.unit != NULL ? entry->image.unit : "step";
    if (!entry->figures.known) {
        dt_text_add(out, "Not known.");
        return;
    }
    add_time(page, &entry->figures, true, out);
    if (dt_figure_metric(dt_json_text_at(entry->key, "objective")) == NULL)
        dt_text_add(out, " a%s %s", strcmp(unit, "image") == 0 ? "n" : "", unit);
    if (entry->fallback.known) {
        dt_text_add(out, "; the default plan has ");
        add_time(page, &entry->fallback, true, out);
    }
    dt_text_add(out, ".");
}

/* Up to three plans of the front that need less memory than the stored one. */
static void add_smaller(const struct dt_page *page, struct dt_text *out)
{
    const struct dt_stored_entry *entry = &page->entry.fields;
    int n = 0;
    for (int i = 0; i < entry->pareto_count && n < 3; i++) {
        const struct dt_measured *plan = &entry->pareto[i];
        if (plan->peak_bytes >= entry->figures.peak_bytes)
            continue;
        dt_text_add(out, n++ == 0 ? " With less: " : "; ");
        add_other_plan(page, plan->plan, out);
        dt_text_add(out, " with %s, ", dt_figure_bytes_of(plan->peak_bytes).text);
        add_time(page, plan, false, out);
    }
    dt_text_add(out, n > 0 ? "." : "");
}

static void memory_of_entry(const struct dt_page *page, struct dt_text *out)
{
    const struct dt_stored_entry *entry = &page->entry.fields;
    if (!entry->figures.known || entry->figures.peak_bytes <= 0) {
        dt_text_add(out, "Not known.");
        return;
    }
    dt_words_memory(entry->figures.peak_bytes, 2, out);
    dt_text_add(out, ".");
    add_smaller(page, out);
}

/* An update keeps the noise of the session before. */
static void noise_of_entry(const struct dt_page *page, struct dt_text *out)
{
    const struct dt_noise_floor *noise = &page->entry.fields.noise;
    if (!noise->known) {
        dt_text_add(out, "Not known.");
        return;
    }
    dt_words_noise(noise->margin, out);
    dt_text_add(out, page->origin == DT_FROM_UPDATE ? "; measured by the session before the check."
                                                    : ".");
}

static void tried_of_entry(const struct dt_page *page, struct dt_text *out)
{
    const struct dt_stored_entry *entry = &page->entry.fields;
    dt_words_tried(entry->tried, entry->plans, entry->skipped, out);
    dt_text_add(out, ".");
}

static void load_of_entry(const struct dt_page *page, struct dt_text *out)
{
    add_load(&page->entry.fields.load, out);
}

static void rivals_of_entry(const struct dt_page *page, struct dt_text *out)
{
    const struct dt_stored_entry *entry = &page->entry.fields;
    int n = 0;
    for (int i = 0; i < entry->top_count; i++) {
        const struct dt_measured *plan = &entry->top[i];
        if (json_equal(plan->plan, entry->plan))
            continue;
        dt_text_add(out, "%s", n++ == 0 ? "" : "; ");
        add_other_plan(page, plan->plan, out);
        dt_text_add(out, ", ");
        add_time(page, plan, false, out);
        if (plan->from != NULL)
            dt_text_add(out, " (%s)", plan->from);
    }
    dt_text_add(out, n > 0 ? "." : "None is stored.");
}

static void when_of_entry(const struct dt_page *page, struct dt_text *out)
{
    const struct dt_stored_entry *entry = &page->entry.fields;
    const struct dt_stored_info *info = &entry->fingerprint.info;
    dt_words_when(info->t_wall_ns, out);
    dt_text_add(out, ", by %s %s",
                page->origin == DT_FROM_UPDATE ? "dittune check --update, journal" : "session",
                entry->journal != NULL ? entry->journal : "without a journal");
    if (info->checked_ns != 0) {
        dt_text_add(out, "; found as good by a check on ");
        dt_words_when(info->checked_ns, out);
    }
    dt_text_add(out, ".");
}

static void where_of_entry(const struct dt_page *page, struct dt_text *out)
{
    const struct dt_fingerprint *print = &page->entry.fields.fingerprint;
    const char *device = json_string_value(json_object_get(print->hard, "device"));
    const char *host = print->info.host;
    dt_text_add(out, "%s%s%s.", device != NULL ? device : "An unknown device",
                host != NULL ? ", host " : "", host != NULL ? host : "");
}

void dt_page_cause(const struct dt_page *page, struct dt_text *out)
{
    const char *journal = page->entry.fields.journal;
    if (page->origin == DT_FROM_UPDATE)
        dt_text_add(out,
                    "the plan was stored by `dittune check --update`, journal %s, which "
                    "compared a few plans and made no trials",
                    journal);
    else if (journal != NULL)
        dt_text_add(out, "the journal of its session, %s, is not in %s/runs", journal,
                    page->directory);
    else
        dt_text_add(out, "the entry names no journal");
}

static void trials_of_entry(const struct dt_page *page, struct dt_text *out)
{
    dt_text_add(out, "There are none to show: ");
    dt_page_cause(page, out);
    dt_text_add(out, ". These answers are from the entry alone.");
    if (page->before.size > 0)
        dt_text_add(out, " The session before that: %s", dt_text_at(&page->before));
}

/* ---- all of them */

static void when_of_session(const struct page_view *view, struct dt_text *out)
{
    dt_words_when(view->page->session->began_wall_ns, out);
    dt_text_add(out, ", by session %s.", view->page->journal);
}

static void documented_of_session(const struct page_view *view, struct dt_text *out)
{
    dt_words_documented(view->session, out);
}

static void documented_of_entry(const struct dt_page *page, struct dt_text *out)
{
    dt_words_documented_stored(&page->entry.fields, out);
}

/* Answers in their order; NULL: a session, or an entry alone, has none. of_closing: of what both
 * have of the session's end. */
static const struct {
    const char *name;
    void (*of_session)(const struct page_view *view, struct dt_text *out);
    void (*of_entry)(const struct dt_page *page, struct dt_text *out);
    void (*of_closing)(const struct dt_closing *closing, struct dt_text *out);
} facts[] = {{"How sure", sure_of_session, sure_of_entry, NULL},
             {"Time", NULL, time_of_entry, NULL},
             {"Documented", documented_of_session, documented_of_entry, NULL},
             {"What would change it", change_of_session, NULL, NULL},
             {"Memory", memory_of_session, memory_of_entry, NULL},
             {"A whole image", image_of_session, NULL, NULL},
             {"Output", output_of_session, NULL, NULL},
             {"Time it took", cost_of_session, NULL, NULL},
             {"Failures", failures_of_session, NULL, NULL},
             {"Noise floor", noise_of_session, noise_of_entry, NULL},
             {"Load by others", load_of_session, load_of_entry, NULL},
             {"One rank", one_rank_of_session, NULL, NULL},
             {"What matters most", matters_of_session, NULL, NULL},
             {"On another machine", elsewhere_of_session, NULL, NULL},
             {"Tried", NULL, tried_of_entry, NULL},
             {"Others", NULL, rivals_of_entry, NULL},
             {"Where", NULL, where_of_entry, NULL},
             {"Trials", NULL, trials_of_entry, NULL},
             {"When", when_of_session, when_of_entry, NULL}};
enum { FACTS = sizeof facts / sizeof facts[0] };

/* An empty *out: there is no such answer. */
static void fact_add(int i, const struct page_view *view, const struct dt_page *page,
                     struct dt_text *out)
{
    dt_text_clear(out);
    if (facts[i].of_closing != NULL)
        facts[i].of_closing(view != NULL ? &view->session->closing : &page->entry.fields.closing,
                            out);
    else if (view != NULL && facts[i].of_session != NULL)
        facts[i].of_session(view, out);
    else if (view == NULL && facts[i].of_entry != NULL)
        facts[i].of_entry(page, out);
    while (out->size > 0 && strchr(" \n", out->bytes[out->size - 1]) != NULL)
        out->bytes[--out->size] = '\0';
}

void dt_page_fact(const struct page_view *view, const char *name, struct dt_text *out)
{
    int i = 0;
    while (i < FACTS && strcmp(facts[i].name, name) != 0)
        i++;
    if (i < FACTS)
        fact_add(i, view, NULL, out);
}

/* All but the last, which the page has in a line of its own. */
void dt_page_facts(const struct page_view *view, struct page_pen *pen)
{
    dt_auto_text text = {0};
    dt_pen_table(pen, "", "In short", "question|answer");
    for (int i = 0; i < FACTS - 1; i++) {
        fact_add(i, view, NULL, &text);
        if (text.size == 0)
            continue;
        dt_pen_cell(pen, "%s", facts[i].name);
        dt_pen_cell(pen, "%s", dt_text_at(&text));
    }
    dt_pen_end(pen);
}

static json_t *answers_of(const struct page_view *view, const struct dt_page *page,
                          struct dt_text *out)
{
    dt_auto_text text = {0}, line = {0};
    json_t *answers = json_object();
    for (int i = 0; i < FACTS; i++) {
        fact_add(i, view, page, &text);
        if (text.size == 0)
            continue;
        dt_text_clear(&line);
        dt_text_add(&line, "%s: %s\n", facts[i].name, dt_text_at(&text));
        dt_columns_wrap(dt_text_at(&line), DT_COLUMNS_USUAL, 2, out);
        json_object_set_new(answers, facts[i].name, json_string(dt_text_at(&text)));
    }
    out->failed = out->failed || text.failed || line.failed;
    return answers;
}

json_t *dt_page_why(const struct dt_page *page, struct dt_text *out)
{
    static const char *const origins[] = {"session", "update", "entry"};
    /* fields of the session's or the entry's own object, which the answers are about */
    static const char *const fields[] = {"verdict", "best",  "default",
                                         "gain",    "noise", "fingerprint"};
    const struct dt_session *session = page->session;
    struct page_view view;
    dt_auto_text text = {0};
    if (session != NULL && !dt_page_view(page, "", &view)) {
        out->failed = true;
        return NULL;
    }
    if (session != NULL)
        dt_page_verdict(&view, &text);
    else
        verdict_of_entry(&page->entry.fields, &text);
    const char *title = session != NULL ? session->target->identity.title : page->entry.title;
    const char *later = page->later.size > 0 ? dt_text_at(&page->later) : NULL;
    const char *journal = session != NULL                  ? page->journal
                          : page->origin != DT_FROM_UPDATE ? page->entry.fields.journal
                                                           : NULL;
    json_t *object = json_pack("{s:s?, s:s?, s:s, s:s, s:s, s:s?}", "session", journal, "entry",
                               page->entry.json != NULL ? page->entry.hex : NULL, "from",
                               origins[session != NULL ? DT_FROM_SESSION : page->origin], "title",
                               title, "sentence", dt_text_at(&text), "later", later);
    dt_text_add(out, "%s\n", title);
    dt_text_add(&text, "%s%s\n\n", later != NULL ? " " : "", later != NULL ? later : "");
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, 0, out);
    json_object_set_new(object, "answers", answers_of(session != NULL ? &view : NULL, page, out));
    json_auto_t *from = session != NULL ? dt_session_json(session) : json_incref(page->entry.json);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (json_object_get(from, fields[i]) != NULL)
            json_object_set(object, fields[i], json_object_get(from, fields[i]));
    if (session == NULL)
        json_object_set(object, "stored", page->entry.json);
    else
        dt_page_view_fini(&view);
    out->failed = out->failed || text.failed || object == NULL;
    return object;
}
