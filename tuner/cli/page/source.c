/* SPDX-License-Identifier: MIT */
#include "tuner/cli/page/source.h"

#include "base/quote.h"
#include "db/store.h"
#include "tuner/check/history/timeline.h"
#include "tuner/cli/print.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_kind(const json_t *record, const char *kind)
{
    return strcmp(dt_json_text_at(record, "kind"), kind) == 0;
}

static void visit(const json_t *record, void *context)
{
    struct dt_page_source *source = context;
    if (source->first == NULL)
        source->first = json_incref((json_t *)record);
    if (source->status == DT_OK && is_kind(source->first, "session"))
        source->status = dt_replay_record(&source->replay, record, dt_text_at(&source->path));
}

static dt_status visit_line(const json_t *record, int line, void *context)
{
    (void)line;
    visit(record, context);
    return ((struct dt_page_source *)context)->status;
}

/* DT_EUSAGE: it is another file. Records without a checksum are of other programs: they are read if all are such. */
static dt_status read_source(struct dt_page_source *source)
{
    const char *path = dt_text_at(&source->path);
    int bad;
    DT_TRY(dt_journal_read(path, visit, source, &bad));
    if (source->first == NULL)
        DT_TRY(dt_journal_scan(path, visit_line, source));
    if (source->first != NULL && !is_kind(source->first, "session"))
        return dt_fail(DT_EUSAGE, "%s is no journal of a session%s", path,
                       is_kind(source->first, "run") ? ", but of a run: see dittune analyze"
                       : bad > 0 ? ", or its first record, the session's, is damaged"
                                 : "");
    DT_TRY(source->status);
    if (source->first == NULL || source->replay.target == NULL)
        return dt_fail(DT_EUSAGE, "%s holds no record of a session", path);
    if (bad > 0)
        dt_print_note("warning: %s: %d damaged record%s skipped", path, bad,
                      bad == 1 ? " was" : "s were");
    dt_replay_end(&source->replay);
    return DT_OK;
}

static bool is_there(const char *directory, const char *journal)
{
    struct dt_text path = {0};
    dt_text_add(&path, "%s/runs/%s.jsonl", directory, journal);
    bool there = access(dt_text_at(&path), F_OK) == 0;
    dt_text_fini(&path);
    return there;
}

/* The newest session, of works that match the word (NULL: of all), for which the store has no entry. */
static dt_status find_unstored(const char *directory, const char *word, struct dt_text *path)
{
    struct dt_timelines lines;
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
        dt_text_add(path, "%s/runs/%s.jsonl", directory, newest->run);
    dt_timelines_fini(&lines);
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
static void add_command(const struct dt_page_source *source, const char *command, const char *word,
                        struct dt_text *out)
{
    dt_text_add(out, "dittune %s ", command);
    dt_quote(word, out);
    if (!source->usual) {
        dt_text_add(out, " --db ");
        dt_quote(source->directory, out);
    }
}

/* How a session ended, by its journal. */
struct ending {
    bool ended, compared;
    char verdict[32];
};

static void visit_ending(const json_t *record, void *context)
{
    struct ending *ending = context;
    const char *kind = dt_json_text_at(record, "kind");
    if (strcmp(kind, "sets") == 0 || strcmp(kind, "comparison") == 0)
        ending->compared =
            ending->compared || strcmp(dt_json_text_at(record, "name"), "final comparison") == 0;
    if (strcmp(kind, "end") != 0)
        return;
    ending->ended = true;
    snprintf(ending->verdict, sizeof ending->verdict, "%s", dt_json_text_at(record, "verdict"));
}

static void add_later(struct dt_page_source *source, const struct dt_named_session *later)
{
    struct ending ending = {.verdict = ""};
    struct dt_text path = {0};
    char minute[24];
    int bad;
    dt_text_add(&path, "%s/runs/%s.jsonl", source->directory, later->journal);
    bool known = dt_journal_read(dt_text_at(&path), visit_ending, &ending, &bad) == DT_OK;
    enum dt_verdict verdict = dt_verdict_of(ending.verdict);
    dt_text_fini(&path);
    dt_minute(later->began_wall_ns, minute);
    dt_text_add(&source->later, "A later session of %s UTC ", minute);
    if (!known)
        dt_text_add(&source->later, "did not replace this result, and its journal cannot be read");
    else if (ending.ended && verdict == DT_VERDICT_NONE)
        dt_text_add(&source->later, "measured no plan, so this result stays");
    else if (ending.ended && !dt_verdict_provisional(verdict))
        dt_text_add(&source->later, "had a result (%s) that is not the one stored", ending.verdict);
    else
        dt_text_add(&source->later, "ended before its final comparison%s%s, so this result stays",
                    ending.compared ? " was decided" : "", ending.ended ? "" : " (or still runs)");
    dt_text_add(&source->later, ": ");
    add_command(source, "report", later->journal, &source->later);
}

/* The journal of the entry's result, if that is a session's. */
static void find_journal(struct dt_page_source *source)
{
    char kind[32] = "";
    const char *journal = source->entry.fields.journal;
    source->origin = DT_NAMED_ENTRY;
    if (journal == NULL || strchr(journal, '/') != NULL || !is_there(source->directory, journal))
        return;
    dt_text_add(&source->path, "%s/runs/%s.jsonl", source->directory, journal);
    dt_named_journal_kind(dt_text_at(&source->path), kind);
    source->origin = strcmp(kind, "check") == 0     ? DT_NAMED_UPDATE
                     : strcmp(kind, "session") == 0 ? DT_NAMED_SESSION
                                                    : DT_NAMED_ENTRY;
    if (source->origin != DT_NAMED_SESSION)
        dt_text_clear(&source->path);
}

static dt_status find_entry(struct dt_page_source *source, const char *word)
{
    struct dt_named_sessions sessions;
    DT_TRY(dt_named_sessions_read(source->directory, &sessions));
    dt_status status = dt_named_entry_find(source->directory, word, &sessions, &source->entry);
    if (status == DT_OK && source->entry.json != NULL) {
        find_journal(source);
        const struct dt_named_session *later = dt_named_session_after(&source->entry, &sessions),
                                      *before = dt_named_session_before(&source->entry, &sessions);
        if (later != NULL)
            add_later(source, later);
        if (before != NULL && source->origin == DT_NAMED_UPDATE)
            add_command(source, "report", before->journal, &source->before);
    }
    dt_named_sessions_fini(&sessions);
    return status;
}

/* A folder of that name is no journal. */
static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
}

