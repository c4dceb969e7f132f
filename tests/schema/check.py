#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks what dittune wrote by its JSON Schemas, with a validator that is not ours.

    check.py FOLDER KIND FILE...   KIND: best, trial (a journal: each record), lookup, machine

Each document must be accepted; then it is spoilt in every way of the table below, and each spoilt one must be refused.
"""
import copy
import json
import sys
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
from jsonschema import Draft202012Validator

SCHEMAS = {
    "best": "dittune-best-2.schema.json",
    "trial": "dittune-trial-1.schema.json",
    "lookup": "dittune-lookup-1.schema.json",
    "machine": "dittune-machine-1.schema.json",
}


def validator(folder, kind):
    schemas = {path.name: json.loads(path.read_text()) for path in Path(folder).glob("*.json")}
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    schema = schemas[SCHEMAS[kind]]
    try:
        from referencing import Registry, Resource
        registry = Registry().with_resources(
            (name, Resource.from_contents(text)) for name, text in schemas.items())
        return Draft202012Validator(schema, registry=registry)
    except ImportError:
        from jsonschema import RefResolver
        return Draft202012Validator(
            schema, resolver=RefResolver(schema["$id"], schema, store=schemas))


def at(document, path):
    for step in path:
        document = document[step]
    return document


# kind, where, what: None takes the field away, a function changes it. "?": where the document has it.
SPOILT = [
    ("best", "format", None), ("best", "format", "dittune"), ("best", "version.major", 3), ("best", "version", 2),
    ("best", "version.minor", -1), ("best", "incompat", "word"), ("best", "compat", [1]), ("best", "checksum", "123"),
    ("best", "checksum", "ABCDEF01"), ("best", "checksum", None), ("best", "entries", {}), ("best", "entries.0", []),
    ("best", "entries.0.id", None), ("best", "entries.0.id", "12"), ("best", "entries.0.crc", None),
    ("best", "entries.0.crc", 7), ("best", "entries.0.key", None), ("best", "entries.0.key.objective", "speed"),
    ("best", "entries.0.key.objective", None), ("best", "entries.0.key.devices", 0),
    ("best", "entries.0.key.devices", "2"), ("best", "entries.0.fingerprint.hard", None),
    ("best", "entries.0.fingerprint.hard.engine", None), ("best", "entries.0.fingerprint.hard.topology", "flat"),
    ("best", "entries.0.fingerprint.hard.cores", 1.5), ("best", "entries.0.fingerprint.hard.memory_gib", 0),
    ("best", "entries.0.fingerprint.hard.dtype", []), ("best", "entries.0.fingerprint.soft.mpi", 4),
    ("best", "entries.0.fingerprint.soft.environment", []), ("best", "entries.0.fingerprint.soft", None),
    ("best", "entries.0.plan", {}), ("best", "entries.0.plan", [1, 2]), ("best", "entries.0.plan", {"ranks": 1.5}),
    ("best", "entries.0.plan", {"../x": 1}), ("best", "entries.0.plan", {"ranks": None}),
    ("best", "entries.0.provisional", "no"), ("best", "entries.0.figures.median_ns", 0.25),
    ("best", "entries.0.figures.median_ns", -1), ("best", "entries.0.figures.interval_ns", [1]),
    ("best", "entries.0.figures.samples", 0), ("best", "entries.0.default", 0),
    ("best", "entries.0.gain", {"ratio": 2}), ("best", "entries.0.gain", {"ratio": -1, "interval": [1, 2], "pairs": 8}),
    ("best", "entries.0.top", "best"), ("best", "entries.0.top", [1, 2, 3, 4]), ("best", "entries.0.top.0.plan", None),
    ("best", "entries.0.pareto", [{}]), ("best", "entries.0.pareto.0.peak_bytes", -5),
    ("best", "entries.0.space", {"rules": []}), ("best", "entries.0.journal", "../../etc/passwd"),
    ("best", "entries.0.journal", None), ("best", "entries.0.key.network?", "zz"),
    ("best", "entries.0.key.batch?", []), ("best", "entries.0.key.batch?", [1, 1]),
    ("best", "entries.0.key.guidance?", 1), ("best", "entries.0.key.height?", 0),
    ("machine", "format", None), ("machine", "format", "machine"), ("machine", "version.major", 2),
    ("machine", "hard.cores", 0), ("machine", "hard.cores", None), ("machine", "hard.device", ""),
    ("machine", "hard.memory_gib", 15.5), ("machine", "hard.topology", "0"), ("machine", "soft.dittune", None),
    ("machine", "soft.kernel", {"release": 6}), ("machine", "soft.environment", {"A": 1}),
    ("machine", "soft.environment", {"A B": "1"}), ("machine", "info.t_wall_ns", "now"),
    ("machine", "limits.memory_bytes", 0), ("machine", "limits.bfloat16", "yes"), ("machine", "limits", None),
    ("lookup", "tier", "perfect"), ("lookup", "tier", None), ("lookup", "stale", "no"), ("lookup", "stale_reasons", "none"),
    ("lookup", "stale_reasons", [1]), ("lookup", "distance", -1), ("lookup", "reason", ""), ("lookup", "reason", None),
    ("lookup", "age_seconds", "old"), ("lookup", "evidence", "guessed"), ("lookup", "gain", 2),
    ("lookup", "plan", {"ranks": [1]}), ("lookup", "hint", "try"), ("lookup", "hint", {}), ("lookup", "key", 1), ("lookup", "entry", 3), ("lookup", "provisional", None),
    ("trial", "v", 2), ("trial", "seq", -1), ("trial", "seq", "1"), ("trial", "run", "a/b"), ("trial", "crc", None),
    ("trial", "crc", "xyz"), ("trial", "kind", None), ("trial", "kind", ""), ("trial", "t_mono_ns", 0.5),
    ("trial", "plan?", {}), ("trial", "outcome?", 1), ("trial", "ns?", [[]]), ("trial", "ns?", [[-1]]),
    ("trial", "ns?", [1, 2]), ("trial", "requests?", [0]), ("trial", "least?", -1), ("trial", "peak_bytes?", "big"),
    ("trial", "cold_ns?", -1), ("trial", "verified_error?", -0.5), ("trial", "entrants?", []),
    ("trial", "entrants.0.role?", None), ("trial", "entrants.0.ns?", [[1.5]]), ("trial", "complete?", 1),
    ("trial", "rounds?", -1), ("trial", "budget_ns?", None), ("trial", "parameters?", []),
    ("trial", "fingerprint.hard?", None), ("trial", "elapsed_ns?", "1 s"), ("trial", "unverified?", [{}]),
    ("trial", "evaluations?", "many"), ("trial", "known?", [{}]), ("trial", "gain?", 0), ("trial", "rivals?", [{}]),
    ("trial", "verdict?", 5), ("trial", "sweep?", "devices"),
]
# What another version may add is no error.
ADDED = [("best", ""), ("best", "entries.0"), ("best", "entries.0.key"), ("best", "entries.0.figures"),
         ("best", "entries.0.fingerprint"), ("best", "version"), ("machine", ""), ("machine", "limits"),
         ("machine", "info"), ("lookup", ""), ("trial", "")]


def steps(path):
    return [int(step) if step.isdigit() else step for step in path.rstrip("?").split(".") if step]


def spoil(document, path, value):
    """The document with the field changed; None when it has no such field."""
    spoilt = copy.deepcopy(document)
    way = steps(path)
    try:
        parent = at(spoilt, way[:-1])
        if isinstance(parent, dict) and path.endswith("?") and way[-1] not in parent:
            return None
        if value is None:
            del parent[way[-1]]
        else:
            parent[way[-1]] = value
    except (KeyError, IndexError, TypeError):
        return None
    return spoilt


def main():
    folder, kind, files = sys.argv[1], sys.argv[2], sys.argv[3:]
    checker = validator(folder, kind)
    accepted, used, failed = 0, set(), 0
    for name in files:
        text = Path(name).read_text()
        lines = [line for line in text.split("\n") if line] if kind == "trial" else [text]
        for line in lines:
            document = json.loads(line)
            errors = [error.message[:200] + " at " + error.json_path for error in checker.iter_errors(document)]
            if errors:
                print("FAIL %s: refused: %s" % (Path(name).name, "; ".join(errors[:3])))
                failed = 1
                continue
            accepted += 1
            for row in [row for row in SPOILT if row[0] == kind]:
                spoilt = spoil(document, row[1], row[2])
                if spoilt is None:
                    continue
                used.add(row[1] + " = " + json.dumps(row[2]))
                if checker.is_valid(spoilt):
                    print("FAIL %s: accepted with %s = %s" % (Path(name).name, row[1], json.dumps(row[2])))
                    failed = 1
            for row in [row for row in ADDED if row[0] == kind]:
                more = copy.deepcopy(document)
                at(more, steps(row[1]))["of_tomorrow"] = {"x": [1]}
                if not checker.is_valid(more):
                    print("FAIL %s: refused with an unknown field in '%s'" % (Path(name).name, row[1]))
                    failed = 1
    print("%s %s: %d accepted, %d ways to spoil them" % ("ok  " if not failed else "FAIL", kind, accepted, len(used)))
    sys.exit(1 if failed or accepted == 0 else 0)


main()
