/* SPDX-License-Identifier: MIT */
/* dittune-worker-command - runs any command line as a worker (docs/protocol.md): a step is
 * one run of the command
 *
 *     dittune-worker-command --space FILE --time regex:'took ([0-9.]+) s' --command 'torchrun --nproc-per-node {ranks} run.py'
 *
 * dittune starts it so for --command. Its options and the file are read when the controller says
 * hello, so that what is wrong with them reaches the user as an answer. */
#include "base/array.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/read.h"
#include "base/rng.h"
#include "space/json/json.h"
#include "worker/command/quote.h"
#include "worker/command/run.h"
#include "worker/command/serve.h"
#include "worker/command/words.h"
#include "worker/wire.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what a command measures: hello's "job", which is part of the key of what is stored, and the
 * files it runs, which are part of the fingerprint
 *
 * To add an option that changes what is measured: a row in make_job, and a
 * row in docs/command.md. */

/* Which words of a command are paths follows from their form alone, so that the key stays the same
 * when a run writes a file. */

#define TEXT_MOST   3900                /* a string of a stored key has at most 4096 bytes */
#define HASHED_MOST (INT64_C(64) << 20) /* bytes of a file; of the rest only the size counts */
#define PATH_ROOM   4096

/* ---- words, also of a text for sh, which is cut at its operators */

