/* SPDX-License-Identifier: MIT */
/* ctest: dose */
/* Random queries on random stores with mostly infeasible plans: every returned plan keeps the rules
 * of the query, which are implemented again here; removing the best entry never makes an answer
 * stronger; and no tier uses other hardware. */
#include "model/workload_json.h"
#include "tests/db/lookup.h"

#include "base/rng.h"
#include "model/workload.h"
#include "tests/lib/dose.h"

#include <math.h>

enum { ENTRIES = 12, STORES = 250, QUERIES = 6 };

static struct dt_rng rng;

static int pick(const int list[], int n)
{
    return list[dt_rng_below(&rng, (uint64_t)n)];
}
#define PICK(...)         pick((const int[]){__VA_ARGS__}, (int)(sizeof(int[]){__VA_ARGS__} / sizeof(int)))
#define OFTEN(value, ...) (dt_rng_below(&rng, 10) > 0 ? (value) : PICK(__VA_ARGS__))

static void put(json_t *root, const char *path, int value)
{
    set_at(root, path, json_integer(value));
}

static void draw_plan(json_t *entry)
{
    int cfg = PICK(1, 2), ulysses = OFTEN(1, 2, 3, 4, 6), ring = OFTEN(1, 2, 3);
    put(entry, "plan.cfg", cfg);
    put(entry, "plan.ulysses", ulysses);
    put(entry, "plan.ring", ring);
    put(entry, "plan.ranks", OFTEN(cfg * ulysses * ring, 1, 2, 3, 5));
    put(entry, "plan.threads", OFTEN(1, 1, 2, 4, 7));
    put(entry, "plan.batch", OFTEN(1, 2, 4));
    put(entry, "plan.tile_q", OFTEN(32, 64, 100));
    put(entry, "plan.tile_kv", OFTEN(64, 128, 256, 16));
    put(entry, "plan.overlap", OFTEN(0, 1));
    put(entry, "plan.chunks", OFTEN(1, 2, 3));
}

static json_t *draw_entry(int number)
{
    json_t *entry = entry_of("");
    int side = OFTEN(32, 40, 48, 64);
    put(entry, "key.height", side);
    put(entry, "key.width", OFTEN(side, 32, 24));
    put(entry, "key.devices", OFTEN(4, 1, 2, 3, 6, 8));
    set_at(entry, "key.guidance", json_boolean(OFTEN(1, 0)));
    set_at(entry, "provisional", json_boolean(OFTEN(0, 1)));
    put(entry, "fingerprint.hard.cores", OFTEN(4, 8));
    if (OFTEN(0, 1))
        edit(entry, "fingerprint.hard.device='Processor B'");
    if (OFTEN(0, 1))
        edit(entry, "fingerprint.hard.engine='xdit'");
    if (OFTEN(0, 1))
        edit(entry, "fingerprint.soft.mpi='5.0.1'");
    if (OFTEN(0, 1))
        edit(entry, "key.max_bytes=500000000");
    draw_plan(entry);
    set_at(entry, "key.batch",
           json_pack("[i]", (int)json_integer_value(
                                json_object_get(json_object_get(entry, "plan"), "batch"))));
    set_at(entry, "fingerprint.info.t_wall_ns",
           json_integer(NOW - (int64_t)dt_rng_below(&rng, 200) * DAY));
    put(entry, "number", number);
    return entry;
}

struct asked {
    int height, width, devices, guidance, batches[2], batch_count;
    int64_t max_bytes, memory_bytes;
    bool xdit;
};

static int64_t of(const json_t *plan, const char *name)
{
    assert_true(json_is_integer(json_object_get(plan, name)));
    return json_integer_value(json_object_get(plan, name));
}

/* model/plan.def and space/dit/dit_rules.def in other words, for dit-s/2 (6 heads,
 * patch 2) on 4 cores. */
