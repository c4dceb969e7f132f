# SPDX-License-Identifier: MIT
# ctest: dose
"""Lists of cases, and parameters that exist under a condition, against Python: random small spaces by itertools, with rules; what is
none is refused with one sentence."""
import itertools
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, FULL, Dittune

t = Dittune()
draw = random.Random(42)
KINDS = ([1, 2, 3, 4], [-2, 0, 5], [0.5, 1.25, 2.0], ["plain", "a b", "fused"], [False, True])


def literal(value):
    return json.dumps(value) if isinstance(value, (str, bool)) else repr(value)


def comparison(names, values):
    """(the text in the language of rules, its function, the names in it)."""
    a, b = draw.choice(names), draw.choice(names)
    one = draw.choice(values[a])
    if isinstance(one, (str, bool)):
        return (f"{a} != {literal(one)}", lambda plan: plan[a] != one, {a}) if draw.random() < 0.5 else \
            (f"{a} == {literal(one)}", lambda plan: plan[a] == one, {a})
    if isinstance(values[b][0], (str, bool)):
        return f"{a} <= {one}", lambda plan: plan[a] <= one, {a}
    return f"{a} + {b} <= {one + 2}", lambda plan: plan[a] + plan[b] <= one + 2, {a, b}


def condition(names, values):
    """One comparison, or two with && or ||."""
    left, one, some = comparison(names, values)
    if draw.random() < 0.5:
        return left, one, some
    right, other, more = comparison(names, values)
    if draw.random() < 0.5:
        return f"({left}) && ({right})", lambda plan: one(plan) and other(plan), some | more
    return f"{left} || {right}", lambda plan: one(plan) or other(plan), some | more


class Drawn:
    """A space: its file, and its plans by brute force."""

    def __init__(self):
        names = [f"p{i}" for i in range(draw.randint(1, 5))]
        self.values = {name: list(draw.choice(KINDS)) for name in names}
        for values in self.values.values():
            draw.shuffle(values)
        columns = names[:draw.randint(0, len(names))]
        product = list(itertools.product(*(self.values[name] for name in columns)))
        self.cases = [dict(zip(columns, row)) for row in draw.choices(product, k=draw.randint(1, 8))]
        self.rest = [name for name in names if name not in columns]
        self.values.update({name: [case[name] for case in self.cases] for name in columns})
        self.whens = {name: condition(names[:i], self.values) for i, name in enumerate(names) if i and name in self.rest and draw.random() < 0.5}
        self.rules = [condition(names, self.values) for _ in range(draw.randint(0, 2))]
        self.file = {"rules": [text for text, _, _ in self.rules], **({"cases": self.cases} if columns else {})}
        if self.rest:
            self.file["parameters"] = {name: {"values": self.values[name], **({"when": self.whens[name][0]} if name in self.whens else {})} for name in self.rest}

    def absent(self, plan):
        """What does not exist in the plan: its condition does not hold, or names something that does not exist."""
        found = set()
        for name, (_, holds, named) in self.whens.items():
            if named & found or not holds(plan):
                found.add(name)
        return found

    def all(self):
        """Each plan with what does not exist in it, the rules aside."""
        for case in self.cases:
            for row in itertools.product(*(self.values[name] for name in self.rest)):
                plan = {**case, **dict(zip(self.rest, row))}
                absent = self.absent(plan)
                if all(plan[name] == self.values[name][0] for name in absent):
                    yield plan, absent

    def never(self):
        """The parameters that exist in none."""
        return set.intersection(set(self.rest), *(absent for _, absent in self.all()))

    def plans(self):
        for plan, absent in self.all():
            if all(named & absent or holds(plan) for _, holds, named in self.rules):
                yield {name: value for name, value in plan.items() if name not in absent}


def frozen(plan):
    """As text; 2.0 and 2 are one number."""
    return json.dumps({name: int(value) if isinstance(value, float) and value == int(value) else value for name, value in plan.items()}, sort_keys=True)


def compare(rounds):
    bad, never = [], 0
    for _ in range(rounds):
        space = Drawn()
        want = {frozen(plan) for plan in space.plans()}
        done = t.tool("space", "--space", t.write("drawn.json", space.file), "--json", "--list")
        if space.never():
            never += 1
            right = done.code == 2 and any(f"'{name}' never exists" in done.err for name in space.never())
        else:
            printed = [frozen(plan) for plan in (done.json or {}).get("plans", [])]
            right = done.code == (0 if want else 3) and sorted(printed) == sorted(want) and done.json["feasible"] == len(want)
        if not right:
            bad.append((space.file, done, sorted(want)))
    t.check(f"{rounds} random spaces have the plans that brute force has, {never} a parameter that never exists", not bad and 4 * never < rounds, bad[:1])


def P(parameters):
    return {"parameters": parameters}


