/* SPDX-License-Identifier: MIT */
/* Figures: a gnuplot script of numbers and of words that mean nothing to it goes to the program's standard
 * input; one SVG comes from its standard output, and gets the page's names and tooltips. */
#include "tuner/cli/page/figure.h"

#include "base/figures.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, TICKS_MOST = 40 };
extern char **environ;

/* ---- the program */

/* The script in memory, as a file at its beginning; -1: no memory. */
static int script_file(const struct dt_text *script)
{
    int fd = memfd_create("script", MFD_CLOEXEC);
    size_t done = 0;
    while (fd >= 0 && done < script->size) {
        ssize_t put = write(fd, script->bytes + done, script->size - done);
        if (put < 0 && errno != EINTR) {
            close(fd);
            return -1;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_SET);
    return fd;
}

static int gnuplot_start(int input, int output, pid_t *pid)
{
    char *const argv[] = {"gnuplot", NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (error == 0)
        error = posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Until its end; false: nothing came for too long. */
static bool pipe_drain(int fd, struct dt_text *out)
{
    char block[65536];
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = poll(&wait, 1, PATIENCE_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t got = read(fd, block, sizeof block);
        if (got == 0)
            return true;
        if (got > 0)
            dt_text_add_bytes(out, block, (size_t)got);
        else if (errno != EINTR)
            return false;
    }
}

static dt_status gnuplot_run(const struct dt_text *script, struct dt_text *svg)
{
    int pipes[2], input = script_file(script), state = 0;
    pid_t pid;
    if (input < 0 || pipe2(pipes, O_CLOEXEC) != 0) {
        if (input >= 0)
            close(input);
        return dt_fail(DT_EIO, "cannot start gnuplot: %s", strerror(errno));
    }
    int error = gnuplot_start(input, pipes[1], &pid);
    close(pipes[1]);
    close(input);
    bool complete = error == 0 && pipe_drain(pipes[0], svg);
    close(pipes[0]);
    if (error != 0)
        return dt_fail(DT_EIO, "cannot start gnuplot: %s", strerror(error));
    if (!complete)
        kill(pid, SIGKILL);
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    if (!complete || state != 0)
        return dt_fail(DT_EIO, "gnuplot did not draw a figure");
    return dt_text_status(svg);
}

/* ---- its SVG: names and tooltips */

/* Text without gnuplot's own titles, which are names of its plots. */
static void add_untitled(const char *at, const char *end, struct dt_text *out)
{
    static const char open[] = "<title>", close[] = "</title>";
    while (at < end) {
        const char *title = memmem(at, (size_t)(end - at), open, sizeof open - 1);
        const char *after = title != NULL ? strstr(title, close) : NULL;
        dt_text_add_bytes(out, at, (size_t)((after != NULL ? title : end) - at));
        at = after != NULL ? after + sizeof close - 1 : end;
    }
}

/* The next point or bar of text before `end`; NULL: none. *size: of its tag. */
static const char *next_mark(const char *text, const char *end, size_t *size)
{
    static const char *const marks[] = {"<use ", "<polygon "};
    const char *first = NULL;
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(text, marks[i]);
        if (at != NULL && at < end && (first == NULL || at < first))
            first = at;
    }
    const char *close = first != NULL ? strstr(first, "/>") : NULL;
    *size = close != NULL ? (size_t)(close - first) : 0;
    return close != NULL ? first : NULL;
}

/* The group of the plot, from 1; NULL: none. */
static const char *group_of(const char *svg, int plot)
{
    char id[24];
    snprintf(id, sizeof id, "_plot_%d\"", plot);
    return strstr(svg, id);
}

/* Titles are lines: the next point of the plot has the next one, none where the line is empty; "\f" leads to the next plot. */
static void add_titled(const char *svg, const char *titles, struct dt_text *out)
{
    int plot = 1;
    const char *at = svg, *whole = svg + strlen(svg), *mark = group_of(svg, plot);
    for (size_t line, size; mark != NULL && *titles != '\0'; titles += line + 1) {
        const char *next = group_of(mark, plot + 1), *end = next != NULL ? next : whole;
        line = strcspn(titles, "\n");
        if (*titles == '\f') {
            plot++;
            mark = next;
            continue;
        }
        const char *found = next_mark(mark, end, &size);
        if (found == NULL)
            continue;
        mark = found + size;
        if (line == 0)
            continue;
        static const char use[] = "<use ";
        add_untitled(at, mark, out);
        dt_text_add(out, "><title>");
        dt_text_add_bytes(out, titles, line);
        dt_text_add(out, "</title></%s>",
                    strncmp(found, use, sizeof use - 1) == 0 ? "use" : "polygon");
        at = mark = mark + 2;
    }
    add_untitled(at, whole, out);
}

/* gnuplot's symbols have the same names in each figure: a page needs names of their own. */
static void add_renamed(const char *svg, const char *name, struct dt_text *out)
{
    static const char *const before[] = {"id='", "href='#", "url(#"};
    while (*svg != '\0') {
        size_t known = 0;
        for (int i = 0; i < 3 && known == 0; i++)
            if (strncmp(svg, before[i], strlen(before[i])) == 0)
                known = strlen(before[i]);
        dt_text_add_bytes(out, svg, known > 0 ? known : 1);
        if (known > 0)
            dt_text_add(out, "%s-", name);
        svg += known > 0 ? known : 1;
    }
}

/* The root element is written anew: names of gnuplot's would be there once for each figure. */
static dt_status figure_draw(const struct page_figure *figure, const char *caption,
                             struct dt_text *out)
{
    static const char canvas[] = "<g id=\"gnuplot_canvas\">";
    struct dt_text svg = {0}, named = {0};
    dt_status status = gnuplot_run(&figure->script, &svg);
    const char *box = status == DT_OK ? strstr(dt_text_at(&svg), "viewBox=\"") : NULL;
    const char *body = box != NULL ? strstr(box, canvas) : NULL;
    if (status == DT_OK && body == NULL)
        status = dt_fail(DT_EIO, "gnuplot did not draw a figure");
    if (status == DT_OK) {
        dt_text_add(out, "<svg %.*s\" role=\"img\" aria-label=\"",
                    (int)(9 + strcspn(box + 9, "\"")), box);
        dt_pen_escape(caption, out);
        dt_text_add(out, "\"><g>");
        add_renamed(body + sizeof canvas - 1, figure->name, &named);
        out->failed = out->failed || named.failed;
        add_titled(dt_text_at(&named), dt_text_at(&figure->titles), out);
    }
    dt_text_fini(&svg);
    dt_text_fini(&named);
    return status;
}

/* ---- the script */

/* Colours that gnuplot writes, and the script's names of them; page.css gives them their look. */
static const struct {
    const char *number, *name;
} colours[] = {{"010203", "ink"},   {"020304", "grid"}, {"030405", "main"}, {"040506", "second"},
               {"050607", "third"}, {"060708", "bad"},  {"070809", "dim"},  {"08090a", "noise"}};
enum { COLOURS = sizeof colours / sizeof colours[0] };

void dt_page_figure_word(const char *text, int most, struct dt_text *out)
{
    for (int i = 0; i < most && text[i] != '\0'; i++) {
        char c = text[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                     strchr("._-+/=:, ()%", c) != NULL;
        dt_text_add(out, "%c", plain ? c : '?');
    }
}

static void figure_axis(struct page_figure *figure, char axis, const char *text)
{
    dt_text_add(&figure->script, "set %clabel '", axis);
    dt_page_figure_word(text, 60, &figure->script);
    dt_text_add(&figure->script, "' tc rgb c_ink\n");
}

void dt_page_figure_begin(struct page_figure *figure, const struct page_view *view,
                          const char *name, const char *x, const char *y)
{
    bool small = strncmp(name, "effect", 6) == 0;
    *figure = (struct page_figure){.view = view, .small = small};
    snprintf(figure->name, sizeof figure->name, "%s%s", view->prefix, name);
    struct dt_text *script = &figure->script;
    for (int i = 0; i < COLOURS; i++)
        dt_text_add(script, "c_%s = '#%s'\n", colours[i].name, colours[i].number);
    dt_text_add(script,
                "set term svg size %s dynamic noenhanced font 'sans-serif,13' name '%s'\n"
                "set datafile missing '?'\nset border 3 lc rgb c_grid\n"
                "set tics nomirror tc rgb c_ink\nset grid lc rgb c_grid lw 0.6 lt 1\n"
                "set key outside top left Left reverse horizontal tc rgb c_ink samplen 1\n",
                small ? "360,260" : "560,300", figure->name);
    figure_axis(figure, 'x', x);
    figure_axis(figure, 'y', y);
}

/* The series before, if it has points, becomes a part of the plot. */
static void series_end(struct page_figure *figure)
{
    if (figure->clause[0] == '\0')
        return;
    dt_text_add(&figure->script, "EOD\n");
    if (figure->points > 0)
        dt_text_add(&figure->plot, "%s", figure->plot.size > 0 ? ", " : "plot ");
    for (const char *at = figure->clause; *at != '\0' && figure->points > 0; at++) {
        if (*at != '@') {
            dt_text_add(&figure->plot, "%c", *at);
            continue;
        }
        dt_text_add(&figure->plot, "$d%d", figure->series);
        dt_text_add(&figure->titles, "\f\n");
    }
    figure->clause[0] = '\0';
    figure->points = 0;
    figure->series++;
}

void dt_page_figure_series(struct page_figure *figure, const char *format, ...)
{
    va_list arguments;
    series_end(figure);
    va_start(arguments, format);
    vsnprintf(figure->clause, sizeof figure->clause, format, arguments);
    va_end(arguments);
    dt_text_add(&figure->script, "$d%d << EOD\n", figure->series);
}

void dt_page_figure_point(struct page_figure *figure, const double values[], size_t n)
{
    for (size_t i = 0; i < n; i++)
        dt_text_add(&figure->script, isfinite(values[i]) ? " %.7g" : " ?", values[i]);
    dt_text_add(&figure->script, "\n");
    figure->points++;
}

void dt_page_figure_finish(struct page_figure *figure, const char *caption, struct dt_text *out)
{
    struct dt_text svg = {0};
    series_end(figure);
    dt_text_add(&figure->script, "%s\n", dt_text_at(&figure->plot));
    bool sound = dt_text_status(&figure->script) == DT_OK &&
                 dt_text_status(&figure->titles) == DT_OK && figure->plot.size > 0 &&
                 figure_draw(figure, caption, &svg) == DT_OK;
    if (sound) {
        dt_text_add(out, figure->small ? "<figure class=\"small\">" : "<figure>");
        dt_text_add_bytes(out, dt_text_at(&svg), svg.size);
        dt_text_add(out, "<figcaption>");
        dt_pen_escape(caption, out);
        dt_text_add(out, "</figcaption></figure>\n");
    }
    dt_text_fini(&svg);
    dt_text_fini(&figure->script);
    dt_text_fini(&figure->plot);
    dt_text_fini(&figure->titles);
}

void dt_page_figure_say(struct page_figure *figure, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL;
    va_end(arguments);
    figure->titles.failed = figure->titles.failed || text == NULL;
    dt_pen_escape(text != NULL ? text : "", &figure->titles);
    dt_text_add(&figure->titles, "\n");
    free(text);
}

void dt_page_figure_title(struct page_figure *figure, const struct page_row *row)
{
    const struct page_view *view = figure->view;
    struct dt_text words = {0};
    dt_text_add(&words, "trial %d: ", row->number);
    dt_page_plan(view, &row->result->point, &words);
    if (isfinite(row->value))
        dt_text_add(&words, ", %s %s", dt_figure_number(row->value / view->time.size).text,
                    view->time.name);
    if (row->result->outcome != DT_TRIAL_OK)
        dt_text_add(&words, ", %s", dt_outcome_text(row->result->outcome));
    if (row->result->cause[0] != '\0')
        dt_text_add(&words, ": %s", row->result->cause);
    if (row->result->peak_bytes > 0)
        dt_text_add(&words, ", %s", dt_figure_bytes_of(row->result->peak_bytes).text);
    dt_page_figure_say(figure, "%s", dt_text_at(&words));
    dt_text_fini(&words);
}

static void add_tick(double tick, int *n, struct dt_text *out)
{
    dt_text_add(out, "%s%g", (*n)++ > 0 ? ", " : "", tick);
}

/* Over more than a decade 1, 2 and 5 times the powers of ten, else three to eight even steps: gnuplot's own ticks are the
 * powers alone. */
static void add_ticks(double low, double high, struct dt_text *out)
{
    static const double parts[] = {1, 2, 5};
    int n = 0, decade = (int)floor(log10(low));
    for (int i = 0; high > 10 * low && i < 3 * TICKS_MOST && n < TICKS_MOST; i++) {
        double tick = parts[i % 3] * pow(10, decade + i / 3);
        if (tick >= low && tick <= high)
            add_tick(tick, &n, out);
    }
    if (n > 0)
        return;
    double third = (high - low) / 3, power = pow(10, floor(log10(third)));
    double step = power * (third >= 5 * power ? 5 : third >= 2 * power ? 2 : 1);
    for (int i = 0; i < TICKS_MOST; i++) {
        double tick = step * (ceil(low / step) + i);
        if (tick <= high)
            add_tick(tick, &n, out);
    }
}

void dt_page_figure_log(struct page_figure *figure, char axis, double low, double high)
{
    struct dt_text *script = &figure->script;
    dt_text_add(script, "set logscale %c\n", axis);
    low *= 0.93;
    high *= 1.07;
    if (!(low > 1e-12) || !(high < 1e12) || !(low < high))
        return; /* gnuplot finds a range and ticks by itself */
    dt_text_add(script, "set %crange [%.6g:%.6g]\nset %ctics (", axis, low, high, axis);
    add_ticks(low, high, script);
    dt_text_add(script, ")\n");
}

void dt_page_figure_times(struct page_figure *figure)
{
    const struct page_view *view = figure->view;
    double low = INFINITY, high = 0, size = view->time.size;
    for (int i = 0; i < view->count; i++)
        if (isfinite(view->rows[i].value)) {
            struct dt_trial trial = dt_result_trial(view->rows[i].result, view->session->target);
            low = fmin(low, fmin(view->rows[i].value, isfinite(trial.low) ? trial.low : INFINITY));
            high = fmax(high, fmax(view->rows[i].value, isfinite(trial.high) ? trial.high : 0));
        }
    dt_page_figure_log(figure, 'y', low / size, high / size);
}
