#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Says that a plan does not fit."""
from honest import Honest


class Nomem(Honest):
    def prepare(self, request):
        if request["plan"]["mode"] == 1:
            return self.say(op="failed", kind="memory", say="needs 5 TiB, has 1 MiB")
        return super().prepare(request)


Nomem().serve()
