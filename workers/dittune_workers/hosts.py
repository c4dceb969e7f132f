# SPDX-License-Identifier: MIT
"""The ranks of several hosts, which dittune starts as torchrun would (docs/clusters.md): how they find rank 0's speaker."""
import contextlib
import hmac
import json
import os
import random
import select
import socket
import time

from dittune_workers.link import Link, Refused, fault

MEET = 60  # seconds for the ranks of several hosts to find rank 0
# A caller greets with the token of this start and a row about its rank, a line each: seconds for it, its most bytes, and how many may be
# amid it (of more, the first is dropped).
GREET, GREETING, GUESTS = 1, 4096, 256


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


def token():
    """The secret that dittune has drawn for the ranks of this start, without which nobody becomes one."""
    value = os.environ.get("DITTUNE_TOKEN", "")
    if not value:
        raise Refused("error", "DITTUNE_TOKEN is not set: the launcher must pass it on to all ranks")
    return value


def greeted(secret, text, ranks):
    """The row about the rank that a greeting is of; None: a stranger's, or not of that form."""
    given, _, row = text.partition(b"\n")
    if not hmac.compare_digest(given, secret.encode()):
        return None
    try:
        row = json.loads(row)
        rank, host, pid = row["rank"], row["host"], row["pid"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return None
    if type(rank) is not int or type(pid) is not int or not isinstance(host, str) or not 0 < rank < ranks or pid < 1 or len(host) > 255:
        return None
    return dict(rank=rank, host=host, pid=pid)


def listen(address, port, ranks):
    """Where the first host's name leads to. A name of this host may lead to a loopback address, which others cannot reach, or to one
    that it has elsewhere alone: then on all of its interfaces."""
    with contextlib.suppress(OSError):
        family, _, _, _, name = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        if address in ("localhost", name[0]) or not (name[0].startswith("127.") or name[0] == "::1"):
            return socket.create_server(name[:2], family=family, backlog=ranks + GUESTS)
    return socket.create_server(("", port), backlog=ranks + GUESTS)


def call(secret, row):
    """Rank 0's speaker, when it has answered a greeting. It may not listen yet, or have given up a greeting that was slow."""
    until = time.monotonic() + MEET
    while True:
        try:
            end = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), timeout=MEET)
            end.sendall(f"{secret}\n{json.dumps(row)}\n".encode())
            end.settimeout(None)
            link = Link(end)
            if link.receive() is not None:
                return link
            end.close()
            failed = ConnectionError("rank 0 does not take this rank")
        except OSError as error:
            failed = error
        if time.monotonic() > until:
            raise failed
        time.sleep(0.05)


def follow(engine, run):
    """The life of a rank that dittune has started beside rank 0 of several hosts: it asks rank 0's speaker what to do; run: as run_rank of
    protocol.py."""
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    link = call(token(), dict(rank=rank, host=socket.gethostname(), pid=os.getpid()))
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
        run(engine, link.end, rank, ranks)


class Hosts:
    """The ranks of several hosts that dittune has started, other than rank 0: their links, once they have come. Whoever reaches the port
    can call: a caller without the token of this start is dropped, and none keeps the others waiting."""

    def __init__(self):
        self.ranks, self.met = int(os.environ["WORLD_SIZE"]), {}
        self.secret, self.guests = token(), {}
        self.server = listen(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), self.ranks)
        self.server.setblocking(False)
        os.environ["MASTER_PORT"] = str(free_port(""))

    def accept(self, poll):
        with contextlib.suppress(OSError):  # the caller has gone, or there are no descriptors
            end = self.server.accept()[0]
            end.setblocking(False)
            if len(self.guests) == GUESTS:
                self.drop(next(iter(self.guests)), poll).close()
            self.guests[end.fileno()] = (end, b"", time.monotonic() + GREET)
            poll.register(end, select.POLLIN)

    def drop(self, descriptor, poll):
        poll.unregister(descriptor)
        return self.guests.pop(descriptor)[0]

    def hear(self, descriptor, poll, rows):
        """More of a greeting. Whole, it makes its caller a rank, unless the caller is a stranger."""
        end, text, until = self.guests.get(descriptor, (None, b"", 0))
        if end is None:  # dropped in this round
            return
        try:
            piece = end.recv(GREETING)
        except OSError:
            piece = b""
        text += piece
        if piece and text.count(b"\n") < 2 and len(text) < GREETING:
            self.guests[descriptor] = (end, text, until)
            return
        self.drop(descriptor, poll)
        row = greeted(self.secret, text, self.ranks)
        if row is None or row["rank"] in self.met:
            end.close()
            return
        end.setblocking(True)
        self.met[row["rank"]], rows[row["rank"]] = Link(end), row
        self.met[row["rank"]].send(dict(op="met"))

    def meet(self, job, devices):
        """Waits for all, and tells them what they are to run; the rows of `ready` for them."""
        rows, poll = {}, select.poll()
        poll.register(self.server, select.POLLIN)
        while len(self.met) < self.ranks - 1:
            for descriptor, _ in poll.poll(1000 * GREET):
                if descriptor == self.server.fileno():
                    self.accept(poll)
                else:
                    self.hear(descriptor, poll, rows)
            for descriptor in [at for at, (_, _, until) in self.guests.items() if time.monotonic() > until]:
                self.drop(descriptor, poll).close()
        for descriptor in list(self.guests):
            self.drop(descriptor, poll).close()
        for link in self.met.values():
            link.send(dict(job=job, devices=devices, port=int(os.environ["MASTER_PORT"])))
        return [dict(rows[rank], device="", threads=1) for rank in sorted(rows)]
