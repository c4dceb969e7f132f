# SPDX-License-Identifier: MIT
# ctest: ranks
"""The worker refuses exactly the plans that are not in the controller's space, with the sentence of the rule."""
import random

from lib_group import PLAN, SOURCE, Dittune, Group

RANKS, TRIES = 3, 60
VALUES = dict(cfg=(1, 2), ulysses=(1, 2, 3), ring=(1, 2, 3), batch=(1, 2, 3), tile_q=(32, 64, 128),
              tile_kv=(64, 128), overlap=(0, 1), chunks=(1, 3))
DEGREES = ("cfg", "ulysses", "ring")


def draw(chance):
    """A plan of RANKS ranks at most with a few values changed; most have as many ranks as their degrees make."""
    plan = dict(PLAN)
    for name in chance.sample(sorted(VALUES), chance.randint(1, 3)):
        plan[name] = chance.choice(VALUES[name])
    product = 1
    for name in DEGREES:
        product *= plan[name]
    plan["ranks"] = product if product <= RANKS and chance.random() < 0.9 else chance.randint(1, RANKS)
    return plan


def explain(t, plan):
    network = ("--model", SOURCE / "tests/cli/small.json", "--size", "128", "--batch", "1,2,3")
    text = " ".join(f"{name}={value}" for name, value in plan.items())
    return t.tool("explain", *network, text, "--json").json


test = Dittune()
groups = {ranks: Group(test, ranks) for ranks in range(1, RANKS + 1)}
chance, answers = random.Random(5), {True: 0, False: 0}
for _ in range(TRIES):
    plan = draw(chance)
    told, got = explain(test, plan), groups[plan["ranks"]].prepare(**plan)
    feasible = told["feasible"]
    answers[feasible] += 1
    test.check(f"{plan} is {'prepared' if feasible else 'refused'}", (got["op"] == "prepared") == feasible, (told, got))
    if feasible:
        groups[plan["ranks"]].ask(op="release", handle=got["handle"])
    else:
        test.check(f"{plan}: the sentence is a rule's",
                   any(rule["sentence"] in got["say"] for rule in told["violations"]), (told, got))
test.check("both answers were given", min(answers.values()) >= 10, answers)
for group in groups.values():
    test.check("quits", group.quit() == 0)
test.finish()
