/* SPDX-License-Identifier: MIT */
#include "tests/kernels/fake_ranks/fake_int.h"

#include <stdio.h>
#include <stdlib.h>

dt_status dt_fake_new(int ranks, const struct dt_fake_options *options, struct dt_fake **out)
{
    size_t bytes = sizeof(struct dt_fake) + (size_t)ranks * sizeof(struct dt_fake_rank);
    struct dt_fake *fake = calloc(1, bytes);
    int *members = calloc((size_t)ranks, sizeof *members);
    pthread_mutexattr_t recursive;
    dt_status status = DT_OK;
    if (fake == NULL || members == NULL) {
        free(fake);
        free(members);
        return dt_fail(DT_ENOMEM, "out of memory for %d ranks", ranks);
    }
    fake->options = *options;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&fake->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    pthread_cond_init(&fake->changed, NULL);
    for (int i = 0; i < ranks; i++)
        members[i] = i;
    for (; status == DT_OK && fake->count < ranks; fake->count++)
        status =
            dt_fake_member(fake, 1, ranks, fake->count, members, &fake->ranks[fake->count].world);
    free(members);
    if (status != DT_OK) {
        dt_fake_free(fake);
        return status;
    }
    *out = fake;
    return DT_OK;
}

void dt_fake_free(struct dt_fake *fake)
{
    if (fake == NULL)
        return;
    for (int i = 0; i < fake->count; i++) {
        dt_comm_free(fake->ranks[i].world);
        dt_text_fini(&fake->ranks[i].log);
        dt_text_fini(&fake->ranks[i].order);
    }
    while (fake->messages != NULL) {
        struct dt_fake_message *next = fake->messages->next;
        free(fake->messages);
        fake->messages = next;
    }
    pthread_cond_destroy(&fake->changed);
    pthread_mutex_destroy(&fake->lock);
    free(fake);
}

struct dt_comm *dt_fake_comm(struct dt_fake *fake, int rank)
{
    return fake->ranks[rank].world;
}

struct job {
    pthread_t thread;
    bool started;
    struct dt_fake *fake;
    dt_status (*body)(struct dt_comm *comm, void *arg);
    struct dt_comm *comm;
    void *arg;
    dt_status status;
    struct dt_error error;
};

static void *work(void *arg)
{
    struct job *job = arg;
    job->status = dt_error_keep(&job->error, job->body(job->comm, job->arg));
    if (job->status < 0) {
        pthread_mutex_lock(&job->fake->lock);
        job->fake->broken = true; /* no rank waits for messages of this rank */
        pthread_cond_broadcast(&job->fake->changed);
        pthread_mutex_unlock(&job->fake->lock);
    }
    return NULL;
}

dt_status dt_fake_run(struct dt_fake *fake, dt_status (*body)(struct dt_comm *comm, void *arg),
                      void *arg, dt_status statuses[])
{
    struct job *jobs = calloc((size_t)fake->count, sizeof *jobs);
    dt_status first = DT_OK;
    if (jobs == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %d threads", fake->count);
    for (int i = 0; i < fake->count; i++) {
        jobs[i] =
            (struct job){.fake = fake, .body = body, .comm = fake->ranks[i].world, .arg = arg};
        jobs[i].started = pthread_create(&jobs[i].thread, NULL, work, &jobs[i]) == 0;
        if (!jobs[i].started)
            jobs[i].status = dt_fail(DT_ELIB, "cannot start thread %d", i);
    }
    for (int i = 0; i < fake->count; i++) {
        if (jobs[i].started)
            pthread_join(jobs[i].thread, NULL);
        if (statuses != NULL)
            statuses[i] = jobs[i].status;
        if (first != DT_OK || jobs[i].status == DT_OK)
            continue;
        first = jobs[i].status;
        if (jobs[i].started && first < 0)
            first = dt_error_raise(&jobs[i].error); /* the message is from another thread */
    }
    free(jobs);
    return first;
}

const char *dt_fake_log(const struct dt_fake *fake, int rank)
{
    return dt_text_at(&fake->ranks[rank].log);
}

const char *dt_fake_order(const struct dt_fake *fake, int rank)
{
    return dt_text_at(&fake->ranks[rank].order);
}

int dt_fake_exchanges(const struct dt_fake *fake, int rank)
{
    return fake->ranks[rank].exchanges;
}

int64_t dt_fake_clock_ns(const struct dt_fake *fake, int rank)
{
    return fake->ranks[rank].clock_ns;
}

int64_t dt_fake_exposed_ns(const struct dt_fake *fake, int rank)
{
    return fake->ranks[rank].exposed_ns;
}
