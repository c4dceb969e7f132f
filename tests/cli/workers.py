# SPDX-License-Identifier: MIT
# ctest: ranks
"""Foreign workers: the minimal example is tuned end to end; each misbehaviour costs one trial and is recorded.

Workers that hang for good, as the wall clock sees it: workers_hung.py. What `worker-test` promises: worker_test.py."""
import pathlib
import re
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

MINIMAL = SOURCE / "examples" / "workers" / "minimal.py"
MS = 1_000_000
BUDGET = 30  # seconds of virtual time
BAD = 1  # the plan that misbehaves; plan 0 is the default, and the session must go on with 2 and 3

# fault: the outcome that is recorded
OUTCOMES = {
    "exit": "crashed",
    "segv": "crashed",
    "hang": "hung",
    "half": "protocol",
    "garbage": "protocol",
    "flood": "protocol",
    "nan": "wrong answer",
    "wrong": "wrong answer",
    "memory": "out of memory",
    "infeasible": "infeasible",
    "error": "failed",
    "unapplied": "not applied",
}


def variant(t, name, old, new):
    """The minimal example with another text in one place; its path."""
    text = MINIMAL.read_text()
    assert text.count(old) == 1, old
    path = t.write(name, text.replace(old, new))
    path.chmod(0o755)
    return path


def minimal(t):
    """The example on smaller matrices. It does not move the session's time: each look at the clock takes 5 ms of it."""
    worker = variant(t, "minimal.py", "ROWS = 64", "ROWS = 16")
    done = t.tool("tune", "--worker", worker, "--budget", "30s", "--json", env={"DITTUNE_CLOCK_LOOK": 5 * MS})
    result = done.json
    t.check("minimal.py is tuned", done.code in (0, 6) and result["best"]["median_seconds"] > 0  # a busy machine may decide nothing
            and result["verdict"] in ("faster", "tie", "default", "provisional", "inconclusive"), done)
    good = [trial for trial in result["trials"] if trial["samples_seconds"]]  # slow ones are dropped after the first samples
    t.check("its plans are verified", len(good) > 1 and all(trial["verified_error"] is not None for trial in good), done)
    done = t.tool("lookup", "--worker", worker, "--json")
    t.check("and looked up", done.code == 0 and done.json["tier"] == "exact", done)
    entry = done.json["entry"]
    t.check("its entry knows it by a hash of its space, which it keeps",
            set(entry["key"]) == {"worker", "workload", "devices", "space", "objective"} and len(entry["key"]["space"]) == 16
            and set(entry["space"]) == {"parameters", "constants", "rules"}
            and entry["fingerprint"]["soft"]["worker"].startswith("minimal") and "python" in entry["fingerprint"]["soft"], done)
    ruled = variant(t, "ruled.py", '"rows % tile == 0"', '"rows % tile == 0 && tile < 1000"')
    t.exits("another rule is another space", t.tool("lookup", "--worker", ruled, "--json"), 10)


def planted(t, **fault):
    """A session of four plans, one of which misbehaves: what it printed."""
    t.scenario(ns=[MS] * 4, cv=0.01, faults=[{"when": {"plan": BAD}, **fault}])
    return t.tune("--budget", f"{BUDGET}s", "--json")


def misbehaves(t, fault, outcome):
    done = planted(t, do=fault)
    trials = {trial["plan"]["plan"]: trial for trial in (done.json or {}).get("trials", [])}
    t.check(f"{fault}: recorded as {outcome}, the session goes on",
            done.code == 0 and trials[BAD]["outcome"] == outcome and trials[BAD]["cause"]
            and all(trials[plan]["outcome"] == "ok" for plan in (0, 2, 3)), done)
    t.check(f"{fault}: within the budget", done.json and done.json["elapsed_seconds"] <= BUDGET, done)


def harmless(t):
    done = planted(t, do="chatter")
    t.check("noise on standard error fails nothing",
            done.code == 0 and len(done.json["trials"]) == 4 and all(trial["outcome"] == "ok" for trial in done.json["trials"]), done)
    done = planted(t, do="orphan")
    t.check("a process left behind fails nothing", done.code == 0 and all(trial["outcome"] == "ok" for trial in done.json["trials"]), done)
    t.none_left()


def first_use(t):
    """Two ranks make each block faster and the first step slower: what connections and first use of shapes cost."""
    t.scenario(axes={"ranks": [1, 2]}, weights={"ranks": 1}, best={"ranks": 1}, blocks=4, cv=0.01,
               plans=[{"when": {"ranks": 1}, "cold": 10}, {"when": {"ranks": 2}, "cold": 40}])
    done = t.tool("run", "--worker", t.worker, "--plan", "ranks=2")
    t.exits("faster blocks, slower cold run: said, with the reason", done, 0, "blocks got faster", "cold run got slower")


def paste_look_up(t, done):
    """The answer of the look-up that tune printed, as JSON."""
    line = re.search("Look it up: dittune (.*)", done.out)
    return t.tool(*(shlex.split(line[1]) if line else ["none"]), "--json")


def devices(t):
    """Plans of more ranks than devices are no plans: for tune, space, run and lookup alike."""
    cores = t.tool("machine", "--json").json["hard"]["cores"]
    more = cores + 1
    t.scenario(axes={"ranks": [1, more]}, weights={"ranks": 0.5}, best={"ranks": 1}, cv=0.001,
               parameters=[{"name": "ranks", "role": "ranks", "values": [1, more], "default": more}])
    done = t.tune("--budget", "20s")
    t.exits("without --devices the cores are the limit", done, 0, out=[f"plans of more than {cores} rank", "(1 plan)"])
    found = paste_look_up(t, done)
    t.check("the look-up that is printed finds the plan", found.code == 0 and found.json["tier"] == "exact"
            and found.json["plan"] == {"ranks": 1}, found)
    done = t.tune("--budget", "20s", "--devices", more)
    t.check("with --devices they are tried", done.code == 0 and "left out" not in done.out, done)
    found = paste_look_up(t, done)
    t.check("and found by what is printed", found.code == 0 and found.json["tier"] == "exact"
            and found.json["plan"] == {"ranks": more} and found.json["key"]["devices"] == more, found)
    t.exits("space leaves them out, and says by which rule", t.tool("space", "--worker", t.worker, "--devices", 1), 0,
            out=["1 feasible plan among 2", "the number of devices, 1 (--devices)"])
    limited = t.tool("run", "--worker", t.worker, "--plan", f"ranks={more}", "--devices", 1)
    t.exits("run takes no such plan", limited, 3, err=["the number of devices, 1", f"ranks={more}"])
    t.exits("unless --devices is left to it", t.tool("run", "--worker", t.worker, "--plan", f"ranks={more}"), 0)
    t.scenario(axes={"ranks": [2, 3]}, parameters=[{"name": "ranks", "role": "ranks", "values": [2, 3]}])
    t.exits("a worker of larger plans alone has none", t.tune("--budget", "5s", "--devices", 1), 3, err="no feasible plan among 2")


t = Dittune()
minimal(t)
for fault, outcome in OUTCOMES.items():
    misbehaves(t, fault, outcome)
harmless(t)
first_use(t)
devices(t)
t.none_left()
t.finish()
