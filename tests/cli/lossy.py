# SPDX-License-Identifier: MIT
# ctest:
"""Settings that change the output beyond rounding: tried with --lossy only, limited by --max-error, stored apart."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

FAST = {"axes": {"lossy": [0, 1], "a": [1, 2, 4]}, "best": {"lossy": 1, "a": 2}, "weights": {"lossy": 0.5, "a": 0.1}, "cv": 0.01, "protocol": 2,
        "engine": "cached", "obeys": ["model"], "job": {"model": "org/net"}}
WRONG = [{"do": "wrong", "at": "prepare", "when": {"lossy": 1}, "size": 0.01}]  # 0.01 / sqrt(16) = 2.5e-3

t = Dittune()


def tune(*options, **fields):
    t.scenario(**{**FAST, **fields})
    return t.tune("--budget", "40s", "--json", "--model", "org/net", *options)


def tried(done):
    """{value: whether the output of its plans was right}"""
    return {trial["plan"]["lossy"]: trial["outcome"] in ("ok", "slow") for trial in done.json["trials"]}


def look(*options):
    return t.tool("lookup", "--engine", "cached", "--model", "org/net", "--json", *options)


exact = tune(faults=WRONG)
t.check("without --lossy no such plan is tried", exact.code == 0 and tried(exact) == {0: True}, exact)
t.exits("and none is run", t.tool("run", "--worker", t.worker, "--plan", "lossy=1"), 3, err="lossy=1 is not one of the values of lossy")
found = look()
t.check("its entry is an exact plan's", found.code == 0 and found.json["plan"]["lossy"] == 0, found)

lossy = tune("--lossy", faults=WRONG)
t.check("with --lossy it is, whatever its error", lossy.code == 0 and tried(lossy) == {0: True, 1: True}, lossy)
errors = [trial["verified_error"] for trial in lossy.json["trials"] if trial["plan"]["lossy"] == 1]
t.check("its error is measured", errors and all(abs(error - 2.5e-3) < 1e-6 for error in errors), errors)
t.check("it wins", lossy.json["best"]["plan"]["lossy"] == 1, lossy)
t.check("a look-up that does not ask for it never gets it", look().json["plan"]["lossy"] == 0)
t.check("one that does gets it", look("--lossy").json["plan"]["lossy"] == 1)
shown = t.tune("--budget", "20s", "--model", "org/net", "--lossy")
t.check("the printed look-up asks for it", "--lossy" in next(line for line in shown.out.splitlines() if "Look it up" in line), shown)

bounded = tune("--lossy", "--max-error", "0.002", faults=WRONG)
t.check("--max-error limits it", bounded.code == 0 and tried(bounded) == {0: True, 1: False}, bounded)
bounded = tune("--lossy", "--max-error", "0.003", faults=WRONG)
t.check("up to the limit it is right", tried(bounded) == {0: True, 1: True}, bounded)

t.scenario(**FAST, faults=WRONG)
checked = t.tool("check", "--worker", t.worker, "--budget", "40s", "--json")
t.check("both entries are checked with their own settings", checked.code == 0 and len(checked.json["entries"]) == 2, checked)
t.exits("the built-in network has no such settings", t.tool("run", "--lossy"), 2, err="--lossy has no effect")
t.none_left()
t.finish()
