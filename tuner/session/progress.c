/* SPDX-License-Identifier: MIT */
#include "tuner/session/progress.h"

#include "base/clock.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void dt_progress_init(struct dt_progress *progress, const struct dt_target *target, bool quiet,
                      int64_t deadline_ns)
{
    const char *term = getenv("TERM");
    bool dumb = term == NULL || strcmp(term, "dumb") == 0;
    *progress = (struct dt_progress){.quiet = quiet,
                                     .live = !dumb && isatty(STDERR_FILENO) == 1,
                                     .began_ns = dt_clock_ns(),
                                     .deadline_ns = deadline_ns,
                                     .target = target};
}

static void clear(struct dt_progress *progress)
{
    if (progress->drawn > 0)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}

static double seconds(int64_t ns)
{
    return (double)ns * 1e-9;
}

/* "best 81.2 ms [80.1, 82.0], 1.12x the default's speed" */
static void describe_best(const struct dt_progress *progress, struct dt_text *out)
{
    if (progress->best == NULL)
        return;
    const struct dt_summary *summary = &progress->best->summary;
    dt_text_add(out, " | best %.4g ms [%.4g, %.4g]", summary->median * 1e3,
                summary->interval.low * 1e3, summary->interval.high * 1e3);
    if (progress->fallback == progress->best) {
        dt_text_add(out, ", the default");
    } else if (progress->fallback != NULL) {
        double a = dt_result_trial(progress->fallback, progress->target).value;
        double b = dt_result_trial(progress->best, progress->target).value;
        dt_text_add(out, ", %.2fx default", a / b);
    }
}

static void draw(struct dt_progress *progress, const char *what)
{
    struct dt_text line = {0};
    double used = seconds(dt_clock_ns() - progress->began_ns);
    double all = seconds(progress->deadline_ns - progress->began_ns);
    dt_text_add(&line, "%3.0f/%.0f s | %d trials, %d failed", used, all, progress->done,
                progress->failed);
    describe_best(progress, &line);
    dt_text_add(&line, " | %s", what);
    dt_text_clean_lines(&line);
    clear(progress);
    fprintf(stderr, "%.118s", dt_text_at(&line));
    fflush(stderr);
    progress->drawn = true;
    dt_text_fini(&line);
}

void dt_progress_now(struct dt_progress *progress, const struct dt_point *point, const char *stage)
{
    if (progress->quiet || !progress->live)
        return;
    struct dt_text text = {0};
    dt_text_add(&text, "%s ", stage);
    if (point != NULL)
        dt_point_short(progress->target->space, point, &text);
    draw(progress, dt_text_at(&text));
    dt_text_fini(&text);
}

static void describe(const struct dt_result *result, struct dt_text *out)
{
    const struct dt_interval *interval = &result->summary.interval;
    if (result->outcome != DT_TRIAL_OK && result->outcome != DT_TRIAL_SLOW) {
        dt_text_add(out, "%s: %s", dt_outcome_text(result->outcome), result->cause);
        return;
    }
    dt_text_add(out, "%.4g ms", result->summary.median * 1e3);
    if (isfinite(interval->low))
        dt_text_add(out, " [%.4g, %.4g]", interval->low * 1e3, interval->high * 1e3);
    dt_text_add(out, ", %d samples%s%s", result->n,
                result->outcome == DT_TRIAL_SLOW ? ", dropped: slow" : "",
                result->steady ? "" : ", not steady");
    if (result->throttled_steps > 0)
        dt_text_add(out, ", %d throttled", result->throttled_steps);
}

void dt_progress_trial(struct dt_progress *progress, const struct dt_result *result)
{
    bool failed = result->outcome != DT_TRIAL_OK && result->outcome != DT_TRIAL_SLOW &&
                  result->outcome != DT_TRIAL_INTERRUPTED;
    struct dt_text text = {0};
    progress->done++;
    progress->failed += failed;
    if (progress->quiet || (progress->live && !failed))
        return;
    dt_text_add(&text, "trial %-3d ", progress->done);
    dt_point_short(progress->target->space, &result->point, &text);
    dt_text_add(&text, ": ");
    describe(result, &text);
    dt_text_clean_lines(&text);
    clear(progress);
    fprintf(stderr, "%s\n", dt_text_at(&text));
    dt_text_fini(&text);
}

void dt_progress_round(void *context, int round, int rounds)
{
    struct dt_progress *progress = context;
    char what[64];
    if (progress->quiet)
        return;
    snprintf(what, sizeof what, "%s, round %d of at most %d", progress->comparison, round, rounds);
    if (progress->live)
        draw(progress, what);
    else if (round % 8 == 0)
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
}
