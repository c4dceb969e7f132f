# SPDX-License-Identifier: MIT
# ctest: ranks
"""On one host no rank, and nothing of dittune, listens on a network while plans run: MPI exchanges over shared memory, other ranks over
loopback. Open MPI's mpirun does listen, and cannot be told not to (SECURITY.md)."""
import contextlib
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune

t = Dittune(clock="real")
MODEL = SOURCE / "examples/networks/tiny.json"
LISTENS = {"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}
LOOPBACK = ("0100007F:", "00000000000000000000000001000000:", "0000000000000000FFFF00000100007F:")


def descendants(pid):
    """The process and all that it has started."""
    started = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            started.setdefault(int(path.read_text(errors="replace").rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
    found = [pid]
    for each in found:
        found += started.get(each, [])
    return found


def owners(pid):
    """The sockets of these processes: inode -> program."""
    found = {}
    for each in descendants(pid):
        with contextlib.suppress(OSError):
            name = pathlib.Path(f"/proc/{each}/comm").read_text().strip()
            for descriptor in os.listdir(f"/proc/{each}/fd"):
                with contextlib.suppress(OSError):
                    link = os.readlink(f"/proc/{each}/fd/{descriptor}")
                    if link.startswith("socket:["):
                        found[link[8:-1]] = name
    return found


def open_to_others(pid):
    """(program, address) of what listens beyond loopback."""
    own, found = owners(pid), set()
    for name, state in LISTENS.items():
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
                row = line.split()
                if row[3] == state and row[9] in own and not row[1].startswith(LOOPBACK):
                    found.add((own[row[9]], row[1]))
    return found


def watched(name, *words):
    seen = set()
    process = t.start("run", "--quick", "--json", *words)
    while process.poll() is None:
        seen |= open_to_others(process.pid)
    t.check(f"{name}: it ran", process.returncode == 0, t.read("err"))
    seen = {row for row in seen if row[0] not in ("mpirun", "prterun")}
    t.check(f"{name}: nothing listens beyond loopback", not seen, seen)


if shutil.which("mpirun") and (BUILD / "no_mpi").exists():
    watched("ranks of MPI", "--model", MODEL, "--plan", "ranks=2 cfg=2", "--backend", "cpu")
watched("ranks of another worker", "--worker", SOURCE / "examples/workers/torchrun.py", "--plan", "ranks=2")
t.none_left()
t.finish()
