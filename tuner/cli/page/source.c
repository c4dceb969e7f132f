/* SPDX-License-Identifier: MIT */
#include "tuner/cli/page/page.h"

#include "base/array.h"
#include "base/figures.h"
#include "base/quote.h"
#include "db/outline.h"
#include "db/snapshot.h"
#include "db/store.h"
#include "tuner/check/check.h"
#include "tuner/check/timeline.h"
#include "tuner/cli/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- sessions in runs/ */

/* A session, by the first record of its journal. */
struct past {
    uint64_t entry;        /* id of the entry of its work on its machine */
    int64_t began_wall_ns; /* that record's */
    char journal[64];
};
struct pasts {
    struct past *at; /* owned */
    int count;
};

static void pasts_fini(struct pasts *sessions)
{
    free(sessions->at);
    *sessions = (struct pasts){.count = 0};
}

/* Reads the beginning of each journal; one that cannot be read is left out. */
static dt_status pasts_read(const char *directory, struct pasts *sessions)
{
    struct dt_journals runs = {.directory = directory};
    while (dt_journals_next(&runs)) {
        DT_CLEANUP(dt_outline_fini) struct dt_outline outline;
        dt_outline_first(runs.path, &outline);
        struct past session = {.began_wall_ns = outline.began_ns};
        const json_t *hard = json_object_get(outline.fingerprint, "hard");
        if (strcmp(outline.kind, "session") != 0 || !json_is_object(outline.key) ||
            !json_is_object(hard) || dt_store_id(outline.key, hard, &session.entry) != DT_OK)
            continue;
        snprintf(session.journal, sizeof session.journal, "%.63s", runs.id);
        runs.status = DT_GROW(sessions->at, sessions->count, 1);
        if (runs.status == DT_OK)
            sessions->at[sessions->count++] = session;
    }
    return dt_journals_end(&runs);
}

/* Time at which the entry's result was stored; INT64_MAX: not known. */
static int64_t stored_at(const struct dt_page_entry *entry, const struct pasts *sessions)
{
    const char *journal = entry->fields.journal;
    if (entry->fields.fingerprint.info.t_wall_ns != 0)
        return entry->fields.fingerprint.info.t_wall_ns;
    for (int i = 0; i < sessions->count && journal != NULL; i++)
        if (strcmp(sessions->at[i].journal, journal) == 0)
            return sessions->at[i].began_wall_ns;
    return INT64_MAX;
}

/* Newest session of the entry's work that began after its result was stored, and so did not
 * replace it; or the newest one that began before; NULL: none. */
static const struct past *newest_past(const struct dt_page_entry *entry,
                                      const struct pasts *sessions, bool after)
{
    const char *own = entry->fields.journal != NULL ? entry->fields.journal : "";
    const struct past *found = NULL;
    int64_t stored_ns = stored_at(entry, sessions);
    for (int i = 0; i < sessions->count; i++) {
        const struct past *session = &sessions->at[i];
        if (session->entry == entry->id && strcmp(session->journal, own) != 0 &&
            (session->began_wall_ns > stored_ns) == after &&
            (found == NULL || session->began_wall_ns > found->began_wall_ns))
            found = session;
    }
    return found;
}

/* ---- the entry that a word names */

#define LISTED_MOST 8 /* entries that a sentence lists */

struct list {
    struct dt_page_entry *at; /* owned */
    int count;
};

static void entry_fini(struct dt_page_entry *entry)
{
    json_decref(entry->json);
    *entry = (struct dt_page_entry){.json = NULL};
}

static void list_fini(struct list *list)
{
    for (int i = 0; i < list->count; i++)
        entry_fini(&list->at[i]);
    free(list->at);
    *list = (struct list){.count = 0};
}

static struct dt_page_entry entry_of(const json_t *json, uint64_t id)
{
    struct dt_page_entry entry = {.json = json_incref((json_t *)json), .id = id};
    dt_record_read(&dt_record_stored_entry, json, &entry.fields);
    dt_check_title(entry.fields.key, entry.title, sizeof entry.title);
    snprintf(entry.hex, sizeof entry.hex, "%016llx", (unsigned long long)id);
    return entry;
}

