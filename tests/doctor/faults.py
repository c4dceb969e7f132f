# SPDX-License-Identifier: MIT
# ctest:
"""Machines that were made up: plants a fault in a healthy machine's facts, asks `dittune doctor --facts`, and compares
with what was planted: that one is found and no other.

A case: the rule, its severity, what is changed (path: value; DELETE takes a field away), words of the sentence."""
import copy
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

healthy = json.loads((SOURCE / "tests/doctor/healthy.json").read_text(encoding="utf-8"))
DELETE = object()
EXITS = {None: 0, "note": 0, "warning": 0, "busy": 11, "error": 1}
NONE = {"devices.devices": [], "devices.peers": [], "devices.links": [], "devices.count": 0}
ONE = {"devices.devices": healthy["devices"]["devices"][:1], "devices.peers": [[0]],
       "devices.links": [["self"]], "devices.count": 1}


def card(n, **fields):
    return {f"devices.devices.{n}.{name}": value for name, value in fields.items()}


def env(name, value):
    return {f"devices.environment.{name}": value}


CASES = [
    ("no-gpu", "note", {**NONE, "host.nvidia_on_pci": 0, "devices.cuda_driver": 0}, "on the CPU"),
    ("no-gpu", "note", {"devices": None, "host.nvidia_on_pci": 0, "worker.missing": True,
                        "worker.cause": "there is no /opt/x"}, "on the CPU"),
    ("no-worker-cuda", "error", {"devices": None, "worker.missing": True, "worker.cause": "there is no /opt/x"},
     "2 GPUs are here, but there is no /opt/x"),
    ("worker-cuda-failed", "error", {"devices": None, "worker.cause": "killed by signal 11 (Segmentation fault)"},
     "killed by signal 11"),
    ("worker-cuda-failed", "error", {"devices": None, "worker.cause": "did not answer in time"}, "did not answer"),
    ("no-driver", "error", {**NONE, "devices.cuda_driver": 0, "devices.driver": "", "devices.nvml": False},
     "2 GPUs are on the PCI bus, but no driver"),
    ("old-driver", "error", {**NONE, "devices.cuda_driver": 12040, "devices.driver": "550.54.15",
                             "devices.why": "CUDA: driver version is insufficient"},
     "the driver 550.54.15 runs CUDA up to 12.4, and this was built with 13.0, which needs driver 580"),
    ("hidden-devices", "error", {**NONE, **env("CUDA_VISIBLE_DEVICES", "")}, 'CUDA_VISIBLE_DEVICES=""'),
    ("hidden-devices", "error", {**NONE, **env("CUDA_VISIBLE_DEVICES", "-1")}, '"-1" hides'),
    ("no-device", "error", {**NONE, "devices.why": "CUDA: no CUDA-capable device is detected"}, "no CUDA-capable"),
    ("no-nccl", "warning", {"devices.nccl": ""}, "plans of one rank"),
    ("old-nccl", "warning", {"devices.nccl": "2.27.7"}, "NCCL 2.27.7"),
    ("no-cudnn", "note", {"devices.cudnn": ""}, "cuDNN"),
    ("old-cudnn", "warning", {"devices.cudnn": "9.13.0"}, "cuDNN 9.13.0 is loaded"),
    ("old-cudnn", "warning", {"devices.cudnn": "8.9.7"}, "cuDNN 8.9.7 is loaded"),
    ("other-cublaslt", "warning", {"devices.cublaslt": "12.9.1"},
     "cuBLASLt 12.9.1 is loaded into a program of CUDA 13"),
    ("no-nvml", "warning", {"devices.nvml": False}, "NVML"),
    ("old-device", "error", card(1, compute="7.5"), "7.5"),
    ("newer-ptx", "warning", {**card(1, compute="10.0"), "devices.cuda": 13010},
     "for 10.0, and it is made for CUDA 13.0, the build is of 13.1"),
    ("mig", "warning", card(0, mig=True, mig_pending=True, processes=None, utilization=None), "MIG"),
    ("other-processes", "busy", card(1, processes=[{"pid": 4321, "bytes": 8589934592}, {"pid": 5, "bytes": None}]),
     "2 other processes are on it: pid 4321 with 8 GiB, pid 5"),
    ("memory-in-use", "busy", card(0, free_bytes=100110011392), "46.6 GiB of its 140 GiB"),
    ("memory-in-use", "busy", card(0, free_bytes=100110011392, processes=None), "no process is seen"),
    ("power-limit", "warning", card(0, power_limit_mw=500000), "500 W, 700 W"),
    ("power-capped", "warning", card(0, reasons=["sw_power_cap"]), "sw_power_cap"),
    ("too-hot", "warning", card(0, reasons=["hw_slowdown", "hw_thermal"], temperature_c=91), "91 degrees"),
    ("too-hot", "warning", card(0, reasons=["sw_thermal"], temperature_c=None), "hot"),
    ("power-brake", "warning", card(1, reasons=["hw_slowdown", "hw_power_brake"]), "hw_power_brake"),
    ("hw-slowdown", "warning", card(0, reasons=["hw_slowdown"]), "hw_slowdown"),
    ("application-clocks", "warning", card(0, reasons=["applications_clocks"], application_mhz=1200),
     "1200 MHz of 1980"),
    ("sync-boost", "warning", card(0, reasons=["sync_boost"]), "sync_boost"),
    ("no-persistence", "warning", card(1, persistence=False), "persistence"),
    ("mode-pending", "note", card(0, ecc_pending=False), "ECC changes"),
    ("mode-pending", "note", card(0, mig_pending=True), "MIG changes"),
    ("narrow-pcie", "warning", card(0, pcie={"generation": 5, "generation_max": 5, "width": 8, "width_max": 16}),
     "8 lanes of 16"),
    ("slow-pcie", "warning",
     card(0, reasons=[], pcie={"generation": 1, "generation_max": 5, "width": 16, "width_max": 16}),
     "generation 1 of 5"),
    ("no-peer-access", "warning", {"devices.peers": [[0, -1], [-1, 0]]}, "GPU 0 and GPU 1 are connected by nvlink"),
    ("no-peer-access", "warning",
     {"devices.peers": [[0, -1], [-1, 0]], "devices.links": [["self", "pix"], ["pix", "self"]],
      **card(0, nvlinks=None), **card(1, nvlinks=None)}, "by pix"),
    ("nvlink-down", "warning", card(1, nvlinks=16), "16 of its NVLinks are up, 18"),
    ("infiniband-down", "note", {"devices.infiniband.active": False}, "no port is active"),
    ("small-shm", "warning", {"host.shm_bytes": 67108864}, "64 MiB"),
    ("small-memlock", "warning", {"host.memlock_bytes": 8388608}, "8 MiB"),
    ("few-cores", "warning", {"host.cores": 1}, "1 core:"),
    ("core-quota", "warning", {"host.cores_quota": 8.0}, "the time of 8.0 of 64 cores: plans use 8"),
    ("memory-limit", "note", {"host.memory_limit_bytes": 34359738368}, "32 GiB of the machine's 1007 GiB"),
    ("loaded", "warning", {"host.load": 80.5}, "80.5 processes"),
    ("powersave", "warning", {"host.governor": "powersave", "host.frequency_driver": "acpi-cpufreq"}, "powersave"),
    ("p2p-disabled", "warning", env("NCCL_P2P_DISABLE", "1"), "NCCL_P2P_DISABLE=1"),
    ("p2p-disabled", "warning", env("NCCL_P2P_LEVEL", "LOC"), "NCCL_P2P_LEVEL=LOC"),
    ("shm-disabled", "warning", env("NCCL_SHM_DISABLE", "1"), "sockets"),
    ("infiniband-unused", "warning", env("NCCL_IB_DISABLE", "1"), "NCCL_IB_DISABLE=1"),
    ("infiniband-unused", "warning", env("NCCL_NET", "Socket"), "NCCL_NET=Socket"),
    ("nccl-hostid", "warning", env("NCCL_HOSTID", "3"), "NCCL_HOSTID=3"),
    ("nccl-algorithm", "warning", env("NCCL_ALGO", "Ring"), "NCCL_ALGO=Ring"),
    ("nccl-algorithm", "warning", env("NCCL_PROTO", "LL128"), "corrupts"),
    ("nccl-debug", "warning", env("NCCL_DEBUG", "INFO"), "NCCL_DEBUG=INFO"),
    ("nccl-debug", "warning", env("NCCL_DEBUG", "TRACE"), "NCCL_DEBUG=TRACE"),
    ("nccl-launch-mode", "warning", env("NCCL_LAUNCH_MODE", "GROUP"), "NCCL_LAUNCH_MODE"),
    ("launch-blocking", "warning", env("CUDA_LAUNCH_BLOCKING", "1"), "waited for"),
    ("module-loading", "warning", env("CUDA_MODULE_LOADING", "EAGER"), "EAGER"),
    ("max-connections", "warning", env("CUDA_DEVICE_MAX_CONNECTIONS", "1"), "one queue"),
]
CASES += [("nccl-fixed", "note", env(name, "4"), f"{name}=4") for name in (
    "NCCL_MAX_CTAS", "NCCL_MIN_CTAS", "NCCL_CTA_POLICY", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS",
    "NCCL_MAX_P2P_NCHANNELS", "NCCL_MIN_P2P_NCHANNELS", "NCCL_P2P_NVL_CHUNKSIZE")]
