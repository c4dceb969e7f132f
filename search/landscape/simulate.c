/* SPDX-License-Identifier: MIT */
/* Times are processor time of this thread, so the cost of a strategy does not depend on the load of the machine. */
#include "search/landscape/simulate.h"

#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static double milliseconds(void)
{
    return 1e-6 * (double)dt_clock_thread_ns();
}

static dt_status start(const struct dt_simulation *simulation, int repeat,
                       struct dt_search **search)
{
    const struct dt_landscape *landscape = simulation->landscape;
    struct dt_point point;
    struct dt_search_opts opts = {.space = landscape->space,
                                  .seed = simulation->seed + (uint64_t)repeat,
                                  .prior = simulation->prior,
                                  .evaluations = simulation->evals,
                                  .seconds = simulation->spend};
    if (landscape->start >= 0) {
        dt_space_at(landscape->space, landscape->start, &point);
        opts.start = &point;
    }
    return dt_search_new(simulation->search, &opts, search);
}

static void answer(const struct dt_simulation *simulation, int repeat, struct dt_trial *trial)
{
    struct dt_point point = trial->point;
    if (simulation->noise)
        dt_landscape_trial_noisy(simulation->landscape, &point, simulation->seed + (uint64_t)repeat,
                                 trial);
    else
        dt_landscape_trial(simulation->landscape, &point, trial);
}

/* Subtracts the time of fits since the last evaluation from this one's. */
static void split_refits(const struct dt_search *search, struct dt_refits *before,
                         double *ask_tell_ms, double *refit_ms)
{
    struct dt_refits after = dt_search_refits(search);
    if (after.count > before->count)
        *refit_ms = 1e3 * (after.seconds - before->seconds);
    *ask_tell_ms = fmax(0, *ask_tell_ms - *refit_ms);
    *before = after;
}

static dt_status play(const struct dt_simulation *simulation, int repeat, struct dt_search *search,
                      struct dt_runs *runs)
{
    size_t at = (size_t)repeat * (size_t)runs->evals;
    struct dt_repeat *its = &runs->list[repeat];
    struct dt_refits refits = dt_search_refits(search);
    for (; its->evals < runs->evals; its->evals++, at++) {
        if (simulation->spend > 0 && its->seconds >= simulation->spend)
            return DT_OK;
        struct dt_trial trial = {.outcome = DT_TRIAL_OK};
        double before = milliseconds();
        dt_status status = dt_search_ask(search, &trial.point);
        double asked = milliseconds();
        DT_TRY(status);
        if (status == DT_DONE)
            return DT_OK;
        if (status != DT_OK)
            return dt_fail(DT_EUNSUP, "the search '%s' waits, and every answer is in",
                           simulation->search);
        int64_t k = dt_space_index(simulation->landscape->space, &trial.point);
        if (k < 0)
            return dt_fail(DT_EUNSUP, "the search '%s' asks for a plan that is not of the table",
                           simulation->search);
        answer(simulation, repeat, &trial);
        double told = milliseconds();
        dt_search_tell(search, &trial);
        runs->ask_tell_ms[at] = asked - before + milliseconds() - told;
        split_refits(search, &refits, &runs->ask_tell_ms[at], &runs->refit_ms[at]);
        runs->entries[at] = (int32_t)k;
        runs->seen[at] = trial.value;
        its->seconds += trial.cost;
    }
    return DT_OK;
}

static dt_status run(const struct dt_simulation *simulation, int repeat, struct dt_runs *runs)
{
    struct dt_repeat *its = &runs->list[repeat];
    struct dt_search *search = NULL;
    struct dt_text note = {0};
    double before = milliseconds();
    DT_TRY(start(simulation, repeat, &search));
    its->start_ms = milliseconds() - before;
    dt_status status = play(simulation, repeat, search, runs);
    dt_search_note(search, &note);
    snprintf(its->note, sizeof its->note, "%s", dt_text_at(&note));
    dt_text_fini(&note);
    dt_search_free(search);
    return status;
}

/* Runs the repeats of one process; stops at an error. */
static void work(const struct dt_simulation *simulation, int job, struct dt_runs *runs)
{
    for (int repeat = job; repeat < runs->repeats; repeat += simulation->jobs) {
        struct dt_repeat *its = &runs->list[repeat];
        if (dt_error_keep(&its->error, run(simulation, repeat, runs)) < 0)
            return;
    }
}

static dt_status make_room(const struct dt_simulation *simulation, struct dt_runs *runs)
{
    size_t repeats = (size_t)simulation->repeats, cells = repeats * (size_t)simulation->evals;
    size_t size = repeats * sizeof *runs->list + cells * (3 * sizeof(double) + sizeof(int32_t));
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return dt_fail(DT_ENOMEM, "out of memory for %d repeats of %d evaluations",
                       simulation->repeats, simulation->evals);
    *runs = (struct dt_runs){.evals = simulation->evals,
                             .repeats = simulation->repeats,
                             .memory = memory,
                             .size = size,
                             .list = (struct dt_repeat *)(void *)memory};
    runs->seen = (double *)(void *)(memory + repeats * sizeof *runs->list);
    runs->ask_tell_ms = runs->seen + cells;
    runs->refit_ms = runs->ask_tell_ms + cells;
    runs->entries = (int32_t *)(void *)(runs->refit_ms + cells);
    for (size_t i = 0; i < cells; i++) {
        runs->entries[i] = -1;
        runs->seen[i] = NAN;
    }
    return DT_OK;
}

static dt_status wait_for(pid_t child)
{
    int code;
    pid_t got;
    do {
        got = waitpid(child, &code, 0);
    } while (got < 0 && errno == EINTR);
    if (got == child && WIFEXITED(code) && WEXITSTATUS(code) == 0)
        return DT_OK;
    return dt_fail(DT_EIO, "a process that ran a search ended by signal %d",
                   got == child && WIFSIGNALED(code) ? WTERMSIG(code) : 0);
}

/* This process does the first share itself. */
static dt_status fan_out(const struct dt_simulation *simulation, struct dt_runs *runs)
{
    pid_t children[64];
    int started = 1;
    dt_status status = DT_OK;
    for (; started < simulation->jobs; started++) {
        pid_t child = fork();
        if (child == 0) {
            work(simulation, started, runs);
            _exit(0);
        }
        if (child < 0) {
            status = dt_fail(DT_EIO, "cannot start a process: %s", strerror(errno));
            break;
        }
        children[started] = child;
    }
    work(simulation, 0, runs);
    for (int i = 1; i < started; i++) {
        dt_status ended = wait_for(children[i]);
        status = status < 0 ? status : ended;
    }
    return status;
}

dt_status dt_simulate(const struct dt_simulation *simulation, struct dt_runs *runs)
{
    DT_TRY(make_room(simulation, runs));
    dt_status status = fan_out(simulation, runs);
    for (int i = 0; i < runs->repeats && status == DT_OK; i++)
        status = dt_error_raise(&runs->list[i].error);
    if (status < 0)
        dt_runs_fini(runs);
    return status;
}

void dt_runs_fini(struct dt_runs *runs)
{
    if (runs->memory != NULL)
        munmap(runs->memory, runs->size);
    *runs = (struct dt_runs){0};
}