/* 2: the word is the whole id or title; 1: a part of them or of the key; 0: neither. */
static int entry_rank(const struct dt_page_entry *entry, const char *word)
{
    if (strcasecmp(entry->hex, word) == 0 || strcasecmp(entry->title, word) == 0)
        return 2;
    return strncasecmp(entry->hex, word, strlen(word)) == 0 ||
           dt_check_passes(word, entry->title, entry->fields.key);
}

/* When something was last measured to decide the entry's plan, whether it was stored or not. */
static int64_t measured_at(const struct dt_page_entry *entry, const struct pasts *sessions)
{
    int64_t last_ns = entry->fields.fingerprint.info.t_wall_ns;
    for (int i = 0; i < sessions->count; i++)
        if (sessions->at[i].entry == entry->id && sessions->at[i].began_wall_ns > last_ns)
            last_ns = sessions->at[i].began_wall_ns;
    return last_ns;
}

/* The entries that the word names best, or the newest ones. Lines that are no entries are left
 * out: `dittune db verify` reports them. */
static dt_status list_fill(const struct dt_snapshot *snapshot, const char *word,
                           const struct pasts *sessions, struct list *list)
{
    int64_t best = word == NULL ? INT64_MIN : 1;
    for (size_t i = 0; i < dt_snapshot_count(snapshot); i++) {
        const json_t *json = NULL;
        dt_status status = dt_snapshot_entry(snapshot, (long)i, &json);
        if (status == DT_ECORRUPT)
            continue;
        DT_TRY(status);
        struct dt_page_entry entry = entry_of(json, dt_snapshot_id(snapshot, (long)i));
        int64_t rank = word == NULL ? measured_at(&entry, sessions) : entry_rank(&entry, word);
        if (rank > best) {
            list_fini(list);
            best = rank;
        }
        status = rank == best ? DT_GROW(list->at, list->count, 1) : DT_DONE;
        if (status == DT_OK)
            list->at[list->count++] = entry;
        else
            entry_fini(&entry);
        DT_TRY(status);
    }
    return DT_OK;
}

static dt_status list_refuse(const struct list *list, const char *word)
{
    dt_auto_text text = {0};
    int listed = list->count <= LISTED_MOST ? list->count : LISTED_MOST;
    for (int i = 0; i < listed; i++)
        dt_text_add(&text, "%s%s (%.80s)", i == 0 ? "" : ", ", list->at[i].hex, list->at[i].title);
    if (listed < list->count)
        dt_text_add(&text, ", and %d more, which `dittune db show` lists", list->count - listed);
    return dt_fail(DT_EUSAGE, "'%.80s' matches %d entries, so name one by its id: %s", word,
                   list->count, dt_text_at(&text));
}

/* word: an id or its beginning, or part of the title or key, ignoring case; a whole id or title
 * goes before parts. NULL: the entry whose result, or whose last session, is the newest. No such
 * entry: DT_OK, and *entry is empty. DT_EUSAGE: the word matches several, which the sentence
 * lists. */
static dt_status entry_find(const char *directory, const char *word, const struct pasts *sessions,
                            struct dt_page_entry *entry)
{
    DT_CLEANUP(dt_snapshot_close_at) struct dt_snapshot *snapshot = NULL;
    DT_CLEANUP(list_fini) struct list list = {.count = 0};
    DT_TRY(dt_snapshot_open(directory, &snapshot));
    if (dt_snapshot_fallback(snapshot) != NULL)
        dt_print_note("warning: %s: best.json.1 is read", dt_snapshot_fallback(snapshot));
    DT_TRY(list_fill(snapshot, word, sessions, &list));
    if (list.count > 1 && word != NULL)
        return list_refuse(&list, word);
    if (list.count > 0) {
        *entry = list.at[0];
        list.at[0] = (struct dt_page_entry){.json = NULL};
    }
    return DT_OK;
}

/* ---- what a word names */

/* DT_EUSAGE: it is another file. Records without a checksum are of other programs: they are read
 * if all are such. */
