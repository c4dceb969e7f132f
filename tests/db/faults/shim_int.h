/* SPDX-License-Identifier: MIT */
/* shim_int - what the replaced calls (calls.c) ask of the rest of the shim */
#ifndef DT_TESTS_DB_FAULTS_SHIM_INT_H
#define DT_TESTS_DB_FAULTS_SHIM_INT_H

#include "tests/db/faults/shim.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Around each call on a file of ours. enter: false with errno when it is not to be made.
 * leave: may not return. */
bool shim_enter(char kind);
void shim_leave(void);

/* The number of bytes of a write that are really written, and whether they are zeros. */
size_t shim_portion(size_t size);
bool shim_zeros(void);

/* The file is below the folder; path: the absolute path of a name given to openat. */
bool shim_ours(int fd);
bool shim_ours_at(int fd, const char *name, char path[PATH_MAX]);

/* The log; note keeps errno. */
bool shim_logs(void);
void shim_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void shim_note_bytes(int fd, long offset, const unsigned char *bytes, size_t size);
long shim_inode(int fd);

/* false with errno: malloc is to fail. allocated: so many more are live. */
bool shim_may_allocate(void);
void shim_allocated(int n);

#endif
