/* SPDX-License-Identifier: MIT */
/* Questions by an engine and parts of a job: which of several stored jobs they mean, and what is
 * said when they mean several or none. */
#include "tests/db/lookup.h"

#define SPACE                                                                                      \
    "{'parameters':[{'name':'gpus','role':'ranks','values':[1,2,4,8]}],'constants':{},'rules':[]}"
#define FLUX "'model':'org/flux','width':1024,'height':768,'steps':28,'guidance':3.5"

/* Tuned on the engine 'mine' with this job. */
static json_t *tuned(const char *job, const char *edits)
{
    char id[DT_KEY_ID_SIZE], text[512];
    json_t *entry = entry_of(""), *space = json_of(SPACE);
    assert_int_equal(dt_key_space(space, id), DT_OK);
    snprintf(text, sizeof text,
             "{'worker':'mine','workload':'images','devices':4,'objective':'latency','job':{%s}}",
             job);
    json_object_set_new(entry, "key", json_of(text));
    set_at(entry, "key.space", json_string(id));
    json_object_set_new(entry, "space", space);
    json_object_set_new(entry, "plan", json_of("{'gpus':4}"));
    edit(entry, "fingerprint.hard.engine='mine'");
    edit(entry, edits);
    return entry;
}

struct row {
    const char *first, *first_edits, *second, *second_edits; /* two entries; second NULL: one */
    const char *query;
    int tier; /* -1: DT_EUSAGE */
    const char *says;
    int plan; /* ranks of the answer; 0: not looked at */
};

