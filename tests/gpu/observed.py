# SPDX-License-Identifier: MIT
# ctest:
"""The GPUs of a foreign worker, read by the controller while it measures: what NVML says (tests/fake_cuda/nvml) is in the
report where the worker tells nothing itself, each rank's from its own GPU."""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, Dittune
from fake_gpus import NVML, forget_gpus

MHZ = [1500, 1800]
TOTAL = 8 << 30
ME = os.getpid()


def machine(count=2, observe=f"exec '{BUILD}/dittune-worker' --observe"):
    """A program that lists so many GPUs, and reads them as the workers do."""
    cards = [{"index": i, "name": "NVIDIA H200", "uuid": f"GPU-{i}", "pci": f"0000:{0x18 + i:02x}:00.0", "compute": "9.0",
              "memory_bytes": TOTAL, "free_bytes": TOTAL, "shared_bytes": 232448, "processes": []} for i in range(count)]
    answer = {"op": "devices", "count": count, "why": "", "driver": "580.95.05", "cuda": 13000, "devices": cards}
    program = t.write("machine", f"#!/bin/sh\n[ \"$1\" = --observe ] && {{ {observe}; }}\ncat <<'J'\n{json.dumps(answer)}\nJ\n")
    program.chmod(0o755)
    return {"DITTUNE_WORKER_CUDA": program}


def values(*lines):
    """What NVML says from now on."""
    t.write("values", "".join(f"{line}\n" for line in [f"sm_mhz 0 {MHZ[0]}", f"sm_mhz 1 {MHZ[1]}", "reasons 0 4", "reasons 1 64",
                                                       *lines]))


def plant(*ranks, **fields):
    """A worker of two ranks, whose ready has these fields of each, and whose prepared has the others."""
    said = [{"rank": i, "pid": 1, "host": socket.gethostname(), **rank} for i, rank in enumerate(ranks)]
    t.scenario(axes={"ranks": [2]}, weights={"ranks": 0}, best={"ranks": 2}, ranks=2, cv=0.01, faults=[
        {"do": "answer", "at": "ready", "fields": {"ranks": said}},
        {"do": "answer", "at": "prepare", "fields": {"peak_bytes": [0, 0], **fields}}])


def run(*words, **how):
    return t.tool("run", "--worker", t.worker, "--raw", t.path / "raw.jsonl", *words, **how)


def device_of(name, done):
    t.check(f"{name}: the plan is measured", done.code == 0 and done.json["outcome"] == "ok", done)
    return (done.json or {}).get("device") or {}


def clocks(device):
    """Each rank's mean clock."""
    return [rank["sm_mhz"]["mean"] for rank in device.get("telemetry", [])]


def check_telemetry():
    for name, ranks, expected in (
            ("by their numbers", [{"device": "cuda"}, {"device": "cuda"}], MHZ),
            ("by the worker's indices", [{"device": "cuda:1"}, {"device": "cuda:0"}], MHZ[::-1]),
            ("by UUID", [{"device": "cuda:0", "uuid": "GPU-1"}, {"device": "cuda:0", "uuid": "GPU-0"}], MHZ[::-1]),
            ("one of both", [{"device": "cuda:1"}, {"device": "cuda:1"}], MHZ[1:] * 2)):
        plant(*ranks)
        device = device_of(name, run("--json"))
        t.check(f"telemetry is that of the ranks' GPUs, {name}", clocks(device) == expected, device)
    rank = device["telemetry"][0]
    t.check("it has all that the built-in worker reads", rank["looks"] > 0 and rank["power_mw"]["most"] == 300000
            and rank["temperature_c"]["least"] == 40 and "utilization" in rank and "memory_mhz" in rank
            and rank["reasons"] == ["hw_thermal"], rank)
    trial = next(json.loads(line) for line in t.read("raw.jsonl").splitlines() if '"trial"' in line)
    t.check("the journal has it, and the reasons of each request", clocks(trial) == MHZ[1:] * 2
            and trial["reasons"] == [["hw_thermal"]] * len(trial["requests"]), trial)
    t.exits("so has the report", run(), 0, "devices     while it ran, 1800 to 1800 MHz, 3201 to 3201 MHz of memory, 300 to\n            300 W, 40 to 40 C, 0 to 0 % busy\n")


