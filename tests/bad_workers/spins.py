#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Never answers, and burns a core."""
from honest import Honest


class Spins(Honest):
    def running(self, values):
        while values["mode"] == 1:
            pass


Spins().serve()
