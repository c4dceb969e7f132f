/* SPDX-License-Identifier: MIT */
/* A timer whose signal goes to the thread that started the watch, never to one that a library has started: those of NCCL, NVML and
 * cuDNN would have to bear interrupted calls. */
#include "worker/watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_SECONDS 5

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid /* glibc before 2.38 has no name for it */
#endif

static volatile sig_atomic_t watched = -1;
static timer_t timer;
static bool ticking;

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
    const struct timespec period = {.tv_sec = PERIOD_SECONDS};
    const struct itimerspec often = {period, period};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGALRM};
    if (wire->pending.size > 0) /* a request is pending, so the other side exists */
        return;
    event.sigev_notify_thread_id = gettid();
    watched = wire->in;
    sigaction(SIGALRM, &action, NULL);
    ticking = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    if (ticking)
        timer_settime(timer, 0, &often, NULL);
}

void dt_watch_stop(void)
{
    if (ticking)
        timer_delete(timer);
    ticking = false;
    watched = -1;
}
