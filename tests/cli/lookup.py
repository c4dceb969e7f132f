# SPDX-License-Identifier: MIT
# ctest:
"""dittune lookup from outside: each tier with its exit code, what --require makes of it, what is printed where, and
that it starts no worker. The store is written by another program."""
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune
from plans import CPU
import lib_store

SMALL = SOURCE / "tests/cli/small.json"
FIELDS = ["tier", "meets", "stale", "stale_reasons", "distance", "reason", "warning", "refused", "lost", "age_seconds", "evidence", "engine", "mode", "gain",
          "provisional", "verdict", "median_ns", "interval_ns", "image_ns", "noise", "tried", "plans", "skipped", "load", "plan", "hint", "key", "entry", "store"]
PLAN = " ".join(f"{name}={value}" for name, value in CPU.items())

t = Dittune(clock="real")
machine = t.tool("machine", "--json").json
best = t.path / "db/best.json"
t.environment["DITTUNE_TRANSCRIPT"] = str(t.path / "transcript")


def store(**changes):
    """A store of one entry; __ stands for the point of a path in it."""
    lib_store.write(best.parent, machine, [{path.replace("__", "."): value for path, value in changes.items()}])


def ask(*words):
    return t.tool("lookup", "--model", SMALL, *words)


def answers(name, done, code, tier, **fields):
    """Its JSON has this tier and these values."""
    answer = done.json or {}
    wanted = {"tier": tier, **fields}
    return t.check(name, done.code == code and {field: answer.get(field) for field in wanted} == wanted, done)


def refused(name, done, code, *parts):
    """Nothing on standard output, and why on the other."""
    return t.check(name, done.code == code and done.out == "" and all(part in done.err for part in parts), done)


def exact():
    store()
    done = ask("--json")
    answers("exact", done, 0, "exact", evidence="measured", distance=0, stale=False, engine="dittune")
    answer = done.json
    t.check("the answer has its age", 86400 <= answer["age_seconds"] < 90000, done)
    t.check("nothing on standard error", done.err == "", done)
    t.check("every field of an answer is there", sorted(answer) == sorted(FIELDS), sorted(answer))
    t.check("the answer has the plan", answer["plan"]["tile_kv"] == 64 and answer["entry"]["plan"] == answer["plan"], done)
    t.check("the gain with its interval", answer["gain"] == {"ratio": 1.5, "interval": [1.4, 1.6], "pairs": 20}, done)
    done = ask()
    t.exits("the table has the answer", done, 0, out=["exact", "1 day", "  verdict    faster\n", "  time       4 ms a step\n",
                                      "  gain       1.5 times the default plan's speed (1.4 to 1.6, 20 pairs)\n"])
    t.check("the first line is the plan", done.out.splitlines()[0] == PLAN and done.err == "", done)
    t.exits("--format env prints variables", ask("--format", "env"), 0, out="DITTUNE_PLAN_TILE_KV=64\n")
    done = ask("--format", "argv")
    t.check("--format argv prints a command", done.code == 0 and done.out.startswith("'ranks=1' 'cfg=") and done.out.count("\n") == 1, done)
    t.exits("--require exact accepts an exact answer", ask("--require", "exact"), 0)
    t.exits("--require decided accepts a verdict", ask("--require", "decided"), 0)


def what_was_found():
    """Verdict, noise and time, and of the default plan that nothing beat it."""
    noise = {"margin": 0.0123, "ratio": 1.001, "interval": [0.99, 1.0123], "pairs": 20}
    plan = {part.split("=")[0]: int(part.split("=")[1]) for part in PLAN.split()}
    store(verdict="tie", gain={"ratio": 1, "interval": [1, 1], "pairs": 35}, noise=noise, default={"plan": plan},
          figures={"median_ns": 620900000, "interval_ns": [610000000, 630000000]})
    answers("what the session found", ask("--json"), 0, "exact", verdict="tie", noise=noise, median_ns=620900000,
            interval_ns=[610000000, 630000000])
    t.exits("the table has the answer", ask(), 0, out=["  verdict    tie\n", "  time       620.9 ms a step\n",
                                       "  gain       none: it is the default plan, nothing beat it\n",
                                       "  noise      1.2 %: differences below that count as ties\n"])
    t.exits("at another size the answer says where it was measured", ask("--size", 144), 0,
            out=["620.9 ms a step, where it was measured", "nothing beat it, where it was measured"])
    done = ask("--engine", "xdit", "--format", "json", "--require", "heuristic")
    t.check("a proxy has no time of its own", done.json["answer"]["median_ns"] is None
            and done.json["answer"]["verdict"] == "tie", done)


