#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes 1 GiB without the end of a line."""
from honest import Honest


class Flood(Honest):
    def running(self, values):
        if values["mode"] == 1:
            for _ in range(1024):
                self.write(b"x" * (1 << 20))


Flood().serve()
