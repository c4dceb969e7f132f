# SPDX-License-Identifier: MIT
# ctest: timing
"""Workers that say "launch": "torchrun": the ranks of the example exchange real data, and of a rank that dies, hangs, fails or is
wrong the outcome of the trial tells. No process stays."""
import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Done, SOURCE, Dittune

EXAMPLE, PLANTED = SOURCE / "examples/workers/torchrun.py", SOURCE / "tests/workers/lib_torchrun.py"
t = Dittune(clock="real")
SEEN = t.path / "seen"


def conforms():
    done = t.tool("worker-test", EXAMPLE, "--json")
    results = {check["check"]: check["result"] for check in (done.json or {"checks": []})["checks"]}
    t.check("the example keeps each promise, on 1 to 3 ranks", done.code == 0 and results.get("agree") == "ok"
            and set(results.values()) == {"ok"}, done)


def tuned():
    """A session whose trials are all it is for: it is interrupted when each plan has had its own, however busy the machine is."""
    t.environment["SEEN"] = str(SEEN)
    session = t.start("tune", "--worker", PLANTED, "--devices", 2, "--budget", "2m", "--search", "exhaustive", "--json")
    t.until(lambda: session.poll() is not None or "shoot-out" in t.read("err") or "final comparison" in t.read("err"))
    session.send_signal(signal.SIGINT)
    done = Done(session.args, session.wait(), t.read("out"), t.read("err"))
    trials = {(trial["plan"]["ranks"], trial["plan"]["messages"]): trial for trial in (done.json or {"trials": []})["trials"]
              if trial["outcome"] != "interrupted"}  # a second attempt of a plan that failed may come too late

    def ended(messages, outcome, cause):
        trial = trials.get((2, messages), {})
        t.check(f"messages={messages}: {outcome}, with the cause", trial.get("outcome") == outcome and cause in trial["cause"], done)

    t.check("one rank, and two that work, are measured", all(trials.get(plan, {}).get("outcome") in ("ok", "slow") for plan in ((1, 1), (2, 1))),
            done)
    ended(2, "crashed", "rank 1 killed by signal 9 (SIGKILL)")
    ended(4, "hung", "no answer before the deadline")
    ended(8, "wrong answer", "")
    ended(16, "crashed", "exited with 1")
    t.none_left("and no rank is left")


def variables():
    """Of each process: none for the one that is asked for its hello, else those of its rank."""
    seen = [json.loads(line) for line in SEEN.read_text(encoding="ascii").splitlines()]
    t.check("the first process has none", seen[0]["RANK"] is None and seen[0]["MASTER_PORT"] is None, seen[0])
    groups = {}
    for rank in seen[1:]:
        groups.setdefault((int(rank["WORLD_SIZE"]), int(rank["MASTER_PORT"])), set()).add(int(rank["RANK"]))
    t.check("each rank has its number, the sizes and the address", all(
        rank["LOCAL_RANK"] == rank["RANK"] and rank["LOCAL_WORLD_SIZE"] == rank["WORLD_SIZE"] and rank["MASTER_ADDR"] == "127.0.0.1"
        for rank in seen[1:]), seen)
    whole = [ranks == set(range(size)) for (size, _), ranks in groups.items()]
    t.check("all ranks of a group have one port", len(whole) > 2 and all(whole[:-1]), groups)


def refused():
    t.scenario(ns=[1000000], launch="torchrum")
    t.exits("an unknown launch is refused", t.tune("--budget", "5s"), 2, err="'launch' is neither")


conforms()
tuned()
variables()
refused()
t.finish()
