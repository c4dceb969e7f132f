# SPDX-License-Identifier: MIT
# ctest: ranks
"""GPUs as a made answer to --devices describes them: what is found is what plans are for, what is not is one
sentence."""
import json
import pathlib
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
import lib_store
from dittune_test import BUILD, SOURCE, Dittune, log_of_processes
from fake_gpus import forget_gpus
from plans import GPU

SMALL = SOURCE / "tests/cli/small.json"
FREE = 150000000000
MACHINE = {
    "format": "dittune-machine", "version": {"major": 1, "minor": 0},
    "hard": {"device": "NVIDIA H200", "gpus": 8, "memory_gib": 144, "compute": "9.0", "topology": "0123456789abcdef"},
    "soft": {}, "info": {},
    "limits": {"memory_bytes": 150754820096, "bfloat16": True, "shared_bytes": 232448, "nccl": 22809, "cudnn": True,
               "capture": True}}


def script(name, body):
    """A program in the place of the worker for GPUs."""
    path = t.write(name, "#!/bin/sh\n" + body)
    path.chmod(0o755)
    return {"DITTUNE_WORKER_CUDA": str(path)}


def h200s(name, count, free=FREE, processes=()):
    """A worker that says it has so many H200."""
    cards = [{"index": i, "name": "NVIDIA H200", "uuid": f"GPU-{i}a", "compute": "9.0", "memory_bytes": 150754820096, "free_bytes": free,
              "shared_bytes": 232448, "processes": list(processes)} for i in range(count)]
    answer = {"op": "devices", "count": count, "why": "" if count else "no CUDA-capable device is detected",
              "driver": "580.95", "cuda": 13000, "nccl": "2.28.9", "cudnn": "9.19.0", "cublaslt": "13.1.0",
              "devices": cards,
              "peers": [[int(i != k) for k in range(count)] for i in range(count)],
              "links": [["self" if i == k else "nvlink" for k in range(count)] for i in range(count)]}
    return script(name, f"cat <<'J'\n{json.dumps(answer)}\nJ\n")


def says(name, done, code, **fields):
    """It ended with this code and printed an object with these fields."""
    o = done.json or {}
    t.check(name, done.code == code and all(o.get(field) == value for field, value in fields.items()), done)


def on_cores(done):
    return done.code == 0 and done.json["title"].startswith("dit-s/2, 256")


def check_space():
    done = t.tool("space", "--json")
    says("GPUs are found without an option", done, 0, title="dit-xl/2, 512 x 512 px (1024 tokens), guided, bfloat16")
    t.check("their space has their parameters", {p["name"] for p in done.json["parameters"]} == set(GPU) - {"threads"}, done)
    done = t.tool("explain", "--json", "ulysses=2", "cfg=2")
    plan = done.json["plan"]
    t.check("a plan is completed for them", done.code == 0 and "threads" not in plan
            and (plan["tile_kv"], plan["warps"], plan["attention"]) == (64, 4, "cudnn"), done)
    done = t.tool("explain", "--json", "ranks=1", "windows=1")
    sentence = done.json["violations"][0]["sentence"]
    t.check("a rule of theirs is one sentence", done.code == 3
            and sentence == "one rank exchanges nothing: comm_ctas and windows are 0", done)
    t.exits("more ranks than GPUs are for correctness only", t.tool("explain", "ranks=8"), 0, "8 ranks on 4 GPUs")
    done = t.tool("space", "--json", "--dtype", "tf32", "--model", "dit-b/2")
    t.check("tf32 is a data type of GPUs", done.code == 0 and done.json["title"].endswith("tf32")
            and done.json["feasible"] > 0, done)
    done = t.tool("space", "--json", "--backend", "cpu")
    t.check("--backend cpu gives the space of cores", on_cores(done)
            and "threads" in [p["name"] for p in done.json["parameters"]], done)
    done = t.tool("space", "--backend", "cpu", "--dtype", "tf32")
    t.exits("tf32 is refused on cores", done, 2, "tf32 is computed by GPUs only")
    t.exits("an unknown back end", t.tool("space", "--backend", "gpu"), 2, "expected auto, cpu or cuda")


