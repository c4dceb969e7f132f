/* SPDX-License-Identifier: MIT */
/* Open MPI 4 and 5: --bind-to none because the worker binds itself (mpirun -np 1 would bind one
 * core); its session files go to a folder of ours, so that a killed group leaves nothing in /tmp
 * and /dev/shm. The ranks of one host exchange over shared memory alone: every transport of a
 * network is left out, none of which they need, and which would listen on all interfaces. mpirun
 * itself does listen there, and has no option against it.
 *
 * torchrun (PyTorch 2) is not started itself: its variables are set, and each rank is a
 * child of the supervisor. */
#include "tuner/runner/launch.h"

#include "base/clock.h"
#include "base/environment.h"
#include "base/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define WORDS_MOST    256
#define SEGMENT_BYTES (8.0 * (1 << 20)) /* a rank's part of /dev/shm */

extern char **environ;

bool dt_launcher_from_text(const char *text, enum dt_launcher *launcher)
{
    static const char *const names[] = {[DT_LAUNCH_SELF] = "self",
                                        [DT_LAUNCH_MPIRUN] = "mpirun",
                                        [DT_LAUNCH_TORCHRUN] = "torchrun"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) {
            *launcher = (enum dt_launcher)i;
            return true;
        }
    return false;
}

/* ---- words of a command line */

struct word_list {
    char *at[WORDS_MOST]; /* owned */
    int n;
    bool failed; /* no memory, or too many */
};

static void add_word(struct word_list *words, const char *word)
{
    char *copy = words->n < WORDS_MOST - 1 ? strdup(word) : NULL;
    words->failed = words->failed || copy == NULL;
    if (copy != NULL)
        words->at[words->n++] = copy;
}

/* The words of a text, which blanks separate. */
DT_FORMAT(2, 3) static void add_words(struct word_list *words, const char *form, ...)
{
    char text[600], *rest = NULL;
    va_list values;
    va_start(values, form);
    vsnprintf(text, sizeof text, form, values);
    va_end(values);
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest))
        add_word(words, word);
}

/* ---- several hosts */

/* Launchers of ranks on several hosts, one row each; any other is a command of the user's: words
 * without a shell, in which {ranks} and the other placeholders are replaced. Ranks are numbered
 * host by host, launch->per_host on each of the first ones. */
static int hosts_used(const struct dt_launch *launch)
{
    return (launch->ranks + launch->per_host - 1) / launch->per_host;
}

static void add_hosts(const struct dt_launch *launch, struct word_list *words)
{
    dt_auto_text text = {0};
    dt_hosts_text(launch->hosts, hosts_used(launch), launch->per_host, &text);
    add_word(words, dt_text_at(&text));
}

/* Open MPI 4.1. Its session folders: here below the group's, elsewhere where that host
 * has its temporary files; memory shared by the ranks of a host lies there, too, so
 * that it goes with them. */
static void add_mpirun_hosts(const struct dt_launch *launch, struct word_list *words)
{
    add_words(words, "mpirun -np %d --host", launch->ranks);
    add_hosts(launch, words);
    /* keepalive: a daemon whose link is cut ends with its ranks */
    add_words(words,
              "--map-by ppr:%d:node --bind-to none --oversubscribe --mca mpi_yield_when_idle %d "
              "--mca orte_abort_on_non_zero_status 1 --mca oob_tcp_keepalive_time 10 "
              "--mca oob_tcp_keepalive_intvl 5 --mca oob_tcp_keepalive_probes 3 "
              "-x HWLOC_HIDE_ERRORS=2 -x DITTUNE_FIRST_HOST -x DITTUNE_PORT%s",
              launch->per_host, launch->oversubscribed ? 1 : 0,
              launch->by == DT_LAUNCH_TORCHRUN ? " -x DITTUNE_TOKEN" : "");
    for (int i = 0; launch->environment != NULL && launch->environment[i] != NULL; i++) {
        add_word(words, "-x");
        add_word(words, launch->environment[i]);
    }
}

