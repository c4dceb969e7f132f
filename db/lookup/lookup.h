/* SPDX-License-Identifier: MIT */
/* lookup - finds the stored plan for a question, and its tier of confidence
 *
 *     dt_query_new(machine, &query);
 *     dt_query_set(query, "model", "dit-xl/2");
 *     dt_query_set(query, "devices", "4");
 *     dt_query_seal(query);
 *     dt_lookup(snapshot, query, &answer);       -- answer->tier, ->plan, ->reason
 *
 * An answer is of the strongest tier that has one; docs/lookup.md defines the tiers. Every plan is
 * checked against the rules of the query, not of the session that found it. Nothing here prints,
 * locks or keeps anything outside its arguments: any number of threads may look up in one snapshot,
 * with queries of their own or with one that is sealed.
 */
#ifndef DT_DB_LOOKUP_LOOKUP_H
#define DT_DB_LOOKUP_LOOKUP_H

#include "base/json.h"
#include "base/status.h"
#include "db/lookup/machine.h"
#include "db/stored.h"

#include <stdbool.h>
#include <stdint.h>

struct dt_snapshot;

/* Ascending: a greater one is a stronger claim. Texts are "none", "heuristic", "proxy", "scaled",
 * "near", "exact". */
enum dt_tier {
    DT_TIER_NONE,
    DT_TIER_HEURISTIC, /* the default rule of the built-in network; not measured */
    DT_TIER_PROXY,     /* measured by another engine or in another mode */
    DT_TIER_SCALED,    /* measured with another number of devices */
    DT_TIER_NEAR,      /* measured at another size, batch or under other limits */
    DT_TIER_EXACT      /* measured for the same key on a machine of this make */
};
const char *dt_tier_text(enum dt_tier tier);
/* DT_EUSAGE with a sentence that begins with what. */
dt_status dt_tier_find(const char *what, const char *name, enum dt_tier *tier) DT_MUST_CHECK;

struct dt_query;

/* Makes the query for the workload of `dittune tune` without options on this machine, which is
 * copied as needed. */
dt_status dt_query_new(const struct dt_machine *machine, struct dt_query **query) DT_MUST_CHECK;
void dt_query_free(struct dt_query *query);
DT_FREE_AT(dt_query_free, struct dt_query)

/* Values as on the command line, in any order; the last one of a name counts, and "" resets it.
 *     model         a preset's name or a JSON file; of an engine: its name of the model    dit-s/2
 *     size          pixels, "512" or "512x768" (width x height); or height and width apart; the model's own
 *     guidance      0 or 1; of an engine: the scale         1
 *     dtype         float32, bfloat16 or tf32               float32
 *     devices       most ranks                              the machine's cores
 *     oversubscribe 0 or 1: more ranks than cores or GPUs   0
 *     batch         "1,2,4"                                 1
 *     objective     latency, throughput, cost               latency
 *     max_bytes     of a rank, a whole number               no limit
 *     reserve_bytes of a device, or of the machine on cores, that the server also holds   none
 *     max_latency_ns of a step                              no limit
 *     engine, mode  who would run the plan                  dittune, eager; of a foreign worker: any stored one
 *     revision, frames, steps, text_tokens ("17,37"), pipeline, pipeline_class, networks, adapters, engine_version, requests
 *                   of an engine's job: then the question is not about the built-in network
 *     lossy         0 or 1: tuned with settings that change the output beyond rounding; not of a worker   0
 *     worker, workload   of a foreign worker, as its hello names them: then model, size, guidance, batch mean nothing
 *     job           JSON, as the worker's hello tells its job; none
 *     space         JSON {"parameters","rules","constants"} of that worker, or its id of 16 hexadecimal digits (db/lookup/key.h);
 *                   whichever is stored
 *     now_ns        wall time for ages                      the clock
 * With an engine and no worker, the entries tuned on that engine are asked first: those whose job
 * has the values that were set, whatever else it has (docs/lookup.md). The built-in network is
 * asked when there is none, and only if the values are of one: no revision, frames, .. (fields
 * that an engine's job alone has), and a model that it knows. DT_EUSAGE: no such name, or a value
 * that can never be right. */
