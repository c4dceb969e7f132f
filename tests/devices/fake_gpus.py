# SPDX-License-Identifier: MIT
import json
import os
import subprocess
import sys

build = sys.argv[1]
clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "CUDA_", "DITTUNE_"))}
failed = 0


def expect(name, true, more=""):
    global failed
    if not true:
        failed += 1
        print("FAIL", name, more)


def devices(nvml, **env):
    done = subprocess.run([build + "/dittune-worker-fake-cuda", "--devices"], capture_output=True, text=True, timeout=120,
                          env={**clean, "DITTUNE_FAKE_CUDA": "devices=2:memory=2g", "DITTUNE_NVML": f"{build}/tests/devices/libnvml_{nvml}.so", **env})
    expect(f"{nvml} {env}: exit code", done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def doctor(nvml, **env):
    done = subprocess.run([build + "/dittune", "doctor", "--json"], capture_output=True, text=True, timeout=120,
                          env={**clean, "DITTUNE_FAKE_CUDA": "devices=2:memory=2g", "DITTUNE_NVML": f"{build}/tests/devices/libnvml_{nvml}.so",
                               "DITTUNE_WORKER_CUDA": build + "/dittune-worker-fake-cuda", **env})
    told = json.loads(done.stdout)
    expect(f"doctor {nvml}: asked", told["facts"]["worker"]["cause"] == "", told["facts"]["worker"])
    return done.returncode, {(f["rule"], f["device"]) for f in told["findings"] if f["rule"] != "loaded"}


o = devices("new", NCCL_DEBUG="INFO")
first, second = o["devices"]
expect("two", o["op"] == "devices" and o["count"] == 2 and o["why"] == "" and o["nvml"] is True and o["driver"] == "580.95.05")
expect("versions", o["cuda"] > 0 and o["cuda_driver"] > 0 and (o["nccl"] == "" or o["nccl"].count(".") == 2) and o["cublaslt"].count(".") == 2, o)
expect("identity", [d["index"] for d in o["devices"]] == [0, 1] and first["pci"] == "0000:18:00.0" and second["pci"] == "0000:19:00.0"
       and first["uuid"].startswith("GPU-") and len(first["uuid"]) == 40 and first["uuid"].count("-") == 5 and first["name"], first)
expect("NVML's facts", {k: first[k] for k in ("sm_mhz", "sm_mhz_max", "application_mhz", "memory_mhz", "power_mw", "power_limit_mw",
       "power_limit_default_mw", "temperature_c", "utilization", "ecc", "ecc_pending", "mig", "persistence", "reasons", "nvlinks", "free_bytes")} ==
       {"sm_mhz": 1755, "sm_mhz_max": 1980, "application_mhz": None, "memory_mhz": 3201, "power_mw": 455000, "power_limit_mw": 600000,
        "power_limit_default_mw": 700000, "temperature_c": 61, "utilization": 37, "ecc": True, "ecc_pending": False, "mig": False,
        "persistence": True, "reasons": ["sw_power_cap", "sw_thermal"], "nvlinks": 9, "free_bytes": 140000000000}, first)
expect("processes", first["processes"] == [{"pid": 4321, "bytes": 8000000000}, {"pid": 99, "bytes": None}] and second["processes"] is None)
expect("PCIe", first["pcie"] == {"generation": 4, "generation_max": 5, "width": 8, "width_max": 16})
expect("MIG", second["mig"] is True and second["utilization"] is None)
expect("links", o["links"] == [["self", "nvlink"], ["nvlink", "self"]] and [o["peers"][i][i] for i in (0, 1)] == [0, 0] and o["peers"][0][1] in (1, -1))
expect("environment", o["environment"].get("NCCL_DEBUG") == "INFO")
old = devices("old")
expect("an old driver's links", old["links"][0][1] == "node" and old["devices"][0]["reasons"] == ["hw_slowdown", "hw_power_brake"])
none = devices("broken")
expect("without NVML", none["count"] == 2 and none["nvml"] is False and none["driver"] == "" and none["devices"][0]["sm_mhz"] is None and
       none["devices"][0]["free_bytes"] > 0 and none["links"][0] == ["self", None], none)
no_gpu = devices("new", DITTUNE_FAKE_CUDA="devices=0")
expect("no GPU", no_gpu["count"] == 0 and no_gpu["why"].startswith("CUDA: ") and no_gpu["devices"] == [], no_gpu)

code, found = doctor("new")
ours = {("other-processes", 0), ("power-limit", 0), ("power-limit", 1), ("power-capped", 0), ("power-capped", 1), ("too-hot", 0),
        ("too-hot", 1), ("mig", 1), ("mode-pending", 0), ("mode-pending", 1), ("narrow-pcie", 0), ("narrow-pcie", 1),
        ("slow-pcie", 0), ("slow-pcie", 1), ("no-cudnn", None)}
expect("doctor", code == 11 and ours <= found, (code, found ^ ours))
code, found = doctor("broken")
expect("doctor without NVML", code == 0 and ("no-nvml", None) in found and not any(device is not None for _, device in found), found)
print(f"{failed} failures")
sys.exit(failed > 0)
