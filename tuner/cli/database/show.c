/* SPDX-License-Identifier: MIT */
/* Each column is a row of a table. Texts of a store are untrusted and printed escaped. */
#include "tuner/cli/database/verbs.h"

#include "base/clock.h"
#include "base/figures.h"
#include "base/quote.h"
#include "db/snapshot.h"
#include "db/stored.h"
#include "tuner/check/timeline.h"
#include "tuner/cli/lookup/show.h"
#include "tuner/cli/print.h"

#include <math.h>
#include <string.h>

static const json_t *key_of(const struct dt_stored_entry *entry, const char *name)
{
    return json_object_get(entry->key, name);
}

/* A field of the key, or of an engine's job. */
static const json_t *of_work(const struct dt_stored_entry *entry, const char *name)
{
    const json_t *value = key_of(entry, name);
    return value != NULL ? value : json_object_get(key_of(entry, "job"), name);
}

static void show_id(const struct dt_stored_entry *entry, struct dt_text *out)
{
    dt_text_add(out, "%.8s", entry->id != NULL ? entry->id : "-");
}

static void show_work(const struct dt_stored_entry *entry, struct dt_text *out)
{
    const json_t *model = of_work(entry, "model");
    dt_print_value(model != NULL ? model : key_of(entry, "worker"), out);
}

/* Height x width of the latent; an engine's job has pixels, width x height. */
static void show_latent(const struct dt_stored_entry *entry, struct dt_text *out)
{
    bool pixels = key_of(entry, "height") == NULL && key_of(entry, "width") == NULL;
    const json_t *height = of_work(entry, "height"), *width = of_work(entry, "width");
    if (height == NULL && width == NULL) {
        dt_text_add(out, "-");
        return;
    }
    dt_print_value(pixels ? width : height, out);
    dt_text_add(out, "x");
    dt_print_value(pixels ? height : width, out);
    dt_text_add(out, pixels ? " px" : "");
}

static void show_batch(const struct dt_stored_entry *entry, struct dt_text *out)
{
    const json_t *batch = of_work(entry, "batch"), *value;
    size_t i;
    if (!json_is_array(batch)) {
        dt_print_value(batch, out);
        return;
    }
    json_array_foreach(batch, i, value)
    {
        dt_text_add(out, i > 0 ? "," : "");
        dt_print_value(value, out);
    }
}

static void show_dtype(const struct dt_stored_entry *entry, struct dt_text *out)
{
    const json_t *dtype = key_of(entry, "dtype"); /* in the key of the built-in network only */
    dt_print_value(dtype != NULL ? dtype : json_object_get(entry->fingerprint.hard, "dtype"), out);
}

static void show_verdict(const struct dt_stored_entry *entry, struct dt_text *out)
{
    const char *verdict = entry->verdict != NULL ? entry->verdict : "-";
    dt_text_show(entry->provisional ? dt_verdict_text(DT_VERDICT_PROVISIONAL) : verdict, out);
}

static void show_gain(const struct dt_stored_entry *entry, struct dt_text *out)
{
    double ratio = entry->gain.ratio;
    if (isfinite(ratio))
        dt_text_add(out, ratio < 1e4 ? "%.3fx" : "%.3gx", ratio);
    else
        dt_text_add(out, "-");
}

/* How many plans were tried; sessions that did not record it show nothing. */
static void show_tried(const struct dt_stored_entry *entry, struct dt_text *out)
{
    if (entry->tried > 0)
        dt_text_add(out, "%d", entry->tried);
    else
        dt_text_add(out, "-");
    if (entry->tried > 0 && entry->plans > 0)
        dt_text_add(out, "/%lld", (long long)entry->plans);
}

/* Cores that others kept busy: at most, in what counted; and how much was left out. */
static void show_load(const struct dt_stored_entry *entry, struct dt_text *out)
{
    const struct dt_stored_load *load = &entry->load;
    if (load->known && !isnan(load->cores_most))
        dt_text_add(out, "%.2f", load->cores_most);
    else
        dt_text_add(out, "-");
    if (load->known && load->left_out > 0)
        dt_text_add(out, " (-%d %s)", load->left_out, load->of != NULL ? load->of : "sets");
}

