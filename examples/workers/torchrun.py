#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A worker whose ranks are started by dittune with the variables that torchrun sets (docs/protocol.md): rank 0 speaks,
the others follow it over sockets. Standard library only; an engine of PyTorch would call init_process_group instead.

One step multiplies a vector four times by a matrix. Each rank has a share of the rows, and after each product all ranks
exchange their parts. Every plan computes the same vector.

    dittune --worker examples/workers/torchrun.py --budget 20s
    dittune worker-test examples/workers/torchrun.py
"""
import hmac
import json
import os
import random
import resource
import selectors
import socket
import sys
import time

ROWS, PRODUCTS = 192, 4
HELLO = {
    "op": "hello", "protocol": 2, "name": "torchrun", "version": "1.0", "engine": "torchrun-example", "mode": "eager",
    "launch": "torchrun", "workload": f"{PRODUCTS} products of a vector and a {ROWS} x {ROWS} matrix",
    "parameters": [
        {"name": "ranks", "role": "ranks", "values": [1, 2, 3], "default": 1, "doc": "processes; each has a share of the rows"},
        {"name": "messages", "values": [1, 2, 4], "default": 1, "doc": "messages that carry the parts of one exchange"},
    ],
    "constants": {"rows": ROWS},
    "rules": [{"if": "rows % (ranks * messages) == 0", "say": "ranks x messages must divide the rows"}],
}


class Refused(Exception):
    """A request that cannot be served: (kind, sentence). The worker stays usable."""


class Link:
    """Messages, one JSON text a line, between rank 0 and another rank."""

    def __init__(self, end):
        self.end, self.lines = end, end.makefile("r", encoding="utf-8")

    def send(self, message):
        self.end.sendall(json.dumps(message).encode() + b"\n")

    def receive(self):
        line = self.lines.readline()
        if not line:
            sys.exit("another rank has ended")  # a group that lacks a rank must end, too
        return json.loads(line)


class Group:
    """The ranks, connected by the variables of torchrun. The process that is asked for its hello first has none of
    them: it is alone."""

    def __init__(self):
        self.rank, self.size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
        self.links = []  # of rank 0: to each other rank; of another rank: to rank 0
        if self.size > 1:
            self.token = os.environ["DITTUNE_TOKEN"]  # of the ranks of this start alone
            address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            self.links = self.accept(address) if self.rank == 0 else [self.connect(address)]

    def accept(self, address):
        """Anyone may call. Who does not say the token and a rank within a second is dropped, and keeps nobody waiting."""
        links, guests = {}, {}
        with socket.create_server(address, backlog=128) as server, selectors.DefaultSelector() as ready:
            server.setblocking(False)
            ready.register(server, selectors.EVENT_READ)
            while len(links) < self.size - 1:
                for key, _ in ready.select(1):
                    if key.fileobj is server:
                        guest = server.accept()[0]
                        ready.register(guest, selectors.EVENT_READ)
                        guests[guest] = time.monotonic() + 1
                        continue
                    rank = self.greeted(key.fileobj)
                    ready.unregister(key.fileobj)
                    del guests[key.fileobj]
                    if rank is None or rank in links:
                        key.fileobj.close()
                    else:
                        links[rank] = Link(key.fileobj)
                        links[rank].send("met")
                for guest in [guest for guest, until in guests.items() if time.monotonic() > until]:
                    ready.unregister(guest)
                    del guests[guest]
                    guest.close()
        for guest in guests:
            guest.close()
        return [links[rank] for rank in sorted(links)]

    def greeted(self, guest):
        """The rank that a caller is; None: a stranger."""
        try:
            token, _, rank = guest.recv(256).decode().partition(" ")
        except (OSError, ValueError):
            return None
        known = hmac.compare_digest(token.encode(), self.token.encode())
        return int(rank) if known and rank.isascii() and rank.isdigit() and 0 < int(rank) < self.size else None

    def connect(self, address):
        while True:
            try:
                link = Link(socket.create_connection(address))
                link.end.sendall(f"{self.token} {self.rank}".encode())
                if link.lines.readline():
                    return link
            except ConnectionError:  # rank 0 does not listen yet
                pass
            time.sleep(0.01)

    def share(self, message=None):
        """A message of rank 0, on all ranks."""
        if self.rank != 0:
            return self.links[0].receive()
        for link in self.links:
            link.send(message)
        return message

    def gather(self, part):
        """The parts of all ranks, in their order, on rank 0; None on the others."""
        if self.rank != 0:
            self.links[0].send(part)
            return None
        return [part, *(link.receive() for link in self.links)]


class Plan:
    """A plan made resident: this rank's rows of the matrix, and the vector."""

    def __init__(self, group, values, seed):
        self.group, self.messages = group, values["messages"]
        rng = random.Random(seed)
        rows = [[rng.uniform(-1, 1) / ROWS ** 0.5 for _ in range(ROWS)] for _ in range(ROWS)]
        share = ROWS // group.size
        self.rows = rows[group.rank * share:(group.rank + 1) * share]
        self.first = [rng.uniform(-1, 1) for _ in range(ROWS)]
        self.vector = self.first

    def exchange(self, part):
        """The parts of all ranks, joined, on every rank: each message has a piece of each part."""
        size = len(part) // self.messages
        pieces = []
        for i in range(self.messages):
            pieces.append(self.group.share(self.group.gather(part[i * size:(i + 1) * size])))
        return [x for rank in range(self.group.size) for piece in pieces for x in piece[rank]]

    def step(self):
        self.vector = self.first
        for _ in range(PRODUCTS):
            self.vector = self.exchange([sum(a * x for a, x in zip(row, self.vector)) for row in self.rows])

    def measure(self):
        """Nanoseconds of a step of this rank, which begins when all ranks are there."""
        self.group.share(self.group.gather(None))
        begin = time.monotonic_ns()
        self.step()
        return max(1, time.monotonic_ns() - begin)

    def verify(self, count, seed):
        """The norm of the output and its projections on `count` seeded vectors of +1 and -1."""
        sums = []
        for k in range(count):
            signs = random.Random(f"{seed}/{k}").getrandbits(ROWS)
            sums.append(sum(x if signs >> e & 1 else -x for e, x in enumerate(self.vector)))
        return {"norm": [sum(x * x for x in self.vector) ** 0.5], "projections": [sums]}


