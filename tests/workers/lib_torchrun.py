#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/workers/torchrun.py with faults of rank 1: the parameter `messages` names one. Each process appends the variables of its
rank to the file $SEEN."""
import json
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples/workers"))
import torchrun

WELL, KILLED, HANGS, WRONG, RAISES = 1, 2, 4, 8, 16
VARIABLES = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"]


class Planted(torchrun.Plan):
    def exchange(self, part):
        if self.group.rank == 1 and self.messages == KILLED:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.group.rank == 1 and self.messages == HANGS:
            time.sleep(10000)
        if self.group.rank == 1 and self.messages == RAISES:
            raise ValueError("of rank 1")
        if self.group.rank == 1 and self.messages == WRONG:
            part = [0.0] * len(part)
        return super().exchange(part)


ranks, messages = torchrun.HELLO["parameters"]
ranks["values"] = [1, 2]
messages["values"] = [WELL, KILLED, HANGS, WRONG, RAISES]
torchrun.HELLO["rules"] = [{"if": "ranks > 1 || messages == 1", "say": "one rank has no faults"}]
with open(os.environ["SEEN"], "a", encoding="ascii") as seen:
    seen.write(json.dumps({name: os.environ.get(name) for name in VARIABLES}) + "\n")
worker = torchrun.Worker()
worker.plan = Planted
worker.serve()
