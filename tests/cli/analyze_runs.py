# SPDX-License-Identifier: MIT
# ctest: ranks dose
"""`analyze` and what real ranks measured: a session of the built-in network, and runs, whose --raw keeps what is needed
to print the same again."""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune
import lib_spoilt

SMALL = ["--model", SOURCE / "tests/cli/small.json"]
PLANTED = dict(ns=[1000000, 1001000], ranks=2, cv=0.02, drift_sd=0.02, lateness=0.01, seed=3,
               batches={"1": 1, "2": 1.9, "3": 2.8})

t = Dittune(scenario=PLANTED)
RAW = t.path / "raw.jsonl"


def session():
    """Its budget is a number of looks at the clock."""
    done = t.tool("tune", *SMALL, "--devices", "1", "--batch", "1,2", "--objective", "throughput", "--against",
                  "ranks=1 tile_q=32", "--budget", "8s", "--json", "--quiet", env={"DITTUNE_CLOCK_LOOK": "20000000"})
    t.check("a session of the network", done.code in (0, 6) and done.json["against"]
            and done.json["trials"], done)
    (journal,) = (t.path / "db/runs").glob("*.jsonl")
    again = t.tool("analyze", journal, "--json")
    t.check("it is printed again from its journal", again.code == 0 and again.out == done.out, again)


def run(name, *words):
    """A run whose samples are kept, printed and then computed again; what was printed."""
    done = t.tool("run", *words, "--json", "--quiet", "--raw", RAW)
    t.check(name, done.code == 0 and done.json, done)
    again = t.tool("analyze", RAW, "--json")
    t.check(f"{name} is printed again from its samples", again.code == 0 and again.out == done.out, again)
    return done.json


def slower_step():
    """The samples with one step of twice the time."""
    rows = [json.loads(line) for line in RAW.read_text(encoding="utf-8").splitlines() if line.strip()]
    for row in rows:
        del row["crc"]
    rows[1]["ns"][-1][0] *= 2
    return t.write("copy.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def one_rank():
    printed = run("a run", *SMALL, "--plan", "ranks=1 threads=1 tile_q=32")
    done = t.tool("analyze", slower_step(), "--json")
    t.check("one raw number changes what is printed",
            done.code == 0 and done.json["samples_seconds"] != printed["samples_seconds"], done)


def three_processes():
    run("a run in three processes", "--worker", t.worker, "--processes", "3")
    t.exits("the report is printed", t.tool("analyze", RAW), 0, out=("3 fresh ones", "cold step"))


def sweep():
    printed = run("a sweep", "--worker", t.worker, "--sweep", "batch=1,2,3")
    t.check("the sweep over batches has its fit", len(printed["sweep"]) == 3 and printed["fits"]["batch"], printed)


def two_ranks():
    printed = run("a run of two ranks, its exchanges and the 1-rank plan", *SMALL, "--plan", "ranks=2 ring=2")
    t.check("the exchanges have their fits", printed["baseline"] and printed["fits"]["exchanges"], printed)


session()
one_rank()
three_processes()
sweep()
if shutil.which("mpirun"):
    two_ranks()
lib_spoilt.check(t, "a run", RAW)
t.exits("a file that cannot be written is named before anything is measured",
        t.tool("run", *SMALL, "--raw", t.path / "no/such/folder.jsonl"), 74, err="folder.jsonl")
t.none_left()
t.finish()
