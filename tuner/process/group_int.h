/* SPDX-License-Identifier: MIT */
/* group_int - shared by the files of the group only */
#ifndef DT_TUNER_PROCESS_GROUP_INT_H
#define DT_TUNER_PROCESS_GROUP_INT_H

#include "tuner/process/group.h"

/* Kills a group that broke the protocol; *failure says how already. DT_FAILED. */
dt_status dt_group_condemn(struct dt_group *group, struct dt_failure *failure);

#endif
