#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Its output is not a number."""
from honest import Honest


class Nan(Honest):
    def output(self, values):
        out = self.multiply()
        return [float("nan")] * len(out) if values["mode"] == 1 else out


Nan().serve()
