/* SPDX-License-Identifier: MIT */
#include "db/upkeep/upkeep_int.h"

#include "db/canonical_int.h"
#include "db/stored.h"

#include <string.h>

dt_status dt_pick_init(struct dt_pick *pick)
{
    pick->entries = json_object();
    return pick->entries != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

void dt_pick_fini(struct dt_pick *pick)
{
    json_decref(pick->entries);
    pick->entries = NULL;
}

static dt_status identity(const json_t *entry, struct dt_text *text)
{
    DT_TRY(dt_canonical_add(json_object_get(entry, "key"), text));
    dt_text_add(text, " ");
    return dt_canonical_add(json_object_get(json_object_get(entry, "fingerprint"), "hard"), text);
}

static int after(int64_t mine, int64_t its)
{
    return (mine > its) - (mine < its);
}

/* Orders copies of one session's result by their last check. */
static int order(const struct dt_stored_info *entry, const struct dt_stored_info *known)
{
    int session = after(entry->t_wall_ns, known->t_wall_ns);
    return session != 0 ? session : after(entry->checked_ns, known->checked_ns);
}

static enum dt_offer compare(const json_t *entry, const json_t *known, bool later)
{
    struct dt_stored_entry mine, its;
    dt_record_read(&dt_record_stored_entry, entry, &mine);
    dt_record_read(&dt_record_stored_entry, known, &its);
    int newer = order(&mine.fingerprint.info, &its.fingerprint.info);
    if (json_equal(entry, known))
        return DT_OFFER_SAME;
    if (mine.provisional != its.provisional)
        return mine.provisional ? DT_OFFER_PROVISIONAL : DT_OFFER_DECIDED;
    return newer > 0 || (newer == 0 && later) ? DT_OFFER_NEWER : DT_OFFER_OLDER;
}

dt_status dt_pick_find(const struct dt_pick *pick, const json_t *entry, json_t **known)
{
    struct dt_text name = {0};
    dt_status status = identity(entry, &name);
    if (status == DT_OK)
        status = dt_text_status(&name);
    if (status == DT_OK)
        *known = json_object_get(pick->entries, dt_text_at(&name));
    dt_text_fini(&name);
    return status;
}

static dt_status keep(struct dt_pick *pick, json_t *entry)
{
    struct dt_text name = {0};
    dt_status status = identity(entry, &name);
    if (status == DT_OK)
        status = dt_text_status(&name);
    if (status == DT_OK && json_object_set(pick->entries, dt_text_at(&name), entry) != 0)
        status = dt_fail(DT_ENOMEM, "out of memory");
    dt_text_fini(&name);
    return status;
}

dt_status dt_pick_offer(struct dt_pick *pick, json_t *entry, bool later, enum dt_offer *offer)
{
    json_t *known = NULL;
    DT_TRY(dt_pick_find(pick, entry, &known));
    enum dt_offer found = known != NULL ? compare(entry, known, later) : DT_OFFER_NEW;
    if (found <= DT_OFFER_NEWER)
        DT_TRY(keep(pick, entry));
    *offer = found;
    return DT_OK;
}

json_t *dt_pick_array(const struct dt_pick *pick)
{
    json_t *array = json_array(), *entry;
    const char *name;
    json_object_foreach(pick->entries, name, entry)
    {
        if (json_array_append(array, entry) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

json_t *dt_upkeep_bare(const json_t *entry)
{
    static const char *const added[] = {"id",  "crc",       "checksum",  "v",    "seq",
                                        "run", "t_wall_ns", "t_mono_ns", "kind", NULL};
    json_t *bare = json_copy((json_t *)entry);
    for (int i = 0; bare != NULL && added[i] != NULL; i++)
        json_object_del(bare, added[i]);
    return bare;
}