def not_decided():
    for verdict, words in (("provisional", "decided nothing"), ("inconclusive", "could not decide")):
        store(verdict=verdict, provisional=True)
        t.exits(f"{verdict}: exact takes it", ask("--require", "exact"), 0, out=words, err=["provisional", words])
        refused(f"{verdict}: decided does not", ask("--require", "decided"), 10, "not decided", words)
        for tier, options in (("near", ["--size", 144]), ("scaled", ["--devices", 2 * machine["hard"]["cores"]]),
                              ("proxy", ["--engine", "xdit", "--format", "json", "--require", "heuristic"])):
            done = ask(*options)
            t.exits(f"{verdict}: {tier} is reported as provisional", done, 0, err=[f"of tier {tier}", f"provisional: ", words])
        store(verdict=verdict, provisional=True, fingerprint__hard__device="Another processor")
        t.check(f"{verdict}: a hint is reported as provisional", words in ask("--json").json["hint"]["reason"])
    store()
    refused("near is not decided", ask("--size", 144, "--require", "decided"), 10, "of tier near, not decided")


def weaker():
    done = ask("--size", 144, "--json")
    answers("near", done, 0, "near")
    distance = done.json["distance"]
    t.check("a near answer has its distance", abs(distance - math.log2(81 / 64)) < 1e-9 and "128 x 128" in done.json["reason"], done)
    t.check("one line on standard error says so", done.err.count("\n") == 1 and "near" in done.err, done)
    refused("near is not exact: nothing on standard output", ask("--size", 144, "--require", "exact"), 10,
            "of tier near, not exact", "--require near takes it")
    answers("but JSON says what there is", ask("--size", 144, "--require", "exact", "--json"), 10, "near")
    t.exits("--require near takes it", ask("--size", 144, "--require", "near"), 0)
    done = ask("--devices", 2 * machine["hard"]["cores"], "--json")
    answers("scaled", done, 0, "scaled")
    t.check("the reason names the source", "devices instead of" in done.json["reason"], done)
    done = ask("--engine", "xdit", "--format", "json", "--require", "heuristic")
    answer = done.json["answer"]
    t.check("a plan of the built-in engine, asked for as xdit, is a proxy",
            done.code == 0 and [answer[name] for name in ("tier", "evidence", "gain", "engine")]
            == ["proxy", "proxy", None, "dittune"], done)
    refused("and weaker than scaled", ask("--engine", "xdit", "--require", "scaled"), 10)


def nothing_measured():
    refused("nothing measured: 10", ask("--objective", "cost"), 10, "no plan is stored", "--require heuristic")
    done = ask("--objective", "cost", "--require", "heuristic", "--json")
    answers("the default rule", done, 0, "heuristic", evidence="predicted", gain=None, entry=None, distance=None,
            age_seconds=None)
    plan = " ".join(f"{name}={value}" for name, value in done.json["plan"].items())
    explained = t.tool("explain", "--model", SMALL, "--objective", "cost", plan, "--json")
    t.check("the scaled plan is feasible", (explained.json or {}).get("feasible"), explained)
    impossible = ["--objective", "cost", "--max-bytes", "1B"]
    answers("no plan at all", ask(*impossible, "--require", "none", "--json"), 0, "none", plan=None, evidence=None)
    t.exits("no plan is weaker than any", ask(*impossible, "--require", "heuristic"), 10)


def predicted_for_an_engine():
    """An engine's plan of a published model on GPUs that have a card: that which `dittune plan` ranks first."""
    words = ("--model", "wan2.1-t2v-14b", "--size", "832x480", "--engine", "sglang")
    there = ("--machine", SOURCE / "examples/machines/8xh200.json", "--db", t.path / "nothing")
    refused("it was not measured", t.tool("lookup", *words, *there), 10, "take the predicted plan with --require heuristic")
    done = t.tool("lookup", *words, *there, "--require", "heuristic", "--json")
    planned = t.tool("plan", *words, "--machine", "8xh200", "--json").json
    best = planned["documented"] if planned["answer"] == "documented" else planned["plans"][0]["plan"]
    answer = done.json["answer"]
    t.check("the plan that is predicted to be the fastest", done.code == 0 and answer["plan"] == best
            and [answer["tier"], answer["evidence"], answer["entry"]] == ["heuristic", "predicted", None], (done, planned))
    t.check("with the model's name in the engine's words", "--model-path=Wan-AI/Wan2.1-T2V-14B-Diffusers" in done.json["argv"], done.json)
    t.check("and the tier is said", "predicted for NVIDIA H200" in done.err, done)
    for name, other in (("no card of the device", t.write("cards.json", {**machine, "hard": {**machine["hard"], "device": "Another GPU", "gpus": 2}})),
                        ("cores", t.write("cores.json", machine))):
        t.exits(f"nothing is predicted: {name}", t.tool("lookup", *words, "--machine", other, "--db", t.path / "nothing", "--require", "heuristic"), 10)


