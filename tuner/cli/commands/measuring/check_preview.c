/* SPDX-License-Identifier: MIT */
#include "tuner/cli/commands/measuring/check_preview.h"

#include "base/columns.h"
#include "base/figures.h"
#include "space/json/json.h"
#include "stats/stats.h"
#include "tuner/cli/print.h"

#include <stdio.h>
#include <stdlib.h>

#define INDENT 12

/* Sums over the entries that can be checked. */
struct sums {
    struct dt_check_span span;
    int entries;
};

static json_t *seconds_json(int64_t ns)
{
    return json_real((double)ns * 1e-9);
}

static void add_span(const struct dt_check_span *span, struct dt_text *out)
{
    dt_figure_span((double)span->least_ns * 1e-9, out);
    dt_text_add(out, " to ");
    dt_figure_span((double)span->most_ns * 1e-9, out);
}

static json_t *entry_json(const struct dt_check_entry *entry, const struct dt_check_span *span)
{
    const struct dt_check_item *item = entry->item;
    json_t *plans = json_array();
    for (int i = 0; i < entry->count; i++)
        json_array_append_new(
            plans,
            json_pack("{s:s, s:o}", "role", dt_entrant_role_text(entry->entrants[i].role), "plan",
                      dt_point_json(entry->target->space, &entry->entrants[i].point)));
    return json_pack("{s:s, s:s, s:O?, s:o, s:o, s:s?, s:o, s:o}", "id", item->entry.id, "title",
                     item->title, "plan", item->entry.plan, "checked_ns",
                     item->checked_ns > 0 ? json_integer(item->checked_ns) : json_null(),
                     "measures", plans, "reason", entry->reason[0] != '\0' ? entry->reason : NULL,
                     "least_seconds", span != NULL ? seconds_json(span->least_ns) : json_null(),
                     "most_seconds", span != NULL ? seconds_json(span->most_ns) : json_null());
}

static void entry_text(const struct dt_check_entry *entry, const struct dt_check_span *span,
                       struct dt_text *out)
{
    const struct dt_check_item *item = entry->item;
    dt_text_add(out, "%s  %s%s\n", item->entry.id, item->title,
                item->checked_ns > 0 ? "" : " (never checked)");
    if (span == NULL) {
        dt_text_add(out, "  would not be measured: %s\n", entry->reason);
        return;
    }
    for (int i = 0; i < entry->count; i++) {
        dt_text_add(out, "  %-9s ", dt_entrant_role_text(entry->entrants[i].role));
        if (entry->entrants[i].role == DT_ENTRANT_TWIN)
            dt_text_add(out, "the tuned plan a second time");
        else
            dt_point_short(entry->target->space, &entry->entrants[i].point, out);
        dt_text_add(out, "\n");
    }
    if (entry->against[0] != '\0')
        dt_text_add(out, "  against   no plan here: %s\n", entry->against);
    dt_text_add(out, "  time      about ");
    add_span(span, out);
    dt_text_add(out, "\n");
}

/* One entry as JSON or as text. */
static dt_status add_entry(struct dt_check_entry *entry, struct sums *sums, json_t *entries,
                           struct dt_text *out)
{
    struct dt_check_span span;
    dt_status status = dt_check_open(entry);
    if (status == DT_EINTR || status == DT_ENOMEM)
        return status;
    if (status < 0) {
        snprintf(entry->reason, sizeof entry->reason, "%s", dt_message());
        dt_text_clean(entry->reason);
    }
    bool open = status == DT_OK && entry->verdict == DT_CHECK_INCONCLUSIVE;
    if (open) {
        span = dt_check_span(entry);
        sums->span.least_ns += span.least_ns;
        sums->span.most_ns += span.most_ns;
        sums->entries++;
    }
    json_array_append_new(entries, entry_json(entry, open ? &span : NULL));
    entry_text(entry, open ? &span : NULL, out);
    return DT_OK;
}

/* The sum against the budget. */
static void add_sum(const struct sums *sums, const struct dt_check_opts *opts, struct dt_text *out)
{
    if (sums->entries == 0)
        return;
    dt_text_add(out, "together  about ");
    add_span(&sums->span, out);
    dt_text_add(out,
                ": %d to %d sets of fresh processes of each plan, by the stored step times (long "
                "loads not included); --budget ",
                DT_SETS_LEAST, opts->until_decided ? DT_SETS_MOST : DT_SETS_USUAL);
    dt_figure_span((double)opts->budget_ns * 1e-9, out);
    dt_text_add(out, opts->budget_ns >= sums->span.most_ns ? " is enough for all\n"
                     : opts->budget_ns >= sums->span.least_ns
                         ? " is enough where few sets decide\n"
                         : " is too short for all: the last of them would not be checked\n");
}

static dt_status add_all(const struct dt_check_opts *opts, const struct dt_check_list *list,
                         struct sums *sums, json_t *entries, struct dt_text *out)
{
    struct dt_check_entry *entry = malloc(sizeof *entry);
    dt_status status = DT_OK;
    if (entry == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (int i = 0; status == DT_OK && i < list->count; i++) {
        *entry = (struct dt_check_entry){.opts = opts, .item = &list->items[i]};
        status = add_entry(entry, sums, entries, out);
        dt_check_close(entry);
    }
    free(entry);
    return status;
}

dt_status dt_check_preview(const struct dt_options *options, const struct dt_check_opts *opts,
                           const struct dt_check_list *list)
{
    struct sums sums = {.entries = 0};
    struct dt_text text = {0}, wrapped = {0};
    json_t *entries = json_array();
    dt_text_add(&text, "dry run: of %s these would be checked, least recently checked first:\n",
                opts->directory);
    dt_status status = add_all(opts, list, &sums, entries, &text);
    add_sum(&sums, opts, &text);
    if (status == DT_OK && options->print.json) {
        status = dt_print_json(json_pack("{s:O, s:o, s:o, s:o}", "entries", entries,
                                         "budget_seconds", seconds_json(opts->budget_ns),
                                         "least_seconds", seconds_json(sums.span.least_ns),
                                         "most_seconds", seconds_json(sums.span.most_ns)));
    } else if (status == DT_OK) {
        dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, INDENT, &wrapped);
        status = dt_print_text(&wrapped);
    }
    json_decref(entries);
    dt_text_fini(&text);
    return status;
}
