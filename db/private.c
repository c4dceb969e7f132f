/* SPDX-License-Identifier: MIT */
#include "db/private.h"

#include "db/best_int.h"
#include "db/commit_int.h"
#include "db/file_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_NAME "private.key"
#define NEW_NAME  ".private.key.new"
#define DIGITS    (2 * DT_SIPHASH_KEY)

static dt_status parse(const char *path, const struct dt_text *text,
                       unsigned char secret[DT_SIPHASH_KEY])
{
    const char *digits = dt_text_at(text);
    if (strspn(digits, "0123456789abcdef") != DIGITS || strcmp(digits + DIGITS, "\n") != 0)
        return dt_fail(DT_ECORRUPT,
                       "%s/" FILE_NAME " is no secret of --private: put the right one back, or "
                       "remove it, after which the private entries are not found any more",
                       path);
    for (int i = 0; i < DT_SIPHASH_KEY; i++) {
        unsigned int byte = 0;
        (void)sscanf(digits + 2 * i, "%2x", &byte);
        secret[i] = (unsigned char)byte;
    }
    return DT_OK;
}

static dt_status read_file(int directory, const char *path, unsigned char secret[DT_SIPHASH_KEY],
                           bool *there)
{
    struct dt_text text = {0};
    *there = false;
    dt_status status = dt_file_read(directory, path, FILE_NAME, 2 * DIGITS, &text, there);
    if (status == DT_OK && *there)
        status = parse(path, &text, secret);
    dt_text_fini(&text);
    return status;
}

/* Under the store's lock. The file appears whole or not at all. */
static dt_status make_file(int directory, const char *path, unsigned char secret[DT_SIPHASH_KEY])
{
    char text[DIGITS + 2];
    if (getrandom(secret, DT_SIPHASH_KEY, 0) != DT_SIPHASH_KEY)
        return dt_fail(DT_EIO, "cannot draw a secret: %s", strerror(errno));
    for (int i = 0; i < DT_SIPHASH_KEY; i++)
        snprintf(text + 2 * i, 3, "%02x", secret[i]);
    memcpy(text + DIGITS, "\n", 2);
    (void)unlinkat(directory, NEW_NAME, 0);
    int fd = dt_file_open(directory, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL, 0600);
    bool made = fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, text, DIGITS + 1) == DIGITS + 1;
    dt_status status = made ? dt_file_sync(fd, path, NEW_NAME) : DT_OK;
    if (fd >= 0)
        close(fd);
    DT_TRY(status);
    if (!made || renameat(directory, NEW_NAME, directory, FILE_NAME) != 0)
        return dt_fail(DT_EIO, "cannot make %s/" FILE_NAME ": %s", path, strerror(errno));
    return dt_file_sync_directory(directory, path);
}

static dt_status make(const char *path, unsigned char secret[DT_SIPHASH_KEY], bool *there)
{
    int directory = -1, lock = -1;
    DT_TRY(dt_store_open(path, &directory));
    dt_status status = dt_file_lock(directory, path, DT_STORE_WAIT_NS, &lock);
    if (status == DT_OK)
        status = read_file(directory, path, secret, there);
    if (status == DT_OK && !*there)
        status = make_file(directory, path, secret);
    if (lock >= 0)
        dt_file_unlock(lock);
    close(directory);
    *there = status == DT_OK;
    return status;
}

dt_status dt_private_read(const char *directory, bool make_one,
                          unsigned char secret[DT_SIPHASH_KEY], bool *there)
{
    int folder = -1;
    *there = false;
    DT_TRY(dt_file_open_directory(directory, &folder));
    dt_status status = folder >= 0 ? read_file(folder, directory, secret, there) : DT_OK;
    if (folder >= 0)
        close(folder);
    if (status == DT_OK && !*there && make_one)
        status = make(directory, secret, there);
    return status;
}
