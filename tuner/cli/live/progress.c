/* SPDX-License-Identifier: MIT */
#include "tuner/cli/live/progress.h"

#include "base/clock.h"
#include "base/columns.h"
#include "base/figures.h"
#include "tuner/cli/live/screen.h"
#include "tuner/cli/live/stream.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REDRAW_NS (DT_NS_PER_SECOND / 4)

volatile int dt_progress_asked;

/* Draws the state, unless it was just drawn: a later tick does it then. */
static void draw_line(struct dt_progress *progress)
{
    int64_t now = dt_clock_ns();
    dt_auto_text text = {0};
    if (!progress->live || (now - progress->drawn_ns < REDRAW_NS && !dt_screen_stale()))
        return;
    progress->drawn_ns = now;
    dt_progress_text(progress, dt_columns_terminal(STDERR_FILENO) - 1, &text);
    dt_screen_draw(dt_text_at(&text));
}

/* An event "status", now or when a second has passed since the last one. */
static void stream_state(struct dt_progress *progress, bool now)
{
    int64_t least_ns = progress->streamed_ns + DT_NS_PER_SECOND;
    if (!dt_stream_is_open() || (!now && dt_clock_ns() < least_ns))
        return;
    progress->streamed_ns = dt_clock_ns();
    dt_stream_event("status", dt_progress_json(progress));
}

/* Prints the text, each line after the prefix. */
static void print_lines(const char *prefix, const char *text)
{
    while (*text != '\0') {
        dt_auto_text line = {0};
        size_t size = strcspn(text, "\n");
        dt_text_add(&line, "%s", prefix);
        dt_text_add_bytes(&line, text, size);
        text += size + (text[size] == '\n');
        if (dt_text_status(&line) == DT_OK)
            dt_text_clean(line.bytes);
        dt_screen_line(dt_text_at(&line));
    }
}

static void answer_status(struct dt_progress *progress)
{
    dt_auto_text text = {0};
    dt_progress_asked = 0;
    dt_progress_text(progress, 0, &text);
    print_lines("status: ", dt_text_at(&text));
    stream_state(progress, true);
}

/* Whole lines of the workers' standard error. */
static void write_output(void *context, const char *bytes, size_t size)
{
    struct dt_text *words = &((struct dt_progress *)context)->now.words;
    dt_text_add_bytes(words, bytes, size);
    char *last = words->size > 0 ? memrchr(words->bytes, '\n', words->size) : NULL;
    if (last == NULL)
        return;
    struct dt_text rest = {0};
    dt_text_add(&rest, "%s", last + 1);
    *last = '\0';
    print_lines("worker: ", words->bytes);
    dt_text_fini(words);
    *words = rest;
}

/* On a terminal, not in a log. */
static void write_confidence(void *context, const char *sentence)
{
    struct dt_progress *progress = context;
    if (!progress->quiet && isatty(STDERR_FILENO) == 1)
        print_lines("not stored (--private): ", sentence);
}

static void progress_tick(void *context, const char *phase, const char *said)
{
    struct dt_progress *progress = context;
    if (phase != progress->now.phase && progress->now.words.size > 0)
        write_output(progress, "\n", 1); /* perhaps another process is loaded now */
    progress->now.phase = phase;
    progress->now.said = said;
    if (progress->verbose && phase != progress->now.verbose) {
        progress->now.verbose = phase;
        double seconds = (double)(dt_clock_ns() - progress->began_ns) * 1e-9;
        dt_progress_note(progress, "%9s  %s", dt_figure_of(seconds).text, phase);
    }
    if (dt_progress_asked != 0)
        answer_status(progress);
    draw_line(progress);
    stream_state(progress, false);
    progress->now.said = NULL;
}

void dt_progress_init(struct dt_progress *progress, const struct dt_target *target,
                      enum dt_voice voice, int64_t deadline_ns)
{
    *progress = (struct dt_progress){.quiet = voice == DT_VOICE_QUIET,
                                     .verbose = voice == DT_VOICE_VERBOSE,
                                     .live = voice != DT_VOICE_QUIET && dt_screen_open(),
                                     .began_ns = dt_clock_ns(),
                                     .deadline_ns = deadline_ns,
                                     .target = target};
    dt_group_watch = (struct dt_group_watch){progress_tick, progress->verbose ? write_output : NULL,
                                             write_confidence, progress};
}

static void show_line(struct dt_progress *progress, const char *what)
{
    snprintf(progress->now.what, sizeof progress->now.what, "%s", what);
    dt_text_mend(progress->now.what);
    progress->now.verbose = NULL;
    draw_line(progress);
}

