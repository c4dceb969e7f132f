# SPDX-License-Identifier: MIT
# ctest: ranks
"""Plans of 1, 2 and 3 ranks sum up to the same projections; one flipped element does not; what is illegal is refused
and the group goes on."""
from lib_group import Dittune, Group

PLANS = ((2, dict(ranks=2, ring=2)), (2, dict(ranks=2, cfg=2)), (3, dict(ranks=3, ulysses=3)),
         (3, dict(ranks=3, ring=3, overlap=1)))
REFUSED = (dict(ranks=2), dict(tile_q=33), dict(cfg=2), dict(ulysses=-1), dict(batch=0))


def error(a, b):
    """The estimate of docs/protocol.md of ||a - b|| / ||b||, worst image."""
    worst = 0
    for image, norm in enumerate(b["verify"]["norm"]):
        squares = [(x - y) ** 2 for x, y in zip(a["verify"]["projections"][image], b["verify"]["projections"][image])]
        worst = max(worst, (sum(squares) / len(squares)) ** 0.5 / norm)
    return worst


def check_one_rank(t, one):
    """The output of a plan of one rank: the reference of all others."""
    reference = one.prepare()
    t.check("one rank is prepared", reference["op"] == "prepared", reference)
    t.check("bytes are known", reference["peak_bytes"][0] > 0 and reference["resident_bytes"] > 0, reference)
    second = one.prepare(threads=2, tile_q=64)
    t.check("two plans are resident: their bytes add up",
            second["resident_bytes"] > reference["resident_bytes"], second)
    t.check("the second has a handle of its own", second["handle"] != reference["handle"], second)
    t.check("another tile gives the same output", error(second, reference) < 1e-5)
    return reference


def check_refusals(t, one):
    for bad in REFUSED:
        t.check(f"{bad} is refused", one.prepare(**bad)["op"] == "failed")
    t.check("an unknown request is refused", one.ask(op="dance")["op"] == "failed")
    one.process.stdin.write(b"this is no JSON\n")
    one.process.stdin.flush()
    t.check("a line that is no JSON is refused", one.hear()["op"] == "failed")
    t.check("and the group goes on", one.ask(op="run", handle=1, n=1, mode="measure")["op"] == "samples")


def check_plans(t, groups, reference):
    for ranks, plan in PLANS:
        got = groups[ranks].prepare(**plan)
        t.check(f"{plan} gives the output of one rank", got["op"] == "prepared" and error(got, reference) < 1e-5, got)
        t.check(f"{plan}: a number a rank", len(got["cold_ns"]) == ranks == len(got["peak_bytes"]), got)


def check_samples(t, two):
    run = two.ask(op="run", handle=1, n=4, mode="measure")
    t.check("samples: one row a step, one number a rank", [len(row) for row in run["ns"]] == [2, 2, 2, 2], run)
    total, step = sum(kind["ns"] for kind in run["phases"]["kinds"]), run["phases"]["step_ns"]
    t.check("phases make up the steps within 2 %", abs(total - step) <= 0.02 * step, run)


test = Dittune()
groups = {ranks: Group(test, ranks) for ranks in (1, 2, 3)}
reference = check_one_rank(test, groups[1])
check_refusals(test, groups[1])
check_plans(test, groups, reference)
check_samples(test, groups[2])
hurt = Group(test, 2, DITTUNE_FAULT="flip:rank=1:exchange=2:element=7")
test.check("one flipped element is seen", error(hurt.prepare(ranks=2, ring=2), reference) > 1e-4)
for group in (*groups.values(), hurt):
    test.check("quits", group.quit() == 0)
test.finish()
