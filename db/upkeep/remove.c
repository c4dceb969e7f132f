/* SPDX-License-Identifier: MIT */
/* Removes entries. Their journals stay, since they are evidence for other records, too. */
#include "db/upkeep/upkeep_int.h"

#include "db/commit_int.h"
#include "db/entry_line_int.h"

#include <stdlib.h>

struct removal {
    const uint64_t *ids;
    size_t count;
    bool really;
    struct dt_upkeep *upkeep;
};

static bool wanted(const struct removal *removal, uint64_t id)
{
    for (size_t i = 0; i < removal->count; i++)
        if (removal->ids[i] == id)
            return true;
    return false;
}

/* A line that is no entry is named by its id. */
static dt_status tell(const struct removal *removal, const char *text,
                      const struct dt_best_line *line)
{
    json_t *entry = NULL;
    struct dt_text name = {0};
    dt_status status = dt_entry_read(text + line->at, line->size, "the entry", &entry);
    if (status == DT_OK)
        status = dt_upkeep_name(entry, &name);
    else if (status == DT_EUSAGE) {
        dt_text_add(&name, "the line [%016llx], which is no entry", (unsigned long long)line->id);
        status = dt_text_status(&name);
    }
    if (status == DT_OK)
        dt_upkeep_say(removal->upkeep, DT_TELL_DONE, "%s%s",
                      removal->really ? "removed " : "would remove ", dt_text_at(&name));
    json_decref(entry);
    dt_text_fini(&name);
    return status;
}

static dt_status decide(struct dt_edit *edit, void *context)
{
    struct removal *removal = context;
    if (edit->old == DT_COMMIT_BAD)
        return dt_fail(DT_ECORRUPT, "%s: nothing is removed from a broken store", edit->because);
    bool *drop = calloc(edit->best.count + 1, sizeof *drop);
    if (drop == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while removing entries");
    dt_status status = DT_OK;
    for (size_t i = 0; status == DT_OK && i < edit->best.count; i++) {
        drop[i] = wanted(removal, edit->best.lines[i].id);
        if (drop[i])
            status = tell(removal, edit->best.text.bytes, &edit->best.lines[i]);
    }
    if (status == DT_OK && removal->really && removal->upkeep->done > 0)
        edit->drop = drop;
    else
        free(drop);
    return status;
}

dt_status dt_upkeep_remove(const char *directory, const uint64_t ids[], size_t count, bool really,
                           struct dt_upkeep *upkeep)
{
    struct removal removal = {.ids = ids, .count = count, .really = really, .upkeep = upkeep};
    return dt_store_edit(directory, decide, &removal);
}
