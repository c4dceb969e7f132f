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


LINES = "loading", "serving missed its graph"


class Plan(plan.Plan):
    """Two processes that sleep, and requests that fail when they are told to."""

    def start(self):
        self.ranks, self.fails, self.states, self.requested = [subprocess.Popen(["sh", "-c", f"echo {line}; exec sleep 4712"]) for line in LINES], False, [], []

    def pids(self):
        return [process.pid for process in self.ranks]

    def serve(self, job, prompt, seed, keep):
        self.requested.append((job, prompt, seed, keep))
        self.states = [state(process) for process in self.ranks]
        if self.fails:
            raise RuntimeError("the request was refused")
        return seed if keep else None

    def runs_with(self):
        return dict(ranks=2, graphs="on")

    def end(self):
        for process in self.ranks:
            process.kill()
            process.wait()


def failure(request):
    try:
        request()
    except RuntimeError as error:
        return str(error)
    return "none"


JOB = dict(steps=50, guidance=5.0, width=64)
engine = types.SimpleNamespace(engine="fake", plans=[], job=JOB, card=dict(guidance="cfg"), gpu=False,
                               log=[dict(line="missed its graph", name="graphs", value="off")])
resident = Plan(engine, dict(ranks=2), 7)
t.check("what its processes print tells of a setting without effect", t.until(lambda: resident.applied() == dict(ranks=2, graphs="off"), 20))
stopped = lambda: t.until(lambda: [state(process) for process in resident.ranks] == ["T", "T"], 20)
t.check("ranks that wait are stopped", stopped())
resident.step()
t.check("they run while a request is served", "T" not in resident.states and resident.out == 8, resident.states)
t.check("and are stopped behind it", stopped())
VERIFIED = {**JOB, "steps": 2, "guidance": 1.5}  # rounding grows over 50 steps, and guidance of 5 multiplies it
t.check("two steps are verified, with little guidance", resident.requested == [(VERIFIED, plan.PROMPTS[1], 8, True)], resident.requested)
resident.measure()
resident.measure()
whole = [(JOB, plan.PROMPTS[0], 7, True), (JOB, plan.PROMPTS[1], 8, False)]
t.check("whole requests are timed, two prompts in turn, and the first image is kept", resident.requested[1:] == whole and resident.images == [7], resident.requested)
resident.step()
t.check("it is made once where there are other ranks", resident.images == [7])
for guidance, verified in (("cfg", VERIFIED), ("embedded", {**JOB, "steps": 2})):
    engine.card = dict(guidance=guidance)
    other = Plan(engine, dict(ranks=1), 7)
    other.measure()
    other.step()
    t.check("one rank makes it twice, beside the two steps", other.images == [7, 7]
            and other.requested == [whole[0], (verified, plan.PROMPTS[1], 8, True), whole[0]], other.requested)
    other.close()
engine.job = dict(JOB, steps=1)
resident.requested = []
resident.step()
t.check("a job of one step is verified by one", resident.requested[0][0]["steps"] == 1, resident.requested)
resident.fails = True
t.check("a request that fails says so", failure(resident.measure) == "the request was refused")
t.check("and the ranks are stopped, too", stopped(), [state(process) for process in resident.ranks])
resident.ranks[1].kill()
resident.ranks[1].wait()
t.check("a rank that has ended is named", failure(resident.measure) == f"a rank of fake, process {resident.ranks[1].pid}, has ended")
resident.ranks.pop()
resident.close()
t.check("a closed plan is no longer of the engine", engine.plans == [])
t.none_left()
t.finish()
