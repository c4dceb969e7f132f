# SPDX-License-Identifier: MIT
"""A small honest worker (a product of two matrices of 24 rows) that the programs beside it make misbehave, for plans with
mode=1 only: mode=0 is the default, and the session must go on with 2 and 3."""
import json
import os
import random
import sys
import time

N = 24


class Honest:
    parameters = [{"name": "mode", "values": [0, 1, 2, 3], "default": 0}]

    # What a misbehaving worker overrides.
    def preparing(self, values):
        """Called when a plan is prepared."""

    def running(self, values):
        """Called when a plan is run."""

    def output(self, values):
        return self.multiply()

    def cold_work(self, values):
        """Done in the first step only."""

    def phases(self, values, n):
        return None

    # The work.
    def multiply(self):
        rng = random.Random(1)
        a = [[rng.uniform(-1, 1) for _ in range(N)] for _ in range(N)]
        b = list(zip(*[[rng.uniform(-1, 1) for _ in range(N)] for _ in range(N)]))
        return [sum(x * y for x, y in zip(row, column)) for row in a for column in b]

    def step(self, values):
        begin = time.monotonic_ns()
        self.multiply()
        return [max(1, time.monotonic_ns() - begin)] * values.get("ranks", 1)

    # The protocol.
    def say(self, **message):
        self.write(json.dumps(message).encode() + b"\n")

    def write(self, data):
        while data:
            data = data[os.write(self.out, data):]

    def prepare(self, request):
        values = request["plan"]
        for parameter in self.parameters:
            if values.get(parameter["name"]) not in parameter["values"]:
                return self.say(op="failed", kind="infeasible", say=f"{parameter['name']} is not legal")
        self.preparing(values)
        begin = time.monotonic_ns()
        self.cold_work(values)
        out = self.output(values)
        cold = [time.monotonic_ns() - begin] * values.get("ranks", 1)
        self.last += 1
        self.handles[self.last] = values
        count, seed = request["verify"]["projections"], request["verify"]["seed"]
        signs = [random.Random(f"{seed}/{k}") for k in range(count)]
        sums = [sum(x * rng.choice((-1, 1)) for x in out) for rng in signs]
        finite = [x if x == x else None for x in sums]
        norm = sum(x * x for x in out) ** 0.5
        return self.say(op="prepared", handle=self.last, peak_bytes=[1 << 20] * len(cold), cold_ns=cold,
                        resident_bytes=1 << 20, verify=dict(norm=[norm if norm == norm else None], projections=[finite]))

    def run(self, request):
        values = self.handles.get(request["handle"])
        if values is None:
            return self.say(op="failed", kind="error", say="no plan of this handle is resident")
        self.running(values)
        ns = [self.step(values) for _ in range(request["n"])]
        answer = dict(op="samples", handle=request["handle"], ns=ns)
        phases = self.phases(values, request["n"])
        return self.say(**answer, **(dict(phases=phases) if phases else {}))

    def serve(self):
        self.out = os.dup(1)
        os.dup2(2, 1)
        self.handles, self.last = {}, 0
        for line in sys.stdin:
            request = json.loads(line)
            if request["op"] == "hello":
                self.say(op="hello", protocol=1, name=type(self).__name__.lower(), version="1", launch="self",
                         parameters=self.parameters)
                self.say(op="ready", ranks=[dict(rank=0, pid=os.getpid(), host="here", device="cpu", cores=[0], threads=1)])
            elif request["op"] == "prepare":
                self.prepare(request)
            elif request["op"] == "run":
                self.run(request)
            elif request["op"] == "release":
                self.handles.pop(request["handle"], None)
                self.say(op="released", handle=request["handle"])
            elif request["op"] == "quit":
                return
            else:
                self.say(op="failed", kind="error", say="unknown request")