/* Slurm: a step of the allocation. */
static void add_srun(const struct dt_launch *launch, struct word_list *words)
{
    dt_auto_text list = {0};
    dt_text_add(&list, "--nodelist=");
    for (int i = 0; i < hosts_used(launch); i++)
        dt_text_add(&list, "%s%s", i > 0 ? "," : "", launch->hosts->at[i].name);
    add_words(words, "srun --ntasks=%d --nodes=%d --ntasks-per-node=%d", launch->ranks,
              hosts_used(launch), launch->per_host);
    add_word(words, dt_text_at(&list));
    /* --input=0: the controller speaks to rank 0 */
    add_words(words, "--distribution=block --kill-on-bad-exit=1 --mpi=pmix --cpu-bind=none "
                     "--overlap --export=ALL --input=0");
}

static const struct {
    const char *name;
    void (*add)(const struct dt_launch *launch, struct word_list *words);
} launchers[] = {{"mpirun", add_mpirun_hosts}, {"srun", add_srun}};
enum { LAUNCHERS = sizeof launchers / sizeof launchers[0] };

/* The value of a placeholder, of `size` bytes. */
static dt_status fill_in(const struct dt_launch *launch, const char *name, size_t size,
                         struct dt_text *out)
{
    const struct {
        const char *name;
        int value;
    } numbers[] = {
        {"ranks", launch->ranks}, {"nodes", hosts_used(launch)}, {"per_host", launch->per_host}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strlen(numbers[i].name) == size && strncmp(numbers[i].name, name, size) == 0) {
            dt_text_add(out, "%d", numbers[i].value);
            return DT_OK;
        }
    if (size != 5 || strncmp(name, "hosts", 5) != 0)
        return dt_fail(
            DT_EUSAGE,
            "--launcher: {%.*s} is no placeholder; there are {ranks}, {nodes}, {per_host}, "
            "{hosts} and, as a word of its own, {program}",
            (int)(size < 40 ? size : 40), name);
    dt_hosts_text(launch->hosts, hosts_used(launch), launch->per_host, out);
    return DT_OK;
}

static void add_program(const struct dt_launch *launch, const char *program,
                        struct word_list *words)
{
    if (launch->by == DT_LAUNCH_TORCHRUN && launch->hosts != NULL) {
        add_word(words, launch->rank_program);
        add_word(words, "--as-torchrun");
    }
    add_word(words, program);
    for (int i = 0; launch->arguments != NULL && launch->arguments[i] != NULL; i++)
        add_word(words, launch->arguments[i]);
}

static dt_status add_filled(const struct dt_launch *launch, const char *word, size_t size,
                            struct word_list *words)
{
    dt_auto_text text = {0};
    dt_status status = DT_OK;
    for (size_t i = 0; i < size && status == DT_OK;) {
        const char *end = word[i] == '{' ? memchr(word + i, '}', size - i) : NULL;
        if (end == NULL) {
            dt_text_add_bytes(&text, &word[i++], 1);
            continue;
        }
        status = fill_in(launch, word + i + 1, (size_t)(end - (word + i + 1)), &text);
        i = (size_t)(end - word) + 1;
    }
    add_word(words, dt_text_at(&text));
    return status;
}

/* Blanks separate the words. */
static dt_status add_template(const struct dt_launch *launch, const char *program,
                              struct word_list *words)
{
    bool any = false;
    for (const char *at = launch->hosts->launcher; *at != '\0';) {
        size_t blanks = strspn(at, " "), size = strcspn(at + blanks, " ");
        at += blanks;
        bool is_program = size == 9 && strncmp(at, "{program}", 9) == 0;
        any = any || is_program;
        if (is_program)
            add_program(launch, program, words);
        else if (size > 0)
            DT_TRY(add_filled(launch, at, size, words));
        at += size;
    }
    return any ? DT_OK
               : dt_fail(DT_EUSAGE,
                         "--launcher '%.200s' has no word {program}, where the worker's command "
                         "line goes; launchers that need none are mpirun and srun",
                         launch->hosts->launcher);
}

/* Appends the command of launch->hosts' launcher, with the program and its arguments. DT_EUSAGE: a
 * placeholder that there is not. */
static dt_status add_launcher(const struct dt_launch *launch, const char *program,
                              struct word_list *words)
{
    for (int i = 0; i < LAUNCHERS; i++)
        if (strcmp(launchers[i].name, launch->hosts->launcher) == 0) {
            launchers[i].add(launch, words);
            add_program(launch, program, words);
            return DT_OK;
        }
    return add_template(launch, program, words);
}

/* ---- the start */

static bool under_mpirun(const struct dt_launch *launch)
{
    return launch->by == DT_LAUNCH_MPIRUN && (launch->ranks > 1 || launch->hosts != NULL);
}

