# SPDX-License-Identifier: MIT
"""Several hosts on one machine: network and host-name namespaces, joined by a bridge. Everything ends with this process's namespaces.

    bed = Bed(3)                               # ends the test as skipped where namespaces are not permitted
    bed.run(0, ["dittune", ..])                # a command on the first host
    bed.shape(1, "20mbit")                    # what leaves that host
    bed.kill(2)                                # all of its processes
    bed.replace(1, "/proc/cpuinfo", text)      # a file of that host alone

A test calls inside() first: it runs the script once more in namespaces of its own."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from dittune_test import skip

INSIDE = "DITTUNE_TEST_BED"


def inside():
    """Goes on in a network namespace of the test's own; as a user without rights, in a user namespace, too."""
    if os.environ.get(INSIDE):
        return
    for program, package in (("unshare", "util-linux"), ("nsenter", "util-linux"), ("ip", "iproute2"), ("mpirun", "openmpi-bin")):
        if shutil.which(program) is None:
            skip(f"there is no {program} here; install {package}")
    how = ["unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])
    probe = "ip link add bridge0 type bridge && ip link add one type veth peer name two && unshare --net --uts hostname other"
    tried = subprocess.run([*how, "sh", "-c", probe], capture_output=True)
    if tried.returncode != 0:
        skip(f"network namespaces are not permitted here: {tried.stderr.decode().strip()}")
    os.execvpe("unshare", [*how, sys.executable, *sys.argv], {**os.environ, INSIDE: "1"})


def ip(*words, of=None):
    subprocess.run([*(["nsenter", "-t", str(of), "-n"] if of else []), "ip", *map(str, words)], check=True)


class Bed:
    def __init__(self, path, hosts):
        self.path, self.names, self.holders = pathlib.Path(path), [f"10.77.0.{i + 1}" for i in range(hosts)], []
        ip("link", "set", "lo", "up")
        ip("link", "add", "br0", "type", "bridge")
        ip("link", "set", "br0", "up")
        for i, address in enumerate(self.names):
            self.holders.append(self.start(i))
            pid = self.holders[-1].pid
            ip("link", "add", f"host{i}", "type", "veth", "peer", "name", "eth0", "netns", pid)
            ip("link", "set", f"host{i}", "master", "br0", "up")
            ip("link", "set", "lo", "up", of=pid)
            ip("addr", "add", f"{address}/24", "dev", "eth0", of=pid)
            ip("link", "set", "eth0", "up", of=pid)
        self.agent = self.path / "agent"
        cases = "\n".join(f"{name}) pid={holder.pid} ;;" for name, holder in zip(self.names, self.holders))
        self.agent.write_text(f"#!/bin/sh\nhost=$1\nshift\ncase $host in\n{cases}\n*) echo \"no host $host\" >&2; exit 255 ;;\nesac\n"
                              "exec nsenter -t $pid -n -u -m -- /bin/sh -c \"$*\"\n")
        self.agent.chmod(0o755)

    def start(self, i):
        """A process that holds the namespaces of host i, and ends with this one."""
        script = f"hostname host{i} 2>/dev/null; echo ready; exec sleep 100000"
        holder = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
        assert holder.stdout.readline() == "ready\n"
        return holder

    def words(self, i, *words):
        return ["nsenter", "-t", str(self.holders[i].pid), "-n", "-u", "-m", "--", *map(str, words)]

    def environment(self):
        return {"OMPI_MCA_plm_rsh_agent": str(self.agent), "OMPI_MCA_btl_tcp_if_include": "10.77.0.0/24",
                "OMPI_MCA_oob_tcp_if_include": "10.77.0.0/24"}

    def hosts(self, slots):
        return ",".join(f"{name}:{slots}" for name in self.names)

    def pids(self, i):
        """All processes of host i but its holder."""
        own, found = os.readlink(f"/proc/{self.holders[i].pid}/ns/net"), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/ns/net") == own and int(pid) != self.holders[i].pid:
                    found.append(int(pid))
            except OSError:
                pass
        return found

    def kill(self, i):
        for pid in self.pids(i):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def cut(self, i):
        ip("link", "set", f"host{i}", "down")

    def join(self, i):
        ip("link", "set", f"host{i}", "up")

    def replace(self, i, file, data):
        """Other bytes in a file that is there, as host i sees it; None: its own again."""
        enter = ["nsenter", "-t", str(self.holders[i].pid), "-m", "--"]
        if data is None:
            subprocess.run([*enter, "umount", "-l", str(file)], check=True)
            return
        other = self.path / f"other{i}"
        other.unlink(missing_ok=True)
        other.write_bytes(data)
        other.chmod(0o755)
        subprocess.run([*enter, "mount", "--bind", str(other), str(file)], check=True)

    def shape(self, i, rate):
        """What leaves host i, and what is sent to it; a token bucket, which every kernel has."""
        for device, of in ((f"host{i}", None), ("eth0", self.holders[i].pid)):
            words = [*(["nsenter", "-t", str(of), "-n"] if of else []), "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "64kb", "latency", "1s"]
            subprocess.run(words, check=True)

    def close(self):
        for holder in self.holders:
            holder.kill()
            holder.wait()
