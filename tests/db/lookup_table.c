/* SPDX-License-Identifier: MIT */
/* One stored entry and one change to it, to the machine or to the query: the tier, and whether it
 * is stale. The expectations come from docs/lookup.md, not from the code. */
#include "tests/db/lookup.h"

struct row {
    const char *entry, *machine, *query; /* what is changed */
    enum dt_tier tier;
    bool stale;
    const char *says; /* part of the reason, or of the reasons for stale */
};

static const struct row rows[] = {
    {"", "", "", DT_TIER_EXACT, false, "this very question"},
    /* differences that are harmless, or make the answer stale */
    {"fingerprint.soft.mpi='5.0.1'", "", "", DT_TIER_EXACT, true, "mpi was 5.0.1, is 4.1.4"},
    {"", "soft.dittune='0.2.0'", "", DT_TIER_EXACT, true, "dittune was 0.1.0, is 0.2.0"},
    {"", "soft.mpi='5.0.1'; soft.openblas='0.3.30'", "", DT_TIER_EXACT, true, "openblas was"},
    {"fingerprint.soft.mpi=", "", "", DT_TIER_EXACT, false, ""},
    {"", "soft.mpi=", "", DT_TIER_EXACT, false, ""},
    {"fingerprint.soft.nccl='2.20'", "", "", DT_TIER_EXACT, false, ""},
    {"fingerprint.soft=", "", "", DT_TIER_EXACT, false, ""},
    {"", "soft=", "", DT_TIER_EXACT, false, ""},
    {"", "soft.environment.OMP_PROC_BIND='false'", "", DT_TIER_EXACT, true,
     "OMP_PROC_BIND was true, is false"},
    {"", "soft.environment.OMP_PROC_BIND=", "", DT_TIER_EXACT, true,
     "OMP_PROC_BIND was true, is not set"},
    {"", "soft.environment.KMP_BLOCKTIME='0'", "", DT_TIER_EXACT, true,
     "KMP_BLOCKTIME was not set, is 0"},
    {"fingerprint.soft.environment=", "", "", DT_TIER_EXACT, false, ""},
    {"fingerprint.info.t_wall_ns=1784361600000000000", "", "", DT_TIER_EXACT, true,
     "stored 181 days ago"},
    {"fingerprint.info.t_wall_ns=1784448000000000000", "", "", DT_TIER_EXACT, false, ""},
    {"fingerprint.info={'t_wall_ns':1700000000000000000,'checked_ns':1784448000000000000}", "", "",
     DT_TIER_EXACT, false, ""},
    {"fingerprint.info={'t_wall_ns':1700000000000000000,'checked_ns':1784361600000000000}", "", "",
     DT_TIER_EXACT, true, "checked 181 days ago"},
    {"fingerprint.info={'t_wall_ns':1784448000000000000,'checked_ns':1700000000000000000}", "", "",
     DT_TIER_EXACT, false, ""},
    {"fingerprint.info.t_wall_ns=1900000000000000000", "", "", DT_TIER_EXACT, false, ""},
    {"fingerprint.info=", "", "", DT_TIER_EXACT, false, ""},
    {"fingerprint.info.host='elsewhere'", "info.host='x'", "", DT_TIER_EXACT, false, ""},
    {"provisional=true", "", "", DT_TIER_EXACT, false, "provisional"},
    {"key.objective='latency'; future={'a':[1]}", "", "", DT_TIER_EXACT, false, ""},
    /* other hardware */
    {"", "hard.device='Processor B'", "", DT_TIER_HEURISTIC, false, "nothing that fits"},
    {"", "hard.cores=8", "devices=4", DT_TIER_HEURISTIC, false, ""},
    {"", "hard.memory_gib=32", "", DT_TIER_HEURISTIC, false, ""},
    {"", "hard.topology='bbbb'", "", DT_TIER_HEURISTIC, false, ""},
    {"", "hard.gpus=2", "", DT_TIER_HEURISTIC, false, ""},
    {"fingerprint.hard.topology=", "", "", DT_TIER_HEURISTIC, false, ""},
    /* another engine or mode */
    {"", "", "engine=xdit", DT_TIER_PROXY, false, "by dittune (eager), not by xdit (eager)"},
    {"fingerprint.hard.engine='xdit'", "", "", DT_TIER_PROXY, false, "by xdit (eager)"},
    {"fingerprint.hard.engine='xdit'", "", "engine=xdit", DT_TIER_EXACT, false, ""},
    {"", "", "mode=compiled", DT_TIER_PROXY, false, "not by dittune (compiled)"},
    {"", "soft.mpi='5.0.1'", "engine=xdit", DT_TIER_PROXY, true, "mpi was"},
    /* the machine as the built-in worker describes it, an entry of an engine's worker,
     * and the other way round */
    {"fingerprint.soft={'worker':'theirs 1','mpi':'5.0.1','kernel':'6.1'}",
     "soft={'worker':'dittune-worker 0.1.0','mpi':'4.1.4','kernel':'6.1'}", "", DT_TIER_EXACT,
     false, ""},
    {"fingerprint.soft={'worker':'theirs 1','environment':{'NCCL_ALGO':'Ring'}}",
     "soft={'worker':'theirsome 1','environment':{}}", "", DT_TIER_EXACT, false, ""},
    {"fingerprint.soft={'worker':'theirs 1','kernel':'6.1'}",
     "soft={'worker':'dittune-worker 0.1.0','kernel':'6.2'}", "", DT_TIER_EXACT, true,
     "kernel was 6.1, is 6.2"},
    {"fingerprint.soft={'worker':'theirs 1'}", "soft={'worker':'theirs 2'}", "", DT_TIER_EXACT,
     true, "worker was theirs 1, is theirs 2"},
    {"", "", "engine=xdit; size=320", DT_TIER_PROXY, false, "256 x 256 px instead of 320 x 320"},
    {"", "", "engine=xdit; devices=2", DT_TIER_PROXY, false, "4 devices instead of 2"},
    /* another size or batch: at most a factor 2 */
    {"", "", "size=320", DT_TIER_NEAR, false, "256 x 256 px instead of 320 x 320"},
    {"", "", "size=256x512", DT_TIER_NEAR, false, "instead of 256 x 512"},
    {"", "", "size=256x528", DT_TIER_HEURISTIC, false, ""},
    {"", "", "size=512", DT_TIER_HEURISTIC, false, ""},
    {"", "", "size=128x256", DT_TIER_NEAR, false, ""},
    {"", "", "height=128; width=512", DT_TIER_NEAR, false, ""},
    {"", "", "batch=2", DT_TIER_NEAR, false, "batch 1 instead of 2"},
    {"", "", "batch=4", DT_TIER_HEURISTIC, false, ""},
    {"", "", "batch=2,1", DT_TIER_NEAR, false, "batch 1 instead of 1,2"},
    {"", "", "size=320; batch=2", DT_TIER_HEURISTIC, false, ""},
    {"", "soft.mpi='5.0.1'", "size=320", DT_TIER_NEAR, true, "mpi was"},
    {"key.model='mine'", "", "", DT_TIER_NEAR, false, "another name"},
    /* another count of devices */
    {"key.devices=2; plan.ranks=2; plan.ulysses=1", "", "", DT_TIER_SCALED, false,
     "ulysses scaled from 1 to 2"},
    {"key.devices=2; plan.ranks=1; plan.ulysses=1; plan.cfg=1", "", "", DT_TIER_SCALED, false,
     "used as it is, on 1 of 4 devices"},
    {"", "", "devices=2", DT_TIER_SCALED, false, "ulysses scaled from 2 to 1"},
    {"key.devices=8", "", "", DT_TIER_SCALED, false, "used as it is"},
    {"", "", "devices=2", DT_TIER_SCALED, false, "threads from 1 to 2"},
    {"key.devices=2; plan.ranks=2; plan.ulysses=1; plan.threads=2", "", "", DT_TIER_SCALED, false,
     "threads from 2 to 1"},
    {"", "", "devices=2; size=320", DT_TIER_SCALED, false, "instead of 320"},
    {"", "", "devices=2; size=512", DT_TIER_HEURISTIC, false, ""},
    {"", "soft.mpi='5.0.1'", "devices=2", DT_TIER_SCALED, true, "mpi was"},
    /* replicas: a parameter where images a second count */
    {"key.objective='throughput'; plan.replicas=2; plan.ranks=2; plan.ulysses=1", "",
     "objective=throughput", DT_TIER_EXACT, false, ""},
    {"key.objective='throughput'; plan.replicas=4; plan.ranks=1; plan.ulysses=1; plan.cfg=1", "",
     "objective=throughput; devices=2", DT_TIER_SCALED, false, "replicas from 4 to 2"},
    {"key.objective='throughput'; key.devices=2; plan.replicas=2; plan.ranks=1; plan.ulysses=1; "
     "plan.cfg=1",
     "", "objective=throughput", DT_TIER_SCALED, false, "replicas from 2 to 4"},
    /* with 2 threads each, no more fit the 4 cores; of 3 of 1 rank, 2 fit 2 devices */
    {"key.objective='throughput'; key.devices=2; plan.replicas=2; plan.ranks=1; plan.ulysses=1; "
     "plan.cfg=1; plan.threads=2",
     "", "objective=throughput", DT_TIER_SCALED, false, "used as it is, on 2 of 4 devices"},
    {"key.objective='throughput'; key.devices=1; plan.replicas=3; plan.ranks=1; plan.ulysses=1; "
     "plan.cfg=1; plan.threads=2",
     "", "objective=throughput", DT_TIER_SCALED, false, "replicas from 3 to 2"},
    {"key.objective='throughput'; plan.replicas=2; plan.ranks=1; plan.ulysses=1; plan.cfg=1", "",
     "objective=throughput; devices=2", DT_TIER_SCALED, false, "used as it is"},
    {"key.objective='throughput'; key.devices=8; plan.replicas=2; plan.ranks=1; plan.ulysses=1; "
     "plan.cfg=1",
     "", "objective=throughput", DT_TIER_SCALED, false, "used as it is, on 2 of 4 devices"},
    /* of the slowest of replicas, whose mean is 40 ms */
    {"figures.slowest_ns=50000000", "", "max_latency_ns=45000000", DT_TIER_HEURISTIC, false,
     "takes about 50 ms, longer than max_latency"},
    {"figures.slowest_ns=50000000", "", "max_latency_ns=50000000", DT_TIER_NEAR, false,
     "which it keeps"},
    {"key.objective='throughput'; plan.replicas=2", "", "objective=throughput", DT_TIER_HEURISTIC,
     false, "needs 8 devices"},
    {"plan.replicas=2; plan.ranks=2; plan.ulysses=1", "", "", DT_TIER_HEURISTIC, false,
     "'replicas', which is no parameter"},
    /* limits */
    {"key.max_bytes=1000000000", "", "", DT_TIER_NEAR, false,
     "max_bytes 1000000000 instead of none"},
    {"", "", "max_bytes=400000000", DT_TIER_NEAR, false, "instead of 400000000, which it keeps"},
    {"", "", "max_bytes=299999999", DT_TIER_HEURISTIC, false, "a rank took 300000000 bytes"},
    {"", "", "max_latency_ns=40000000", DT_TIER_NEAR, false, "which it keeps"},
    {"", "", "max_latency_ns=39000000", DT_TIER_HEURISTIC, false, "longer than max_latency"},
    {"figures=", "", "max_latency_ns=50000000", DT_TIER_HEURISTIC, false, "no median_ns"},
    {"", "", "max_latency_ns=45000000; size=320", DT_TIER_HEURISTIC, false, "longer than"},
    {"key.max_bytes=400000000", "", "max_bytes=400000000", DT_TIER_EXACT, false, ""},
    /* another question */
    {"key.guidance=false", "", "", DT_TIER_HEURISTIC, false, ""},
    {"", "", "guidance=0", DT_TIER_HEURISTIC, false, ""},
    {"", "", "objective=cost", DT_TIER_HEURISTIC, false, ""},
    {"", "", "model=dit-b/2", DT_TIER_HEURISTIC, false, ""},
    {"key.network='0123456789abcdef'", "", "", DT_TIER_HEURISTIC, false, ""},
    {"key.steps=50", "", "", DT_TIER_HEURISTIC, false, ""},
    {"key.dtype='bfloat16'; fingerprint.hard.dtype='bfloat16'", "limits.bfloat16=true", "",
     DT_TIER_HEURISTIC, false, ""},
    {"key.dtype='bfloat16'; fingerprint.hard.dtype='bfloat16'", "limits.bfloat16=true",
     "dtype=bf16", DT_TIER_EXACT, false, ""},
    /* a plan that is not legal here, by the query's rules */
    {"key.dtype='bfloat16'; fingerprint.hard.dtype='bfloat16'", "", "dtype=bf16", DT_TIER_NONE,
     false, "bfloat16 needs a processor"},
    {"plan.ulysses=4", "", "", DT_TIER_HEURISTIC, false, "must be the number of ranks"},
    {"plan.threads=2", "", "", DT_TIER_HEURISTIC, false, "must fit the cores"},
    {"plan.tile_q=999", "", "", DT_TIER_HEURISTIC, false, "tile_q=999"},
    {"plan.tile_q='big'", "", "", DT_TIER_HEURISTIC, false, "another kind"},
    {"plan.pipe=2", "", "", DT_TIER_HEURISTIC, false, "'pipe', which is no parameter"},
    {"plan.chunks=", "", "", DT_TIER_EXACT, false, ""},
    {"plan.ranks=", "", "", DT_TIER_HEURISTIC, false, "must be the number of ranks"},
    {"", "limits.memory_bytes=100000000", "", DT_TIER_NONE, false,
     "more memory than the machine has"},
    {"plan={}", "", "", DT_TIER_HEURISTIC, false, "names no parameter"},
};