static void show_age(const struct dt_stored_entry *entry, struct dt_text *out)
{
    const struct dt_stored_info *info = &entry->fingerprint.info;
    int64_t then = info->checked_ns != 0 ? info->checked_ns : info->t_wall_ns;
    double days = (double)(dt_clock_wall_ns() - then) / 86400e9;
    if (then != 0 && days < 0)
        dt_text_add(out, "in the future");
    else if (then != 0)
        dt_text_add(out, "%.*f d", days < 10 ? 1 : 0, days);
    else
        dt_text_add(out, "-");
}

static void show_device(const struct dt_stored_entry *entry, struct dt_text *out)
{
    dt_print_value(json_object_get(entry->fingerprint.hard, "device"), out);
}

static void show_plan(const struct dt_stored_entry *entry, struct dt_text *out)
{
    dt_plan_words(entry->plan, out);
}

static const struct column {
    const char *title;
    void (*show)(const struct dt_stored_entry *entry, struct dt_text *out);
    const char *key; /* instead: a field of the key */
} columns[] = {
    {"ID", show_id, NULL},
    {"WORK", show_work, NULL},
    {"LATENT", show_latent, NULL},
    {"BATCH", show_batch, NULL},
    {"RANKS", NULL, "devices"},
    {"DTYPE", show_dtype, NULL},
    {"OBJECTIVE", NULL, "objective"},
    {"VERDICT", show_verdict, NULL},
    {"GAIN", show_gain, NULL},
    {"TRIED", show_tried, NULL},
    {"LOAD", show_load, NULL},
    {"AGE", show_age, NULL},
    {"DEVICE", show_device, NULL},
    {"PLAN", show_plan, NULL},
};
#define COLUMNS  (int)(sizeof columns / sizeof columns[0])
#define CELL_MAX 40

/* A cell, cut to leave room for the others; the last may have any length. */
static void fill_cell(int column, const struct dt_stored_entry *entry, struct dt_text *cell)
{
    if (columns[column].show != NULL)
        columns[column].show(entry, cell);
    else
        dt_print_value(key_of(entry, columns[column].key), cell);
    if (column == COLUMNS - 1 || cell->size <= CELL_MAX)
        return;
    cell->size = CELL_MAX - 3;
    while (((unsigned char)cell->bytes[cell->size] & 0xc0) == 0x80) /* not amid a character */
        cell->size--;
    dt_text_add(cell, "...");
}

/* For --command and --server: the measured program, as options, on a line of its own. */
static void add_command(const struct dt_stored_entry *entry, struct dt_text *out)
{
    static const char *const options[] = {"command", "time", "unit", "prepare"};
    const char *metric = dt_figure_metric(json_string_value(key_of(entry, "objective")));
    const json_t *job = dt_command_job(entry->key);
    if (job == NULL)
        return;
    bool hidden = json_object_get(job, "private") != NULL;
    dt_text_add(out, "         %s", hidden ? " --private" : "");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const char *text = dt_json_text_at(job, options[i]);
        if (text[0] == '\0' || (hidden && strcmp(options[i], "prepare") == 0)) /* a hash */
            continue;
        bool served = i == 0 && json_object_get(job, "request") != NULL;
        bool maximised = i == 1 && metric != NULL;
        dt_auto_text value = {0};
        dt_text_add(&value, maximised ? "%s=%s" : "%s%s", maximised ? metric : "", text);
        dt_text_add(out, " --%s ", served ? "server" : maximised ? "metric" : options[i]);
        dt_quote(dt_text_at(&value), out);
    }
    if (json_object_get(job, "limits") != NULL)
        dt_text_add(out, "  limited to %s", dt_json_text_at(job, "limits"));
    if (json_object_get(job, "shell") != NULL)
        dt_text_add(out, " --shell");
    if (json_object_get(job, "folder") != NULL) {
        dt_text_add(out, "  in ");
        dt_quote(dt_json_text_at(job, "folder"), out);
    }
    dt_text_add(out, "\n");
}

