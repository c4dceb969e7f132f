/* SPDX-License-Identifier: MIT */
/* alone - called before measuring: waits until no other command measures here, and warns about a
 * busy machine and a quota of processor time
 */
#ifndef DT_TUNER_CLI_ALONE_H
#define DT_TUNER_CLI_ALONE_H

#include "tuner/cli/options.h"

/* Call before the budget begins. Of a dry run it only warns. DT_EBUSY with --no-wait, and after
 * --wait; DT_EINTR, DT_ETERM. */
dt_status dt_alone(const struct dt_options *options) DT_MUST_CHECK;

#endif
