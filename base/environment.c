/* SPDX-License-Identifier: MIT */
/* The dynamic linker calls the functions in the program's .preinit_array before the constructors of
 * its libraries. That is also before sanitizers are ready (this file is built without them) and
 * before libc reads the environment, so changes made here take effect. So this code calls no
 * functions and compacts the list in place.
 *
 * Prefixes rather than names, since each version of libgomp adds variables. Variables that select
 * kernels (OPENBLAS_CORETYPE, DNNL_MAX_CPU_ISA) are kept, and so is a passive wait policy, which
 * ranks that share a core need. */
#include "base/environment.h"

#include <stdbool.h>
#include <stddef.h>

#define MOST 128

static char *dropped[MOST + 1];

static const char *const prefixes[] = {"OMP_",
                                       "GOMP_",
                                       "KMP_",
                                       "OPENBLAS_NUM_THREADS=",
                                       "OPENBLAS_DEFAULT_NUM_THREADS=",
                                       "OPENBLAS_MAIN_FREE=",
                                       "OPENBLAS_THREAD_TIMEOUT=",
                                       "GOTO_NUM_THREADS=",
                                       "GOTOBLAS_MAIN_FREE=",
                                       "MKL_NUM_THREADS=",
                                       "MKL_DYNAMIC=",
                                       "BLIS_NUM_THREADS="};

static bool begins_with(const char *text, const char *with)
{
    while (*with != '\0' && *text == *with) {
        text++;
        with++;
    }
    return *with == '\0';
}

static bool is_about_threads(const char *entry)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (begins_with(entry, prefixes[i]))
            return !begins_with(entry, "OMP_WAIT_POLICY=passive") &&
                   !begins_with(entry, "OMP_WAIT_POLICY=PASSIVE");
    return false;
}

static void drop_from_argv(int argc, char **argv, char **environment)
{
    int kept = 0, n = 0;
    (void)argc, (void)argv;
    for (int i = 0; environment[i] != NULL; i++)
        if (n < MOST && is_about_threads(environment[i]))
            dropped[n++] = environment[i];
        else
            environment[kept++] = environment[i];
    environment[kept] = NULL;
}

__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)(int, char **, char **) = drop_from_argv;

char *const *dt_environment_dropped(void)
{
    return dropped;
}
