/* SPDX-License-Identifier: MIT */
/* The time of a trial decides how many fit, and with that the search. It is known before the first one only where the store has a
 * result of the same work on this machine. */
#include "tuner/cli/commands/measuring/preview.h"

#include "base/columns.h"
#include "base/figures.h"
#include "db/store.h"
#include "space/json/json.h"
#include "tuner/cli/print.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define SUPPOSED_SECONDS 1.0 /* a trial of unknown length */

/* The folder's own or of the nearest one above it that exists; -1: unknown. */
static int64_t free_bytes(const char *directory)
{
    struct statvfs info;
    struct dt_text path = {0};
    int64_t bytes = -1;
    dt_text_add(&path, "%s%s", directory[0] == '/' ? "" : "./", directory);
    while (path.size > 0 && dt_text_status(&path) == DT_OK && bytes < 0) {
        if (statvfs(dt_text_at(&path), &info) == 0)
            bytes = (int64_t)info.f_bavail * (int64_t)info.f_frsize;
        while (path.size > 1 && path.bytes[path.size - 1] != '/')
            path.size--;
        path.bytes[--path.size] = '\0';
    }
    dt_text_fini(&path);
    return bytes;
}

/* Size of the largest journal in the store; 0: there is none. */
static int64_t journal_bytes(const char *directory)
{
    struct dt_text path = {0};
    struct stat info;
    int64_t most = 0;
    dt_text_add(&path, "%s/runs", directory);
    DIR *folder = opendir(dt_text_at(&path));
    for (const struct dirent *file; folder != NULL && (file = readdir(folder)) != NULL;)
        if (fstatat(dirfd(folder), file->d_name, &info, 0) == 0 && S_ISREG(info.st_mode) &&
            info.st_size > most)
            most = info.st_size;
    if (folder != NULL)
        closedir(folder);
    dt_text_fini(&path);
    return most;
}

/* Seconds of a trial, by the stored result of the same work; 0: there is none. */
static double stored_trial(const struct dt_session *session)
{
    const struct dt_identity *identity = &session->target->identity;
    struct dt_stored_entry entry;
    json_t *json = NULL;
    if (dt_store_get(session->store.directory, identity->key, identity->hard, &json) < 0)
        return 0;
    dt_record_read(&dt_record_stored_entry, json, &entry);
    double step = entry.known ? (double)entry.figures.median_ns * 1e-9 : 0;
    json_decref(json);
    return step > 0 ? dt_session_trial_seconds(step) : 0;
}

static json_t *preview_json(const struct dt_session *session, const struct dt_preview *preview,
                            bool known)
{
    const struct dt_target *target = session->target;
    const char *directory = session->store.directory;
    int64_t space = free_bytes(directory), journal = journal_bytes(directory);
    json_t *plans = json_array();
    for (int i = 0; i < preview->count; i++)
        json_array_append_new(plans,
                              json_pack("{s:s, s:o}", "role", preview->plans[i].role, "plan",
                                        dt_point_json(target->space, &preview->plans[i].point)));
    return json_pack(
        "{s:s, s:o, s:i, s:s, s:f, s:f, s:s, s:s, s:f, s:b, s:f, s:o, s:b, s:s, s:o, s:o}", "title",
        target->identity.title, "plans",
        target->plans >= 0 ? json_integer(target->plans) : json_null(), "devices",
        target->hardware.devices, "unit", target->hardware.unit, "budget_seconds",
        (double)(session->clock.deadline_ns - session->clock.began_ns) / 1e9,
        "trials_until_seconds", preview->trials_until, "search", session->search.name,
        "search_reason", session->search.why, "trial_seconds", preview->trial_seconds,
        "trial_known", known, "loads", preview->classes, "first", plans, "more", preview->more,
        "db", directory, "free_bytes", space >= 0 ? json_integer(space) : json_null(),
        "journal_bytes", journal > 0 ? json_integer(journal) : json_null());
}

static void add_search(const struct dt_session *session, const struct dt_preview *preview,
                       bool known, struct dt_text *out)
{
    dt_text_add(out, "search  %s (%s), %s %s%s", session->search.name, session->search.why,
                known ? "as a trial takes about" : "if a trial takes",
                dt_figure_of(preview->trial_seconds).text,
                known ? " and its load, by the store's result"
                      : ": the first trials tell how long one and its load take");
    if (preview->classes > 1)
        dt_text_add(out,
                    "; %.0f groups of plans are loaded one by one: where that takes long, plans of "
                    "a group follow each other",
                    preview->classes);
    dt_text_add(out, "\n");
}

static void add_disk(const char *directory, struct dt_text *out)
{
    int64_t space = free_bytes(directory), journal = journal_bytes(directory);
    dt_text_add(out, "disk    a journal, ");
    if (journal > 0)
        dt_text_add(out, "of up to %s so far, ", dt_figure_bytes_of(journal).text);
    dt_text_add(out, "in %s", directory);
    if (space >= 0)
        dt_text_add(out, " (%s free)", dt_figure_bytes_of(space).text);
    dt_text_add(out, "\n");
}

static void preview_text(const struct dt_session *session, const struct dt_preview *preview,
                         bool known, struct dt_text *out)
{
    const struct dt_target *target = session->target;
    double all = (double)(session->clock.deadline_ns - session->clock.began_ns) / 1e9;
    dt_text_add(
        out,
        "dry run: nothing is measured or stored\ntime    at most %s: trials until %s at the latest",
        dt_figure_span_of(all).text, dt_figure_span_of(preview->trials_until).text);
    double every = (double)target->plans * preview->trial_seconds;
    if (target->plans >= 0 && every < preview->trials_until)
        dt_text_add(out, " (all %lld plan%s: %s)", (long long)target->plans,
                    target->plans == 1 ? "" : "s", dt_figure_span_of(every).text);
    dt_text_add(out, ", then shoot-out and final comparison\n");
    add_search(session, preview, known, out);
    if (target->broken[0] != '\0')
        dt_text_add(out, "default breaks a rule of its space, and will be measured as it is: %s\n",
                    target->broken);
    add_disk(session->store.directory, out);
    for (int i = 0; i < preview->count; i++) {
        dt_text_add(out, "%s%-8s  ", i == 0 ? "first   " : "        ", preview->plans[i].role);
        dt_point_short(target->space, &preview->plans[i].point, out);
        dt_text_add(out, "\n");
    }
    if (preview->more)
        dt_text_add(out, "        and so on\n");
    else if (target->plans != preview->count)
        dt_text_add(out, "        then plans that depend on these answers\n");
}

dt_status dt_preview(const struct dt_options *options, struct dt_session *session, json_t *results)
{
    struct dt_preview preview;
    struct dt_text text = {0}, wrapped = {0};
    dt_known_read(session, session->store.directory);
    double seconds = stored_trial(session);
    bool known = seconds > 0;
    DT_TRY(dt_session_preview(session, known ? seconds : SUPPOSED_SECONDS, &preview));
    if (options->print.json) {
        json_array_append_new(results, preview_json(session, &preview, known));
        return DT_OK;
    }
    preview_text(session, &preview, known, &text);
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, 8, &wrapped);
    dt_text_fini(&text);
    return dt_print_text(&wrapped);
}