def meets():
    """What libdittune says of each value of --require is what the command does."""
    store()
    for words in ((), ("--size", 144), ("--objective", "cost")):
        told = ask(*words, "--require", "none", "--json").json["meets"]
        done = {require: ask(*words, "--require", require).code == 0 for require in told}
        t.check(f"meets: {' '.join(map(str, words))}", told == done and list(told)[0] == "decided" and told["none"], (told, done))
    store(verdict="provisional", provisional=True)
    told = ask("--json").json["meets"]
    t.check("meets: exact, and not decided", told["exact"] and not told["decided"], told)


def limits():
    t.exits("a limit its figures break", ask("--max-latency", "3ms"), 10, err="longer than max_latency")
    done = ask("--max-latency", "4ms", "--json")
    answers("a limit its figures keep", done, 0, "near", distance=0)
    t.check("the reason names the limit", "which it keeps" in done.json["reason"], done)


def not_as_it_was():
    store(fingerprint__soft={"mpi": "of the past", "environment": {"OMP_NUM_THREADS": "3"}}, provisional=True)
    done = ask("--json")
    answers("stale", done, 0, "exact", stale=True, provisional=True)
    t.check("with names", "OMP_NUM_THREADS was 3, is not set" in done.json["stale_reasons"], done)
    t.check("each warning is printed once", done.err.count("\n") == 1, done)
    t.exits("with that it is provisional", done, 0, err=["provisional", "OMP_NUM_THREADS"])
    store(plan__ulysses=4)
    t.exits("a stored plan that breaks a rule is refused", ask(), 10,
            err="can be used here: the exact match: cfg x ulysses x ring must be the number of ranks")


def another_machine():
    store(fingerprint__hard__device="Another processor")
    done = ask("--json")
    answers("other hardware gives a hint, never a plan", done, 10, "heuristic")
    hint = done.json["hint"]
    t.check("the hint is the stored plan", hint["device"] == "Another processor" and hint["plan"]["tile_kv"] == 64
            and "other hardware" in hint["reason"], hint)
    other = t.write("other.json", {**machine, "hard": {**machine["hard"], "device": "Another processor"}})
    answers("--machine asks for another machine", ask("--machine", other, "--json"), 0, "exact")
    elsewhere = t.write("elsewhere.json", {**machine, "hard": {**machine["hard"], "device": "A third processor", "cores": 64}})
    t.exits("nothing for a machine that is named", ask("--machine", elsewhere), 10, err="on the machine of --machine: run dittune there")
    newer = t.write("newer.json", {"format": "dittune-machine", "version": {"major": 2, "minor": 0}})
    t.exits("a machine of a newer version", ask("--machine", newer), 2, err="newer dittune")
    t.exits("a machine that is not there", ask("--machine", t.path / "none.json"), 74)
    t.exits("an unknown tier", ask("--require", "better"), 2, err="decided, exact, near, scaled, proxy, heuristic or none")
    damaged(other)


def damaged(other):
    """The store, and then one with the version before it."""
    good = best.read_text(encoding="utf-8")
    best.write_text(good.replace('tile_q":64', 'tile_q":32'), encoding="utf-8")
    t.check("the store is damaged", best.read_text(encoding="utf-8") != good)
    refused("a damaged store", ask(), 7)
    best.with_name("best.json.1").write_text(good, encoding="utf-8")
    done = ask("--machine", other, "--json")
    answers("the version before answers", done, 0, "exact")
    t.exits("the damage is reported", done, 0,
            err=["best.json is damaged", "best.json.1 was read instead", "dittune db rebuild"])


for part in (exact, what_was_found, not_decided, weaker, nothing_measured, predicted_for_an_engine, meets, limits, not_as_it_was,
             another_machine):
    part()
transcript = t.path / "transcript"
t.check("no worker was started", not transcript.exists() or transcript.read_bytes() == b"")
t.none_left()
t.finish()
