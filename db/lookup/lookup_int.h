/* SPDX-License-Identifier: MIT */
/* lookup_int - what the files of a look-up share
 *
 * A look-up reads the head of each line that may matter (head.c), says how each differs from what was asked (match.c), and takes
 * the strongest one whose plan, fitted where it must be (refit.c), keeps the query's rules and limits (check.c).
 */
#ifndef DT_DB_LOOKUP_LOOKUP_INT_H
#define DT_DB_LOOKUP_LOOKUP_INT_H

#include "db/lookup/key.h"
#include "db/lookup/lookup.h"
#include "space/space.h"

#define DT_DAY_NS        (86400LL * 1000000000)
#define DT_STALE_DAYS    180
#define DT_FIXED_MAX     16
#define DT_BATCHES_MAX   64
#define DT_QUERY_VALUE   (1 << 20) /* bytes of a value, a worker's space too */
#define DT_PIXELS_A_CELL 8         /* image pixels of a latent pixel, along a side */

/* What a sealed query asks for, worked out. */
struct dt_asked {
    bool foreign;
    bool any_space, any_engine, any_mode; /* of a foreign worker: it was not said which */
    struct dt_workload workload;
    int batches[DT_BATCHES_MAX], batch_count, devices;
    const char *objective;
    int64_t max_bytes, max_latency_ns, now_ns; /* now_ns 0: the clock */
    char title[256];
    struct dt_space *rules; /* compiled; NULL: those of the entry */
    json_t *key, *hard;
    uint64_t id;
    /* Fields of the key that an entry must have as they are, as bytes: "name" in its quotes. */
    struct {
        char name[32], *value;
    } fixed[DT_FIXED_MAX];
    int fixed_count;
    char *text; /* all that an answer depends on besides the store and the clock */
    size_t text_size;
};

struct dt_query {
    json_t *machine_hard, *soft;
    int cores;
    struct dt_gpus gpus; /* count 0: cores */
    int64_t memory_bytes;
    bool bfloat16, sealed;
    char **values; /* as they were set, NULL: not */
    struct dt_asked asked;
};
int64_t dt_query_now(const struct dt_query *query);

/* The beginning of an entry's line. All owned. */
struct dt_head {
    json_t *key, *fingerprint, *plan; /* objects; NULL: not there */
    bool provisional;
};
/* DT_EUSAGE: the line does not look like an entry's. */
dt_status dt_head_read(const char *line, size_t size, struct dt_head *head) DT_MUST_CHECK;
void dt_head_fini(struct dt_head *head);
/* false: the entry in this line has nothing to do with what is asked. Cheap, and true when in doubt. */
bool dt_head_may_match(const char *line, size_t size, const struct dt_asked *asked);

/* log2 of a finite x above 0, exact for powers of 2: the public library links no libm. */
double dt_lookup_log2(double x);

/* How an entry differs from what was asked. */
enum {
    DT_MISS_NAME = 1 << 0, /* the same network under another name */
    DT_MISS_SIZE = 1 << 1,
    DT_MISS_BATCH = 1 << 2,
    DT_MISS_LIMITS = 1 << 3,
    DT_MISS_DEVICES = 1 << 4,
    DT_MISS_ENGINE = 1 << 5, /* engine, mode or worker */
    DT_MISS_MACHINE = 1 << 6
};
struct dt_match {
    long line;
    unsigned misses;
    enum dt_tier tier; /* none: of another machine */
    bool provisional, stale;
    double distance;
    int64_t stored_ns; /* 0: not known */
    int batch;         /* the plan's, fitted; 0: as it is */
    int devices;       /* of the entry's key */
};
/* false: nothing to do with what was asked. */
bool dt_match_of(const struct dt_query *query, const struct dt_head *head, struct dt_match *match);
/* Of two, the one to be tried first: below 0 is a. */
int dt_match_order(const struct dt_match *a, const struct dt_match *b);

/* Sentences of what changed since the entry was stored; NULL when out of memory. */
json_t *dt_stale_reasons(const struct dt_query *query, const json_t *fingerprint);
bool dt_stale_by_age(const struct dt_query *query, int64_t stored_ns);
/* When it was stored, or found by a check to be still as good. */
int64_t dt_stored_ns(const json_t *fingerprint);

/* The entry's plan as it would run for the query, new reference. changed: what was changed and why, "" when nothing; refit: the
 * plan is no longer the measured one. DT_EINFEASIBLE with a sentence when it breaks a rule or a limit. */
struct dt_fitted {
    json_t *plan;
    bool refit;
    char changed[200];
};
dt_status dt_plan_fit(const struct dt_query *query, const struct dt_match *match,
                      const json_t *entry, struct dt_fitted *fitted) DT_MUST_CHECK;

/* Another count of devices: values[] (axis order) are changed so that the rules hold on that many, or left as they are, whether
 * they hold or not; fitted->changed says which. */
void dt_plan_rescale(const struct dt_space *rules, const struct dt_match *match,
                     const struct dt_asked *asked, int64_t values[], struct dt_fitted *fitted);
/* Do the query's rules hold for these values? */
bool dt_plan_keeps(const struct dt_space *rules, const struct dt_asked *asked,
                   const int64_t values[]);

#endif
