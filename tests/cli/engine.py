# SPDX-License-Identifier: MIT
# ctest:
"""--engine NAME: its worker is found, tuned and checked, and its plans are looked up, exported and removed by the engine and
the job, without a worker."""
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

MS = 1_000_000
ALL = ["model", "revision", "width", "height", "frames", "steps", "guidance", "dtype", "batch", "text_tokens"]

t = Dittune()
BIN = t.path / "bin"
BIN.mkdir()
t.environment["PATH"] = f"{BIN}:{os.environ['PATH']}"


def install(engine):
    (BIN / f"dittune-worker-{engine}").symlink_to(t.worker)


def plant(engine="diffusers", **job):
    """A worker of that engine, which understands this job whatever it is told."""
    t.scenario(ns=[2 * MS, MS], cv=0.01, protocol=2, engine=engine, obeys=ALL, job=job)


def tune(*words, engine="diffusers", **job):
    plant(engine, **job)
    return t.tool("--engine", engine, "--budget", "20s", *words)


def look(*words, engine="diffusers"):
    return t.tool("lookup", "--engine", engine, *words)


def programs():
    """The worker is dittune-worker-NAME: beside dittune, beside the name it was called by, then in PATH."""
    for engine, says in (("diffusers", "the worker of the engine diffusers is not installed: pip install 'dittune[diffusers]' with dittune's wheel (docs/build.md)"),
                         ("difusers", "there is no dittune-worker-difusers beside dittune or in PATH (--worker PROGRAM names a program of your own): "
                                      "did you mean --engine diffusers?"),
                         ("mine", "no dittune-worker-mine beside dittune or in PATH (--worker PROGRAM names a program of your own)\n"),
                         ("diffusers:0.41", "--engine 'diffusers:0.41' names a version, but a worker runs the version that is installed"),
                         ("../x", "--engine '../x' is not the name of an engine such as diffusers"),
                         ("x" * 49, "at most 48")):
        t.exits(f"no worker of {engine[:12]}", t.tool("--engine", engine), 2, says)
    t.exits("an engine and a worker", t.tool("run", "--engine", "diffusers", "--worker", t.worker), 2,
            "--engine has no effect beside --worker: the worker is a program of its own")
    t.exits("an engine and a file of weights", t.tool("run", "--engine", "diffusers", "--weights", "x"), 2,
            "--weights has no effect beside --engine: the worker decides by itself")
    t.exits("worker-test needs one of two", t.tool("worker-test"), 2, "needs PROGRAM or --engine NAME")
    install("diffusers")
    t.exits("worker-test takes one of two", t.tool("worker-test", t.worker, "--engine", "diffusers"), 2, "not both")
    plant(engine="xdit")
    t.exits("the worker must name its engine", t.tool("run", "--engine", "diffusers"), 2, "announces the engine 'xdit', not 'diffusers'")
    plant(**{name: 1 for name in ALL})
    done = t.tool("worker-test", "--engine", "diffusers", "--steps", "28", "--no-wait")
    t.check("worker-test runs the engine's worker", done.code == 0 and not re.search("^FAILED", done.out, re.M), done)
    beside = t.path / "beside"
    beside.mkdir()
    shutil.copy(t.program(), beside / "dittune")
    (beside / "dittune-worker-diffusers").write_text("#!/bin/sh\nexit 3\n")
    (beside / "dittune-worker-diffusers").chmod(0o755)
    t.exits("the worker beside dittune has precedence", t.run(beside / "dittune", "run", "--engine", "diffusers"), 1,
            f"the worker {beside}/dittune-worker-diffusers did not start")
    (beside / "dittune").unlink()
    (beside / "dittune").symlink_to(t.program())
    t.exits("and the worker beside the name that dittune was called by", t.run(beside / "dittune", "run", "--engine", "diffusers"), 1,
            f"the worker {beside}/dittune-worker-diffusers did not start")