/* *text: what the words are in, which the caller frees; NULL: they are those of the command. */
static dt_status read_words(const struct dt_command_line *command, char **text,
                            char *words[DT_COMMAND_WORDS + 1])
{
    int count = 0;
    char *rest = NULL;
    if (!command->shell) {
        memcpy(words, command->words, sizeof command->words);
        return DT_OK;
    }
    if ((*text = strdup(command->words[2])) == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    for (char *word = strtok_r(*text, " \t\r\n;|&()<>'\"`", &rest);
         word != NULL && count < DT_COMMAND_WORDS;
         word = strtok_r(NULL, " \t\r\n;|&()<>'\"`", &rest))
        words[count++] = word;
    return DT_OK;
}

/* The part of a word that may be a path: "conf.json" of "--config=conf.json". */
static const char *path_of(const char *word)
{
    const char *equals = strchr(word, '=');
    return equals != NULL && memchr(word, '/', (size_t)(equals - word)) == NULL ? equals + 1 : word;
}

/* "run.py" and "my.module", but neither "1.5" nor "FLUX.1-dev". */
static bool has_suffix(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (dot == NULL || dot == path || !isalpha((unsigned char)dot[1]))
        return false;
    for (dot++; *dot != 0; dot++)
        if (!isalnum((unsigned char)*dot))
            return false;
    return true;
}

static bool is_relative(const char *path)
{
    if (path[0] == '/' || path[0] == '~' || path[0] == '-' || strstr(path, "://") != NULL)
        return false;
    return path[0] == '.' || strchr(path, '/') != NULL || has_suffix(path);
}

/* A command that names files by absolute paths alone means the same in every folder. */
static dt_status find_paths(const struct dt_command_line *command, bool *absolute, bool *relative)
{
    dt_auto_free char *text = NULL;
    char *words[DT_COMMAND_WORDS + 1] = {NULL};
    DT_TRY(read_words(command, &text, words));
    for (int i = 0; words[i] != NULL; i++) {
        const char *path = path_of(words[i]);
        bool folder = i > 0 && (strcmp(words[i - 1], "cd") == 0 || strcmp(words[i - 1], "-C") == 0);
        bool plain =
            folder && strchr("/~-$", path[0]) == NULL; /* the meaning of -C in make and git */
        *absolute = *absolute || path[0] == '/';
        *relative = *relative || is_relative(path) || plain;
    }
    return DT_OK;
}

/* ---- the job */

static dt_status check_text(const char *what, const char *text)
{
    if (!dt_text_whole(text))
        return dt_fail(DT_EUSAGE, "%s is not UTF-8, which a stored key must be", what);
    if (strlen(text) > TEXT_MOST)
        return dt_fail(DT_EUSAGE, "%s has %zu bytes, more than the %d of a stored key", what,
                       strlen(text), TEXT_MOST);
    return DT_OK;
}

/* A command may be longer than a string of a key: then a hash of the whole stands for its end. */
static dt_status add_line(const char *option, const struct dt_command_line *line,
                          const struct dt_space *space, struct dt_text *text)
{
    dt_line_text(line, space, text);
    DT_TRY(dt_text_status(text));
    if (text->size <= TEXT_MOST)
        return check_text(option, dt_text_at(text));
    uint64_t hash = dt_rng_stream(text->bytes);
    text->bytes[TEXT_MOST - 1] = 0;
    dt_text_mend(text->bytes);
    text->size = strlen(text->bytes);
    dt_text_add(text, " #%016llx", (unsigned long long)hash);
    return dt_text_status(text);
}

/* Where relative paths begin; "" where the command names files by absolute paths alone and
 * --prepare none by a relative one. */
static dt_status find_folder(const struct dt_run_setup *runs, char folder[PATH_ROOM])
{
    bool absolute = false, relative = false, any = false;
    DT_TRY(find_paths(&runs->lines[DT_RUN_COMMAND], &absolute, &relative));
    DT_TRY(find_paths(&runs->lines[DT_RUN_PREPARE], &any, &relative));
    if (absolute && !relative)
        return DT_OK;
    if (getcwd(folder, PATH_ROOM) == NULL)
        return dt_fail(DT_EIO, "cannot tell the current folder: %s", strerror(errno));
    return check_text("the name of the current folder", folder);
}

/* *job: {"command", "time", "unit", "limits", "shell", "prepare", "folder"}, new; "unit" only where
 * the number is a time that the output has. DT_EUSAGE: a text that is too long or not UTF-8. */
static dt_status make_job(const struct dt_run_setup *runs, json_t **job)
{
    const struct dt_command_line *command = &runs->lines[DT_RUN_COMMAND],
                                 *prepare = &runs->lines[DT_RUN_PREPARE];
    bool has_unit = strchr("rj", runs->timing.kind) != NULL && runs->timing.metric == NULL;
    dt_auto_text limits = {0}, line = {0}, first = {0};
    char folder[PATH_ROOM] = "";
    dt_runs_limits_text(runs, &limits);
    DT_TRY(dt_text_status(&limits));
    DT_TRY(check_text("--time", runs->time));
    DT_TRY(check_text("the list of limits", dt_text_at(&limits)));
    DT_TRY(add_line("--command", command, runs->space, &line));
    DT_TRY(add_line("--prepare", prepare, runs->space, &first));
    DT_TRY(find_folder(runs, folder));
    *job = json_pack("{s:s,s:s,s:s*,s:s*,s:o*,s:s*,s:s*}", "command", dt_text_at(&line), "time",
                     runs->time, "unit", has_unit ? runs->timing.unit_text : NULL, "limits",
                     limits.size > 0 ? limits.bytes : NULL, "shell",
                     command->shell ? json_integer(1) : NULL, "prepare",
                     prepare->words[0] != NULL ? dt_text_at(&first) : NULL, "folder",
                     folder[0] != 0 ? folder : NULL);
    return *job != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

/* ---- the files */

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* DT_EUSAGE: it has a word that only a shell reads, and no shell. Its program may be absent, as on
 * a host that only looks up. */
static dt_status check_words(const struct dt_command_line *command)
{
    static const char *const of_shell[] = {"|", "||", "&&", "&", ";", "<", ">", ">>", "2>&1", NULL};
    for (int i = 0; !command->shell && command->words[i] != NULL; i++)
        for (int k = 0; of_shell[k] != NULL; k++)
            if (strcmp(command->words[i], of_shell[k]) == 0)
                return dt_fail(DT_EUSAGE,
                               "the command has '%s', which only a shell reads: give --shell",
                               command->words[i]);
    return DT_OK;
}

/* Programs and scripts, but not the files that a run may write. */
static bool is_code(const char *path)
{
    static const char *const suffixes[] = {".py", ".sh", ".pl", ".rb", ".js", ".lua", ".R", ".jl"};
    const char *dot = strrchr(path, '.');
    char begin[2] = "";
    for (size_t i = 0; dot != NULL && i < sizeof suffixes / sizeof suffixes[0]; i++)
        if (strcmp(dot, suffixes[i]) == 0)
            return is_file(path);
    if (!is_file(path))
        return false;
    DT_CLEANUP(dt_close_at) int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool script = fd >= 0 && read(fd, begin, 2) == 2 && memcmp(begin, "#!", 2) == 0;
    return script || access(path, X_OK) == 0;
}

/* FNV-1a (64 bits) of the size and the bytes. */
static bool hash_file(const char *path, uint64_t *hash)
{
    static unsigned char bytes[1 << 16];
    struct stat info;
    DT_CLEANUP(dt_close_at) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 && fstat(fd, &info) == 0 ? 1 : -1;
    uint64_t made = got < 0 ? 0 : DT_RNG_FNV ^ (uint64_t)info.st_size;
    for (int64_t left = HASHED_MOST; left > 0 && got > 0; left -= got) {
        got = read(fd, bytes, sizeof bytes);
        made = got > 0 ? dt_rng_bytes(made, bytes, (size_t)got) : made;
    }
    *hash = made;
    return got >= 0;
}

static void add_file(const char *path, json_t *files)
{
    const char *slash = strrchr(path, '/');
    char name[64], text[24];
    uint64_t hash;
    if (!hash_file(path, &hash))
        return;
    snprintf(name, sizeof name, "file %.50s", slash != NULL ? slash + 1 : path);
    dt_text_mend(name);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    json_object_set_new(files, name, json_string(text));
}

/* {"file run.sh": hash of its bytes, ..}, new: of the program and of the
 * script that it is given. */
static json_t *list_files(const struct dt_command_line *command)
{
    json_t *files = json_object();
    dt_auto_free char *text = NULL;
    char path[PATH_ROOM], *words[DT_COMMAND_WORDS + 1] = {NULL};
    bool found = false, bare = false;
    if (read_words(command, &text, words) < 0)
        return files;
    for (int i = 0; words[i] != NULL && !found; i++) {
        const char *word = words[i];
        if (i == 0) {
            bare = strchr(word, '/') == NULL;
            if (dt_host_program(word, path, sizeof path))
                add_file(path, files);
        } else if ((i == 1 && bare && is_file(word)) || is_code(word)) {
            add_file(word, files);
            found = true;
        }
    }
    return files;
}

struct plan {
    struct dt_run_plan run; /* without words: released */
    /* the run that made it resident, for the next samples; count 0: used, or none */
    struct dt_times first;
    /* a run that failed after others whose samples were sent: for the next request */
    struct dt_error failed;
};

struct worker {
    const char *space_path; /* options; NULL: not given */
    struct dt_run_given options;
    const char *server; /* --server */
    struct dt_serve_options serve_options;
    struct dt_serve serve;
    struct dt_wire wire;
    json_t *file; /* the file of the space; NULL before hello */
    struct dt_space *space;
    struct dt_run_setup runs;
    struct plan *plans; /* [plan_count], of handle i + 1 */
    int plan_count;
};

static dt_status configure_worker(struct worker *worker)
{
    struct dt_run_given *options = &worker->options;
    if (worker->server != NULL) {
        options->lines[DT_RUN_COMMAND] = worker->server;
        options->served = true;
        if (options->time == NULL && options->objective == NULL)
            options->time = "wall";
        if (worker->serve_options.request == NULL)
            return dt_fail(DT_EUSAGE, "a server needs --server, --space and --request");
    }
    if (options->lines[DT_RUN_COMMAND] == NULL || worker->space_path == NULL ||
        (options->time == NULL && options->objective == NULL))
        return dt_fail(DT_EUSAGE, "a command needs --command, --space and --time");
    DT_TRY(dt_space_file(worker->space_path, worker->space_path, &worker->file));
    DT_TRY(dt_space_from_json(worker->file, worker->space_path, &worker->space));
    DT_TRY(dt_runs_init(&worker->runs, options, worker->space));
    worker->serve = (struct dt_serve){.command = &worker->runs.lines[DT_RUN_COMMAND],
                                      .space = worker->space,
                                      .timing = &worker->runs.timing,
                                      .wire = &worker->wire};
    if (options->served && worker->runs.limit_count > 0)
        return dt_fail(DT_EUSAGE, "--limit belongs to --command");
    return options->served
               ? dt_serve_init(&worker->serve, &worker->serve_options, worker->runs.timeout_ns)
               : DT_OK;
}

/* Adds the sentence as `name`, without the marks around quoted output, and as "brief" the part
 * before the first of them. */
static void add_sentence(const char *name, const char *sentence, json_t *message)
{
    dt_auto_text whole = {0}, brief = {0};
    const char *first = strstr(sentence, DT_QUOTES), *rest = sentence;
    for (const char *mark = first; mark != NULL; mark = strstr(rest, DT_QUOTES)) {
        dt_text_add_bytes(&whole, rest, (size_t)(mark - rest));
        rest = mark + strlen(DT_QUOTES);
    }
    dt_text_add(&whole, "%s", rest);
    json_object_set_new(message, name, json_string(dt_text_at(&whole)));
    if (first == NULL)
        return;
    while (first > sentence && first[-1] == ' ')
        first--;
    dt_text_add(&brief, "%.*s ...", (int)(first - sentence), sentence);
    json_object_set_new(message, "brief", json_string(dt_text_at(&brief)));
}

static dt_status refuse_request(struct worker *worker, dt_status why)
{
    bool refused = why == DT_EUSAGE || why == DT_EINFEASIBLE || why == DT_EUNSUP;
    const char *kind = why == DT_ENOMEM ? "memory"
                       : why == DT_DONE ? "wrong"
                       : why == DT_WAIT ? "limit"
                       : refused        ? "infeasible"
                                        : "error";
    if (dt_serve_kind(&worker->serve, why) != NULL)
        kind = dt_serve_kind(&worker->serve, why);
    json_t *message = json_pack("{s:s,s:s}", "op", "failed", "kind", kind);
    add_sentence("say", dt_message(), message);
    return dt_wire_send(&worker->wire, message);
}

static json_t *cores_json(void)
{
    json_t *list = json_array();
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (size_t i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET(i, &set))
                json_array_append_new(list, json_integer((json_int_t)i));
    return list;
}

static dt_status answer_hello(struct worker *worker)
{
    char host[256] = "";
    const json_t *file = worker->file;
    const struct dt_command_line *command = &worker->runs.lines[DT_RUN_COMMAND];
    json_t *job = NULL;
    dt_status status = check_words(command);
    if (status == DT_OK)
        status = make_job(&worker->runs, &job);
    if (status < 0)
        return refuse_request(worker, status);
    gethostname(host, sizeof host - 1);
    json_auto_t *message = json_pack(
        "{s:s,s:i,s:s*,s:s,s:s,s:s,s:s,s:s,s:O,s:o,s:O,s:O*,s:O*,s:O*}", "op", "hello", "protocol",
        2, "objective", worker->options.objective, "name", "command", "version", DT_VERSION,
        "engine", "command", "launch", "self", "unit", "run", "workload",
        json_object_get(job, "command"), "job", job, "parameters",
        json_object_get(file, "parameters"), "constants", json_object_get(file, "constants"),
        "rules", json_object_get(file, "rules"), "documented", json_object_get(file, "documented"));
    if (worker->options.served)
        DT_TRY(dt_serve_describe(&worker->serve, message, job));
    DT_TRY(dt_wire_write(&worker->wire, message));
    return dt_wire_send(&worker->wire,
                        json_pack("{s:s,s:s,s:[{s:i,s:i,s:s,s:o,s:i,s:o}]}", "op", "ready", "comm",
                                  "command", "ranks", "rank", 0, "pid", (int)getpid(), "host", host,
                                  "cores", cores_json(), "threads", 1, "versions",
                                  list_files(command)));
}

/* How many runs there were, and what is to be told of them. */
static void tell_tally(json_t *answer, const struct dt_tally *tally)
{
    json_t *list = tally->count > 0 ? json_array() : NULL;
    json_object_set_new(answer, "runs", json_integer(tally->runs));
    for (int i = 0; i < tally->count; i++)
        json_array_append_new(
            list, json_pack("{s:s,s:i}", "say", tally->said[i].say, "runs", tally->said[i].runs));
    if (list != NULL)
        json_object_set_new(answer, "warnings", list);
}

/* The steps that the command printed in that run are the first samples; its whole time, with all
 * that is cold, is none. */
static dt_status answer_prepare(struct worker *worker, const json_t *request, json_t **answer)
{
    json_t *values;
    struct dt_point point;
    struct plan plan = {.failed.status = DT_OK};
    struct dt_tally tally = {.runs = 0};
    double error;
    DT_TRY(dt_json_object(request, "the request", "plan", &values));
    DT_TRY(dt_point_from_json(worker->space, values, &point));
    DT_TRY(DT_GROW(worker->plans, worker->plan_count, 1));
    DT_TRY(dt_runs_fill(&worker->runs, worker->space, &point, &plan.run));
    dt_status status =
        dt_runs_verified(&worker->runs, &plan.run, &worker->wire, &tally, &plan.first, &error);
    if (status != DT_OK) {
        dt_run_plan_fini(&plan.run);
        return status;
    }
    /* The limits of later requests follow from the cold step: each of their steps
     * is a whole start, too. */
    *answer = dt_prepared(worker->plan_count + 1, plan.run.ranks, plan.first.peak_bytes,
                          plan.first.wall_ns);
    if (plan.first.read[0] != 0)
        add_sentence("read", plan.first.read, *answer);
    tell_tally(*answer, &tally);
    if (isfinite(error))
        json_object_set_new(*answer, "error", json_real(error));
    if (worker->runs.timing.kind == 'w')
        dt_times_fini(&plan.first);
    worker->plans[worker->plan_count++] = plan;
    return DT_OK;
}

static dt_status find_handle(const struct worker *worker, const json_t *request, int64_t *handle)
{
    DT_TRY(dt_json_int(request, "the request", "handle", 1, INT32_MAX, handle));
    if (*handle > worker->plan_count || worker->plans[*handle - 1].run.argv[DT_RUN_COMMAND] == NULL)
        return dt_fail(DT_EPROTO, "no plan of handle %lld is resident", (long long)*handle);
    return DT_OK;
}

/* The steps of one run. */
static dt_status add_run(struct worker *worker, struct plan *plan, json_t *rows, json_t *starts,
                         struct dt_tally *tally)
{
    DT_CLEANUP(dt_times_fini) struct dt_times times = plan->first;
    plan->first = (struct dt_times){.count = 0};
    if (times.count == 0)
        DT_TRY(dt_runs_make(&worker->runs, &plan->run, &worker->wire, tally, &times));
    for (int i = 0; i < times.count; i++)
        json_array_append_new(rows, dt_each_rank(times.ns[i], plan->run.ranks));
    json_array_append_new(starts, json_integer(times.count));
    return DT_OK;
}

/* n runs. One that fails behind others ends the answer: what they measured is kept, and its failure
 * answers the next request. */
static dt_status answer_run(struct worker *worker, const json_t *request, json_t **answer)
{
    int64_t handle, n;
    struct dt_tally tally = {.runs = 0};
    DT_TRY(find_handle(worker, request, &handle));
    DT_TRY(dt_json_int(request, "the request", "n", 1, 1 << 20, &n));
    struct plan *plan = &worker->plans[handle - 1];
    dt_status status = dt_error_raise(&plan->failed);
    plan->failed.status = DT_OK;
    DT_TRY(status);
    json_t *rows = json_array(), *starts = json_array();
    for (int64_t i = 0; i < n && status == DT_OK; i++)
        status = add_run(worker, plan, rows, starts, &tally);
    if (status < 0 && status != DT_EDEAD && json_array_size(starts) > 0) {
        dt_error_keep(&plan->failed, status);
        dt_tally_add(&tally, "failed");
        status = DT_OK;
    }
    *answer = json_pack("{s:s,s:I,s:o,s:o}", "op", "samples", "handle", (json_int_t)handle, "ns",
                        rows, "starts", starts);
    tell_tally(*answer, &tally);
    return status == DT_OK ? dt_runs_limits(&worker->runs, &plan->run) : status;
}

static void free_plan(struct plan *plan)
{
    dt_run_plan_fini(&plan->run);
    dt_times_fini(&plan->first);
}

static dt_status answer_release(struct worker *worker, const json_t *request, json_t **answer)
{
    int64_t handle;
    DT_TRY(find_handle(worker, request, &handle));
    free_plan(&worker->plans[handle - 1]);
    *answer = json_pack("{s:s,s:I}", "op", "released", "handle", (json_int_t)handle);
    return DT_OK;
}

static dt_status answer_to(struct worker *worker, const json_t *request, json_t **answer)
{
    static const struct {
        const char *name;
        dt_status (*execute)(struct worker *worker, const json_t *request, json_t **answer);
    } table[] = {{"prepare", answer_prepare}, {"run", answer_run}, {"release", answer_release}};
    if (worker->options.served)
        return dt_serve_answer(&worker->serve, request, answer);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, dt_wire_op(request)) == 0)
            return table[i].execute(worker, request, answer);
    return dt_fail(DT_EPROTO, "unknown request '%.40s'; this worker knows prepare, run and release",
                   dt_wire_op(request));
}

