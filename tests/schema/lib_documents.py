# SPDX-License-Identifier: MIT
"""Checks files of dittune against its JSON Schemas by another project's validator.

Each document must be accepted; then it is spoilt in every way of the table below, and each copy must be refused."""
import copy
import json
import warnings

from dittune_test import SOURCE, THIN, skip

warnings.simplefilter("ignore")
try:
    from jsonschema import Draft202012Validator
except ImportError:
    skip("the jsonschema for Python here is older than 4, which knows the draft of 2020-12")

SCHEMAS = {"best": "dittune-best-2.schema.json", "trial": "dittune-trial-1.schema.json",
           "lookup": "dittune-lookup-1.schema.json", "machine": "dittune-machine-1.schema.json", "plan": "dittune-plan-1.schema.json", "event": "dittune-event-1.schema.json"}

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
    ("plan", "plans", {}), ("plan", "hosts", 0), ("plan", "scale", 0), ("plan", "machine", None), ("plan", "plans.0.basis", None),
    ("plan", "plans.0.basis.step", "datasheet"), ("plan", "plans.0.basis.request", None), ("plan", "plans.0.basis.link", "fitted"),
    ("plan", "plans.0.link", "wire"), ("plan", "plans.0.step_interval", [1]), ("plan", "plans.0.fits", True),
    ("plan", "plans.0.terms", {"gemm": -1}), ("plan", "plans.0.memory_bytes", 1.5),
    ("lookup", "tier", "perfect"), ("lookup", "tier", None), ("lookup", "stale", "no"),
    ("lookup", "stale_reasons", "none"), ("lookup", "stale_reasons", [1]), ("lookup", "distance", -1),
    ("lookup", "reason", ""), ("lookup", "reason", None), ("lookup", "age_seconds", "old"),
    ("lookup", "store", 1), ("lookup", "evidence", "guessed"), ("lookup", "gain", 2),
    ("lookup", "plan", {"ranks": [1]}), ("lookup", "hint", "try"), ("lookup", "hint", {}), ("lookup", "key", 1),
    ("lookup", "entry", 3), ("lookup", "provisional", None),
    ("trial", "v", 2), ("trial", "seq", -1), ("trial", "seq", "1"), ("trial", "run", "a/b"), ("trial", "crc", None),
    ("trial", "crc", "xyz"), ("trial", "kind", None), ("trial", "kind", ""), ("trial", "t_mono_ns", 0.5),
    ("trial", "plan?", {}), ("trial", "outcome?", 1), ("trial", "ns?", [[]]), ("trial", "ns?", [[-1]]),
    ("trial", "ns?", [1, 2]), ("trial", "requests?", [0]), ("trial", "least?", -1), ("trial", "peak_bytes?", "big"),
    ("trial", "cold_ns?", -1), ("trial", "verified_error?", -0.5), ("trial", "entrants?", []),
    ("trial", "entrants.0.role?", None), ("trial", "entrants.0.ns?", [[1.5]]), ("trial", "complete?", 1),
    ("trial", "rounds?", -1), ("trial", "budget_ns?", None), ("trial", "parameters?", []),
    ("trial", "fingerprint.hard?", None), ("trial", "elapsed_ns?", "1 s"), ("trial", "search_stopped?", 1),
    ("trial", "evaluations?", "many"), ("trial", "known?", [{}]), ("trial", "gain?", 0), ("trial", "rivals?", [{}]),
    ("trial", "verdict?", 5), ("trial", "sweep?", "devices"),
    ("event", "v", 2), ("event", "kind", None), ("event", "t_wall_ns", "now"), ("event", "seq?", -1), ("event", "crc?", "xyz"),
    ("event", "plan?", {}), ("event", "trials?", -1), ("event", "failed?", "none"), ("event", "left_seconds?", -1),
    ("event", "best.plan?", None), ("event", "best.interval_seconds?", [1]), ("event", "doing?", ""), ("event", "phase?", 1),
    ("event", "chance_of_gain?", 2), ("event", "text?", ""), ("event", "exit?", "0"), ("event", "result?", []),
    ("event", "error?", 1),
]
# Additions of another version are no errors.
ADDED = [("best", ""), ("best", "entries.0"), ("best", "entries.0.key"), ("best", "entries.0.figures"),
         ("best", "entries.0.fingerprint"), ("best", "version"), ("machine", ""), ("machine", "limits"),
         ("machine", "info"), ("lookup", ""), ("plan", ""), ("plan", "plans.0.basis"), ("trial", ""), ("event", "")]


def validator(kind):
    schemas = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (SOURCE / "schema").glob("*.json")}
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)
    schema = schemas[SCHEMAS[kind]]
    try:
        from referencing import Registry, Resource
        registry = Registry().with_resources((name, Resource.from_contents(text)) for name, text in schemas.items())
        return Draft202012Validator(schema, registry=registry)
    except ImportError:  # the jsonschema of Debian 12
        from jsonschema import RefResolver
        return Draft202012Validator(schema, resolver=RefResolver(schema["$id"], schema, store=schemas))


def steps(path):
    return [int(step) if step.isdigit() else step for step in path.rstrip("?").split(".") if step]


def at(document, way):
    for step in way:
        document = document[step]
    return document


def spoil(document, path, value):
    """The document with the field changed; None when it has no such field."""
    spoilt, way = copy.deepcopy(document), steps(path)
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


def extended(document, path):
    """The document as a later version may write it, with a field more."""
    more = copy.deepcopy(document)
    at(more, steps(path))["of_tomorrow"] = {"x": [1]}
    return more


class Documents:
    """The documents of one kind: checks that count what was accepted, and in how many ways it was spoilt."""

    def __init__(self, test, kind):
        self.test, self.kind, self.validator = test, kind, validator(kind)
        self.ways = [(path, value) for of, path, value in SPOILT if of == kind]
        self.used = {}  # number of a way: documents that were spoilt in it

    def conform(self, name, documents):
        """All of them are accepted, each alone, and all of their spoilt copies refused; in the thin dose three of each way to spoil them."""
        wrong = [] if documents else ["there is no document"]
        for document in documents:
            errors = [f"{error.message[:200]} at {error.json_path}" for error in self.validator.iter_errors(document)]
            wrong += [f"refused: {error}" for error in errors[:3]] or self.spoilt(document) + self.extended(document)
        self.test.check(f"{self.kind}: {name}, {len(documents)} documents", not wrong, "\n".join(wrong[:10]))

    def spoilt(self, document):
        wrong = []
        for number, (path, value) in enumerate(self.ways):
            if THIN and self.used.get(number, 0) >= 3:
                continue
            copy_of_it = spoil(document, path, value)
            if copy_of_it is not None:
                self.used[number] = self.used.get(number, 0) + 1
                if self.validator.is_valid(copy_of_it):
                    wrong.append(f"accepted with {path} = {json.dumps(value)}")
        return wrong

    def extended(self, document):
        return [f"refused with an unknown field in '{path}'" for of, path in ADDED
                if of == self.kind and not self.validator.is_valid(extended(document, path))]

    def finish(self):
        """Every way of the table was tried."""
        unused = [way for number, way in enumerate(self.ways) if number not in self.used]
        self.test.check(f"{self.kind}: {len(self.used)} ways to spoil them", not unused, f"never tried: {unused}")