/* A row; NULL: the titles. out NULL: only widens the columns to it. */
static void add_row(const struct dt_stored_entry *entry, size_t width[], struct dt_text *out)
{
    dt_auto_text cell = {0};
    for (int i = 0; i < COLUMNS; i++) {
        bool last = i == COLUMNS - 1;
        dt_text_clear(&cell);
        if (entry != NULL)
            fill_cell(i, entry, &cell);
        else
            dt_text_add(&cell, "%s", columns[i].title);
        if (out == NULL)
            width[i] = cell.size > width[i] ? cell.size : width[i];
        else
            dt_text_add(out, "%-*s%s", last ? 0 : (int)width[i] + 2, dt_text_at(&cell),
                        last ? "\n" : "");
    }
    if (entry != NULL && out != NULL)
        add_command(entry, out);
}

static void add_table(const json_t *entries, struct dt_text *text)
{
    size_t width[COLUMNS] = {0}, i;
    const json_t *json;
    for (int pass = 0; pass < 2 && json_array_size(entries) > 0; pass++) {
        struct dt_text *out = pass == 0 ? NULL : text;
        add_row(NULL, width, out);
        json_array_foreach(entries, i, json)
        {
            struct dt_stored_entry entry;
            dt_record_read(&dt_record_stored_entry, json, &entry);
            add_row(&entry, width, out);
        }
    }
}

/* *left_out counts the lines that are no entries; each is reported. */
static dt_status collect_entries(const struct dt_snapshot *snapshot, const struct dt_choice *choice,
                                 json_t *entries, int *left_out)
{
    for (size_t i = 0; i < dt_snapshot_count(snapshot); i++) {
        const json_t *json = NULL;
        struct dt_stored_entry entry;
        if (!dt_choice_of_id(choice, dt_snapshot_id(snapshot, (long)i)))
            continue;
        dt_status status = dt_snapshot_entry(snapshot, (long)i, &json);
        if (status == DT_ECORRUPT) {
            dt_print_note("warning: %s: the entry %016llx is left out ('dittune db rebuild "
                          "--salvage' makes best.json without it)",
                          dt_message(), (unsigned long long)dt_snapshot_id(snapshot, (long)i));
            ++*left_out;
            continue;
        }
        DT_TRY(status);
        dt_record_read(&dt_record_stored_entry, json, &entry);
        if (!dt_choice_of_entry(choice, &entry))
            continue;
        if (json_array_append(entries, (json_t *)json) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
    }
    return DT_OK;
}

dt_status dt_verb_show(const struct dt_verb_call *call)
{
    const struct dt_choice *choice = &call->choice;
    const char *directory = call->directory;
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *snapshot = NULL;
    DT_TRY(dt_snapshot_open(directory, &snapshot));
    json_auto_t *entries = json_array();
    int left_out = 0;
    DT_TRY(collect_entries(snapshot, choice, entries, &left_out));
    const char *fallback = dt_snapshot_fallback(snapshot);
    if (fallback != NULL)
        dt_print_note("warning: %s: best.json.1 is shown", fallback);
    bool chosen = choice->count > 0 || dt_choice_by_entry(choice);
    bool none = json_array_size(entries) == 0 && left_out == 0;
    struct dt_text text = {0};
    if (none && chosen)
        return dt_choice_none(choice);
    add_table(entries, &text);
    if (none)
        dt_text_add(&text, "no plans are stored in %s yet\n", directory);
    DT_TRY(dt_print_either(call->options, DT_OK,
                           json_pack("{s:s, s:O}", "db", directory, "entries", entries), &text));
    return left_out == 0 ? DT_OK
                         : dt_fail(DT_ECORRUPT, "%d of the entries of %s %s none", left_out,
                                   directory, left_out == 1 ? "is" : "are");
}
