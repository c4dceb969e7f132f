# SPDX-License-Identifier: MIT
"""A parked group sleeps: under 1 % of a core for all its ranks together, between requests and with plans resident."""
import time

from talk import Group, check, done

for ranks, plan in ((1, dict(threads=2)), (2, dict(ranks=2, ring=2, overlap=1)), (3, dict(ranks=3, ulysses=3))):
    group = Group(ranks)
    prepared = group.prepare(**plan)
    check(f"{ranks} ranks: prepared", prepared["op"] == "prepared", prepared)
    check(f"{ranks} ranks: ran", group.ask(op="run", handle=1, n=5, mode="measure")["op"] == "samples")
    time.sleep(0.5)
    before, began = group.cpu_seconds(), time.monotonic()
    time.sleep(3)
    share = (group.cpu_seconds() - before) / (time.monotonic() - began)
    check(f"{ranks} ranks parked: under 1 % of a core", share < 0.01, share)
    check(f"{ranks} ranks wake up", group.ask(op="run", handle=1, n=1, mode="measure")["op"] == "samples")
    group.say(op="quit")
    group.process.wait(20)
done()
