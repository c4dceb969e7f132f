/* SPDX-License-Identifier: MIT */
/* actor - does to a store what it is told to, each time in a child that may be killed
 *
 *     actor FOLDER <COMMANDS
 *     actor FOLDER "VERB ARGUMENTS"    itself, once
 *
 * A command is a line "FAULT;VERB ARGUMENTS", with FAULT as in shim.h. What the verb says comes line by line: "ack ..." is
 * what a program would have told its user to be stored. The last line is
 *
 *     end HOW calls=N hits=N kinds=LETTERS allocations=N live=N files=N message
 *
 * HOW: exit:STATUS or signal:N; files: descriptors more than before; live: allocations that were not freed.
 */
#include "base/json.h"
#include "base/status.h"
#include "db/file_int.h"
#include "db/journal.h"
#include "db/store.h"
#include "tests/db/faults/shim.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TEXT 512

static const char *folder;
/* Of the child, for its parent. */
static struct result {
    long live;
    int files;
    char message[1024];
} * result;

static void say(const char *line)
{
    char text[TEXT + 16];
    int size = snprintf(text, sizeof text, "%s\n", line);
    if (write(1, text, (size_t)size) != size)
        _exit(99);
}

static void acknowledge(const char *what)
{
    char line[TEXT + 8];
    dt_fault_note(what);
    snprintf(line, sizeof line, "ack %s", what);
    say(line);
}

/* ---- verbs ---- */

static json_t *filler(long size)
{
    char *text = malloc((size_t)size + 1);
    if (text == NULL)
        return NULL;
    memset(text, 'x', (size_t)size);
    json_t *string = json_stringn_nocheck(text, (size_t)size);
    free(text);
    return string;
}

