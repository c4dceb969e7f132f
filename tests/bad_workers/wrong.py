#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One element of its output is off by 1 % of the norm."""
from honest import Honest


class Wrong(Honest):
    def output(self, values):
        out = self.multiply()
        if values["mode"] == 1:
            out[7] += 0.01 * sum(x * x for x in out) ** 0.5
        return out


Wrong().serve()