/* Open MPI's segment of a rank has 4 MiB, and its queues some more. */
static bool has_room(const char *folder, int ranks)
{
    struct statvfs room;
    return statvfs(folder, &room) == 0 &&
           (double)room.f_bavail * (double)room.f_frsize >= ranks * SEGMENT_BYTES;
}

/* One folder for temporary files, one for memory shared by ranks. */
static dt_status make_folders(const struct dt_launch *launch, struct dt_start *start)
{
    static bool swept;
    const char *chosen = getenv("TMPDIR");
    const char *parents[DT_SUPERVISOR_FOLDERS] = {
        chosen != NULL && chosen[0] != '\0' ? chosen : "/tmp", "/dev/shm"};
    if (parents[0][0] != '/')
        return dt_fail(DT_EUSAGE,
                       "TMPDIR is '%.100s', which is not an absolute path: set it to one, as /tmp",
                       parents[0]);
    for (int i = 0; i < DT_SUPERVISOR_FOLDERS && !swept; i++)
        dt_folders_sweep(parents[i]);
    swept = true;
    DT_TRY(dt_folder_make(parents[0], start->folders[0]));
    if (under_mpirun(launch) && launch->hosts == NULL && access(parents[1], W_OK) == 0 &&
        has_room(parents[1], launch->ranks) && dt_folder_make(parents[1], start->folders[1]) < 0)
        start->folders[1][0] = '\0'; /* the first is enough */
    return DT_OK;
}

void dt_start_drop(struct dt_start *start)
{
    for (int i = 0; i < DT_SUPERVISOR_FOLDERS; i++)
        dt_folder_remove(start->folders[i]);
}

static void add_mpirun(struct word_list *words, const struct dt_launch *launch,
                       const struct dt_start *start)
{
    add_words(words,
              "mpirun -np %d --bind-to none --oversubscribe --mca mpi_yield_when_idle %d "
              "--mca pml ob1 --mca btl ^tcp,ofi,openib,uct,ugni,usnic --mca orte_tmpdir_base",
              launch->ranks, launch->oversubscribed ? 1 : 0);
    add_word(words, start->folders[0]);
    add_words(words, "--mca btl_vader_backing_directory");
    add_word(words, start->folders[start->folders[1][0] != '\0' ? 1 : 0]);
}

/* The words as an array of their own; NULL when memory ran out. */
static char **words_take(struct word_list *words)
{
    char **list = words->failed ? NULL : calloc((size_t)words->n + 1, sizeof *list);
    for (int i = 0; i < words->n; i++)
        if (list != NULL)
            list[i] = words->at[i];
        else
            free(words->at[i]);
    return list;
}

/* One "NAME=value" of the list names the same variable. */
static bool any_names(char *const list[], const char *entry)
{
    for (int i = 0; list != NULL && list[i] != NULL; i++)
        if (strncmp(list[i], entry, strcspn(list[i], "=") + 1) == 0)
            return true;
    return false;
}

static int list_length(char *const list[])
{
    int n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    return n;
}

enum { PORT_FIRST = 16384, PORTS = 16384, PORT_TRIES = 64 };

static bool port_is_free(int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_ANY),
                             .sin_port = htons((uint16_t)port)};
    int end = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = end >= 0 && bind(end, (const struct sockaddr *)&at, sizeof at) == 0;
    if (end >= 0)
        close(end);
    return bound;
}

/* Below those that Linux gives to outgoing connections (ip_local_port_range: from 32768 on): one of
 * them could take the port before its rank listens, the rank's own attempts to connect included. */
static dt_status free_port(int *port)
{
    uint64_t start = (uint64_t)dt_clock_machine_ns() / 1000 + (uint64_t)getpid() * 7919;
    for (uint64_t i = 0; i < PORT_TRIES; i++) {
        int tried = PORT_FIRST + (int)((start + i * 101) % PORTS);
        if (port_is_free(tried)) {
            *port = tried;
            return DT_OK;
        }
    }
    return dt_fail(DT_ELIB,
                   "cannot find a free port for the ranks of a worker: %d of %d to %d are taken",
                   PORT_TRIES, PORT_FIRST, PORT_FIRST + PORTS - 1);
}

