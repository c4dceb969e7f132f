/* SPDX-License-Identifier: MIT */
/* The answers of an entry whose session cannot be read back: each from fields of the entry itself. To add one, a function and its
 * row. */
#include "tuner/cli/named/named.h"

#include "base/clock.h"
#include "base/columns.h"
#include "base/figures.h"
#include "tuner/check/history/timeline.h"
#include "tuner/cli/words.h"

#include <math.h>
#include <string.h>

const char *dt_named_origin_text(enum dt_named_origin origin)
{
    static const char *const texts[] = {"session", "update", "entry"};
    return texts[origin];
}

static const struct dt_stored_entry *fields_of(const struct dt_named_stored *stored)
{
    return &stored->entry->fields;
}

/* Parameters of a plan that differ from the stored one; all of them when none does. */
static void add_other_plan(const struct dt_named_stored *stored, const json_t *plan,
                           struct dt_text *out)
{
    json_t *differs = json_object(), *value;
    const char *name;
    json_object_foreach((json_t *)plan, name, value)
    {
        if (!json_equal(value, json_object_get(fields_of(stored)->plan, name)))
            json_object_set(differs, name, value);
    }
    dt_plan_words(json_object_size(differs) > 0 ? differs : plan, out);
    json_decref(differs);
}

static void add_verdict(const struct dt_named_stored *stored, struct dt_text *out)
{
    const struct dt_stored_entry *entry = fields_of(stored);
    struct dt_text plan = {0};
    dt_plan_words(entry->plan, &plan);
    const struct dt_words_verdict what = {
        .verdict = dt_verdict_of(entry->verdict),
        .plan = dt_text_at(&plan),
        .is_default = !entry->fallback.known || json_equal(entry->fallback.plan, entry->plan),
        .gain = entry->gain,
        .level = NAN,
        .fallback = &entry->fallback};
    dt_words_verdict(&what, out);
    dt_text_fini(&plan);
}

static void add_sure(const struct dt_named_stored *stored, struct dt_text *out)
{
    const struct dt_stored_entry *entry = fields_of(stored);
    const struct dt_gain *gain = &entry->gain;
    if (!gain->known) {
        dt_text_add(out, "The entry has no comparison of the plan with the default.");
        return;
    }
    if (dt_verdict_of(entry->verdict) != DT_VERDICT_FASTER) {
        dt_text_add(out, "The plan was compared with the default in %d pairs, verdict: %s.",
                    gain->pairs, entry->verdict);
        return;
    }
    dt_text_add(out,
                "%d pairs of %d sets of fresh processes say the plan is %.3f to %.3f times as fast "
                "as the default.",
                gain->pairs, gain->sets, gain->interval.low, gain->interval.high);
}

/* The time of a plan, or its metric that is maximised. */
static void add_time(const struct dt_named_stored *stored, const struct dt_measured *measured,
                     bool interval, struct dt_text *out)
{
    const struct dt_span_ns *span = &measured->interval_ns;
    interval = interval && span->known;
    dt_figure_value(dt_figure_metric(dt_json_text_at(fields_of(stored)->key, "objective")),
                    dt_seconds_of(measured->median_ns), interval ? dt_seconds_of(span->low) : NAN,
                    interval ? dt_seconds_of(span->high) : NAN, out);
}

static void add_times(const struct dt_named_stored *stored, struct dt_text *out)
{
    const struct dt_stored_entry *entry = fields_of(stored);
    const char *unit = entry->image.known && entry->image.unit != NULL ? entry->image.unit : "step";
    if (!entry->figures.known) {
        dt_text_add(out, "Not known.");
        return;
    }
    add_time(stored, &entry->figures, true, out);
    if (dt_figure_metric(dt_json_text_at(entry->key, "objective")) == NULL)
        dt_text_add(out, " a%s %s", strcmp(unit, "image") == 0 ? "n" : "", unit);
    if (entry->fallback.known) {
        dt_text_add(out, "; the default plan has ");
        add_time(stored, &entry->fallback, true, out);
    }
    dt_text_add(out, ".");
}

