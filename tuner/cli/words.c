/* SPDX-License-Identifier: MIT */
#include "tuner/cli/words.h"

#include "base/clock.h"
#include "base/figures.h"
#include "tuner/check/timeline.h"

#include <math.h>
#include <string.h>

#define WIDE                                                                                       \
    2 /* times the lower end: from there on an interval does not tell how much faster a plan is */

const char *dt_words_role(enum dt_verdict verdict)
{
    bool found = verdict == DT_VERDICT_FASTER || verdict == DT_VERDICT_DOCUMENTED ||
                 verdict == DT_VERDICT_UNOPPOSED;
    return found ? "best" : "kept";
}

static void add_wide(const struct dt_gain *gain, struct dt_text *out)
{
    double low = gain->interval.low, high = gain->interval.high;
    if (low > 0 && !(high <= WIDE * low))
        dt_text_add(out, " The interval is too wide to tell how much faster a plan is: a quieter "
                         "machine, and more sets (a larger --budget; 16 sets at most), narrow it.");
}

/* The plan that a gain is told over: "default", "documented". */
static const char *gain_over(const struct dt_gain *gain)
{
    return gain->over != NULL ? gain->over : dt_entrant_role_text(DT_ENTRANT_DEFAULT);
}

static void add_interval(const struct dt_words_verdict *what, struct dt_text *out)
{
    if (!isnan(what->level))
        dt_text_add(out, "%.0f %% ", 100 * what->level);
    dt_text_add(out, "interval ");
    dt_figure_range(what->gain.interval.low, what->gain.interval.high, out);
    dt_text_add(out, ")");
}

/* "ran 1.061 to 1.348 times as fast as", "ran at least 1.061 times as fast as", "ran faster or
 * slower, not decided by 4 fresh starts, than" */
static void add_times(const char *ran, const struct dt_gain *gain, struct dt_text *out)
{
    double low = gain->interval.low, high = gain->interval.high;
    dt_text_add(out, "%s ", ran);
    if (!dt_figure_tells(low, high) && low < 1 && high > 1) {
        dt_text_add(out, "faster or slower, not decided by %d fresh starts, than", gain->sets);
        return;
    }
    dt_figure_range(low, high, out);
    dt_text_add(out, " times as fast as");
}

static void add_speed(const struct dt_words_verdict *what, struct dt_text *out)
{
    const struct dt_gain *gain = &what->gain;
    if (!gain->known)
        return;
    dt_text_add(out, ": %.3f times as fast as the %s plan (", gain->ratio, gain_over(gain));
    add_interval(what, out);
}

struct dt_measured dt_words_fallback(const struct dt_session *session)
{
    const struct dt_result *known = dt_session_role(session, DT_ENTRANT_DEFAULT);
    struct dt_measured figures = dt_measured_of(known, session->target);
    json_decref(figures.plan);
    json_decref(figures.warnings);
    figures.plan = figures.warnings = NULL;
    return figures;
}

void dt_words_default(const struct dt_measured *fallback, struct dt_text *out)
{
    if (fallback == NULL || fallback->rule == NULL)
        return;
    dt_text_add(out,
                "The default plan breaks a rule of its space (%s): it was measured as it is, and "
                "its output ",
                fallback->rule);
    if (isnan(fallback->error))
        dt_text_add(out, "was not compared with the reference.");
    else
        dt_text_add(out, "differs from the reference by %.2g.", fallback->error);
}

/* People are spared a session: what the documentation says is enough. */
static void verdict_documented(const struct dt_words_verdict *what, struct dt_text *out)
{
    bool itself = !what->gain.known || what->gain.interval.low > 1;
    dt_text_add(out, "Use %s: the documented plan is enough here. It ", what->plan);
    if (!what->gain.known)
        dt_text_add(out, "is used since the default plan cannot be%s%s",
                    what->unusable != NULL ? ", as " : "",
                    what->unusable != NULL ? what->unusable : "");
    else if (itself)
        dt_text_add(out, "is");
    else
        dt_text_add(out, "was not itself shown to be faster than the default: it ran");
    if (what->gain.known) {
        dt_text_add(out, " %.3f times as fast as the default plan (", what->gain.ratio);
        add_interval(what, out);
    }
    dt_text_add(out, itself ? ", and no other plan was shown to be faster."
                            : ". The best other plan was shown to be faster than the default, and "
                              "not to be faster than the documented plan.");
}

