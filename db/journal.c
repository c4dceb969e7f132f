/* SPDX-License-Identifier: MIT */
#include "db/journal.h"

#include "base/clock.h"
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
#define CRC_NAME  8 /* of it: ,"crc":" */

struct dt_journal {
    int fd;
    int64_t seq;
    char id[64];
    struct dt_text path;
    struct dt_replace file; /* of dt_journal_create: fd is its */
    bool incomplete;        /* a record could not be written */
    struct dt_text line;    /* kept between records */
};

void (*dt_journal_added)(const char *record, size_t size);

static void id_make(char id[64])
{
    char stamp[32] = "0";
    struct tm utc;
    time_t now = time(NULL);
    if (gmtime_r(&now, &utc) != NULL)
        strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &utc);
    uint64_t random =
        dt_rng_hash((uint64_t)dt_clock_wall_ns(), (uint64_t)getpid(), (uint64_t)dt_clock_ns());
    snprintf(id, 64, "%s-%ld-%08x", stamp, (long)getpid(), (unsigned)(random >> 32));
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

struct reader {
    void (*visit)(const json_t *record, void *context);
    dt_status (*scan)(const json_t *record, int line, void *context); /* instead of visit */
    void (*damaged)(int line, bool torn, void *context);              /* optional, with visit */
    void *context;
    const char *path;
    struct dt_text line;
    bool over; /* the line exceeds the limit of a record */
    bool last; /* no line feed ends it */
    int lines, bad;
};

/* A line of any program: with a crc, which must then be right, or without one. */
static dt_status line_scan(const struct reader *reader)
{
    const char *line = dt_text_at(&reader->line), *damage = NULL;
    size_t size = reader->line.size;
    json_t *record = NULL;
    dt_status status = DT_OK;
    bool sealed = size >= TAIL && memcmp(line + size - TAIL, CRC_FIELD, CRC_NAME) == 0;
    if (reader->over)
        damage = "it is too long";
    else if (size > 0)
        status = sealed ? line_parse(line, size, &record)
                        : dt_json_parse(line, size, "the record", &record);
    if (status < 0 && status != DT_ENOMEM)
        damage = sealed ? "it does not match its crc" : "it is not a JSON object";
    else if (record != NULL && !json_is_object(record))
        damage = "it is not a JSON object";
    else if (!sealed && dt_json_has(record, "crc"))
        damage = "it does not match its crc";
    if (damage != NULL)
        status =
            dt_fail(DT_ECORRUPT, "%s: line %d is damaged: %s", reader->path, reader->lines, damage);
    else if (record != NULL)
        status = reader->scan(record, reader->lines, reader->context);
    json_decref(record);
    return status;
}

static dt_status line_end(struct reader *reader)
{
    json_t *record = NULL;
    dt_status status = DT_OK;
    reader->lines++;
    if (reader->scan != NULL) {
        status = line_scan(reader);
        dt_text_clear(&reader->line);
        reader->over = false;
        return status;
    }
    if (reader->over)
        status = DT_ECORRUPT;
    else if (reader->line.size > 0)
        status = line_parse(dt_text_at(&reader->line), reader->line.size, &record);
    if (record != NULL)
        reader->visit(record, reader->context);
    json_decref(record);
    dt_text_clear(&reader->line);
    reader->over = false;
    if (status == DT_ENOMEM)
        return status;
    reader->bad += status != DT_OK;
    if (status != DT_OK && reader->damaged != NULL)
        reader->damaged(reader->lines, reader->last, reader->context);
    return DT_OK;
}

static dt_status reader_feed(struct reader *reader, const char *bytes, size_t size)
{
    while (size > 0) {
        const char *end = memchr(bytes, '\n', size);
        size_t part = end != NULL ? (size_t)(end - bytes) : size;
        reader->over = reader->over || reader->line.size + part > DT_JSON_MAX_BYTES;
        if (!reader->over)
            dt_text_add_bytes(&reader->line, bytes, part);
        DT_TRY(dt_text_status(&reader->line));
        if (end == NULL)
            return DT_OK;
        DT_TRY(line_end(reader));
        bytes += part + 1;
        size -= part + 1;
    }
    return DT_OK;
}

static dt_status lines_read(int fd, const char *name, struct reader *reader)
{
    char block[65536];
    size_t size;
    for (;;) {
        DT_TRY(dt_read_block(fd, name, block, sizeof block, &size));
        if (size == 0) {
            reader->last = true;
            return line_end(reader);
        }
        DT_TRY(reader_feed(reader, block, size));
    }
}

static dt_status file_read(const char *path, struct reader *reader)
{
    struct dt_text name = {0};
    int fd;
    size_t bytes;
    dt_text_add(&name, "the journal %s", path);
    dt_status status = dt_read_open(path, dt_text_at(&name), &fd, &bytes);
    if (status == DT_OK) {
        status = lines_read(fd, dt_text_at(&name), reader);
        close(fd);
    }
    dt_text_fini(&name);
    dt_text_fini(&reader->line);
    return status;
}

dt_status dt_journal_read(const char *path, void (*visit)(const json_t *record, void *context),
                          void *context, int *bad)
{
    struct reader reader = {.visit = visit, .context = context};
    DT_TRY(file_read(path, &reader));
    *bad = reader.bad;
    return DT_OK;
}

dt_status dt_journal_verify(const char *path, void (*visit)(const json_t *record, void *context),
                            void (*damaged)(int line, bool torn, void *context), void *context)
{
    struct reader reader = {.visit = visit, .damaged = damaged, .context = context};
    return file_read(path, &reader);
}

dt_status dt_journal_scan(const char *path,
                          dt_status (*visit)(const json_t *record, int line, void *context),
                          void *context)
{
    struct reader reader = {.scan = visit, .path = path, .context = context};
    return file_read(path, &reader);
}

dt_status dt_journal_scan_bytes(const char *name, const char *bytes, size_t size,
                                dt_status (*visit)(const json_t *record, int line, void *context),
                                void *context)
{
    struct reader reader = {.scan = visit, .path = name, .context = context};
    dt_status status = reader_feed(&reader, bytes, size);
    if (status == DT_OK)
        status = line_end(&reader);
    dt_text_fini(&reader.line);
    return status;
}
