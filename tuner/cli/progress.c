/* SPDX-License-Identifier: MIT */
#include "tuner/cli/progress.h"

#include "base/clock.h"
#include "base/columns.h"
#include "base/figures.h"
#include "tuner/session/session.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void clear(struct dt_progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}

/* "15/60 s, 45 s left" */
static void describe_time(const struct dt_progress *progress, struct dt_text *out)
{
    double used = (double)(dt_clock_ns() - progress->began_ns) * 1e-9;
    double all = (double)(progress->deadline_ns - progress->began_ns) * 1e-9;
    if (progress->deadline_ns == 0) {
        dt_text_add(out, "%.0f s", used);
        return;
    }
    dt_text_add(out, "%.0f/%.0f s, ", used, all);
    dt_figure_span(all - used, out);
    dt_text_add(out, " left");
}

/* " | 12 trials, 1 failed | fastest 81.2 ms, 1.12x the default": the trials' own figures, until plans are compared. */
static void describe_trials(const struct dt_progress *progress, struct dt_text *out)
{
    if (progress->done == 0 || progress->comparison != NULL)
        return;
    dt_text_add(out, " | %d trial%s, %d failed", progress->done, progress->done == 1 ? "" : "s",
                progress->failed);
    if (progress->best == NULL)
        return;
    dt_text_add(out, " | fastest ");
    dt_figure_time(progress->best->summary.median, out);
    if (progress->fallback == progress->best) {
        dt_text_add(out, ", the default");
    } else if (progress->fallback != NULL) {
        double a = dt_result_trial(progress->fallback, progress->target).value;
        double b = dt_result_trial(progress->best, progress->target).value;
        dt_text_add(out, ", %.2fx the default", a / b);
    }
}

/* The last column stays free, since some terminals wrap when it is written. */
static void draw(struct dt_progress *progress)
{
    struct dt_text line = {0};
    describe_time(progress, &line);
    if (progress->said != NULL && progress->said[0] != '\0')
        dt_text_add(&line, " | %s", progress->said);
    describe_trials(progress, &line);
    dt_text_add(&line, " | %s", progress->what);
    dt_text_clean_lines(&line);
    const char *text = dt_text_at(&line);
    size_t size = dt_columns_cut(text, strlen(text), dt_columns_terminal(STDERR_FILENO) - 1);
    clear(progress);
    fprintf(stderr, "%.*s", (int)size, text);
    fflush(stderr);
    progress->drawn = true;
    progress->drawn_ns = dt_clock_ns();
    dt_text_fini(&line);
}

static void tick(void *context, const char *said)
{
    struct dt_progress *progress = context;
    progress->said = said;
    if (progress->drawn && dt_clock_ns() - progress->drawn_ns >= DT_NS_PER_SECOND)
        draw(progress);
    progress->said = NULL;
}

void dt_progress_init(struct dt_progress *progress, const struct dt_target *target, bool quiet,
                      int64_t deadline_ns)
{
    const char *term = getenv("TERM");
    bool dumb = term == NULL || strcmp(term, "dumb") == 0;
    *progress = (struct dt_progress){.quiet = quiet,
                                     .live = !quiet && !dumb && isatty(STDERR_FILENO) == 1,
                                     .began_ns = dt_clock_ns(),
                                     .deadline_ns = deadline_ns,
                                     .target = target};
    if (progress->live)
        dt_group_tick = (struct dt_group_tick){tick, progress};
}

static void show(struct dt_progress *progress, const char *what)
{
    snprintf(progress->what, sizeof progress->what, "%s", what);
    dt_text_mend(progress->what);
    draw(progress);
}

void dt_progress_now(struct dt_progress *progress, const struct dt_point *point, const char *stage)
{
    if (progress->quiet || !progress->live)
        return;
    struct dt_text text = {0};
    dt_text_add(&text, "%s ", stage);
    if (point != NULL)
        dt_point_short(progress->target->space, point, &text);
    show(progress, dt_text_at(&text));
    dt_text_fini(&text);
}

static void describe(const struct dt_result *result, struct dt_text *out)
{
    const struct dt_interval *interval = &result->summary.interval;
    if (result->outcome != DT_TRIAL_OK && result->outcome != DT_TRIAL_SLOW) {
        dt_text_add(out, "%s: %s", dt_outcome_text(result->outcome), result->cause);
        return;
    }
    dt_figure_estimate(result->summary.median, interval->low, interval->high, out);
    dt_text_add(out, ", %d sample%s%s%s", result->samples.n, result->samples.n == 1 ? "" : "s",
                result->outcome == DT_TRIAL_SLOW ? ", dropped: slow" : "",
                result->samples.steady ? "" : ", not steady");
    if (result->throttling.count > 0)
        dt_text_add(out, ", %d throttled", result->throttling.count);
}

void dt_progress_trial(struct dt_progress *progress, const struct dt_result *result)
{
    bool cut = result->outcome == DT_TRIAL_INTERRUPTED;
    bool failed = result->outcome != DT_TRIAL_OK && result->outcome != DT_TRIAL_SLOW && !cut;
    struct dt_text text = {0};
    int number = progress->done + 1;
    progress->done += !cut;
    progress->failed += failed;
    if (progress->quiet || (progress->live && !failed))
        return;
    dt_text_add(&text, "trial %-3d ", number);
    dt_point_short(progress->target->space, &result->point, &text);
    dt_text_add(&text, ": ");
    describe(result, &text);
    dt_text_clean_lines(&text);
    clear(progress);
    fprintf(stderr, "%s\n", dt_text_at(&text));
    dt_text_fini(&text);
}

void dt_progress_set(void *context, int set, int sets)
{
    struct dt_progress *progress = context;
    char what[80];
    if (progress->quiet)
        return;
    snprintf(what, sizeof what, "%s, set %d of at most %d", progress->comparison, set, sets);
    if (progress->live)
        show(progress, what);
    else
        fprintf(stderr, "%s\n", what);
}

void dt_progress_note(struct dt_progress *progress, const char *format, ...)
{
    va_list args;
    if (progress->quiet)
        return;
    clear(progress);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void dt_progress_end(struct dt_progress *progress)
{
    clear(progress);
    if (dt_group_tick.context == progress)
        dt_group_tick = (struct dt_group_tick){NULL, NULL};
}

static void begins(void *context, const struct dt_point *point)
{
    dt_progress_now(context, point, "trial");
}

static void ended(void *context, const struct dt_session *session, const struct dt_result *result)
{
    struct dt_progress *progress = context;
    const struct dt_result *fallback = dt_session_trial(session, &session->target->fallback);
    progress->best = dt_session_leader(session);
    progress->fallback = fallback != NULL && fallback->samples.n > 0 ? fallback : NULL;
    dt_progress_trial(progress, result);
}

static void compares(void *context, const char *name)
{
    struct dt_progress *progress = context;
    progress->comparison = name;
}

static void note(void *context, const char *sentence)
{
    dt_progress_note(context, "%s", sentence);
}

struct dt_watch dt_progress_watch(struct dt_progress *progress)
{
    return (struct dt_watch){.context = progress,
                             .begins = begins,
                             .ended = ended,
                             .compares = compares,
                             .set = dt_progress_set,
                             .note = note};
}
