/* SPDX-License-Identifier: MIT */
/* Shared by the parts of upkeep: sentences, files, names, and the choice between entries of one
 * identity. */
#include "db/upkeep/upkeep_int.h"

#include "db/canonical_int.h"
#include "db/journal.h"
#include "db/stored.h"
#include "model/task.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- sentences */

void dt_upkeep_say(struct dt_upkeep *upkeep, enum dt_tell kind, const char *format, ...)
{
    char sentence[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    dt_text_mend(sentence);
    upkeep->done += kind == DT_TELL_DONE;
    upkeep->notes += kind == DT_TELL_NOTE || kind == DT_TELL_WARNING;
    upkeep->broken += kind == DT_TELL_BROKEN;
    upkeep->tell(kind, sentence, upkeep->context);
}

void dt_upkeep_say_error(struct dt_upkeep *upkeep, enum dt_tell kind, const char *opening)
{
    dt_upkeep_say(upkeep, kind, "%s%s", opening, dt_message());
}

/* ---- entries from elsewhere are untrusted: known fields must have their types */

dt_status dt_upkeep_check(const json_t *entry, const char *what)
{
    DT_TRY(dt_entry_check(entry, what));
    DT_TRY(dt_record_check(&dt_record_stored_entry, entry, what));
    return dt_record_check(&dt_record_fingerprint, json_object_get(entry, "fingerprint"), what);
}

dt_status dt_upkeep_checksum(const json_t *entry, char hex[9])
{
    struct dt_text text = {0};
    json_t *bare = dt_upkeep_bare(entry);
    dt_status status =
        bare != NULL ? dt_canonical_add(bare, &text) : dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK)
        snprintf(hex, 9, "%08x", (unsigned)dt_crc32c(dt_text_at(&text), text.size));
    json_decref(bare);
    dt_text_fini(&text);
    return status;
}

/* The crc of the line that would be written: right when another program changed only white space
 * and writes numbers in the same way. */
static dt_status crc_of_line(const json_t *entry, char hex[9])
{
    struct dt_text line = {0};
    dt_status status = dt_entry_write(entry, &line);
    if (status == DT_OK)
        snprintf(hex, 9, "%.8s", line.bytes + line.size - 10);
    dt_text_fini(&line);
    return status;
}

dt_status dt_upkeep_seal(const json_t *entry, const char *what)
{
    bool exported = dt_json_has(entry, "checksum");
    const char *name = exported ? "checksum" : "crc";
    char hex[9] = "";
    if (!dt_json_has(entry, name))
        return DT_OK;
    DT_TRY(exported ? dt_upkeep_checksum(entry, hex) : crc_of_line(entry, hex));
    if (strcmp(dt_json_text_at(entry, name), hex) != 0)
        return dt_fail(DT_EUSAGE,
                       "%s: its '%s' is not that of its fields: it was changed or damaged (without "
                       "it, it is taken as it is)",
                       what, name);
    return DT_OK;
}

dt_status dt_upkeep_name(const json_t *entry, struct dt_text *name)
{
    const json_t *key = json_object_get(entry, "key"), *model = json_object_get(key, "model");
    const json_t *worker = json_object_get(key, "worker");
    const char *word = json_is_string(model)    ? json_string_value(model)
                       : json_is_string(worker) ? json_string_value(worker)
                                                : "entry";
    struct dt_text job = {0};
    uint64_t id = 0;
    DT_TRY(dt_entry_id(entry, &id));
    dt_task_title(json_object_get(key, "job"), &job);
    dt_text_add(name, "%.80s%s%.160s [%016llx]", word, job.size > 0 ? ": " : "", dt_text_at(&job),
                (unsigned long long)id);
    dt_text_fini(&job);
    return dt_text_status(name);
}

/* ---- which of two entries stays */

void dt_pick_fini(struct dt_pick *pick)
{
    json_decref(pick->entries);
    pick->entries = NULL;
}

/* Its name in the pick. */
static dt_status identity_of(const json_t *entry, struct dt_text *name)
{
    DT_TRY(dt_canonical_add(json_object_get(entry, "key"), name));
    dt_text_add(name, " ");
    DT_TRY(dt_canonical_add(json_object_get(json_object_get(entry, "fingerprint"), "hard"), name));
    return dt_text_status(name);
}

static int time_order(int64_t mine, int64_t its)
{
    return (mine > its) - (mine < its);
}

/* Orders copies of one session's result by their last check. */
static int entry_order(const struct dt_stored_info *entry, const struct dt_stored_info *known)
{
    int session = time_order(entry->t_wall_ns, known->t_wall_ns);
    int checked = time_order(entry->checked_ns, known->checked_ns);
    return session != 0   ? session
           : checked != 0 ? checked
                          : time_order(entry->lost_ns, known->lost_ns);
}

static enum dt_offer offer_compare(const json_t *entry, const json_t *known, bool later)
{
    struct dt_stored_entry mine, its;
    dt_record_read(&dt_record_stored_entry, entry, &mine);
    dt_record_read(&dt_record_stored_entry, known, &its);
    int newer = entry_order(&mine.fingerprint.info, &its.fingerprint.info);
    int evidence = dt_stored_evidence(&mine, &its);
    if (json_equal(entry, known))
        return DT_OFFER_SAME;
    if (mine.provisional != its.provisional)
        return evidence < 0 ? DT_OFFER_PROVISIONAL : DT_OFFER_DECIDED;
    if (evidence != 0)
        return evidence < 0 ? DT_OFFER_LESS : DT_OFFER_MORE;
    return newer > 0 || (newer == 0 && later) ? DT_OFFER_NEWER : DT_OFFER_OLDER;
}

dt_status dt_pick_find(const struct dt_pick *pick, const json_t *entry, json_t **known)
{
    struct dt_text name = {0};
    dt_status status = identity_of(entry, &name);
    if (status == DT_OK)
        *known = json_object_get(pick->entries, dt_text_at(&name));
    dt_text_fini(&name);
    return status;
}

dt_status dt_pick_offer(struct dt_pick *pick, const json_t *entry, bool later, enum dt_offer *offer)
{
    struct dt_text name = {0};
    json_t *bare = dt_upkeep_bare(entry);
    if (pick->entries == NULL)
        pick->entries = json_object();
    dt_status status =
        bare != NULL ? identity_of(entry, &name) : dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK) {
        const json_t *known = json_object_get(pick->entries, dt_text_at(&name));
        *offer = known != NULL ? offer_compare(bare, known, later) : DT_OFFER_NEW;
        if (*offer <= DT_OFFER_NEWER &&
            json_object_set(pick->entries, dt_text_at(&name), bare) != 0)
            status = dt_fail(DT_ENOMEM, "out of memory");
    }
    json_decref(bare);
    dt_text_fini(&name);
    return status;
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
    json_t *bare = dt_journal_bare(entry);
    json_object_del(bare, "id");
    json_object_del(bare, "checksum");
    return bare;
}
