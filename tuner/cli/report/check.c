/* SPDX-License-Identifier: MIT */
#include "tuner/cli/report/check.h"

#include "base/figures.h"
#include "tuner/cli/print.h"

#include <string.h>

static const char *string_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static bool verdict_is(const json_t *record, enum dt_check_verdict verdict)
{
    return strcmp(string_of(record, "verdict"), dt_check_verdict_text(verdict)) == 0;
}

bool dt_check_fails(const struct dt_check_run *run, const json_t *record)
{
    return verdict_is(record, DT_CHECK_LOSES) ||
           json_is_true(json_object_get(record, "gain_lost")) ||
           (run->opts->ties_fail && verdict_is(record, DT_CHECK_TIES));
}

bool dt_check_open_question(const json_t *record)
{
    return !verdict_is(record, DT_CHECK_WINS) && !verdict_is(record, DT_CHECK_TIES) &&
           !verdict_is(record, DT_CHECK_LOSES);
}

const char *dt_check_again(const json_t *record)
{
    const json_t *key = json_object_get(record, "key");
    const char *retune = json_string_value(json_object_get(record, "retune"));
    if (retune != NULL)
        return retune;
    enum dt_dtype dtype;
    const struct dt_objective *objective;
    bool foreign = json_object_get(key, "worker") != NULL;
    if (dt_objective_find(string_of(key, "objective"), &objective) < 0 ||
        (!foreign && dt_dtype_find("dtype", string_of(key, "dtype"), &dtype) < 0))
        return "its data type or objective is unknown to this version";
    if (foreign)
        return "name its own worker with --worker PROGRAM";
    if (!json_equal(json_object_get(key, "height"), json_object_get(key, "width")))
        return "its image is not square, and --size names squares";
    return "name its own network with --model FILE";
}

static void add_upper(const char *text, struct dt_text *out)
{
    for (const char *at = text; *at != '\0'; at++)
        dt_text_add(out, "%c", *at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at);
}

/* What is not ours, as it may be shown. */
static void add_clean(const char *text, struct dt_text *out)
{
    size_t before = out->size;
    dt_text_add(out, "%s", text);
    if (out->size > before)
        dt_text_clean(out->bytes + before);
}

static void add_plan(const json_t *plan, struct dt_text *out)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)plan, name, value)
    {
        dt_text_add(out, " ");
        add_clean(name, out);
        dt_text_add(out, "=");
        if (json_is_string(value))
            add_clean(json_string_value(value), out);
        else
            dt_print_value(value, out);
    }
}

static double at(const json_t *object, const char *name, size_t i)
{
    return json_number_value(json_array_get(json_object_get(object, name), i));
}

/* The interval of a speed, which fewer than four sets of fresh processes do not have, and its pairs. */
static void add_sureness(const json_t *row, struct dt_text *out)
{
    if (json_is_array(json_object_get(row, "interval")))
        dt_text_add(out, " [%.3f, %.3f]", 1 / at(row, "interval", 1), 1 / at(row, "interval", 0));
    dt_text_add(out, ", %lld pairs\n",
                (long long)json_integer_value(json_object_get(row, "pairs")));
}

/* Rows have times over times, as docs/json.md says; people read how fast, above 1 is faster, as in the gain. */
static void add_speed(const char *who, const json_t *row, const char *before, struct dt_text *out)
{
    dt_text_add(out, "%s: %s runs at %.3fx its speed", before, who,
                1 / json_number_value(json_object_get(row, "ratio")));
    add_sureness(row, out);
}

static void add_rival(const json_t *rival, struct dt_text *out)
{
    const char *reason = string_of(rival, "reason");
    dt_text_add(out, "  %-11s ", string_of(rival, "role"));
    if (json_is_null(json_object_get(rival, "ratio")))
        dt_text_add(out, "%s: %s\n", string_of(rival, "verdict"),
                    reason[0] != '\0' ? reason : "too few pairs of rounds");
    else
        add_speed("tuned", rival, string_of(rival, "verdict"), out);
}

static void add_gain(const char *when, const json_t *gain, struct dt_text *out)
{
    if (!json_is_object(gain))
        dt_text_add(out, "%s none", when);
    else
        dt_text_add(out, "%s %.3f [%.3f, %.3f]", when,
                    json_number_value(json_object_get(gain, "ratio")), at(gain, "interval", 0),
                    at(gain, "interval", 1));
}

static void add_default(const json_t *then, const json_t *now, struct dt_text *out)
{
    dt_text_add(out, "  default     then ");
    dt_figure_time((double)json_integer_value(then) * 1e-9, out);
    dt_text_add(out, ", now ");
    dt_figure_time((double)json_integer_value(now) * 1e-9, out);
    dt_text_add(out, " (unpaired: not evidence)\n");
}

