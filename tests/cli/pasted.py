# SPDX-License-Identifier: MIT
# ctest:
"""Command lines that are printed to be pasted: sh takes them back for the words that they were made of."""
import os
import re
import shlex
import shutil

from lib_check import CheckTest
import lib_store
from dittune_test import SOURCE

SMALL = SOURCE / "tests/cli/small.json"
WORKER = "./w 'x$(touch run).py"
STORE = "k b'$(touch run);\"*"
NETWORK = {"a": 0.001, "b": 0.001, "s": 0.1, "cv": 0.004}  # times in the place of the built-in worker's

t = CheckTest()
(t.path / WORKER).symlink_to(t.worker)
(t.path / "bin").mkdir()
(t.path / "bin/dittune").symlink_to(t.program())
PATH = f"{t.path}/bin:{os.environ['PATH']}"


def here(*words):
    """dittune in the folder of the odd names."""
    return t.tool(*words, cwd=t.path)


def paste_look_up(text):
    line = re.search("Look it up: (.*)", text)
    return t.run("sh", "-c", line[1] if line else "exit 99", cwd=t.path, env={"PATH": PATH})


def odd_names():
    t.plant([1000000, 800000], drift_sd=0)
    tuned = here("--worker", WORKER, "--devices", 1, "--budget", "5s", "--quiet", "--db", STORE)
    t.exits("tuned under an odd name", tuned, 0, out="Look it up: dittune lookup")
    t.exits("the look-up, pasted, finds the plan", paste_look_up(tuned.out), 0, out="plan=1")
    t.check("and does nothing else", not (t.path / "run").exists())


def another_data_type():
    tuned = here("--model", SMALL, "--size", 64, "--devices", 1, "--dtype", "bfloat16", "--budget", "8s", "--quiet")
    t.exits("tuned in another data type", tuned, 0, out="Look it up: dittune lookup")
    found = paste_look_up(tuned.out)
    t.exits("the look-up, pasted, names it", found, 0, out="exact")
    t.check("as it was printed", "--dtype bfloat16 " in tuned.out, tuned)


def tune_again(name, *options, db=None, wanted=None):
    """`tune again` of the first entry, and that it begins with what is wanted; None: there is none."""
    done = here("check", "--json", *options, *(["--db", db] if db else []))
    line = t.entry(done)["retune"]
    t.check(name, line is None if wanted is None else shlex.split(line or "")[:len(wanted)] == wanted, done)
    return done


def of_a_network():
    """The entry's own network, or none."""
    tuned = here("--model", SMALL, "--size", 64, "--devices", 1, "--budget", "8s", "--quiet")
    t.exits("tuned", tuned, 0)
    soon = ["--budget", "1ms"]
    done = tune_again("not known: no line", *soon, "--junit", "check.xml", "--github")
    t.check("but what to name", "to tune again: name its own network with --model FILE<" in t.read("check.xml"))
    t.check("no preset is named", "dit-s/2" not in done.out + done.err, done)
    tune_again("nor that of another network", *soon, "--model", "dit-b/2")
    (t.path / "its own.json").symlink_to(SMALL)
    tune_again("named: its own", *soon, "--model", "its own.json",
               wanted=["dittune", "--model", "its own.json", "--size", "64", "--devices", "1"])
    tune_again("a worker is none", *soon, "--worker", WORKER)


def of_a_worker():
    tune_again("another worker is not named", "--worker", "./nosuch", "--budget", "5s", db=STORE)
    tune_again("the own worker is", "--worker", WORKER, "--budget", "5s", db=STORE,
               wanted=["dittune", "--worker", WORKER])


def of_no_square():
    machine = t.tool("machine", "--json").json
    lib_store.write(t.path / "wide", machine, [{"key.height": 16, "key.width": 32}])
    tune_again("nor a square for what is none", "--model", SMALL, "--junit", "check.xml", db="wide")
    t.check("and why", "to tune again: its image is not square" in t.read("check.xml"))


def of_hostile_words():
    """What others wrote into a store is quoted: the line is one command, and does what it says."""
    machine = t.tool("machine", "--json").json
    words = {"key.objective": "latency; touch run #", "key.dtype": "x;touch run #"}
    lib_store.write(t.path / "hostile", machine, [words])
    done = here("check", "--json", "--model", SMALL, "--db", "hostile")
    line = shlex.split(t.entry(done)["retune"] or "")
    t.check("words of the store are quoted", [line[line.index(name) + 1] for name in ("--dtype", "--objective")]
            == [words["key.dtype"], words["key.objective"]], done)


odd_names()
of_a_worker()
t.scenario(**NETWORK)
t.environment["DITTUNE_WORKER"] = t.worker
another_data_type()
shutil.rmtree(t.db)
of_a_network()
of_no_square()
of_hostile_words()
t.none_left()
t.finish()
