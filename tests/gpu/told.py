# SPDX-License-Identifier: MIT
"""What devices tell, planted by a worker that says so and does nothing: it comes back in reports, journals and from `analyze`, each limit is
flagged on its side of it, and what has not the protocol's shape is a breach."""
import json
import subprocess

from lib_session import BUILD, SOURCE, check, end, Machine

WORKER = SOURCE + "/tests/gpu/lib_told_worker.py"
PHASES = dict(steps=1, rank=1, host_ns=1000000, step_ns=995000,
              kinds=[dict(name="attention", ns=300000), dict(name="gemm", ns=400000), dict(name="exchange", ns=60000, bytes=6000, in_flight_ns=120000),
                     dict(name="rest", ns=200000), dict(name="idle", ns=35000)],
              exchanges=[dict(name="forth", kind="alltoall", ranks=4, count=2, ns=40000, bytes=3000, in_flight_ns=100000),
                         dict(name="ring", kind="shift", ranks=2, count=3, ns=20000, bytes=3000, in_flight_ns=20000)], blocks=[])


def near(a, b):
    return a is not None and abs(a - b) <= 1e-9 * abs(b)


def run(*words, **told):
    machine = Machine()
    told = dict(dict(host_ns=1000000, device_ns=990000, taken=400000, used=500000, reasons=[]), **told)
    with open(machine.path + "/told.json", "w") as file:
        json.dump(told, file)
    machine.environment["TOLD"] = machine.path + "/told.json"
    machine.raw = machine.path + "/raw.jsonl"
    done = subprocess.run([BUILD + "/dittune", "run", "--worker", WORKER, "--raw", machine.raw, *words], env=machine.environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    machine.code, machine.out, machine.err = done.returncode, done.stdout.decode(), done.stderr.decode()
    machine.object = json.loads(machine.out) if machine.out.startswith("{") else {}
    return machine


machine = run("--json", phases=PHASES)
device = machine.object.get("device", {})
check("the device's step, and what the host's clock has more", near(device.get("median_seconds"), 990e-6) and
      near(device.get("host_more_seconds"), 10e-6) and device["clocks_disagree"] is False, (machine.err, device))
check("telemetry over the measured requests", [r["sm_mhz"] for r in device["telemetry"]] == [dict(least=999, mean=1000, most=1001)] * 2 and
      all("unknown" not in r for r in device["telemetry"]), device["telemetry"])
check("memory, measured over predicted", device["memory"]["before_bytes"] == [900000, 950000] and near(device["memory_taken"], 2.0) and
      near(device["memory_used"], 0.5) and device["memory_full"] is False, device)
check("nothing was throttled", device["throttle_reasons"] == [] and machine.object["throttled_steps"] == 0, device)
roofline = machine.object["roofline"]
check("the phases make up the step by the host's clock, to half a per cent", roofline["identity"] is True and
      near(roofline["identity_error"], -0.005) and near(roofline["host_seconds"], 1e-3), roofline)
forth, ring = roofline["exchanges"]
check("an all-to-all's bandwidths: three of four blocks cross", near(forth["busbw"], 3000 / 100e-6) and near(forth["algbw"], 4000 / 100e-6) and
      near(forth["exposed_share"], 0.4), forth)
check("send and receive: one bandwidth", near(ring["busbw"], 150e6) and near(ring["algbw"], 150e6) and near(ring["exposed_share"], 1), ring)
again = subprocess.run([BUILD + "/dittune", "analyze", machine.raw, "--json"], stdout=subprocess.PIPE).stdout.decode()
check("analyze says the same", again == machine.out, again)
record = machine.records("trial", machine.raw)[0]
check("the journal has each step", record["device_ns"] == [[988000, 990000]] * len(record["ns"]) and len(record["reasons"]) ==
      len(record["requests"]) and record["memory"]["total_bytes"] == [1000000] * 2, record)

for host, apart in ((509000, False), (511000, True)):  # of 500 us 2 % are 10 us
    machine = run("--json", host_ns=host, device_ns=500000)
    check(f"{host - 500000} ns of half a millisecond", machine.object["device"]["clocks_disagree"] is apart, machine.object["device"])
for more, apart in ((49000, False), (51000, True)):  # 50 us of any step
    machine = run(host_ns=10000000 + more, device_ns=10000000)
    check(f"{more} ns of ten milliseconds", ("clocks of host and device disagree" in machine.out) is apart, machine.out)
for used, full in ((949999, False), (950001, True)):
    machine = run(used=used)
    check(f"{used} of 1000000 bytes", ("of a device's memory were in use" in machine.out) is full, machine.out)
for kind in (29000, 31000, 49000, 51000):
    phases = json.loads(json.dumps(PHASES))
    phases["kinds"][4]["ns"] = kind  # the others are 960 us; 990 to 1010 us is right
    machine = run(phases=phases)
    right = 990000 <= 960000 + kind <= 1010000
    check(f"idle of {kind} ns", ("the phases add up to" in machine.out) is not right, machine.out)
machine = run("--json", slow=[0], reasons=["sw_power_cap", "hw_thermal"])
check("throttled samples have their reasons' names", machine.object["throttled_steps"] > 0 and
      machine.object["device"]["throttle_reasons"] == ["sw_power_cap", "hw_thermal"], (machine.object.get("throttled_steps"), machine.object["device"]))
machine = run(slow=[0], reasons=["sw_power_cap"])
check("and so does the report", "clocks were lower: sw_power_cap\n" in machine.out, machine.out)

for field, value in (("device_ns", [[1, 2]]), ("device_ns", 7), ("telemetry", [{}]), ("telemetry", [dict(looks=1, reasons=["a\x1b[31m"])] * 2),
                     ("telemetry", [dict(looks=1, sm_mhz=dict(least=3, mean=2, most=1))] * 2), ("taken_bytes", [1]), ("total_bytes", ["x", 2])):
    machine = run(spoil={field: value})
    check(f"{field} {value} is a breach", machine.code == 1 and "protocol" in machine.err, (machine.code, machine.err))
for field in ("device_ns", "telemetry"):
    check(f"{field} null is none", run(spoil={field: None}).code == 0)
end()