CASES += [("obsolete-variable", "warning", env(name, "1"), f"{name}=1") for name in (
    "NCCL_BLOCKING_WAIT", "NCCL_ASYNC_ERROR_HANDLING", "NCCL_DESYNC_DEBUG", "NCCL_ENABLE_TIMING", "NCCL_RINGS",
    "NCCL_LL_THRESHOLD", "NCCL_TREE_THRESHOLD", "NCCL_IB_CUDA_SUPPORT", "NCCL_CHECKS_DISABLE")]
# Settings that look like a fault and are none.
CASES += [(None, None, change, "") for change in (
    {}, ONE, {**ONE, "devices.nccl": ""}, {**ONE, "host.shm_bytes": 67108864}, {**ONE, **env("NCCL_P2P_DISABLE", "1")},
    env("NCCL_P2P_DISABLE", "0"), env("NCCL_IB_DISABLE", "0"), env("NCCL_NET", "IB"), env("NCCL_DEBUG", "WARN"),
    env("CUDA_LAUNCH_BLOCKING", "0"), env("CUDA_MODULE_LOADING", "LAZY"), env("CUDA_VISIBLE_DEVICES", "0,1"),
    env("TORCH_NCCL_BLOCKING_WAIT", "1"),
    {"devices.infiniband": {"devices": [], "active": False}, **env("NCCL_IB_DISABLE", "1")},
    {"devices.infiniband": {"devices": [], "active": False}, "host.memlock_bytes": 65536},
    {"devices.cuda_driver": 13010, "devices.driver": "590.44"}, {"devices.cuda_driver": 14000},
    {"devices.nccl": "2.30.7"}, {"devices.nccl": "3.0.1"}, {"devices.cudnn": "9.13.1"}, {"devices.cudnn": "10.0.0"},
    {"devices.cuda": 13010}, {**card(0, compute="10.0"), **card(1, compute="12.0")},
    {"host.governor": "powersave"}, {"host.governor": "", "host.frequency_driver": ""}, {"host.load": 64.0},
    {"host.cores_quota": 64.0}, {"host.cores_quota": None},
    card(0, pcie={"generation": 1, "generation_max": 5, "width": 16, "width_max": 16}),
    card(0, power_limit_mw=None, power_limit_default_mw=None, reasons=None, processes=None, pcie=None, ecc=None,
         ecc_pending=None, mig=None, mig_pending=None, persistence=None, free_bytes=None, sm_mhz=None),
    {**card(0, nvlinks=None), **card(1, nvlinks=None), "devices.links": [[None, None], [None, None]],
     "devices.peers": [[0, -1], [-1, 0]]},
    {"devices.peers": [[0, -1], [-1, 0]], "devices.links": [["self", "sys"], ["sys", "self"]]},
    {**card(1, nvlinks=4), "devices.devices.1.name": "NVIDIA A100-PCIE-40GB"},
)]
# Facts of another make: refused with a sentence, or read without a finding, never a crash.
ODD = [({"host": DELETE}, 2), ({"worker": []}, 2), ({"devices": 5}, None), ({"devices.devices": {"a": 1}}, None),
       ({"devices.devices.0": None}, None), ({"devices.environment": [1]}, None), (card(0, reasons={"a": 1}), None),
       (card(0, processes=[None, 3]), None), ({"devices.peers": "x", "devices.links": [[3]]}, None),
       ({"host.load": "much"}, None), ({"devices.nccl": "\u001b[31m9.9"}, None)]


