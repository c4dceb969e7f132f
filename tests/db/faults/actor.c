/* SPDX-License-Identifier: MIT */
/* actor - executes commands on a store, each in a child that may be killed
 *
 *     actor FOLDER <COMMANDS
 *     actor FOLDER "VERB ARGUMENTS"    itself, once
 *
 * A command is a line "FAULT;VERB ARGUMENTS", with FAULT as in shim.h. What the verb says comes
 * line by line: "ack ..." is what a program would have told its user to be stored. The last line is
 *
 *     end HOW calls=N hits=N kinds=LETTERS allocations=N live=N files=N message
 *
 * HOW: exit:STATUS or signal:N; files: descriptors more than before; live: allocations
 * that were not freed.
 */
#include "tests/db/faults/actor.h"
#include "base/json.h"
#include "base/status.h"
#include "db/journal.h"
#include "db/store.h"
#include "tests/db/faults/shim.h"

#include <dirent.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TEXT 512

const char *actor_folder;
/* The child's result, for its parent. */
static struct result {
    long live;
    int files;
    char message[1024];
} * result;

void actor_say(const char *line)
{
    char text[TEXT + 16];
    int size = snprintf(text, sizeof text, "%s\n", line);
    if (write(1, text, (size_t)size) != size)
        _exit(99);
}

void actor_acknowledge(const char *what)
{
    char line[TEXT + 8];
    dt_fault_note(what);
    snprintf(line, sizeof line, "ack %s", what);
    actor_say(line);
}

/* ---- verbs ---- */

json_t *actor_filler(long size)
{
    char *text = malloc((size_t)size + 1);
    if (text == NULL)
        return NULL;
    memset(text, 'x', (size_t)size);
    json_t *string = json_stringn_nocheck(text, (size_t)size);
    free(text);
    return string;
}

json_t *actor_entry(const char *model, long value, long size)
{
    return json_pack(
        "{s:{s:s, s:s, s:i}, s:{s:{s:s, s:s, s:s, s:i}, s:{s:s}, s:{}}, s:{s:I}, s:f, s:o}", "key",
        "model", model, "objective", "latency", "devices", 2, "fingerprint", "hard", "device", "x",
        "engine", "builtin", "mode", "eager", "cores", 2, "soft", "mpi", "4.1", "info", "plan",
        "ranks", (json_int_t)value, "share", 0.1, "filler", actor_filler(size));
}

static dt_status put(const char *model, long value, long size)
{
    json_t *entry = actor_entry(model, value, size);
    if (entry == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = dt_store_put(actor_folder, entry);
    json_decref(entry);
    return status;
}

dt_status actor_put(const char *arguments)
{
    char model[64], what[96];
    long value = 0, size = 0;
    if (sscanf(arguments, "%63s %ld %ld", model, &value, &size) < 2)
        return DT_EUSAGE;
    DT_TRY(put(model, value, size));
    snprintf(what, sizeof what, "%s=%ld", model, value);
    actor_acknowledge(what);
    return DT_OK;
}

/* puts NAME FROM TO SIZE: the numbers FROM to TO go to NAME0 to NAME3 in turn, each 25th
 * to an entry of its own */
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
            status = actor_put(line);
        while (status ==
               DT_ELOCK); /* a lock is not fair: a writer that times out has stored nothing */
        DT_TRY(status);
    }
    return DT_OK;
}

/* check: what a session does first */
static dt_status verb_check(const char *arguments)
{
    (void)arguments;
    return dt_store_check(actor_folder);
}

/* journal N SIZE: a journal of N records */
static dt_status verb_journal(const char *arguments)
{
    struct dt_journal *journal = NULL;
    long n = 0, size = 0;
    char what[TEXT];
    if (sscanf(arguments, "%ld %ld", &n, &size) < 1)
        return DT_EUSAGE;
    DT_TRY(dt_journal_open(actor_folder, &journal));
    dt_status status = DT_OK;
    for (long i = 0; i < n && status == DT_OK; i++) {
        json_t *record = json_pack("{s:I, s:o}", "n", (json_int_t)i, "filler", actor_filler(size));
        status = record == NULL ? dt_fail(DT_ENOMEM, "out of memory")
                                : dt_journal_add(journal, "trial", record);
        json_decref(record);
        snprintf(what, sizeof what, "%s/%ld", dt_journal_id(journal), i);
        if (status == DT_OK)
            actor_acknowledge(what);
    }
    dt_journal_close(journal);
    return status;
}

/* session MODEL VALUE: what a session does, in its order */
static dt_status verb_session(const char *arguments)
{
    DT_TRY(dt_store_check(actor_folder));
    DT_TRY(verb_journal("2 40"));
    return actor_put(arguments);
}

static void say_entry(const json_t *entry, void *context)
{
    char line[TEXT];
    (void)context;
    snprintf(
        line, sizeof line, "entry %s=%lld",
        json_string_value(json_object_get(json_object_get(entry, "key"), "model")),
        (long long)json_integer_value(json_object_get(json_object_get(entry, "plan"), "ranks")));
    actor_say(line);
}

/* dump: every entry, read as any reader reads */
static dt_status verb_dump(const char *arguments)
{
    (void)arguments;
    return dt_store_each(actor_folder, say_entry, NULL);
}

static void say_record(const json_t *record, const char *id)
{
    char line[TEXT];
    snprintf(line, sizeof line, "record %s/%lld", id,
             (long long)json_integer_value(json_object_get(record, "n")));
    actor_say(line);
}

/* records: every record of every journal, and "bad N" where there is a line that is none */
static dt_status verb_records(const char *arguments)
{
    char path[4096], id[256];
    dt_status status = DT_OK;
    (void)arguments;
    snprintf(path, sizeof path, "%s/runs", actor_folder);
    DIR *entries = opendir(path);
    const struct dirent *entry;
    if (entries == NULL && errno != ENOENT)
        return dt_fail(DT_EIO, "cannot read %s: %s", path, strerror(errno));
    while (entries != NULL && status == DT_OK && (entry = readdir(entries)) != NULL) {
        if (sscanf(entry->d_name, "%255[^.].jsonl", id) != 1)
            continue;
        snprintf(path, sizeof path, "%s/runs/%s", actor_folder, entry->d_name);
        struct dt_journal_reader reader = {.path = path};
        while (dt_journal_next(&reader))
            say_record(reader.record, id);
        status = dt_journal_end(&reader);
        snprintf(path, sizeof path, "bad %d", reader.damaged);
        if (status == DT_OK && reader.damaged > 0)
            actor_say(path);
    }
    if (entries != NULL)
        closedir(entries);
    return status;
}

static const struct {
    const char *name;
    dt_status (*run)(const char *arguments);
} verbs[] = {
    {"session", verb_session},  {"put", actor_put},         {"puts", verb_puts},
    {"check", verb_check},      {"journal", verb_journal},  {"dump", verb_dump},
    {"records", verb_records},  {"hold", actor_hold},       {"fork", actor_fork},
    {"appends", actor_appends}, {"watch", actor_watch},     {"result", actor_result},
    {"results", actor_results}, {"rebuild", actor_rebuild}, {"gc", actor_gc},
    {"take", actor_take},
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
    actor_folder = argv[1];
    result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (result == MAP_FAILED)
        return 1;
    if (argc == 3) {
        int code = run(NULL, argv[2]);
        fprintf(stderr, "%s", result->message);
        return code;
    }
    setlocale(LC_NUMERIC, ""); /* as a program does that the library is linked to */
    tzset();                   /* allocates, and keeps it */
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
