/* SPDX-License-Identifier: MIT */
/* ctest: alone */
/* A store on a network file system is read and not written. This program answers fstatfs itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "db/file_int.h"
#include "tests/db/scratch.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/vfs.h>

static uint32_t pretended;
static int failure, asked;

int fstatfs(int fd, struct statfs *info)
{
    (void)fd;
    asked++;
    memset(info, 0, sizeof *info);
    memcpy(&info->f_type, &pretended,
           sizeof pretended); /* as the kernel gives it: 32 bits, no sign */
    errno = failure;
    return failure != 0 ? -1 : 0;
}

/* By the kernel's own header; those that it has since Linux 5.14 only, by the headers
 * of the file systems. */
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xFF534D42
#define SMB2_SUPER_MAGIC 0xFE534D42
#define FUSE_SUPER_MAGIC 0x65735546
#define CEPH_SUPER_MAGIC 0x00c36400
#endif
static const uint32_t remote[] = {NFS_SUPER_MAGIC,  SMB_SUPER_MAGIC,  CIFS_SUPER_MAGIC,
                                  SMB2_SUPER_MAGIC, V9FS_MAGIC,       FUSE_SUPER_MAGIC,
                                  CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC,  AFS_FS_MAGIC,
                                  CODA_SUPER_MAGIC, OCFS2_SUPER_MAGIC};
static const uint32_t local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,       BTRFS_SUPER_MAGIC,
                                 TMPFS_MAGIC,      OVERLAYFS_SUPER_MAGIC, F2FS_SUPER_MAGIC,
                                 RAMFS_MAGIC,      ECRYPTFS_SUPER_MAGIC,  0};

static void classifies_file_systems(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++)
        assert_non_null(dt_file_network(remote[i]));
    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        assert_null(dt_file_network(local[i]));
    assert_string_equal(dt_file_network(0x0bd00bd0), "Lustre");
}

static void read_and_not_written(void **state)
{
    (void)state;
    pretended = EXT4_SUPER_MAGIC;
    assert_int_equal(put("a", 1), DT_OK);
    assert_true(asked > 0);
    for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++) {
        pretended = remote[i];
        assert_int_equal(put("a", 2), DT_EUSAGE);
        assert_non_null(strstr(dt_message(), "a network file system ("));
        assert_non_null(strstr(dt_message(), "--db"));
        assert_int_equal(dt_store_check(scratch), DT_EUSAGE);
        assert_int_equal(value_of("a"), 1);
    }
    assert_int_equal(count_names(scratch, ".dittune"), 0);
}

static void nothing_is_made_there(void **state)
{
    (void)state;
    pretended = NFS_SUPER_MAGIC;
    assert_int_equal(put("a", 2), DT_EUSAGE);
    assert_int_equal(access(at("runs"), F_OK), -1);
    assert_int_equal(access(at("lock"), F_OK), -1);
}

static void unknown_is_local(void **state)
{
    (void)state;
    failure = ENOSYS;
    assert_int_equal(put("a", 1), DT_OK);
    failure = 0;
}

static void world_writable_is_told(void **state)
{
    (void)state;
    struct dt_text text = {0};
    assert_int_equal(chmod(scratch, 0755), 0);
    assert_int_equal(dt_store_warnings(scratch, &text), DT_OK);
    assert_int_equal(text.size, 0);
    assert_int_equal(chmod(scratch, 0777), 0);
    assert_int_equal(dt_store_warnings(scratch, &text), DT_OK);
    assert_non_null(strstr(dt_text_at(&text), "anyone may write in"));
    dt_text_fini(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classifies_file_systems),
        TEST(read_and_not_written),
        TEST(nothing_is_made_there),
        TEST(unknown_is_local),
        TEST(world_writable_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
