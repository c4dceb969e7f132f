# SPDX-License-Identifier: MIT
"""`dittune --budget` on two fake GPUs, from the command to the store: the order of a session, one GPU without NCCL first."""
from lib_session import check, end, leftovers, Machine

machine = Machine()
machine.run("--budget", "40s", "--size", "128", "--json")
check("it ends, and needs no option for GPUs", machine.code in (0, 6), (machine.code, machine.err))
groups, ranks = [], 0
for to_worker, message in machine.talk():
    if message["op"] == "hello" and to_worker:
        ranks, network = message["ranks"], (message.get("workload") or {}).get("network", {}).get("name")
    if message["op"] == "ready":
        groups.append((network, ranks, message["comm"], [rank["device"] for rank in message["ranks"]], []))
    if to_worker and message["op"] == "prepare":
        groups[-1][4].append(message["plan"]["ranks"])
mine = [group for group in groups if group[0] == "small"]
check("the first group is of one GPU, and has no communicator", mine[0][1:4] == (1, "self", ["cuda"]), mine[0])
check("it makes the reference and the baseline", mine[0][4][:2] == [1, 1], mine[0])
check("NCCL comes after it", [g for g in mine if g[1] == 2] and all(g[2] == "nccl" for g in mine if g[1] == 2), mine)
trials = machine.records("trial")
check("baseline, default, search", [t["plan"]["ranks"] for t in trials[:2]] == [1, 2] and len(trials) > 2, [t["plan"] for t in trials])
check("what devices told is in the journal", all(len(t["device_ns"]) == len(t["ns"]) and len(t["telemetry"]) == t["plan"]["ranks"] and
      len(t["memory"]["before_bytes"]) == t["plan"]["ranks"] for t in trials if t["outcome"] == "ok"), [sorted(t) for t in trials])
finals = [c for c in machine.records("comparison") if c["name"] == "final comparison"]
check("the final comparison", machine.code == 6 or len(finals) == 1, machine.err)
check("a plan is stored", len(machine.stored()) == 1, machine.err)
check("nobody is left", leftovers(machine.box) == [], leftovers(machine.box))
check("nothing to complain of", machine.complaints() == "", machine.complaints())
end()
