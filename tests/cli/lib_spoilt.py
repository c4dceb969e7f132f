# SPDX-License-Identifier: MIT
"""Fields of a journal made something else, one at a time: `analyze` answers or says one sentence; it never crashes."""
import copy
import json
import random

from dittune_test import FULL

SEED = random.SystemRandom().randrange(1 << 32) if FULL else 9
COUNT = 600 if FULL else 60
VALUES = (None, -1, 7, 1 << 60, [], {}, "x")


def places(value, path=()):
    """The paths of all fields, and of the first three items of each list."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, inner in items:
        yield path + (key,)
        yield from places(inner, path + (key,))


def spoil(rows, place, value):
    spoilt = copy.deepcopy(rows)
    at = spoilt
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return spoilt


def is_answer(done):
    return done.code == 0 or (done.code in (1, 2, 3, 7) and done.err.count("\n") == 1)


def check(t, name, journal):
    rows = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines() if line.strip()]
    for row in rows:
        del row["crc"]
    rng, wrong = random.Random(SEED), []
    every = list(places(rows[:2])) + list(places(rows))  # the first two records hold what the others are read by
    for _ in range(COUNT):
        place, value = rng.choice(every), rng.choice(VALUES)
        text = "".join(json.dumps(row) + "\n" for row in spoil(rows, place, value))
        path = t.write("spoilt.jsonl", text)
        for form in (["--json"], []):
            done = t.tool("analyze", path, *form)
            if not is_answer(done):
                wrong.append(f"{place} = {value!r}: {done}")
    t.check(f"{COUNT} spoilt records of {name}, seed {SEED}", not wrong, "\n".join(wrong[:3]))
