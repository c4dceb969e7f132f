/* SPDX-License-Identifier: MIT */
/* print - standard output of the commands: text, or one JSON object */
#ifndef DT_TUNER_CLI_PRINT_H
#define DT_TUNER_CLI_PRINT_H

#include "base/json.h"
#include "tuner/cli/live/progress.h"
#include "tuner/cli/options.h"

struct dt_backend;
struct dt_point;
struct dt_target;

/* One line; steals the reference. DT_ENOMEM when object is NULL. */
dt_status dt_print_json(json_t *object) DT_MUST_CHECK;

/* Text for people, cleaned for a terminal (base/text.h); frees it. */
dt_status dt_print_text(struct dt_text *text) DT_MUST_CHECK;
/* The object with --json, else the text for people; frees both. A status below DT_OK is passed on,
 * and nothing is printed. */
dt_status dt_print_either(const struct dt_options *options, dt_status status, json_t *object,
                          struct dt_text *text) DT_MUST_CHECK;
/* Text for programs, as it is; frees it. */
dt_status dt_print_exact(struct dt_text *text) DT_MUST_CHECK;

/* "dittune: " and one line for people on standard error, cleaned for a terminal. */
void dt_print_note(const char *format, ...) DT_FORMAT(1, 2);

/* The voice by --quiet and --verbose. json: quiet with --json, too. */
enum dt_voice dt_print_voice(const struct dt_options *options, bool json);

/* A JSON scalar, escaped; "-" for null, objects and arrays. */
void dt_print_value(const json_t *value, struct dt_text *out);

/* On standard error: what is wrong with the store's folder; that a plan has
 * more ranks than cores. */
void dt_print_store(const char *directory);
void dt_print_crowded(const struct dt_target *target, const struct dt_point *point);
/* Prints on standard error why plans run on cores although there seems to be a GPU. */
void dt_print_cores(const struct dt_backend *backend, bool quiet);

#endif
