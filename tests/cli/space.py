# SPDX-License-Identifier: MIT
# ctest:
"""A user's space: what is printed of it, and its plans, each once and each keeping the rules by Python's reckoning."""
import itertools
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

FILE = SOURCE / "bench" / "spaces" / "prl_2x2.json"
SPACE = json.loads(FILE.read_text())
NAMES, LISTS = list(SPACE["parameters"]), [sorted(values) for values in SPACE["parameters"].values()]


def python_of(rule):
    """The rule as a Python expression; divisions of whole numbers are whole."""
    rule = rule.replace("/", "//").replace("&&", " and ").replace("||", " or ")
    return re.sub(r"!(?!=)", " not ", rule)


def keepers(rules):
    """All plans that keep these rules, in order."""
    code = compile(" and ".join(f"({python_of(rule)})" for rule in rules), "rules", "eval")
    plans = (dict(zip(NAMES, values)) for values in itertools.product(*LISTS))
    return [plan for plan in plans if eval(code, {}, plan)]


def listed(t, plans):
    done = t.tool("space", "--space", FILE, "--list", "--json")
    found = done.json
    t.check("every plan that keeps the rules is listed, in order", done.code == 0 and found["plans"] == plans)
    t.check("the number of plans is right", found["feasible"] == len(plans) == 1200 and found["cartesian"] == 36864 and found["listed"] is True)
    t.check("its estimate and size", found["estimate"] == 1200 and found["bytes"] > 1200 * 8, found["bytes"])
    t.check("the parameters are listed", [row["name"] for row in found["parameters"]] == NAMES
            and [row["values"] for row in found["parameters"]] == LISTS, found["parameters"])
    removes = [found["cartesian"] - len(keepers([rule])) for rule in SPACE["rules"]]
    t.check("what each rule removes", [row["removes"] for row in found["rules"]] == removes, found["rules"])


t = Dittune()
plans = keepers(SPACE["rules"])
listed(t, plans)
done = t.tool("space", "--space", FILE, "--list")
lines = [" ".join(f"{name}={value}" for name, value in plan.items()) for plan in plans]
t.check("the text lists the same", done.code == 0 and done.out.splitlines() == lines)
done = t.tool("space", "--space", FILE)
t.check("the text has the number of plans", done.code == 0 and "1200 feasible plans among 36864" in done.out.splitlines(), done)
H200 = SOURCE / "examples" / "machines" / "8xh200.json"
done = t.tool("space", "--machine", H200, "--model", "dit-xl/2", "--size", "512", "--dtype", "bfloat16", "--json")
rows = {row["name"]: row["values"] for row in done.json["parameters"]}
t.check("the plans of a described machine", done.code == 0 and rows["ranks"] == list(range(1, 9)) and rows["attention"][:2] == ["own", "cudnn"]
        and "threads" not in rows and rows["nccl_p2p_channels"] == [0], done)
more = t.tool("space", "--machine", H200, "--model", "dit-xl/2", "--size", "512", "--dtype", "bfloat16", "--json", "--tune-nccl")
t.check("--tune-nccl: 30 values of NCCL's variables for each plan of several ranks, 60 with ulysses and ring",
        20 * done.json["feasible"] < more.json["feasible"] < 60 * done.json["feasible"], more)
done = t.tool("explain", "--machine", H200, "ranks=8 nccl_p2p_channels=4")
t.check("NCCL's variables without --tune-nccl", done.code == 0 and "leaves it out unless --tune-nccl" in done.out, done)
done = t.tool("explain", "--machine", H200, "--tune-nccl", "ranks=8 nccl_p2p_channels=4")
t.check("and with it", done.code == 0 and "is feasible" in done.out and "unless" not in done.out, done)
t.exits("no such machine", t.tool("space", "--machine", t.path / "none.json"), 74, "none.json")
t.exits("not a machine", t.tool("explain", "--machine", FILE, "ranks=1"), 2, "prl_2x2.json")
for option, value in (("backend", "cpu"), ("input", "x"), ("worker", "./none"), ("space", FILE)):
    words = ["--machine", H200, "--" + option, value]
    t.exits(f"--{option} beside --machine", t.tool("space", *words), 2, "has no effect beside")
t.finish()