/* DT_DONE: the controller sent quit. */
static dt_status serve_request(struct worker *worker, const json_t *request)
{
    json_auto_t *answer = NULL;
    dt_status status;
    if (strcmp(dt_wire_op(request), "quit") == 0)
        return DT_DONE;
    if (strcmp(dt_wire_op(request), "hello") == 0) {
        status = configure_worker(worker);
        if (status == DT_OK)
            return answer_hello(worker);
        return refuse_request(worker,
                              status == DT_EIO ? DT_EUSAGE : status); /* a file that was named */
    }
    status = worker->file != NULL ? answer_to(worker, request, &answer)
                                  : dt_fail(DT_EPROTO, "hello comes first");
    if (status == DT_OK)
        return dt_wire_write(&worker->wire, answer);
    return status == DT_EDEAD ? status : refuse_request(worker, status);
}

static dt_status work_requests(struct worker *worker)
{
    dt_status status = DT_OK;
    while (status == DT_OK) {
        json_auto_t *request = NULL;
        bool up = dt_serve_up(&worker->serve);
        status = dt_wire_read(&worker->wire,
                              up ? dt_clock_ns() + DT_NS_PER_SECOND : DT_WIRE_FOREVER, &request);
        dt_serve_tend(&worker->serve);
        if (status == DT_OK)
            status = serve_request(worker, request);
        else if (status == DT_EPROTO)
            status = refuse_request(worker, status);
        else if (status == DT_EINTR || status == DT_ETIMEOUT)
            status = DT_OK;
    }
    return status == DT_EDEAD ? DT_DONE : status;
}

