# SPDX-License-Identifier: MIT
# ctest: ranks
"""`run --trace` on real ranks: the file is what Perfetto reads, parts nest and fill the step, exchanges pair up between ranks."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

t = Dittune(clock="real")
network = {**json.loads((SOURCE / "tests/cli/small.json").read_text(encoding="utf-8")), "heads": 4, "hidden": 64}
SMALL, DEPTH = t.write("network.json", network), network["depth"]
PLANS = {"ulysses": "ranks=2 ulysses=2", "ring": "ranks=2 ring=2", "guidance": "ranks=2 cfg=2"}
EXCHANGES = {"ulysses": ["forth", "back"] * DEPTH, "ring": ["ring"] * DEPTH, "guidance": ["cfg"]}


def spans(trace, rank):
    return sorted((e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == rank), key=lambda e: (e["ts"], -e["dur"]))


def overlap(list_):
    return [(a["name"], b["name"]) for a, b in zip(list_, list_[1:]) if b["ts"] < a["ts"] + a["dur"] - 1e-3]


for name, plan in PLANS.items():
    path = t.path / f"{name}.trace"
    done = t.tool("run", "--quick", "--model", SMALL, "--plan", plan + " threads=1", "--trace", path, "--json")
    t.exits(f"{name}: a trace", done, 0)
    trace = json.loads(path.read_text(encoding="utf-8"))
    events = trace["traceEvents"]
    t.check(f"{name}: complete events with what Perfetto needs", all(e["ph"] in "XM" and isinstance(e["pid"], int) and "tid" in e and "name" in e for e in events)
            and all(e["dur"] > 0 and e["ts"] >= 0 and e["cat"] in ("layer", "work", "exchange", "wait") for e in events if e["ph"] == "X"), events[:4])
    t.check(f"{name}: both ranks are named", sorted(e["pid"] for e in events if e["name"] == "process_name") == [0, 1])
    for rank in (0, 1):
        mine = spans(trace, rank)
        layers = [e for e in mine if e["cat"] == "layer"]
        parts = [e for e in mine if e["cat"] != "layer"]
        t.check(f"{name}, rank {rank}: layers and parts do not overlap among themselves", not overlap(layers) and not overlap(parts), overlap(layers) + overlap(parts))
        t.check(f"{name}, rank {rank}: each block of the network is there", [e["name"] for e in layers].count("block") == DEPTH and layers[0]["name"] == "embed", layers)
        whole, sum_of = mine[-1]["ts"] + mine[-1]["dur"] - mine[0]["ts"], sum(e["dur"] for e in parts)
        t.check(f"{name}, rank {rank}: parts fill the step", abs(sum_of / whole - 1) < 0.01 and abs(sum(e["dur"] for e in layers) / whole - 1) < 0.01, (sum_of, whole))
        inside = [p for p in parts if any(layer["ts"] - 1e-3 <= p["ts"] and p["ts"] + p["dur"] <= layer["ts"] + layer["dur"] + 1e-3 for layer in layers)]
        t.check(f"{name}, rank {rank}: each part is inside a layer", len(inside) == len(parts), len(parts) - len(inside))
    exchanged = [[(e["name"], e["cat"]) for e in spans(trace, rank) if e["cat"] in ("exchange", "wait")] for rank in (0, 1)]
    posted = [[what for what, cat in mine if cat == "exchange"] for mine in exchanged]
    t.check(f"{name}: each rank posts the exchanges of the plan, as often as its blocks do", posted[0] == posted[1] == EXCHANGES[name], posted)
    t.check(f"{name}: each is posted, then waited for", all(mine == [(what, cat) for what in EXCHANGES[name] for cat in ("exchange", "wait")]
                                                           for mine in exchanged), exchanged)
    ends = [[e["ts"] + e["dur"] for e in spans(trace, rank) if e["cat"] == "wait"] for rank in (0, 1)]
    begins = [[e["ts"] for e in spans(trace, rank) if e["cat"] == "exchange"] for rank in (0, 1)]
    t.check(f"{name}: none ends on a rank before the other has posted it", all(end >= begin for rank in (0, 1) for end, begin in
                                                                             zip(ends[rank], begins[1 - rank])), (begins, ends))
    figures = done.json["trace"]
    t.check(f"{name}: medians of layers", [layer["name"] for layer in figures["layers"]].count("block") == DEPTH and
            all(layer["median_seconds"] > 0 for layer in figures["layers"]), figures)
    t.check(f"{name}: cores that ranks keep busy", len(figures["cpu_cores"]) == 2 and all(0 < cores < 4 for cores in figures["cpu_cores"]), figures)

done = t.tool("run", "--quick", "--model", SMALL, "--plan", "ranks=1", "--trace", t.path / "one.trace")
t.check("as text", done.code == 0 and "layers  " in done.out and f"block x {DEPTH} " in done.out and "cores busy" in done.out, done)
t.check("the cores are told once", done.out.count("cores busy") == 1, done)
plain = t.tool("run", "--quick", "--model", SMALL, "--plan", "ranks=2 ring=2 threads=1", "--json").json["phases"]
blocks = {block["name"]: block for block in plain["blocks"]}
layers = blocks["block"].get("layers_ns", [])
t.check("without --trace: a median of each layer, around that of all", len(layers) == DEPTH and min(layers) <= blocks["block"]["median_ns"] <= max(layers)
        and "layers_ns" not in blocks["embed"], blocks)
busy = [cpu / wall for cpu, wall in zip(plain["cpu_ns"], plain["wall_ns"])]
t.check("and the cores that each rank keeps busy, over no less than its steps", len(busy) == 2 and all(0 < cores < 4 for cores in busy)
        and plain["wall_ns"][plain["rank"]] >= 0.99 * plain["step_ns"], plain)
done = t.tool("run", "--quick", "--model", SMALL, "--plan", "ranks=2 ring=2 threads=1", env={"COLUMNS": 200})
t.check("as text", re.search(rf"  block +{DEPTH} a step, \S+ .s each; by layer from \S+ .s \(number [1-{DEPTH}]\) to \S+ .s \(number [1-{DEPTH}]\)"
                             r" .*cores busy \S+, \S+ by rank, waiting included", " ".join(done.out.split()).replace(" block ", "  block ")), done)
t.scenario(ns=[1000000])
t.exits("a worker without it", t.tool("run", "--worker", t.worker, "--quick", "--trace", t.path / "x.trace"), 1, "--trace: the worker reports no parts of a step: not known here")
t.exits("a sweep", t.tool("run", "--quick", "--model", SMALL, "--sweep", "batch=1,2", "--trace", t.path / "x.trace"), 2, "--trace is of one plan")
t.exits("no such folder", t.tool("run", "--quick", "--model", SMALL, "--trace", t.path / "none/x.trace"), 74, "none/x.trace")
t.none_left()
t.finish()
