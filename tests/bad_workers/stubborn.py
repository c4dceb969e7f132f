#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Never answers, and ignores every signal that can be ignored."""
import signal

from honest import Honest


class Stubborn(Honest):
    def running(self, values):
        if values["mode"] == 1:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            while True:
                signal.pause()


Stubborn().serve()
