#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Answers with bytes that are no JSON."""
from honest import Honest


class Garbage(Honest):
    def running(self, values):
        if values["mode"] == 1:
            self.write(bytes(range(128, 256)) + b" 42 [[[\n")


Garbage().serve()
