/* SPDX-License-Identifier: MIT */
/* engines - exports a plan as the command line, environment or keywords of a real engine
 *
 * An engine's version is one data file, db/engines/<engine>-<version>.json, compiled in: its
 * command words with {expressions} of space/expr, its rules with their sentences, and the
 * parameters it cannot express, each with its source. Nothing here knows an engine by name. To add
 * one, add a file (docs/adding.md).
 *
 *     struct dt_export_request request = {.engine = "xdit", .form = DT_FORM_ARGV, .plan = plan, .key = key};
 *     struct dt_export export;
 *     DT_TRY(dt_export(&request, &export));
 *     puts(dt_text_at(&export.text));       torchrun --nproc_per_node=4 PROGRAM --ulysses_degree 2 ...
 *     dt_export_fini(&export);
 */
#ifndef DT_DB_ENGINES_ENGINES_H
#define DT_DB_ENGINES_ENGINES_H

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "model/cards/card.h"

#include <stdbool.h>
#include <stdint.h>

enum dt_form {
    /* a command, quoted for sh; one a line for each replica that is a start of its own */
    DT_FORM_ARGV,
    DT_FORM_ENV, /* NAME=VALUE, one a line, quoted for sh */
    /* {"engine", "argv", "lines", "environment", "kwargs", "unexpressed", "notes", ...} */
    DT_FORM_JSON,
    DT_FORM_TABLE, /* for people: without control bytes */
    DT_FORM_FLAGS, /* the plan's part of the command: one line that sh splits at blanks */
    DT_FORM_YAML   /* a deploy file */
};
dt_status dt_form_parse(const char *text, enum dt_form *form) DT_MUST_CHECK;

/* All borrowed. NULL: unknown; rules that need it are not checked, and a note says so. */
struct dt_export_request {
    const char *engine; /* "xdit", the newest version, or "xdit:0.4.5" */
    enum dt_form form;
    /* {"ulysses": 2, ...}; parameters not named take the engine file's defaults */
    const json_t *plan;
    /* The entry's: model, height, width, guidance, dtype, devices; or job, with the
     * model that has a card. */
    const json_t *key;
    const json_t *hard; /* its hard fingerprint, with the engine that measured it */
    /* the model's card, for one of the user's own; NULL: the compiled card
     * that the key's job names */
    const struct dt_card *card;
    /* names for the engine's rules, {"heads": 24}; override the key's model */
    const json_t *constants;
    const char *program, *checkpoint; /* the user's values of {program} and {checkpoint} */
    int hosts, slots; /* that ranks may be on, and how many each takes; 0: one host */
    int compute;      /* a device's capability (struct dt_machine_card); 0: not known */
};

struct dt_export {
    struct dt_text text; /* ends in a line feed */
    json_t *json;        /* the JSON form, for every requested form; it owns the lists below */
    json_t *unexpressed; /* [{"name", "value", "why"}]: parameters the engine cannot express */
    json_t *notes;   /* [sentence]: "not measured on xdit 0.4.5", the remarks, what else to do */
    json_t *remarks; /* [sentence]: rules that were not checked, words that were added; owned */
    int64_t processes, replicas; /* processes of one start, and number of starts: a line each */
    bool measured;               /* the plan was measured on this engine */
};

/* Errors: DT_EUSAGE (unknown engine or version, with the list; a value that is no number),
 * DT_EINFEASIBLE (the engine's rule, with its numbers and the nearest valid values).
 * DT_EUSAGE, too: a form that the engine or this plan has not, with the one to use. *out is
 * set on success only. */
dt_status dt_export(const struct dt_export_request *request, struct dt_export *out) DT_MUST_CHECK;
void dt_export_fini(struct dt_export *out);

/* The engine's name in hard fingerprints, "xdit" for "xdit-runner:0.7.0"; *name is a new string.
 * DT_EUSAGE when unknown. */
dt_status dt_engine_family(const char *engine, json_t **name) DT_MUST_CHECK;

/* The same for the name of a known engine, with or without a version; any other name is that of an
 * engine that only its worker knows. DT_EUSAGE: a version that is unknown. */
dt_status dt_engine_named(const char *engine, json_t **name) DT_MUST_CHECK;

/* The engine has a file, so that plans can be exported to it. */
bool dt_engine_known(const char *engine);

/* Every plan of one replica that the engine takes for the key's workload, [{"ulysses": 2, ...}], in
 * the order of its file's degrees; DT_EUSAGE for an unknown engine. New reference. */