def plant(changes):
    facts = copy.deepcopy(healthy)
    for path, value in changes.items():
        *way, last = path.split(".")
        parent = facts
        for step in way:
            parent = parent[int(step)] if isinstance(parent, list) else parent[step]
        last = int(last) if isinstance(parent, list) else last
        if value is DELETE:
            del parent[last]
        else:
            parent[last] = copy.deepcopy(value)
    return facts


def ask(t, facts, *options):
    return t.tool("doctor", "--facts", t.write("facts.json", facts), *options)


def check_case(t, rule, severity, changes, words):
    """The rules that dittune knows."""
    done = ask(t, plant(changes), "--json")
    name = f"{rule or 'healthy'} by {changes}"[:200]
    if not t.check(f"{name} is answered", done.json is not None, done):
        return set()
    findings = done.json["findings"]
    found = [(finding["rule"], finding["severity"]) for finding in findings]
    t.check(name, found == ([(rule, severity)] if rule else []), found)
    t.check(f"exit code of {name}", done.code == EXITS[severity], done.code)
    t.check(f"words of {name}", all(words in finding["what"] and finding["mend"] for finding in findings), findings)
    devices = {int(path.split(".")[2]) for path in changes if path.startswith("devices.devices.")}
    if rule and len(devices) == 1:
        t.check(f"device of {name}", findings and {findings[0]["device"]} == devices, findings)
    text = ask(t, plant(changes))
    t.exits(f"text of {name}", text, done.code, out=f"{rule}: " if rule else "nothing is wrong")
    return set(done.json["rules"])


