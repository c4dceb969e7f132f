#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes 8 MiB a plan to standard error, and prints to standard output: neither may fail a trial."""
import os

from honest import Honest


class Noise(Honest):
    def running(self, values):
        os.write(2, b"hwloc: no such thing\n")
        for _ in range(8 * values["mode"]):
            os.write(2, b"\xff\x00noise\n" * (1 << 17))
        print("a library greets", flush=True)


Noise().serve()
