/* SPDX-License-Identifier: MIT */
/* gate - a function for cudaLaunchHostFunc that holds its stream until a test, or
 * another stream, opens it
 *
 * What must not have happened yet is certain while the gate is shut, however
 * busy the machine is. */
#ifndef DT_TESTS_FAKE_CUDA_GATE_H
#define DT_TESTS_FAKE_CUDA_GATE_H

#include <errno.h>
#include <semaphore.h>
#include <time.h>

struct gate {
    sem_t open;
};

static inline void gate_init(struct gate *gate)
{
    sem_init(&gate->open, 0, 0);
}

/* A stream's work that waits for the gate, for two minutes at most, so that a test that
 * never opens it fails. */
static inline void gate_wait(void *gate)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 120;
    while (sem_timedwait(&((struct gate *)gate)->open, &until) != 0 && errno == EINTR)
        ;
}

/* By the test, or as the function of another stream. */
static inline void gate_open(void *gate)
{
    sem_post(&((struct gate *)gate)->open);
}

#endif
