/* SPDX-License-Identifier: MIT */
/* engines - a plan as the command line, environment or keywords of a real engine
 *
 * An engine's version is one data file, db/engines/<engine>-<version>.json, compiled in: what it starts, its words with
 * {expressions} of space/expr, its rules with their sentences, what it cannot express, each with its source. Nothing here
 * knows an engine by name. To add one, add a file (docs/adding.md).
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

#include <stdint.h>

enum dt_form {
    DT_FORM_ARGV, /* one command, quoted for sh */
    DT_FORM_ENV,  /* NAME=VALUE, one a line, quoted for sh */
    DT_FORM_JSON, /* {"engine", "argv", "environment", "kwargs", "unexpressed", "notes", ...} */
    DT_FORM_TABLE /* for people: no byte of it moves a terminal's cursor */
};
dt_status dt_form_parse(const char *text, enum dt_form *form) DT_MUST_CHECK;

/* All borrowed. What is NULL is not known: rules that need it are not checked, and a note says so. */
struct dt_export_request {
    const char *engine; /* "xdit", the newest version, or "xdit:0.4.5" */
    enum dt_form form;
    const json_t
        *plan; /* {"ulysses": 2, ...}: what it does not name takes the engine file's default */
    const json_t *key;  /* of the entry: model, height, width, guidance, dtype, devices */
    const json_t *hard; /* its hard fingerprint: which engine measured it */
    const json_t
        *constants; /* names for the engine's rules, {"heads": 24}; they win over the key's model */
    const char *program, *checkpoint; /* the user's words for {program} and {checkpoint} */
};

struct dt_export {
    struct dt_text text; /* ends in a line feed */
    json_t *json;        /* the JSON form, whichever form was asked for; the lists below are its */
    json_t
        *unexpressed; /* [{"name", "value", "why"}]: of this plan, what the engine cannot be told */
    json_t *notes;    /* [sentence]: "not measured on xdit 0.4.5", rules not checked */
    int64_t processes, replicas; /* processes of one start, and how many starts make the plan */
    bool measured;               /* the plan was measured on this engine */
};

/* Errors: DT_EUSAGE (unknown engine or version, with the list; a value that is no number), DT_EINFEASIBLE (the engine's
 * rule, with its numbers and the nearest values that it takes). *out is set on success only. */
dt_status dt_export(const struct dt_export_request *request, struct dt_export *out) DT_MUST_CHECK;
void dt_export_fini(struct dt_export *out);

/* What an entry's hard fingerprint calls it, "xdit" of "xdit-runner:0.7.0"; *name is a new string. DT_EUSAGE when unknown. */
dt_status dt_engine_family(const char *engine, json_t **name) DT_MUST_CHECK;

/* The engines that are known, [{"engine", "version", "doc", "sources", "cannot"}], sorted. New reference. */
dt_status dt_engines(json_t **list) DT_MUST_CHECK;

/* word quoted so that sh gives it back byte for byte, appended: bare where it can be, else in '...'; control bytes but the
 * line feed are spelt as "$(printf '\033')". */
void dt_quote(const char *word, struct dt_text *out);

#endif
