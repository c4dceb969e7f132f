# SPDX-License-Identifier: MIT
# ctest: ranks
"""`dittune tune` on two fake GPUs, from the command to the store: the order of a session, one GPU without NCCL
first."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from fake_gpus import FakeGpus, need_fake_gpus


def groups(talk):
    """Each group of workers for the small network: ranks, comm, devices, and the ranks of the plans it prepared."""
    found, ranks, network = [], 0, None
    for to_worker, message in talk:
        if message["op"] == "hello" and to_worker:
            ranks, network = message["ranks"], (message.get("workload") or {}).get("network", {}).get("name")
        if message["op"] == "ready":
            found.append((network, ranks, message["comm"], [rank["device"] for rank in message["ranks"]], []))
        if to_worker and message["op"] == "prepare":
            found[-1][4].append(message["plan"]["ranks"])
    return [group[1:] for group in found if group[0] == "small"]


def has_reports(trial):
    """The devices reported each step, each rank's clocks and its memory."""
    ranks = trial["plan"]["ranks"]
    return (len(trial["host_ns"]) == len(trial["ns"]) and len(trial["telemetry"]) == ranks
            and len(trial["memory"]["before_bytes"]) == ranks)


need_fake_gpus()
t = FakeGpus()
t.leave_little()
done = t.small("tune", "--budget", "60s", "--size", "64", "--json")
t.check("it ends, and needs no option for GPUs", done.code in (0, 6), done)
first, *others = groups(t.talk())
t.check("the first group is of one GPU, and has no communicator", first[:3] == (1, "self", ["cuda"]), first)
t.check("it makes the reference and the baseline", first[3][:2] == [1, 1], first)
pairs = [group for group in others if group[0] == 2]
t.check("NCCL comes after it", pairs and all(group[1] == "nccl" for group in pairs), others)
trials = t.records("trial")
t.check("baseline, default, search", [trial["plan"]["ranks"] for trial in trials][:2] == [1, 2] and len(trials) > 2,
        done)
measured = [trial for trial in trials if trial["outcome"] == "ok"]
t.check("what the devices reported is in the journal", measured and all(map(has_reports, measured)), trials)
finals = [comparison for comparison in t.records("comparison") if comparison["name"] == "final comparison"]
t.check("the final comparison", done.code == 6 or len(finals) == 1, done)
t.check("a plan is stored", len(t.stored()) == 1, done)
t.none_left()
t.no_complaints()
t.finish()
