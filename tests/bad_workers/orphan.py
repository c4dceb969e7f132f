#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Leaves a process behind, in a session of its own and deaf to SIGTERM."""
import os
import signal

from honest import Honest


class Orphan(Honest):
    def preparing(self, values):
        if values["mode"] == 1 and os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.closerange(0, 64)
                while True:
                    signal.pause()
            os._exit(0)


Orphan().serve()
