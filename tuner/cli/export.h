/* SPDX-License-Identifier: MIT */
/* export - plans on standard output for other programs: an engine's flags, a shell's variables
 *
 * For `dittune lookup`. Remarks go to standard error, so that `cmd=$(dittune lookup --engine xdit
 * --format argv) && eval "$cmd"` runs the command and shows the remarks.
 */
#ifndef DT_TUNER_CLI_EXPORT_H
#define DT_TUNER_CLI_EXPORT_H

#include "base/json.h"
#include "db/engines/engines.h"
#include "model/cards/card.h"
#include "tuner/cli/options.h"

/* The question to an engine's file: plans on --devices, else on a usual host with GPUs. */
struct dt_plans_wanted dt_export_wanted(const struct dt_options *options,
                                        const struct dt_card *card);

/* --engine, or a --format that is not an answer's own: dt_export_print prints the plan. */
bool dt_export_asked(const struct dt_options *options);

/* DT_EUSAGE: --format is unknown, or needs an --engine that has a file. */
dt_status dt_export_check(const struct dt_options *options) DT_MUST_CHECK;

/* A plan of an entry or of the user; what the request leaves open is that of the options. answer
 * goes into the JSON form, NULL: none. DT_EINFEASIBLE when the engine's rules refuse the plan;
 * DT_EUSAGE for an unknown engine or form. */
dt_status dt_export_print(const struct dt_options *options, struct dt_export_request request,
                          json_t *answer) DT_MUST_CHECK;

/* A plan of the user's own and the workload of the options, owned, also after an error. */
struct dt_export_own {
    json_t *plan, *key, *constants; /* see dt_export_request */
    struct dt_card card;
    bool has_card; /* --model is that of a published model */
};
dt_status dt_export_own_read(const struct dt_options *options, const char *plan,
                             struct dt_export_own *own) DT_MUST_CHECK;
void dt_export_own_fini(struct dt_export_own *own);

/* --plan: a plan of the user's own, for the workload of the options; nothing is looked up. */
dt_status dt_export_own(const struct dt_options *options) DT_MUST_CHECK;

/* "ulysses=2 ring=2 attention=flash": a plan's degrees above 1 and its words; "one device"
 * when there are none. */
void dt_export_add_degrees(const json_t *plan, struct dt_text *out);

/* The lines that run an engine's plan of a published model; key: as dt_export_card_key makes it. */
dt_status dt_export_card_plan(const char *engine, const struct dt_card *card, const json_t *key,
                              const json_t *plan, struct dt_export *out) DT_MUST_CHECK;

/* --engines */
dt_status dt_export_engines(const struct dt_options *options) DT_MUST_CHECK;

/* The keywords that hold the plan where the command does not, borrowed; NULL: the command does. */
const json_t *dt_export_keywords(const struct dt_export *exported);

/* The key {"job"[,"devices"]} of a published model for an engine's rules, which take the rest from
 * its card: the fields that the options give, with the card's full name, and the card's usual size
 * and frames where they give none. devices 0: not known. *size is the size that was taken; *key a
 * new reference. DT_EUSAGE: the model cannot have that size, or texts of that length. */
dt_status dt_export_card_key(const struct dt_options *options, const struct dt_card *card,
                             int64_t devices, struct dt_frames *size, json_t **key) DT_MUST_CHECK;
/* The shape of --model as names for an engine's rules, {"heads": ...}: presets need none,
 * files do. New reference. */
dt_status dt_export_constants(const struct dt_options *options, json_t **constants) DT_MUST_CHECK;

#endif
