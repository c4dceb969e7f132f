/* SPDX-License-Identifier: MIT */
/* A journal as anyone may have written it: scanned strictly, as simulations read it. What a
 * session's own records say is then read by the space that its first one announces. */
#include "db/journal.h"
#include "space/json/json.h"
#include "space/space.h"
#include "tests/fuzz/mutant.h"

#include <stdlib.h>
#include <string.h>

static const char *const words[] = {
    "\"kind\"",       "\"session\"", "\"trial\"",   "\"comparison\"",
    "\"best\"",       "\"end\"",     "\"check\"",   "\"seq\"",
    "\"crc\"",        "\"plan\"",    "\"ns\"",      "[[1,2],[3,4]]",
    "\"parameters\"", "\"values\"",  "\"default\"", "\"outcome\"",
    "\"ok\"",         "{}",          NULL};

struct reader {
    struct dt_space *space;
    int line, records, plans;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

static void visit(struct reader *reader, const json_t *record, int line)
{
    struct dt_point point;
    if (!json_is_object(record) || line <= reader->line)
        abort();
    reader->line = line;
    reader->records++;
    if (reader->space == NULL && dt_json_has(record, "parameters") &&
        dt_space_axes_from_json(record, "the record", &reader->space) != DT_OK)
        reader->space = NULL;
    const json_t *plan = json_object_get(record, "plan");
    if (reader->space != NULL && plan != NULL &&
        dt_point_read(reader->space, plan, &point) == DT_OK) {
        json_t *again = dt_point_json(reader->space, &point);
        struct dt_point same;
        if (dt_point_read(reader->space, again, &same) != DT_OK ||
            !dt_point_equal(reader->space, &point, &same))
            abort();
        json_decref(again);
        reader->plans++;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader reader = {.space = NULL};
    struct dt_journal_reader journal = {
        .path = "the journal", .bytes = (const char *)data, .bytes_size = size, .foreign = true};
    while (dt_journal_next(&journal))
        visit(&reader, journal.record, journal.line);
    dt_status status = dt_journal_end(&journal);
    if (status < 0 && dt_message()[0] == '\0')
        abort();
    dt_space_free(reader.space);
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    struct mutant m = mutant_of(data, size, room, seed, words);
    return mutant_journal(&m);
}
