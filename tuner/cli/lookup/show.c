/* SPDX-License-Identifier: MIT */
#include "tuner/cli/lookup/show.h"

#include "base/figures.h"
#include "base/quote.h"
#include "db/engines/engines.h"
#include "space/json/json.h"
#include "tuner/check/timeline.h"
#include "tuner/cli/words.h"
#include "worker/command/words.h"

#include <math.h>
#include <string.h>

/* Text of a store is untrusted, so it is escaped for the terminal. */
static void add_row(const char *name, const char *text, struct dt_text *out)
{
    dt_text_add(out, "  %-10s ", name);
    dt_text_show(text, out);
    dt_text_add(out, "\n");
}

static void add_age(int64_t ns, struct dt_text *out)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = {{"day", 86400}, {"hour", 3600}, {"minute", 60}, {"second", 1}};
    int64_t seconds = ns / 1000000000;
    int unit = 0;
    while (unit < 3 && seconds < units[unit].seconds)
        unit++;
    int64_t count = seconds / units[unit].seconds;
    dt_text_add(out, "  %-10s %lld %s%s\n", "age", (long long)count, units[unit].name,
                count == 1 ? "" : "s");
}

static const char *answer_place(const struct dt_answer *answer)
{
    return answer->tier == DT_TIER_EXACT ? "" : ", where it was measured";
}

static bool is_whole(const struct dt_answer *answer)
{
    const struct dt_image_time *image = &answer->measured->image;
    return image->known && image->unit != NULL && strcmp(image->unit, "image") == 0;
}

static void add_time(const struct dt_answer *answer, struct dt_text *out)
{
    const char *metric =
        dt_figure_metric(dt_json_text_at(json_object_get(answer->entry, "key"), "objective"));
    int64_t median_ns = answer->measured->figures.median_ns;
    if (median_ns <= 0)
        return;
    if (metric != NULL) {
        dt_auto_text value = {0};
        dt_figure_value(metric, (double)median_ns * 1e-9, NAN, NAN, &value);
        dt_text_add(&value, "%s", answer_place(answer));
        add_row("value", dt_text_at(&value), out);
        return;
    }
    dt_text_add(out, "  %-10s %s", "time", dt_figure_of((double)median_ns * 1e-9).text);
    if (is_whole(answer))
        dt_text_add(out, " an image of %d steps, with text encoder and VAE%s\n",
                    answer->measured->image.steps, answer_place(answer));
    else
        dt_text_add(out, " a step%s\n", answer_place(answer));
}

static void add_image(const struct dt_answer *answer, struct dt_text *out)
{
    const struct dt_image_time *image = &answer->measured->image;
    const struct dt_measured *figures = &answer->measured->figures;
    int batch = figures->batch > 0 ? figures->batch : 1;
    int64_t step_ns = figures->median_ns;
    if (!image->known || step_ns <= 0 || is_whole(answer))
        return;
    dt_text_add(out, "  %-10s %s: %d steps", "image",
                dt_figure_of((double)dt_image_ns(image, step_ns, batch) * 1e-9).text, image->steps);
    if (image->text_and_vae_ns > 0) {
        dt_text_add(out, " and %s of text encoder and VAE",
                    dt_figure_of((double)image->text_and_vae_ns * 1e-9).text);
        if (image->source != NULL)
            dt_text_add(out, " (%s)", image->source);
    } else {
        dt_text_add(out, " without text encoder and VAE");
    }
    dt_text_add(out, "%s\n", answer_place(answer));
}

static void add_gain(const struct dt_answer *answer, struct dt_text *out)
{
    const struct dt_gain *gain = &answer->measured->gain;
    if (answer->is_default) {
        dt_text_add(out, "  %-10s none: it is the default plan, %s%s\n", "gain",
                    answer->why_provisional != NULL ? "kept as nothing was decided"
                                                    : "nothing beat it",
                    answer_place(answer));
        return;
    }
    double low = gain->interval.low, high = gain->interval.high;
    dt_text_add(out, "  %-10s %.3g times the %s plan's speed (", "gain", gain->ratio,
                gain->over != NULL ? gain->over : "default");
    if (dt_figure_tells(low, high))
        dt_text_add(out, "%.3g to %.3g", low, high);
    else
        dt_figure_range(low, high, out);
    dt_text_add(out, ", %d pair%s)%s\n", gain->pairs, gain->pairs == 1 ? "" : "s",
                answer_place(answer));
}

static void add_done(const struct dt_answer *answer, struct dt_text *out)
{
    dt_auto_text text = {0};
    const struct dt_stored_entry *entry = answer->measured;
    if (entry->noise.margin > 0) {
        dt_words_noise(entry->noise.margin, &text);
        dt_text_add(&text, "%s", answer_place(answer));
        add_row("noise", dt_text_at(&text), out);
        dt_text_clear(&text);
    }
    if (entry->tried > 0) {
        dt_words_tried(entry->tried, entry->plans, entry->skipped, &text);
        add_row("tried", dt_text_at(&text), out);
        dt_text_clear(&text);
    }
    dt_words_default(&entry->fallback, &text);
    if (text.size > 0)
        add_row("default", dt_text_at(&text), out);
    dt_text_clear(&text);
    dt_words_documented_stored(entry, &text);
    if (text.size > 0)
        add_row("documented", dt_text_at(&text), out);
    dt_text_clear(&text);
    for (size_t i = 0; i < json_array_size(entry->figures.warnings); i++) {
        const json_t *sentence = json_array_get(entry->figures.warnings, i);
        add_row("warning", json_is_string(sentence) ? json_string_value(sentence) : "", out);
    }
    if (entry->load.known) {
        dt_words_load(&entry->load, &text);
        add_row("load", dt_text_at(&text), out);
    }
}