static bool is_legal(const json_t *plan, const struct asked *asked)
{
    int64_t ranks = of(plan, "ranks"), cfg = of(plan, "cfg");
    int64_t u = of(plan, "ulysses"), r = of(plan, "ring"), batch = of(plan, "batch");
    int64_t chunks = of(plan, "chunks"), overlap = of(plan, "overlap"), tokens;
    if (json_object_size(plan) != 10)
        return false;
    tokens = asked->height / 16 * (asked->width / 16);
    if (cfg < 1 || u < 1 || r < 1 || chunks < 1 || ranks != cfg * u * r)
        return false;
    if (ranks > asked->devices || ranks > 4 || (cfg != 1 && !(cfg == 2 && asked->guidance)))
        return false;
    if (6 % u != 0 || 6 / u % chunks != 0 || u * r > tokens)
        return false;
    if (batch != asked->batches[0] && (asked->batch_count < 2 || batch != asked->batches[1]))
        return false;
    int64_t share = 4 / ranks > 1 ? 4 / ranks : 1, threads = of(plan, "threads");
    if (threads < 1 || threads > share)
        return false;
    if (overlap != 0 && !(overlap == 1 && (r > 1 || chunks > 1)))
        return false;
    if (chunks > 1 && !(overlap == 1 && u > 1))
        return false;
    int64_t q = of(plan, "tile_q"), kv = of(plan, "tile_kv");
    bool known_q = false, known_kv = false;
    for (int i = 0; i < DT_TILES_Q; i++)
        known_q = known_q || dt_tiles_q[i] == q;
    for (int i = 0; i < DT_TILES_KV; i++)
        known_kv = known_kv || dt_tiles_kv[i] == kv;
    return known_q && known_kv && q < 2 * tokens && kv < 2 * tokens;
}

static bool fits_memory(const json_t *plan, const struct asked *asked)
{
    struct dt_workload workload = {.height = asked->height / 8,
                                   .width = asked->width / 8,
                                   .guidance = asked->guidance != 0,
                                   .dtype = DT_FLOAT32};
    struct dt_plan values;
    assert_int_equal(dt_network_load("dit-s/2", &workload.network), DT_OK);
    assert_int_equal(dt_plan_from_json(plan, &values), DT_OK);
    int64_t bytes = dt_workload_rank_bytes(&workload, &values);
    return (asked->max_bytes == 0 || bytes <= asked->max_bytes) &&
           bytes * values.ranks <= asked->memory_bytes;
}

static struct dt_query *draw_query(struct asked *asked)
{
    char sets[256], edits[64];
    *asked = (struct asked){.height = OFTEN(256, 320, 384),
                            .width = OFTEN(256, 320, 512),
                            .devices = OFTEN(4, 1, 2, 3, 8),
                            .guidance = OFTEN(1, 0),
                            .batches = {OFTEN(1, 2), 4},
                            .batch_count = OFTEN(1, 2),
                            .max_bytes = OFTEN(0, 300000000, 1000000000),
                            .memory_bytes = OFTEN(2000000000, 100000000, 300000000, 900000000),
                            .xdit = OFTEN(0, 1) == 1};
    snprintf(edits, sizeof edits, "limits.memory_bytes=%lld", (long long)asked->memory_bytes);
    struct dt_machine *machine = machine_of(edits);
    int n =
        snprintf(sets, sizeof sets, "size=%dx%d;devices=%d;guidance=%d;batch=%d%s%s", asked->width,
                 asked->height, asked->devices, asked->guidance, asked->batches[0],
                 asked->batch_count > 1 ? ",4" : "", asked->xdit ? ";engine=xdit" : "");
    if (asked->max_bytes > 0)
        snprintf(sets + n, sizeof sets - (size_t)n, ";max_bytes=%lld", (long long)asked->max_bytes);
    struct dt_query *query = query_of(machine, sets);
    dt_machine_free(machine); /* the query keeps what it needs */
    return query;
}

