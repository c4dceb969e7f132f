# SPDX-License-Identifier: MIT
# ctest:
"""Names that others chose, on a terminal and in the log of a pipeline: no command prints a control character, one that
changes the direction of the text, or what GitHub's runner takes for a command."""
import json
import re

from lib_check import WINS, CheckTest
import lib_store
from dittune_test import SOURCE

EVIL = "x\x1b[2J\x9b31m\u202e\u2066##[stop-commands]y"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufffe\uffff]|##\\[")
DATA = SOURCE / "tests/simulate/data"
t = CheckTest()
machine = t.tool("machine", "--json").json


def shown(name, *words):
    """The command prints of the evil name what may be shown."""
    done = t.tool(*words)
    found = HIDDEN.search(done.out + done.err)
    t.check(name, not found and "stop-commands" in done.out + done.err, f"{found} {done}")


def network():
    small = json.loads((SOURCE / "tests/cli/small.json").read_text(encoding="utf-8"))
    return t.write("evil.json", {**small, "name": EVIL})


def journal():
    rows = [json.loads(line) for line in (DATA / "journal.jsonl").read_text(encoding="utf-8").splitlines() if line]
    rows[0].update(title=EVIL, prior=EVIL)
    return t.write("evil.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def session():
    """The journal of a session whose title and prior somebody changed."""
    t.plant(WINS)
    t.tuned("tuned")
    path = next((t.path / "tuned/runs").glob("*.jsonl"))
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
    for row in rows:
        del row["crc"]
        row.update({name: EVIL for name in ("title", "prior") if name in row})
    return t.write("session.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def cache():
    table = json.loads((DATA / "cache.json").read_text(encoding="utf-8"))
    return t.write("cache.json", {**table, "device_name": EVIL, "kernel_name": EVIL})


def space():
    return t.write("space.json", {"parameters": [{"name": "a", "values": [EVIL, "z"]}], "rules": [{"if": "a == 'z'", "say": EVIL}]})


shown("space: a network's name", "space", "--model", network())
shown("space: values and rules of a file", "space", "--space", space())
shown("space: its plans", "space", "--space", t.write("free.json", {"parameters": {"a": [EVIL]}}), "--list")
shown("explain", "explain", "--model", network(), f"{EVIL}=1")
shown("simulate: a journal", "simulate", "--landscape", journal(), "--evals", "3", "--repeats", "2")
shown("simulate: a table", "simulate", "--landscape", cache(), "--evals", "3", "--repeats", "2")
shown("analyze", "analyze", session())
shown("error: an option's value", "tune", "--objective", EVIL)
shown("error: an option's name", f"--{EVIL}")
lib_store.write(t.db, machine, [{"key.model": EVIL, "key.objective": "latency"},
                                {"key.objective": "##[stop-commands]x", "fingerprint.hard.device": EVIL}])
shown("db show", "db", "show")
lib_store.write(t.db, machine, [{"key.objective": "##[stop-commands]x\u202e"}])
shown("check: titles, progress, the line to tune again", "check", "--github", "--model", SOURCE / "tests/cli/small.json")
other = t.path / "other"
lib_store.write(other, machine, [{"key.model": EVIL}])
shown("merge", "db", "merge", other)
t.finish()