def looked_up():
    """What was tuned is found by its job, and no worker is started for it."""
    for steps in (28, 4):
        done = tune("--model", "org/net", "--steps", str(steps), model="org/net", width=64, height=32, steps=steps, weights="random")
        line = re.search("Look it up: dittune (.*)", done.out)
        t.check("a session prints the look-up by the engine", done.code == 0 and line
                and line[1] == f"lookup --engine diffusers --backend cpu --mode eager --model org/net --size 64x32 --steps {steps} --devices 2 --objective latency", done)
        found = t.tool(*shlex.split(line[1]), "--json", "--format", "json") if line else done
        t.check("and, pasted, it finds the entry", found.code == 0 and found.json["answer"]["tier"] == "exact"
                and found.json["answer"]["entry"]["key"]["job"]["steps"] == steps, found)
    t.scenario(axes={"cfg": [1, 3]}, base=2 * MS, cv=0.01, protocol=2, engine="diffusers", obeys=ALL, job={"model": "org/halves"},
               plans=[{"when": {"cfg": 3}, "ns": MS}])
    done = t.tool("--engine", "diffusers", "--budget", "20s", "--model", "org/halves", "--db", t.path / "halves", "--", "--cfg")
    line = re.search("Look it up: dittune (.*)", done.out)
    found = t.tool("lookup", "--json", *shlex.split(line[1])[1:]) if line else done
    t.check("a plan that the engine has no call for is looked up by the worker", line and f"--worker {BIN}/dittune-worker-diffusers" in line[1]
            and line[1].endswith(" -- --cfg") and found.code == 0 and (found.json or {}).get("plan") == {"cfg": 3}, f"{done}\n{found}")
    t.environment["DITTUNE_TRANSCRIPT"] = str(t.path / "transcript")
    shutil.rmtree(BIN)  # a machine that only looks up
    t.exits("a part of the job that tells entries apart", look("--model", "org/net"), 2,
            "dittune: the plans stored for diffusers: org/net were tuned with steps 28, 4: choose one (--steps)")
    done = look("--model", "org/net", "--steps", "4", "--size", "64x32", "--json")
    t.check("--json has the entry and the exported plan", done.code == 0 and done.json["measured"] is True
            and done.json["answer"]["entry"]["key"]["job"]["model"] == "org/net"
            and done.json["answer"]["key"]["job"] == {"model": "org/net", "width": 64, "height": 32, "steps": 4}, done)
    t.exits("an unknown model: the stored ones", look("--model", "org/nett"), 10, "none was tuned with model org/nett, only with org/net")
    t.exits("an unknown size: the stored ones", look("--model", "org/net", "--size", "64"), 10, "with size 64x64, only with 64x32")
    t.exits("nothing of an engine", look("--model", "org/net", engine="xdit"), 10, "no plan is stored in", "for xdit: org/net", "run dittune --engine xdit first")
    t.exits("no worker, no deadline", look("--model", "org/net", "--start-timeout", "1m"), 2, "it starts no worker")
    t.exits("a job needs an engine", t.tool("lookup", "--steps", "4"), 2, "--steps has no effect without --engine or --worker")
    t.check("no worker was started", not (t.path / "transcript").exists())
    del t.environment["DITTUNE_TRANSCRIPT"]
    BIN.mkdir()
    install("diffusers")


def on_gpus():
    """The devices that the worker announces, and those that the controller finds."""
    install("xdit")
    card = {"index": 0, "name": "NVIDIA H200", "compute": "9.0", "memory_bytes": 150754820096, "free_bytes": 150000000000,
            "shared_bytes": 232448, "processes": []}
    answer = {"op": "devices", "count": 1, "why": "", "driver": "580.95", "cuda": 13000, "nccl": "2.28.9", "cudnn": "", "cublaslt": "13.1.0",
              "devices": [card], "peers": [[0]], "links": [["self"]]}
    gpu = t.write("gpu", f"#!/bin/sh\nexec echo '{json.dumps(answer)}'\n")
    gpu.chmod(0o755)
    rank = {"rank": 0, "pid": 1, "host": socket.gethostname()}
    named = {"devices": [{"name": "NVIDIA H200", "compute": "9.0", "memory_bytes": 150754820096}] * 2}
    cores = t.tool("machine", "--json").json["hard"]
    for what, device, fields, env, devices, tiers in (
            ("cpu", {"device": "cpu"}, {}, {}, None, ("exact", "exact")),
            ("no device, where there is no GPU", {}, {}, {}, None, ("exact", "exact")),
            ("no device, where there is one", {}, {}, {"DITTUNE_WORKER_CUDA": gpu}, "unknown", ("none", "proxy")),
            ("a GPU that the controller does not find", {"device": "cuda:0"}, {}, {}, "unknown", ("proxy", "proxy")),
            ("one that the worker describes", {"device": "cuda:0"}, named, {}, "2 x NVIDIA H200, 9.0, 160 GiB", ("proxy", "exact")),
            ("one that it describes by halves", {"device": "cuda:0"}, {"devices": [{"name": "x"}]}, {}, "unknown", ("proxy", "proxy")),
            ("a GPU of another host", {"device": "cuda:0", "host": "far"}, named, {"DITTUNE_WORKER_CUDA": gpu}, "2 x NVIDIA H200, 9.0, 160 GiB",
             ("none", "exact")),
            ("a GPU that the controller finds", {"device": "cuda:0"}, {}, {"DITTUNE_WORKER_CUDA": gpu}, "GPU", ("exact", "exact"))):
        shutil.rmtree(t.environment["DITTUNE_STORE"], ignore_errors=True)
        t.scenario(ns=[2 * MS, MS], cv=0.01, protocol=2, engine="xdit", obeys=ALL, job={"model": "m"},
                   faults=[{"do": "answer", "at": "ready", "fields": {"ranks": [{**rank, **device}], **fields}}])
        done = t.tool("--engine", "xdit", "--budget", "20s", "--quiet", "--json", env=env)
        entry = t.tool("db", "show", "--json").json["entries"][0]
        hard = entry["fingerprint"]["hard"]
        t.check(f"{what}: the fingerprint", done.code == 0 and (
            (hard["device"], hard["gpus"], hard["compute"]) == ("NVIDIA H200", 1, "9.0") if devices == "GPU"
            else hard.get("devices") == devices and {**cores, **hard} == hard), hard)
        by_engine = t.tool("lookup", "--engine", "xdit", "--model", "m", "--json", "--require", "none", env=env)
        by_worker = t.tool("lookup", "--worker", t.worker, "--json", "--require", "none", env=env)
        found = [answer.get("answer", answer)["tier"] for answer in (by_engine.json, by_worker.json)]
        t.check(f"{what}: the tiers", tuple(found) == tiers, (found, by_engine, by_worker))
        if devices == "unknown" and tiers[0] == "proxy":
            t.check(f"{what}: the reason", "on devices that its worker did not name" in by_engine.json["answer"]["reason"], by_engine)
        done = t.tool("check", "--engine", "xdit", "--budget", "60s", "--json", env=env)
        t.check(f"{what}: checked", done.json["entries"][0]["verdict"] == "wins", done)


