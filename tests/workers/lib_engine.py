# SPDX-License-Identifier: MIT
"""An engine without arithmetic for workers/dittune_workers/protocol.py: the parameter `mode` plants faults of ranks."""
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "workers"))
from dittune_workers import protocol

protocol.GRACE = 0.5
MODES = ["well", "slow", "compiled", "stuck", "memory", "refused", "raised", "killed", "large", "apart", "deadlock", "ignored", "lost"]


class Plan:
    most = 2  # bytes, of the steps since the last look
    lost = False  # the device, for this process

    def __init__(self, mode, rank, seed):
        self.mode, self.rank, self.seed, self.steps = mode, rank, seed, 0
        Plan.lost |= mode == "lost" and rank == 0
        if Plan.lost:  # no plan of this process computes any more
            raise ValueError("an illegal address")
        if mode == "refused":  # by every rank
            raise protocol.Refused("infeasible", "no plan takes mode refused")
        if mode == "memory" and rank == 1:
            raise MemoryError("of rank 1")
        if mode == "memory" and os.environ["WORLD_SIZE"] != "1":
            time.sleep(60)  # waits for the rank that has failed, as in a collective

    def step(self):
        self.steps += 1
        Plan.most = max(Plan.most, 50 if self.mode == "large" else 2)
        if self.mode == "slow":
            time.sleep(1.1)
        if self.mode == "compiled":
            until = time.monotonic() + 2.5  # a compiler computes
            while time.monotonic() < until:
                pass
        if self.mode in ("stuck", "deadlock"):  # in a collective that never ends
            time.sleep(10000)
        if self.mode == "raised":
            raise ValueError("in a\nstep")
        if self.mode == "killed" and self.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.mode == "killed":
            time.sleep(60)

    def measure(self):
        begin = time.monotonic_ns()
        self.step()
        return max(1, time.monotonic_ns() - begin), None

    def output(self, projections, seed):
        """Of the parity of the step, and of the rank when the mode is `apart`."""
        own = self.steps % 2 + (10 * self.rank if self.mode == "apart" else 0)
        return dict(norm=[1.0], projections=[[own + bin(protocol.signs(seed, k, 64)).count("1") for k in range(projections)]])

    def applied(self):
        return dict(ranks=int(os.environ["WORLD_SIZE"]), mode="well" if self.mode == "ignored" else self.mode)

    def close(self):
        pass


class Engine:
    name, module, fork, comm, job = "fake", "lib_engine", "--spawn" not in sys.argv, "none", {}

    def hello(self, job, devices):
        if job.get("model") == "unknown":
            raise protocol.Refused("infeasible", "there is no model card 'unknown'")
        return dict(name="fake", version="1", engine="fake", mode="eager", workload="nothing", obeys=[], job={}, parameters=[
            dict(name="ranks", role="ranks", values=[1, 2, 4], default=1), dict(name="mode", values=MODES, default="well")])

    def ready(self):
        return dict(device="cpu", threads=1)

    def check(self, plan):
        if plan["mode"] not in MODES or plan["ranks"] not in (1, 2, 4):
            raise protocol.Refused("infeasible", "not announced")

    def compiles(self, plan):
        return plan["mode"] in ("compiled", "deadlock")

    def join(self, rank, ranks):
        self.rank = rank
        time.sleep(2.5 if ranks == 4 and "SLOW_LOAD" in os.environ else 0)
        if (os.environ["RANK"], os.environ["WORLD_SIZE"]) != (str(rank), str(ranks)):
            raise ValueError("the variables of a rank are not its own")

    def memory(self):
        peak, Plan.most = Plan.most, 2
        return dict(peak_bytes=peak, resident_bytes=1)

    def usable(self):
        return not Plan.lost

    def prepare(self, plan, seed):
        return Plan(plan["mode"], self.rank, seed)


if __name__ == "__main__":
    if "--rank" in sys.argv:
        sys.argv.remove("--spawn") if "--spawn" in sys.argv else None
        protocol.become_rank(Engine())
    else:
        protocol.serve(Engine())
