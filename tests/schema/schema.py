# SPDX-License-Identifier: MIT
# ctest: ranks
"""Sessions write and print what schema/*.json allows, by python3-jsonschema, which refuses damaged records."""
import importlib.util
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune, skip

if importlib.util.find_spec("jsonschema") is None:
    skip("there is no jsonschema for Python here; install python3-jsonschema")
import lib_documents

SMALL = ["--model", SOURCE / "tests/cli/small.json"]
LOOK = {"DITTUNE_CLOCK_LOOK": "20000000"}  # sessions of real ranks end after a number of looks at the clock
FOREIGN = dict(ns=[1000000, 900000, 1100000], cv=0.01, versions={"python": "3.11"})
# The default crashes in the final comparison, again and again.
FALLS = dict(ns=[1000000], cv=0.001, faults=[{"at": "measure", "do": "exit", "skip": 2}])
DESCRIBED = {
    "format": "dittune-machine", "version": {"major": 1, "minor": 0},
    "hard": {"device": "Processor A", "cores": 8, "memory_gib": 64, "topology": "00112233445566aa"},
    "soft": {"dittune": "0.1.0", "method": "1", "mpi": "4.1", "environment": {}}, "info": {},
    "limits": {"memory_bytes": 67000000000, "bfloat16": True}}
# An answer of each tier, from stores made for it.
TIERS = (("exact", "exact"), ("exact", "stale"), ("near", "near"), ("scaled", "scaled"), ("proxy", "proxy"),
         ("heuristic", "empty"), ("heuristic", "elsewhere"))

t = Dittune(scenario=FOREIGN)
foreign = ["--worker", t.worker]
of = {kind: lib_documents.Documents(t, kind) for kind in ("best", "trial", "lookup", "machine", "plan")}


def records(paths):
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines() if line]


def stores():
    """The store, and each of its entries in a store of its own, as entries are spoilt only in the first place."""
    store = json.loads(t.read("db/best.json"))
    return [store] + [{**store, "entries": [entry]} for entry in store["entries"]]


def machines():
    of["machine"].conform("the machine", [t.tool("machine", "--json").json])
    of["machine"].conform("a foreign worker's machine", [t.tool("machine", *foreign, "--json").json])
    of["machine"].conform("a machine described by hand", [DESCRIBED])


def plans():
    words = ("plan", "--model", "flux.1-dev", "--engine", "sglang", "--machine", "2x8xh100", "--json")
    of["plan"].conform("plans of two hosts", [t.tool(*words).json])
    of["plan"].conform("plans beside a measured one", [t.tool(*words, "--given", "4.30s").json])


def sessions():
    images = ["--objective", "throughput", "--batch", "1,2", "--devices", "1"]
    for name, words, env in (("a session", [*SMALL, "--budget", "8s"], LOOK),
                             ("a session of two batches", [*SMALL, *images, "--budget", "4s"], LOOK),
                             ("a session of a foreign worker", [*foreign, "--budget", "6s"], {})):
        done = t.tool("tune", *words, "--quiet", env=env)
        t.check(f"{name} finds a plan", done.code in (0, 6), done)
    t.exits("a run", t.tool("run", *SMALL, "--quick", "--raw", t.path / "raw.jsonl", "--quiet"), 0)
    of["trial"].conform("journals of sessions", records(t.path.glob("db/runs/*.jsonl")))
    of["trial"].conform("samples of a run", records([t.path / "raw.jsonl"]))
    of["best"].conform("a store", stores())


def fallen_default():
    done = t.tool("tune", *foreign, "--budget", "6s", "--quiet", "--db", t.path / "falls",
                  env={"SCENARIO": t.write("falls.json", FALLS)})
    made = records(t.path.glob("falls/runs/*.jsonl"))
    of["trial"].conform("a session whose default falls", made)
    compared = [[e["outcome"] for e in record["entrants"]] for record in made if record["kind"] == "comparison"]
    t.check("the default falls in the final comparison", done.code == 6 and [row[0] for row in compared] == ["crashed"], done)


def check(name, *words, env=None):
    before = set(t.path.glob("db/runs/*.jsonl"))
    done = t.tool("check", *words, "--quiet", env=env)
    made = [path for path in t.path.glob("db/runs/*.jsonl") if path not in before]
    t.check(f"{name} leaves a record", any(record["kind"] == "check" for record in records(made)), done)
    of["trial"].conform(f"records of {name}", records(made))
    of["best"].conform(f"the store after {name}", stores())


def answer(name, tier, *words):
    done = t.tool("lookup", *words, "--json")
    t.check(f"{name}: its tier is {tier}", done.code == 0 and done.json["tier"] == tier, done)
    of["lookup"].conform(name, [done.json])


def answers():
    described = t.write("described", DESCRIBED)
    stores = SOURCE / "tests/fuzz/corpus/store"
    for tier, store in TIERS:
        (t.path / store).mkdir()
        shutil.copy(stores / store, t.path / store / "best.json")
        answer(f"an answer of the store '{store}'", tier, "--db", t.path / store, "--machine", described,
               "--require", "none", "--devices", "4")
    answer("an answer without a plan", "none", "--db", t.path / "empty", "--machine", described, "--require", "none",
           *foreign)
    answer("an answer for this machine", "exact", *SMALL)
    answer("an answer for a foreign worker", "exact", *foreign)


machines()
plans()
sessions()
fallen_default()
check("a check that cannot judge", "--budget", "10s")
check("a check", *SMALL, "--budget", "10s", env=LOOK)
check("a check of a foreign worker", *foreign, "--budget", "10s")
answers()
for documents in of.values():
    documents.finish()
t.none_left()
t.finish()
