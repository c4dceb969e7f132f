/* SPDX-License-Identifier: MIT */
/* dittune - tuned plans for other programs
 *
 *     struct dittune_db *db;            struct dittune_machine *machine;
 *     struct dittune_query *query;      struct dittune_answer *answer;
 *     char why[256];
 *     if (dittune_db_open(NULL, &db, why, sizeof why) != DITTUNE_OK) ...
 *     if (dittune_machine_open(NULL, &machine, why, sizeof why) != DITTUNE_OK) ...
 *     dittune_query_new(machine, &query, why, sizeof why);
 *     dittune_query_set(query, "model", "dit-xl/2", why, sizeof why);
 *     dittune_query_seal(query, why, sizeof why);
 *     dittune_lookup(db, query, &answer, why, sizeof why);
 *     if (dittune_answer_tier(answer) >= DITTUNE_NEAR)
 *         dittune_answer_integer(answer, "ranks", &ranks);
 *
 * The library never prints, exits, aborts, changes the locale or a signal, and keeps nothing
 * between calls: failures return a code, and the caller continues with its own default. It needs
 * libjansson and the C library.
 *
 * Ownership. An object returned through a pointer argument is owned by the caller, who frees it
 * with the function named there; all of these accept NULL. A returned const char * belongs to the
 * object it was read from and lives as long. An answer points into the store and the query it came
 * from: free answers first, then queries, then the machine and the store.
 *
 * Threads. A store, a machine, a sealed query and an answer may be used by any number of threads at
 * once; none of them waits for another. A query is set and sealed by one thread. To see newer
 * entries, open the store again and swap the pointers.
 *
 * Messages. message (room bytes, NUL included) gets one sentence when a function fails and is
 * unchanged otherwise; NULL with room 0 is allowed. Outputs are set only on success. A NULL for a
 * handle is DITTUNE_USAGE, or 0 or NULL.
 *
 * The ABI of libdittune.so.1 only grows: symbols, codes and tiers are added, none is
 * changed or taken away.
 */
#ifndef DITTUNE_H
#define DITTUNE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 10000 * major + 100 * minor + patch of this header; dittune_version() is that
 * of the loaded library. */
#define DITTUNE_VERSION_NUM 100

#if defined(__GNUC__)
#define DITTUNE_API __attribute__((visibility("default")))
#else
#define DITTUNE_API
#endif

/* Return codes, as int32_t. */
enum dittune_status {
    DITTUNE_OK = 0,
    DITTUNE_FAILED = -1,       /* another error; see the message */
    DITTUNE_USAGE = -2,        /* invalid argument: unknown name, or wrong value */
    DITTUNE_INFEASIBLE = -3,   /* a rule forbids it */
    DITTUNE_CORRUPT = -7,      /* the store is damaged, or a newer dittune wrote it */
    DITTUNE_NOMEM = -20,       /* out of memory */
    DITTUNE_UNSUPPORTED = -22, /* not in this library */
    DITTUNE_IO = -74           /* a file could not be read */
};

/* Tier of an answer, as int32_t; higher is better. */
enum dittune_tier {
    DITTUNE_NONE = 0,      /* no plan */
    DITTUNE_HEURISTIC = 1, /* by the default rule: nothing was measured */
    DITTUNE_PROXY = 2,     /* measured by another engine or in another mode */
    DITTUNE_SCALED = 3,    /* measured with another number of ranks */
    DITTUNE_NEAR = 4,      /* measured at another size or batch, at most a factor 2 away */
    DITTUNE_EXACT = 5      /* measured for the same question on a machine of this make */
};

struct dittune_db;      /* one version of the stores, never changed; dittune_db_close */
struct dittune_machine; /* a machine's hardware and software; dittune_machine_free */
struct dittune_query;   /* a question; dittune_query_free */
struct dittune_answer;  /* dittune_answer_free */
struct dittune_export;  /* a plan in an engine's form; dittune_export_free */

/* ---- the library ---- */

DITTUNE_API uint32_t dittune_version(void);
/* Short text of a code, "exact" and so on for a tier; "unknown" for any other number. Static. */
DITTUNE_API const char *dittune_status_text(int32_t status);
DITTUNE_API const char *dittune_tier_text(int32_t tier);
/* Frees a text that a function returned. */
DITTUNE_API void dittune_text_free(char *text);

