/* SPDX-License-Identifier: MIT */
#include "tuner/cli/page/source.h"

#include "db/store.h"
#include "tuner/check/history/timeline.h"
#include "tuner/cli/print.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void visit(const json_t *record, void *context)
{
    struct dt_page_source *source = context;
    if (source->first == NULL)
        source->first = json_incref((json_t *)record);
    if (source->status == DT_OK)
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
    const char *kind =
        source->first != NULL ? dt_json_text_at(source->first, "kind") : "of no session";
    if (source->first != NULL && strcmp(kind, "session") != 0)
        return dt_fail(DT_EUSAGE, "%s is no journal of a session%s", path,
                       strcmp(kind, "run") == 0 ? ", but of a run: see dittune analyze" : "");
    DT_TRY(source->status);
    if (source->first == NULL || source->replay.target == NULL)
        return dt_fail(DT_EUSAGE, "%s holds no record of a session", path);
    if (bad > 0)
        dt_print_note("warning: %s: %d damaged record%s skipped", path, bad,
                      bad == 1 ? " was" : "s were");
    dt_replay_end(&source->replay);
    return DT_OK;
}

/* The newest session of the entries that match the word (NULL: of all). */
static dt_status find_newest(const char *directory, const char *word, struct dt_text *path)
{
    struct dt_timelines lines;
    const struct dt_moment_filter filter = {.text = word, .since_ns = INT64_MIN};
    const struct dt_moment *newest = NULL;
    DT_TRY(dt_timelines_read(directory, &filter, &lines));
    for (int i = 0; i < lines.count; i++)
        for (int k = 0; k < lines.lines[i].count; k++) {
            const struct dt_moment *moment = &lines.lines[i].moments[k];
            if (moment->kind == DT_MOMENT_SESSION && moment->run[0] != '\0' &&
                (newest == NULL || moment->t_wall_ns > newest->t_wall_ns))
                newest = moment;
        }
    if (newest != NULL)
        dt_text_add(path, "%s/runs/%s.jsonl", directory, newest->run);
    dt_timelines_fini(&lines);
    if (path->size > 0)
        return DT_OK;
    return word == NULL ? dt_fail(DT_EUSAGE, "no session in %s: run dittune first", directory)
                        : dt_fail(DT_EUSAGE,
                                  "'%s' is no journal, and no title of an entry of %s holds it: "
                                  "`dittune db show` lists them",
                                  word, directory);
}

/* A word is a file, the id of a journal in the store, or part of an entry's title. */
static dt_status find_source(const char *directory, const char *word, struct dt_text *path)
{
    if (word == NULL)
        return find_newest(directory, NULL, path);
    if (access(word, F_OK) == 0 || strchr(word, '/') != NULL) {
        dt_text_add(path, "%s", word);
        return DT_OK;
    }
    dt_text_add(path, "%s/runs/%s.jsonl", directory, word);
    if (access(dt_text_at(path), F_OK) == 0)
        return DT_OK;
    dt_text_clear(path);
    return find_newest(directory, word, path);
}

dt_status dt_page_source_open(const char *directory, const char *word,
                              struct dt_page_source *source)
{
    *source = (struct dt_page_source){.status = DT_OK};
    DT_TRY(find_source(directory != NULL ? directory : dt_store_default(), word, &source->path));
    DT_TRY(read_source(source));
    const char *slash = strrchr(dt_text_at(&source->path), '/');
    snprintf(source->name, sizeof source->name, "%s",
             slash != NULL ? slash + 1 : dt_text_at(&source->path));
    char *end = strstr(source->name, ".jsonl");
    if (end != NULL)
        *end = '\0';
    source->page = (struct dt_page){
        .session = &source->replay.session,
        .journal = source->name,
        .machine = json_object_get(source->first, "fingerprint"),
        .began_wall_ns = json_integer_value(json_object_get(source->first, "t_wall_ns")),
        .ended = source->replay.ended};
    return DT_OK;
}

void dt_page_source_close(struct dt_page_source *source)
{
    dt_replay_fini(&source->replay);
    json_decref(source->first);
    dt_text_fini(&source->path);
}