void dt_words_verdict(const struct dt_words_verdict *what, struct dt_text *out)
{
    switch (what->verdict) {
    case DT_VERDICT_FASTER:
        dt_text_add(out, "Use %s", what->plan);
        add_speed(what, out);
        dt_text_add(out, ".");
        if (what->lacks_documented)
            dt_text_add(out, " That is no gain over the documented plan, which failed or was not "
                             "measured here.");
        if (what->gain.known)
            add_wide(&what->gain, out);
        break;
    case DT_VERDICT_DOCUMENTED:
        verdict_documented(what, out);
        break;
    case DT_VERDICT_TIE:
    case DT_VERDICT_DEFAULT:
        if (what->is_default)
            dt_text_add(out, "Keep the default plan, %s%s: no other plan was shown to be faster.",
                        what->plan,
                        what->is_documented ? ", which is the documented plan: it is enough here"
                                            : "");
        else
            dt_text_add(out, "Keep %s: it was not shown to differ from the default plan.",
                        what->plan);
        break;
    case DT_VERDICT_UNOPPOSED:
        dt_text_add(out, "Use %s: the default plan cannot be used%s%s.", what->plan,
                    what->unusable != NULL ? ", as " : "",
                    what->unusable != NULL ? what->unusable : "");
        break;
    case DT_VERDICT_PROVISIONAL:
    case DT_VERDICT_INCONCLUSIVE:
    case DT_VERDICT_NONE:
    case DT_VERDICTS:
        dt_text_add(out, "Not decided yet: %s is kept for now, and another session may replace it.",
                    what->plan);
    }
    if (what->fallback != NULL && what->fallback->rule != NULL) {
        dt_text_add(out, " ");
        dt_words_default(what->fallback, out);
    }
}

void dt_words_capital(struct dt_text *text, size_t at)
{
    if (at < text->size && text->bytes[at] >= 'a' && text->bytes[at] <= 'z')
        text->bytes[at] = (char)(text->bytes[at] - 'a' + 'A');
}

/* ---- how sure */

/* "28 pairs from 7 fresh starts of the processes" */
static void add_pairs(int pairs, int sets, struct dt_text *out)
{
    dt_text_add(out, "%d pair%s from %d fresh start%s of the processes", pairs,
                pairs == 1 ? "" : "s", sets, sets == 1 ? "" : "s");
}

static void sure_faster(const struct dt_gain *gain, struct dt_text *out)
{
    add_pairs(gain->pairs, gain->sets, out);
    add_times(" say the best plan is", gain, out);
    dt_text_add(out, " the %s%s%s.", gain_over(gain), gain->over != NULL ? " plan" : "",
                gain->sets > 0 ? ", also in the next start" : "");
    add_wide(gain, out);
}

static void sure_tie(const struct dt_session *session, const struct dt_entrant *candidate,
                     struct dt_text *out)
{
    const struct dt_gain gain = dt_gain_of(&candidate->ratio);
    dt_text_add(out, "a tie. The %s",
                candidate->role == DT_ENTRANT_DOCUMENTED ? "documented plan" : "best candidate");
    add_times(" ran", &gain, out);
    dt_text_add(out, " the default in ");
    add_pairs(gain.pairs, gain.sets, out);
    if (dt_entrant_faster(candidate))
        dt_text_add(out, ", within the noise floor of %s: the default stays.",
                    dt_figure_percent(dt_session_noise(session).margin).text);
    else
        dt_text_add(out, ", which includes 1: the default stays.");
    add_wide(&gain, out);
}

/* The documented plan is enough. */
static void sure_documented(const struct dt_session *session, const struct dt_entrant *candidate,
                            struct dt_text *out)
{
    const struct dt_session_finals *finals = &session->finals;
    const struct dt_gain gain = dt_session_gain(session);
    if (gain.known) {
        add_pairs(gain.pairs, gain.sets, out);
        add_times(" say the documented plan is", &gain, out);
        dt_text_add(out, " the default%s", gain.interval.low > 1 ? "" : ", which includes 1");
    } else
        dt_text_add(out, "the documented plan can be used, and the default cannot");
    if (candidate == NULL) {
        dt_text_add(out, ". No other plan came into question.");
        return;
    }
    const struct dt_ratio ratio = dt_session_ratio(session, (int)(candidate - finals->entrants));
    const struct dt_gain other = dt_gain_of(&ratio);
    if (candidate->out || !other.known) {
        dt_text_add(out, ". The best other plan failed in the final comparison (%s).",
                    dt_outcome_text(candidate->result.outcome));
        return;
    }
    add_times(". The best other plan ran", &other, out);
    dt_text_add(out, " the documented one%s: the documented plan is enough here.",
                other.interval.low > 1 ? ", within the noise floor" : "");
    add_wide(&other, out);
}

