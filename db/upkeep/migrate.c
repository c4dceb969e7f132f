/* SPDX-License-Identifier: MIT */
#include "db/upkeep/upkeep_int.h"

#include "db/commit_int.h"

#include <unistd.h>

static dt_status migrate_locked(int fd, const char *directory, struct dt_upkeep *upkeep)
{
    struct dt_best best = {.state = DT_BEST_ABSENT};
    dt_file_sweep(fd);
    DT_TRY(dt_best_load(fd, directory, DT_BEST_FILE, &best));
    enum dt_commit_old aside = DT_COMMIT_V1;
    dt_status status = DT_OK;
    if (best.state == DT_BEST_BROKEN) {
        dt_upkeep_say(upkeep, DT_TELL_NOTE, "%s: best.json.1 takes its place", dt_message());
        dt_best_fini(&best);
        aside = DT_COMMIT_BAD;
        status = dt_best_load(fd, directory, DT_BACKUP_FILE, &best);
    }
    if (status == DT_OK && (best.state == DT_BEST_NEWER || best.state == DT_BEST_READONLY))
        status = DT_ECORRUPT;
    else if (status == DT_OK && aside == DT_COMMIT_BAD && best.state != DT_BEST_OLD)
        status = dt_fail(DT_ECORRUPT,
                         "there is nothing of version 1 in %s to migrate: 'dittune db rebuild' "
                         "makes best.json anew from the journals",
                         directory);
    if (status == DT_OK && best.state == DT_BEST_OLD)
        status = dt_commit(fd, directory, &best.text, aside, NULL);
    if (status == DT_OK && best.state == DT_BEST_OLD)
        dt_upkeep_say(upkeep, DT_TELL_DONE,
                      "best.json has version 2 now, %zu entr%s; the old file is best.json.%s",
                      best.count, best.count == 1 ? "y" : "ies",
                      aside == DT_COMMIT_V1 ? "v1" : "bad-...");
    if (status == DT_OK && best.state == DT_BEST_OLD)
        dt_upkeep_dropped(upkeep, &best, DT_TELL_WARNING, "left out, it is only in the old file");
    else if (status == DT_OK)
        dt_upkeep_say(upkeep, DT_TELL_NOTE, "nothing to migrate: %s",
                      best.state == DT_BEST_ABSENT ? "there is no best.json"
                                                   : "best.json has version 2 already");
    dt_best_fini(&best);
    return status;
}

dt_status dt_upkeep_migrate(const char *directory, struct dt_upkeep *upkeep)
{
    int fd = -1, lock = -1;
    DT_TRY(dt_store_open(directory, &fd));
    dt_status status = dt_file_lock(fd, directory, DT_STORE_WAIT_NS, &lock);
    if (status == DT_OK)
        status = migrate_locked(fd, directory, upkeep);
    if (lock >= 0)
        dt_file_unlock(lock);
    close(fd);
    return status;
}
