# SPDX-License-Identifier: MIT
# ctest:
"""Reports of devices while they work, planted by the scenario worker: they come back in reports, journals and from
`analyze`, each limit is flagged on its side of it, and what has not the protocol's shape is a breach."""
import copy
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

PHASES = {
    "steps": 1, "rank": 1, "host_ns": 1000000, "step_ns": 995000,
    "kinds": [{"name": "attention", "ns": 300000}, {"name": "gemm", "ns": 400000},
              {"name": "exchange", "ns": 60000, "bytes": 6000, "in_flight_ns": 120000},
              {"name": "rest", "ns": 200000}, {"name": "idle", "ns": 35000}],
    "exchanges": [{"name": "forth", "kind": "alltoall", "ranks": 4, "count": 2, "ns": 40000, "bytes": 3000,
                   "in_flight_ns": 100000},
                  {"name": "ring", "kind": "shift", "ranks": 2, "count": 3, "ns": 20000, "bytes": 3000,
                   "in_flight_ns": 20000}],
    "blocks": []}
BUSY_NS = 960000  # of all kinds but idle

# Values that docs/protocol.md does not allow.
BREACHES = [("device_ns", [[1, 2]]), ("device_ns", 7), ("telemetry", [{}]),
            ("telemetry", [{"looks": 1, "reasons": ["a\x1b[31m"]}] * 2),
            ("telemetry", [{"looks": 1, "sm_mhz": {"least": 3, "mean": 2, "most": 1}}] * 2),
            ("taken_bytes", [1]), ("total_bytes", ["x", 2])]


def near(a, b):
    return a is not None and abs(a - b) <= 1e-9 * abs(b)


def run(*words, **device):
    """`dittune run` on devices that report this."""
    t.scenario(device=device)
    return t.tool("run", "--worker", t.worker, "--raw", t.path / "raw.jsonl", *words)


def check_report():
    done = run("--json", phases=PHASES)
    o, device = done.json, done.json["device"]
    t.check("the device's step, and how much longer it is by the host's clock", near(device["median_seconds"], 990e-6)
            and near(device["host_more_seconds"], 10e-6) and device["clocks_disagree"] is False, done)
    t.check("telemetry over the measured requests",
            [rank["sm_mhz"] for rank in device["telemetry"]] == [{"least": 999, "mean": 1000, "most": 1001}] * 2
            and all("unknown" not in rank for rank in device["telemetry"]), device["telemetry"])
    t.check("memory, measured over predicted", near(device["memory_taken"], 2.0) and near(device["memory_used"], 0.5)
            and device["memory"]["before_bytes"] == [900000, 950000] and device["memory_full"] is False, device)
    t.check("nothing was throttled", device["throttle_reasons"] == [] and o["throttled_steps"] == 0, device)
    check_roofline(o["roofline"])
    again = t.tool("analyze", t.path / "raw.jsonl", "--json")
    t.check("analyze says the same", again.out == done.out, again)
    lines = [json.loads(line) for line in t.read("raw.jsonl").splitlines() if line]
    trial = next(line for line in lines if line["kind"] == "trial")
    t.check("the journal has each step", trial["device_ns"] == [[988000, 990000]] * len(trial["ns"])
            and len(trial["reasons"]) == len(trial["requests"])
            and trial["memory"]["total_bytes"] == [1000000] * 2, trial)


def check_judged():
    """Where a worker judges by the devices' times, every figure is theirs, and the host's are kept beside them."""
    done = run("--json", "--raw", t.path / "judged.jsonl", judged=True, host_ns=1500000, device_ns=990000)
    device = done.json["device"]
    t.check("a plan's time is the device's", near(done.json["median_seconds"], 990e-6) and near(device["median_seconds"], 990e-6)
            and near(device["host_more_seconds"], 510e-6) and device["judged"] is True, done)
    lines = [json.loads(line) for line in t.read("judged.jsonl").splitlines() if line]
    trial = next(line for line in lines if line["kind"] == "trial")
    t.check("the journal has both", trial["ns"][0] == [988000, 990000] and trial["host_ns"][0] == [1499000, 1500000]
            and "device_ns" not in trial, trial)
    again = t.tool("analyze", t.path / "judged.jsonl", "--json")
    t.check("analyze says the same of the clocks", near(again.json["device"]["host_more_seconds"], 510e-6), again)
    done = run(judged=True, host_ns=1500000, device_ns=990000)
    t.check("the report says whose times they are", "times are the devices'; the host's clock has 510 us more a step" in done.out, done)


def check_roofline(roofline):
    t.check("the phases make up the step by the host's clock, to half a per cent", roofline["identity"] is True
            and near(roofline["identity_error"], -0.005) and near(roofline["host_seconds"], 1e-3), roofline)
    forth, ring = roofline["exchanges"]
    t.check("an all-to-all's bandwidths: three of four blocks cross", near(forth["busbw"], 3000 / 100e-6)
            and near(forth["algbw"], 4000 / 100e-6) and near(forth["exposed_share"], 0.4), forth)
    t.check("send and receive: one bandwidth", near(ring["busbw"], 150e6) and near(ring["algbw"], 150e6)
            and near(ring["exposed_share"], 1), ring)


def with_idle(ns):
    phases = copy.deepcopy(PHASES)
    phases["kinds"][4]["ns"] = ns
    return phases


def check_limits():
    """Each flag is raised on one side of its limit only."""
    for host_ns, apart in (509000, False), (511000, True):  # 2 % of 500 us are 10 us
        done = run("--json", host_ns=host_ns, device_ns=500000)
        t.check(f"clocks {host_ns - 500000} ns apart in half a millisecond",
                done.json["device"]["clocks_disagree"] is apart, done)
    for more, apart in (49000, False), (51000, True):  # 50 us of any step
        done = run(host_ns=10000000 + more, device_ns=10000000)
        t.check(f"clocks {more} ns apart in ten milliseconds",
                ("clocks of host and device disagree" in done.out) is apart, done)
    for used, full in (949999, False), (950001, True):
        done = run(used=used)
        t.check(f"{used} of 1000000 bytes in use", ("of a device's memory were in use" in done.out) is full, done)
    for idle in 29000, 31000, 49000, 51000:
        done = run(phases=with_idle(idle))
        adds_up = 990000 <= BUSY_NS + idle <= 1010000
        t.check(f"{idle} ns idle", ("the phases add up to" in done.out) is not adds_up, done)


def check_throttling():
    reasons = ["sw_power_cap", "hw_thermal"]
    done = run("--json", slow=[0], reasons=reasons)
    t.check("throttled samples have the names of their reasons", done.json["throttled_steps"] > 0
            and done.json["device"]["throttle_reasons"] == reasons, done)
    done = run(slow=[0], reasons=reasons[:1])
    t.check("and so does the report", "reasons for lower clocks: sw_power_cap\n" in done.out, done)


def check_breaches():
    for field, value in BREACHES:
        t.exits(f"{field} {value} is a breach", run(spoil={field: value}), 1, "protocol")
    for field in ("device_ns", "telemetry"):
        t.exits(f"{field} null is none", run(spoil={field: None}), 0)


t = Dittune()
check_report()
check_judged()
check_limits()
check_throttling()
check_breaches()
t.finish()
