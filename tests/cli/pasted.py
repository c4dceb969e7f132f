# SPDX-License-Identifier: MIT
# ctest:
"""Command lines that are printed to be pasted: sh takes them back for the words that they were made of."""
import json
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


def paste_look_up(text, more=""):
    line = re.search("Look it up: (.*)", text)
    return t.run("sh", "-c", line[1] + more if line else "exit 99", cwd=t.path, env={"PATH": PATH})


def stored(done, *db):
    """That each look-up which a session printed, pasted, finds the very plan that it stored."""
    entries = {entry["id"]: entry for entry in here("db", "show", "--json", *db).json["entries"]}
    found = [paste_look_up(line, " --json").json or {} for line in re.findall("Look it up: .*", done.out)]
    return done.code in (0, 6) and len(found) == len(entries) and all(
        answer.get("tier") == "exact" and answer["entry"] == entries.pop(answer["entry"]["id"])
        and answer["plan"] == answer["entry"]["plan"] for answer in found)


def shown(done):
    """That the page of each session, by the line that it printed, is of its journal."""
    lines = re.findall("See all of it: (.*)", done.out)
    pages = [t.run("sh", "-c", line + " -o - --format md", cwd=t.path, env={"PATH": PATH}) for line in lines]
    return lines and all(page.code == 0 and f"session {line.split()[2]}." in page.out for line, page in zip(lines, pages))


def every_session():
    """The built-in network: options given to a session, and defaults of this machine."""
    cores = t.tool("machine", "--json").json["hard"]["cores"]
    for name, *words in (
            ("nothing",), ("a preset", "--model", "dit-b/2"), ("a file", "--model", SMALL),
            ("a size", "--model", SMALL, "--size", 64), ("sizes", "--model", SMALL, "--size", "64,128"),
            ("a data type", "--model", SMALL, "--dtype", "float32"), ("a back end", "--model", SMALL, "--backend", "cpu"),
            ("throughput", "--model", SMALL, "--batch", "1,2", "--objective", "throughput"),
            ("cost", "--model", SMALL, "--batch", "2", "--objective", "cost"),
            ("limits", "--model", SMALL, "--max-bytes", "1.3GiB", "--max-latency", "4230.09657ms"),
            ("devices", "--model", SMALL, "--devices", 1), ("a store", "--model", SMALL, "--db", STORE),
            ("too many ranks", "--model", SMALL, "--devices", 2 * cores, "--oversubscribe")):
        for folder in (t.db, t.path / STORE):
            shutil.rmtree(folder, ignore_errors=True)
        done = here(*words, "--budget", "16s", "--quiet")
        t.check(f"asked for {name}: the look-up, pasted, finds what was stored", 
                stored(done, *(words[-2:] if "--db" in words else ())), done)


def every_gpu_session():
    """A GPU that is only described: its default network, size and data type differ from those of cores."""
    card = {"index": 0, "name": "NVIDIA H200", "compute": "9.0", "memory_bytes": 150754820096,
            "free_bytes": 150000000000, "shared_bytes": 232448, "processes": []}
    answer = {"op": "devices", "count": 1, "why": "", "driver": "580.95", "cuda": 13000, "nccl": "2.28.9",
              "cudnn": "9.19.0", "cublaslt": "13.1.0", "devices": [card], "peers": [[0]], "links": [["self"]]}
    gpu = t.write("gpu", f"""#!/bin/sh
[ "$1" != --devices ] || exec echo '{json.dumps(answer)}'
exec '{t.worker}' "$@"
""")
    gpu.chmod(0o755)
    t.environment["DITTUNE_WORKER_CUDA"] = str(gpu)
    for name, says, *words in (("nothing", "--model dit-xl/2 --size 512 --dtype bfloat16"),
                               ("a data type", "--dtype float32", "--dtype", "float32"),
                               ("a network", "--model dit-b/2 --size 256", "--model", "dit-b/2")):
        shutil.rmtree(t.db, ignore_errors=True)
        done = here(*words, "--budget", "20s", "--quiet")
        t.check(f"on a GPU, asked for {name}: the look-up, pasted, finds what was stored",
                stored(done) and says in done.out, done)
    del t.environment["DITTUNE_WORKER_CUDA"]


def every_worker():
    """And of a worker, which has its own ranks and limits."""
    for name, *words in (("nothing",), ("devices", "--devices", 1), ("cost", "--objective", "cost"),
                         ("limits", "--max-bytes", "1GiB", "--max-latency", "1032.913167ms")):
        shutil.rmtree(t.db, ignore_errors=True)
        t.plant([1000000, 800000], drift_sd=0)
        done = here("--worker", WORKER, *words, "--budget", "5s", "--quiet")
        t.check(f"a worker, asked for {name}: the look-up, pasted, finds what was stored", stored(done), done)


def odd_names():
    t.plant([1000000, 800000], drift_sd=0)
    tuned = here("--worker", WORKER, "--devices", 1, "--budget", "5s", "--quiet", "--db", STORE)
    t.exits("tuned under an odd name", tuned, 0, out="Look it up: dittune lookup")
    t.exits("the look-up, pasted, finds the plan", paste_look_up(tuned.out), 0, out="plan=1")
    t.check("the pasted look-up runs nothing else", not (t.path / "run").exists())


def another_data_type():
    if not here("machine", "--json", "--backend", "cpu").json["limits"]["bfloat16"]:
        return  # this processor does not multiply bfloat16
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
    t.check("the look-up says which option to add", "to tune again: name its own network with --model FILE<" in t.read("check.xml"))
    t.check("no preset is named", "dit-s/2" not in done.out + done.err, done)
    tune_again("nor that of another network", *soon, "--model", "dit-b/2")
    (t.path / "its own.json").symlink_to(SMALL)
    tune_again("named: its own", *soon, "--model", "its own.json",
               wanted=["dittune", "--model", "its own.json", "--size", "64", "--devices", "1"])
    tune_again("a worker is none", *soon, "--worker", WORKER)
    tune_again("named beside a worker: its own", *soon, "--worker", WORKER, "--model", "its own.json",
               wanted=["dittune", "--model", "its own.json"])


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
    """Words that no command line takes, which others wrote into a store, are in none that is printed."""
    machine = t.tool("machine", "--json").json
    words = {"key.objective": "latency; touch run #", "key.dtype": "x;touch run #"}
    lib_store.write(t.path / "hostile", machine, [words])
    tune_again("no line has words of the store", "--model", SMALL, "--junit", "check.xml", db="hostile")
    t.check("and why", "to tune again: its data type or objective is unknown" in t.read("check.xml"))


odd_names()
every_worker()
of_a_worker()
t.scenario(**NETWORK)
t.environment["DITTUNE_WORKER"] = t.worker
every_session()
every_gpu_session()
another_data_type()
shutil.rmtree(t.db)
of_a_network()
of_no_square()
of_hostile_words()
t.none_left()
t.finish()