def refusals():
    CASES = [{"a": 1, "b": 2}, {"a": 2, "b": 4}]
    for file, says in [({"cases": []}, "'cases' is empty, expected"), ({"cases": {}}, "'cases' is no list of objects"), ({"cases": [3]}, "'cases' is no list of objects"),
                       ({"cases": [{}]}, "'cases' is no list of objects"), ({"cases": CASES + [3]}, "case 3 is no object"),
                       ({"cases": CASES + [{"a": 1}]}, "case 3 has no 'b', which case 1 has"), ({"cases": CASES + [{"a": 1, "b": 1, "c": 1}]}, "case 3 has 'c', which case 1 has not"),
                       ({"cases": [{"a": 1}, {"a": "x"}]}, "'a': value 2 is not a number as the first one is"), ({"cases": [{"a": [1]}]}, "values are numbers, texts, or true and false"),
                       ({"cases": [{"a": None}]}, "null is no value"), ({"cases": [{"a b": 1}]}, "'a b' is not a name"),
                       ({"cases": CASES, "parameters": {"b": [1, 2]}}, "'b' is in the cases, so it has no 'values' of its own"),
                       ({"cases": CASES, "parameters": [{"name": "b", "default": 2}]}, "so it has no 'default' of its own"),
                       ({"cases": CASES, "default": {"a": 1, "b": 4}}, "'default' is none of the cases"),
                       ({"parameters": {"a": [1, 2]}, "default": {"a": 2}}, "'default' is one of the cases, and there are no 'cases'"),
                       ({"combinations": CASES}, "unknown field 'combinations', did you mean 'cases'?"), ({"cases": CASES, "rules": ["a < 1"]}, None),
                       ({"cases": CASES, "parameters": [{"name": "b", "when": "a == 1"}]}, "so it has no 'when' of its own"),
                       (P({"a": {"values": [1, 2], "when": "b == 1"}, "b": [1, 2]}), "'a': its 'when' cannot be read: rule 'b == 1', column 1: unknown name 'b'; it may name the parameters before"),
                       (P({"a": {"values": [1, 2], "when": "a == 1"}}), "so that none depends on itself"), (P({"a": [1, 2], "b": {"values": [1], "when": "a >"}}), "column 4: the rule ends where"),
                       (P({"a": [1, 2], "b": {"values": [1], "when": "a > 2"}}), "'b' never exists: its 'when' holds for no values of the parameters before it: a > 2"),
                       (P({"a": [1, 2], "b": {"values": [1, 2], "when": "a > 1"}, "c": {"values": [1, 2], "when": "a < 2 && b == 1"}}), "'c' never exists"),
                       ({"cases": CASES, "parameters": {"c": {"values": [1, 2], "when": "a == 1 && b == 4"}}}, "'c' never exists"),
                       (P({"a": [1, 2], "b": {"values": [1], "when": 3}}), "'when'"), (P({"a": [1, 2], "b": {"values": [1], "condition": "a == 1"}}), "did you mean 'when'?"),
                       ({**P({"a": [1, 2], "b": {"values": [1, 2], "when": "a == 1"}}), "rules": [{"python": "a == b"}]}, "the rule 'a == b' in Python names a parameter with a 'when'")]:
        done = t.tool("space", "--space", t.write("own.json", file))
        if says is None:
            t.check("no case keeps the rules", done.code == 3, done)
        else:
            t.check(f"refused: {says}", done.code == 2 and says in done.err and done.err.count("\n") == 1, done)


def shown():
    """Counts, roles and the default of a case; what a plan breaks is said."""
    file = {"cases": [{"ranks": 2, "ring": 1}, {"ranks": 4, "ring": 2}, {"ranks": 4, "ring": 1}], "default": {"ranks": 4, "ring": 2},
            "parameters": [{"name": "ranks", "role": "ranks", "doc": "of processes"}, {"name": "tile", "values": {"from": 8, "to": 64, "factor": 2}}], "valid": 12}
    path = t.write("own.json", file)
    done = t.tool("space", "--space", path)
    t.check("the cases as a rule, with what they remove", done.code == 0 and "12 feasible plans among 16" in done.out and "4  ranks, ring in 3 cases" in done.out, done)
    found = t.tool("space", "--space", path, "--json").json
    t.check("a case's parameter keeps its role", found["parameters"][0]["role"] == "ranks" and found["parameters"][0]["doc"] == "of processes", found)
    worker = ("--worker", BUILD / "dittune-worker-command", "--", "--space", path, "--time", "wall",
              "--command", "/bin/true {ranks} {ring} {tile}")
    done = t.tool("explain", "ranks=2 ring=2", "--devices", "4", *worker)
    t.check("a plan that is no case", done.code == 3 and "ranks, ring must be as in one of the cases (ranks=2 ring=2)" in done.out and "ranks=4 or ring=1 would do" in done.out, done)
    done = t.tool("explain", "", "--devices", "4", *worker)
    t.check("the default is the marked case", done.code == 0 and done.out.startswith("ranks=4 ring=2 tile=8"), done)


compare(300 if FULL else 40)
refusals()
shown()
t.finish()