/* Nothing is decided; how many sets would decide, if the ratio seen is the true one. */
static void sure_not(const struct dt_session *session, const struct dt_entrant *candidate,
                     struct dt_text *out)
{
    const struct dt_result *best = dt_session_best(session),
                           *known = dt_session_role(session, DT_ENTRANT_DEFAULT);
    dt_text_add(out, "not yet. ");
    size_t before = out->size;
    if (best == NULL || best->outcome == DT_TRIAL_LIMIT) {
        dt_text_add(out, best == NULL ? "No plan was measured."
                                      : "No plan keeps each limit, so none is stored.");
        return;
    }
    dt_session_undecided(session, out);
    dt_words_capital(out, before);
    dt_text_add(out, ", so the %s plan is kept as provisional",
                known == NULL || known->samples.n > 0 ? "default" : "best measured");
    dt_session_need(session, "; ", out);
    dt_text_add(out, ".");
    if (dt_session_uncompared(session) != NULL)
        dt_text_add(out, " The best trial was not compared with it.");
    if (session->verdict != DT_VERDICT_INCONCLUSIVE || candidate == NULL ||
        candidate->ratio.sets < 2)
        return;
    const struct dt_ratio *ratio = &candidate->ratio;
    int needed = dt_stats_sets_needed(log(ratio->ratio), ratio->spread);
    dt_text_add(out, " The best candidate ran %.3f times as fast as the default in them",
                1 / ratio->ratio);
    if (needed > 0)
        dt_text_add(out, "; if that is its true speed, about %d sets decide.", needed);
    else
        dt_text_add(out, ", a difference that %d sets would not show.", DT_SETS_USUAL);
}

/* The default plan is no choice: the fastest of the others was taken. It may have been compared
 * with the default all the same. */
static void sure_unopposed(const struct dt_session *session, struct dt_text *out)
{
    struct dt_gain gain = dt_session_gain(session);
    dt_auto_text why = {0};
    dt_session_unusable(session, &why);
    dt_text_add(out, "the default plan cannot be used, as %s; the best other plan is stored",
                why.size > 0 ? dt_text_at(&why) : "it breaks a limit");
    if (gain.known) {
        add_times(", which ran", &gain, out);
        dt_text_add(out, " the default in %d pairs.", gain.pairs);
    } else
        dt_text_add(out, ". There was nothing to compare it with, and its time is optimistic: the "
                         "same samples chose it.");
}

/* Why none of the others challenged the default: what their trials said. */
static void sure_no_other(const struct dt_session *session, struct dt_text *out)
{
    int slower = 0, failed = 0, limited = 0;
    for (int i = 0; i < session->count; i++) {
        const struct dt_result *trial = &session->trials[i];
        if (!dt_session_counts(session, i) || trial->outcome == DT_TRIAL_INTERRUPTED ||
            dt_point_equal(session->target->space, &trial->point, &session->target->fallback))
            continue;
        slower += trial->outcome == DT_TRIAL_SLOW;
        bool limit = trial->outcome == DT_TRIAL_LIMIT;
        limited += limit || (trial->outcome == DT_TRIAL_OK && !dt_session_eligible(session, trial));
        failed += !limit && trial->outcome != DT_TRIAL_OK && trial->outcome != DT_TRIAL_SLOW;
    }
    dt_text_add(out,
                "no other plan came into question: of the others that were tried %d %s dropped as "
                "slower, %d failed and %d broke the limit: the default stays.",
                slower, slower == 1 ? "was" : "were", failed, limited);
}

