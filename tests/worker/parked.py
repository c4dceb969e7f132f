# SPDX-License-Identifier: MIT
# ctest: timing
"""A parked group sleeps: under 1 % of a core for all its ranks together, between requests and with plans resident."""
import time

from lib_group import Dittune, Group, processor_ns, threads

WINDOW_NS = 3000000000


def asleep(group):
    return all(state == "S" for pid in group.pids for _, state, _ in threads(pid).values())


def share_of_a_core(group):
    before, began = sum(map(processor_ns, group.pids)), time.monotonic_ns()
    time.sleep(WINDOW_NS * 1e-9)
    return (sum(map(processor_ns, group.pids)) - before) / (time.monotonic_ns() - began)


def park(t, plan):
    ranks = plan.get("ranks", 1)
    group = Group(t, ranks)
    prepared = group.prepare(**plan)
    t.check(f"{ranks} ranks: prepared", prepared["op"] == "prepared", prepared)
    t.check(f"{ranks} ranks: ran", group.ask(op="run", handle=1, n=5, mode="measure")["op"] == "samples")
    t.until(lambda: asleep(group))
    share = share_of_a_core(group)
    t.check(f"{ranks} ranks parked: under 1 % of a core", share < 0.01, share)
    t.check(f"{ranks} ranks wake up", group.ask(op="run", handle=1, n=1, mode="measure")["op"] == "samples")
    t.check(f"{ranks} ranks quit", group.quit() == 0)


test = Dittune()
for plan in (dict(threads=2), dict(ranks=2, ring=2, overlap=1), dict(ranks=3, ulysses=3)):
    park(test, plan)
test.finish()