def check_lookup():
    """For a machine with GPUs that is only described."""
    ask = ["lookup", "--json", "--machine", t.write("machine", MACHINE), "--require", "heuristic"]
    done = t.tool(*ask)
    plan, key = done.json["plan"], done.json["key"]
    t.check("a look-up for a described GPU machine asks what a session there tunes", done.code == 0
            and (plan["ranks"], plan["cfg"], plan["ulysses"], plan["attention"]) == (8, 2, 4, "cudnn")
            and (key["model"], key["height"], key["dtype"]) == ("dit-xl/2", 64, "bfloat16"), done)
    done = t.tool(*ask, "--engine", "xdit", "--format", "json", "--checkpoint", "X")
    unexpressed = {parameter["name"] for parameter in done.json["unexpressed"]}
    t.check("an engine's flags are printed for it", done.code == 0
            and "--ulysses_degree" in done.json["argv"] and {"tile_q", "stages", "warps", "graph"} <= unexpressed
            and "attention" not in unexpressed, done)
    for model, attention in {"dit-s/2": "cudnn", "dit-xl/2": "cudnn"}.items():
        plan = t.tool(*ask, "--model", model).json["plan"]
        t.check(f"the default of heads of {model} on a described card is what engines do", (plan["attention"], plan["graph"]) == (attention, 1), plan)
    old = t.write("machine", {**MACHINE, "hard": {**MACHINE["hard"], "compute": "8.0"}})
    plan = t.tool(*ask, "--model", "dit-s/2").json["plan"]
    t.check("and on older ones own attention, in graphs", (plan["attention"], plan["graph"]) == ("own", 1), (old, plan))
    old = t.write("machine", {**MACHINE, "hard": {**MACHINE["hard"], "compute": "8.0", "gpus": 1}})
    plan = t.tool(*ask, "--model", "dit-s/2").json["plan"]
    t.check("and of one of them", (plan["ranks"], plan["attention"], plan["graph"]) == (1, "own", 1), (old, plan))
    t.write("machine", {**MACHINE, "hard": {**MACHINE["hard"], "gpus": 0}})
    done = t.tool("lookup", "--json", "--machine", t.path / "machine")
    t.exits("a description without a GPU is refused", done, 2, "gpus")


def check_others():
    """GPUs that others use, or that a killed trial has not given back."""
    used = h200s("used", 4, processes=[{"pid": 4711, "bytes": 1073741824}])
    t.exits("a foreign process is exit code 11", t.tool("run", "--plan", "ranks=1", env=used), 11,
            "GPU 0 is used by 1 other process", "4711", "--shared-devices")
    full = h200s("full", 4, free=120000000000)
    t.exits("so is memory in use", t.tool("tune", "--budget", "5s", env=full), 11, "GiB of 140 GiB of GPU 0 are in use")
    # The first answer is of free GPUs, later ones of full ones; started as a worker it is killed.
    left = script("left", f'[ "$1" = --devices ] || kill -9 $$\n[ -e {t.path}/asked ] && exec {t.path}/full\n'
                          f": >{t.path}/asked\nexec {t.path}/four\n")
    soon = {**left, "DITTUNE_CLOCK_LOOK": "500000000"}  # the memory may take ten looks to come back, five seconds
    t.exits("so is memory that a killed trial left", t.tool("tune", "--budget", "10m", env=soon), 11,
            "GPU 0 has 27.9 GiB less free memory than before a trial that was killed")


def check_stored():
    """`check` leaves an entry whose GPUs others use; --shared-devices lets it be measured."""
    db = t.path / "stored"
    plan = t.tool("explain", "--json", "--model", SMALL, "--size", "128", "--dtype", "float32", "ranks=1").json["plan"]
    told = script("told", f'[ "$1" = --devices ] && exec {t.path}/four\nexec "{BUILD}/dittune-worker" "$@"\n')
    machine = t.tool("machine", "--json", "--renew", env=told).json
    lib_store.write(db, {**machine, "hard": {**machine["hard"], "cores": 4}}, [{"plan": plan, "fingerprint.hard": {
        **machine["hard"], "dtype": "float32", "engine": "dittune", "mode": "eager"}}])
    used = h200s("used", 4, processes=[{"pid": 4711, "bytes": 1073741824}])
    for options, sentence in (((), "GPU 0 is used by 1 other process (the first: pid 4711)"),
                              (("--shared-devices",), "the other plans ran")):
        done = t.tool("check", "--json", "--db", db, "--model", SMALL, "--budget", "5s", *options, env=used)
        found = [(entry["verdict"], sentence in entry["reason"]) for entry in (done.json or {}).get("entries", [])]
        t.check(f"a stored plan of GPUs that others use: check {' '.join(options)}", done.code == 5
                and found == [("not checked", True)], done)