/* No other plan was faster. */
static void sure_default(const struct dt_session *session, const struct dt_entrant *candidate,
                         struct dt_text *out)
{
    const struct dt_entrant *failed = NULL;
    for (int i = session->finals.entrant_count - 1; i >= 0; i--)
        if (session->finals.entrants[i].role == DT_ENTRANT_CANDIDATE &&
            session->finals.entrants[i].out)
            failed = &session->finals.entrants[i];
    if (candidate != NULL && isfinite(candidate->ratio.interval.high)) {
        const struct dt_gain gain = dt_gain_of(&candidate->ratio);
        add_times("the best of the other plans tried ran", &gain, out);
        dt_text_add(out, " the default in %d pairs: the default stays.", gain.pairs);
        if (failed == NULL)
            add_wide(&gain, out);
    } else if (failed != NULL) {
        dt_text_add(out,
                    "the best of the other plans tried failed in the final comparison (%s): the "
                    "default stays.",
                    dt_outcome_text(failed->result.outcome));
    } else {
        sure_no_other(session, out);
    }
}

void dt_words_sure(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_entrant *candidate = dt_session_candidate(session),
                            *documented = dt_session_entrant(session, DT_ENTRANT_DOCUMENTED);
    if (candidate == NULL && documented != NULL && documented->role == DT_ENTRANT_DOCUMENTED &&
        session->verdict != DT_VERDICT_DOCUMENTED)
        candidate = documented;
    if (session->verdict == DT_VERDICT_FASTER && session->finals.best >= 0) {
        const struct dt_gain gain = dt_session_gain(session);
        sure_faster(&gain, out);
    } else if (session->verdict == DT_VERDICT_DOCUMENTED) {
        sure_documented(session, candidate, out);
    } else if (session->verdict == DT_VERDICT_TIE && candidate != NULL) {
        sure_tie(session, candidate, out);
    } else if (session->verdict == DT_VERDICT_DEFAULT) {
        sure_default(session, candidate, out);
    } else if (session->verdict == DT_VERDICT_UNOPPOSED) {
        sure_unopposed(session, out);
    } else {
        sure_not(session, candidate, out);
    }
}

void dt_words_sure_stored(const struct dt_stored_entry *entry, struct dt_text *out)
{
    const struct dt_gain *gain = &entry->gain;
    if (!gain->known)
        dt_text_add(out, "The entry has no comparison of the plan with the default.");
    else if (dt_verdict_of(entry->verdict) == DT_VERDICT_FASTER ||
             dt_verdict_of(entry->verdict) == DT_VERDICT_DOCUMENTED)
        sure_faster(gain, out);
    else
        dt_text_add(out, "The plan was compared with the default in %d pairs, verdict: %s.",
                    gain->pairs, entry->verdict);
}

/* ---- the documented plan */

/* "The documented plan is ulysses=8 (SGLang's cookbook, 2026-08-27: give all
 * devices to ulysses)" */
static void add_documentation(const struct dt_documentation *documentation, const char *plan,
                              struct dt_text *out)
{
    dt_text_add(out, "The documented plan is %s (%s%s%s%s%s)", plan,
                documentation->source != NULL ? documentation->source : "",
                documentation->date != NULL ? ", " : "",
                documentation->date != NULL ? documentation->date : "",
                documentation->says != NULL ? ": " : "",
                documentation->says != NULL ? documentation->says : "");
}

void dt_words_documented(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_documented *documented = &session->target->documented;
    const struct dt_entrant *entrant = dt_session_entrant(session, DT_ENTRANT_DOCUMENTED);
    const struct dt_result *result = dt_session_role(session, DT_ENTRANT_DOCUMENTED);
    dt_auto_text plan = {0};
    if (!documented->known)
        return;
    const struct dt_documentation documentation = {
        .says = documented->says[0] != '\0' ? documented->says : NULL,
        .source = documented->source[0] != '\0' ? documented->source : NULL,
        .date = documented->date[0] != '\0' ? documented->date : NULL};
    dt_point_short(session->target->space, &documented->point, &plan);
    add_documentation(&documentation, dt_text_at(&plan), out);
    const struct dt_gain gain = dt_gain_of(entrant != NULL ? &entrant->ratio : NULL);
    if (dt_point_equal(session->target->space, &documented->point, &session->target->fallback))
        dt_text_add(out, ", which is the default.");
    else if (result == NULL)
        dt_text_add(out, "; it was not measured.");
    else if (result->outcome != DT_TRIAL_OK)
        dt_text_add(out, "; it failed (%s%s%s).", dt_outcome_text(result->outcome),
                    result->cause[0] != '\0' ? ": " : "", result->cause);
    else if (gain.known && dt_session_against_default(session)) {
        dt_text_add(out, "; it ran ");
        dt_figure_ratio(gain.ratio, gain.interval.low, gain.interval.high, out);
        dt_text_add(out, " times as fast as the default.");
    } else
        dt_text_add(out, "; it was measured.");
}

