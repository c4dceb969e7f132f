/* SPDX-License-Identifier: MIT */
#include "worker/command/ports.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define LISTENING 0x0A /* state of a socket in /proc/net/tcp */

void dt_sockets_of(pid_t pid, struct dt_sockets *out)
{
    char path[64], link[320], name[64];
    out->count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *open_ones = opendir(path);
    for (struct dirent *entry; open_ones != NULL && out->count < DT_SOCKETS_MOST &&
                               (entry = readdir(open_ones)) != NULL;) {
        snprintf(link, sizeof link, "%s/%s", path, entry->d_name);
        ssize_t size = readlink(link, name, sizeof name - 1);
        name[size > 0 ? size : 0] = '\0';
        out->count += sscanf(name, "socket:[%lu]", &out->inodes[out->count]) == 1;
    }
    if (open_ones != NULL)
        closedir(open_ones);
}

/* Calls `listens` for each listening socket of a table, until it returns false. */
static void walk(const char *path, bool (*listens)(int port, unsigned long inode, void *context),
                 void *context)
{
    char line[512];
    bool more = true;
    FILE *file = fopen(path, "re");
    while (file != NULL && more && fgets(line, sizeof line, file) != NULL) {
        unsigned port, state;
        unsigned long inode;
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x %*s %*s %*s %*d %*d %lu",
                   &port, &state, &inode) == 3 &&
            state == LISTENING)
            more = listens((int)port, inode, context);
    }
    if (file != NULL)
        fclose(file);
}

struct search {
    int port;
    struct dt_sockets *sockets;
};

static bool keep_socket(int port, unsigned long inode, void *context)
{
    struct search *search = context;
    if (port == search->port && search->sockets->count < DT_SOCKETS_MOST)
        search->sockets->inodes[search->sockets->count++] = inode;
    return true;
}

void dt_sockets_listening(int port, struct dt_sockets *out)
{
    struct search search = {port, out};
    out->count = 0;
    walk("/proc/net/tcp", keep_socket, &search);
    walk("/proc/net/tcp6", keep_socket, &search);
}

static bool find_port(int port, unsigned long inode, void *context)
{
    struct search *search = context;
    for (int i = 0; i < search->sockets->count; i++)
        if (search->sockets->inodes[i] == inode)
            search->port = port;
    return search->port == 0;
}

int dt_sockets_port(pid_t pid)
{
    static const char *const tables[] = {"tcp", "tcp6"};
    struct dt_sockets sockets;
    dt_sockets_of(pid, &sockets);
    struct search search = {0, &sockets};
    for (int i = 0; i < 2 && search.port == 0 && sockets.count > 0; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/net/%s", (int)pid, tables[i]);
        walk(path, find_port, &search);
    }
    return search.port;
}
