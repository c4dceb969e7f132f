/* SPDX-License-Identifier: MIT */
/* role - roles of plans in a comparison (role.def) */
#ifndef DT_TUNER_MEASURE_COMPARE_ROLE_H
#define DT_TUNER_MEASURE_COMPARE_ROLE_H

#include "base/status.h"

enum dt_entrant_role {
#define DT_ENTRANT_ROLE(name, text) name,
#include "tuner/measure/compare/role.def"
#undef DT_ENTRANT_ROLE
    DT_ENTRANT_ROLES
};

const char *dt_entrant_role_text(enum dt_entrant_role role);

/* DT_EUSAGE with a sentence that begins with what. */
dt_status dt_entrant_role_find(const char *what, const char *text,
                               enum dt_entrant_role *role) DT_MUST_CHECK;

#endif
