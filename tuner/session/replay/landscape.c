/* SPDX-License-Identifier: MIT */
/* A session's journal (docs/database.md): its trials, judged again as the session judged them. */
#include "search/landscape/table.h"
#include "tuner/session/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SESSION_BYTES 1048576 /* more than a session's record ever has */

struct journal {
    const char *what;
    struct dt_replay replay;
};

/* The first line that is not empty is a session's record. */
static bool knows(const struct dt_source *source)
{
    if (source->root != NULL)
        return false;
    size_t skip = strspn(source->text, "\r\n \t");
    const char *begin = source->text + skip;
    size_t size = strcspn(begin, "\n");
    json_t *record = NULL;
    if (size > SESSION_BYTES)
        return false;
    if (dt_json_parse(begin, size, "the first line", &record) != DT_OK)
        return false;
    bool is = strcmp(dt_json_text_at(record, "kind"), "session") == 0;
    json_decref(record);
    return is;
}

/* A landscape needs only the trials, which come before comparisons. */
static dt_status read_record(const json_t *record, int line, void *context)
{
    struct journal *journal = context;
    const char *kind;
    char what[4096 + 32];
    snprintf(what, sizeof what, "%s: line %d", journal->what, line);
    DT_TRY(dt_json_string(record, what, "kind", &kind));
    if (strcmp(kind, "session") != 0 && strcmp(kind, "trial") != 0)
        return DT_OK;
    return dt_replay_record(&journal->replay, record, what);
}

static void free_journal(void *held)
{
    struct journal *journal = held;
    dt_replay_fini(&journal->replay);
    free(journal);
}

static dt_status add_trial(const struct dt_result *result, const struct dt_target *target,
                           struct dt_table *table)
{
    struct dt_cell cells[DT_AXES_MAX] = {{0}};
    const struct dt_trial trial = dt_result_trial(result, target);
    struct dt_entry entry = {.outcome = trial.outcome,
                             .value = trial.value,
                             .cost = trial.cost > 0 ? trial.cost : 0,
                             .peak_bytes = trial.peak_bytes,
                             .count = isnan(trial.value) ? 0 : result->samples.n};
    for (int i = 0; i < table->column_count; i++) {
        const struct dt_axis *axis = dt_space_axis(target->space, i);
        int at = result->point.index[i];
        if (axis->labels != NULL)
            cells[i].text = axis->labels[at];
        else
            cells[i].number = dt_axis_number(axis, axis->values[at]);
    }
    if (dt_point_equal(target->space, &result->point, &target->fallback) && table->start < 0)
        table->start = table->count;
    return dt_table_add_row(table, cells, &entry, result->samples.seconds);
}

static dt_status fill(const struct journal *journal, struct dt_table *table)
{
    const struct dt_session *session = &journal->replay.session;
    const struct dt_target *target = journal->replay.target;
    for (int i = 0; i < dt_space_axes(target->space); i++) {
        const struct dt_axis *axis = dt_space_axis(target->space, i);
        DT_TRY(dt_table_add_column(table, axis->name, axis->role));
    }
    for (int i = 0; i < session->count; i++)
        if (session->trials[i].outcome != DT_TRIAL_INTERRUPTED && dt_session_counts(session, i))
            DT_TRY(add_trial(&session->trials[i], target, table));
    snprintf(table->title, sizeof table->title, "%s", target->identity.title);
    snprintf(table->device, sizeof table->device, "%d cores", target->hardware.cores);
    return DT_OK;
}

static dt_status read_table(const struct dt_source *source, struct dt_table *table)
{
    struct journal *journal = calloc(1, sizeof *journal);
    if (journal == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while reading %s", source->what);
    journal->what = source->what;
    table->held = journal;
    table->free_held = free_journal;
    DT_TRY(dt_journal_scan_bytes(source->what, source->text, source->size, read_record, journal));
    return fill(journal, table);
}

static const struct dt_reader journal_reader = {
    .name = "a journal of a session",
    .knows = knows,
    .read = read_table,
};

dt_status dt_session_landscape(const char *path, struct dt_landscape **landscape)
{
    static const struct dt_reader *const readers[] = {&journal_reader, NULL};
    return dt_landscape_open(path, readers, landscape);
}
