/* SPDX-License-Identifier: MIT */
/* Foreign entries are untrusted: known fields must have their types. */
#include "db/upkeep/upkeep_int.h"

#include "db/canonical_int.h"
#include "db/entry_line_int.h"
#include "db/journal.h"
#include "db/lookup/key.h"
#include "db/stored.h"
#include "model/task.h"

#include <stdio.h>
#include <string.h>

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

/* The crc of the line that would be written: right when another program changed only white space and writes numbers in
 * the same way. */
static dt_status line_crc(const json_t *entry, char hex[9])
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
    DT_TRY(exported ? dt_upkeep_checksum(entry, hex) : line_crc(entry, hex));
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
