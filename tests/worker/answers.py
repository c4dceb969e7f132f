# SPDX-License-Identifier: MIT
"""Plans of 1, 2 and 3 ranks sum up to the same projections; one flipped element does not; what is illegal is refused and
the group goes on."""
from talk import Group, check, done


def error(a, b):
    """The estimate of docs/protocol.md of ||a - b|| / ||b||, worst image."""
    worst = 0
    for image, norm in enumerate(b["verify"]["norm"]):
        squares = [(x - y) ** 2 for x, y in zip(a["verify"]["projections"][image], b["verify"]["projections"][image])]
        worst = max(worst, (sum(squares) / len(squares)) ** 0.5 / norm)
    return worst


one = Group(1)
reference = one.prepare()
check("one rank is prepared", reference["op"] == "prepared", reference)
check("bytes are known", reference["peak_bytes"][0] > 0 and reference["resident_bytes"] > 0, reference)
second = one.prepare(threads=2, tile_q=64)
check("two plans are resident: their bytes add up", second["resident_bytes"] > reference["resident_bytes"], second)
check("the second has a handle of its own", second["handle"] != reference["handle"], second)
check("another tile gives the same output", error(second, reference) < 1e-5)
for bad in (dict(ranks=2), dict(tile_q=33), dict(cfg=2), dict(ulysses=-1), dict(batch=0)):
    check(f"{bad} is refused", one.prepare(**bad)["op"] == "failed")
check("an unknown request is refused", one.ask(op="dance")["op"] == "failed")
one.process.stdin.write(b"this is no JSON\n")
one.process.stdin.flush()
check("a line that is no JSON is refused", one.hear()["op"] == "failed")
check("and the group goes on", one.ask(op="run", handle=1, n=1, mode="measure")["op"] == "samples")
two, three = Group(2), Group(3)
for group, plan in ((two, dict(ranks=2, ring=2)), (two, dict(ranks=2, cfg=2)), (three, dict(ranks=3, ulysses=3)),
                    (three, dict(ranks=3, ulysses=3, overlap=1)), (three, dict(ranks=3, ring=3, overlap=1))):
    got = group.prepare(**plan)
    check(f"{plan} gives the output of one rank", got["op"] == "prepared" and error(got, reference) < 1e-5, got)
    check(f"{plan}: a number a rank", len(got["cold_ns"]) == plan["ranks"] == len(got["peak_bytes"]), got)
run = two.ask(op="run", handle=1, n=4, mode="measure")
check("samples: one row a step, one number a rank", [len(row) for row in run["ns"]] == [2, 2, 2, 2], run)
total = sum(kind["ns"] for kind in run["phases"]["kinds"])
check("phases make up the steps within 2 %", abs(total - run["phases"]["step_ns"]) <= 0.02 * run["phases"]["step_ns"], run)
hurt = Group(2, DITTUNE_FAULT="flip:rank=1:exchange=2:element=7")
check("one flipped element is seen", error(hurt.prepare(ranks=2, ring=2), reference) > 1e-4)
for group in (one, two, three, hurt):
    group.say(op="quit")
    check("quits", group.process.wait(20) == 0)
done()
