/* SPDX-License-Identifier: MIT */
/* The other side of tests/clock/virtual.c: eight bytes that the controller reads as its time. */
#include "tests/scenario/scenario.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int64_t *elapsed_ns; /* NULL: there is no virtual clock */

void clock_open(void)
{
    const char *path = getenv("DITTUNE_CLOCK");
    int fd = path != NULL ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (path == NULL)
        return;
    if (fd < 0 || ftruncate(fd, sizeof *elapsed_ns) != 0)
        die("cannot open the clock", path);
    void *mapped = mmap(NULL, sizeof *elapsed_ns, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED)
        die("cannot map the clock", path);
    elapsed_ns = mapped;
    close(fd);
}

void clock_move(double ns)
{
    if (elapsed_ns != NULL && ns > 0)
        __atomic_add_fetch(elapsed_ns, (int64_t)ns, __ATOMIC_SEQ_CST);
}

/* Each look of the controller at its clock moves the clock a little, so a clock that stands still means that the controller
 * has not looked. A heartbeat wakes it, and the clock is moved again only after it has looked: a deadline is overrun by few
 * steps, however slow the machine is. Without a virtual clock the worker only waits. */
void clock_move_for_ever(int out, double step_ns)
{
    static const char heartbeat[] = "{\"op\":\"heartbeat\"}\n";
    const struct timespec moment = {.tv_nsec = 200000};
    while (elapsed_ns == NULL)
        pause();
    for (;;) {
        int unread = 1;
        clock_move(step_ns);
        int64_t before = __atomic_load_n(elapsed_ns, __ATOMIC_SEQ_CST);
        write_all(out, heartbeat, sizeof heartbeat - 1);
        while (ioctl(out, FIONREAD, &unread) == 0 && unread > 0)
            nanosleep(&moment, NULL);
        while (__atomic_load_n(elapsed_ns, __ATOMIC_SEQ_CST) == before)
            nanosleep(&moment, NULL);
    }
}
