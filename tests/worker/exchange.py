# SPDX-License-Identifier: MIT
# ctest: ranks
"""Exchanges timed by themselves: one time a size and repetition, in groups of any size and distance, beside plans; what
cannot be is refused and the group goes on; one wrong byte ends it."""
from lib_group import Dittune, Group

SIZES = [96, 12288, 196608, 3145728]  # six equal blocks each
REFUSED = (dict(group=3), dict(group=1), dict(kind="broadcast"), dict(n=0), dict(stride=2), dict(bytes=[]),
           dict(bytes=[7]), dict(bytes=[0]), dict(bytes=["8"]), dict(bytes=8), dict(bytes=[8] * 65))


def exchange(ranks, **fields):
    return ranks.ask(**dict(dict(op="exchange", kind="alltoall", group=2, bytes=SIZES, n=3), **fields))


def complete(answer):
    return answer["op"] == "exchanged" and [len(row) for row in answer["ns"]] == [3] * len(SIZES)


t = Dittune()
two, six = Group(t, 2), Group(t, 6)
for group, fields in ((two, {}), (two, dict(kind="shift")), (six, dict(group=3)), (six, dict(group=6)),
                      (six, dict(kind="shift", group=3, stride=2)), (six, dict(kind="alltoall", group=2, stride=3))):
    got = exchange(group, **fields)
    t.check(f"{fields}: a time a size and repetition", complete(got), got)
    t.check(f"{fields}: times are positive", all(ns > 0 for row in got["ns"] for ns in row), got)
t.check("a plan is prepared beside it", two.prepare(ranks=2, ring=2)["op"] == "prepared")
t.check("and exchanges go on", complete(exchange(two)))
for bad in REFUSED:
    got = exchange(two, **bad)
    t.check(f"{bad} is refused", got["op"] == "failed", got)
one = Group(t, 1)
t.check("one rank has nobody to exchange with", exchange(one)["op"] == "failed")
t.check("and the group goes on", one.prepare(ranks=1)["op"] == "prepared")
for fault in ("flip:rank=1:exchange=1:element=5", "flip:rank=0:exchange=5:element=5"):
    hurt = Group(t, 2, DITTUNE_FAULT=fault)
    got = exchange(hurt)
    t.check(f"{fault} is seen", got["op"] == "failed", got)
    t.check("and no rank is left", hurt.wait_for_end() == [])
for group in (one, two, six):
    t.check("quits", group.quit() == 0)
t.finish()