static dt_status read_source(struct dt_page *page)
{
    const char *path = dt_text_at(&page->path);
    struct dt_replay *replay = &page->replay;
    DT_TRY(dt_replay_open(path, false, replay));
    if (replay->kind[0] == '\0') {
        dt_replay_fini(replay);
        DT_TRY(dt_replay_open(path, true, replay));
    }
    if (replay->kind[0] == '\0')
        return dt_fail(DT_EUSAGE, "%s holds no record of a session", path);
    const char *kind = replay->kind;
    if (strcmp(kind, "session") != 0)
        return dt_fail(DT_EUSAGE, "%s is no journal of a session%s", path,
                       strcmp(kind, "run") == 0 ? ", but of a run: see dittune analyze"
                       : replay->damaged > 0    ? ", or its first record, the session's, is damaged"
                                                : "");
    if (replay->damaged > 0)
        dt_print_note("warning: %s: %d damaged record%s skipped", path, replay->damaged,
                      replay->damaged == 1 ? " was" : "s were");
    return DT_OK;
}

static bool is_there(const char *directory, const char *journal)
{
    dt_auto_text path = {0};
    dt_journals_path(directory, journal, &path);
    bool there = access(dt_text_at(&path), F_OK) == 0;
    return there;
}

/* The newest session, of works that match the word (NULL: of all), for which the store has no
 * entry. */
static dt_status find_unstored(const char *directory, const char *word, struct dt_text *path)
{
    DT_CLEANUP(dt_timelines_fini) struct dt_timelines lines = {.count = 0};
    const struct dt_moment_filter filter = {.text = word, .since_ns = INT64_MIN};
    const struct dt_moment *newest = NULL;
    DT_TRY(dt_timelines_read(directory, &filter, &lines));
    for (int i = 0; i < lines.count; i++)
        for (int k = 0; k < lines.lines[i].count; k++) {
            const struct dt_moment *moment = &lines.lines[i].moments[k];
            if (moment->kind == DT_MOMENT_SESSION && moment->run[0] != '\0' &&
                (newest == NULL || moment->t_wall_ns > newest->t_wall_ns) &&
                is_there(directory, moment->run))
                newest = moment;
        }
    if (newest != NULL)
        dt_journals_path(directory, newest->run, path);
    if (path->size > 0)
        return DT_OK;
    return word == NULL
               ? dt_fail(DT_EUSAGE,
                         "no session in %s has a plan: run dittune first, or name "
                         "one of %s/runs that ended without",
                         directory, directory)
               : dt_fail(DT_EUSAGE,
                         "'%s' is no journal, and no entry of %s has it in its id, title or key: "
                         "`dittune db show` lists them",
                         word, directory);
}

/* "dittune report ID", of the same store. */
static void add_command(const struct dt_page *page, const char *command, const char *word,
                        struct dt_text *out)
{
    dt_text_add(out, "dittune %s ", command);
    dt_quote(word, out);
    if (!page->usual) {
        dt_text_add(out, " --db ");
        dt_quote(page->directory, out);
    }
}

static void add_later(struct dt_page *page, const struct past *later)
{
    DT_CLEANUP(dt_outline_fini) struct dt_outline outline = {.key = NULL};
    dt_auto_text path = {0};
    dt_journals_path(page->directory, later->journal, &path);
    bool known = dt_outline_read(dt_text_at(&path), &outline) == DT_OK;
    dt_text_add(&page->later, "A later session of %s UTC ",
                dt_figure_minute(later->began_wall_ns).text);
    if (!known)
        dt_text_add(&page->later, "did not replace this result, and its journal cannot be read");
    else if (outline.ended && outline.verdict == DT_VERDICT_NONE)
        dt_text_add(&page->later, "measured no plan, so this result stays");
    else if (dt_outline_decided(&outline))
        dt_text_add(&page->later, "had a result (%s) that is not the one stored",
                    dt_verdict_text(outline.verdict));
    else
        dt_text_add(&page->later, "ended before its final comparison%s%s, so this result stays",
                    outline.compared ? " was decided" : "",
                    outline.ended ? "" : " (or still runs)");
    dt_text_add(&page->later, ": ");
    add_command(page, "report", later->journal, &page->later);
}