def check_memory():
    ranks = [{"device": "cuda:0", "pid": ME}, {"device": "cuda:1", "pid": ME}]
    plant(*ranks)
    child = subprocess.Popen(["sleep", "600"])
    values(f"process 0 {ME} 1000000000", f"process 0 {child.pid} 70000000", "process 0 1 5", f"process 1 {child.pid} 2000000000")
    done = run("--json")
    child.kill()
    child.wait()
    device = device_of("memory", done)
    memory = device.get("memory", {})
    t.check("a rank's memory is that of its process and of what that has started", memory.get("taken_bytes")
            == [1070000000, 2000000000], memory)
    t.check("a GPU's memory is the driver's count", memory.get("total_bytes") == [TOTAL] * 2
            and memory.get("free_bytes") == [TOTAL - 1070000005, TOTAL - 2000000000], memory)
    t.check("it is the plan's, as the worker tells none", done.json["peak_bytes"] == 2000000000, done)
    values(f"process 0 {ME} 1000000000", f"process 1 {ME} 2000000000")
    t.exits("the report has it", run(), 0, "\n            1.86 GiB taken, 23.3 % of the memory in use\n")
    plant(*ranks, peak_bytes=[5, 7], free_bytes=[1, 2])
    done = run("--json")
    memory = device_of("a worker's own figures", done).get("memory", {})
    t.check("a worker's own figures count", done.json["peak_bytes"] == 7 and memory["free_bytes"] == [1, 2]
            and memory["taken_bytes"] == [1000000000, 2000000000], done)
    values("process 0 1 1000000000", "process 1 1 2000000000")
    memory = device_of("pids that are not known", run("--json")).get("memory", {})
    t.check("processes that are no rank's are nobody's memory", "taken_bytes" not in memory and memory["total_bytes"], memory)
    pair = subprocess.Popen(["sleep", "600"])
    values(f"process 0 {ME} 1000000000", f"process 0 {pair.pid} 3")
    plant({"device": "cuda:0", "pid": ME}, {"device": "cuda:0", "pid": pair.pid})
    memory = device_of("a shared GPU", run("--json")).get("memory", {})
    pair.kill()
    pair.wait()
    t.check("each of two ranks on one GPU has its own", memory.get("taken_bytes") == [1000000000, 3], memory)
    values()


def check_others():
    """Nothing is observed where nothing is to be, and a plan is measured whatever becomes of the observer."""
    plant({"device": "cpu"}, {"device": "cpu"})
    device = device_of("ranks on cores", run("--json"))
    t.check("ranks on cores have no GPU", device == {}, device)
    plant({"device": "cuda:0"}, {"device": "cuda:7"})
    device = device_of("a GPU that is not there", run("--json"))
    t.check("a GPU that is not there is not read", device == {}, device)
    plant({"device": "cuda:0"}, {"device": "cuda:1", "host": "far"})
    device = device_of("a GPU of another host", run("--json"))
    t.check("GPUs of another host are not read here", device == {}, device)
    t.scenario(device={}, faults=[{"do": "answer", "at": "ready", "fields": {"ranks": [{"rank": 0, "device": "cuda:0"},
                                                                                       {"rank": 1, "device": "cuda:1"}]}}])
    done = run("--json")
    t.check("what a worker reads itself counts", clocks(device_of("its own telemetry", done)) == [1000, 1000], done)
    plant({"device": "cuda:0"}, {"device": "cuda:1"})
    for name, body in (("is older", "exit 2"), ("crashes", "kill -SEGV $$"), ("says nonsense", "echo hello; exit 0"),
                       ("ends on the way", f"{{ {{ read a; echo $a; read a; echo $a; }} | '{BUILD}/dittune-worker' --observe; exit; }}")):
        device = device_of(f"an observer that {name}", run("--json", env=machine(observe=body)))
        t.check(f"an observer that {name} is no failure", "telemetry" not in device, device)


def tune(name, code, *options, **how):
    """A session of two plans on both GPUs, the second faster; the sets of its comparison, and what others did in each."""
    (t.path / "scenario.json.log").unlink(missing_ok=True)
    t.scenario(axes={"ranks": [2], "tile": [1, 2]}, weights={"ranks": 0, "tile": .3}, best={"ranks": 2, "tile": 1}, ranks=2, cv=0.01, faults=[
        {"do": "answer", "at": "ready", "fields": {"ranks": [{"rank": i, "pid": ME, "host": socket.gethostname(), "device": f"cuda:{i}"}
                                                             for i in range(2)]}}, *how.get("faults", [])])
    done = t.tool("--worker", t.worker, "--budget", "60s", "--db", t.path / name.replace(" ", "_"), *options,
                  env={"DITTUNE_LOAD": "", "DITTUNE_CLOCK_LOOK": "1000000", **machine(), **how.get("env", {})})
    lines = [json.loads(line) for path in t.path.glob(f"{name.replace(' ', '_')}/runs/*") for line in path.read_text().splitlines() if line]
    final = [line for line in lines if line["kind"] == "comparison" and line["name"] == "final comparison"][-1:]
    t.check(f"{name}: exit code {code}", done.code == code and final, done)
    return " ".join(done.out.split()), final[0]["gpus"] if final else []


