/* SPDX-License-Identifier: MIT */
/* A killed session stored no result, but its trials are in its journal: they give the provisional entry that the
 * session would have stored. Key and fingerprint are those of its first record, not of the machine that reads it. */
#include "tuner/session/history.h"

#include "tuner/session/session_int.h"

#include <string.h>

struct revival {
    const char *path;
    struct dt_replay replay;
    json_t *first; /* the session's record, owned */
    dt_status status;
};

static void visit(const json_t *record, void *context)
{
    struct revival *revival = context;
    bool begins = strcmp(dt_json_text_at(record, "kind"), "session") == 0;
    if (revival->status < 0 || (!begins && revival->replay.target == NULL))
        return;
    revival->status = dt_replay_record(&revival->replay, record, revival->path);
    if (revival->status < 0 || !begins)
        return;
    revival->first = json_incref((json_t *)record);
}

/* A completed final comparison has a verdict that its session did not store any more. */
static json_t *entry_of(struct revival *revival)
{
    static const char *const copied[] = {"fingerprint", "network", "space"};
    struct dt_session *session = &revival->replay.session;
    struct dt_target *target = revival->replay.target;
    dt_replay_end(&revival->replay);
    const struct dt_result *best = dt_session_best(session);
    if (best == NULL || !dt_session_eligible(session, best))
        return NULL;
    session->verdict = DT_VERDICT_PROVISIONAL;
    target->identity.hard =
        json_incref(json_object_get(json_object_get(revival->first, "fingerprint"), "hard"));
    json_t *entry = dt_entry(session);
    for (size_t i = 0; entry != NULL && i < sizeof copied / sizeof copied[0]; i++)
        if (json_object_get(revival->first, copied[i]) != NULL)
            json_object_set(entry, copied[i], json_object_get(revival->first, copied[i]));
    return entry;
}

dt_status dt_revive(const char *path, json_t **entry)
{
    struct revival revival = {.path = path};
    int damaged;
    *entry = NULL;
    dt_status status = dt_journal_read(path, visit, &revival, &damaged);
    bool cut = revival.status == DT_OK && revival.first != NULL && !revival.replay.ended;
    const json_t *fingerprint = json_object_get(revival.first, "fingerprint");
    if (status == DT_OK && cut && json_is_object(json_object_get(revival.first, "key")) &&
        json_is_object(json_object_get(fingerprint, "hard")))
        *entry = entry_of(&revival);
    if (status == DT_OK && revival.status == DT_ENOMEM)
        status = DT_ENOMEM;
    dt_replay_fini(&revival.replay);
    json_decref(revival.first);
    return status;
}