def check_foreign():
    """A foreign worker's ranks on GPUs: the controller's own facts are compared with ready's, and others are looked for."""
    def plant(device="cuda:0", faults=(), host=socket.gethostname(), **fields):
        rank = {"rank": 0, "pid": 1, "host": host, "device": device}
        t.scenario(ns=[2000000, 1000000], cv=0.01, faults=[
            {"do": "answer", "at": "ready", "fields": {"ranks": [rank], **fields}}, *faults])
    ask = ["run", "--worker", t.worker, "--json"]
    used = h200s("used", 4, processes=[{"pid": 4711, "bytes": 1073741824}])
    plant()
    t.exits("others on the GPUs of a foreign worker are exit code 11", t.tool(*ask, env=used), 11,
            "GPU 0 is used by 1 other process (the first: pid 4711)")
    t.exits("--shared-devices measures beside them", t.tool(*ask, "--shared-devices", env=used), 0)
    plant("cpu")
    t.exits("a foreign worker on cores needs no GPU", t.tool(*ask, env=used), 0)
    card = {"name": "NVIDIA H200", "uuid": "GPU-0A", "compute": "9.0", "memory_bytes": 150200000000, "driver": "580.95"}
    for what, announced, sentence in (
            ("of this machine", [card] * 4, ""), ("by their name only", [{"name": "NVIDIA H200"}], ""),
            ("of another make", [{**card, "name": "NVIDIA A100"}], "are 1 x NVIDIA A100, 9.0, 160 GiB, but the GPUs of this "
             "machine are 4 x NVIDIA H200, 9.0, 160 GiB"),
            ("of another make, by their name only", [{"name": "x"}], "are 1 x x, but the GPUs"),
            ("of another capability", [{**card, "compute": "8.0"}], "are 1 x NVIDIA H200, 8.0, 160 GiB, but the GPUs"),
            ("of less memory", [{**card, "memory_bytes": 80000000000}], "are 1 x NVIDIA H200, 9.0, 80 GiB, but the GPUs"),
            ("with another driver", [card, {**card, "driver": "570.1"}], "the driver of its 'devices' is 570.1, but that of this machine is "
             "580.95"),
            ("with a UUID of another machine", [card, {**card, "uuid": "GPU-b"}], "its 'devices' have GPU-b, which is none of the GPUs"),
            ("more than there are", [card] * 5, "are 5 x NVIDIA H200, 9.0, 160 GiB, but the GPUs")):
        plant(devices=announced)
        t.exits(f"devices that a worker names: {what}", t.tool(*ask), 2 if sentence else 0, *[sentence] * bool(sentence))
    other = {**card, "name": "NVIDIA A100", "uuid": "GPU-b", "driver": "570.1"}
    plant(host="far", devices=[other])
    t.exits("GPUs of another host are not compared, nor looked for others", t.tool(*ask, env=used), 0)
    plant(host=socket.gethostname() + ".example", devices=[other])
    t.exits("this host by its long name is this host", t.tool(*ask), 2, "are 1 x NVIDIA A100")
    plant(host="container", devices=[{**card, "driver": "570.1"}])
    t.exits("a container has this machine's GPUs", t.tool(*ask), 2, "is 570.1, but")
    plant(host="container", devices=[card])
    t.exits("others on them are looked for", t.tool(*ask, env=used), 11, "GPU 0 is used by 1 other process")
    # Once the worker has logged its fault the GPUs are full, as a killed trial has not given its memory back.
    h200s("full", 4, free=120000000000)
    left = script("left", f"""grep -q '"exit"' {t.path}/scenario.json.log 2>/dev/null && exec {t.path}/full\nexec {t.path}/four\n""")
    soon = {**left, "DITTUNE_CLOCK_LOOK": "500000000"}
    for options, code, sentence in (((), 11, "less free memory than before a trial that was killed"), (("--shared-devices",), 0, "")):
        (t.path / "scenario.json.log").unlink(missing_ok=True)
        plant(faults=[{"when": {"plan": 1}, "at": "prepare", "do": "exit", "code": 3}])
        done = t.tool("--worker", t.worker, "--budget", "30m", "--quiet", *options, env=soon)
        t.exits(f"memory that a killed trial of a foreign worker left {' '.join(options)}", done, code, sentence)
    shared = t.tool("db", "show", "--json").json["entries"][0]["fingerprint"]
    t.check("the entry records that others were on the GPUs", (shared["hard"]["gpus"], shared["soft"]["devices"])
            == (4, "shared with others"), shared)