static const struct row rows[] = {
    /* parts that were not asked for may be anything */
    {FLUX, "", NULL, NULL, "model=org/flux", DT_TIER_EXACT, "this very question", 4},
    {FLUX, "", NULL, NULL, "", DT_TIER_EXACT, "", 4},
    {FLUX, "", NULL, NULL, "model=org/flux;size=1024x768;steps=28;guidance=3.5", DT_TIER_EXACT, "",
     4},
    {FLUX ",'weights':'random'", "", NULL, NULL, "steps=28", DT_TIER_EXACT, "", 4},
    {FLUX ",'revision':'abc','batch':2,'frames':81", "", NULL, NULL,
     "revision=abc;batch=2;frames=81;mode=eager;dtype=float32", DT_TIER_EXACT, "", 4},
    {"'guidance':4", "", NULL, NULL, "guidance=4.0;model=", DT_TIER_EXACT, "", 4},
    {FLUX ",'text_tokens':'17,37'", "", NULL, NULL, "text_tokens=37,17,37", DT_TIER_EXACT, "", 4},
    {FLUX ",'text_tokens':'17,37'", "", NULL, NULL, "text_tokens=17", DT_TIER_NONE,
     "none was tuned with text-tokens 17, only with 17,37", 0},
    /* parts that were asked for must be right */
    {FLUX, "", NULL, NULL, "model=org/wan", DT_TIER_NONE,
     "none was tuned with model org/wan, only with org/flux", 0},
    {FLUX, "", NULL, NULL, "size=1024;model=org/flux", DT_TIER_NONE,
     "with size 1024x1024, only with 1024x768", 0},
    {FLUX, "", NULL, NULL, "steps=4", DT_TIER_NONE, "none was tuned with steps 4, only with 28", 0},
    {FLUX, "", NULL, NULL, "guidance=4", DT_TIER_NONE, "with guidance 4, only with 3.5", 0},
    {FLUX, "", NULL, NULL, "frames=81", DT_TIER_NONE, "with frames 81, only with none", 0},
    {FLUX, "", NULL, NULL, "dtype=bfloat16;steps=28", DT_TIER_NONE,
     "with dtype bfloat16, only with float32", 0},
    {FLUX, "", NULL, NULL, "mode=compiled;steps=28", DT_TIER_NONE,
     "with mode compiled, only with eager", 0},
    {FLUX, "", NULL, NULL, "objective=cost;steps=28", DT_TIER_NONE,
     "with objective cost, only with latency", 0},
    {FLUX, "", NULL, NULL, "engine=other;steps=28", DT_TIER_NONE, "nothing that fits", 0},
    {FLUX, "key.worker=", NULL, NULL, "steps=28", DT_TIER_NONE, "nothing that fits", 0},
    /* devices, limits and machine make the tier */
    {FLUX, "", NULL, NULL, "steps=28;devices=8", DT_TIER_SCALED, "fitted to 8 ranks", 8},
    {FLUX, "", NULL, NULL, "steps=28;max_latency_ns=40000000", DT_TIER_NEAR, "which it keeps", 4},
    {FLUX, "", NULL, NULL, "steps=28;max_latency_ns=39999999", DT_TIER_NONE, "a step takes", 0},
    {FLUX, "fingerprint.hard.cores=8", NULL, NULL, "steps=28", DT_TIER_NONE, "nothing that fits",
     0},
    /* several jobs */
    {FLUX, "", "'model':'org/wan','steps':28", "plan.gpus=2", "model=org/wan", DT_TIER_EXACT, "",
     2},
    {FLUX, "", "'model':'org/wan','steps':28", "plan.gpus=2", "steps=28", -1,
     "the plans stored for mine: 28 steps were tuned with model org/flux, org/wan: choose one "
     "(--model)",
     0},
    {FLUX, "", "'model':'org/flux','width':1024,'height':768,'steps':50,'guidance':3.5", "",
     "model=org/flux", -1, "steps 28, 50: choose one (--steps)", 0},
    {FLUX, "", FLUX, "fingerprint.hard.mode='compiled'", "steps=28", -1,
     "mode eager, compiled: choose one (--mode)", 0},
    {FLUX, "", FLUX, "fingerprint.hard.mode='compiled'; plan.gpus=2", "steps=28;mode=compiled",
     DT_TIER_EXACT, "", 2},
    {FLUX, "", FLUX, "fingerprint.hard.dtype='bfloat16'", "steps=28", -1, "dtype float32, bfloat16",
     0},
    {FLUX, "", FLUX, "key.objective='cost'; plan.gpus=2", "steps=28;objective=cost", DT_TIER_EXACT,
     "", 2},
    /* what has no option is no job of its own: decided before provisional, then the newest */
    {FLUX, "", FLUX ",'weights':'random'", "provisional=true; plan.gpus=2", "steps=28",
     DT_TIER_EXACT, "", 4},
    {FLUX, "", FLUX,
     "key.space='0123456789abcdef'; fingerprint.info.t_wall_ns=1799990000000000000; plan.gpus=2",
     "steps=28", DT_TIER_EXACT, "", 2},
    /* a damaged job answers nothing: it is not one without a size */
    {"'model':'org/flux','width':-1024,'height':768,'steps':28", "", NULL, NULL, "steps=28",
     DT_TIER_NONE, "nothing that fits", 0},
    {"'model':'org/flux','steps':'many'", "", NULL, NULL, "model=org/flux", DT_TIER_NONE,
     "nothing that fits", 0},
    {"'model':'org/flux','width':-1024,'height':768,'steps':28", "plan.gpus=2", FLUX, "",
     "steps=28", DT_TIER_EXACT, "", 4},
    /* another machine's job is no choice */
    {FLUX, "", "'model':'org/wan','steps':28", "fingerprint.hard.cores=8", "steps=28",
     DT_TIER_EXACT, "", 4},
};

static dt_status look(const struct row *row, struct dt_snapshot **snapshot, struct dt_query **query,
                      struct dt_answer **answer)
{
    char sets[256];
    struct dt_machine *machine = machine_of("");
    json_t *entries = json_array();
    json_array_append_new(entries, tuned(row->first, row->first_edits));
    if (row->second != NULL)
        json_array_append_new(entries, tuned(row->second, row->second_edits));
    *snapshot = snapshot_of(entries);
    snprintf(sets, sizeof sets, "devices=4;engine=mine;%s", row->query);
    *query = query_of(machine, sets);
    dt_machine_free(machine);
    return dt_lookup(*snapshot, *query, answer);
}

