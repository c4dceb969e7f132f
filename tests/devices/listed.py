# SPDX-License-Identifier: MIT
# ctest:
"""Without a worker for GPUs the driver alone lists them (tests/devices/listed.c): dittune-worker --devices says which of them
CUDA_VISIBLE_DEVICES leaves, and a foreign worker's ranks on them are treated as where there is one."""
import json
import pathlib
import shutil
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, Dittune
from fake_gpus import forget_gpus

H200, L4 = ["GPU-aa00", "GPU-aa11"], "GPU-bb22"


def listed(visible=None, **more):
    env = {**more, **({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})}
    return t.run(t.path / "dittune-worker", "--devices", env=env).json


def check_list():
    found = listed()
    cards = found["devices"]
    first = {name: cards[0][name] for name in ("index", "name", "uuid", "pci", "compute", "memory_bytes", "free_bytes", "shared_bytes")}
    t.check("a device as the driver describes it", first == {
        "index": 0, "name": "NVIDIA H200", "uuid": H200[0], "pci": "0000:18:00.0", "compute": "9.0", "memory_bytes": 141 << 30,
        "free_bytes": 141 << 30, "shared_bytes": None}, first)
    t.check("the driver, and the CUDA that it runs", (found["driver"], found["cuda_driver"], found["cuda"], found["count"])
            == ("580.95.05", 13000, 0, 3), found)
    t.check("what connects them", found["links"] == [["self", "nvlink", "sys"], ["nvlink", "self", "sys"], ["sys", "sys", "self"]]
            and found["peers"] == [[0, 1, -1], [1, 0, -1], [-1, -1, 0]], found)
    for visible, expected in (("1,0", H200[::-1]), ("2", [L4]), ("0,7,1", H200[:1]), ("GPU-bb,GPU-aa11", [L4, H200[1]]),
                              ("-1", []), ("", []), ("0,MIG-x,1", H200[:1]), ("GPU-zz", [])):
        found = listed(visible)
        t.check(f"CUDA_VISIBLE_DEVICES={visible}", [card["uuid"] for card in found["devices"]] == expected
                and found["count"] == len(expected) and (found["why"] == "") == bool(expected), found)
    t.check("devices are numbered as they are visible", [card["index"] for card in listed("2,0")["devices"]] == [0, 1])
    found = listed(LISTED_MIG="1")
    t.check("a device that is cut is another for CUDA: none is listed", found["count"] == 0 and "device 1 is cut by MIG" in found["why"], found)
    found = listed(DITTUNE_NVML="/absent")
    t.check("without a driver there is a reason", found["count"] == 0 and "/absent" in found["why"], found)


def tool(*words, **how):
    return t.run(t.path / "dittune-virtual", *words, **how)


def check_session():
    """No program here is one for GPUs."""
    def plant(**fields):
        t.scenario(ns=[2000000, 1000000], cv=0.01, faults=[{"do": "answer", "at": "ready", "fields": {
            "ranks": [{"rank": 0, "pid": 1, "host": socket.gethostname(), "device": "cuda:1"}], **fields}}])
    plant(devices=[{"name": "NVIDIA H200", "uuid": H200[1], "driver": "580.95.05", "compute": "9.0", "memory_bytes": 140 << 30}])
    done = tool("run", "--worker", t.worker, "--json")
    telemetry = ((done.json or {}).get("device") or {}).get("telemetry", [{}])
    t.check("they are observed", done.code == 0 and telemetry[0].get("sm_mhz", {}).get("mean") == 1000 + 0x19, done)
    done = tool("--worker", t.worker, "--budget", "20s", "--quiet", "--json")
    hard = tool("db", "show", "--json").json["entries"][0]["fingerprint"]["hard"]
    t.check("the entry is of the GPUs", done.code == 0 and (hard["device"], hard["gpus"], hard["compute"], hard["memory_gib"])
            == ("NVIDIA H200", 3, "9.0", 24) and "devices" not in hard, hard)
    done = tool("lookup", "--worker", t.worker, "--json")
    t.check("and exact there", done.json["tier"] == "exact", done)
    t.exits("others on them are exit code 11", tool("run", "--worker", t.worker, env={"LISTED_PID": "4711"}), 11, "pid 4711")
    plant(devices=[{"name": "NVIDIA H200", "driver": "570.1"}])
    t.exits("another driver is one sentence", tool("run", "--worker", t.worker), 2, "is 570.1, but that of this machine is 580.95.05")
    t.exits("the built-in network runs on cores", tool("space", "--json"), 0)
    t.check("whatever the driver lists", "dit-s/2" in tool("space", "--json").json["title"])


t = Dittune()
forget_gpus(t.environment)
t.environment["DITTUNE_NVML"] = str(BUILD / "libnvml-listed.so")
for program in ("dittune-virtual", "dittune-worker"):
    shutil.copy(BUILD / program, t.path)
check_list()
check_session()
t.none_left()
t.finish()
