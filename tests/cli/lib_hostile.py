#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A worker whose $FIELD has $TEXT: FIELD is a message and a path into it, `hello/parameters/1/doc`; `+` adds a name to an object; several
are parted by a blank. Each that was sent is a line of the file $SENT. Its times are planted: no process beside it, no work."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples/workers"))
import minimal

HELLO = {**minimal.HELLO, "rules": [{"if": "tile != 33 || order == 'row'", "say": "33 goes by rows"}],
         "protocol": 2, "dtype": "float32", "job": {"prompt": "a cat"},
         "parameters": [
    {"name": "ranks", "role": "ranks", "values": [1], "default": 1, "doc": "processes"},
    {"name": "tile", "values": [8, 16, 33], "default": 16, "doc": "rows of the inner block"},
    {"name": "order", "values": ["row", "column"], "default": "row", "doc": "which index runs innermost"}]}
READY = {"devices": [{"name": "a card", "compute": "9.0", "memory_bytes": 1 << 30}]}
SAMPLES = {"warnings": [{"say": "failed and were repeated", "runs": 1}]}
PHASES = {"rank": 0, "host_ns": 9, "exchanges": [{"name": "ring", "kind": "shift", "ranks": 2, "count": 2, "ns": 7, "bytes": 9, "in_flight_ns": 1}],
          "kinds": [{"name": "attention", "ns": 12}], "blocks": [{"name": "block", "count": 8, "median_ns": 11}], "cpu_ns": [9], "wall_ns": [9]}
FAILED = {"kind": "crashed", "say": "the step failed", "brief": "failed"}


def plant(message, path, text):
    """True when the message has the place."""
    *way, last = (int(word) if word.isdigit() else word for word in path)
    try:
        for word in way:
            message = message[word]
        if last == "+":
            message[text] = text
        else:
            assert message[last] is not None
            message[last] = text
    except (KeyError, IndexError, AssertionError):
        return False
    return True


class Plan:
    """Its planted time."""

    def __init__(self, values):
        self.ns = 1_000_000 + 10_000 * (values["tile"] == 16) + 20_000 * (values["order"] == "row")

    def close(self):
        pass


class Worker(minimal.Worker):
    def __init__(self):
        super().__init__()
        self.hostile = [field.split("/") for field in os.environ["FIELD"].split()]
        self.text = os.environ["TEXT"]

    def say(self, **message):
        message = minimal.json.loads(minimal.json.dumps(message))  # places of its own
        if message["op"] == "hello":
            message = minimal.json.loads(minimal.json.dumps(HELLO))
        if message["op"] == "ready":
            message.update(READY)
        if message["op"] == "samples":
            message.update(SAMPLES, phases={**PHASES, "steps": len(message["ns"]), "step_ns": [sum(row[0] for row in message["ns"])]})
        for op, *path in self.hostile:
            if op == message["op"] and plant(message, path, self.text):
                with open(os.environ["SENT"], "a", encoding="ascii") as sent:
                    sent.write("/".join((op, *path)) + "\n")
        super().say(**message)

    def prepare(self, request):
        if request["plan"]["tile"] == 33:
            return {"op": "failed", **FAILED}
        self.say(op="heartbeat", say="the first step")
        self.handles += 1
        self.plans[self.handles] = Plan(request["plan"])
        return {"op": "prepared", "handle": self.handles, "peak_bytes": [1], "resident_bytes": 1, "cold_ns": [2_000_000],
                "verify": {"norm": [1], "projections": [[1] * request["verify"]["projections"]]}, "warnings": SAMPLES["warnings"]}

    def run(self, request):
        return {"op": "samples", "handle": request["handle"], "ns": [[self.plan(request).ns + k % 7 * 100] for k in range(request["n"])]}

    def release(self, request):
        del self.plans[request["handle"]]
        return {"op": "released", "handle": request["handle"]}


if __name__ == "__main__":
    Worker().serve()