static bool contains(const struct dt_answer *answer, const char *part)
{
    if (strstr(answer->reason, part) != NULL)
        return true;
    for (size_t i = 0; i < json_array_size(answer->stale_reasons); i++)
        if (strstr(json_string_value(json_array_get(answer->stale_reasons, i)), part) != NULL)
            return true;
    return false;
}

static void check_fields(const struct dt_answer *answer)
{
    enum dt_tier tier = answer->tier;
    bool found = tier >= DT_TIER_PROXY;
    assert_int_equal(answer->plan != NULL, tier != DT_TIER_NONE);
    assert_int_equal(answer->entry != NULL, found);
    assert_int_equal(answer->engine != NULL, found);
    assert_int_equal(answer->stale, json_array_size(answer->stale_reasons) > 0);
    assert_true(found || !(answer->distance >= 0));
    if (tier == DT_TIER_PROXY || !found)
        assert_null(answer->measured);
    if (tier == DT_TIER_NEAR || tier == DT_TIER_EXACT)
        assert_true(answer->measured->gain.ratio == 1.5 &&
                    answer->measured->gain.interval.low == 1.4 &&
                    answer->measured->gain.pairs == 20);
    if (tier == DT_TIER_EXACT)
        assert_true(answer->distance == 0);
    assert_true(found || answer->age_ns == -1);
    assert_true(!found || answer->hint == NULL);
    const char *evidence = !found ? "predicted" : tier == DT_TIER_PROXY ? "proxy" : "measured";
    if (tier == DT_TIER_NONE)
        assert_null(answer->evidence);
    else if (tier != DT_TIER_SCALED)
        assert_string_equal(answer->evidence, evidence);
}

