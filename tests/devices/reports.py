# SPDX-License-Identifier: MIT
# ctest:
"""`--devices` of the worker and `dittune doctor` from end to end, on fake GPUs of which the fake NVML says what
*.nvml has."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE
from fake_gpus import NVML, OLD_NVML, WORKER, FakeGpus, need_fake_gpus

LIBRARIES = {"h200": NVML, "old": OLD_NVML, "broken": NVML}
FACTS = {"sm_mhz": 1755, "sm_mhz_max": 1980, "application_mhz": None, "memory_mhz": 3201, "power_mw": 455000,
         "power_limit_mw": 600000, "power_limit_default_mw": 700000, "temperature_c": 61, "utilization": 37,
         "ecc": True, "ecc_pending": False, "mig": False, "persistence": True, "nvlinks": 9,
         "reasons": ["sw_power_cap", "sw_thermal"], "free_bytes": 140000000000}
FINDINGS = {("other-processes", 0), ("mig", 1), ("no-cudnn", None)} | {
    (rule, device) for device in (0, 1)
    for rule in ("power-limit", "power-capped", "too-hot", "mode-pending", "narrow-pcie", "slow-pcie")}


def machine(kind, devices=2):
    return FakeGpus(f":nvml={SOURCE}/tests/devices/{kind}.nvml", devices, "2g", DITTUNE_NVML=str(LIBRARIES[kind]))


def devices(kind, name, count=2, **env):
    """The worker's list of devices."""
    done = machine(kind, count).run(WORKER, "--devices", env=env)
    t.check(f"{name}: the worker answers", done.code == 0, done)
    return done.json


def doctor(kind):
    """Exit code, and the rule and device of each finding that does not depend on what else this machine does."""
    done = machine(kind).tool("doctor", "--json")
    t.check(f"doctor, {kind}: the worker was asked", done.json["facts"]["worker"]["cause"] == "", done)
    return done.code, {(f["rule"], f["device"]) for f in done.json["findings"] if f["rule"] != "loaded"}


def check_new_driver():
    o = devices("h200", "two GPUs", NCCL_DEBUG="INFO")
    first, second = o["devices"]
    t.check("two", o["op"] == "devices" and o["count"] == 2 and o["why"] == "" and o["nvml"] is True
            and o["driver"] == "580.95.05", o)
    t.check("versions", o["cuda"] > 0 and o["cuda_driver"] > 0 and (o["nccl"] == "" or o["nccl"].count(".") == 2)
            and o["cublaslt"].count(".") == 2, o)
    t.check("identity", [d["index"] for d in o["devices"]] == [0, 1] and first["name"]
            and [d["pci"] for d in o["devices"]] == ["0000:18:00.0", "0000:19:00.0"], o)
    uuid = first["uuid"]
    t.check("UUID", uuid.startswith("GPU-") and len(uuid) == 40 and uuid.count("-") == 5, uuid)
    t.check("NVML's facts", {name: first[name] for name in FACTS} == FACTS, first)
    t.check("processes", first["processes"] == [{"pid": 4321, "bytes": 8000000000}, {"pid": 99, "bytes": None}]
            and second["processes"] is None, o)
    t.check("PCIe", first["pcie"] == {"generation": 4, "generation_max": 5, "width": 8, "width_max": 16}, first)
    t.check("MIG", second["mig"] is True and second["utilization"] is None, second)
    t.check("links", o["links"] == [["self", "nvlink"], ["nvlink", "self"]], o["links"])
    t.check("peers", [o["peers"][i][i] for i in (0, 1)] == [0, 0] and o["peers"][0][1] in (1, -1), o["peers"])
    t.check("environment", o["environment"].get("NCCL_DEBUG") == "INFO", o["environment"])


def check_other_drivers():
    old = devices("old", "an old driver")
    t.check("an old driver's links and reasons", old["links"][0][1] == "node"
            and old["devices"][0]["reasons"] == ["hw_slowdown", "hw_power_brake"], old)
    o = devices("broken", "no driver for NVML")
    first = o["devices"][0]
    t.check("without NVML", o["count"] == 2 and o["nvml"] is False and o["driver"] == "" and first["sm_mhz"] is None
            and first["free_bytes"] > 0 and o["links"][0] == ["self", None], o)
    o = devices("h200", "no GPU", count=0)
    t.check("without a GPU", o["count"] == 0 and o["why"].startswith("CUDA: ") and o["devices"] == [], o)


def check_doctor():
    code, found = doctor("h200")
    t.check("doctor", code == 11 and FINDINGS <= found, (code, found ^ FINDINGS))
    code, found = doctor("broken")
    t.check("doctor without NVML", code == 0 and ("no-nvml", None) in found
            and not any(device is not None for _, device in found), (code, found))


need_fake_gpus()
t = machine("h200")
check_new_driver()
check_other_drivers()
check_doctor()
t.finish()
