/* SPDX-License-Identifier: MIT */
/* store - a store of as many entries as wanted, each of full size, and the question that
 * each of them answers
 *
 * Written by hand after docs/database.md, so that what reads it is not judged by what writes it.
 * For the benchmark of look-ups and for the tests of the public library.
 */
#ifndef DT_BENCH_LOOKUP_SPEED_STORE_H
#define DT_BENCH_LOOKUP_SPEED_STORE_H

#include "base/clock.h"
#include "base/json.h"
#include "db/journal.h"
#include "db/lookup/lookup.h"
#include "db/snapshot.h"

#include <stdio.h>
#include <string.h>

#define MADE_MACHINE                                                                               \
    "{\"format\":\"dittune-machine\",\"version\":{\"major\":1,\"minor\":0},"                       \
    "\"hard\":{\"device\":\"Made for a test\",\"cores\":8,\"memory_gib\":32,\"topology\":\"00\"}," \
    "\"soft\":{\"dittune\":\"0.1.0\",\"method\":\"1\"},\"info\":{\"host\":\"none\","               \
    "\"boot_id\":\"none\",\"t_wall_ns\":1},"                                                       \
    "\"limits\":{\"memory_bytes\":34359738368,\"bfloat16\":true}}"

/* The i-th question differs from each other one below MADE_MOST. */
enum { MADE_WORDS = 5, MADE_MOST = 64 * 2 * 8 * 4 * 3 };
struct made_word {
    const char *name;
    char value[16];
};

static inline void made_question(size_t i, struct made_word words[MADE_WORDS])
{
    static const char *const batches[] = {"1", "2", "4", "1,2"};
    static const char *const objectives[] = {"latency", "throughput", "cost"};
    const char *names[] = {"size", "guidance", "devices", "batch", "objective"};
    for (int k = 0; k < MADE_WORDS; k++)
        words[k].name = names[k];
    snprintf(words[0].value, sizeof words[0].value, "%zu", 192 + 16 * (i % 64));
    snprintf(words[1].value, sizeof words[1].value, "%zu", i / 64 % 2);
    snprintf(words[2].value, sizeof words[2].value, "%zu", 1 + i / 128 % 8);
    snprintf(words[3].value, sizeof words[3].value, "%s", batches[i / 1024 % 4]);
    snprintf(words[4].value, sizeof words[4].value, "%s", objectives[i / 4096 % 3]);
}

static inline dt_status made_query(const struct dt_machine *machine, size_t i,
                                   struct dt_query **query)
{
    struct made_word words[MADE_WORDS];
    made_question(i, words);
    dt_status status = dt_query_new(machine, query);
    for (int k = 0; k < MADE_WORDS && status == DT_OK; k++)
        status = dt_query_set(*query, words[k].name, words[k].value);
    return status == DT_OK ? dt_query_seal(*query) : status;
}

/* One rank for any number of devices, so that every question may be answered with it; the tile, one
 * of three, tells entries apart. */
static inline json_t *made_plan(const json_t *key, size_t i)
{
    static const int tiles[] = {32, 64, 128};
    json_int_t batch = json_integer_value(json_array_get(json_object_get(key, "batch"), 0));
    return json_pack("{s:i, s:i, s:i, s:i, s:i, s:I, s:i, s:i, s:i, s:i}", "ranks", 1, "cfg", 1,
                     "ulysses", 1, "ring", 1, "threads", 1, "batch", batch, "tile_q", tiles[i % 3],
                     "tile_kv", 64, "overlap", 0, "chunks", 1);
}

static inline json_t *made_figures(const json_t *key, size_t i, int64_t ns)
{
    return json_pack("{s:o, s:I, s:[I,I], s:I, s:i, s:i, s:i}", "plan", made_plan(key, i),
                     "median_ns", (json_int_t)ns, "interval_ns", (json_int_t)ns - 900123,
                     (json_int_t)ns + 1700321, "cold_ns", (json_int_t)(ns + 5968194), "peak_bytes",
                     136127232, "samples", 33, "batch", 1);
}

static inline json_t *made_rows(const json_t *key, int n)
{
    json_t *rows = json_array();
    for (int k = 0; k < n; k++)
        json_array_append_new(rows, made_figures(key, (size_t)k, 138472803 + 1000003 * k));
    return rows;
}

static inline json_t *made_soft(void)
{
    json_t *environment = json_pack("{s:s, s:s, s:s, s:s}", "OMP_WAIT_POLICY", "passive",
                                    "OPENBLAS_CORETYPE", "SkylakeX", "OMPI_MCA_btl", "self,vader",
                                    "OMPI_MCA_hwloc_base_binding_policy", "none");
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "dittune", "0.1.0", "worker",
                     "0.1.0", "hwloc", "2.9.0", "method", "1", "mpi", "MPI 3.1 Open MPI v4.1.4",
                     "openblas", "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH SkylakeX MAX_THREADS=64",
                     "onednn", "2.6.0", "kernel", "6.1.0-39-cloud-amd64", "environment",
                     environment);
}

