#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Dies of a segmentation fault while it prepares."""
import os
import signal

from honest import Honest


class Segv(Honest):
    def preparing(self, values):
        if values["mode"] == 1:
            os.kill(os.getpid(), signal.SIGSEGV)


Segv().serve()