/* Up to three plans of the front that need less memory than the stored one. */
static void add_smaller(const struct dt_named_stored *stored, struct dt_text *out)
{
    const struct dt_stored_entry *entry = fields_of(stored);
    int n = 0;
    for (int i = 0; i < entry->pareto_count && n < 3; i++) {
        const struct dt_measured *plan = &entry->pareto[i];
        if (plan->peak_bytes >= entry->figures.peak_bytes)
            continue;
        dt_text_add(out, n++ == 0 ? " With less: " : "; ");
        add_other_plan(stored, plan->plan, out);
        dt_text_add(out, " with ");
        dt_figure_bytes(plan->peak_bytes, out);
        dt_text_add(out, ", ");
        add_time(stored, plan, false, out);
    }
    dt_text_add(out, n > 0 ? "." : "");
}

static void add_memory(const struct dt_named_stored *stored, struct dt_text *out)
{
    const struct dt_stored_entry *entry = fields_of(stored);
    if (!entry->figures.known || entry->figures.peak_bytes <= 0) {
        dt_text_add(out, "Not known.");
        return;
    }
    dt_text_add(out, "The plan needs ");
    dt_figure_bytes(entry->figures.peak_bytes, out);
    dt_text_add(out, " in its largest rank.");
    add_smaller(stored, out);
}

/* An update keeps the noise of the session before. */
static void add_noise(const struct dt_named_stored *stored, struct dt_text *out)
{
    const struct dt_noise_floor *noise = &fields_of(stored)->noise;
    if (!noise->known) {
        dt_text_add(out, "Not known.");
        return;
    }
    dt_text_add(
        out, "%s: smaller differences count as ties%s.", dt_figure_percent(noise->margin).text,
        stored->origin == DT_NAMED_UPDATE ? "; measured by the session before the check" : "");
}

static void add_tried(const struct dt_named_stored *stored, struct dt_text *out)
{
    const struct dt_stored_entry *entry = fields_of(stored);
    dt_words_tried(entry->tried, entry->plans, entry->skipped, out);
    dt_text_add(out, ".");
}

static void add_load(const struct dt_named_stored *stored, struct dt_text *out)
{
    dt_words_load(&fields_of(stored)->load, out);
    dt_text_add(out, ".");
}

static void add_rivals(const struct dt_named_stored *stored, struct dt_text *out)
{
    const struct dt_stored_entry *entry = fields_of(stored);
    int n = 0;
    for (int i = 0; i < entry->top_count; i++) {
        const struct dt_measured *plan = &entry->top[i];
        if (json_equal(plan->plan, entry->plan))
            continue;
        dt_text_add(out, "%s", n++ == 0 ? "" : "; ");
        add_other_plan(stored, plan->plan, out);
        dt_text_add(out, ", ");
        add_time(stored, plan, false, out);
        if (plan->from != NULL)
            dt_text_add(out, " (%s)", plan->from);
    }
    dt_text_add(out, n > 0 ? "." : "None is stored.");
}

static void add_minute(int64_t t_wall_ns, struct dt_text *out)
{
    char minute[24];
    dt_minute(t_wall_ns, minute);
    dt_text_add(out, "%s UTC", minute);
}

static void add_when(const struct dt_named_stored *stored, struct dt_text *out)
{
    const struct dt_stored_entry *entry = fields_of(stored);
    const struct dt_stored_info *info = &entry->fingerprint.info;
    double days =
        (double)(dt_clock_wall_ns() - info->t_wall_ns) / (86400.0 * (double)DT_NS_PER_SECOND);
    if (info->t_wall_ns == 0) {
        dt_text_add(out, "Not known");
    } else {
        add_minute(info->t_wall_ns, out);
        if (days < 1)
            dt_text_add(out, days < 0 ? ", in the future" : ", less than a day ago");
        else
            dt_text_add(out, ", %.0f day%s ago", days, days < 1.5 ? "" : "s");
    }
    dt_text_add(out, ", by %s %s",
                stored->origin == DT_NAMED_UPDATE ? "dittune check --update, journal" : "session",
                entry->journal != NULL ? entry->journal : "without a journal");
    if (info->checked_ns != 0) {
        dt_text_add(out, "; found as good by a check on ");
        add_minute(info->checked_ns, out);
    }
    dt_text_add(out, ".");
}

