/* SPDX-License-Identifier: MIT */
/* A session, or two, as a page: read back from their journals and judged again; nothing is measured. */
#include "db/store.h"
#include "tuner/check/history/timeline.h"
#include "tuner/cli/page/page.h"
#include "tuner/cli/print.h"
#include "tuner/session/history.h"
#include "tuner/session/record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define USUAL "report.html"

struct source {
    struct dt_text path;
    struct dt_replay replay;
    json_t *first;  /* its first record */
    char name[128]; /* the file's, without ".jsonl" */
    dt_status status;
};

static void visit(const json_t *record, void *context)
{
    struct source *source = context;
    if (source->first == NULL)
        source->first = json_incref((json_t *)record);
    if (source->status == DT_OK)
        source->status = dt_replay_record(&source->replay, record, dt_text_at(&source->path));
}

/* DT_EUSAGE: it is another file. */
static dt_status read_source(struct source *source)
{
    const char *path = dt_text_at(&source->path);
    int bad;
    DT_TRY(dt_journal_read(path, visit, source, &bad));
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

static dt_status write_file(const char *path, const struct dt_text *text)
{
    FILE *file = fopen(path, "w");
    bool good = file != NULL && fwrite(dt_text_at(text), 1, text->size, file) == text->size;
    int error = errno;
    if (file != NULL && fclose(file) != 0 && good) {
        good = false;
        error = errno;
    }
    return good ? DT_OK : dt_fail(DT_EIO, "cannot write %s: %s", path, strerror(error));
}

static dt_status write_page(const struct dt_options *options, const struct dt_page_format *format,
                            const struct dt_page pages[], int n)
{
    struct dt_text text = {0};
    const char *output = options->run.output;
    if (format->write == NULL && n == 1 && output == NULL)
        return dt_print_json(dt_record_session(pages[0].session));
    if (format->write != NULL) {
        format->write(pages, n, &text);
    } else {
        json_t *list = json_array();
        for (int i = 0; i < n; i++)
            json_array_append_new(list, dt_record_session(pages[i].session));
        dt_status status = dt_json_text(n == 1 ? json_array_get(list, 0) : list, &text);
        json_decref(list);
        dt_text_add(&text, "\n");
        if (status != DT_OK)
            text.failed = true;
    }
    if (output == NULL && strcmp(format->name, "html") == 0)
        output = USUAL;
    if (output == NULL || strcmp(output, "-") == 0)
        return dt_print_exact(&text);
    dt_status status = dt_text_status(&text);
    if (status == DT_OK)
        status = write_file(output, &text);
    if (status == DT_OK && !options->print.quiet)
        dt_print_note("wrote %s (%zu KiB)", output, text.size / 1024);
    dt_text_fini(&text);
    return status;
}

static struct dt_page page_of(struct source *source)
{
    const char *slash = strrchr(dt_text_at(&source->path), '/');
    snprintf(source->name, sizeof source->name, "%s",
             slash != NULL ? slash + 1 : dt_text_at(&source->path));
    char *end = strstr(source->name, ".jsonl");
    if (end != NULL)
        *end = '\0';
    return (struct dt_page){.session = &source->replay.session,
                            .journal = source->name,
                            .machine = json_object_get(source->first, "fingerprint"),
                            .began_wall_ns =
                                json_integer_value(json_object_get(source->first, "t_wall_ns")),
                            .ended = source->replay.ended};
}

dt_status dt_command_report(const struct dt_options *options)
{
    const char *directory = options->db != NULL ? options->db : dt_store_default();
    const char *name = options->print.format != NULL ? options->print.format
                       : options->print.json         ? "json"
                                                     : "html";
    const struct dt_page_format *format = dt_page_format(name);
    struct source sources[2] = {{.status = DT_OK}, {.status = DT_OK}};
    struct dt_page pages[2];
    dt_status status = DT_OK;
    int n = options->words.rest_count > 0 ? options->words.rest_count : 1;
    if (format == NULL)
        return dt_fail(DT_EUSAGE, "--format '%s' is not html, md, csv or json", name);
    for (int i = 0; i < n && status == DT_OK; i++) {
        status =
            find_source(directory, options->words.rest_count > 0 ? options->words.rest[i] : NULL,
                        &sources[i].path);
        if (status == DT_OK)
            status = read_source(&sources[i]);
        pages[i] = page_of(&sources[i]);
    }
    if (status == DT_OK)
        status = write_page(options, format, pages, n);
    for (int i = 0; i < n; i++) {
        dt_replay_fini(&sources[i].replay);
        json_decref(sources[i].first);
        dt_text_fini(&sources[i].path);
    }
    return status;
}