def check_without():
    """--backend cuda reports the fault; without it plans run on cores."""
    for name, body, sentence in (("crash", "kill -SEGV $$\n", "killed by signal 11"),
                                 ("words", "echo hello\n", "no description of devices"),
                                 ("exit", "exit 3\n", "exited with 3")):
        worker = script(name, body)
        done = t.tool("space", "--backend", "cuda", env=worker)
        t.check(f"--backend cuda reports the fault: {name}", done.code == 1 and sentence in done.err
                and done.err.count("\n") == 1, done)
        done = t.tool("space", "--json", env=worker)
        t.check(f"by default plans then run on cores: {name}", on_cores(done), done)
    none = h200s("none", 0)
    why = "dittune: plans run on cores, as no GPU can be used: no CUDA-capable device is detected"
    done = t.tool("tune", "--model", SMALL, "--size", "64", "--budget", "4s", env=none)
    t.check("a session on cores says in one sentence why", done.err.splitlines()[:1] == [why], done)
    done = t.tool("run", "--model", SMALL, "--size", "64", "--plan", "ranks=1", env=none)
    t.check("run on cores says in one sentence why", done.code == 0 and done.err == why + "\n", done)
    done = t.tool("space", "--backend", "cuda", env={"DITTUNE_WORKER_CUDA": t.path / "absent"})
    t.exits("there is no such worker", done, 1, "there is no ")


def check_ceilings():
    """A session on a GPU measures its ceilings once, after all else, for the report's kinds of work."""
    answer = t.run(h200s("one", 1)["DITTUNE_WORKER_CUDA"], "--devices").out.strip()
    env = script("planted", f"[ \"$1\" = --devices ] && exec echo '{answer}'\nexec '{t.worker}' \"$@\"\n")
    t.scenario(a=0.01, b=0.001, s=1, cv=0.004, blocks=2, peak={"flop_rate": 5e14, "copy_bytes_per_second": 3e12}, log=str(t.path / "log"))
    done = t.tool("tune", "--model", SOURCE / "tests/cli/small.json", "--size", "64", "--budget", "2m", "--json",
                  "--search", "random", "--db", t.path / "ceilings", env=env)
    t.check("a session on a GPU ends", done.code in (0, 6), done)
    journal = next((t.path / "ceilings/runs").glob("*.jsonl"))
    records = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines() if line]
    finals = next((record for record in records if record["kind"] == "comparison" and record["name"] == "final comparison"), {"entrants": []})
    rates = {(entrant.get("peak_flop_rate"), entrant.get("copy_bytes_per_second")) for entrant in finals["entrants"]}
    t.check("the plans of the final comparison have the ceilings", done.code in (0, 6) and rates == {(5e14, 3e12)}, (done, rates))
    t.check("no trial has", not any("peak_flop_rate" in record for record in records if record["kind"] == "trial"))
    asked = [entry["op"] for process in log_of_processes(t.path / "log") for entry in process if entry.get("op") in ("peak", "run", "release", "quit")]
    t.check("they are asked for once, after the last step", asked.count("peak") == 1 and "run" not in asked[asked.index("peak"):], asked[-5:])


t = Dittune(DITTUNE_CLOCK_LOOK="20000000")
forget_gpus(t.environment)
t.environment.update(h200s("four", 4))
check_space()
check_lookup()
check_others()
check_stored()
check_foreign()
check_without()
check_ceilings()
t.none_left()
t.finish()
