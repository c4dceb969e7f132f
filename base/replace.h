/* SPDX-License-Identifier: MIT */
/* replace - a file that the user named, replaced whole
 *
 * What is written goes to a file beside it, which is renamed when all of it is on the disk: whoever
 * reads it meanwhile, or finds the disk full, has the old one. A link in its place is replaced, not
 * followed, since anybody may have planted it. Devices, pipes and descriptors (/dev/stdout) are
 * written to as they are.
 *
 *     DT_TRY(dt_replace_open(path, &file));
 *     status = dt_replace_add(&file, bytes, size);
 *     status = dt_replace_close(&file, status);           -- or dt_replace_text(path, &text), which is all three
 */
#ifndef DT_BASE_REPLACE_H
#define DT_BASE_REPLACE_H

#include "base/status.h"
#include "base/text.h"

#include <stddef.h>

struct dt_replace {
    int fd;                /* -1: closed */
    const char *path;      /* borrowed */
    struct dt_text beside; /* "": the file itself is written to */
};

/* DT_EIO with a sentence: it, or a file beside it, cannot be written. The
 * file is still as it was. */
dt_status dt_replace_open(const char *path, struct dt_replace *file) DT_MUST_CHECK;
dt_status dt_replace_add(struct dt_replace *file, const void *bytes, size_t size) DT_MUST_CHECK;
/* Renames if status is DT_OK, else drops what was written; returns the status,
 * or that of a failure. */
dt_status dt_replace_close(struct dt_replace *file, dt_status status) DT_MUST_CHECK;
void dt_replace_drop(
    struct dt_replace *file); /* the same as a failure does; nothing once it is closed */

dt_status dt_replace_text(const char *path, const struct dt_text *text) DT_MUST_CHECK;

#endif
