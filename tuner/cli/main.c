/* SPDX-License-Identifier: MIT */
/* dittune - the controller. Only this file chooses the exit code. */
#include "base/clock.h"
#include "tuner/cli/live/progress.h"
#include "tuner/cli/live/screen.h"
#include "tuner/cli/live/stream.h"
#include "tuner/cli/options.h"
#include "tuner/cli/signals.h"
#include "tuner/runner/runner.h"

#include <fcntl.h>
#include <gsl/gsl_errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first signal ends the session and stores its results. Another one more than a second later
 * ends the program at once (supervisors see the end of their pipe and clean up); an earlier one is
 * ignored as a repetition, as from timeout(1). */
static void on_signal(int number)
{
    static volatile int64_t first_ns;
    int64_t now = dt_clock_machine_ns();
    if (dt_group_interrupted != 0 && now - first_ns > DT_NS_PER_SECOND) {
        dt_screen_wipe();
        _exit(128 + number);
    }
    if (dt_group_interrupted == 0)
        first_ns = now;
    dt_group_interrupted = dt_group_interrupted == 0 ? number : dt_group_interrupted;
}

static void on_ask(int number)
{
    (void)number;
    dt_progress_asked = 1;
}

/* Turns a closed reader (SIGPIPE) and the limit of file sizes (SIGXFSZ) into errors
 * of the writing call. */
static void catch_signals(void)
{
    struct sigaction ask = {.sa_handler = on_ask, .sa_flags = SA_RESTART};
    dt_signals_catch(on_signal);
    sigemptyset(&ask.sa_mask);
    sigaction(SIGUSR1, &ask, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* command: NULL for the short help. */
static dt_status print_help(const struct dt_command *command, FILE *out)
{
    dt_auto_text text = {0};
    dt_options_help(command, false, &text);
    dt_status status = dt_text_status(&text);
    fputs(dt_text_at(&text), out);
    return status;
}

int main(int argc, char **argv)
{
    struct dt_options options;
    const struct dt_command *command = NULL;
    /* closed standard descriptors are opened, so that no pipe or file gets their numbers; using
     * them still fails */
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            _exit(74);
    gsl_set_error_handler_off();
    catch_signals();
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return printf("dittune %s\n", DT_VERSION) > 0 ? 0 : 74;
    if (argc < 2)
        return dt_status_exit(print_help(NULL, stderr) < 0 ? DT_ENOMEM : DT_EUSAGE);
    bool none_named = argv[1][0] == '-';
    dt_status status = dt_options_parse(argc, (const char *const *)argv, &options, &command);
    if (status >= 0 && options.print.stream && !options.print.help)
        dt_stream_open();
    if (status >= 0)
        status = options.print.help ? print_help(none_named ? NULL : command, stdout)
                                    : command->run(&options);
    if (status == DT_EINTR)
        status = dt_signals_status(dt_group_interrupted);
    if (status < 0 && dt_message()[0] != '\0')
        fprintf(stderr, "dittune: %s\n", dt_message());
    int code = status < 0 ? dt_status_exit(status) : 0;
    bool streamed = !dt_stream_is_open() || dt_stream_end(code, status < 0 ? dt_message() : "");
    if (!streamed || fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "dittune: cannot write to standard output\n");
        return 74;
    }
    return code;
}
