/* SPDX-License-Identifier: MIT */
/* What a space means is the key, not how it is written; a space that differs keeps a plan as `near`
 * where the plan means the same in it. What a worker measured (key.job) is the key, too, and an
 * entry that differs in it is named. Each row was decided by hand. */
#include "tests/db/lookup.h"

#define GPUS    "{'name':'gpus','role':'ranks','values':[1,2,4]}"
#define TP      "{'name':'tp','values':[1,2,4,8],'default':1}"
#define KERNEL  "{'name':'kernel','values':['plain','fused']}"
#define DIVIDES "{'if':'heads % tp == 0','say':'tp divides the heads'}"
#define SMALL   "'tp <= gpus * 2'"
#define WAS                                                                                        \
    "{'parameters':[" GPUS "," TP "," KERNEL "],'constants':{'heads':24},'rules':[" DIVIDES        \
    "," SMALL "]}"
/* The same with other parameters, constants, rules. */
#define WITH(parameters, rules)                                                                    \
    "{'parameters':[" parameters "],'constants':{'heads':24},'rules':[" rules "]}"

static const struct row {
    const char *now;
    enum dt_tier tier;
    const char *says;
} rows[] = {
    /* spelling */
    {WAS, DT_TIER_EXACT, ""},
    {WITH("{'name':'gpus','role':'ranks','values':[4,2,1],'default':1}," TP "," KERNEL,
          DIVIDES "," SMALL),
     DT_TIER_EXACT, ""},
    {WITH("{'name':'gpus','role':'ranks','values':{'from':1,'to':4,'factor':2}}," TP "," KERNEL,
          DIVIDES "," SMALL),
     DT_TIER_EXACT, ""},
    {WITH("{'name':'gpus','role':'ranks','values':[1,2,4],'doc':'a comment'}," TP "," KERNEL,
          DIVIDES "," SMALL),
     DT_TIER_EXACT, ""},
    {WITH(GPUS "," TP ",{'name':'kernel','role':'plain','values':['plain','fused'],'default':"
               "'plain'}",
          DIVIDES "," SMALL),
     DT_TIER_EXACT, ""},
    {WITH(KERNEL "," TP "," GPUS, DIVIDES "," SMALL), DT_TIER_EXACT, ""},
    {WITH(GPUS "," TP "," KERNEL, SMALL "," DIVIDES "," SMALL), DT_TIER_EXACT, ""},
    {WITH(GPUS "," TP "," KERNEL, "'(heads)%tp==0',{'if':'tp<=(gpus*2)','say':'in other words'}"),
     DT_TIER_EXACT, ""},
    {"{'parameters':{'gpus':{'role':'ranks','values':[1,2,4]},'tp':[1,2,4,8],'kernel':"
     "['plain','fused']},'constants':{'h':24,'unused':5},'rules':['h % tp == 0'," SMALL "]}",
     DT_TIER_EXACT, ""},
    {WITH(GPUS "," TP "," KERNEL, "'24 % tp == 0'," SMALL), DT_TIER_EXACT, ""},
    /* grown, or without what the plan does not have */
    {WITH("{'name':'gpus','role':'ranks','values':[1,2,4,8]}," TP "," KERNEL, DIVIDES "," SMALL),
     DT_TIER_NEAR, "in a space without gpus=8"},
    {WITH("{'name':'gpus','role':'ranks','values':[1,4]}," TP "," KERNEL, DIVIDES "," SMALL),
     DT_TIER_NEAR, "in a space with gpus=2"},
    {WITH(GPUS "," TP ",{'name':'kernel','values':['plain','fused','new']}", DIVIDES "," SMALL),
     DT_TIER_NEAR, "in a space without kernel=new"},
    {WITH(GPUS "," TP ",{'name':'kernel','values':['fused','plain'],'default':'plain'}",
          DIVIDES "," SMALL),
     DT_TIER_NEAR, "in a space with another order of kernel"},
    {WITH(GPUS "," TP "," KERNEL,
          DIVIDES "," SMALL ",{'cases':[{'tp':1,'gpus':2},{'tp':4,'gpus':4}]}"),
     DT_TIER_NEAR, "in a space without the rule gpus, tp in 2 cases"},
    {WITH(GPUS "," TP "," KERNEL, DIVIDES "," SMALL ",{'cases':[{'tp':1,'gpus':2}]}"), DT_TIER_NONE,
     "gpus, tp must be as in one of the cases"},
    {WITH(GPUS "," TP "," KERNEL, DIVIDES "," SMALL ",'tp >= gpus'"), DT_TIER_NEAR,
     "in a space without the rule tp >= gpus"},
    {WITH(GPUS "," TP "," KERNEL, DIVIDES), DT_TIER_NEAR,
     "in a space with the rule tp <= gpus * 2"},
    {WITH(GPUS "," TP "," KERNEL, DIVIDES ",'tp < gpus * 2'"), DT_TIER_NEAR,
     "without the rule tp < gpus * 2, with the rule tp <= gpus * 2"},
    {"{'parameters':[" GPUS "," TP "," KERNEL "],'constants':{'heads':32},'rules':[" DIVIDES
     "," SMALL "]}",
     DT_TIER_NEAR, "without the rule heads % tp == 0, with the rule heads % tp == 0"},
    {WITH("{'name':'gpus','role':'ranks','values':{'from':1,'to':16}}," TP "," KERNEL,
          DIVIDES "," SMALL),
     DT_TIER_NEAR, "without gpus=3, without gpus=5, without gpus=6, without gpus=7 and 9 more"},
    /* another question */
    {WITH("{'name':'gpus','role':'ranks','values':[1,2]}," TP "," KERNEL, DIVIDES "," SMALL),
     DT_TIER_NONE, "the near match: "},
    {WITH(GPUS "," TP "," KERNEL, DIVIDES "," SMALL ",{'if':'tp < 4','say':'four are too many'}"),
     DT_TIER_NONE, "four are too many"},
    {WITH(GPUS ",{'name':'tp','values':[1,2,4,8],'default':2}," KERNEL, DIVIDES "," SMALL),
     DT_TIER_NONE, "the default of tp was 1, and is 2"},
    {WITH("{'name':'gpus','role':'ranks','values':[4,2,1]}," TP "," KERNEL, DIVIDES "," SMALL),
     DT_TIER_NONE, "the default of gpus was 1, and is 4"},
    {WITH("{'name':'gpus','values':[1,2,4]}," TP "," KERNEL, DIVIDES "," SMALL), DT_TIER_NONE,
     "gpus had the role ranks, and has the role plain"},
    {WITH(GPUS "," TP ",{'name':'kernel','values':['plain','fused'],'role':'environment',"
               "'variable':'KERNEL'}",
          DIVIDES "," SMALL),
     DT_TIER_NONE, "and has the role environment of KERNEL"},
    {WITH(GPUS "," TP "," KERNEL ",{'name':'pp','values':[1,2]}", DIVIDES "," SMALL), DT_TIER_NONE,
     "it was tuned without the parameter pp"},
    {WITH(GPUS "," TP, DIVIDES "," SMALL), DT_TIER_NONE,
     "it was tuned with the parameter kernel, which is gone"},
    {WITH(GPUS "," TP ",{'name':'kernel','values':[0,1]}", DIVIDES "," SMALL), DT_TIER_NONE,
     "the values of kernel were of another kind"},
};

