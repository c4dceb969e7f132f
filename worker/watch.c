/* SPDX-License-Identifier: MIT */
#include "worker/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#define PERIOD_SECONDS 5

static volatile sig_atomic_t watched = -1;

/* Safe in a signal handler. */
static bool hung_up(int fd)
{
    struct pollfd end = {.fd = fd, .events = POLLRDHUP};
    int unread = 0;
    return poll(&end, 1, 0) > 0 && (end.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0 &&
           ioctl(fd, FIONREAD, &unread) == 0 && unread == 0;
}

static void look(int number)
{
    int before = errno;
    (void)number;
    if (hung_up(watched))
        _exit(1);
    errno = before;
}

bool dt_watch_gone(const struct dt_wire *wire)
{
    return wire->pending.size == 0 && hung_up(wire->in);
}

void dt_watch_start(const struct dt_wire *wire)
{
    const struct sigaction action = {.sa_handler = look, .sa_flags = SA_RESTART};
    const struct timeval period = {.tv_sec = PERIOD_SECONDS};
    const struct itimerval timer = {period, period};
    if (wire->pending.size > 0) /* a request is pending, so the other side exists */
        return;
    watched = wire->in;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

void dt_watch_stop(void)
{
    const struct itimerval never = {0};
    setitimer(ITIMER_REAL, &never, NULL);
    watched = -1;
}