def of_no_file():
    """An engine without a file of flags: its plan is its own words."""
    install("mine")
    t.check("tuned", tune("--quiet", engine="mine", model="m").code == 0)
    done = look("--model", "m", engine="mine")
    t.check("the plan as it is", done.code == 0 and done.out.startswith("plan=1\n  tier       exact\n"), done)
    t.exits("as a command", look("--model", "m", "--format", "argv", engine="mine"), 0, out="'plan=1'\n")
    t.exits("another size", look("--size", "32", engine="mine"), 10, "none was tuned with size 32x32, only with none")


def exported():
    """The engine's own words name the job's model."""
    install("sglang")
    t.check("tuned", tune("--quiet", engine="sglang", model="org/net").code == 0)
    t.exits("an alias of a published model is its name", look("--model", "FLUX.1-DEV", engine="xdit"), 10, err="for xdit: black-forest-labs/FLUX.1-dev")
    t.exits("the model is the checkpoint", look("--model", "org/net", "--format", "argv", engine="sglang"), 0, out="--model-path=org/net ")
    t.exits("unless another is named", look("--model", "org/net", "--format", "argv", "--checkpoint", "x", engine="sglang"), 0, out="--model-path=x ")


def checked():
    """check --engine: the entries of the engine, and of a model."""
    plant(model="org/net", width=64, height=32, steps=28, weights="random")
    done = t.tool("check", "--engine", "diffusers", "--model", "org/net", "--budget", "60s", "--json")
    verdicts = {entry["key"]["job"]["steps"]: entry for entry in done.json["entries"]}
    t.check("the entries of the engine are checked", set(verdicts) == {28, 4} and verdicts[28]["verdict"] == "wins", done)
    t.check("the line that tunes again names the engine", verdicts[28]["retune"].startswith("dittune --engine diffusers --model org/net --size 64x32"), done)
    t.check("a job that the worker takes for another one", verdicts[4]["verdict"] == "unsupported"
            and "announces another one" in verdicts[4]["reason"], done)
    t.check("the title has the job", verdicts[28]["title"].startswith("planted: org/net, 64 x 32 px, 28 steps"), done)
    t.exits("no entry of a model", t.tool("check", "--engine", "diffusers", "--model", "x", "--budget", "9s"), 5,
            "has no entry of this machine tuned on diffusers for x")
    done = t.tool("check", "--budget", "9s", "--json")
    reasons = [entry["reason"] or "" for entry in done.json["entries"]]
    t.check("no engine must be named: each entry has the worker that tuned it", not any("tuned on the engine '" in reason for reason in reasons)
            and sum("worker-mine announces the engine 'diffusers'" in reason for reason in reasons) == 1, done)


def removed():
    """db show and rm by engine and model."""
    t.exits("an unknown model", t.tool("db", "rm", "--engine", "diffusers", "--model", "x"), 2, "no entry was tuned on diffusers for x")
    done = t.tool("db", "show", "--engine", "mine", "--json")
    t.check("show by engine", done.code == 0 and [entry["key"]["job"]["model"] for entry in done.json["entries"]] == ["m"], done)
    t.exits("of verify it is no option", t.tool("db", "verify", "--engine", "mine"), 2, "--engine is an option of 'dittune db show' and 'dittune db rm'")
    t.check("the table has the job", re.search(r" org/net +64x32 px +- +2 +float32 ", t.tool("db", "show").out))
    t.exits("rm lists", t.tool("db", "rm", "--engine", "diffusers"), 0, out=["planted: org/net, 64 x 32 px, 28 steps [", "--yes removes them"])
    t.exits("rm removes", t.tool("db", "rm", "--engine", "diffusers", "--model", "org/net", "--yes"), 0, out="removed")
    t.check("and only those", len(t.tool("db", "show", "--json").json["entries"]) == 2)


for part in (programs, looked_up, of_no_file, exported, checked, removed, on_gpus):
    part()
t.none_left()
t.finish()
