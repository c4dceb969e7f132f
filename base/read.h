/* SPDX-License-Identifier: MIT */
/* read - regular files, and the beginnings of small files of the system */
#ifndef DT_BASE_READ_H
#define DT_BASE_READ_H

#include "base/status.h"
#include "base/text.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* For DT_CLEANUP: each closes a local, unless it is negative or NULL. */
void dt_close_at(const int *fd);
void dt_fclose_at(FILE **file);
void dt_closedir_at(DIR **folder);

/* Opens a regular file to read; name: the file in sentences. *bytes: its size.
 * DT_EIO: it cannot be read. */
dt_status dt_read_open(const char *path, const char *name, int *fd, size_t *bytes) DT_MUST_CHECK;
/* Reads up to room bytes; *size is 0 at the end. */
dt_status dt_read_block(int fd, const char *name, char block[], size_t room,
                        size_t *size) DT_MUST_CHECK;
/* Appends a regular file to text. DT_EUSAGE: it has more than `most` bytes. */
dt_status dt_read_text(const char *path, const char *name, size_t most,
                       struct dt_text *text) DT_MUST_CHECK;

/* The beginning of a file, at most room - 1 bytes, and a NUL; returns their number, 0
 * where it cannot be read. */
size_t dt_read_head(const char *path, char text[], size_t room);

/* The text behind `key` and blanks, in the first line that begins with key; false, and text
 * unchanged: there is none. */
bool dt_read_line(const char *path, const char *key, char text[], size_t room);

/* The number behind `key` in a file of lines "key number"; -1: there is none. */
int64_t dt_read_number(const char *path, const char *key);

#endif
