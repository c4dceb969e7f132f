#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Two ranks make each block faster and the first step slower: what connections and first use of shapes cost."""
import statistics
import time

from honest import Honest

BLOCKS = 4  # of a step


class Firstuse(Honest):
    parameters = [{"name": "ranks", "role": "ranks", "values": [1, 2], "default": 1}]
    blocks = []  # nanoseconds of every block of the answer under way

    def running(self, values):
        self.blocks = []

    def block(self, values):
        """A rank's share of a block: half of the work with two ranks."""
        begin = time.monotonic_ns()
        for _ in range(4 // values["ranks"]):
            self.multiply()
        self.blocks.append(max(1, time.monotonic_ns() - begin))

    def step(self, values):
        for _ in range(BLOCKS):
            self.block(values)
        return [sum(self.blocks[-BLOCKS:])] * values["ranks"]

    def cold_work(self, values):
        for _ in range(40 * values["ranks"]):
            self.multiply()

    def phases(self, values, n):
        whole = sum(self.blocks)
        return dict(steps=n, kinds=[dict(name="rest", ns=whole)], step_ns=whole,
                    blocks=[dict(name="block", count=len(self.blocks),
                                 median_ns=int(statistics.median(self.blocks)))])


Firstuse().serve()
