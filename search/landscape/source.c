/* SPDX-License-Identifier: MIT */
/* The only user of zlib, whose reader also reads plain files. */
#include "search/landscape/table.h"

#include "base/read.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define TIMES_MOST 64        /* recorded tables compress to a fourth or a sixth */
#define SMALL      (1 << 20) /* bytes that any file may unpack to */

/* most: limit of unpacked bytes. */
static dt_status read_all(gzFile file, const char *path, size_t most, struct dt_text *bytes)
{
    char block[65536];
    int got, code;
    while ((got = gzread(file, block, sizeof block)) > 0) {
        dt_text_add_bytes(bytes, block, (size_t)got);
        DT_TRY(dt_text_status(bytes));
        if (bytes->size > DT_TABLE_BYTES)
            return dt_fail(DT_EUSAGE, "%s holds more than the %d bytes allowed", path,
                           DT_TABLE_BYTES);
        if (bytes->size > most)
            return dt_fail(DT_EUSAGE,
                           "%s unpacks to more than %zu bytes, %d times its size: no table is "
                           "packed as tightly; unpack it first if it is right",
                           path, most, TIMES_MOST);
    }
    const char *why = gzerror(file, &code);
    if (got == 0 && code == Z_OK)
        return DT_OK;
    if (code == Z_ERRNO)
        return dt_fail(DT_EIO, "cannot read %s: %s", path, strerror(errno));
    return dt_fail(DT_EUSAGE, "%s is not a whole gzip file: %s", path,
                   code == Z_BUF_ERROR ? "it ends too early" : why);
}

dt_status dt_source_bytes(const char *path, struct dt_text *bytes)
{
    int fd;
    size_t packed;
    DT_TRY(dt_read_open(path, path, &fd, &packed));
    gzFile file = gzdopen(fd, "rb");
    if (file == NULL) {
        close(fd);
        return dt_fail(DT_ENOMEM, "out of memory while reading %s", path);
    }
    dt_status status = read_all(file, path, TIMES_MOST * packed + SMALL, bytes);
    gzclose(file);
    return status;
}
