/* SPDX-License-Identifier: MIT */
/* gnuplot as a program: its script goes to standard input, one SVG comes from standard output. */
#include "tuner/cli/page/page_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };
extern char **environ;

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

static int start(int input, int output, pid_t *pid)
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
static bool drain(int fd, struct dt_text *out)
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

static dt_status run(const struct dt_text *script, struct dt_text *svg)
{
    int pipes[2], input = script_file(script), state = 0;
    pid_t pid;
    if (input < 0 || pipe2(pipes, O_CLOEXEC) != 0) {
        if (input >= 0)
            close(input);
        return dt_fail(DT_EIO, "cannot start gnuplot: %s", strerror(errno));
    }
    int error = start(input, pipes[1], &pid);
    close(pipes[1]);
    close(input);
    bool whole = error == 0 && drain(pipes[0], svg);
    close(pipes[0]);
    if (error != 0)
        return dt_fail(DT_EIO, "cannot start gnuplot: %s", strerror(error));
    if (!whole)
        kill(pid, SIGKILL);
    while (waitpid(pid, &state, 0) < 0 && errno == EINTR)
        ;
    if (!whole || state != 0)
        return dt_fail(DT_EIO, "gnuplot did not draw a figure");
    return dt_text_status(svg);
}

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
dt_status dt_page_gnuplot(const struct dt_text *script, const struct page_label *label,
                          struct dt_text *out)
{
    static const char canvas[] = "<g id=\"gnuplot_canvas\">";
    struct dt_text svg = {0}, named = {0};
    dt_status status = run(script, &svg);
    const char *box = status == DT_OK ? strstr(dt_text_at(&svg), "viewBox=\"") : NULL;
    const char *body = box != NULL ? strstr(box, canvas) : NULL;
    if (status == DT_OK && body == NULL)
        status = dt_fail(DT_EIO, "gnuplot did not draw a figure");
    if (status == DT_OK) {
        dt_text_add(out, "<svg %.*s\" role=\"img\" aria-label=\"",
                    (int)(9 + strcspn(box + 9, "\"")), box);
        dt_pen_escape(label->caption, out);
        dt_text_add(out, "\"><g>");
        add_renamed(body + sizeof canvas - 1, label->name, &named);
        out->failed = out->failed || named.failed;
        add_titled(dt_text_at(&named), label->titles, out);
    }
    dt_text_fini(&svg);
    dt_text_fini(&named);
    return status;
}
