# SPDX-License-Identifier: MIT
# ctest: ranks
"""A GPU's failures in the middle of a session: each costs one trial and its group, the session goes on and ends with
a stored plan, the journal says which phase the trial was in and why, and no process is left.

A session has ten minutes of its own clock. It is moved past the deadline of a trial that hangs, and to the end once
the trial after the failed one is measured."""
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from fake_gpus import FakeGpus, need_fake_gpus

ILLEGAL, OUT_OF_MEMORY = 700, 2
BUDGET, LEFT = 600, 4  # seconds, and how many of them the session has left in the end
PATIENCE = 120         # seconds, more than any trial of such a session may take
FINE = ("ok", "slow", "interrupted")
MEASURED = ("ok", "slow")  # slow: on a busy machine a plan of two ranks often is

# Each fault strikes rank or GPU 1, so that plans of one rank are spared; the possible outcomes, and words of the cause.
# A plan that finds no memory is tried again in a fresh group, so that takes two faults.
MEMORY = f":fault=cudaMalloc,at=3,code={OUT_OF_MEMORY},rank=1,once"
HANG = ":fault=exchange,at=30,do=hang,rank=1,once"
GONE = {"hung", "failed", "crashed"}
CASES = [
    ("out of memory in a trial", MEMORY + MEMORY, None, {"out of memory"}, ("memory",)),
    ("an illegal address, which stays", f":fault=launch,at=200,code={ILLEGAL},rank=1,once", None, GONE,
     ("illegal memory access",)),
    ("an exchange that hangs", HANG, "wait", GONE, ("while",)),
    ("and an abort that hangs, too", HANG + ":fault=ncclCommAbort,at=0,do=hang", "wait", GONE, ("while",)),
    ("a rank that is killed", HANG, "kill", {"crashed"}, ("rank 1", "while running")),
]


def is_running(machine):
    """The last word is to the worker: to run steps."""
    talk = machine.talk()
    return talk and talk[-1][0] and talk[-1][1]["op"] == "run"


def strike(machine, how):
    """The exchange hangs: the group is waited for, or its rank 1 is killed."""
    machine.check("    the fault strikes", machine.until(machine.fired))
    if how == "wait":
        machine.advance(PATIENCE)
    if how == "kill":
        machine.check("    while steps run", machine.until(lambda: is_running(machine)))
        ranks = [message["ranks"] for _, message in machine.talk() if message["op"] == "ready"][-1]
        os.kill(ranks[1]["pid"], signal.SIGKILL)


def is_past(machine):
    """A trial failed, and one after it is measured."""
    outcomes = [trial["outcome"] for trial in machine.records("trial")]
    bad = [i for i, outcome in enumerate(outcomes) if outcome not in FINE]
    return bad and any(outcome in MEASURED for outcome in outcomes[bad[0] + 1:])


def check(name, faults, how, outcomes, words):
    machine = FakeGpus(faults)
    process = machine.start("tune", "--model", machine.network, "--size", "64", "--budget", f"{BUDGET}s",
                            "--search", "random")
    if how is not None:
        strike(machine, how)
    machine.until(lambda: is_past(machine) or process.poll() is not None)
    machine.advance(max(0, BUDGET - LEFT - machine.elapsed()))
    code = process.wait(timeout=600)
    messages = machine.read("err")
    machine.check(f"{name}: the session ends by itself", code in (0, 6), (code, messages))
    trials = machine.records("trial")
    bad = [trial for trial in trials if trial["outcome"] not in FINE]
    ends = [(trial["outcome"], trial["cause"]) for trial in trials]
    machine.check(f"{name}: one trial fails, once", len(bad) == 1, ends)
    for trial in bad:
        machine.check(f"{name}: is one of {sorted(outcomes)}", trial["outcome"] in outcomes, ends)
        machine.check(f"{name}: phase and cause", all(word in trial["cause"] for word in words), ends)
        print("    ", trial["outcome"], "-", trial["cause"])
    later = trials[trials.index(bad[0]) + 1:] if bad else []
    machine.check(f"{name}: what comes after it is measured", any(trial["outcome"] in MEASURED for trial in later), ends)
    machine.check(f"{name}: a plan is stored", len(machine.stored()) == 1, messages)
    machine.none_left(f"{name}: nobody is left")
    return machine.failed


need_fake_gpus()
sys.exit(1 if sum(check(*case) for case in CASES) else 0)
