/* SPDX-License-Identifier: MIT */
#include "tuner/machine/machine_int.h"

#include "base/host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME_MOST 48

/* Engines whose workers come with dittune, as extras of the Python package dittune-workers: its programs in pyproject.toml. */
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

static dt_status missing(const char *engine)
{
    if (dt_text_index(engine, shipped) >= 0)
        return dt_fail(DT_EUSAGE,
                       "the worker of the engine %s is not installed: pip install "
                       "'./workers[%s]' in the folder of dittune's source",
                       engine, engine);
    const char *near = dt_json_nearest(engine, shipped);
    return dt_fail(
        DT_EUSAGE,
        "there is no dittune-worker-%s beside dittune or in PATH (--worker PROGRAM names "
        "a program of your own)%s%s%s",
        engine, near != NULL ? ": did you mean --engine " : "", near != NULL ? near : "",
        near != NULL ? "?" : "");
}

dt_status dt_machine_engine(const char *engine, char program[DT_PROGRAM_ROOM])
{
    char name[NAME_MOST + 32], found[DT_PROGRAM_ROOM];
    DT_TRY(check_name(engine));
    snprintf(name, sizeof name, "dittune-worker-%s", engine);
    dt_machine_beside(name, found);
    if (access(found, X_OK) != 0 && !dt_host_program(name, found, sizeof found))
        return missing(engine);
    memcpy(program, found, sizeof found);
    return DT_OK;
}
