/* SPDX-License-Identifier: MIT */
/* Open MPI 4 and 5: --bind-to none because the worker binds itself (mpirun -np 1 would bind one core); its session files go to a
 * folder of ours, so that a killed group leaves nothing in /tmp and /dev/shm. The ranks of one host exchange over shared memory alone:
 * every transport of a network is left out, none of which they need, and which would listen on all interfaces. mpirun itself does
 * listen there, and has no option against it.
 *
 * torchrun (PyTorch 2) is not started itself: its variables are set, and each rank is a child of the supervisor. */
#include "tuner/runner/launch_int.h"

#include "base/clock.h"
#include "base/environment.h"
#include "base/host.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define SEGMENT_BYTES (8.0 * (1 << 20)) /* of /dev/shm, a rank */

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

void dt_launch_drop(struct dt_start *start)
{
    for (int i = 0; i < DT_SUPERVISOR_FOLDERS; i++)
        dt_folder_remove(start->folders[i]);
}

void dt_words_add(struct dt_word_list *words, const char *word)
{
    char *copy = words->n < DT_WORDS_MOST - 1 ? strdup(word) : NULL;
    words->failed = words->failed || copy == NULL;
    if (copy != NULL)
        words->at[words->n++] = copy;
}

void dt_words_mca(struct dt_word_list *words, const char *name, const char *value)
{
    dt_words_add(words, "--mca");
    dt_words_add(words, name);
    dt_words_add(words, value);
}

static void add_mpirun(struct dt_word_list *words, const struct dt_launch *launch,
                       const struct dt_start *start)
{
    char count[16];
    snprintf(count, sizeof count, "%d", launch->ranks);
    dt_words_add(words, "mpirun");
    dt_words_add(words, "-np");
    dt_words_add(words, count);
    dt_words_add(words, "--bind-to");
    dt_words_add(words, "none");
    dt_words_add(words, "--oversubscribe");
    dt_words_mca(words, "mpi_yield_when_idle", launch->oversubscribed ? "1" : "0");
    dt_words_mca(words, "pml", "ob1");
    dt_words_mca(words, "btl", "^tcp,ofi,openib,uct,ugni,usnic");
    dt_words_mca(words, "orte_tmpdir_base", start->folders[0]);
    dt_words_mca(words, "btl_vader_backing_directory",
                 start->folders[start->folders[1][0] != '\0' ? 1 : 0]);
}

/* The words as an array of their own; NULL when memory ran out. */
static char **take(struct dt_word_list *words)
{
    char **list = words->failed ? NULL : calloc((size_t)words->n + 1, sizeof *list);
    for (int i = 0; i < words->n; i++)
        if (list != NULL)
            list[i] = words->at[i];
        else
            free(words->at[i]);
    return list;
}

/* "NAME=value" names the same variable. */
static bool same_name(const char *a, const char *b)
{
    size_t size = strcspn(a, "=");
    return strncmp(a, b, size + 1) == 0;
}

static bool any_names(char *const list[], const char *entry)
{
    for (int i = 0; list != NULL && list[i] != NULL; i++)
        if (same_name(list[i], entry))
            return true;
    return false;
}

static int length(char *const list[])
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

/* Below those that Linux gives to outgoing connections (ip_local_port_range: from 32768 on): one of them could take the port before
 * its rank listens, the rank's own attempts to connect included. */
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