static void add_where(const struct dt_named_stored *stored, struct dt_text *out)
{
    const struct dt_fingerprint *print = &fields_of(stored)->fingerprint;
    const char *device = json_string_value(json_object_get(print->hard, "device"));
    const char *host = print->info.host;
    dt_text_add(out, "%s%s%s.", device != NULL ? device : "An unknown device",
                host != NULL ? ", host " : "", host != NULL ? host : "");
}

void dt_named_stored_cause(const struct dt_named_stored *stored, struct dt_text *out)
{
    const char *journal = fields_of(stored)->journal;
    if (stored->origin == DT_NAMED_UPDATE)
        dt_text_add(out,
                    "the plan was stored by `dittune check --update`, journal %s, which "
                    "compared a few plans and made no trials",
                    journal);
    else if (journal != NULL)
        dt_text_add(out, "the journal of its session, %s, is not in %s/runs", journal,
                    stored->directory);
    else
        dt_text_add(out, "the entry names no journal");
}

static void add_trials(const struct dt_named_stored *stored, struct dt_text *out)
{
    dt_text_add(out, "There are none to show: ");
    dt_named_stored_cause(stored, out);
    dt_text_add(out, ". These answers are from the entry alone.");
    if (stored->before[0] != '\0')
        dt_text_add(out, " The session before that: %s", stored->before);
}

static const struct {
    const char *name;
    void (*add)(const struct dt_named_stored *stored, struct dt_text *out);
} facts[] = {{"How sure", add_sure},     {"Time", add_times},          {"Memory", add_memory},
             {"Noise floor", add_noise}, {"Load by others", add_load}, {"Tried", add_tried},
             {"Others", add_rivals},     {"Where", add_where},         {"Trials", add_trials},
             {"When", add_when}};

static json_t *object_of(const struct dt_named_stored *stored, const char *sentence,
                         json_t *answers)
{
    static const char *const kept[] = {"verdict", "gain", "noise"};
    const struct dt_named_entry *entry = stored->entry;
    bool update = stored->origin == DT_NAMED_UPDATE;
    json_t *object =
        json_pack("{s:s?, s:s, s:s, s:s, s:s, s:s?, s:o}", "session",
                  update ? NULL : entry->fields.journal, "entry", entry->hex, "from",
                  dt_named_origin_text(stored->origin), "title", entry->title, "sentence", sentence,
                  "later", stored->later[0] != '\0' ? stored->later : NULL, "answers", answers);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (json_object_get(entry->json, kept[i]) != NULL)
            json_object_set(object, kept[i], json_object_get(entry->json, kept[i]));
    json_object_set(object, "stored", entry->json);
    return object;
}

static json_t *add_facts(const struct dt_named_stored *stored, struct dt_text *out)
{
    struct dt_text text = {0}, line = {0};
    json_t *answers = json_object();
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        dt_text_clear(&text);
        dt_text_clear(&line);
        facts[i].add(stored, &text);
        dt_text_add(&line, "%s: %s\n", facts[i].name, dt_text_at(&text));
        dt_columns_wrap(dt_text_at(&line), DT_COLUMNS_USUAL, 2, out);
        json_object_set_new(answers, facts[i].name, json_string(dt_text_at(&text)));
    }
    out->failed = out->failed || text.failed || line.failed;
    dt_text_fini(&line);
    dt_text_fini(&text);
    return answers;
}

json_t *dt_named_stored_why(const struct dt_named_stored *stored, struct dt_text *out)
{
    struct dt_text sentence = {0}, text = {0};
    bool more = stored->later[0] != '\0';
    add_verdict(stored, &sentence);
    dt_text_add(out, "%s\n", stored->entry->title);
    dt_text_add(&text, "%s%s%s\n\n", dt_text_at(&sentence), more ? " " : "", stored->later);
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, 0, out);
    json_t *answers = add_facts(stored, out);
    json_t *object = object_of(stored, dt_text_at(&sentence), answers);
    out->failed = out->failed || sentence.failed || text.failed || object == NULL;
    dt_text_fini(&sentence);
    dt_text_fini(&text);
    return object;
}
