/* SPDX-License-Identifier: MIT */
/* The machine's settings, planted faults, and complaints.
 *
 * fault=WHAT,at=N,do=ACT,code=C,rank=R,ms=M,once,always: WHAT is a function's name (it returns C
 * and does nothing), `launch` (the N-th task of a device fails: C is then sticky) or `exchange`
 * (the N-th exchange a rank posts: delay, drop, error, hang, corrupt), or `any` (the N-th call of
 * any function). ncclCommAbort knows do=hang. at=0 means each call. */
#include "tests/fake_cuda/fake_cuda.h"
#include "tests/fake_cuda/machine.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct fake_settings fake_settings;
static atomic_int fired;

static char complaint[512];
static pthread_mutex_t complaint_mutex = PTHREAD_MUTEX_INITIALIZER;

static int64_t size_of(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    const char *units = "kmgt", *unit = *end != 0 ? strchr(units, *end) : NULL;
    for (int i = 0; unit != NULL && i <= unit - units; i++)
        value *= 1024;
    return (int64_t)value;
}

static void copy_text(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from);
}

static void read_fault(char *text, struct fake_fault *fault)
{
    char *rest = NULL, *word = strtok_r(text, ",", &rest);
    copy_text(fault->what, sizeof fault->what, word != NULL ? word : "");
    copy_text(fault->act, sizeof fault->act, "fail");
    fault->at = 1;
    fault->rank = -1;
    while ((word = strtok_r(NULL, ",", &rest)) != NULL) {
        char *value = strchr(word, '=');
        if (value != NULL)
            *value++ = 0;
        const char *given = value != NULL ? value : "1";
        int number = (int)strtol(given, NULL, 10);
        if (strcmp(word, "at") == 0)
            fault->at = number;
        else if (strcmp(word, "do") == 0)
            copy_text(fault->act, sizeof fault->act, given);
        else if (strcmp(word, "code") == 0)
            fault->code = number;
        else if (strcmp(word, "rank") == 0 || strcmp(word, "device") == 0)
            fault->rank = number;
        else if (strcmp(word, "ms") == 0)
            fault->ms = number;
        else if (strcmp(word, "once") == 0)
            fault->once = true;
        else if (strcmp(word, "always") == 0)
            fault->always = true;
        else
            fake_complain("DITTUNE_FAKE_CUDA: a fault has no %s", word);
    }
}

/* name, where it goes, what it is: n a number, s a size, t a text */
struct row {
    const char *name;
    char kind;
    void *at;
    size_t room;
};

static bool read_row(const struct row *row, const char *value)
{
    if (row->kind == 'n')
        *(int *)row->at = (int)strtol(value, NULL, 10);
    else if (row->kind == 's')
        *(int64_t *)row->at = size_of(value);
    else
        copy_text(row->at, row->room, value);
    return true;
}

static void read_setting(struct fake_settings *s, const char *name, char *value)
{
    const struct row rows[] = {
        {"devices", 'n', &s->devices, 0},       {"memory", 's', &s->memory, 0},
        {"poison", 's', &s->poison, 0},         {"context", 's', &s->context, 0},
        {"name", 't', s->name, sizeof s->name}, {"sms", 'n', &s->multiprocessors, 0},
        {"major", 'n', &s->major, 0},           {"minor", 'n', &s->minor, 0},
        {"driver", 'n', &s->driver, 0},         {"delay", 'n', &s->delay_us, 0},
        {"peers", 'n', &s->peers, 0},           {"init", 'n', &s->init_ms, 0},
        {"box", 't', s->box, sizeof s->box},    {"host", 't', s->host, sizeof s->host},
        {"nvml", 't', s->nvml, sizeof s->nvml}, {"lt", 't', s->lt, sizeof s->lt},
    };
    if (strcmp(name, "seed") == 0) {
        s->seed = strtoull(value, NULL, 10);
        return;
    }
    if (strcmp(name, "fault") == 0 && s->fault_count < FAKE_FAULTS) {
        read_fault(value, &s->faults[s->fault_count++]);
        return;
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(name, rows[i].name) == 0 && read_row(&rows[i], value))
            return;
    fake_complain("DITTUNE_FAKE_CUDA: there is no setting %s", name);
}

void fake_settings_read(const char *text, struct fake_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    atomic_store(&fired, 0);
    settings->devices = 2;
    settings->multiprocessors = 132;
    settings->major = 9;
    settings->driver = -1;
    settings->delay_us = 200;
    settings->peers = 1;
    settings->init_ms = 3;
    settings->memory = (int64_t)1 << 31;
    settings->context = (int64_t)16 << 20;
    settings->poison = INT64_MAX;
    settings->seed = 1;
    copy_text(settings->name, sizeof settings->name, "Fake GPU");
    if (text == NULL)
        return;
    char all[1024], *rest = NULL;
    copy_text(all, sizeof all, text);
    for (char *word = strtok_r(all, ":", &rest); word != NULL; word = strtok_r(NULL, ":", &rest)) {
        char *value = strchr(word, '=');
        if (value == NULL) {
            fake_complain("DITTUNE_FAKE_CUDA: %s has no value", word);
            continue;
        }
        *value++ = 0;
        read_setting(settings, word, value);
    }
    if (settings->devices > FAKE_DEVICES)
        settings->devices = FAKE_DEVICES;
}

int dt_fake_cuda_fired(void)
{
    return atomic_load(&fired);
}

static bool is_meant(const struct fake_fault *fault, const char *what, int rank)
{
    bool named = strcmp(fault->what, what) == 0;
    bool any = strcmp(fault->what, "any") == 0 && strcmp(what, "launch") != 0 &&
               strcmp(what, "exchange") != 0;
    return (named || any) && (fault->rank < 0 || fault->rank == rank);
}

const struct fake_fault *fake_fault(const char *what, int rank)
{
    for (int i = 0; i < fake_settings.fault_count; i++) {
        struct fake_fault *fault = &fake_settings.faults[i];
        if (!is_meant(fault, what, rank))
            continue;
        int seen = atomic_fetch_add(&fault->seen, 1) + 1;
        if (fault->at != 0 && seen != fault->at && !(fault->always && seen > fault->at))
            continue;
        uint32_t bit = (uint32_t)1 << i;
        if (fault->once && (atomic_fetch_or(&fake_box->fired, bit) & bit) != 0)
            continue;
        atomic_fetch_add(&fired, 1);
        return fault;
    }
    return NULL;
}

void fake_sleep_ms(int ms)
{
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

void fake_complain(const char *format, ...)
{
    char line[512], path[300];
    va_list list;
    va_start(list, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it was started above */
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    pthread_mutex_lock(&complaint_mutex);
    if (complaint[0] == 0)
        copy_text(complaint, sizeof complaint, line);
    pthread_mutex_unlock(&complaint_mutex);
    if (fake_settings.box[0] == 0)
        return;
    snprintf(path, sizeof path, "%s.log", fake_settings.box);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) {
        dprintf(file, "%d: %s\n", (int)getpid(), line);
        close(file);
    }
}

const char *dt_fake_cuda_complaint(void)
{
    static _Thread_local char copy[512];
    pthread_mutex_lock(&complaint_mutex);
    memcpy(copy, complaint, sizeof copy);
    pthread_mutex_unlock(&complaint_mutex);
    return copy;
}

void fake_complaints_clear(void)
{
    pthread_mutex_lock(&complaint_mutex);
    complaint[0] = 0;
    pthread_mutex_unlock(&complaint_mutex);
}
