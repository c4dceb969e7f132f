/* SPDX-License-Identifier: MIT */
/* Entries go to another store, and come from one. */
#include "db/upkeep/upkeep_int.h"

#include "base/clock.h"
#include "db/best_int.h"
#include "db/file_int.h"
#include "db/journal.h"
#include "db/snapshot.h"
#include "db/store_int.h"
#include "db/stored.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- a file of entries */

#define EXPORT_MAJOR 1
#define MOST_VALUES  ((size_t)4 << 20) /* some 100 bytes each once parsed */

dt_status dt_upkeep_export(const json_t *entries, struct dt_text *text)
{
    size_t i;
    const json_t *entry;
    dt_text_add(text,
                "{\"format\":\"dittune-export\",\"version\":{\"major\":%d,\"minor\":0},"
                "\"entries\":[",
                EXPORT_MAJOR);
    json_array_foreach(entries, i, entry)
    {
        char checksum[9];
        DT_TRY(dt_upkeep_checksum(entry, checksum));
        json_t *sealed = dt_upkeep_bare(entry);
        json_object_set_new(sealed, "checksum", json_string(checksum));
        dt_text_add(text, i > 0 ? ",\n" : "\n");
        dt_status status = dt_json_text(sealed, text);
        json_decref(sealed);
        DT_TRY(status);
    }
    dt_text_add(text, "\n]}\n");
    return dt_text_status(text);
}

static dt_status format_check(const json_t *root, const char *what)
{
    const char *format;
    json_t *version;
    int64_t major;
    enum dt_best_state state = DT_BEST_GOOD;
    DT_TRY(dt_json_string(root, what, "format", &format));
    if (strcmp(format, "dittune-best") == 0) {
        DT_TRY(dt_best_version(root, what, &state));
    } else if (strcmp(format, "dittune-export") == 0) {
        DT_TRY(dt_json_object(root, what, "version", &version));
        DT_TRY(dt_json_int(version, what, "major", 1, INT64_MAX, &major));
        state = major > EXPORT_MAJOR ? DT_BEST_NEWER : DT_BEST_GOOD;
    } else {
        return dt_fail(DT_EUSAGE,
                       "%s: 'format' is '%.80s', expected 'dittune-export' or 'dittune-best'", what,
                       format);
    }
    if (state == DT_BEST_NEWER)
        return dt_fail(DT_ECORRUPT, "%s was written by a newer dittune: use that one", what);
    return DT_OK;
}

bool dt_upkeep_line(const char **at, const char *stop, const char **line, size_t *size)
{
    while (*at < stop) {
        uint64_t id;
        const char *end = memchr(*at, '\n', (size_t)(stop - *at));
        end = end != NULL ? end : stop;
        *line = *at;
        *size = (size_t)(end - *at);
        *size -= *size > 0 && end[-1] == ',';
        *at = end < stop ? end + 1 : stop;
        if (dt_entry_is_line(*line, *size, &id))
            return true;
    }
    return false;
}

/* Removes the crc from entries whose line confirms it; false: the file does not have one line per
 * entry. */
static bool lines_compare(const struct dt_text *text, const json_t *entries)
{
    const char *at = dt_text_at(text), *stop = at + text->size, *line;
    size_t size, n = 0;
    while (dt_upkeep_line(&at, stop, &line, &size))
        n++;
    if (n != json_array_size(entries))
        return false;
    at = dt_text_at(text);
    for (size_t i = 0; i < n && dt_upkeep_line(&at, stop, &line, &size); i++)
        if (dt_entry_is_whole(line, size))
            json_object_del(json_array_get(entries, i), "crc");
    return true;
}

/* A crc covers bytes, which are lost when another program laid the file out. It is still confirmed
 * when dittune would write the same bytes, but a program that writes 1.4 instead of
 * 1.3999999999999999 damaged nothing. */
static dt_status crcs_drop(const json_t *entries, const char *what, struct dt_upkeep *upkeep)
{
    size_t i, n = 0;
    json_t *entry;
    json_array_foreach(entries, i, entry)
    {
        dt_status status = dt_upkeep_check(entry, what);
        if (status == DT_EUSAGE || !dt_json_has(entry, "crc")) /* reported when it is merged */
            continue;
        if (status == DT_OK)
            status = dt_upkeep_seal(entry, what);
        if (status != DT_EUSAGE)
            DT_TRY(status);
        else if (json_object_del(entry, "crc") == 0)
            n++;
    }
    if (n > 0)
        dt_upkeep_say(upkeep, DT_TELL_NOTE,
                      "%s: another program laid it out, so the 'crc' of %zu of its %zu entries "
                      "cannot be compared: they are checked for their types alone",
                      what, n, json_array_size(entries));
    return DT_OK;
}

static dt_status crcs_check(const char *path, const json_t *root, const char *what,
                            struct dt_upkeep *upkeep)
{
    const json_t *entries = json_object_get(root, "entries");
    const char *format = json_string_value(json_object_get(root, "format"));
    struct dt_text text = {0};
    bool there = false;
    if (strcmp(format, "dittune-best") != 0)
        return DT_OK;
    dt_status status = dt_file_read(AT_FDCWD, ".", path, DT_BEST_MAX_BYTES, &text, &there);
    if (status == DT_OK && !lines_compare(&text, entries))
        status = crcs_drop(entries, what, upkeep);
    dt_text_fini(&text);
    return status;
}

