# SPDX-License-Identifier: MIT
# ctest: ranks
"""`worker-test`: the workers of this tree keep every promise of the protocol, one that breaks any of them is told which.

A parked worker's share of a core is its own processor time, so it does not matter what else runs."""
import concurrent.futures
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune

MINIMAL = SOURCE / "examples" / "workers" / "minimal.py"
# dittune-worker, told in hello of a small network (with the heads of the one that worker-test means)
SMALL_WORKER = f"""#!/usr/bin/env python3
import json, os, subprocess, sys, threading
network = json.load(open("{SOURCE}/examples/networks/tiny.json"))
network.update(hidden=48, depth=1)
small = dict(network=network, height=32, width=32, guidance=True, dtype="float32", seed=1, sampler_steps=50)
worker = subprocess.Popen(["{BUILD}/dittune-worker"], stdin=subprocess.PIPE)
def pass_on():
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message["op"] == "hello":
            message["workload"] = small
        worker.stdin.write(json.dumps(message).encode() + b"\\n")
        worker.stdin.flush()
    worker.stdin.close()
threading.Thread(target=pass_on, daemon=True).start()
os._exit(worker.wait())
"""
PROMISES = 14

# the promise that fails: the scenario's fault
BROKEN = {
    "start": {"do": "answer", "at": "ready", "fields": {"ranks": [{"rank": 0}]}},
    "prepare": {"do": "error", "at": "prepare"},
    "repeat": {"do": "wrong", "skip": 1, "first": 1},
    "verify": {"do": "answer", "at": "prepare", "fields": {"verify": {"norm": [1.0], "projections": [[0.5]]}}},
    "run": {"do": "error", "at": "run", "first": 1},
    "interleave": {"do": "error", "at": "run", "skip": 2, "first": 1},
    "release": {"do": "error", "at": "release"},
    "quit": {"do": "exit", "at": "quit", "code": 1},
    "agree": {"do": "wrong", "when": {"plan": 3}},
}

# the scenario worker ends with 64 at what it does not know: the word that it complains of
UNKNOWN = {
    "nonsense": {"ns": [1], "nonsense": 1},
    "seed": {"ns": [1], "seed": "one"},
    "axes": {"ns": [1], "axes": {}},
    "time model": {"seed": 1},
    "sulk": {"ns": [1], "faults": [{"do": "sulk"}]},
    "noon": {"ns": [1], "faults": [{"do": "exit", "at": "noon"}]},
}


def verdicts(done):
    """promise: ok or FAILED, of the list that was printed."""
    return {words[1]: words[0] for words in map(str.split, done.out.splitlines()) if len(words) > 1}


def small_worker(t):
    path = t.write("small-worker", SMALL_WORKER)
    path.chmod(0o755)
    return path


def passes(t, worker):
    return t.tool("worker-test", worker, env={"SCENARIO": t.write("honest.json", {"ns": [1_000_000] * 4, "log": False}),
                                              "DITTUNE_CLOCK": t.path / f"clock-{pathlib.Path(worker).name}"})


def breaks(t, promise):
    path = t.write(promise + ".json", {"ns": [1_000_000] * 4, "faults": [BROKEN[promise]]})
    return t.tool("worker-test", t.worker, env={"SCENARIO": path, "DITTUNE_CLOCK": t.path / f"clock-{promise}"})


def main():
    """Each of them sleeps most of the time, to see whether the worker does: all at once."""
    t = Dittune()
    workers = {"minimal.py": MINIMAL, "dittune-worker": small_worker(t), "the scenario worker": t.worker}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        honest = pool.map(lambda worker: passes(t, worker), workers.values())
        broken = pool.map(lambda promise: breaks(t, promise), BROKEN)
        for name, done in zip(workers, honest):
            t.check(f"{name} passes worker-test", done.code == 0 and list(verdicts(done).values()) == ["ok"] * PROMISES, done)
        for promise, done in zip(BROKEN, broken):
            t.check(f"a broken promise: {promise}", done.code == 1 and verdicts(done).get(promise) == "FAILED", done)
    for word, scenario in UNKNOWN.items():
        path = t.write("unknown.json", scenario)
        t.exits(f"a scenario that is not understood: {word}", t.run(t.worker, env={"SCENARIO": path}), 64, err=word)
    t.check("the wrong plan is named", "plan=3" in done.out, done)
    done = t.tool("worker-test", t.worker, env={"SCENARIO": t.write("unverified.json", {"ns": [1_000_000] * 4, "verify": False})})
    found = verdicts(done)
    t.check("what is optional is skipped, and breaks nothing", done.code == 0 and [found["verify"], found["agree"]] == ["skipped"] * 2
            and "optional" in done.out and "only the handles" in done.out, done)
    done = t.tool("worker-test", t.worker, env={"SCENARIO": t.write("mute.json", {
        "ns": [1_000_000], "faults": [{"do": "exit", "at": "hello"}]})})
    t.check("what could not be tested is not counted as broken", done.code == 1 and "start" not in done.out.split("\n")[1:]
            and re.search(r"did not start|breaks 1 of 14 promises of the protocol; 13 could not be tested", done.err), done)
    for what, sentence, scenario in (
            ("a worker that refuses the job", "pip install engine", {"faults": [{"do": "infeasible", "at": "hello", "say": "pip install engine"}]}),
            ("a hello that cannot be used", "'dtype' is neither", {"protocol": 2, "dtype": "int3"})):
        done = t.tool("worker-test", t.worker, env={"SCENARIO": t.write("refused.json", {"ns": [1_000_000], **scenario})})
        t.check(f"{what}: its sentence ends the test, no plan of another network is tested",
                done.code == 2 and sentence in done.err and "FAILED" not in done.out, done)
    t.none_left()
    t.finish()


main()
