/* SPDX-License-Identifier: MIT */
/* path - a file of a test's own: fixtures of a group make it and remove it */
#ifndef DT_TESTS_LIB_PATH_H
#define DT_TESTS_LIB_PATH_H

#include <stdlib.h>
#include <unistd.h>

static char path[] = "/tmp/dt-test-XXXXXX";

static inline int make_path(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static inline int remove_path(void **state)
{
    (void)state;
    return unlink(path);
}

#endif
