#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Leaves with code 3 in the middle of a run."""
import os

from honest import Honest


class Exits(Honest):
    def running(self, values):
        if values["mode"] == 1:
            os._exit(3)


Exits().serve()
