/* SPDX-License-Identifier: MIT */
/* ports - who listens where, by /proc/net/tcp, /proc/net/tcp6 and the descriptors of processes (proc(5)) */
#ifndef DT_WORKER_COMMAND_PORTS_H
#define DT_WORKER_COMMAND_PORTS_H

#include <sys/types.h>

#define DT_SOCKETS_MOST 256

/* Sockets by their inodes; those beyond the room are not kept. */
struct dt_sockets {
    unsigned long inodes[DT_SOCKETS_MOST];
    int count;
};

/* The sockets that a process holds; none when its descriptors cannot be read. */
void dt_sockets_of(pid_t pid, struct dt_sockets *out);

/* The sockets that listen on a TCP port, in this network name space. */
void dt_sockets_listening(int port, struct dt_sockets *out);

/* The TCP port on which one of a process's sockets listens, in its own network name space; 0: none. */
int dt_sockets_port(pid_t pid);

#endif
