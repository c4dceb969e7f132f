/* SPDX-License-Identifier: MIT */
/* lookup_int - shared by the files of a look-up: a sealed question, the head of a line, a match, an
 * answer with what it owns
 *
 * lookup.c decides: it reads the head of each line that may matter (head.c), determines how each
 * differs from the question, and takes the strongest one whose plan, fitted where it must be, keeps
 * the question's rules and limits (fit.c). answer.c words the answer, stale.c what has changed
 * since it was stored. query.c makes the question; none of them needs lookup.c.
 */
#ifndef DT_DB_LOOKUP_LOOKUP_INT_H
#define DT_DB_LOOKUP_LOOKUP_INT_H

#include "base/clock.h"
#include "db/lookup/key.h"
#include "db/lookup/lookup.h"
#include "model/task.h"
#include "space/space.h"

#define DT_BATCHES_MAX   64
#define DT_PIXELS_A_CELL 8 /* image pixels of a latent pixel, along a side */
/* "devices" in a hard fingerprint, as tuner/machine writes it */
#define DT_DEVICES_UNKNOWN "unknown"

#define DT_LOOKING_UP "while looking up a plan" /* for dt_no_memory */

/* The parts of a key that a question about a foreign worker's plan leaves open. */
struct dt_any {
    bool worker; /* its name, its workload, and the parts of the job that were not asked for */
    bool space, engine, mode, dtype;
};

/* A sealed question: of the built-in network, a worker, or (any.worker) the entries tuned on an
 * engine. What a cached answer needs stands first: a look-up among many questions waits for
 * memory. */
struct dt_asked {
    uint64_t id; /* hash of key and hard */
    /* Everything an answer depends on except the store and the clock; shared: the equal one of a
     * cached answer, set by a look-up of the sealed question; NULL: none yet. */
    json_t *basis;
    _Atomic(json_t *) shared;
    int64_t now_ns; /* 0: the clock */
    json_t *key, *hard;
    const json_t *soft;     /* the query's */
    struct dt_space *rules; /* compiled; NULL: those of the entry */
    bool foreign, lossy;
    struct dt_any any;
    int devices, batch_count, batches[DT_BATCHES_MAX];
    const char *objective;
    int64_t max_bytes, max_latency_ns, reserve_bytes;
    int64_t memory_bytes; /* a GPU's, or one host's */
    int hosts;            /* 0: one machine */
    bool on_gpus;
    char title[256];
    struct dt_task task;         /* an engine's; its texts are the query's */
    struct dt_workload workload; /* the built-in network's */
};

static inline int64_t dt_asked_now(const struct dt_asked *asked)
{
    return asked->now_ns > 0 ? asked->now_ns : dt_clock_wall_ns();
}

struct dt_query {
    bool sealed, is_network;
    struct dt_asked asked; /* where is_network */
    /* An engine was named, and no worker: the entries tuned on it are asked first, and only they
     * where the question cannot be one about the built-in network. NULL: none was. */
    struct dt_asked *tuned;
    json_t *machine_hard, *soft;
    int cores, hosts;    /* hosts that the cores are on; 0: one machine */
    struct dt_gpus gpus; /* count 0: cores */
    int64_t memory_bytes;
    bool bfloat16;
    struct dt_task_value *values; /* the value set for each row of asks.def; texts are owned */
    int64_t width, height;        /* from the value "size" */
    int batches[DT_BATCHES_MAX], batch_count;
};

/* First fields of an entry's line. All owned. */
struct dt_head {
    json_t *key, *fingerprint, *plan; /* objects; NULL: not there */
    bool provisional;
};
/* DT_EUSAGE: the line does not look like an entry's. */
dt_status dt_head_read(const char *line, size_t size, struct dt_head *head) DT_MUST_CHECK;
void dt_head_fini(struct dt_head *head);