static json_t *entry_with(const char *id, const char *job)
{
    json_t *entry = entry_of("");
    json_object_set_new(entry, "key",
                        json_of("{'worker':'command','workload':'video','devices':4,'objective':'"
                                "latency'}"));
    set_at(entry, "key.space", json_string(id));
    if (job[0] != '\0')
        set_at(entry, "key.job", json_of(job));
    json_object_set_new(entry, "space", json_of(WAS));
    json_object_set_new(entry, "plan", json_of("{'gpus':4,'tp':4,'kernel':'fused'}"));
    edit(entry, "fingerprint.hard.engine='command'");
    return entry;
}

static void look(json_t *entry, const char *space, const char *job, enum dt_tier tier,
                 const char *says)
{
    struct dt_machine *machine = machine_of("");
    struct dt_query *query =
        query_of(machine, "worker=command;workload=video;devices=4;engine=command");
    struct dt_text text = {0};
    json_t *root = json_of(space), *asked = job[0] != '\0' ? json_of(job) : NULL;
    json_t *entries = json_pack("[o]", entry);
    assert_int_equal(dt_json_text(root, &text), DT_OK);
    assert_int_equal(dt_query_set(query, "space", dt_text_at(&text)), DT_OK);
    dt_text_clear(&text);
    if (asked != NULL)
        assert_int_equal(dt_json_text(asked, &text), DT_OK);
    assert_int_equal(dt_query_set(query, "job", asked != NULL ? dt_text_at(&text) : ""), DT_OK);
    if (dt_query_seal(query) != DT_OK)
        fail_msg("%s: %s", space, dt_message());
    struct dt_snapshot *snapshot = snapshot_of(entries);
    struct dt_answer *answer = answer_of(snapshot, query);
    if (answer->tier != tier || strstr(answer->reason, says) == NULL)
        fail_msg("%s, %s: %s: %s", space, job, dt_tier_text(answer->tier), answer->reason);
    dt_answer_free(answer);
    dt_snapshot_close(snapshot);
    dt_query_free(query);
    dt_machine_free(machine);
    json_decref(root);
    json_decref(asked);
    dt_text_fini(&text);
}