class Worker:
    """What every rank does with a request; each method gives this rank's part of the answer."""

    plan = Plan

    def __init__(self):
        # The protocol keeps a descriptor of its own; whatever else prints goes to standard error.
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self.group = Group()
        self.plans, self.handles = {}, 0

    def say(self, **message):
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()

    def hello(self, request):
        del request
        return {"rank": self.group.rank, "pid": os.getpid(), "host": socket.gethostname(), "device": "cpu",
                "cores": sorted(os.sched_getaffinity(0)), "threads": 1, "versions": {"python": sys.version.split()[0]}}

    def find(self, request):
        if request.get("handle") not in self.plans:
            raise Refused("error", f"no plan of handle {request.get('handle')} is resident")
        return self.plans[request["handle"]]

    def prepare(self, request):
        values = request["plan"]
        if values.get("ranks") != self.group.size:
            raise Refused("infeasible", f"this group has ranks={self.group.size}")
        if values.get("messages") not in HELLO["parameters"][1]["values"] or ROWS % (values["ranks"] * values["messages"]) != 0:
            raise Refused("infeasible", f"messages={values.get('messages')} is not legal")
        plan = self.plan(self.group, values, request["seed"])
        cold = plan.measure()
        plan.step()
        self.handles += 1
        self.plans[self.handles] = plan
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return {"handle": self.handles, "peak": peak, "cold": cold,
                "verify": plan.verify(request["verify"]["projections"], request["verify"]["seed"])}

    def run(self, request):
        plan = self.find(request)
        return [plan.measure() for _ in range(request["n"])]

    def release(self, request):
        self.find(request)
        del self.plans[request["handle"]]

    def part(self, request):
        """This rank's part of an answer, or what it refused. All ranks refuse alike, before they exchange anything."""
        if request.get("op") not in ("hello", "prepare", "run", "release"):
            return {"failed": ["error", f"this worker does not know '{request.get('op')}'"]}
        try:
            return {"part": getattr(self, request["op"])(request)}
        except Refused as refused:
            return {"failed": refused.args}

    def answer(self, request, answers):
        """Rank 0: tells dittune."""
        for answer in answers:
            if "failed" in answer:
                return self.say(op="failed", kind=answer["failed"][0], say=answer["failed"][1])
        parts = [answer["part"] for answer in answers]
        if request["op"] == "hello":
            self.say(**HELLO)
            self.say(op="ready", comm="sockets", ranks=parts)
        elif request["op"] == "prepare":
            self.say(op="prepared", handle=parts[0]["handle"], cold_ns=[part["cold"] for part in parts],
                     peak_bytes=[part["peak"] for part in parts], resident_bytes=max(part["peak"] for part in parts),
                     verify=parts[0]["verify"])
        elif request["op"] == "run":
            self.say(op="samples", handle=request["handle"], ns=list(zip(*parts)))
        else:
            self.say(op="released", handle=request["handle"])
        return None

    def requests(self):
        """Rank 0 reads them and shares them; the end of standard input is one, too."""
        while True:
            request = None
            if self.group.rank == 0:
                request = json.loads(sys.stdin.readline() or '{"op": "quit"}')
            request = self.group.share(request)
            if request.get("op") == "quit":
                return
            yield request

    def serve(self):
        for request in self.requests():
            answers = self.group.gather(self.part(request))
            if self.group.rank == 0:
                self.answer(request, answers)


if __name__ == "__main__":
    Worker().serve()