static void answers_match_the_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        json_t *entries = json_array();
        json_array_append_new(entries, entry_of(row->entry));
        struct dt_snapshot *snapshot = snapshot_of(entries);
        struct dt_machine *machine = machine_of(row->machine);
        struct dt_query *query = query_of(machine, row->query);
        /* the second one is the first one's, where it was kept */
        for (int again = 0; again < 2; again++) {
            struct dt_answer *answer = answer_of(snapshot, query);
            if (answer->tier != row->tier || answer->stale != row->stale ||
                !contains(answer, row->says))
                fail_msg("row %zu (%s | %s | %s): %s%s: %s", i, row->entry, row->machine,
                         row->query, dt_tier_text(answer->tier), answer->stale ? ", stale" : "",
                         answer->reason);
            check_fields(answer);
            json_t *json = dt_answer_json(answer);
            assert_non_null(json);
            json_decref(json);
            dt_answer_free(answer);
        }
        dt_query_free(query);
        dt_machine_free(machine);
        dt_snapshot_close(snapshot);
    }
}

/* Answers that were kept beside the entry are for those alone who ask the same, and their age
 * is that of the moment. */
static void cached_answers_serve_equal_queries_only(void **state)
{
    (void)state;
    json_t *entries = json_array();
    json_array_append_new(entries, entry_of(""));
    struct dt_snapshot *snapshot = snapshot_of(entries);
    for (int i = 0; i < 200; i++) {
        char edits[128], sets[64];
        int kind = i % 4, days = 1 + i / 4 % 3 * 90;
        snprintf(edits, sizeof edits, "soft.mpi='%s'; limits.memory_bytes=%d",
                 kind == 1 ? "5.0.1" : "4.1.4", kind == 2 ? 1000000 : 2000000000 + i / 100);
        snprintf(sets, sizeof sets, "now_ns=%lld", (long long)(NOW + (days - 1) * DAY));
        struct dt_machine *machine = machine_of(edits);
        struct dt_query *query = query_of(machine, sets);
        struct dt_answer *answer = answer_of(snapshot, query);
        assert_int_equal(answer->tier, kind == 2 ? DT_TIER_NONE : DT_TIER_EXACT);
        if (kind != 2) {
            assert_int_equal(answer->age_ns, days * DAY);
            assert_int_equal(json_array_size(answer->stale_reasons), (kind == 1) + (days > 180));
        }
        dt_answer_free(answer);
        dt_query_free(query);
        dt_machine_free(machine);
    }
    dt_snapshot_close(snapshot);
}