static const char *device_of(const struct dt_answer *answer)
{
    const json_t *print = json_object_get(answer->entry, "fingerprint");
    return json_string_value(json_object_get(json_object_get(print, "hard"), "device"));
}

static int seen[DT_TIER_EXACT + 1], hints;

static void check_answer(const struct dt_answer *answer, const struct asked *asked)
{
    seen[answer->tier]++;
    if (answer->plan != NULL &&
        !(is_legal(answer->plan, asked) && fits_memory(answer->plan, asked)))
        fail_msg("%s: %s: %s", dt_tier_text(answer->tier), answer->reason,
                 json_dumps(answer->plan, 0));
    if (answer->entry != NULL) {
        const char *engine = asked->xdit ? "xdit" : "dittune";
        assert_string_equal(device_of(answer), DEVICE);
        assert_int_equal(strcmp(answer->engine, engine) != 0, answer->tier == DT_TIER_PROXY);
    }
    if (answer->hint != NULL) {
        hints++;
        const json_t *plan = json_object_get(answer->hint, "plan");
        assert_true(answer->tier <= DT_TIER_HEURISTIC);
        assert_true(is_legal(plan, asked) && fits_memory(plan, asked));
    }
}

/* Takes the entry that was best away again and again: the tier only falls, and within a tier what
 * is decided comes first. */
static void descend(const json_t *entries, const struct dt_query *query, const struct asked *asked)
{
    json_t *left = json_copy((json_t *)entries);
    enum dt_tier before = DT_TIER_EXACT;
    bool provisional = false;
    for (;;) {
        struct dt_snapshot *snapshot = snapshot_of(json_incref(left));
        struct dt_answer *answer = answer_of(snapshot, query);
        check_answer(answer, asked);
        assert_true(answer->tier <= before);
        provisional = provisional && answer->tier == before;
        assert_true(!provisional || answer->why_provisional != NULL);
        provisional = answer->why_provisional != NULL;
        before = answer->tier;
        long number = answer->entry != NULL
                          ? (long)json_integer_value(json_object_get(answer->entry, "number"))
                          : -1;
        dt_answer_free(answer);
        dt_snapshot_close(snapshot);
        if (number < 0)
            break;
        for (size_t i = 0; i < json_array_size(left); i++)
            if (json_integer_value(json_object_get(json_array_get(left, i), "number")) == number)
                json_array_remove(left, i);
    }
    json_decref(left);
}

static bool repeats(const json_t *entries, const json_t *entry)
{
    const json_t *hard = json_object_get(json_object_get(entry, "fingerprint"), "hard");
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *other = json_array_get(entries, i);
        const json_t *print = json_object_get(other, "fingerprint");
        if (json_equal(json_object_get(other, "key"), json_object_get(entry, "key")) &&
            json_equal(json_object_get(print, "hard"), hard))
            return true;
    }
    return false;
}

static void answers_match_the_reference_on_random_stores(void **state)
{
    (void)state;
    rng = dt_rng_at(dose_seed("stores", 11), "random stores");
    for (int store = 0; store < (dose_thin() ? STORES / 4 : STORES); store++) {
        json_t *entries = json_array();
        for (int i = 0; i < ENTRIES; i++) {
            json_t *entry = draw_entry(i);
            if (!repeats(entries, entry))
                json_array_append(entries, entry);
            json_decref(entry);
        }
        for (int k = 0; k < QUERIES; k++) {
            struct asked asked;
            struct dt_query *query = draw_query(&asked);
            descend(entries, query, &asked);
            dt_query_free(query);
        }
        json_decref(entries);
    }
    print_message("tiers %d %d %d %d %d %d, hints %d\n", seen[0], seen[1], seen[2], seen[3],
                  seen[4], seen[5], hints);
    for (int tier = DT_TIER_NONE; tier <= DT_TIER_EXACT; tier++)
        assert_true(seen[tier] >= (dose_thin() ? 1 : 20));
    assert_true(hints >= (dose_thin() ? 1 : 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_match_the_reference_on_random_stores)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
