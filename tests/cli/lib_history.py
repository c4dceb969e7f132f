#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes a store's journals by docs/database.md alone: sessions and checks of planted times, at planted dates.

    lib_history.py STORE SPEC    SPEC: JSON, {"entries": [...]}, an entry as in add()
"""
import json
import math
import os
import random
import sys

DAY = 86400 * 10**9
BEGIN = 1788220800 * 10**9  # 2026-09-01


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def line(record):
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
    return b"\n" + text + b',"crc":"%08x"}\n' % crc32c(text)


def journal(store, run, kind, records, t_wall_ns):
    os.makedirs(store + "/runs", exist_ok=True)
    with open("%s/runs/%s.jsonl" % (store, run), "wb") as file:
        for seq, record in enumerate(records):
            head = {"v": 1, "seq": seq, "run": run, "kind": kind, "t_wall_ns": t_wall_ns + seq, "t_mono_ns": seq}
            file.write(line({**head, **record}))


def gain(ratio):
    return {"ratio": ratio, "interval": [ratio * 0.99, ratio * 1.01], "pairs": 32}


def add(store, number, entry):
    """points: how many; cv; steps: [[at, factor of the tuned time]]; drift: a factor over all; soft: [[from, {...}]];
    plans: [[from, {...}]]; everyone: [[at, factor of both times]]; verdict: of the checks; worker, workload: names."""
    noise = random.Random(entry.get("seed", number))
    key = {"worker": entry.get("worker", "planted"), "workload": entry.get("workload", "w"), "devices": number + 1,
           "space": "0" * 16, "objective": "latency"}
    hard = {"device": "cpu", "cores": 2, "memory_gib": 4, "topology": "1", "dtype": "float32", "engine": "worker", "mode": "eager"}
    count = entry.get("points", 60)
    for i in range(count):
        latest = {name: [value for at, value in entry.get(name, []) if at <= i][-1:] for name in ("soft", "plans")}
        soft = (latest["soft"] or [{"dittune": "0.1.0"}])[0]
        plan = (latest["plans"] or [{"ranks": 2}])[0]
        both = math.prod(f for at, f in entry.get("everyone", []) if at <= i) * (1 + noise.gauss(0, entry.get("cv", 0.005)))
        tuned = 1e6 * both * math.prod(f for at, f in entry.get("steps", []) if at <= i)
        tuned *= entry.get("drift", 1) ** (i / max(1, count - 1)) * (1 + noise.gauss(0, entry.get("cv", 0.005) / 4))
        ratio = 1.25e6 * both / tuned
        run = "%04d-%d" % (i, number)
        when = BEGIN + i * DAY
        if i == 0:
            journal(store, run, "best", [{
                "key": key, "fingerprint": {"hard": hard, "soft": soft, "info": {"host": "h", "t_wall_ns": when}}, "plan": plan,
                "verdict": "faster", "provisional": False, "figures": {"median_ns": round(tuned)},
                "default": {"median_ns": round(1.25e6 * both)}, "gain": gain(ratio), "journal": run}], when)
        else:
            journal(store, run, "check", [{
                "id": "0" * 16, "key": key, "hard": hard, "verdict": entry.get("verdict", "wins"), "reason": None, "plan": plan,
                "rivals": [], "tuned_ns": round(tuned), "default_ns": round(1.25e6 * both), "default_then_ns": 1250000,
                "gain_then": gain(1.25), "gain_now": gain(ratio), "threshold": 0.03, "cv": 0.01, "soft_changed": [],
                "searched_again": False, "soft": soft}], when)


def store(path, entry):
    """best.json of one entry, whose journal is nowhere."""
    os.makedirs(path, exist_ok=True)
    text = json.dumps(entry, separators=(",", ":"))[:-1].encode()
    body = b'{"format":"dittune-best","version":{"major":2,"minor":0},"incompat":[],"compat":[],"entries":[\n'
    body += text + b',"crc":"%08x"}\n]' % crc32c(text)
    with open(path + "/best.json", "wb") as file:
        file.write(body + b',"checksum":"%08x"}\n' % crc32c(body))


if __name__ == "__main__":
    for index, what in enumerate(json.loads(sys.argv[2])["entries"]):
        add(sys.argv[1], index, what)
