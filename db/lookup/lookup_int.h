/* SPDX-License-Identifier: MIT */
/* lookup_int - declarations shared by the files of a look-up
 *
 * A look-up reads the head of each line that may matter (head.c), determines how each differs from the query (match.c),
 * and takes the strongest one whose plan, fitted where it must be (refit.c), keeps the query's rules and limits
 * (check.c).
 */
#ifndef DT_DB_LOOKUP_LOOKUP_INT_H
#define DT_DB_LOOKUP_LOOKUP_INT_H

#include "db/lookup/key.h"
#include "db/lookup/lookup.h"
#include "space/space.h"

#define DT_DAY_NS      (86400LL * 1000000000)
#define DT_STALE_DAYS  180
#define DT_FIXED_MAX   16
#define DT_BATCHES_MAX 64
#define DT_QUERY_VALUE DT_JSON_MAX_BYTES /* bytes of a value, a worker's space too */
#define DT_DEVICES_UNKNOWN                                                                         \
    "unknown"              /* of "devices" in a hard fingerprint, as tuner/machine writes it */
#define DT_PIXELS_A_CELL 8 /* image pixels of a latent pixel, along a side */

dt_status dt_lookup_no_memory(void);

/* What a question about a foreign worker's plan leaves open. */
struct dt_any {
    bool worker; /* its name, its workload, and the parts of the job that were not asked for */
    bool space, engine, mode, dtype;
};

/* The values of a sealed query, parsed and completed. */
struct dt_asked {
    bool foreign;
    struct dt_any any;
    struct dt_workload workload;
    int batches[DT_BATCHES_MAX], batch_count, devices;
    const char *objective;
    int64_t max_bytes, max_latency_ns, now_ns; /* now_ns 0: the clock */
    char title[256];
    struct dt_space *rules; /* compiled; NULL: those of the entry */
    json_t *key, *hard;
    uint64_t id;
    /* Fields of the key that must be equal byte for byte in an entry; "name" includes its quotes. */
    struct {
        char name[DT_FIXED_MAX][32], *value[DT_FIXED_MAX];
        int count;
    } fixed;
    char *text; /* everything an answer depends on except the store and the clock */
    size_t text_size;
};

struct dt_query {
    json_t *machine_hard, *soft;
    int cores, hosts;    /* hosts that the cores are on; 0: one machine */
    struct dt_gpus gpus; /* count 0: cores */
    int64_t memory_bytes;
    bool bfloat16, sealed;
    char **values; /* as set; NULL: not set */
    /* An engine was named, and no worker: the entries tuned on it are asked first, and only they where the question
     * cannot be one about the built-in network. */
    bool is_tuned, is_network;
    struct dt_asked asked, tuned;
};
int64_t dt_query_now(const struct dt_query *query);

/* First fields of an entry's line. All owned. */
struct dt_head {
    json_t *key, *fingerprint, *plan; /* objects; NULL: not there */
    bool provisional;
};
/* DT_EUSAGE: the line does not look like an entry's. */
dt_status dt_head_read(const char *line, size_t size, struct dt_head *head) DT_MUST_CHECK;
void dt_head_fini(struct dt_head *head);
/* false: the entry in this line cannot answer the query. Cheap, and true when in doubt. */
bool dt_head_may_match(const char *line, size_t size, const struct dt_asked *asked);

/* log2 of a finite x above 0, exact for powers of 2: the public library links no libm. */
double dt_lookup_log2(double x);

/* Differences between an entry and the query. */
enum {
    DT_MISS_NAME = 1 << 0, /* the same network under another name */
    DT_MISS_SIZE = 1 << 1,
    DT_MISS_BATCH = 1 << 2,
    DT_MISS_LIMITS = 1 << 3,
    DT_MISS_DEVICES = 1 << 4,
    DT_MISS_ENGINE = 1 << 5, /* engine, mode or worker */
    DT_MISS_MACHINE = 1 << 6,
    DT_MISS_UNSEEN = 1 << 7, /* devices that only its worker could tell */
    DT_MISS_SPACE = 1 << 8   /* other values or rules of the same parameters */
};
struct dt_match {
    long line;
    unsigned misses;
    enum dt_tier tier; /* none: another machine */
    bool provisional, stale;
    double distance;
    int64_t stored_ns; /* 0: not known */
    int batch;         /* the plan's, fitted; 0: as it is */
    int devices;       /* of the entry's key */
};
/* The head of a line; NULL: unreadable, or it cannot answer. Borrowed from the snapshot. */
dt_status dt_lookup_head(const struct dt_snapshot *snapshot, const struct dt_asked *asked,
                         long line, const struct dt_head **head) DT_MUST_CHECK;

/* false: it cannot answer the query. */
bool dt_match_of(const struct dt_query *query, const struct dt_head *head, struct dt_match *match);
/* Appends how the job of an entry differs, which otherwise could answer; false: it differs in more than that. */
bool dt_match_other_job(const struct dt_query *query, const struct dt_head *head,
                        struct dt_text *out);
/* Order of trying two matches: below 0: a first. */
int dt_match_order(const struct dt_match *a, const struct dt_match *b);

struct dt_matches {
    struct dt_match *at; /* owned */
    size_t count;
};
dt_status dt_matches_add(struct dt_matches *matches, const struct dt_match *match) DT_MUST_CHECK;
void dt_matches_order(struct dt_matches *matches); /* best first */

/* Sentences about changes since the entry was stored; NULL when out of memory. */
json_t *dt_stale_reasons(const struct dt_query *query, const json_t *fingerprint);
/* The last check that judged the plan called it slower than another. */
bool dt_stale_by_loss(const json_t *fingerprint);
bool dt_stale_by_age(const struct dt_query *query, int64_t stored_ns);
/* Time when it was stored, or last confirmed by a check. */
int64_t dt_stored_ns(const json_t *fingerprint);

/* The entry's plan adapted to the query, new reference. changed: the changes and reasons, "" without any; refit: it
 * differs from the measured plan. DT_EINFEASIBLE with a sentence when it breaks a rule or a limit. */
struct dt_fitted {
    json_t *plan;
    bool refit;
    char changed[200];
};
dt_status dt_plan_fit(const struct dt_query *query, const struct dt_match *match,
                      const json_t *entry, struct dt_fitted *fitted) DT_MUST_CHECK;

/* DT_EINFEASIBLE with a sentence when a plan of space `was` means something else in `now`, whatever its values: the parameters,
 * their roles or defaults differ. */
dt_status dt_space_carries(const struct dt_space *was, const struct dt_space *now) DT_MUST_CHECK;
/* Appends the values and rules that differ: "without a=8, with the rule a <= 4"; "" where the spaces mean the same. */
void dt_space_changes(const struct dt_space *was, const struct dt_space *now, struct dt_text *out);

/* Adapts values[] (axis order) to another count of devices such that the rules hold, or leaves them unchanged, whether
 * the rules hold or not; fitted->changed names the changes. */
void dt_plan_rescale(const struct dt_space *rules, const struct dt_match *match,
                     const struct dt_asked *asked, int64_t values[], struct dt_fitted *fitted);
/* The query's rules hold for these values. */
bool dt_plan_keeps(const struct dt_space *rules, const struct dt_asked *asked,
                   const int64_t values[]);

#endif
