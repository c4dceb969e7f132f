/* SPDX-License-Identifier: MIT */
/* safetensors - tensors in a file: 8 bytes of header length, a JSON header, the data
 *
 * The whole file is checked before any tensor is used: a wrong header (length, dtype,
 * shape, offsets) is refused with one sentence that names the file, the tensor, the value
 * found and the value expected.
 *
 *     struct dt_safetensors *file = NULL;
 *     DT_TRY(dt_safetensors_open(path, &file));
 *     status = dt_safetensors_get(file, &(struct dt_safetensor){"x", "F32", 4, {b, c, h, w}}, &data);
 *     dt_safetensors_close(file);
 */
#ifndef DT_BASE_SAFETENSORS_H
#define DT_BASE_SAFETENSORS_H

#include "base/status.h"

#include <stdint.h>

#define DT_SAFETENSORS_RANK 8

struct dt_safetensor {
    const char *name;
    const char *dtype; /* "F32", "I64", ... */
    int rank;
    int64_t shape[DT_SAFETENSORS_RANK];
    const void *data; /* in the mapped file, not aligned */
    int64_t bytes;
};

struct dt_safetensors;

/* Maps the file read-only. DT_EIO when it cannot be read or is no regular file,
 * DT_EUSAGE when it is invalid. */
dt_status dt_safetensors_open(const char *path, struct dt_safetensors **file) DT_MUST_CHECK;
void dt_safetensors_close(struct dt_safetensors *file);
DT_FREE_AT(dt_safetensors_close, struct dt_safetensors)

int dt_safetensors_count(const struct dt_safetensors *file);
const struct dt_safetensor *dt_safetensors_at(const struct dt_safetensors *file, int i);
const struct dt_safetensor *dt_safetensors_find(const struct dt_safetensors *file,
                                                const char *name); /* or NULL */
const char *dt_safetensors_path(const struct dt_safetensors *file);

/* Sets *data of the tensor named as in expect; dtype and shape must match, too. A size of -1 in
 * the shape matches any. */
dt_status dt_safetensors_get(const struct dt_safetensors *file, const struct dt_safetensor *expect,
                             const void **data) DT_MUST_CHECK;

/* Replaces the whole file: temporary file, fsync, rename. DT_EIO. */
dt_status dt_safetensors_write(const char *path, const struct dt_safetensor tensors[],
                               int count) DT_MUST_CHECK;

#endif
