#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two ranks make each block faster and the first step slower: what connections and first use of shapes cost."""
import time

from honest import Honest


class Firstuse(Honest):
    parameters = [{"name": "ranks", "role": "ranks", "values": [1, 2], "default": 1}]

    def work(self, values):
        """Real work, half of it with two ranks; its time in nanoseconds."""
        begin = time.monotonic_ns()
        for _ in range(4 // values["ranks"]):
            self.multiply()
        return time.monotonic_ns() - begin

    def step(self, values):
        return [self.work(values)] * values["ranks"]

    def cold_work(self, values):
        for _ in range(20 * values["ranks"]):
            self.multiply()

    def phases(self, values, n):
        blocks = sorted(self.work(values) for _ in range(5))
        return dict(steps=n, kinds=[dict(name="rest", ns=n * blocks[2])],
                    blocks=[dict(name="block", count=n, median_ns=blocks[2])], step_ns=n * blocks[2])


Firstuse().serve()
