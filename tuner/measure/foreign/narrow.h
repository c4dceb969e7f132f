/* SPDX-License-Identifier: MIT */
/* narrow - a part of a worker's announced space, as a user's file names it (--space beside --worker or --engine) */
#ifndef DT_TUNER_MEASURE_NARROW_H
#define DT_TUNER_MEASURE_NARROW_H

#include "base/json.h"

/* The announced space with only the values that the file at `path` names. *narrowed: new. DT_EUSAGE for an unknown
 * name or value, or when the default is left out. */
dt_status dt_target_narrow(const char *path, const json_t *announced,
                           json_t **narrowed) DT_MUST_CHECK;

/* The same with the values of a space that an earlier session of this worker stored. *narrowed is NULL where they are no part of the
 * announced ones, or all of them: then that session narrowed nothing. */
dt_status dt_target_narrow_as(const json_t *stored, const json_t *announced,
                              json_t **narrowed) DT_MUST_CHECK;

#endif