static dt_status put(const char *model, long value, long size)
{
    json_t *entry =
        json_pack("{s:{s:s, s:s, s:i}, s:{s:{s:s, s:s, s:s, s:i}, s:{s:s}, s:{}}, s:{s:I}, s:o}",
                  "key", "model", model, "objective", "latency", "devices", 2, "fingerprint",
                  "hard", "device", "x", "engine", "builtin", "mode", "eager", "cores", 2, "soft",
                  "mpi", "4.1", "info", "plan", "ranks", (json_int_t)value, "filler", filler(size));
    if (entry == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = dt_store_put(folder, entry);
    json_decref(entry);
    return status;
}

/* put MODEL VALUE SIZE */
static dt_status verb_put(const char *arguments)
{
    char model[64], what[96];
    long value = 0, size = 0;
    if (sscanf(arguments, "%63s %ld %ld", model, &value, &size) < 2)
        return DT_EUSAGE;
    DT_TRY(put(model, value, size));
    snprintf(what, sizeof what, "%s=%ld", model, value);
    acknowledge(what);
    return DT_OK;
}

/* puts NAME FROM TO SIZE: the numbers FROM to TO go to NAME0 to NAME3 in turn, each 25th to an entry of its own */
static dt_status verb_puts(const char *arguments)
{
    char name[32], line[96];
    long from = 0, to = 0, size = 0;
    if (sscanf(arguments, "%31s %ld %ld %ld", name, &from, &to, &size) < 3)
        return DT_EUSAGE;
    for (long i = from; i <= to; i++) {
        snprintf(line, sizeof line, "%s%s%ld %ld %ld", name, i % 25 == 0 ? "x" : "",
                 i % 25 == 0 ? i : i % 4, i, size);
        dt_status status;
        do
            status = verb_put(line);
        while (status ==
               DT_ELOCK); /* a lock is not fair: whoever waits in vain has stored nothing */
        DT_TRY(status);
    }
    return DT_OK;
}

/* check: what a session does first */
static dt_status verb_check(const char *arguments)
{
    (void)arguments;
    return dt_store_check(folder);
}

/* journal N SIZE: a journal of N records */
static dt_status verb_journal(const char *arguments)
{
    struct dt_journal *journal = NULL;
    long n = 0, size = 0;
    char what[TEXT];
    if (sscanf(arguments, "%ld %ld", &n, &size) < 1)
        return DT_EUSAGE;
    DT_TRY(dt_journal_open(folder, &journal));
    dt_status status = DT_OK;
    for (long i = 0; i < n && status == DT_OK; i++) {
        json_t *record = json_pack("{s:I, s:o}", "n", (json_int_t)i, "filler", filler(size));
        status = record == NULL ? dt_fail(DT_ENOMEM, "out of memory")
                                : dt_journal_add(journal, "trial", record);
        json_decref(record);
        snprintf(what, sizeof what, "%s/%ld", dt_journal_id(journal), i);
        if (status == DT_OK)
            acknowledge(what);
    }
    dt_journal_close(journal);
    return status;
}

/* session MODEL VALUE: what a session does, in its order */
static dt_status verb_session(const char *arguments)
{
    DT_TRY(dt_store_check(folder));
    DT_TRY(verb_journal("2 40"));
    return verb_put(arguments);
}

static void say_entry(const json_t *entry, void *context)
{
    char line[TEXT];
    (void)context;
    snprintf(
        line, sizeof line, "entry %s=%lld",
        json_string_value(json_object_get(json_object_get(entry, "key"), "model")),
        (long long)json_integer_value(json_object_get(json_object_get(entry, "plan"), "ranks")));
    say(line);
}

/* dump: every entry, read as any reader reads */
static dt_status verb_dump(const char *arguments)
{
    (void)arguments;
    return dt_store_each(folder, say_entry, NULL);
}

static void say_record(const json_t *record, void *context)
{
    char line[TEXT];
    snprintf(line, sizeof line, "record %s/%lld", (const char *)context,
             (long long)json_integer_value(json_object_get(record, "n")));
    say(line);
}

/* records: every record of every journal, and "bad N" where there is a line that is none */
static dt_status verb_records(const char *arguments)
{
    char path[4096], id[256];
    dt_status status = DT_OK;
    (void)arguments;
    snprintf(path, sizeof path, "%s/runs", folder);
    DIR *entries = opendir(path);
    const struct dirent *entry;
    if (entries == NULL && errno != ENOENT)
        return dt_fail(DT_EIO, "cannot read %s: %s", path, strerror(errno));
    while (entries != NULL && status == DT_OK && (entry = readdir(entries)) != NULL) {
        int bad = 0;
        if (sscanf(entry->d_name, "%255[^.].jsonl", id) != 1)
            continue;
        snprintf(path, sizeof path, "%s/runs/%s", folder, entry->d_name);
        status = dt_journal_read(path, say_record, id, &bad);
        snprintf(path, sizeof path, "bad %d", bad);
        if (bad > 0)
            say(path);
    }
    if (entries != NULL)
        closedir(entries);
    return status;
}

static int append_many(struct dt_journal *journal, int n, long size)
{
    json_t *record = json_pack("{s:I, s:o}", "n", (json_int_t)getpid(), "filler", filler(size));
    dt_status status = record != NULL ? DT_OK : DT_ENOMEM;
    for (int i = 0; i < n && status == DT_OK; i++)
        status = dt_journal_add(journal, "trial", record);
    return status != DT_OK;
}

static void count_record(const json_t *record, void *count)
{
    *(int *)count += json_is_object(record);
}

/* ---- what a reader of a store that others write must see: nothing vanishes, nothing gets older ---- */

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

/* watch NAP: reads every NAP microseconds until it is killed, and counts */
static dt_status verb_watch(const char *arguments)
{
    static struct watch watch;
    char line[64];
    for (long reads = 1;; reads++) {
        watch.seen = 0;
        DT_TRY(dt_store_each(folder, look, &watch));
        if (watch.wrong > 0 || watch.seen < watch.n)
            return dt_fail(DT_ECORRUPT, "%d of %d entries, %d of them older", watch.seen, watch.n,
                           watch.wrong);
        snprintf(line, sizeof line, "reads %ld", reads);
        say(line);
        usleep((useconds_t)strtol(arguments, NULL, 10));
    }
}

/* hold: takes the lock and stays */
static dt_status verb_hold(const char *arguments)
{
    int directory = -1, lock = -1;
    char line[64];
    (void)arguments;
    DT_TRY(dt_file_open_directory(folder, &directory));
    DT_TRY(dt_file_lock(directory, folder, 0, &lock));
    snprintf(line, sizeof line, "holds %ld", (long)getpid());
    say(line);
    for (;;)
        pause();
}

/* fork: a child that is forked while the lock is held, and stays, keeps nobody from writing */
static dt_status verb_fork(const char *arguments)
{
    int directory = -1, lock = -1;
    DT_TRY(dt_file_open_directory(folder, &directory));
    DT_TRY(dt_file_lock(directory, folder, 0, &lock));
    close(directory);
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    dt_file_unlock(lock);
    dt_status status = verb_put(arguments);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return status;
}

/* appends PROCESSES N SIZE: all of them to one journal; "good" and "bad" records in it */
static dt_status verb_appends(const char *arguments)
{
    struct dt_journal *journal = NULL;
    int processes = 0, n = 0, bad = 0, outcome = 0, good = 0;
    long size = 0;
    char line[64];
    if (sscanf(arguments, "%d %d %ld", &processes, &n, &size) != 3)
        return DT_EUSAGE;
    DT_TRY(dt_journal_open(folder, &journal));
    for (int p = 0; p < processes; p++)
        if (fork() == 0)
            _exit(append_many(journal, n, size));
    while (wait(&outcome) > 0)
        if (outcome != 0)
            return dt_fail(DT_EIO, "a process could not append");
    DT_TRY(dt_journal_read(dt_journal_path(journal), count_record, &good, &bad));
    dt_journal_close(journal);
    snprintf(line, sizeof line, "good %d bad %d", good, bad);
    say(line);
    return DT_OK;
}

static const struct {
    const char *name;
    dt_status (*run)(const char *arguments);
} verbs[] = {
    {"session", verb_session}, {"put", verb_put},         {"puts", verb_puts},
    {"check", verb_check},     {"journal", verb_journal}, {"dump", verb_dump},
    {"records", verb_records}, {"hold", verb_hold},       {"fork", verb_fork},
    {"appends", verb_appends}, {"watch", verb_watch},
};

/* ---- the child and its parent ---- */

static int open_files(void)
{
    int n = 0;
    DIR *entries = opendir("/proc/self/fd");
    while (entries != NULL && readdir(entries) != NULL)
        n++;
    if (entries != NULL)
        closedir(entries);
    return n;
}

static int run(const char *fault, const char *verb)
{
    char name[32] = "";
    int skip = 0;
    sscanf(verb, "%31s %n", name, &skip);
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, name) != 0)
            continue;
        int before = open_files();
        dt_fault_arm(fault);
        dt_status status = verbs[i].run(verb + skip);
        result->live = dt_fault_counters()->live;
        dt_fault_arm(NULL);
        result->files = open_files() - before;
        snprintf(result->message, sizeof result->message, "%s",
                 status != DT_OK ? dt_message() : "");
        return dt_status_exit(status);
    }
    return 98;
}

