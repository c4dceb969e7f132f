#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Exports a set of plans for every engine, then every plan of every model's card, has each line read by the engine itself
(drive.py), writes the tables.

    check.py DITTUNE PYTHON FOLDER [ENGINE:VERSION]...        the table goes to standard output, as Markdown

An export is accepted when the engine takes it and understands the very degrees of the plan. The control is the same
line with a misspelt word or keyword: the engine must refuse every one, or the check shows nothing.
"""
import collections
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile

import drive

NETWORK = {"name": "export-24", "family": "dit", "hidden": 1536, "heads": 24, "depth": 24, "patch": 2, "in_channels": 4,
           "latent_size": 128, "classes": 1000, "mlp_ratio": 4.0, "learn_sigma": True}
NAMES = ("replicas", "cfg", "ulysses", "ring", "kv_gather", "tensor", "pipe")
DEVICES = 8
WHY_NOT = {
    "trtllm-visualgen": "the registry has a placeholder that fetches the package from elsewhere; fields read in the file",
    "wan2.1": "not on the registry; flags read in the file",
    "wan2.2": "not on the registry; flags read in the file",
    "hunyuanvideo": "not on the registry; flags read in the file",
}


def plans():
    names = [name for name in NAMES if name != "kv_gather"]
    for degrees in itertools.product((1, 2), (1, 2), (1, 2, 3, 4, 5, 8), (1, 2, 3, 4), (1, 2), (1, 2, 4)):
        plan, ranks = dict(zip(names, degrees)), 1
        for degree in degrees:
            ranks *= degree
        if ranks > 32:
            continue
        ranks //= plan["replicas"]
        for name in "tensor", "pipe":  # not the built-in network's: named where they matter
            if plan[name] == 1:
                del plan[name]
        yield dict(plan, ranks=ranks, threads=1, batch=2, tile_q=64, tile_kv=128, overlap=0, chunks=1)


def export(dittune, model, engine, plan):
    words = " ".join("%s=%s" % item for item in plan.items())
    run = subprocess.run([dittune, "lookup", "--model", model, "--plan", words, "--engine", engine, "--format", "json"],
                         capture_output=True, text=True)
    assert run.returncode in (0, 3), run.stderr
    return json.loads(run.stdout) if run.returncode == 0 else None


def ranks(plan):
    return math.prod(value for value in plan.values() if isinstance(value, int))


def understood(verdict, plan):
    """None, or how the engine's degrees are other than the plan's."""
    if "rejected" in verdict:
        return verdict["rejected"]
    told, product = verdict["ok"], 1
    for name in NAMES:
        if name in told and told[name] != plan.get(name, 1):
            return "%s is %s, not %s" % (name, told[name], plan.get(name, 1))
        product *= told.get(name, 1)
    return None if product == told["processes"] else "%d processes, not %d" % (told["processes"], product)


def misspelt(exported):
    """The export with one word or keyword wrong."""
    wrong = json.loads(json.dumps(exported))
    flags = [i for i, word in enumerate(wrong["argv"]) if word.startswith("--ulysses") or word.startswith("--tp-size")]
    if flags:
        wrong["argv"][flags[0]] = wrong["argv"][flags[0]] + "_typo"
    for name, fields in wrong["kwargs"].items():
        if isinstance(fields, dict) and name != "compile_repeated_blocks":  # which takes any keyword
            fields["typo"] = 2
    return wrong


def verdicts(python, folder, engine, exports):
    here = os.path.dirname(os.path.abspath(__file__))
    run = subprocess.run([python, here + "/drive.py", engine, folder], input=json.dumps(exports), capture_output=True,
                         text=True)
    if run.returncode != 0:
        raise RuntimeError(run.stderr.strip().split("\n")[-1][:150])
    return [json.loads(line) for line in run.stdout.splitlines()]


def row(engine, python, folder, exports):
    name = engine.split(":")[0]
    told = [(plan, made) for plan, made in exports if made is not None]
    counts = "%d | %d | %d" % (len(exports), len(exports) - len(told), len(told))
    if name not in drive.DRIVERS:
        return "| %s | %s | not checked | | | %s |" % (engine, counts, WHY_NOT.get(name, "no driver"))
    wrong = [misspelt(made) for _, made in told if misspelt(made) != made]
    try:
        found = verdicts(python, folder, engine, [made for _, made in told] + wrong)
    except (RuntimeError, OSError) as error:
        return "| %s | %s | not checked | | | the engine could not be imported: %s |" % (engine, counts, error)
    reasons = collections.Counter(filter(None, (understood(v, plan) for v, (plan, _) in zip(found, told))))
    caught = sum("rejected" in verdict for verdict in found[len(told):])
    return "| %s | %s | %d | %d | %d of %d | %s |" % (
        engine, counts, len(told) - sum(reasons.values()), sum(reasons.values()), caught, len(wrong),
        "; ".join("%d: %s" % (count, reason) for reason, count in reasons.items()))


def of_models(dittune, python, folder):
    """Every plan of every card for each engine that the card names and that has a driver, on a described host; and each word
    of each setting on one device."""
    print("\n| model | engine | plans on up to %d devices | accepted | rejected | controls caught | remarks |" % DEVICES)
    print("|---|---|---|---|---|---|---|")
    for card in json.loads(subprocess.check_output([dittune, "models", "--json"]))["models"]:
        model, words = card["model"], ["--devices", str(DEVICES), "--lossy", "--json"]
        for known in json.loads(subprocess.check_output([dittune, "models", model, *words]))["engines"]:
            engine = known["engine"]
            if engine.split(":")[0] not in drive.DRIVERS:
                continue
            shown = json.loads(subprocess.check_output([dittune, "models", model, "--engine", engine, *words]))
            listed = shown["plans"] + [{name: word} for name, row in shown["settings"].items() for word in row["values"]]
            exports = [(plan, export(dittune, model, engine, {**plan, "ranks": ranks(plan)})) for plan in listed]
            cells = [cell.strip() for cell in row(engine, python, folder, exports).strip("|").split("|")]
            print("| %s | %s | %s | %s |" % (model, engine, known["plans"], " | ".join(cells[4:])), flush=True)


def main():
    dittune, python, folder = sys.argv[1:4]
    engines = json.loads(subprocess.check_output([dittune, "lookup", "--engines", "--json"]))["engines"]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as model:
        json.dump(NETWORK, model)
        model.flush()
        print("| engine | plans | refused by its rules | exported | accepted | rejected | controls caught | remarks |")
        print("|---|---|---|---|---|---|---|---|")
        for known in engines:
            engine = "%s:%s" % (known["engine"], known["version"])
            if sys.argv[4:] and engine not in sys.argv[4:]:
                continue
            exports = [(plan, export(dittune, model.name, engine, plan)) for plan in plans()]
            print(row(engine, python, folder, exports), flush=True)
    if not sys.argv[4:]:
        of_models(dittune, python, folder)


if __name__ == "__main__":
    main()
