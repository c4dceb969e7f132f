# SPDX-License-Identifier: MIT
# ctest: ranks
"""The 1-rank worker is free of everything that many ranks need: no MPI component loaded, no socket, no helper thread;
two ranks have them, so that this test would see them."""
import os
import re

from lib_group import Dittune, Group


def traces(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        maps = file.read()
    links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    return dict(components="/mca_" in maps, sockets=any(link.startswith("socket:") for link in links),
                threads=len(os.listdir(f"/proc/{pid}/task")))


t = Dittune()
one = Group(t, 1)
one.prepare(threads=1)
one.ask(op="run", handle=1, n=2, mode="measure")
seen = traces(one.pids[0])
t.check("one rank: no MPI component is loaded", not seen["components"], seen)
t.check("one rank: no socket is open", not seen["sockets"], seen)
t.check("one rank: no thread beside the plan's", seen["threads"] == 1, seen)
t.check("one rank: says so", one.ready["comm"] == "self", one.ready)
two = Group(t, 2)
for pid in one.pids + two.pids:
    t.check("what libraries print goes where standard error goes",
            os.readlink(f"/proc/{pid}/fd/1") == os.readlink(f"/proc/{pid}/fd/2"))
seen, mpi = traces(two.pids[0]), two.ready["ranks"][0]["versions"]["mpi"]
plugins = re.search(r"Open MPI v[34]\.", mpi) is not None  # from 5 on they are part of its libraries
t.check("two ranks: the same look sees MPI and sockets", seen["components"] == plugins and seen["sockets"], (mpi, seen))
first, second = two.ready["ranks"]
t.check("two ranks: each on cores of its own or oversubscribed",
        first["oversubscribed"] or not set(first["cores"]) & set(second["cores"]), two.ready)
t.check("ready lists host, device, cores and versions of every rank",
        all(rank["host"] and rank["device"] == "cpu" and rank["cores"] and rank["versions"]["openblas"]
            for rank in one.ready["ranks"] + two.ready["ranks"]), two.ready)
for group in (one, two):
    t.check("quits", group.quit() == 0 and not group.wait_for_end())
t.finish()