/* An entry without id and crc. number chooses the tile and is the whole part of the gain, so that a
 * reader sees whether both are of one entry. */
static inline json_t *made_entry(const json_t *key, const json_t *hard, size_t number)
{
    double gain = 1.5 + (double)number;
    int64_t now = dt_clock_wall_ns();
    return json_pack(
        "{s:O, s:{s:O, s:o, s:{s:s, s:I}}, s:o, s:s, s:b, s:o, s:o, s:o, s:{s:f, s:[f,f], s:i}, "
        "s:o, s:o, s:s}",
        "key", key, "fingerprint", "hard", hard, "soft", made_soft(), "info", "host",
        "node-0123.example.org", "t_wall_ns", (json_int_t)now, "plan", made_plan(key, number),
        "verdict", "faster", "provisional", 0, "figures", made_figures(key, number, 100000000),
        "default", made_figures(key, 1, 150000000), "baseline", made_figures(key, 2, 200000000),
        "gain", "ratio", gain, "interval", gain - 0.0625, gain + 0.0625, "pairs", 33, "top",
        made_rows(key, 3), "pareto", made_rows(key, 6), "journal",
        "20261121T084529Z-16251-55b0873c");
}

static inline dt_status made_line(const struct dt_machine *machine, size_t i, struct dt_text *text)
{
    struct dt_query *query = NULL;
    json_t *entry = NULL;
    uint64_t id;
    size_t start = text->size;
    dt_status status = made_query(machine, i, &query);
    if (status == DT_OK)
        status = dt_store_id(dt_query_key(query), dt_query_hard(query), &id);
    if (status == DT_OK) {
        entry = made_entry(dt_query_key(query), dt_query_hard(query), i);
        dt_text_add(text, "{\"id\":\"%016llx\",", (unsigned long long)id);
        status = dt_json_text(entry, text);
    }
    if (status == DT_OK) { /* ...,{"key": becomes ...,"key": and the last } goes */
        size_t brace = start + strlen("{\"id\":\"0123456789abcdef\",");
        memmove(text->bytes + brace, text->bytes + brace + 1, text->size - brace);
        text->size -= 2;
        text->bytes[text->size] = '\0';
        dt_text_add(text, ",\"crc\":\"%08x\"}",
                    (unsigned)dt_crc32c(text->bytes + start, text->size - start));
    }
    json_decref(entry);
    dt_query_free(query);
    return status;
}

/* The text of a best.json with the entries 0 to n-1. */
static inline dt_status made_store(size_t n, struct dt_text *text)
{
    struct dt_machine *machine = NULL;
    DT_TRY(dt_machine_parse(MADE_MACHINE, strlen(MADE_MACHINE), "the machine", &machine));
    dt_text_add(text, "{\"format\":\"dittune-best\",\"version\":{\"major\":2,\"minor\":0},"
                      "\"incompat\":[],\"compat\":[],\"entries\":[");
    dt_status status = DT_OK;
    for (size_t i = 0; i < n && status == DT_OK; i++) {
        dt_text_add(text, i > 0 ? ",\n" : "\n");
        status = made_line(machine, i, text);
    }
    dt_text_add(text, "\n]");
    dt_text_add(text, ",\"checksum\":\"%08x\"}\n", (unsigned)dt_crc32c(text->bytes, text->size));
    dt_machine_free(machine);
    return status == DT_OK ? dt_text_status(text) : status;
}

static inline dt_status made_file(const char *directory, const char *name, const char *bytes,
                                  size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    if (file == NULL || fwrite(bytes, 1, size, file) != size) {
        if (file != NULL)
            fclose(file);
        return dt_fail(DT_EIO, "cannot write %s", path);
    }
    return fclose(file) == 0 ? DT_OK : dt_fail(DT_EIO, "cannot write %s", path);
}

/* directory/best.json with n entries, and directory/machine.json. */
static inline dt_status made_directory(const char *directory, size_t n)
{
    struct dt_text text = {NULL, 0, 0, false};
    dt_status status = made_store(n, &text);
    if (status == DT_OK)
        status = made_file(directory, "best.json", dt_text_at(&text), text.size);
    if (status == DT_OK)
        status = made_file(directory, "machine.json", MADE_MACHINE, strlen(MADE_MACHINE));
    dt_text_fini(&text);
    return status;
}

#endif
