/* SPDX-License-Identifier: MIT */
/* check_preview - check --dry-run: the entries in the order in which they would be checked, the plans of each, and the time that this
 * takes by the stored step times
 */
#ifndef DT_TUNER_CLI_COMMANDS_MEASURING_CHECK_PREVIEW_H
#define DT_TUNER_CLI_COMMANDS_MEASURING_CHECK_PREVIEW_H

#include "tuner/check/check.h"
#include "tuner/cli/options.h"

/* Opens each entry, so a worker may be started and asked for its parameters; measures and writes nothing. */
dt_status dt_check_preview(const struct dt_options *options, const struct dt_check_opts *opts,
                           const struct dt_check_list *list) DT_MUST_CHECK;

#endif
