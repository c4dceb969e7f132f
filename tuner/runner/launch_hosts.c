/* SPDX-License-Identifier: MIT */
/* Launchers of ranks on several hosts, one row each; any other is a command of the user's: words without a shell, in which {ranks}
 * and the other placeholders are replaced. Ranks are numbered host by host, launch->per_host on each of the first ones. */
#include "tuner/runner/launch_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int hosts_used(const struct dt_launch *launch)
{
    return (launch->ranks + launch->per_host - 1) / launch->per_host;
}

static void add_number(struct dt_word_list *words, const char *before, int number)
{
    char text[64];
    snprintf(text, sizeof text, "%s%d", before, number);
    dt_words_add(words, text);
}

static void add_hosts(const struct dt_launch *launch, struct dt_word_list *words)
{
    struct dt_text text = {0};
    dt_hosts_text(launch->hosts, hosts_used(launch), launch->per_host, &text);
    dt_words_add(words, dt_text_at(&text));
    dt_text_fini(&text);
}

/* Open MPI 4.1. Its session folders: here below the group's, elsewhere where that host has its temporary files; memory shared by the
 * ranks of a host lies there, too, so that it goes with them. */
static void add_mpirun(const struct dt_launch *launch, struct dt_word_list *words)
{
    char map[32];
    snprintf(map, sizeof map, "ppr:%d:node", launch->per_host);
    dt_words_add(words, "mpirun");
    dt_words_add(words, "-np");
    add_number(words, "", launch->ranks);
    dt_words_add(words, "--host");
    add_hosts(launch, words);
    dt_words_add(words, "--map-by");
    dt_words_add(words, map);
    dt_words_add(words, "--bind-to");
    dt_words_add(words, "none");
    dt_words_add(words, "--oversubscribe");
    dt_words_mca(words, "mpi_yield_when_idle", launch->oversubscribed ? "1" : "0");
    dt_words_mca(words, "orte_abort_on_non_zero_status", "1");
    dt_words_mca(words, "oob_tcp_keepalive_time",
                 "10"); /* a daemon whose link is cut ends with its ranks */
    dt_words_mca(words, "oob_tcp_keepalive_intvl", "5");
    dt_words_mca(words, "oob_tcp_keepalive_probes", "3");
    dt_words_add(words, "-x");
    dt_words_add(words, "HWLOC_HIDE_ERRORS=2");
    dt_words_add(words, "-x");
    dt_words_add(words, "DITTUNE_FIRST_HOST");
    dt_words_add(words, "-x");
    dt_words_add(words, "DITTUNE_PORT");
    if (launch->by == DT_LAUNCH_TORCHRUN) {
        dt_words_add(words, "-x");
        dt_words_add(words, "DITTUNE_TOKEN");
    }
    for (int i = 0; launch->environment != NULL && launch->environment[i] != NULL; i++) {
        dt_words_add(words, "-x");
        dt_words_add(words, launch->environment[i]);
    }
}

/* Slurm: a step of the allocation. */
static void add_srun(const struct dt_launch *launch, struct dt_word_list *words)
{
    struct dt_text list = {0};
    dt_text_add(&list, "--nodelist=");
    for (int i = 0; i < hosts_used(launch); i++)
        dt_text_add(&list, "%s%s", i > 0 ? "," : "", launch->hosts->at[i].name);
    dt_words_add(words, "srun");
    add_number(words, "--ntasks=", launch->ranks);
    add_number(words, "--nodes=", hosts_used(launch));
    add_number(words, "--ntasks-per-node=", launch->per_host);
    dt_words_add(words, dt_text_at(&list));
    dt_words_add(words, "--distribution=block");
    dt_words_add(words, "--kill-on-bad-exit=1");
    dt_words_add(words, "--mpi=pmix");
    dt_words_add(words, "--cpu-bind=none");
    dt_words_add(words, "--overlap");
    dt_words_add(words, "--export=ALL");
    dt_words_add(words, "--input=0"); /* the controller speaks to rank 0 */
    dt_text_fini(&list);
}

static const struct {
    const char *name;
    void (*add)(const struct dt_launch *launch, struct dt_word_list *words);
} launchers[] = {{"mpirun", add_mpirun}, {"srun", add_srun}};
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
                        struct dt_word_list *words)
{
    if (launch->by == DT_LAUNCH_TORCHRUN) {
        dt_words_add(words, launch->rank_program);
        dt_words_add(words, "--as-torchrun");
    }
    dt_words_add(words, program);
    for (int i = 0; launch->arguments != NULL && launch->arguments[i] != NULL; i++)
        dt_words_add(words, launch->arguments[i]);
}

static dt_status add_word(const struct dt_launch *launch, const char *word, size_t size,
                          struct dt_word_list *words)
{
    struct dt_text text = {0};
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
    dt_words_add(words, dt_text_at(&text));
    dt_text_fini(&text);
    return status;
}

/* Blanks separate the words. */
static dt_status add_template(const struct dt_launch *launch, const char *program,
                              struct dt_word_list *words)
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
            DT_TRY(add_word(launch, at, size, words));
        at += size;
    }
    return any ? DT_OK
               : dt_fail(DT_EUSAGE,
                         "--launcher '%.200s' has no word {program}, where the worker's command "
                         "line goes; launchers that need none are mpirun and srun",
                         launch->hosts->launcher);
}

dt_status dt_launch_on_hosts(const struct dt_launch *launch, const char *program,
                             struct dt_word_list *words)
{
    for (int i = 0; i < LAUNCHERS; i++)
        if (strcmp(launchers[i].name, launch->hosts->launcher) == 0) {
            launchers[i].add(launch, words);
            add_program(launch, program, words);
            return DT_OK;
        }
    return add_template(launch, program, words);
}

void dt_launcher_program(const struct dt_hosts *hosts, char name[], size_t room)
{
    const char *first = hosts->launcher + strspn(hosts->launcher, " ");
    snprintf(name, room, "%.*s", (int)strcspn(first, " "), first);
}
