/* SPDX-License-Identifier: MIT */
/* A session's journal as anyone may have written it, read back and judged again as `report` (every
 * format), `why`, `rebuild`, `simulate` and, of a run, `analyze` do. */
#include "tuner/session/replay.h"
#include "db/journal.h"
#include "search/landscape/landscape.h"
#include "tests/fuzz/mutant.h"
#include "tests/tuner/session/same_session.h"
#include "tuner/cli/page/page.h"
#include "tuner/cli/report/report.h"
#include "tuner/session/record/session_json.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const words[] = {"\"kind\"",
                                    "\"session\"",
                                    "\"trial\"",
                                    "\"comparison\"",
                                    "\"search\"",
                                    "\"end\"",
                                    "\"run\"",
                                    "\"left_out\"",
                                    "\"plan\"",
                                    "\"ns\"",
                                    "[[1,2],[3]]",
                                    "\"parameters\"",
                                    "\"values\"",
                                    "\"default\"",
                                    "\"outcome\"",
                                    "\"ok\"",
                                    "\"crashed\"",
                                    "\"rounds\"",
                                    "\"entrants\"",
                                    "\"final comparison\"",
                                    "\"importance\"",
                                    "\"known\"",
                                    "\"requests\"",
                                    "9223372036854775807",
                                    "4611686018427387904",
                                    "1e308",
                                    "{}",
                                    NULL};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

static int file;
static char path[64];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    file = memfd_create("journal", MFD_CLOEXEC);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    return file < 0 || setenv("PATH", "", 1) != 0; /* no gnuplot */
}

static void check(dt_status status)
{
    if (status < 0 && dt_message()[0] == '\0')
        abort();
}

static void write_pages(const struct dt_page *page)
{
    static const char *const names[] = {"html", "md", "csv"};
    struct dt_text text = {0};
    json_decref(dt_page_why(page, &text));
    json_decref(dt_session_json(page->session));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct dt_page pages[2] = {*page, *page};
        dt_text_clear(&text);
        dt_page_format(names[i])->write(pages, 1 + (int)(i % 2), &text);
        if (text.size == 0)
            abort();
    }
    dt_text_fini(&text);
}

static void read_session(void)
{
    struct dt_page page;
    dt_status status = dt_page_open("/nonexistent", false, path, &page);
    check(status);
    if (status == DT_OK && page.session != NULL)
        write_pages(&page);
    dt_page_close(&page);
}

/* A measurement that was read is written, and read again, as it is. Times beyond 2^50 ns are no
 * whole nanoseconds any more as seconds. */
static void copy_record(const struct dt_log_record *record, const struct dt_session *session)
{
    struct dt_log_record copy;
    if (record->kind == DT_LOG_TRIAL && !(record->result.facts.cost_seconds > 1e6) &&
        !(record->result.facts.cold_seconds > 1e6)) {
        dt_status status = dt_log_copy(record, session->target, &session->clocks, &copy);
        check(status);
        if (status == DT_OK && differs_result(&record->result, &copy.result, true) != NULL)
            abort();
        dt_log_record_fini(&copy);
    }
}

static void read_records(const uint8_t *data, size_t size)
{
    struct dt_journal_reader reader = {
        .path = "it", .bytes = (const char *)data, .bytes_size = size, .foreign = true};
    struct dt_log *log = NULL;
    reader.status = dt_log_new(&log);
    while (dt_journal_next(&reader)) {
        const struct dt_session *session = dt_log_session(log);
        struct dt_log_record record;
        if (dt_log_decode(&reader, "it", session->target, &session->clocks, &record) == DT_OK)
            copy_record(&record, session);
        dt_log_record_fini(&record);
        reader.status = dt_log_read(log, &reader, "it");
    }
    check(dt_journal_end(&reader));
    dt_log_read_end(log);
    dt_log_free(log);
}

static void read_others(void)
{
    struct dt_landscape *landscape = NULL;
    json_t *entry = NULL;
    check(dt_revive(path, &entry));
    json_decref(entry);
    dt_status status = dt_session_landscape(path, &landscape);
    check(status);
    if (status == DT_OK)
        dt_landscape_free(landscape);
}

static void measured(void *context, const struct dt_result *result, const struct dt_result *one,
                     const struct dt_target *target)
{
    (void)context;
    json_decref(dt_record_run(result, one, target));
}

static void left_out(void *context, const struct dt_sweep *sweep, int value, const char *reason)
{
    (void)context, (void)sweep, (void)value, (void)reason;
}

static void read_run(const uint8_t *data, size_t size)
{
    struct dt_replay_run run = {.measured = measured, .left_out = left_out};
    struct dt_journal_reader reader = {
        .path = "the run", .bytes = (const char *)data, .bytes_size = size, .foreign = true};
    while (dt_journal_next(&reader))
        reader.status = dt_replay_run_read(&run, &reader, "the run");
    dt_status status = dt_journal_end(&reader);
    if (status == DT_OK)
        status = dt_replay_run_end(&run);
    check(status);
    dt_replay_run_fini(&run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size)
        abort();
    read_session();
    read_others();
    read_records(data, size);
    read_run(data, size);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    struct mutant m = mutant_of(data, size, room, seed, words);
    return mutant_journal(&m);
}