/* A question that found its answer in one snapshot is compared again with those of another. */
static void equal_in_one_snapshot_is_not_in_another(void **state)
{
    (void)state;
    struct dt_machine *fresh = machine_of(""), *stale = machine_of("soft.mpi='5.0.1'");
    struct dt_query *asked = query_of(fresh, ""), *other = query_of(stale, "");
    for (int i = 0; i < 2; i++) {
        json_t *entries = json_array();
        json_array_append_new(entries, entry_of(""));
        struct dt_snapshot *snapshot = snapshot_of(entries);
        const struct dt_query *order[] = {other, asked, asked, other};
        for (int k = 2 * (1 - i); k < 4; k++) {
            struct dt_answer *answer = answer_of(snapshot, order[k]);
            assert_int_equal(answer->stale, order[k] == other);
            dt_answer_free(answer);
        }
        dt_snapshot_close(snapshot);
    }
    dt_query_free(asked);
    dt_query_free(other);
    dt_machine_free(fresh);
    dt_machine_free(stale);
}

/* 4: provisional, 2: stale, 1: older; in the order of docs/lookup.md, so that the lower
 * kind is the better one. */
static json_t *one_of_two(int kind, const char *verdict)
{
    json_t *entry = entry_of("");
    json_object_set_new(entry, "verdict", json_string(verdict));
    json_object_set_new(entry, "provisional", json_boolean(kind & 4));
    if (kind & 2)
        edit(entry, "fingerprint.soft.mpi='5.0.1'");
    set_at(entry, "fingerprint.info.t_wall_ns", json_integer(NOW - (kind & 1 ? 9 : 2) * DAY));
    return entry;
}

