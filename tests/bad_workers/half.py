#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Says half a line and leaves."""
import os

from honest import Honest


class Half(Honest):
    def running(self, values):
        if values["mode"] == 1:
            self.write(b"{\"op\": \"samp")
            os._exit(0)


Half().serve()