/* ---- the store ---- */

/* stores: folders separated by colons, as in `dittune lookup --db` (docs/database.md, "Several
 * stores"); an empty one is the user's, $XDG_DATA_HOME/dittune, else ~/.local/share/dittune. NULL:
 * $DITTUNE_STORE, else the user's. All of them are asked; "store" of dittune_answer_json is the
 * folder that an answer came from. A missing folder is an empty store. When best.json is damaged,
 * the previous version is read (dittune_db_is_fallback). No lock is taken, nothing is written.
 * DITTUNE_CORRUPT, DITTUNE_IO: one of them cannot be read, which the message names;
 * DITTUNE_USAGE, DITTUNE_NOMEM. */
DITTUNE_API int32_t dittune_db_open(const char *stores, struct dittune_db **db, char *message,
                                    size_t room);
/* Opens the text of a best.json. The text is not needed afterwards. */
DITTUNE_API int32_t dittune_db_parse(const char *text, size_t size, struct dittune_db **db,
                                     char *message, size_t room);
DITTUNE_API void dittune_db_close(struct dittune_db *db);
DITTUNE_API size_t dittune_db_count(const struct dittune_db *db); /* entries of all stores */
DITTUNE_API int32_t dittune_db_is_fallback(const struct dittune_db *db);
/* 1 when a best.json is no longer the file that was opened: one stat a store, no
 * reading. 0 for a text. */
DITTUNE_API int32_t dittune_db_is_outdated(const struct dittune_db *db);

/* ---- the machine ---- */

/* Reads the output of `dittune machine --json`. path NULL: its cache,
 * $XDG_CACHE_HOME/dittune/machine.json, else ~/.cache/dittune/machine.json. DITTUNE_IO (no such
 * file: run dittune machine), DITTUNE_USAGE, DITTUNE_NOMEM. */
DITTUNE_API int32_t dittune_machine_open(const char *path, struct dittune_machine **machine,
                                         char *message, size_t room);
DITTUNE_API int32_t dittune_machine_parse(const char *text, size_t size,
                                          struct dittune_machine **machine, char *message,
                                          size_t room);
DITTUNE_API void dittune_machine_free(struct dittune_machine *machine);

/* ---- the question ---- */

/* Makes the query of `dittune lookup` without options for that machine, which may
 * be freed afterwards. */
DITTUNE_API int32_t dittune_query_new(const struct dittune_machine *machine,
                                      struct dittune_query **query, char *message, size_t room);
/* Names and values as on the command line (docs/lookup.md): model, size (or height and width),
 * guidance, dtype, devices, batch, objective, max_bytes, reserve_bytes, max_latency_ns, engine,
 * mode; revision, frames, steps, text_tokens, pipeline, pipeline_class, networks, adapters,
 * engine_version and requests for the plans tuned on an engine; worker, workload and space for a
 * foreign worker. The last value of a name counts, "" resets it. DITTUNE_USAGE: unknown name, or
 * invalid value; the message lists valid ones. */
DITTUNE_API int32_t dittune_query_set(struct dittune_query *query, const char *name,
                                      const char *value, char *message, size_t room);
/* Checks the values together. Needed before dittune_lookup, and again after another
 * dittune_query_set. DITTUNE_USAGE;
 * DITTUNE_IO: a model file cannot be read. */
DITTUNE_API int32_t dittune_query_seal(struct dittune_query *query, char *message, size_t room);
DITTUNE_API void dittune_query_free(struct dittune_query *query);

/* ---- the answer ---- */

/* "Nothing is known" is an answer, too: DITTUNE_OK and the tier DITTUNE_NONE. DITTUNE_USAGE: plans
 * tuned on the engine could answer that differ in a value that was not set; the message has the
 * name and the values. */
DITTUNE_API int32_t dittune_lookup(const struct dittune_db *db, const struct dittune_query *query,
                                   struct dittune_answer **answer, char *message, size_t room);