/* DITTUNE_TOKEN: a secret of this start's ranks, by which they know each other (SECURITY.md). */
static dt_status set_token(struct word_list *variables)
{
    unsigned char secret[16];
    char text[16 + 2 * sizeof secret] = "DITTUNE_TOKEN=";
    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return dt_fail(DT_EIO, "cannot draw a token for the ranks: %s", strerror(errno));
    for (size_t i = 0; i < sizeof secret; i++)
        snprintf(text + 14 + 2 * i, 3, "%02x", secret[i]);
    add_word(variables, text);
    return DT_OK;
}

/* The variables that torchrun sets and libraries read, for rank 0. */
static dt_status set_ranks(const struct dt_launch *launch, struct word_list *variables)
{
    int port = 0;
    if (launch->by != DT_LAUNCH_TORCHRUN || launch->hosts != NULL)
        return DT_OK;
    DT_TRY(free_port(&port));
    add_words(variables,
              "RANK=0 LOCAL_RANK=0 WORLD_SIZE=%d LOCAL_WORLD_SIZE=%d MASTER_ADDR=127.0.0.1 "
              "MASTER_PORT=%d",
              launch->ranks, launch->ranks, port);
    return DT_OK;
}

/* Later lists take precedence. Variables that dittune removed for itself are passed on, since the
 * worker may be the user's. */
static char **make_environment(const struct dt_launch *launch, char *const ours[])
{
    char *const *lists[] = {environ, dt_environment_dropped(), ours,
                            (char *const *)launch->environment};
    int room = 1, n = 0;
    bool failed = false;
    for (int i = 0; i < 4; i++)
        room += list_length(lists[i]);
    char **list = calloc((size_t)room, sizeof *list);
    for (int i = 0; list != NULL && i < 4; i++)
        for (int k = 0; k < list_length(lists[i]); k++) {
            bool replaced = false;
            for (int later = i + 1; later < 4; later++)
                replaced = replaced || any_names(lists[later], lists[i][k]);
            list[n] = replaced ? NULL : strdup(lists[i][k]);
            failed = failed || (!replaced && list[n] == NULL);
            n += list[n] != NULL;
        }
    if (!failed)
        return list;
    while (n > 0)
        free(list[--n]);
    free(list);
    return NULL;
}

/* Item i of the GPUs that are visible to this process. */
static void add_gpu(const char *visible, int i, struct dt_text *out)
{
    for (int skipped = 0; visible != NULL && skipped < i; skipped++) {
        visible = strchr(visible, ',');
        visible = visible != NULL ? visible + 1 : "";
    }
    if (visible == NULL)
        dt_text_add(out, "%d", i);
    else
        dt_text_add(out, "%.*s", (int)strcspn(visible, ","), visible);
}

/* Which replica this is, and its part of the GPUs. */
static void add_replica(const struct dt_launch *launch, struct word_list *variables)
{
    const int share = launch->gpus / launch->replicas;
    dt_auto_text visible = {0};
    add_words(variables, "DITTUNE_REPLICA=%d DITTUNE_REPLICAS=%d", launch->replica,
              launch->replicas);
    dt_text_add(&visible, "CUDA_VISIBLE_DEVICES=");
    for (int i = 0; i < share; i++) {
        dt_text_add(&visible, "%s", i > 0 ? "," : "");
        add_gpu(getenv("CUDA_VISIBLE_DEVICES"), launch->replica * share + i, &visible);
    }
    if (share > 0)
        add_word(variables, dt_text_at(&visible));
}