/* The journal of the entry's result, if that is a session's. */
static void find_journal(struct dt_page *page)
{
    const char *journal = page->entry.fields.journal;
    DT_CLEANUP(dt_outline_fini) struct dt_outline outline = {.key = NULL};
    page->origin = DT_FROM_ENTRY;
    if (journal == NULL || strchr(journal, '/') != NULL || !is_there(page->directory, journal))
        return;
    dt_journals_path(page->directory, journal, &page->path);
    dt_outline_first(dt_text_at(&page->path), &outline);
    page->origin = strcmp(outline.kind, "check") == 0     ? DT_FROM_UPDATE
                   : strcmp(outline.kind, "session") == 0 ? DT_FROM_SESSION
                                                          : DT_FROM_ENTRY;
    if (page->origin != DT_FROM_SESSION)
        dt_text_clear(&page->path);
}

static dt_status find_entry(struct dt_page *page, const char *word)
{
    DT_CLEANUP(pasts_fini) struct pasts sessions = {.count = 0};
    DT_TRY(pasts_read(page->directory, &sessions));
    DT_TRY(entry_find(page->directory, word, &sessions, &page->entry));
    if (page->entry.json == NULL)
        return DT_OK;
    find_journal(page);
    const struct past *later = newest_past(&page->entry, &sessions, true),
                      *before = newest_past(&page->entry, &sessions, false);
    if (later != NULL)
        add_later(page, later);
    if (before != NULL && page->origin == DT_FROM_UPDATE)
        add_command(page, "report", before->journal, &page->before);
    return DT_OK;
}

/* A word is a file, the id of a journal in the store, or names an entry. Titles of models may
 * have a slash, too. */
static dt_status find_source(struct dt_page *page, const char *word)
{
    struct stat info; /* a folder of that name is no journal */
    if (word != NULL && stat(word, &info) == 0 && !S_ISDIR(info.st_mode)) {
        dt_text_add(&page->path, "%s", word);
        return DT_OK;
    }
    if (word != NULL && strchr(word, '/') == NULL && is_there(page->directory, word)) {
        dt_journals_path(page->directory, word, &page->path);
        return DT_OK;
    }
    DT_TRY(find_entry(page, word));
    if (page->entry.json != NULL)
        return DT_OK;
    if (word != NULL && strchr(word, '/') != NULL) {
        dt_text_add(&page->path, "%s", word);
        return DT_OK;
    }
    return find_unstored(page->directory, word, &page->path);
}

dt_status dt_page_open(const char *directory, bool usual, const char *word, struct dt_page *page)
{
    *page = (struct dt_page){.usual = usual, .directory = directory};
    DT_TRY(find_source(page, word));
    if (page->path.size > 0) {
        DT_TRY(read_source(page));
        const char *path = dt_text_at(&page->path), *slash = strrchr(path, '/');
        snprintf(page->journal, sizeof page->journal, "%s", slash != NULL ? slash + 1 : path);
        char *end = strstr(page->journal, ".jsonl");
        if (end != NULL)
            *end = '\0';
        page->session = page->replay.session;
    }
    DT_TRY(dt_text_status(&page->before));
    return dt_text_status(&page->later);
}

dt_status dt_page_need(const struct dt_page *page)
{
    dt_auto_text cause = {0}, command = {0};
    if (page->session != NULL)
        return DT_OK;
    dt_page_cause(page, &cause);
    add_command(page, "why", page->entry.hex, &command);
    return dt_fail(DT_EUSAGE,
                   "there is no page of entry %s: %s; `%s` prints what the entry says%s%s%s",
                   page->entry.hex, dt_text_at(&cause), dt_text_at(&command),
                   page->before.size > 0 ? ", and `" : "", dt_text_at(&page->before),
                   page->before.size > 0 ? "` shows the session before the check" : "");
}

void dt_page_close(struct dt_page *page)
{
    dt_replay_fini(&page->replay);
    entry_fini(&page->entry);
    dt_text_fini(&page->path);
    dt_text_fini(&page->later);
    dt_text_fini(&page->before);
}
