# SPDX-License-Identifier: MIT
# ctest:
"""`space --input X --devices 6 --oversubscribe --list` holds exactly the plans that may be run with that input: 400 points of the full
product, near and far from legal, are asked for one by one."""
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune
import dit_reference

POINTS, MOST_RANKS = 400, 6

t = Dittune()
dit_reference.make(t.path, heads=6, hidden=48, depth=1, latent=8, batch=2, seed=7)
network = ["--model", t.path / "m.json", "--input", t.path / "x.safetensors"]
space = t.tool("space", *network, "--devices", MOST_RANKS, "--oversubscribe", "--list", "--json").json
values = {parameter["name"]: parameter["values"] for parameter in space["parameters"]}
listed = [dict(plan) for plan in space["plans"]]


def points(rng):
    """Listed plans with none, one or two parameters changed, also to more than the largest value."""
    for k in range(POINTS):
        plan = dict(rng.choice(listed))
        for name in rng.sample(sorted(values), k % 3):
            plan[name] = rng.choice(values[name] + [max(values[name]) + 1])
        yield plan


accepted, wrong = 0, []
for plan in points(random.Random(5)):
    text = " ".join(f"{name}={value}" for name, value in plan.items())
    done = t.tool("explain", *network, text)
    accepted += done.code == 0
    if done.code not in (0, 3) or ((done.code == 0) != (plan in listed) and plan["ranks"] <= MOST_RANKS):
        wrong.append(str(done))
t.check("the list holds just what is accepted", not wrong, "\n".join(wrong[:5]))
t.check("some of the points are accepted, and not most", 50 < accepted < 350, accepted)
t.finish()
