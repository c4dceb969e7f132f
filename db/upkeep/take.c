/* SPDX-License-Identifier: MIT */
#include "db/upkeep/upkeep_int.h"

#include "db/commit_int.h"
#include "db/entry_line_int.h"
#include "db/journal.h"
#include "db/snapshot.h"
#include "db/stored.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct taking {
    const char *directory, *from;
    const json_t *entries;
    struct dt_upkeep *upkeep;
    int refused;
};

#define WAY_OUT "'dittune db rebuild --salvage' makes best.json without it"

/* Skips a line that is no entry and reports it. */
static dt_status leave_out(const struct dt_snapshot *snapshot, long i, struct dt_upkeep *upkeep)
{
    dt_upkeep_say(upkeep, DT_TELL_BROKEN, "%s: the entry %016llx is left out (" WAY_OUT ")",
                  dt_message(), (unsigned long long)dt_snapshot_id(snapshot, i));
    return DT_OK;
}

dt_status dt_upkeep_entries(const char *directory, struct dt_upkeep *upkeep, json_t **entries)
{
    struct dt_snapshot *snapshot = NULL;
    json_t *array = json_array();
    dt_status status = array != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK)
        status = dt_snapshot_open(directory, &snapshot);
    for (size_t i = 0; status == DT_OK && i < dt_snapshot_count(snapshot); i++) {
        const json_t *entry = NULL;
        status = dt_snapshot_entry(snapshot, (long)i, &entry);
        if (status == DT_ECORRUPT)
            status = leave_out(snapshot, (long)i, upkeep);
        else if (status == DT_OK && json_array_append_new(array, dt_upkeep_bare(entry)) != 0)
            status = dt_fail(DT_ENOMEM, "out of memory");
    }
    if (status == DT_OK && dt_snapshot_fallback(snapshot) != NULL)
        dt_upkeep_say(upkeep, DT_TELL_WARNING,
                      "%s: best.json.1 was read instead, what was stored after it is missing there",
                      dt_snapshot_fallback(snapshot));
    dt_snapshot_close(snapshot);
    if (status == DT_OK)
        *entries = array;
    else
        json_decref(array);
    return status;
}

/* Loads the store's entries for comparison. A line that is no entry stays in place. */
static dt_status load(const struct dt_best *best, struct taking *taking, struct dt_pick *pick)
{
    for (size_t i = 0; i < best->count; i++) {
        json_t *entry = NULL;
        enum dt_offer offer;
        char what[64];
        snprintf(what, sizeof what, "entry %zu of best.json", i + 1);
        dt_status status =
            dt_entry_read(best->text.bytes + best->lines[i].at, best->lines[i].size, what, &entry);
        if (status == DT_EUSAGE) {
            dt_upkeep_say(taking->upkeep, DT_TELL_BROKEN,
                          "%s, of %s: it was left as it is (" WAY_OUT ")", dt_message(),
                          taking->directory);
            continue;
        }
        DT_TRY(status);
        json_t *bare = dt_upkeep_bare(entry);
        json_decref(entry);
        status = bare != NULL ? dt_pick_offer(pick, bare, false, &offer)
                              : dt_fail(DT_ENOMEM, "out of memory");
        json_decref(bare);
        DT_TRY(status);
    }
    return DT_OK;
}

static void tell(const struct taking *taking, const json_t *entry, enum dt_offer offer)
{
    static const char *const words[] = {[DT_OFFER_NEW] = "taken, there was none",
                                        [DT_OFFER_DECIDED] = "replaced: decided beats provisional",
                                        [DT_OFFER_NEWER] = "replaced: newer",
                                        [DT_OFFER_SAME] = "the same as ours",
                                        [DT_OFFER_PROVISIONAL] =
                                            "not taken: it is provisional, ours is decided",
                                        [DT_OFFER_OLDER] = "not taken: ours is newer"};
    struct dt_text name = {0};
    if (dt_upkeep_name(entry, &name) == DT_OK)
        dt_upkeep_say(taking->upkeep, offer <= DT_OFFER_NEWER ? DT_TELL_DONE : DT_TELL_NOTE,
                      "%s from %s: %s", dt_text_at(&name), taking->from, words[offer]);
    dt_text_fini(&name);
}

/* Warns about entries from the future: the newer wins a merge, so such an entry wins until its date. */
static void tell_future(const struct taking *taking, const json_t *entry)
{
    struct dt_stored_entry fields;
    dt_record_read(&dt_record_stored_entry, entry, &fields);
    int64_t ahead = fields.fingerprint.info.t_wall_ns / 1000000000 - time(NULL);
    struct dt_text name = {0};
    if (ahead > 86400 && dt_upkeep_name(entry, &name) == DT_OK)
        dt_upkeep_say(
            taking->upkeep, DT_TELL_WARNING,
            "%s from %s is dated %lld days in the future: until then it takes precedence over "
            "others, and it does not age",
            dt_text_at(&name), taking->from, (long long)(ahead / 86400));
    dt_text_fini(&name);
}