void dt_show_answer(const struct dt_answer *answer, bool several, struct dt_text *out)
{
    const char *provisional = answer->why_provisional;
    dt_auto_text text = {0};
    dt_plan_words(answer->plan, out);
    dt_text_add(out, "\n");
    add_row("tier", dt_tier_text(answer->tier), out);
    if (answer->distance > 0)
        dt_text_add(out, "  %-10s %.3g\n", "distance", answer->distance);
    add_row("reason", answer->reason, out);
    if (several && answer->store != NULL)
        add_row("store", answer->store, out);
    if (answer->evidence != NULL)
        add_row("evidence", answer->evidence, out);
    if (answer->verdict != NULL) {
        dt_text_add(&text, "%s%s%s", answer->verdict, provisional != NULL ? ": " : "",
                    provisional != NULL ? provisional : "");
        add_row("verdict", dt_text_at(&text), out);
    }
    if (answer->measured != NULL) {
        add_time(answer, out);
        add_image(answer, out);
        if (answer->measured->gain.ratio > 0)
            add_gain(answer, out);
        add_done(answer, out);
    }
    if (answer->age_ns >= 0)
        add_age(answer->age_ns, out);
    for (size_t i = 0; i < json_array_size(answer->stale_reasons); i++)
        add_row(i == 0 ? "stale" : "", json_string_value(json_array_get(answer->stale_reasons, i)),
                out);
    if (answer->hint == NULL)
        return;
    dt_text_clear(&text);
    dt_plan_words(json_object_get(answer->hint, "plan"), &text);
    dt_text_add(&text, ", %s", dt_json_text_at(answer->hint, "reason"));
    add_row("hint", dt_text_at(&text), out);
}

void dt_show_warning(const struct dt_answer *answer, struct dt_text *out)
{
    dt_auto_text text = {0};
    dt_answer_warning(answer, &text);
    dt_text_show(dt_text_at(&text), out);
}

/* ---- the command of an entry that --command tuned, with the values of a plan */

const json_t *dt_command_job(const json_t *key)
{
    const json_t *job = json_object_get(key, "job");
    bool of_command = strcmp(dt_json_text_at(key, "worker"), "command") == 0;
    return of_command && json_object_get(job, "time") != NULL ? job : NULL;
}

/* A word that sets a variable before a command: the name is no part of the quoted value. */
static void add_variable(const struct dt_space *space, const struct dt_point *plan, int at,
                         struct dt_text *out)
{
    const struct dt_axis *axis = dt_space_axis(space, at);
    int64_t value = dt_point_value(space, plan, at);
    dt_auto_text text = {0};
    dt_axis_plain(axis, value, &text);
    dt_text_add(out, "%s=", axis->variable != NULL ? axis->variable : axis->name);
    dt_quote(dt_text_at(&text), out);
    dt_text_add(out, " ");
}

static dt_status fill_command(const struct dt_command_line *command, const struct dt_space *space,
                              const json_t *plan, struct dt_text *out)
{
    struct dt_point point;
    char **argv = NULL;
    DT_TRY(dt_point_from_json(space, plan, &point));
    DT_TRY(dt_line_names(command, space));
    DT_TRY(dt_line_fill(command, space, &point, &argv));
    for (int i = 0; i < dt_space_axes(space); i++)
        if (dt_space_axis(space, i)->role == DT_ROLE_ENVIRONMENT && dt_point_has(space, &point, i))
            add_variable(space, &point, i, out);
    for (int i = 0; argv[i] != NULL; i++) {
        dt_text_add(out, "%s", i > 0 ? " " : "");
        dt_quote(argv[i], out);
    }
    dt_line_free(argv);
    dt_text_add(out, "\n");
    return dt_text_status(out);
}

dt_status dt_command_fill(const struct dt_command_options *given, const json_t *entry,
                          const json_t *plan, struct dt_text *out)
{
    const json_t *job = dt_command_job(json_object_get(entry, "key"));
    const char *text = given->text != NULL ? given->text : dt_json_text_at(job, "command");
    DT_CLEANUP(dt_line_fini) struct dt_command_line command = {0};
    DT_CLEANUP(dt_space_free_at) struct dt_space *space = NULL;
    if (text[0] == '\0')
        return dt_fail(DT_EUSAGE, "the text of the command is not stored (--private): give it "
                                  "with --command, --space and --time");
    if (json_object_get(entry, "space") == NULL)
        return dt_fail(DT_EUSAGE, "the parameters of the command are not stored, as they are too "
                                  "long: the plan is printed with --format env");
    DT_TRY(dt_space_rules_from_json(json_object_get(entry, "space"), "the entry's space", &space));
    DT_TRY(dt_line_read(text, json_object_get(job, "shell") != NULL, &command));
    command.served = json_object_get(job, "request") != NULL; /* {port} stays as it is */
    return fill_command(&command, space, plan, out);
}