static void a_space_is_what_it_means(void **state)
{
    (void)state;
    char id[DT_KEY_ID_SIZE];
    json_t *was = json_of(WAS);
    assert_int_equal(dt_key_space(was, id), DT_OK);
    json_decref(was);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        look(entry_with(id, ""), rows[i].now, "", rows[i].tier, rows[i].says);
}

/* A list of cases that grew by one keeps its plan; one without the plan's does not. */
static void cases_are_compared(void **state)
{
#define AS(cases)                                                                                  \
    "{'parameters':[" GPUS "," TP "," KERNEL "],'rules':[{'cases':[{'gpus':1,'tp':1}," cases "]}]" \
    "}"
    static const struct row list[] = {
        {AS("{'tp':4,'gpus':4},{'tp':2,'gpus':4}"), DT_TIER_EXACT, ""},
        {AS("{'tp':2,'gpus':4},{'gpus':4,'tp':4}"), DT_TIER_EXACT, ""},
        {AS("{'tp':2,'gpus':4},{'gpus':4,'tp':4},{'gpus':2,'tp':8}"), DT_TIER_NEAR,
         "in a space without the case gpus=2 tp=8"},
        {AS("{'gpus':4,'tp':4}"), DT_TIER_NEAR, "in a space with the case gpus=4 tp=2"},
        {"{'parameters':[" TP "," GPUS "," KERNEL
         "],'rules':[{'cases':[{'tp':1,'gpus':1},{'tp':4,'gpus':4},"
         "{'tp':2,'gpus':4},{'tp':8,'gpus':2}]}]}",
         DT_TIER_NEAR, "in a space without the case gpus=2 tp=8"},
        {AS("{'gpus':4,'tp':2}"), DT_TIER_NONE, "gpus, tp must be as in one of the cases"},
    };
    (void)state;
    char id[DT_KEY_ID_SIZE];
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        json_t *was = json_of(list[0].now), *entry;
        assert_int_equal(dt_key_space(was, id), DT_OK);
        entry = entry_with(id, "");
        json_object_set_new(entry, "space", was);
        look(entry, list[i].now, "", list[i].tier, list[i].says);
    }
}

static void a_job_is_what_was_measured(void **state)
{
    static const struct {
        const char *stored, *asked;
        enum dt_tier tier;
        const char *says;
    } jobs[] = {
        {"{'command':'./x','time':'wall'}", "{'time':'wall','command':'./x'}", DT_TIER_EXACT, ""},
        {"{'command':'./x','time':'wall'}", "{'command':'./x','time':'json:t','unit':'s'}",
         DT_TIER_NONE,
         "one was measured with time 'wall' instead of 'json:t', unit none instead of 's'"},
        {"{'command':'./x','time':'json:t','unit':'s'}",
         "{'command':'./x','time':'json:t','unit':'ms'}", DT_TIER_NONE, "unit 's' instead of 'ms'"},
        {"{'command':'./x','shell':1}", "{'command':'./x'}", DT_TIER_NONE,
         "shell 1 instead of none"},
        {"{'command':'./x','folder':'/a'}", "{'command':'./x','folder':'/b'}", DT_TIER_NONE,
         "folder '/a' instead of '/b'"},
        {"{'command':'./x','later':2}", "{'command':'./x'}", DT_TIER_NONE,
         "later 2 instead of none"},
        {"", "{'command':'./x','time':'wall'}", DT_TIER_NONE, "command none instead of './x'"},
        {"", "{'model':'x'}", DT_TIER_NONE, "model none instead of 'x'"},
    };
    char id[DT_KEY_ID_SIZE];
    json_t *was = json_of(WAS);
    (void)state;
    assert_int_equal(dt_key_space(was, id), DT_OK);
    json_decref(was);
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        look(entry_with(id, jobs[i].stored), WAS, jobs[i].asked, jobs[i].tier, jobs[i].says);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_space_is_what_it_means),
                                       cmocka_unit_test(cases_are_compared),
                                       cmocka_unit_test(a_job_is_what_was_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
