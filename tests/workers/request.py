# SPDX-License-Identifier: MIT
# ctest: ranks
"""workers/dittune_workers/request/plan.py with processes that wait for the ranks of an engine: they are stopped between requests,
also behind one that has failed, and one that has ended is named."""
import pathlib
import subprocess
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

sys.path.insert(0, str(SOURCE / "workers"))
sys.modules["dittune_workers.network.rank"] = types.ModuleType("rank")  # needs torch, and only projects outputs
from dittune_workers.request import plan

t = Dittune(clock="real")


def state(process):
    return pathlib.Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


class Server:
    """Two processes that sleep, and requests that fail when they are told to."""

    def __init__(self):
        self.ranks, self.fails, self.states = [subprocess.Popen(["sleep", "4712"]) for _ in range(2)], False, []

    def pids(self):
        return [process.pid for process in self.ranks]

    def serve(self, prompt, seed, keep):
        self.states = [state(process) for process in self.ranks]
        if self.fails:
            raise RuntimeError("the request was refused")
        return seed if keep else None

    def close(self):
        for process in self.ranks:
            process.kill()
            process.wait()


def failure(request):
    try:
        request()
    except RuntimeError as error:
        return str(error)
    return "none"


server = Server()
engine = types.SimpleNamespace(engine="fake", plans=[], start=lambda values: server)
resident = plan.Plan(engine, {}, 7)
stopped = lambda: t.until(lambda: [state(process) for process in server.ranks] == ["T", "T"], 20)
t.check("ranks that wait are stopped", stopped())
resident.step()
t.check("they run while a request is served", "T" not in server.states and resident.out == 7, server.states)
t.check("and are stopped behind it", stopped())
server.fails = True
t.check("a request that fails says so", failure(resident.measure) == "the request was refused")
t.check("and the ranks are stopped, too", stopped(), [state(process) for process in server.ranks])
server.ranks[1].kill()
server.ranks[1].wait()
t.check("a rank that has ended is named", failure(resident.measure) == f"a rank of fake, process {server.ranks[1].pid}, has ended")
server.ranks.pop()
resident.close()
t.check("a closed plan is no longer of the engine", engine.plans == [])
t.none_left()
t.finish()
