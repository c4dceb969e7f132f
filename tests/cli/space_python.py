# SPDX-License-Identifier: MIT
# ctest:
"""Rules and lists against Python itself: random expressions with chains by its eval, in both languages; T1 files, of constructions
that public ones have, by brute force; what is no list or rule is refused with one sentence."""
import itertools
import math
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

t = Dittune()
draw = random.Random(42)
AXES = {"a": [0, 1, 2, 3], "b": [-3, 1, 4, 7], "c": [2, 5, 8], "x": [0.25, 0.1, 1.5, 3.0], "on": [False, True]}
EXACT = {**AXES, "x": [0.25, 0.125, 1.5, 3.0]}  # outside of Python 2.5 // 0.1 is 25


def value(depth, python):
    """A number."""
    if depth == 0 or draw.random() < 0.25:
        return draw.choice(["a", "b", "c", "x", str(draw.randrange(9)), draw.choice(["0.5", "1.25", "2.0"])])
    if draw.random() < 0.1:
        return f"{draw.choice(['min', 'max'])}({value(depth - 1, python)}, {value(depth - 1, python)})"
    if draw.random() < 0.1:
        return f"{draw.choice(['-', 'abs'])}({value(depth - 1, python)})"
    if draw.random() < 0.1:
        return f"({draw.choice('abc')} ** {draw.choice('0123')})"
    ops = ["+", "-", "*", "//"] + (["/", "%", "**"] if python else [])
    op = draw.choice(ops)
    if op == "**":
        return f"({value(0, python)} ** {draw.choice(['2', '3', '-1', '-2'])})"
    return f"({value(depth - 1, python)} {op} {value(depth - 1, python)})" if draw.random() < 0.6 else \
        f"{value(depth - 1, python)} {op} {value(0, python)}"


def chain(python):
    n = draw.choice([1, 1, 2, 2, 3])
    text = value(2, python)
    for _ in range(n):
        text += f" {draw.choice(['<', '<=', '>', '>=', '==', '!='])} {value(1, python)}"
    if draw.random() < 0.1:
        text = f"{value(1, python)} {draw.choice(['in', 'not in'])} ({value(0, python)}, {value(0, python)},)"
    elif draw.random() < 0.1:
        bounds = draw.choice(["{}", "{}, {}", "{}, {}, 2", "{}, {}, 3"]).format(draw.choice(["4", "b", "a + 1"]), draw.choice(["9", "c", "b * 2"]))
        text = f"{value(1, python)} {draw.choice(['in', 'not in'])} range({bounds})"
    return text


def rule(depth, python):
    if depth == 0 or draw.random() < 0.3:
        return chain(python) if draw.random() < 0.9 else "on"
    if draw.random() < 0.2:
        return f"not {chain(python)}" if draw.random() < 0.5 else f"not ({rule(depth - 1, python)})"
    parts = [rule(depth - 1, python) for _ in range(draw.choice([2, 2, 3]))]
    text = f" {draw.choice(['and', 'or'])} ".join(parts)
    return f"({text})" if draw.random() < 0.5 else text


def holds(code, plan):
    """As Python says; what cannot be computed does not hold."""
    try:
        found = eval(code, {"min": min, "max": max, "abs": abs, "range": range}, plan)
    except (ZeroDivisionError, OverflowError):
        return False
    return not isinstance(found, complex) and bool(found)