/* A file with two lines of one key, whose checksums are right. */
static void two_lines_of_one_key_are_tolerated(void **state)
{
    (void)state;
    for (int kinds = 0; kinds < 64; kinds++) {
        int first = kinds / 8, second = kinds % 8;
        json_t *entries = json_array();
        json_array_append_new(entries, one_of_two(first, "first"));
        json_array_append_new(entries, one_of_two(second, "second"));
        struct dt_snapshot *snapshot = snapshot_of(entries);
        struct dt_machine *machine = machine_of("");
        struct dt_query *query = query_of(machine, "");
        for (int again = 0; again < 3; again++) {
            struct dt_answer *answer = answer_of(snapshot, query);
            assert_int_equal(answer->tier, DT_TIER_EXACT);
            assert_string_equal(json_string_value(json_object_get(answer->entry, "verdict")),
                                second < first ? "second" : "first");
            dt_answer_free(answer);
        }
        dt_query_free(query);
        dt_machine_free(machine);
        dt_snapshot_close(snapshot);
    }
}

/* A name that a sentence has no room for is cut between two characters, wherever they fall:
 * the answer stays JSON. */
static void long_names_are_cut_at_characters(void **state)
{
    (void)state;
    struct dt_machine *machine = machine_of("");
    struct dt_query *query = query_of(machine, "");
    for (int before = 70; before < 84; before++) {
        char name[160];
        memset(name, 'a', (size_t)before);
        snprintf(name + before, sizeof name - (size_t)before, "%s",
                 "\xc3\xa9\xf0\x9f\x98\x80"
                 "\xe2\x82\xac\xc3\xa9\xc3\xa9");
        json_t *entry = entry_of(""), *entries = json_array();
        json_object_set_new(json_object_get(entry, "plan"), name, json_integer(1));
        json_array_append_new(entries, entry);
        struct dt_snapshot *snapshot = snapshot_of(entries);
        struct dt_answer *answer = answer_of(snapshot, query);
        json_t *json = dt_answer_json(answer);
        struct dt_text text = {0};
        assert_non_null(strstr(answer->reason, "it names 'aaaa"));
        assert_non_null(json);
        assert_int_equal(dt_json_text(json, &text), DT_OK);
        assert_string_equal(json_string_value(json_object_get(json, "reason")), answer->reason);
        dt_text_fini(&text);
        json_decref(json);
        dt_answer_free(answer);
        dt_snapshot_close(snapshot);
    }
    dt_query_free(query);
    dt_machine_free(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_match_the_table),
                                       cmocka_unit_test(cached_answers_serve_equal_queries_only),
                                       cmocka_unit_test(equal_in_one_snapshot_is_not_in_another),
                                       cmocka_unit_test(two_lines_of_one_key_are_tolerated),
                                       cmocka_unit_test(long_names_are_cut_at_characters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
