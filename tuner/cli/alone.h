/* SPDX-License-Identifier: MIT */
/* alone - what every command does before it measures: it waits until no other one measures here, and warns of a busy machine */
#ifndef DT_TUNER_CLI_ALONE_H
#define DT_TUNER_CLI_ALONE_H

#include "tuner/cli/options.h"

/* Before the budget begins. DT_EBUSY with --no-wait, DT_EINTR, DT_ETERM. */
dt_status dt_alone(const struct dt_options *options) DT_MUST_CHECK;

#endif