def compare(python, rounds, rules):
    """Each rule alone removes as many plans as Python says, and all of a pair keep the same plans."""
    bad, axes = [], AXES if python else EXACT
    plans = [dict(zip(axes, values)) for values in itertools.product(*axes.values())]
    for _ in range(rounds):
        texts = [rule(draw.choice([0, 1, 2]), python) for _ in range(rules)]
        codes = [compile(text, "rule", "eval") for text in texts]
        file = t.write("random.json", {"parameters": axes, "rules": [{"python": text} if python else text for text in texts]})
        done = t.tool("space", "--space", file, "--json")
        if "rules" not in (done.json or {}):
            bad.append((done, texts))
            continue
        for text, code, row in zip(texts, codes, done.json["rules"]):
            kept = sum(holds(code, plan) for plan in plans)
            if len(plans) - row["removes"] != kept:
                bad.append((text, len(plans) - row["removes"], kept))
        some = draw.sample(range(rules), 2)
        both = t.write("both.json", {"parameters": axes, "rules": [{"python": texts[i]} if python else texts[i] for i in some]})
        found = t.tool("space", "--space", both, "--json").json["feasible"]
        kept = sum(all(holds(codes[i], plan) for i in some) for plan in plans)
        if found != kept:
            bad.append(("both", [texts[i] for i in some], found, kept))
    t.check(f"{rounds * rules} random rules, python {python}, agree with Python's eval", not bad, bad[:3])


def t1(parameters, conditions):
    return {"General": {"BenchmarkName": "own"}, "ConfigurationSpace": {
        "TuningParameters": [{"Name": name, "Type": "int", "Values": text, "Default": 1} for name, text in parameters.items()],
        "Conditions": [{"Expression": text, "Parameters": []} for text in conditions]}, "KernelSpecification": {"Language": "CUDA"}}


def lists():
    """Kernel Tuner's files: values and counts are those of Python's eval."""
    parameters = {"p": "[1, 2, 4] + list(range(8, 64+1, 8))", "q": "[2**i for i in range(0, 6)]", "r": "[16*i for i in range(1,9) if i % 2 == 1]",
                  "s": "list(range(9, 0, -2))", "u": "[0.5, 1.0, 1e-2]", "v": "(3, 1)", "w": "[1, 2] + [2, 3]", "n": "['a b', \"c\"]",
                  "o": "[True, False]", "k": "range(3)", "m": "[i//2 for i in [8, 4, 2]]", "l": "[ 7, ]"}
    conditions = ["32 <= p * q <= 1024", "p % (q / 2) == 0 or s > 3", "not (r == 16 and k == 2)", "u * 2 < s ** 2 / 3", "abs(p - r) in range(0, 200, 8)", "max([q, k]) in {2, 4, 8, 32}", "n == 'c' or v == 3"]
    done = t.tool("space", "--space", t.write("t1.json", t1(parameters, conditions)), "--json").json
    want = {name: sorted(set(eval(text)), key=lambda v: (str(type(v)), v)) for name, text in parameters.items()}
    for row in done["parameters"]:
        values = row["values"] if row["name"] == "n" else sorted(row["values"])
        t.check(f"T1: the values of {row['name']}", values == want[row["name"]], row["values"])
    codes = [compile(text, "rule", "eval") for text in conditions]
    free = "wmol"  # in no condition: any of their values goes with every plan of the others
    named = {name: values for name, values in want.items() if name not in free}
    kept = sum(all(holds(code, dict(zip(named, plan))) for code in codes) for plan in itertools.product(*named.values()))
    kept *= math.prod(len(want[name]) for name in free)
    t.check("T1: as many plans as Python keeps", done["feasible"] == kept > 0, (done["feasible"], kept))
    again = t1(parameters, conditions)
    again["ConfigurationSpace"]["TuningParameters"][0]["Values"] = [5, 6]
    t.check("T1: a list that is one", t.tool("space", "--space", t.write("t1.json", again), "--json").json["parameters"][0]["values"] == [5, 6])
    for text in ("np.arange(4)", "__import__('os').listdir('.')", "[i*j for i in range(3) for j in range(3)]", "[x for x in open('/etc/passwd')]", "[1, None]",
                 "[1, 2", "range(0, 4, 0)", "list(map(int, '12'))", "[1] * 4", "{1, 2}", "", "[j for i in range(3)]", "[range(3)]", "range(0.5)"):
        done = t.tool("space", "--space", t.write("t1.json", t1({"p": text}, [])))
        t.check(f"T1: {text!r} is refused", done.code == 2 and "parameter 'p'" in done.err and done.err.count("\n") == 1, done)
    for text in ("p if p else 1", "p & 1 == 0", "len(p) > 1", "sum([p, 1]) > 1", "p in range(0, 9, -1)", "p in range(0, 9, p)", "p in [i for i in range(3)]", "p in range(0.5)", "range(3) == p", "p < 2 && p > 0", "(lambda: 1)()", "p.bit_length() == 1", "p == 1; p", "[p] == [1]"):
        done = t.tool("space", "--space", t.write("t1.json", t1({"p": "[1, 2]"}, [text])))
        t.check(f"T1: the rule {text!r} is refused", done.code == 2 and "column" in done.err and done.err.count("\n") == 1, done)


