/* SPDX-License-Identifier: MIT */
/* Plans of foreign workers: rules come with the query or with the entry, never from the built-in
 * network; plans that cannot be checked are not returned. */
#include "tests/db/lookup.h"

#define SPACE                                                                                      \
    "{'parameters':[{'name':'gpus','role':'ranks','values':[1,2,4,8]},"                            \
    "{'name':'tp','values':[1,2,4,8]},{'name':'pp','values':[1,2,3,4]},"                           \
    "{'name':'kernel','values':['plain','fused']}],'constants':{'heads':24},"                      \
    "'rules':[{'if':'tp * pp == gpus','say':'tp x pp is the GPUs'},"                               \
    "{'if':'heads % tp == 0','say':'tp divides the heads'}]}"

/* "key.devices=..." edits, as elsewhere; the space under its id, unless the edits say otherwise. */
static json_t *foreign(const char *edits)
{
    char id[DT_KEY_ID_SIZE];
    json_t *entry = entry_of(""), *space = json_of(SPACE);
    assert_int_equal(dt_key_space(space, id), DT_OK);
    json_object_set_new(entry, "key",
                        json_of("{'worker':'mine','workload':'video','devices':4,'objective':'"
                                "latency'}"));
    set_at(entry, "key.space", json_string(id));
    json_object_set_new(entry, "space", space);
    json_object_set_new(entry, "plan", json_of("{'gpus':4,'tp':4,'pp':1,'kernel':'fused'}"));
    edit(entry, "fingerprint.hard.engine='mine'");
    edit(entry, edits);
    return entry;
}

/* The query, "" for a worker's space it does not name; "*": as JSON; "#": its id. */
static struct dt_answer *look(const struct dt_snapshot *snapshot, const char *sets,
                              const char *space, struct dt_query **query)
{
    struct dt_machine *machine = machine_of("");
    char all[512], id[DT_KEY_ID_SIZE];
    json_t *root = json_of(SPACE);
    struct dt_text text = {0};
    snprintf(all, sizeof all, "worker=mine;workload=video;devices=4;engine=mine;%s", sets);
    *query = query_of(machine, all);
    assert_int_equal(dt_key_space(root, id), DT_OK);
    assert_int_equal(dt_json_text(root, &text), DT_OK);
    if (space[0] != '\0')
        assert_int_equal(dt_query_set(*query, "space", space[0] == '*' ? dt_text_at(&text) : id),
                         DT_OK);
    if (dt_query_seal(*query) != DT_OK)
        fail_msg("%s", dt_message());
    dt_text_fini(&text);
    json_decref(root);
    dt_machine_free(machine);
    return answer_of(snapshot, *query);
}

struct row {
    const char *entry, *query, *space;
    enum dt_tier tier;
    const char *plan, *says;
};

static const struct row rows[] = {
    {"", "", "*", DT_TIER_EXACT, "{'gpus':4,'tp':4,'pp':1,'kernel':'fused'}", ""},
    {"", "", "#", DT_TIER_EXACT, NULL, ""},
    {"", "", "", DT_TIER_EXACT, NULL, ""},
    {"", "engine=", "", DT_TIER_EXACT, NULL, ""},
    /* rules of the entry where the query has none, and nothing without any */
    {"space=", "", "*", DT_TIER_EXACT, NULL, ""},
    {"space=", "", "#", DT_TIER_NONE, NULL, "no rules to check it by"},
    {"space={'parameters':[]}", "", "", DT_TIER_NONE, NULL, "nothing to tune"},
    {"space.rules=['gpus < ']", "", "", DT_TIER_NONE, NULL, "column"},
    {"plan.tp=2", "", "#", DT_TIER_NONE, NULL, "tp x pp is the GPUs"},
    {"plan.tp=2", "", "*", DT_TIER_NONE, NULL, "tp x pp is the GPUs"},
    {"plan.kernel='none'", "", "#", DT_TIER_NONE, NULL, "kernel"},
    {"plan.kernel=1", "", "#", DT_TIER_NONE, NULL, "kernel"},
    /* another space is another question; an entry that has the space itself is compared
     * by it (lookup_space.c) */
    {"key.space='0123456789abcdef'", "", "#", DT_TIER_NONE, NULL, "in another space than the one"},
    {"key.space='0123456789abcdef'", "", "*", DT_TIER_NEAR, NULL, "of another spelling"},
    {"key.space='0123456789abcdef'; space=", "", "*", DT_TIER_NONE, NULL, "which is not stored"},
    {"key.space='0123456789abcdef'", "", "", DT_TIER_EXACT, NULL, ""},
    {"key.workload='image'", "", "*", DT_TIER_NONE, NULL, ""},
    /* another engine, mode or worker of the same workload */
    {"", "mode=compiled", "*", DT_TIER_PROXY, NULL, "not by mine (compiled)"},
    {"", "engine=other", "*", DT_TIER_PROXY, NULL, "by mine (eager, worker mine), not by other"},
    {"key.worker='theirs'", "", "*", DT_TIER_PROXY, NULL, "worker theirs"},
    /* devices that cannot be asked for are never exact */
    {"fingerprint.hard.devices='unknown'", "", "*", DT_TIER_PROXY, NULL,
     "on devices that its worker did not name"},
    {"fingerprint.hard.devices='2 x GPU'", "", "*", DT_TIER_PROXY, NULL,
     "on devices that only its worker can tell (2 x GPU)"},
    /* other counts: ranks alone break the first rule, so one degree goes with them */
    {"", "devices=8", "*", DT_TIER_SCALED, "{'gpus':8,'tp':8,'pp':1,'kernel':'fused'}",
     "tp scaled from 4 to 8"},
    {"", "devices=2", "*", DT_TIER_SCALED, "{'gpus':2,'tp':2,'pp':1,'kernel':'fused'}",
     "tp scaled from 4 to 2"},
    {"", "devices=3", "*", DT_TIER_SCALED, "{'gpus':2,'tp':2,'pp':1,'kernel':'fused'}",
     "fitted to 2 ranks"},
    {"plan.tp=1; plan.pp=4", "devices=8", "*", DT_TIER_SCALED,
     "{'gpus':8,'tp':2,'pp':4,'kernel':'fused'}", "tp scaled from 1 to 2"},
    {"plan.gpus=2; plan.tp=2", "devices=8", "*", DT_TIER_SCALED,
     "{'gpus':2,'tp':2,'pp':1,'kernel':'fused'}", "used as it is, on 2 of 8 devices"},
    {"space.rules=[]", "devices=8", "#", DT_TIER_SCALED,
     "{'gpus':8,'tp':4,'pp':1,'kernel':'fused'}", "fitted to 8 ranks"},
    {"space.parameters=[{'name':'gpus','role':'ranks','values':[4]},{'name':'tp','values':[4]},"
     "{'name':'pp','values':[1]},{'name':'kernel','values':['plain','fused']}]",
     "devices=2", "#", DT_TIER_NONE, NULL,
     "the scaled match: the stored plan needs 4 devices, you asked for 2 (--devices 4 uses it)"},
    /* limits by figures alone */
    {"", "max_bytes=300000000", "*", DT_TIER_NEAR, NULL, "which it keeps"},
    {"", "max_bytes=299999999", "*", DT_TIER_NONE, NULL, "a rank took"},
    {"figures=", "max_bytes=300000000", "*", DT_TIER_NONE, NULL, "no peak_bytes"},
    {"", "max_latency_ns=40000000", "*", DT_TIER_NEAR, NULL, "which it keeps"},
    {"", "max_latency_ns=79000000;devices=2", "*", DT_TIER_NONE, NULL, "a step takes about 80 ms"},
    {"", "max_latency_ns=81000000;devices=2", "*", DT_TIER_SCALED, NULL, ""},
};