/* *text: the jobs that plans were tuned for on the query's engine and that could answer it, a JSON
 * array of {"model", "width", "steps", ...} in the order of preference; what the query does not ask
 * for differs among them. Set the fields of one of them to choose it. Freed with dittune_text_free.
 * DITTUNE_USAGE: the query names no engine. DITTUNE_NOMEM. */
DITTUNE_API int32_t dittune_jobs(const struct dittune_db *db, const struct dittune_query *query,
                                 char **text, char *message, size_t room);
DITTUNE_API void dittune_answer_free(struct dittune_answer *answer);

DITTUNE_API int32_t dittune_answer_tier(const struct dittune_answer *answer);
/* 1 when versions or the environment have changed since the measurement, or it is old. */
DITTUNE_API int32_t dittune_answer_is_stale(const struct dittune_answer *answer);
/* 1 when the session decided nothing: it ended too early, was disturbed, or its
 * comparison could not tell. */
DITTUNE_API int32_t dittune_answer_is_provisional(const struct dittune_answer *answer);
/* 0: no difference; 1: a factor 2 in tokens or batch. NaN where nothing was measured. */
DITTUNE_API double dittune_answer_distance(const struct dittune_answer *answer);
DITTUNE_API const char *dittune_answer_reason(const struct dittune_answer *answer);
/* Age of the measurement by the wall clock; -1 when unknown. */
DITTUNE_API int64_t dittune_answer_age_seconds(const struct dittune_answer *answer);
/* "measured", "proxy" or "predicted"; "" without a plan. */
DITTUNE_API const char *dittune_answer_evidence(const struct dittune_answer *answer);
/* How many times faster than the default plan, and its interval: returns 1 and sets the three if it
 * was measured, else 0. */
DITTUNE_API int32_t dittune_answer_gain(const struct dittune_answer *answer, double *ratio,
                                        double *low, double *high);

/* The plan: how many names (0 without a plan), the i-th one (NULL after the last), and the value of
 * one, as a whole number or as text. DITTUNE_USAGE: no such name, not a whole number, or a text
 * that does not fit into room bytes. */
DITTUNE_API size_t dittune_answer_count(const struct dittune_answer *answer);
DITTUNE_API const char *dittune_answer_name(const struct dittune_answer *answer, size_t i);
DITTUNE_API int32_t dittune_answer_integer(const struct dittune_answer *answer, const char *name,
                                           int64_t *value);
DITTUNE_API int32_t dittune_answer_value(const struct dittune_answer *answer, const char *name,
                                         char *value, size_t room);
/* *text is JSON: the whole answer (field NULL), or one field of it, such as "plan", "hint",
 * "stale_reasons" or "entry". The caller frees it with dittune_text_free. DITTUNE_USAGE: no such
 * field. DITTUNE_NOMEM. */
DITTUNE_API int32_t dittune_answer_json(const struct dittune_answer *answer, const char *field,
                                        char **text, char *message, size_t room);

/* ---- in the words of an engine ---- */

/* *text: the known engines, a JSON array of {"engine", "version", "doc", ...}; freed
 * with dittune_text_free. */
DITTUNE_API int32_t dittune_engines(char **text, char *message, size_t room);
/* engine: "xdit:0.4.5", or "xdit" for the newest known version; form: "argv" or "env" (quoted for
 * sh), "json", "table", "flags" or "yaml" (docs/exports.md). DITTUNE_USAGE: no such engine or form,
 * a form that the engine or this plan has not, or an answer without a plan. DITTUNE_INFEASIBLE: the
 * engine's rules forbid the plan; the message names the rule and valid values. DITTUNE_NOMEM. */
DITTUNE_API int32_t dittune_export_new(const struct dittune_answer *answer, const char *engine,
                                       const char *form, struct dittune_export **made,
                                       char *message, size_t room);
DITTUNE_API const char *dittune_export_text(const struct dittune_export *made);
/* The i-th parameter of the plan that the engine cannot express, with the reason, and the i-th
 * note, such as "not measured on xdit 0.4.5"; NULL after the last. */
DITTUNE_API const char *dittune_export_unexpressed(const struct dittune_export *made, size_t i);
DITTUNE_API const char *dittune_export_note(const struct dittune_export *made, size_t i);
DITTUNE_API void dittune_export_free(struct dittune_export *made);

#ifdef __cplusplus
}
#endif

#endif
