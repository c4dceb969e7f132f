/* SPDX-License-Identifier: MIT */
#include "db/journal.h"

#include "base/clock.h"
#include "base/figures.h"
#include "base/read.h"
#include "base/replace.h"
#include "base/rng.h"
#include "db/file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TAIL      18 /* ,"crc":"xxxxxxxx"} */
#define CRC_FIELD ",\"crc\":\"%08x\"}"
#define CRC_NAME  8 /* bytes of ,"crc":" */

struct dt_journal {
    int fd;
    int64_t seq;
    char id[64];
    struct dt_text path;
    struct dt_replace file; /* dt_journal_create's: fd belongs to it */
    bool incomplete;        /* a record could not be written */
    struct dt_text line;    /* kept between records */
};

void (*dt_journal_added)(const char *record, size_t size);

static void id_make(char id[64])
{
    const struct dt_figure stamp = dt_figure_stamp((int64_t)time(NULL) * DT_NS_PER_SECOND);
    uint64_t random =
        dt_rng_hash((uint64_t)dt_clock_wall_ns(), (uint64_t)getpid(), (uint64_t)dt_clock_ns());
    snprintf(id, 64, "%s-%ld-%08x", stamp.text, (long)getpid(), (unsigned)(random >> 32));
}

static dt_status file_create(struct dt_journal *journal, const char *folder)
{
    char file[80];
    int directory = -1;
    DT_TRY(dt_file_make_path(folder));
    DT_TRY(dt_file_open_directory(folder, &directory));
    id_make(journal->id);
    snprintf(file, sizeof file, "%s.jsonl", journal->id);
    if (directory >= 0)
        journal->fd =
            dt_file_open(directory, file, O_WRONLY | O_CREAT | O_EXCL | O_APPEND, DT_FILE_MODE);
    dt_status status = DT_OK;
    if (journal->fd < 0)
        status =
            dt_fail(DT_EIO, "cannot make the journal %s/%s: %s", folder, file, strerror(errno));
    else
        status = dt_file_sync_directory(directory, folder);
    dt_text_add(&journal->path, "%s/%s", folder, file);
    if (directory >= 0)
        close(directory);
    return status == DT_OK ? dt_text_status(&journal->path) : status;
}

dt_status dt_journal_open(const char *directory, struct dt_journal **journal)
{
    struct dt_text folder = {0};
    struct dt_journal *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while opening a journal");
    opened->fd = -1;
    dt_text_add(&folder, "%s/runs", directory);
    dt_status status = dt_text_status(&folder);
    if (status == DT_OK)
        status = file_create(opened, dt_text_at(&folder));
    dt_text_fini(&folder);
    if (status == DT_OK)
        *journal = opened;
    else
        dt_journal_close(opened);
    return status;
}

dt_status dt_journal_create(const char *path, struct dt_journal **journal)
{
    struct dt_journal *opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while opening a journal");
    id_make(opened->id);
    dt_text_add(&opened->path, "%s", path);
    dt_status status = dt_replace_open(dt_text_at(&opened->path), &opened->file);
    opened->fd = opened->file.fd;
    if (status == DT_OK)
        status = dt_text_status(&opened->path);
    if (status == DT_OK)
        *journal = opened;
    else
        dt_journal_close(opened);
    return status;
}

const char *dt_journal_id(const struct dt_journal *journal)
{
    return journal->id;
}

const char *dt_journal_path(const struct dt_journal *journal)
{
    return dt_text_at(&journal->path);
}

/* line: one record without its newlines. The crc covers bytes, so it is checked before parsing. */
static dt_status line_parse(const char *line, size_t size, json_t **record)
{
    char tail[TAIL + 1];
    if (size < TAIL)
        return dt_fail(DT_ECORRUPT, "a journal record of %zu bytes has no crc", size);
    snprintf(tail, sizeof tail, CRC_FIELD, (unsigned)dt_crc32c(line, size - TAIL));
    if (memcmp(line + size - TAIL, tail, TAIL) != 0)
        return dt_fail(DT_ECORRUPT, "a journal record of %zu bytes fails its crc", size);
    return dt_json_parse(line, size, "the journal record", record);
}

json_t *dt_journal_bare(const json_t *record)
{
    static const char *const added[] = {"v", "seq", "run", "t_wall_ns", "t_mono_ns", "kind", "crc"};
    json_t *bare = dt_json_copy(record);
    for (size_t i = 0; bare != NULL && i < sizeof added / sizeof added[0]; i++)
        json_object_del(bare, added[i]);
    return bare;
}