/* Parts that the key of a line must have, so that the rest of its head is worth parsing. */
struct dt_sought {
    struct {
        const char *name;
        size_t size;
        const json_t *value; /* borrowed; NULL: any */
    } at[24];
    int count, must; /* none of the first `must` is missing */
    bool others;     /* members of other names are allowed */
    double cells;    /* height x width, within a factor 2; 0: any */
};
/* false: it cannot match. true: it may, which parsing decides: values of which several spellings
 * are possible are not compared. */
bool dt_head_may_match(const char *line, size_t size, const struct dt_sought *wanted);

/* Differences between an entry and the question. */
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
    int store; /* the line's store */
    unsigned misses;
    enum dt_tier tier; /* none: another machine */
    bool provisional, stale;
    double distance;
    int64_t stored_ns; /* 0: not known */
    int batch;         /* the plan's, fitted; 0: as it is */
    int devices;       /* the entry's key's */
};

/* Sentences about changes since the entry was stored; NULL when out of memory. */
json_t *dt_stale_reasons(const struct dt_asked *asked, const json_t *fingerprint);
bool dt_stale_by_age(int64_t now_ns, int64_t stored_ns);
/* Time when it was stored, or last confirmed by a check; 0: not known. */
int64_t dt_stored_ns(const json_t *fingerprint);

/* The entry's plan adapted to the question, new reference. changed: the changes and reasons, ""
 * without any; refit: it differs from the measured plan. DT_EINFEASIBLE with a sentence when it
 * breaks a rule or a limit. */
struct dt_fitted {
    json_t *plan;
    bool refit;
    char changed[200];
};
dt_status dt_plan_fit(const struct dt_asked *asked, const struct dt_match *match,
                      const json_t *entry, struct dt_fitted *fitted) DT_MUST_CHECK;

/* DT_EINFEASIBLE with a sentence when a plan of space `was` means something else in `now`, whatever
 * its values: the parameters, their roles or defaults differ. */
dt_status dt_space_carries(const struct dt_space *was, const struct dt_space *now) DT_MUST_CHECK;
/* Appends the values and rules that differ: "without a=8, with the rule a <= 4"; "" where the
 * spaces mean the same. */
void dt_space_changes(const struct dt_space *was, const struct dt_space *now, struct dt_text *out);

/* An answer with the objects it owns. One of the exact tier is cached beside the snapshot's entry
 * (dt_snapshot_note): the next equal question borrows it, and only fields that depend on the clock
 * are new. */
struct dt_found {
    struct dt_answer answer; /* first: what callers see */
    bool lent;               /* the fields below are borrowed */
    char *reason, *refused;
    json_t *plan, *stale_reasons, *hint;
    struct dt_stored_entry *stored; /* the entry's fields, borrowed from it; NULL: no entry */
    int64_t stored_ns;
    bool aged; /* also stale by age */
    /* Set in a cached one: the basis of its question, and the entry's next. */
    json_t *basis;
    struct dt_found *next;
};

/* Reasons why stronger answers were refused, appended one by one. */
struct dt_refusals {
    struct dt_text text;
    int count;
};

/* All new, DT_ENOMEM. Always owns fitted->plan. */
dt_status dt_answer_of_entry(const struct dt_asked *asked, const struct dt_match *match,
                             const json_t *entry, struct dt_fitted *fitted,
                             const struct dt_refusals *refusals,
                             struct dt_found **found) DT_MUST_CHECK;
/* plan NULL: tier none. hint may be NULL. Always owns both. */
dt_status dt_answer_without(const struct dt_asked *asked, json_t *plan, json_t *hint,
                            const struct dt_refusals *refusals,
                            struct dt_found **found) DT_MUST_CHECK;
/* A copy that borrows everything from found, with the age at now_ns. NULL: out of memory. */
struct dt_found *dt_answer_lend(const struct dt_found *found, const struct dt_asked *asked,
                                int64_t now_ns);
void dt_found_free(struct dt_found *found);

/* Appends the basis of the tier, in words. */
void dt_reason_add(const struct dt_asked *asked, const struct dt_match *match, const json_t *entry,
                   const struct dt_fitted *fitted, struct dt_text *out);

/* log2 of a finite x above 0, exact for powers of 2: the public library links no libm. */
double dt_lookup_log2(double x);

#endif
