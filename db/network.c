/* SPDX-License-Identifier: MIT */
/* File systems behind a network, by the number that statfs gives: there a rename may have happened although it failed
 * (rename(2)), an append may overwrite another's (open(2), O_APPEND), and a lock is the server's, if it is one. FUSE is
 * among them because its backing store is unknown. Sources: linux/magic.h, statfs(2), and, where it is named, what GNU
 * coreutils' stat knows (src/stat.c, rows marked "remote"). */
#include "db/file_int.h"

#include <errno.h>
#include <string.h>
#include <sys/vfs.h>

static const struct row {
    uint32_t magic;
    const char *name;
} rows[] = {
    {0x6969, "NFS"},
    {0x517b, "SMB"},
    {0xff534d42, "SMB (CIFS)"},
    {0xfe534d42, "SMB 2"},
    {0x01021997, "9p"},
    {0x65735546, "FUSE"},
    {0x00c36400, "Ceph"},
    {0x5346414f, "AFS"},
    {0x6b414653, "AFS (kAFS)"},
    {0x73757245, "Coda"},
    {0x564c, "NCP"},
    {0x7461636f, "OCFS2"},
    {0x01161970, "GFS2"},
    {0x0bd00bd0, "Lustre"},         /* coreutils */
    {0x47504653, "GPFS"},           /* coreutils */
    {0x19830326, "BeeGFS (FhGFS)"}, /* coreutils */
    {0x013111a8, "IBRIX"},          /* coreutils */
    {0x786f4256, "VirtualBox"},     /* coreutils: vboxsf */
};

const char *dt_file_network(uint32_t magic)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].magic == magic)
            return rows[i].name;
    return NULL;
}

dt_status dt_file_refuse_network(int directory, const char *path)
{
    struct statfs info;
    if (fstatfs(directory, &info) != 0) /* such as ENOSYS: continue if the kernel does not know */
        return errno == EIO
                   ? dt_fail(DT_EIO, "cannot tell the file system of %s: %s", path, strerror(errno))
                   : DT_OK;
    const char *name = dt_file_network((uint32_t)info.f_type);
    if (name == NULL)
        return DT_OK;
    return dt_fail(DT_EUSAGE,
                   "the store %s is on a network file system (%s), where locks and renames are not "
                   "reliable: write to one on a local disk (--db DIR), looking up works here too",
                   path, name);
}