/* A new object: the common fields, then the fields of record. */
static dt_status record_dress(const struct dt_journal *journal, const char *kind,
                              const json_t *record, json_t **dressed)
{
    json_t *object =
        json_pack("{s:i, s:I, s:s, s:I, s:I, s:s}", "v", 1, "seq", (json_int_t)journal->seq, "run",
                  journal->id, "t_wall_ns", (json_int_t)dt_clock_wall_ns(), "t_mono_ns",
                  (json_int_t)dt_clock_ns(), "kind", kind);
    const char *key;
    json_t *value;
    dt_status status = DT_OK;
    if (object == NULL)
        status = dt_fail(DT_EUSAGE, "the kind of a journal record must be UTF-8 text");
    json_object_foreach((json_t *)record, key, value)
    {
        if (status != DT_OK)
            break;
        if (dt_json_has(object, key) || strcmp(key, "crc") == 0)
            status = dt_fail(DT_EUSAGE, "the journal writes '%s' itself, a record may not", key);
        else if (json_object_set(object, key, value) != 0)
            status = dt_fail(DT_ENOMEM, "out of memory while writing a journal record");
    }
    if (status == DT_OK)
        *dressed = object;
    else
        json_decref(object);
    return status;
}

/* Writes "\n{...}\n" to journal->line, only when the reader would accept it. */
static dt_status record_frame(struct dt_journal *journal, const json_t *object)
{
    json_t *again = NULL;
    struct dt_text *line = &journal->line;
    dt_text_clear(line);
    dt_text_add(line, "\n");
    DT_TRY(dt_json_text(object, line));
    unsigned crc = (unsigned)dt_crc32c(line->bytes + 1, line->size - 2);
    line->size--;
    dt_text_add(line, CRC_FIELD "\n", crc);
    DT_TRY(dt_text_status(line));
    DT_TRY(line_parse(line->bytes + 1, line->size - 2, &again));
    json_decref(again);
    return DT_OK;
}

/* One write: a short one leaves a torn record, which the next record's leading newline ends. */
static dt_status record_append(const struct dt_journal *journal)
{
    ssize_t put;
    do {
        put = write(journal->fd, journal->line.bytes, journal->line.size);
    } while (put < 0 && errno == EINTR);
    if (put != (ssize_t)journal->line.size)
        return dt_fail(DT_EIO, "cannot write the journal %s: %s", dt_journal_path(journal),
                       strerror(put < 0 ? errno : ENOSPC));
    if (fdatasync(journal->fd) != 0)
        return dt_fail(DT_EIO, "cannot sync the journal %s to disk: %s", dt_journal_path(journal),
                       strerror(errno));
    return DT_OK;
}

dt_status dt_journal_add(struct dt_journal *journal, const char *kind, const json_t *record)
{
    json_t *object = NULL;
    DT_TRY(record_dress(journal, kind, record, &object));
    dt_status status = record_frame(journal, object);
    json_decref(object);
    DT_TRY(status);
    journal->seq++; /* also when the write fails: a part may be in the file */
    status = record_append(journal);
    journal->incomplete = journal->incomplete || status < 0;
    if (status == DT_OK && dt_journal_added != NULL)
        dt_journal_added(journal->line.bytes + 1, journal->line.size - 2);
    return status;
}

dt_status dt_journal_save(struct dt_journal *journal)
{
    bool whole = journal->seq > 0 && !journal->incomplete;
    if (journal->file.path == NULL)
        return DT_OK;
    return dt_replace_close(&journal->file, whole ? DT_OK : DT_FAILED);
}

void dt_journal_close(struct dt_journal *journal)
{
    if (journal == NULL)
        return;
    if (journal->file.path != NULL)
        dt_replace_drop(&journal->file);
    else if (journal->fd >= 0)
        close(journal->fd);
    dt_text_fini(&journal->path);
    dt_text_fini(&journal->line);
    free(journal);
}

/* ---- reading */

static dt_status reader_open(struct dt_journal_reader *reader)
{
    size_t bytes;
    reader->open = true;
    reader->fd = -1;
    dt_text_add(&reader->name, "the journal %s", reader->path);
    reader->last = reader->bytes != NULL;
    if (reader->bytes == NULL)
        DT_TRY(dt_read_open(reader->path, dt_text_at(&reader->name), &reader->fd, &bytes));
    else
        dt_text_add_bytes(&reader->text, reader->bytes, reader->bytes_size);
    return dt_text_status(&reader->text);
}

