#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A worker in standard-library Python: dittune tunes it without knowing what it does (docs/protocol.md).

One step multiplies two square matrices in blocks. The plan says how: tile and order change how the memory is walked,
ranks=2 gives half of the rows to a second process. Every plan computes the same product.

    dittune --worker examples/workers/minimal.py --budget 20s
    dittune worker-test examples/workers/minimal.py
"""
import array
import json
import os
import random
import resource
import socket
import sys
import time

ROWS = 64  # of the matrices
HELLO = {
    "op": "hello", "protocol": 1, "name": "minimal", "version": "1.0", "engine": "minimal", "mode": "eager",
    "launch": "self", "workload": f"a {ROWS} x {ROWS} matrix product in plain Python",
    "parameters": [
        {"name": "ranks", "role": "ranks", "values": [1, 2], "default": 1, "doc": "processes; each does its share of the rows"},
        {"name": "tile", "values": [8, 16, 32, 40, 64], "default": 16, "doc": "rows of the inner block"},
        {"name": "order", "values": ["row", "column"], "default": "row", "doc": "which index runs innermost"},
    ],
    "constants": {"rows": ROWS},
    "rules": [{"if": "rows % tile == 0", "say": "tile must divide the rows"}],
}


class Refused(Exception):
    """A request that cannot be served: (kind, sentence). The worker stays usable."""


# ---- the work: out[rows of this rank] = a * b, in blocks of `tile` rows of b

def make_matrix(seed):
    rng = random.Random(seed)
    return array.array("d", (rng.uniform(-1, 1) for _ in range(ROWS * ROWS)))


def multiply(a, b, out, first, last, tile, order):
    for i in range(first, last):
        row = [0.0] * ROWS
        for start in range(0, ROWS, tile):
            if order == "row":
                for k in range(start, start + tile):
                    x, at = a[i * ROWS + k], k * ROWS
                    row = [s + x * y for s, y in zip(row, b[at:at + ROWS])]
            else:
                part = a[i * ROWS + start:i * ROWS + start + tile]
                for j in range(ROWS):
                    column = b[start * ROWS + j:(start + tile) * ROWS:ROWS]
                    row[j] += sum(x * y for x, y in zip(part, column))
        out[i * ROWS:(i + 1) * ROWS] = array.array("d", row)


class Plan:
    """A plan made resident: its matrices, and the ranks beside this one, asleep in recv until a step begins."""

    def __init__(self, values, seed):
        self.values = values
        self.a, self.b = make_matrix(seed), make_matrix(seed + 1)
        self.out = array.array("d", bytes(8 * ROWS * ROWS))
        self.half = ROWS // values["ranks"]
        self.peer = None
        if values["ranks"] == 2:
            self.peer, other = socket.socketpair()
            self.child = os.fork()
            if self.child == 0:
                self.serve(other)
            other.close()

    def compute(self, first, last):
        """This rank's share; its time in nanoseconds."""
        begin = time.monotonic_ns()
        multiply(self.a, self.b, self.out, first, last, self.values["tile"], self.values["order"])
        return max(1, time.monotonic_ns() - begin)

    def serve(self, link):
        """The second rank: for each byte a step, answered by its time and its rows."""
        kept = link.detach()
        os.closerange(0, kept)  # whatever another plan or the protocol has open must not stay open here
        os.closerange(kept + 1, 1024)
        link = socket.socket(fileno=kept)
        while link.recv(1) == b"s":
            spent = self.compute(self.half, ROWS)
            link.sendall(spent.to_bytes(8, "little") + self.out[self.half * ROWS:].tobytes())
        os._exit(0)

    def step(self):
        """One step of all ranks: [nanoseconds of each rank]."""
        if self.peer is None:
            return [self.compute(0, ROWS)]
        begin = time.monotonic_ns()
        self.peer.sendall(b"s")
        self.compute(0, self.half)
        size = 8 + 8 * ROWS * (ROWS - self.half)
        answer = self.peer.recv(size, socket.MSG_WAITALL)
        if len(answer) < size:
            sys.exit("the second rank died")
        self.out[self.half * ROWS:] = array.array("d", answer[8:])
        return [max(1, time.monotonic_ns() - begin), int.from_bytes(answer[:8], "little")]

    def close(self):
        if self.peer is not None:
            self.peer.close()
            os.waitpid(self.child, 0)

    def verify(self, count, seed):
        """The norm of the output and its projections on `count` seeded vectors of +1 and -1."""
        sums = []
        for k in range(count):
            signs = random.Random(f"{seed}/{k}").getrandbits(ROWS * ROWS)
            sums.append(sum(x if signs >> e & 1 else -x for e, x in enumerate(self.out)))
        return {"norm": [sum(x * x for x in self.out) ** 0.5], "projections": [sums]}


# ---- the protocol: one request, one answer

class Worker:
    def __init__(self):
        # The protocol keeps a descriptor of its own; whatever else prints goes to standard error.
        self.out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self.plans, self.handles = {}, 0

    def say(self, **message):
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()

    def plan(self, request):
        if request.get("handle") not in self.plans:
            raise Refused("error", f"no plan of handle {request.get('handle')} is resident")
        return self.plans[request["handle"]]

    def steps(self, plan, n):
        rows, spoke = [], time.monotonic()
        for _ in range(n):
            rows.append(plan.step())
            if time.monotonic() - spoke > 1:  # between steps, never within
                self.say(op="heartbeat")
                spoke = time.monotonic()
        return rows

    def prepare(self, request):
        values = request["plan"]
        for parameter in HELLO["parameters"]:
            if values.get(parameter["name"]) not in parameter["values"]:
                raise Refused("infeasible", f"{parameter['name']}={values.get(parameter['name'])} is not legal")
        if ROWS % values["tile"] != 0:
            raise Refused("infeasible", "tile must divide the rows")
        plan = Plan(values, request["seed"])
        self.say(op="heartbeat", say="the first step")  # shown on the live line; send more during work of minutes
        cold = plan.step()
        self.steps(plan, 1)
        self.handles += 1
        self.plans[self.handles] = plan
        peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return dict(op="prepared", handle=self.handles, peak_bytes=[peak] * values["ranks"], resident_bytes=peak,
                    cold_ns=cold, verify=plan.verify(request["verify"]["projections"], request["verify"]["seed"]))

    def run(self, request):
        return dict(op="samples", handle=request["handle"], ns=self.steps(self.plan(request), request["n"]))

    def release(self, request):
        self.plan(request).close()
        del self.plans[request["handle"]]
        return dict(op="released", handle=request["handle"])

    def answer(self, request):
        if request.get("op") not in ("prepare", "run", "release"):
            raise Refused("error", f"this worker does not know '{request.get('op')}'")
        return getattr(self, request["op"])(request)

    def serve(self):
        for line in sys.stdin:
            request = json.loads(line)
            if request.get("op") == "quit":
                break
            if request.get("op") == "hello":
                self.say(**HELLO)
                self.say(op="ready", comm="socket", ranks=[{"rank": 0, "pid": os.getpid(), "host": socket.gethostname(),
                         "device": "cpu", "cores": sorted(os.sched_getaffinity(0)), "threads": 1,
                         "versions": {"python": sys.version.split()[0]}}])
                continue
            try:
                self.say(**self.answer(request))
            except Refused as refused:
                self.say(op="failed", kind=refused.args[0], say=refused.args[1])
        for plan in self.plans.values():
            plan.close()


if __name__ == "__main__":
    Worker().serve()
