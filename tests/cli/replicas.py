# SPDX-License-Identifier: MIT
# ctest: ranks
"""Replicas: groups of one plan that run at the same time, of the built-in network, of a worker and of a command. Nothing depends
on how fast the machine is: that groups run at the same time is seen by their waiting for each other."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

SMALL = SOURCE / "tests/cli/small.json"
RATE = ("--objective", "throughput")
PATIENCE = 60  # seconds that a replica waits for the other
t = Dittune(clock="real")
two_cores = len(os.sched_getaffinity(0)) > 1


def near(a, b):
    return abs(a - b) <= 1e-9 * abs(b)


def harmonic(rows, parts):
    """Seconds of each step: the harmonic mean over equal parts of the columns of their largest."""
    each = len(rows[0]) // parts
    return [parts / sum(1 / (max(row[k * each:(k + 1) * each]) * 1e-9) for k in range(parts)) for row in rows]


def built_in():
    raw = t.path / "raw.jsonl"
    done = t.tool("run", "--model", SMALL, *RATE, "--plan", "ranks=1 replicas=2 threads=1", "--quick", "--raw", raw, "--json")
    out = done.json or {}
    t.check("two replicas of one rank: two columns, verified", done.code == 0 and out["ranks"] == 2 and len(out["rank_seconds"]) == 2
            and len(out["replica_seconds"]) == 2 and out["verified_error"] <= 1e-5, done)
    t.check("a step makes an image a replica", near(out["samples_per_second"], 2 / out["median_seconds"]), out)
    trial = next(record for record in map(json.loads, filter(None, raw.read_text().splitlines())) if record.get("kind") == "trial")
    t.check("a sample is the harmonic mean over the replicas", trial["replicas"] == 2 and all(
        near(a, b) for a, b in zip(out["samples_seconds"], harmonic(trial["ns"], 2)[-len(out["samples_seconds"]):])), trial)
    again = t.tool("analyze", raw, "--json").json
    t.check("analyze computes the same from the record", (again or {}).get("samples_seconds") == out["samples_seconds"], again)
    text = t.tool("run", "--model", SMALL, *RATE, "--plan", "ranks=1 replicas=2 threads=1", "--quick")
    t.check("slowest and mean are said", "2 replicas: slowest" in text.out and "mean" in text.out, text)
    t.none_left()


def plans(*more):
    """The plans of a space, and with replicas: those of one, without the axis, and all."""
    alone, all_of_them = (t.tool("space", "--devices", 2, "--list", "--json", *more, *rate).json["plans"] for rate in ((), RATE))
    one = [{name: value for name, value in plan.items() if name != "replicas"} for plan in all_of_them if plan["replicas"] == 1]
    return alone, one, all_of_them


def rules():
    alone, one, all_of_them = plans("--model", SMALL, "--oversubscribe")
    t.check("plans of one replica are those without the axis", one == alone, (len(one), len(alone)))
    t.check("the replicas fit the devices", {(plan["ranks"], plan["replicas"]) for plan in all_of_them} == {(1, 1), (2, 1), (1, 2)},
            all_of_them[:3])
    t.scenario(axes={"ranks": [1, 2], "threads": [1, 2]}, base=1_000_000)
    alone, one, foreign = plans("--worker", t.worker)
    t.check("of a worker, too", one == alone and len(one) == 4, (one, alone))
    most = max(plan["replicas"] * plan["ranks"] * plan["threads"] for plan in foreign if plan["replicas"] > 1)
    t.check("its replicas fit the cores", len(foreign) == 5 and most == 2 or not two_cores, foreign)
    t.exits("more do not", t.tool("run", "--model", SMALL, *RATE, "--plan", "ranks=2 replicas=2", "--devices", 2, "--quick"), 3,
            err="the replicas must fit the devices")
    t.exits("latency has none", t.tool("run", "--model", SMALL, "--plan", "replicas=2"), 2, err="unknown parameter 'replicas'")


WORKER = """#!/usr/bin/env python3
import json, os, signal, sys, time
replica, fault = os.environ.get("DITTUNE_REPLICA", "none"), os.environ.get("FAULT", "")
log, plans = open("%s/log-" + replica, "a"), []
def say(**fields):
    print(json.dumps(fields), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    log.write(line)
    log.flush()
    op = asked["op"]
    if op == "hello":
        name = os.environ.get("PARAMETER", "x")
        say(op="hello", protocol=2, name="planted", workload="w", engine="e",
            parameters=[{"name": "ranks", "role": "ranks", "values": [1, 2]}, {"name": "batch", "role": "batch", "values": [1, 4]},
                        {"name": name, "values": [1, 2] if fault != "none" else [1]}])
        say(op="ready", ranks=[{"rank": 0, "pid": os.getpid(), "host": "here"}], comm="self")
    elif op == "prepare":
        if fault == "memory" and replica in ("0", "1") or fault == "one" and replica == "1":
            say(op="failed", kind="memory", say="planted")
            continue
        plans.append(asked["plan"])
        norm = 2.0 if fault == "wrong" and replica == "1" else 1.0
        drawn = 2.0 if fault == "image" and replica == "1" else 1.0
        say(op="prepared", handle=len(plans) - 1, peak_bytes=[1], cold_ns=[1000],
            image=[{"norm": [drawn], "projections": [[drawn] * asked["verify"]["projections"]]}],
            verify={"norm": [norm], "projections": [[norm] * asked["verify"]["projections"]]})
    elif op == "run":
        if fault == "kill" and replica == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        ns = 3000000 if replica == "1" else 1000000
        plan = plans[asked["handle"]]
        if fault == "none":  # one rank takes 10 ms an image, two take 6 ms and 16 ms of four
            ns = 10000000 * plan["batch"] if plan["ranks"] == 1 else {1: 6000000, 4: 16000000}[plan["batch"]]
        say(op="samples", ns=[[ns]] * asked["n"])
    elif op == "release":
        say(op="released")
    elif op == "quit":
        break
    else:
        say(op="failed", say="unknown")
"""


def worker():
    """Steps of 1 and 3 ms: together 1333 steps a second, as replicas of 1.5 ms make."""
    path = t.write("worker", WORKER % t.path)
    path.chmod(0o755)

    def run(*more, **environment):
        for log in t.path.glob("log-*"):
            log.unlink()
        return t.tool("run", *RATE, "--worker", path, "--devices", 2, "--plan", "ranks=1 replicas=2", "--quick", *more, env=environment)

    done = run("--json")
    out = done.json or {}
    t.check("the rate is the sum of the replicas'", done.code == 0 and near(out["median_seconds"], 1.5e-3)
            and out["replica_seconds"] == [1e-3, 3e-3] and near(out["samples_per_second"], 2 / 1.5e-3), done)
    asked = [json.loads(line) for line in t.read("log-1").splitlines()]
    prepared = [request["plan"] for request in asked if request["op"] == "prepare"]
    t.check("a replica is not told of them, and has its part of the devices", prepared and all("replicas" not in plan for plan in prepared)
            and asked[0]["devices"] == 1, asked[:2])
    t.exits("one that is killed fails the plan", run(FAULT="kill"), 1,
            err="replica 1: killed by signal 9 (SIGKILL) while running")
    t.exits("one that fails alone, too", run(FAULT="one"), 3, err="replica 1: planted")
    t.exits("and all of them together", run(FAULT="memory"), 3, err="replica 0: planted")
    t.exits("each output is compared", run(FAULT="wrong"), 1, err="the output of replica 1 differs")
    done = run("--json", FAULT="image")
    t.check("so is each whole image, which fails no plan", done.code == 0 and near(done.json["image_error"], 1), done)
    t.exits("the name is the controller's", run(PARAMETER="replicas"), 2, err="replicas are the controller's")
    found = t.tool("tune", *RATE, "--worker", path, "--devices", 2, "--budget", "60s", "--json", clock="virtual",
                   env={"FAULT": "none", "DITTUNE_CLOCK_LOOK": 5_000_000})
    ends = (found.json or {}).get("extremes", {})
    t.check("a session tells both extremes", ends.get("batch") == 1 and ends["many"] ==
            {"replicas": 2, "ranks": 1, "latency_seconds": 0.01, "images_per_second": 200.0} and ends["one"]["ranks"] == 2
            and near(ends["one"]["images_per_second"], 1 / 0.006), found)
    t.check("and where they cross", ends.get("crossing") == [1, 4], found)
    # three of one rank make 300 images/s, one of two 166.7 and 250: only their device-seconds cross
    cheap = t.tool("tune", "--objective", "cost", "--worker", path, "--devices", 3, "--budget", "60s", "--json", "--db", t.path / "cost",
                   clock="virtual", env={"FAULT": "none", "DITTUNE_CLOCK_LOOK": 5_000_000})
    ends_of_cost = (cheap.json or {}).get("extremes", {})
    t.check("images a second cross, whatever the objective", ends_of_cost.get("many", {}).get("replicas") == 3
            and ends_of_cost["crossing"] is None, cheap)
    t.check("the best plan is of the whole machine", found.code in (0, 6) and found.json["best"]["plan"] ==
            {"ranks": 2, "batch": 4, "x": 1, "replicas": 1}, found)
    again = t.tool("analyze", *t.path.glob("db/runs/*.jsonl"), "--json")
    t.check("its journal says the same", again.json["extremes"] == ends and again.json["best"] == found.json["best"], again)
    words = " ".join(t.tool("analyze", *t.path.glob("db/runs/*.jsonl")).out.split())
    t.check("in words, too", "2 replicas of 1 rank: 200 images/s, 10 ms a step; 1 replica of 2 ranks: 166.7 images/s, 6 ms a step; "
            "their images/s cross between batch 1 and 4" in words, words)
    shared = ("--worker", path, *RATE, "--devices", 2)
    virtual = {"clock": "virtual", "env": {"DITTUNE_CLOCK_LOOK": 5_000_000}}
    free = t.tool("tune", *shared, "--budget", "60s", "--json", "--db", t.path / "free", **virtual)
    figures = json.loads(t.read("free/best.json"))["entries"][0]["figures"]
    t.check("the entry has the slowest replica", free.json["best"]["plan"]["replicas"] == 2 and figures["median_ns"] == 1_500_000
            and figures["slowest_ns"] == 3_000_000, figures)
    looked = t.tool("lookup", *shared, "--max-latency", "2ms", "--db", t.path / "free", "--json")
    t.check("for which a look-up's limit holds", "a step takes about 3 ms, longer than max_latency" in looked.out, looked)
    tuned = t.tool("tune", *shared, "--max-latency", "2ms", "--budget", "60s", "--json", "--db", t.path / "limited", **virtual)
    t.check("and a session's", tuned.json["best"]["plan"]["replicas"] == 1, tuned)
    checked = t.tool("check", *shared[:2], "--against", "ranks=1 batch=4 replicas=2", "--budget", "60s", "--json", "--db", t.path / "limited", **virtual)
    t.check("and a check's: a plan with a slower replica does not replace", checked.json["entries"][0]["verdict"] in ("wins", "ties"), checked)
    t.check("but for latency it is the worker's", t.tool("run", "--worker", path, "--plan", "ranks=1 replicas=2", "--quick",
                                                         env={"PARAMETER": "replicas"}).code == 0)
    t.none_left()


COMMAND = """#!/usr/bin/env python3
import fcntl, os, pathlib, sys, time
folder, replica, replicas, x = pathlib.Path("%s"), *sys.argv[1:4]
assert replica == os.environ.get("DITTUNE_REPLICA", "0") and replicas == os.environ.get("DITTUNE_REPLICAS", "1"), os.environ
(folder / f"cores-{replicas}-{replica}").write_text(" ".join(map(str, sorted(os.sched_getaffinity(0)))))
if replicas == "2":  # each run waits for that of the other
    number = len(list(folder.glob(f"here-{x}-{replica}-*")))
    (folder / f"here-{x}-{replica}-{number}").write_text("")
    until = time.monotonic() + %d
    while not (folder / f"here-{x}-{1 - int(replica)}-{number}").exists():
        assert time.monotonic() < until, "the other replica does not run"
        time.sleep(0.01)
began = time.monotonic()
with open(folder / "lock", "w") as lock:
    if x == "2":
        fcntl.flock(lock, fcntl.LOCK_EX)
    time.sleep(0.3)
print(f"took {time.monotonic() - began} s")
"""


def command():
    script = t.write("command", COMMAND % (t.path, PATIENCE))
    script.chmod(0o755)
    space = t.write("x.json", {"parameters": [{"name": "x", "values": [1, 2], "default": 1}]})

    def run(plan):
        return t.tool("run", *RATE, "--command", f"{script} {{replica}} {{replicas}} {{x}}", "--space", space,
                      "--time", "regex:took ([0-9.]+) s", "--devices", 2, "--plan", plan, "--quick", "--json")

    free = run("x=1 replicas=2")
    cores = [set(t.read(f"cores-2-{i}").split()) for i in (0, 1)] if free.code == 0 else []
    t.check("the replicas of a command run at the same time", free.code == 0 and len(free.json["replica_seconds"]) == 2, free)
    t.check("on cores of their own", not two_cores or not cores[0] & cores[1], cores)
    locked = run("x=2 replicas=2")
    # of two that begin together one has waited for the other: 0.3 s and 0.6 s are at the rate of 0.4 s
    t.check("a lock that they share is in the figure", locked.code == 0
            and locked.json["samples_per_second"] < 0.9 * free.json["samples_per_second"], f"{locked}\n{free}")
    one = run("x=2")
    t.check("one replica waits for nobody", one.code == 0 and "replica_seconds" not in one.json
            and one.json["median_seconds"] < locked.json["median_seconds"], f"{one}\n{locked}")
    t.none_left()


def server():
    folder, log = SOURCE / "examples/server", t.path / "servers"
    line = f"""sh -c 'echo {{replica}} {{replicas}} {{port}} >>{log}; exec python3 "{folder}/engine.py" --port {{port}} --threads {{threads}} --tile {{tile}}'"""
    done = t.tool("run", *RATE, "--server", line, "--space", folder / "space.json", "--request", folder / "ask.http", "--requests", 4,
                  "--devices", 2, "--plan", "replicas=2", "--quick", "--json")
    started = [words.split() for words in log.read_text().splitlines()] if log.exists() else []
    together = [words for words in started if words[1] == "2"]
    t.check("the replicas of a server have ports of their own", done.code == 0 and len(done.json["replica_seconds"]) == 2
            and sorted(words[0] for words in together) == ["0", "1"] and len({words[2] for words in together}) == 2, f"{done}{started}")
    t.none_left()


built_in()
rules()
worker()
command()
server()
t.finish()