/* Forgets the lines that were read, and what exceeds the limit of a record. */
static dt_status block_read(struct dt_journal_reader *reader)
{
    char block[65536];
    size_t size;
    struct dt_text *text = &reader->text;
    reader->over = reader->over || text->size - reader->at > DT_JSON_MAX_BYTES;
    if (reader->over)
        reader->at = text->size;
    if (reader->at > 0)
        memmove(text->bytes, text->bytes + reader->at, text->size - reader->at);
    text->size -= reader->at;
    reader->at = 0;
    DT_TRY(dt_read_block(reader->fd, dt_text_at(&reader->name), block, sizeof block, &size));
    reader->last = size == 0;
    dt_text_add_bytes(text, block, size);
    return dt_text_status(text);
}

/* The next line, borrowed until the next call; false: none. */
static bool line_next(struct dt_journal_reader *reader, const char **line, size_t *size)
{
    const struct dt_text *text = &reader->text;
    size_t seen = 0;
    const char *end;
    reader->over = false;
    while ((end = memchr(dt_text_at(text) + reader->at + seen, '\n',
                         text->size - reader->at - seen)) == NULL &&
           !reader->last) {
        seen = text->size - reader->at;
        reader->status = block_read(reader);
        seen = reader->over ? 0 : seen;
        if (reader->status < 0)
            return false;
    }
    *line = dt_text_at(text) + reader->at;
    *size = end != NULL ? (size_t)(end - *line) : text->size - reader->at;
    reader->at += *size + (end != NULL);
    reader->over = reader->over || *size > DT_JSON_MAX_BYTES;
    reader->ended = end == NULL;
    reader->line++;
    return true;
}

/* A line of any program: with a crc, which must then be right, or without one. */
static dt_status foreign_parse(struct dt_journal_reader *reader, const char *line, size_t size)
{
    bool sealed = size >= TAIL && memcmp(line + size - TAIL, CRC_FIELD, CRC_NAME) == 0;
    const char *damage = NULL;
    dt_status status = reader->over ? DT_ECORRUPT
                       : sealed     ? line_parse(line, size, &reader->record)
                                    : dt_json_parse(line, size, "the record", &reader->record);
    if (status == DT_ENOMEM)
        return status;
    if (reader->over)
        damage = "it is too long";
    else if (status < 0)
        damage = sealed ? "it does not match its crc" : "it is not a JSON object";
    else if (!json_is_object(reader->record))
        damage = "it is not a JSON object";
    else if (!sealed && dt_json_has(reader->record, "crc"))
        damage = "it does not match its crc";
    return damage == NULL ? DT_OK
                          : dt_fail(DT_ECORRUPT, "%s: line %d is damaged: %s", reader->path,
                                    reader->line, damage);
}

static void record_drop(struct dt_journal_reader *reader)
{
    json_decref(reader->record);
    reader->record = NULL;
    reader->kind = "";
}

bool dt_journal_next(struct dt_journal_reader *reader)
{
    const char *line;
    size_t size;
    record_drop(reader);
    if (reader->status == DT_OK && !reader->open)
        reader->status = reader_open(reader);
    while (reader->status == DT_OK && !reader->ended && line_next(reader, &line, &size)) {
        if (size == 0 && !reader->over)
            continue;
        dt_status status = reader->foreign ? foreign_parse(reader, line, size)
                           : reader->over  ? DT_ECORRUPT
                                           : line_parse(line, size, &reader->record);
        reader->damaged += status < 0;
        reader->torn = status < 0 && reader->ended;
        if (status == DT_ENOMEM || (status < 0 && reader->foreign)) {
            reader->status = status;
        } else if (status == DT_OK || reader->shows_damage) {
            reader->kind = dt_json_text_at(reader->record, "kind");
            return true;
        }
    }
    record_drop(reader);
    return false;
}

dt_status dt_journal_end(struct dt_journal_reader *reader)
{
    record_drop(reader);
    if (reader->open && reader->fd >= 0)
        close(reader->fd);
    dt_text_fini(&reader->name);
    dt_text_fini(&reader->text);
    reader->open = false;
    return reader->status;
}
