# SPDX-License-Identifier: MIT
# ctest:
"""Groups that stay loaded are ended by the memory they were seen to use, least recently used first."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

t = Dittune(DITTUNE_CLOCK_LOOK="0")
MEMORY = t.tool("machine", "--json").json["limits"]["memory_bytes"]
RANKS = [1, 2, 4]


def starts(share, ranks=RANKS):
    """Groups that a session starts when all ranks of a group need this share of the memory."""
    faults = [{"when": {"ranks": n}, "at": "prepare", "do": "answer",
               "fields": {"peak_bytes": [int(share * MEMORY / n)] * n}} for n in ranks]
    t.scenario(axes={"ranks": ranks, "tile": [1, 2, 3, 4, 5, 6]}, weights={"ranks": 0.1, "tile": 0.1}, best={"ranks": 2, "tile": 2},
               cv=0.01, faults=faults)
    log = t.path / "scenario.json.log"
    log.unlink(missing_ok=True)
    done = t.tool("--worker", t.worker, "--devices", 4, "--budget", "60s", "--search", "random", "--quiet", "--json")
    t.exits(f"a session with groups of {share} of the memory", done, 0)
    return sum(line.startswith("# process") for line in log.read_text().splitlines())


def visits(room):
    """The search's plans in order, as (class, whether a group was started for it). Classes of plans need a group each, by a
    variable of their environment; `room` of them fit into the memory."""
    classes = [1, 2, 3, 4, 5]
    t.scenario(axes={"class": classes, "tile": [1, 2, 3, 4, 5, 6]}, weights={"class": 0.1, "tile": 0.1}, best={"class": 2, "tile": 2},
               parameters=[{"name": "class", "role": "environment", "variable": "PLANTED_CLASS", "values": classes, "default": 1},
                           {"name": "tile", "values": [1, 2, 3, 4, 5, 6], "default": 1}],
               cv=0.01, faults=[{"at": "prepare", "do": "answer", "fields": {"peak_bytes": [int(0.95 * MEMORY / room)]}}])
    log = t.path / "scenario.json.log"
    log.unlink()
    done = t.tool("--worker", t.worker, "--budget", "60s", "--search", "random", "--quiet", "--json", "--db", t.path / f"room{room}")
    t.exits(f"a session with room for {room} groups", done, 0)
    kinds = [json.loads(line)["kind"] for path in t.path.glob(f"room{room}/runs/*.jsonl") for line in path.read_text().splitlines() if line]
    kinds = [kind for kind in kinds if kind not in ("begin", "searched", "sets")]
    found, started = [], False
    for line in log.read_text().splitlines():
        if line.startswith("#"):
            started = True
        elif '"prepare"' in line and '"plan"' in line:
            found.append((json.loads(line)["plan"]["class"], started))
            started = False
    return found[:kinds.index("comparison")]  # as many as trials, and the reference before them


def check_order(room):
    """Groups are started when a list of the classes by their last use has lost theirs."""
    alive, expected, found = [], [], visits(room)
    for number, _ in found:
        expected.append((number, number not in alive))
        alive = [other for other in alive if other != number][1 - room:] + [number]
    again = sum(started for _, started in found) - len({number for number, _ in found})
    t.check(f"with room for {room} groups the one that was used longest ago is ended", found == expected and again > 3, (found, expected))


few, two, one = starts(0.01), starts(0.45), starts(0.9)
t.check("groups that fit stay, others are ended for a new one", few < two < one, (few, two, one))
check_order(3)
check_order(4)
t.none_left()
t.finish()