void dt_words_documented_stored(const struct dt_stored_entry *entry, struct dt_text *out)
{
    dt_auto_text plan = {0};
    if (!entry->documentation.known)
        return;
    if (entry->documented.known)
        dt_plan_words(entry->documented.plan, &plan);
    add_documentation(&entry->documentation,
                      entry->documented.known ? dt_text_at(&plan) : "not known", out);
    if (!entry->documented.known)
        dt_text_add(out, "; it failed, or was not measured.");
    else if (entry->fallback.known && json_equal(entry->documented.plan, entry->fallback.plan))
        dt_text_add(out, ", which is the default.");
    else
        dt_text_add(out, "; it took %s.",
                    dt_figure_of(dt_seconds_of(entry->documented.median_ns)).text);
}

/* ---- figures in words */

void dt_words_noise(double margin, struct dt_text *out)
{
    if (margin > DT_NOISE_LOST)
        dt_text_add(out, "more than a factor of two: smaller differences count as ties");
    else
        dt_text_add(out, "%s: differences below that count as ties",
                    dt_figure_percent(margin).text);
}

void dt_words_memory(int64_t bytes, int ranks, struct dt_text *out)
{
    dt_text_add(out, "The plan needs %s", dt_figure_bytes_of(bytes).text);
    dt_text_add(out, ranks > 1 ? " in its largest rank" : "");
}

void dt_words_when(int64_t t_wall_ns, struct dt_text *out)
{
    double days = (double)(dt_clock_wall_ns() - t_wall_ns) / (86400.0 * (double)DT_NS_PER_SECOND);
    if (t_wall_ns == 0) {
        dt_text_add(out, "Not known");
        return;
    }
    dt_text_add(out, "%s UTC, ", dt_figure_minute(t_wall_ns).text);
    if (days < 1)
        dt_text_add(out, days < 0 ? "in the future" : "less than a day ago");
    else
        dt_text_add(out, "%.0f day%s ago", days, days < 1.5 ? "" : "s");
}

void dt_words_tried(int tried, int64_t plans, const char *skipped, struct dt_text *out)
{
    if (tried == 0)
        dt_text_add(out, "not known");
    else if (plans > 0)
        dt_text_add(out, "%d of %lld plan%s", tried, (long long)plans, plans == 1 ? "" : "s");
    else
        dt_text_add(out, "%d of more plans than can be counted", tried);
    if (skipped != NULL)
        dt_text_add(out, "; left out: %s", skipped);
}

static void add_left_out(const struct dt_stored_load *load, const char *what, struct dt_text *out)
{
    bool one = load->left_out == 1;
    dt_text_add(out, "%s%d %.*s left out, in which %s%s%s ", out->size > 0 ? "; " : "",
                load->left_out, (int)(strlen(what) - one), what,
                load->program != NULL ? "other programs (" : "others",
                load->program != NULL ? load->program : "", load->program != NULL ? ")" : "");
    if (load->gpus_most > 0)
        dt_text_add(out, "used up to %.0f of the GPUs", load->gpus_most);
    else
        dt_text_add(out, "kept up to %.2g cores busy", load->left_out_most);
}

void dt_words_load(const struct dt_stored_load *load, struct dt_text *out)
{
    dt_auto_text text = {0};
    const char *what = load->of != NULL && strcmp(load->of, "trials") == 0 ? "trials" : "sets";
    if (!load->known) {
        dt_text_add(out, "not known: it was not watched");
        return;
    }
    if (!isnan(load->cores))
        dt_text_add(&text,
                    "others kept %.2g cores busy in the %s that count (median; at most %.2g)",
                    load->cores, what, load->cores_most);
    if (load->stolen_most > 0)
        dt_text_add(&text, ", of which a hypervisor gave up to %.2g to other machines",
                    load->stolen_most);
    if (load->stalled_most > 0)
        dt_text_add(&text, "; threads waited for a core in up to %s of the time",
                    dt_figure_percent(load->stalled_most).text);
    if (load->left_out > 0)
        add_left_out(load, what, &text);
    dt_text_add(out, "%s", dt_text_at(&text));
}