/* A word is a file, the id of a journal in the store, or names an entry. Titles of models may have a slash, too. */
static dt_status find_source(struct dt_page_source *source, const char *word)
{
    if (word != NULL && is_file(word)) {
        dt_text_add(&source->path, "%s", word);
        return DT_OK;
    }
    if (word != NULL && strchr(word, '/') == NULL && is_there(source->directory, word)) {
        dt_text_add(&source->path, "%s/runs/%s.jsonl", source->directory, word);
        return DT_OK;
    }
    DT_TRY(find_entry(source, word));
    if (source->entry.json != NULL)
        return DT_OK;
    if (word != NULL && strchr(word, '/') != NULL) {
        dt_text_add(&source->path, "%s", word);
        return DT_OK;
    }
    return find_unstored(source->directory, word, &source->path);
}

static void set_name(struct dt_page_source *source)
{
    const char *slash = strrchr(dt_text_at(&source->path), '/');
    snprintf(source->name, sizeof source->name, "%s",
             slash != NULL ? slash + 1 : dt_text_at(&source->path));
    char *end = strstr(source->name, ".jsonl");
    if (end != NULL)
        *end = '\0';
}

dt_status dt_page_source_open(const char *directory, const char *word,
                              struct dt_page_source *source)
{
    *source =
        (struct dt_page_source){.status = DT_OK,
                                .usual = directory == NULL,
                                .directory = directory != NULL ? directory : dt_store_default()};
    DT_TRY(find_source(source, word));
    if (source->path.size > 0) {
        DT_TRY(read_source(source));
        set_name(source);
        source->page = (struct dt_page){
            .session = &source->replay.session,
            .journal = source->name,
            .machine = json_object_get(source->first, "fingerprint"),
            .began_wall_ns = json_integer_value(json_object_get(source->first, "t_wall_ns")),
            .ended = source->replay.ended};
    }
    source->page.entry = source->entry.json != NULL ? source->entry.hex : NULL;
    source->page.later = dt_text_at(&source->later);
    DT_TRY(dt_text_status(&source->before));
    return dt_text_status(&source->later);
}

struct dt_named_stored dt_page_source_stored(const struct dt_page_source *source)
{
    return (struct dt_named_stored){.entry = &source->entry,
                                    .origin = source->origin,
                                    .directory = source->directory,
                                    .before = dt_text_at(&source->before),
                                    .later = dt_text_at(&source->later)};
}

dt_status dt_page_source_need(const struct dt_page_source *source)
{
    struct dt_text cause = {0}, command = {0};
    if (source->page.session != NULL)
        return DT_OK;
    struct dt_named_stored stored = dt_page_source_stored(source);
    dt_named_stored_cause(&stored, &cause);
    add_command(source, "why", source->entry.hex, &command);
    dt_status status = dt_fail(
        DT_EUSAGE, "there is no page of entry %s: %s; `%s` prints what the entry says%s%s%s",
        source->entry.hex, dt_text_at(&cause), dt_text_at(&command),
        source->before.size > 0 ? ", and `" : "", dt_text_at(&source->before),
        source->before.size > 0 ? "` shows the session before the check" : "");
    dt_text_fini(&cause);
    dt_text_fini(&command);
    return status;
}

void dt_page_source_close(struct dt_page_source *source)
{
    dt_replay_fini(&source->replay);
    json_decref(source->first);
    dt_named_entry_fini(&source->entry);
    dt_text_fini(&source->path);
    dt_text_fini(&source->later);
    dt_text_fini(&source->before);
}