def check_watched():
    """A set in which others use a GPU counts for nothing. Their processes are named where they are seen; those of another container
    are not, and show where none of ours computes."""
    values()
    text, gpus = tune("nobody", 0)
    t.check("GPUs that nobody uses are watched", set(gpus) == {0} and "Clocks of GPUs were lowered in the final comparison: hw_" in text, text)
    for name, lines, count in (("a program", [f"process 1 {ME} 1000"], 1), ("a busy GPU", ["utilization 0 92"], 1),
                               ("two of them", [f"process 0 {ME} 5", "utilization 1 50"], 2),
                               ("a process of another container", ["process 0 99999999 5"], 1),
                               ("memory", ["process 1 99999999 2000000000"], 1)):
        values(*lines)
        text, gpus = tune(name, 6)
        program = f" ({pathlib.Path('/proc/self/comm').read_text().strip()[:16]})" if str(ME) in lines[0] else ""
        t.check(f"{name}: no set counts, and who it is is said", gpus and set(gpus) == {count} and
                f"ther programs{program} used {count} of the GPUs in {len(gpus)} of {len(gpus)} sets of the final comparison" in text
                and f"Load: {len(gpus)} sets left out, in which" in text and f"used up to {count} of the GPUs." in text, (gpus, text))
    text, gpus = tune("as it is", 0, "--shared-devices")
    t.check("--shared-devices measures beside them", set(gpus) == {0}, gpus)
    values()
    t.write("others", "0 5\n")  # cores
    for name, options in (("busy cores", ()), ("busy cores and shared GPUs", ("--shared-devices",))):
        text, gpus = tune(name, 0, *options, env={"DITTUNE_CLOCK_OTHERS": t.path / "others"})
        t.check(f"{name}: all sets count, and the load is told", set(gpus) == {0} and re.search("Load: others kept [2-5][.0-9]* cores busy in the sets that count", text)
                and "left out, in which" not in text, (gpus, text))
    values("utilization 0 92")
    text, gpus = tune("for a while", 0, faults=[{"do": "break", "path": str(t.path / "values"), "at": "prepare", "from": 2, "when": {"tile": 2},
                                                 "first": 1}])
    t.check("sets after they ended decide", gpus[0] == 1 and gpus.count(0) >= 4, gpus)
    (t.path / "values").rmdir()
    values()


def check_requests():
    """What an observer answers to requests that it cannot serve."""
    lines = [{"op": "observed"}, {"op": "hello"}, {"op": "memory", "devices": ["0000:99:00.0"]}, {"op": "observe"}, {"op": "run"},
             {"op": "observe", "devices": ["0000:18:00.0"]}, {"op": "observe", "devices": []}, {"op": "quit"}]
    done = t.run(BUILD / "dittune-worker", "--observe", input="".join(json.dumps(line) + "\n" for line in lines))
    said = [json.loads(line) for line in done.out.splitlines()]
    sentences = [message.get("say") for message in said]
    t.check("an observer answers each request", done.code == 0 and [message["op"] for message in said]
            == ["failed", "hello", "ready", "failed", "failed", "failed", "observing", "failed"]
            and sentences[3] == "NVML does not know the device at 0000:99:00.0" and "'run'" in sentences[5]
            and sentences[7] == "devices are observed already", done)
    done = t.run(BUILD / "dittune-worker", "--observe", input='{"op":"hello"}\n', env={"DITTUNE_NVML": "/absent"})
    t.check("without NVML it says so", '"failed"' in done.out and "/absent" in done.out, done)


t = Dittune(DITTUNE_CLOCK_LOOK="20000000")
forget_gpus(t.environment)
t.environment.update({"DITTUNE_NVML": str(NVML), "DITTUNE_FAKE_CUDA": f"devices=2:memory={TOTAL}:nvml={t.path}/values"})
t.environment.update({name: str(value) for name, value in machine().items()})
values()
check_telemetry()
check_memory()
check_others()
check_watched()
check_requests()
t.none_left()
t.finish()