/* One more of an option that may be given several times; false: too many. */
static bool add_option(const char *list[], const char *value)
{
    int count = 0;
    while (list[count] != NULL)
        count++;
    list[count] = count < DT_METRICS_MOST ? value : NULL;
    return count < DT_METRICS_MOST;
}

static bool read_options(int argc, char **argv, struct worker *worker)
{
    struct dt_run_given *options = &worker->options;
    const struct {
        const char *name;
        const char **value; /* NULL: --shell */
    } rows[] = {{"command", &options->lines[DT_RUN_COMMAND]},
                {"server", &worker->server},
                {"ready", &worker->serve_options.ready},
                {"request", &worker->serve_options.request},
                {"requests", &worker->serve_options.requests},
                {"start-timeout", &worker->serve_options.start_timeout},
                {"prepare", &options->lines[DT_RUN_PREPARE]},
                {"cleanup", &options->lines[DT_RUN_CLEANUP]},
                {"space", &worker->space_path},
                {"time", &options->time},
                {"unit", &options->unit},
                {"timeout", &options->timeout},
                {"retries", &options->retries},
                {"accept-codes", &options->accept},
                {"leftovers", &options->leftovers},
                {"verify-output", &options->output},
                {"compare", &options->compare},
                {"tolerance", &options->tolerance},
                {"objective", &options->objective},
                {"metric", options->metrics},
                {"limit", options->limits},
                {"shell", NULL}};
    enum { ROWS = sizeof rows / sizeof rows[0] };
    struct option list[ROWS + 1] = {{NULL, 0, NULL, 0}};
    for (int i = 0; i < ROWS; i++)
        list[i] = (struct option){rows[i].name, rows[i].value != NULL, NULL, i};
    for (int option; (option = getopt_long(argc, argv, "", list, NULL)) != -1;) {
        if (option < 0 || option >= ROWS)
            return false;
        const char **value = rows[option].value;
        bool several = value == options->metrics || value == options->limits;
        if (several && !add_option(value, optarg))
            return false;
        if (value != NULL && !several)
            *value = optarg;
        else if (value == NULL)
            options->shell = true;
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    struct worker worker = {.serve.server.log = -1};
    if (!read_options(argc, argv, &worker)) {
        fprintf(stderr,
                "usage: dittune-worker-command --command TEXT --space FILE --time HOW [OPTIONS]: "
                "the options that dittune has beside --command (docs/command.md) or --server "
                "(docs/server.md); dittune starts it and talks to it. Options of dittune "
                "itself, such as --format, stand before the --\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    dt_leftovers_adopt();
    dt_wire_init(&worker.wire, STDIN_FILENO, STDOUT_FILENO);
    dt_status status = work_requests(&worker);
    if (status < 0)
        fprintf(stderr, "dittune-worker-command: %s\n", dt_message());
    dt_serve_fini(&worker.serve);
    for (int i = 0; i < worker.plan_count; i++)
        free_plan(&worker.plans[i]);
    free(worker.plans);
    dt_runs_fini(&worker.runs);
    json_decref(worker.file);
    dt_space_free(worker.space);
    dt_wire_fini(&worker.wire);
    return status < 0 ? 1 : 0;
}
