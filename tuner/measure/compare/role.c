/* SPDX-License-Identifier: MIT */
#include "tuner/measure/compare/role.h"

#include <string.h>

static const char *const texts[] = {
#define DT_ENTRANT_ROLE(name, text) [name] = (text),
#include "tuner/measure/compare/role.def"
#undef DT_ENTRANT_ROLE
};

const char *dt_entrant_role_text(enum dt_entrant_role role)
{
    return texts[role];
}

dt_status dt_entrant_role_find(const char *what, const char *text, enum dt_entrant_role *role)
{
    for (int i = 0; i < DT_ENTRANT_ROLES; i++)
        if (strcmp(texts[i], text) == 0) {
            *role = (enum dt_entrant_role)i;
            return DT_OK;
        }
    return dt_fail(DT_EUSAGE, "%s: the role '%.40s' is unknown", what, text);
}
