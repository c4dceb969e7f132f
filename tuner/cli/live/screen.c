/* SPDX-License-Identifier: MIT */
/* The cursor rests at the end of the last line. Everything is relative to it, so
 * scrolling does no harm. What a narrower window wraps is not taken back: only rows that
 * are surely ours are erased. */
#include "tuner/cli/live/screen.h"

#include "base/columns.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ROWS_MOST 12

static struct {
    bool open;
    struct dt_text lines; /* the lines as last drawn, for lines above them */
    char erase[24];       /* codes that remove what is on the screen; "": nothing is */
    volatile sig_atomic_t stale;
} screen;

static void screen_put(const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t did = write(STDERR_FILENO, bytes, size);
        if (did < 0 && errno != EINTR)
            return; /* nobody reads it */
        bytes += did > 0 ? did : 0;
        size -= did > 0 ? (size_t)did : 0;
    }
}

void dt_screen_wipe(void)
{
    screen_put(screen.erase, strlen(screen.erase));
    screen.erase[0] = '\0';
}

static void on_resize(int number)
{
    (void)number;
    screen.stale = 1;
}

/* Stops as without a handler, and goes on with a new drawing below what the shell has written. */
static void on_stop(int number)
{
    struct sigaction ours, usual = {.sa_handler = SIG_DFL};
    sigset_t stop;
    int kept = errno;
    dt_screen_wipe();
    sigemptyset(&stop);
    sigaddset(&stop, number);
    sigaction(number, &usual, &ours);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &stop, NULL); /* the program is stopped here */
    sigaction(number, &ours, NULL);
    screen.stale = 1;
    errno = kept;
}

static void catch (int number, void (*handler)(int))
{
    struct sigaction before, action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

bool dt_screen_open(void)
{
    const char *term = getenv("TERM");
    screen.open = term != NULL && strcmp(term, "dumb") != 0 && isatty(STDERR_FILENO) == 1;
    if (screen.open) {
        catch (SIGWINCH, on_resize);
        catch (SIGTSTP, on_stop);
    }
    return screen.open;
}

bool dt_screen_stale(void)
{
    return screen.stale != 0;
}

/* Appends the lines cut to the terminal; returns their number. The last column stays free, since
 * some terminals wrap when it is written. */
static int add_lines(const char *lines, struct dt_text *out)
{
    struct winsize window = {0};
    int rows = 0, most = ROWS_MOST, columns = dt_columns_terminal(STDERR_FILENO) - 1;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_row > 0 &&
        window.ws_row <= ROWS_MOST)
        most = window.ws_row > 1 ? window.ws_row - 1 : 1;
    while (*lines != '\0' && rows < most) {
        size_t size = strcspn(lines, "\n");
        dt_text_add(out, "%s", rows++ > 0 ? "\n" : "");
        dt_text_add_bytes(out, lines, dt_columns_cut(lines, size, columns));
        lines += size + (lines[size] == '\n');
    }
    return rows;
}

/* Writes the line, which may be NULL, and the lines below it, in one piece: Ctrl-Z waits. */
static void screen_refresh(const char *line, const char *lines)
{
    dt_auto_text text = {0};
    sigset_t stop, before;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigprocmask(SIG_BLOCK, &stop, &before);
    screen.stale = 0;
    dt_text_add(&text, "%s", screen.erase);
    if (line != NULL)
        dt_text_add(&text, "%s\n", line);
    pid_t owner = tcgetpgrp(STDERR_FILENO); /* without a terminal nobody else writes to this one */
    int rows = owner < 0 || owner == getpgrp() ? add_lines(lines, &text) : 0;
    screen_put(dt_text_at(&text), text.size);
    screen.erase[0] = '\0';
    if (rows > 1)
        snprintf(screen.erase, sizeof screen.erase, "\r\033[%dA\033[J", rows - 1);
    else if (rows == 1)
        snprintf(screen.erase, sizeof screen.erase, "\r\033[J");
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void dt_screen_draw(const char *lines)
{
    if (!screen.open)
        return;
    dt_text_clear(&screen.lines);
    dt_text_add(&screen.lines, "%s", lines);
    dt_text_clean_lines(&screen.lines);
    screen_refresh(NULL, dt_text_at(&screen.lines));
}

void dt_screen_line(const char *line)
{
    screen_refresh(line, screen.open ? dt_text_at(&screen.lines) : "");
}

void dt_screen_close(void)
{
    if (!screen.open)
        return;
    dt_screen_wipe();
    catch (SIGWINCH, SIG_DFL);
    catch (SIGTSTP, SIG_DFL);
    dt_text_fini(&screen.lines);
    screen.open = false;
}

bool dt_screen_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != '\0')
            return strcasestr(value, "utf-8") != NULL || strcasestr(value, "utf8") != NULL;
    }
    return false;
}