static void answers_match_the_table_of_foreign_workers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        json_t *entries = json_array();
        json_array_append_new(entries, foreign(row->entry));
        struct dt_snapshot *snapshot = snapshot_of(entries);
        struct dt_query *query;
        struct dt_answer *answer = look(snapshot, row->query, row->space, &query);
        if (answer->tier != row->tier || strstr(answer->reason, row->says) == NULL)
            fail_msg("row %zu (%s | %s | %s): %s: %s", i, row->entry, row->query, row->space,
                     dt_tier_text(answer->tier), answer->reason);
        assert_int_equal(answer->plan != NULL, row->tier != DT_TIER_NONE);
        if (row->plan != NULL) {
            json_t *plan = json_of(row->plan);
            assert_true(json_equal(plan, answer->plan));
            json_decref(plan);
        }
        dt_answer_free(answer);
        dt_query_free(query);
        dt_snapshot_close(snapshot);
    }
}

/* "" takes a value back, and what belongs together is asked for together. */
static void values_can_be_reset_and_must_be_complete(void **state)
{
    (void)state;
    static const struct {
        const char *name, *value, *says;
    } bad[] = {
        {"devices", "0", "1 to 1024"},     {"devices", "four", "1 to 1024"},
        {"size", "512x", "1 to 16384"},    {"size", "512x512x512", "1 to 16384"},
        {"batch", "1,,2", "1 to 65536"},   {"batch", "2,2", "2 twice"},
        {"guidance", "yes", "0 to 1"},     {"dtype", "float8", "float32"},
        {"objective", "speed", "latency"}, {"max_bytes", "1GiB", "whole number"},
        {"sizes", "512", "did you mean"},  {"max_bytes", "99999999999999999999", "whole number"},
    };
    struct dt_machine *machine = machine_of("");
    struct dt_query *query = NULL;
    assert_int_equal(dt_query_new(machine, &query), DT_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(dt_query_set(query, bad[i].name, bad[i].value), DT_EUSAGE);
        if (strstr(dt_message(), bad[i].says) == NULL)
            fail_msg("%s=%s: %s", bad[i].name, bad[i].value, dt_message());
    }
    assert_int_equal(dt_query_set(query, "worker", "mine"), DT_OK);
    assert_int_equal(dt_query_seal(query), DT_EUSAGE); /* and its workload? */
    assert_int_equal(dt_query_set(query, "worker", ""), DT_OK);
    assert_int_equal(dt_query_set(query, "size", "100"), DT_OK);
    assert_int_equal(dt_query_seal(query), DT_EUSAGE); /* no multiple of 16 */
    assert_int_equal(dt_query_set(query, "size", ""), DT_OK);
    assert_int_equal(dt_query_seal(query), DT_OK);
    dt_query_free(query);
    dt_machine_free(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_match_the_table_of_foreign_workers),
                                       cmocka_unit_test(values_can_be_reset_and_must_be_complete)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