static void report(int outcome)
{
    const struct dt_fault_counters *seen = dt_fault_counters();
    char *line = NULL;
    int n = asprintf(&line,
                     "end %s:%d calls=%d hits=%d kinds=%.*s allocations=%ld live=%ld files=%d %s\n",
                     WIFSIGNALED(outcome) ? "signal" : "exit",
                     WIFSIGNALED(outcome) ? WTERMSIG(outcome) : WEXITSTATUS(outcome), seen->calls,
                     seen->hits, seen->calls < DT_FAULT_CALLS ? seen->calls : DT_FAULT_CALLS,
                     seen->kinds, seen->allocations, result->live, result->files, result->message);
    if (n < 0 || write(1, line, (size_t)n) != n)
        exit(1);
    free(line);
}

int main(int argc, char **argv)
{
    char line[1024];
    if (argc < 2 || argc > 3)
        return 2;
    folder = argv[1];
    result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (result == MAP_FAILED)
        return 1;
    if (argc == 3) {
        int code = run(NULL, argv[2]);
        fprintf(stderr, "%s", result->message);
        return code;
    }
    tzset(); /* allocates, and keeps it */
    while (fgets(line, sizeof line, stdin) != NULL) {
        int outcome = 0;
        line[strcspn(line, "\n")] = '\0';
        char *verb = strchr(line, ';');
        if (verb == NULL)
            return 2;
        *verb++ = '\0';
        memset(result, 0, sizeof *result);
        pid_t child = fork();
        if (child == 0)
            _exit(run(line, verb));
        if (child < 0 || waitpid(child, &outcome, 0) != child)
            return 1;
        report(outcome);
    }
    return 0;
}