dt_status dt_query_set(struct dt_query *query, const char *name, const char *value) DT_MUST_CHECK;
/* An engine as users name it: "xdit-runner:0.7.0" asks for plans of xdit; any other
 * name is a worker's own. */
dt_status dt_query_set_engine(struct dt_query *query, const char *name) DT_MUST_CHECK;

/* Checks the values together and computes key and id. A later dt_query_set unseals. DT_EUSAGE;
 * DT_EIO: a model's file. */
dt_status dt_query_seal(struct dt_query *query) DT_MUST_CHECK;

/* Parts of a sealed query, borrowed: key and hard fingerprint as in an entry, and a title for
 * sentences. */
const json_t *dt_query_key(const struct dt_query *query);
const json_t *dt_query_hard(const struct dt_query *query);
const char *dt_query_title(const struct dt_query *query);

struct dt_answer {
    enum dt_tier tier;
    bool stale;
    double distance; /* 0: no difference; see docs/lookup.md */
    int64_t age_ns;  /* since the entry was stored; -1: unknown, or no entry */
    /* A sentence with the basis of the tier, and why stronger ones were refused. */
    const char *reason;
    const char *refused;       /* its part about refusals; NULL: none */
    const char *evidence;      /* "measured", "proxy", "predicted"; NULL with tier none */
    const char *engine, *mode; /* that measured it; NULL: none */
    bool lost;       /* the last check called it slower than another: one of stale_reasons */
    bool is_default; /* the plan is the default plan of the session that measured it */
    const char *why_provisional; /* a sentence without subject; NULL: the plan is decided */
    /* All below are borrowed from the answer, NULL when there is none. */
    const json_t *stale_reasons; /* array of sentences, empty when not stale; never NULL */
    const json_t *plan;          /* name to value */
    const json_t *entry;         /* the stored entry the plan came from */
    const char *store;           /* the folder it is in; NULL for a text, too */
    const char *verdict;         /* verdict of its session, from the entry */
    /* The entry's fields, for the plan as measured; NULL where tier or fitting changed it. */
    const struct dt_stored_entry *measured;
    const json_t *key; /* the query's key */
    /* {"plan","device","reason"}: best plan of other hardware, where the tier is heuristic or
     * none */
    const json_t *hint;
};

/* Title of the question that the answer is to: of two (engine, see above) the one that was
 * answered. */
const char *dt_query_title_of(const struct dt_query *query, const struct dt_answer *answer);

/* "Nothing was found" is an answer: tier none. The answer must be freed before snapshot and query.
 * DT_ENOMEM; DT_EUSAGE: the query is not sealed, or several entries of an engine could answer that
 * differ in what was not asked for; DT_ECORRUPT: an entry cannot be read. */
dt_status dt_lookup(const struct dt_snapshot *snapshot, const struct dt_query *query,
                    struct dt_answer **answer) DT_MUST_CHECK;
/* A new array: the jobs of the entries, tuned on the query's engine, that could answer it, in
 * the order of preference. What was not asked for differs. DT_EUSAGE: the query is not
 * sealed, or names no engine. */
dt_status dt_lookup_jobs(const struct dt_snapshot *snapshot, const struct dt_query *query,
                         json_t **jobs) DT_MUST_CHECK;
void dt_answer_free(struct dt_answer *answer);
DT_FREE_AT(dt_answer_free, struct dt_answer)

/* Appends what a user must know of an answer that is not exact, fresh and decided: "this plan
 * is of tier near: .." */
void dt_answer_warning(const struct dt_answer *answer, struct dt_text *out);

/* Sets what an export takes from the answer: plan, key and hard fingerprint; of a plan tuned on an
 * engine also the constants of its worker, and its model as checkpoint. All borrowed. */
struct dt_export_request;
void dt_answer_export(const struct dt_answer *answer, struct dt_export_request *request);

/* The answer is of the tier, or better; decided: and is not provisional, and did not
 * lose in a check since. */
bool dt_answer_meets(const struct dt_answer *answer, enum dt_tier tier, bool decided);

/* The object of `dittune lookup --json` (docs/json.md), new reference; NULL when out of memory. */
json_t *dt_answer_json(const struct dt_answer *answer);

#endif