/* taken: entries that win against the store and each other. */
static dt_status offer_each(struct taking *taking, struct dt_pick *store, struct dt_pick *taken)
{
    size_t i;
    const json_t *entry;
    json_array_foreach(taking->entries, i, entry)
    {
        enum dt_offer offer = DT_OFFER_SAME, again;
        struct dt_text what = {0};
        dt_text_add(&what, "entry %zu of %s", i + 1, taking->from);
        dt_status status = dt_upkeep_check(entry, dt_text_at(&what));
        if (status == DT_OK)
            status = dt_upkeep_seal(entry, dt_text_at(&what));
        dt_text_fini(&what);
        if (status == DT_EUSAGE) {
            dt_upkeep_say_error(taking->upkeep, DT_TELL_BROKEN, "");
            taking->refused++;
            continue;
        }
        DT_TRY(status);
        json_t *bare = dt_upkeep_bare(entry);
        if (bare == NULL)
            return dt_fail(DT_ENOMEM, "out of memory");
        status = dt_pick_offer(store, bare, false, &offer);
        if (status == DT_OK && offer <= DT_OFFER_NEWER)
            status = dt_pick_offer(taken, bare, true, &again);
        if (status == DT_OK)
            tell(taking, bare, offer);
        if (status == DT_OK && offer <= DT_OFFER_NEWER)
            tell_future(taking, bare);
        json_decref(bare);
        DT_TRY(status);
    }
    return DT_OK;
}

static dt_status write_journal(const struct taking *taking, const json_t *entries)
{
    struct dt_journal *journal = NULL;
    size_t i;
    const json_t *entry;
    json_t *from = json_pack("{s:s}", "from", taking->from);
    if (from == NULL)
        return dt_fail(DT_EUSAGE, "the name of %s is not UTF-8 text", taking->from);
    dt_status status = dt_journal_open(taking->directory, &journal);
    if (status == DT_OK)
        status = dt_journal_add(journal, "taken", from);
    json_array_foreach(entries, i, entry)
    {
        if (status == DT_OK)
            status = dt_journal_add(journal, "best", entry);
    }
    json_decref(from);
    dt_journal_close(journal);
    return status;
}

/* Refuses a damaged store, which the user can repair first, so that nothing is lost silently. */
static dt_status check_store(const struct dt_edit *edit, const struct taking *taking)
{
    if (edit->old != DT_COMMIT_BAD)
        return DT_OK;
    if (edit->best.state == DT_BEST_ABSENT)
        return dt_fail(DT_ECORRUPT,
                       "%s, and there is no good best.json.1 beside it: 'dittune db rebuild' makes "
                       "it anew from the journals, nothing was taken",
                       edit->because);
    dt_upkeep_say(taking->upkeep, DT_TELL_WARNING,
                  "%s: best.json.1 takes its place, and what was stored after it is missing there; "
                  "'dittune db rebuild --salvage' brings back what is whole",
                  edit->because);
    return DT_OK;
}

static dt_status decide(struct dt_edit *edit, void *context)
{
    struct taking *taking = context;
    struct dt_pick store = {0}, taken = {0};
    json_t *array = NULL;
    DT_TRY(check_store(edit, taking));
    dt_status status = dt_pick_init(&store);
    if (status == DT_OK)
        status = dt_pick_init(&taken);
    if (status == DT_OK)
        status = load(&edit->best, taking, &store);
    if (status == DT_OK)
        status = offer_each(taking, &store, &taken);
    if (status == DT_OK && (array = dt_pick_array(&taken)) == NULL)
        status = dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK && json_array_size(array) > 0)
        status = write_journal(taking, array);
    if (status == DT_OK && json_array_extend(edit->entries, array) != 0)
        status = dt_fail(DT_ENOMEM, "out of memory");
    json_decref(array);
    dt_pick_fini(&store);
    dt_pick_fini(&taken);
    return status == DT_EUSAGE ? DT_ECORRUPT : status;
}

dt_status dt_upkeep_take(const char *directory, const json_t *entries, const char *from,
                         struct dt_upkeep *upkeep)
{
    struct taking taking = {
        .directory = directory, .from = from, .entries = entries, .upkeep = upkeep};
    DT_TRY(dt_store_edit(directory, decide, &taking));
    if (taking.refused > 0)
        return dt_fail(DT_ECORRUPT, "%d of the %zu entries of %s could not be taken",
                       taking.refused, json_array_size(entries), from);
    return DT_OK;
}
