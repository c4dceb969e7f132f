/* SPDX-License-Identifier: MIT */
#include "db/stores.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* The XDG rule: a relative $XDG_DATA_HOME is ignored. */
static dt_status user_folder_add(const char *home, struct dt_text *out)
{
    const char *data = getenv("XDG_DATA_HOME"), *given = getenv("HOME");
    if (given != NULL && given[0] != '\0')
        home = given;
    if (data != NULL && data[0] == '/')
        dt_text_add(out, "%s/dittune", data);
    else if (home != NULL)
        dt_text_add(out, "%s/.local/share/dittune", home);
    else
        return dt_fail(DT_EUSAGE, "neither $XDG_DATA_HOME nor $HOME is set: give the path");
    return dt_text_status(out);
}

static dt_status folder_put(const char *folder, size_t *used, struct dt_stores *stores)
{
    size_t size = strlen(folder) + 1;
    for (int i = 0; i < stores->count; i++)
        if (strcmp(stores->at[i], folder) == 0)
            return DT_OK;
    if (stores->count == DT_STORES_MOST || size > sizeof stores->room - *used)
        return dt_fail(DT_EUSAGE,
                       "the list of stores is too long: at most %d folders, of %zu bytes",
                       DT_STORES_MOST, sizeof stores->room);
    stores->at[stores->count++] = memcpy(stores->room + *used, folder, size);
    *used += size;
    return DT_OK;
}

dt_status dt_stores_read(const char *list, const char *home, struct dt_stores *stores)
{
    const char *given = list != NULL ? list : getenv("DITTUNE_STORE");
    size_t used = 0;
    stores->count = 0;
    for (const char *at = given != NULL ? given : "", *end; at != NULL;
         at = *end == ':' ? end + 1 : NULL) {
        dt_auto_text folder = {0};
        end = at + strcspn(at, ":");
        if (end > at)
            dt_text_add_bytes(&folder, at, (size_t)(end - at));
        else
            DT_TRY(user_folder_add(home, &folder));
        DT_TRY(dt_text_status(&folder));
        DT_TRY(folder_put(dt_text_at(&folder), &used, stores));
    }
    return DT_OK;
}