struct dt_plans_wanted {
    int64_t devices;            /* at most */
    int hosts, slots;           /* a request's: only plans that the engine can start on these */
    int64_t device_bytes;       /* memory of a device; 0: all fits */
    int compute;                /* a request's */
    bool throughput;            /* images a second of all devices count, not the time of one */
    bool lossy;                 /* with degrees that change the output beyond rounding */
    const struct dt_card *card; /* a request's */
    const json_t *words;        /* {"compile": "on"}, where the rules take them; NULL: none */
};
dt_status dt_engine_plans(const char *engine, const json_t *key, struct dt_plans_wanted wanted,
                          json_t **plans) DT_MUST_CHECK;

/* How many plans the device of wanted.compute cannot run, of those that the engine takes, and the
 * sentences of the rules that say so. */
dt_status dt_engine_left_out(const char *engine, const json_t *key, struct dt_plans_wanted wanted,
                             size_t *count, struct dt_text *why) DT_MUST_CHECK;

/* At most so many of these that are nearest to a plan: as many ranks first, then as few changes as
 * can be, of equal ones in the file's order. New reference. */
dt_status dt_engine_nearest(const char *engine, const json_t *key, struct dt_plans_wanted wanted,
                            const json_t *own, int most, json_t **nearest) DT_MUST_CHECK;

/* Settings whose values are words: name to {"values", "lossy", "source"}, the engine's own value
 * first. New reference. */
dt_status dt_engine_choices(const char *engine, json_t **choices) DT_MUST_CHECK;

/* The plan that the engine chooses by itself on the key's devices; it may be one that
 * its rules refuse. NULL: it chooses none, every degree is 1 unless the user says
 * otherwise. New reference. */
dt_status dt_engine_default(const char *engine, const json_t *key, const struct dt_card *card,
                            json_t **plan) DT_MUST_CHECK;

/* The plan that the engine's documentation tells a user to set there, {"plan", "source", "date",
 * "says"}: the first row of its file whose condition holds and which its rules take. NULL: the
 * documentation says nothing. New reference. */
dt_status dt_engine_documented(const char *engine, const json_t *key, struct dt_plans_wanted wanted,
                               json_t **documented) DT_MUST_CHECK;

/* For each of the plans an array of those that it becomes with words that lower the memory of a
 * device (the file's choices: "memory"), where the rules take them; null in the place of a plan has
 * none. New reference. */
dt_status dt_engine_variants(const char *engine, const json_t *key, struct dt_plans_wanted wanted,
                             const json_t *plans, json_t **variants) DT_MUST_CHECK;

/* How an engine runs plans, read once: its file's "runs", and those words. */
enum { DT_ENGINE_WAYS = 16, DT_ENGINE_WORD = 32 };
struct dt_engine_ways {
    bool eager, wrapped, shares_encoder; /* see struct dt_predict_job */
    bool worker;                         /* dittune has a worker of the engine */
    int count;
    struct dt_engine_way {
        char choice[DT_ENGINE_WORD], word[DT_ENGINE_WORD];
        unsigned settings; /* bits of model/predict.h */
    } at[DT_ENGINE_WAYS];
    /* by itself, of a plan of one device that does not name the choice; settings 0: nothing */
    struct dt_engine_way alone;
};
/* engine: "xdit", "vllm-omni:0.30.0", case ignored; of one without a file all is empty. */
void dt_engine_ways(const char *engine, struct dt_engine_ways *ways);
/* The settings of memory that the plan's words stand for. */
unsigned dt_engine_settings(const struct dt_engine_ways *ways, const json_t *plan);
/* Adds the options of the engine's worker without which a session does not try the plan's
 * degrees, " --cfg". */
dt_status dt_engine_options(const char *engine, const json_t *plan,
                            struct dt_text *out) DT_MUST_CHECK;
/* A plan's word for compiling is one that compiles. */
bool dt_engine_compiles(const char *word);
/* Sets eager, wrapped, shares_encoder; a plan that compiles is neither of the first two. */
struct dt_predict_job;
void dt_engine_way(const struct dt_engine_ways *ways, bool compiled, struct dt_predict_job *job);
/* The same of an engine's name. */
void dt_engine_runs(const char *engine, bool compiled, struct dt_predict_job *job);

/* DT_EUSAGE, with the engines that the card names: the engine's file has the only
 * transformers that it runs ("models"), and the model's is none of them, or its card names
 * other engines and not this one. */
dt_status dt_engine_check_model(const char *engine, const struct dt_card *card) DT_MUST_CHECK;

/* The known engines, [{"engine", "version", "doc", "sources", "cannot"}], sorted. New reference. */
dt_status dt_engines(json_t **list) DT_MUST_CHECK;

#endif
