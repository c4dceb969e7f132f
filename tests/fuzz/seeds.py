#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the hand-made part of tests/fuzz/corpus: small files of every shape the readers know.

    python3 tests/fuzz/seeds.py [SESSION.jsonl ...]     journals of real sessions are cut to their first records
"""
import copy
import json
import struct
import sys
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return "%08x" % (value ^ 0xFFFFFFFF)


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & (2**64 - 1)
    return "%016x" % value


def compact(value, **how):
    return json.dumps(value, separators=(",", ":"), **how)


HARD = {"device": "Processor A", "cores": 8, "memory_gib": 64, "topology": "00112233445566aa", "dtype": "float32",
        "engine": "dittune", "mode": "eager"}
KEY = {"model": "dit-s/2", "network": "d7e197cc89e722ef", "height": 32, "width": 32, "guidance": True, "dtype": "float32",
       "devices": 4, "batch": [1], "objective": "latency"}
PLAN = {"ranks": 4, "cfg": 2, "ulysses": 2, "ring": 1, "threads": 2, "batch": 1, "tile_q": 64, "tile_kv": 64,
        "overlap": 0, "chunks": 1}
WORKER = {"parameters": [{"name": "ranks", "role": "ranks", "values": [1, 2], "default": 1, "doc": "processes"},
                         {"name": "tile", "values": [8, 16, 32, 40, 64], "default": 16},
                         {"name": "order", "values": ["row", "column"], "default": "row"}],
          "constants": {"rows": 64}, "rules": [{"if": "rows % tile == 0", "say": "tile must divide the rows"}]}


def figures(plan, ns):
    return {"plan": plan, "median_ns": ns, "interval_ns": [ns - 100, ns + 100], "cold_ns": 2 * ns, "peak_bytes": 1 << 20,
            "samples": 16, "batch": 1}


def entry(key=None, hard=None, plan=None, **more):
    plan = plan or PLAN
    value = {"key": {**KEY, **(key or {})}, "fingerprint": {"hard": {**HARD, **(hard or {})},
             "soft": {"dittune": "0.1.0", "method": "1", "mpi": "4.1", "environment": {}}, "info": {"host": "n1", "t_wall_ns": 1790000000000000000}},
             "plan": plan, "verdict": "faster", "provisional": False, "figures": figures(plan, 1000), "default": figures(plan, 1500),
             "baseline": None, "gain": {"ratio": 1.5, "interval": [1.4, 1.6], "pairs": 16}, "top": [], "pareto": [],
             "journal": "20260101T000000Z-1-00000000"}
    value.update(more)
    return value


def foreign():
    value = entry(plan={"ranks": 1, "tile": 16, "order": "row"}, hard={"engine": "minimal"}, space=WORKER)
    value["key"] = {"worker": "minimal", "workload": "rows", "devices": 8, "space": "7856183c0e2cc73f", "objective": "latency"}
    return value


def store(entries, version=(2, 0), **head):
    lines = []
    for value in entries:
        identity = {"hard": value["fingerprint"]["hard"], "key": value["key"]}
        line = compact({"id": fnv1a(compact(identity, sort_keys=True)), **value})[:-1]
        lines.append(line + ',"crc":"' + crc32c(line.encode()) + '"}')
    start = compact({"format": "dittune-best", "version": {"major": version[0], "minor": version[1]}, "incompat": [], "compat": [], **head})
    text = start[:-1] + ',"entries":[\n' + ",\n".join(lines) + ("\n" if lines else "") + "]"
    return text + ',"checksum":"' + crc32c(text.encode()) + '"}\n'


def stores():
    exact, other = entry(), copy.deepcopy(entry())
    other["fingerprint"]["soft"]["mpi"] = "5.0"
    return {
        "empty": store([]),
        "exact": store([exact]),
        "stale": store([other]),
        "near": store([entry({"height": 64})]),
        "scaled": store([entry({"devices": 2}, plan={**PLAN, "ranks": 2, "ulysses": 1, "threads": 4})]),
        "proxy": store([entry(hard={"engine": "xdit"})]),
        "elsewhere": store([entry(hard={"device": "Processor B", "topology": "ffeeddccbbaa0099"})]),
        "foreign": store([foreign()]),
        "many": store([exact, entry({"devices": 2}), entry({"height": 64}), entry(hard={"engine": "xdit"}), foreign()]),
        "newer": store([exact], (2, 1)),
        "unknown": store([exact], (3, 0)),
        "word": store([exact], incompat=["word"]),
        "old": old([exact]),
    }


def old(entries):
    checksum = crc32c(compact(entries, sort_keys=True).encode()) if not entries else crc32c(canonical(entries).encode())
    return compact({"format": "dittune-best", "version": {"major": 1, "minor": 0}, "incompat": [], "compat": [],
                    "checksum": checksum, "entries": entries})


def canonical(value):
    """The canonical text of db/canonical_int.h: sorted keys, reals by their bits."""
    if isinstance(value, dict):
        return "{" + ",".join(json.dumps(key) + ":" + canonical(value[key]) for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, float):
        return "r%016x" % struct.unpack("<Q", struct.pack("<d", value))[0]
    return json.dumps(value)


def journal(records):
    out = ""
    for record in records:
        line = compact({key: value for key, value in record.items() if key != "crc"})[:-1]
        out += "\n" + line + ',"crc":"' + crc32c(line.encode()) + '"}\n'
    return out


def journals(paths):
    head = {"v": 1, "seq": 0, "run": "r", "t_wall_ns": 1, "t_mono_ns": 1}
    made = {"small": journal([{**head, "kind": "session", "parameters": WORKER["parameters"]},
                              {**head, "seq": 1, "kind": "trial", "plan": {"ranks": 1, "tile": 8, "order": "row"}, "ns": [[5, 6], [7, 8]]}]),
            "bare": '{"kind":"x"}\n{"plan":{"a":1}}\n', "torn": journal([head])[:-9] + journal([head])}
    for path in paths:
        records = [json.loads(line) for line in Path(path).read_text().split("\n") if line][:4]
        for record in records:
            record["ns"] = record.get("ns", [])[:3]
        made["session-" + records[0]["key"].get("model", "worker").replace("/", "-")] = journal(records)
    return made


def replays(paths):
    """Sessions and runs, without the records that their replay does not read."""
    made = {"unsealed": '{"v":1,"kind":"search","search":"a","search_reason":"b","prior":"c","known":[]}\n'}
    for i, path in enumerate(paths):
        records = [json.loads(line) for line in Path(path).read_text().split("\n") if line]
        made[f"{records[0]['kind']}-{i}"] = journal([record for record in records if record["kind"] not in ("sets", "best")])
    return made


SPACES = {
    "worker": WORKER,
    "names": {"parameters": {"a": [1, 2, 3], "b": {"values": ["x", "y"], "default": "y"}, "c": {"from": 1, "to": 64, "factor": 2}},
              "rules": ["a * c <= 32 || b == 'x'", "a != 2"], "constants": {"n": 7}},
    "counts": {"parameters": {"a": {"from": 0, "to": 9, "step": 1}, "b": [0, 1]}, "rules": ["(a + b) % 3 == 0"], "cartesian": 20},
    "roles": {"parameters": [{"name": "ranks", "role": "ranks", "values": [1, 2, 4]}, {"name": "batch", "role": "batch", "values": [1, 2]},
                             {"name": "algo", "role": "environment", "variable": "NCCL_ALGO", "values": ["Ring", "Tree"]},
                             {"name": "cache", "role": "lossy", "values": [0, 1]}],
              "rules": [{"if": "min(ranks, batch) >= 1 && (cache == 0 ? ranks : batch) < 4", "say": "x"}]},
    "extremes": {"parameters": {"a": [-1, 1], "b": [-2**63, 2**63 - 1]}, "rules": ["n % a == 0 || b / a > 0", "b - a != 1 || b * a < 0"],
                 "constants": {"n": -2**63}},
    "none": {"parameters": {"a": [1, 2]}, "rules": ["a > 2"]},
}
PLANS = {"full": "ranks=4 cfg=2 ulysses=2 ring=1 threads=2 batch=1 tile_q=64 tile_kv=64 overlap=0 chunks=1", "short": "ulysses=2",
         "commas": "ranks=2,cfg=2", "wrong": "ranks=3 ulysses=5", "twice": "ranks=2 ranks=4", "empty": "", "ring": "ring=4 overlap=1 chunks=2"}
WORKLOAD = {"network": {"name": "x", "family": "dit", "hidden": 96, "heads": 3, "depth": 3, "patch": 2, "in_channels": 4, "latent_size": 16,
                        "classes": 10, "mlp_ratio": 4.0, "learn_sigma": True},
            "height": 16, "width": 16, "guidance": True, "dtype": "float32", "seed": 1}


def wires():
    hello = {"op": "hello", "protocol": 1, "name": "m", "launch": "self", **WORKER}
    talk = [hello, {"op": "ready", "ranks": [{"rank": 0, "pid": 1, "host": "n", "versions": {"python": "3"}}]}, {"op": "heartbeat"},
            {"op": "prepared", "handle": 1, "peak_bytes": [5], "cold_ns": [7], "verify": {"norm": [1.5], "projections": [[0.5, None]]}},
            {"op": "samples", "handle": 1, "ns": [[1, 2], [3, 4]]}, {"op": "failed", "kind": "memory", "say": "no"}]
    ask = [{"op": "hello", "protocol": 1, "ranks": 1, "workload": WORKLOAD},
           {"op": "prepare", "plan": PLAN, "seed": 1, "verify": {"projections": 16, "seed": 7}},
           {"op": "run", "handle": 1, "n": 8, "mode": "warmup"}, {"op": "quit"}]
    lines = lambda list_: "".join(compact(x) + "\n" for x in list_)
    return {"worker": "\x7f" + lines(talk), "controller": "\x01" + lines(ask), "half": "\x02" + lines(talk)[:40], "blank": "\x03\n\n{}\n"}


def answers():
    prepared = {"op": "prepared", "handle": 1, "peak_bytes": [5], "resident_bytes": 5, "cold_ns": [7],
                "verify": {"norm": [1.5], "projections": [[0.5, None]]}}
    samples = {"op": "samples", "handle": 1, "ns": [[1], [3]]}
    full = {**samples, "clock": [[2.0], [2.1]], "phases": {"steps": 2, "kinds": [{"name": "gemm", "ns": 3}], "blocks": [], "step_ns": 4}}
    two = {"op": "samples", "handle": 1, "ns": [[1, 2], [3, 4]]}
    rest = [{"op": "peak", "flop_rate": 1e9}, {"op": "released", "handle": 1}]
    start = [{"op": "hello", "protocol": 1, "name": "m", "launch": "self", **WORKER}, {"op": "ready", "ranks": [{"rank": 0, "pid": 1, "host": "n"}]}]
    lines = lambda list_: "".join(compact(x) + "\n" for x in start + list_)
    return {"good": lines([prepared, samples] + rest + [{"op": "heartbeat"}, prepared, full] + rest),
            "ranks": lines([{**prepared, "peak_bytes": [5, 6], "cold_ns": [7, 8], "verify": None}, two]),
            "failed": lines([{"op": "failed", "kind": "memory", "say": "no"}, {"op": "failed", "kind": "x"}]), "half": lines([prepared])[:-30],
            "silent": lines([{"op": "failed", "kind": "memory", "say": ""}])}


def write(target, name, text):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


def main():
    sets = {"store": stores(), "journal": journals([path for path in sys.argv[1:] if not path.endswith("run")]), "replay": replays(sys.argv[1:]), "space": {name: compact(value) for name, value in SPACES.items()},
            "plan": PLANS, "wire": wires(), "answers": answers()}
    for target, files in sets.items():
        for name, text in files.items():
            write(target, name, text)


main()