void dt_progress_now(struct dt_progress *progress, const struct dt_point *point, const char *stage)
{
    dt_auto_text text = {0};
    dt_text_add(&text, "%s", stage);
    if (point != NULL) {
        dt_text_add(&text, " ");
        dt_point_short(progress->target->space, point, &text);
    }
    show_line(progress, dt_text_at(&text));
    if (progress->verbose)
        print_lines("", dt_text_at(&text));
}

static void describe_trial(const struct dt_result *result, const char *metric, struct dt_text *out)
{
    const struct dt_interval *interval = &result->summary.interval;
    if (result->outcome != DT_TRIAL_OK && result->outcome != DT_TRIAL_SLOW) {
        dt_text_add(out, "%s: %s", dt_outcome_text(result->outcome), result->cause);
        return;
    }
    dt_figure_value(metric, result->summary.median, interval->low, interval->high, out);
    dt_text_add(out, ", %d sample%s%s%s", result->samples.n, result->samples.n == 1 ? "" : "s",
                result->outcome == DT_TRIAL_SLOW ? ", dropped: slow" : "",
                result->samples.steady ? "" : ", not steady");
    if (result->throttling.count > 0)
        dt_text_add(out, ", %d throttled", result->throttling.count);
}

/* The trial has failed; not: it was cut off by the end of the session. */
static bool count_trial(struct dt_counts *counts, const struct dt_result *result)
{
    bool cut_off = result->outcome == DT_TRIAL_INTERRUPTED;
    bool slow = result->outcome == DT_TRIAL_SLOW;
    bool failed = result->outcome != DT_TRIAL_OK && !slow && !cut_off;
    counts->done += !cut_off;
    counts->failed += failed;
    counts->cut += slow;
    return failed;
}

static void progress_trial(struct dt_progress *progress, const struct dt_result *result)
{
    dt_auto_text text = {0};
    int number = progress->counts.done + 1;
    bool failed = count_trial(&progress->counts, result);
    if (progress->quiet || (progress->live && !failed && !progress->verbose))
        return;
    dt_text_add(&text, "trial %-3d ", number);
    dt_point_short(progress->target->space, &result->point, &text);
    dt_text_add(&text, ": ");
    describe_trial(result, progress->target->objective->metric, &text);
    print_lines("", dt_text_at(&text));
}

void dt_progress_set(void *context, int set, int sets)
{
    struct dt_progress *progress = context;
    char what[80];
    snprintf(what, sizeof what, "%s, set %d of at most %d", progress->comparison, set, sets);
    show_line(progress, what);
    if (!progress->quiet && (!progress->live || progress->verbose))
        print_lines("", what);
}

void dt_progress_note(struct dt_progress *progress, const char *format, ...)
{
    char sentence[2048];
    va_list args;
    if (progress->quiet)
        return;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    dt_text_mend(sentence);
    print_lines("", sentence);
}

void dt_progress_end(struct dt_progress *progress)
{
    if (progress->now.words.size > 0)
        write_output(progress, "\n", 1);
    dt_text_fini(&progress->now.words);
    if (progress->live)
        dt_screen_close();
    if (dt_group_watch.context == progress)
        dt_group_watch = (struct dt_group_watch){.tick = NULL};
}

static void trial_begins(void *context, const struct dt_point *point)
{
    dt_progress_now(context, point, "trial");
}

static void trial_ended(void *context, const struct dt_session *session,
                        const struct dt_result *result)
{
    struct dt_progress *progress = context;
    const struct dt_result *fallback = dt_session_trial(session, &session->target->fallback);
    progress->best = dt_session_leader(session);
    progress->fallback = fallback != NULL && fallback->samples.n > 0 ? fallback : NULL;
    if (progress->best != NULL)
        dt_curve_add(&progress->curve, dt_session_value(session, progress->best), dt_clock_ns());
    progress->now.phase = NULL;
    progress_trial(progress, result);
    draw_line(progress);
    stream_state(progress, false);
}

static void comparison_begins(void *context, const char *name)
{
    struct dt_progress *progress = context;
    progress->comparison = name;
    show_line(progress, name);
    stream_state(progress, true);
}

static void progress_note(void *context, const char *sentence)
{
    dt_progress_note(context, "%s", sentence);
    if (dt_stream_is_open())
        dt_stream_event("note", json_pack("{s:s}", "text", sentence));
}

struct dt_watch dt_progress_watch(struct dt_progress *progress)
{
    return (struct dt_watch){.context = progress,
                             .begins = trial_begins,
                             .ended = trial_ended,
                             .compares = comparison_begins,
                             .set = dt_progress_set,
                             .note = progress_note};
}