def t1_with(change):
    file = t1({"p": "[1, 2]"}, ["p > 1"])
    change(file["ConfigurationSpace"])
    return file


def fields():
    """In our own files a field that is not known is an error, at every level."""
    P = {"parameters": {"a": [1, 2]}}
    cases = [({**P, "restrictions": ["a == 1"]}, "unknown field 'restrictions', did you mean 'rules'?"), ({**P, "conditions": []}, "did you mean 'rules'?"),
             ({**P, "constraints": []}, "did you mean 'rules'?"), ({**P, "ruels": []}, "did you mean 'rules'?"), ({**P, "budget": 3}, "unknown field 'budget'"),
             ({"params": {"a": [1]}}, "did you mean 'parameters'?"), ({"parameters": {"a": {"values": [1, 2], "defualt": 2}}}, "'a': unknown field 'defualt', did you mean 'default'?"),
             ({"parameters": [{"name": "a", "value": [1]}]}, "unknown field 'value', did you mean 'values'?"),
             ({"parameters": {"a": {"choices": [1]}}}, "'a': unknown field 'choices', did you mean 'values'?"),
             ({**P, "rules": [{"if": "a == 1", "message": "x"}]}, "rule 1: unknown field 'message', did you mean 'say'?"),
             ({**P, "rules": [{"expression": "a == 1"}]}, "rule 1: unknown field 'expression', did you mean 'if'?"),
             ({"parameters": {"a": {"from": 1, "to": 4, "stpe": 2}}}, "unknown field 'stpe', did you mean 'step'?"),
             ({"parameters": {"block": [1]}, "rules": ["blokc == 1"]}, "unknown name 'blokc', did you mean 'block'?"),
             ({**P, "rules": [{"if": "a > 1", "python": "a < 2"}]}, "rule 1 has 'if' and 'python'"),
             ({"parameters": {"s": ["16", "32"], "a": [1, 2]}, "rules": ["a * s == 16"]}, "'s' is a text: it is only compared with its values, such as \"16\""),
             ({"parameters": {"s": ["on", "off"], "a": {"values": [1, 2], "when": "s"}}}, "'s' is a text"),
             *((t1_with(change), says) for change, says in (
                 (lambda space: space.update(Condtions=space.pop("Conditions")), "unknown field 'Condtions', did you mean 'Conditions'?"),
                 (lambda space: space["TuningParameters"][0].update(Vaules="[1]"), "unknown field 'Vaules', did you mean 'Values'?"),
                 (lambda space: space["Conditions"][0].update(Expresion="p"), "unknown field 'Expresion', did you mean 'Expression'?")))]
    for file, says in cases:
        t.exits(f"an unknown field: {says}", t.tool("space", "--space", t.write("own.json", file)), 2, says)


def effects():
    """A rule that removes nothing, or everything, is said."""
    done = t.tool("space", "--space", t.write("own.json", {"parameters": {"a": [1, 2]}, "rules": ["a < 3", "a > 1"]}))
    t.check("a rule that removes nothing", done.code == 0 and "a < 3  (removes nothing)" in done.out and done.out.count("removes nothing") == 1, done)
    done = t.tool("space", "--space", t.write("own.json", {"parameters": {"a": [1, 2]}, "rules": ["a > 3", "a > 1"]}))
    t.check("a rule that removes everything", done.code == 3 and "a > 3  (removes every plan)" in done.out, done)


compare(True, 8, 30)
compare(False, 6, 30)
lists()
fields()
effects()
t.finish()
