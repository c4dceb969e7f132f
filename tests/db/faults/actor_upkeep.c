/* SPDX-License-Identifier: MIT */
/* Verbs for upkeep. Each acknowledges "done=1". */
#include "base/clock.h"
#include "db/journal.h"
#include "db/store.h"
#include "db/upkeep/upkeep.h"
#include "tests/db/faults/actor.h"

#include <stdio.h>
#include <string.h>

static void tell(enum dt_tell kind, const char *sentence, void *context)
{
    char line[400];
    (void)context;
    snprintf(line, sizeof line, "tell %d %s", (int)kind, sentence);
    actor_say(line);
}

static dt_status done(dt_status status)
{
    if (status == DT_OK)
        actor_acknowledge("done=1");
    return status;
}

/* With the time of now, by which a rebuild tells the later of two. */
static dt_status result(const char *model, long value, long size)
{
    struct dt_journal *journal = NULL;
    char what[96];
    json_t *entry = actor_entry(model, value, size);
    json_t *info = json_object_get(json_object_get(entry, "fingerprint"), "info");
    dt_status status = DT_OK;
    if (json_object_set_new(info, "t_wall_ns", json_integer(dt_clock_wall_ns())) != 0)
        status = dt_fail(DT_ENOMEM, "out of memory");
    if (status == DT_OK)
        status = dt_journal_open(actor_folder, &journal);
    if (status == DT_OK)
        status = dt_journal_add(journal, "best", entry);
    dt_journal_close(journal);
    while (status == DT_OK && (status = dt_store_put(actor_folder, entry)) == DT_ELOCK)
        status = DT_OK;
    json_decref(entry);
    snprintf(what, sizeof what, "%s=%ld", model, value);
    if (status == DT_OK)
        actor_acknowledge(what);
    return status;
}

dt_status actor_result(const char *arguments)
{
    char model[64];
    long value = 0, size = 0;
    if (sscanf(arguments, "%63s %ld %ld", model, &value, &size) < 2)
        return DT_EUSAGE;
    return result(model, value, size);
}

dt_status actor_results(const char *arguments)
{
    char model[64];
    long from = 0, to = 0;
    if (sscanf(arguments, "%63s %ld %ld", model, &from, &to) != 3)
        return DT_EUSAGE;
    for (long i = from; i <= to; i++)
        DT_TRY(result(model, i, 40));
    return DT_OK;
}

dt_status actor_rebuild(const char *arguments)
{
    struct dt_upkeep upkeep = {.tell = tell};
    return done(dt_upkeep_rebuild(actor_folder, strcmp(arguments, "salvage") == 0, &upkeep));
}

dt_status actor_gc(const char *arguments)
{
    struct dt_upkeep upkeep = {.tell = tell};
    (void)arguments;
    return done(dt_upkeep_gc(actor_folder, 0, true, &upkeep));
}

dt_status actor_take(const char *arguments)
{
    struct dt_upkeep upkeep = {.tell = tell};
    json_t *entries = json_pack("[o, o]", actor_entry("d", 4, 300), actor_entry("e", 5, 300));
    (void)arguments;
    if (entries == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = dt_upkeep_take(actor_folder, entries, "elsewhere", &upkeep);
    json_decref(entries);
    return done(status);
}