def check_rules(t, rules):
    """Each is planted, and stands in the documentation."""
    t.check("every rule has a case", rules == {rule for rule, *_ in CASES if rule}, rules)
    doc = (SOURCE / "docs/doctor.md").read_text(encoding="utf-8")
    for rule in sorted(rules):
        own = {severity for name, severity, *_ in CASES if name == rule}
        t.check(f"{rule} in docs/doctor.md", any(f"| {rule} | {severity} |" in doc for severity in own))


def check_several(t):
    """All of them, the worst first, and the worst decides. What --json prints is taken again."""
    both = {**card(0, processes=[{"pid": 1, "bytes": 1}]), **card(1, compute="7.0"), **env("NCCL_ALGO", "Tree"),
            "devices.cudnn": ""}
    done = ask(t, plant(both), "--json")
    severities = [finding["severity"] for finding in done.json["findings"]]
    t.check("several", severities == ["error", "busy", "warning", "note"] and done.code == 1, done)
    again = ask(t, done.json, "--json")
    t.check("its own output is taken", again.out == done.out and again.code == 1, again)


def check_odd(t):
    for changes, code in ODD:
        done = ask(t, plant(changes))
        t.check(f"odd {changes}", done.code in ((code,) if code else (0, 1, 11)) and "\x1b" not in done.out, done)


test = Dittune()
known = set()
for case in CASES:
    known = check_case(test, *case) or known
check_rules(test, known)
check_several(test)
check_odd(test)
test.finish()
