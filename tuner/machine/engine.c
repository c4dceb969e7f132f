/* SPDX-License-Identifier: MIT */
#include "tuner/machine/machine_int.h"

#include "base/host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME_MOST 48

/* Engines whose workers come with dittune, as extras of its Python package: the
 * programs in pyproject.toml. */
static const char *const shipped[] = {
#include "workers.inc"
    NULL};

/* It becomes a part of a file's name, so nothing in it may lead elsewhere. */
static dt_status check_name(const char *engine)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t size = strlen(engine);
    if (strspn(engine, allowed) == size && size <= NAME_MOST)
        return DT_OK;
    if (strchr(engine, ':') != NULL)
        return dt_fail(DT_EUSAGE,
                       "--engine '%.80s' names a version, but a worker runs the version that is "
                       "installed: versions are for lookup, models and explain",
                       engine);
    return dt_fail(DT_EUSAGE,
                   "--engine '%.80s' is not the name of an engine such as diffusers: letters, "
                   "digits, '.', '_' and '-', at most %d",
                   engine, NAME_MOST);
}

static dt_status engine_missing(const char *engine)
{
    if (dt_text_index(engine, shipped) >= 0)
        return dt_fail(DT_EUSAGE,
                       "the worker of the engine %s is not installed: pip install "
                       "'dittune[%s]' with dittune's wheel (docs/build.md)",
                       engine, engine);
    const char *near = dt_json_nearest(engine, shipped);
    return dt_fail(
        DT_EUSAGE,
        "there is no dittune-worker-%s beside dittune or in PATH (--worker PROGRAM names "
        "a program of your own)%s%s%s",
        engine, near != NULL ? ": did you mean --engine " : "", near != NULL ? near : "",
        near != NULL ? "?" : "");
}

/* In the folder of the name that dittune was called by: a Python environment's programs, while the
 * package has dittune. */
static bool beside_caller(const char *name, char program[DT_PROGRAM_ROOM])
{
    const char *called = program_invocation_name, *slash = strrchr(called, '/');
    int size = slash == NULL ? 0 : (int)(slash - called) + 1;
    return size > 0 &&
           snprintf(program, DT_PROGRAM_ROOM, "%.*s%s", size, called, name) < DT_PROGRAM_ROOM &&
           access(program, X_OK) == 0;
}

dt_status dt_machine_engine(const char *engine, char program[DT_PROGRAM_ROOM])
{
    char name[NAME_MOST + 32], found[DT_PROGRAM_ROOM];
    DT_TRY(check_name(engine));
    snprintf(name, sizeof name, "dittune-worker-%s", engine);
    dt_machine_beside(name, found);
    if (access(found, X_OK) != 0 && !beside_caller(name, found) &&
        !dt_host_program(name, found, sizeof found))
        return engine_missing(engine);
    memcpy(program, found, sizeof found);
    return DT_OK;
}