dt_status dt_upkeep_read(const char *path, struct dt_upkeep *upkeep, json_t **entries)
{
    const struct dt_json_limits limits = {.bytes = DT_BEST_MAX_BYTES, .values = MOST_VALUES};
    json_t *root = NULL, *array = NULL;
    struct dt_text what = {0};
    dt_text_add(&what, "the file %s", path);
    DT_TRY(dt_text_status(&what));
    dt_status status = dt_json_read_within(path, limits, "the file", &root);
    if (status == DT_OK)
        status = format_check(root, dt_text_at(&what));
    if (status == DT_OK)
        status = dt_json_array(root, dt_text_at(&what), "entries", &array);
    if (status == DT_OK && json_array_size(array) > DT_BEST_MAX_ENTRIES)
        status = dt_fail(DT_EUSAGE, "%s has more than the %d entries allowed", dt_text_at(&what),
                         DT_BEST_MAX_ENTRIES);
    if (status == DT_OK)
        status = crcs_check(path, root, dt_text_at(&what), upkeep);
    if (status == DT_OK)
        *entries = json_incref(array);
    json_decref(root);
    dt_text_fini(&what);
    return status;
}

/* ---- entries are taken */

struct taking {
    const char *directory, *from;
    const json_t *entries;
    struct dt_upkeep *upkeep;
    int refused;
};

#define WAY_OUT "'dittune db rebuild --salvage' makes best.json without it"

/* Skips a line that is no entry and reports it. */
static dt_status line_leave_out(const struct dt_snapshot *snapshot, long i,
                                struct dt_upkeep *upkeep)
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
            status = line_leave_out(snapshot, (long)i, upkeep);
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
static dt_status entries_load(const struct dt_best *best, struct taking *taking,
                              struct dt_pick *pick)
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
        status = dt_pick_offer(pick, entry, false, &offer);
        json_decref(entry);
        DT_TRY(status);
    }
    return DT_OK;
}

/* Warns about entries from the future, too: the newer wins a merge, so such an entry
 * wins until its date. */
static void offer_tell(const struct taking *taking, const json_t *entry, enum dt_offer offer)
{
    static const char *const words[] = {[DT_OFFER_NEW] = "taken, there was none",
                                        [DT_OFFER_DECIDED] = "replaced: decided beats provisional",
                                        [DT_OFFER_MORE] = "replaced: more was measured",
                                        [DT_OFFER_NEWER] = "replaced: newer",
                                        [DT_OFFER_SAME] = "the same as ours",
                                        [DT_OFFER_PROVISIONAL] =
                                            "not taken: it is provisional, ours is decided",
                                        [DT_OFFER_LESS] = "not taken: more was measured for ours",
                                        [DT_OFFER_OLDER] = "not taken: ours is newer"};
    bool wins = offer <= DT_OFFER_NEWER;
    struct dt_stored_entry fields;
    struct dt_text name = {0};
    dt_record_read(&dt_record_stored_entry, entry, &fields);
    int64_t ahead = fields.fingerprint.info.t_wall_ns / DT_NS_PER_SECOND - time(NULL);
    dt_status named = dt_upkeep_name(entry, &name);
    if (named == DT_OK)
        dt_upkeep_say(taking->upkeep, wins ? DT_TELL_DONE : DT_TELL_NOTE, "%s from %s: %s",
                      dt_text_at(&name), taking->from, words[offer]);
    if (named == DT_OK && wins && ahead > 86400)
        dt_upkeep_say(
            taking->upkeep, DT_TELL_WARNING,
            "%s from %s is dated %lld days in the future: until then it takes precedence over "
            "others, and it does not age",
            dt_text_at(&name), taking->from, (long long)(ahead / 86400));
    dt_text_fini(&name);
}

/* taken: entries that win against the store and each other. */
static dt_status entries_offer(struct taking *taking, struct dt_pick *store, struct dt_pick *taken)
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
        DT_TRY(dt_pick_offer(store, entry, false, &offer));
        if (offer <= DT_OFFER_NEWER)
            DT_TRY(dt_pick_offer(taken, entry, true, &again));
        offer_tell(taking, entry, offer);
    }
    return DT_OK;
}

static dt_status journal_write(const struct taking *taking, const json_t *entries)
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
static dt_status edit_check(const struct dt_edit *edit, const struct taking *taking)
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

static dt_status take_decide(struct dt_edit *edit, void *context)
{
    struct taking *taking = context;
    struct dt_pick store = {0}, taken = {0};
    json_t *array = NULL;
    DT_TRY(edit_check(edit, taking));
    dt_status status = entries_load(&edit->best, taking, &store);
    if (status == DT_OK)
        status = entries_offer(taking, &store, &taken);
    if (status == DT_OK && (array = dt_pick_array(&taken)) == NULL)
        status = dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK && json_array_size(array) > 0)
        status = journal_write(taking, array);
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
    DT_TRY(dt_store_edit(directory, take_decide, &taking));
    if (taking.refused > 0)
        return dt_fail(DT_ECORRUPT, "%d of the %zu entries of %s could not be taken",
                       taking.refused, json_array_size(entries), from);
    return DT_OK;
}
