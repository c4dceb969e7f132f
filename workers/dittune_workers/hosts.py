# SPDX-License-Identifier: MIT
"""The ranks of several hosts, which dittune starts as torchrun would (docs/clusters.md): how they find rank 0's speaker."""
import os
import random
import socket
import time

from dittune_workers.link import Link, fault

MEET = 60  # seconds for the ranks of several hosts to find rank 0


def free_port(address="127.0.0.1"):
    """Below the ports that Linux gives to outgoing connections, of which one could take it before somebody listens there."""
    for port in random.SystemRandom().sample(range(16384, 32768), 64):
        try:
            with socket.socket() as probe:
                probe.bind((address, port))
            return port
        except OSError:
            continue
    raise OSError("64 ports of 16384 to 32767 are taken")


def follow(engine, run):
    """The life of a rank that dittune has started beside rank 0 of several hosts: it asks rank 0's speaker what to do; run: as run_rank of
    protocol.py."""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    until, end = time.monotonic() + MEET, None
    while end is None:
        try:
            end = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), timeout=MEET)
        except OSError:  # it does not listen yet
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
    end.settimeout(None)
    link = Link(end)
    link.send(dict(rank=rank, host=socket.gethostname(), pid=os.getpid()))
    start = link.receive()
    if start is None:
        return
    os.environ["MASTER_PORT"] = str(start["port"])
    try:
        engine.hello(start["job"], start["devices"])
        engine.ready()
    except Exception as error:  # told to the speaker instead of a trace
        link.send(fault(error))
    else:
        run(engine, end, rank, ranks)


class Hosts:
    """The ranks of several hosts that dittune has started, other than rank 0: their links, once they have come."""

    def __init__(self):
        self.ranks, self.met = int(os.environ["WORLD_SIZE"]), {}
        self.server = socket.create_server(("", int(os.environ["MASTER_PORT"])), backlog=self.ranks)
        os.environ["MASTER_PORT"] = str(free_port(""))

    def meet(self, job, devices):
        """Waits for all, and tells them what they are to run; the rows of `ready` for them."""
        rows = {}
        while len(self.met) < self.ranks - 1:
            link = Link(self.server.accept()[0])
            row = link.receive() or {}
            if row.get("rank") in range(1, self.ranks) and row["rank"] not in self.met:
                self.met[row["rank"]], rows[row["rank"]] = link, row
        for link in self.met.values():
            link.send(dict(job=job, devices=devices, port=int(os.environ["MASTER_PORT"])))
        return [dict(rows[rank], device="", threads=1) for rank in sorted(rows)]
