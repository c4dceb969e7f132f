# SPDX-License-Identifier: MIT
"""Exchanges timed by themselves: one time a size and repetition, in groups of any size and distance, beside plans; what
cannot be is refused and the group goes on; one wrong byte ends it."""
from talk import Group, check, done

SIZES = [96, 12288, 196608, 3145728]  # six equal blocks each


def exchange(ranks, **fields):
    return ranks.ask(**dict(dict(op="exchange", kind="alltoall", group=2, bytes=SIZES, n=3), **fields))


def shape(answer):
    return answer["op"] == "exchanged" and [len(row) for row in answer["ns"]] == [3] * len(SIZES)


two, six = Group(2), Group(6)
for group, fields in ((two, {}), (two, dict(kind="shift")), (six, dict(group=3)), (six, dict(group=6)),
                      (six, dict(kind="shift", group=3, stride=2)), (six, dict(kind="alltoall", group=2, stride=3))):
    got = exchange(group, **fields)
    check(f"{fields}: a time a size and repetition", shape(got), got)
    check(f"{fields}: times are positive", all(ns > 0 for row in got["ns"] for ns in row), got)
check("a plan is prepared beside it", two.prepare(ranks=2, ring=2)["op"] == "prepared")
check("and exchanges go on", shape(exchange(two)))
for bad in (dict(group=3), dict(group=1), dict(kind="broadcast"), dict(n=0), dict(bytes=[]), dict(bytes=[7]), dict(bytes=[0]),
            dict(bytes=["8"]), dict(stride=2), dict(bytes=8), dict(bytes=[8] * 65)):
    got = exchange(two, **bad)
    check(f"{bad} is refused", got["op"] == "failed", got)
one = Group(1)
check("one rank has nobody to exchange with", exchange(one)["op"] == "failed")
check("and the group goes on", one.prepare(ranks=1)["op"] == "prepared")
for fault in ("flip:rank=1:exchange=1:element=5", "flip:rank=0:exchange=5:element=5"):
    hurt = Group(2, DITTUNE_FAULT=fault)
    got = exchange(hurt)
    check(f"{fault} is seen", got["op"] == "failed", got)
    check("and no rank is left", hurt.left() == [])
for group in (one, two, six):
    group.say(op="quit")
    check("quits", group.process.wait(20) == 0)
done()