static dt_status add_variables(const struct dt_launch *launch, const struct dt_start *start,
                               struct word_list *variables)
{
    char folder[300];
    snprintf(folder, sizeof folder, "TMPDIR=%s", start->folders[0]);
    add_word(variables, folder);
    if (launch->hosts != NULL) {
        int port = 0;
        DT_TRY(free_port(&port)); /* here; on the first host most likely, too */
        add_words(variables,
                  "DITTUNE_FIRST_HOST=%s DITTUNE_PORT=%d DITTUNE_PLACED_SIZE=%d "
                  "DITTUNE_PLACED_HOST=%d",
                  launch->hosts->at[0].name, port, launch->ranks, launch->per_host);
    } else { /* another host has limits of its own */
        int parts = launch->replicas > 1 ? launch->replicas : 1, cores = dt_host_cores() / parts;
        add_words(variables, "DITTUNE_CORES=%d DITTUNE_MEMORY_BYTES=%lld", cores > 0 ? cores : 1,
                  (long long)dt_host_memory_available() / parts);
    }
    if (launch->replicas > 1)
        add_replica(launch, variables);
    /* libgomp has read it when the worker is told its ranks (worker/main.c) */
    if (launch->own_ranks > 1 && launch->oversubscribed && getenv("OMP_WAIT_POLICY") == NULL)
        add_word(variables, "OMP_WAIT_POLICY=passive");
    add_words(variables, "HWLOC_HIDE_ERRORS=2 OMPI_ALLOW_RUN_AS_ROOT=1 "
                         "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    if (launch->by == DT_LAUNCH_TORCHRUN)
        DT_TRY(set_token(variables));
    return set_ranks(launch, variables);
}

static void list_free(char **list)
{
    for (int i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}

static dt_status start_fill(const struct dt_launch *launch, const char *program,
                            struct dt_start *start)
{
    struct word_list words = {.n = 0}, variables = {.n = 0};
    dt_status status = add_variables(launch, start, &variables);
    char **ours = words_take(&variables);
    bool all = launch->by == DT_LAUNCH_TORCHRUN && launch->hosts == NULL;
    start->processes = all ? launch->ranks : 1;
    if (status == DT_OK && ours != NULL)
        start->envp = make_environment(launch, ours);
    list_free(ours);
    DT_TRY(status);
    if (launch->hosts != NULL) {
        status = add_launcher(launch, program, &words);
    } else {
        if (under_mpirun(launch))
            add_mpirun(&words, launch, start);
        add_program(launch, program, &words);
    }
    start->argv = words_take(&words);
    DT_TRY(status);
    if (start->argv == NULL || start->envp == NULL)
        return dt_fail(DT_ENOMEM, "out of memory while starting %s", program);
    return DT_OK;
}

/* Common mistakes: a command line instead of a program, and a script that is not executable. */
static dt_status not_a_program(const char *name)
{
    const char *blank = strchr(name, ' ');
    struct stat info;
    if (stat(name, &info) == 0 && S_ISREG(info.st_mode))
        return dt_fail(DT_EUSAGE,
                       "the worker %s is not a program that can be run: chmod +x makes "
                       "it one, and its first line must name its interpreter (#!)",
                       name);
    if (blank != NULL)
        return dt_fail(DT_EUSAGE,
                       "the worker '%s' is not a program that can be run: its arguments follow "
                       "--, as in --worker %.*s --%s",
                       name, (int)(blank - name), name, blank);
    return dt_fail(DT_EUSAGE, "the worker %s is not a program that can be run", name);
}

dt_status dt_start_make(const struct dt_launch *launch, struct dt_start *start)
{
    char program[4096], launcher[256];
    *start = (struct dt_start){.argv = NULL};
    if (!dt_host_program(launch->program, program, sizeof program))
        return not_a_program(launch->program);
    if (launch->by == DT_LAUNCH_TORCHRUN && launch->ranks > DT_SUPERVISOR_RANKS)
        return dt_fail(DT_EUSAGE, "a plan has %d ranks; at most %d processes are started",
                       launch->ranks, DT_SUPERVISOR_RANKS);
    snprintf(start->path, sizeof start->path, "%s", program);
    if (launch->hosts != NULL) { /* "mpirun", "srun", or the first word of a command */
        const char *first = launch->hosts->launcher + strspn(launch->hosts->launcher, " ");
        snprintf(launcher, sizeof launcher, "%.*s", (int)strcspn(first, " "), first);
        if (!dt_host_program(launcher, start->path, sizeof start->path))
            return dt_fail(DT_EUSAGE, "the launcher %s was not found", launcher);
    }
    if (launch->hosts == NULL && under_mpirun(launch) &&
        !dt_host_program("mpirun", start->path, sizeof start->path))
        return dt_fail(DT_EUSAGE,
                       "mpirun not found: install openmpi-bin, or ask for plans of one rank");
    DT_TRY(make_folders(launch, start));
    dt_status status = start_fill(launch, program, start);
    if (status < 0) {
        dt_start_drop(start);
        dt_start_fini(start);
    }
    return status;
}

void dt_start_fini(struct dt_start *start)
{
    list_free(start->argv);
    list_free(start->envp);
    start->argv = start->envp = NULL;
}
