/* SPDX-License-Identifier: MIT */
/* Verbs for concurrent use: reading while others write, appending together, holding the lock. */
#include "db/file_int.h"
#include "db/journal.h"
#include "db/store.h"
#include "tests/db/faults/actor.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MODELS 4096

struct watch {
    int n, seen, wrong;
    struct {
        char model[32];
        long value;
    } rows[MODELS];
};

static void look(const json_t *entry, void *context)
{
    struct watch *watch = context;
    const char *model = json_string_value(json_object_get(json_object_get(entry, "key"), "model"));
    long value = (long)json_integer_value(json_object_get(json_object_get(entry, "plan"), "ranks"));
    int i = 0;
    watch->seen++;
    while (i < watch->n && strcmp(watch->rows[i].model, model) != 0)
        i++;
    if (i == watch->n && watch->n < MODELS)
        snprintf(watch->rows[watch->n++].model, 32, "%s", model);
    if (i == MODELS || value < watch->rows[i].value)
        watch->wrong++;
    else
        watch->rows[i].value = value;
}

dt_status actor_watch(const char *arguments)
{
    static struct watch watch;
    char line[64];
    for (long reads = 1;; reads++) {
        watch.seen = 0;
        DT_TRY(dt_store_each(actor_folder, look, &watch));
        if (watch.wrong > 0 || watch.seen < watch.n)
            return dt_fail(DT_ECORRUPT, "%d of %d entries, %d of them older", watch.seen, watch.n,
                           watch.wrong);
        snprintf(line, sizeof line, "reads %ld", reads);
        actor_say(line);
        usleep((useconds_t)strtol(arguments, NULL, 10));
    }
}

static int append_many(struct dt_journal *journal, int n, long size)
{
    json_t *record =
        json_pack("{s:I, s:o}", "n", (json_int_t)getpid(), "filler", actor_filler(size));
    dt_status status = record != NULL ? DT_OK : DT_ENOMEM;
    for (int i = 0; i < n && status == DT_OK; i++)
        status = dt_journal_add(journal, "trial", record);
    return status != DT_OK;
}

dt_status actor_hold(const char *arguments)
{
    int directory = -1, lock = -1;
    char line[64];
    (void)arguments;
    DT_TRY(dt_file_open_directory(actor_folder, &directory));
    DT_TRY(dt_file_lock(directory, actor_folder, 0, &lock));
    snprintf(line, sizeof line, "holds %ld", (long)getpid());
    actor_say(line);
    for (;;)
        pause();
}

dt_status actor_fork(const char *arguments)
{
    int directory = -1, lock = -1;
    DT_TRY(dt_file_open_directory(actor_folder, &directory));
    DT_TRY(dt_file_lock(directory, actor_folder, 0, &lock));
    close(directory);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    dt_file_unlock(lock);
    dt_status status = actor_put(arguments);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return status;
}

dt_status actor_appends(const char *arguments)
{
    struct dt_journal *journal = NULL;
    int processes = 0, n = 0, outcome = 0, good = 0;
    long size = 0;
    char line[64];
    if (sscanf(arguments, "%d %d %ld", &processes, &n, &size) != 3)
        return DT_EUSAGE;
    DT_TRY(dt_journal_open(actor_folder, &journal));
    for (int p = 0; p < processes; p++)
        if (fork() == 0)
            _exit(append_many(journal, n, size));
    while (wait(&outcome) > 0)
        if (outcome != 0)
            return dt_fail(DT_EIO, "a process could not append");
    struct dt_journal_reader reader = {.path = dt_journal_path(journal)};
    while (dt_journal_next(&reader))
        good += json_is_object(reader.record);
    DT_TRY(dt_journal_end(&reader));
    dt_journal_close(journal);
    snprintf(line, sizeof line, "good %d bad %d", good, reader.damaged);
    actor_say(line);
    return DT_OK;
}
