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
        self.ranks, self.fails, self.states, self.asked = [subprocess.Popen(["sleep", "4712"]) for _ in range(2)], False, [], []

    def pids(self):
        return [process.pid for process in self.ranks]

    def serve(self, job, prompt, seed, keep):
        self.asked.append((job, prompt, seed, keep))
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
JOB = dict(steps=50, guidance=5.0, width=64)
guided = True
engine = types.SimpleNamespace(engine="fake", plans=[], start=lambda values: server, job=JOB, guided=lambda: guided)
resident = plan.Plan(engine, dict(ranks=2), 7)
stopped = lambda: t.until(lambda: [state(process) for process in server.ranks] == ["T", "T"], 20)
t.check("ranks that wait are stopped", stopped())
resident.step()
t.check("they run while a request is served", "T" not in server.states and resident.out == 8, server.states)
t.check("and are stopped behind it", stopped())
VERIFIED = {**JOB, "steps": 2, "guidance": 1.5}  # rounding grows over 50 steps, and guidance of 5 multiplies it
t.check("two steps are verified, with little guidance", server.asked == [(VERIFIED, plan.PROMPTS[1], 8, True)], server.asked)
resident.measure()
resident.measure()
whole = [(JOB, plan.PROMPTS[0], 7, True), (JOB, plan.PROMPTS[1], 8, False)]
t.check("whole requests are timed, two prompts in turn, and the first image is kept", server.asked[1:] == whole and resident.images == [7], server.asked)
resident.step()
t.check("it is made once where there are other ranks", resident.images == [7])
for guided, ranks, verified in ((True, 1, VERIFIED), (False, 1, {**JOB, "steps": 2})):
    other, server.asked = plan.Plan(engine, dict(ranks=ranks), 7), []
    other.measure()
    other.step()
    t.check("one rank makes it twice, beside the two steps", other.images == [7, 7]
            and server.asked == [whole[0], (verified, plan.PROMPTS[1], 8, True), whole[0]], server.asked)
    engine.plans.remove(other)
engine.job = dict(JOB, steps=1)
server.asked = []
resident.step()
t.check("a job of one step is verified by one", server.asked[0][0]["steps"] == 1, server.asked)
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