static void add_gains(const json_t *record, struct dt_text *out)
{
    const json_t *then = json_object_get(record, "default_then_ns");
    const json_t *now = json_object_get(record, "default_ns");
    dt_text_add(out, "  gain        over the default: ");
    add_gain("stored", json_object_get(record, "gain_then"), out);
    add_gain(", today", json_object_get(record, "gain_now"), out);
    dt_text_add(out, "%s\n",
                json_is_true(json_object_get(record, "gain_lost")) ? ": lost too much of it" : "");
    if (json_integer_value(then) > 0 && json_integer_value(now) > 0)
        add_default(then, now, out);
}

static void add_soft(const json_t *record, struct dt_text *out)
{
    const json_t *changed = json_object_get(record, "soft_changed");
    if (json_array_size(changed) == 0)
        return;
    dt_text_add(out, "  changed     ");
    for (size_t i = 0; i < json_array_size(changed); i++) {
        dt_text_add(out, "%s", i > 0 ? ", " : "");
        add_clean(json_string_value(json_array_get(changed, i)), out);
    }
    if (verdict_is(record, DT_CHECK_WINS) || verdict_is(record, DT_CHECK_TIES))
        dt_text_add(out, ": it %s; the optimum was not searched again",
                    verdict_is(record, DT_CHECK_WINS) ? "beats its rivals" : "is not beaten");
    dt_text_add(out, "\n");
}

/* The comparison that chose a successor where no ratio to the stored plan is known. */
static void add_successor(const json_t *row, const char *first, struct dt_text *out)
{
    const json_t *ratio = json_object_get(row, "ratio");
    dt_text_add(out, "  left       ");
    add_plan(json_object_get(row, "plan"), out);
    if (json_is_number(ratio))
        dt_text_add(out, ": %s, %.3fx the speed of the %s one", string_of(row, "role"),
                    1 / json_number_value(ratio), first);
    if (json_is_number(ratio))
        add_sureness(row, out);
    else
        dt_text_add(out, ": %s, %s\n", string_of(row, "role"),
                    json_is_string(json_object_get(row, "reason")) ? string_of(row, "reason")
                                                                   : "not compared");
}

static void add_store(const json_t *record, struct dt_text *out)
{
    const json_t *rows = json_object_get(record, "successors"), *row;
    const json_t *plan = json_object_get(record, "replaced_by");
    const char *first = string_of(json_array_get(rows, 0), "role");
    size_t i;
    json_array_foreach((json_t *)rows, i, row)
    {
        add_successor(row, first, out);
    }
    if (json_is_string(json_object_get(record, "updated"))) {
        dt_text_add(out, "  store       %s%s", string_of(record, "updated"),
                    json_is_object(plan) ? " by" : "");
        add_plan(plan, out);
        dt_text_add(out, "\n");
    }
    if (json_is_string(json_object_get(record, "note")))
        dt_text_add(out, "  store       %s\n", string_of(record, "note"));
}

static void add_record(const json_t *record, struct dt_text *out)
{
    struct dt_text word = {0};
    size_t i;
    json_t *rival;
    bool loses = verdict_is(record, DT_CHECK_LOSES);
    add_upper(string_of(record, "verdict"), &word);
    dt_text_add(out, "%-13s %s\n", dt_text_at(&word), string_of(record, "title"));
    dt_text_fini(&word);
    if (json_is_string(json_object_get(record, "reason")))
        dt_text_add(out, "  because     %s\n", string_of(record, "reason"));
    dt_text_add(out, "  plan       ");
    add_plan(json_object_get(record, "plan"), out);
    dt_text_add(out, "\n");
    json_array_foreach(json_object_get(record, "rivals"), i, rival)
    {
        add_rival(rival, out);
    }
    if (json_integer_value(json_object_get(record, "rounds")) > 0)
        add_gains(record, out);
    add_soft(record, out);
    if (loses || json_array_size(json_object_get(record, "soft_changed")) > 0)
        dt_text_add(out, "  tune again  %s\n", dt_check_again(record));
    add_store(record, out);
}

void dt_check_text(const struct dt_check_run *run, struct dt_text *out)
{
    size_t i;
    json_t *record;
    json_array_foreach(run->records, i, record)
    {
        add_record(record, out);
    }
    dt_text_add(out, "%d checked%s", (int)json_array_size(run->records),
                json_array_size(run->records) > 0 ? ":" : "");
    for (int v = 0; v <= DT_CHECK_UNSUPPORTED; v++)
        if (run->counts[v] > 0)
            dt_text_add(out, " %d %s", run->counts[v],
                        dt_check_verdict_text((enum dt_check_verdict)v));
    if (run->lost_gain > 0)
        dt_text_add(out, ", %d lost too much of its gain", run->lost_gain);
    dt_text_add(out, "\n");
}