static void each_question_means_one_job_or_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct dt_snapshot *snapshot = NULL;
        struct dt_query *query = NULL;
        struct dt_answer *answer = NULL;
        dt_status status = look(row, &snapshot, &query, &answer);
        const char *said = status == DT_OK ? answer->reason : dt_message();
        int tier = status == DT_OK ? (int)answer->tier : -1;
        if (tier != row->tier || (tier < 0 && status != DT_EUSAGE) ||
            strstr(said, row->says) == NULL)
            fail_msg("row %zu (%s): tier %d: %s", i, row->query, tier, said);
        if (row->plan > 0)
            assert_int_equal(json_integer_value(json_object_get(answer->plan, "gpus")), row->plan);
        dt_answer_free(answer);
        dt_query_free(query);
        dt_snapshot_close(snapshot);
    }
}

/* A question that can be one about the built-in network is, when nothing was
 * tuned on the engine. */
static void the_built_in_network_comes_second(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        enum dt_tier tier;
        const char *worker; /* of the entry that answers; NULL: none */
    } cases[] = {
        {"engine=xdit;model=dit-s/2", DT_TIER_PROXY, NULL},
        {"engine=xdit", DT_TIER_EXACT, "mine"},
        {"engine=xdit;model=org/flux", DT_TIER_EXACT, "mine"},
        {"engine=xdit;model=org/flux;size=512", DT_TIER_NONE, NULL},
        {"engine=xdit;size=256", DT_TIER_PROXY, NULL},
        {"engine=xdit;size=256;guidance=1", DT_TIER_PROXY, NULL},
        {"engine=xdit;size=256;steps=4", DT_TIER_NONE, NULL},
        {"engine=xdit;size=256;guidance=2", DT_TIER_NONE, NULL},
        {"engine=xdit;size=256;dtype=float16", DT_TIER_NONE, NULL},
        {"engine=dittune", DT_TIER_EXACT, NULL},
        {"model=dit-s/2", DT_TIER_EXACT, NULL},
    };
    struct dt_machine *machine = machine_of("");
    json_t *entries = json_array();
    json_array_append_new(entries, tuned(FLUX, "fingerprint.hard.engine='xdit'"));
    json_array_append_new(entries, entry_of(""));
    struct dt_snapshot *snapshot = snapshot_of(entries);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char sets[128];
        snprintf(sets, sizeof sets, "devices=4;%s", cases[i].query);
        struct dt_query *query = query_of(machine, sets);
        struct dt_answer *answer = answer_of(snapshot, query);
        const json_t *worker = json_object_get(json_object_get(answer->entry, "key"), "worker");
        if (answer->tier != cases[i].tier || (worker != NULL) != (cases[i].worker != NULL))
            fail_msg("%s: tier %s: %s", cases[i].query, dt_tier_text(answer->tier), answer->reason);
        dt_answer_free(answer);
        dt_query_free(query);
    }
    dt_snapshot_close(snapshot);
    dt_machine_free(machine);
}

/* Values of an engine's job are refused elsewhere. */
static void a_job_needs_an_engine(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"revision", "abc"}, {"frames", "2"}, {"steps", "2"}, {"text_tokens", "17,37"}};
    struct dt_machine *machine = machine_of("");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct dt_query *query = NULL;
        assert_int_equal(dt_query_new(machine, &query), DT_OK);
        assert_int_equal(dt_query_set(query, names[i][0], names[i][1]), DT_OK);
        assert_int_equal(dt_query_seal(query), DT_EUSAGE);
        assert_non_null(strstr(dt_message(), "only with an engine"));
        assert_int_equal(dt_query_set(query, "engine", "mine"), DT_OK);
        assert_int_equal(dt_query_seal(query), DT_OK);
        dt_query_free(query);
    }
    dt_machine_free(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_question_means_one_job_or_none),
                                       cmocka_unit_test(the_built_in_network_comes_second),
                                       cmocka_unit_test(a_job_needs_an_engine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
