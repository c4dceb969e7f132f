/* SPDX-License-Identifier: MIT */
/* best.json as anyone may have written it: parsed, every entry read, and looked up in. The lines'
 * checksums, ids and the whole's are mostly right, so that what is behind them is reached. */
#include "db/journal.h"
#include "db/lookup/lookup.h"
#include "db/snapshot.h"
#include "tests/fuzz/mutant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char machine_text[] =
    "{\"format\":\"dittune-machine\",\"version\":{\"major\":1,\"minor\":0},\"hard\":{\"device\":"
    "\"Processor A\",\"cores\":8,\"memory_gib\":64,\"topology\":\"00112233445566aa\"},\"soft\":{"
    "\"dittune\":\"0.1.0\",\"method\":\"1\",\"mpi\":\"4.1\",\"environment\":{}},\"info\":{},"
    "\"limits\":{\"memory_"
    "bytes\":67000000000,\"bfloat16\":true}}";

static const char *const asked[][2] = {
    {"devices", "4"}, {"devices", "2"}, {"engine", "xdit"}, {"worker", "minimal"}, {NULL, NULL}};
enum { QUERIES = 4 };
static struct dt_query *queries[QUERIES];

static const char *const words[] = {"\"id\"",
                                    "\"key\"",
                                    "\"dit-s/2\"",
                                    "\"model\"",
                                    "\"devices\"",
                                    "\"batch\"",
                                    "\"objective\"",
                                    "\"latency\"",
                                    "\"throughput\"",
                                    "\"worker\"",
                                    "\"minimal\"",
                                    "\"space\"",
                                    "\"hard\"",
                                    "\"soft\"",
                                    "\"environment\"",
                                    "\"engine\"",
                                    "\"xdit\"",
                                    "\"dittune\"",
                                    "\"provisional\"",
                                    "\"gain\"",
                                    "{\"ratio\":1.5,\"interval\":[1.4,1.6],\"pairs\":16}",
                                    "\"parameters\"",
                                    "\"rules\"",
                                    "\"constants\"",
                                    "\"rows % tile == 0\"",
                                    "[{\"if\":\"rows % tile == 0\",\"say\":\"no\"}]",
                                    "\"top\"",
                                    "\"pareto\"",
                                    "\"version\"",
                                    "\"incompat\"",
                                    "[\"word\"]",
                                    "{\"major\":2,\"minor\":1}",
                                    "{\"major\":1,\"minor\":0}",
                                    NULL};

static void must(dt_status status)
{
    if (status != DT_OK) {
        fprintf(stderr, "%s\n", dt_message());
        abort();
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct dt_machine *machine = NULL;
    (void)argc, (void)argv;
    must(dt_machine_parse(machine_text, strlen(machine_text), "the machine", &machine));
    for (int i = 0; i < QUERIES; i++) {
        must(dt_query_new(machine, &queries[i]));
        must(dt_query_set(queries[i], asked[i][0], asked[i][1]));
        must(dt_query_set(queries[i], "now_ns", "1800000000000000000"));
        if (strcmp(asked[i][0], "worker") == 0)
            must(dt_query_set(queries[i], "workload", "rows"));
        must(dt_query_seal(queries[i]));
    }
    dt_machine_free(machine);
    return 0;
}

static void look_up(const struct dt_snapshot *snapshot, const struct dt_query *query)
{
    struct dt_answer *answer = NULL;
    if (dt_lookup(snapshot, query, &answer) != DT_OK)
        return;
    if ((answer->tier == DT_TIER_NONE) != (answer->plan == NULL) || answer->reason == NULL)
        abort();
    bool any_space = query == queries[QUERIES - 1]; /* it names none: the entry's key has more */
    bool of_engine = answer->key != dt_query_key(query); /* it names a part of the job */
    if (answer->tier == DT_TIER_EXACT && !any_space && !of_engine &&
        !json_equal(json_object_get(answer->entry, "key"), dt_query_key(query)))
        abort();
    json_t *json = dt_answer_json(answer);
    if (json == NULL)
        abort();
    json_decref(json);
    dt_answer_free(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt_snapshot *snapshot = NULL;
    if (dt_snapshot_parse((const char *)data, size, "the store", &snapshot) != DT_OK)
        return 0;
    for (size_t i = 0; i < dt_snapshot_count(snapshot); i++) {
        const json_t *entry = NULL;
        size_t length;
        uint64_t id = dt_snapshot_id(snapshot, (long)i);
        if (dt_snapshot_line(snapshot, (long)i, &length) == NULL || length > size + 64 ||
            dt_snapshot_find(snapshot, id) < 0)
            abort();
        if (dt_snapshot_entry(snapshot, (long)i, &entry) == DT_OK && !json_is_object(entry))
            abort();
    }
    for (int i = 0; i < QUERIES; i++)
        for (int again = 0; again < 2; again++)
            look_up(snapshot, queries[i]);
    dt_snapshot_close(snapshot);
    return 0;
}

/* The line's id from its key and hard, as a writer makes it. */
static void put_id(struct mutant *m, size_t start, size_t end)
{
    json_t *line = NULL;
    uint64_t id;
    char text[17];
    size_t comma = end > start && m->bytes[end - 1] == ',';
    if (dt_json_parse(m->bytes + start, end - start - comma, "a line", &line) != DT_OK)
        return;
    const json_t *hard = json_object_get(json_object_get(line, "fingerprint"), "hard");
    const json_t *key = json_object_get(line, "key");
    if (key != NULL && hard != NULL && dt_store_id(key, hard, &id) == DT_OK) {
        snprintf(text, sizeof text, "%016llx", (unsigned long long)id);
        memcpy(m->bytes + start + 7, text, 16);
    }
    json_decref(line);
}

static void seal(struct mutant *m)
{
    bool ids = mutant_pick(m, 4) > 0;
    for (size_t at = 0, end; at < m->size; at = end + 1) {
        end = mutant_line_end(m, at);
        if (end - at < 48 || memcmp(m->bytes + at, "{\"id\":\"", 7) != 0)
            continue;
        if (ids)
            put_id(m, at, end);
        size_t crc = mutant_last(m, at, end, ",\"crc\":\"");
        if (crc != SIZE_MAX)
            mutant_crc(m, crc + 8, at, crc);
    }
    size_t checksum = mutant_last(m, 0, m->size, ",\"checksum\":\"");
    if (checksum != SIZE_MAX)
        mutant_crc(m, checksum + 13, 0, checksum);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    struct mutant m = mutant_of(data, size, room, seed, words);
    size_t how = mutant_pick(&m, 16), line = mutant_line(&m);
    if (how == 0)
        mutant_bytes(&m);
    else if (how <= 2)
        mutant_lines(&m);
    else if (how <= 4)
        mutant_json(&m, 0, m.size);
    else
        mutant_json(&m, line, mutant_line_end(&m, line));
    if (mutant_pick(&m, 16) > 0)
        seal(&m);
    return m.size;
}