/* DITTUNE_TOKEN: a secret of this start's ranks, by which they know each other (docs/security.md). */
static dt_status set_token(struct dt_word_list *variables)
{
    unsigned char secret[16];
    char text[16 + 2 * sizeof secret] = "DITTUNE_TOKEN=";
    if (getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return dt_fail(DT_EIO, "cannot draw a token for the ranks: %s", strerror(errno));
    for (size_t i = 0; i < sizeof secret; i++)
        snprintf(text + 14 + 2 * i, 3, "%02x", secret[i]);
    dt_words_add(variables, text);
    return DT_OK;
}

/* The variables that torchrun sets and libraries read, for rank 0. */
static dt_status set_ranks(const struct dt_launch *launch, struct dt_word_list *variables)
{
    char size[40], local[40], number[40];
    int port = 0;
    if (launch->by != DT_LAUNCH_TORCHRUN || launch->hosts != NULL)
        return DT_OK;
    DT_TRY(free_port(&port));
    snprintf(size, sizeof size, "WORLD_SIZE=%d", launch->ranks);
    snprintf(local, sizeof local, "LOCAL_WORLD_SIZE=%d", launch->ranks);
    snprintf(number, sizeof number, "MASTER_PORT=%d", port);
    dt_words_add(variables, "RANK=0");
    dt_words_add(variables, "LOCAL_RANK=0");
    dt_words_add(variables, size);
    dt_words_add(variables, local);
    dt_words_add(variables, "MASTER_ADDR=127.0.0.1");
    dt_words_add(variables, number);
    return DT_OK;
}

/* Later lists take precedence. Variables that dittune removed for itself are passed on, since the worker may be the
 * user's. */
static char **make_environment(const struct dt_launch *launch, char *const ours[])
{
    char *const *lists[] = {environ, dt_environment_dropped(), ours,
                            (char *const *)launch->environment};
    int room = 1, n = 0;
    bool failed = false;
    for (int i = 0; i < 4; i++)
        room += length(lists[i]);
    char **list = calloc((size_t)room, sizeof *list);
    for (int i = 0; list != NULL && i < 4; i++)
        for (int k = 0; k < length(lists[i]); k++) {
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

static dt_status add_variables(const struct dt_launch *launch, const struct dt_start *start,
                               struct dt_word_list *variables)
{
    char folder[300], first[300];
    snprintf(folder, sizeof folder, "TMPDIR=%s", start->folders[0]);
    dt_words_add(variables, folder);
    if (launch->hosts != NULL) {
        snprintf(first, sizeof first, "DITTUNE_FIRST_HOST=%s", launch->hosts->at[0].name);
        dt_words_add(variables, first);
        int port = 0;
        DT_TRY(free_port(&port)); /* here; on the first host most likely, too */
        snprintf(first, sizeof first, "DITTUNE_PORT=%d", port);
        dt_words_add(variables, first);
        snprintf(first, sizeof first, "DITTUNE_PLACED_SIZE=%d", launch->ranks);
        dt_words_add(variables, first);
        snprintf(first, sizeof first, "DITTUNE_PLACED_HOST=%d", launch->per_host);
        dt_words_add(variables, first);
    } else { /* another host has limits of its own */
        snprintf(first, sizeof first, "DITTUNE_CORES=%d", dt_host_cores());
        dt_words_add(variables, first);
        snprintf(first, sizeof first, "DITTUNE_MEMORY_BYTES=%lld",
                 (long long)dt_host_memory_available());
        dt_words_add(variables, first);
    }
    /* libgomp has read it when the worker is told its ranks (worker/main.c) */
    if (launch->own_ranks > 1 && launch->oversubscribed && getenv("OMP_WAIT_POLICY") == NULL)
        dt_words_add(variables, "OMP_WAIT_POLICY=passive");
    dt_words_add(variables, "HWLOC_HIDE_ERRORS=2");
    dt_words_add(variables, "OMPI_ALLOW_RUN_AS_ROOT=1");
    dt_words_add(variables, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    if (launch->by == DT_LAUNCH_TORCHRUN)
        DT_TRY(set_token(variables));
    return set_ranks(launch, variables);
}

static void free_list(char **list)
{
    for (int i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}

static void add_program(const struct dt_launch *launch, const char *program,
                        const struct dt_start *start, struct dt_word_list *words)
{
    if (under_mpirun(launch))
        add_mpirun(words, launch, start);
    dt_words_add(words, program);
    for (int i = 0; launch->arguments != NULL && launch->arguments[i] != NULL; i++)
        dt_words_add(words, launch->arguments[i]);
}

static dt_status fill(const struct dt_launch *launch, const char *program, struct dt_start *start)
{
    struct dt_word_list words = {.n = 0}, variables = {.n = 0};
    dt_status status = add_variables(launch, start, &variables);
    char **ours = take(&variables);
    bool all = launch->by == DT_LAUNCH_TORCHRUN && launch->hosts == NULL;
    start->processes = all ? launch->ranks : 1;
    if (status == DT_OK && ours != NULL)
        start->envp = make_environment(launch, ours);
    free_list(ours);
    DT_TRY(status);
    if (launch->hosts != NULL)
        status = dt_launch_on_hosts(launch, program, &words);
    else
        add_program(launch, program, start, &words);
    start->argv = take(&words);
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

dt_status dt_launch_plan(const struct dt_launch *launch, struct dt_start *start)
{
    char program[4096], launcher[256];
    *start = (struct dt_start){.argv = NULL};
    if (!dt_host_program(launch->program, program, sizeof program))
        return not_a_program(launch->program);
    if (launch->by == DT_LAUNCH_TORCHRUN && launch->ranks > DT_SUPERVISOR_RANKS)
        return dt_fail(DT_EUSAGE, "a plan has %d ranks; at most %d processes are started",
                       launch->ranks, DT_SUPERVISOR_RANKS);
    snprintf(start->path, sizeof start->path, "%s", program);
    if (launch->hosts != NULL)
        dt_launcher_program(launch->hosts, launcher, sizeof launcher);
    if (launch->hosts != NULL && !dt_host_program(launcher, start->path, sizeof start->path))
        return dt_fail(DT_EUSAGE, "the launcher %s was not found", launcher);
    if (launch->hosts == NULL && under_mpirun(launch) &&
        !dt_host_program("mpirun", start->path, sizeof start->path))
        return dt_fail(DT_EUSAGE,
                       "mpirun not found: install openmpi-bin, or ask for plans of one rank");
    DT_TRY(make_folders(launch, start));
    dt_status status = fill(launch, program, start);
    if (status < 0) {
        dt_launch_drop(start);
        dt_launch_fini(start);
    }
    return status;
}

void dt_launch_fini(struct dt_start *start)
{
    free_list(start->argv);
    free_list(start->envp);
    start->argv = start->envp = NULL;
}
